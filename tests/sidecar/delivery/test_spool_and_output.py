"""The spool's limits and journal, and what is seen in the directory that Kineto writes into."""

import gzip
import os
from pathlib import Path

import msgspec
import pytest
from fleetprof_api.ledger import RankState, Reason
from fleetprof_sidecar.capture.process_capture import ProcessCapture, Terms, check_capture_id
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.delivery.spool import NoRoom, Spool, SpoolBusy


def capture(capture_id: str = "cap-1", process_id: str = "../p/1", rank: int = 0) -> ProcessCapture:
    return ProcessCapture(terms=Terms(capture_id=capture_id, process_id=process_id, rank=rank, first_step=1))


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", 1000)


def test_the_journal_brings_back_the_latest_of_each_capture(spool: Spool, tmp_path: Path) -> None:
    first, second = capture(), capture(rank=1, process_id="q")
    spool.record(first)
    spool.record(second)
    first = msgspec.structs.replace(first, state=RankState.ARMED, armed_unix_ns=7)
    spool.record(first)
    identity = spool.sidecar_id
    spool.close()
    (tmp_path / "spool/journal/cap-9-r0-000000000000.json").write_text("{torn")
    (tmp_path / "spool/journal/half.json.part").write_text("{")
    again = Spool(tmp_path / "spool", 1000)
    assert sorted(again.recorded(), key=lambda c: c.terms.rank) == [first, second]
    assert again.sidecar_id == identity
    again.forget(first)
    assert list(again.recorded()) == [second]
    assert len(list((tmp_path / "spool/journal").iterdir())) == 1


def test_one_sidecar_per_spool(spool: Spool, tmp_path: Path) -> None:
    with pytest.raises(SpoolBusy, match="give each its own"):
        Spool(tmp_path / "spool", 1000)
    spool.close()
    Spool(tmp_path / "spool", 1000).close()


def test_files_count_until_they_are_dropped(spool: Spool) -> None:
    mine, other = capture(), capture("cap-2")
    room = spool.room_bytes()
    stored = spool.write_samples(mine, b"x" * 400)
    assert spool.room_bytes() == room - stored.size_bytes
    assert gzip.decompress(spool.path_of(stored.name).read_bytes()) == b"x" * 400
    spool.trace_path(other).write_bytes(os.urandom(1000))
    with pytest.raises(NoRoom) as full:
        spool.room_bytes()
    assert full.value.reason == Reason.SPOOL_FULL
    with pytest.raises(NoRoom):
        spool.write_samples(mine, b"y")
    spool.drop_files(mine)
    assert not spool.path_of(stored.name).exists()
    spool.drop_orphans([mine])
    assert spool.used_bytes() == 0


def test_the_last_bytes_of_the_volume_are_left_to_others(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(".")
    nothing = os.statvfs_result([*real[:4], 1, *real[5:]])
    monkeypatch.setattr(os, "statvfs", lambda path: nothing)
    with pytest.raises(NoRoom) as full:
        spool.room_bytes()
    assert full.value.reason == Reason.DISK_FULL


@pytest.mark.parametrize("bad", ["", "../x", "a/b", "UPPER", "-a", "a-", "a" * 64, "a.b", "a\n"])
def test_a_capture_id_cannot_leave_its_place(bad: str) -> None:
    with pytest.raises(ValueError, match="capture id"):
        check_capture_id(bad)
    assert check_capture_id("a" * 63) == "a" * 63


@pytest.mark.parametrize("name", ["../journal/x", "/etc/passwd", ".part"])
def test_a_name_cannot_lead_out_of_the_spool(spool: Spool, name: str) -> None:
    with pytest.raises(ValueError, match="not a file of the spool"):
        spool.path_of(name)


def test_only_regular_files_with_a_traces_name_are_seen(tmp_path: Path) -> None:
    for name in ("cap-1-r0_7.json", "cap-1-r1_8.json.tmp", "notes.json", "cap_1.json", "cap-1-r0_7.json.gz", "x.tmp"):
        (tmp_path / name).write_text(name)
    (tmp_path / "cap-1-r2_9.json").symlink_to(tmp_path / "notes.json")
    (tmp_path / "cap-1-r3_9.json").mkdir()
    os.mkfifo(tmp_path / "cap-1-r4_9.json")
    traces = TracesDirectory(tmp_path)
    assert [(f.name, f.stem, f.pid, f.finished, f.size_bytes) for f in traces.scan()] == [
        ("cap-1-r0_7.json", "cap-1-r0", 7, True, 15),
        ("cap-1-r1_8.json.tmp", "cap-1-r1", 8, False, 19),
    ]
    assert traces.delete("cap-1-r0_7.json")
    assert traces.delete("cap-1-r0_7.json")
    with pytest.raises(ValueError, match="not the name of a trace"):
        traces.delete("../spool")
    assert TracesDirectory(tmp_path / "absent").scan() == []


def test_a_trace_in_kinetos_fallback_is_pointed_out(tmp_path: Path) -> None:
    traces = TracesDirectory(Path("/run/x/traces"), fallback=tmp_path)
    (tmp_path / "libkineto_activities_42.json").write_text("{}")
    assert "KINETO_ONDEMAND_TRACE_DIR=/run/x/traces" in traces.find_stray(42, 0)
    assert traces.find_stray(42, 2**62) == ""
    assert traces.find_stray(43, 0) == ""
    assert traces.find_stray(0, 0) == ""
