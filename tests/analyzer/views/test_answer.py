"""The answer that a report begins with: report in, sentence out."""

import html

import msgspec
import pytest
from fleetprof_analyzer.findings.registry import find_findings
from fleetprof_analyzer.job.stragglers.judgement.reasons import TooNoisy
from fleetprof_analyzer.page.page import render_page
from fleetprof_analyzer.views.answer.answer import give_answer, keep_sentences
from fleetprof_analyzer.views.answer.headline import describe
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_analyzer.words.verdict_reasons import say_reason
from fleetprof_api.ledger import LedgerEntry, RankState
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Iteration, Problem, Report
from fleetprof_api.report.report_tables import Silence, Stages, StageTime
from fleetprof_api.report.stragglers import Stragglers, Undecided
from harness.reference.written_reports import (
    ASKED,
    BUSY,
    EXPOSED,
    GEMM,
    GPU,
    HERE,
    LOADING,
    MS,
    REDUCED,
    SLOW,
    STAGES,
    job,
    late,
)

IDLE_GPU = (
    "57.0 % of the GPUs' time is idle, most of it (87.7 %) because the host has not launched the next work "
    "yet, mostly between Optimizer.step#SGD.step and aten::randn (train.py:41 read_batch)."
)
ALL_LOAD = Finding(
    kind="data_loading", gain_permille=460, place=HERE, message="The training threads of all ranks wait for the next "
    "batch, most of it between aten::item and aten::to",
)  # fmt: skip
SCATTERED = msgspec.structs.replace(
    STAGES, silences=[msgspec.structs.replace(one, time_ns=9 * MS) for one in STAGES.silences]
)
LATE = Finding(kind="straggler", message="The others wait for rank 2", gain_permille=310, measure="stragglers")
LOADED = Stages(stages=[StageTime(stage="data_loading", time_ns=460), StageTime(stage="backward", time_ns=440),
                        StageTime(stage="forward", time_ns=100)])  # fmt: skip
NOBODY = Stragglers(verdict="nobody", smallest_gain=0.042, iterations=list(range(10)))
NONE_LATE = "No rank is late by more than 4.2 % of an iteration."
CONFUSION = PlaceInCode(file="/me/train.py", line=41, function="Net.confusion", samples=90, of_samples=100)
CONFUSED = Stages(stages=[StageTime(stage="forward", time_ns=800, place=CONFUSION),
                          StageTime(stage="backward", time_ns=200)])  # fmt: skip
MAYBE = Undecided(rank=2, gain=0.08, gain_low=-0.01, gain_high=0.17, iterations=10, iterations_needed=38)

