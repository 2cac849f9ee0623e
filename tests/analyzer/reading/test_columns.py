"""Decoded events become the same columns however they are cut into batches, as a plain loop over them would make."""

import json
from typing import Any

from fleetprof_analyzer.reading.columns.columns import RowCollector
from fleetprof_analyzer.reading.event import AS_EVENTS
from fleetprof_analyzer.trace.limits import TraceLimits
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import CATEGORIES, Category
from hypothesis import given
from hypothesis import strategies as st

INTEGERS = st.integers(0, 3)
ANYTHING = st.one_of(INTEGERS, st.sampled_from(["0", "worker", None, 1.5, 1 << 63, -1]))


def _events(places: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    args = st.fixed_dictionaries(
        {"device": places, "stream": places},
        optional={
            "correlation": ANYTHING, "bytes": ANYTHING, "Sequence number": ANYTHING, "External id": ANYTHING,
            "grid": st.sampled_from([[1, 1, 1], [2, 1, 1]]), "block": st.just([32, 1, 1]),
            "Collective name": st.sampled_from(["allreduce", "broadcast"]),
        },
    )  # fmt: skip
    return st.fixed_dictionaries(
        {
            "ph": st.just("X"),
            "cat": st.sampled_from(["kernel", "gpu_memset", "cpu_op", "cuda_runtime", "overhead", "unheard_of", None]),
            "name": st.sampled_from(["a", "b"]), "pid": places, "tid": places, "ts": st.integers(0, 99),
            "dur": st.integers(0, 9), "args": args,
        },
    )  # fmt: skip


BARE = _events(ANYTHING).map(lambda event: {**event, "args": None})
ARROW = st.just({"ph": "s", "id": 1})
# Whole batches of integers, as a profiler writes them, and such in which anything may stand.
BATCH = st.lists(_events(INTEGERS), max_size=6) | st.lists(_events(ANYTHING) | BARE | ARROW, max_size=6)
BATCHES = st.lists(BATCH, max_size=6)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else -1


def _expected(event: dict[str, Any]) -> tuple[Any, ...]:
    category, args = CATEGORIES[event["cat"]], event.get("args") or {}
    on_device, called = category <= Category.MEMSET, category == Category.RUNTIME
    process, thread = event["pid"], event["tid"]
    if on_device:
        process = process if args.get("device") is None else args["device"]
        thread = thread if args.get("stream") is None else args["stream"]
    shape = (json.dumps(args["grid"]), json.dumps(args.get("block", ""))) if on_device and "grid" in args else None
    return (
        int(category), event["name"], (str(process), str(thread)), event["ts"] * 1000, event["dur"] * 1000,
        _count(args.get("correlation")) if on_device or called else -1,
        shape if shape is None else (shape[0], shape[1].strip('"')),
        None if called else args.get("Collective name"),
        _count(args.get("bytes")) if on_device else -1 if called else _count(args.get("Sequence number")),
    )  # fmt: skip


@given(batches=BATCHES)
def test_rows_are_those_of_a_plain_loop(batches: list[list[dict[str, Any]]]) -> None:
    columns = RowCollector(Problems(), TraceLimits())
    for batch in batches:
        columns.add(AS_EVENTS.batch(json.dumps(batch).encode()))
    rows, words = columns.rows(), columns.vocabulary
    names, places = list(words.names), list(words.places.places)
    shapes = [tuple(part.decode() for part in shape) for shape in words.shapes]
    collectives = [collective.name for collective in words.collectives]
    found = [
        (
            int(rows.category[at]), names[rows.name[at]], places[rows.place[at]], int(rows.start_ns[at]),
            int(rows.duration_ns[at]), int(rows.correlation[at]),
            shapes[rows.shape[at]] if rows.shape[at] >= 0 else None,
            collectives[rows.collective[at]] if rows.collective[at] >= 0 else None, int(rows.detail[at]),
        )
        for at in range(len(rows))
    ]  # fmt: skip
    kept = [event for batch in batches for event in batch if event.get("cat") in CATEGORIES]

    assert found == [_expected(event) for event in kept]
    assert columns.event_count == sum(map(len, batches))
    # Numbered in the order of the rows, of all kinds of them together.
    assert places == list(dict.fromkeys(place for _, _, place, *_ in found))
