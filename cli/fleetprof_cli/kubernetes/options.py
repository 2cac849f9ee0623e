"""Options that the commands of `kubectl fleetprof` share, with kubectl's own names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from fleetprof_cli.kubernetes.connection import ClusterPlace


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds kubectl's options of which cluster, which namespace and who; `read_place` takes them out of the flags."""
    for option in (
        click.option(
            "--kubeconfig", metavar="FILE", help="The kubeconfig (default: $KUBECONFIG, else ~/.kube/config)."
        ),
        click.option(
            "--context", "context_name", metavar="NAME", help="The kubeconfig's context (default: its current)."
        ),
        click.option("--as", "as_user", metavar="USER", help="Ask in this user's name, where you may."),
        click.option("--token", metavar="TOKEN", help="A bearer token, in place of the kubeconfig's credentials."),
        click.option("-n", "--namespace", metavar="NAME", help="The namespace (default: the context's)."),
    ):
        command = option(command)
    return command


def read_place(flags: dict[str, Any]) -> ClusterPlace:
    """The place of those options; they are taken out of `flags`."""
    return ClusterPlace(
        kubeconfig=flags.pop("kubeconfig"),
        context=flags.pop("context_name"),
        namespace=flags.pop("namespace"),
        as_user=flags.pop("as_user"),
        token=flags.pop("token"),
    )


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """The store of `--store`, `--s3-endpoint` and `--port-forward`; `forward`: of which cluster."""

    store: str = ""
    s3_endpoint: str = ""
    forward: ClusterPlace | None = None


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--store`, `--s3-endpoint` and `--port-forward`; `read_store` takes them out of the command's arguments."""
    for option in (
        click.option(
            "--port-forward",
            is_flag=True,
            help="Reach the chart's bundled store through kubectl port-forward, with the keys of its reader.",
        ),
        click.option("--s3-endpoint", metavar="URL", default="", help="Address of an S3 server other than Amazon's."),
        click.option(
            "--store",
            metavar="s3://BUCKET/PREFIX",
            envvar="FLEETPROF_STORE",
            default="",
            help="The object store (default: $FLEETPROF_STORE, else what the request's status says).",
        ),
    ):
        command = option(command)
    return command


def read_store(flags: dict[str, Any], place: ClusterPlace) -> StoreChoice:
    """The store of its options; they are taken out of `flags`."""
    forward = place if flags.pop("port_forward") else None
    return StoreChoice(store=flags.pop("store"), s3_endpoint=flags.pop("s3_endpoint"), forward=forward)
