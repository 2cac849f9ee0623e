"""The ranks that the sidecar samples devices for."""

from typing import Any

import msgspec
import pytest
from fleetprof_api.samples import HostColumns, RankSamples
from fleetprof_sidecar.capture.process_capture import ProcessCapture, Terms
from fleetprof_sidecar.samples.device import DeviceReading
from fleetprof_sidecar.samples.rank_recorders import RankRecorders
from fleetprof_sidecar.samples.rank_samples import PodFacts
from harness.sidecar.captures_in_memory import TableInMemory, view

KEY = ("cap", "p")


@pytest.mark.parametrize(
    ("process", "wanted"),
    [({"has_agent": True}, False), ({"has_agent": False}, True), ({"has_agent": False, "polls_kineto": False}, False)],
    ids=["with the agent", "without", "without, and not a trainer of Kineto's"],
)
def test_devices_are_wanted_where_a_process_polls_that_has_no_agent(process: dict[str, Any], wanted: bool) -> None:
    table = TableInMemory()
    table.views["p"] = view(**process)
    assert RankRecorders(table).wants_devices() is wanted


@pytest.mark.parametrize(
    ("process", "rows"),
    [
        ({"has_agent": False}, [7]),
        ({"has_agent": True}, []),
        ({"has_agent": False, "local_rank": None}, []),
        ({"has_agent": False, "local_rank": 5}, []),
    ],
    ids=["without the agent", "with the agent", "of unknown local rank", "of a device that nobody sees"],
)
def test_a_rank_without_the_agent_gets_the_samples_of_its_device(process: dict[str, Any], rows: list[int]) -> None:
    table = TableInMemory()
    table.views["p"] = view(**process)
    recorders = RankRecorders(table)
    recorders.begin(KEY)
    recorders.add_devices([DeviceReading(7, 0, {"power_milliwatts": 1}), DeviceReading(7, 1, {})])
    recorder = recorders.end(KEY)
    assert recorder is not None
    capture = ProcessCapture(terms=Terms(capture_id="cap", process_id="p", rank=0, first_step=1))
    document = recorder.document(capture, None, PodFacts("host", "node", 64), HostColumns(at_unix_ns=[]))
    assert msgspec.json.decode(document, type=RankSamples).device.at_unix_ns == rows
    assert recorders.get(KEY) is None
