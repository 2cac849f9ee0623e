"""What HTA does with a folder of traces, as far as fleetprof does the same; run by the interpreter of `.ci/hta`.

    <hta python> bench/analyzer/peer.py FOLDER > answer.json

Prints CPU seconds, wall seconds, peak memory of the process tree and HTA's own numbers, one JSON object.
"""

import contextlib
import json
import os
import resource
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

warnings.filterwarnings("ignore")


def main() -> None:
    folder = Path(sys.argv[1])
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
    answer = {
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu + children.ru_utime + children.ru_stime,
        "peak_mib": (own.ru_maxrss + children.ru_maxrss) // 1024,
        "peer": f"traceinsight {version('traceinsight')}, pandas {version('pandas')}",
        "time": json.loads(time_table.to_json(orient="records")),
        "idle": json.loads(idle.to_json(orient="records")),
        "overlap": json.loads(overlap.to_json(orient="records")),
        "kernels": json.loads(kernels.to_json(orient="records")),
    }
    json.dump(answer, os.fdopen(os.dup(1), "w"))


if __name__ == "__main__":
    main()
