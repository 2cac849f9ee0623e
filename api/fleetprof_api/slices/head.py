"""The slice `head`: what lists of reports show and are sorted by."""

from typing import Annotated

from msgspec import Meta

from fleetprof_api.slices.slice import Ns, Slice, SlicePart


class Figures(SlicePart, kw_only=True):
    """A report in a row of a table. Times are sums over the ranks that are measured."""

    rank_count: int
    kind: Annotated[str, Meta(description='gpu or cpu: the ranks that the figures are of; ""')]
    gpu: Annotated[str, Meta(description='name of the device; "" on CPU-only ranks')]
    torch_version: str
    iteration_ns: Annotated[int | None, Meta(description="median length of an iteration, ns")]
    span_ns: Annotated[int, Meta(description="sum over ranks; the parts below add up to it, ns")]
    compute_ns: Ns
    overlapped_communication_ns: Annotated[int, Meta(description="a part of compute_ns")]
    exposed_communication_ns: Ns
    exposed_memory_ns: Ns
    idle_ns: Ns
    busy_permille: Annotated[int | None, Meta(description="(span - idle - unrecorded) / span")]
    exposed_communication_permille: int | None
    power_mw: Annotated[int | None, Meta(description="mean power of all sampled devices within iterations, mW")]
    rank_samples_per_ks: Annotated[
        int | None, Meta(description="samples of one rank in 1,000 s, by `throughput`; null: nothing says its samples")
    ] = None
    model_utilization_permille: Annotated[
        int | None, Meta(description="MFU of the kind of device with the most ranks; null: no shapes, no known peak")
    ] = None
    verdict: Annotated[str, Meta(description="`stragglers.verdict` of the report")]
    stragglers: Annotated[list[int], Meta(description="ranks that are named, at most 8")]
    gain_permille: Annotated[int, Meta(description="of the iteration, if what is named is mended; thousandths")]
    top_finding: Annotated[str, Meta(description='kind of the first finding; ""')]
    top_finding_permille: Annotated[int, Meta(description="the potential saving of it, thousandths of the iteration")]
    sentence: Annotated[str, Meta(description="the report's answer, in one sentence")]


class Head(Slice):
    """The headline figures of a report, and its hosts."""

    figures: Figures
    hosts: Annotated[list[str], Meta(description="names of the hosts; `cut` counts those that are left out")]
