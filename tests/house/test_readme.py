"""The README promises what holds: costs stand in a record, commands exist, each promise has its test."""

import re
import shlex
import subprocess
import tomllib
from datetime import date
from typing import Final

import click
import pytest
from fleetprof_cli.kubectl import group as plugin
from fleetprof_cli.main import main
from harness.repository import ROOT

README: Final = (ROOT / "README.md").read_text()
PAGE: Final = (ROOT / "docs/benchmarks.md").read_text()
MOST_LINES: Final = 120
CHANGED_SINCE: Final = "The agent has changed since"

PROMISES: Final = [
    ("Every rank begins at one future step", "tests/e2e/test_capture.py", "test_all_ranks_record_the_same_iterations"),
    ("Your training keeps its own environment", "tests/cli/local/test_current_folder.py", "test_a_job_keeps_its_path"),
    (
        "make demo",
        "tests/cli/local/test_demo.py",
        "test_the_demo_trains_captures_reports_and_at_a_terminal_serves_both_captures",
    ),
    ("your job keeps its exit code", "tests/cli/local/test_run.py", "test_the_exit_code_is_that_of_the_command"),
    ("your job keeps its exit code", "tests/e2e/test_faults_of_ours.py", "test_the_job_outlives_hub_and_sidecar"),
    ("fleetprof capture ", "tests/cli/local/test_capture.py", "test_a_capture_from_the_command_to_the_report"),
    ("fleetprof analyze traces/", "tests/cli/local/test_demo.py", "test_analyze_reads_traces_without_any_hub"),
    (
        "kubectl fleetprof capture",
        "tests/e2e/kubernetes/test_kubectl.py",
        "test_one_command_captures_all_ranks_and_others_fetch_what_it_stored",
    ),
    (
        "Nothing is privileged",
        "tests/operator/injection/pods/test_change.py",
        "test_the_sidecar_is_right_under_the_restricted_standard",
    ),
    (
        "no training pod holds a cloud credential",
        "tests/store/test_conformance.py",
        "test_a_grant_reaches_one_key_only",
    ),
]


def read_costs() -> list[list[str]]:
    """The rows of the table of costs: what, cost, at worst, day."""
    table = README.split("## Cost and safety")[1].split("\n\n")[1]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]


def read_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


COSTS: Final = read_costs()
COMMANDS: Final = [
    line.split("#")[0].strip()
    for block in read_blocks("sh")
    for line in block.splitlines()
    if line.startswith(("fleetprof", "kubectl fleetprof"))
]


def test_it_is_read_in_a_few_minutes() -> None:
    assert len(README.splitlines()) <= MOST_LINES
    assert re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README) == ["docs/report.png"]


@pytest.mark.parametrize("row", COSTS, ids=lambda row: row[0])
def test_each_cost_stands_in_a_record_of_its_day(row: list[str]) -> None:
    _, cost, worst, day = row
    record = ROOT / f"bench/results/{day}.json"
    remarks = [remark for remark in PAGE.split("\n- ") if day in remark]  # measured by hand
    text = " ".join([record.read_text() if record.exists() else "", *remarks, (ROOT / "docs/limits.md").read_text()])
    for number in re.findall(r"\d+\.\d+|\d+(?= (?:%|ms longer|of 20))", f"{cost} {worst}"):
        assert number in text, f"{number} of {row}"


def test_an_agent_that_changed_after_a_record_is_said_to_have() -> None:
    command = ["git", "log", "-1", "--format=%cs", "--", "sidecar/fleetprof_agent"]
    last = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    if not last:
        pytest.skip("not a git checkout with its history")
    stale = [row[0] for row in COSTS if date.fromisoformat(row[3]) < date.fromisoformat(last)]
    assert not stale or CHANGED_SINCE in README, f"measure again, or say so: {stale}"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_one_that_exists(command: str) -> None:
    words = shlex.split(command)
    group: click.Command = main if words[0] == "fleetprof" else plugin
    rest = words[1:] if words[0] == "fleetprof" else words[2:]
    assert isinstance(group, click.Group)
    found = group.get_command(click.Context(group), rest[0])
    assert found is not None, command
    options = {name for parameter in found.params for name in parameter.opts}
    own = rest[1 : rest.index("--")] if "--" in rest else rest[1:]
    assert {word for word in own if word.startswith("-")} <= options


@pytest.mark.parametrize("option", re.findall(r"\| `((?:capture|--|fleetprof)[^`]*)`", README))
def test_each_option_of_the_table_exists(option: str) -> None:
    capture = main.get_command(click.Context(main), "capture")
    assert capture is not None
    flags = {name for parameter in capture.params for name in parameter.opts}
    assert {word for word in option.split() if word.startswith("--")} <= flags


@pytest.mark.parametrize(("promise", "path", "name"), PROMISES)
def test_each_promise_has_its_test(promise: str, path: str, name: str) -> None:
    assert promise in README
    assert f"def {name}(" in (ROOT / path).read_text()


def test_on_pypi_every_link_is_absolute_and_leads_to_a_file() -> None:
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    text = README
    for rule in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []
    ours = r"https://(?:github|raw\.githubusercontent)\.com/fleetprof/fleetprof/(?:blob/)?main/([^#]+)(?:#.+)?"
    paths = [match[1] for link in links if (match := re.fullmatch(ours, link))]
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_answer_that_is_shown_is_one_that_a_report_gives() -> None:
    (shown,) = [block for block in read_blocks("text") if "holds the job up" in block]
    assert re.match(r"Rank \d+ holds the job up: the others wait for .*\. Potential saving: [\d.]+ % of each", shown)
