"""From a target to processes, as tables: who is there → who is asked, or what is missing."""

from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import Ranks, Spec, parse_request
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.planning.resolution import Resolution, choose_ranks, resolve
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord, SidecarRegistry
from hypothesis import given
from hypothesis import strategies as st

SECOND = 10**9
DAY = 86_400 * SECOND
NOW = 1_000 * SECOND


class _Up:
    def send(self, message: pb.HubMessage) -> None: ...

    def close(self, why: str) -> None: ...


def sidecar(
    name: str,
    *processes: pb.Process,
    job: str = "llama",
    up: bool = True,
    lost: int = NOW - SECOND,
    ahead_ns: tuple[int, ...] = (),
    **identity: Any,
) -> SidecarRecord:
    given_identity: dict[str, Any] = {
        "namespace": "team",
        "pod_name": f"pod-{name}",
        "node_name": f"node-{name}",
        "workload": pb.Workload(api_version="batch/v1", kind="Job", name=job),
        "labels": {"app": job},
    }
    return SidecarRecord(
        sidecar_id=name,
        identity=pb.Identity(**(given_identity | identity)),
        processes={p.process_id: p for p in processes},
        link=_Up() if up else None,
        ahead_ns=ahead_ns,
        lost_unix_ns=0 if up else lost,
    )


def trainer(process_id: str, rank: int | None = None, **fields: Any) -> pb.Process:
    given_fields: dict[str, Any] = {
        "role": pb.TRAINER,
        "polls_kineto": True,
        "rank_source": pb.RANK_AGENT if rank is not None else pb.RANK_UNKNOWN,
        "first_seen_unix_ns": NOW - 60 * SECOND,
    }
    return pb.Process(process_id=process_id, rank=rank, **(given_fields | fields))


def spec(**fields: Any) -> Spec:
    target = {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}}
    return parse_request(
        {
            "apiVersion": "fleetprof.io/v1alpha1",
            "kind": "ProfileRequest",
            "spec": {"target": target, "window": {"iterations": 5}} | fields,
        }
    ).spec


def find(*sidecars: SidecarRecord, **fields: Any) -> Resolution:
    return resolve(spec(**fields), "team", sidecars, NOW, "Job/llama")


def chosen(found: Resolution) -> dict[int, str]:
    assert not found.reason, found.message
    return {target.rank: f"{target.sidecar_id}/{target.process.process_id}" for target in found.targets}


LAUNCHER = pb.Process(process_id="l", role=pb.LAUNCHER, polls_kineto=True)
WORKER = pb.Process(process_id="w", role=pb.WORKER, polls_kineto=True)
UNKNOWN = pb.Process(process_id="u", polls_kineto=True, first_seen_unix_ns=NOW - 5 * SECOND)
YOUNG = pb.Process(process_id="y", polls_kineto=True, first_seen_unix_ns=NOW - 5 * SECOND)
OLD_RANK: dict[str, Any] = {"polls_kineto": False, "agent_waits": True, "torch_version": "2.9.1"}
OLD = pb.Process(process_id="o", first_seen_unix_ns=NOW - 60 * SECOND, **OLD_RANK)
SETTLED = pb.Process(process_id="u", polls_kineto=True, first_seen_unix_ns=NOW - 11 * SECOND)


@pytest.mark.parametrize(
    ("sidecars", "expected"),
    [
        ([sidecar("a", trainer("p", 0))], {0: "a/p"}),
        ([sidecar("a", trainer("p", 1)), sidecar("b", trainer("p", 0))], {0: "b/p", 1: "a/p"}),
        ([sidecar("a", LAUNCHER, WORKER, trainer("p", 0), UNKNOWN, SETTLED)], {0: "a/p"}),
        ([sidecar("a", trainer("p", 0)), sidecar("b", trainer("q", 1), job="other")], {0: "a/p"}),
        ([sidecar("a", trainer("p", 0)), sidecar("b", trainer("q", 0), namespace="rival")], {0: "a/p"}),
        # torchrun restarted its workers: the newest process is the rank
        ([sidecar("a", trainer("old", 0), trainer("new", 0, restart_count=1))], {0: "a/new"}),
        ([sidecar("a", trainer("new", 0, first_seen_unix_ns=NOW), trainer("old", 0))], {0: "a/new"}),
        # ranks that nobody knows are numbered by node, pod, local rank and age, around the known ones
        ([sidecar("b", trainer("y")), sidecar("a", trainer("x"))], {0: "a/x", 1: "b/y"}),
        ([sidecar("a", trainer("x", local_rank=1), trainer("y", local_rank=0))], {0: "a/y", 1: "a/x"}),
        ([sidecar("a", trainer("x"), trainer("k", 0))], {0: "a/k", 1: "a/x"}),
        # a process whose role stays unknown is taken only where no trainer is
        ([sidecar("a", SETTLED)], {0: "a/u"}),
        # a clock that is a little off, or looks late by one message; one of a host that is not asked
        ([sidecar("a", trainer("p", 0), ahead_ns=(-50 * SECOND, 50 * SECOND))], {0: "a/p"}),
        ([sidecar("a", trainer("p", 0), ahead_ns=(0, -DAY))], {0: "a/p"}),
        ([sidecar("a", trainer("p", 0)), sidecar("b", LAUNCHER, ahead_ns=(-DAY,))], {0: "a/p"}),
        # a rank that does not poll is named, as long as another does
        ([sidecar("a", trainer("p", 0), trainer("q", 1, polls_kineto=False))], {0: "a/p", 1: "a/q"}),
    ],
)  # fmt: skip
def test_who_is_asked(sidecars: list[SidecarRecord], expected: dict[int, str]) -> None:
    assert chosen(find(*sidecars)) == expected


