"""The page, the terminal and report.json say the same of one report."""

import json
import re

import msgspec
import pytest
from fleetprof_analyzer.job.stragglers.judgement.judgement import Judgement
from fleetprof_analyzer.job.stragglers.judgement.reasons import LateRanks, Nobody, Reason, TooNoisy, Unsure
from fleetprof_analyzer.slices.writer import encode_slice
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_analyzer.words.stragglers import say_stragglers
from fleetprof_api.report.report import Report, TimeBreakdown, read_report, write_report
from fleetprof_api.report.stragglers import LateHost, Stragglers, Undecided
from harness.reference.written_reports import LOADING, MS, job

NOBODY = re.compile("nobody is late|no rank is late|no rank stands out", re.IGNORECASE)
MAYBE = Undecided(rank=2, gain=0.08, gain_low=-0.01, gain_high=0.17, iterations=10, iterations_needed=38)
ITERATIONS = list(range(10))


GPU_7 = LateHost(name="gpu-07", ranks=[8, 9], captured=2, others=3, cause="data_loading", gain_alone=0.31)
ON_GPU_7 = [msgspec.structs.replace(LOADING, rank=rank, host="gpu-07") for rank in (8, 9)]


def found(reason: Reason, section: Stragglers) -> Stragglers:
    return say_stragglers(Judgement(msgspec.structs.replace(section, iterations=ITERATIONS), reason))


VERDICTS = {
    "named": (
        found(LateRanks([2], 3), Stragglers(verdict="straggler", ranks=[LOADING], gain=0.31)),
        "The others wait for rank 2",
    ),
    "a late host": (
        found(LateRanks([8, 9], 3), Stragglers(verdict="straggler", ranks=ON_GPU_7, hosts=[GPU_7], gain=0.31)),
        "The others wait for the node gpu-07 (ranks 8 and 9)",
    ),
    "nobody": (
        found(Nobody([], floor=0.02), Stragglers(verdict="nobody", smallest_gain=0.02)),
        "No rank is late by more than 2.0 % of an iteration",
    ),
    "undecided": (
        found(Unsure(MAYBE), Stragglers(verdict="undecided", candidate=MAYBE, order=[LOADING], smallest_gain=0.2)),
        "Cannot tell yet: the potential saving of rank 2 is 8.0 % [-1.0 %, 17.0 %] of each iteration; about 40 "
        "iterations would decide",
    ),
    "undecided, without a candidate": (
        found(TooNoisy(10), Stragglers(verdict="undecided", order=[LOADING], smallest_gain=0.8)),
        "Cannot tell yet: these 10 iterations are too few or too noisy",
    ),
}


def say_everywhere(report: Report) -> dict[str, str]:
    """The whole text of each place, with single spaces."""
    stored = read_report(write_report(report))
    section = json.loads(encode_slice(stored, "stragglers"))
    texts = {
        "page, section": section["sentence"],
        "page, whole": "".join(encode_slice(stored, name).decode() for name in ("overview", "stragglers")),
        "terminal": render_text(report, 400),
        "report.json": write_report(report).decode(),
    }
    return {place: " ".join(text.split()) for place, text in texts.items()}


@pytest.mark.parametrize("kind", VERDICTS)
def test_each_place_says_the_verdict(kind: str) -> None:
    section, sentence = VERDICTS[kind]
    texts = say_everywhere(job(section))
    for place in ("page, section", "page, whole", "terminal"):
        assert sentence in texts[place], place
    assert f'"reason": "{section.reason}"' in texts["report.json"]
    says_nobody = {place for place, text in texts.items() if NOBODY.search(text)}
    assert says_nobody == (set(texts) if kind == "nobody" else set())


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_each_place_gives_the_same_shares_of_the_time(kind: str) -> None:
    time = TimeBreakdown(
        span=1000 * MS, compute=213 * MS, overlapped_communication=110 * MS, exposed_communication=479 * MS,
        idle=308 * MS,
    )  # fmt: skip
    report = job(VERDICTS["nobody"][0], time, kind="gpu" if kind == "gpu" else "cpu", idle_ns=None)
    texts = say_everywhere(report)
    of_parts = re.search(
        r"compute (21\.3) %.*?(11\.0) %.*?exposed communication (47\.9) %.*?idle (30\.8) %", texts["terminal"]
    )
    assert of_parts is not None
    compute, _beside, *others = map(float, of_parts.groups())
    assert compute + sum(others) == pytest.approx(100)
    assert '"compute": 213000000, "overlapped_communication": 110000000' in texts["report.json"]
    assert '"compute":213000000,"overlapped_communication":110000000' in texts["page, whole"]
