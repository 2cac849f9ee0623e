"""`kubectl fleetprof completion`: how the shell completes this plug-in."""

import click


@click.command("completion")
def command() -> None:
    """Show how to complete `kubectl fleetprof` in a shell: kubectl asks `kubectl_complete-fleetprof`.

    \b
    bash:  source <(kubectl completion bash)
    zsh:   source <(kubectl completion zsh)
    fish:  kubectl completion fish | source
    """
    click.echo("kubectl's own completion asks kubectl_complete-fleetprof, which is installed beside this command:")
    click.echo("  source <(kubectl completion bash)    # or zsh; fish: kubectl completion fish | source")
