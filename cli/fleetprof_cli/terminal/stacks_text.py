"""The stacks of a job's ranks for the terminal: the verdict, the groups of equal stacks, other threads if asked.

Guarantees: nothing that a process says reaches the terminal as a control character.
"""

from collections.abc import Sequence
from typing import Final

import click
from fleetprof_analyzer.stalls.ranks import choose_ranks, is_library
from fleetprof_analyzer.stalls.verdict import JobCause
from fleetprof_api.plain_text import make_printable
from fleetprof_api.quantities import duration
from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import ProcessStacks
from fleetprof_api.stalls import StallVerdict

_MOST_FRAMES: Final = 12
_MOST_RANKS: Final = 12


def print_stacks(
    name: str, processes: Sequence[ProcessStacks], verdict: StallVerdict, *, all_threads: bool = False
) -> None:
    """Prints one job."""
    ranks = {rank.number: rank for rank in choose_ranks(processes)}
    click.echo(make_printable(f"{name}: {len(ranks)} ranks"))
    click.echo(make_printable(verdict.sentence))
    if verdict.stands_ns and verdict.cause != JobCause.MOVES:
        click.echo(f"It has stood for {duration(verdict.stands_ns)}.")
    if verdict.may_go_on and verdict.cause != JobCause.MOVES:
        click.echo("This may be work that takes long: nothing here proves that the job hangs.")
    click.echo(f"Next: {make_printable(verdict.advice)}")
    for group in verdict.groups:
        shown = ", ".join(map(str, group.ranks[:_MOST_RANKS]))
        more = f" and {len(group.ranks) - _MOST_RANKS} more" if len(group.ranks) > _MOST_RANKS else ""
        click.echo(f"\nrank {shown}{more}")
        _print_frames(group.frames, ranks[group.ranks[0]].process)
        if all_threads:
            first = ranks[group.ranks[0]]
            for thread in first.process.threads:
                if not thread.is_main:
                    click.echo(make_printable(f"  thread {thread.name or thread.task} of rank {first.number}"))
                    _print_frames(first.frames_of(thread), first.process)


def _print_frames(frames: Sequence[CodePlace], process: ProcessStacks) -> None:
    if not frames:
        state = f"; the kernel says {process.state}" if process.state else ""
        click.echo("    " + ("no Python frame" if process.has_answered else f"did not answer{state}"))
        return
    # The innermost frames, and the job's own ones farther out.
    chosen = [place for at, place in enumerate(frames) if at < _MOST_FRAMES // 2 or not is_library(place)]
    for place in chosen[:_MOST_FRAMES]:
        click.echo(make_printable(f"    {place.file}:{place.line} {place.function}"))
    if len(frames) > len(chosen[:_MOST_FRAMES]):
        click.echo(f"    ... {len(frames) - len(chosen[:_MOST_FRAMES])} frames more")
