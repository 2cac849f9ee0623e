"""The host launches work more slowly than the GPU does it."""

from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.report import Report

from fleetprof_analyzer.findings.finding import MOST_NAMES
from fleetprof_analyzer.findings.idle_device import IdleDevice, make_idle_rule
from fleetprof_analyzer.job.sentence_guard import SentenceGuard


@dataclass(frozen=True, slots=True)
class LaunchBound(IdleDevice):
    """Idle time in which the host launches, or runs operators and the runtime."""

    guard = SentenceGuard(
        place="finding launch_bound", figure="idle_ns.launching + host_operators + host_runtime",
        whole="the devices' time", least_permille=80, words="the host cannot launch work as fast as the GPU does it",
        part="host",
    )  # fmt: skip

    def advise(self) -> str:
        """See IdleDevice."""
        return "try torch.compile or CUDA graphs, which launch many kernels at once, or a larger batch"


def _that_launch(report: Report) -> list[str]:
    """The operators that launch most."""
    by_launches = sorted(report.launching_operators, key=lambda operator: -operator.own_launches)
    return [operator.name for operator in by_launches if not operator.name.startswith("(")][:MOST_NAMES]


RULE: Final = make_idle_rule(
    "launch_bound",
    LaunchBound,
    lambda idle: idle.launching + idle.host_operators + idle.host_runtime,
    names=_that_launch,
)
