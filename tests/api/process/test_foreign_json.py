"""Words of others come in with printable texts and numbers that can be reckoned with, or not at all."""

import json
from typing import Any

import pytest
from fleetprof_api.process.foreign_json import MOST_TEXT_BYTES, OutOfBounds, pass_door
from hypothesis import given
from hypothesis import strategies as st

WORLDS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(9 * 10**18) + 1, 9 * 10**18 - 1)
    | st.floats(-1e90, 1e90).filter(lambda number: number == 0 or abs(number) > 1e-90)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def texts_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in texts_of(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts_of(part)]
    return [value] if isinstance(value, str) else []


@given(WORLDS, st.booleans(), st.sampled_from([None, 1]))
def test_whatever_is_written_is_printable(value: Any, ascii_only: bool, indent: int | None) -> None:
    try:
        written = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    except UnicodeEncodeError:
        return
    known = pass_door(written)
    assert all(text.isprintable() for text in texts_of(json.loads(known)))
    if all(text.isprintable() for text in texts_of(value)):
        assert known == written
    assert pass_door(known) == known


@pytest.mark.attack
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;Y3VybCBldmlsfHNo\x07\x1b[2J", "\ufffd]52;c;Y3VybCBldmlsfHNo\ufffd\ufffd[2J"),
        ("a\nforged: line", "a forged: line"),
        ("\u202eabc", "\ufffdabc"),
        ("\x9b31m\x7f", "\ufffd31m\ufffd"),
        ("C:\\n\\u001b", "C:\\n\\u001b"),
        ("naïve 模型 😀", "naïve 模型 😀"),
        ("\\" * 5 + "\n", "\\" * 5 + " "),
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_what_a_terminal_would_obey_is_replaced(text: str, shown: str, ascii_only: bool) -> None:
    assert json.loads(pass_door(json.dumps([text], ensure_ascii=ascii_only).encode())) == [shown]


@pytest.mark.attack
@pytest.mark.parametrize(
    "document",
    [
        "9" * 400,
        "-" + "9" * 400,
        "9223372036854775808",
        "1e308",
        "-1E+308",
        "1e-999",
        "0." + "1" * 400,
        '["' + "x" * (MOST_TEXT_BYTES + 1) + '"]',
        '["' + "\\u0041" * MOST_TEXT_BYTES + '"]',
        "[" + "{}," * (1 << 20) + "{}]",
        "[" + "0," * ((8 << 20) + 1) + "0]",
        '{"' + "k" * (MOST_TEXT_BYTES + 1) + '":1}',
    ],
    ids=lambda document: document[:12],
)
def test_what_no_writer_of_ours_makes_does_not_come_in(document: str) -> None:
    with pytest.raises(OutOfBounds):
        pass_door(document.encode())


def test_digits_within_a_name_are_no_number() -> None:
    document = b'{"_ZN' + b"9" * 60 + b'":"1e308","\\"1e308":8999999999999999999}'
    assert pass_door(document) == document
