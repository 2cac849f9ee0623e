"""The samples of one rank: how long they go on, and the document that they make."""

import msgspec
import pytest
from fleetprof_api.samples import HostColumns, RankSamples
from fleetprof_sidecar.capture.process_capture import ProcessCapture, Terms
from fleetprof_sidecar.samples.rank_samples import PodFacts, RankRecorder, after_window_ns
from harness.sidecar.orders import trainer_view

S = 10**9


@pytest.mark.parametrize(
    ("iteration_ns", "after_ns", "after_canary_ns"),
    [(0, S, S // 5), (S // 5, 2 * S, S // 2), (4 * S, 5 * S, 10 * S), (10 * S, 5 * S, 20 * S)],
)
def test_the_after_window_is_some_iterations_within_bounds(
    iteration_ns: int, after_ns: int, after_canary_ns: int
) -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, iteration_ns=iteration_ns)
    assert after_window_ns(terms) == after_ns
    assert after_window_ns(msgspec.structs.replace(terms, canary=True)) == after_canary_ns


def test_a_document_holds_each_row_once_and_in_order() -> None:
    recorder = RankRecorder()
    recorder.add_steps([5, 6], [50, 60])
    recorder.add_steps([4, 5], [40, 99])
    recorder.add_device({"at_unix_ns": [20, 30], "power_milliwatts": [2, None]})
    recorder.add_device({"at_unix_ns": [10, 20], "temperature_celsius": [60, 61]})
    terms = Terms(capture_id="cap", process_id="p", rank=1, pid=7, has_agent=True, first_step=4)
    capture = ProcessCapture(terms=terms, armed_unix_ns=1, started_unix_ns=2, written_unix_ns=3)
    document = recorder.document(
        capture, trainer_view(torch_version="2.15.0"), PodFacts("pod", "node", 64), HostColumns(at_unix_ns=[9])
    )
    samples = msgspec.json.decode(document, type=RankSamples)
    assert (samples.steps.step, samples.steps.end_unix_ns) == ([4, 5, 6], [40, 50, 60])
    assert samples.device.at_unix_ns == [10, 20, 30]
    assert samples.device.power_milliwatts == [None, None, None]
    assert samples.device.temperature_celsius == [60, 61, None]
    assert (samples.trace_id, samples.torch_version) == ("cap-r1", "2.15.0")
    assert (samples.host_name, samples.node_name, samples.samples_per_iteration) == ("pod", "node", 64)
    assert (samples.armed_unix_ns, samples.started_unix_ns, samples.written_unix_ns) == (1, 2, 3)
    lengths = {len(getattr(samples.device, name)) for name in samples.device.__struct_fields__}
    assert lengths == {3}
