"""How long the parts of batches took to transfer, where one kernel exchanges with several ranks at once.

Such a kernel lasts until its last part is over, so its duration holds what another part waited for. Guarantees: pure;
transfers only get shorter.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.schedule import ReplayLayout
from fleetprof_analyzer.trace.trace import Bools, Int64s

_UNDISTURBED: Final = 0.05  # of the transfers between two ranks: at least so many waited for no other part


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
