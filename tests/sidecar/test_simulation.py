"""The command that simulates trainers, as the bench starts it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from fleetprof_sidecar.trainer_side import TrainerSide

SIMULATION = Path(__file__).parents[1] / "simulation" / "trainer.py"


def test_the_command_serves_ranks_and_tells_what_they_saw(short_directory: str) -> None:
    side = TrainerSide(short_directory)
    side.start()
    command = [sys.executable, str(SIMULATION), "--directory", short_directory, "--ranks", "3", "--poll-ms", "50"]
    process = subprocess.Popen(
        [*command, "--step-ms", "10", "--fault", "never_polls", "--faulty-rank", "2"], stdout=subprocess.PIPE, text=True
    )
    try:
        end = time.monotonic() + 60
        expected = {0: True, 1: True, 2: False}
        while {v.rank: v.polls_kineto for v in side.table.snapshot() if v.step is not None} != expected:
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
        side.stop()
    header, *ranks = [json.loads(line) for line in output.splitlines()]
    assert header["ranks"] == 3
    assert [rank["rank"] for rank in ranks] == [0, 1, 2]
    assert ranks[0]["replies"] > 0
    assert ranks[0]["counters"].get("fatal_replies", 0) == 0
    assert ranks[2]["polls"] == 0
    assert {path.name for path in Path(short_directory).iterdir()} == {"traces", "agent", "libkineto.conf"}
