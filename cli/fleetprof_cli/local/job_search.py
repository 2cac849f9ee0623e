"""The job that a capture means, waited for while it comes: its sidecar needs a moment to reach the hub.

Guarantees: a job whose `fleetprof run` is alive in this state directory is found without being named a second time; a
name that nobody has is refused within seconds, unless the user wants to wait for it; one that nobody can have at once.
"""

import asyncio
import time
from typing import Final

from fleetprof_cli.capture.jobs import NoSuchJob, RunningJob, choose_job, group_jobs
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.run.job_name import MAX_NAMESPACE_LENGTH, refuse_name
from fleetprof_cli.local.run.run_folder import live_runs
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure, say

_LOOK_EVERY_S: Final = 0.25
_STARTS_S: Final = 3.0  # `fleetprof run` may have been typed at the same moment
_CONNECTS_S: Final = 30.0  # a run is alive: its sidecar dials, or is started again


async def find_job(
    hub: HubClient, state: StateDirectory, name: str | None, namespace: str | None, *, wait: bool
) -> RunningJob:
    """The job of this name, or the only one; with `wait` as soon as there is one. Raises Failure."""
    began = time.monotonic()
    last_news = ""
    while True:
        try:
            return choose_job(group_jobs(await hub.fleet()), name, namespace)
        except NoSuchJob as nobody:
            if problem := _refuse(name, namespace):
                raise Failure(nobody.message, next_step=f"none can be: {problem}", code=ExitCode.INVALID) from None
            starting = _is_starting(state, name, namespace)
            patience_s = _CONNECTS_S if starting else _STARTS_S
            if not wait and time.monotonic() - began >= patience_s:
                raise
            what = f"job {name}" if name else "a job"
            news = f"waiting for the sidecar of {what}" if starting else f"{nobody.message}; waiting for {what}"
            if news != last_news and (wait or starting):
                say(news)
                last_news = news
        await asyncio.sleep(_LOOK_EVERY_S)


def _refuse(name: str | None, namespace: str | None) -> str:
    """The reason why no job can ever have this name, which may stand behind its kind; empty where one can."""
    problem = refuse_name(name.rpartition("/")[2]) if name is not None else ""
    return problem or (refuse_name(namespace, MAX_NAMESPACE_LENGTH) if namespace is not None else "")


def _is_starting(state: StateDirectory, name: str | None, namespace: str | None) -> bool:
    """Tells whether such a run is alive on this machine."""
    return any(name in (None, run.name) and namespace in (None, run.namespace) for run in live_runs(state))
