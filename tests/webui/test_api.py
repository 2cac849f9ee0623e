"""The answers of each address, as tables: over a small store that the analyzer made of the project's own traces."""

import json
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.report.report import read_report
from fleetprof_webui.openapi import list_models
from fleetprof_webui.requests.detail import read_detail
from harness.memory_store import MemoryStore
from harness.stalls.planted_ranks import hang
from starlette.testclient import TestClient
from webui.conftest import BEGAN, SECOND, WRITE, put_stacks

REPORT = "/reports/team-a/slow"
MODELS = {model.__name__: model for model in list_models()}


def get(client: TestClient, path: str) -> Any:
    answered = client.get(path)
    assert answered.status_code == 200, answered.text
    return answered.json()


def addresses(client: TestClient) -> list[tuple[str, str]]:
    """(address, name of the type) of each route that answers a model, with this store's names in it."""
    names = {"namespace": "team-a", "uid": "slow", "kind": "Job", "name": "llama"}
    queries = {"/kernels/spread": "?name=backward_0&work_class=compute"}
    found = []
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        content = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
        if (model := reference.rpartition("/")[2]) in MODELS:
            query = next((query for end, query in queries.items() if path.endswith(end)), "")
            uid = "hung" if path.endswith("/stacks") else names["uid"]
            found.append((path.format(**names | {"uid": uid}) + query, model))
    return found


def test_every_answer_is_as_the_openapi_document_says(store: MemoryStore, client: TestClient) -> None:
    put_stacks(store, "team-a", "hung", hang(4, 1), at=400)
    checked = addresses(client)
    assert len(checked) >= 14
    for path, name in checked:
        answered = client.get(path)
        assert answered.status_code == 200, f"{path}: {answered.text}"
        assert "Accept" in answered.headers["vary"]
        msgspec.json.decode(answered.content, type=MODELS[name])
        assert set(answered.json()) == set(MODELS[name].__struct_fields__), path


def test_the_report_says_the_answer_first(client: TestClient) -> None:
    page = get(client, REPORT)
    assert page["answer"]["sentence"].startswith("Rank 2 holds the job up: ")
    assert page["stragglers"]["verdict"] == "straggler"
    assert page["stragglers"]["named"][0]["cause"] == "slow_gpu"
    assert page["facts"]["rank_count"] == 4
    assert page["ledger"] == {"targeted": 4, "uploaded": 4, "failed": 0, "reasons": []}
    assert {"name": "report.json", "size_bytes": page["files"][0]["size_bytes"]} in page["files"]
    assert page["has_timeline"] is True


def test_columns_are_those_of_the_report(client: TestClient, analysed: MemoryStore) -> None:
    report = read_report(analysed.get(keys.report_key("team-a", "slow")))
    columns = get(client, f"{REPORT}/ranks")
    assert columns["rank"] == [0, 1, 2, 3]
    for name in ("span", "compute", "idle"):
        assert columns["measures"][name] == [getattr(rank.time_ns, name) for rank in report.ranks]
    assert set(columns["units"]) == set(columns["measures"])
    assert all(len(column) == 4 for column in columns["measures"].values())
    (section,) = get(client, f"{REPORT}/iterations?measure=iteration")["sections"]
    assert [table["measure"] for table in section["tables"]] == ["iteration"]
    assert section["tables"][0]["values"] == [[one.duration_ns for one in rank.iterations] for rank in report.ranks]
    (boxes,) = get(client, f"{REPORT}/boxes")["sections"]
    first = boxes["boxes"][0]
    assert first["measure"] == "iteration"
    assert sum(first["density"]) == sum(len(rank.iterations) for rank in report.ranks)
    assert (first["density"][0] > 0, first["density"][-1] > 0) == (True, True)


def test_kernels_are_sorted_searched_and_paged(client: TestClient) -> None:
    def names(query: str) -> list[str]:
        return [item["statistics"]["name"] for item in get(client, f"{REPORT}/kernels?{query}")["items"]]

    whole = get(client, f"{REPORT}/kernels?sort=name")
    assert whole["next"] is None
    assert names("sort=name") == sorted(names("sort=-total"))
    assert names("sort=-name") == names("sort=name")[::-1]
    assert all("nccl" in name.lower() for name in names("text=NCCL"))
    assert names("text=NCCL")
    paged, after = [], ""
    while after is not None:
        page = get(client, f"{REPORT}/kernels?sort=name&limit=1&after={after}")
        paged += [item["statistics"]["name"] for item in page["items"]]
        after = page["next"]
    assert paged == names("sort=name")
    of_one = get(client, f"{REPORT}/kernels?rank=2")
    assert of_one["rank"] == 2
    assert of_one["total_ns"] == sum(row["total_ns"] for row in of_one["classes"])
    assert 0 < sum(item["statistics"]["total_ns"] for item in of_one["items"]) <= of_one["total_ns"]


