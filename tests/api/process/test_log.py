"""One line of the log: a JSON object with the keys that all our processes share."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.process.log import JsonLines, about

ROOT = Path(__file__).parents[3]


def line_of(message: str, *, error: bool = False, **extra: Any) -> Any:
    record = logging.LogRecord("room", logging.WARNING, "f.py", 1, message, (), None)
    record.created, record.msecs = 1_764_000_000.25, 250.0
    record.__dict__.update(extra)
    if error:
        try:
            raise ValueError("wrong\nin two lines")
        except ValueError as problem:
            record.exc_info = (type(problem), problem, problem.__traceback__)
    text = JsonLines().format(record)
    assert text.isascii()
    assert text.isprintable()
    return json.loads(text)


PLAIN = {"time": "2025-11-24T16:00:00.250Z", "level": "warning", "logger": "room", "message": "said"}
CAPTURE = {"capture": "u", "namespace": "team", "name": "five"}


@pytest.mark.parametrize(
    ("extra", "keys"),
    [
        ({}, {}),
        ({"capture": "c", "process_id": 7}, {"capture": "c", "process_id": "7"}),
        ({"fields": {"audit": "taken", "ranks": {"failed": 1}}}, {"audit": "taken", "ranks": {"failed": 1}}),
    ],
)
def test_the_keys_of_a_line(extra: dict[str, Any], keys: dict[str, Any]) -> None:
    assert line_of("said", **extra) == PLAIN | keys


def test_a_task_says_what_its_lines_are_about() -> None:
    with about(**CAPTURE):
        assert line_of("said") == PLAIN | CAPTURE
        assert line_of("said", capture="another", fields={"name": "six"}) == PLAIN | CAPTURE | {
            "capture": "another", "name": "six"}  # fmt: skip
    assert line_of("said") == PLAIN


def test_an_error_brings_its_traceback() -> None:
    assert "ValueError: wrong\nin two lines" in line_of("failed", error=True)["exception"]


@pytest.mark.parametrize("message", ["two\nlines", "\x1b[2J\u009b2J", "\u2028", "Grüße", "\udcff", '"}'])
def test_nothing_that_a_line_holds_splits_it_or_steers_a_terminal(message: str) -> None:
    assert line_of(message)["message"] == message


def test_the_keys_are_documented() -> None:
    with about(**CAPTURE):
        keys = list(line_of("failed", error=True, process_id=1))
    page = (ROOT / "docs/troubleshooting.md").read_text().partition("## The logs")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == keys
