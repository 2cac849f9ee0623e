"""Reports are made in real pods: shared out, of summaries that sidecars make, and with too little memory."""

from collections.abc import Callable

import pytest
from scene.api import Api
from scene.installation import NAMESPACE
from scene.request import JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]


# The container's memory limit, how often the kernel killed one of its processes for memory, and what a child may take.
LIMITS = r"""
import pathlib, re
from fleetprof_sidecar.captures.summary_queue import memory_for_a_child
group = pathlib.Path("/sys/fs/cgroup")
second = (group / "memory.max").exists()
limit = group / ("memory.max" if second else "memory/memory.limit_in_bytes")
events = group / ("memory.events" if second else "memory/memory.oom_control")
print(limit.read_text().strip(), re.search(r"oom_kill (\d+)", events.read_text())[1], memory_for_a_child())
"""


def jobs_of(api: Api, request: JobRequest) -> dict[str, tuple[int, int]]:
    """Command → pods asked for, and pods that came to a good end."""
    listed = api.list("Job", NAMESPACE, "batch/v1", f"fleetprof.io/request-uid={request.uid}")
    return {
        job["spec"]["template"]["spec"]["containers"][0]["args"][0]: (
            job["spec"].get("completions", 1),
            job["status"].get("succeeded", 0),
        )
        for job in listed
    }


def test_many_pods_summarise_and_one_merges(
    api: Api, store: StoreInCluster, training: Training, make_request: Callable[..., JobRequest]
) -> None:
    request = make_request(training, "shared-out", analysis={"parallelism": 2})

    request.await_end()

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert jobs_of(api, request) == {"summarise": (2, 2), "merge": (1, 1)}
    report = store.report(training.namespace, request.uid)
    assert report.problems == []
    assert [len(rank.iterations) for rank in report.ranks] == [5, 5, 5, 5]


def test_a_report_for_which_memory_is_too_small_is_said_to_be(
    api: Api, store: StoreInCluster, training: Training, make_request: Callable[..., JobRequest]
) -> None:
    request = make_request(training, "starved", analysis={"resources": {"limits": {"memory": "16Mi"}}})

    request.await_end()

    assert request.outcome() == ("False", "AnalysisFailed"), request.describe()
    # One try: another would end the same way.
    assert jobs_of(api, request) == {"report": (1, 0)}
    assert "memory" in request.message("Analyzed"), request.describe()
    assert request.states() == dict.fromkeys(range(4), "UPLOADED")
    traces = {f"ranks/{rank}/trace.json.gz" for rank in range(4)}
    assert traces <= set(store.keys(training.namespace, request.uid))


def test_a_report_of_summaries_keeps_the_traces_that_it_names(
    store: StoreInCluster, training: Training, make_request: Callable[..., JobRequest]
) -> None:
    request = make_request(training, "auto", traces="Auto")

    # Summaries are made at the lowest priority, beside four ranks that train.
    request.await_end(patience_s=240)

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.states() == dict.fromkeys(range(4), "UPLOADED")
    report = store.report(training.namespace, request.uid)
    assert report.problems == []
    assert [len(rank.iterations) for rank in report.ranks] == [5, 5, 5, 5]
    keys = store.keys(training.namespace, request.uid)
    assert {f"ranks/{rank}/summary.json.gz" for rank in range(4)} <= set(keys)
    whole = {key for key in keys if key.endswith("trace.json.gz")}
    assert whole == {f"ranks/{rank}/trace.json.gz" for rank in report.whole_traces}
    assert 1 <= len(whole) < 4


def test_the_sidecar_kept_within_its_limits(training: Training) -> None:
    (pod,) = training.list_pods()
    (sidecar,) = [each for each in pod["status"]["initContainerStatuses"] if each["name"] == "fleetprof"]
    limit, killed, child = map(int, training.execute(pod, "python", "-c", LIMITS, container="fleetprof").split())

    assert sidecar["restartCount"] == 0
    assert limit == 384 << 20
    assert killed == 0
    assert child == limit // 2
