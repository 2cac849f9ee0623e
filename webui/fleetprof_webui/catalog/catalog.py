"""The catalog that the service asks, kept near the store by looking at it again and again.

Guarantees: one look at a time; whose telemetry and policies there are is known before captures are written; if store or
database fail, the next look comes all the same, and `problem` says why the catalog may be old.
"""

import logging
import threading
import time
from collections.abc import Collection, Mapping

from fleetprof_store.base import Store, StoreError
from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from fleetprof_webui.catalog.fleet import FleetQuery, find_fleet, find_workload
from fleetprof_webui.catalog.ingestion import Changes, ingest, list_store
from fleetprof_webui.catalog.losses import find_losses
from fleetprof_webui.catalog.requests import Entry, RequestQuery, find_request, find_requests
from fleetprof_webui.catalog.schema import workloads
from fleetprof_webui.models.fleet import FleetPage, WorkloadPage
from fleetprof_webui.models.losses import LossPage
from fleetprof_webui.models.policies import PolicyPage
from fleetprof_webui.models.requests import RequestPage
from fleetprof_webui.policies.reading import StoredPolicies
from fleetprof_webui.telemetry.jobs import JobsOfTheDay

log = logging.getLogger(__name__)


class Catalog:
    """The index of one store. Its methods block. `cluster`: that of the reader, where several share the store."""

    def __init__(self, store: Store, engine: Engine, *, cluster: str = "") -> None:
        self._store = store
        self._engine = engine
        self._cluster = cluster
        self._turn = threading.Lock()
        self.looked_unix_ns = 0
        self.problem = "the store has not been looked at yet"
        self._telemetry: frozenset[str] = frozenset()
        self._policies: Mapping[str, str] = {}
        self._stored_policies = StoredPolicies(store)
        self.jobs = JobsOfTheDay(store, self._find_captured)

    def refresh(self) -> Changes | None:
        """Looks at the store once; None where store or database failed, which `problem` tells."""
        with self._turn:
            try:
                listing = list_store(self._store)
                self._telemetry, self._policies = listing.telemetry, listing.policies
                changes = ingest(self._store, self._engine, listing)
            except StoreError as error:
                self.problem = f"the store cannot be read: {error}"
            except SQLAlchemyError as error:
                self.problem = f"the catalog's database does not answer: {type(error).__name__}"
            else:
                self.problem = ""
                self.looked_unix_ns = time.time_ns()
                return changes
        log.warning("%s", self.problem)
        return None

    def fleet(self, query: FleetQuery, namespaces: Collection[str] | None) -> FleetPage:
        """One page of workloads."""
        with self._engine.connect() as connection:
            return find_fleet(connection, query, namespaces, self._cluster)

    def workload(self, namespace: str, kind: str, name: str, *, after: str, limit: int) -> WorkloadPage | None:
        """The captures of one workload; None where there is none of this name."""
        with self._engine.connect() as connection:
            return find_workload(connection, namespace, kind, name, after=after, limit=limit)

    def losses(self, stored: Collection[str], namespaces: Collection[str] | None) -> LossPage:
        """The losses of jobs in the last day. `stored`: namespaces of telemetry they may read. Raises StoreError."""
        jobs = self.jobs.find_all(stored)
        with self._engine.connect() as connection:
            return find_losses(connection, jobs, namespaces)

    def requests(self, query: RequestQuery, namespaces: Collection[str] | None) -> RequestPage:
        """One page of the requests in these namespaces, None: in all."""
        with self._engine.connect() as connection:
            return find_requests(connection, query, namespaces, self._cluster)

    def request(self, namespace: str, uid: str) -> Entry | None:
        """One request; None where the catalog has none."""
        with self._engine.connect() as connection:
            return find_request(connection, namespace, uid)

    def namespaces(self) -> frozenset[str]:
        """The namespaces that have captures, or of which anything else is told."""
        with self._engine.connect() as connection:
            captured = connection.execute(select(workloads.c.namespace).distinct()).scalars()
            return frozenset(captured) | self._telemetry | self._policies.keys()

    def telemetry_namespaces(self, among: Collection[str] | None) -> frozenset[str]:
        """The namespaces whose telemetry the store has; of these only, all when None."""
        return self._telemetry if among is None else self._telemetry & frozenset(among)

    def policies(self, namespaces: Collection[str] | None) -> PolicyPage:
        """The policies of these namespaces, as they stood at the last look; of all when None. Raises StoreError."""
        versions = self._policies
        chosen = versions.keys() if namespaces is None else versions.keys() & frozenset(namespaces)
        return self._stored_policies.find({namespace: versions[namespace] for namespace in chosen})

    def _find_captured(self, namespaces: Collection[str]) -> frozenset[tuple[str, str, str]]:
        columns = (workloads.c.namespace, workloads.c.kind, workloads.c.name)
        with self._engine.connect() as connection:
            rows = connection.execute(select(*columns).where(workloads.c.namespace.in_(list(namespaces))))
            return frozenset((row.namespace, row.kind, row.name) for row in rows)

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()