LOADED: dict[str, Any] = {"agent_waits": True, "torch_version": "2.15.0"}
WAITING: dict[str, Any] = {
    "role": pb.ROLE_UNSPECIFIED,
    **LOADED,
}  # a rank where /proc cannot be seen, before its first step
IMPORTING: dict[str, Any] = {"role": pb.ROLE_UNSPECIFIED, "agent_waits": True}  # the same, before PyTorch is there
STEPPING: dict[str, Any] = {"has_agent": True, "step": pb.StepState(step=9, iteration_ns=SECOND)}
IN_TIME = {"window": {"durationMillis": 500}}
NOBODY = "no process of Job/llama has made an optimizer step yet"
NO_RANK_YET = f"{NOBODY}, 2 have PyTorch and the agent loaded"


@pytest.mark.parametrize(
    ("sidecars", "fields", "expected"),
    [
        # its environment says that it is a rank
        ([sidecar("a", trainer("p", 0, **LOADED))], {}, "1 of 1 ranks have made no optimizer step yet"),
        ([sidecar("a", trainer("p", 0, **LOADED))], IN_TIME, {0: "a/p"}),
        ([sidecar("a", trainer("p", 0, **STEPPING))], {}, {0: "a/p"}),
        # one rank has stepped, the other has not, and only its agent says that it is a rank
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("q", 1, **WAITING))], {}, "1 of 2 ranks have made no"),
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("q", 1, **WAITING))], IN_TIME, {0: "a/p"}),
        # only the chosen are waited for
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("q", 1, **WAITING))], {"ranks": {"list": [0]}}, {0: "a/p"}),
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("q", 1, **WAITING))], {"ranks": {"list": [1]}},
         "1 of 1 ranks have made no optimizer step yet"),
        # where a trainer is there, nobody waits for those who are no ranks, or whose rank it is
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("q", **WAITING))], {}, {0: "a/p"}),
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("q", 0, **WAITING))], {}, {0: "a/p"}),
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("w", 1, role=pb.WORKER, **LOADED),
                  trainer("l", 2, role=pb.LAUNCHER, **LOADED))], {}, {0: "a/p"}),
        # nobody has shown yet that it trains; a process that is here for long is not taken for a rank then
        ([sidecar("a", trainer("p", **WAITING), trainer("q", 3, **WAITING), SETTLED)], {}, NO_RANK_YET),
        ([sidecar("a", trainer("p", **WAITING))], IN_TIME, {0: "a/p"}),
        ([sidecar("a", trainer("p", polls_kineto=False, **WAITING), SETTLED)], {}, {0: "a/u"}),
        # nothing is to be seen of an import, whatever the window, and whether Kineto is there or not
        ([sidecar("a", trainer("p", 0, agent_waits=True))], IN_TIME, "1 of 1 ranks are still importing PyTorch"),
        ([sidecar("a", trainer("p", 0, agent_waits=True, polls_kineto=False))], {}, "1 of 1 ranks are still importing"),
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("q", 1, **IMPORTING))], IN_TIME, "1 of 2 ranks are still"),
        ([sidecar("a", trainer("p", 0, **LOADED), trainer("q", 1, **IMPORTING))], {},
         "1 of 2 ranks are still importing PyTorch and 1 of 2 ranks have made no optimizer step yet; a window"),
        ([sidecar("a", trainer("p", **IMPORTING), SETTLED)], IN_TIME, f"{NOBODY}, 1 is still importing PyTorch"),
        ([sidecar("a", trainer("p", polls_kineto=False, **IMPORTING), SETTLED)], {}, f"{NOBODY}, 1 is still"),
        ([sidecar("a", trainer("p", **IMPORTING), trainer("q", **WAITING))], {},
         f"{NOBODY}, 1 is still importing PyTorch and 1 has PyTorch and the agent loaded; a window"),
    ],
)  # fmt: skip
def test_first_steps_that_are_waited_for(
    sidecars: list[SidecarRecord], fields: dict[str, Any], expected: dict[int, str] | str
) -> None:
    found = find(*sidecars, **fields)
    if isinstance(expected, str):
        assert (found.targets, found.reason) == ([], "NoOptimizerStep")
        assert found.message.startswith(expected)
    else:
        assert chosen(found) == expected


