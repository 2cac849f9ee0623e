"""The head of a report: its answer first, then a few numbers and sentences.

Guarantees: says only what the report proves, and says what it cannot prove; numbers with units; silent where there is
nothing to say.
"""

from dataclasses import dataclass
from statistics import median

from fleetprof_api.quantities import change, duration, share
from fleetprof_api.report.capture_cost import CaptureCost
from fleetprof_api.report.report import KindTotal, Report
from fleetprof_api.report.start_skew import StartSkew

from fleetprof_analyzer.views.answer.answer import Answer, give_answer
from fleetprof_analyzer.words.recording import judge_residue


@dataclass(frozen=True, slots=True)
class Tile:
    """One number for a tile: its name, value, and one line of context."""

    name: str
    value: str
    context: str


@dataclass(frozen=True, slots=True)
class PageHead:
    """The head of a report: the answer, a few numbers, and what else a reader should know at once."""

    answer: Answer
    facts: list[Tile]
    sentences: list[str]


def describe(report: Report) -> PageHead:
    """The answer, tiles of the first kind of ranks, and sentences on missing ranks, start, cost and problems."""
    facts = [fact for total in report.totals[:1] for fact in _time_facts(total)]
    durations = [iteration.duration_ns for rank in report.ranks for iteration in rank.iterations]
    if durations:
        each = {len(rank.iterations) for rank in report.ranks}
        recorded = str(max(each)) if len(each) == 1 else f"{min(each)} to {max(each)}"
        facts.insert(0, Tile("Median iteration", duration(int(median(durations))), f"{recorded} recorded per rank"))
    sentences = [*_ledger_sentence(report), *_start_sentence(report.start)]
    if report.capture_cost is not None:
        sentences += _cost_sentence(report.capture_cost)
    if report.problems:
        count = len(report.problems)
        sentences.append(f"{count} problem{'s' * (count > 1)} with the input; see below.")
    return PageHead(give_answer(report), facts, sentences)


def _time_facts(total: KindTotal) -> list[Tile]:
    time_ns = total.time_ns
    span = time_ns.span
    on = "of GPU time" if total.time_basis == "device" else "of host time"
    parts = (
        ("Compute", time_ns.compute),
        ("Exposed communication", time_ns.exposed_communication),
        ("Idle", time_ns.idle),
    )
    return [Tile(name, share(part, span), on) for name, part in parts if part]


def _ledger_sentence(report: Report) -> list[str]:
    """A sentence that every rank has a trace; the answer names those that have none."""
    ledger_ranks = {entry.rank for entry in report.ledger}
    if len(ledger_ranks) < 2:
        return []
    if ledger_ranks - {rank.rank for rank in report.ranks}:
        return ["The ledger says why ranks are missing."]
    return [f"All {len(ledger_ranks)} ranks that were asked delivered a trace."]


def _start_sentence(start: StartSkew) -> list[str]:
    if len(start.ranks) < 2:
        return []
    # When they began says their clocks, which may differ by more than the starts: that stands further below.
    if start.same_first_iteration is None:
        return ["These traces do not tell whether all ranks recorded the same first iteration."]
    if not start.same_first_iteration:
        return ["The ranks did not record the same first iteration."]
    how = "the agent's step times" if start.verified_by == "agent_steps" else "ProfilerStep numbers"
    return [f"All {len(start.ranks)} ranks recorded the same first iteration, as {how} prove."]


def _cost_sentence(cost: CaptureCost) -> list[str]:
    if cost.during_ratio is None:
        return []
    within = cost.during_ratio_interval
    shown = change(cost.during_ratio) + ("" if within is None else f" [{change(within.low)}, {change(within.high)}]")
    if within is not None and within.low <= 1 <= within.high:
        sentence = f"The cost of recording does not show above the noise: an iteration took {shown}"
    else:
        sentence = f"While recording, an iteration took {shown}"
        sentence += "" if within is not None else ", of too few iterations for an interval"
    if cost.stall_ns:
        sentence += f"; writing the trace held one iteration up by {duration(cost.stall_ns)} at most"
    return [f"{sentence}; {_after(cost)}."]


def _after(cost: CaptureCost) -> str:
    judged, within = judge_residue(cost), cost.residue_interval
    if cost.residue_ratio is None or within is None:
        return "there were too few iterations afterwards to compare"
    shown = f"{change(1 + cost.residue_ratio)} [{change(1 + within.low)}, {change(1 + within.high)}]"
    if judged == "none":
        return f"afterwards it took as long as before ({shown})"
    return f"afterwards {shown}: {judged}"
