"""The changes that a prediction may have, by the text with which each is asked for.

`EDITS` is the one list of them. Guarantees: pure; what is not understood is refused with the form that would be.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.errors import FleetprofError


class UnreadableEdit(FleetprofError, ValueError):
    """The text is no edit; the message says what would be."""


class NotTold(FleetprofError, ValueError):
    """The capture does not hold what the answer needs; the message says what, and what would."""


@dataclass(frozen=True, slots=True)
class Faster:
    """Kernels, operators, modules or ranges of this name take `1 / factor` of their time; none with infinity."""

    name: str
    factor: float


@dataclass(frozen=True, slots=True)
class Network:
    """Transfers of collectives take `1 / factor` of their time."""

    factor: float


@dataclass(frozen=True, slots=True)
class Loader:
    """Waits for the data loader take `1 / factor` of their time."""

    factor: float


@dataclass(frozen=True, slots=True)
class Graphed:
    """Work launched in ranges of this name comes from one CUDA graph; all work without a name."""

    name: str


@dataclass(frozen=True, slots=True)
class WithoutStraggler:
    """This rank takes what a rank of the same work takes."""

    rank: int


@dataclass(frozen=True, slots=True)
class BatchSize:
    """So many samples in an iteration."""

    size: float


@dataclass(frozen=True, slots=True)
class RankCount:
    """So many ranks, each with the batch that it has."""

    count: int


@dataclass(frozen=True, slots=True)
class NodeCount:
    """The ranks are on so many nodes."""

    count: int


Edit = Faster | Network | Loader | Graphed | WithoutStraggler | RankCount | NodeCount | BatchSize


@dataclass(frozen=True, slots=True)
class EditForm:
    """One kind of edit: the key before `=`, the form of its value, what it means, and how it is made of both."""

    key: str
    value: str
    meaning: str
    make: Callable[[str, str], Edit]


def _factor(text: str) -> float:
    """`2x` is twice as fast; `0` takes no time at all."""
    if text == "0":
        return float("inf")
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)x", text)
    if found is None or not float(found[1]):
        raise UnreadableEdit(f"{text!r} is no factor: 2x is twice as fast, 0.5x half as fast, 0 takes no time")
    return float(found[1])


def _network_factor(text: str) -> float:
    if text == "0":
        raise UnreadableEdit("a network takes time: 2x is twice as fast")
    return _factor(text)


def _range_name(text: str) -> str:
    if not text:
        raise UnreadableEdit(
            "graph=all takes all launches, graph=NAME those of a module or range: what can be set is one"
        )
    return "" if text == "all" else text


def _count(text: str, least: int) -> int:
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
        raise UnreadableEdit(f"{text!r} is no number from {least} on")
    return int(text)


EDITS: Final = (
    EditForm(
        "faster:NAME", "2x", "a kernel, operator, module or range of this name, or whose name holds it",
        lambda key, value: Faster(key.removeprefix("faster:"), _factor(value)),
    ),
    EditForm("network", "2x", "transfers of collectives", lambda _, value: Network(_network_factor(value))),
    EditForm("loader", "0", "waits for the data loader", lambda _, value: Loader(_factor(value))),
    EditForm(
        "graph", "all", "launches of a module or range, or all, become a CUDA graph: the host's time between goes",
        lambda _, value: Graphed(_range_name(value)),
    ),
    EditForm(
        "without-straggler", "3", "this rank takes what its peers take",
        lambda _, value: WithoutStraggler(_count(value, 0)),
    ),
    EditForm(
        "ranks", "64", "more replicas or fewer, each with the batch that it has",
        lambda _, value: RankCount(_count(value, 2)),
    ),
    EditForm("nodes", "8", "of those ranks; else as many on each as now", lambda _, value: NodeCount(_count(value, 1))),
    EditForm(
        "batch_size", "64", "samples of an iteration, by a capture with shapes, DIR@8, or by two sizes, DIR@8 DIR@16",
        lambda _, value: BatchSize(_count(value, 1)),
    ),
)  # fmt: skip


def read_edits(texts: Sequence[str]) -> list[Edit]:
    """Edits of KEY=VALUE each. Raises UnreadableEdit."""
    return [_read(text) for text in texts]


def _read(text: str) -> Edit:
    key, equals, value = text.rpartition("=")
    name, colon, rest = key.partition(":")
    for form in EDITS:
        wanted, takes_name, _ = form.key.partition(":")
        if equals and name == wanted and bool(colon) == bool(takes_name) and bool(rest) == bool(takes_name):
            return form.make(key, value.strip())
    known = ", ".join(f"{form.key}={form.value}" for form in EDITS)
    raise UnreadableEdit(f"{text!r} cannot be set; what can: {known}")