@pytest.mark.parametrize(
    ("sidecars", "fields", "reason", "says"),
    [
        ([], {}, "NothingMatched", "is connected in namespace team; sidecars connected there: 0"),
        ([sidecar("a", job="bert")], {}, "NothingMatched", "there are Job/bert. Is the job running"),
        ([sidecar("a", trainer("p", 0), up=False)], {}, "NothingMatched", "is not connected at the moment"),
        ([sidecar("a")], {}, "NothingSpeaksKineto", "no process there asks for Kineto configs: has it imported torch"),
        ([sidecar("a", LAUNCHER, WORKER)], {}, "NothingSpeaksKineto",
         "no training process of Job/llama yet: 1 launcher, 1 w"),
        ([sidecar("a", UNKNOWN)], {}, "NothingSpeaksKineto", "1 unknown; a training process is known by its rank"),
        ([sidecar("a", trainer("p", 0, polls_kineto=False))], {}, "NothingSpeaksKineto",
         "rank 0 of Job/llama: training, but"),
        ([sidecar("a", trainer("p", 0), ahead_ns=(-400 * DAY,))], {}, "ClocksDiffer",
         "the clock of node-a is 400 days behind the hub's; set it (NTP)"),
        ([sidecar("a", trainer("p", 0)), sidecar("b", trainer("q", 1), ahead_ns=(120 * SECOND,))], {}, "ClocksDiffer",
         "the clock of node-b is 2 minutes ahead of the hub's"),
        ([sidecar("a", trainer("p", **IMPORTING), ahead_ns=(-DAY, -DAY))], {}, "ClocksDiffer", "is 24 hours behind"),
        ([sidecar("a", OLD)], {}, "NothingSpeaksKineto", "PyTorch 2.9.1 of Job/llama is too old to be captured; use"),
        ([sidecar("a", OLD, LAUNCHER)], {}, "NothingSpeaksKineto", "PyTorch 2.9.1 of Job/llama is too old"),
        ([sidecar("a", trainer("p", 0, **OLD_RANK))], {}, "NothingSpeaksKineto", "PyTorch 2.9.1 of Job/llama is too"),
        ([sidecar("a", trainer("p", 0, **STEPPING), trainer("q", 1, **OLD_RANK))], {}, "NothingSpeaksKineto",
         "PyTorch 2.9.1 of Job/llama is too old"),
        ([sidecar("a", trainer("p", 0))], {"ranks": {"list": [0, 3, 9]}}, "RanksMissing",
         "ranks 3, 9 of Job/llama not there; there are rank 0"),
    ],
)  # fmt: skip
def test_what_is_missing(sidecars: list[SidecarRecord], fields: dict[str, Any], reason: str, says: str) -> None:
    found = find(*sidecars, **fields)
    assert (found.targets, found.reason) == ([], reason)
    assert says in found.message


