"""Analyzer Jobs of a real API server. No controller runs: the test says what becomes of a Job and its pods."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.kubernetes.api_server import MINOR, ApiServer
from harness.kubernetes.request_ground import RequestGround, condition, message

pytestmark = pytest.mark.cluster

TEMPLATE = {
    "metadata": {"labels": {"app": "analyzer"}},
    "spec": {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [{"name": "analyzer", "image": "x", "command": ["fleetprof-analyzer"]}],
    },
}
JOBS = "/apis/batch/v1/namespaces/fleetprof-system/jobs"
PODS = "/api/v1/namespaces/fleetprof-system/pods"
NOW = "2026-11-21T12:00:00Z"
TIME = {"span": 1000, "compute": 500, "exposed_communication": 250, "idle": 250}


@pytest.fixture
async def ground(api: ApiServer, tmp_path: Path) -> AsyncIterator[RequestGround]:
    template = tmp_path / "pod.yaml"
    template.write_text(yaml.safe_dump(TEMPLATE))
    ground = RequestGround(
        api, tmp_path, "--analyzer-pod", str(template), "--report-url", "https://p.example/{namespace}/{uid}",
        "--analysis-max-resources", "cpu=8",
    )  # fmt: skip
    ground.start_operator()
    try:
        yield ground
    finally:
        await ground.close()


async def capture(ground: RequestGround, **spec: Any) -> str:
    """A request of which all ranks are uploaded; its uid."""
    sidecar = await ground.add_rank(0, 1)
    ground.ask(**spec)
    return await ground.deliver(sidecar)


def job(ground: RequestGround, command: str, uid: str) -> dict[str, Any] | None:
    status, found = ground.api.call("GET", f"{JOBS}/fleetprof-{command}-{uid}")
    return found if status == 200 else None


def end_job(ground: RequestGround, name: str, kind: str, reason: str = "", message: str = "", **status: Any) -> None:
    """As the Job controller does: first what decides, then what is; before Kubernetes 1.31 a success is not decided."""
    decided = {"Complete": ["SuccessCriteriaMet"] if MINOR >= 31 else [], "Failed": ["FailureTarget"]}[kind]
    made = [
        {
            "type": t,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": NOW,
            "lastTransitionTime": NOW,
        }
        for t in (*decided, kind)
    ]
    whole = {"startTime": NOW, "conditions": made, "uncountedTerminatedPods": {}} | status
    if kind == "Complete":
        whole["completionTime"] = NOW
    ground.must("PATCH", f"{JOBS}/{name}/status", {"status": whole})


async def test_a_report_is_made_by_one_pod_and_its_headline_is_shown(ground: RequestGround) -> None:
    uid = await capture(ground, analysis={"resources": {"limits": {"memory": "2Gi"}}})
    made = await ground.until(lambda: job(ground, "report", uid), "the Job")
    spec = made["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert container["args"] == ["report", ground.namespace, uid]
    assert container["resources"]["limits"] == {"memory": "2Gi"}
    assert spec["template"]["metadata"]["labels"]["fleetprof.io/request-uid"] == uid
    assert condition(await ground.until_state("Analyzing")) == ("Unknown", "Analyzing")
    report = {"totals": [{"kind": "gpu", "time_basis": "device", "ranks": 1, "time_ns": TIME}]}
    (ground.store / f"v1/{ground.namespace}/{uid}/report.json").write_text(json.dumps(report))
    end_job(ground, made["metadata"]["name"], "Complete", succeeded=1)
    status = await ground.until_finished()
    assert condition(status) == ("True", "Complete")
    assert status["headline"] == {"busyPermille": 750, "exposedCommunicationPermille": 250}
    assert status["reportURL"] == f"https://p.example/{ground.namespace}/{uid}"
    assert status["storeURL"] == str(ground.store / f"v1/{ground.namespace}/{uid}/report.html")
    messages = {e["reason"]: e["message"] for e in ground.must("GET", ground.path("events"))["items"]}
    assert messages["Analyzing"] == "1 of 1 rank uploaded; the report is being made"
    ground.delete()
    await ground.until(lambda: job(ground, "report", uid) is None, "the Job's deletion")


async def test_whoever_asks_for_more_than_is_allowed_is_told(ground: RequestGround) -> None:
    await capture(ground, analysis={"parallelism": 1000, "resources": {"requests": {"cpu": "96"}}})
    await ground.until(lambda: ("Warning", "AnalysisCut") in ground.events(), "the Event")
    messages = [
        e["message"] for e in ground.must("GET", ground.path("events"))["items"] if e["reason"] == "AnalysisCut"
    ]
    message = "the analysis is cut to what the installation allows: parallelism 1000 to 32, requests.cpu 96 to 8"
    assert messages == [message]


async def test_why_it_failed_is_the_analyzers_own_sentence(ground: RequestGround) -> None:
    uid = await capture(ground)
    name = (await ground.until(lambda: job(ground, "report", uid), "the Job"))["metadata"]["name"]
    pod = {
        "metadata": {"name": f"p-{uid}", "labels": {"batch.kubernetes.io/job-name": name}},
        "spec": TEMPLATE["spec"],
    }
    ground.must("POST", PODS, pod)
    ended = {"exitCode": 4, "message": "the bucket refuses us: AccessDenied"}
    state = {"name": "analyzer", "image": "x", "imageID": "x", "ready": False, "restartCount": 0}
    ground.must("PATCH", f"{PODS}/p-{uid}/status", {"status": {
        "phase": "Failed", "containerStatuses": [state | {"state": {"terminated": ended}}]}})  # fmt: skip
    end_job(ground, name, "Failed", "PodFailurePolicy", "Container analyzer failed with exit code 4", failed=1)
    status = await ground.until_finished()
    assert condition(status) == ("False", "AnalysisFailed")
    assert "the bucket refuses us: AccessDenied. The traces lie beside" in message(status)
    assert condition(status, "Uploaded") == ("True", "AllUploaded")
    assert "reportURL" not in status


async def test_many_shards_are_summarised_and_merged(ground: RequestGround) -> None:
    sidecars = [await ground.add_rank(rank, 2) for rank in range(2)]
    ground.ask(analysis={"parallelism": 2})
    await ground.deliver(sidecars[0])
    uid = await ground.deliver(sidecars[1])
    made = await ground.until(lambda: job(ground, "summarise", uid), "the Indexed Job")
    assert [made["spec"][k] for k in ("completionMode", "completions", "parallelism")] == ["Indexed", 2, 2]
    assert made["spec"]["template"]["spec"]["containers"][0]["args"][-2:] == ["--of", "2"]
    # One index ran out of memory: what the other made is merged.
    end_job(ground, made["metadata"]["name"], "Failed", "FailedIndexes", succeeded=1, failed=1,
            completedIndexes="0", failedIndexes="1")  # fmt: skip
    merge = await ground.until(lambda: job(ground, "merge", uid), "the Job that merges")
    assert job(ground, "report", uid) is None
    end_job(ground, merge["metadata"]["name"], "Complete", succeeded=1)
    assert condition(await ground.until_finished()) == ("True", "Complete")


async def test_a_restart_follows_the_job_that_is_there(ground: RequestGround) -> None:
    uid = await capture(ground)
    before = await ground.until(lambda: job(ground, "report", uid), "the Job")
    ground.kill_operator()
    ground.start_operator()
    await ground.reconnect()
    end_job(ground, before["metadata"]["name"], "Complete", succeeded=1)
    status = await ground.until_finished()
    assert condition(status) == ("True", "Complete")
    assert (job(ground, "report", uid) or {})["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_job_that_somebody_deletes_is_told(ground: RequestGround) -> None:
    uid = await capture(ground)
    made = await ground.until(lambda: job(ground, "report", uid), "the Job")
    options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
    ground.must("DELETE", f"{JOBS}/{made['metadata']['name']}", options)
    status = await ground.until_finished()
    assert condition(status) == ("False", "AnalysisFailed")
    assert "was deleted before it had ended" in message(status)
