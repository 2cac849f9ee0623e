"""The documentation that the service has: a message's link leads to a page that is there, without any other host."""

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fleetprof_api.ledger import Reason
from harness.repository import ROOT

from .conftest import Site


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.spec_from_file_location("docs_pages", ROOT / "webui/docs_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("built") / "docs"
    module.write_pages(folder)
    return folder


@pytest.fixture(scope="module")
def pages(docs: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in docs.rglob("*.html")}


def test_the_service_shows_them_to_whoever_asks(make_site: Callable[..., Site], docs: Path) -> None:
    site = make_site(static=docs.parent)
    answered = site.client.get("/docs/reasons.html", headers={"Accept": "text/html"})
    assert (answered.status_code, answered.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert site.client.get("/docs/docs.css").headers["content-type"].startswith("text/css")


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_its_address(pages: dict[Path, str], docs: Path, reason: Reason) -> None:
    assert f'id="{reason.value}"' in pages[docs / "reasons.html"]


def test_every_page_is_there_and_every_link_within_leads_somewhere(pages: dict[Path, str], docs: Path) -> None:
    sources = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.relative_to(docs) for path in pages} == {*sources, Path("help.html")}
    broken = []
    for path, text in pages.items():
        for target, anchor in re.findall(r'href="(?!https?:|/fleet)([^"#]*)(?:#([^"]*))?"', text):
            found = (path.parent / target).resolve() if target else path
            if not found.is_file() or (anchor and f'id="{anchor}"' not in pages[found]):
                broken.append(f"{path.name}: {target}#{anchor}")
    assert broken == []


def test_nothing_runs_and_nothing_comes_from_elsewhere(pages: dict[Path, str]) -> None:
    assert [path.name for path, text in pages.items() if re.search(r"<(script|img|iframe)|\sstyle=|\ssrc=", text)] == []


def test_what_the_code_names_is_there(docs: Path) -> None:
    """Addresses below /docs/ in the service and in its pages."""
    sources = [*(ROOT / "webui/fleetprof_webui").rglob("*.py"), *(ROOT / "webui/frontend/src").rglob("*.ts*")]
    named = {name for path in sources for name in re.findall(r"/docs/([\w/-]+\.html)", path.read_text())}
    assert named == {"index.html", "reasons.html"}
    assert all((docs / name).is_file() for name in named)
