"""The GPU waits for the optimizer's host code, or for zero_grad()."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from fleetprof_api.report.report import Rank, Report
from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.findings.finding import RanksOfKind
from fleetprof_analyzer.findings.idle_device import IdleDevice, make_idle_rule
from fleetprof_analyzer.job.sentence_guard import SentenceGuard

_FUSED: Final = re.compile(r"^aten::_fused_(?:adam|adamw|sgd|adagrad)_")
_FOREACH: Final = re.compile(r"^aten::_foreach_(?:addcdiv|addcmul|lerp|add|sub)_$")
_ZEROES: Final = re.compile(r"^aten::(?:_foreach_)?zero_$")
ZERO_GRAD: Final = SentenceGuard(
    place="finding optimizer: zero_grad", figure="ranks.stages.zero_grad", whole="ranks.stages.optimizer",
    least_permille=1000, words="the GPU waits for zero_grad() on the host",
    below="the GPU waits for the optimizer's host code (fused=True)", more=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Optimizer(IdleDevice):
    """Idle time in the optimizer's calls; `zero_grad`: it is that call, which zeroes the gradients or drops them.

    `step`: how its step goes over the parameters, by the operators that launch; "" of one after the other.
    """

    zero_grad: Literal["", "zeroes", "drops"] = ""
    step: Literal["", "foreach", "fused"] = ""

    guard = SentenceGuard(
        place="finding optimizer", figure="idle_ns.optimizer", whole="the devices' time", least_permille=30,
        words="the GPU waits for the optimizer's host code", part="host",
    )  # fmt: skip

    @classmethod
    def of(
        cls, place: IdlePlace | None, permille: int, names: Sequence[str], view: RanksOfKind, chosen: Sequence[Rank]
    ) -> Self:
        """See IdleDevice."""
        return cls(place, permille, names, _find_zero_grad(place, chosen), _find_step(view.report))

    def say_cause(self) -> str:
        """See IdleDevice."""
        return ZERO_GRAD.words if self.zero_grad else self.guard.words

    def advise(self) -> str:
        """See IdleDevice."""
        if self.zero_grad == "zeroes":
            return "let zero_grad() drop the gradients (set_to_none=True, the default), which launches nothing"
        if self.zero_grad == "drops":
            return "call zero_grad() while the device still has work, before the loss is read (.item())"
        if self.step == "fused":
            return "record the step, which is fused already, in a CUDA graph (capturable=True), or compile it"
        return f"make the optimizer with fused=True{'' if self.step else ', or else with foreach=True'}"


def _find_zero_grad(place: IdlePlace | None, ranks: Sequence[Rank]) -> Literal["", "zeroes", "drops"]:
    if place is not None and _ZEROES.search(place.operator):
        return "zeroes"
    times = Counter[str]()
    for stage in (stage for rank in ranks if rank.stages is not None for stage in rank.stages.stages):
        times[stage.stage] += stage.time_ns
    return "drops" if ZERO_GRAD.allows(times["zero_grad"], max(times["optimizer"], 1)) else ""


def _find_step(report: Report) -> Literal["", "foreach", "fused"]:
    names = [operator.name for operator in report.launching_operators]
    if any(map(_FUSED.search, names)):
        return "fused"
    return "foreach" if any(map(_FOREACH.search, names)) else ""


RULE: Final = make_idle_rule("optimizer", Optimizer, lambda idle: idle.optimizer, guards=(ZERO_GRAD,))
