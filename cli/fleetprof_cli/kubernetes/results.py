"""A request's results in the object store, read with the user's own credentials: no cluster component is asked.

Guarantees: where the store cannot be found or read, it is said what is missing; the request's status is always there to
fall back on.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec
from fleetprof_analyzer.capture.store import NothingStored
from fleetprof_analyzer.timeline.merged_trace import Wanted
from fleetprof_analyzer.timeline.trace_window import cut_capture
from fleetprof_api import keys
from fleetprof_api.stacks import UnreadableStacks
from fleetprof_api.stalls import JobStacks, read_job_stacks
from fleetprof_store.base import NotFound, StoreError
from fleetprof_store.location import StoreLocation, parse_capture_address

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.bundled_store import reach_bundled_store
from fleetprof_cli.kubernetes.options import StoreChoice
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_cli.messages import Failure
from fleetprof_cli.reports.trace_window import write_cut
from fleetprof_cli.store_location import open_store, parse_store

if TYPE_CHECKING:
    from fleetprof_store.base import Store

_BLOCK_BYTES: Final = 1 << 20
_CREDENTIALS: Final = (
    "your own credentials are used: AWS_PROFILE, AWS_ACCESS_KEY_ID or a role that may read the bucket; "
    "--s3-endpoint when the server is not Amazon's, --port-forward for the chart's bundled store (docs/rbac-and-s3.md)"
)


def find_store(state: RequestState, choice: StoreChoice) -> StoreLocation:
    """Finds the results: the place that was named, else what the status' storeURL tells. Raises Failure."""
    try:
        if choice.store:
            return parse_store(choice.store, choice.s3_endpoint)
        address = state.status.store_url or state.status.report_url or ""
        if address.startswith("s3://"):
            location, *whose = parse_capture_address(address)
            if whose == [state.namespace, state.uid]:
                # The store's address in the cluster may not be the one that reaches it from here.
                return msgspec.structs.replace(location, endpoint=choice.s3_endpoint or location.endpoint)
    except ValueError as error:
        raise Failure(str(error), code=ExitCode.INVALID) from None
    raise Failure(
        f"the status of {state.name} does not name its object store",
        next_step="name it: --store s3://BUCKET/PREFIX, or FLEETPROF_STORE",
        code=ExitCode.INVALID,
    )


class Results:
    """One request's objects."""

    def __init__(self, store: "Store", state: RequestState) -> None:
        self._store = store
        self._namespace, self._uid, self._name = state.namespace, state.uid, state.name

    @classmethod
    def open(cls, state: RequestState, choice: StoreChoice) -> "Results":
        """Opens the results of a request; what is forwarded for it ends with the command. Raises Failure."""
        location = find_store(state, choice)
        if choice.forward is not None:
            store = click.get_current_context().with_resource(reach_bundled_store(location, choice.forward))
            return cls(store, state)
        return cls(open_store(location), state)

    def report(self) -> bytes:
        """report.json. Raises Failure."""
        with self._explained("has no report in the store"):
            return self._store.get(keys.report_key(self._namespace, self._uid))

    def stacks(self) -> JobStacks:
        """Reads the stacks of a request. Raises Failure."""
        with self._explained("has no stacks in the store"):
            data = self._store.get(keys.stacks_key(self._namespace, self._uid))
        try:
            return read_job_stacks(data)
        except UnreadableStacks as error:
            raise Failure(f"the stacks of {self._name} cannot be read: {error}") from None

    def page(self) -> bytes:
        """report.html. Raises Failure."""
        with self._explained("has no report in the store"):
            return self._store.get(keys.report_page_key(self._namespace, self._uid))

    def page_address(self) -> str:
        """The address of report.html, for people."""
        return self._store.locate(keys.report_page_key(self._namespace, self._uid))

    def fetch(self, into: Path, ranks: list[int] | None) -> Iterator[tuple[Path, int]]:
        """Writes everything there is of the request, or of those ranks, below `into`; each file with its size in bytes.

        Raises Failure.
        """
        prefix = keys.request_prefix(self._namespace, self._uid)
        with self._explained("has nothing in the store"):
            for item in self._store.list(prefix):
                name = item.key.removeprefix(prefix)
                rank = name.split("/")[1] if name.startswith("ranks/") else None
                if ranks is not None and rank is not None and rank not in map(str, ranks):
                    continue
                path = self._place(into, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                partial = path.with_name(path.name + ".part")
                with self._store.open(item.key) as stored, partial.open("wb") as file:
                    shutil.copyfileobj(stored, file, _BLOCK_BYTES)
                partial.replace(path)
                yield path, item.size_bytes

    def cut(self, out: Path | None, wanted: Wanted) -> None:
        """Writes a cut of the stored traces for Perfetto. Raises Failure."""
        with self._explained("has no trace in the store"):
            write_cut(out, lambda write: cut_capture(self._store, self._namespace, self._uid, wanted, write))

    def _place(self, into: Path, name: str) -> Path:
        path = (into / name).resolve()
        if not path.is_relative_to(into.resolve()):
            raise Failure(f"the store holds an object whose name leaves the folder: {name!r}")
        return path

    @contextmanager
    def _explained(self, missing: str) -> Iterator[None]:
        try:
            yield
        except (NotFound, NothingStored):
            step = f"see how it ended: kubectl fleetprof list -n {self._namespace}"
            raise Failure(f"{self._name} {missing}", next_step=step) from None
        except StoreError as error:
            raise Failure(f"cannot read the object store: {error}", next_step=_CREDENTIALS) from None
        except OSError as error:
            raise Failure(f"cannot write here: {error}", next_step="choose another folder: -o DIR") from None
