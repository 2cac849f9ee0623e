"""One bucket of several clusters: what the web UI of each reads, and where a cluster's grants lead."""

import hashlib
from typing import Any

import pytest
import urllib3
from fleetprof_api import keys
from fleetprof_store.base import NotFound, StoreError, UploadPart
from fleetprof_store.clusters import ClustersStore
from fleetprof_store.location import parse_location
from harness.memory_store import MemoryStore

OBJECTS = (
    "v1/team/old/ledger.json",
    "v1/team/both/ledger.json",
    "clusters/east/v1/team/both/ledger.json",
    "clusters/east/v1/team/new/ledger.json",
    "clusters/east/v1/team-2/new/ledger.json",
    "clusters/west/v1/team/far/ledger.json",
    "clusters/west/v2/team/far/ledger.json",
    # What nobody may take for another cluster's, or for one's own.
    "v1/west.team/forged/ledger.json",
    "clusters/east/v1/west.team/forged/ledger.json",
    "clusters/west/v1/east.team/forged/ledger.json",
    "clusters/West/v1/team/forged/ledger.json",
    "clusters/we.st/v1/team/forged/ledger.json",
)
# reader → the keys that it finds, and where each lies
READERS = {
    "east": {
        "v1/team-2/new/ledger.json": "clusters/east/v1/team-2/new/ledger.json",
        "v1/team/both/ledger.json": "clusters/east/v1/team/both/ledger.json",
        "v1/team/new/ledger.json": "clusters/east/v1/team/new/ledger.json",
        "v1/team/old/ledger.json": "v1/team/old/ledger.json",
        "v1/west.team/far/ledger.json": "clusters/west/v1/team/far/ledger.json",
    },
    "west": {
        "v1/east.team-2/new/ledger.json": "clusters/east/v1/team-2/new/ledger.json",
        "v1/east.team/both/ledger.json": "clusters/east/v1/team/both/ledger.json",
        "v1/east.team/new/ledger.json": "clusters/east/v1/team/new/ledger.json",
        "v1/team/both/ledger.json": "v1/team/both/ledger.json",
        "v1/team/far/ledger.json": "clusters/west/v1/team/far/ledger.json",
        "v1/team/old/ledger.json": "v1/team/old/ledger.json",
    },
}


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.s3)])
def bucket(request: pytest.FixtureRequest) -> Any:
    """The store at the root that the clusters share; each object holds its own key."""
    store: Any = MemoryStore()
    if request.param == "s3":
        server = request.getfixturevalue("s3_server")
        store = server.make_store(server.make_bucket(), "some/prefix")
    for key in OBJECTS:
        store.put(key, key.encode())
    return store


@pytest.mark.parametrize("own", READERS)
def test_each_cluster_finds_its_own_the_old_ones_and_the_others_by_their_name(bucket: Any, own: str) -> None:
    view = ClustersStore(bucket, own)
    expected = READERS[own]
    assert [info.key for info in view.list("v1/")] == sorted(expected)
    for key, place in expected.items():
        whole = place.encode()
        with view.open(key) as stream:
            assert (view.get(key), stream.read(), view.read_range(key, 1, 4)) == (whole, whole, whole[1:5])
        info = view.head(key)
        assert (info.key, info.size_bytes) == (key, len(whole))
        assert view.locate(key) == bucket.locate(place)
        namespace, uid, _ = keys.split_request_prefix(key)
        assert [each.key for each in view.list(keys.request_prefix(namespace, uid))] == [key]


@pytest.mark.attack
@pytest.mark.parametrize(
    "namespace", ["west.team.team", "east.team", "West.team", "..team", "west.", ".team", "we.st.team"]
)
def test_no_other_name_of_a_namespace_leads_to_another_cluster(bucket: Any, namespace: str) -> None:
    view = ClustersStore(bucket, "east")
    assert list(view.list(f"v1/{namespace}/")) == []
    for uid in ("far", "forged", "new"):
        with pytest.raises((NotFound, StoreError, ValueError)):
            view.get(f"v1/{namespace}/{uid}/ledger.json")


def test_it_only_reads(bucket: Any) -> None:
    view = ClustersStore(bucket, "east")
    for write in (
        lambda: view.put("v1/team/new/ledger.json", b""),
        lambda: view.delete(["v1/team/new/ledger.json"]),
        lambda: view.grant_upload("v1/team/new/ledger.json", [], lifetime_s=1),
        lambda: view.complete_upload("v1/team/new/ledger.json", "", [], []),
        lambda: view.abort_upload("v1/team/new/ledger.json", ""),
        lambda: view.sign_write("v1/team/new/ledger.json", UploadPart(0, b""), lifetime_s=1),
    ):
        with pytest.raises(StoreError, match="only read"):
            write()


@pytest.mark.s3
@pytest.mark.attack
def test_no_grant_of_one_cluster_writes_below_another(s3_server: Any) -> None:
    """A hub's grant is for a key below its own cluster, and its signature for nothing else."""
    bucket = s3_server.make_bucket()
    east = s3_server.make_store(bucket, parse_location(f"s3://{bucket}/some").of_cluster("east").prefix)
    part = UploadPart(4, hashlib.sha256(b"mine").digest())
    (granted,) = east.grant_upload("v1/team/a/ranks/0/trace.json.gz", [part], lifetime_s=60).parts
    assert "/some/clusters/east/v1/team/a/" in granted.url
    with urllib3.PoolManager(retries=False, timeout=10) as http:
        for place in ("clusters/west/v1/team/a", "clusters/east/../west/v1/team/a", "v1/team/a"):
            moved = granted.url.replace("clusters/east/v1/team/a", place)
            assert http.request("PUT", moved, body=b"mine", headers=granted.headers).status >= 400, place
        assert http.request("PUT", granted.url, body=b"mine", headers=granted.headers).status == 200


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("s3://bucket?region=eu", "s3://bucket/clusters/east?region=eu"),
        ("s3://bucket/a/b", "s3://bucket/a/b/clusters/east"),
        ("/var/lib/store", "/var/lib/store/clusters/east"),
    ],
)
def test_a_cluster_keeps_its_own_below_its_name(text: str, place: str) -> None:
    location = parse_location(text)
    assert location.of_cluster("east").text() == place
    assert location.of_cluster("") == location


@pytest.mark.parametrize("name", ["East", "a.b", "a/b", "..", "-a", "a-", "a" * 64, "ä", " "])
def test_a_name_that_no_cluster_may_have_is_refused(name: str) -> None:
    with pytest.raises(keys.InvalidKeyPart, match="must be 1 to 63"):
        parse_location("s3://bucket").of_cluster(name)
