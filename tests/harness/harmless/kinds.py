"""The kinds of jobs that must end with captures as they end without us; one row each, which docs/harmless.md shows."""

import sys
from dataclasses import dataclass
from pathlib import Path

from fleetprof_api.choices import Collect

PROGRAMS = Path(__file__).with_name("programs")
SITE_PACKAGES = next(path for path in sys.path if path.endswith("site-packages"))
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@dataclass(frozen=True)
class Kind:
    """One kind of job. `{folder}` in a word or variable is a folder of the test's own, `{port}` a free port."""

    name: str
    program: str
    """File and function of `programs`."""
    does: str
    python: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    run: tuple[str, ...] = ()
    """Options of `fleetprof run`."""
    captures: int = 1
    collect: tuple[str, ...] = ()
    sidecar: str = ""
    """The fate of the sidecar meanwhile: `killed`, `stopped`."""
    package: str = ""
    """The packages that it needs and our lock file does not bring."""
    root: bool = False
    is_harmed: bool = False
    """By what PyTorch itself does where it asks a daemon for orders, which nothing of ours can keep from it."""
    always: bool = False
    """Runs with each change, in seconds; the others run at night."""


def _rows(file: str, rows: dict[str, str], *, captures: int = 1, root: bool = False) -> list[Kind]:
    return [
        Kind(name.replace("_", "-"), f"{file} {name}", does, captures=captures, root=root)
        for name, does in rows.items()
    ]


def _ordinary(name: str, does: str, *python: str, **more: object) -> Kind:
    return Kind(name, "optimizers ordinary", does, python=python, **more)  # type: ignore[arg-type]


