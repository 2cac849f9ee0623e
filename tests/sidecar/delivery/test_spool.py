"""The spool's limits and its journal."""

import gzip
import os
from pathlib import Path

import msgspec
import pytest
from fleetprof_api.ledger import RankState, Reason
from fleetprof_sidecar.capture.process_capture import ProcessCapture, Terms
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


@pytest.mark.parametrize("name", ["../journal/x", "/etc/passwd", ".part"])
def test_a_name_cannot_lead_out_of_the_spool(spool: Spool, name: str) -> None:
    with pytest.raises(ValueError, match="not a file of the spool"):
        spool.path_of(name)
