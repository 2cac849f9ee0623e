"""The line of code in which a late rank is, and what the report says of it."""

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.rank.communication.extraction import encode_within
from fleetprof_analyzer.rank.communication.operations import RankOperations, decode, encode
from fleetprof_analyzer.rank.host.by_iteration import ThreadTimes, find_late_place, sum_up
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_analyzer.words.straggler_list import list_stragglers
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import Silence, Stages, StageTime
from fleetprof_api.report.stragglers import Straggler, Stragglers
from harness.traces.planted.faults import draw, operations_of
from harness.traces.planted.loop import US
from harness.traces.planted.shapes import JobShape
from harness.traces.straggler_sections import stragglers_of
from harness.traces.thread_samples import MAIN, READ, looks, track_of

SPANS = [(n * 10_000 * US, (n + 1) * 10_000 * US) for n in range(20)]
BACKWARD, FETCH = ("t.py", "main", 12), ("t.py", "fetch", 50)
STACKS = [[MAIN], [READ, MAIN], [BACKWARD], [FETCH, MAIN]]


def times_of(*phases: tuple[int, int, int], iterations: range = range(20)) -> ThreadTimes:
    """The same in each of the iterations; in the others the thread waits in `backward`."""
    samples = []
    for number in range(20):
        here = phases if number in iterations else ((0, 10_000, 2),)
        samples += looks(*((10_000 * number + a, 10_000 * number + b, stack) for a, b, stack in here))
    return sum_up(track_of(STACKS, *samples), SPANS)


USUAL = times_of((0, 1_000, 0), (1_000, 2_000, 3), (2_000, 10_000, 2))
NEVER = ThreadTimes()


@pytest.mark.parametrize(
    ("mine", "peers", "late_us", "place"),
    [
        (times_of((0, 6_000, 1), (6_000, 10_000, 2)), [USUAL] * 3, 6_000, READ),
        (times_of((0, 6_000, 3), (6_000, 10_000, 2)), [USUAL], 5_000, FETCH),  # more of what all do
        (times_of((0, 6_000, 1), (6_000, 10_000, 2)), [NEVER, USUAL], 6_000, READ),
        (times_of((0, 6_000, 1), (6_000, 10_000, 2)), [NEVER], 6_000, None),
        (NEVER, [USUAL], 6_000, None),
        (USUAL, [USUAL], 6_000, None),
        (times_of((0, 200, 1), (200, 1_000, 0), (1_000, 2_000, 3), (2_000, 10_000, 2)), [USUAL], 6_000, None),
    ],
    ids=["its own", "more of it", "one peer", "no peer", "no samples", "the same", "too little"],
)
def test_a_late_rank_is_where_its_peers_are_not(
    mine: ThreadTimes, peers: list[ThreadTimes], late_us: int, place: Any
) -> None:
    found = find_late_place(mine, peers, [range(20)] * (1 + len(peers)), late_us * US)
    assert (None if found is None else (found.file, found.function, found.line)) == place
    if found is not None:
        assert 0 < found.samples <= found.of_samples == 20 * 100


def test_only_late_iterations_count() -> None:
    mine = times_of((0, 6_000, 1), (6_000, 10_000, 2), iterations=range(4))
    late = find_late_place(mine, [USUAL], [range(4), range(4)], 6_000 * US)
    assert late is not None
    assert (late.function, late.samples, late.of_samples) == ("read_batch", 4 * 60, 400)
    assert find_late_place(mine, [USUAL], [range(8, 20), range(8, 20)], 9_000 * US) is None
    assert find_late_place(mine, [USUAL], [[], []], 6_000 * US) is None


def test_samples_are_bounded_in_a_summary() -> None:
    stacks = [[(f"{'f' * 190}{n}.py", "f", n)] for n in range(600)]
    samples = [(100 * n, n) for n in range(600)]
    times = sum_up(track_of(stacks, *samples), [(0, 60_000 * US)])
    assert len(times.places) == 300
    assert {place for chain in times.chains for place in chain} == set(range(300))


def late_job(thread: bool = True) -> list[RankOperations]:
    """Four ranks, of which one has a slow host; each with its samples."""
    case, traces, job = draw("slow_host", 11, (JobShape(dp=4, layers=3),))
    operations = operations_of(job, traces)
    if not thread:
        return operations
    given = []
    for one in operations:
        rows = [
            (position, chain, 10, 10 * US * (4000 if chain == (one.rank in case.culprits) else 1))
            for position in range(len(one.iterations))
            for chain in (0, 1)
        ]
        given.append(replace(one, thread=ThreadTimes([MAIN, READ], [[0], [0, 1]], rows)))
    return given


def test_operations_carry_them_and_those_of_before_have_none() -> None:
    for one in late_job():
        assert decode(encode(one)).thread == one.thread
    bare = late_job(thread=False)[0]
    assert decode(encode(bare)).thread == ThreadTimes()


def test_lines_of_code_never_drive_the_operations_out_of_a_summary() -> None:
    one = late_job()[0]
    whole, bare = len(encode(one)), len(encode(replace(one, thread=ThreadTimes())))
    for most, length in ((whole, whole), (whole - 1, bare), (bare, bare), (bare - 1, whole)):
        assert len(encode_within(one, most)) == length


def test_a_straggler_has_the_line_of_code_and_says_it() -> None:
    found = stragglers_of(late_job())
    assert found is not None
    (one,) = found.ranks
    assert one.cause == "host"
    assert one.place is not None
    assert (one.place.file, one.place.function, one.place.line) == READ
    assert any("host code (t.py:41 read_batch)" in line for line in list_stragglers(found, 120))
    bare = stragglers_of(late_job(thread=False))
    assert bare is not None
    assert bare.ranks[0].place is None


@pytest.mark.attack
@pytest.mark.parametrize(
    ("file", "function", "shown"),
    [
        ("/a/train.py", "read_batch", "train.py:41 read_batch"),
        ("/a/train.py", "<module>", "train.py:41"),
        ("/a/mine/__init__.py", "f", "mine/__init__.py:41 f"),
        ("C:\\a\\train.py", "f", "train.py:41 f"),
        ("/a/\x1b[31m<script>x.py", "f\nforged", "�[31m<script>x.py:41 f�forged"),
        ("x" * 200, "f", "x" * 99 + "…"),
    ],
)
def test_a_line_is_one_line_whatever_the_job_calls_its_code(file: str, function: str, shown: str) -> None:
    place = PlaceInCode(file=file, line=41, function=function, samples=3, of_samples=4)
    stages = Stages(
        stages=[StageTime(stage="host", time_ns=3)],
        silences=[Silence(after="aten::item", before="aten::randn", time_ns=3, count=1, place=place)],
    )
    late = Straggler(rank=1, lateness_ns=5, cause="host", gain=0.1, place=place)
    report = Report(
        ranks=[Rank(rank=0, source="t", kind="cpu", time_basis="host", time_ns=TimeBreakdown(), stages=stages)],
        stragglers=Stragglers(verdict="straggler", reason="the others wait", ranks=[late]),
    )
    text, page = re.sub(r"\s+", " ", render_text(report, width=400)), render_page(report)
    assert f"between aten::item and aten::randn ({shown})" in text
    assert f"host code ({shown})" in text
    assert f"({shown})" in html.unescape(page.partition("<script")[0])
    assert "<script>x" not in page
    assert [line for line in render_text(report, width=80).splitlines() if line.startswith("forged")] == []
