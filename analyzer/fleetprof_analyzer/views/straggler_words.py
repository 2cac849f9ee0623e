"""The section `stragglers` in words, the same in the terminal and on the page.

Guarantees: says no more than the section holds; a gain below a tenth of a percent is not shown as one.
"""

from textwrap import wrap
from typing import Final

from fleetprof_api.stragglers import Cause, Evidence, Straggler, Stragglers

from fleetprof_analyzer.views.code_words import name_place
from fleetprof_analyzer.views.text import duration, percent, plain

_MOST_LISTED: Final = 16
_HIDDEN: Final = 0.005
CAUSES: Final[dict[Cause, str]] = {
    "data_loading": "data loading",
    "host": "host",
    "garbage_collection": "garbage collection",
    "cpu_contention": "waiting for a core",
    "unequal_work": "more work than its peers",
    "slow_gpu": "slow GPU",
    "throttling": "throttling",
    "network": "network",
    "stage_imbalance": "too much work in its stage",
    "mixed": "several causes",
}
_VERDICTS = {
    "straggler": "Late",
    "heavy_stage": "A stage is too heavy",
    "slow_link": "A link is slow",
    "moving_imbalance": "Nobody; the work moves between ranks",
    "nobody": "Nobody is late",
    "not_judged": "No verdict",
}


def verdict(found: Stragglers) -> str:
    """One line: the verdict and its reason."""
    return f"{_VERDICTS[found.verdict]}: {found.reason}" if found.reason else _VERDICTS[found.verdict]


def sentence(found: Stragglers) -> str:
    """What a reader should take away; empty where there is nothing to say."""
    if found.verdict in ("straggler", "slow_link", "heavy_stage"):
        worth = f"; mending it would shorten an iteration by about {percent(100 * found.gain)}" if found.gain else ""
        because = (
            f" ({CAUSES[found.ranks[0].cause]}{where(found.ranks[0])})"
            if found.ranks and found.verdict == "straggler"
            else ""
        )
        return f"{found.reason[:1].upper()}{found.reason[1:]}{because}{worth}."
    if found.verdict == "moving_imbalance":
        return f"No rank is late by itself, but the work is uneven: evened out, {percent(100 * found.gain)} shorter."
    if found.verdict == "nobody" and found.gain:
        return f"No rank is late by itself, but {found.reason}; evened out, {percent(100 * found.gain)} shorter."
    if found.verdict == "nobody" and not found.reason.startswith("too few"):
        return "No rank holds the others up."
    return ""


def evidence(one: Evidence) -> str:
    """`work on the device: 12.3 ms, usually 8.1 ms, per iteration`."""
    if one.unit.startswith("ns "):
        usual = f", usually {duration(round(one.usual))}" if one.usual else ""
        return f"{one.measure}: {duration(round(one.value))}{usual}, {one.unit[3:]}"
    usual = f", usually {one.usual:g}" if one.usual else ""
    return f"{one.measure}: {one.value:g}{usual} {one.unit}"


def list_stragglers(found: Stragglers | None, width: int) -> list[str]:
    """The section in lines of at most `width` characters."""
    if found is None:
        return []

    def wrapped(text: str, indent: str) -> list[str]:
        return wrap(plain(text, 400), width, initial_indent=indent, subsequent_indent=indent + "    ")

    lines = wrapped(verdict(found), "")
    for one in found.ranks[:_MOST_LISTED]:
        lateness = (
            f"late by {duration(one.lateness_ns)} per iteration, gain {gain(one)}, {CAUSES[one.cause]}{where(one)}"
        )
        lines.append(f"  rank {one.rank:>4}  {lateness}")
        lines += [line for shown in one.evidence for line in wrapped(evidence(shown), "      ")]
    for link in found.slow_links[:_MOST_LISTED]:
        ranks = ", ".join(map(str, link.ranks[:16]))
        times = f"{duration(link.transfer_ns)}, sister groups {duration(link.usual_ns)}"
        lines += wrapped(f"{link.collective} of ranks {ranks}: {times}", "  ")
    return lines + [line for note in notes(found) for line in wrapped(note, "  ")]


def where(one: Straggler) -> str:
    """` in train.py:41 read_batch`, where the line is known."""
    return f" in {name_place(one.place)}" if one.place is not None else ""


def gain(one: Straggler) -> str:
    """The share of the iteration time, as people read it; what other stragglers hide is said."""
    hidden = one.gain_alone - one.gain > _HIDDEN
    later = f" ({percent(100 * one.gain_alone)} once the others are mended)" if hidden else ""
    return percent(100 * one.gain) + later


def notes(found: Stragglers) -> list[str]:
    """What limits the section: what cannot be told, and how rough it is."""
    said = [f"Cannot be told from these traces: {text}." for text in found.unidentifiable]
    if found.approximate and found.fidelity is not None:
        off = percent(100 * (found.fidelity - 1))
        said.append(f"The replay's window is off by {off} from the measured one: gains are rough.")
    return said
