"""`fleetprof whatif`: what an iteration of a captured job would take if something were changed; no hub is needed.

Guarantees: reads only; `-o json` prints one document (docs/whatif.md); "cannot say" is an answer and exits with 0.
"""

from pathlib import Path

import click
import msgspec
from fleetprof_analyzer.capture.folder import NothingToAnalyze
from fleetprof_analyzer.whatif.edits import EDITS, UnreadableEdit, read_edits
from fleetprof_analyzer.whatif.prediction import predict
from fleetprof_analyzer.whatif.reading import read_folder
from fleetprof_analyzer.whatif.replay.graph import CircularWork
from fleetprof_analyzer.whatif.replay.job import NothingToReplay
from fleetprof_analyzer.whatif.words import say_answer

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.options import output_option
from fleetprof_cli.terminal.reports import print_json

_SETTINGS = "; ".join(f"{form.key}={form.value}: {form.meaning}" for form in EDITS)


@click.command("whatif")
@click.argument("traces", type=click.Path(exists=True, path_type=Path), metavar="DIR|FILE")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help=f"What would be changed. {_SETTINGS}.")
@output_option("text", "json", text="The answer in words, or as a JSON document.")
def command(*, traces: Path, settings: tuple[str, ...], output: str) -> None:
    """Predict an iteration under changes, from the traces of a job's ranks.

    Without `--set` it says how well the replay meets the recording. Each answer has a 95 % interval, or says why there
    is none.
    """
    try:
        edits = read_edits(settings)
    except UnreadableEdit as error:
        raise Failure(str(error), code=ExitCode.INVALID) from None
    try:
        answer = predict(read_folder(traces), list(settings), edits)
    except (NothingToAnalyze, NothingToReplay) as error:
        raise Failure(str(error), code=ExitCode.INVALID) from None
    except CircularWork:
        raise Failure(f"{traces}: its work seems to wait for itself: it cannot be replayed") from None
    if output == "json":
        print_json(msgspec.json.format(msgspec.json.encode(answer), indent=1) + b"\n")
    else:
        click.echo(say_answer(answer), nl=False)
