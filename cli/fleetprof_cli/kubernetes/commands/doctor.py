"""`kubectl fleetprof doctor`: why does this pod not answer, and what to do about it.

Guarantees: changes nothing, starts nothing in a pod unless `--exec` says so; exit code 1 when something would make a
capture fail, else 0.
"""

import asyncio
import sys
import time
from typing import Any

import click
from fleetprof_api.request import Target
from pydantic import ValidationError

from fleetprof_cli.doctor.check import Check, Verdict
from fleetprof_cli.doctor.check_list import print_checks
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace, connect
from fleetprof_cli.kubernetes.doctor.installation_checks import judge_installation, judge_namespace
from fleetprof_cli.kubernetes.doctor.observation import observe
from fleetprof_cli.kubernetes.doctor.pod_checks import judge_latest, judge_pods
from fleetprof_cli.kubernetes.kinds import find_kind, parse_selector, split_target
from fleetprof_cli.kubernetes.options import place_options, read_place
from fleetprof_cli.messages import Failure
from fleetprof_cli.options import output_option


@click.command("doctor")
@click.argument("target", required=False, metavar="KIND/NAME")
@click.option("-l", "--selector", metavar="LABELS", default="", help="The pods with these labels, e.g. app=llama.")
@click.option("--exec", "ask_torch", is_flag=True, help="Ask in the training container which PyTorch it has.")
@output_option("text", "json", text="Form of the output.")
@place_options
def command(target: str | None, selector: str, ask_torch: bool, output: str, **flags: Any) -> None:
    """Find why pods cannot be captured and say what to do: those of KIND/NAME, or with the labels of -l.

    Looks at the installation, your rights, the namespace, the pods, their sidecars and the last request about them.
    """
    if bool(target) == bool(selector):
        raise click.UsageError("say what to look at, once: KIND/NAME or -l LABELS")
    checks = asyncio.run(_look(read_place(flags), target or "", selector, ask_torch))
    print_checks(checks, output)
    sys.exit(ExitCode.FAILED if any(check.verdict == Verdict.FAIL for check in checks) else ExitCode.DONE)


async def _look(place: ClusterPlace, reference: str, selector: str, ask_torch: bool) -> list[Check]:
    async with connect(place) as connection:
        document: dict[str, Any] = {"selector": parse_selector(selector)} if selector else {}
        if reference:
            word, name = split_target(reference)
            kind = await find_kind(connection, word)
            document = {"workload": {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}}
        try:
            target = Target.model_validate(document)
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"]
            raise Failure(f"{reference or selector}: {message}", code=ExitCode.INVALID) from None
        facts = await observe(connection, target, ask_torch=ask_torch)
        return [
            *judge_installation(facts, time.time_ns()),
            *judge_namespace(facts, connection.namespace),
            *judge_pods(facts, target.text()),
            *judge_latest(facts.latest),
        ]
