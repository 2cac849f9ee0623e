"""Analyzer Jobs as objects, and what is read from them when they have ended."""

from typing import Any

import pytest
from fleetprof_api.request import Analysis
from fleetprof_operator.analyses.analyzer_job import Shards, build_job, find_cuts, job_name, plan_shards
from fleetprof_operator.analyses.outcome import JobOutcome, find_sentence, read_outcome

UID = "0b0e9b62-7f0e-4d8a-9d0c-1f3a5b7c9d11"
TEMPLATE: Any = {
    "metadata": {"labels": {"app.kubernetes.io/name": "fleetprof"}},
    "spec": {
        "serviceAccountName": "fleetprof-analyzer",
        "containers": [
            {
                "name": "analyzer",
                "image": "i",
                "command": ["fleetprof-analyzer"],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
            }
        ],
    },
}


def build(command: str = "report", analysis: Any = None, shards: Shards | None = None, template: Any = TEMPLATE) -> Any:
    return build_job(
        template,
        command,
        namespace="team",
        uid=UID,
        name="five",
        analysis=Analysis.model_validate(analysis) if analysis else None,
        deadline_s=600,
        shards=shards,
    )


@pytest.mark.parametrize(
    ("ranks", "parallelism", "shards"),
    [
        (0, None, (1, 1)), (1, None, (1, 1)), (32, None, (1, 1)), (33, None, (2, 2)), (512, None, (16, 8)),
        (100_000, None, (1000, 8)),
        (8, 1, (1, 1)), (8, 4, (4, 4)), (2, 16, (2, 2)), (512, 1, (16, 1)), (512, 100, (100, 100)),
    ],
)  # fmt: skip
def test_how_the_work_is_cut(ranks: int, parallelism: int | None, shards: tuple[int, int]) -> None:
    assert plan_shards(ranks, parallelism) == Shards(*shards)


def test_one_pod_makes_a_small_report() -> None:
    job = build()
    spec, pod = job["spec"], job["spec"]["template"]
    assert job["metadata"]["name"] == job_name("report", UID) == f"fleetprof-report-{UID}"
    assert pod["spec"]["containers"][0]["args"] == ["report", "team", UID]
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["metadata"]["labels"] == {
        "app.kubernetes.io/name": "fleetprof",
        "fleetprof.io/request-uid": UID,
        "fleetprof.io/request-namespace": "team",
        "fleetprof.io/request-name": "five",
    }
    assert {k: spec[k] for k in ("activeDeadlineSeconds", "ttlSecondsAfterFinished", "backoffLimit")} == {
        "activeDeadlineSeconds": 600, "ttlSecondsAfterFinished": 600, "backoffLimit": 3}  # fmt: skip
    assert "args" not in TEMPLATE["spec"]["containers"][0]  # the template stays as it was


def test_names_of_jobs_and_of_their_pods_fit() -> None:
    assert len(job_name("summarise", UID) + "-999") <= 63


def test_a_disruption_is_tried_again_and_what_cannot_help_is_not() -> None:
    rules = build()["spec"]["podFailurePolicy"]["rules"]
    assert [(r["action"], r.get("onExitCodes", {}).get("values")) for r in rules] == [
        ("Ignore", None), ("FailJob", [2, 3, 4]), ("FailJob", [137])]  # fmt: skip
    of_many = build("summarise", shards=Shards(4, 2))["spec"]["podFailurePolicy"]["rules"]
    assert of_many[-1]["action"] == "FailIndex"


def test_many_pods_share_the_ranks() -> None:
    spec = build("summarise", shards=Shards(40, 8))["spec"]
    assert spec["template"]["spec"]["containers"][0]["args"] == ["summarise", "team", UID, "--of", "40"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 40, 8)
    assert "backoffLimit" not in spec


@pytest.mark.parametrize(
    ("own_resources", "requests", "limits"),
    [
        (None, {"cpu": "1", "memory": "1Gi"}, {"memory": "4Gi"}),
        ({"limits": {"memory": "8Gi"}}, {"cpu": "1", "memory": "8Gi"}, {"memory": "8Gi"}),
        ({"limits": {"memory": "512Mi"}}, {"cpu": "1", "memory": "512Mi"}, {"memory": "512Mi"}),
        ({"requests": {"memory": "6Gi"}}, {"cpu": "1", "memory": "6Gi"}, {"memory": "6Gi"}),
        ({"requests": {"cpu": "2"}}, {"cpu": "2", "memory": "1Gi"}, {"memory": "4Gi"}),
        ({"requests": {"memory": "2Gi"}, "limits": {"memory": "3Gi"}}, {"cpu": "1", "memory": "2Gi"},
         {"memory": "3Gi"}),
    ],
)  # fmt: skip
def test_the_requests_resources_go_over_the_templates(own_resources: Any, requests: Any, limits: Any) -> None:
    resources = build(analysis={"resources": own_resources} if own_resources else None)["spec"]["template"]["spec"][
        "containers"
    ][0]
    assert resources["resources"] == {"requests": requests, "limits": limits}


