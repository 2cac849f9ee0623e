"""The lines in which every bench of verdicts says how many are right.

Of the faults above the floor that the report states: how many are named rightly, left open, end as "nobody" or with a
wrong rank; of the rightly named whose cause is right, whose gain is within 3 points, and whose gain is that or said to
be rough; and how many healthy jobs are named or left open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from faults.verdicts import OUTCOMES, JudgedVerdict

OF_FAULTS = tuple(one for one in OUTCOMES if one != "moves")
BAD = ("nobody", "moves", "wrong", "crash")
_SHARES = ("rank", "cause", "gain", "or rough")


def head() -> str:
    """The first line of a table."""
    outcomes, shares = "".join(f"{one:>8}" for one in OF_FAULTS), "".join(f"{one:>9}" for one in _SHARES)
    return f"{'':<30}{'faults':>7}{outcomes}{shares}{'healthy, open':>16}"


def line(name: str, faulty: Sequence[JudgedVerdict], healthy: Sequence[JudgedVerdict]) -> str:
    """The line of these jobs."""
    counts = Counter(one.outcome for one in faulty)
    right = [one for one in faulty if one.outcome == "right"]
    parts = (
        len(right), sum(one.cause for one in right), sum(one.near for one in right),
        sum(one.near or one.rough for one in right),
    )  # fmt: skip
    wholes = len(faulty) - counts["small"], len(right), len(right), len(right)
    named, left = (sum(one.outcome == outcome for one in healthy) for outcome in ("wrong", "open"))
    outcomes = "".join(f"{counts[one]:>8}" for one in OF_FAULTS)
    shares = "".join(f"{share(part, whole):>9}" for part, whole in zip(parts, wholes, strict=True))
    return f"{name:<30}{len(faulty):>7}{outcomes}{shares}{f'{named}, {left} of {len(healthy)}':>16}"


def share(part: int, whole: int) -> str:
    """Percent of a whole; "-" of none."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def sort_out(judged: Sequence[tuple[JudgedVerdict, str, bool]]) -> list[str]:
    """The words of the jobs (verdict, words, whether it has a fault) that are not right, the worst first."""
    faulty = [(one, words) for one, words, has_fault in judged if has_fault and one.outcome == "right"]
    return [
        *(f"{one.outcome}: {words}" for one, words, _ in judged if one.outcome in BAD),
        *(f"gain{', said to be rough' * one.rough}: {words}" for one, words in faulty if not one.near),
        *(f"cause: {words}" for one, words in faulty if not one.cause),
        *(f"open: {words}" for one, words, _ in judged if one.outcome == "open"),
    ]
