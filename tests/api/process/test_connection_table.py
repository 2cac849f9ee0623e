"""The connections that stay when there are too many."""

from fleetprof_api.process.connection_table import ConnectionLimits, ConnectionTable


def test_who_was_silent_for_longest_makes_room() -> None:
    table: ConnectionTable[str] = ConnectionTable(ConnectionLimits(most=2))
    assert [table.take(one, "", now) for now, one in enumerate("abc")] == [None, None, "a"]
    table.begin("b")
    assert table.take("d", "", 3) == "c"
    table.begin("d")
    assert table.take("e", "", 4) == "e"  # all have something to do
    table.end("b", 5)
    assert table.take("f", "", 6) == "b"


def test_of_the_address_that_holds_the_most_unless_all_of_it_is_in_use() -> None:
    table: ConnectionTable[str] = ConnectionTable(ConnectionLimits(most=4, most_of_one=3))
    assert [table.take(one, address, 0) for one, address in zip("xabc", "xaaa", strict=True)] == [None] * 4
    assert table.take("d", "a", 1) == "a"  # that address has its share
    assert table.take("y", "y", 1) == "b"
    for one in "cd":
        table.begin(one)
    assert table.take("z", "z", 2) == "x"
    for one in "yz":
        table.begin(one)
    assert table.take("w", "a", 3) == "w"


def test_patience_counts_from_the_connection_and_from_the_last_answer() -> None:
    table: ConnectionTable[str] = ConnectionTable(ConnectionLimits(most=9, patience_s=10, kept_s=20))
    for now, one in enumerate("abc"):
        table.take(one, "", now)
    table.begin("a")
    table.leave("c")
    assert table.remove_overdue(10.9) == []
    assert table.remove_overdue(11) == ["b"]
    table.end("a", 20)
    assert table.remove_overdue(39.9) == []
    assert table.remove_overdue(40) == ["a"]
    assert table.remove_overdue(99) == []
