"""Files that are made of our kinds' types are fresh, and the chart's template is the CRD with what Helm needs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def test_generated_files_are_fresh() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "crds/generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("plural", ["profilerequests", "profilepolicies"])
def test_the_charts_template_is_the_crd_that_stays(plural: str) -> None:
    crd = yaml.safe_load((ROOT / f"crds/fleetprof.io_{plural}.yaml").read_text())
    text = (ROOT / f"charts/fleetprof/templates/crds/{plural}.yaml").read_text()
    assert re.search(r"^\{\{- if \.Values\.crds\.enabled \}\}$", text, re.MULTILINE)
    made = yaml.safe_load(re.sub(r"^\s*\{\{.*\}\}\n", "", text, flags=re.MULTILINE))
    metadata = made.pop("metadata")
    assert metadata["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert metadata["name"] == crd["metadata"]["name"]
    assert made == {key: value for key, value in crd.items() if key != "metadata"}
