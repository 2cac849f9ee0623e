"""Object keys: one layout, and no name that climbs out of it."""

import pytest
from fleetprof_api import keys
from hypothesis import given
from hypothesis import strategies as st

parts = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (keys.request_key("ns", "u1"), "v1/ns/u1/request.json"),
        (keys.ledger_key("ns", "u1"), "v1/ns/u1/ledger.json"),
        (keys.trace_key("ns", "u1", 12), "v1/ns/u1/ranks/12/trace.json.gz"),
        (keys.samples_key("ns", "u1", 0), "v1/ns/u1/ranks/0/samples.json.gz"),
        (keys.summary_key("ns", "u1", 3), "v1/ns/u1/ranks/3/summary.json.gz"),
        (keys.report_key("ns", "u1"), "v1/ns/u1/report.json"),
        (keys.report_page_key("ns", "u1"), "v1/ns/u1/report.html"),
        (keys.slice_key("ns", "u1", "head"), "v1/ns/u1/slices/head.json.gz"),
        (keys.rank_timeline_key("ns", "u1", 12), "v1/ns/u1/timeline/rank-12.bin"),
        (keys.fleet_timeline_key("ns", "u1"), "v1/ns/u1/timeline/fleet.bin"),
        (keys.workload_key("ns", "0af3"), "v1/ns/workloads/0af3.json"),
    ],
)
def test_the_layout(key: str, expected: str) -> None:
    assert key == expected


@given(parts, parts, st.integers(0, 10**6))
def test_a_key_can_be_taken_apart_again(namespace: str, uid: str, rank: int) -> None:
    expected = (namespace, uid, f"ranks/{rank}/trace.json.gz")
    assert keys.split_request_prefix(keys.trace_key(namespace, uid, rank)) == expected


@pytest.mark.parametrize("part", ["", ".", "..", "a/b", "a..b", "-a", "a b", "a\0", "ä", "a" * 129, "a\n"])
def test_a_part_that_could_leave_its_prefix_is_refused(part: str) -> None:
    with pytest.raises(keys.InvalidKeyPart, match="not usable in an object key"):
        keys.request_prefix(part, "u1")
    with pytest.raises(keys.InvalidKeyPart, match="not usable in an object key"):
        keys.request_prefix("ns", part)


def test_a_negative_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        keys.trace_key("ns", "u1", -1)


def test_another_major_version_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="another major version; this fleetprof reads v1/"):
        keys.split_request_prefix("v2/ns/u1/report.json")
    with pytest.raises(ValueError, match="not an object of a request"):
        keys.split_request_prefix("v1/ns")
