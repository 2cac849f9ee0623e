"""HTA's work on a folder of traces, as far as fleetprof does the same; run by the interpreter of `.ci/hta`.

    <hta python> bench/analyzer/peer.py FOLDER... > answers.jsonl

Prints CPU seconds, wall seconds, peak memory of the process tree and HTA's own numbers, one JSON object a folder. Where
HTA fails, the object says so as `error`, and the exit code is 1. For figures name one folder: the first pays imports.
"""

import contextlib
import json
import os
import resource
import sys
import time
import traceback
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")


def ask(folder: Path) -> dict[str, Any]:
    began, cpu = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(sys.stderr):
        from hta.trace_analysis import TraceAnalysis

        files = {rank: str(file) for rank, file in enumerate(sorted(folder.glob("*.json.gz")))}
        analysis = TraceAnalysis(trace_files=files, trace_dir=str(folder))
        time_table = analysis.get_temporal_breakdown(visualize=False)
        idle, _ = analysis.get_idle_time_breakdown(ranks=sorted(files), visualize=False)
        overlap = analysis.get_comm_comp_overlap(visualize=False)
        kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10_000, duration_ratio=1.0)[1]
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu + children.ru_utime + children.ru_stime,
        "peak_mib": (own.ru_maxrss + children.ru_maxrss) // 1024,
        "peer": f"traceinsight {version('traceinsight')}, pandas {version('pandas')}",
        "time": json.loads(time_table.to_json(orient="records")),
        "idle": json.loads(idle.to_json(orient="records")),
        "overlap": json.loads(overlap.to_json(orient="records")),
        "kernels": json.loads(kernels.to_json(orient="records")),
    }


def main() -> int:
    failed = 0
    with os.fdopen(os.dup(1), "w") as answers:
        for folder in sys.argv[1:]:
            try:
                answer = ask(Path(folder))
            except Exception as error:
                traceback.print_exc()
                failed, answer = 1, {"error": repr(error)}
            print(json.dumps(answer), file=answers)
    return failed


if __name__ == "__main__":
    sys.exit(main())
