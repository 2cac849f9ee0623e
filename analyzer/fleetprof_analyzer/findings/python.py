"""Python between operators takes time: GPUs wait for it, or training threads without a GPU spend their time there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import Silence

from fleetprof_analyzer.findings.finding import FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.findings.host_time import add_iterations, add_stage, median_permille, name_threads
from fleetprof_analyzer.findings.idle_device import IdleDevice, make_idle_rule
from fleetprof_analyzer.job.sentence_guard import SentenceGuard
from fleetprof_analyzer.words.code import name_code_place

_KIND: Final = "python"


@dataclass(frozen=True, slots=True)
class PythonBetweenOperators(IdleDevice):
    """Idle time in which the host runs no operator."""

    guard = SentenceGuard(
        place="finding python", figure="idle_ns.host_python", whole="the devices' time", least_permille=50,
        words="the GPU waits for Python between operators", part="host",
    )  # fmt: skip

    def advise(self) -> str:
        """See IdleDevice."""
        if self.line:
            return f"look at {self.line}: do it less often, or on another thread"
        return "a capture of stacks names the line of code there (--collect Stacks --iterations 3)"


IDLE: Final = make_idle_rule(_KIND, PythonBetweenOperators, lambda idle: idle.host_python)
HOST_SILENCE: Final = SentenceGuard(
    place="finding python, without GPU", figure="ranks.stages.host", whole="the median rank's iterations",
    least_permille=50, words="the training threads of all ranks run no operator", part="host",
)  # fmt: skip
SILENCE_BETWEEN: Final = SentenceGuard(
    place="finding python, without GPU: its place", figure="the longest of ranks.stages.silences",
    whole="that rank's stage host", least_permille=500, words="most of it between … and …",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostSilence:
    """The training threads of all of so many CPU-only ranks run no operator, most of it between these two.

    None where no two operators have most of it between them.
    """

    between: tuple[str, str] | None
    ranks: int
    place: PlaceInCode | None = None

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        where = ""
        if self.between is not None:
            after, before = self.between
            where = f", most of it between {after or 'the start'} and {before}"
        return (
            f"{name_threads(self.ranks, 'run')} no operator{where}",
            "do the work there less often, or on another thread; a capture of more iterations may name its line"
            if self.place is None
            else f"look at {name_code_place(self.place)}: do it less often, or on another thread",
        )


def _find_on_host(view: RanksOfKind) -> MeasuredFinding | None:
    if view.total.kind != "cpu":
        return None
    times = [add_stage(rank, "host") for rank in view.ranks]
    permille = median_permille(times, [add_iterations(rank) for rank in view.ranks])
    if not HOST_SILENCE.allows(permille, 1000):
        return None
    longest = _find_main_silence(view.ranks)
    between, place = (None, None) if longest is None else ((longest.after, longest.before), longest.place)
    return MeasuredFinding(
        kind=_KIND,
        facts=HostSilence(between, len(view.ranks), place),
        guard=HOST_SILENCE,
        gain_permille=permille,
        measure="ranks.stages.host",
        value_ns=sum(times),
        names=[name for name in between or () if name],
        place=place,
    )


def _find_main_silence(ranks: Sequence[Rank]) -> Silence | None:
    """The longest silence, if it holds half of what its rank is silent; else no place is named."""
    found = [(one, rank) for rank in ranks if rank.stages is not None for one in rank.stages.silences]
    if not found:
        return None
    longest, rank = max(found, key=lambda one: one[0].time_ns)
    return longest if SILENCE_BETWEEN.allows(longest.time_ns, add_stage(rank, "host")) else None


ON_HOST: Final = FindingRule(_KIND, (HOST_SILENCE, SILENCE_BETWEEN), _find_on_host)
