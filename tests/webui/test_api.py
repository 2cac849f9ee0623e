"""The answers of each address, as tables: over a small store that the analyzer made of the project's own traces."""

import gzip
import json
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.slices.table import SLICES
from fleetprof_webui.openapi import list_models
from fleetprof_webui.requests.detail import read_detail
from harness.memory_store import MemoryStore
from harness.stalls.planted_ranks import hang
from starlette.testclient import TestClient
from webui.conftest import BEGAN, SECOND, WRITE, put_older_report, put_stacks

REPORT = "/reports/team-a/slow"
MODELS = {model.__name__: model for model in list_models()}


def get(client: TestClient, path: str) -> Any:
    answered = client.get(path)
    assert answered.status_code == 200, answered.text
    return answered.json()


def addresses(client: TestClient) -> list[tuple[str, str]]:
    """(address, name of the type) of each route that answers a model, with this store's names in it."""
    names = {"namespace": "team-a", "uid": "slow", "kind": "Job", "name": "llama"}
    found = []
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        content = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
        if (model := reference.rpartition("/")[2]) in MODELS:
            uid = "hung" if path.endswith("/stacks") else names["uid"]
            found.append((path.format(**names | {"uid": uid}), model))
    return found


def test_every_answer_is_as_the_openapi_document_says(store: MemoryStore, client: TestClient) -> None:
    put_stacks(store, "team-a", "hung", hang(4, 1), at=400)
    checked = addresses(client)
    assert len(checked) >= 10
    for path, name in checked:
        answered = client.get(path)
        assert answered.status_code == 200, f"{path}: {answered.text}"
        assert "Accept" in answered.headers["vary"]
        msgspec.json.decode(answered.content, type=MODELS[name])
        assert set(answered.json()) == set(MODELS[name].__struct_fields__), path


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_passes_as_it_lies_in_the_store(client: TestClient, analysed: MemoryStore, name: str) -> None:
    answered = client.get(f"{REPORT}/slices/{name}")
    assert answered.status_code == 200
    assert answered.headers["content-encoding"] == "gzip"
    assert answered.content == gzip.decompress(analysed.get(keys.slice_key("team-a", "slow", name)))
    again = client.get(f"{REPORT}/slices/{name}", headers={"If-None-Match": answered.headers["etag"]})
    assert again.status_code == 304


def test_the_report_says_the_answer_first(client: TestClient) -> None:
    files, page = get(client, REPORT), get(client, f"{REPORT}/slices/overview")
    assert page["answer"]["sentence"].startswith("Rank 2 holds the job up: ")
    assert page["stragglers"]["verdict"] == "straggler"
    assert page["stragglers"]["named"][0]["cause"] == "slow_gpu"
    assert page["facts"]["rank_count"] == 4
    assert page["ledger"] == {"targeted": 4, "uploaded": 4, "failed": 0, "reasons": []}
    assert {"name": "report.json", "size_bytes": files["files"][0]["size_bytes"]} in files["files"]
    assert files["has_timeline"] is True


def test_an_older_report_has_the_same_slices(client: TestClient, store: MemoryStore) -> None:
    stored = {name: json.loads(gzip.decompress(store.get(keys.slice_key("team-a", "slow", name)))) for name in SLICES}
    put_older_report(store, "team-a", "slow", store.get(keys.report_key("team-a", "slow")))
    assert {name: get(client, f"{REPORT}/slices/{name}") for name in SLICES} == stored


def test_a_slice_that_is_too_large_is_not_passed_on(client: TestClient, store: MemoryStore) -> None:
    store.put(keys.slice_key("team-a", "slow", "head"), b"x" * (SLICES["head"].most_bytes + 1))
    answered = client.get(f"{REPORT}/slices/head")
    assert answered.status_code == 422
    assert "files/report.json" in answered.json()["next_step"]


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
    ("/reports/team-b/running/slices/overview", 404, "/requests/team-b/running"),
    ("/reports/team-a/slow/slices/none", 404, "take one of head, overview"),
    ("/reports/team-a/slow/slices/..%2Freport", 404, "/openapi.json"),
    ("/fleet?limit=0", 422, "/openapi.json"),
    ("/fleet?limit=100000", 422, "/openapi.json"),
    ("/fleet?sort=secrets", 422, "sort by one of"),
    ("/fleet?after=x", 422, "begin again"),
    (f"/fleet?text={'x' * 201}", 422, "/openapi.json"),
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
    put_older_report(store, "team-a", "slow", json.dumps(report).encode())
    small = client.get(f"{REPORT}/slices/overview")
    assert small.status_code == 200
    assert len(small.content) < 100_000
    assert small.json()["facts"]["rank_count"] == small.json()["stragglers"]["named_count"] == count
    assert len(get(client, f"{REPORT}/slices/ranks")["rank"]) == count
