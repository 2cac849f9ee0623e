"""The captures that a store holds, and the one that is meant."""

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_store.captures import NoSuchCapture, find_capture, read_captures
from harness.memory_store import MemoryStore

CAPTURES = (
    ("u-old", "llama", 1),
    ("u-new", "llama", 3),
    ("v-mid", "dlrm", 2),
    ("w-1", "gpt-1123-070801", -2),
    ("w-2", "gpt-1123-070802", -1),
)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for uid, name, submitted in CAPTURES:
        ledger = Ledger(uid=uid, name=name, namespace="team", submitted_unix_ns=submitted)
        store.put(keys.ledger_key("team", uid), msgspec.json.encode(ledger))
    store.put(keys.report_key("team", "v-mid"), b"{}")
    store.put(keys.ledger_key("team", "damaged"), b"{")
    store.put(keys.report_key("team", "without-ledger"), b"{}")
    store.put("v9/team/u-later/ledger.json", b"{}")
    return store


def test_captures_are_listed_the_latest_first_and_damaged_ones_left_out(store: MemoryStore) -> None:
    assert [(c.ledger.uid, c.has_report) for c in read_captures(store)] == [
        ("u-new", False), ("v-mid", True), ("u-old", False), ("w-2", False), ("w-1", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "uid"),
    [
        ("latest", "u-new"),
        ("dlrm", "v-mid"),
        ("u-old", "u-old"),
        ("v-", "v-mid"),
        ("gpt", "w-2"),
        ("gpt-1123-070801", "w-1"),
    ],
)
def test_a_capture_is_meant_by_uid_its_beginning_name_job_or_latest(
    store: MemoryStore, reference: str, uid: str
) -> None:
    assert find_capture(read_captures(store), reference).ledger.uid == uid


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("llama", r"may be any of u-new \(team/llama, 1970-.* UTC\), u-old \(team/llama, 1970-.*\)$"),
        ("u-", "may be any of"),
        ("bert", "there is no capture bert"),
    ],
)
def test_what_is_not_one_capture_is_refused(store: MemoryStore, reference: str, words: str) -> None:
    with pytest.raises(NoSuchCapture, match=words) as caught:
        find_capture(read_captures(store), reference)
    assert caught.value.next_step


def test_a_job_of_two_namespaces_is_not_one(store: MemoryStore) -> None:
    ledger = Ledger(uid="w-3", name="gpt-1123-070803", namespace="others", submitted_unix_ns=9)
    store.put(keys.ledger_key("others", "w-3"), msgspec.json.encode(ledger))
    with pytest.raises(NoSuchCapture, match="others/gpt-1123-070803"):
        find_capture(read_captures(store), "gpt")


def test_an_empty_store_has_no_latest() -> None:
    with pytest.raises(NoSuchCapture, match="no capture yet"):
        find_capture([], "latest")
