"""The report's answer: who is late or where the time goes, why, where in the code, and what it is worth.

Guarantees: pure; what is missing from the capture stands in the answer itself; the evidence repeats numbers of the
report and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.ledger import RankState
from fleetprof_api.quantities import duration, percent, share
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Report
from fleetprof_api.report.stragglers import Stragglers, Undecided

from fleetprof_analyzer.findings.finding import OF_VERDICT
from fleetprof_analyzer.findings.known_causes import OF_CAUSES
from fleetprof_analyzer.views.answer import guards
from fleetprof_analyzer.views.answer.lateness import say_lateness
from fleetprof_analyzer.views.answer.time_spent import find_proven, say_time
from fleetprof_analyzer.words.causes import SilenceInWords, add_stages, find_silences
from fleetprof_analyzer.words.code import name_place
from fleetprof_analyzer.words.findings import say_briefly, say_finding
from fleetprof_analyzer.words.ranks import name_ranks
from fleetprof_analyzer.words.straggler_list import evidence
from fleetprof_analyzer.words.text import capital, plain
from fleetprof_analyzer.words.verdict_reasons import MOST_ITERATIONS, round_iterations

_NAMED: Final = ("straggler", "heavy_stage", "slow_link", "moving_imbalance")
_OF_NOBODY: Final = ("heavy_stage", "moving_imbalance")
"""Nobody's fault: what is worth more is said first."""
_LONG: Final = "long_iterations"
_OF_PARTS: Final = ("communication", "copies", "iterations")
"""The answer says what findings about them say."""
_SAID: Final = (OF_VERDICT, OF_CAUSES)
_UNKNOWN: Final = "unknown_device"
_UNTIMED: Final = "The traces hold no work whose time could be measured."
_MOST_EVIDENCE: Final = 6
_MOST_WORDS: Final = 700


@dataclass(frozen=True, slots=True)
class Answer:
    """`sentence` first; then what speaks for it; then what to try ("" where nothing is known to help)."""

    sentence: str
    evidence: list[str]
    next_step: str


def give_answer(report: Report) -> Answer:
    """The late ranks and the parts of the time, as far as the report knows; of a report without ranks, the reason."""
    if not report.ranks:
        return Answer(_say_nothing(report), [], "")
    late, spent = say_lateness(report, in_part=bool(say_missing(report))), say_time(report)
    missing = " ".join(sentence for sentence in (say_missing(report), _say_unknown(report)) if sentence)
    named = report.stragglers is not None and report.stragglers.verdict in _NAMED
    more = _find_more(report) if named else None
    spent = " ".join(part for part in (spent, _say_long(report, more)) if part)
    if named:
        first = more is not None and report.stragglers is not None and report.stragglers.verdict in _OF_NOBODY
        before, after = _say_more(more, first=first)
        sentences = [before, late, missing, after]
    elif report.stragglers is not None and _knows_nothing(report.stragglers):
        sentences = [spent, late, missing]
    else:
        sentences = [late, missing, spent]
    sentence = " ".join(part for part in sentences if part) or _UNTIMED
    speaks = [*_evidence(report), *([spent] if named and spent else [])]
    return Answer(keep_sentences(plain(sentence, _MOST_WORDS)), speaks[:_MOST_EVIDENCE], _next_step(report))


def keep_sentences(text: str) -> str:
    """The whole sentences of a text that was cut."""
    whole, end, _ = text.rpartition(". ")
    return whole + end.rstrip() if text.endswith("…") and end else text


def _knows_nothing(found: Stragglers) -> bool:
    """Tells whether noise hides even who might be late: then where the time goes is said first."""
    return found.verdict == "undecided" and found.candidate is None and found.smallest_gain is not None


def _say_long(report: Report, leading: Finding | None) -> str:
    """Iterations that stand apart from the others, where that is not the `leading` one."""
    found = next((one for one in report.findings if one.kind == _LONG), None)
    return "" if found is None or found == leading else f"{say_briefly(found)}."


def _find_more(report: Report) -> Finding | None:
    """The finding that is worth more than the fault that the verdict names, where anything is."""
    if not report.findings or report.findings[0].measure == OF_VERDICT or report.stragglers is None:
        return None
    first = report.findings[0]
    return first if guards.MORE_ELSEWHERE.allows(first.gain_permille / 1000, report.stragglers.gain) else None


def _say_more(more: Finding | None, *, first: bool) -> tuple[str, str]:
    """(what to say before the verdict, what after it)."""
    if more is None:
        return "", ""
    saving, brief = share(more.gain_permille, 1000), capital(say_briefly(more))
    if first:
        return f"{brief}. Potential saving there: {saving}.", ""
    return "", f"Potential saving elsewhere: {saving}. {brief}."


