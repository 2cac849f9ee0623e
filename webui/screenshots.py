"""Takes the pictures of the pages that the docs show, of the demo in build/demo: `make screenshots`.

The file report.html, and one picture per page, light, 1400 px wide, with a palette of 128 colours, so that each
weighs little. What is shown is what the service serves and Chromium draws; nothing is painted over. Telemetry and
policies, which a demo of a minute does not have, are made up (planted_day.py), and the docs say so. Who somebody is
shows only behind an API server and an identity provider, so that picture is one of a test's (`WHOAMI`).
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from fleetprof_store.directory import DirectoryStore
from PIL import Image
from planted_day import list_uids, plant_day
from playwright.sync_api import Page, ViewportSize, sync_playwright

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
DEMO: Final = ROOT / "build" / "demo"
SIZE: Final[ViewportSize] = {"width": 1400, "height": 860}
WHOAMI: Final = "tests/webui/access/test_process.py::test_who_may_read_reads_and_the_cookie_is_the_browser_s_strictest"
_COLOURS: Final = 128
_TILES_MS: Final = 1500  # a canvas does not say when it has drawn its tiles
_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:\d+/#token=\S+")


@contextmanager
def serve(state: Path) -> Iterator[str]:
    """The address of `fleetprof ui` over the captures of a state directory; it ends with the block."""
    command = [str(Path(sys.executable).with_name("fleetprof")), "ui", "--no-open", "--state", str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as service:
        assert service.stdout is not None
        try:
            output = ""
            for line in service.stdout:
                output += line
                if found := _ADDRESS.search(line):
                    yield found[0]
                    return
            sys.exit(f"fleetprof ui gave no address:\n{output}run `make demo` first")
        finally:
            service.terminate()


def keep(page: Page, name: str) -> None:
    """Writes what the tab shows to docs/NAME.png."""
    page.wait_for_load_state("networkidle")
    write(page.screenshot(), name)


def write(data: bytes, name: str) -> None:
    """Writes a picture to docs/NAME.png, with few colours."""
    picture = Image.open(BytesIO(data)).convert("RGB")
    path = DOCS / f"{name}.png"
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size >> 10} KiB\n")


def take(page: Page, address: str) -> None:
    """Every page, beginning where the address signs in."""
    page.goto(address)
    verdict = page.locator("a.verdict-cell").first
    verdict.wait_for()
    keep(page, "webui-fleet")
    page.locator("td a").first.click()
    page.get_by_role("heading", name="Over time").wait_for()
    keep(page, "webui-trend")
    trend = page.url
    page.evaluate("document.querySelector('#day').scrollIntoView()")
    keep(page, "webui-day")
    page.go_back()
    verdict.click()
    page.get_by_role("heading", name="Time by rank").wait_for()
    report = page.url.partition("?")[0]
    late = int(page.get_by_role("link", name=re.compile("^Show rank ")).inner_text().rpartition(" ")[2])
    keep(page, "webui-report")
    page.locator("#spread").scroll_into_view_if_needed()
    page.locator(".box-plot").first.wait_for()
    page.evaluate("document.querySelector('#stragglers').scrollIntoView()")
    keep(page, "webui-report-pictures")
    page.goto(f"{report}/timeline?{urlencode({'view': json.dumps({'version': 1, 'open': [late]})})}")
    page.locator("canvas").first.wait_for()
    page.wait_for_timeout(_TILES_MS)
    keep(page, "webui-timeline")
    page.goto(report.replace("/reports/", "/requests/"))
    page.get_by_role("heading", name="Stages").wait_for()
    keep(page, "webui-request")
    origin = report.partition("/reports/")[0]
    page.goto(f"{origin}/policies")
    page.get_by_role("link", name="starved").wait_for()
    keep(page, "webui-policies")
    page.get_by_role("link", name="starved").click()
    page.get_by_role("heading", name="What it did").wait_for()
    keep(page, "webui-policy")
    page.goto(f"{origin}/requests?capture=new")
    page.get_by_label("The same as YAML").wait_for()
    keep(page, "webui-new-capture")
    page.goto(f"{origin}/requests")
    page.get_by_role("region", name="Requests").wait_for()
    keep(page, "webui-requests")
    page.goto(trend)
    page.get_by_role("button", name="Compare").last.click()
    page.get_by_role("link", name="with this").first.click()
    page.get_by_role("heading", name="Measures").wait_for()
    keep(page, "webui-diff")
    page.goto((DEMO / "report.html").as_uri())
    keep(page, "report")


@contextmanager
def copy_demo(demo: Path) -> Iterator[Path]:
    """The state directory of a copy that has telemetry and policies; it is gone after the block."""
    if not (demo / "state" / "store.json").is_file():
        sys.exit("there is no demo: run `make demo` first")
    with tempfile.TemporaryDirectory(prefix="fleetprof-pictures-") as folder:
        copy = Path(folder)
        shutil.copytree(demo / "store", copy / "store")
        shutil.copytree(demo / "state", copy / "state", ignore=shutil.ignore_patterns("catalog-*", "lock"))
        place = copy / "state" / "store.json"
        place.write_text(json.dumps(json.loads(place.read_text()) | {"directory": str(copy / "store")}))
        store = DirectoryStore(copy / "store", (copy / "state" / "secret").read_bytes().strip(), "")
        plant_day(store, list_uids(copy / "store")[0], time.time_ns())
        yield copy / "state"


def take_whoami() -> None:
    """A person who signed in at an identity provider, in a process of a cluster."""
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "--color=no", WHOAMI], cwd=ROOT, check=False)
    picture = ROOT / "build" / "tests" / "pictures" / "whoami.png"
    if ran.returncode or not picture.is_file():
        sys.exit("no picture of /whoami: see above; its test needs etcd and an API server (CONTRIBUTING.md)")
    write(picture.read_bytes(), "webui-whoami")


def main() -> None:
    """Takes all of them anew."""
    take_whoami()
    program = shutil.which("chromium") or sys.exit("no chromium: run .ci/browser")
    with copy_demo(DEMO) as state, serve(state) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-lcd-text"])
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        take(page, address)
        browser.close()


if __name__ == "__main__":
    main()
