"""Makes the recorded traces anew: real jobs on gloo, captured through `up`, `run` and `capture` as a user does it.

    python tests/data/traces/record.py [SET]...

Needs PyTorch and a minute or two; `torchrec_pipeline` needs the bench's environment with torchrec (several GB, once)
and is recorded by PyTorch's own profiler. Afterwards nothing in the files tells of the machine: `scrub` says what is
taken out.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "bench" / "real")]

from harness.training.local_system import Local, make_local  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

PATIENCE_S = 300.0
PIPELINE = "torchrec_pipeline"
# Set -> (ranks, iterations, how many times as long rank 1's sequences are, what to record beyond the usual)
SETS = {"two_ranks_longer": (2, 6, 4, "Shapes"), "four_ranks": (4, 5, 1, "")}
_TELLS = re.compile(rb"/(?:work|root|tmp|home|usr|opt|var)/|@[a-z]+\.|\d+\.\d+\.\d+\.\d+")


def scrub(document: dict[str, Any], rank: int) -> dict[str, Any]:
    """Without paths, names of host and user, and process ids that were the machine's."""
    kept = {
        name: value
        for name, value in document.items()
        if name in ("schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds",
                    "record_shapes", "with_flops", "profile_memory", "with_stack", "with_modules")
    }  # fmt: skip
    events = [event for event in document["traceEvents"] if not str(event.get("name")).endswith("_sort_index")]
    numbers: dict[Any, int] = {}

    def renumbered(value: Any) -> Any:
        is_number = isinstance(value, int) and value > 1000
        return numbers.setdefault(value, 1000 * (rank + 1) + len(numbers)) if is_number else value

    for event in events:
        for key in ("pid", "tid"):
            if key in event:
                event[key] = renumbered(event[key])
        if event.get("name") == "thread_name":
            event["args"]["name"] = f"thread {event['tid']} (python)"
        if event.get("name") == "process_name":
            event["args"]["name"] = "python"
    return {**kept, "traceEvents": events, "traceName": f"rank{rank}.json"}


def write(raw: dict[str, Any], rank: int, target: Path) -> None:
    """A rank's trace into the set's folder, scrubbed."""
    text = re.sub(r'"@(-?[\d.e+-]+)@"', r"\1", json.dumps(scrub(raw, rank), separators=(",", ":"))).encode()
    if found := _TELLS.search(text):
        raise SystemExit(f"{rank}: {text[max(found.start() - 80, 0) : found.end() + 80]!r} tells of this machine")
    (target / f"rank{rank}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))


def record_pipeline(commands: Path, folder: Path) -> None:
    """torchrec's pipeline on two ranks, by the commands of an environment with it."""
    options = ["--standalone", "--nproc-per-node", "2", str(HERE / "pipeline.py"), str(folder)]
    subprocess.run([str(commands / "torchrun"), *options], check=True)
    (HERE / PIPELINE).mkdir(exist_ok=True)
    for rank in range(2):
        write(json.loads((folder / f"rank{rank}.json").read_text(), parse_float=_Digits), rank, HERE / PIPELINE)


def capture(local: Local, name: str) -> None:
    ranks, iterations, longer, collect = SETS[name]
    folder = local.folder / f"{name}-files"
    folder.mkdir()
    job = local.run_command(
        name.replace("_", "-"), sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
        "--standalone", str(HERE / "train.py"), str(folder), str(longer),
    )  # fmt: skip
    try:
        wait_until(
            lambda: len(list(folder.glob("progress.*"))) == ranks or job.process.poll() is not None, "it", PATIENCE_S
        )
        options = ["--iterations", str(iterations), "--traces", "Full", "--canary", "Never", "--max-slowdown", "0"]
        options += ["--collect", collect] if collect else []
        taken = local.command("capture", job.name, *options, "-o", "json", timeout=PATIENCE_S)
        if taken.returncode:
            raise SystemExit(f"capture ended with {taken.returncode}: {taken.stderr}\n{job.output.read_text()[-2000:]}")
        uid = json.loads(taken.stdout)["uid"]
        report = next(path for path in local.state.rglob("report.json") if path.parent.name == uid)
        target = HERE / name
        target.mkdir(exist_ok=True)
        for file in sorted(report.parent.rglob("trace.json.gz")):
            rank = int(file.parent.name)
            write(json.loads(gzip.decompress(file.read_bytes()), parse_float=_Digits), rank, target)
    finally:
        (folder / "stop").touch()
        job.process.wait(PATIENCE_S)


class _Digits(str):
    """A number as it stands: a float would not hold a time to the nanosecond."""

    def __new__(cls, digits: str) -> _Digits:
        return super().__new__(cls, f"@{digits}@")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(make_local(Path(folder))) as local:
        local.up()
        for name in sys.argv[1:] or (*SETS, PIPELINE):
            if name == PIPELINE:
                environment: Any = importlib.import_module("environment")
                record_pipeline(environment.make_environment(environment.WITH_TORCHREC), Path(folder))
            else:
                capture(local, name)


if __name__ == "__main__":
    main()
