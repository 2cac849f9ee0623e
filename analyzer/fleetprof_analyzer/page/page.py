"""The report as one HTML file: the page of the web UI with its slices inside, which works without a service.

Guarantees: everything of a trace or request is escaped, or lies in a slice as base64; the content policy allows only
this file's own script and style, by their hashes, and fetches nothing; a reader without script, or of a report whose
overview cannot be made, has the verdict, the advice and the ranks. Deterministic: the same report gives the same bytes.
"""

import gzip
import hashlib
from base64 import b64encode
from collections.abc import Collection
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

import msgspec
from fleetprof_api.report.report import Report

from fleetprof_analyzer.page.links import fetch_command, perfetto_command, trace_address
from fleetprof_analyzer.page.plain import write_plain
from fleetprof_analyzer.slices.writer import write_slices
from fleetprof_analyzer.words.text import plain

_MOST_LINKS: Final = 1000
_NOT_BUILT: Final = "<p>The pictures are not there: this fleetprof was installed without its pages (make webui).</p>"
_WITHOUT_HEAD: Final = "<p>The pictures are not there: its head cannot be made. All numbers are in report.json.</p>"


def render_page(
    report: Report, traces: str | None = None, command: str = "", *, kept: Collection[str] | None = None
) -> str:
    """The whole file.

    `traces`: the relative way from it to the folder in which the ranks' sources lie, "" for its own; None where
    they do not lie beside it. `kept` are the sources that a trace was kept of, None: all. `command` is what shows this
    report again, for the hint about Perfetto.
    """
    of_kept = None if kept is None else frozenset(kept)

    def find(source: str) -> str:
        return trace_address(source, traces, of_kept)

    fetch, perfetto = fetch_command(report, traces, of_kept), perfetto_command(report, command, of_kept)
    links = {rank.source: address for rank in report.ranks[:_MOST_LINKS] if (address := find(rank.source))}
    beside = {"links": links, "fetch": fetch, "perfetto": perfetto}
    slices = write_slices(report) | {"beside": gzip.compress(msgspec.json.encode(beside), mtime=0)}
    script, style = _read_built()
    note = "" if script else _NOT_BUILT
    if "overview" not in slices:  # the page begins with it
        script, note = "", _WITHOUT_HEAD
    inside = "".join(
        f'<script type="application/gzip" data-slice="{name}">{b64encode(data).decode()}</script>\n'
        for name, data in slices.items()
    )
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(plain(report.title))} · fleetprof</title>
<style>{style}</style>
</head>
<body>
<div id="root"><main class="page">
{write_plain(report, find, fetch, perfetto)}
{note}
</main></div>
{inside if script else ""}<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _read_built() -> tuple[str, str]:
    """Script and style as `make webui` builds them; empty where they are not built."""
    folder = files("fleetprof_analyzer.page") / "static"
    script, style = folder / "report.js", folder / "report.css"
    if not script.is_file() or not style.is_file():
        return "", ""
    # A script ends at its first end tag, also within a text of it.
    return script.read_text("utf-8").replace("</script", "<\\/script").strip(), style.read_text("utf-8")
