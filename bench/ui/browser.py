"""The measures inside Chromium: when a page shows what it is for, how it scrolls, pans and zooms, what it fetched.

Every first paint is that of a browser context of its own, so that nothing is cached; every rate is counted in the
page's own animation frames. Milliseconds unless the name says otherwise.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from ui.service import RunningService

RUNS: Final = 5
FRAMES: Final = 120
_SETTLED_MS: Final = 300
CANVAS: Final = ".timeline-scroll canvas"
# The first moment, after it was painted, at which something matches each selector; -1 until then.
_WATCH: Final = """selectors => {
    window.painted = Object.fromEntries(Object.keys(selectors).map(name => [name, -1]));
    const look = () => {
        for (const [name, selector] of Object.entries(selectors)) {
            if (window.painted[name] !== -1 || !document.querySelector(selector)) continue;
            window.painted[name] = -2;
            requestAnimationFrame(() => {
                const channel = new MessageChannel();
                channel.port1.onmessage = () => { window.painted[name] = performance.now(); };
                channel.port2.postMessage(0);
            });
        }
    };
    new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true});
}"""
_SCROLL: Final = """async ([selector, frames, step]) => {
    const element = document.querySelector(selector);
    const times = [];
    for (let n = 0; n < frames; n++) {
        times.push(await new Promise(requestAnimationFrame));
        element.scrollTop += step;
    }
    return times;
}"""
_WHEEL: Final = """async ([selector, frames, zooms]) => {
    const canvas = document.querySelector(selector);
    const box = canvas.getBoundingClientRect();
    const [times, work] = [[], []];
    let most = 0;
    for (let n = 0; n < frames; n++) {
        times.push(await new Promise(requestAnimationFrame));
        work.push(Number(canvas.dataset.frame));
        most = Math.max(most, Number(canvas.dataset.rectangles));
        const sign = n < frames / 2 ? 1 : -1;
        canvas.dispatchEvent(new WheelEvent('wheel', {
            bubbles: true, cancelable: true, ctrlKey: zooms, shiftKey: !zooms, deltaX: zooms ? 0 : sign * 12,
            deltaY: zooms ? sign * -12 : 0, clientX: box.left + box.width / 2, clientY: box.top + 100,
        }));
    }
    return [times, work, most];
}"""
_SEARCH: Final = """text => new Promise(resolve => {
    const field = document.querySelector('.timeline-bar input[type=search]');
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
    const began = performance.now();
    set.call(field, text);
    field.dispatchEvent(new Event('input', {bubbles: true}));
    const look = () => {
        if (!document.querySelector('.timeline-found li')) return requestAnimationFrame(look);
        requestAnimationFrame(() => {
            const channel = new MessageChannel();
            channel.port1.onmessage = () => resolve(performance.now() - began);
            channel.port2.postMessage(0);
        });
    };
    look();
})"""
_WHOLE: Final = """async url => {
    const began = performance.now();
    const packed = await (await fetch(url)).arrayBuffer();
    const fetched = performance.now();
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    const text = await new Response(stream).text();
    const inflated = performance.now();
    const events = JSON.parse(text).traceEvents.length;
    return {packed: packed.byteLength, text: text.length, events, fetch: fetched - began,
            inflate: inflated - fetched, parse: performance.now() - inflated,
            heap: performance.memory.usedJSHeapSize};
}"""
_RECTANGLES: Final = """async frames => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [1600, 800];
    document.body.append(canvas);
    const context = canvas.getContext('2d');
    const times = [];
    for (let n = 0; n < frames; n++) {
        times.push(await new Promise(requestAnimationFrame));
        for (let at = 0; at < 10000; at++) {
            context.fillStyle = at % 2 ? '#2E4694' : '#D11F11';
            context.fillRect((at * 37 + n) % 1600, (at * 17) % 800, 6, 14);
        }
    }
    return times;
}"""


@dataclass(frozen=True)
class Paint:
    """One opening of a page. `painted` is since the navigation began, `after_answer` since its first byte came."""

    painted: dict[str, float]
    after_answer: dict[str, float]
    bytes_received: int


@dataclass(frozen=True)
class Motion:
    """Frames each second (median of the runs), the median frame's work, and the most rectangles in view."""

    fps: float
    work: float
    rectangles: int


