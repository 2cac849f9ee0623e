"""A job that profiles itself by PyTorch's usual means, phase by phase as a file tells it to.

"wait", "warmup", "active N" (three recorded steps, the N-th cycle; then waiting), "exporting N" (as active, and its
callback waits until the file says something else). JOB_OPTIONS: options of the profiler, as JSON; JOB_COMPILES: a
backend of torch.compile. It prints each phase once it is in it, and of each of its own traces how many marks and
operators are in the exported file, and how often each name is. Knows nothing of fleetprof.
"""

PROFILED = """
import collections, json, re
from torch.profiler import ProfilerAction, ProfilerActivity, profile

# Addresses, the numbers of steps, and of Kineto's own count of its recordings, which ours are among.
VARYING = r"0x[0-9a-f]+|#[0-9]+|(?<=^PyTorch Profiler )\\([0-9]+\\)"

def read_phase():
    with open(os.environ["JOB_PHASE"]) as file:
        return file.read().strip()

class Schedule:
    # Called by PyTorch once at the begin and once in each step().
    def __init__(self):
        self.cycle, self.left = "", 0
    def __call__(self, step):
        # Read once in a step: what is printed, and so traced, is the same in each cycle.
        self.phase = phase = read_phase()
        if not self.left and phase == "warmup":
            return ProfilerAction.WARMUP
        if not self.left and phase.startswith(("active", "exporting")) and phase != self.cycle:
            self.cycle, self.left = phase, 3
        if self.left:
            self.left -= 1
            return ProfilerAction.RECORD if self.left else ProfilerAction.RECORD_AND_SAVE
        return ProfilerAction.NONE

def take_trace(own):
    phase = read_phase()
    if phase.startswith("exporting"):
        print("held in", phase, flush=True)
        while read_phase() == phase:
            time.sleep(0.005)
    path = os.environ["JOB_PHASE"] + ".json"
    own.export_chrome_trace(path)
    with open(path) as file:
        names = [event["name"] for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    os.remove(path)
    counts = collections.Counter(name.partition("#")[0] for name in names)
    found = {name: counts[name] for name in ("ProfilerStep", "aten::linear", "aten::addmm", "Optimizer.step")}
    print("own", json.dumps([found, sum(name.startswith("aten::") for name in names)]), flush=True)
    print("all", json.dumps(collections.Counter(re.sub(VARYING, "", name) for name in names)), flush=True)

options = json.loads(os.environ.get("JOB_OPTIONS", "{}"))
model, optimizer = make()
if os.environ.get("JOB_COMPILES"):
    model = torch.compile(model, backend=os.environ["JOB_COMPILES"])
iterate(model, optimizer)
schedule = Schedule()
with profile(activities=[ProfilerActivity.CPU], schedule=schedule, on_trace_ready=take_trace, **options) as own:
    said = None
    while not is_stopped():
        iterate(model, optimizer)
        own.step()
        if (schedule.phase, own.current_action) != said:
            said = schedule.phase, own.current_action
            print("in", schedule.phase, own.current_action.name, flush=True)
print("torch's flag", torch.autograd.profiler._is_profiler_enabled, flush=True)
"""
