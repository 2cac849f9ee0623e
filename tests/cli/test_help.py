"""Help reads like help: groups and examples for `capture`, defaults in one form, no names of types."""

import re

import click
import pytest
from click.testing import CliRunner
from fleetprof_cli.kubectl import COMMANDS as ON_KUBERNETES
from fleetprof_cli.kubectl import group as plugin
from fleetprof_cli.main import COMMANDS, main

ALL = [(main, name) for name in COMMANDS] + [(plugin, name) for name in ON_KUBERNETES]


def help_of(group: click.Command, name: str) -> str:
    return CliRunner().invoke(group, [name, "--help"]).output


@pytest.mark.parametrize(("group", "name"), ALL, ids=[f"{group.name} {name}" for group, name in ALL])
def test_help_names_no_type_and_ends_no_bracket_with_a_full_stop(group: click.Command, name: str) -> None:
    text = help_of(group, name)
    assert not re.search(r"INTEGER|FLOAT|RANGE|\]\.(?!\.)", text), text


@pytest.mark.parametrize("group", [main, plugin])
def test_the_flags_of_capture_stand_in_groups_with_examples(group: click.Command) -> None:
    text = help_of(group, "capture")
    headings = re.findall(r"^(\S[^\n]*):$", text, re.MULTILINE)
    assert {*headings} == {"What to record", "Which ranks", "What to keep", "What protects the job", "Options"}
    assert headings[-1] == "Options"
    assert text.count("fleetprof capture") > 3
    own, wide = text.split("Options:")[0], text.split("Options:")[1]
    assert "--iterations" in own
    assert "--canary" not in wide
