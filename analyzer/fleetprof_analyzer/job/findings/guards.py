"""The registry of guards: from which share on a sentence about lost time is said, and of what figure.

A finding, a headline and an advice asks its row here; `words.guards.sentences` has what is said, and what below.
Guarantees: pure; the least share itself is enough, or what is above it (`more`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.findings import PartOfTime


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceGuard:
    """Something is said at `place` from `least_permille` of `whole` on that `figure` takes; `more`: above it.

    `part`: of a finding, the part of the time that a headline speaks of where the finding is worth most.
    """

    place: str
    figure: str
    whole: str
    least_permille: int
    part: PartOfTime = ""
    more: bool = False

    def allows(self, figure: float, whole: float) -> bool:
        """Whether the figure justifies the sentence."""
        have, least = 1000 * figure, self.least_permille * whole
        return whole > 0 and (have > least if self.more else have >= least)


DATA_LOADING: Final = SentenceGuard(
    place="finding data_loading",
    figure="idle_ns.data_loading",
    whole="the devices' time",
    least_permille=30,
    part="idle",
)
SYNCHRONIZATION: Final = SentenceGuard(
    place="finding synchronization",
    figure="idle_ns.synchronization",
    whole="the devices' time",
    least_permille=20,
    part="idle",
)
LAUNCH_BOUND: Final = SentenceGuard(
    place="finding launch_bound",
    figure="idle_ns.launching + host_operators + host_runtime",
    whole="the devices' time",
    least_permille=80,
    part="host",
)
PYTHON: Final = SentenceGuard(
    place="finding python",
    figure="idle_ns.host_python",
    whole="the devices' time",
    least_permille=50,
    part="host",
)
ALLOCATION: Final = SentenceGuard(
    place="finding allocation",
    figure="idle_ns.host_allocation",
    whole="the devices' time",
    least_permille=20,
    part="idle",
)
OPTIMIZER: Final = SentenceGuard(
    place="finding optimizer",
    figure="idle_ns.optimizer",
    whole="the devices' time",
    least_permille=30,
    part="host",
)
WAITING: Final = SentenceGuard(
    place="finding waiting",
    figure="idle_ns.waiting - waiting_short",
    whole="the devices' time",
    least_permille=50,
    part="idle",
)
MOST_OF_A_PLACE: Final = SentenceGuard(
    place="finding of idle time: its place",
    figure="ranks.idle_places.time_ns",
    whole="the rank's idle time of it",
    least_permille=500,
)
PART_OF_A_PLACE: Final = SentenceGuard(
    place="finding of idle time: a smaller place",
    figure="ranks.idle_places.time_ns",
    whole="the rank's idle time of it",
    least_permille=250,
)
ZERO_GRAD: Final = SentenceGuard(
    place="finding optimizer: zero_grad",
    figure="ranks.stages.zero_grad",
    whole="ranks.stages.optimizer",
    least_permille=1000,
    more=True,
)
UNEVEN: Final = SentenceGuard(
    place="finding: its ranks",
    figure="the rank's share",
    whole="the median rank's share",
    least_permille=2000,
    more=True,
)
EXPOSED_COMMUNICATION: Final = SentenceGuard(
    place="finding exposed_communication",
    figure="totals.time_ns.exposed_communication",
    whole="the devices' time",
    least_permille=100,
    part="communication",
)
SENDING: Final = SentenceGuard(
    place="finding exposed_communication: send less",
    figure="stragglers.transfer_share",
    whole="the time in collectives",
    least_permille=500,
)
SCHEDULE: Final = SentenceGuard(
    place="finding exposed_communication: pipeline",
    figure="stragglers.pipeline.share",
    whole="the exposed communication",
    least_permille=500,
)
SIZES: Final = SentenceGuard(
    place="finding exposed_communication: sizes",
    figure="communication.total_ns of known size",
    whole="the time in collectives",
    least_permille=500,
)
LARGER_MESSAGES: Final = SentenceGuard(
    place="finding exposed_communication: larger messages",
    figure="communication.count of a rank",
    whole="its iterations",
    least_permille=1500,
)
EXPOSED_COPIES: Final = SentenceGuard(
    place="finding exposed_copies",
    figure="totals.time_ns.exposed_memory",
    whole="the devices' time",
    least_permille=30,
    part="copies",
)
WAITS_ON_DEVICE: Final = SentenceGuard(
    place="verdict: its device",
    figure="idle_ns.waiting beyond the other ranks'",
    whole="stragglers.ranks.lateness_ns",
    least_permille=500,
)
HELD_UP: Final = SentenceGuard(
    place="finding of the verdict",
    figure="stragglers.gain",
    whole="the iteration",
    least_permille=10,
    part="ranks",
)
LONG_ITERATIONS: Final = SentenceGuard(
    place="finding long_iterations",
    figure="what they take longer",
    whole="the median rank's iterations",
    least_permille=100,
    part="iterations",
)
HOST_LOADING: Final = SentenceGuard(
    place="finding data_loading, without GPU",
    figure="ranks.data_loading_ns",
    whole="the median rank's time",
    least_permille=30,
    part="host",
)
HOST_SILENCE: Final = SentenceGuard(
    place="finding python, without GPU",
    figure="ranks.stages.host",
    whole="the median rank's iterations",
    least_permille=50,
    part="host",
)
SILENCE_BETWEEN: Final = SentenceGuard(
    place="finding python, without GPU: its place",
    figure="the longest of ranks.stages.silences",
    whole="that rank's stage host",
    least_permille=500,
)
WAITS_FOR_CORES: Final = SentenceGuard(
    place="finding cpu_contention",
    figure="ranks.cores.waited_ns",
    whole="the median rank's sampled time",
    least_permille=100,
    part="cores",
)
FULL_HOSTS: Final = SentenceGuard(
    place="finding cpu_contention, not sampled",
    figure="ranks.cores.host_busy_permille",
    whole="cores of the least busy host",
    least_permille=950,
    part="cores",
)
UNEVEN_ITERATIONS: Final = SentenceGuard(
    place="finding cpu_contention, not sampled: lengths",
    figure="what iterations take over the shortest",
    whole="the median rank's iterations",
    least_permille=100,
    part="cores",
)
LARGEST_PART: Final = SentenceGuard(
    place="headline: the largest part",
    figure="the largest part of totals.time_ns",
    whole="span",
    least_permille=100,
)
NOT_RECORDED: Final = SentenceGuard(
    place="headline: not recorded",
    figure="totals.time_ns.unrecorded",
    whole="span",
    least_permille=100,
)
MOST_OF_IDLE: Final = SentenceGuard(
    place="headline: why idle",
    figure="the largest of totals.idle_ns",
    whole="the idle time",
    least_permille=500,
)
MOSTLY_SILENT: Final = SentenceGuard(
    place="headline: where the host is silent",
    figure="the longest of ranks.stages.silences",
    whole="idle_ns.host",
    least_permille=500,
)
MOST_OF_COMMUNICATION: Final = SentenceGuard(
    place="headline: which communication",
    figure="the longest kind's exposed time",
    whole="the exposed communication",
    least_permille=500,
)
COLLECTIVES: Final = SentenceGuard(
    place="headline without GPU: collectives",
    figure="totals.time_ns.exposed_communication",
    whole="span",
    least_permille=100,
)
STAGE: Final = SentenceGuard(
    place="headline without GPU: stages",
    figure="ranks.stages.time_ns",
    whole="all stages",
    least_permille=100,
)
SILENT_STAGE: Final = SentenceGuard(
    place="headline without GPU: silence",
    figure="the longest of ranks.stages.silences",
    whole="ranks.stages of the host",
    least_permille=500,
)
LONG_SILENCE: Final = SentenceGuard(
    place="evidence: silences",
    figure="ranks.stages.silences.time_ns",
    whole="all stages",
    least_permille=50,
)
PROVEN_CAUSE: Final = SentenceGuard(
    place="headline: a proven cause",
    figure="its gain",
    whole="the first finding's gain",
    least_permille=500,
)
MORE_ELSEWHERE: Final = SentenceGuard(
    place="headline: more elsewhere",
    figure="the first finding's gain",
    whole="the verdict's gain",
    least_permille=1000,
    more=True,
)


def _registered() -> Sequence[SentenceGuard]:
    return tuple(value for value in globals().values() if isinstance(value, SentenceGuard))


GUARDS: Final = _registered()
