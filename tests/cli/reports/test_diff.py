"""`fleetprof diff`: which reports are meant, what it prints, and the codes that CI looks at."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.diff import json_schema
from fleetprof_api.report.report import Report, write_report
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.commands import diff as on_kubernetes
from fleetprof_cli.main import main
from fleetprof_store.directory import DirectoryStore
from harness.reference.simulated_reports import simulate
from harness.traces.planted.traces import plant
from jsonschema import Draft202012Validator

FASTER, SLOWER = simulate(1), simulate(2, compute=1.1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLEETPROF_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for name, report in (("a", FASTER), ("b", SLOWER), ("other", simulate(3, world_size=8))):
        (tmp_path / f"{name}.json").write_bytes(write_report(report))
    return tmp_path


def diff(*words: str) -> Result:
    return CliRunner().invoke(main, ["diff", *words])


def test_two_files_are_compared_in_words_and_as_a_document(folder: Path) -> None:
    output = diff("a.json", "b.json")
    assert (output.exit_code, output.stderr) == (ExitCode.DONE, "")
    assert "Slower: " in output.stdout
    printed = diff("a.json", "b.json", "-o", "json")
    document = json.loads(printed.stdout)
    Draft202012Validator(json_schema()).validate(document)
    assert (document["verdict"], document["before"]["title"]) == ("slower", "simulated 1")


@pytest.mark.parametrize(
    ("before", "after", "percent", "code", "words"),
    [
        ("a.json", "b.json", "5", ExitCode.REGRESSED, "iterations take 7.1 % longer; 5 % are allowed"),
        ("a.json", "b.json", "10", ExitCode.DONE, ""),
        ("b.json", "a.json", "5", ExitCode.DONE, ""),
        ("a.json", "a.json", "2", ExitCode.DONE, ""),
        ("a.json", "other.json", "5", ExitCode.NOT_COMPARABLE, "cannot be compared"),
        ("few.json", "b.json", "5", ExitCode.NOT_COMPARABLE, "too few iterations to tell a regression from noise"),
        ("a.json", "b.json", "1.9", ExitCode.INVALID, "--fail-on-regression"),
    ],
)
def test_the_gate_of_ci(folder: Path, before: str, after: str, percent: str, code: ExitCode, words: str) -> None:
    (folder / "few.json").write_bytes(write_report(simulate(1, iterations=3)))
    ended = diff(before, after, "--fail-on-regression", percent)
    assert ended.exit_code == code
    assert words in ended.stderr


def test_without_the_gate_a_regression_is_no_failure_but_what_cannot_be_compared_is(folder: Path) -> None:
    assert diff("a.json", "b.json").exit_code == ExitCode.DONE
    refused = diff("a.json", "other.json", "-o", "json")
    assert refused.exit_code == ExitCode.NOT_COMPARABLE
    assert json.loads(refused.stdout)["reasons"] == ["the size of the job differs: 4 before, 8 after"]


def store_captures(state: Path, *named: tuple[str, str, Report | None]) -> None:
    store = DirectoryStore(state / "store", secret=bytes(16), base_url="")
    for number, (uid, name, report) in enumerate(named, 1):
        ledger = Ledger(uid=uid, name=name, namespace="local", submitted_unix_ns=number, completed_unix_ns=number)
        store.put(keys.ledger_key("local", uid), msgspec.json.encode(ledger))
        if report is not None:
            store.put(keys.report_key("local", uid), write_report(report))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("u-first", "u-second"),
        ("llama-1", "llama-2"),
        ("u-f", "latest"),
        ("a.json", "u-second"),
        ("kept", "llama-2"),
        ("kept/report.html", "u-s"),
    ],
)
def test_a_report_is_a_path_or_a_capture(folder: Path, before: str, after: str) -> None:
    store_captures(folder / "state", ("u-first", "llama-1", FASTER), ("u-second", "llama-2", SLOWER))
    (folder / "kept").mkdir()
    (folder / "kept" / "report.json").write_bytes(write_report(FASTER))
    ended = diff(before, after, "-o", "json")
    assert json.loads(ended.stdout)["verdict"] == "slower"


def test_a_folder_of_traces_is_analysed(folder: Path) -> None:
    for name, slow in (("before", 1.0), ("after", 1.3)):
        (folder / name).mkdir()
        for rank in range(2):
            trace = plant(rank, iterations=6, slow=slow)
            (folder / name / f"rank{rank}.json.gz").write_bytes(trace.gzipped())
    ended = diff("before", "after", "-o", "json")
    document = json.loads(ended.stdout)
    assert document["comparable"]
    assert document["before"]["ranks"] == 2
    compute = next(row for row in document["measures"] if row["measure"] == "compute")
    assert compute["after"] / compute["before"] == pytest.approx(1.3, rel=0.02)
    assert "analysing its traces" in ended.stderr


@pytest.mark.parametrize(
    ("reference", "code", "words"),
    [
        ("nothing", ExitCode.REFUSED, "there is no capture nothing"),
        ("u-bare", ExitCode.FAILED, "u-bare has no report"),
        ("broken.json", ExitCode.INVALID, "broken.json: not a fleetprof report"),
        ("empty", ExitCode.INVALID, "no report and no trace"),
        ("s3://bucket/prefix", ExitCode.INVALID, "names no capture"),
        ("s3://bucket?x=1/v1/team/uid/", ExitCode.INVALID, "'x' in the store's address must be one of"),
    ],
)
def test_what_is_no_report_is_said(folder: Path, reference: str, code: ExitCode, words: str) -> None:
    store_captures(folder / "state", ("u-bare", "bare", None))
    (folder / "broken.json").write_text('{"traceEvents": [], "schema_version": "x"}')
    (folder / "empty").mkdir()
    ended = diff(reference, "a.json")
    assert (ended.exit_code, ended.stdout) == (code, "")
    assert words in ended.stderr


def test_numbers_that_cannot_be_are_refused(folder: Path) -> None:
    text = (folder / "a.json").read_text()
    length = FASTER.ranks[0].iterations[0].duration_ns
    (folder / "absurd.json").write_text(text.replace(f'"duration_ns": {length}', f'"duration_ns": {10**400}', 1))
    ended = diff("absurd.json", "b.json")
    assert ended.exit_code == ExitCode.INVALID
    assert re.fullmatch(r"fleetprof: absurd.json: .*: a number at byte \d+ is out of bounds\n", ended.stderr)


def test_the_plug_in_compares_files_too(folder: Path) -> None:
    ended = CliRunner().invoke(on_kubernetes.command, ["a.json", "b.json", "--fail-on-regression", "5"])
    assert ended.exit_code == ExitCode.REGRESSED
    assert "Slower: " in ended.stdout
