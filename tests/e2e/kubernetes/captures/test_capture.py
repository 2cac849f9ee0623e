"""From an empty cluster to a report: install, train, `kubectl apply`, wait; every stage's wall time is printed."""

from collections.abc import Callable

import pytest
from fleetprof_api.ledger import RankState
from scene.api import Api
from scene.installation import Installation
from scene.request import JobRequest
from scene.stages import StageSeconds
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

FILES = ["ledger.json", "report.html", "report.json", "request.json", "slices/head.json.gz", "timeline/fleet.bin"]


def test_all_ranks_of_two_pods_record_the_same_iterations_and_the_report_is_in_the_store(
    api: Api,
    store: StoreInCluster,
    installation: Installation,
    installing: StageSeconds,
    team: str,
    start_training: Callable[..., Training],
    make_request: Callable[..., JobRequest],
    capsys: pytest.CaptureFixture[str],
) -> None:
    stages = StageSeconds("Two pods of two ranks")
    with stages.stage("kubectl apply of the Job, until all ranks train"):
        training = start_training(team, "llama", pods=2, ranks_per_pod=2)
    with stages.stage("kubectl apply of the request, until all ranks record"):
        request = make_request(training, "five")
        request.await_states(RankState.STARTED, RankState.WRITTEN, RankState.UPLOADED, ranks=4)
    with stages.stage("until all traces are in the store"):
        request.await_states(RankState.UPLOADED, ranks=4)
    with stages.stage("until the report is there"):
        request.await_end()
    with stages.stage("the training's orderly end"):
        training.finish()
    with capsys.disabled():
        installing.print()
        stages.print()
    header, line = api.kubectl("get", "profreq", request.name, "-n", team).splitlines()

    training.assert_undisturbed()
    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.conditions() == {
        "TargetsResolved": ("True", "Resolved"),
        "Captured": ("True", "AllCaptured"),
        "Uploaded": ("True", "AllUploaded"),
        "Analyzed": ("True", "ReportMade"),
        "Succeeded": ("True", "Complete"),
        "Ready": ("True", "Complete"),
        "Stalled": ("False", "Complete"),
    }
    assert header.split() == ["NAME", "TARGET", "CAPTURED", "RANKS", "STATE", "QUEUE", "AGE"]
    assert line.split()[:5] == [request.name, f"Job/{training.name}", "4", "4", "Complete"]
    assert "Complete" in request.describe().partition("\nEvents:")[2]
    counts = {"targeted": 4, "armed": 4, "captured": 4, "uploaded": 4, "failed": 0}
    assert request.get()["status"]["ranks"] == counts
    ledger = request.ledger()
    assert request.states() == dict.fromkeys(range(4), "UPLOADED")
    assert ledger.start_mode == "step"
    assert ledger.first_step is not None
    pod_uids = {pod["metadata"]["uid"] for pod in training.list_pods()}
    assert {entry.pod_uid for entry in ledger.entries} == pod_uids
    report = store.report(team, request.uid)
    assert [rank.rank for rank in report.ranks] == [0, 1, 2, 3]
    for rank in report.ranks:
        indices = [iteration.index for iteration in rank.iterations]
        assert indices == list(range(ledger.first_step, ledger.first_step + 5))
    traces = [f"ranks/{rank}/trace.json.gz" for rank in range(4)]
    assert set(FILES + traces) <= set(store.keys(team, request.uid))
    assert "<html" in store.page(team, request.uid)