GROUPS: dict[str, list[Kind]] = {
    "Optimizers, compilers, threads and workers": [
        _ordinary("ordinary", "trains; two captures", captures=2),
        _ordinary(
            "ordinary-stacks",
            "all that a request may collect",
            collect=tuple(each.value for each in Collect),
        ),
        _ordinary("ordinary-no-agent", "`fleetprof run --no-agent`", run=("--no-agent",)),
        *_rows(
            "optimizers",
            {
                "copied_and_pickled": "optimizer and scheduler are copied, pickled, saved and loaded",
                "own_class": "an optimizer of a class of its own",
                "answers_nothing": "an optimizer whose `==`, `hash`, `bool`, `repr` and some attributes raise",
                "closures": "L-BFGS with a closure",
                "compiled_step": "`torch.compile` of the optimizer's step",
                "compiled_step_in_one_graph": "the same with `fullgraph=True`",
                "compiled_iteration": "`torch.compile` of the whole iteration; as many graphs",
                "threads": "four threads train a model each",
                "forks": "forks children that end in five ways, one of them after steps of its own",
                "forked_workers": "a DataLoader whose workers are forked",
                "spawned_workers": "… spawned",
                "served_workers": "… of a fork server",
                "imported_in_a_thread": "PyTorch is imported by a thread",
                "deep_recursion": "steps near the limit of recursion",
            },
        ),
        Kind(
            "error-in-the-closure", "optimizers error_in_the_closure", "its closure raises within the step", always=True
        ),
    ],
    "Ends in the middle of a capture": [
        Kind("exits-at-once", "ends exits_at_once", "`os._exit`", always=True),
        *_rows(
            "ends",
            {
                "exits": "`sys.exit`",
                "raises": "an exception that nobody catches",
                "is_told_to_end": "SIGTERM",
                "aborts": "`abort`",
                "crashes": "SIGSEGV",
                "exits_in_a_thread": "`os._exit` in another thread",
                "becomes_another_program": "`exec` of a shell",
            },
        ),
        *_rows("ends", {"becomes_itself_again": "`exec` of itself, twice"}, captures=2),
    ],
    "Signals, descriptors, limits and hooks of its process": [
        Kind(
            "handler-raises",
            "surroundings handler_raises",
            "its signal handler raises, 50 times at least: none is lost",
            always=True,
        ),
        *_rows(
            "surroundings",
            {
                "steps_in_a_handler": "a signal handler makes steps",
                "profiling_signal": "a profiler by SIGPROF, every 2 ms",
            },
        ),
        Kind(
            "closes-descriptors-stream",
            "surroundings closes_descriptors_stream",
            "closes all descriptors after its first steps, and reuses the numbers: no byte is lost",
            always=True,
        ),
        Kind(
            "closes-descriptors-packets",
            "surroundings closes_descriptors_packets",
            "the same with packets: PyTorch goes on asking for orders by the number that it had",
            is_harmed=True,
        ),
        *_rows(
            "surroundings",
            {
                "closes_descriptors_datagram": "… with datagrams",
                "closes_descriptors_early": "… before it was heard of",
                "closes_descriptors_late": "… after 100 iterations",
                "empties_its_environment": "`os.environ.clear()`",
                "removes_our_folder": "removes the folder of our sockets",
                "closes_its_output": "closes stdin and stderr",
                "keeps_all_garbage": "the collector keeps all garbage",
                "forbids_system_calls": "seccomp refuses all calls about sockets, and `poll`",
                "few_descriptors": "no free descriptor",
                "many_descriptors": "3,000 open descriptors",
                "small_files": "files of 4 KiB at most",
                "little_address_space": "96 MiB of address space left",
                "small_stacks": "threads with stacks of 32 KiB",
                "clears_hooks": "removes others' hooks and callbacks, sets profile and trace functions",
                "trains_at_exit": "trains in an exit handler",
                "import_fails": "the import of PyTorch fails half-way",
                "clock_stands": "`time.time_ns` stands still",
                "clock_jumps": "… jumps by years",
                "clock_is_a_float": "… is a float",
                "clock_refuses": "… raises",
                "watches_its_memory": "50,000 further steps: no more descriptors, less than 256 MiB more",
            },
        ),
        *_rows(
            "surroundings",
            {
                "becomes_another_user": "`setuid` while it trains",
                "no_more_processes": "another user who may start nothing",
                "changes_root": "`chroot` while it trains",
            },
            root=True,
        ),
    ],
    "Uses PyTorch's profiler itself": [
        *_rows(
            "profiles",
            {
                "in_cycles": "with a schedule",
                "in_cycles_with_stacks": "… with stacks and memory",
                "in_blocks": "block by block",
                "in_blocks_with_stacks": "… with stacks",
                "by_the_older_interface": "`torch.autograd.profiler.profile`",
                "execution_trace": "`ExecutionTraceObserver`",
            },
        ),
    ],
    "Interpreter and tools": [
        _ordinary("c-profile", "`python -m cProfile`", "-m", "cProfile", "-o", "{folder}/profile"),
        _ordinary("dev-mode", "`-X dev -bb`", "-X", "dev", "-bb"),
        _ordinary("warnings-are-errors", "`-W error`", "-W", "error"),
        _ordinary("optimized", "`-OO`", "-OO"),
        _ordinary("ignores-environment", "`-E`: no agent", "-E"),
        *_rows("optimizers", {"tracemalloc_5": "`tracemalloc` with five frames, from its second iteration on"}),
        _ordinary(
            "safe-path", "`PYTHONSAFEPATH`", environment=(("PYTHONSAFEPATH", "1"), ("PYTHONPATH", str(PROGRAMS)))
        ),
        _ordinary("no-site", "`-S`: no site-packages", "-S", environment=(("PYTHONPATH", SITE_PACKAGES),)),
        _ordinary("own-usercustomize", "a `sitecustomize` of its own", environment=(("PYTHONPATH", "{folder}"),)),
        _ordinary(
            "malloc-debug",
            "`PYTHONMALLOC=debug`, freed memory overwritten",
            environment=(("PYTHONMALLOC", "debug"), ("MALLOC_PERTURB_", "165")),
        ),
        _ordinary(
            "coverage", "coverage.py", "-m", "coverage", "run", "--data-file={folder}/coverage", package="coverage"
        ),
        _ordinary("debugpy", "VS Code's debugger", "-m", "debugpy", "--listen", "127.0.0.1:{port}", package="debugpy"),
        _ordinary(
            "gevent",
            "gevent's patches",
            "-m",
            "gevent.monkey",
            package="gevent",
            environment=(("PYTHONPATH", str(PROGRAMS)),),
        ),
        _ordinary(
            "ddtrace",
            "Datadog's `ddtrace-run`",
            "-m",
            "ddtrace.commands.ddtrace_run",
            sys.executable,
            package="ddtrace",
            environment=(("DD_TRACE_ENABLED", "false"), ("DD_INSTRUMENTATION_TELEMETRY_ENABLED", "false")),
        ),
        _ordinary(
            "ddtrace-profiling",
            "… with its profiler",
            "-m",
            "ddtrace.commands.ddtrace_run",
            sys.executable,
            package="ddtrace",
            environment=(("DD_PROFILING_ENABLED", "true"), ("DD_TRACE_ENABLED", "false")),
        ),
    ],
    "Several ranks, and our own processes in trouble": [
        Kind("two-ranks", "ranks two_ranks", "DDP of two ranks by torchrun", python=TORCHRUN),
        Kind(
            "restarted-by-torchrun",
            "ranks restarted_by_torchrun",
            "a rank fails once, torchrun starts both again",
            python=(*TORCHRUN, "--max-restarts", "1"),
            captures=2,
        ),
        _ordinary("sidecar-killed", "the sidecar is killed, four times", sidecar="killed"),
        Kind(
            "sidecar-stopped",
            "surroundings pauses_are_short",
            "the sidecar is stopped for 15 s in the middle of a capture",
            sidecar="stopped",
        ),
        Kind(
            "sidecar-stopped-idle",
            "surroundings pauses_are_short",
            "… without a capture",
            sidecar="stopped",
            captures=0,
        ),
        Kind("pauses", "surroundings pauses_are_short", "its longest step", captures=2),
    ],
}
KINDS = [kind for rows in GROUPS.values() for kind in rows]


def make_matrix() -> str:
    """The tables of docs/harmless.md."""
    lines: list[str] = []
    for title, rows in GROUPS.items():
        lines += [f"## {title}", "", "| job | what it does | runs |", "|---|---|---|"]
        for kind in rows:
            needs = [f"with {kind.package} installed"] if kind.package else []
            when = "with each change" if kind.always else "at night"
            harm = ["**is harmed**"] if kind.is_harmed else []
            lines.append(f"| `{kind.name}` | {kind.does} | {', '.join([when, *needs, *harm])} |")
        lines.append("")
    return "\n".join(lines)
