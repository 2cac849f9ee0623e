"""docs/notebook.md does what it shows."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/notebook.md"


def test_the_page_shows_what_happens(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(traces.parent)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert found.attempted >= 12
    assert found.failed == 0


def test_every_name_that_is_public_is_on_the_page() -> None:
    import fleetprof

    text = PAGE.read_text()
    for name in [name for name in dir(fleetprof.Profile) if not name.startswith("_")]:
        assert f".{name}" in text, name
