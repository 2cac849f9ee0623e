"""The house rules: a bare `make` lists every target, nothing names a machine, everybody imports who they may."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from fleetprof_api import __version__
from harness.repository import ROOT, source_files, tracked_files

MAKEFILE = (ROOT / "Makefile").read_text()
# What belongs to one machine or one workplace. Spelled in pieces, so that this file is not its own finding.
FORBIDDEN = [rf"(^|[^A-Za-z0-9_.-])/{name}/" for name in ("work", "farm")] + ["/tmp/" + "tv", "/root/" + r"\."]


def test_a_bare_make_lists_every_target_with_its_help() -> None:
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE, re.MULTILINE)
    inner = {"base", "torch"}
    tests = {"test", "test-fast", "attack", "e2e", "cluster", "cluster-down", "images"}
    tests |= {"harmless", "nightly", "nightly-older", "nightly-gitops", "nightly-operator", "nightly-e2e"}
    others = {"audit", "demo", "docs", "lint", "fuzz", "clean", "generate", "help", "webui", "screenshots"}
    others |= {
        "bench",
        "bench-analyzer",
        "bench-hangs",
        "bench-modules",
        "bench-real",
        "bench-telemetry",
        "bench-ui",
        "bench-whatif",
    }
    assert others | tests == set(targets) - inner
    for target in set(targets) - inner:
        (line,) = [line for line in shown.splitlines() if line.split()[0] == target]
        assert len(line.split()) >= 3, f"{target} has no help text"


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert "make test" in script
    assert "make test" in (ROOT / "README.md").read_text()
    assert "FLEETPROF_REQUIRE=s3,torch" in script


@pytest.mark.parametrize("script", sorted((ROOT / ".ci").iterdir()), ids=lambda path: path.name)
def test_scripts_stop_at_the_first_error(script: Path) -> None:
    assert script.read_text().startswith("#!/usr/bin/env bash\n")
    assert "\nset -euo pipefail\n" in script.read_text()
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True)


def test_the_s3_server_of_all_tests_is_of_one_version() -> None:
    package = re.search(r"github\.com/versity/versitygw\S+@v[\d.]+", (ROOT / ".ci/versitygw").read_text())
    assert package is not None
    assert package[0] in (ROOT / "tests/conftest.py").read_text()
    _, version = package[0].split("@")
    images = ROOT / "tests/e2e/kubernetes/cluster/images/building.py"
    assert f'"ghcr.io/versity/versitygw:{version}"' in images.read_text()


def test_nothing_tracked_names_a_machine() -> None:
    pattern = re.compile("|".join(FORBIDDEN), re.MULTILINE)
    found = []
    for name in tracked_files():
        path = ROOT / name
        if path.is_symlink() or path.suffix in (".png", ".gz"):
            continue
        for match in pattern.finditer(path.read_text(errors="replace")):
            found.append(f"{name}: {match[0]!r}")
    assert found == []


def test_no_source_is_left_for_later() -> None:
    pattern = re.compile(r"\b(TO" + "DO|FIX" + r"ME|NotImplemented" + r"Error)\b")
    found = [name for name in source_files() if pattern.search((ROOT / name).read_text())]
    assert found == []


def test_everybody_imports_who_they_may() -> None:
    result = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout


def test_the_operator_folder_shadows_nothing() -> None:
    assert not (ROOT / "operator/__init__.py").exists()
    code = "import operator; print(operator.__file__)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, text=True, check=True)
    assert Path(result.stdout.strip()).parent != ROOT / "operator"


def test_every_dependency_says_what_it_weighs_and_why() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    for dependency in wanted:
        if not dependency.startswith("fleetprof["):
            (line, *_) = [line for line in text.splitlines() if f'"{dependency}"' in line]
            assert re.search(r"#\s+[\d.]+ MB\s+\S+", line), dependency


def test_a_sidecars_image_holds_no_heavy_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {re.split(r"[>=\[]", dependency)[0] for dependency in extras["sidecar"]} == {
        "grpcio",
        "urllib3",
        "nvidia-ml-py",
        "prometheus-client",
    }


def test_the_plug_in_for_kubectl_comes_without_server_parts() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {re.split(r"[>=\[]", dependency)[0] for dependency in extras["kubectl"]}
    assert names & {"kopf", "grpcio", "numpy", "boto3", "cryptography", "fleetprof"} == set()
    heavy = "{'grpc', 'kopf', 'numpy', 'boto3', 'isal', 'jinja2', 'cryptography', 'prometheus_client', 'jwt', 'pynvml'}"
    commands = ("capture", "wait", "list", "cancel", "inject", "doctor", "completion")
    imports = ", ".join(f"fleetprof_cli.kubernetes.commands.{name}" for name in commands)
    code = f"import sys, fleetprof_cli.kubectl, {imports}; print({heavy} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"


_REQUEST = {"pydantic", "yaml"}
_ANALYSIS = {"numpy", "isal", "jinja2"}
_SERVERS = {"kopf", "boto3", "sqlalchemy", "aiohttp", "fastapi", "cryptography"}
_HUB = {"grpc", "google.protobuf"}


@pytest.mark.parametrize(
    ("modules", "never"),
    [
        (("main", "commands.installation.completion", "completions"), {"rich", *_HUB, *_REQUEST, *_ANALYSIS}),
        (("commands.local.run",), {"rich", "asyncio", *_HUB, *_REQUEST, *_ANALYSIS}),
        (("commands.reports.ui", "commands.reports.catalog"), {"rich", *_HUB, *_REQUEST, *_ANALYSIS}),
        (("commands.reports.report",), {"rich", "asyncio", *_HUB, *_REQUEST, *_ANALYSIS}),
        (("commands.local.list", "commands.local.top", "commands.installation.doctor"), _REQUEST | _ANALYSIS),
        (("commands.local.up",), {"grpc", *_REQUEST, *_ANALYSIS}),
        (("commands.local.capture",), _ANALYSIS),
        (("commands.reports.analyze", "commands.reports.diff"), _HUB | _REQUEST),
    ],
)
def test_a_command_loads_what_it_needs(modules: Sequence[str], never: set[str]) -> None:
    names = [f"fleetprof_cli.{name}" for name in modules]
    code = f"import sys, {', '.join(names)}; print(sorted({never | _SERVERS} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_completing_a_command_loads_none() -> None:
    code = (
        "import sys; from click.shell_completion import BashComplete; from fleetprof_cli.main import main;"
        "found = BashComplete(main, {}, 'fleetprof', '').get_completions([], 'c');"
        "print(*(one.value for one in found), [name for name in sys.modules if name.startswith('fleetprof_cli.comm')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "capture cancel catalog completion ['fleetprof_cli.command_table']\n"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("accelerator/pyproject.toml", 'version = "{}"'),
        ("charts/fleetprof/Chart.yaml", "version: {}"),
        ("charts/fleetprof/Chart.yaml", 'appVersion: "{}"'),
        ("CHANGELOG.md", "## {}"),
        ("docs/quickstart.md", "ghcr.io/fleetprof/$part:{}"),
        ("docs/gitops.md", "targetRevision: {}"),
        ("accelerator/Cargo.toml", 'version = "{}"'),
    ],
)
def test_everything_is_of_the_one_version(path: str, line: str) -> None:
    """The one place is api/fleetprof_api/__init__.py; pyproject.toml takes it from there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    assert line.format(__version__) in (ROOT / path).read_text()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"])
def test_a_stranger_finds_what_a_stranger_looks_for(name: str) -> None:
    assert (ROOT / name).stat().st_size > 200


def test_pictures_are_small() -> None:
    for path in (ROOT / "docs").rglob("*.png"):
        assert path.stat().st_size < 300_000, path
