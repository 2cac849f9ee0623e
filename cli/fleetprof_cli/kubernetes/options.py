"""Options that the commands of `kubectl fleetprof` share, with kubectl's own names."""

from collections.abc import Callable
from typing import Any

import click

from fleetprof_cli.kubernetes.connection import Place


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `-n`, `--context` and `--kubeconfig`; `read_place` takes them out of the command's arguments."""
    for option in (
        click.option(
            "--kubeconfig", metavar="FILE", help="The kubeconfig  [default: $KUBECONFIG, else ~/.kube/config]."
        ),
        click.option(
            "--context", "context_name", metavar="NAME", help="The kubeconfig's context  [default: its current]."
        ),
        click.option("-n", "--namespace", metavar="NAME", help="The namespace  [default: the context's]."),
    ):
        command = option(command)
    return command


def read_place(flags: dict[str, Any]) -> Place:
    """What those options said; they are taken out of `flags`."""
    return Place(
        kubeconfig=flags.pop("kubeconfig"), context=flags.pop("context_name"), namespace=flags.pop("namespace")
    )


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--store` and `--s3-endpoint`."""
    for option in (
        click.option("--s3-endpoint", metavar="URL", default="", help="Address of an S3 server other than Amazon's."),
        click.option(
            "--store",
            metavar="s3://BUCKET/PREFIX",
            envvar="FLEETPROF_STORE",
            default="",
            help="The object store  [default: $FLEETPROF_STORE, else what the request's status says].",
        ),
    ):
        command = option(command)
    return command
