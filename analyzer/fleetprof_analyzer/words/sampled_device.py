"""The words about the sampled GPU that the others wait for: parts of sentences, and things to try.

Guarantees: pure; a sample that was taken is never asked for again.
"""

from fleetprof_analyzer.job.stragglers.sampled_device import SampledDevice


def say_sampled_device(device: SampledDevice | None) -> str:
    """`runs at 0.74 times the clock of its peers, throttled by power`; "" where the samples show neither."""
    if device is None:
        return ""
    reasons = " and ".join(reason.replace("_", " ") for reason in device.throttled_by)
    if device.clock is None:
        return f"is throttled by {reasons}, more than its peers" if reasons else ""
    return f"runs at {device.clock:.2f} times the clock of its peers" + (f", throttled by {reasons}" if reasons else "")


def advise_on_device(device: SampledDevice) -> str:
    """Against what the samples show, else by what they cannot show."""
    gpu = f"the GPU of rank {device.rank}"
    if say_sampled_device(device):
        drain = f"drain the node {device.node_name}, and " if device.node_name else ""
        return f"{drain}check power limit, temperature and cooling of {gpu} (nvidia-smi -q -d PERFORMANCE)"
    return (
        f"run rank {device.rank} on another GPU: if the slowness stays with {gpu}, it is the GPU; look at its ECC "
        "counts, its links and who else uses it (nvidia-smi -q)"
    )