ANSWERS = {
    "a late rank, with its line": (
        job(late(LOADING)),
        "Rank 2 holds the job up: the others wait for its data loading (train.py:41 read_batch). Potential saving: "
        "31.0 % of each iteration, which would take 310 ms on average instead of 450 ms with it as fast as the "
        "others.",
    ),
    "a late rank of two, in a rough replay": (
        job(late(msgspec.structs.replace(SLOW, peers=1), approximate=True)),
        "Rank 5 holds the job up (the slower of two): the others wait for its GPU, which is slower than the others. "
        "Potential saving: 31.0 % of each iteration, which would take about 310 ms on average instead of 450 ms with"
        " it as fast as the others.",
    ),
    "a late rank, and more to be won elsewhere": (
        job(late(LOADING), findings=[ALL_LOAD, LATE]),
        "Rank 2 holds the job up: the others wait for its data loading (train.py:41 read_batch). Potential saving: "
        "31.0 % of each iteration, which would take 310 ms on average instead of 450 ms with it as fast as the "
        "others. Potential saving elsewhere: 46.0 %. The training threads of all ranks wait for the next batch "
        "(train.py:41 read_batch).",
    ),
    "a late rank, and less elsewhere": (
        job(late(LOADING), findings=[LATE, ALL_LOAD]),
        "Rank 2 holds the job up: the others wait for its data loading (train.py:41 read_batch). Potential saving: "
        "31.0 % of each iteration, which would take 310 ms on average instead of 450 ms with it as fast as the "
        "others.",
    ),
    "two late ranks": (
        job(late(LOADING, SLOW)),
        "Ranks 2 and 5 hold the job up: the others wait for them, most for rank 2's data loading (train.py:41 "
        "read_batch). Potential saving: 31.0 % of each iteration, which would take 310 ms on average instead of 450 "
        "ms with them as fast as the others.",
    ),
    "a heavy stage": (
        job(Stragglers(verdict="heavy_stage", ranks=[SLOW, LOADING], gain=0.2)),
        "The pipeline stage of ranks 5 and 2 holds the job up: the others wait for it. Potential saving: 20.0 % of "
        "each iteration, which would take 360 ms on average instead of 450 ms with even stages.",
    ),
    "a stage whose host is slow": (
        job(Stragglers(verdict="heavy_stage", ranks=[msgspec.structs.replace(SLOW, cause="host")], gain=0.2)),
        "The pipeline stage of rank 5 holds the job up: the others wait for its host code. Potential saving: 20.0 % "
        "of each iteration, which would take 360 ms on average instead of 450 ms with it as fast as the others.",
    ),
    "nobody to compare with": (
        job(Stragglers(verdict="nobody", reason="no rank stands out, but …", iterations=[1, 2, 3])),
        f"No rank stands out, but …. {IDLE_GPU}",
    ),
    "a slow link": (
        job(Stragglers(verdict="slow_link", reason="transfers of 2 groups are slow", gain=0.2)),
        "A slow link holds the job up: transfers of 2 groups are slow. Potential saving: 20.0 % of each iteration, "
        "which would take 360 ms on average instead of 450 ms.",
    ),
    "ranks that are slow in turns": (
        job(Stragglers(verdict="moving_imbalance", reason="the ranks are slow in turns", gain=0.2)),
        "No single rank stands out, but the ranks are slow in turns. Potential saving: 20.0 % of each iteration, "
        "which would take 360 ms on average instead of 450 ms.",
    ),
    "noise that hides a candidate": (
        job(Stragglers(verdict="undecided", reason="…", candidate=MAYBE)),
        "Cannot tell yet whether rank 2 is late: its potential saving is 8.0 % [-1.0 %, 17.0 %] of each "
        f"iteration; about 40 iterations would decide. {IDLE_GPU}",
    ),
    "noise wider than an iteration": (
        job(Stragglers(verdict="undecided", reason="…", candidate=msgspec.structs.replace(
            MAYBE, gain_low=-3.9, gain_high=4.5, iterations_needed=900))),
        "Cannot tell yet whether rank 2 is late: its potential saving is anything from nothing to all of each "
        f"iteration; more than the 100 iterations of the longest capture would be needed to decide. {IDLE_GPU}",
    ),
    "noise that hides everything": (
        job(Stragglers(verdict="undecided", smallest_gain=0.8, reason=say_reason(TooNoisy(3)),
                       iterations=[1, 2, 3])),
        f"{IDLE_GPU} Cannot tell yet whether a rank is late: these 3 iterations are too few or too noisy; a rank "
        "with a potential saving below 80.0 % of an iteration may not show in 3 iterations.",
    ),
    "nobody late, the GPU idle": (job(NOBODY), f"{NONE_LATE} {IDLE_GPU}"),
    "nobody late, ranks missing": (
        job(msgspec.structs.replace(NOBODY, not_captured=[4, 5])),
        "None of the 4 ranks in this report is late by more than 4.2 % of an iteration. "
        "Only 4 of the job's 6 ranks are in this report, so nobody can see "
        "whether ranks 4 and 5 are late. "
        + IDLE_GPU,
    ),
    "a late rank in a partial capture": (
        job(late(LOADING), ledger=ASKED),
        "Rank 2 holds the job up: the others wait for its data loading (train.py:41 read_batch). Potential saving: "
        "31.0 % of each iteration, which would take 310 ms on average instead of 450 ms with it as fast as the "
        "others. Only 4 of 6 ranks were captured, so nobody can see whether ranks 4 and 5 are late.",
    ),
    "one rank, busy": (
        job(time_ns=BUSY, ranks=1, kernels=[GEMM]),
        "96.0 % of the GPU's time is computing; the longest kernel, gemm, takes 61.0 %.",
    ),
    "communication": (
        job(NOBODY, EXPOSED, communication=[REDUCED]),
        f"{NONE_LATE} "
        "40.0 % of the GPUs' time is communication that no computation hides, most of it "
        "all-reduce in group dp.",
    ),
    "no GPU": (
        job(NOBODY, EXPOSED, kind="cpu", idle_ns=None),
        f"{NONE_LATE} "
        "40.0 % of the ranks' time goes to collectives and to waiting for other ranks in them. "
        "Of an iteration, 56.0 % is backward and 31.0 % is the host between stages (between Optimizer.step#SGD.step "
        "and aten::randn, train.py:41 read_batch).",
    ),
    "no GPU, and silences here and there": (
        job(NOBODY, BUSY, kind="cpu", idle_ns=None, stages=SCATTERED),
        f"{NONE_LATE} Of an iteration, 56.0 % is backward and 31.0 % is the host between stages.",
    ),
    "no GPU, and a slow loader": (
        job(NOBODY, EXPOSED, kind="cpu", idle_ns=None, findings=[ALL_LOAD], stages=LOADED),
        f"{NONE_LATE} "
        "Of an iteration, 46.0 % is data loading (train.py:41 read_batch) and 44.0 % is backward. "
        "40.0 % of the ranks' time goes to collectives and to waiting for other ranks in them.",
    ),
    "ranks in turns, and more to be won by all": (
        job(Stragglers(verdict="moving_imbalance", cause="data_loading", gain=0.2), findings=[ALL_LOAD, LATE]),
        "The training threads of all ranks wait for the next batch (train.py:41 read_batch). Potential saving there:"
        " 46.0 %. No single rank stands out, but the ranks are slow in turns, because now one rank's batch is late "
        "and now another's. Potential saving: 20.0 % of each iteration, which would take 360 ms on average instead "
        "of 450 ms.",
    ),
    "hosts that are far ahead of their devices": (
        job(late(SLOW), msgspec.structs.replace(GPU, span=10 * 900 * MS)),
        "Rank 5 holds the job up: the others wait for its GPU, which is slower than the others. Potential saving: "
        "31.0 % of each iteration, which would take 621 ms on average instead of 900 ms with it as fast as the "
        "others.",
    ),
    "no GPU, and too few cores": (
        job(NOBODY, BUSY, kind="cpu", idle_ns=None, stages=LOADED, findings=[Finding(
            kind="cpu_contention", measure="ranks.cores.waited_ns", message="…", gain_permille=540)]),
        f"{NONE_LATE} "
        "Of an iteration, 46.0 % is data loading and 44.0 % is backward. The training threads wait for "
        "a core for 54.0 % of the time.",
    ),
    "no GPU, and a line of the user's that holds a stage": (
        job(NOBODY, BUSY, kind="cpu", idle_ns=None, stages=CONFUSED),
        f"{NONE_LATE} Of an iteration, 80.0 % is forward (most of it at train.py:41 Net.confusion) and 20.0 % is "
        "backward.",
    ),
    "ranks that cannot be compared": (
        job(Stragglers(reason="the traces hold a sample of the operations only")),
        f"Cannot tell whether a rank is late: the traces hold a sample of the operations only. {IDLE_GPU}",
    ),
    "a device that nobody knows": (
        job(ranks=1, time_ns=BUSY, kernels=[GEMM], problems=[Problem(kind="unknown_device", message="…")]),
        "The work on a device of a kind that is not known (MTIA, HPU, Glow) is not measured. 96.0 % of the GPU's time "
        "is computing; the longest kernel, gemm, takes 61.0 %.",
    ),
    "nothing captured": (
        Report(ledger=ASKED[4:]),
        "No rank was captured: 2 of 2 failed, rank 4 with ProcessExited.",
    ),
    "nothing at all": (Report(), "No trace could be read."),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_the_answer(case: str) -> None:
    report, sentence = ANSWERS[case]
    assert give_answer(report).sentence == sentence


def test_the_evidence_stands_behind_the_answer_and_repeats_numbers_of_the_report() -> None:
    assert give_answer(job(late(LOADING))).evidence == [
        "Data loading: 200 ms per iteration; 61.0 ms on the other ranks.",
        "72.5 % of 120 samples of its main thread are at train.py:41 read_batch.",
        "The other ranks wait 120 ms for it in each iteration.",
        IDLE_GPU,
    ]


def test_a_silence_that_holds_little_of_the_idle_time_is_not_why_it_is_idle() -> None:
    """Four ranks, half a second idle for the host."""
    for each_ns, is_place in ((70 * MS, True), (60 * MS, False)):
        silence = Silence(after="aten::item", before="aten::to", time_ns=each_ns, count=1, place=HERE)
        sentence = give_answer(job(stages=msgspec.structs.replace(LOADED, silences=[silence]))).sentence
        assert ("mostly between aten::item and aten::to (train.py:41 read_batch)." in sentence) == is_place
        assert sentence.endswith("the next work yet.") != is_place


def test_the_largest_of_many_groups_is_not_most_of_the_communication() -> None:
    others = [msgspec.structs.replace(REDUCED, group=f"tp {number}", total_ns=300 * MS) for number in range(2)]
    sentence = give_answer(job(time_ns=EXPOSED, communication=[REDUCED, *others])).sentence
    assert sentence.endswith("no computation hides, the largest part of it all-reduce in group dp.")


def test_communication_of_an_unknown_kind_is_not_called_other() -> None:
    unknown = job(time_ns=EXPOSED, communication=[msgspec.structs.replace(REDUCED, kind="other", group="")])
    assert give_answer(unknown).sentence.endswith("hides, most of it of a kind that names do not tell.")
    (found,) = [one for one in find_findings(unknown) if one.kind == "exposed_communication"]
    assert found.names == []


def test_one_rank_is_not_spoken_of_as_several() -> None:
    sentence = give_answer(job(None, EXPOSED, kind="cpu", idle_ns=None, ranks=1)).sentence
    assert sentence.startswith("40.0 % of the rank's time goes to collectives")


@pytest.mark.parametrize(("report", "words"), [
    (job(NOBODY, ledger=[*ASKED[:4], LedgerEntry(rank=4, process_id="4", state=RankState.UPLOADED)]),
     "The trace of rank 4 is not in this report (its problems say why): nobody can see whether it is late."),
    (job(NOBODY, ledger=[*ASKED, *(LedgerEntry(rank=n, process_id="p", state=RankState.UPLOADED) for n in (6, 7))]),
     "Only 6 of 8 ranks were captured, so nobody can see whether ranks 4 and 5 are late. The traces of ranks 6 and 7 "
     "are not in this report (its problems say why): nobody can see whether they are late."),
    (job(NOBODY, problems=[Problem(kind="refused", message="…", rank=4)]),
     "The trace of rank 4 is not in this report (its problems say why): nobody can see whether it is late."),
    (job(NOBODY, problems=[Problem(kind="truncated", message="…", rank=3)]), ""),  # it is in the report
])  # fmt: skip
def test_a_trace_that_was_not_read_is_not_a_rank_without_one(report: Report, words: str) -> None:
    ranks = f"None of the {len(report.ranks)} ranks in this report" if words else "No rank"
    late = f"{ranks} is late by more than 4.2 % of an iteration."
    assert give_answer(report).sentence == " ".join(part for part in (late, words, IDLE_GPU) if part)


@pytest.mark.parametrize(("time_ns", "evidence"), [
    (60, "The host runs nothing for 240 ns in all between aten::item and aten::to."),
    (40, "The training threads wait for a core."),  # less than a twentieth of the iterations is no evidence
])  # fmt: skip
def test_only_a_long_silence_is_evidence(time_ns: int, evidence: str) -> None:
    silence = Silence(after="aten::item", before="aten::to", time_ns=time_ns, count=1)
    stages = msgspec.structs.replace(LOADED, silences=[silence])
    waits = Finding(kind="cpu_contention", message="The training threads wait for a core", gain_permille=540)
    report = job(None, EXPOSED, kind="cpu", idle_ns=None, stages=stages, findings=[waits])
    assert give_answer(report).evidence == [evidence]


def test_idle_time_has_its_place_among_the_operators_behind_the_answer() -> None:
    waiting = Finding(
        kind="waiting", message="work that is launched waits, most of it between aten::mm and aten::add",
        names=["aten::mm", "aten::sum"],
    )  # fmt: skip
    bare = job(findings=[waiting], stages=Stages())
    assert give_answer(bare).evidence == [
        "Work that is launched waits, most of it between aten::mm and aten::add: aten::sum."
    ]


def test_what_to_try_is_the_advice_of_what_is_worth_most() -> None:
    first, second = (Finding(kind="waiting", message="…", advice=words) for words in ("this", "that"))
    assert give_answer(job(findings=[first, second])).next_step == "this"
    assert give_answer(job(findings=[])).next_step == ""
    undecided = job(Stragglers(verdict="undecided", candidate=MAYBE), findings=[first])
    assert give_answer(undecided).next_step.startswith("capture more iterations")


def test_what_to_try_helps_the_rank_that_the_sentence_names_first() -> None:
    elsewhere, there = (msgspec.structs.replace(one, advice=words) for one, words in ((ALL_LOAD, "all"), (LATE, "it")))
    assert give_answer(job(late(LOADING), findings=[elsewhere, there])).next_step == "it"
    assert give_answer(job(late(LOADING), findings=[elsewhere, LATE])).next_step == "all"


@pytest.mark.parametrize("case", ANSWERS)
def test_page_and_terminal_begin_with_it(case: str) -> None:
    report, sentence = ANSWERS[case]
    assert describe(report).answer.sentence == sentence
    assert sentence in " ".join(render_text(report).split())
    page = html.unescape(render_page(report).partition("<script")[0])
    assert page.index(sentence[:500]) < page.find("<h2") or "<h2" not in page


@pytest.mark.parametrize(("text", "shown"), [
    ("One is late. It waits for its loader. The trai…", "One is late. It waits for its loader."),
    ("One is late. It waits.", "One is late. It waits."),
    ("One that is lat…", "One that is lat…"),
])  # fmt: skip
def test_an_answer_that_was_cut_ends_with_a_whole_sentence(text: str, shown: str) -> None:
    assert keep_sentences(text) == shown


def test_a_hostile_place_is_shown_plainly() -> None:
    place = PlaceInCode(file="/x/\x1b[31mtrain\n.py" + "y" * 500, line=3, function="<b>.f")
    sentence = give_answer(job(late(msgspec.structs.replace(LOADING, place=place)))).sentence
    assert sentence.isprintable()
    assert len(sentence) < 400


@pytest.mark.parametrize(("lengths_ms", "gain", "then", "now"), [
    ([28] * 8 + [361] * 4, 0.798, "28.1 ms", "139 ms"),  # a checkpoint in every fourth: the median says 28
    ([28] * 4 + [64] * 8, 0.461, "28.0 ms", "52.0 ms"),
])  # fmt: skip
def test_a_gain_is_that_of_the_mean_iteration(lengths_ms: list[int], gain: float, then: str, now: str) -> None:
    report = job(msgspec.structs.replace(late(LOADING), gain=gain), kind="cpu", idle_ns=None)
    iterations = [Iteration(index=at, start_ns=0, duration_ns=length * MS) for at, length in enumerate(lengths_ms)]
    ranks = [msgspec.structs.replace(rank, iterations=iterations) for rank in report.ranks]
    sentence = give_answer(msgspec.structs.replace(report, ranks=ranks)).sentence
    assert f"which would take {then} on average instead of {now} with it" in sentence
