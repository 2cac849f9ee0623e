"""The place of a report's traces: in a folder, or in an object store.

Guarantees: a trace is named by its `source` in the report, and a source that would leave its folder is refused; only
reads.
"""

from pathlib import Path
from typing import IO, Protocol

from fleetprof_api.errors import FleetprofError
from fleetprof_store.base import NotFound, Store


class TraceMissing(FleetprofError, LookupError):
    """There is no trace of this source; the message says where it was looked for."""


class Place(Protocol):
    """Opens the traces of one report."""

    address: str
    """For people."""

    def open(self, source: str) -> IO[bytes]:
        """Opens one for streaming reads; the caller closes it. Raises TraceMissing, StoreError, OSError."""

    def path(self, source: str) -> Path | None:
        """Its absolute path on this machine; None where it lies elsewhere. Raises TraceMissing."""


class FolderPlace:
    """Traces below a folder; or one file, which is its own source."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.address = str(root)

    def open(self, source: str) -> IO[bytes]:
        """Opens one. Raises TraceMissing, OSError."""
        return self.path(source).open("rb")

    def path(self, source: str) -> Path:
        """Its absolute path. Raises TraceMissing."""
        if self.root.is_file():
            return self.root
        path = self.root / source
        # What a report from elsewhere names must not lead out of the folder; links of the user's own may.
        if ".." in Path(source).parts or not path.is_relative_to(self.root) or not path.is_file():
            raise TraceMissing(f"there is no {source} in {self.root}: the report's traces do not lie beside it")
        return path


class StorePlace:
    """Traces of one capture in an object store; `prefix` is that of the capture."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self.address = store.locate(prefix + "report.json").removesuffix("report.json")

    def open(self, source: str) -> IO[bytes]:
        """Opens one. Raises TraceMissing, StoreError."""
        try:
            return self._store.open(self._prefix + source)
        except NotFound:
            raise TraceMissing(f"there is no {source} in {self.address}: it stayed where it was taken") from None

    def path(self, source: str) -> Path | None:
        """Its path where the store is a directory here."""
        path = Path(self._store.locate(self._prefix + source))
        return path if path.is_file() else None
