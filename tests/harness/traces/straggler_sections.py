"""The section `stragglers` as a report has it: the verdict over operations, with its sentences."""

from collections.abc import Iterable, Mapping, Sequence

from fleetprof_analyzer.job.stragglers.hosts import add_hosts
from fleetprof_analyzer.job.stragglers.verdict import find_stragglers, judge_summaries
from fleetprof_analyzer.rank.communication.extraction import extract_operations
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_analyzer.words.stragglers import say_stragglers
from fleetprof_api.report.stragglers import Stragglers


def stragglers_of(
    operations: Sequence[RankOperations], delivered: Sequence[int | None] = (), hosts: Mapping[int, str] | None = None
) -> Stragglers | None:
    """The verdict over operations of all ranks."""
    found = find_stragglers(operations, delivered, hosts)
    return None if found is None else say_stragglers(add_hosts(found, hosts or {}))


def operations_of_traces(traces: Iterable[Trace] | Mapping[int, Trace]) -> list[RankOperations]:
    """The operations of the traces by rank, or of all ranks, rank 0's first; each has operations."""
    operations = []
    for rank, trace in traces.items() if isinstance(traces, Mapping) else enumerate(traces):
        iterations = find_iterations(trace, None, RecordingTerms(), Problems())
        one = extract_operations(trace, iterations, None, rank_number=rank)
        assert one is not None
        operations.append(one)
    return operations


def stragglers_of_traces(traces: Iterable[Trace] | Mapping[int, Trace]) -> Stragglers:
    """The verdict over the traces by rank, or of all ranks, rank 0's first; each has operations."""
    found = stragglers_of(operations_of_traces(traces))
    assert found is not None
    return found


def stragglers_of_summaries(summaries: Sequence[tuple[int | None, bytes, int]]) -> Stragglers | None:
    """The verdict over encoded operations, as summaries have them."""
    found = judge_summaries(summaries)
    return None if found is None else say_stragglers(found)
