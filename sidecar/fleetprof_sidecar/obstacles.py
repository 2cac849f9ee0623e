"""Obstacles to any capture of the job: said in the log, where `fleetprof run` reads it.

A line that says so has the sentence as its key `obstacle`. Guarantees: each sentence is said once.
"""

import logging
import socket

from fleetprof_api.hub.clocks import say_clock
from fleetprof_api.hub.oldest_torch import TOO_OLD_ADVICE, is_too_old

from fleetprof_sidecar.processes.views import ProcessView

log = logging.getLogger(__name__)


class Obstacles:
    """The obstacles that were said; `host`: the node's name, where the own one is a pod's."""

    def __init__(self, host: str = "") -> None:
        self._host = host or socket.gethostname()
        self._sentences: set[str] = set()

    def look_at(self, process: ProcessView | None) -> None:
        """Says what is wrong with a process that has changed; None: it is gone."""
        if process is not None and is_too_old(process.torch_version) and not process.polls_kineto:
            self._say(f"PyTorch {process.torch_version} is too old; {TOO_OLD_ADVICE}")

    def compare_clocks(self, hub_unix_ns: int, now_unix_ns: int) -> None:
        """Says whether this host's clock fits the hub's; 0: the hub does not tell the time."""
        if hub_unix_ns and (clock := say_clock(self._host, now_unix_ns - hub_unix_ns)):
            self._say(clock)

    def _say(self, sentence: str) -> None:
        if sentence not in self._sentences:
            self._sentences.add(sentence)
            log.warning("this job cannot be captured: %s", sentence, extra={"fields": {"obstacle": sentence}})
