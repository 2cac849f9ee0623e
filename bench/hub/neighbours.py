"""Two tenants at one hub, one of which does its worst: is the other's capture whole, how large and late is the hub?

The hub, the job's sidecar, its two simulated ranks and the hostile tenant (`tests/harness/hub/hostile_tenant.py`: the
largest hellos under ever new names, hundreds of silent streams, the largest heartbeats, bombs, claims, tokens that are
none, from forty pods) are processes of their own. On a machine that others keep busy the loop is late by itself:
beside it stand how late it was before, and the most CPU time that one callback took.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from figures import Figure
from harness.hub.shared_hub import play

MOST_MIB = 300
MOST_LAG_MS = 50
DIALS = 1500
MOST_TIMES = 2


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="fp", dir="/tmp") as folder:
        found = play(Path(folder), DIALS)
    calm, late = found["calm"], found["lag_p99_ms"]
    whole = found["reason"] == "Complete" and found["attacked_to_the_end"]
    before, meanwhile = (sorted(waits)[DIALS * 99 // 100] for waits in found["waits_s"])
    title = "a hostile tenant beside a job"
    return [
        Figure("hub", f"{title}: the job's capture", found["message"], "Complete", whole),
        Figure(
            "hub", f"{title}: memory of the hub", f"{found['peak_mib']} MiB at most", f"<= {MOST_MIB} MiB",
            found["peak_mib"] <= MOST_MIB,
        ),
        Figure(
            "hub", f"{title}: the event loop was late", f"p99 {late} ms (before: {calm['lag_p99_ms']} ms), worst "
            f"{found['lag_worst_ms']} ms (before: {calm['lag_worst_ms']} ms)", f"p99 <= {MOST_LAG_MS} ms",
            late <= MOST_LAG_MS,
        ),
        Figure(
            "hub", f"{title}: a third tenant's pods are answered", f"p99 {1e3 * meanwhile:.3g} ms (before, on a "
            f"machine as busy: {1e3 * before:.3g} ms), {meanwhile / before:.1f} times", f"<= {MOST_TIMES} times",
            meanwhile <= MOST_TIMES * before,
        ),
        Figure(
            "hub", f"{title}: CPU of the longest callback", f"{found['longest_callback_cpu_ms']} ms; above 50 ms: "
            f"{found['callbacks_over_50_ms_cpu']}",
        ),
        Figure("hub", f"{title}: refused", ", ".join(f"{n} {kind}" for kind, n in found["refused"].items() if n)),
    ]  # fmt: skip
