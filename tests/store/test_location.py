"""The text that names a store: read, written, and refused with the rule."""

from pathlib import Path

import pytest
from fleetprof_store.directory import DirectoryStore
from fleetprof_store.location import StoreLocation, open_location, parse_capture_address, parse_location
from hypothesis import given
from hypothesis import strategies as st

names = st.from_regex(r"[a-z0-9][a-z0-9-]{2,20}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("/data/x", StoreLocation(directory="/data/x")),
        ("s3://bucket", StoreLocation(bucket="bucket")),
        ("s3://bucket/a/b/", StoreLocation(bucket="bucket", prefix="a/b")),
        (
            "s3://b/p?endpoint=https://minio:9000&path_style=true&region=eu-central-1",
            StoreLocation(
                bucket="b", prefix="p", endpoint="https://minio:9000", path_style=True, region="eu-central-1"
            ),
        ),
        ("s3://b?path_style=false", StoreLocation(bucket="b", path_style=False)),
    ],
)
def test_a_store_by_its_text(text: str, location: StoreLocation) -> None:
    assert parse_location(text) == location


@given(
    st.builds(
        StoreLocation,
        bucket=names,
        prefix=st.lists(names, max_size=2).map("/".join),
        endpoint=st.sampled_from(["", "http://h:1", "https://minio.example/base path?x=1&y"]),
        path_style=st.sampled_from([None, True, False]),
        region=st.sampled_from(["", "eu-central-1"]),
    )
)
def test_text_and_location_are_each_others_inverse(location: StoreLocation) -> None:
    assert parse_location(location.text()) == location


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "the store is not named"),
        ("gs://bucket", "must be a directory or s3://"),
        ("s3://", "must be s3://bucket"),
        ("s3://b#x", "must be s3://bucket"),
        ("s3://b?x=1", "'x' in the store's address must be one of endpoint, path_style, region"),
        ("s3://b?region=a&region=b", "once"),
        ("s3://b?path_style=yes", "must be true or false"),
        ("s3://b?endpoint=minio:9000", "must begin with http"),
    ],
)
def test_a_wrong_store_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        parse_location(text)


def test_a_text_with_a_credential_is_refused_without_repeating_it() -> None:
    with pytest.raises(ValueError, match="without credentials") as caught:
        parse_location("s3://KEY:topsecret@bucket/prefix")
    assert "topsecret" not in str(caught.value)


def test_a_directory_is_opened(tmp_path: Path) -> None:
    store = open_location(parse_location(str(tmp_path)))
    assert isinstance(store, DirectoryStore)
    store.put("v1/a/b/c.json", b"{}")
    assert (tmp_path / "v1/a/b/c.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    ("text", "prefix", "endpoint"),
    [
        ("s3://b/v1/team/uid", "", ""),
        ("s3://b/p/q/v1/team/uid/", "p/q", ""),
        ("s3://b/p/v1/team/uid/report.html", "p", ""),
        ("s3://b/v1/x/v1/team/uid/", "v1/x", ""),
        ("s3://b/p/v1/team/uid/report.html?endpoint=http://h:1", "p", "http://h:1"),
        ("s3://b/p?endpoint=http://h:1/v1/team/uid/report.html", "p", "http://h:1"),
    ],
)
def test_a_capture_by_its_address(text: str, prefix: str, endpoint: str) -> None:
    location = StoreLocation(bucket="b", prefix=prefix, endpoint=endpoint)
    assert parse_capture_address(text) == (location, "team", "uid")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("s3://b/p", "s3://b/p names no capture: give s3://bucket/prefix/v1/NAMESPACE/UID"),
        ("s3://b/v1/team", "names no capture"),
        ("s3://key:secret@b", "without credentials"),
        ("s3://key:secret@b/v1/team/uid", "without credentials"),
        ("s3://b?region=a/v1/team/uid?region=b", "must be"),
    ],
)
def test_what_names_no_capture_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        parse_capture_address(text)
