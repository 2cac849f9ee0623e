"""Prints the style figures of the guides: words, semicolons, that/which/what and you/your per 1,000 words.

`python tests/house/style.py [PAGE…]`. Code, addresses and tables of fields that `make generate` writes do not count.
"""

import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

DOCS: Final = Path(__file__).parents[2] / "docs"
MOST_SEMICOLONS: Final = 2  # per 1,000 words, as uv's pages have them, and as the two below
MOST_RELATIVES: Final = 12
LEAST_YOU: Final = 8
MOST_WORDS: Final = 16_200  # two thirds of what the same pages had first
GUIDES: Final = [
    *("tutorial/slow-job", "tutorial/decide", "tutorial/fleet", "tutorial/change-it", "quickstart", "local", "kubectl"),
    *("report", "install", "reasons", "frameworks", "hangs", "diff", "whatif", "perfetto", "notebook"),
    *("telemetry", "policy", "injection", "webui", "faq", "gitops", "alerts"),
]
_GENERATED: Final = re.compile(r"<!--[^>]*: begin -->.*?<!--[^>]*: end -->", re.DOTALL)
_CODE: Final = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|^ {4,}[^\n]*$|<!--.*?-->", re.DOTALL | re.MULTILINE)


class Style(NamedTuple):
    """Words of a page, and per 1,000 of them."""

    words: int
    semicolons: float
    relatives: float
    you: float


def strip_code(text: str) -> str:
    """The sentences of a page: no code, no addresses, no comments."""
    return _CODE.sub(" ", text)


def measure(text: str) -> Style:
    """The figures of one text; all 0 without a word."""
    bare = strip_code(_GENERATED.sub(" ", text))
    words = len(re.findall(r"[A-Za-z][\w'-]*", bare))
    per = 1000 / max(1, words)
    return Style(
        words,
        per * bare.count(";"),
        per * len(re.findall(r"\b(?:that|which|what)\b", bare, re.IGNORECASE)),
        per * len(re.findall(r"\byou(?:r|rs|rself)?\b", bare, re.IGNORECASE)),
    )


def measure_guides() -> Style:
    """The figures of all guides together."""
    return measure("\n".join((DOCS / f"{name}.md").read_text() for name in GUIDES))


def show(name: str, style: Style) -> str:
    """One line of the table."""
    return f"{name:24} {style.words:6} {style.semicolons:6.1f} {style.relatives:6.1f} {style.you:6.1f}"


def main() -> None:
    """Prints a line for each page, and for all."""
    names = sys.argv[1:] or GUIDES
    texts = [(DOCS / f"{name}.md").read_text() for name in names]
    heads = (f"; ≤{MOST_SEMICOLONS}", f"that≤{MOST_RELATIVES}", f"you≥{LEAST_YOU}")
    sys.stdout.write(f"{'page':24} {'words':>6} {heads[0]:>6} {heads[1]:>6} {heads[2]:>6}\n")
    for name, text in zip(names, texts, strict=True):
        sys.stdout.write(show(name, measure(text)) + "\n")
    sys.stdout.write(show("all", measure("\n".join(texts))) + "\n")


if __name__ == "__main__":
    main()
