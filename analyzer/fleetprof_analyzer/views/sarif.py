"""A report's lines of code as SARIF, which editors and code-scanning pages show beside the code.

Guarantees: the form of SARIF 2.1.0; a file below `folder` has its name from there, another one its whole address; texts
of a trace are printable. Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

import msgspec
from fleetprof_api import __version__
from fleetprof_api.quantities import duration, flops, share, size
from fleetprof_api.report.report import Report

from fleetprof_analyzer.job.lines import list_lines
from fleetprof_analyzer.words.modules import name_modules, whole_of
from fleetprof_analyzer.words.text import capital, plain

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEAST_PERMILLE: Final = 10  # of the iteration's work: a line with less is not worth a mark
_MODULES: Final = "modules"


def render_sarif(report: Report, folder: PurePosixPath | None = None) -> bytes:
    """Findings that have a line, and the lines that call modules. `folder`: where the code lies."""
    results = [*_list_findings(report, folder), *_list_lines(report, folder)]
    rules = [{"id": kind} for kind in dict.fromkeys(result["ruleId"] for result in results)]
    driver = {"name": "fleetprof", "version": __version__, "rules": rules}
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n"


def _list_findings(report: Report, folder: PurePosixPath | None) -> list[dict[str, Any]]:
    return [
        _result(
            finding.kind, "warning",
            f"{capital(finding.message)} ({finding.gain_permille / 10:.1f} % at most). {capital(finding.advice)}",
            finding.place.file, finding.place.line, folder,
        )
        for finding in report.findings
        if finding.place is not None and finding.place.line
    ]  # fmt: skip


def _list_lines(report: Report, folder: PurePosixPath | None) -> list[dict[str, Any]]:
    tree = report.module_tree
    if tree is None:
        return []
    whole = whole_of(tree)
    results = []
    for one in list_lines(tree):
        if 1000 * one.time_ns < _LEAST_PERMILLE * whole or not whole:
            break
        facts = [f"{share(one.time_ns, whole)} of an iteration's work ({duration(one.time_ns)}, {one.calls:,} calls)"]
        facts += [f"{flops(one.flops * 1e9 / one.time_ns)}/s"] if one.flops else []
        facts += [f"{size(one.saved_bytes)} saved for backward"] if one.saved_bytes else []
        text = f"{name_modules(one.modules)}: {', '.join(facts)}."
        results.append(_result(_MODULES, "note", text, one.file, one.line, folder))
    return results


def _result(kind: str, level: str, text: str, file: str, line: int, folder: PurePosixPath | None) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _address(file, folder)}, "region": {"startLine": line}}
    message = {"text": plain(text, 1000)}
    return {"ruleId": kind, "level": level, "message": message, "locations": [{"physicalLocation": place}]}


def _address(file: str, folder: PurePosixPath | None) -> str:
    path = PurePosixPath(plain(file, 400))
    if folder is not None and path.is_relative_to(folder):
        return quote(str(path.relative_to(folder)))
    return f"file://{quote(str(path))}" if path.is_absolute() else quote(str(path))
