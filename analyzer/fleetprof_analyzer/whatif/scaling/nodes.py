"""The nodes that the ranks of a capture are on, and those that more ranks would need.

Guarantees: pure; a network between nodes that no group was seen to cross is refused with `NotTold`.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import ceil

from fleetprof_analyzer.whatif.edits import NotTold
from fleetprof_analyzer.whatif.replay.course import RankCourse
from fleetprof_analyzer.whatif.scaling.families import Replicas


def find_nodes(courses: Sequence[RankCourse]) -> list[int]:
    """The node of each rank: by the host that traces name, else by devices: one that comes again is another node's."""
    hosts = [one.trace.metadata.host_name for one in courses]
    if all(hosts):
        number = {name: at for at, name in enumerate(dict.fromkeys(hosts))}
        return [number[name] for name in hosts]
    turns: dict[str, int] = defaultdict(int)
    found = []
    for one in courses:
        device = _device(one)
        found.append(turns[device])
        turns[device] += 1
    return found


def count_nodes(nodes: list[int], replicas: Replicas, ranks: int, wanted: int | None) -> tuple[int, int]:
    """(nodes as captured, nodes then). Raises NotTold."""
    before = len(set(nodes))
    each = max(Counter(nodes).values())
    after = wanted or ceil(ranks / each)
    if after > ranks:
        raise NotTold(f"{ranks} ranks are on {ranks} nodes at most")
    if after > before:
        for group in replicas.groups:
            if len({nodes[rank] for rank in group}) == 1:
                raise NotTold(
                    f"a group that would grow was captured within one node, and {ranks} ranks need {after}: nothing "
                    f"tells the network between them{' (nodes=1 if they fit into one)' if before == 1 else ''}"
                )
    return before, after


def _device(course: RankCourse) -> str:
    place = course.rows.place[course.rows.row >= 0]
    return course.trace.places[int(place[0])][0] if len(place) else ""
