"""The report of a small job as one of a large job: its ranks again and again, one of them the late one."""

from collections.abc import Sequence

import msgspec
from fleetprof_api.report.report import Report


def enlarge(
    report: Report, rank_count: int, late_rank: int, *, late: int = 2, others: Sequence[int] = (0, 1, 3)
) -> Report:
    """`report` as that of `rank_count` ranks; `late_rank` is like its rank `late`, the rest like `others` in turn."""
    like = [late if rank == late_rank else others[rank % len(others)] for rank in range(rank_count)]
    replace = msgspec.structs.replace
    ranks = [
        replace(report.ranks[source], rank=rank, source=f"ranks/{rank}/trace.json.gz")
        for rank, source in enumerate(like)
    ]
    sections = [
        replace(
            section,
            ranks=list(range(rank_count)),
            tables=[replace(table, values=[table.values[source] for source in like]) for table in section.tables],
        )
        for section in report.heterogeneity
    ]
    return replace(report, ranks=ranks, heterogeneity=sections)
