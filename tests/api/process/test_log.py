"""One line of the log: a JSON object with the keys that all our processes share."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.process.log import REPEAT_S, JsonLines, Repetitions, about, set_up_logging

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
    page = (ROOT / "docs/reasons.md").read_text().partition("## The logs")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == keys


def warn(text: str, at_s: float, level: int = logging.WARNING) -> logging.LogRecord:
    record = logging.LogRecord("room", level, "f.py", 1, "%s cannot be reached", (text,), None)
    record.created = at_s
    return record


def test_an_outage_is_one_line_however_often_it_is_met() -> None:
    repetitions = Repetitions()
    records = [warn("the store", float(second)) for second in range(1, 2 * int(REPEAT_S) + 2, 2)]
    written = [record.getMessage() for record in records if repetitions.filter(record)]
    assert written == [
        "the store cannot be reached",
        "the store cannot be reached (and 149 times since it was said last)",
        "the store cannot be reached (and 149 times since it was said last)",
    ]
    assert repetitions.filter(warn("the API server", 2.0))
    assert all(repetitions.filter(warn("the store", 700.0, logging.INFO)) for _ in range(3))


def test_at_debug_our_own_lines_are_shown_and_nobody_s_signatures(capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    try:
        set_up_logging("debug")
        logging.getLogger("botocore.auth").debug("StringToSign: AWS4-HMAC-SHA256")
        logging.getLogger("fleetprof_operator.hub").debug("a step of ours")
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
        for name in [name for name in logging.root.manager.loggerDict if name.startswith("fleetprof")]:
            logging.getLogger(name).setLevel(logging.NOTSET)
    written = capfd.readouterr().err
    assert "a step of ours" in written
    assert "AWS4" not in written
