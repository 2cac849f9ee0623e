"""The table of numbers beside a plain dict of dicts."""

from fleetprof_operator.hub.telemetry.value_table import ValueTable
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.integers(0, 5)
CHANGES = st.one_of(
    st.tuples(KEYS, st.none()),
    st.tuples(KEYS, st.dictionaries(st.sampled_from("ab"), st.integers(0, 9))),
)


@given(st.lists(CHANGES, max_size=30))
def test_rows_come_and_go_as_in_a_dict(changes: list[tuple[int, dict[str, int] | None]]) -> None:
    table, model = ValueTable(["a", "b"]), dict[int, dict[str, int]]()
    for key, values in changes:
        if values is None:
            table.remove(key)
            model.pop(key, None)
        else:
            table.put(key, key, values)
            model[key] = values
    assert len(table) == len(model)
    assert {key: table.row(key) for key in model} == model
    for column in "ab":
        there = {key: values[column] for key, values in model.items() if column in values}
        aggregate = table.aggregate(column)
        assert sorted(table.numbers(column)) == sorted(there.values())
        if not there:
            assert aggregate is None
            continue
        assert aggregate is not None
        least = min(there.values())
        assert (aggregate.min, aggregate.max, aggregate.sum) == (least, max(there.values()), sum(there.values()))
        assert (aggregate.count, aggregate.mean) == (len(there), sum(there.values()) / len(there))
        assert aggregate.lowest_rank == min(key for key, value in there.items() if value == least)
