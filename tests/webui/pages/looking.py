"""The way of tests to open a page and look at it: tables, pixels of pictures, what hinders a screen reader."""

from pathlib import Path
from typing import Final

from playwright.sync_api import Locator, Page, expect

# Answers as Perfetto's page does, and shows the trace that it was given.
PERFETTO = """<!doctype html><script>
addEventListener('message', ({data, source, origin}) => {
    if (data === 'PING') return source.postMessage('PONG', origin);
    const text = document.createElement('pre');
    text.id = 'events';
    text.textContent = new TextDecoder().decode(data.perfetto.buffer);
    document.body.append(text);
});
</script>"""
# Of a canvas: how many of its pixels are drawn, and how many colours they have.
PIXELS = """canvas => {
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const colors = new Set();
    let drawn = 0;
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] === 0) continue;
        drawn += 1;
        colors.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    }
    return {drawn: drawn / (data.length / 4), colors: colors.size};
}"""
REPORT: Final = "/reports/team-a/slow"
STREAMS: Final = "/reports/team-c/streams"
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE = Path(__file__).parents[3] / "webui" / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


def open_whole(page: Page, address: str) -> None:
    """Opens a page with all that comes when it is scrolled to."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    for down in range(0, page.evaluate("document.body.scrollHeight"), 700):
        page.evaluate(f"scrollTo(0, {down})")
        page.wait_for_timeout(20)
    expect(page.locator(".later, .loading")).to_have_count(0)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.wait_for_load_state("networkidle")
    expect(page.locator(".loading")).to_have_count(0)


def rows_of(page: Page, table: str) -> Locator:
    """The rows of a table by its name."""
    return page.get_by_role("region", name=table).locator("tbody tr")


def find_serious(page: Page) -> list[str]:
    """The faults that axe finds that keeps people out."""
    # What the bar half covers is a small target, wherever the page is scrolled to.
    page.evaluate("scrollTo(0, 0)")
    page.evaluate(AXE.read_text())
    result = page.evaluate(f"axe.run(document, {{resultTypes: ['violations'], runOnly: {RULES}}})")
    return [
        f"{found['id']}: {found['help']} {[node['html'][:160] for node in found['nodes'][:3]]}"
        for found in result["violations"]
        if found["impact"] in ("serious", "critical")
    ]
