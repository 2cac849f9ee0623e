"""Records what the hub tells the policies of real jobs: `python tests/harness/policies/record_jobs.py [SECONDS]`.

It starts a hub and one job of each story (`recorded_job.py`), all at once, and writes a file of each to
tests/data/telemetry: the figures of every ten seconds, as `JobFigures` has them. That takes as long as the jobs run.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fleetprof_api.hub.local_hub import HUB_SOCKET, UPLOAD_URL, HubRecord
from fleetprof_cli.local.capture import DEFAULT_NAMESPACE
from fleetprof_cli.local.state import StateDirectory
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.server import serve
from fleetprof_operator.policies.triggers.figures import HubFigures, JobFigures
from fleetprof_store.directory import DirectoryStore
from fleetprof_store.location import StoreLocation

STORIES = (
    "healthy",
    "idle",
    "data-starved",
    "evaluation phases",
    "checkpoint pauses",
    "slow start",
    "one slow rank",
    "drift",
)
EVERY_S = 10
LENGTH_S = 1860
FOLDER = Path(__file__).parents[2] / "data/telemetry"
JOB = Path(__file__).with_name("recorded_job.py")
COLUMNS = ("at_s", "iteration", "iteration_ns", "activity_permille", "lowest")


def start(state: StateDirectory, story: str, seed: int, seconds: int) -> subprocess.Popen[bytes]:
    """The job under `fleetprof run`."""
    program = [str(JOB), story, str(seed), str(seconds)]
    if story == "one slow rank":
        program = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *program]
    words = ["run", "--state", str(state.path), "--name", story.replace(" ", "-"), "--", sys.executable, *program]
    return subprocess.Popen([str(Path(sys.executable).with_name("fleetprof")), *words])


def note(columns: dict[str, list[Any]], figures: JobFigures, at_s: int) -> None:
    """One line more."""
    columns["at_s"].append(at_s)
    for name in COLUMNS[1:]:
        columns[name].append(getattr(figures, name))


async def record(seconds: int) -> None:
    """Records each story on a real job."""
    columns_by_story: dict[str, dict[str, list[Any]]] = {s.replace(" ", "-"): {c: [] for c in COLUMNS} for s in STORIES}
    ranks: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="fp-") as folder:
        state = StateDirectory(Path(folder) / "s")
        state.prepare()
        hub = Hub(store=DirectoryStore(state.default_store, state.upload_secret(), UPLOAD_URL))
        place = f"unix:{state.path / HUB_SOCKET}"
        server = await serve(hub, place, token=state.token())
        began = time.time_ns()
        state.publish(
            HubRecord(
                address=place, pid=0, store=StoreLocation(directory=str(state.default_store)), started_unix_ns=began
            )
        )
        figures = HubFigures(
            hub.sidecars, lambda job, measure: hub.telemetry.measure((job.namespace, job.kind, job.name), measure)
        )
        jobs = [start(state, story, seed, seconds + 600) for seed, story in enumerate(STORIES)]
        try:
            while (at_s := (time.time_ns() - began) // 10**9) < seconds:
                for one in figures.list_jobs(DEFAULT_NAMESPACE, None):
                    note(columns_by_story[one.job.name], one, at_s)
                    ranks[one.job.name] = max(one.ranks, ranks.get(one.job.name, 0))
                await asyncio.sleep(EVERY_S)
        finally:
            for job in jobs:
                job.terminate()
                job.wait(60)
            await server.stop()
            await hub.close()
    FOLDER.mkdir(exist_ok=True)
    for name, columns in columns_by_story.items():
        (FOLDER / f"{name}.json").write_text(json.dumps({"ranks": ranks.get(name, 0), **columns}) + "\n")


if __name__ == "__main__":
    asyncio.run(record(int(sys.argv[1]) if len(sys.argv) > 1 else LENGTH_S))
