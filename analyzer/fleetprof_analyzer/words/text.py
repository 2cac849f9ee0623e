"""Texts of a report as people read them; the numbers are those of `fleetprof_api.quantities`.

Guarantees: thin wording; nothing of the report is changed.
"""

from typing import Final

from fleetprof_api.report.report import TimeBreakdown

PARTS: Final = (
    ("compute", "compute"),
    ("exposed_communication", "exposed communication"),
    ("exposed_memory", "exposed memory"),
    ("idle", "idle"),
    ("unrecorded", "not recorded"),
)
"""The parts that add up to the span: (field of TimeBreakdown, words)."""


def capital(sentence: str) -> str:
    """With its first letter in upper case."""
    return f"{sentence[:1].upper()}{sentence[1:]}"


def rank_name(rank: int | None) -> str:
    """`3`, or `?` for a trace that does not say."""
    return "?" if rank is None else str(rank)


def parts_of(time_ns: TimeBreakdown) -> list[tuple[str, str, int]]:
    """(field, words, ns) of the parts."""
    return [(name, words, getattr(time_ns, name)) for name, words in PARTS]


def plain(text: str, limit: int = 200) -> str:
    """Text of a trace or request made safe for a terminal: no control characters, at most `limit` characters."""
    shown = "".join(character if character.isprintable() else "�" for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
