"""Whatever a sidecar says, the hub takes in texts of one line without control characters, or nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.sidecars.messages import parse_message
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

# Refused where they are not of a few letters, so never unprintable.
IDS = frozenset({"sidecar_id", "capture_id", "question", "process_id"})
BODIES = [field.name for field in pb.SidecarMessage.DESCRIPTOR.fields]


def is_map(field: Any) -> bool:
    """Tells maps of either implementation of protobuf."""
    return bool(field.message_type.GetOptions().map_entry)


def fill(message: Message, text: str) -> None:
    """Puts `text` into each field of text, however deep; one element into each list."""
    for field in message.DESCRIPTOR.fields:
        if field.name in IDS:
            setattr(message, field.name, "id")
        elif field.type == FieldDescriptor.TYPE_STRING:
            if field.is_repeated:
                getattr(message, field.name).append(text)
            else:
                setattr(message, field.name, text)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            inner = getattr(message, field.name)
            if is_map(field):
                inner[text] = text
            else:
                fill(inner.add() if field.is_repeated else inner, text)


def texts(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            yield from value if field.is_repeated else [value]
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            if is_map(field):
                yield from [*value.keys(), *value.values()]
            else:
                for inner in value if field.is_repeated else [value]:
                    yield from texts(inner)


def say(body: str, text: str) -> Any:
    message = pb.SidecarMessage()
    inner = getattr(message, body)
    inner.SetInParent()
    fill(inner, text)
    if body == "hello":
        inner.protocol_version = 1
        for event in inner.held:
            event.state = pb.FAILED
    if body == "event":
        inner.state = pb.FAILED
    return parse_message(message.SerializeToString())


@pytest.mark.attack
@pytest.mark.parametrize("body", BODIES)
def test_nothing_unprintable_enters(body: str) -> None:
    taken = say(body, "done\nrank 1: Uploaded: all is well\x1b[2J\x9b31m\u202e")
    assert taken.WhichOneof("body") == body
    assert [text for text in texts(taken) if not text.isprintable()] == []


@given(st.sampled_from(BODIES), st.text(st.characters(codec="utf-8"), max_size=50))
def test_no_text_enters_unprintable(body: str, text: str) -> None:
    assert all(taken.isprintable() for taken in texts(say(body, text)))
