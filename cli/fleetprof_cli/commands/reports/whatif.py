"""`fleetprof whatif`: what an iteration of a captured job would take if something were changed; no hub is needed.

Guarantees: writes nothing but the record of `--backtest`; `-o json` prints one document (docs/whatif.md); "cannot say"
is an answer and exits with 0.
"""

from dataclasses import replace
from pathlib import Path

import click
import msgspec
from fleetprof_analyzer.capture.folder import NothingToAnalyze
from fleetprof_analyzer.capture.replayed.reading import read_folder, read_stored
from fleetprof_analyzer.whatif.backtest import backtest
from fleetprof_analyzer.whatif.batch_sizes import SizedCapture, find_samples, predict_size, sized_capture
from fleetprof_analyzer.whatif.edits import EDITS, BatchSize, Edit, UnreadableEdit, read_edits
from fleetprof_analyzer.whatif.prediction import predict
from fleetprof_analyzer.whatif.replay.graph import CircularWork
from fleetprof_analyzer.whatif.replay.job import CapturedJob, NothingToReplay
from fleetprof_analyzer.whatif.table import PredictionTable, predict_all, say_table
from fleetprof_analyzer.whatif.words import say_answer, say_backtest
from fleetprof_store.base import StoreError

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.reports.backtests import check_history
from fleetprof_cli.reports.reference import StoredPlace, find_place, read_reference
from fleetprof_cli.reports.scenarios import read_scenarios
from fleetprof_cli.terminal.reports import print_json

_MOST_DIGITS = 15
_SETTINGS = "; ".join(f"{form.key}={form.value}: {form.meaning}" for form in EDITS)


@click.command("whatif")
@click.argument("captures", nargs=-1, metavar="[DIR|FILE|CAPTURE[@SIZE]...]")
@click.option(
    "--scenarios",
    "scenarios_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="YAML that maps names to settings; each gets a line.",
)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help=f"What would be changed. {_SETTINGS}.")
@click.option("--backtest", "checks", is_flag=True, help="Predict each capture's batch size from those before it.")
@output_option("text", "json", text="The answer in words, or as a JSON document.")
@state_option
@click.pass_obj
def command(
    state: StateDirectory,
    *,
    captures: tuple[str, ...],
    scenarios_file: Path | None,
    settings: tuple[str, ...],
    checks: bool,
    output: str,
) -> None:
    """Predict an iteration under changes, from the traces of a job's ranks.

    A capture is a folder or file of traces, or one in the store as `fleetprof report` finds it. Without `--set` it
    says how well the replay meets the recording. Each answer has a 95 % interval, or says why there is none. A batch
    size is predicted from one capture with shapes and its size, DIR@8, or better from several: DIR@8 DIR@16. With
    `--backtest` captures stand in the order in which they were taken; without any, each capture of the store is
    foretold from the one before it of the same job, if batch size, ranks or a straggler changed. That record is kept.
    """
    try:
        edits = read_edits(settings)
    except UnreadableEdit as error:
        raise Failure(str(error), code=ExitCode.INVALID) from None
    if checks:
        if settings or scenarios_file is not None:
            raise Failure("--backtest goes with no --set and no --scenarios", code=ExitCode.INVALID)
        found = backtest([(one, _at_size(one, state)) for one in captures]) if captures else check_history(state)
        _show(found, say_backtest(found), output)
        return
    if not captures:
        raise Failure("no capture is named", next_step="give its traces: fleetprof whatif DIR", code=ExitCode.INVALID)
    if scenarios_file is not None:
        scenarios = {name: [*settings, *more] for name, more in read_scenarios(scenarios_file).items()}
        table = _predict_all(captures, state, scenarios)
        _show(table, say_table(table), output)
        return
    sizes = [edit.size for edit in edits if isinstance(edit, BatchSize)]
    if sizes and len(captures) > 1:
        if len(edits) > 1:
            raise Failure("batch sizes of several captures go with no other setting", code=ExitCode.INVALID)
        answer = predict_size([_at_size(one, state) for one in captures], sizes[0], list(settings))
    elif len(captures) > 1:
        raise Failure("several captures are for batch_size alone", code=ExitCode.INVALID)
    else:
        answer = predict(_read_job(captures[0], state, edits), list(settings), edits)
    _show(answer, say_answer(answer), output)


def _show(document: msgspec.Struct, text: str, output: str) -> None:
    if output == "json":
        print_json(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    else:
        click.echo(text, nl=False)


def _predict_all(captures: tuple[str, ...], state: StateDirectory, scenarios: dict[str, list[str]]) -> PredictionTable:
    if len(captures) > 1:
        raise Failure("scenarios are of one capture", code=ExitCode.INVALID)
    try:
        edits = [edit for texts in scenarios.values() for edit in read_edits(texts)]
        return predict_all(_read_job(captures[0], state, edits), scenarios)
    except UnreadableEdit as error:
        raise Failure(str(error), code=ExitCode.INVALID) from None


def _read_job(capture: str, state: StateDirectory, edits: list[Edit]) -> CapturedJob:
    name, size = _split_size(capture)
    place = find_place(name, state)
    if size is None and isinstance(place, StoredPlace) and any(isinstance(one, BatchSize) for one in edits):
        size = find_samples(read_reference(name, state))
    try:
        job = read_stored(*place) if isinstance(place, StoredPlace) else read_folder(place)
        return replace(job, samples=size)
    except FileNotFoundError:
        raise Failure(f"{capture} is no folder and no file of traces", code=ExitCode.INVALID) from None
    except (NothingToAnalyze, NothingToReplay) as error:
        raise Failure(str(error), code=ExitCode.INVALID) from None
    except StoreError as error:
        raise Failure(f"cannot read the object store: {error}") from None
    except CircularWork:
        raise Failure(f"{capture}: its work seems to wait for itself: it cannot be replayed") from None


def _at_size(text: str, state: StateDirectory) -> SizedCapture:
    """CAPTURE@SIZE; without a size, what the pod's label says."""
    name, size = _split_size(text)
    if size is not None:
        return sized_capture(read_reference(name, state), size)
    report = read_reference(text, state)
    size = find_samples(report)
    if size is None:
        raise Failure(f"nothing says the batch size of {text}", next_step=f"say it: {text}@8", code=ExitCode.INVALID)
    return sized_capture(report, size)


def _split_size(text: str) -> tuple[str, float | None]:
    name, at, size = text.rpartition("@")
    is_size = at and size.isdecimal() and len(size) <= _MOST_DIGITS and int(size)
    return (name, float(size)) if is_size else (text, None)
