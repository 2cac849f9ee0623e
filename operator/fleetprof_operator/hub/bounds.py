"""The bounds of requests, by namespace; and the sentences about a request that asks for more.

Guarantees: pure; every sentence names the field, the bound and whom to ask. What admission refuses on apply
(charts/fleetprof/templates/bounds) is refused here too: admission may be absent, or off.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from fleetprof_api.limits import HIGHEST_RANK, LONGEST_WINDOW_NS, MOST_ITERATIONS, MOST_TRACE_BYTES
from fleetprof_api.report.recording import DEFAULT_MAX_TRACE_BYTES
from fleetprof_api.request import Collect, Spec
from msgspec import Meta

from fleetprof_operator.hub.storage.workload_costs import WorkloadRecord

BEYOND: Final = "BeyondBounds"
"""The reason of a request that asks for more than is allowed."""
DAY_NS: Final = 86_400 * 10**9
_LONGEST_MILLIS: Final = LONGEST_WINDOW_NS // 10**6


class Bounds(msgspec.Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """For the requests of one namespace. 0: no bound."""

    max_iterations: Annotated[int, Meta(ge=1, le=MOST_ITERATIONS)] = MOST_ITERATIONS
    max_duration_millis: Annotated[int, Meta(ge=10, le=_LONGEST_MILLIS)] = _LONGEST_MILLIS
    collect: list[Collect] = msgspec.field(default_factory=lambda: list(Collect))
    max_ranks: Annotated[int, Meta(ge=0, le=HIGHEST_RANK)] = 0
    max_trace_bytes: Annotated[int, Meta(ge=DEFAULT_MAX_TRACE_BYTES, le=MOST_TRACE_BYTES)] = MOST_TRACE_BYTES
    captures_per_day: Annotated[int, Meta(ge=0, le=1000)] = 0  # of one workload
    captures_per_day_of_namespace: Annotated[int, Meta(ge=0, le=2000)] = 0
    cooldown_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 0  # between two captures of one workload

    @property
    def counts(self) -> bool:
        """Tells whether it matters how often something was captured before."""
        return bool(self.captures_per_day or self.captures_per_day_of_namespace or self.cooldown_seconds)


class AllBounds(msgspec.Struct, kw_only=True, frozen=True):
    """The bounds of an installation; `contact` is whom to ask for more."""

    contact: str = "the administrators of this installation"
    default: Bounds = msgspec.field(default_factory=Bounds)
    namespaces: Mapping[str, Bounds] = {}

    def of(self, namespace: str) -> Bounds:
        """The bounds of one namespace; `default` where nothing is said about it."""
        return self.namespaces.get(namespace, self.default)


def parse_bounds(document: object) -> AllBounds:
    """Bounds as the chart writes them: what a namespace leaves out is as in `default`. Raises ValueError."""
    if not isinstance(document, dict) or set(document) - {"contact", "default", "namespaces"}:
        raise ValueError("must be a mapping with the fields contact, default, namespaces")
    default: dict[str, Any] = document.get("default") or {}
    try:
        return AllBounds(
            contact=msgspec.convert(document.get("contact") or AllBounds().contact, str),
            default=msgspec.convert(default, Bounds),
            namespaces={
                name: msgspec.convert({**default, **msgspec.convert(own or {}, dict[str, Any])}, Bounds)
                for name, own in msgspec.convert(document.get("namespaces") or {}, dict[str, Any]).items()
            },
        )
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def find_beyond(spec: Spec, bounds: Bounds, contact: str) -> list[str]:
    """One sentence per field of a request that asks for more than is allowed."""
    window, ranks = spec.window, spec.ranks
    values = [("spec.limits.maxTraceBytes", spec.limits.max_trace_bytes, bounds.max_trace_bytes)]
    if window is not None:
        values = [
            ("spec.window.iterations", window.iterations or 0, bounds.max_iterations),
            ("spec.window.warmupIterations", window.warmup_iterations or 0, bounds.max_iterations),
            ("spec.window.durationMillis", window.duration_millis or 0, bounds.max_duration_millis),
            *values,
        ]
    if bounds.max_ranks and ranks is not None:
        values += [
            ("spec.ranks.list", len(ranks.list_ or ()), bounds.max_ranks),
            ("spec.ranks.sample", ranks.sample or 0, bounds.max_ranks),
        ]
    sentences = [
        f"{field}: {value} is more than the {most} that are allowed in this namespace; ask {contact}"
        for field, value, most in values
        if value > most
    ]
    if barred := [item.value for item in spec.collect if item not in bounds.collect]:
        allowed = ", ".join(bounds.collect) or "nothing"
        sentences.append(
            f"spec.collect: {', '.join(barred)} is not allowed in this namespace, {allowed} is; ask {contact}"
        )
    if spec.capture is not None and Collect.STACKS not in bounds.collect:
        sentences.append(f"spec.capture.stacks: stacks are not allowed in this namespace; ask {contact}")
    return sentences


def find_too_many_ranks(ranks: int, bounds: Bounds, contact: str) -> str:
    """The sentence about a target that has more ranks than may be captured; empty when it has not."""
    if not bounds.max_ranks or ranks <= bounds.max_ranks:
        return ""
    return (
        f"spec.ranks: {ranks} ranks would be captured, {bounds.max_ranks} are allowed in this namespace; choose some "
        f"with ranks.sample, or ask {contact}"
    )


def find_too_often(
    workload: WorkloadRecord, namespace: WorkloadRecord, bounds: Bounds, contact: str, uid: str, now_unix_ns: int
) -> str:
    """The sentence about one capture too many, or too soon; empty when it may begin. One that has begun may go on."""
    if any(begun.uid == uid for begun in workload.begun):
        return ""
    day = now_unix_ns - DAY_NS
    of_workload = [begun.at_unix_ns for begun in workload.begun if begun.at_unix_ns > day]
    of_namespace = [begun.at_unix_ns for begun in namespace.begun if begun.at_unix_ns > day]
    for begun, most, whose in (
        (of_workload, bounds.captures_per_day, "this workload"),
        (of_namespace, bounds.captures_per_day_of_namespace, "this namespace"),
    ):
        if most and len(begun) >= most:
            wait = (sorted(begun)[-most] + DAY_NS - now_unix_ns) // 10**9
            return (
                f"{len(begun)} captures of {whose} were begun within a day, {most} are allowed; the next may begin in "
                f"{_span(wait)}, or ask {contact}"
            )
    wait = (max(of_workload, default=0) + bounds.cooldown_seconds * 10**9 - now_unix_ns) // 10**9
    if bounds.cooldown_seconds and wait > 0:
        return (
            f"the last capture of this workload was begun less than {_span(bounds.cooldown_seconds)} ago; the next may "
            f"begin in {_span(wait)}, or ask {contact}"
        )
    return ""


def _span(seconds: int) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds // 60} min" if seconds >= 120 else f"{max(1, seconds)} s"
