"""The report's schema is published and fresh; reports survive a round trip; newer ones are refused."""

import json
from pathlib import Path

import pytest
from fleetprof_api.report.report import (
    Rank,
    Report,
    TimeBreakdown,
    UnreadableReport,
    json_schema,
    read_report,
    write_report,
)
from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).resolve().parents[2] / "api" / "schemas" / "report.v1.schema.json"

REPORT = Report(
    title="llama",
    ranks=[
        Rank(
            rank=0,
            source="r0.json",
            kind="gpu",
            time_basis="device",
            time_ns=TimeBreakdown(
                span=100, compute=60, overlapped_communication=20, exposed_communication=25, exposed_memory=5, idle=10
            ),
        ),
        Rank(rank=None, source="w1.json", kind="cpu", time_basis="host", time_ns=TimeBreakdown()),
    ],
)


def test_the_published_schema_is_fresh() -> None:
    assert json.loads(SCHEMA.read_text()) == json_schema(), "run `make generate` and commit the result"


def test_the_schema_is_one_and_holds_the_names_that_others_rely_on() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    rank, time_ns = schema["$defs"]["Rank"]["properties"], schema["$defs"]["TimeBreakdown"]["properties"]
    assert {"rank", "source", "iterations", "time_ns", "kind"} <= rank.keys()
    assert {"index", "start_ns", "duration_ns"} <= schema["$defs"]["Iteration"]["properties"].keys()
    parts = {"compute", "overlapped_communication", "exposed_communication", "exposed_memory", "idle", "unrecorded"}
    assert time_ns.keys() == {"span"} | parts


def test_a_report_survives_the_round_trip_and_follows_its_schema() -> None:
    data = write_report(REPORT)
    assert read_report(data) == REPORT
    Draft202012Validator(json_schema()).validate(json.loads(data))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"schema_version": 2}', "schema version 2.*upgrade"),
        (b"", "not a fleetprof report"),
        (b"[]", "not a fleetprof report"),
        (b'{"schema_version": 1, "ranks": 5}', "not a fleetprof report"),
        (b'{"schema_version": 1, "ranks": [' + b"[" * 5000, "not a fleetprof report"),
        (b"\xff", "not a fleetprof report"),
    ],
)
def test_what_is_no_report_of_ours_is_refused_with_the_reason(data: bytes, words: str) -> None:
    with pytest.raises(UnreadableReport, match=words):
        read_report(data)
