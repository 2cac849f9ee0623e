"""Prints the style figures of the guides: words, semicolons, that/which/what and you/your per 1,000 words.

`python tests/house/style.py [PAGE…]`. Code, addresses and tables of fields that `make generate` writes do not count.
"""

import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

DOCS: Final = Path(__file__).parents[2] / "docs"
GUIDES: Final = [
    *("tutorial/slow-job", "tutorial/decide", "tutorial/fleet", "tutorial/change-it", "quickstart", "local", "kubectl"),
    *("report", "install", "reasons", "frameworks", "hangs", "diff", "whatif", "perfetto", "notebook"),
    *("telemetry", "policy", "injection", "webui", "faq", "gitops", "alerts"),
]
_CODE: Final = re.compile(
    r"<!--[^>]*: begin -->.*?<!--[^>]*: end -->|```.*?```|`[^`\n]*`|\]\([^)]*\)|^ {4,}[^\n]*$|<!--.*?-->",
    re.DOTALL | re.MULTILINE,
)


class Style(NamedTuple):
    """Words of a page, and per 1,000 of them."""

    words: int
    semicolons: float
    relatives: float
    you: float


def measure(text: str) -> Style:
    """The figures of one text; all 0 without a word."""
    bare = _CODE.sub(" ", text)
    words = len(re.findall(r"[A-Za-z][\w'-]*", bare))
    per = 1000 / max(1, words)
    return Style(
        words,
        per * bare.count(";"),
        per * len(re.findall(r"\b(?:that|which|what)\b", bare, re.IGNORECASE)),
        per * len(re.findall(r"\byou(?:r|rs|rself)?\b", bare, re.IGNORECASE)),
    )


def show(name: str, style: Style) -> str:
    """One line of the table."""
    return f"{name:24} {style.words:6} {style.semicolons:6.1f} {style.relatives:6.1f} {style.you:6.1f}"


def main() -> None:
    """Prints a line for each page, and for all."""
    names = sys.argv[1:] or GUIDES
    texts = [(DOCS / f"{name}.md").read_text() for name in names]
    sys.stdout.write(f"{'page':24} {'words':>6} {'; ≤2':>6} {'that≤12':>6} {'you≥8':>6}\n")
    for name, text in zip(names, texts, strict=True):
        sys.stdout.write(show(name, measure(text)) + "\n")
    sys.stdout.write(show("all", measure("\n".join(texts))) + "\n")


if __name__ == "__main__":
    main()
