"""Small reports by hand, for what is said of them."""

from typing import Any, Literal

from fleetprof_api.ledger import LedgerEntry, RankState, Reason
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import Iteration, KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import CommunicationStatistics, KernelStatistics, Silence, Stages, StageTime
from fleetprof_api.report.stragglers import Evidence, Straggler, Stragglers

MS = 1_000_000
HERE = PlaceInCode(file="/home/me/job/train.py", line=41, function="read_batch", samples=87, of_samples=120)
LOADING = Straggler(
    rank=2, lateness_ns=120 * MS, cause="data_loading", gain=0.31, gain_alone=0.31, peers=3, place=HERE,
    evidence=[Evidence(measure="data loading", value=200 * MS, usual=61 * MS, unit="ns per iteration")],
)  # fmt: skip
SLOW = Straggler(rank=5, lateness_ns=9 * MS, cause="slow_gpu", gain=0.0, gain_alone=0.1, peers=3)
STAGES = Stages(
    stages=[
        StageTime(stage="backward", time_ns=560 * MS), StageTime(stage="host", time_ns=310 * MS),
        StageTime(stage="forward", time_ns=130 * MS),
    ],
    silences=[Silence(after="Optimizer.step#SGD.step", before="aten::randn", time_ns=300 * MS, count=9, place=HERE)],
)  # fmt: skip
GPU = TimeBreakdown(span=1000 * MS, compute=430 * MS, idle=570 * MS)
WAITING = IdleCauses(host=500 * MS, host_python=500 * MS, waiting=70 * MS)
BUSY = TimeBreakdown(span=1000 * MS, compute=960 * MS, exposed_communication=10 * MS, idle=30 * MS)
EXPOSED = TimeBreakdown(span=1000 * MS, compute=600 * MS, exposed_communication=400 * MS)
GEMM = KernelStatistics(
    name="gemm", work_class="compute", count=9, total_ns=610 * MS, mean_ns=1, min_ns=1, max_ns=1, deviation_ns=0,
    p50_ns=1, p90_ns=1, p99_ns=1, ranks=1,
)  # fmt: skip
REDUCED = CommunicationStatistics(
    kind="all_reduce", group="dp", count=9, total_ns=400 * MS, min_ns=MS, overlapped_ns=0, ranks=4
)


def job(
    stragglers: Stragglers | None = None, time_ns: TimeBreakdown = GPU, *, ranks: int = 4,
    kind: Literal["gpu", "cpu"] = "gpu", idle_ns: IdleCauses | None = WAITING, stages: Stages = STAGES, **more: Any,
) -> Report:  # fmt: skip
    basis: Literal["device", "host"] = "device" if kind == "gpu" else "host"
    iterations = [Iteration(index=n, start_ns=n, duration_ns=450 * MS) for n in range(10)]
    of_ranks = [
        Rank(
            rank=number, source=f"ranks/{number}/trace.json.gz", kind=kind, time_basis=basis, time_ns=time_ns,
            iterations=iterations, stages=stages,
        )
        for number in range(ranks)
    ]  # fmt: skip
    total = KindTotal(kind=kind, time_basis=basis, ranks=ranks, time_ns=time_ns, idle_ns=idle_ns)
    return Report(ranks=of_ranks, totals=[total], stragglers=stragglers, **more)


def late(*ranks: Straggler, **more: Any) -> Stragglers:
    return Stragglers(verdict="straggler", ranks=list(ranks), gain=0.31, iterations=list(range(10)), **more)


ASKED = [
    LedgerEntry(rank=rank, process_id=str(rank), state=RankState.UPLOADED if rank < 4 else RankState.FAILED,
                reason=None if rank < 4 else Reason.PROCESS_EXITED)
    for rank in range(6)
]  # fmt: skip
