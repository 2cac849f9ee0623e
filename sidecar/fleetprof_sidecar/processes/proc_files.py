"""Facts of /proc about a process in a pid namespace that we see: the variables of its start, and its program.

Guarantees: raises nothing; None when the process cannot be seen or its files may not be read. The variables are those
at its start: what a program puts into os.environ later does not show. Source: proc(5), torchrun's and launchers' docs.
"""

import re
from pathlib import Path
from typing import Final

from fleetprof_sidecar.processes.roles import Environment

_MAX_BYTES: Final = 1 << 20
_LAUNCHER_PROGRAMS: Final = frozenset(
    {"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "srun"}
)
_LAUNCHER_MODULES: Final = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner"}
)
_NUMBER: Final = re.compile(rb"[0-9]{1,9}")


def read_environment(pid: int, proc: Path = Path("/proc")) -> Environment | None:
    """The process's rank variables and whether its command line is a known launcher's."""
    if pid <= 0:
        return None
    try:
        with (proc / str(pid) / "environ").open("rb") as file:
            text = file.read(_MAX_BYTES)
        with (proc / str(pid) / "cmdline").open("rb") as file:
            words = file.read(_MAX_BYTES).split(b"\0")
    except OSError:
        return None
    if not text:
        return None  # it is ending
    variables = dict(item.partition(b"=")[::2] for item in text.split(b"\0"))
    return Environment(
        rank=_number(variables.get(b"RANK")),
        local_rank=_number(variables.get(b"LOCAL_RANK")),
        world_size=_number(variables.get(b"WORLD_SIZE")),
        run_id=variables.get(b"TORCHELASTIC_RUN_ID", b"")[:128].decode("ascii", "replace"),
        restart_count=_number(variables.get(b"TORCHELASTIC_RESTART_COUNT")) or 0,
        launcher_program=_is_launcher([word.decode("utf-8", "replace") for word in words[:16]]),
    )


def _number(value: bytes | None) -> int | None:
    return int(value) if value is not None and _NUMBER.fullmatch(value) else None


def _is_launcher(words: list[str]) -> bool:
    """The program is the first word, or the first after an interpreter's options; `-m` names a module instead."""
    for index, word in enumerate(words):
        if word == "-m":
            return index + 1 < len(words) and words[index + 1] in _LAUNCHER_MODULES
        if index and word.startswith("-"):
            continue
        if Path(word).name in _LAUNCHER_PROGRAMS:
            return True
        if index and word:
            return False
    return False