def test_two_workloads_with_the_same_ranks_are_not_mixed() -> None:
    target = {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    found = find(sidecar("a", trainer("p", 0)), sidecar("b", trainer("q", 0), job="bert"), target=target)
    assert found.reason == "AmbiguousTarget"
    assert "2 workloads with the same ranks (Job/bert, Job/llama)" in found.message


def test_a_selector_matches_labels() -> None:
    target = {"selector": {"matchLabels": {"app": "bert"}}}
    assert chosen(find(sidecar("a", trainer("p", 0)), sidecar("b", trainer("q", 0), job="bert"), target=target)) == {
        0: "b/q"
    }


@pytest.mark.parametrize(
    ("sidecars", "fields", "says"),
    [
        ([sidecar("a", trainer("p", 0, world_size=1))], {}, ""),
        ([sidecar("a", trainer("p", 1, world_size=4))], {}, "ranks 0, 2, 3 of 4 not there"),
        ([sidecar("a", trainer("p", 1, world_size=4))], {"ranks": {"list": [1]}}, ""),
        ([sidecar("a", trainer("p", 0)), sidecar("b", up=False)], {}, "sidecars not connected at the moment: 1"),
        ([sidecar("a", trainer("p", 0, world_size=1)), sidecar("b", up=False)], {}, ""),
        ([sidecar("a", trainer("p", 0)), sidecar("b", up=False, lost=NOW - 20 * SECOND)], {}, ""),
        # ranks of a job that is just starting become known one after the other
        ([sidecar("a", SETTLED, YOUNG)], {}, "1 of 2 processes are too young to be told"),
        ([sidecar("a", trainer("p", 0), YOUNG)], {}, ""),
    ],
)
def test_what_may_still_come(sidecars: list[SidecarRecord], fields: dict[str, Any], says: str) -> None:
    assert find(*sidecars, **fields).incomplete == says


@pytest.mark.parametrize(
    ("world_size", "ranks", "absent"),
    [
        (4, None, [0, 2, 3]),
        (4, {"every": 2}, [0, 2]),
        (4, {"list": [1]}, []),
        (4, {"sample": 2}, []),
        (1_000_000, None, []),
        (0, None, []),
    ],
)
def test_ranks_that_nobody_sees(world_size: int, ranks: dict[str, Any] | None, absent: list[int]) -> None:
    there = [trainer("p", 1, world_size=world_size), trainer("q", 4, world_size=world_size)]
    fields = {"ranks": ranks} if ranks else {}
    assert find(sidecar("a", *there), **fields).absent == absent


def _targets(nodes: list[int]) -> list[RankTarget]:
    return [
        RankTarget(rank=r, rank_source="", sidecar_id=f"s{n}", pod_name="", node_name=f"n{n}", process=pb.Process())
        for r, n in enumerate(nodes)
    ]


@pytest.mark.parametrize(
    ("ranks", "nodes", "expected"),
    [
        (None, [0, 0, 1], [0, 1, 2]),
        (Ranks(list=[2, 0]), [0, 0, 1], [0, 2]),
        (Ranks(every=2), [0] * 5, [0, 2, 4]),
        (Ranks(sample=1), [0, 0, 1, 1], [0]),
        (Ranks(sample=2), [0, 0, 1, 1], [0, 2]),
        (Ranks(sample=3), [0, 0, 1, 1], [0, 1, 2]),
        (Ranks(sample=4), [0, 0, 1, 1, 2, 2, 3, 3], [0, 2, 4, 6]),
        (Ranks(sample=2), [0, 0, 1, 1, 2, 2, 3, 3], [0, 4]),
        (Ranks(sample=99), [0, 0, 1], [0, 1, 2]),
    ],
)
def test_which_ranks(ranks: Ranks | None, nodes: list[int], expected: list[int]) -> None:
    assert [target.rank for target in choose_ranks(ranks, _targets(nodes))[0]] == expected


@given(nodes=st.lists(st.integers(0, 6), min_size=1, max_size=40), sample=st.integers(1, 50))
def test_a_sample_is_spread_evenly_over_nodes(nodes: list[int], sample: int) -> None:
    picked, absent = choose_ranks(Ranks(sample=sample), _targets(nodes))
    assert len(picked) == len({t.rank for t in picked}) == min(sample, len(nodes))
    assert absent == []
    per_node = {n: sum(t.node_name == f"n{n}" for t in picked) for n in set(nodes)}
    for node, count in per_node.items():  # nobody has two more than another that still had some to give
        assert all(count >= other - 1 for other in per_node.values()) or count == nodes.count(node)


class _Recorder(_Up):
    def __init__(self) -> None:
        self.closed: list[str] = []

    def close(self, why: str) -> None:
        self.closed.append(why)


def test_the_registry_keeps_the_newest_stream_and_forgets_the_lost() -> None:
    registry = SidecarRegistry()
    old, new = _Recorder(), _Recorder()
    first = registry.connect(pb.Hello(sidecar_id="s"), old, 1)
    second = registry.connect(pb.Hello(sidecar_id="s", processes=[trainer("p", 0)]), new, 2)
    assert old.closed == ["replaced by a newer stream of the same sidecar"]
    assert not registry.disconnect(first, old, 3)  # the older stream's end says nothing of the newer one
    assert registry.send("s", pb.HubMessage())
    registry.beat(second, pb.Heartbeat(), 4)
    assert registry.list()[0].processes == {}  # what is missing in a heartbeat is gone
    assert registry.disconnect(second, new, 5)
    assert not registry.send("s", pb.HubMessage())
    registry.forget(5)
    assert registry.find("s") is second
    registry.forget(6)
    assert registry.find("s") is None
