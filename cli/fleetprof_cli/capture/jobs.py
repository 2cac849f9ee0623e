"""The jobs that sidecars report: which there are, and which one a name on the command line means.

Guarantees: pure; a job whose sidecars have all left is none any more; a choice that cannot be made is refused with the
list of what there is.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.clocks import say_clock
from fleetprof_api.hub.oldest_torch import TOO_OLD_ADVICE, find_too_old

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure


class NoSuchJob(Failure):
    """No job that runs is the one that is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetWorkload:
    """A workload, as sidecars name it, that a request can have as its target."""

    api_version: str
    kind: str
    name: str
    namespace: str

    def target(self) -> dict[str, Any]:
        """The workload as a request's `spec.target`."""
        return {"workload": {"apiVersion": self.api_version, "kind": self.kind, "name": self.name}}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job with the processes that its sidecars see."""

    job: TargetWorkload
    hosts: tuple[str, ...]
    processes: tuple[pb.Process, ...]
    namesakes: tuple[str, ...] = ()
    """Where two jobs or more have this name: how to tell them apart. Empty for one."""
    clocks: tuple[str, ...] = ()
    """The hosts whose clocks do not fit the hub's, a sentence each."""

    def trainers(self) -> list[pb.Process]:
        """The processes that can be captured: they speak Kineto and are not launchers or workers."""
        return [
            process
            for process in self.processes
            if process.polls_kineto and process.role in (pb.TRAINER, pb.ROLE_UNSPECIFIED)
        ]

    def obstacle(self) -> str:
        """The obstacle to its capture, with the next step; empty where a process can be, or may come."""
        if self.clocks:
            return "; ".join(self.clocks)
        old = "" if self.trainers() else find_too_old(self.processes)
        return f"PyTorch {old} is too old: {TOO_OLD_ADVICE}" if old else ""

    def document(self) -> dict[str, Any]:
        """Its item in `list -o json`."""
        return {
            "api_version": self.job.api_version,
            "kind": self.job.kind,
            "name": self.job.name,
            "namespace": self.job.namespace,
            "hosts": list(self.hosts),
            "namesakes": list(self.namesakes),
            "ranks": sorted(process.rank for process in self.trainers() if process.HasField("rank")),
            "processes": [
                {
                    "pid": process.pid,
                    "role": pb.Role.Name(process.role),
                    "rank": process.rank if process.HasField("rank") else None,
                    "polls_kineto": process.polls_kineto,
                    "has_agent": process.has_agent,
                    "busy": process.busy,
                    "step": process.step.step if process.HasField("step") else None,
                    "iteration_ns": process.step.iteration_ns if process.HasField("step") else None,
                    "torch_version": process.torch_version,
                    "device_kind": process.device_kind,
                    "device_name": process.device_name,
                }
                for process in self.processes
            ],
        }


def group_jobs(sidecars: Iterable[pb.SidecarStatus]) -> list[RunningJob]:
    """Connected sidecars by the workload they belong to, sorted by namespace and name."""
    members: dict[tuple[str, str, str, str], list[pb.SidecarStatus]] = {}
    for sidecar in sidecars:
        identity = sidecar.identity
        key = (identity.namespace, identity.workload.name, identity.workload.kind, identity.workload.api_version)
        if identity.workload.name and sidecar.connected_unix_ns:
            members.setdefault(key, []).append(sidecar)
    return [
        RunningJob(
            job=TargetWorkload(namespace=namespace, name=name, kind=kind, api_version=api_version),
            hosts=tuple(sorted({sidecar.identity.node_name or sidecar.identity.host_name for sidecar in group})),
            processes=tuple(process for sidecar in group for process in sidecar.processes),
            namesakes=_tell_apart(group),
            clocks=tuple(sorted({say_clock(_host(s), s.clock_ahead_ns) for s in group} - {""})),
        )
        for (namespace, name, kind, api_version), group in sorted(members.items())
    ]


def _host(sidecar: pb.SidecarStatus) -> str:
    return sidecar.identity.node_name or sidecar.identity.host_name


def _tell_apart(group: list[pb.SidecarStatus]) -> tuple[str, ...]:
    """Two sidecars of one job never see the same rank: those that do are of several jobs, each with its own words."""
    jobs: list[tuple[set[int], list[pb.SidecarStatus]]] = []
    for sidecar in sorted(group, key=lambda one: one.connected_unix_ns):
        ranks = {process.rank for process in sidecar.processes if process.HasField("rank")}
        fitting = next((job for job in jobs if not job[0] & ranks), None)
        if fitting is None:
            jobs.append((set(ranks), [sidecar]))
        else:
            fitting[0].update(ranks)
            fitting[1].append(sidecar)
    return tuple(_describe(sidecars) for _, sidecars in jobs) if len(jobs) > 1 else ()


def _describe(sidecars: list[pb.SidecarStatus]) -> str:
    hosts = sorted({one.identity.node_name or one.identity.host_name for one in sidecars})
    since = min(one.connected_unix_ns for one in sidecars)
    pids = [process.pid for one in sidecars for process in one.processes if process.HasField("rank")]
    clock = time.strftime("%H:%M:%S", time.localtime(since / 1e9))
    return f"on {', '.join(hosts[:3])} since {clock}, pid {min(pids, default=0)} and others"


def choose_job(jobs: list[RunningJob], name: str | None, namespace: str | None) -> RunningJob:
    """The job that is meant; the only one when none is named. Raises NoSuchJob or Failure with what there is."""
    wanted = [
        running
        for running in jobs
        if name in (None, running.job.name, f"{running.job.kind}/{running.job.name}")
        and namespace in (None, running.job.namespace)
    ]
    if len(wanted) == 1:
        if wanted[0].namesakes:
            raise Failure(
                f"{len(wanted[0].namesakes)} jobs are named {wanted[0].job.name}: {'; '.join(wanted[0].namesakes)}",
                next_step="start one of them under another name: fleetprof run --name NAME -- COMMAND",
                code=ExitCode.REFUSED,
            )
        return wanted[0]
    there = ", ".join(f"{running.job.name} (namespace {running.job.namespace})" for running in wanted or jobs)
    if not jobs:
        raise NoSuchJob(
            f"no job {name} is running" if name else "no job that can be captured is running",
            next_step="start yours with: fleetprof run -- COMMAND",
            code=ExitCode.REFUSED,
        )
    if not wanted:
        raise NoSuchJob(
            " ".join(["no job", *([name] if name else []), "is running"])
            + (f" in namespace {namespace}" if namespace else ""),
            next_step=f"there are: {there}",
            code=ExitCode.REFUSED,
        )
    raise Failure(
        "several jobs are running" if name is None else f"several jobs are named {name}",
        next_step=f"name one: fleetprof capture JOB [--namespace NAME]; there are: {there}",
        code=ExitCode.REFUSED if name else ExitCode.INVALID,
    )
