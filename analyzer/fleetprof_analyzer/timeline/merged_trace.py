"""Writes the cut: reads each chosen trace once for what is to be marked, then copies its events.

Guarantees: streams, one trace at a time; nothing is kept of one but its marks; what was left out is counted; the same
input gives the same bytes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import IO, Any, Final

from fleetprof_api import __version__
from fleetprof_api.report.report import Problem, Rank, Report

from fleetprof_analyzer.reading.decompress import read_blocks
from fleetprof_analyzer.reading.event import AS_TEXT
from fleetprof_analyzer.reading.event_stream import EventStream
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.timeline.choice import choose_traces
from fleetprof_analyzer.timeline.document import begin_document, draw_marks, end_document, name_process, name_thread
from fleetprof_analyzer.timeline.events.clocks import Clocks, tie_clocks
from fleetprof_analyzer.timeline.events.copies import Cut, Rewriter
from fleetprof_analyzer.timeline.events.facts import TraceFacts, find_facts
from fleetprof_analyzer.timeline.events.marks import Span
from fleetprof_analyzer.timeline.events.module_marks import choose_module, find_longest
from fleetprof_analyzer.timeline.events.numbering import ArrowIds, Numbers, TimelinePlaces
from fleetprof_analyzer.timeline.events.verdict_marks import mark_findings, mark_straggler
from fleetprof_analyzer.timeline.events.waits import CollectiveWaits
from fleetprof_analyzer.timeline.plan import EVERYTHING, RankShare, choose_origin, extend, place_ranks
from fleetprof_analyzer.timeline.window import CutWindow, NoSuchPart, describe, find_iterations
from fleetprof_analyzer.trace.limits import LimitExceeded, TraceLimits
from fleetprof_analyzer.trace.problems import ProblemKind, Problems

Open = Callable[[], IO[bytes]]
Write = Callable[[bytes], object]
_PER_RANK: Final = 100  # places in Perfetto's order of processes
_MOST_NAME: Final = 80
_MOST_NAMES: Final = 12


@dataclass(frozen=True, slots=True)
class CutRank:
    """One rank of the cut. `offset_ns` was added to its times; `apart`: why its clock is not tied to the others'."""

    rank: int | None
    source: str
    offset_ns: int
    events: int
    apart: str = ""


@dataclass(frozen=True, slots=True)
class MergedTrace:
    """The trace that was written."""

    window: str
    ranks: list[CutRank]
    clocks: str
    problems: list[Problem] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # chosen ranks that are not in it, each with the reason


@dataclass(frozen=True, slots=True)
class Wanted:
    """The cut that is wanted: a window, and ranks; None: those that the report points at."""

    window: CutWindow
    ranks: Sequence[int] | None = None


def write_merged_trace(
    report: Report,
    operations: Sequence[tuple[str, bytes]],
    traces: Mapping[str, Open],
    wanted: Wanted,
    write: Write,
) -> MergedTrace:
    """Writes the cut through `write`.

    `operations` are (source, encoded operations) of all ranks, `traces` opens each trace by its source in the report.
    Raises NoSuchPart before anything is written; OSError and StoreError of the traces.
    """
    entries = choose_traces(report, wanted.ranks, traces)
    iterations = find_iterations(wanted.window, entries, report.ranks)
    clocks = tie_clocks(operations, entries, report.ranks)
    modules = _find_modules(wanted.window, entries, traces) if wanted.window.kind == "module" else {}
    places = place_ranks(wanted.window, iterations, entries, clocks, modules)
    waits = CollectiveWaits(clocks.matched)
    facts: dict[str, TraceFacts] = {}
    placed = {place.entry.source for place in places}
    left_out = [f"{_name(one)}: its trace holds none of it" for one in entries if one.source not in placed]
    for place in places:
        source = place.entry.source
        try:
            with traces[source]() as file:
                trace = read_trace(file, source, Problems())
            facts[source] = find_facts(trace, place.entry, place.span, waits)
        except LimitExceeded as error:
            left_out.append(f"{_name(place.entry)}: {error}")
    places = [place for place in places if place.entry.source in facts]
    if not places:
        raise NoSuchPart("; ".join(left_out))
    if iterations is not None or modules:
        places = extend(places, {source: one.end_ns for source, one in facts.items()})
    made = _Writer(report, clocks, places, facts, describe(wanted.window, iterations), write).run(traces)
    return replace(made, left_out=left_out)


