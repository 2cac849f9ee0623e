"""The report for readers without script: the verdict, what to try, and the ranks as a table.

Guarantees: everything of a trace or request is made printable and escaped; nothing of it becomes markup.
"""

from collections.abc import Callable
from html import escape
from statistics import median
from typing import Final

from fleetprof_api.quantities import duration, share
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.views.answer.headline import describe
from fleetprof_analyzer.words.findings import say_finding
from fleetprof_analyzer.words.text import capital, plain, rank_name

_MOST_RANKS: Final = 1000
_MOST_TEXT: Final = 600
_HEADS: Final = ("Rank", "Iterations", "Median", "Compute", "Exposed communication", "Idle", "Span", "Trace")


def write_plain(report: Report, address: Callable[[str], str], fetch: str, perfetto: str) -> str:
    """The markup; `address` gives the way to the trace of a source, "" for none; the commands are those of `links`."""
    head = describe(report)
    parts = [f"<h1>{_text(report.title)}</h1>", f"<p><strong>{_text(head.answer.sentence)}</strong></p>"]
    if head.answer.next_step:
        parts.append(f"<p>What to try: {_text(head.answer.next_step)}.</p>")
    parts += _list([*head.answer.evidence, *head.sentences])
    if report.findings:
        parts.append("<h2>What is worth doing</h2>")
        parts += _list([_say(one) for one in report.findings])
    if report.ranks:
        heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
        rows = "".join(_row(rank, address(rank.source)) for rank in report.ranks[:_MOST_RANKS])
        parts.append(f"<h2>Every rank</h2><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
    if len(report.ranks) > _MOST_RANKS:
        parts.append(f"<p>{len(report.ranks) - _MOST_RANKS} ranks more are in report.json.</p>")
    if perfetto:
        parts.append(
            f"<p>The slowest iteration as one timeline, for ui.perfetto.dev: <code>{escape(perfetto)}</code></p>"
        )
    if fetch:
        parts.append(f"<p><code>{escape(fetch)}</code> fetches the traces, which do not lie beside this page.</p>")
    return "\n".join(parts)


def _say(finding: Finding) -> str:
    up_to = f"up to {share(finding.gain_permille, 1000)}: " if finding.gain_permille else ""
    return f"{up_to}{say_finding(finding)}" + (f". {capital(finding.advice)}" if finding.advice else "")


def _row(rank: Rank, address: str) -> str:
    time_ns, lengths = rank.time_ns, [one.duration_ns for one in rank.iterations]
    shares = (time_ns.compute, time_ns.exposed_communication, time_ns.idle)
    cells = [
        str(len(lengths)),
        duration(int(median(lengths))) if lengths else "–",
        *(share(part, time_ns.span) for part in shares),
        duration(time_ns.span),
    ]
    source = _text(rank.source)
    link = f'<a href="{escape(address)}">{source}</a>' if address else source
    of_cells = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{escape(rank_name(rank.rank))}</th>{of_cells}<td>{link}</td></tr>'


def _list(sentences: list[str]) -> list[str]:
    return ["<ul>", *(f"<li>{_text(sentence)}</li>" for sentence in sentences), "</ul>"] if sentences else []


def _text(text: str) -> str:
    return escape(plain(text, _MOST_TEXT))
