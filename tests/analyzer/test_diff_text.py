"""A comparison in the terminal: says what was found, never words noise as a change, escapes what comes from traces."""

import msgspec
import pytest
from fleetprof_analyzer.comparison.comparing import compare
from fleetprof_analyzer.views.diff_text import render_diff
from fleetprof_api.diff import Diff, Side
from fleetprof_api.report import RequestInfo
from fleetprof_api.stragglers import Straggler, Stragglers
from simulated_reports import simulate

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
    rows = {line[2:27].strip(): line for line in lines if line.startswith("  ")}
    assert rows["iteration"].endswith("more")
    assert rows["compute"].endswith("more")
    assert rows["idle"].endswith("]")
    assert "10 × 7.0" in next(line for line in lines if line.endswith("more               gemm"))
    assert "  before: nobody" in lines
    assert "  after: straggler rank 2 (host), 20.0 % to gain" in lines


def test_noise_is_never_worded_as_a_change() -> None:
    text = render_diff(compare(simulate(1), simulate(2)))
    assert "No change shown: " in text
    assert [line for line in text.splitlines() if line.endswith(("more", "less"))] == []
    assert "Slower" not in text
    assert "Faster" not in text


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
