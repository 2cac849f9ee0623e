"""The palette: what is drawn and what is read stands out from what is behind it, in both themes."""

import pytest
from fleetprof_analyzer.views.palette import CLASSES, PAGE, SERIES

GROUNDS = {one.name: one for one in PAGE if one.name in ("background", "surface")}
READ = [one for one in PAGE if one.name in ("text", "text-quiet", "link", "bad")]

_LEAST_LINEAR = 0.03928


def contrast(one: str, other: str) -> float:
    """The contrast of two colors as WCAG 2 defines it, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    red, green, blue = (
        share / 12.92
        if (share := int(color[at : at + 2], 16) / 255) <= _LEAST_LINEAR
        else ((share + 0.055) / 1.055) ** 2.4
        for at in (1, 3, 5)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_stand_out_from_the_background(theme: str) -> None:
    ground = getattr(GROUNDS["background"], theme)
    assert [one.name for one in CLASSES if contrast(getattr(one, theme), ground) < 3] == []
    assert [one.name for one in SERIES if contrast(getattr(one, theme), ground) < 4.5] == []
    for behind in GROUNDS.values():
        assert [one.name for one in READ if contrast(getattr(one, theme), getattr(behind, theme)) < 4.5] == []
