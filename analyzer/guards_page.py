"""Makes the list of sentences and their guards in docs/measures.md; `--check` fails when it is stale.

Run by `make generate`, checked by `make lint`.
"""

import sys
from pathlib import Path

from fleetprof_analyzer.job.sentence_guard import SentenceGuard
from fleetprof_analyzer.views.guard_list import GUARDS

PAGE = Path(__file__).parent.parent / "docs" / "measures.md"
BEGIN = "<!-- Made by `make generate` out of the guards of `analyzer/fleetprof_analyzer`: begin guards -->\n"
END = "<!-- Made by `make generate` out of the guards of `analyzer/fleetprof_analyzer`: end guards -->\n"


def make_page(text: str) -> str:
    """The page with the list as the registry has it."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = ["| where | said | from | below |\n", "|---|---|---|---|\n", *map(_row, GUARDS)]
    return f"{before}{BEGIN}\n{''.join(lines)}\n{END}{after}"


def _row(guard: SentenceGuard) -> str:
    share = f"{guard.least_permille / 10:g} % of"
    if guard.least_permille >= 1000:
        share = "" if guard.least_permille == 1000 else f"{guard.least_permille / 1000:g} times"
    least = " ".join(word for word in ("more than" if guard.more else "", share, guard.whole) if word)
    return f"| {guard.place} | {guard.words} | {guard.figure}: {least} | {guard.below} |\n"


def main() -> None:
    """Generates in place, or compares with what is there."""
    text = PAGE.read_text()
    if "--check" not in sys.argv:
        PAGE.write_text(make_page(text))
    elif make_page(text) != text:
        raise SystemExit(f"stale list of guards in {PAGE.name}; run `make generate` and commit the result")


if __name__ == "__main__":
    main()
