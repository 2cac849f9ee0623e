"""The report in a few sentences: what a reader should take away first.

Guarantees: says only what the report proves, and says what it cannot prove; numbers with units; silent where there is
nothing to say.
"""

from dataclasses import dataclass
from statistics import median

from fleetprof_api.capture_cost import CaptureCost
from fleetprof_api.report import KindTotal, Report
from fleetprof_api.start_skew import StartSkew

from fleetprof_analyzer.views.straggler_words import sentence
from fleetprof_analyzer.views.text import change, duration, share


@dataclass(frozen=True, slots=True)
class Fact:
    """One number for a tile: its name, value, and one line of context."""

    name: str
    value: str
    context: str


@dataclass(frozen=True, slots=True)
class Headline:
    """Tiles and sentences at the head of a report."""

    facts: list[Fact]
    sentences: list[str]


def describe(report: Report) -> Headline:
    """The head of a report."""
    facts = [fact for total in report.totals[:1] for fact in _time_facts(total)]
    durations = [iteration.duration_ns for rank in report.ranks for iteration in rank.iterations]
    if durations:
        each = {len(rank.iterations) for rank in report.ranks}
        recorded = str(max(each)) if len(each) == 1 else f"{min(each)} to {max(each)}"
        facts.append(Fact("Median iteration", duration(int(median(durations))), f"{recorded} recorded per rank"))
    sentences = [
        *map(_time_sentence, report.totals), *_ledger_sentence(report), *missing_ranks(report),
        *_start_sentence(report.start),
    ]  # fmt: skip
    if report.stragglers is not None and (said := sentence(report.stragglers)):
        sentences.append(said)
    if report.capture_cost is not None:
        if report.capture_cost.during_ratio is not None:
            facts.append(Fact("Capture cost", change(report.capture_cost.during_ratio), "iteration time in the window"))
        sentences += _cost_sentence(report.capture_cost)
    if report.problems:
        count = len(report.problems)
        sentences.append(f"{count} problem{'s' * (count > 1)} with the input; see below.")
    return Headline(facts, sentences)


def _time_facts(total: KindTotal) -> list[Fact]:
    time_ns = total.time_ns
    span = time_ns.span
    on = "of GPU time" if total.time_basis == "device" else "of host time"
    return [
        Fact("Compute", share(time_ns.compute, span), on),
        Fact("Exposed communication", share(time_ns.exposed_communication, span), on),
        Fact("Idle", share(time_ns.idle, span), on),
    ]


def _time_sentence(total: KindTotal) -> str:
    time_ns = total.time_ns
    ranks = f"{total.ranks} rank{'s' * (total.ranks > 1)}"
    what = f"Of the GPU time of {ranks}" if total.time_basis == "device" else f"Of the host time of {ranks} without GPU"
    compute = "compute" if total.time_basis == "device" else "operators"
    memory = f", {share(time_ns.exposed_memory, time_ns.span)} copies" if time_ns.exposed_memory else ""
    return (
        f"{what}, {share(time_ns.compute, time_ns.span)} was {compute}, "
        f"{share(time_ns.exposed_communication, time_ns.span)} communication that nothing hid{memory}, "
        f"{share(time_ns.idle, time_ns.span)} idle."
    )


def _ledger_sentence(report: Report) -> list[str]:
    asked = {entry.rank for entry in report.ledger}
    if not asked:
        return []
    here = {rank.rank for rank in report.ranks}
    missing = sorted(asked - here)
    if not missing:
        return [f"All {len(asked)} ranks that were asked delivered a trace."] if len(asked) > 1 else []
    shown = ", ".join(map(str, missing[:8])) + (" …" if len(missing) > 8 else "")
    return [f"{len(missing)} of {len(asked)} ranks delivered no usable trace ({shown}); the ledger says why."]


def missing_ranks(report: Report) -> list[str]:
    """Ranks that no ledger tells of, and that the traces show to be missing."""
    missing = [] if report.stragglers is None or report.ledger else report.stragglers.not_captured
    if not missing:
        return []
    shown = ", ".join(map(str, missing[:8])) + (" …" if len(missing) > 8 else "")
    of = len(report.ranks) + len(missing)
    hidden = "what is late on them cannot be seen"
    return [f"Traces of {len(missing)} of the job's {of} ranks are missing ({shown}): {hidden}."]


def _start_sentence(start: StartSkew) -> list[str]:
    if len(start.ranks) < 2:
        return []
    # When they began says their clocks, which may differ by more than the starts: that stands further below.
    if start.same_first_iteration is None:
        return ["Whether all ranks recorded the same first iteration cannot be told from these traces."]
    if not start.same_first_iteration:
        return ["The ranks did not record the same first iteration."]
    how = "the agent's step times" if start.verified_by == "agent_steps" else "ProfilerStep numbers"
    return [f"All {len(start.ranks)} ranks recorded the same first iteration, as {how} prove."]


def _cost_sentence(cost: CaptureCost) -> list[str]:
    if cost.during_ratio is None:
        return []
    extra = 100 * (cost.during_ratio - 1)
    within = cost.during_ratio_interval
    certain = within is None or not within.low <= 1 <= within.high
    sentence = f"While recording, an iteration took {abs(extra):.1f} % {'longer' if extra > 0 else 'less'} than before"
    sentence += "" if certain else " (no difference that can be told from noise)"
    if cost.stall_ns is not None:
        sentence += f"; until the trace was written, the longest one took {duration(cost.stall_ns)} more"
    verdict = {
        True: "; afterwards no difference can be measured.",
        False: f"; afterwards a difference of {change(1 + (cost.residue_ratio or 0))} remained.",
        None: "; there are too few iterations afterwards for a verdict on what remained.",
    }
    return [sentence + verdict[cost.residue_is_zero]]
