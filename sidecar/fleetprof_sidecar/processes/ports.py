"""The seams between the processes and other parts of the sidecar: protocols without an implementation.

A part takes its port when it is made. So parts that need each other are made in one order, and tests put simple
objects in their place.
"""

from typing import Any, Protocol

from fleetprof_sidecar.processes.views import ProcessView


class AgentSender(Protocol):
    """The way of a datagram to an agent: the sidecar's agent socket."""

    def send(self, data: bytes, address: str) -> bool:
        """Sends without waiting; False when it was not taken."""


class Processes(Protocol):
    """The part of `ProcessTable` that captures need."""

    def snapshot(self) -> list[ProcessView]:
        """All processes that are here, as they are now."""

    def get(self, process_id: str) -> ProcessView | None:
        """One process, None when it is not here."""

    def place_order(
        self,
        process_id: str,
        config: str,
        deliver_until_unix_ns: int,
        first_step: int | None,
        *,
        warmup_steps: int = 0,
        chosen: bool = False,
    ) -> None:
        """Has the config delivered. Raises OrderRefused."""

    def withdraw_order(self, process_id: str) -> bool:
        """Takes an undelivered order back."""

    def mark_trainer(self, process_id: str) -> None:
        """A trace of this process holds an optimizer step."""

    def send_to_agent(self, process_id: str, kind: str, **fields: Any) -> bool:
        """Sends one message; False when it did not leave."""
