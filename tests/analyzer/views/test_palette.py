"""The palette: what is drawn and what is read stands out from what is behind it, in both themes."""

import re

import pytest
from fleetprof_analyzer.views.page.page import render_page
from fleetprof_analyzer.views.palette import CLASSES, PAGE, SERIES, contrast, readable_on
from harness.reference.written_reports import LOADING, job, late

GROUNDS = {one.name: one for one in PAGE if one.name in ("background", "surface")}
READ = [one for one in PAGE if one.name in ("text", "text-quiet", "link", "bad")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_stand_out_from_the_background(theme: str) -> None:
    ground = getattr(GROUNDS["background"], theme)
    assert [one.name for one in CLASSES if contrast(getattr(one, theme), ground) < 3] == []
    assert [one.name for one in SERIES if contrast(getattr(one, theme), ground) < 4.5] == []
    for behind in GROUNDS.values():
        assert [one.name for one in READ if contrast(getattr(one, theme), getattr(behind, theme)) < 4.5] == []
    assert [one.name for one in CLASSES if contrast(getattr(one, theme), readable_on(getattr(one, theme))) < 4.5] == []


def test_report_html_has_no_color_of_its_own() -> None:
    page = render_page(job(late(LOADING)))
    style = page[page.index("<style>") : page.index("</style>")]
    known = {getattr(one, theme) for one in (*PAGE, *CLASSES, *SERIES) for theme in ("light", "dark")}
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", style)) <= known | {"#000000", "#ffffff"}