def _find_modules(window: CutWindow, entries: Sequence[Rank], traces: Mapping[str, Open]) -> dict[str, Span]:
    """The part of each trace in which the module runs, by source. Raises NoSuchPart with the modules that there are."""
    found: dict[str, Span] = {}
    names: dict[str, None] = {}
    for entry in entries:
        with suppress(LimitExceeded), traces[entry.source]() as file:
            spans = find_longest(read_trace(file, entry.source, Problems()), backward=window.backward)
            chosen = choose_module(window.module, spans)
            if chosen is not None:
                found[entry.source] = spans[chosen]
            names.update(dict.fromkeys(spans))
    if found:
        return found
    if not names:
        raise NoSuchPart("no module is marked in these traces: capture with --modules")
    there = ", ".join(islice(names, _MOST_NAMES)) + (" …" if len(names) > _MOST_NAMES else "")
    raise NoSuchPart(f"there is no module {window.module!r}, or several end so: there are {there}")


class _Writer:
    """Writes the document."""

    def __init__(
        self,
        report: Report,
        clocks: Clocks,
        places: Sequence[RankShare],
        facts: Mapping[str, TraceFacts],
        window: str,
        write: Write,
    ) -> None:
        self._report, self._clocks, self._facts, self._window, self._write = report, clocks, facts, window, write
        self._places = places
        self._numbers = Numbers()
        self._origin = choose_origin([facts[place.entry.source].first_ns + place.offset_ns for place in places])
        self._names = _name_all([place.entry for place in places])
        self._separator = b""
        self._problems: list[Problem] = []

    def run(self, traces: Mapping[str, Open]) -> MergedTrace:
        self._write(begin_document(self._head()))
        clocks = describe_clocks(self._clocks, self._places)
        self._mark_job(clocks)
        ranks = [self._copy(place, position, traces[place.entry.source]) for position, place in enumerate(self._places)]
        self._write(end_document(self._metadata(ranks, clocks)))
        return MergedTrace(self._window, ranks, clocks, self._problems)

    def _put(self, texts: Iterable[bytes]) -> None:
        for text in texts:
            self._write(self._separator + text)
            self._separator = b",\n"

    def _head(self) -> dict[str, Any]:
        head: dict[str, Any] = {}
        if all(place.entry.time_origin == "unix" for place in self._places):
            head["baseTimeNanoseconds"] = self._origin
        if len(self._places) == 1:
            entry = self._places[0].entry
            world_size = self._facts[entry.source].world_size
            head["distributedInfo"] = {"rank": entry.rank, "world_size": world_size}
        return head

    def _mark_job(self, clocks: str) -> None:
        spans = [self._drawn(place) for place in self._places]
        pairs = list(zip(spans, self._places, strict=True))
        begin = min(span[0] + place.offset_ns for span, place in pairs)
        end = max(span[1] + place.offset_ns for span, place in pairs)
        pid = self._numbers.take()
        self._put(name_process(pid, "fleetprof", f"{self._report.title}: {self._window}", 0))
        marks = mark_findings(self._report, self._window, clocks, (begin, end))
        self._put(draw_marks(marks, self._numbers, pid, -self._origin))

    def _drawn(self, place: RankShare) -> Span:
        """The window on the rank's own clock as it is drawn: of all, what there is."""
        facts = self._facts[place.entry.source]
        return (facts.first_ns, facts.last_ns) if place.span == EVERYTHING else place.span

    def _copy(self, place: RankShare, position: int, opened: Open) -> CutRank:
        entry, facts, problems = place.entry, self._facts[place.entry.source], Problems()
        shift = place.offset_ns - self._origin
        pid = self._numbers.take()
        sort = (position + 1) * _PER_RANK
        self._put(name_process(pid, f"{self._names[entry.source]} analysis", entry.source, sort))
        marks = [*mark_straggler(self._report, entry, self._drawn(place)), *facts.marks]
        self._put(draw_marks(marks, self._numbers, pid, shift))
        cut = Cut(
            (place.span[0] - facts.base_ns, place.span[1] - facts.base_ns), facts.base_ns + shift, facts.long_work
        )
        rewriter = Rewriter(cut, TimelinePlaces(self._numbers), ArrowIds(position, len(self._places)), problems)
        try:
            with opened() as file:
                stream = EventStream(read_blocks(file, problems, TraceLimits()), problems, TraceLimits(), AS_TEXT)
                for texts in stream:
                    self._put(rewriter.rewrite(texts))
        except LimitExceeded as error:
            problems.add(ProblemKind.REFUSED, str(error))
        self._name(place, rewriter, sort)
        self._problems += problems.entries(entry.source, entry.rank)
        return CutRank(entry.rank, entry.source, place.offset_ns, rewriter.kept, place.apart)

    def _name(self, place: RankShare, rewriter: Rewriter, sort: int) -> None:
        """Names for the processes and threads that have events."""
        named = set()
        for pid, tid, text in rewriter.thread_events():
            if pid in rewriter.used:
                self._put([text])
                named.add((pid, tid))
        for (pid, tid), number in rewriter.places.threads.items():
            if (pid, tid) not in named and pid in rewriter.used:
                name = tid if not tid.isdecimal() else f"stream {tid}" if pid in rewriter.devices else f"thread {tid}"
                self._put(name_thread(rewriter.places.process(pid), number, name))
        texts = rewriter.process_texts()
        for order, pid in enumerate(sorted(rewriter.used, key=lambda pid: (pid in rewriter.devices, pid)), 1):
            kind = texts.get((pid, "labels"))
            if not kind:
                kind = f"GPU {pid}" if pid in rewriter.devices else "CPU" if pid.isdecimal() else pid or "other"
            parts = [texts.get((pid, "name")), f"process {pid}", place.entry.host_name]
            labels = ", ".join(part for part in parts if part)
            name, number = f"{self._names[place.entry.source]} {kind}", rewriter.places.process(pid)
            self._put(name_process(number, name, labels, sort + min(order, _PER_RANK - 1)))

    def _metadata(self, ranks: Sequence[CutRank], clocks: str) -> dict[str, Any]:
        return {
            "made_by": f"fleetprof {__version__}",
            "title": self._report.title,
            "window": self._window,
            "clocks": {
                "words": clocks,
                "tied_by": self._clocks.tied_by,
                "residual_median_ns": self._clocks.residual_median_ns,
                "residual_most_ns": self._clocks.residual_most_ns,
            },
            "ranks": ranks,
            "problems": self._problems,
        }


