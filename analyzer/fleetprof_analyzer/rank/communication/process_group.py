"""The members of a process group, from what each row and the trace's head say.

PyTorch cuts long lists of ranks ("[0, 1, ...]"), so start, stride and size, then the head's own list, are tried as
well. Guarantees: members are given only where they are said whole; they are sorted global ranks.
"""

import re
from collections.abc import Mapping
from typing import Final

from fleetprof_analyzer.rank.communication.operations import KINDS, Group
from fleetprof_analyzer.trace.trace import Collective

_RANKS: Final = re.compile(r"^\s*[\[(]\s*(\d{1,7}(?:\s*,\s*\d{1,7})*)\s*,?\s*[\])]\s*$")
_MOST_MEMBERS: Final = 1 << 17


def group_of(collective: Collective, configured: Mapping[str, tuple[int, ...]]) -> Group:
    """The group of a collective; `configured` are the groups of the trace's head by name."""
    size = collective.group_size
    members = _listed(collective.group_ranks)
    if size is not None and members and len(members) != size:
        members = ()
    if not members:
        members = configured.get(collective.group_name, ()) if collective.group_name else ()
    if not members and size and collective.group_start is not None and collective.group_stride and size < _MOST_MEMBERS:
        start, stride = collective.group_start, collective.group_stride
        members = tuple(range(start, start + stride * size, stride))
    return Group(collective.group_name, members, size or (len(members) or None))


def peer_of(collective: Collective, kind: int, group: Group) -> int:
    """The global rank of the other side of a send or receive; -1 where it is not said, and for everything else."""
    if kind == KINDS.index("send"):
        peer = collective.target
    elif kind == KINDS.index("receive"):
        peer = collective.source
    else:
        return -1
    if peer is None:
        return -1
    # A number that is no member counts members.
    inside = not group.members or peer in group.members or peer >= len(group.members)
    return peer if inside else group.members[peer]


def _listed(text: str) -> tuple[int, ...]:
    match = _RANKS.match(text)
    return () if match is None else tuple(sorted({int(part) for part in match[1].split(",")}))
