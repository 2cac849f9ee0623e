"""Tables in one piece: names and ids are there to be copied, and a program behind a pipe has no width."""

from typing import Final

from rich.console import Console, RenderableType

_MOST_WIDE: Final = 10_000


def print_whole(what: RenderableType) -> None:
    """Prints on stdout without cutting or breaking anything, however narrow the terminal."""
    console = Console()
    widest = console.measure(what, options=console.options.update(width=_MOST_WIDE)).maximum
    console.width = max(console.width, widest)
    console.print(what)
