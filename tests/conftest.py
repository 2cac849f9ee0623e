"""Fixtures that more than one folder of tests uses. Sections by room; keep each small."""

import gc
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    import boto3
    from execnet import XSpec
    from fleetprof_store.s3.store import S3Store
    from harness.kubernetes.api_server import ApiServer
    from harness.scheduling import FewAtATime

# No test asserts a wall time, an example of a property no more than others. The examples are the same in each run, so
# that a failure is the change's; `make fuzz` looks for new ones.
settings.register_profile("fleetprof", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("FLEETPROF_PROPERTIES", "fleetprof"))

# An image may ask for this; then each process that a test starts compiles PyTorch's and our modules anew.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False

# Tests make many objects and few cycles: with Python's 700 between two searches for garbage, these are a tenth of what
# calculations take.
gc.set_threshold(50_000, 20, 20)

# numpy's threads wait for work by spinning: half of what tests that multiply matrices took, a third of each import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would every command that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `timeout` and CI end a run by this: it stops what its tests started, as with Ctrl-C.
signal.signal(signal.SIGTERM, signal.default_int_handler)

# ---------------------------------------------------------------- store: a real S3 server (versitygw)

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


class S3Server:
    """versitygw over a directory, on loopback. `stop` and `start` keep port and data."""

    access_key = "fleetprof-tests"

    def __init__(self, binary: Path, data: Path, certificate: tuple[Path, Path] | None = None) -> None:
        """`certificate`: files of a chain and its key, for `localhost`; None: plain HTTP."""
        self.secret_key = secrets.token_hex(16)
        self._binary = binary
        self._data = data
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._tls: list[str | Path] = ["--cert", certificate[0], "--key", certificate[1]] if certificate else []
        self.endpoint_url = f"https://localhost:{self.port}" if certificate else f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._sessions: dict[tuple[str, str], boto3.Session] = {}
        self._users = data.with_name(f"{data.name}-users")
        for folder in (data, self._users):
            folder.mkdir(exist_ok=True)

    def start(self) -> None:
        """Starts the server and waits until it listens."""
        environment = os.environ | {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}
        command: list[str | Path] = [
            self._binary,
            "--port",
            f"127.0.0.1:{self.port}",
            "--region",
            "us-east-1",
            "--quiet",
            *self._tls,
            "--iam-dir",
            self._users,
            "posix",
            self._data,
        ]
        with (self._data.parent / "s3-server.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        until = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    pytest.fail(f"the S3 server does not start; see {self._data.parent / 's3-server.log'}")
                time.sleep(0.02)

    def stop(self) -> None:
        """Ends the server; its data stays."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
            self._process = None

    def session(self, secret_key: str = "", access_key: str = "") -> "boto3.Session":
        """Credentials for this server (or wrong ones). A new session reads all that boto3 knows about S3 anew."""
        import boto3

        keys = (access_key or self.access_key, secret_key or self.secret_key)
        if keys not in self._sessions:
            self._sessions[keys] = boto3.Session(*keys, region_name="us-east-1")
        return self._sessions[keys]

    def make_user(self, name: str) -> "boto3.Session":
        """A user who may nothing but what a bucket's policy says."""
        secret_key = secrets.token_hex(16)
        administrator = ["--access", self.access_key, "--secret", self.secret_key, "--endpoint-url", self.endpoint_url]
        user = ["--access", name, "--secret", secret_key, "--role", "user"]
        subprocess.run([self._binary, "admin", *administrator, "create-user", *user], check=True, capture_output=True)
        return self.session(secret_key, name)

    def make_bucket(self) -> str:
        """A new bucket's name."""
        name = f"bucket-{secrets.token_hex(6)}"
        self.session().client("s3", endpoint_url=self.endpoint_url).create_bucket(Bucket=name)
        return name

    def make_store(self, bucket: str, prefix: str = "", *, secret_key: str = "") -> "S3Store":
        """A store over one of its buckets."""
        from fleetprof_store.s3.store import S3Store

        return S3Store(bucket, prefix, self.endpoint_url, session=self.session(secret_key), patience_s=2)


def _find_versitygw() -> Path | str:
    """The binary, built once into a cache outside the tree; or the reason why there is none."""
    if named := os.environ.get("FLEETPROF_S3_SERVER"):
        return Path(named) if Path(named).is_file() else f"FLEETPROF_S3_SERVER={named} is not a file"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof" / "bin"
    if (cache / "versitygw").is_file():
        return cache / "versitygw"
    if not shutil.which("go"):
        return "no S3 server: there is no Go to build versitygw with, and FLEETPROF_S3_SERVER names none"
    built = subprocess.run(
        ["go", "install", VERSITYGW],
        env=os.environ | {"GOBIN": str(cache), "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    return cache / "versitygw" if built.returncode == 0 else f"versitygw cannot be built: {built.stderr[-500:]}"


@pytest.fixture(scope="session")
def versitygw() -> Path:
    """The S3 server's program; a test without it is skipped, where it is not required."""
    binary = _find_versitygw()
    if isinstance(binary, str):
        if "s3" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(binary)
        pytest.skip(binary)
    return binary


@pytest.fixture(scope="session")
def s3_server(versitygw: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running S3 server that tests share, each with a bucket of its own."""
    server = S3Server(versitygw, tmp_path_factory.mktemp("s3") / "data")
    server.start()
    yield server
    server.stop()


# ---------------------------------------------------------------- cluster: a real API server with nothing behind it


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ApiServer]":
    """A running API server that knows our kinds; tests share it, each in a namespace of its own."""
    from harness.kubernetes.api_server import serve_requests

    with serve_requests(tmp_path_factory.mktemp("api-server")) as server:
        yield server


def _is_on_a_cluster(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("cluster") is not None


def _signal_api_servers(method: str) -> None:
    # Where nobody imported it there is none.
    if module := sys.modules.get("harness.kubernetes.api_server"):
        getattr(module.ApiServer, method)()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """API servers run while a test marked `cluster` does, and while fixtures end."""
    if _is_on_a_cluster(item):
        _signal_api_servers("resume_all")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """They rest until the next such test."""
    if nextitem is None or nextitem.path != item.path:
        _signal_api_servers("resume_all")
    yield
    if not _is_on_a_cluster(nextitem):
        _signal_api_servers("pause_all")


# ---------------------------------------------------------------- workers


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of how the workers of pytest-xdist start."""
    parser.addoption(
        "--fork-workers",
        action="store_true",
        help="Fork pytest-xdist's workers from one process that imported the tests.",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: "Sequence[XSpec]") -> None:
    """Forks the workers, if `--fork-workers` asks for it."""
    if not config.getoption("fork_workers"):
        return
    from harness.forked_workers import WorkerSource

    source = WorkerSource(config)
    config.add_cleanup(source.stop)
    for spec in specs:
        spec.python = source.python


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> "FewAtATime | None":
    """Hands out neighbours together, with `--dist loadgroup`."""
    if config.getoption("dist") != "loadgroup":
        return None
    from harness.scheduling import FewAtATime

    return FewAtATime(config, log)


# ---------------------------------------------------------------- collection

_LONGEST_VALUE_IN_A_NAME = 100


def pytest_make_parametrize_id(val: object) -> str | None:
    """Cuts what a test's name shows of a long value: workers tell each other names of tests many times, and some values
    have megabytes."""
    if not isinstance(val, (str, bytes)) or len(val) <= _LONGEST_VALUE_IN_A_NAME:
        return None
    head = val[:_LONGEST_VALUE_IN_A_NAME]
    return f"{ascii(head).removeprefix('b')[1:-1]} and {len(val) - len(head)} more"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Each worker collects all tests, and keeps them: a search for garbage would find none, for a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# ---------------------------------------------------------------- torch: tests that start real PyTorch processes


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps a room's tests on an API server in one worker, so that it is started once; skips what lacks PyTorch;
    leaves out what runs at night, unless `-m` asks for it.

    The same for those on PostgreSQL, and for what renders the chart in a folder: each set of values is rendered once.
    """
    tests = Path(__file__).parent
    rooms = {path: path.relative_to(tests).parts[0] for path in {item.path for item in items}}
    for item in items:
        room, folder = rooms[item.path], item.path.parent.name
        for marker, place in (("cluster", room), ("postgres", room), ("helm", folder)):
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.xdist_group(f"{place} {marker}"))
                break  # a test of two groups would be in a third
    _skip_torch(items)
    if "nightly" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("nightly")])
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


def _skip_torch(items: list[pytest.Item]) -> None:
    """Skips them with the reason where there is no PyTorch, unless FLEETPROF_REQUIRE says that there must be."""
    if os.environ.get("FLEETPROF_TORCH_PYTHONS") or importlib.util.find_spec("torch") is not None:
        return
    if "torch" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
        return
    for item in items:
        if item.get_closest_marker("torch"):
            item.add_marker(pytest.mark.skip(reason="PyTorch is not installed here: uv sync --group torch"))
