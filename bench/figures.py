"""The common part of the bench's sections: a measured figure beside the named figure."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured, beside the target or the peer of the same run."""

    section: str
    name: str
    value: str
    target: str = ""
    met: bool | None = None

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def quantile(values: list[float], q: float) -> float:
    """The q-quantile by the nearest rank; `values` must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(q * (len(ordered) - 1))))]


def keep(kind: str, figures: list[Figure], measured: Sequence[str], packages: Sequence[str], **versions: str) -> None:
    """Writes today's record of a kind; figures of sets ("SET: …") that this run did not measure stay.

    `versions` are those of programs that are no Python package.
    """
    results = Path(__file__).parent / "results" / f"{kind}-{time.strftime('%Y-%m-%d')}.json"
    old = json.loads(results.read_text())["figures"] if results.exists() else []
    stay = [figure for figure in old if figure["name"].split(":")[0] not in measured]
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version(),
               "load": [round(load, 1) for load in os.getloadavg()]}  # fmt: skip
    known = {name: version(name) for name in packages} | versions
    document = {"machine": machine, "versions": known, "figures": stay + [figure.as_json() for figure in figures]}
    results.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
