"""The length of transfers: as long as the member that came last was in the operation, for it waited for nobody.

Where one kernel exchanges with several ranks at once, it lasts until its last part is over, so its duration holds what
another part waited for; where a member left no trace, it may have come last. Guarantees: pure.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout
from fleetprof_analyzer.trace.trace import Bools, Int64s

_UNDISTURBED: Final = 0.05  # of the transfers between two ranks: at least so many waited for no other part


def measure_transfers(
    layout: ReplayLayout, duration_ns: Int64s, captured: Bools, whole: Bools, described: tuple[Int64s, Int64s]
) -> Int64s:
    """The length of each collective's transfer, shape (C,): the shortest duration over its captured members.

    Of the operations, shapes (N,): `duration_ns`, whether a rank was `captured`, and kind and elements (`described`).
    `whole`, shape (M,), of the first collectives: all members were captured.
    """
    of_captured, of_all = (np.full(layout.collectives, np.iinfo(np.int64).max) for _ in range(2))
    np.minimum.at(of_all, layout.collective, duration_ns)
    np.minimum.at(of_captured, layout.collective[captured], duration_ns[captured])
    has_captured = np.bincount(layout.collective[captured], minlength=layout.collectives) > 0
    transfer = _bound_by_whole(layout, np.where(has_captured, of_captured, of_all), whole, described)
    return shorten_transfers(layout, transfer)


def exchanges_with_several(layout: ReplayLayout) -> Bools:
    """Which collectives, shape (C,), have a member in a batch whose parts are with different batches."""
    members = np.bincount(layout.collective, minlength=layout.collectives)
    batch = np.cumsum(layout.part == 0) - 1
    total = np.zeros(layout.collectives, np.int64)
    np.add.at(total, layout.collective, batch)
    pairs = members[layout.collective] == 2
    partner = np.where(pairs, total[layout.collective] - batch, -1)
    count = int(batch[-1]) + 1 if len(batch) else 0
    least, most = np.full(count, len(batch)), np.full(count, -1)
    np.minimum.at(least, batch, partner)
    np.maximum.at(most, batch, partner)
    several = np.zeros(layout.collectives, np.bool_)
    several[layout.collective[pairs & (least < most)[batch]]] = True
    return several


def shorten_transfers(layout: ReplayLayout, transfer_ns: Int64s) -> Int64s:
    """The transfers, shape (C,), those of kernels that exchange with several ranks no longer than undisturbed ones."""
    several = exchanges_with_several(layout)
    shortened = transfer_ns.copy()
    ranks = int(layout.rank.max(initial=0)) + 1
    first, last = np.full(layout.collectives, ranks), np.full(layout.collectives, -1)
    np.minimum.at(first, layout.collective, layout.rank)
    np.maximum.at(last, layout.collective, layout.rank)
    link = first * ranks + last
    for one in np.unique(link[several]):
        of_link = link == one
        here = several & of_link
        shortened[here] = np.minimum(transfer_ns[here], int(np.quantile(transfer_ns[of_link], _UNDISTURBED)))
    return shortened


def _bound_by_whole(
    layout: ReplayLayout, transfer_ns: Int64s, whole: Bools, described: tuple[Int64s, Int64s]
) -> Int64s:
    """The transfers, shape (C,), those in which a missing rank may have come last no longer than others like them.

    Alike are kind, size and number of members. Where none of these is whole, the shortest of that kind and number, for
    as many elements, tells.
    """
    if whole.all():
        return transfer_ns
    known = layout.collective < len(whole)
    at, bounded = layout.collective[known], transfer_ns.copy()
    likeness = np.full((len(whole), 3), -1, np.int64)
    for column, values in enumerate(described):
        np.maximum.at(likeness[:, column], at, values[known])
    likeness[:, 2] = np.bincount(at, minlength=len(whole))
    owner = np.unique(likeness, axis=0, return_inverse=True)[1].reshape(-1)
    rate = transfer_ns[: len(whole)] / np.maximum(likeness[:, 1], 1)
    for one in np.unique(owner[~whole]).tolist():
        here = np.flatnonzero(owner == one)
        kind, elements, members = likeness[here[0]].tolist()
        if len(usual := transfer_ns[here[whole[here]]]):
            most = float(np.median(usual))
        else:
            most = float(rate[(likeness[:, 0] == kind) & (likeness[:, 2] == members)].min()) * max(elements, 1)
        here = here[~whole[here]]
        bounded[here] = np.minimum(transfer_ns[here], round(most))
    return bounded
