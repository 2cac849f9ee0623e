"""`fleetprof`: finds the command and loads only that one, so that `fleetprof run` costs a job almost nothing.

Guarantees: machine-readable output goes to stdout, everything for people to stderr; exit codes are those of
`exit_codes` (docs/cli.md).
"""

from typing import Final

import click
from fleetprof_api.process.version import VERSION

from fleetprof_cli.command_table import Commands

# The order is the order of use; the text is what `fleetprof --help` shows without loading the command.
COMMANDS: Final = {
    "run": "Run a training command so that it can be captured.",
    "capture": "Capture a few iterations of a running job on every rank.",
    "up": "Start the hub, the object store, the analysis and the web UI on this machine, to stay.",
    "cancel": "Cancel captures that have not ended.",
    "list": "List the jobs that can be captured and the captures there are.",
    "top": "Show what the running jobs do now, or the ranks of one.",
    "stacks": "Show where every rank of a job is at this moment, also of a job that hangs.",
    "report": "Show the report of a capture.",
    "ui": "Show the fleet of captures and their reports in the browser.",
    "analyze": "Analyse traces that you already have.",
    "diff": "Compare two captures of a job, before and after a change.",
    "sweep": "Run a training command at several batch sizes, and find the one to take.",
    "whatif": "Predict an iteration under changes: a faster kernel, network or loader, a straggler gone.",
    "tables": "List the tables of a report and their columns.",
    "catalog": "Maintain the web UI's index of a store.",
    "inject": "Print a manifest with the sidecar in its pods, as the webhook would add it.",
    "doctor": "Find what is wrong with this set-up and say what to do.",
    "demo": "Train a small model on four ranks, capture it and show the report.",
    "completion": "Print the shell completion script.",
}
_PACKAGES: Final = {
    "fleetprof_cli.commands.local": ("up", "run", "capture", "cancel", "list", "top", "stacks", "sweep", "demo"),
    "fleetprof_cli.commands.reports": ("report", "ui", "analyze", "diff", "whatif", "tables", "catalog"),
    "fleetprof_cli.commands.installation": ("inject", "doctor", "completion"),
}


@click.command(
    cls=Commands,
    commands_table=COMMANDS,
    packages=_PACKAGES,
    extras="cli",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(VERSION, prog_name="fleetprof")
def main() -> None:
    """Capture the same few iterations on every rank of a running PyTorch job, and see where the time went.

    \b
    Start the job:    fleetprof run -- torchrun --nproc-per-node 4 train.py
    While it trains:  fleetprof capture
    """


if __name__ == "__main__":
    main()
