"""A rank's samples survive being written and read, also by a reader that knows fewer columns."""

import msgspec
from fleetprof_api.samples import DeviceColumns, HostColumns, RankSamples, StepColumns


def test_samples_survive_being_written_and_read() -> None:
    samples = RankSamples(
        rank=3,
        steps=StepColumns(step=[7, 8], end_unix_ns=[100, 200]),
        device=DeviceColumns(at_unix_ns=[1], power_milliwatts=[None]),
        host=HostColumns(at_unix_ns=[1], cpu_busy_permille=[500]),
    )
    assert msgspec.json.decode(msgspec.json.encode(samples), type=RankSamples) == samples


def test_a_column_that_this_version_does_not_know_is_no_error() -> None:
    data = b'{"schema_version":1,"rank":0,"device":{"at_unix_ns":[1],"a_new_column":[2]},"also_new":1}'
    assert msgspec.json.decode(data, type=RankSamples).device.at_unix_ns == [1]
