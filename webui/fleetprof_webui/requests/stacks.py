"""The stacks of a request, as a page shows them.

Guarantees: bounded, however many ranks and threads there are: the groups are the largest and those that the verdict
names; what cannot be read is said.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from fleetprof_analyzer.stalls.ranks import is_library
from fleetprof_api import keys
from fleetprof_api.report.report import UnreadableReport
from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import ProcessStacks, UnreadableStacks
from fleetprof_api.stalls import StackGroup, StacksSample, read_job_stacks
from fleetprof_store.base import NotFound, Store

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.stacks import OtherThread, RankGroup, StackFrame, StacksLook, StacksPage
from fleetprof_webui.problems import not_found
from fleetprof_webui.reports.reading import MOST_BYTES, read_limited

MOST_GROUPS: Final = 100
MOST_RANKS: Final = 64
_MOST_FRAMES: Final = 100
_MOST_THREADS: Final = 32


def read_stacks_page(store: Store, namespace: str, uid: str) -> StacksPage:
    """All looks of a request. Raises RequestRefused where the store has none that can be read, StoreError."""
    try:
        stacks = read_job_stacks(read_limited(store, keys.stacks_key(namespace, uid), MOST_BYTES))
    except (NotFound, UnreadableReport, UnreadableStacks):
        raise not_found("stacks") from None
    return StacksPage(looks=[_describe_look(sample) for sample in stacks.samples])


def _describe_look(sample: StacksSample) -> StacksLook:
    verdict, by_rank = sample.verdict, {process.rank: process for process in sample.processes}
    named = set(verdict.ranks)
    # The smallest first: whoever is alone is looked for.
    groups = sorted(verdict.groups, key=lambda group: (named.isdisjoint(group.ranks), len(group.ranks), group.ranks))
    return StacksLook(
        at_unix_ns=unix_ns(sample.at_unix_ns),
        cause=verdict.cause,
        sentence=verdict.sentence,
        advice=verdict.advice,
        may_go_on=verdict.may_go_on,
        stands_ns=verdict.stands_ns,
        groups=[_describe_group(group, by_rank, named) for group in groups[:MOST_GROUPS]],
        groups_left_out=max(0, len(groups) - MOST_GROUPS),
    )


def _describe_group(group: StackGroup, by_rank: dict[int | None, ProcessStacks], named: set[int]) -> RankGroup:
    first = by_rank.get(group.ranks[0])
    nodes = {process.node: None for rank in group.ranks if (process := by_rank.get(rank)) is not None}
    return RankGroup(
        ranks=list(group.ranks[:MOST_RANKS]),
        rank_count=len(group.ranks),
        nodes=list(nodes)[:MOST_RANKS],
        is_named=not named.isdisjoint(group.ranks),
        state=first.state if first is not None else "",
        frames=_describe_frames(group.frames),
        threads=_describe_threads(first) if first is not None else [],
    )


def _describe_threads(process: ProcessStacks) -> list[OtherThread]:
    others = [thread for thread in process.threads if not thread.is_main][:_MOST_THREADS]
    return [
        OtherThread(
            name=thread.name or str(thread.task),
            frames=_describe_frames(process.places[place] for place in thread.stack[:_MOST_FRAMES]),
        )
        for thread in others
    ]


def _describe_frames(places: Iterable[CodePlace]) -> list[StackFrame]:
    chosen: Sequence[CodePlace] = list(places)[:_MOST_FRAMES]
    return [
        StackFrame(file=place.file, line=place.line, function=place.function, is_own=not is_library(place))
        for place in chosen
    ]
