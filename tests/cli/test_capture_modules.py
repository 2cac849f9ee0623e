"""`capture --modules` is short for what it takes to see a model's modules, beside what else is collected."""

import pytest
import yaml
from click.testing import CliRunner
from fleetprof_cli.kubernetes.commands.capture import command


@pytest.mark.parametrize(
    ("flags", "collect"),
    [
        (["--modules"], ["ModuleTree", "Shapes"]),
        (["--collect", "Stacks,Shapes", "--modules"], ["Stacks", "Shapes", "ModuleTree"]),
        ([], None),
    ],
)
def test_modules_stands_for_two_things_to_collect(flags: list[str], collect: list[str] | None) -> None:
    shown = CliRunner().invoke(command, ["job/llama", *flags, "--dry-run=client"])
    assert shown.exit_code == 0, shown.output
    assert yaml.safe_load(shown.stdout)["spec"].get("collect") == collect
