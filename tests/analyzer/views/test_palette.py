"""The palette: what is drawn and what is read stands out from what is behind it, in both themes."""

import pytest
from fleetprof_analyzer.views.palette import CLASSES, PAGE, SERIES, contrast

GROUNDS = {one.name: one for one in PAGE if one.name in ("background", "surface")}
READ = [one for one in PAGE if one.name in ("text", "text-quiet", "link", "bad")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_stand_out_from_the_background(theme: str) -> None:
    ground = getattr(GROUNDS["background"], theme)
    assert [one.name for one in CLASSES if contrast(getattr(one, theme), ground) < 3] == []
    assert [one.name for one in SERIES if contrast(getattr(one, theme), ground) < 4.5] == []
    for behind in GROUNDS.values():
        assert [one.name for one in READ if contrast(getattr(one, theme), getattr(behind, theme)) < 4.5] == []
