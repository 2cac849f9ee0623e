"""The client of a profiler and the agent that are the two ends of one process.

Guarantees: pure; two ends are joined only if the kernel says the same of both and no other end fits; a name alone
proves nothing.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

from fleetprof_sidecar.processes.records import AgentClient, ProcessRecord, ProfilerClient, is_same_process


def find_agent_for(
    name: str, client: ProfilerClient, processes: Iterable[ProcessRecord]
) -> tuple[ProcessRecord | None, list[ProcessRecord]]:
    """The record whose agent is the process of this new client; beside it the impostors where there is none.

    Impostors took this client's name without being its process.
    """
    waiting = [(p, p.agent) for p in processes if p.client is None and p.agent is not None]
    named = [(process, agent) for process, agent in waiting if agent.hello.kineto == name]
    unnamed = [(process, agent) for process, agent in waiting if not agent.hello.kineto]
    for candidates in (named, unnamed):
        same = [process for process, agent in candidates if is_same_process(client, agent)]
        if len(same) == 1:
            return same[0], []
    return None, [process for process, _ in named]


def find_client_for(agent: AgentClient, processes: Iterable[ProcessRecord]) -> ProcessRecord | None:
    """The record whose client is the process of this new agent."""
    free = [(p, p.client) for p in processes if p.client is not None and p.agent is None]
    same = [(process, client) for process, client in free if is_same_process(client, agent)]
    if agent.hello.kineto:
        same = [pair for pair in same if PurePosixPath(pair[1].address).name == agent.hello.kineto]
    return same[0][0] if len(same) == 1 else None
