"""The report that is meant: a file, a folder, a place in an object store, or a capture as `fleetprof report` finds it.

Guarantees: only reads; what exists as a path is taken as one; what cannot be read is said with what would do.
"""

from pathlib import Path
from typing import Final, NamedTuple

from fleetprof_analyzer.capture.folder import NothingToAnalyze, SeveralJobs, analyze_directory
from fleetprof_api import keys
from fleetprof_api.report.report import Report
from fleetprof_store.base import NotFound, Store, StoreError
from fleetprof_store.location import parse_capture_address

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.reports.comparison import parse_report
from fleetprof_cli.reports.stored import find_capture, read_captures
from fleetprof_cli.store_location import open_store

_MOST_BYTES: Final = 1 << 30
_S3: Final = "s3://"
_PAGE: Final = "report.html"


class StoredPlace(NamedTuple):
    """A capture in a store."""

    store: Store
    namespace: str
    uid: str


def find_place(reference: str, state: StateDirectory) -> Path | StoredPlace:
    """The path that is meant, or the capture in a store. Raises Failure."""
    if reference.startswith(_S3):
        return _find_address(reference)
    path = Path(reference)
    if _is_there(reference) or path.name == _PAGE:
        return path
    store = open_store(state.store())
    ledger = find_capture(read_captures(store), reference).ledger
    return StoredPlace(store, ledger.namespace, ledger.uid)


def _is_there(reference: str) -> bool:
    try:
        return bool(reference) and Path(reference).exists()  # Path("") is the current folder
    except OSError:  # the name is too long for one
        return False


def read_reference(reference: str, state: StateDirectory) -> Report:
    """The report that is meant. Raises Failure."""
    place = find_place(reference, state)
    if isinstance(place, StoredPlace):
        return _read_stored(place, reference)
    return _read_folder(place) if place.is_dir() else read_file(place)


def read_file(path: Path) -> Report:
    """A report.json, also by the page beside it. Raises Failure."""
    if path.name == _PAGE:
        path = path.with_name("report.json")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Failure(f"{path} has more than {_MOST_BYTES:,} bytes: no report", code=ExitCode.INVALID)
        return parse_report(path.read_bytes(), str(path))
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None


def _read_folder(folder: Path) -> Report:
    """The report.json in it, else one made of the traces in it."""
    if (folder / "report.json").is_file():
        return read_file(folder / "report.json")
    say(f"{folder} holds no report.json: analysing its traces")
    try:
        return analyze_directory(folder)
    except SeveralJobs as error:
        raise Failure(str(error)) from None
    except (NothingToAnalyze, OSError) as error:
        raise Failure(f"no report and no trace: {error}", code=ExitCode.INVALID) from None


def _find_address(address: str) -> StoredPlace:
    try:
        location, namespace, uid = parse_capture_address(address)
    except ValueError as error:
        raise Failure(
            str(error), next_step="use the address that fleetprof report -o path prints", code=ExitCode.INVALID
        ) from None
    return StoredPlace(open_store(location), namespace, uid)


def _read_stored(place: StoredPlace, name: str) -> Report:
    try:
        return parse_report(place.store.get(keys.report_key(place.namespace, place.uid)), name)
    except NotFound:
        raise Failure(f"{name} has no report", next_step="see how it ended: fleetprof list") from None
    except (StoreError, ValueError) as error:
        raise Failure(f"cannot read the object store: {error}") from None
