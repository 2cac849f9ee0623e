"""`fleetprof inject`: prints a manifest with the change that the webhook would make to its pods.

Guarantees: nothing is sent anywhere; stdout holds manifests only; a pod that is left alone is printed as it was, with
the reason on stderr.
"""

import sys
from pathlib import Path
from typing import IO, Final

import click
import msgspec
from fleetprof_api import __version__
from fleetprof_operator.injection.pods.change import change_pod
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings, InvalidSettings

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.manifests import (
    Document,
    InvalidManifest,
    find_objects,
    find_pods,
    name_workload,
    read_manifests,
    write_manifests,
)
from fleetprof_cli.messages import Failure, say

_HUB: Final = "fleetprof-hub.fleetprof-system.svc:8443"
_IMAGE: Final = f"ghcr.io/fleetprof/sidecar:{__version__}"


@click.command("inject")
@click.option(
    "-f",
    "--filename",
    "source",
    metavar="FILE",
    required=True,
    type=click.File("r"),
    help="Manifest with pods, or with objects that make pods. `-` reads stdin.",
)
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Form of the output (json: one List).",
)
@click.option(
    "--ca-file",
    metavar="FILE",
    envvar="FLEETPROF_CA_FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Certificates to check the hub with: `ca.crt` of the Secret fleetprof-tls.",
)
@click.option("--hub", metavar="HOST:PORT", default=_HUB, show_default=True, help="The hub, as pods reach it.")
@click.option("--image", metavar="IMAGE", default=_IMAGE, show_default=True, help="The sidecar's image.")
def command(*, source: IO[str], form: str, ca_file: Path | None, hub: str, image: str) -> None:
    """Print a manifest with the sidecar in its pods, as the webhook would add it.

    For clusters without the webhook, and for teams that keep their manifests under version control. The pods may be in
    any object: Job, JobSet, PyTorchJob, StatefulSet, Pod. The change is described in docs/injection.md.
    """
    settings = _make_settings(ca_file, hub, image)
    try:
        documents = read_manifests(source.read())
        found = sum(_inject(document, settings) for document in find_objects(documents))
    except (InvalidManifest, UnicodeDecodeError) as problem:
        raise Failure(f"{source.name}: {problem}", code=ExitCode.INVALID) from None
    if not found:
        raise Failure(
            f"{source.name}: no pod and no pod template in it",
            next_step="give the manifest of the Job, or of whatever makes the pods",
            code=ExitCode.INVALID,
        )
    if form == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": documents}
        click.echo(msgspec.json.format(msgspec.json.encode(listed), indent=2))
    else:
        sys.stdout.write(write_manifests(documents))


def _make_settings(ca_file: Path | None, hub: str, image: str) -> InjectionSettings:
    if ca_file is None:
        raise Failure(
            "--ca-file: pods need the certificates that the hub is checked with",
            next_step="kubectl get secret fleetprof-tls -n fleetprof-system -o jsonpath='{.data.ca\\.crt}' "
            "| base64 -d > ca.crt",
            code=ExitCode.INVALID,
        )
    try:
        authority = ca_file.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise Failure(f"--ca-file: {problem}", code=ExitCode.INVALID) from None
    try:
        return InjectionSettings(image=image, hub=hub, ca=authority)
    except InvalidSettings as problem:
        raise Failure(str(problem), code=ExitCode.INVALID) from None


def _inject(document: Document, settings: InjectionSettings) -> int:
    """Changes the object's pods in place; how many there were, changed or not."""
    workload = name_workload(document)
    count = 0
    for pod in find_pods(document):
        count += 1
        try:
            change = change_pod(pod, NamespaceLimits(), settings, workload=workload)
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise InvalidManifest(f"{_name(document)}: Kubernetes would refuse its pod: {problem}") from None
        for warning in change.warnings:
            say(f"{_name(document)}: {warning.removeprefix('fleetprof: ')}")
        if change.why_not and not change.warnings:
            say(f"{_name(document)}: left as it is: {change.why_not}")
        if change.patch:
            pod.clear()
            pod.update(change.pod)
    return count


def _name(document: Document) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else None
    return f"{document['kind']}/{name}"
