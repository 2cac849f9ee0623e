"""The answers to planted faults in words: a line for each capture, and a table of all."""

from __future__ import annotations

from collections.abc import Sequence

from faults.planted_truth import CASES, TrialResult

ALARMS = ("straggler", "slow_link", "heavy_stage", "moving_imbalance")


def tell(answer: TrialResult) -> str:
    trial = answer.trial
    marks = "".join("·" if mark is None else "-+"[mark] for mark in (answer.rank, answer.cause, answer.line))
    return (
        f"{marks} {trial.case} {trial.ranks} ranks, {trial.iterations} iterations, rank {trial.culprit}, "
        f"load {trial.load:.1f}: "
        f"{answer.verdict} {list(answer.named)} {list(answer.causes[:2])} {100 * answer.gain:.0f} % {answer.place} "
        f"({answer.reason[:110]})"
    )


def table(answers: Sequence[TrialResult]) -> list[str]:
    """One line for each case, and the sums, for each length of the window."""
    lines = []
    for length in sorted({one.trial.iterations for one in answers}, reverse=True):
        of_length = [one for one in answers if one.trial.iterations == length]
        lines += [
            f"{length} iterations",
            f"{'case':<20}{'captures':>9}{'rank':>15}{'cause':>15}{'line':>15}{'undecided':>11}",
        ]
        for case in CASES:
            if of_case := [one for one in of_length if one.trial.case == case]:
                lines.append(_line(case, of_case))
        faults = [one for one in of_length if CASES[one.trial.case].causes]
        healthy = [one for one in of_length if not CASES[one.trial.case].causes]
        lines.append(_line("all faults", faults))
        alarms = [one for one in healthy if one.named or one.verdict in ALARMS]
        crowded = sum(one.is_crowded for one in alarms)
        all_slow = sum(one.is_crowded for one in faults)
        lines += [
            f"false alarms on healthy runs: {_share(len(alarms) - crowded, len(healthy))}; rightly named for want of a "
            f"core, which other programs took: {crowded}, and {all_slow} where all ranks have the fault",
            "",
        ]
    return lines


def _line(case: str, answers: Sequence[TrialResult]) -> str:
    hosts = [one for one in answers if CASES[one.trial.case].by_host]
    given = sum(one.undecided for one in answers)
    return (
        f"{case:<20}{len(answers):>9}{_share(sum(one.rank for one in answers), len(answers)):>15}"
        f"{_share(sum(one.cause for one in answers), len(answers)):>15}"
        f"{_share(sum(bool(one.line) for one in hosts), len(hosts)):>15}{given:>11}"
    )


def _share(count: int, of: int) -> str:
    return f"{count}/{of} {100 * count / of:.0f} %" if of else "-"
