"""The trainers among the processes that poll: decided by what they did, what they inherited, and who started them.

A config that reaches a launcher or a data-loader worker can bring the job down (a process that exits while Kineto
collects dies by SIGSEGV), so doubt counts against it.

Guarantees: pure; the answer depends only on the facts, not on their order. The rules, first match wins:

1. has stepped an optimizer (its agent says so, or a trace proved it)           -> TRAINER
2. an ancestor of one that stepped                                               -> LAUNCHER
3. a descendant of one that stepped                                              -> WORKER
4. its command line is a known launcher's (torchrun, accelerate launch, ...);
   where that is not visible from here: its container's command is one's, and
   no process that polls started it                                              -> LAUNCHER
5. an ancestor of one whose rank variables are not its own                       -> LAUNCHER
6. has the same rank variables as one of its ancestors: it inherited them        -> WORKER
7. has RANK and LOCAL_RANK, or has RANK and has been here for a while            -> TRAINER
8. has no RANK of its own, and an ancestor has                                   -> WORKER
9. otherwise                                                                     -> ROLE_UNSPECIFIED

"Ancestor" is by the pids of Kineto's requests, which are those of the process's own pid namespace. Kineto leaves out
pid 1; it is everybody's ancestor, and often a container's command. The ranks of two containers of one pod can
therefore look related when they are not. That only ever costs a refusal: whoever has the agent is decided by rule 1.
Rule 5 comes before 7 because an operator may give RANK (its node's) to torchrun itself.

A process of unknown role may be offered to a caller that explicitly chooses it (`candidate`) only when it has been
here for a while, has started no process that polls, and was itself started by a known launcher: a lone
`python train.py` passes, and so does a rank below torchrun; a spawned data-loader worker of a trainer without the
agent does not.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_FIRST_PID: Final = 1


class Role(StrEnum):
    """Same names as `Role` of hub.proto."""

    UNKNOWN = "ROLE_UNSPECIFIED"
    TRAINER = "TRAINER"
    LAUNCHER = "LAUNCHER"
    WORKER = "WORKER"


@dataclass(frozen=True, slots=True)
class Environment:
    """The facts of `/proc/<pid>`: the variables a process was started with, and what program it is."""

    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    run_id: str = ""  # TORCHELASTIC_RUN_ID
    restart_count: int = 0  # TORCHELASTIC_RESTART_COUNT
    launcher_program: bool = False

    @property
    def rank_variables(self) -> tuple[int | None, int | None, str, int]:
        """Equal in a process and in what it started without giving it a rank of its own."""
        return self.rank, self.local_rank, self.run_id, self.restart_count


@dataclass(frozen=True, slots=True)
class RoleEvidence:
    """All that is known of one process that polls: what its role is inferred from.

    `pids` as in Kineto's request: itself, then its ancestors.
    """

    key: Hashable
    pids: tuple[int, ...]
    stepped: bool = False
    settled: bool = False  # here long enough that its children would have shown themselves
    environment: Environment | None = None  # None: not visible from here


@dataclass(frozen=True, slots=True)
class RoleVerdict:
    """A process's role, and whether an explicit choice of it would be honoured."""

    role: Role
    candidate: bool


def infer_roles(processes: Iterable[RoleEvidence], *, command_launches: bool = False) -> dict[Hashable, RoleVerdict]:
    """Every process's verdict. The rules are this module's docstring.

    `command_launches`: the command of the trainers' container is a known launcher's.
    """
    everyone = list(processes)
    by_pid: dict[int, list[RoleEvidence]] = defaultdict(list)
    for process in everyone:
        by_pid[process.pids[0]].append(process)
    ancestors: dict[Hashable, list[RoleEvidence]] = {}
    descendants: dict[Hashable, list[RoleEvidence]] = defaultdict(list)
    for process in everyone:
        pids = dict.fromkeys([*process.pids[1:], _FIRST_PID])
        above = [other for pid in pids for other in by_pid.get(pid, ()) if pid != process.pids[0]]
        ancestors[process.key] = above
        for other in above:
            descendants[other.key].append(process)
    roles = {p.key: _role(p, ancestors[p.key], descendants[p.key], command_launches) for p in everyone}
    return {
        p.key: RoleVerdict(
            roles[p.key],
            roles[p.key] is Role.TRAINER
            or (
                roles[p.key] is Role.UNKNOWN
                and p.settled
                and not descendants[p.key]
                and all(roles[above.key] is Role.LAUNCHER for above in ancestors[p.key])
            ),
        )
        for p in everyone
    }


def _role(process: RoleEvidence, above: list[RoleEvidence], below: list[RoleEvidence], command_launches: bool) -> Role:
    if process.stepped:
        return Role.TRAINER
    if any(other.stepped for other in below):
        return Role.LAUNCHER
    if any(other.stepped for other in above):
        return Role.WORKER
    own = process.environment
    if own.launcher_program if own is not None else command_launches and not above:
        return Role.LAUNCHER
    if any(_has_rank(other) and (own is None or _variables(other) != own.rank_variables) for other in below):
        return Role.LAUNCHER
    if own is not None and own.rank is not None:
        if any(_variables(other) == own.rank_variables for other in above):
            return Role.WORKER
        return Role.TRAINER if own.local_rank is not None or process.settled else Role.UNKNOWN
    return Role.WORKER if any(_has_rank(other) for other in above) else Role.UNKNOWN


def _has_rank(process: RoleEvidence) -> bool:
    return process.environment is not None and process.environment.rank is not None


def _variables(process: RoleEvidence) -> tuple[int | None, int | None, str, int] | None:
    return process.environment.rank_variables if process.environment is not None else None
