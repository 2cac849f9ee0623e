"""Text from elsewhere on one line that nothing can be made of: no break, no escape, no order turned around."""

import json

import pytest
from fleetprof_api.plain_text import escape_json, make_printable
from hypothesis import given
from hypothesis import strategies as st

UNSAFE = st.text(st.sampled_from("ab \n\r\t\x1b\x9b\x07\x00\x7f\x85\u2028\u202e\u200b\ud800é漢😀"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a plain text, é 漢 😀", "a plain text, é 漢 😀"),
        ("two\nlines\r\n", "two lines  "),
        ("\x1b]0;owned\x07\x1b[2J", "\N{REPLACEMENT CHARACTER}]0;owned" + "\N{REPLACEMENT CHARACTER}" * 2 + "[2J"),
        ("\u202egnp.exe", "\N{REPLACEMENT CHARACTER}gnp.exe"),
        ("a\u2028b\x85c", "a b c"),
    ],
)
def test_what_is_shown_of_a_text(text: str, shown: str) -> None:
    assert make_printable(text) == shown


@given(st.one_of(UNSAFE, st.text()))
def test_any_text_becomes_one_printable_line_of_the_same_length(text: str) -> None:
    shown = make_printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert len(shown.splitlines()) <= 1
    assert make_printable(shown) == shown


@given(st.dictionaries(st.text(), st.one_of(UNSAFE, st.text())))
def test_escaped_json_means_the_same_and_holds_no_escape(document: dict[str, str]) -> None:
    text = json.dumps(document, ensure_ascii=False)
    escaped = escape_json(text)
    assert json.loads(escaped) == document
    assert not any(character in escaped for character in "\x1b\x7f\x85\x9b\u202e")
