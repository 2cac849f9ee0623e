"""The report's verdict and findings, as marks over the window.

Guarantees: pure; what stands in the marks stands in the report.
"""

from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.timeline.events.marks import Mark, Span


def mark_straggler(report: Report, entry: Rank, span: Span) -> list[Mark]:
    """One mark where the report names this rank."""
    for one in report.stragglers.ranks if report.stragglers is not None else []:
        if one.rank == entry.rank:
            args: dict[str, str | int | float] = {
                "lateness_ns_per_iteration": one.lateness_ns,
                "gain_percent": round(100 * one.gain, 1),
                "pattern": one.pattern,
            }
            for evidence in one.evidence:
                args[evidence.measure] = f"{evidence.value:g} {evidence.unit}, usual {evidence.usual:g}"
            return [Mark("verdict", f"the others wait for this rank: {one.cause}", span[0], span[1] - span[0], args)]
    return []


def mark_findings(report: Report, words: str, clocks: str, span: Span) -> list[Mark]:
    """The window, the verdict and the findings, for the process of the whole job."""
    length = span[1] - span[0]
    marks = [Mark("window", words, span[0], length, {"clocks": clocks})]
    if report.stragglers is not None:
        found = report.stragglers
        args: dict[str, str | int | float] = {"reason": found.reason, "gain_percent": round(100 * found.gain, 1)}
        marks.append(Mark("verdict", found.verdict, span[0], length, args))
    for number, one in enumerate(report.findings, 1):
        args = {"advice": one.advice, "gain_permille": one.gain_permille, "measure": one.measure}
        if one.ranks:
            args["ranks"] = ", ".join(map(str, one.ranks))
        marks.append(Mark(f"finding {number}", f"{one.kind}: {one.message}", span[0], length, args))
    return marks
