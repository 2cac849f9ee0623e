"""The lists of the documentation are complete: documented or fail."""

import re
from pathlib import Path

import click
import pytest
from fleetprof_api.ledger import Reason
from fleetprof_api.request import ProfileRequest, Status, load_request
from fleetprof_api.request.fields import FieldRow, list_fields
from fleetprof_cli.capture.request_flags import CaptureOptions
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubectl import COMMANDS as ON_KUBERNETES
from fleetprof_cli.kubectl import group as plugin
from fleetprof_cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
CLI = (ROOT / "docs/cli.md").read_text()
KUBECTL = (ROOT / "docs/kubectl.md").read_text()
REQUEST = (ROOT / "docs/request.md").read_text()
REASONS = (ROOT / "docs/reasons.md").read_text()
OF_RANKS, OF_CAPTURES = (
    REASONS.partition(f"## Reasons of a {what}\n")[2].partition("\n## ")[0] for what in ("rank", "capture")
)
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "examples/README.md"])


def load_command(name: str, group: click.Command = main) -> click.Command:
    assert isinstance(group, click.Group)
    command = group.get_command(click.Context(group), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_described(name: str) -> None:
    assert f"| `fleetprof {name}" in CLI
    assert load_command(name).help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_is_documented(name: str) -> None:
    for parameter in load_command(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"
            assert any(option in CLI for option in (*parameter.opts, *parameter.secondary_opts)), (
                f"{name} {parameter.opts} is not in docs/cli.md"
            )


@pytest.mark.parametrize("name", ON_KUBERNETES)
def test_every_command_and_option_of_the_plug_in_is_documented(name: str) -> None:
    command = load_command(name, plugin)
    assert f"| `kubectl fleetprof {name}" in KUBECTL
    assert (command.help or "").split()[:3] == ON_KUBERNETES[name].split()[:3]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"
            # The page on injection describes its own command.
            page = CLI if name == "inject" else KUBECTL
            assert any(option in page for option in parameter.opts), f"{name} {parameter.opts} is not documented"


def test_the_overview_says_what_each_command_says_of_itself() -> None:
    for name, text in COMMANDS.items():
        assert (load_command(name).help or "").split()[:4] == text.split()[:4], name


@pytest.mark.parametrize("code", ExitCode)
def test_every_exit_code_is_documented(code: ExitCode) -> None:
    assert f"| {code.value} | {code.name} |" in CLI


def test_every_flag_of_capture_that_makes_a_field_is_mapped() -> None:
    assert CLI.count("`spec.") >= len(CaptureOptions.__dataclass_fields__)


FIELDS = [row for row in list_fields(ProfileRequest) if row.path != "status"] + list(list_fields(Status, "status."))


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: row.path)
def test_every_field_of_a_request_is_documented_as_it_is(row: FieldRow) -> None:
    assert f"| `{row.path}` | {row.rule} | {row.default} | {row.meaning} |" in REQUEST


def test_no_field_is_documented_that_is_not_there() -> None:
    documented = re.findall(r"^\| `([a-zA-Z.\[\]]+)` \|", REQUEST, re.MULTILINE)
    assert documented == [row.path for row in FIELDS]


def test_the_example_of_the_request_page_is_valid() -> None:
    block = re.search(r"(?:^    .*\n)+", REQUEST, re.MULTILINE)
    assert block is not None
    assert load_request(block[0]).metadata.name == "five-iterations"


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_of_a_rank_is_explained(reason: Reason) -> None:
    rows = [line for line in OF_RANKS.splitlines() if line.startswith(f"| `{reason.value}` |")]
    assert rows, f"{reason.value} is not in docs/reasons.md"
    assert len(rows[0].split("|")[2].strip()) > 10


def test_no_reason_is_explained_that_does_not_exist() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", OF_RANKS, re.MULTILINE)) == {reason.value for reason in Reason}


def test_the_reasons_of_a_capture_are_those_of_the_hub() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", OF_CAPTURES, re.MULTILINE))
    assert len(documented) > 20
    source = "".join(path.read_text() for path in (ROOT / "operator/fleetprof_operator").rglob("*.py"))
    assert documented <= set(re.findall(r'"(\w+)"', source))


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_is_a_valid_request(path: Path) -> None:
    load_request(path.read_text())
    assert path.name in (ROOT / "examples/README.md").read_text()


def test_the_example_training_script_knows_nothing_of_us() -> None:
    code = (ROOT / "examples/train.py").read_text().split('"""', 2)[2]
    assert "fleetprof" not in code


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_and_named_files_exist(page: Path) -> None:
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert link.startswith("https://") or (page.parent / link).exists(), link
    for named in re.findall(r"`((?:api|docs|examples|bench|tests)/[\w./-]+\.\w+)`", text):
        assert (ROOT / named).exists(), named
