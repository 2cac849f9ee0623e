"""A next step can be pasted: it names this program as it was called, and the state directory of this command line."""

import sys
from pathlib import Path

import click
import pytest
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure
from fleetprof_cli.typed_commands import as_typed, name_program


def context_with(*words: str) -> click.Context:
    """The context of a command that takes `--state`, with these words."""

    @click.command()
    @click.option("--state", default="/home/me/state", expose_value=False)
    def command() -> None: ...

    context = command.make_context("fleetprof", list(words))
    context.obj = StateDirectory(Path(words[1] if words else "/home/me/state"))
    return context


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("with: fleetprof run -- COMMAND", "with: fleetprof run --state '/my state' -- COMMAND"),
        ("take one: fleetprof capture", "take one: fleetprof capture --state '/my state'"),
        ("fleetprof list, fleetprof ui", "fleetprof list --state '/my state', fleetprof ui --state '/my state'"),
        ("fleetprof up --state /other", "fleetprof up --state /other"),
        ("kubectl fleetprof list", "kubectl fleetprof list"),
        ("fleetprof demo --python PATH", "fleetprof demo --python PATH"),
        ("pip install 'fleetprof[cli]'", "pip install 'fleetprof[cli]'"),
    ],
)  # fmt: skip
def test_a_named_state_directory_is_repeated(text: str, shown: str) -> None:
    with context_with("--state", "/my state"):
        assert as_typed(text) == shown


def test_the_usual_state_directory_is_not() -> None:
    with context_with():
        assert as_typed("take one: fleetprof capture") == "take one: fleetprof capture"
    assert as_typed("take one: fleetprof capture") == "take one: fleetprof capture"


def test_a_program_that_is_not_on_path_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "fleetprof"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bin/fleetprof", "report"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert name_program() == "bin/fleetprof"
    assert Failure("x", next_step="fleetprof list").next_step == "bin/fleetprof list"
    monkeypatch.setenv("PATH", str(program.parent))
    assert name_program() == "fleetprof"
