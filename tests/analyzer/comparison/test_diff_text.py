"""A comparison in the terminal: says what was found, never words noise as a change, escapes what comes from traces."""

from typing import Literal

import msgspec
import pytest
from fleetprof_analyzer.assembly.diff import compare
from fleetprof_analyzer.views.terminal.diff import render_diff, say_verdict
from fleetprof_api.report.diff import Diff, Side, UnprofiledChange, Verdict
from fleetprof_api.report.report import RequestInfo
from fleetprof_api.report.stragglers import Straggler, Stragglers
from harness.reference.simulated_reports import simulate

MS = 1_000_000
HOSTILE = "<b>\x1b[31m\u202e" + "x" * 400


def lines_of(diff: Diff, width: int = 110) -> list[str]:
    return render_diff(diff, width).splitlines()


def test_a_regression_is_said_with_its_size_and_where_it_is() -> None:
    late = Stragglers(verdict="straggler", ranks=[Straggler(rank=2, lateness_ns=1, cause="host")], gain=0.2)
    before = msgspec.structs.replace(simulate(1), stragglers=Stragglers(verdict="nobody"))
    after = msgspec.structs.replace(simulate(2, compute=1.1), stragglers=late)
    lines = lines_of(compare(before, after))
    assert lines[0] == "before  simulated 1, 4 ranks, 10 iterations from 100, NVIDIA H100, PyTorch 2.15.0"
    assert lines[3].startswith("Slower: 100 ms → 107 ms")
    assert " per iteration, +7." in lines[3]
    assert "(means of 10 and 10 captured iterations)." in " ".join(lines[3:5])
    rows = {line[2:27].strip(): line for line in lines if line.startswith("  ")}
    assert rows["iteration"].endswith("more")
    assert rows["compute"].endswith("more")
    assert rows["idle"].endswith("]")
    assert "10 × 7.0" in next(line for line in lines if line.endswith("more               gemm"))
    assert "  before: nobody" in lines
    assert "  after: the others wait for rank 2 (host code), potential saving 20.0 % of an iteration" in lines


def test_noise_is_never_worded_as_a_change() -> None:
    text = render_diff(compare(simulate(1), simulate(2)))
    assert "Cannot tell yet: " in text or "No change: " in text
    assert [line for line in text.splitlines() if line.endswith(("more", "less"))] == []
    assert "Slower" not in text
    assert "Faster" not in text


def unprofiled(after: int, reach: int, verdict: Verdict) -> Diff:
    side = Side(title="", ranks=4, iterations=0)
    change = UnprofiledChange(
        before_ns=100 * MS, after_ns=after * MS, before_iterations=40, after_iterations=60,
        difference_ns=(after - 100) * MS, low_ns=(after - 100 - reach) * MS, high_ns=(after - 100 + reach) * MS,
        verdict=verdict,
    )  # fmt: skip
    words: dict[str, Literal["slower", "faster", "not_shown"]] = {
        "more": "slower",
        "less": "faster",
        "not_shown": "not_shown",
    }
    return Diff(
        comparable=True, before=side, after=side, verdict=words[verdict], unprofiled=change, minimum_effect=0.02
    )


HOW = "(medians of 40 and 60 iterations without the profiler)."
CHANGES = [
    (unprofiled(110, 3, "more"), f"Slower: 100 ms → 110 ms per iteration, +10.0 % [+7.0 %, +13.0 %] {HOW}"),
    (unprofiled(90, 3, "less"), f"Faster: 100 ms → 90.0 ms per iteration, -10.0 % [-13.0 %, -7.0 %] {HOW}"),
    (unprofiled(100, 1, "not_shown"), f"No change: 100 ms → 100 ms per iteration, +0.0 % [-1.0 %, +1.0 %] {HOW}"),
    (
        unprofiled(155, 80, "not_shown"),
        "Cannot tell yet: 100 ms → 155 ms per iteration, +55.0 % [-25.0 %, +135.0 %], may be noise; "
        f"about 85 iterations on each side would decide {HOW}",
    ),
    (
        unprofiled(101, 4, "not_shown"),
        "Cannot tell yet: 100 ms → 101 ms per iteration, +1.0 % [-3.0 %, +5.0 %], may be noise; "
        f"about 160 iterations on each side would decide {HOW}",
    ),
]


@pytest.mark.parametrize(("diff", "words"), CHANGES)
def test_what_the_comparison_came_to(diff: Diff, words: str) -> None:
    assert say_verdict(diff) == words


def test_what_cannot_be_compared_is_said_and_nothing_else() -> None:
    lines = lines_of(compare(simulate(1), simulate(2, world_size=8)))
    assert lines[3:] == ["These two cannot be compared:", "  the size of the job differs: 4 before, 8 after"]


def test_too_few_iterations_give_no_verdict() -> None:
    text = render_diff(compare(simulate(1, iterations=2), simulate(2, iterations=2, compute=2)))
    assert "No verdict: " in text
    assert "at least 4 are needed" in text


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_hostile_names_stay_within_the_terminal(width: int) -> None:
    before, after = simulate(1, device_name=HOSTILE), simulate(2, device_name=HOSTILE, compute=1.5, exposed=2)
    kernels = [msgspec.structs.replace(kernel, name=HOSTILE) for kernel in after.kernels[:1]]
    collectives = [msgspec.structs.replace(row, kind=HOSTILE, group=HOSTILE) for row in after.communication]
    request = RequestInfo(uid=HOSTILE, target=HOSTILE)
    after = msgspec.structs.replace(after, title=HOSTILE, kernels=kernels, communication=collectives, request=request)
    text = render_diff(compare(before, after), width)
    assert max(len(line) for line in text.splitlines()) <= max(width, 60)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_comparison_without_anything_is_words_too() -> None:
    side = Side(title="", ranks=0, iterations=0)
    assert "No verdict" in render_diff(Diff(comparable=True, before=side, after=side))