def say_missing(report: Report) -> str:
    """Ranks that left no trace, by the ledger, or as the others' traces show; and those whose trace was not read."""
    here = {rank.rank for rank in report.ranks}
    delivered = {entry.rank for entry in report.ledger if entry.state is RankState.UPLOADED}
    lost = (delivered | {one.rank for one in report.problems if one.rank is not None}) - here
    in_ledger = {entry.rank for entry in report.ledger}
    absent = sorted(
        (in_ledger or set([] if report.stragglers is None else report.stragglers.not_captured)) - here - lost
    )
    sentences = []
    if absent and in_ledger:
        of = len(in_ledger)
        sentences.append(f"Only {of - len(absent)} of {of} ranks were captured, so {_say_not_seen(absent)}.")
    elif absent:
        here_of = f"{len(report.ranks)} of the job's {len(report.ranks) + len(absent) + len(lost)} ranks"
        sentences.append(f"Only {here_of} are in this report, so {_say_not_seen(absent)}.")
    if lost:
        whose = f"trace of {name_ranks(sorted(lost))}" if len(lost) == 1 else f"traces of {name_ranks(sorted(lost))}"
        verb, who = ("is", "it is") if len(lost) == 1 else ("are", "they are")
        sentences.append(
            f"The {whose} {verb} not in this report (its problems say why): nobody can see whether {who} late."
        )
    return " ".join(sentences)


def _say_not_seen(ranks: Sequence[int]) -> str:
    verb = "is" if len(ranks) == 1 else "are"
    return f"nobody can see whether {name_ranks(ranks)} {verb} late"


def _say_unknown(report: Report) -> str:
    """Devices whose work the report does not hold."""
    ranks = sum(problem.kind == _UNKNOWN for problem in report.problems)
    of = f" of {ranks} of {len(report.ranks)} ranks" if len(report.ranks) > 1 else ""
    return f"The work{of} on a device of a kind that is not known (MTIA, HPU, Glow) is not measured." if ranks else ""


def _say_nothing(report: Report) -> str:
    failed = [entry for entry in report.ledger if entry.reason]
    if not failed:
        return "No trace could be read."
    first = failed[0]
    return f"No rank was captured: {len(failed)} of {len(report.ledger)} failed, rank {first.rank} with {first.reason}."


def _evidence(report: Report) -> list[str]:
    found = report.stragglers
    evidence = _of_stragglers(found) if found is not None else []
    evidence += [
        f"The host runs nothing for {duration(silence.time_ns)} in all {silence.words}"
        + (f", at {name_place(silence.place)}." if silence.place is not None else ".")
        for silence in (_long_silences(report) if _is_hosts(report) else [])[:2]
    ]
    first = report.findings[0] if report.findings else None
    if not evidence and first is not None and first.measure not in _SAID and first.part not in _OF_PARTS:
        evidence.append(f"{say_finding(first)}.")
    return evidence


def _long_silences(report: Report) -> list[SilenceInWords]:
    """The silences that take a part of the iterations which is worth a word."""
    whole = sum(time for _, time, _ in add_stages(report.ranks))
    return [silence for silence in find_silences(report.ranks) if guards.LONG_SILENCE.allows(silence.time_ns, whole)]


def _of_stragglers(found: Stragglers) -> list[str]:
    sentences = []
    for one in found.ranks[:2]:
        who = f"Rank {one.rank}: " if len(found.ranks) > 1 else ""
        parts = [plain(evidence(shown, one.peers), 300) for shown in one.evidence]
        if one.place is not None and one.place.of_samples:
            share = percent(100 * one.place.samples / one.place.of_samples)
            parts.append(f"{share} of {one.place.of_samples} samples of its main thread are at {name_place(one.place)}")
        parts.append(f"the other ranks wait {duration(one.lateness_ns)} for it in each iteration")
        sentences += [f"{who}{part}." if who else f"{part[:1].upper()}{part[1:]}." for part in parts]
    return sentences


def _is_hosts(report: Report) -> bool:
    """Tells whether it is the host that the job waits for: always without a GPU, else by the first finding."""
    found = report.stragglers
    if found is not None and found.ranks:
        return False
    if find_proven(report) is not None:
        return False
    first = report.findings[0].part if report.findings else ""
    return first == "host" or all(rank.kind == "cpu" for rank in report.ranks)


def _next_step(report: Report) -> str:
    found = report.stragglers
    proven = find_proven(report)
    findings = sorted(report.findings, key=lambda finding: finding is not proven)
    if found is not None and found.verdict in _NAMED and found.verdict not in _OF_NOBODY:
        # The sentence begins with the late rank, so what helps there comes first, whatever else is worth more.
        findings.sort(key=lambda finding: finding.measure != OF_VERDICT)
    advice: Sequence[str] = [finding.advice for finding in findings if finding.advice]
    candidate = None if report.stragglers is None else report.stragglers.candidate
    if candidate is not None and (proven is None or not _comes_first(proven, candidate)):
        return _decide(candidate)
    return plain(advice[0], 300) if advice else ""


def _comes_first(proven: Finding, candidate: Undecided) -> bool:
    """Tells whether a proven cause is the candidate's own, or is worth more than the candidate may cost."""
    return proven.ranks == [candidate.rank] or guards.MORE_ELSEWHERE.allows(proven.gain_permille / 1000, candidate.gain)


def _decide(candidate: Undecided) -> str:
    needed = round_iterations(candidate.iterations_needed)
    if needed > MOST_ITERATIONS:
        return "capture again on a machine where less else runs: here noise hides what the longest capture would show"
    return f"capture more iterations (--iterations {needed}), if possible on a machine where less else runs"
