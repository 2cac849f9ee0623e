"""The detectors of late ranks: all of them are asked, and each rank is a candidate once."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import numpy as np
import pytest
from fleetprof_analyzer.job import stragglers
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, FoundBy, LatePattern
from fleetprof_analyzer.job.stragglers.search import search
from fleetprof_analyzer.job.stragglers.search.search import DETECTORS, join_candidates


def test_every_detector_is_asked() -> None:
    names = [one.name for one in pkgutil.walk_packages(stragglers.__path__, f"{stragglers.__name__}.")]
    modules = [importlib.import_module(name) for name in names]
    able = {one.__name__ for one in modules if is_detector(one)}
    registered = {inspect.getmodule(one.find_candidates).__name__ for one in DETECTORS}  # type: ignore[union-attr]
    assert able == registered, f"add the module to DETECTORS in {search.__file__}"


def is_detector(module: ModuleType) -> bool:
    """Finds candidates in a replay and its table by a function of its own."""
    find = getattr(module, "find_candidates", None)
    return find is not None and find.__module__ == module.__name__ and len(inspect.signature(find).parameters) == 2


def candidate(rank: int, by: FoundBy) -> Candidate:
    """Late in all of three iterations."""
    return Candidate(rank, LatePattern.PERSISTENT, 0.1, np.ones(3, np.bool_), by)


@pytest.mark.parametrize(("found", "joined"), [
    ([], []),
    ([[(2, FoundBy.LOADER)], [], [(1, FoundBy.PEERS), (0, FoundBy.PEERS)]],
     [(2, "loader"), (1, "peers"), (0, "peers")]),
    ([[(1, FoundBy.PEERS)], [(1, FoundBy.KERNELS), (2, FoundBy.KERNELS)]], [(1, "peers"), (2, "kernels")]),
])  # fmt: skip
def test_a_rank_is_a_candidate_as_the_first_detector_has_it(
    found: list[list[tuple[int, FoundBy]]], joined: list[tuple[int, str]]
) -> None:
    candidates = join_candidates([[candidate(*one) for one in of_detector] for of_detector in found])
    assert [(one.rank, one.by) for one in candidates] == joined
