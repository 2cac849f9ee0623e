"""`kubectl fleetprof`: kubectl finds this program by its name, `kubectl-fleetprof`.

Guarantees: as `fleetprof`: machine-readable output on stdout, words on stderr, the same exit codes.
"""

import sys
from typing import Final

import click
from click.shell_completion import ShellComplete
from fleetprof_api.process.version import VERSION

from fleetprof_cli.command_table import Commands

COMMANDS: Final = {
    "capture": "Capture a few iterations of a running job on every rank.",
    "wait": "Follow a request until it ends, well or not.",
    "list": "List the captures there are.",
    "top": "Show what the running jobs do now, or the ranks of one.",
    "stacks": "Show where every rank of a job is, also of one that hangs.",
    "report": "Show the report of a capture.",
    "ui": "Open the web UI of the cluster in the browser.",
    "diff": "Compare two captures of a job, before and after a change.",
    "traces": "Fetch the traces of a capture into a folder.",
    "cancel": "Cancel captures that have not ended.",
    "inject": "Print a manifest with the sidecar in its pods, as the webhook would add it.",
    "doctor": "Find why pods cannot be captured and say what to do.",
    "completion": "Show how to complete these commands in a shell.",
}
_PACKAGES: Final = {"fleetprof_cli.kubernetes.commands": tuple(COMMANDS)}
_NO_FILES: Final = ":4"  # kubectl's directive: nothing but these words completes here


@click.command(
    cls=Commands,
    commands_table=COMMANDS,
    packages=_PACKAGES,
    extras="kubectl,analyzer",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(VERSION, prog_name="kubectl fleetprof")
def group() -> None:
    """Capture the same few iterations on every rank of a running PyTorch job, and see where the time went.

    \b
    Capture a job:      kubectl fleetprof capture job/llama --iterations 5
    Read the report:    kubectl fleetprof report
    Find what is wrong: kubectl fleetprof doctor job/llama
    """


def main() -> None:
    """Runs `kubectl fleetprof`."""
    group(prog_name="kubectl fleetprof")


def complete() -> None:
    """`kubectl_complete-fleetprof`: kubectl calls it with the words so far, the last one unfinished."""
    *words, unfinished = sys.argv[1:] or [""]
    for item in ShellComplete(group, {}, "kubectl fleetprof", "").get_completions(words, unfinished):
        click.echo(item.value)
    click.echo(_NO_FILES)


if __name__ == "__main__":
    main()