@pytest.mark.attack
def test_what_a_request_asks_is_cut_to_the_installations_bounds() -> None:
    amounts = {"requests": {"cpu": "96", "memory": "900Gi", "ephemeral-storage": "2Ti"},
               "limits": {"cpu": "96", "memory": "900Gi"}}  # fmt: skip
    most = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "16Gi"}
    analysis = Analysis.model_validate({"parallelism": 1000, "resources": amounts})
    assert plan_shards(1000, analysis.parallelism, 32) == Shards(32, 32)
    assert plan_shards(100_000, None, 4) == Shards(1000, 4)
    job = build_job(TEMPLATE, "report", namespace="team", uid=UID, name="five", analysis=analysis, deadline_s=600,
                    max_resources=most)  # fmt: skip
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources == {"requests": most, "limits": {"cpu": "8", "memory": "32Gi"}}


@pytest.mark.parametrize(
    ("memory", "given"),
    [("2Gi", "2Gi"), ("4096Mi", "4096Mi"), ("4097Mi", "4Gi"), ("5e9", "4Gi"), ("4294967297", "4Gi")],
)
def test_what_is_within_them_stays_as_it_was_written(memory: str, given: str) -> None:
    analysis = Analysis.model_validate({"resources": {"limits": {"memory": memory}}})
    job = build_job(TEMPLATE, "report", namespace="team", uid=UID, name="five", analysis=analysis, deadline_s=600,
                    max_resources={"memory": "4Gi"})  # fmt: skip
    assert job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {"memory": given}


@pytest.mark.parametrize(
    ("analysis", "cuts"),
    [
        (None, []),
        ({"parallelism": 32, "resources": {"requests": {"cpu": "8000m"}, "limits": {"memory": "4Gi"}}}, []),
        ({"parallelism": 33}, ["parallelism 33 to 32"]),
        (
            {"resources": {"requests": {"cpu": "96"}, "limits": {"cpu": "96", "memory": "5Gi"}}},
            ["requests.cpu 96 to 8", "limits.cpu 96 to 8", "limits.memory 5Gi to 4Gi"],
        ),
    ],
)
def test_what_is_cut_is_named(analysis: Any, cuts: list[str]) -> None:
    model = Analysis.model_validate(analysis) if analysis else None
    assert find_cuts(model, 32, {"cpu": "8", "memory": "4Gi"}) == cuts


def test_the_quota_of_analyses_knows_their_pods_by_a_deadline() -> None:
    assert build()["spec"]["template"]["spec"]["activeDeadlineSeconds"] == 600


def test_there_is_always_a_memory_limit() -> None:
    bare = {"spec": {"containers": [{"name": "a"}]}}
    assert build(template=bare)["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {"memory": "4Gi"}


# ---------------------------------------------------------------- outcome


def job_status(*conditions: tuple[str, str], **status: Any) -> Any:
    made = [{"type": t, "status": s, "reason": "R", "message": "M"} for t, s in conditions]
    return {"status": {"conditions": made, **status}}


@pytest.mark.parametrize(
    ("job", "outcome"),
    [
        ({}, JobOutcome("going")),
        (job_status(active=1), JobOutcome("going")),
        (job_status(("Suspended", "True")), JobOutcome("going")),
        (job_status(("FailureTarget", "True"), active=1), JobOutcome("going")),
        (job_status(("Complete", "False")), JobOutcome("going")),
        (job_status(("Complete", "True"), succeeded=3), JobOutcome("done", succeeded=3)),
        (job_status(("FailureTarget", "True"), ("Failed", "True"), succeeded=2), JobOutcome("failed", "R", "M", 2)),
    ],
)
def test_how_a_job_stands(job: Any, outcome: JobOutcome) -> None:
    assert read_outcome(job) == outcome


def pod(created: str = "2026-11-21T12:00:00Z", **terminated: Any) -> Any:
    state = [{"name": "analyzer", "state": {"terminated": terminated}}] if terminated else []
    return {"metadata": {"creationTimestamp": created}, "status": {"containerStatuses": state}}


STUCK = {"metadata": {}, "status": {"containerStatuses": [
    {"name": "analyzer", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no image"}}}]}}  # fmt: skip
FAILED = JobOutcome("failed", "BackoffLimitExceeded", "it reached the limit")


@pytest.mark.parametrize(
    ("pods", "before", "says"),
    [
        ([], "", "it reached the limit"),
        ([], "container analyzer: ImagePullBackOff", "it reached the limit; container analyzer: ImagePullBackOff"),
        ([STUCK], "", "it reached the limit; container analyzer: ImagePullBackOff: no image"),
        ([pod(exitCode=4, message=" the bucket\nrefuses us ")], "", "the bucket refuses us"),
        ([pod(exitCode=1, message="older"), pod("2026-11-21T13:00:00Z", exitCode=1, message="newer")], "", "newer"),
        ([pod(exitCode=137, reason="OOMKilled")], "",
         "the analyzer ran out of memory; raise spec.analysis.resources.limits.memory, or the installation's "
         "(analyzer.resources, and analyzer.maxResources, which requests are cut to)"),
        ([pod(exitCode=0, message="well done")], "", "it reached the limit"),
        ([pod(exitCode=1)], "", "it reached the limit"),
    ],
)  # fmt: skip
def test_why_it_failed(pods: Any, before: str, says: str) -> None:
    assert find_sentence(FAILED, pods, before) == says
