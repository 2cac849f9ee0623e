"""Between which rows of the main thread the host was silent, and in which line of code (docs/measures.md#stages).

Guarantees: pure; the longest places of all iterations, at most `MOST_SILENCES`, the longest first.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from fleetprof_api.report.report_tables import Silence

from fleetprof_analyzer.rank.host.code_of_spans import find_code
from fleetprof_analyzer.rank.host.track import Track
from fleetprof_analyzer.rank.measures.stages.labels import Label
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread
from fleetprof_analyzer.trace.trace import Trace

MOST_SILENCES: Final = 5
_LONGEST_NAME: Final = 160


def find_silences(trace: Trace, thread: MainThread, labels: Iterable[Label], track: Track | None) -> list[Silence]:
    """The places of the pieces that are the host's, by name of what ends before them and begins behind them.

    `track`: where the thread was, None where it was not sampled: then the trace's own frames tell, where it has any.
    """
    models = (thread.model, thread.begun)
    kinds = (thread.top, thread.data, thread.zero_grad, thread.optimizer, *models, thread.autograd, thread.behind)
    here = [rows.select(rows.place == thread.place) for rows in kinds]
    starts = np.concatenate([rows.start_ns for rows in here])
    ends = np.concatenate([rows.end_ns for rows in here])
    numbers = np.concatenate([rows.name for rows in here])
    # Of rows that begin or end at one time the outer one is named.
    by_start, by_end = np.lexsort((-ends, starts)), np.lexsort((-starts, ends))
    begins, finishes = starts[by_start], ends[by_end]
    times: Counter[tuple[str, str]] = Counter()
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for left, right, stage in labels:
        if stage != "host":
            continue
        before = int(np.searchsorted(finishes, left, side="right")) - 1
        behind = int(np.searchsorted(begins, right))
        pair = (
            trace.names[numbers[by_end[before]]][:_LONGEST_NAME] if before >= 0 else "",
            trace.names[numbers[by_start[behind]]][:_LONGEST_NAME] if behind < len(begins) else "",
        )
        times[pair] += right - left
        spans.setdefault(pair, []).append((left, right))
    return [
        Silence(
            after=pair[0],
            before=pair[1],
            time_ns=time,
            count=len(spans[pair]),
            place=find_code(trace, thread.place, track, spans[pair]),
        )
        for pair, time in sorted(times.items(), key=lambda one: (-one[1], one[0]))[:MOST_SILENCES]
    ]