def test_a_kernel_is_told_by_rank_and_by_stream(client: TestClient, analysed: MemoryStore) -> None:
    report = read_report(analysed.get(keys.report_key("team-a", "slow")))
    slow = get(client, f"{REPORT}/kernels/spread?name=backward_0&work_class=compute")
    assert [part["rank"] for part in slow["ranks"]] == [0, 1, 2, 3]
    assert sum(part["count"] for part in slow["ranks"]) == slow["whole"]["count"]
    (named,) = [one for one in report.kernel_outliers if one.name == "backward_0"]
    (far,) = [part for part in slow["ranks"] if abs(part["deviations"]) >= 3]
    assert (far["rank"], far["others_mean_ns"], far["deviations"]) == (2, named.others_mean_ns, named.deviations)
    assert slow["streams"] == []

    communication = next(one for one in report.kernels if one.work_class == "communication")
    query = f"name={communication.name}&work_class=communication"
    spread = get(client, f"{REPORT}/kernels/spread?{query}")
    assert (
        [part["stream"] for part in spread["streams"]] == [one.stream for one in communication.streams] == ["10", "9"]
    )
    assert sum(part["count"] for part in spread["streams"]) == communication.count
    assert {part["deviations"] for part in spread["ranks"]} == {None}, "it lasts as long as the slowest rank lets it"
    for part in [spread["whole"], *spread["ranks"], *spread["streams"], *slow["ranks"]]:
        # What is above the 99th percentile lies beyond the scale.
        assert 0.97 * part["count"] <= sum(part["density"]) / 1000 <= 1.01 * part["count"]
    for part in [spread["whole"], *spread["ranks"], *spread["streams"]]:
        assert spread["from_ns"] <= part["p25_ns"] <= part["p50_ns"] <= part["p75_ns"] <= spread["to_ns"]
    row = next(
        row["statistics"]
        for row in get(client, f"{REPORT}/kernels")["items"]
        if row["statistics"]["name"] == communication.name
    )
    assert [(one["stream"], one["histogram"]["counts"]) for one in row["streams"]] == [("10", []), ("9", [])]


def test_ranks_stand_out_from_one_standard_deviation_on(client: TestClient) -> None:
    rows = get(client, f"{REPORT}/kernels")["items"]
    (far,) = next(row["outliers"] for row in rows if row["statistics"]["name"] == "backward_0")
    assert far["rank"] == 2
    assert all(
        abs(one["deviations"]) >= 1 and abs(one["mean_ns"] - one["others_mean_ns"]) > 0.05 * one["others_mean_ns"]
        for row in rows
        for one in row["outliers"]
    )


def test_a_request_has_its_yaml_its_ledger_and_the_next_step(client: TestClient) -> None:
    page = get(client, "/requests/team-a/slow")
    assert "kind: ProfileRequest" in page["yaml"]
    assert page["request"]["submitted_unix_ns"] == str(BEGAN), "a number would lose its last digits in a browser"
    assert page["ledger"]["rank"] == [0, 1, 2, 3]
    assert page["ledger"]["asked_ns"] == [SECOND] * 4
    assert page["ledger"]["armed_ns"] == [None] * 4
    assert page["stages"][0] == {"stage": "asked", "first_ns": SECOND, "last_ns": SECOND, "ranks": 4}
    assert page["stages"][-1]["first_ns"] == 10 * SECOND
    assert page["next_step"] == "read the report: /reports/team-a/slow"
    failed = get(client, "/requests/team-b/failed")
    assert failed["ledger"]["reason"] == ["NotPolling"]
    assert (failed["request"]["state"], failed["request"]["kind"]) == ("NothingCaptured", "Selector")


@pytest.mark.parametrize(
    ("is_local", "command"),
    [(True, "fleetprof capture -f request.yaml"), (False, "kubectl apply -n team-a -f request.yaml")],
)
def test_a_request_has_the_command_that_asks_for_the_same(store: MemoryStore, is_local: bool, command: str) -> None:
    assert read_detail(store, "team-a", "slow", is_local=is_local, may_cancel=False).command == command


def test_a_difference_is_that_of_the_command_line(client: TestClient) -> None:
    diff = get(client, "/diff?base=team-a/slow&new=team-a/healthy")
    assert diff["comparable"] is True
    assert (diff["before"]["uid"], diff["after"]["uid"]) == ("slow", "healthy")
    assert diff["verdict"] in ("faster", "slower", "not_shown", "not_judged")


