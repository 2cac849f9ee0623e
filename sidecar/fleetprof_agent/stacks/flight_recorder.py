"""The latest collectives of this process, from PyTorch's flight recorder.

Guarantees: nothing is turned on by asking; what cannot be read is left out; texts are printable ASCII and bounded.
Source: torch/csrc/distributed/c10d/FlightRecorder.hpp (version 2.10 of its dump).
"""

from __future__ import annotations

import pickle
import sys
from typing import Any, Callable

from fleetprof_agent.errors import pass_on
from fleetprof_agent.samples.stacks import clean

ROWS_PER_CHUNK = 60
MOST_ROWS = 360
LATEST_OF_GROUP = 6
TEXT_CHARACTERS = 80
SIZES_CHARACTERS = 120
COLUMNS = ("group", "sequence", "name", "is_p2p", "sizes", "is_over", "created_unix_ns", "ranks")
_DUMPS = ("_dump_fr_trace", "_dump_nccl_trace")


def read_collectives(torch: Any) -> dict[str, list[Any]]:
    """Columns of the latest collectives of each group, the oldest first; no rows where nothing records them.

    group, name, sizes, ranks (of the group, as in "0-3,8"; "": not known): texts; sequence: the number within the
    group; is_p2p, is_over; created_unix_ns.
    """
    entries: list[dict[str, Any]] = []
    for name in _DUMPS:
        try:
            dump = getattr(torch._C._distributed_c10d, name)
            entries += pickle.loads(dump(includeCollectives=True, includeStackTraces=False))["entries"]  # noqa: S301 - our own process's
        except Exception as error:  # a PyTorch without it, or with other arguments
            pass_on(error)
    members = _read_members()
    groups: dict[tuple[str, bool], list[tuple[Any, ...]]] = {}
    for entry in entries:
        try:
            row = *_read(entry), members.get(str(entry["process_group"][0]), "")
        except (KeyError, TypeError, ValueError) as error:
            pass_on(error)
            continue
        groups.setdefault((row[0], row[3]), []).append(row)
    rows = [row for of_group in groups.values() for row in of_group[-LATEST_OF_GROUP:]][-MOST_ROWS:]
    return {name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)}


def send_collectives(columns: dict[str, list[Any]], send: Callable[..., bool]) -> None:
    """Sends them in chunks."""
    for first in range(0, len(columns["group"]), ROWS_PER_CHUNK):
        send("collectives", **{name: column[first : first + ROWS_PER_CHUNK] for name, column in columns.items()})


def _read_members() -> dict[str, str]:
    """The ranks of each group of this process by the group's name."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    found = {}
    try:
        world = module._world  # type: ignore[union-attr]
        for group, ranks in dict(world.pg_group_ranks).items():
            text = say_ranges(sorted(ranks))
            if len(text) <= SIZES_CHARACTERS:
                found[str(world.pg_names[group])] = text
    except Exception as error:  # another version's
        pass_on(error)
    return found


def say_ranges(numbers: list[int]) -> str:
    """Sorted numbers as in "0-3,8"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join("%d-%d" % (first, last) if last > first else str(first) for first, last in parts)


def _read(entry: dict[str, Any]) -> tuple[Any, ...]:
    group, is_p2p = entry["process_group"], bool(entry["is_p2p"])
    number = int(entry["p2p_seq_id" if is_p2p else "collective_seq_id"])
    text = "%s %s" % (group[0], group[1]) if group[1] and group[1] != "undefined" else str(group[0])
    name = str(entry["profiling_name"]).rpartition(":")[2]
    is_over = bool(entry.get("retired")) or entry.get("state") == "completed"
    created = int(entry["time_created_ns"])
    sizes = str(entry.get("input_sizes") or "")[:SIZES_CHARACTERS]
    if not 0 <= number < 2**63 or not 0 <= created < 2**63:
        raise ValueError("a number out of range")
    return clean(text[:TEXT_CHARACTERS]), number, clean(name[:TEXT_CHARACTERS]), is_p2p, clean(sizes), is_over, created
