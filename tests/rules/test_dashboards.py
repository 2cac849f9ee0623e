"""The dashboards: fresh, in the chart behind a switch, and each query is PromQL over series that there are."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.kubernetes.chart import CHART, S3, render
from harness.prometheus import find_program

FILES = sorted((CHART / "dashboards").glob("*.json"))
pytestmark = [pytest.mark.helm, pytest.mark.prometheus]


def panels(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["panels"]
    return found


def test_the_chart_has_a_config_map_for_each_that_grafanas_sidecar_finds() -> None:
    maps = render((*S3, "dashboards.enabled=true")).of_kind("ConfigMap")
    shown = {name: item for name, item in maps.items() if "-dashboard-" in name}
    assert set(shown) == {f"fleetprof-dashboard-{path.stem}" for path in FILES}
    for path in FILES:
        item = shown[f"fleetprof-dashboard-{path.stem}"]
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(item["data"][f"fleetprof-{path.name}"]) == json.loads(path.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_panel_says_what_it_answers_and_lies_beside_the_others(path: Path) -> None:
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in panels(path)]
    assert len(set(places)) == len(places)
    for panel in panels(path):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["datasource"]["uid"] == "${source}"


def test_every_query_is_promql_over_series_of_ours(tmp_path: Path) -> None:
    queries = [target["expr"] for path in FILES for panel in panels(path) for target in panel["targets"]]
    rules = [{"record": f"q:{n}", "expr": re.sub(r"\$\w+", "x", query)} for n, query in enumerate(queries)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    result = subprocess.run(
        [find_program("promtool"), "check", "rules", "--lint=none", "rules.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    recorded = set(re.findall(r"record: (\S+)", (CHART / "rules/workloads.yaml").read_text()))
    for query in queries:
        assert set(re.findall(r"fleetprof:[\w:]+", query)) <= recorded
