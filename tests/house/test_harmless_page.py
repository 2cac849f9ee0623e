"""docs/harmless.md shows every kind of job that captures must not harm."""

from pathlib import Path

from harness.harmless.kinds import make_matrix

PAGE = Path(__file__).parents[2] / "docs/harmless.md"


def test_the_page_shows_every_kind() -> None:
    assert make_matrix() in PAGE.read_text(), make_matrix()
