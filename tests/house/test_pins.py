"""Everything that a build or CI fetches is named by a hash of its content, or is in the table of what cannot be."""

import re
from pathlib import Path

import pytest
import yaml
from harness.repository import ROOT

DOCKERFILES = sorted(ROOT.rglob("Dockerfile"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SCRIPTS = [path for path in sorted((ROOT / ".ci").iterdir()) if path.is_file()]
FETCHING = [*DOCKERFILES, *WORKFLOWS, *SCRIPTS, ROOT / "Makefile"]
REQUIREMENTS = [ROOT / ".github/uv.txt", *sorted((ROOT / ".github/tools").glob("*.txt"))]
# What is named by a version that its publisher could move; docs/limits.md says so, and why.
MOVABLE = {"kindest/node:v1.33.4", "kindest/node:v1.30.13", "ghcr.io/versity/versitygw:v1.8.0"}


def id_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def read_lines(path: Path) -> list[str]:
    """Its lines without comments, continued ones joined."""
    text = re.sub(r"\\\n\s*", " ", path.read_text())
    return [line for line in text.splitlines() if not line.lstrip().startswith("#")]


@pytest.mark.parametrize("path", DOCKERFILES, ids=id_of)
def test_a_base_image_is_named_by_its_digest(path: Path) -> None:
    stages = {"scratch", "${BASE}"}
    for line in read_lines(path):
        if found := re.match(r"FROM (\S+)(?: AS (\S+))?$", line):
            assert found[1] in stages or re.search(r"@sha256:[0-9a-f]{64}$", found[1]), line
            stages.add(found[2])
        if line.startswith("ARG BASE="):
            assert re.search(r"@sha256:[0-9a-f]{64}$", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=id_of)
def test_an_action_is_named_by_its_commit(path: Path) -> None:
    for used in re.findall(r"uses: *(\S+)", path.read_text()):
        assert re.search(r"@[0-9a-f]{40}$", used), used


@pytest.mark.parametrize("path", FETCHING, ids=id_of)
def test_what_is_installed_or_fetched_is_checked_by_hash(path: Path) -> None:
    for line in read_lines(path):
        if re.search(r"\bpip install\b", line):
            assert "--require-hashes" in line, line
        assert not re.search(r"\buv[\" ]*tool (run|install)\b|\buvx\b|\bnpx\b|\bnpm (install|i)\b", line), line
        if re.search(r"\buv\)?\"? sync\b", line):
            assert "--frozen" in line, line
        if re.search(r"\bgo install\b", line):  # by Go's own log of checksums; a version names one content for ever
            assert re.search(r"@v\d+\.\d+\.\d+", path.read_text()), line
    text = path.read_text()
    if re.search(r"^[^#\n]*\b(curl|wget) ", text, re.MULTILINE):
        assert "sha256sum" in text, "what is fetched is not compared with a hash"
        assert not re.search(r"\b(curl|wget)\b[^\n]*\|\s*(ba)?sh\b", text), "what is fetched is run unseen"


@pytest.mark.parametrize("path", REQUIREMENTS, ids=id_of)
def test_each_package_of_a_tool_has_hashes(path: Path) -> None:
    names = [line for line in read_lines(path) if line.strip()]
    assert names
    for line in names:
        assert re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==[^ ]+ .*--hash=sha256:[0-9a-f]{64}", line), line[:80]


def test_images_that_charts_and_ci_name_by_version_are_those_that_docs_name() -> None:
    values = yaml.safe_load((ROOT / "charts/fleetprof/values.yaml").read_text())
    named = {values["store"]["bundled"]["image"]}
    for path in WORKFLOWS:
        named |= set(re.findall(r"\bkindest/node:\S+", path.read_text()))
    assert named == MOVABLE
    limits = (ROOT / "docs/limits.md").read_text()
    assert [name for name in sorted(MOVABLE) if f"`{name}`" not in limits] == []
