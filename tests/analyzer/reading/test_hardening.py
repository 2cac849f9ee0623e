"""Our own C, which reads what strangers wrote, is built so that a fault in it ends the process: it is not taken over.

The object that is installed is read, and the one that the Dockerfile's command makes.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.attack
ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "accelerator/fleetprof_accelerator"


def need(what: object, reason: str) -> None:
    if not what:
        if "accelerator" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)


def find_installed(folder: Path) -> Path | None:
    del folder
    found = importlib.util.find_spec("fleetprof_accelerator")
    places = [] if found is None else [Path(place) for place in found.submodule_search_locations or ()]
    return next((file for place in places for file in place.glob("_scan*.so")), None)


def build_as_the_image_does(folder: Path) -> Path | None:
    need(shutil.which("gcc"), "there is no gcc")
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"gcc (-O3 .*?) scan\.c", text)
    shutil.copytree(SOURCES, folder / "sources", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    subprocess.run(["gcc", *command.split(), "-Werror", "scan.c"], cwd=folder / "sources", check=True)
    return folder / "sources/_scan.so"


@pytest.mark.parametrize("find", [find_installed, build_as_the_image_does])
def test_the_scanner_is_built_hardened(find, tmp_path: Path) -> None:
    need(shutil.which("readelf"), "there is no readelf (binutils)")
    built = find(tmp_path)
    need(built, "fleetprof-accelerator is not installed, or was built without a C compiler")
    told = subprocess.run(["readelf", "-Wlds", str(built)], capture_output=True, text=True, check=True).stdout
    assert "GNU_RELRO" in told
    assert re.search(r"FLAGS_1\).*\bNOW\b", told), "addresses of functions stay writable"
    (stack,) = re.findall(r"GNU_STACK.*", told)
    assert "RWE" not in stack
    assert "__stack_chk_fail" in told, "no guard before return addresses"
    assert "TEXTREL" not in told


def test_wheel_and_image_are_built_alike() -> None:
    flags = re.findall(r'"(-(?:[DU]_|f|Wl,)[^"]*)"', (ROOT / "accelerator/setup.py").read_text())
    assert {"-D_FORTIFY_SOURCE=3", "-fstack-protector-strong", "-Wl,-z,now"} <= set(flags)
    image = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    assert [flag for flag in flags if f" {flag} " not in image] == []
