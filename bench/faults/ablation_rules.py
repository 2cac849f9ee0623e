"""The rules of the straggler verdict that can be taken out, each with what stands in its place then."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from fleetprof_analyzer.job.stragglers.network import Links
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.undecided import Power

_STRAGGLERS = "fleetprof_analyzer.job.stragglers."


@dataclass(frozen=True)
class VerdictRule:
    """A name of a module, and what takes its place, or what makes that of the rule (`changes`).

    Where it says the same as this, a rule adds nothing.
    """

    module: str
    name: str
    instead: Any = None
    changes: Callable[[Any], Any] | None = None

    def taken_out(self, rule: Any) -> Any:
        """The function in its place."""
        return self.instead if self.changes is None else self.changes(rule)


def _nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def _none_of_all(*_: Any, **__: Any) -> None:
    return None


def _never(*_: Any, **__: Any) -> bool:
    return False


def _always(*_: Any, **__: Any) -> bool:
    return True


def _false_of(x: Any) -> Any:
    return np.zeros(len(x), np.bool_)


def _true_of(x: Any) -> Any:
    return np.ones(len(x), np.bool_)


def _zero(*_: Any, **__: Any) -> float:
    return 0.0


def _plain_spread(values: Any) -> float:
    from fleetprof_analyzer.job.stragglers.lateness.outliers import measure_deviation
    from fleetprof_analyzer.job.stragglers.thresholds import SIGMA

    return float(SIGMA * measure_deviation(values))


def _plain_slowness(table: Any, rank: int) -> Any:
    busy, peers = table.parts_ns["busy"].astype(np.float64), table.peers(rank).tolist()
    usual = np.median(busy[peers], axis=0) if peers else busy[rank].min()
    return np.asarray(busy[rank] / np.maximum(usual, 1) - 1)


def _no_late_hosts(table: Any, _: Any) -> Any:
    from fleetprof_analyzer.job.stragglers.lateness.late_hosts import LateHosts

    return LateHosts(table, [])


def _as_they_are(_: Any, candidates: list[Any], *__: Any, **___: Any) -> list[Any]:
    return candidates


_E, _R, _S = "lateness.excess", "causes.rhythm", "search.search"
_X, _D, _I, _M, _V = "causes.explanation", "causes.devices", "imbalance", "moving_pauses", "verdict"

RULES: dict[str, VerdictRule] = {
    "late in most iterations": VerdictRule(_E, "_persistent", _nothing),
    "apart from all others": VerdictRule(_E, "are_apart", _false_of),
    "the largest too often": VerdictRule(_E, "are_largest", _false_of),
    "a mean that stands out as well": VerdictRule(_E, "stand_out", _true_of),
    "late in the mean": VerdictRule(_E, "_in_the_mean", _nothing),
    "outliers": VerdictRule(_E, "find_outliers", lambda *_: iter(())),
    "no chance of leads": VerdictRule(_E, "may_be_chance_of_leads", _never),
    "spread within all roles": VerdictRule(_E, "_deviation_within_roles", _zero),
    "the own time by parts": VerdictRule(
        _E, "measures_of", changes=lambda rule: lambda table: [rule(table)[0], *rule(table)[4:]]
    ),
    "the hosts' own time": VerdictRule(_E, "measures_of", changes=lambda rule: lambda table: rule(table)[:-2]),
    "three quarters of many": VerdictRule(_E, "spread_of_many", _plain_spread),
    "late hosts": VerdictRule(_S, "find_late_hosts", _no_late_hosts),
    "any rhythm": VerdictRule("search.beside_peers", "add_rhythmic", _as_they_are),
    "own time in a rhythm": VerdictRule(_R, "_find_late", lambda *_: iter(())),
    "blocked in a rhythm": VerdictRule(_R, "_find_blocked", lambda *_: iter(())),
    "a rhythm among strays": VerdictRule(_R, "_find_among_strays", _none_of_all),
    "loaders of all ranks": VerdictRule("causes.loaders", "find_candidates", _nothing),
    "the same kernels": VerdictRule("search.same_kernels", "find_candidates", _nothing),
    "more work on a device": VerdictRule("causes.unequal_work", "find_more_on_device", _none_of_all),
    "who waits unseen": VerdictRule("search.readings", "_waits_are_missed", _never),
    "slow links": VerdictRule("search.groups", "find_slow_links", lambda *_: Links([], [], 0.0, 0, judged=True)),
    "candidates of noise": VerdictRule(_V, "_power", lambda *_: Power(None, None)),
    "blocked in turns": VerdictRule(_I, "find_likeliest_order", _none_of_all),
    "several move": VerdictRule(_I, "_is_of_several", _always),
    "explained by waits": VerdictRule(_I, "_explained_by_waits", _none_of_all),
    "pauses that move": VerdictRule(_I, "pauses_move", _always),
    "loaders of other stages": VerdictRule(_I, "_others_load_alike", _never),
    "a stage's other causes": VerdictRule(_I, "_find_excess", lambda *_: "stage_imbalance"),
    "a clock below the peers'": VerdictRule(_X, "find_slower_clock", _nothing),
    "a device that comes and goes": VerdictRule(_X, "comes_and_goes", _never),
    "slow beside given work": VerdictRule(_X, "measure_slowness", _plain_slowness),
    "gaps by hosts": VerdictRule(_X, "_by_host", lambda *_: {}),
    "lack of a core": VerdictRule(_X, "find_contention", _none_of_all),
    "silent pauses": VerdictRule(_X, "find_collections", _none_of_all),
    "thread that was heard": VerdictRule("causes.pauses", "_is_heard", _never),
    "sizes of tensors": VerdictRule("causes.operators", "compare_sizes", _none_of_all),
    "more work on the host": VerdictRule(_X, "_has_more_work", _never),
}


# What comes before the rules: the same for all of them.
_BEFORE = (
    ("verdict", "match"), ("verdict", "ends_together"), ("verdict", "_clocks"), ("verdict", "measure_bubbles"),
    ("verdict", "measure_loading_gain"), ("search.readings", "Replay"), ("search.search", "find_roles"),
)  # fmt: skip


@contextmanager
def once() -> Iterator[None]:
    """Calculates what comes before all rules once meanwhile, which is for one case only."""
    with ExitStack() as stack:
        for place, name in _BEFORE:
            module = importlib.import_module(_STRAGGLERS + place)
            before = getattr(module, name)
            setattr(module, name, _remember(before))
            stack.callback(setattr, module, name, before)
        yield


def _remember(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[Any, Any] = {}

    def answer(*given: Any, **named: Any) -> Any:
        # Of a case there is one replay for each reading of its hosts; everything else is the same.
        key = (*(id(one) for one in given if isinstance(one, Replay)), *named.items())
        if key not in known:
            known[key] = function(*given, **named)
        return known[key]

    return answer


@contextmanager
def without(rules: Iterable[str]) -> Iterator[None]:
    """Judges without these rules meanwhile."""
    with ExitStack() as stack:
        for rule in (RULES[name] for name in rules):
            module = importlib.import_module(_STRAGGLERS + rule.module)
            before = getattr(module, rule.name)
            setattr(module, rule.name, rule.taken_out(before))
            stack.callback(setattr, module, rule.name, before)
        yield


@contextmanager
def watched(rules: Iterable[str]) -> Iterator[set[str]]:
    """The rules that say something else than what would stand in their place, as they are asked meanwhile."""
    speaking: set[str] = set()
    with ExitStack() as stack:
        for name in rules:
            rule = RULES[name]
            module = importlib.import_module(_STRAGGLERS + rule.module)
            before = getattr(module, rule.name)
            setattr(module, rule.name, _watch(before, rule.taken_out(before), name, speaking))
            stack.callback(setattr, module, rule.name, before)
        yield speaking


def _watch(rule: Callable[..., Any], instead: Callable[..., Any], name: str, speaking: set[str]) -> Callable[..., Any]:
    def answer(*given: Any, **named: Any) -> Any:
        found, other = rule(*given, **named), instead(*given, **named)
        found, other = (list(one) if isinstance(one, Iterator) else one for one in (found, other))
        if not _same(found, other):
            speaking.add(name)
        return found

    return answer


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(a is b or _same(a, b) for a, b in zip(one, other, strict=True))
    if hasattr(one, "candidates"):
        return _same(one.candidates, other.candidates)
    if isinstance(one, (bool, int, float, str, dict, type(None))):
        return bool(one == other)
    return one is other
