"""What is made of a request's types is fresh, and the chart's template is the CRD with what Helm needs."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


def test_generated_files_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "crds/generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_charts_template_is_the_crd_that_stays(crd: dict[str, Any]) -> None:
    text = (ROOT / "charts/fleetprof/templates/crds/profilerequests.yaml").read_text()
    assert re.search(r"^\{\{- if \.Values\.crds\.enabled \}\}$", text, re.MULTILINE)
    made = yaml.safe_load(re.sub(r"^\s*\{\{.*\}\}\n", "", text, flags=re.MULTILINE))
    metadata = made.pop("metadata")
    assert metadata["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert metadata["name"] == crd["metadata"]["name"]
    assert made == {key: value for key, value in crd.items() if key != "metadata"}
