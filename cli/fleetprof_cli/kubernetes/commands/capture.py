"""`kubectl fleetprof capture`: makes a ProfileRequest, shows how it gets on, takes it back on Ctrl-C.

Guarantees: with `-o json|yaml|name` stdout holds one document and nothing else; what cannot be captured is refused
before a request is made, as far as the user may look.
"""

import asyncio
import json
import sys
from dataclasses import replace
from datetime import datetime
from typing import Any

import click
from fleetprof_api.request import InvalidRequest, ProfileRequest, Target, parse_request

from fleetprof_cli.capture.following import follow
from fleetprof_cli.capture.request_flags import CaptureOptions, make_document
from fleetprof_cli.capture.request_options import (
    OPTION_GROUPS,
    read_file,
    read_options,
    refuse_invalid,
    request_options,
)
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace, Connection, connect
from fleetprof_cli.kubernetes.kinds import WorkloadKind, find_kind, known_kind, parse_selector, split_target
from fleetprof_cli.kubernetes.options import place_options, read_place
from fleetprof_cli.kubernetes.output import print_document, print_end, print_request
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_cli.kubernetes.requests import Requests
from fleetprof_cli.kubernetes.target_pods import require_injected, require_workload
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.option_groups import GroupedCommand
from fleetprof_cli.options import output_option


@click.command("capture", cls=GroupedCommand, groups=OPTION_GROUPS)
@click.argument("target", required=False, metavar="KIND/NAME")
@click.option("-l", "--selector", metavar="LABELS", default="", help="The pods with these labels, e.g. app=llama.")
@request_options
@click.option(
    "--dry-run", type=click.Choice(["none", "client"]), default="none", help="`client`: only print the request."
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the end of the capture.")
@output_option("text", "json", "yaml", "name", text="What goes to stdout: where the report is, or the request.")
@place_options
def command(**flags: Any) -> None:
    """Capture a few iterations of a running job on every rank: the same ones on all of them.

    KIND is as for kubectl (job, jobset, trainjob, pytorchjob, rayjob, lws, sts, deploy, pod …), or RESOURCE.GROUP for
    any kind that owns pods. Ctrl-C cancels the capture. A second Ctrl-C exits at once.

    \b
    Twenty iterations, to see who is late:  kubectl fleetprof capture job/llama --iterations 20
    The time of each module of the model:   kubectl fleetprof capture job/llama --collect ModuleTree
    Eight ranks of many, for half a second: kubectl fleetprof capture job/llama --sample 8 --duration 500ms
    The request as YAML, for git:           kubectl fleetprof capture job/llama --dry-run client > request.yaml
    """
    place, options = read_place(flags), read_options(flags)
    target, selector = flags["target"] or "", flags["selector"]
    request = read_file(flags, target or selector)
    if request is None and bool(target) == bool(selector):
        raise click.UsageError("say what to capture, once: KIND/NAME, -l LABELS or -f FILE")
    if request is not None:
        place = _agree(place, request)
    if flags["dry_run"] == "client":
        document = asyncio.run(_make_offline(place, request, target, selector, options))
        print_document(document, "json" if flags["output"] == "json" else "yaml")
        return
    state = asyncio.run(_capture(place, request, target, selector, options, wait=flags["wait"]))
    if flags["wait"]:
        print_end(state, flags["output"])
        sys.exit(state.exit_code())
    print_request(state, "name" if flags["output"] == "text" else flags["output"])
    say(f"follow it: kubectl fleetprof wait {state.name} -n {state.namespace}")


async def _capture(
    place: ClusterPlace,
    request: ProfileRequest | None,
    target: str,
    selector: str,
    options: CaptureOptions,
    *,
    wait: bool,
) -> RequestState:
    async with connect(place) as connection:
        if request is None:
            request, kind = await _make(connection, target, selector, options)
            if kind is not None:
                await require_workload(connection, kind, split_target(target)[1])
        description = target or (f"-l {selector}" if selector else _say_target(request.spec.target))
        await require_injected(connection, request.spec.target, description)
        requests = Requests(connection)
        state = await requests.create(_as_document(request, connection.namespace))
        return await follow(requests, state) if wait else state


async def _make(
    connection: Connection, target: str, selector: str, options: CaptureOptions
) -> tuple[ProfileRequest, WorkloadKind | None]:
    if selector:
        return _parse({"selector": parse_selector(selector)}, "capture", connection.namespace, options), None
    word, name = split_target(target)
    kind = await find_kind(connection, word)
    return _parse(_refer(kind, name), name, connection.namespace, options), kind


async def _make_offline(
    place: ClusterPlace, request: ProfileRequest | None, target: str, selector: str, options: CaptureOptions
) -> dict[str, Any]:
    """The request without asking the cluster, unless the kind must be looked up in it."""
    namespace = place.namespace or ""
    if request is None and selector:
        request = _parse({"selector": parse_selector(selector)}, "capture", namespace, options)
    if request is None:
        word, name = split_target(target)
        kind = known_kind(word)
        if kind is None:
            async with connect(place) as connection:
                kind = await find_kind(connection, word)
        request = _parse(_refer(kind, name), name, namespace, options)
    return _as_document(request, namespace)


def _parse(target: dict[str, Any], stem: str, namespace: str, options: CaptureOptions) -> ProfileRequest:
    document = make_document(target, stem, namespace or "default", options, datetime.now())
    try:
        return parse_request(document)
    except InvalidRequest as error:
        raise refuse_invalid("the flags do not make a valid request", error) from None


def _refer(kind: WorkloadKind, name: str) -> dict[str, Any]:
    return {"workload": {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}}


def _as_document(request: ProfileRequest, namespace: str) -> dict[str, Any]:
    """The document that is sent: the request as it was written, in this namespace; defaults are the API server's."""
    text = request.model_dump_json(by_alias=True, exclude_none=True, exclude_unset=True, exclude={"status"})
    document: dict[str, Any] = json.loads(text)
    metadata = document.setdefault("metadata", {})
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if not metadata.get("name") and not metadata.get("generateName"):
        metadata["generateName"] = "capture-"
    return document


def _agree(place: ClusterPlace, request: ProfileRequest) -> ClusterPlace:
    """The namespace of the file, which `-n` may repeat. Raises Failure."""
    inside = request.metadata.namespace
    if inside and place.namespace not in (None, inside):
        raise Failure(
            f"metadata.namespace: the file says {inside}, -n says {place.namespace}",
            next_step="leave one of them out",
            code=ExitCode.INVALID,
        )
    return replace(place, namespace=inside or place.namespace)


def _say_target(target: Target) -> str:
    if target.workload is None:
        return f"-l '{target.text()}'"
    return f"{target.workload.kind.lower()}/{target.workload.name}"
