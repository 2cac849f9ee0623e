"""Starts the ranks of a job as torchrun does, without PyTorch, whose import costs torchrun 1.3 s of processor time.

For jobs whose launcher is not what a test looks at. The ranks find in their environment what torchrun puts there; if
one of them fails, or the launcher is told to end, the others are told to end, and the exit code is 1.
"""

import os
import signal
import socket
import subprocess
import sys
import time


def main(ranks: int, words: list[str]) -> int:
    """Runs `python words…` so many times; the exit code."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": str(os.getpid()),
    }
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(ranks):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            processes.append(subprocess.Popen([sys.executable, "-u", *words], env=os.environ | shared | own))
        while any(process.poll() is None for process in processes):
            if any(process.returncode for process in processes):
                return 1
            time.sleep(0.1)
        return int(any(process.returncode for process in processes))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
