"""A PostgreSQL server of its own at a socket in a folder of its own; gone with the block."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.exc import OperationalError

from harness.waiting import wait_until

_USER = "fleetprof"


@dataclass(frozen=True)
class PostgresServer:
    """A running server."""

    folder: Path

    def make_database(self) -> str:
        """The address of a new, empty database."""
        name = f"test_{secrets.token_hex(6)}"
        engine = sqlalchemy.create_engine(self._url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return self._url(name).replace("postgresql+psycopg", "postgresql")

    def answers(self) -> bool:
        """Tells whether it takes connections."""
        engine = sqlalchemy.create_engine(self._url("postgres"))
        try:
            with engine.connect():
                return True
        except OperationalError:
            return False
        finally:
            engine.dispose()

    def _url(self, database: str) -> str:
        return f"postgresql+psycopg://{_USER}@/{database}?host={self.folder}"


@contextmanager
def run_postgres() -> Iterator[PostgresServer]:
    """A server until the block ends; skips where there is none, or fails where FLEETPROF_REQUIRE says there must be."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not programs:
        reason = "there is no PostgreSQL server; .ci/postgres installs Debian's"
        if "postgres" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="fppg", dir="/tmp"))
    user = None
    if os.getuid() == 0:  # as whom it refuses to run
        user = "postgres"
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = folder / "data"
    try:
        make = ("initdb", "-D", f"{data}", "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        subprocess.run([programs[-1] / make[0], *make[1:]], check=True, capture_output=True, user=user, cwd="/")
        settings = ("-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60", "-k", f"{folder}")
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [programs[-1] / "postgres", "-D", f"{data}", *settings], user=user, cwd="/", stdout=log, stderr=log
            )
        try:
            started = PostgresServer(folder)
            wait_until(lambda: server.poll() is not None or started.answers(), "the PostgreSQL server")
            assert server.poll() is None, (folder / "log").read_text()
            yield started
        finally:
            server.terminate()
            server.wait(60)
    finally:
        shutil.rmtree(folder)
