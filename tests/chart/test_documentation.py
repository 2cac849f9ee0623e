"""Commands of the pages about Kubernetes work with this chart, and the examples are what they say."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from fleetprof_api.request import load_request
from harness.kubernetes.chart import CHART, NAMESPACE, read_objects, run_helm

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/kubernetes"
PAGES = [ROOT / "README.md", CHART / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[str]:
    """The indented and fenced lines of a page, continued ones joined."""
    text = page.read_text().replace("\\\n", " ")
    fenced = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    return [line.strip() for line in [*(line for line in text.splitlines() if line.startswith("    ")), *fenced]]


SETTINGS = sorted(
    {
        (page.name, name)
        for page in PAGES
        for text in [*commands(page), *re.findall(r"`([^`\n]+)`", page.read_text())]
        if not re.match(r"(fleetprof )?(whatif|sweep) ", text)  # they set what a job has
        for name in re.findall(r"--set (\S+?)=", text)
    }
)
INSTALLS = sorted({line for page in PAGES for line in commands(page) if line.startswith("helm install")})


@pytest.mark.parametrize(("page", "name"), SETTINGS)
def test_every_value_that_a_page_sets_exists(page: str, name: str) -> None:
    level = json.loads((CHART / "values.schema.json").read_text())
    for part in name.split("."):
        assert part in level["properties"], f"{page}: {name}"
        level = level["properties"][part]


def test_the_pages_set_values_and_install() -> None:
    assert len(SETTINGS) > 8
    assert len(INSTALLS) > 3


@pytest.mark.helm
@pytest.mark.parametrize("command", INSTALLS)
def test_every_installation_of_the_pages_renders(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = [word for word in shlex.split(command, comments=True)[2:] if word not in ("--create-namespace", "--wait")]
    assert "kind: Deployment" in run_helm("template", *words)


@pytest.mark.helm
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("values-*.yaml")), ids=lambda path: path.name)
def test_every_example_of_values_renders(path: Path) -> None:
    text = run_helm("template", "fleetprof", str(CHART), "--namespace", NAMESPACE, "--values", str(path))
    assert read_objects(text).one("Deployment", "fleetprof-operator")


def test_the_example_request_captures_the_example_job() -> None:
    request = load_request((EXAMPLES / "profilerequest.yaml").read_text())
    job = yaml.safe_load((EXAMPLES / "job.yaml").read_text())
    target = request.spec.target.workload
    assert target is not None
    assert (target.api_version, target.kind, target.name) == (job["apiVersion"], job["kind"], job["metadata"]["name"])
    assert job["spec"]["template"]["metadata"]["labels"] == {"fleetprof.io/inject": "true"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_example_is_named_in_the_examples_page(path: Path) -> None:
    assert f"kubernetes/{path.name}" in (ROOT / "examples/README.md").read_text()
