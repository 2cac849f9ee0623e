"""Objects of a capture: whole and in part, with a tag, and by known names only."""

import io
import zipfile

import pytest
from fleetprof_api import keys
from fleetprof_api.tables import list_tables
from fleetprof_store.base import StoreError
from harness.memory_store import MemoryStore
from starlette.testclient import TestClient
from webui.conftest import put_older_report

FILES = "/reports/team-a/slow/files"
TIMELINE = "/reports/team-a/slow/timeline"
TILES = bytes(range(256)) * 12


@pytest.fixture
def tiles(store: MemoryStore) -> None:
    """A file of a timeline."""
    store.put("v1/team-a/slow/timeline/rank-0.bin", TILES)


@pytest.mark.parametrize("name", ["report.json", "ledger.json", "request.json", "ranks/3/trace.json.gz"])
def test_a_file_is_that_of_the_store(client: TestClient, store: MemoryStore, name: str) -> None:
    answered = client.get(f"{FILES}/{name}")
    assert answered.content == store.get(f"v1/team-a/slow/{name}")
    assert answered.headers["content-disposition"].startswith("attachment; ")
    assert "content-encoding" not in answered.headers
    again = client.get(f"{FILES}/{name}", headers={"If-None-Match": answered.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_page_of_a_report_runs_nothing(client: TestClient) -> None:
    answered = client.get(f"{FILES}/report.html", headers={"Accept": "text/html"})
    assert answered.headers["content-type"].startswith("text/html")
    policy = answered.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "sandbox" in policy
    assert "allow-scripts" not in policy


def test_tables_come_as_parquet_files_in_one_archive(client: TestClient, store: MemoryStore) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert client.get("/reports/team-a/slow").json()["has_tables"]
    answered = client.get("/reports/team-a/slow/tables.zip")
    assert answered.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answered.content)) as archive:
        assert archive.namelist() == [f"{table.name}.parquet" for table in list_tables()]
        ranks = parquet.read_table(io.BytesIO(archive.read("ranks.parquet")))
    assert ranks.column("rank").to_pylist() == [0, 1, 2, 3]
    assert client.get("/reports/team-a/absent/tables.zip").status_code == 404


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize(
    ("byte_range", "status", "part"),
    [
        ("bytes=0-9", 206, slice(0, 10)),
        ("bytes=100-199", 206, slice(100, 200)),
        ("bytes=3000-", 206, slice(3000, None)),
        ("bytes=-72", 206, slice(3000, None)),
        ("bytes=3071-9999999", 206, slice(3071, None)),
        ("bytes=-99999", 206, slice(0, None)),
        ("bytes=0-1,5-6", 200, slice(0, None)),
        ("bytes=-", 200, slice(0, None)),
        ("items=0-1", 200, slice(0, None)),
        ("bytes=5-4", 416, None),
        ("bytes=3072-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=99999999999999999-", 416, None),
    ],
)
def test_a_range_is_that_part(client: TestClient, byte_range: str, status: int, part: slice | None) -> None:
    answered = client.get(f"{TIMELINE}/rank-0.bin", headers={"Range": byte_range})
    assert answered.status_code == status
    if part is not None:
        assert answered.content == TILES[part]
        assert int(answered.headers["content-length"]) == len(TILES[part])
    if status == 206 and part is not None:
        start, stop, _ = part.indices(len(TILES))
        assert answered.headers["content-range"] == f"bytes {start}-{stop - 1}/{len(TILES)}"


@pytest.mark.usefixtures("tiles")
def test_a_range_of_another_version_gets_the_whole(client: TestClient) -> None:
    tag = client.get(f"{TIMELINE}/rank-0.bin").headers["etag"]
    same = client.get(f"{TIMELINE}/rank-0.bin", headers={"Range": "bytes=0-9", "If-Range": tag})
    other = client.get(f"{TIMELINE}/rank-0.bin", headers={"Range": "bytes=0-9", "If-Range": '"other"'})
    assert (same.status_code, other.status_code) == (206, 200)


