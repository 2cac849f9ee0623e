"""`fleetprof completion SHELL`: the script that completes commands and flags."""

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, *, shell: str) -> None:
    """Print the shell completion script.

    \b
    bash:  eval "$(fleetprof completion bash)"
    zsh:   eval "$(fleetprof completion zsh)"
    fish:  fleetprof completion fish | source
    """
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(context.find_root().command, {}, "fleetprof", "_FLEETPROF_COMPLETE").source())
