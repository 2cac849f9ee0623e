"""docs/metrics.md lists each metric of the web UI, with its labels, and no other."""

import re
from pathlib import Path

from fleetprof_webui.metrics import Metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def documented() -> dict[str, set[str]]:
    """Metric → labels, from the page's table."""
    section = PAGE.read_text().partition("## The web UI's")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| \w+ \|([^|]*)\|", section, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def test_the_page_lists_the_metrics() -> None:
    metrics = Metrics()
    metrics.answered.labels("GET", "/fleet", "200").inc()
    metrics.seconds.labels("/fleet").observe(0.1)
    served: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        samples = [one for one in family.samples if not one.name.endswith("_created")]
        served[name] = {label for one in samples for label in one.labels} - {"le"}
    assert served == documented()
