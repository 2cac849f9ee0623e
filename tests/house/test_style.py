"""The guides read as those of uv, kopf and datasette do: short, addressed to the reader, without chains of clauses."""

import pytest
from house.style import (
    LEAST_YOU,
    MOST_RELATIVES,
    MOST_SEMICOLONS,
    MOST_WORDS,
    Style,
    measure,
    measure_guides,
)


def test_the_guides_stay_short_and_plain() -> None:
    style = measure_guides()
    assert style.words <= MOST_WORDS, "say it once, and link to it"
    assert style.semicolons <= MOST_SEMICOLONS, "make two sentences"
    assert style.relatives <= MOST_RELATIVES, "that, which, what: subject, verb, object"
    assert style.you >= LEAST_YOU, "say what the reader does"


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("You see what it costs; that is all.", Style(8, 125, 250, 125)),
        ("`that; which`, [a page](what.md)\n\n```sh\nthat; what\n```\n", Style(2, 0, 0, 0)),
        (
            "<!-- Fields, made by x.py: begin -->\n| what |\n<!-- Fields, made by x.py: end -->\nYours",
            Style(1, 0, 0, 1000),
        ),
        ("", Style(0, 0, 0, 0)),
    ],
)
def test_code_addresses_and_generated_tables_do_not_count(text: str, style: Style) -> None:
    assert measure(text) == style