@pytest.mark.parametrize(("base", "new"), [("slow", "healthy"), ("healthy", "slow")])
def test_by_time_the_earlier_report_comes_first(client: TestClient, base: str, new: str) -> None:
    diff = get(client, f"/diff?base=team-a/{base}&new=team-a/{new}&order=time")
    assert 0 < diff["before"]["asked_unix_ns"] < diff["after"]["asked_unix_ns"]


PROBLEMS = [
    ("/fleet/team-a/Job/nobody", 404, "/fleet"),
    ("/requests/team-a/nobody", 404, "/requests"),
    ("/requests/team-a/nobody/events", 404, "/requests"),
    ("/reports/team-b/running", 404, "/requests/team-b/running"),
    ("/reports/team-a/slow/kernels?rank=9", 404, "all ranks"),
    ("/fleet?limit=0", 422, "/openapi.json"),
    ("/fleet?limit=100000", 422, "/openapi.json"),
    ("/fleet?sort=secrets", 422, "sort by one of"),
    ("/fleet?after=x", 422, "begin again"),
    (f"/fleet?text={'x' * 201}", 422, "/openapi.json"),
    ("/reports/team-a/slow/kernels/spread?name=none&work_class=compute", 404, "take both from /kernels"),
    ("/reports/team-a/slow/kernels/spread?name=gemm&work_class=work", 422, "/openapi.json"),
    ("/reports/team-a/slow/kernels?after=-1", 422, "begin again"),
    ("/reports/team-a/slow/kernels?rank=-1", 422, "/openapi.json"),
    ("/reports/team-a/slow/kernels?sort=drop", 422, "/openapi.json"),
    ("/reports/te%00am/slow", 422, "/openapi.json"),
    ("/reports/..team/slow", 422, "/openapi.json"),
    ("/diff?base=team-a/slow", 422, "/openapi.json"),
    ("/diff?base=team-a/slow&new=a/../b", 422, "/openapi.json"),
    ("/diff?base=team-a/slow&new=a/b..c", 422, "NAMESPACE/UID"),
    ("/nowhere", 404, "/openapi.json"),
]


@pytest.mark.parametrize(("path", "status", "next_step"), PROBLEMS, ids=[path[:50] for path, *_ in PROBLEMS])
def test_an_error_says_what_is_wrong_and_what_to_do(client: TestClient, path: str, status: int, next_step: str) -> None:
    answered = client.get(path)
    assert (answered.status_code, answered.headers["content-type"]) == (status, "application/problem+json")
    problem = answered.json()
    assert problem["status"] == status
    assert problem["detail"]
    assert next_step in problem["next_step"]


def test_a_wrong_body_names_the_field(client: TestClient) -> None:
    answered = client.post("/session", content=b'{"token": 3}', headers=WRITE)
    assert answered.status_code == 422
    assert "token" in answered.json()["detail"]
    assert client.post("/session", content=b"{" * (200 << 10), headers=WRITE).status_code == 413


def test_metrics_count_by_route_and_name_nobody(client: TestClient) -> None:
    get(client, REPORT)
    shown = client.get("/metrics").text
    assert 'route="/reports/{namespace}/{uid}",status="200"' in shown
    assert "team-a" not in shown
    assert client.get("/healthz").text == client.get("/readyz").text == "ok\n"


def test_a_report_of_a_thousand_ranks_stays_small(client: TestClient, store: MemoryStore) -> None:
    report = json.loads(store.get(keys.report_key("team-a", "slow")))
    count = 1000
    of_ranks = [report["ranks"][number % 4] | {"rank": number} for number in range(count)]
    one_late = report["stragglers"]["ranks"][0]
    report |= {
        "ranks": of_ranks,
        "ledger": [{"rank": number, "process_id": str(number)} for number in range(count)],
        "whole_traces": list(range(count)),
        "problems": [{"kind": "k", "message": "m" * 5000, "rank": number} for number in range(count)],
    }
    report["stragglers"] |= {
        "ranks": [one_late | {"rank": number} for number in range(count)],
        "not_captured": list(range(count)),
    }
    store.put(keys.report_key("team-a", "slow"), json.dumps(report).encode())
    small = client.get(REPORT)
    assert small.status_code == 200
    assert len(small.content) < 100_000
    assert small.json()["facts"]["rank_count"] == small.json()["stragglers"]["named_count"] == count
    assert len(get(client, f"{REPORT}/ranks")["rank"]) == count