def describe_clocks(clocks: Clocks, places: Sequence[RankShare]) -> str:
    """The agreement of the ranks' clocks, in words."""
    if len(places) == 1:
        return "one rank: nothing to align"
    apart = [place for place in places if place.apart]
    words = ""
    if len(apart) < len(places):
        words = f"aligned by {clocks.tied_by}"
        if clocks.residual_median_ns is not None and clocks.residual_most_ns is not None:
            median, most = clocks.residual_median_ns / 1000, clocks.residual_most_ns / 1000
            words += f"; a rank's end of a collective is {median:g} µs from the ranks' median end, {most:g} µs at most"
    if not apart:
        return words
    which = ", ".join(_name(place.entry) for place in apart[:8]) + (" …" if len(apart) > 8 else "")
    lost = f"not aligned: {which} ({apart[0].apart}); {'their' if len(apart) > 1 else 'its'} times are those of "
    lost += "their own clocks" if len(apart) > 1 else "its own clock"
    return f"{words}; {lost}" if words else lost


def _name(entry: Rank) -> str:
    return f"rank {entry.rank}" if entry.rank is not None else entry.source[-_MOST_NAME:]


def _name_all(entries: Sequence[Rank]) -> dict[str, str]:
    """Names by source; where traces claim one rank, with the source."""
    count = Counter(_name(entry) for entry in entries)
    return {
        entry.source: _name(entry) if count[_name(entry)] == 1 else f"{_name(entry)} ({entry.source[-_MOST_NAME:]})"
        for entry in entries
    }
