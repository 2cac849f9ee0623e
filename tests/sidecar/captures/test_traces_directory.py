"""The files seen in the directory that Kineto writes into."""

import os
from pathlib import Path

import pytest
from fleetprof_sidecar.captures.traces_directory import TracesDirectory


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
