"""The host waits for the GPU, which then stands idle: what reads a value from it, and how to read less."""

from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.report import Report

from fleetprof_analyzer.findings.finding import MOST_NAMES
from fleetprof_analyzer.findings.idle_device import IdleDevice, make_idle_rule, short_name
from fleetprof_analyzer.job.sentence_guard import SentenceGuard

READING_OPERATORS: Final = frozenset(
    f"aten::{name}" for name in ("item", "_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select")
)
"""That wait for a device to read a value from it."""
READ_LESS: Final = "keep losses and metrics on the device, and read them (.item(), .cpu(), print) only now and then"


@dataclass(frozen=True, slots=True)
class Synchronization(IdleDevice):
    """Idle time in and after calls that wait for the device."""

    guard = SentenceGuard(
        place="finding synchronization", figure="idle_ns.synchronization", whole="the devices' time", least_permille=20,
        words="the host waits for the GPU, which then has nothing left to do", part="idle",
    )  # fmt: skip

    def advise(self) -> str:
        """See IdleDevice."""
        reading = [short_name(name) for name in self.names if name in READING_OPERATORS]
        if reading:
            return f"find what calls {reading[0]}{f' (look at {self.line})' if self.line else ''}: {READ_LESS}"
        at = f"look at {self.line}: " if self.line else ""
        return f"{at}leave out torch.cuda.synchronize(), copy from pinned memory, and {READ_LESS}"


def _that_read(report: Report) -> list[str]:
    """Operators that wait for the device to read a value from it, the most calls first."""
    reading = [one for one in report.launching_operators if one.name in READING_OPERATORS]
    return [one.name for one in sorted(reading, key=lambda one: (-one.calls, one.name))][:MOST_NAMES]


RULE: Final = make_idle_rule("synchronization", Synchronization, lambda idle: idle.synchronization, names=_that_read)
