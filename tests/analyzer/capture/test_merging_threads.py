"""A merge reads in many threads from its first moment: no type is met for the first time there."""

import subprocess
import sys
from pathlib import Path

from fleetprof_analyzer.capture.store import summarise_ranks
from fleetprof_store.directory import DirectoryStore
from harness.traces.planted.traces import plant_capture

_MERGE = """
import sys
sys.setswitchinterval(1e-5)
from fleetprof_analyzer.capture.store import merge_capture
from fleetprof_store.directory import DirectoryStore
print(len(merge_capture(DirectoryStore(sys.argv[1], b"x" * 32, ""), "default", sys.argv[2]).ranks))
"""


def test_a_fresh_process_merges_without_a_crash(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, b"x" * 32, "")
    uid = plant_capture(store, ranks=16).uid
    summarise_ranks(store, "default", uid, shard=0, shards=1)
    result = subprocess.run([sys.executable, "-c", _MERGE, tmp_path, uid], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "16\n"), result.stderr