class Chromium:
    """One browser over one service."""

    def __init__(self, browser: Browser, running: RunningService) -> None:
        self._browser = browser
        self._site = f"http://127.0.0.1:{running.port}"
        context = self._context()
        page = context.new_page()
        page.goto(f"{self._site}/#token={running.token}")
        page.get_by_role("heading", name="Fleet").wait_for()
        self._session = context.storage_state()
        context.close()
        self.version = browser.version

    def first_paint(self, path: str, selectors: dict[str, str]) -> list[Paint]:
        """Opens a page in RUNS fresh contexts until all selectors match."""
        return [self._open_once(path, selectors) for _ in range(RUNS)]

    @contextmanager
    def page(self, path: str, ready: str) -> Iterator[Page]:
        """A page that shows what `ready` matches."""
        context = self._context(storage_state=self._session)
        page = context.new_page()
        page.goto(self._site + path)
        page.locator(ready).first.wait_for(timeout=60_000)
        yield page
        context.close()

    def calibrate(self) -> float:
        """Frames each second of 10,000 plain rectangles on a canvas of 1600 × 800: what is possible at all."""
        with self.page("/fleet", "h1") as page:
            return median(rate(page.evaluate(_RECTANGLES, FRAMES // 2)) for _ in range(RUNS))

    def read_whole(self, path: str) -> dict[str, float]:
        """The cost of a whole trace as JSON in this browser."""
        with self.page("/fleet", "h1") as page:
            found: dict[str, float] = page.evaluate(_WHOLE, self._site + path)
        return found

    def _open_once(self, path: str, selectors: dict[str, str]) -> Paint:
        context = self._context(storage_state=self._session)
        page = context.new_page()
        requests: list[Any] = []
        page.on("requestfinished", lambda request: requests.append(request))
        page.add_init_script(f"({_WATCH})({json.dumps(selectors)})")
        page.goto(self._site + path, wait_until="commit")
        wait_until(page, "Object.values(window.painted).every(at => at > 0)")
        painted = page.evaluate("window.painted")
        answered = page.evaluate("performance.getEntriesByType('navigation')[0].responseStart")
        sizes = [request.sizes() for request in requests]
        context.close()
        received = sum(size["responseHeadersSize"] + size["responseBodySize"] for size in sizes)
        return Paint(painted, {name: at - answered for name, at in painted.items()}, received)

    def _context(self, **more: Any) -> BrowserContext:
        return self._browser.new_context(viewport={"width": 1600, "height": 900}, reduced_motion="reduce", **more)


@contextmanager
def open_chromium(running: RunningService) -> Iterator[Chromium]:
    """Chromium without a window and without a GPU, until the block ends."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("no chromium: run .ci/browser")
    arguments = ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield Chromium(browser, running)
        browser.close()


def wait_until(page: Page, expression: str) -> None:
    """Until the expression is true; asked from outside, because the page's policy lets no text become script."""
    ends = time.monotonic() + 60
    while not page.evaluate(expression):
        if time.monotonic() > ends:
            shown = page.locator("body").inner_text()[:500]
            raise SystemExit(
                f"the page never became so: {expression}; are the pages fresh (make webui)? It shows:\n{shown}"
            )
        page.wait_for_timeout(20)


def move(page: Page, *, zooms: bool) -> Motion:
    """Zooms in and out, or pans there and back, with the wheel."""
    rates, work, most = [], [], 0
    for _ in range(RUNS):
        times, took, rectangles = page.evaluate(_WHEEL, [CANVAS, FRAMES, zooms])
        rates.append(rate(times))
        work += took
        most = max(most, rectangles)
    return Motion(median(rates), median(work), most)


def scroll(page: Page, selector: str) -> float:
    """Frames each second while an element scrolls 60 px a frame; the median of the runs.

    The way back to the top, whose rows are all drawn anew, is over before frames are counted.
    """
    rates = []
    for _ in range(RUNS):
        page.locator(selector).evaluate("element => { element.scrollTop = 0; }")
        page.wait_for_timeout(_SETTLED_MS)
        rates.append(rate(page.evaluate(_SCROLL, [selector, FRAMES, 60])))
    return median(rates)


def search(page: Page, words: list[str]) -> list[float]:
    """The time of each search until what it found is painted."""
    took = []
    for word in words:
        took.append(page.evaluate(_SEARCH, word))
        page.get_by_label("Search the names of events").fill("")
        page.locator(".timeline-found").wait_for(state="detached")
    return took


def search_arguments(page: Page, words: str) -> tuple[float, str]:
    """The time of a search in the arguments of the open rank's trace, ms, and what it says to have found."""
    page.get_by_label("Search the names of events").fill(words)
    began = time.perf_counter()
    page.get_by_role("button", name="Search the arguments").click()
    found = page.get_by_role("list", name="Arguments found").get_by_role("listitem").first
    text = found.inner_text(timeout=120_000)
    return 1000 * (time.perf_counter() - began), text


def rate(times: list[float]) -> float:
    """Frames each second of their times."""
    return 1000 * (len(times) - 1) / (times[-1] - times[0])
