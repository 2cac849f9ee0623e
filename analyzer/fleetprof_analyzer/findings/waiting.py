"""Launched work does not begin, though nothing that was recorded runs on its device."""

from dataclasses import dataclass
from typing import Final

from fleetprof_analyzer.findings.idle_device import IdleDevice, make_idle_rule
from fleetprof_analyzer.job.sentence_guard import SentenceGuard


@dataclass(frozen=True, slots=True)
class Waiting(IdleDevice):
    """Idle time before work that was launched, without the short waits of each kernel."""

    guard = SentenceGuard(
        place="finding waiting", figure="idle_ns.waiting - waiting_short", whole="the devices' time", least_permille=50,
        words="work that is launched does not begin, though no recorded work runs on its device", part="idle",
    )  # fmt: skip

    def advise(self) -> str:
        """See IdleDevice."""
        return (
            "look in the timeline at what the host, other ranks and other devices do until the gap ends: the work "
            "waits for one of them (wait_event, a host function, a receive), or for what is not in the trace"
        )


RULE: Final = make_idle_rule("waiting", Waiting, lambda idle: idle.waiting - idle.waiting_short)
