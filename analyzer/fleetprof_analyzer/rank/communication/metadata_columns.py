"""The metadata of a rank's operations as columns: kind, process group, sequence, size, peer.

Guarantees: pure; -1 where the trace does not say it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.communication.kinds import kind_of
from fleetprof_analyzer.rank.communication.operations import Group
from fleetprof_analyzer.rank.communication.process_group import group_of, peer_of
from fleetprof_analyzer.rank.communication.sources import OperationSource
from fleetprof_analyzer.trace.trace import Collective, Int32s, Int64s, Trace

_UNSAID: Final = Collective()


@dataclass(frozen=True, slots=True)
class MetadataColumns:
    """Parallel, one entry per operation; `group` counts in `groups`."""

    kind: npt.NDArray[np.int8]
    group: Int32s
    groups: list[Group]
    sequence: Int64s
    elements: Int64s
    peer: Int32s


def read_metadata(trace: Trace, source: OperationSource) -> MetadataColumns:
    """The columns of a source's operations."""
    kinds, groups, sequences, elements, peers = [], [], [], [], []
    known: dict[Group, int] = {}
    cache: dict[tuple[int, int], tuple[int, int, int]] = {}
    for name, number in zip(source.name.tolist(), source.collective.tolist(), strict=True):
        collective = trace.collectives[number] if number >= 0 else _UNSAID
        if (name, number) not in cache:
            group = group_of(collective, trace.metadata.groups)
            kind = kind_of(collective.name, trace.names[name])
            cache[name, number] = (kind, known.setdefault(group, len(known)), peer_of(collective, kind, group))
        kind, group_number, peer_rank = cache[name, number]
        kinds.append(kind)
        groups.append(group_number)
        peers.append(peer_rank)
        sequences.append(-1 if collective.sequence is None else collective.sequence)
        elements.append(-1 if collective.elements_in is None else collective.elements_in)
    return MetadataColumns(
        np.array(kinds, np.int8),
        np.array(groups, np.int32),
        list(known),
        np.array(sequences, np.int64),
        np.array(elements, np.int64),
        np.array(peers, np.int32),
    )
