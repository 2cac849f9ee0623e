"""The next place: of a namespace the oldest request, of namespaces the one that holds fewest."""

import pytest
from fleetprof_operator.hub.planning.places import ALWAYS, Contender, NoPlace, explain, find_crowd, order_contenders

MOST_OF_NAMESPACE = 3


def contend(*names: str) -> list[Contender]:
    """In the order in which they asked; the letter is the namespace."""
    return [Contender(name, name[0], (number, name)) for number, name in enumerate(names)]


@pytest.mark.parametrize(
    ("held", "uids", "line"),
    [
        ({}, "a1 a2 b1", "a1 b1 a2"),
        ({"a": 2}, "a1 b1 b2 b3", "b1 b2 a1 b3"),
        ({"a": 3}, "a1 a2 b1", "b1"),
        ({}, "a1 a2 a3 a4 b1", "a1 b1 a2 a3"),
        ({"c": 3}, "", ""),
    ],
)
def test_places_go_round(held: dict[str, int], uids: str, line: str) -> None:
    assert " ".join(order_contenders(held, contend(*uids.split()), MOST_OF_NAMESPACE)) == line


@pytest.mark.parametrize(
    ("held", "uids", "who", "waits"),
    [
        ({}, "a1", "a1", None),
        ({"b": 4}, "a1", "a1", None),
        ({"b": 5}, "a1", "a1", NoPlace(1, "5 captures are under way")),
        ({"b": 4}, "a1 c1", "c1", NoPlace(2, "4 captures are under way")),
        ({"a": 3}, "a1 a2", "a2", NoPlace(2, "3 captures of namespace a are under way")),
        ({"a": 3}, "b1 a1", "a1", NoPlace(1, "3 captures of namespace a are under way")),
    ],
)
def test_who_waits_learns_why_and_for_how_many(
    held: dict[str, int], uids: str, who: str, waits: NoPlace | None
) -> None:
    contenders = contend(*uids.split())
    (contender,) = [c for c in contenders if c.uid == who]
    line = order_contenders(held, contenders, MOST_OF_NAMESPACE)
    assert explain(contender, held, contenders, line, 5) == waits


@pytest.mark.parametrize(
    ("waiting", "says"),
    [
        ({}, ""),
        ({"a": 99}, ""),
        ({"a": 100}, "100 requests of namespace a wait for their jobs or their turn"),
        ({"a": ALWAYS, "b": 100, "c": 100}, f"{ALWAYS + 200} requests wait for their jobs or their turn"),
        ({"a": ALWAYS - 1, "b": 100, "c": 100}, ""),
    ],
)
def test_some_of_each_namespace_may_wait(waiting: dict[str, int], says: str) -> None:
    assert find_crowd(waiting, "a", 200, 100) == says
