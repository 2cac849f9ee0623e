"""Kineto, the profiler within PyTorch, as the sidecar's profiler (docs/kineto-protocol.md)."""

import re
from pathlib import Path
from typing import Final

from fleetprof_api.profiler import KINETO, ProfilerFacts

from fleetprof_sidecar.kineto.config import build_config, latest_delivery_unix_ns
from fleetprof_sidecar.profiler import Listener, PollTaker, TimeStart, TraceName, TraceOrder
from fleetprof_sidecar.sockets.kineto_endpoint import KinetoEndpoint

_NAME: Final = re.compile(r"(?P<stem>[a-z0-9][-a-z0-9]{0,62}-r\d{1,7})_(?P<pid>\d{1,10})\.json(?P<tmp>\.tmp)?")


class KinetoProfiler:
    """See `Profiler`."""

    facts: ProfilerFacts = KINETO

    def write_order(self, order: TraceOrder) -> str:
        """Kineto's configuration text. Raises ValueError."""
        return build_config(order)

    def latest_delivery_unix_ns(self, start: TimeStart, device_kind: str) -> int:
        """After this moment Kineto would refuse the order, silently."""
        return latest_delivery_unix_ns(start, device_kind)

    def listen(self, directory: str, polls: PollTaker, allowed_uids: frozenset[int] | None) -> Listener:
        """The endpoint of Kineto's on-demand protocol."""
        return KinetoEndpoint(directory, polls, allowed_uids)

    def read_name(self, name: str) -> TraceName | None:
        """`<capture>-r<rank>_<pid>.json`, with `.tmp` behind it while Kineto writes."""
        match = _NAME.fullmatch(name)
        return None if match is None else TraceName(match["stem"], int(match["pid"]), match["tmp"] is None)

    def find_stray(self, elsewhere: Path, traces: Path, pid: int, since_unix_ns: int) -> str:
        """The path to which Kineto writes when a path was refused (docs/kineto-protocol.md#the-output-path)."""
        path = elsewhere / f"libkineto_activities_{pid}.json"
        try:
            status = path.lstat()
        except OSError:
            return ""
        if pid <= 0 or status.st_mtime_ns < since_unix_ns:
            return ""
        setting = f"KINETO_ONDEMAND_TRACE_DIR={traces}"
        return f"{path} is there: Kineto refused the traces directory; set {setting} in the training process"
