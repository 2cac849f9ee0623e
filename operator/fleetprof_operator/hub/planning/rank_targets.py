"""Ranks of a job: the processes behind sidecars that are its ranks, and jobs that claim the same ranks.

Guarantees: pure; two live processes that claim one rank (torchrun restarted its workers) resolve to the newer; one rank
has one process; who says no rank is numbered in the order of node, pod and process (RANK_ASSIGNED).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fleetprof_api.hub import hub_pb2 as pb

from fleetprof_operator.hub.planning.first_steps import is_importing
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTarget:
    """One rank, the process that is it, and where that runs; what the plan and the ledger's line are made from."""

    rank: int
    rank_source: str  # name of hub.proto's RankSource
    sidecar_id: str
    pod_name: str
    pod_uid: str = ""
    node_name: str
    process: pb.Process
    labels: Mapping[str, str] = field(default_factory=dict)  # of its pod


def find_trainers(sidecar: SidecarRecord) -> list[RankTarget]:
    """The sidecar's processes that are known to train."""
    return [_target(sidecar, p) for p in sidecar.processes.values() if p.role == pb.TRAINER]


def find_unknown(sidecar: SidecarRecord) -> list[RankTarget]:
    """Its processes of unknown role that ask for orders, or are on their way to it."""
    return [
        _target(sidecar, p)
        for p in sidecar.processes.values()
        if p.role == pb.ROLE_UNSPECIFIED and (p.polls_kineto or is_importing(p))
    ]


def _target(sidecar: SidecarRecord, process: pb.Process) -> RankTarget:
    return RankTarget(
        rank=process.rank if process.HasField("rank") else -1,
        rank_source=pb.RankSource.Name(process.rank_source),
        sidecar_id=sidecar.sidecar_id,
        pod_name=sidecar.identity.pod_name,
        pod_uid=sidecar.identity.pod_uid,
        node_name=sidecar.identity.node_name or sidecar.identity.host_name,
        process=process,
        labels=sidecar.identity.labels,
    )


def _age(target: RankTarget) -> tuple[int, int, str]:
    return target.process.restart_count, target.process.first_seen_unix_ns, target.process.process_id


def find_newest(targets: Sequence[RankTarget]) -> list[RankTarget]:
    """The newest process of each rank."""
    newest: dict[int, RankTarget] = {}
    for target in targets:
        other = newest.get(target.rank)
        if other is None or _age(target) > _age(other):
            newest[target.rank] = target
    return list(newest.values())


def number_ranks(known: list[RankTarget], trainers: Sequence[RankTarget]) -> list[RankTarget]:
    """All in rank order: `known`, and the trainers that say no rank with the numbers that are left."""
    taken = {t.rank for t in known}
    nameless = sorted(
        (t for t in trainers if not t.process.HasField("rank")),
        key=lambda t: (t.node_name, t.pod_name, t.sidecar_id, t.process.local_rank, *_age(t)),
    )
    rank = 0
    numbered = list(known)
    for target in nameless:
        while rank in taken:
            rank += 1
        taken.add(rank)
        numbered.append(replace(target, rank=rank, rank_source="RANK_ASSIGNED"))
    return sorted(numbered, key=lambda t: t.rank)


def find_clash(trainers: Sequence[RankTarget], sidecars: Sequence[SidecarRecord]) -> str:
    """The workloads that claim the same ranks, for people; empty when none do."""
    names = {s.sidecar_id: f"{s.identity.workload.kind}/{s.identity.workload.name}" for s in sidecars}
    owners: dict[int, set[str]] = {}
    for target in trainers:
        if target.process.HasField("rank") and names[target.sidecar_id] != "/":
            owners.setdefault(target.rank, set()).add(names[target.sidecar_id])
    clashing = sorted(set().union(*(o for o in owners.values() if len(o) > 1)))
    return f"{len(clashing)} workloads with the same ranks ({', '.join(clashing[:5])})" if clashing else ""


def find_clash_of_pods(trainers: Sequence[RankTarget]) -> str:
    """Pods that are there at one time and have one rank belong to separate jobs."""
    owners: dict[int, set[str]] = {}
    for target in trainers:
        if target.process.HasField("rank"):
            owners.setdefault(target.rank, set()).add(target.pod_name)
    rank, names = next(((r, sorted(o)) for r, o in sorted(owners.items()) if len(o) > 1), (0, []))
    return f"{len(names)} pods that are each rank {rank} of a job of its own ({', '.join(names[:5])})" if names else ""
