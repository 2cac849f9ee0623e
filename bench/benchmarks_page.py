"""Writes the tables of docs/benchmarks.md from bench/results, so that the page shows what was measured.

    python bench/benchmarks_page.py [--check]

`--check` writes nothing and fails when the page is stale. Guarantees: every figure of every JSON record of the newest
DATES days stands in the page, with its target and whether it was met; of the records in plain text the newest of each
kind is linked, and its last section stands there as it begins.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
DATES = 4
MOST_LINES = 30  # of a record in plain text
BEGIN = "<!-- Made from bench/results by bench/benchmarks_page.py: begin {} -->\n"
END = "<!-- Made from bench/results by bench/benchmarks_page.py: end {} -->\n"
_NAME = re.compile(r"(?:(?P<kind>[a-z-]+)-)?(?P<date>\d{4}-\d{2}-\d{2})\.(?P<form>json|txt)")

Record = dict[str, Any]


def read_records(folder: Path) -> dict[str, dict[str, Record]]:
    """Kind ("" for `make bench`) → date → record, the newest date first; a record in plain text is `{"text": …}`."""
    found: dict[str, dict[str, Record]] = {}
    for path in folder.iterdir():
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise SystemExit(f"{path}: must be named [KIND-]YYYY-MM-DD.json or .txt")
        text = path.read_text()
        record = json.loads(text) if match["form"] == "json" else {"text": text}
        found.setdefault(match["kind"] or "", {})[match["date"]] = record
    return {kind: dict(sorted(found[kind].items(), reverse=True)) for kind in sorted(found)}


def make_figures(records: dict[str, Record]) -> str:
    """One table per section: a row for each figure, a column for each day.

    A figure whose name is indented belongs to the one above it, and several may have such a name.
    """
    dates = list(records)[:DATES]
    sections: dict[str, dict[str, dict[str, dict[str, Record]]]] = {}  # section → figure → name below it → date
    for date in dates:
        parent = ""
        for figure in records[date]["figures"]:
            parent = parent if figure["name"].startswith(" ") else figure["name"]
            family = sections.setdefault(figure["section"], {}).setdefault(parent, {})
            family.setdefault(figure["name"], {})[date] = figure
    parts = []
    for section, families in sections.items():
        rows = [(name, by_date) for family in families.values() for name, by_date in family.items()]
        days = [date for date in dates if any(date in by_date for _, by_date in rows)]
        lines = [f"**{section}**", "", f"| figure | target | {' | '.join(days)} |", "|---|---|" + "---|" * len(days)]
        for name, by_date in rows:
            target = next((figure["target"] for figure in by_date.values() if figure["target"]), "")
            cells = [_value(by_date.get(date)) for date in days]
            shown = f"… {_cell(name)}" if name.startswith(" ") else _cell(name)
            lines.append(f"| {shown} | {_cell(target)} | {' | '.join(cells)} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, _make_machines(records, dates)])


def _value(figure: Record | None) -> str:
    if figure is None:
        return ""
    missed = " (**missed**)" if figure["met"] is False else ""
    return _cell(figure["value"]) + missed


def _cell(text: str) -> str:
    return text.strip().replace("|", "\\|").replace("<=", "≤").replace(">=", "≥")


def _make_machines(records: dict[str, Record], dates: list[str]) -> str:
    lines = ["| day | machine and versions |", "|---|---|"]
    for date in dates:
        known = {**records[date]["machine"], **records[date].get("versions", {})}
        facts = ", ".join(f"{name} {_words(value)}" for name, value in known.items())
        lines.append(f"| {date} | {_cell(facts)} |")
    return "\n".join(lines) + "\n"


def _words(value: object) -> str:
    return " / ".join(str(part) for part in value) if isinstance(value, list) else str(value)


def make_programs(records: dict[str, Record]) -> str:
    """The newest record of real programs: how much of the time has its stage, by program."""
    date, record = next(iter(records.items()))
    lines = [
        f"| program ({date}) | captures with every rank | right, start-up | right, steady | strictly | not annotated |",
        "|---|---|---|---|---|---|",
    ]
    rows: list[Record] = record["rows"]
    for program in dict.fromkeys(row["program"] for row in rows):
        mine = [row for row in rows if row["program"] == program]
        whole = sum(row["captured"] == row["ranks"] and not row["problem"] for row in mine)
        measured = [row for row in mine if "right" in row]
        start, steady = (
            ", ".join(_percent(row["right"]) for row in measured if row["phase"] == phase)
            for phase in ("start-up", "steady")
        )
        strict = _percent(min(row["strict"] for row in measured)) if measured else ""
        uncovered = _percent(max(row["uncovered"] for row in measured)) if measured else ""
        lines.append(
            f"| {program} | {whole} of {len(mine)} | {start or '–'} | {steady or '–'} | {strict} | {uncovered} |"
        )
    return "\n".join([*lines, "", _make_machines(records, [date])])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def make_text(kind: str, records: dict[str, Record]) -> str:
    """The begin of the last section (`=== NAME`) of the newest record in plain text, with the line that made it.

    What is longer than MOST_LINES stays in the record, which is linked.
    """
    date, record = next(iter(records.items()))
    text: str = record["text"]
    head = text.splitlines()[0] if text.startswith("python ") else ""
    body = re.split(r"^=== .*\n", text, flags=re.MULTILINE)[-1]
    body = body.removeprefix(head).split("\nreal\t")[0].strip("\n")
    heading = f"`{head}`, {date}:" if head else f"{date}:"
    lines = body.splitlines()
    shown = "\n".join(f"    {line}".rstrip() for line in lines[:MOST_LINES]).rstrip()
    more = len(lines) - MOST_LINES
    where = f"[the record](../bench/results/{kind}-{date}.txt)"
    return f"{heading}\n\n{shown}\n" + (f"\n{more} more lines are in {where}.\n" if more > 0 else "")


def make_tables(folder: Path) -> dict[str, str]:
    """Every kind of record → its part of the page."""
    made = {}
    for kind, records in read_records(folder).items():
        newest = next(iter(records.values()))
        if "text" in newest:
            made[kind] = make_text(kind, records)
        else:
            made[kind or "bench"] = (make_programs if "rows" in newest else make_figures)(records)
    return made


def fill(page: str, tables: dict[str, str]) -> str:
    """`page` with each table between its two marks. Exits when a mark is missing or a table has no place."""
    for kind, table in tables.items():
        begin, end = BEGIN.format(kind), END.format(kind)
        if page.count(begin) != 1 or page.count(end) != 1:
            raise SystemExit(f"{PAGE.name}: must hold these two lines once, for the records of {kind}:\n{begin}{end}")
        before, _, rest = page.partition(begin)
        page = before + begin + "\n" + table + "\n" + end + rest.partition(end)[2]
    return page


def main() -> None:
    """Writes the page if it is stale, or says so."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page is stale")
    only_check = parser.parse_args().check
    page = PAGE.read_text()
    wanted = fill(page, make_tables(RESULTS))
    if only_check and wanted != page:
        sys.exit("docs/benchmarks.md is stale; run `make generate` and commit the result")
    if not only_check:
        PAGE.write_text(wanted)


if __name__ == "__main__":
    main()
