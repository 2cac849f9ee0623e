"""The files of a public project: a way to report vulnerabilities, templates, and workflows that pin what they use."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def read_jobs(path: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["jobs"]
    return jobs


def read_steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read_jobs(path).values() for step in job["steps"]]


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.yml")), ids=lambda path: path.name)
def test_every_file_is_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it(path: Path) -> None:
    """Whoever takes an action over can move its tags, and no commit."""
    used = re.findall(r"\buses: (.*)$", path.read_text(), re.MULTILINE)
    assert len(used) == sum("uses" in step for step in read_steps(path)) > 0
    for action in used:
        assert re.search(r"^[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+\b", action), action


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_checkout_leaves_a_token_behind(path: Path) -> None:
    for step in read_steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, step


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_unless_a_job_says_more(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_waits_only_for_jobs_that_exist(path: Path) -> None:
    jobs = read_jobs(path)
    for name, job in jobs.items():
        needed = job.get("needs", [])
        assert {needed} <= set(jobs) if isinstance(needed, str) else set(needed) <= set(jobs), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_is_there(path: Path) -> None:
    for step in read_steps(path):
        for line in step.get("run", "").splitlines():
            if line.startswith("make "):
                assert set(line.split()[1:]) <= TARGETS, line
            for script in re.findall(r"(?<!\w)\.ci/[\w-]+", line):
                assert (ROOT / script).exists(), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_expression_stands_in_a_script(path: Path) -> None:
    """A name that others choose (a tag, a branch) reaches a shell through its environment, not as its text."""
    for step in read_steps(path):
        assert "${{" not in step.get("run", ""), step["run"]


def test_images_are_released_as_the_dockerfile_has_them() -> None:
    stages = re.findall(r"^FROM runtime AS (\w+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert read_jobs(GITHUB / "workflows/release.yml")["images"]["strategy"]["matrix"]["part"] == stages


def test_vulnerabilities_are_reported_in_private() -> None:
    report = "https://github.com/fleetprof/fleetprof/security/advisories/new"
    assert report in (ROOT / "SECURITY.md").read_text()
    assert report in (GITHUB / "ISSUE_TEMPLATE/config.yml").read_text()
