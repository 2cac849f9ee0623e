"""The answer to one what-if, as `fleetprof whatif -o json` prints it, and those that a report holds (docs/whatif.md).

Guarantees: either `iteration_ns` with its interval, or `refused` with the reason; times are integers of nanoseconds.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

SCHEMA_VERSION = 1


class PredictedValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95 % interval."""

    value: Annotated[float, Meta(description="the value that is expected")]
    low: Annotated[float, Meta(description="lower end of its interval")]
    high: Annotated[float, Meta(description="upper end of its interval")]


class ReplayQuality(msgspec.Struct, frozen=True, kw_only=True):
    """The replay of the job as it was, beside what was recorded: means of iterations, all waits computed anew."""

    recorded_ns: Annotated[int, Meta(description="mean iteration as it was recorded")]
    replayed_ns: Annotated[int, Meta(description="mean iteration of the replay")]
    error: Annotated[float, Meta(description="replayed / recorded - 1")]
    worst_error: Annotated[float, Meta(description="the largest of one iteration, without its sign")]
    unexplained: Annotated[float, Meta(description="starts of rows that nothing recorded explains, of the time")]
    launched: Annotated[float, Meta(description="rows whose launch was recorded, of all; 1 without a device")]
    iterations: Annotated[int, Meta(description="iterations that were replayed")]
    ranks: Annotated[int, Meta(description="ranks that were replayed")]


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The length of an iteration."""

    schema_version: int = SCHEMA_VERSION
    edits: Annotated[list[str], Meta(description="the changes, as `--set` takes them")]
    quality: ReplayQuality | None = None
    iteration_ns: PredictedValue | None = None
    change: Annotated[float | None, Meta(description="of the iteration's time, against the recording")] = None
    throughput_change: Annotated[float | None, Meta(description="of the samples in a second")] = None
    memory_bytes: Annotated[PredictedValue | None, Meta(description="peak; null: not predicted by these edits")] = None
    bound_by: Annotated[
        dict[str, float], Meta(description="what its time consists of then, along what waits for what; shares")
    ] = {}
    rests_on: Annotated[list[str], Meta(description="what of the capture the answer was made of")] = []
    doubt: Annotated[str, Meta(description="the assumption that makes most of the interval")] = ""
    refused: Annotated[
        str, Meta(description="why there is no answer, and what would give one; empty: there is one")
    ] = ""


class Predictions(msgspec.Struct, frozen=True, kw_only=True):
    """The answers that were made in advance, with the one replay that all rest on; each is without its `quality`."""

    quality: ReplayQuality | None = None
    scenarios: list[Prediction] = []
    refused: Annotated[str, Meta(description="why nothing was predicted in advance; empty: it was")] = ""
