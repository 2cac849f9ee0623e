"""`kubectl fleetprof inject`: the same as `fleetprof inject`."""

from fleetprof_cli.commands.installation.inject import command

__all__ = ["command"]
