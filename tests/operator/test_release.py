"""`fleetprof-operator release`, which runs before an uninstall: with an operator that answers, and without one."""

import asyncio
import os
import subprocess
import sys

import pytest
from fleetprof_operator.analyses.analyzer_job import RELEASE_LABEL, UID_LABEL
from harness.kubernetes.request_ground import RequestGround, condition, message

pytestmark = pytest.mark.cluster

FINALIZER = "fleetprof.io/namespaced-capture"
RELEASE = "import sys; from fleetprof_operator.release import main; sys.exit(main(sys.argv[1:]))"
# The same, with less patience for an operator that is gone.
HASTY = """
import asyncio, logging, sys
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.release import Release, release

async def go():
    cluster = await Cluster.connect()
    await release(cluster, Release("fleetprof-system/fleetprof", [sys.argv[2]], "fleetprof-system"), patience_s=1.5)
    await cluster.close()

logging.basicConfig()
asyncio.run(go())
"""


async def run_release(ground: RequestGround, code: str = RELEASE, kubeconfig: str = "") -> tuple[int, str]:
    """Its exit code and its log."""

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, "--namespaces", ground.namespace, "--namespace", "fleetprof-system"],
            env={
                "KUBECONFIG": kubeconfig or str(ground.api.kubeconfig()),
                "PATH": os.environ["PATH"],
                "HOME": str(ground.folder),
            },
            capture_output=True,
            text=True,
            timeout=100,
        )

    result = await asyncio.to_thread(run)
    return result.returncode, result.stderr


def finalizers(ground: RequestGround, name: str) -> list[str]:
    request = ground.request(name)
    assert request is not None, f"{name} was deleted"
    return request["metadata"].get("finalizers") or []


async def test_what_runs_waits_or_is_held_back_is_cancelled_and_freed_and_nothing_is_deleted(
    ground: RequestGround,
) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.ask("running")
    arm = await sidecar.expect("arm")
    ground.ask("waiting", target={"selector": {"matchLabels": {"app": "not-there-yet"}}})
    ground.ask("held-back", suspend=True)
    await ground.until_state("Waiting", "waiting")
    await ground.until_state("Suspended", "held-back")

    releasing = asyncio.create_task(run_release(ground))
    cancel = await sidecar.expect("cancel")
    assert cancel.capture_id == arm.capture_id  # no rank stays armed
    code, log = await releasing
    assert code == 0, log
    for name in ("running", "waiting", "held-back"):
        assert condition(ground.status(name)) == ("False", "Cancelled"), name
        assert "cancelled by the uninstallation of fleetprof" in message(ground.status(name)), name
        assert ground.status(name)["completionTime"]
        assert finalizers(ground, name) == []
    assert (await run_release(ground))[0] == 0  # again: nothing is left to do


async def test_analyzer_jobs_go_and_jobs_of_others_stay(ground: RequestGround) -> None:
    jobs = "/apis/batch/v1/namespaces/fleetprof-system/jobs"
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    analysis = {UID_LABEL: "a-uid", RELEASE_LABEL: "fleetprof"}
    for whose, labels in (("ours", analysis), ("theirs", {}), ("neighbours", {**analysis, RELEASE_LABEL: "second"})):
        body = {"metadata": {"name": f"{whose}-{ground.namespace}", "labels": labels}, "spec": {"template": pod}}
        ground.must("POST", jobs, body)

    code, log = await run_release(ground)

    assert code == 0, log
    assert ground.api.call("GET", f"{jobs}/ours-{ground.namespace}")[0] == 404
    for whose in ("theirs", "neighbours"):
        ground.must("DELETE", f"{jobs}/{whose}-{ground.namespace}")


async def test_without_an_operator_requests_are_freed_all_the_same_and_named(ground: RequestGround) -> None:
    ground.ask("stuck", target={"selector": {"matchLabels": {"app": "not-there-yet"}}})
    await ground.until(lambda: FINALIZER in finalizers(ground, "stuck"), "the finalizer")
    ground.kill_operator()
    others = [FINALIZER, "example.com/keep"]
    ground.must("PATCH", ground.path("profilerequests", "stuck"), {"metadata": {"finalizers": others}})
    code, log = await run_release(ground, HASTY)
    assert code == 0, log
    assert f"{ground.namespace}/stuck" in log
    assert finalizers(ground, "stuck") == ["example.com/keep"]
    ground.must("PATCH", ground.path("profilerequests", "stuck"), {"metadata": {"finalizers": None}})


async def test_a_right_that_is_missing_is_said_with_the_way_out(ground: RequestGround) -> None:
    code, log = await run_release(ground, kubeconfig=str(ground.api.kubeconfig("guest")))
    assert code == 1
    assert "cannot list resource" in log
    assert "--no-hooks" in log
