"""One kernel's launches by stream: on which of its streams it takes longer than on the others.

A stream is named as the trace names it, `DEVICE:STREAM` where a rank has several devices. Guarantees: pure; counts and
sums are exact, and what is not listed by stream is summed under "(other)"; merging does not depend on the order of
ranks.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.report_tables import KernelStream

from fleetprof_analyzer.rank.measures.kernels.durations import Durations, add_durations
from fleetprof_analyzer.trace.trace import Int32s, Int64s, Place

OTHER_STREAMS: Final = "(other)"
_MOST_LISTED: Final = 8
_MOST_TOLD_APART: Final = 255
_NAME_CHARACTERS: Final = 32


class KernelOnStream(Durations, kw_only=True, frozen=True):
    """All rows of one name on one stream of one rank."""

    stream: str


def name_streams(places: Sequence[Place], place: Int32s, duration_ns: Int64s) -> tuple[list[str], Int64s]:
    """The names of the streams that rows ran on, and each row's position among them, shape (n,).

    At most 256, the busiest and "(other)": a trace may name any number.
    """
    busy = np.bincount(place, duration_ns + 1, minlength=len(places))
    used = np.argsort(-busy, kind="stable")[: np.count_nonzero(busy)].tolist()
    several = len({places[at][0] for at in used}) > 1
    numbers: dict[str, int] = {}
    position = np.zeros(len(places), np.int64)
    for at in used:
        device, stream = places[at]
        name = (f"{device}:{stream}" if several else stream)[:_NAME_CHARACTERS]
        if name not in numbers and len(numbers) >= _MOST_TOLD_APART:
            name = OTHER_STREAMS
        position[at] = numbers.setdefault(name, len(numbers))
    return list(numbers), position.take(place)


def list_streams(by_stream: Mapping[str, Durations]) -> list[KernelOnStream]:
    """The longest of a kernel's streams, then the sum of the others."""
    return [
        KernelOnStream(stream=stream, **msgspec.structs.asdict(durations))
        for stream, durations in _keep_longest(by_stream).items()
    ]


def merge_streams(ranks: Sequence[Mapping[str, Durations]], *, comparable: bool) -> list[KernelStream]:
    """A kernel's streams over all ranks, the longest first; empty if there is but one.

    Where they are `comparable`, each says how far its mean is from that of all launches on the other streams.
    """
    parts: dict[str, list[Durations]] = {}
    for by_stream in ranks:
        for stream, durations in by_stream.items():
            parts.setdefault(stream, []).append(durations)
    if len(parts) < 2:
        return []
    merged = _keep_longest({stream: add_durations(found) for stream, found in parts.items()})
    return [
        _describe(
            stream,
            durations,
            [other for name, other in merged.items() if name != stream] if comparable else [],
            ranks=sum(stream in by_stream for by_stream in ranks),
        )
        for stream, durations in merged.items()
    ]


def _keep_longest(by_stream: Mapping[str, Durations]) -> dict[str, Durations]:
    named = [stream for stream in by_stream if stream != OTHER_STREAMS]
    ordered = sorted(named, key=lambda stream: (-by_stream[stream].total_ns, len(stream), stream))
    kept = {stream: by_stream[stream] for stream in ordered[:_MOST_LISTED]}
    rest = [durations for stream, durations in by_stream.items() if stream not in kept]
    return kept | ({OTHER_STREAMS: add_durations(rest)} if rest else {})


def _describe(stream: str, durations: Durations, others: Sequence[Durations], ranks: int) -> KernelStream:
    around = add_durations(others) if others else None
    return KernelStream(
        stream=stream,
        others_mean_ns=around.total_ns // around.count if around else None,
        deviations=round((durations.mean_ns - around.mean_ns) / max(around.deviation_ns, 1.0), 1) if around else None,
        ranks=ranks,
        **durations.describe(),
    )
