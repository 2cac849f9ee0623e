"""Finds what `load` is asked for: a folder, a file, an address in S3, or a capture's name.

Guarantees: reads only; every way ends in one report and the place where its traces lie; what is not there is said with
what to give instead.
"""

import re
from pathlib import Path
from typing import Final

from fleetprof_api import keys
from fleetprof_api.report.report import UnreadableReport, read_report
from fleetprof_store.base import NotFound, Store
from fleetprof_store.captures import StoredCapture, find_capture, read_captures
from fleetprof_store.local import default_state_path, read_location
from fleetprof_store.location import StoreLocation, open_location, parse_capture_address, parse_location

from fleetprof.places import FolderPlace, StorePlace
from fleetprof.profile import Profile

_REPORT: Final = re.compile(rb'\s*\{\s*"schema_version"')
_HEAD_BYTES: Final = 256


def load(where: str | Path, *, store: str | Path | None = None) -> Profile:
    """One report with its tables. `where` is one of:

    - a folder of traces (`*.json`, `*.json.gz`), or one trace: they are analysed now;
    - a folder with a `report.json` (a capture in a directory, the demo's output), or that file: it is read;
    - the address of a capture in S3, `s3://bucket/prefix/v1/NAMESPACE/UID`, with `?endpoint=…` where the server is not
      Amazon's; credentials come from boto3's usual places;
    - a capture's name, its uid, the beginning of it, or `latest`: in `store` (a directory or `s3://bucket/prefix`), by
      default in that of `fleetprof up`, as `fleetprof report` finds it.

    Raises FileNotFoundError, NoSuchCapture (a LookupError), UnreadableReport or another ValueError, NothingToAnalyze,
    StoreError.
    """
    text = str(where)
    if text.startswith("s3://"):
        return _from_address(text)
    path = Path(where).expanduser()
    if store is None and path.exists():
        return _from_folder(path) if path.is_dir() else _from_file(path)
    if isinstance(where, Path) or (store is None and "/" in text):
        raise FileNotFoundError(f"there is no {path}")
    return _from_store(text, store)


def _from_folder(path: Path) -> Profile:
    if (path / "report.json").is_file():
        return _from_file(path / "report.json")
    if (path / keys.MAJOR).is_dir():
        raise ValueError(f"{path} is an object store, not one capture: fleetprof.load('latest', store={str(path)!r})")
    return _analyze(path)


def _from_file(path: Path) -> Profile:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if path.name != "report.json" and not _REPORT.match(head):
        return _analyze(path)
    return Profile(read_report(path.read_bytes()), FolderPlace(path.parent))


def _analyze(path: Path) -> Profile:
    from fleetprof_analyzer.capture.folder import analyze_directory

    return Profile(analyze_directory(path), FolderPlace(path))


def _from_address(text: str) -> Profile:
    location, namespace, uid = parse_capture_address(text)
    return _read(open_location(location), namespace, uid, "it was not analysed, or is not there")


def _from_store(reference: str, store: str | Path | None) -> Profile:
    location = read_location(default_state_path()) if store is None else parse_location(str(store))
    opened = _open(location)
    captures = [] if opened is None else read_captures(opened)
    found = find_capture(captures, reference)
    assert opened is not None
    return _read(opened, found.ledger.namespace, found.ledger.uid, _why(found))


def _open(location: StoreLocation) -> Store | None:
    """The store; None where its folder is not there: opening it would make it."""
    if location.directory and not Path(location.directory).is_dir():
        return None
    return open_location(location)


def _read(store: Store, namespace: str, uid: str, why: str) -> Profile:
    place = StorePlace(store, keys.request_prefix(namespace, uid))
    try:
        data = store.get(keys.report_key(namespace, uid))
    except NotFound:
        raise FileNotFoundError(f"{place.address} has no report.json: {why}") from None
    try:
        return Profile(read_report(data), place)
    except UnreadableReport as error:
        raise UnreadableReport(f"{place.address}report.json: {error}") from None


def _why(capture: StoredCapture) -> str:
    ledger = capture.ledger
    if not ledger.completed_unix_ns:
        return "the capture is not finished yet"
    return f"the capture ended with {ledger.outcome or 'no result'}: {ledger.message}"
