"""Our own compiled code, which reads what strangers wrote, is built so that a fault in it is of no use to them."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.attack
ROOT = Path(__file__).parents[3]


def need(what: object, reason: str) -> None:
    if not what:
        if "accelerator" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)


def find_installed() -> Path | None:
    found = importlib.util.find_spec("fleetprof_accelerator")
    places = [] if found is None else [Path(place) for place in found.submodule_search_locations or ()]
    return next((file for place in places for file in place.glob("_scan*.so")), None)


def test_the_scanner_is_built_hardened() -> None:
    need(shutil.which("readelf"), "there is no readelf (binutils)")
    built = find_installed()
    need(built, "fleetprof-accelerator is not installed, or was built without Rust")
    headers = subprocess.run(["readelf", "-Wld", str(built)], capture_output=True, text=True, check=True).stdout
    assert "GNU_RELRO" in headers
    assert re.search(r"FLAGS_1\).*\bNOW\b", headers), "addresses of functions stay writable"
    (stack,) = re.findall(r"GNU_STACK.*", headers)
    assert "RWE" not in stack
    assert "TEXTREL" not in headers


def test_wheel_and_image_are_built_alike() -> None:
    wheel, image = (ROOT / "accelerator/setup.py").read_text(), (ROOT / "Dockerfile").read_text()
    assert '"--locked"' in wheel
    assert "debug=False" in wheel
    assert "cargo build --quiet --release --locked" in image
