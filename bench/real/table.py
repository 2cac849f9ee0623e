"""Rows of the record, and the table that people read."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from capture import Captured
from catalog import Program
from truth.compare import Agreement, compare
from truth.found import read_found
from truth.stamps import read_truth

LEAST, LEAST_MEDIAN = 0.95, 0.98


def judge(program: Program, number: int, one: Captured, stamps: Path) -> dict[str, object]:
    """A row: how the capture ended and, of the rank with the smallest share, how much of its time has its stage."""
    row: dict[str, object] = {
        "program": program.name,
        "package": program.package,
        "run": number,
        "phase": one.phase,
        "ranks": program.ranks,
        "captured": sum(state == "UPLOADED" for state in one.states.values()),
        "seconds": round(one.seconds, 1),
        "problem": one.problem,
    }
    if one.folder is None:
        return row
    ranks = read_found(one.folder)
    each = [compare(read_truth(stamps, found.pid), found) for found in ranks]
    each = [agreement for agreement in each if agreement.total_ns]
    if not each:
        return row | {"problem": row["problem"] or "no stages"}
    worst = min(each, key=lambda agreement: agreement.right)
    return row | {
        "right": round(worst.right, 4),
        "strict": round(worst.strict, 4),
        "uncovered": round(worst.uncovered, 4),
        "iteration_ms": round(worst.total_ns / 1e6 / max(1, worst.iterations), 2),
        "as_reported": all(found.as_reported for found in ranks),
        "wrong": _wrong(worst),
    }


def _wrong(agreement: Agreement) -> dict[str, float]:
    """The confusions, in shares of the whole, from 0.2 % on."""
    shares = {
        f"{annotated or '(none)'} as {label}": round(time / agreement.total_ns, 4)
        for (annotated, label), time in agreement.wrong.most_common()
    }
    return {pair: share for pair, share in shares.items() if share >= 0.002}


def as_text(rows: list[dict[str, object]]) -> str:
    """The table, and whether the targets are met."""
    lines = [
        "| program | capture | ranks | right | core waits as wrong | not annotated | iteration | taken for another |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in rows:
        share = {key: f"{100 * float(str(row[key])):.1f} %" for key in ("right", "strict", "uncovered") if key in row}
        wrong = row.get("wrong")
        pairs = (
            ", ".join(f"{pair} {100 * part:.1f} %" for pair, part in wrong.items()) if isinstance(wrong, dict) else ""
        )
        lines.append(
            f"| {row['program']} | {row['phase']} | {row['captured']} of {row['ranks']} | {share.get('right', '-')} "
            f"| {share.get('strict', '-')} | {share.get('uncovered', '-')} | {row.get('iteration_ms', '-')} ms "
            f"| {str(row['problem'] or pairs).replace(chr(10), ' ')} |"
        )
    for phase in ("start-up", "steady"):
        shares = [float(str(row["right"])) for row in rows if row["phase"] == phase and "right" in row]
        if shares:
            mine = [row for row in rows if row["phase"] == phase]
            whole = sum(row["captured"] == row["ranks"] and not row["problem"] for row in mine)
            lines.append(
                f"{phase}: least {100 * min(shares):.1f} % (target {100 * LEAST:.0f}), "
                f"median {100 * median(shares):.1f} % (target {100 * LEAST_MEDIAN:.0f}); "
                f"every rank at the first try in {whole} of {len(mine)}"
            )
    return "\n".join(lines)
