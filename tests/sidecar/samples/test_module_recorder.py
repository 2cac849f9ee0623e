"""Messages about modules end up in a rank's samples, whatever they say and in which order."""

from typing import Any

from fleetprof_api.samples import ModuleColumns
from fleetprof_sidecar.samples.module_recorder import ModuleRecorder


def message_of(first: int, *names: str) -> dict[str, Any]:
    count = len(names)
    return {
        "first": first,
        "name": list(names),
        "class_name": ["Linear"] * count,
        **{name: ["t.py"] * count for name in ("file", "call_file")},
        **{name: [7] * count for name in ("line", "call_line", "calls")},
        **{name: [None] * count for name in ModuleColumns.__struct_fields__ if name.endswith("_bytes")},
        **{name: [None] * count for name in ("rows", "indices")},
    }


def test_modules_are_in_the_order_of_the_agent_each_once() -> None:
    recorder = ModuleRecorder()
    assert recorder.columns() == ModuleColumns()
    for message in (
        message_of(2, "c"),
        message_of(0, "a", "b"),
        message_of(2, "c"),
        message_of(4095, "last", "one too many"),
    ):
        recorder.add(message)
    columns = recorder.columns()
    assert columns.name == ["a", "b", "c", "last"]
    assert {len(getattr(columns, name)) for name in columns.__struct_fields__} == {4}
