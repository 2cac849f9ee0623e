"""Samples of a training thread, made by hand: stacks, and the looks that found them."""

from typing import Any

from fleetprof_analyzer.rank.host.track import Track, read_track
from fleetprof_api.samples import CodePlace, RankSamples, ThreadColumns

from harness.traces.planted.loop import US

MAIN, READ, PARSE = ("t.py", "main", 9), ("t.py", "read_batch", 41), ("t.py", "parse", 70)


def samples_of(stacks: list[list[tuple[str, str, int]]], *samples: tuple[int, int | None]) -> RankSamples:
    """A rank's samples: stacks, the innermost frame first, and (time in µs, stack) of each look."""
    places = sorted({place for stack in stacks for place in stack})
    return RankSamples(
        rank=0,
        thread=ThreadColumns(at_unix_ns=[at * US for at, _ in samples], stack=[stack for _, stack in samples]),
        places=[CodePlace(file=file, function=function, line=line) for file, function, line in places],
        stacks=[[places.index(place) for place in stack] for stack in stacks],
    )


def track_of(*arguments: Any) -> Track:
    """The track of `samples_of` the same."""
    track = read_track(samples_of(*arguments))
    assert track is not None
    return track


def looks(*phases: tuple[int, int, int | None], every: int = 100) -> list[tuple[int, int | None]]:
    """A look every so many µs: (from, to, stack) of each phase."""
    return [(at, stack) for start, end, stack in phases for at in range(start + every // 2, end, every)]
