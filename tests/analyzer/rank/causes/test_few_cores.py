"""Few cores that a process may use: by affinity and limit beside the machine's cores, and only where it waits."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from fleetprof_api.report.rank_tables import KnownCause
from fleetprof_api.samples import HostColumns, RankSamples
from harness.traces.written_loop import BASE_NS, WrittenLoop

MS = 1_000_000
NEXT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
IN_PROCESS = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@dataclass
class OnCores(WrittenLoop):
    """A rank whose thread waits for a core for so much of the time, on a machine that is busy to so much of it."""

    waited: float = 0.3
    busy_permille: int = 600
    cores: dict[str, Any] = field(default_factory=lambda: {"usable_cores": 1, "host_cores": 2})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.look_all_along()
        self.look(120)

    @property
    def samples(self) -> RankSamples | None:
        found = super().samples
        assert found is not None
        waited = [round(self.waited * (at - BASE_NS)) for at in found.thread.at_unix_ns]
        found.thread.waited_ns, found.thread.ran_ns = [*waited], [*waited]
        found.host = HostColumns(at_unix_ns=[BASE_NS, BASE_NS + 200 * MS], cpu_busy_permille=[None, self.busy_permille])
        for name, value in self.cores.items():
            setattr(found, name, value)
        return found

    def found(self) -> list[KnownCause]:
        return [one for one in self.causes() if one.cause == "few_cores"]


@pytest.mark.parametrize(("cores", "busy", "allowed", "machine"), [
    ({"usable_cores": 1, "host_cores": 2}, 600, 1000, 2000),
    ({"usable_cores": 1, "host_cores": 2}, 1000, 1000, 2000),  # one for all is too few, whoever else is there
    ({"usable_cores": 4, "host_cores": 64}, 600, 4000, 64000),
    ({"usable_cores": 8, "host_cores": 8, "cpu_limit_millicores": 1500}, 600, 1500, 8000),
])  # fmt: skip
def test_it_may_use_a_part_of_the_machine(cores: dict[str, int], busy: int, allowed: int, machine: int) -> None:
    (found,) = OnCores(cores=cores, busy_permille=busy).found()
    assert (found.count, found.of) == (allowed, machine)
    assert found.time_ns == pytest.approx(0.3 * 120 * MS, rel=0.01)


@pytest.mark.parametrize(("name", "loading_ms"), [(NEXT, 5), (IN_PROCESS, 3)])
def test_batches_of_workers_on_the_same_cores_count(name: str, loading_ms: float) -> None:
    loop = OnCores()
    for number in range(12):
        loop.add(name, 10 * number, 5, category="user_annotation")
    (found,) = loop.found()
    assert found.time_ns == pytest.approx(12 * loading_ms * MS, rel=0.02)


@pytest.mark.parametrize(("cores", "share"), [
    ({"usable_cores": 1, "host_cores": 2}, 1 / 2),
    ({"usable_cores": 2, "host_cores": 8}, 3 / 4),
    ({"usable_cores": 8, "host_cores": 8, "cpu_limit_millicores": 1000}, 0.8),  # what it waits
])  # fmt: skip
def test_it_takes_no_more_than_all_cores_of_the_machine_would_save(cores: dict[str, int], share: float) -> None:
    (found,) = OnCores(waited=0.8, cores=cores).found()
    assert found.time_ns == pytest.approx(share * 120 * MS, rel=0.01)


@pytest.mark.parametrize("loop", [
    pytest.param(OnCores(waited=0.01), id="it does not wait"),
    pytest.param(OnCores(cores={"usable_cores": 2, "host_cores": 2}), id="all cores"),
    pytest.param(OnCores(cores={"usable_cores": 4, "host_cores": 8}, busy_permille=1000), id="part of a full machine"),
    pytest.param(OnCores(cores={"usable_cores": 1}), id="a machine that is not known"),
])  # fmt: skip
def test_what_is_none(loop: OnCores) -> None:
    assert not loop.found()
