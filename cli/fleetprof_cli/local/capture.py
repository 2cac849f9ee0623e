"""One capture in local mode: the job is chosen, the request is made and sent to the hub."""

from datetime import datetime
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import InvalidRequest, ProfileRequest, parse_request

from fleetprof_cli.capture.following import follow
from fleetprof_cli.capture.request_flags import CaptureOptions, make_document
from fleetprof_cli.capture.request_options import refuse_invalid
from fleetprof_cli.local.hub_captures import HubCaptures
from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.job_search import find_job
from fleetprof_cli.local.state import StateDirectory

DEFAULT_NAMESPACE: Final = "local"


async def take_capture(
    state: StateDirectory,
    request: ProfileRequest | None,
    options: CaptureOptions,
    job: str | None,
    namespace: str | None,
    *,
    wait: bool,
    wait_for_job: bool = False,
) -> pb.CaptureStatus:
    """Asks for a capture, of `request` or of `options` for `job`, and follows it when told to. Raises Failure.

    `wait_for_job`: the job need not be there yet.
    """
    async with HubClient(state) as hub:
        if request is None:
            running = await find_job(hub, state, job, namespace, wait=wait_for_job)
            target = running.job.target()
            try:
                request = parse_request(
                    make_document(target, running.job.name, running.job.namespace, options, datetime.now())
                )
            except InvalidRequest as error:
                raise refuse_invalid("the flags do not make a valid request", error) from None
        where = namespace or request.metadata.namespace or DEFAULT_NAMESPACE
        status = await hub.submit(request.to_json(), where)
    if status.finished and not status.ranks:
        return status
    return await follow(HubCaptures(state), status) if wait else status