@pytest.mark.usefixtures("tiles")
def test_a_browser_keeps_a_tile_by_its_version(client: TestClient) -> None:
    assert client.get(f"{TIMELINE}/rank-0.bin").headers["cache-control"] == "private, no-cache"
    assert client.get(f"{TIMELINE}/rank-0.bin?v=abc").headers["cache-control"].endswith("immutable")


def test_a_timeline_is_there_once_its_index_is(client: TestClient, store: MemoryStore) -> None:
    store.delete(["v1/team-a/slow/timeline/fleet.bin"])
    assert client.get("/reports/team-a/slow").json()["has_timeline"] is False
    store.put("v1/team-a/slow/timeline/fleet.bin", b"x")
    assert client.get("/reports/team-a/slow").json()["has_timeline"] is True


@pytest.mark.attack
@pytest.mark.parametrize(
    "name",
    [
        *("files/../../healthy/report.json", "files/%2e%2e/%2e%2e/healthy/report.json", "files/report.json%00"),
        *("files/..%2f..%2fhealthy%2freport.json", "files/%2fetc%2fpasswd", "files/Report.json"),
        *("files/ranks/0/operations.bin", "files/ranks/-1/trace.json.gz", "files/ranks/00/trace.json.gz"),
        *("files/ranks/0/..%2f..%2freport.json", "files/timeline/fleet.bin", "timeline/..%2freport.json"),
        *("timeline/%2e%2e%2freport.json", "timeline/.json", "timeline/report", "timeline/x/y.json"),
        *("timeline/none.pyr", "timeline/x%00.pyr"),
    ],
)  # fmt: skip
def test_no_name_leads_out_of_the_capture(client: TestClient, name: str) -> None:
    assert client.get(f"/reports/team-a/slow/{name}").status_code in (404, 422)


def test_a_store_that_does_not_answer_is_said_so(
    client: TestClient, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_key: str) -> bytes:
        raise StoreError("secret address of the bucket", retryable=True)

    monkeypatch.setattr(store, "head", fail)
    answered = client.get(f"{FILES}/report.json")
    assert answered.status_code == 503
    assert "secret" not in answered.text


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "not a fleetprof report"), (b'{"ranks": [', "not a"), (b'{"schema_version": 9}', "upgrade")],
)
def test_a_report_that_cannot_be_read_can_be_fetched(
    client: TestClient, store: MemoryStore, data: bytes, message: str
) -> None:
    put_older_report(store, "team-a", "slow", data)
    for name in ("overview", "ranks"):
        answered = client.get(f"/reports/team-a/slow/slices/{name}")
        assert answered.status_code == 422
        assert message in answered.json()["detail"]
    assert client.get(f"{FILES}/report.json").content == data


def test_missing_traces_and_markup_in_names_spoil_nothing(client: TestClient, store: MemoryStore) -> None:
    store.delete([info.key for info in store.list("v1/team-a/slow/ranks/")])
    name = "<img src=x onerror=alert(1)>\u202e" + "k" * 10_000
    whole = store.get(keys.report_key("team-a", "slow"))
    titled = whole.replace(b'"title": "slow-name"', b'"title": "' + name.encode() + b'"')
    put_older_report(store, "team-a", "slow", titled)
    store.put(keys.request_key("team-a", "slow"), b'{"metadata": {"name": "' + name.encode() + b'"}}')
    page = client.get("/reports/team-a/slow")
    assert page.headers["content-type"] == "application/json"
    assert [file["name"] for file in page.json()["files"]] == [
        "report.json",
        "report.html",
        "ledger.json",
        "request.json",
    ]
    assert len(client.get("/reports/team-a/slow/slices/overview").json()["title"]) == 1000
    assert client.get("/requests/team-a/slow").status_code == 200
