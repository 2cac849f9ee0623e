"""Measures how much shorter the names of traces are as people say them: `python bench/analyzer/spoken_names.py TRACE…`.

A line for each trace, and the mean over traces: characters of the distinct names, and of the names of all events.
"""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from statistics import mean

from fleetprof_api.spoken_names import say_name

_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


def count_names(path: Path) -> tuple[Counter[str], Counter[str]]:
    """The names of the host's events and of the device's, with how often each stands."""
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode(errors="replace")
    trace = json.loads(text, strict=False)
    found: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
        if event.get("ph") == "X":
            found[str(event.get("cat", "")).lower() in _DEVICE][str(event["name"])] += 1
    return found


def find_saving(names: Counter[str], *, each_event: bool) -> float:
    """The share of characters that saying the names saves."""
    before = sum(len(name) * (count if each_event else 1) for name, count in names.items())
    return 1 - sum(len(say_name(name)) * (count if each_event else 1) for name, count in names.items()) / before


def main() -> None:
    """Prints the table."""
    savings: dict[str, list[float]] = {}
    for path in map(Path, sys.argv[1:]):
        cells = []
        for side, names in zip(("host", "device"), count_names(path), strict=True):
            for each_event in (False, True) if names else ():
                saving = find_saving(names, each_event=each_event)
                savings.setdefault(f"{side}, {'events' if each_event else 'names'}", []).append(saving)
                cells.append(f"{side} {'events' if each_event else 'names'} -{saving:.0%}")
        sys.stdout.write(f"{path.name}: {', '.join(cells)}\n")
    for what, each in savings.items():
        sys.stdout.write(f"mean of {len(each)} traces, {what}: -{mean(each):.0%}\n")


if __name__ == "__main__":
    main()
