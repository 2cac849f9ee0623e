"""The section `stragglers` in words, the same in the terminal and on the page.

Guarantees: says no more than the section holds; a gain below a tenth of a percent is not shown as one.
"""

from textwrap import wrap
from typing import Final

from fleetprof_api.quantities import duration, percent
from fleetprof_api.report.stragglers import Evidence, Straggler, Stragglers

from fleetprof_analyzer.job.stragglers.thresholds import FAITHFUL
from fleetprof_analyzer.words.bubbles import say_bubbles
from fleetprof_analyzer.words.code import in_brackets
from fleetprof_analyzer.words.floor import say_floor
from fleetprof_analyzer.words.text import capital, plain

_MOST_LISTED: Final = 16
_MOST_OF_NAME: Final = 30
_HIDDEN: Final = 0.005
CAUSES: Final[dict[str, str]] = {
    "data_loading": "data loading",
    "host": "host code",
    "device_wait": "work that is launched does not begin on its device",
    "garbage_collection": "garbage collection",
    "cpu_contention": "no free CPU core",
    "unequal_work": "more work than the others",
    "slow_gpu": "slow GPU",
    "throttling": "throttling",
    "network": "network",
    "stage_imbalance": "too much work in its stage",
    "mixed": "several causes",
}
_UNKNOWN: Final = ("undecided", "not_judged")
_WITHOUT_FLOOR: Final = ("moving_imbalance", "undecided")
"""Verdicts whose reason does not say how late a rank would have to be to show."""
_VERDICTS: Final = {
    "straggler": "Late",
    "heavy_stage": "A pipeline stage takes longer than the others",
    "slow_link": "A link is slow",
    "moving_imbalance": "No rank stands out by itself",
    "nobody": "No rank stands out",
    "undecided": "Cannot tell yet",
    "not_judged": "No verdict",
}


def verdict(found: Stragglers) -> str:
    """One line: the verdict and its reason."""
    if found.verdict in _UNKNOWN and found.reason:
        return f"{_VERDICTS[found.verdict]}: {found.reason}"
    return capital(found.reason) if found.reason else _VERDICTS[found.verdict]


def evidence(one: Evidence, peers: int = 1) -> str:
    """`data loading: 54.1 ms per iteration; 18.4 ms on the other ranks`; without peers `usually 18.4 ms`."""
    if one.measure == "late iterations" and one.unit.startswith("of "):
        return f"late in {one.value:g} {one.unit} iterations"
    if one.unit.startswith("ns "):
        shown, usual, per = duration(round(one.value)), duration(round(one.usual)), f" {one.unit[3:]}"
    elif one.unit == "%":
        shown, usual, per = f"{one.value:g} %", f"{one.usual:g} %", ""
    elif one.unit.startswith("elements "):
        shown, usual, per = f"{one.value:,.0f}", f"{one.usual:,.0f}", f" {one.unit}"
    else:
        # `Cores that it may use: 2` says its unit already.
        unit = "" if one.unit and one.measure.startswith(one.unit) else f" {one.unit}".rstrip()
        shown, usual, per = f"{one.value:g}{unit}", f"{one.usual:g}{unit}", ""
    if peers and one.value == one.usual:
        return f"{one.measure}: {shown}{per}, as on the other ranks"
    compared = f"; {usual} on the other ranks" if peers else f"; usually {usual}"
    return f"{one.measure}: {shown}{per}{compared if one.usual else ''}"


def list_stragglers(found: Stragglers | None, width: int) -> list[str]:
    """The section in lines of at most `width` characters."""
    if found is None:
        return []

    def wrapped(text: str, indent: str) -> list[str]:
        return wrap(plain(text, 400), width, initial_indent=indent, subsequent_indent=indent + "    ")

    lines = wrapped(verdict(found), "")
    for sentence in say_hosts(found):
        lines += wrapped(sentence, "  ")
    for one in found.ranks[:_MOST_LISTED]:
        lateness = f"late by {duration(one.lateness_ns)} per iteration, potential saving {gain(one)}"
        lateness = f"{lateness} of it: {CAUSES[one.cause]}"
        lines += wrapped(f"rank {one.rank:>4}{say_where(one)}  {lateness}{in_brackets(one.place)}", "  ")
        lines += [line for shown in one.evidence for line in wrapped(evidence(shown, one.peers), "      ")]
    for link in found.slow_links[:_MOST_LISTED]:
        ranks = ", ".join(map(str, link.ranks[:16]))
        times = f"{duration(link.transfer_ns)} per transfer; {duration(link.usual_ns)} in groups like it"
        lines += wrapped(f"{link.collective} of ranks {ranks}: {times}", "  ")
    return lines + [line for note in notes(found) for line in wrapped(note, "  ")]


def say_where(one: Straggler) -> str:
    """` on gpu-07`; "" where its host is not known, or all ranks share it."""
    return f" on {plain(one.host, _MOST_OF_NAME)}" if one.host else ""


def say_hosts(found: Stragglers) -> list[str]:
    """One sentence on each host that is late as a whole."""
    return [
        f"Node {plain(host.name, _MOST_OF_NAME)}: {len(host.ranks)} of its {host.captured} ranks are late "
        f"({CAUSES[host.cause]})."
        for host in found.hosts[:_MOST_LISTED]
    ]


def gain(one: Straggler) -> str:
    """The share of the iteration time, as people read it; what other stragglers hide is said."""
    hidden = one.gain_alone - one.gain > _HIDDEN
    later = f" ({percent(100 * one.gain_alone)} if the other late ranks were on time)" if hidden else ""
    return percent(100 * one.gain) + later


def notes(found: Stragglers) -> list[str]:
    """The cost of a pipeline's schedule, and what limits the section: what cannot be told, and how rough it is."""
    sentences = [f"{text}." for text in found.unidentifiable]
    if found.pipeline is not None:
        sentences.insert(0, f"{capital(say_bubbles(found.pipeline))}.")
    if found.verdict in _WITHOUT_FLOOR and found.candidate is None and (floor := say_floor(found)):
        sentences.append(f"{capital(floor)}.")
    if found.approximate and found.fidelity is not None:
        sentences.append(f"{_say_rough(found.fidelity)}, so potential savings are rough.")
    return sentences


def _say_rough(fidelity: float) -> str:
    if abs(fidelity - 1) <= FAITHFUL:
        return "Launches were not recorded, and a gap of a device may be its host's work or a wait"
    off = percent(abs(100 * (fidelity - 1)))
    return f"The replayed window is {off} {'longer' if fidelity > 1 else 'shorter'}"
