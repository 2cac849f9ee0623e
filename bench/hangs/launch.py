"""Starts ranks as torchrun does, and leaves the others alone when one ends, as ranks of several nodes are.

python bench/hangs/launch.py RANKS PROGRAM ARGUMENTS…
"""

import os
import signal
import socket
import subprocess
import sys


def main(ranks: int, words: list[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(ranks):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks)}
            started.append(subprocess.Popen([sys.executable, *words], env=os.environ | meeting | own))
        for process in started:
            process.wait()
    finally:
        for process in started:
            process.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
