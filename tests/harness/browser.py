"""A real Chromium without a window, driven by Playwright.

Debian's headless shell is the same engine without the browser around it: less than half of the processor time.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

WITHOUT_NETLINK: Final = Path(__file__).with_name("chromium_without_netlink.py")
PATIENCE_MS: Final = 60_000
"""How long a page may take on a busy machine, for an action and for what is expected."""
PICTURES: Final = Path(__file__).parents[2] / "build" / "tests" / "pictures"


@contextmanager
def run_chromium(*flags: str) -> Iterator[Browser]:
    """A browser until the block ends; skips without one, or fails where it is required."""
    expect.set_options(PATIENCE_MS)
    environment: dict[str, str | float | bool] = {**os.environ, "FLEETPROF_CHROMIUM": find_chromium()}
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=WITHOUT_NETLINK,
            env=environment,
            args=["--no-sandbox", "--disable-lcd-text", "--font-render-hinting=none", *flags],
        )
        yield launched
        launched.close()


def find_chromium() -> str:
    """The program; skips without one, or fails where it is required."""
    return (
        shutil.which("chromium-headless-shell")
        or shutil.which("chromium")
        or miss("there is no Chromium; .ci/browser installs Debian's")
    )


def miss(reason: str) -> NoReturn:
    """Skips, or fails where a browser is required."""
    if "browser" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason)


def keep_picture(page: Page, name: str) -> None:
    """Writes what the tab shows to build/tests/pictures/NAME.png, for whoever wants to see what a test saw."""
    page.screenshot(path=PICTURES / f"{name}.png")
