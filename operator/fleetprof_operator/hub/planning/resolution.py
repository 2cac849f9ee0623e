"""From a request's target to processes: who is rank 3 right now, and if nobody is, what exactly is missing.

Guarantees: pure; launchers and data-loader workers are never chosen. Ranks come from the agent or the process's
environment (`rank_targets`). For a window in iterations a rank is also who has the agent and says that it is one,
though it has not stepped: there are no targets before it has, nor, for any window, while one imports PyTorch
(`first_steps`). Where a trainer is there, nobody else is waited for.
Where an operator tells the target's pods, a sidecar is chosen by the pod that its token proved, and ranks wait for pods
that do not run yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.clocks import say_clock
from fleetprof_api.hub.oldest_torch import TOO_OLD_ADVICE, find_too_old
from fleetprof_api.request import Ranks, Spec

from fleetprof_operator.hub.planning.first_steps import NO_STEP, find_stepless, is_importing, say_no_rank
from fleetprof_operator.hub.planning.rank_targets import (
    RankTarget,
    find_clash,
    find_clash_of_pods,
    find_newest,
    find_trainers,
    find_unknown,
    number_ranks,
)
from fleetprof_operator.hub.planning.target_pods import Missing, TargetPods, find_missing
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord

SETTLED_NS: Final = 10 * 10**9
"""A process whose role stays unknown for so long is taken for a trainer where no other is there."""
AWAY_NS: Final = 15 * 10**9
"""A sidecar whose stream closed longer ago than this is not waited for: its job has most likely ended."""
MAX_ABSENT: Final = 20_000
"""In a larger job, ranks that nobody sees are named in the conditions only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The ranks that a request names, in rank order; or none, with `reason` and a sentence about what is missing.

    `absent` are ranks that the job has by its world size and that the request means, but that nobody sees.
    `incomplete` says, when set, what may still come (the job's other ranks, a sidecar that reconnects): worth a short
    wait. `others` of the request's ranks are there where `reason` is about ranks that are missing; `final` says that
    nobody waits for what is missing.
    """

    targets: list[RankTarget] = field(default_factory=list)
    absent: list[int] = field(default_factory=list)
    reason: str = ""
    message: str = ""
    incomplete: str = ""
    others: int = 0
    final: bool = False
    deaf_since_unix_ns: int = 0  # trainers are there since then, none of which can be asked
    heard_since_unix_ns: int = 0  # what is missing may come by itself for a while from then on
    starts: bool = False  # the job is there, and none of its ranks yet: they come when it has got so far


def resolve(
    spec: Spec,
    namespace: str,
    sidecars: Sequence[SidecarRecord],
    now_unix_ns: int,
    what: str,
    pods: TargetPods | None = None,
    *,
    without_missing: bool = False,
) -> Resolution:
    """Finds the processes of a request among the sidecars; `what` names the target for people.

    Without `pods` a sidecar belongs to the target when it says so. `without_missing` takes the ranks that are there
    while others are missing.
    """
    found = find_sidecars(spec, namespace, sidecars, what, pods)
    matched, connected, missing = found.matched, found.connected, found.missing
    if found.nobody is not None:
        return found.nobody
    trainers = [t for s in connected for t in find_trainers(s)]
    unknown = [t for s in connected for t in find_unknown(s)]
    in_steps = spec.recorded.iterations is not None
    waiting = [t for t in unknown if t.process.agent_waits and (in_steps or is_importing(t.process))]
    young = 0
    if not trainers and (refused := _refuse_clocks(connected)):
        return refused
    if not trainers and waiting:
        message = say_no_rank(what, [t.process for t in waiting])
        return Resolution(reason=NO_STEP, message=_join(message, missing.message))
    if not trainers:
        asking = [t for t in unknown if t.process.polls_kineto]
        trainers = [t for t in asking if now_unix_ns - t.process.first_seen_unix_ns >= SETTLED_NS]
        young = len(asking) - len(trainers)
    if not trainers and not young and (old := find_too_old(p for s in connected for p in s.processes.values())):
        return _refuse_too_old(old, what, [p for s in connected for p in s.processes.values()])
    if not trainers:
        message = _join(_say_no_trainer(what, connected), missing.message)
        return Resolution(reason="NothingSpeaksKineto", message=message, starts=True)
    ranked = find_newest([t for t in trainers if t.process.HasField("rank")])
    stepping = {t.rank for t in ranked}
    ranked += find_newest([t for t in waiting if t.process.HasField("rank") and t.rank not in stepping])
    targets = number_ranks(ranked, trainers)
    clash = find_clash(trainers, connected) if pods is None else find_clash_of_pods(trainers)
    if clash:
        return Resolution(reason="AmbiguousTarget", message=f"{what} matches {clash}; narrow the target to one of them")
    world_size = max((t.process.world_size for t in targets), default=0)
    away = sum(s.link is None and now_unix_ns - s.lost_unix_ns < AWAY_NS for s in matched)
    incomplete = _say_incomplete(targets, world_size, away, spec.ranks)
    if young:
        incomplete = _join(f"{young} of {young + len(trainers)} processes are too young to be told", incomplete)
    chosen, absent = choose_ranks(spec.ranks, targets)
    if absent:
        message = f"{_name_ranks(absent)} of {what} not there; there are {_name_ranks([t.rank for t in targets])}"
        message = _join(message, missing.message)
        if not (without_missing and chosen):
            youngest = max(t.process.first_seen_unix_ns for t in targets) if max(absent) < world_size else 0
            return Resolution(reason="RanksMissing", message=message, heard_since_unix_ns=youngest, others=len(chosen))
        incomplete = message
    if missing.reason and (incomplete or not world_size) and (spec.ranks is None or spec.ranks.list_ is None):
        incomplete = _join(incomplete, missing.message)
        if missing.pending and not without_missing:
            return Resolution(reason=missing.reason, message=incomplete, others=len(chosen))
    of_chosen = {t.sidecar_id for t in chosen}
    if refused := _refuse_clocks([s for s in connected if s.sidecar_id in of_chosen]):
        return refused
    if old := find_too_old(t.process for t in chosen):
        return _refuse_too_old(old, what, [t.process for t in chosen])
    coming = [t.process for t in chosen if t.process.polls_kineto or is_importing(t.process)]
    if not coming:
        return Resolution(
            reason="NothingSpeaksKineto",
            message=f"{_name_ranks([t.rank for t in chosen])} of {what}: training, but asking for no Kineto configs; "
            "start the job with KINETO_USE_DAEMON=1 and the other variables of `fleetprof run`",
            deaf_since_unix_ns=max(t.process.first_seen_unix_ns for t in chosen),
            heard_since_unix_ns=max(s.connected_unix_ns for s in connected),
        )
    if stepless := find_stepless(coming, spec.recorded):
        return Resolution(reason=NO_STEP, message=_join(stepless, incomplete))
    absent = absent or _find_absent(targets, world_size, spec.ranks)
    return Resolution(targets=chosen, absent=absent, incomplete=incomplete, final=without_missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSidecars:
    """The sidecars of a target: all that are known, those that are connected, and what else is missing.

    `nobody`: what a request waits for where none is connected.
    """

    matched: list[SidecarRecord]
    connected: list[SidecarRecord]
    missing: Missing
    nobody: Resolution | None


def find_sidecars(
    spec: Spec, namespace: str, sidecars: Sequence[SidecarRecord], what: str, pods: TargetPods | None
) -> FoundSidecars:
    """Chooses a request's sidecars: by the pods that are known, else by what they say of themselves."""
    nearby = [s for s in sidecars if s.identity.namespace == namespace]
    matched = [s for s in nearby if (_matches(spec, s.identity) if pods is None else _is_in(s, pods))]
    connected = [s for s in matched if s.link is not None]
    missing = find_missing(pods, {s.identity.pod_uid for s in connected}, what) if pods else Missing()
    nobody = None
    if not connected:
        nobody = Resolution(
            reason=missing.reason or "NothingMatched",
            message=missing.message or _say_nothing_matched(what, namespace, nearby, bool(matched)),
            deaf_since_unix_ns=missing.hopeless_since_unix_ns,
            heard_since_unix_ns=max((s.lost_unix_ns for s in matched), default=0),
        )
    return FoundSidecars(matched=matched, connected=connected, missing=missing, nobody=nobody)


def choose_ranks(ranks: Ranks | None, targets: Sequence[RankTarget]) -> tuple[list[RankTarget], list[int]]:
    """The chosen among all ranks (in rank order), and the listed ranks that are not there.

    A sample takes the same number from every node as far as that goes, and what is left over from nodes spread evenly.
    """
    ordered = sorted(targets, key=lambda t: t.rank)
    if ranks is None:
        return ordered, []
    if ranks.list_ is not None:
        by_rank = {t.rank: t for t in ordered}
        absent = sorted(r for r in ranks.list_ if r not in by_rank)
        return [by_rank[r] for r in sorted(ranks.list_) if r in by_rank], absent
    if ranks.every is not None:
        return [t for t in ordered if t.rank % ranks.every == 0], []
    assert ranks.sample is not None
    nodes: dict[tuple[str, str], list[RankTarget]] = {}
    for target in ordered:
        nodes.setdefault((target.node_name, target.node_name or target.sidecar_id), []).append(target)
    chosen: list[RankTarget] = []
    for place in range(max(map(len, nodes.values()), default=0)):
        row = [node[place] for node in nodes.values() if len(node) > place]
        wanted = min(ranks.sample - len(chosen), len(row))
        chosen += [row[i * len(row) // wanted] for i in range(wanted)]
    return sorted(chosen, key=lambda t: t.rank), []


def _matches(spec: Spec, identity: pb.Identity) -> bool:
    workload = spec.target.workload
    if workload is not None:
        owner = identity.workload
        return (owner.api_version, owner.kind, owner.name) == (workload.api_version, workload.kind, workload.name)
    assert spec.target.selector is not None
    return spec.target.selector.matches(dict(identity.labels))


def _is_in(sidecar: SidecarRecord, target: TargetPods) -> bool:
    pod = target.pods.get(sidecar.identity.pod_uid)
    return pod is not None and not pod.terminating


def _say_nothing_matched(what: str, namespace: str, nearby: Sequence[SidecarRecord], reconnecting: bool) -> str:
    if reconnecting:
        return f"the sidecar of {what} is not connected at the moment; it reconnects by itself when it still runs"
    workloads = sorted({f"{s.identity.workload.kind}/{s.identity.workload.name}" for s in nearby} - {"/"})
    others = f"there are {', '.join(workloads[:5])}" if workloads else f"sidecars connected there: {len(nearby)}"
    return (
        f"no sidecar of {what} is connected in namespace {namespace}; {others}. Is the job running, and with a sidecar?"
    )


def _say_no_trainer(what: str, sidecars: Sequence[SidecarRecord]) -> str:
    processes = [p for s in sidecars for p in s.processes.values()]
    if not processes:
        return (
            f"connected sidecars of {what}: {len(sidecars)}, but no process there asks for Kineto configs: has it "
            "imported torch yet, and with KINETO_USE_DAEMON=1 and KINETO_IPC_SOCKET_DIR set?"
        )
    kinds = [pb.Role.Name(p.role).lower().replace("role_unspecified", "unknown") for p in processes]
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    known = "a training process is known by its rank, or after its first optimizer step"
    return f"no training process of {what} yet: {counted}; {known}"


def _refuse_clocks(sidecars: Sequence[SidecarRecord]) -> Resolution | None:
    """None where all clocks fit: an order's deadlines would be over there, or too far away to be taken."""
    clocks = {say_clock(s.identity.node_name or s.identity.host_name, s.clock_ahead_ns) for s in sidecars} - {""}
    if not clocks:
        return None
    since = max(s.connected_unix_ns for s in sidecars)
    return Resolution(reason="ClocksDiffer", message="; ".join(sorted(clocks)[:5]), deaf_since_unix_ns=since)


def _refuse_too_old(versions: str, what: str, processes: Sequence[pb.Process]) -> Resolution:
    return Resolution(
        reason="NothingSpeaksKineto",
        message=f"PyTorch {versions} of {what} is too old to be captured; {TOO_OLD_ADVICE}",
        deaf_since_unix_ns=max(p.first_seen_unix_ns for p in processes),
    )


def _find_absent(targets: Sequence[RankTarget], world_size: int, ranks: Ranks | None) -> list[int]:
    if (ranks is not None and ranks.every is None) or world_size > MAX_ABSENT:
        return []
    present = {t.rank for t in targets}
    step = ranks.every if ranks is not None and ranks.every is not None else 1
    return [rank for rank in range(0, world_size, step) if rank not in present]


def _say_incomplete(targets: Sequence[RankTarget], world_size: int, away: int, ranks: Ranks | None) -> str:
    if ranks is not None and ranks.list_ is not None:
        return ""
    present = {t.rank for t in targets}
    absent = [rank for rank in range(world_size) if rank not in present]
    if absent:
        return f"{_name_ranks(absent)} of {world_size} not there"
    return f"sidecars not connected at the moment: {away}" if away and not world_size else ""


def _name_ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, sorted(ranks)[:10])) + (f" and {len(ranks) - 10} more" if len(ranks) > 10 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _join(*sentences: str) -> str:
    return "; ".join(sentence for sentence in sentences if sentence)
