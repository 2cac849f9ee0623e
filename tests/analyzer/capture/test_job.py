"""The analyzer as a Job: one pod or many give the same report, a killed pod goes on, every end has its code."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest
from fleetprof_analyzer.capture.exit_codes import JobExit
from fleetprof_analyzer.capture.main import run
from fleetprof_analyzer.capture.memory import limits_within
from fleetprof_analyzer.capture.store import analyze_capture, merge_capture, summarise_ranks
from fleetprof_analyzer.rank.stored_summary import MOST_BYTES, Unusable, pack_summary, unpack_summary
from fleetprof_analyzer.rank.summary import RankSummary
from fleetprof_api import keys
from fleetprof_api.report.report import Report, read_report, write_report
from fleetprof_store.base import ObjectInfo, StoreError
from fleetprof_store.directory import DirectoryStore
from harness import forked
from harness.memory_store import MemoryStore
from harness.traces.planted.traces import plant_capture

ROOT = Path(__file__).parents[3]


def timeless(report: Report) -> bytes:
    return write_report(msgspec.structs.replace(report, made_unix_ns=0))


def summary_key(uid: str, rank: int) -> str:
    return keys.summary_key("default", uid, rank)


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_summaries_merged_are_the_report_of_one_pod_byte_for_byte(shards: int) -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=5, failed=(1,))
    good = store.get(keys.trace_key("default", planted.uid, 2))
    store.put(keys.trace_key("default", planted.uid, 2), good[: len(good) // 2])
    store.put(keys.trace_key("default", planted.uid, 3), b"\0garbage")
    whole = analyze_capture(store, "default", planted.uid)
    made = [summarise_ranks(store, "default", planted.uid, shard=n, shards=shards) for n in range(shards)]
    assert sum(made) == 4
    merged = merge_capture(store, "default", planted.uid)
    assert timeless(merged) == timeless(whole)
    assert [rank.rank for rank in merged.ranks] == [0, 2, 4]
    assert read_report(store.get(keys.report_key("default", planted.uid))) == merged


def test_what_was_summarised_before_is_kept_and_what_does_not_hold_is_made_anew() -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=6).uid
    assert summarise_ranks(store, "default", uid, shard=0, shards=1) == 6
    assert summarise_ranks(store, "default", uid, shard=0, shards=1) == 0
    store.delete([summary_key(uid, 0)])
    store.put(summary_key(uid, 1), b"damaged")
    store.put(summary_key(uid, 2), store.get(summary_key(uid, 3)))  # of another rank
    store.put(keys.trace_key("default", uid, 4), store.get(keys.trace_key("default", uid, 4)) + b"\0")  # grown since
    other = json.loads(gzip.decompress(store.get(summary_key(uid, 5))))
    store.put(summary_key(uid, 5), gzip.compress(json.dumps(other | {"made_by": "0.0.1"}).encode()))
    assert summarise_ranks(store, "default", uid, shard=0, shards=1) == 5


def test_a_summary_without_its_trace_is_read_whatever_version_made_it() -> None:
    """A sidecar that is older than the analyzer made it, and the trace is gone."""
    store = MemoryStore()
    uid = plant_capture(store, ranks=1).uid
    summarise_ranks(store, "default", uid, shard=0, shards=1)
    other = json.loads(gzip.decompress(store.get(summary_key(uid, 0)))) | {"made_by": "0.0.1"}
    assert unpack_summary(gzip.compress(json.dumps(other).encode()), 0).rank_number == 0
    unknown = gzip.compress(json.dumps(other | {"schema_version": 99}).encode())
    with pytest.raises(Unusable, match=r"made by fleetprof 0\.0\.1"):
        unpack_summary(unknown, 0)


def test_ranks_without_a_usable_summary_are_told_and_the_others_reported() -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=4).uid
    summarise_ranks(store, "default", uid, shard=0, shards=2)
    store.put(summary_key(uid, 2), b"x" * (MOST_BYTES + 1))
    report = merge_capture(store, "default", uid)
    assert [rank.rank for rank in report.ranks] == [0]
    assert [(p.kind, p.rank) for p in report.problems] == [
        ("rank_not_summarised", 1), ("summary_unusable", 2), ("rank_not_summarised", 3),
    ]  # fmt: skip


def test_a_damaged_ledger_costs_the_ledger_only() -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    store.put(keys.ledger_key("default", uid), b'{"uid": 7}')
    report = analyze_capture(store, "default", uid)
    assert ([rank.rank for rank in report.ranks], report.ledger) == ([0, 1], [])
    assert [problem.kind for problem in report.problems] == ["ledger_unreadable"]


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip", gzip.compress(b"{"), gzip.compress(b"[" * 5000), gzip.compress(b" " * (17 << 20))],
    ids=["empty", "no gzip", "no json", "nested", "bomb"],
)
def test_a_hostile_summary_is_refused(data: bytes) -> None:
    with pytest.raises(Unusable):
        unpack_summary(data, 0)


def test_a_summary_stays_below_its_limit_at_its_longest() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=1, before=900, after=900, iterations=100)
    summarise_ranks(store, "default", planted.uid, shard=0, shards=1)
    assert len(store.get(summary_key(planted.uid, 0))) <= MOST_BYTES
    noise = os.urandom(MOST_BYTES).hex()
    with pytest.raises(Unusable, match="are allowed"):
        pack_summary(RankSummary(source=noise, rank_number=0), trace_bytes=0, samples_bytes=0)


class FailingStore(MemoryStore):
    """Fails while a trace is read, `failures` times; `retryable` as a store says it."""

    def __init__(self, failures: int, *, retryable: bool = True) -> None:
        super().__init__()
        self.failures = failures
        self.retryable = retryable

    def open(self, key: str) -> IO[bytes]:
        if self.failures:
            self.failures -= 1
            raise StoreError("the store hung up", retryable=self.retryable)
        return super().open(key)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return super().list(prefix)


@pytest.mark.parametrize(("failures", "retryable", "works"), [(2, True, True), (3, True, False), (1, False, False)])
def test_a_store_that_hangs_up_is_asked_again_a_few_times(failures: int, retryable: bool, works: bool) -> None:
    store = FailingStore(0)
    uid = plant_capture(store, ranks=1).uid
    store.failures, store.retryable = failures, retryable
    if works:
        assert len(analyze_capture(store, "default", uid).ranks) == 1
    else:
        with pytest.raises(StoreError, match="hung up"):
            analyze_capture(store, "default", uid)


# ---------------------------------------------------------------- the command


@pytest.fixture
def place(tmp_path: Path) -> tuple[DirectoryStore, str, dict[str, str]]:
    store = DirectoryStore(tmp_path / "store", b"s" * 32, "")
    return store, plant_capture(store, ranks=3, failed=(2,)).uid, {"FLEETPROF_STORE": str(tmp_path / "store")}


def test_the_three_commands(place: tuple[DirectoryStore, str, dict[str, str]]) -> None:
    store, uid, environment = place
    assert run(["report", "default", uid], environment) == JobExit.DONE
    alone = read_report(store.get(keys.report_key("default", uid)))
    for index in range(4):  # more pods than ranks: the last have nothing to do, and that is no failure
        code = run(["summarise", "default", uid, "--of", "4"], environment | {"JOB_COMPLETION_INDEX": str(index)})
        assert code == JobExit.DONE
    assert run(["merge", "default", uid], environment) == JobExit.DONE
    assert timeless(read_report(store.get(keys.report_key("default", uid)))) == timeless(alone)


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "sentence"),
    [
        ([], {}, JobExit.INVALID, "required"),
        (["report", "default"], {}, JobExit.INVALID, "required: UID"),
        (["report", "default", "u"], {"FLEETPROF_STORE": ""}, JobExit.INVALID, "FLEETPROF_STORE: the store is not"),
        (["report", "default", "u"], {"FLEETPROF_STORE": "gs://x"}, JobExit.INVALID, "FLEETPROF_STORE: 'gs://x'"),
        (["report", "../x", "u"], {}, JobExit.INVALID, "not usable in an object key"),
        (["summarise", "default", "u", "--of", "2"], {}, JobExit.INVALID, "JOB_COMPLETION_INDEX: must be"),
        (["summarise", "default", "u", "--of", "2"], {"JOB_COMPLETION_INDEX": "2"}, JobExit.INVALID, "--of 2: must"),
        (["merge", "default", "absent"], {}, JobExit.NOTHING_STORED, "no ledger and no trace of capture absent"),
        (["report", "default", "absent"], {}, JobExit.NOTHING_STORED, "no ledger and no trace of capture absent"),
    ],
)
def test_every_end_has_its_code_and_its_sentence(
    place: tuple[DirectoryStore, str, dict[str, str]],
    tmp_path: Path,
    arguments: list[str],
    environment: dict[str, str],
    code: JobExit,
    sentence: str,
) -> None:
    log = tmp_path / "termination-log"
    log.write_text("what an earlier container said, which was longer " * 8)
    assert run(arguments, place[2] | environment, termination_log=log) == code
    assert sentence in log.read_text()
    assert "\n" not in log.read_text()
    assert "earlier" not in log.read_text()


def test_no_termination_log_is_made_where_kubernetes_made_none(tmp_path: Path) -> None:
    assert run(["report", "a", "b"], {}, termination_log=tmp_path / "log") == JobExit.INVALID
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(("retryable", "code"), [(True, JobExit.STORE_AWAY), (False, JobExit.STORE_REFUSES)])
def test_a_store_that_is_away_is_told_from_one_that_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, retryable: bool, code: JobExit
) -> None:
    store = FailingStore(0)
    uid = plant_capture(store, ranks=1).uid
    store.failures, store.retryable = 9, retryable
    monkeypatch.setattr("fleetprof_analyzer.capture.main.open_location", lambda _: store)
    assert run(["report", "default", uid], {"FLEETPROF_STORE": str(tmp_path)}) == code


def test_the_command_writes_nothing_but_to_the_store(place: tuple[DirectoryStore, str, dict[str, str]]) -> None:
    _, uid, environment = place
    # Where a pod's root is read-only, TMPDIR may be the only place to write; here there is none.
    command: list[str | Path] = [Path(sys.executable).parent / "fleetprof-analyzer", "report", "default", uid]
    clean = {"PATH": "/usr/bin:/bin", "TMPDIR": "/nonexistent", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(command, env=clean | environment, capture_output=True, text=True, cwd="/")
    assert result.returncode == 0, result.stderr
    assert "report of 2 ranks written" in result.stderr


@pytest.mark.parametrize("code", JobExit)
def test_every_exit_code_is_documented(code: JobExit) -> None:
    assert f"| {code.value} | {code.name} |" in (ROOT / "docs/analyzer.md").read_text()


def test_a_smaller_container_reads_smaller_traces() -> None:
    small, large, unlimited = (limits_within(n).kept_rows for n in (256 << 20, 2 << 30, None))
    assert 10_000 < small < large < unlimited


@pytest.mark.s3
def test_the_job_against_a_bucket(s3_server: Any) -> None:
    bucket = s3_server.make_bucket()
    store = s3_server.make_store(bucket, "team/one")
    uid = plant_capture(store, ranks=3, failed=(2,)).uid
    environment = {
        "PATH": "/usr/bin:/bin",
        "FLEETPROF_STORE": f"s3://{bucket}/team/one?endpoint={s3_server.endpoint_url}&path_style=true&region=us-east-1",
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
    }

    def job(*words: str, **more: str) -> int:
        command = ["fleetprof-analyzer", *words]
        return forked.run("fleetprof_analyzer.capture.main", command, environment | more).returncode

    assert job("report", "default", uid) == JobExit.DONE
    alone = read_report(store.get(keys.report_key("default", uid)))
    for index in range(2):
        assert job("summarise", "default", uid, "--of", "2", JOB_COMPLETION_INDEX=str(index)) == JobExit.DONE
    assert job("merge", "default", uid) == JobExit.DONE
    assert timeless(read_report(store.get(keys.report_key("default", uid)))) == timeless(alone)
    assert job("report", "default", uid, AWS_SECRET_ACCESS_KEY="wrong") == JobExit.STORE_REFUSES
    assert job("report", "default", "absent") == JobExit.NOTHING_STORED
    unreachable = "s3://bucket?endpoint=http://127.0.0.1:9&path_style=true"
    assert job("report", "default", uid, FLEETPROF_STORE=unreachable) == JobExit.STORE_AWAY
