"""Modules that could stand for one that was not called: another iteration may call that one in their place.

Guarantees: pure; by what the agent said of names, classes and calls.
"""

from collections.abc import Mapping, Sequence

from fleetprof_api.samples import ModuleColumns

Shape = frozenset[tuple[str, str]]
"""The modules inside a module: names without its own, and classes."""


def find_alike(columns: ModuleColumns) -> set[str]:
    """Names of modules beside an uncalled one with the same inside: layers of which chance leaves some out."""
    classes = dict(zip(columns.name, columns.class_name, strict=False))
    called = {name for name, calls in zip(columns.name, columns.calls, strict=False) if calls}
    holding = {
        name for name, held in zip(columns.name, columns.parameter_bytes, strict=False) if held or name not in called
    }
    lively = {outer for name in called for outer in _outward(name)}
    idle = {_outermost(name, lively) for name in holding if name not in lively}
    if not idle:
        return set()
    parents = {name.rpartition(".")[0] for name in idle}
    beside = {outer for name in holding for outer in _outward(name) if outer.rpartition(".")[0] in parents}
    shapes = _describe(beside | idle, holding, classes)
    unlike = {(name.rpartition(".")[0], shapes[name]) for name in idle}
    return {name for name in beside & lively if (name.rpartition(".")[0], shapes[name]) in unlike}


def _outward(name: str) -> Sequence[str]:
    """The name, and those of the modules around it."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]


def _outermost(name: str, lively: set[str]) -> str:
    """The outermost module around an uncalled one in which nothing was called."""
    return [one for one in _outward(name) if one not in lively][-1]


def _describe(wanted: set[str], holding: set[str], classes: Mapping[str, str]) -> dict[str, Shape]:
    inside: dict[str, set[tuple[str, str]]] = {name: set() for name in wanted}
    for name in holding:
        for outer in _outward(name):
            if outer in inside:
                inside[outer].add((name[len(outer) :], classes.get(name, "")))
    return {name: frozenset(found) for name, found in inside.items()}
