"""The hub's bounds, in one place. Tests shorten them; nobody else has had a reason to yet."""

from dataclasses import dataclass, field
from typing import Final

from fleetprof_operator.hub.bounds import AllBounds

SECOND_NS: Final = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """The waits and limits of the hub."""

    heartbeat_interval_ns: int = 2 * SECOND_NS  # news of processes come at once; each beat wakes a core of a job
    telemetry_interval_ns: int = 5 * SECOND_NS  # between two reports of one sidecar; 0: none are wanted
    store_authority: str = ""  # certificates (PEM) that sidecars trust for uploads beside their own
    sidecar_forgotten_ns: int = 600 * SECOND_NS  # a closed stream's record stays so long: longer than sidecar_lost_ns
    look_again_ns: int = SECOND_NS // 4  # a request whose target is not there yet
    gather_ns: int = 12 * SECOND_NS  # some ranks are there, others may still come
    gap_ns: int = 30 * SECOND_NS  # of the deadline, kept for the capture of ranks that profile themselves
    young_ns: int = 10 * SECOND_NS  # a process seen for less long may still show its agent
    returning_ns: int = 12 * SECOND_NS  # Kineto's longest back-off and a poll after it
    deaf_patience_ns: int = 30 * SECOND_NS  # trainers are there, and none asks for Kineto configs
    restate_ns: int = 5 * SECOND_NS  # after a restart of the hub, for sidecars to come back
    cancel_wait_ns: int = (
        90 * SECOND_NS
    )  # for sidecars to confirm: a running window cannot be stopped without the agent
    deadline_wait_ns: int = 5 * SECOND_NS  # for sidecars' own, more precise reasons
    sidecar_lost_ns: int = 300 * SECOND_NS
    reconnecting_ns: int = 40 * SECOND_NS  # a sidecar's longest pause between two tries to connect, and the try
    write_interval_ns: int = SECOND_NS // 4  # between two writes of one ledger
    store_retry_ns: int = 2 * SECOND_NS
    unreached_patience_ns: int = 60 * SECOND_NS  # a sidecar does not reach the store, which the hub reaches
    store_patience_ns: int = 120 * SECOND_NS  # at a request's end, for the store to take the ledger
    analysis_patience_ns: int = 1800 * SECOND_NS
    fetch_patience_ns: int = 120 * SECOND_NS  # after a report of summaries, for the few whole traces it asks for
    grant_lifetime_s: int = 900
    sample_interval_ns: int = SECOND_NS // 10
    dense_sample_interval_ns: int = SECOND_NS // 50  # when DeviceMetrics are collected
    max_captures: int = 200  # under way
    max_captures_per_namespace: int = 200
    max_waiting: int = 2400  # requests that hold no place of a capture
    max_waiting_per_namespace: int = 1200
    look_rarely_ns: int = 2 * SECOND_NS  # a request that has waited for its job for long
    max_remembered: int = 1000  # finished requests in memory; all are in the store
    bounds: AllBounds = field(default_factory=AllBounds)  # of what requests ask for
    max_remembered_bytes: int = 48 << 20
    namespaces: tuple[str, ...] = ()  # whose pods are heard; none: those of all
    max_streams_per_namespace: int = 2500  # half of what a server has in all
    max_sidecar_bytes: int = 1 << 20  # what is kept of one (holdings.py)
    max_namespace_bytes: int = 128 << 20
    max_object_bytes: int = 16 << 30
    max_parts: int = 512  # of one upload: each is signed; the sidecar's 4 GiB in its parts of 8 MiB
