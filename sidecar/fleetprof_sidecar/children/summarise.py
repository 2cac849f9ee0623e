"""Makes one rank's summary beside the trainer: `python -m fleetprof_sidecar.children.summarise TRACE …`.

The only module of the sidecar that knows the analyzer, and a process of its own: the sidecar stays without numpy, and a
trace that needs too much memory ends this child, not the sidecar.

Guarantees: the lowest CPU priority, one thread; bounded memory; the summary (`summary.json.gz`) goes to stdout and the
exit code is 0, or there is one sentence on stderr and it is not; it ends with its parent. TRACE was written by the
trainer and is read as untrusted.
"""

import argparse
import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec
from fleetprof_api.kernel_class import KernelClass

from fleetprof_sidecar.children.compress import take_lowest_priority

_PR_SET_PDEATHSIG: Final = 1
KERNEL_CLASSES: Final = msgspec.json.Decoder(list[KernelClass])


def main() -> None:
    """Summarises the files named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m fleetprof_sidecar.children.summarise")
    parser.add_argument("trace", type=Path)
    parser.add_argument("--parent", type=int, required=True, help="ends when this process is not its parent any more")
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--first-step", type=int, help="the window's, where it begins at a step")
    parser.add_argument("--iterations", type=int, help="as asked, where iterations were")
    parser.add_argument("--kernel-classes", type=KERNEL_CLASSES.decode, default=[], metavar="JSON")
    parser.add_argument("--iteration-range", default="", help="name of the range that bounds an iteration")
    parser.add_argument("--memory-bytes", type=int, required=True, help="most bytes of data")
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != arguments.parent:
        sys.exit("the sidecar is gone")
    take_lowest_priority()
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (arguments.memory_bytes, arguments.memory_bytes))
    try:
        from fleetprof_analyzer.capture.rank_summary import make_summary
    except ImportError as error:
        sys.exit(f"this sidecar has no analyzer ({error.name} is missing): install fleetprof[sidecar,summary]")
    except MemoryError:
        sys.exit(f"{arguments.memory_bytes:,} bytes are too few to load the analyzer")
    try:
        data = make_summary(
            arguments.trace,
            arguments.samples,
            rank=arguments.rank,
            first_step=arguments.first_step,
            iterations=arguments.iterations,
            memory_bytes=arguments.memory_bytes,
            kernel_classes=arguments.kernel_classes,
            iteration_range=arguments.iteration_range,
        )
    except (OSError, ValueError, MemoryError) as error:
        sys.exit(f"{type(error).__name__}: {error}"[:300])
    sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
