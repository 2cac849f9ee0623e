"""Small tiles and levels, so that few rows make many."""

import pytest


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of sixteen rows, and levels from 32 rows on."""
    monkeypatch.setattr("fleetprof_analyzer.pyramid.tiles.MOST_TILE_ROWS", 16)
    monkeypatch.setattr("fleetprof_analyzer.pyramid.levels.MOST_ROOT_ROWS", 32)
