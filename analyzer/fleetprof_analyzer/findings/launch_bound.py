"""The host launches work more slowly than the GPU does it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from fleetprof_api.report.report import Rank, Report
from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.findings.finding import MOST_NAMES, RanksOfKind
from fleetprof_analyzer.findings.idle_device import IdleDevice, make_idle_rule
from fleetprof_analyzer.job.sentence_guard import SentenceGuard

_COMPILED: Final = re.compile(r"^triton_(?:poi|red|per|for|tem|mm)_")  # Inductor's kernels


@dataclass(frozen=True, slots=True)
class LaunchBound(IdleDevice):
    """Idle time in which the host launches, or runs operators and the runtime; `compiled`: by torch.compile, too."""

    compiled: bool = False

    guard = SentenceGuard(
        place="finding launch_bound", figure="idle_ns.launching + host_operators + host_runtime",
        whole="the devices' time", least_permille=80, words="the host cannot launch work as fast as the GPU does it",
        part="host",
    )  # fmt: skip

    @classmethod
    def of(
        cls, place: IdlePlace | None, permille: int, names: Sequence[str], view: RanksOfKind, chosen: Sequence[Rank]
    ) -> Self:
        """See IdleDevice."""
        return cls(place, permille, names, any(_COMPILED.search(kernel.name) for kernel in view.report.kernels))

    def advise(self) -> str:
        """See IdleDevice."""
        if self.compiled:
            return (
                "torch.compile is in use: let it record CUDA graphs (mode='reduce-overhead'), compile what it leaves "
                "out (TORCH_LOGS=graph_breaks), or take a larger batch"
            )
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
