"""The checks of `fleetprof doctor` through the hub: who is connected, and which processes can be captured.

Guarantees: pure, but for `ask_hub`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.clocks import say_clock
from fleetprof_api.quantities import duration

from fleetprof_cli.capture.jobs import group_jobs
from fleetprof_cli.doctor.check import Check, Verdict
from fleetprof_cli.durations import say_duration
from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure

_SILENT_NS: Final = 30_000_000_000
_OFFSET_NS: Final = 1_000_000_000
_START_NS: Final = 120_000_000_000  # what importing PyTorch takes at most on a slow disk or a full machine
_SLOW_POLL_NS: Final = 2_000_000_000


async def ask_hub(state: StateDirectory, now_unix_ns: int) -> list[Check]:
    """The hub, its sidecars and their processes."""
    try:
        async with HubClient(state) as hub:
            sidecars = await hub.fleet()
    except Failure as error:
        return [Check("hub", Verdict.FAIL, error.message, error.next_step)]
    record = state.hub()
    assert record is not None
    return [Check("hub", Verdict.OK, f"answers at {record.address}"), *judge_fleet(sidecars, now_unix_ns)]


def judge_fleet(sidecars: Sequence[pb.SidecarStatus], now_unix_ns: int) -> Iterable[Check]:
    """Every sidecar and every job that it sees."""
    if not sidecars:
        yield Check("sidecars", Verdict.WARN, "none is connected", "start a job with: fleetprof run -- COMMAND")
        return
    for sidecar in sidecars:
        yield _judge_sidecar(sidecar, now_unix_ns)
    hosts = len({sidecar.identity.host_name for sidecar in sidecars if sidecar.connected_unix_ns})
    if hosts > 1:
        advice = "captures that start by time and reports compare their clocks: synchronize them (chronyc tracking)"
        yield Check("clocks", Verdict.OK, f"the sidecars run on {hosts} hosts", advice)
    for running in group_jobs(sidecars):
        trainers = running.trainers()
        name = f"job {running.job.name}"
        if obstacle := running.obstacle():
            yield Check(name, Verdict.FAIL, "cannot be captured", obstacle)
            continue
        if not trainers:
            yield _judge_start(name, running.processes, now_unix_ns)
            continue
        yield from _judge_trainers(name, trainers)


def _judge_start(name: str, processes: Sequence[pb.Process], now_unix_ns: int) -> Check:
    """A job without a trainer: it starts, or PyTorch does not come to ask for captures."""
    found = f"{_count(len(processes), 'process', 'processes')}, no training process among them that asks for captures"
    newest = max((process.first_seen_unix_ns for process in processes), default=0)
    if now_unix_ns - newest < _START_NS:
        since = say_duration(now_unix_ns - newest)
        return Check(name, Verdict.WARN, f"{found} yet; the newest began {since} ago", "a capture waits for it")
    return Check(
        name,
        Verdict.FAIL,
        found,
        "has it imported torch yet? is its PyTorch in order (above)? was KINETO_USE_DAEMON removed on the way?",
    )


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _judge_sidecar(sidecar: pb.SidecarStatus, now_unix_ns: int) -> Check:
    identity = sidecar.identity
    name = f"sidecar {identity.pod_name or sidecar.sidecar_id}"
    age = now_unix_ns - sidecar.last_heartbeat_unix_ns
    if not sidecar.connected_unix_ns:
        found = f"left {say_duration(age)} ago"
        advice = "if its job still runs, look at its log: runs/*/sidecar.log in the state directory"
        return Check(name, Verdict.OK, found, advice)
    found = f"{_count(len(sidecar.processes), 'process', 'processes')}, last heard of {say_duration(age)} ago"
    offset = sidecar.clock_ahead_ns
    if clock := say_clock(identity.node_name or identity.host_name, offset):
        return Check(name, Verdict.FAIL, found, clock)
    if abs(offset) > _OFFSET_NS:
        advice = "the clocks of the machines differ: captures that start by time will not line up; run chrony or ntpd"
        where = "ahead" if offset > 0 else "behind"
        return Check(name, Verdict.WARN, f"its clock is {duration(abs(offset))} {where}", advice)
    if age > _SILENT_NS:
        return Check(name, Verdict.WARN, found, "look at its log: runs/*/sidecar.log in the state directory")
    return Check(name, Verdict.OK, found)


def _judge_trainers(name: str, trainers: Sequence[pb.Process]) -> Iterable[Check]:
    agents = sum(process.has_agent or process.agent_waits for process in trainers)
    stepping = sum(process.HasField("step") for process in trainers)
    ranked = sum(process.HasField("rank") for process in trainers)
    asking = "1 training process asks" if len(trainers) == 1 else f"{len(trainers)} training processes ask"
    found = f"{asking} for captures, {agents} with the agent, {stepping} have stepped"
    if agents < len(trainers):
        advice = (
            "without the agent on all ranks captures start by time, and a plain os.fork() child of the others hangs at "
            "sys.exit (docs/limits.md): no PYTHONPATH, python -I, or --no-agent?"
        )
        yield Check(name, Verdict.WARN, found, advice)
    elif stepping < len(trainers):
        yield Check(
            name, Verdict.WARN, found, "a capture of iterations waits for the first optimizer steps of all ranks"
        )
    else:
        yield Check(name, Verdict.OK, found)
    if ranked < len(trainers):
        advice = "ranks are numbered by the hub; set RANK, or use a launcher that does"
        silent = len(trainers) - ranked
        rank = (
            "1 training process does not tell its rank"
            if silent == 1
            else f"{silent} training processes do not tell their ranks"
        )
        yield Check(name, Verdict.WARN, rank, advice)
    slowest = max(process.poll_interval_ns for process in trainers)
    if slowest > _SLOW_POLL_NS:
        advice = "each start waits for the slowest poll; unset KINETO_CONFIG to have it at 1 s"
        yield Check(name, Verdict.WARN, f"polls every {duration(slowest)}", advice)
    busy = [str(process.pid) for process in trainers if process.busy]
    if busy:
        yield Check(name, Verdict.OK, f"{_count(len(busy), 'process is', 'processes are')} being profiled now")
