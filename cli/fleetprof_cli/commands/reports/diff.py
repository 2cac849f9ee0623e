"""`fleetprof diff`: two captures before and after a change, and what of the difference is more than noise.

Guarantees: reads only; needs no hub; `-o json` prints one document (diff.v1.schema.json).
"""

import click

from fleetprof_cli.completions import complete_reference
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.options import output_option, state_option
from fleetprof_cli.reports.comparison import gate_option, show_diff
from fleetprof_cli.reports.reference import read_reference


@click.command("diff")
@click.argument("before", metavar="BEFORE", shell_complete=complete_reference)
@click.argument("after", metavar="AFTER", shell_complete=complete_reference)
@gate_option
@output_option("text", "json", text="Print the comparison as text, or as a JSON document.")
@state_option
@click.pass_obj
def command(state: StateDirectory, *, before: str, after: str, fail_above: float | None, output: str) -> None:
    """Compare two captures of a job, before and after a change.

    BEFORE and AFTER are each a report.json, a folder that holds one (or traces), a capture as for `fleetprof report`
    (uid, the beginning of it, its or its job's name, `latest`), or s3://BUCKET/PREFIX/v1/NAMESPACE/UID/.
    """
    show_diff(read_reference(before, state), read_reference(after, state), output, fail_above)
