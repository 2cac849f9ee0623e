"""The catalog's tables, as SQLite and PostgreSQL both have them.

Guarantees: a request's rows go with it; there is an index for each order that a list offers. Times are Unix
nanoseconds, 0 where not known; durations are nanoseconds.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

from fleetprof_webui.catalog.figures import FIGURES

VERSION: Final = 4
"""The version of tables and rows: a catalog of a lower one is made anew. Alembic made up to 2."""

metadata: Final = MetaData()

catalog: Final = Table("catalog", metadata, Column("version", Integer, primary_key=True))
"""One row: the version of all tables."""

workloads: Final = Table(
    "workloads",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", String(128), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("name", String(400), nullable=False),  # PostgreSQL indexes 2,700 bytes
    Column("captures", Integer, nullable=False),
    # Of its last capture with a report, else of its last capture; copied, so that lists are sorted by an index.
    Column("last_request_id", Integer, nullable=False),
    Column("last_unix_ns", BigInteger, nullable=False),
    *(Column(figure.name, figure.column, nullable=False) for figure in FIGURES if figure.copied),
    UniqueConstraint("namespace", "kind", "name"),
)
FLEET_ORDERS: Final = {
    "last": "last_unix_ns",
    **{figure.sort: figure.name for figure in FIGURES if figure.sort},
    "name": "name",
}
"""What a fleet can be sorted by, and the column for it."""
for _column in FLEET_ORDERS.values():
    Index(None, workloads.c[_column], workloads.c.id)

FLEET_FACETS: Final = {
    "namespace": "namespace",
    "kind": "kind",
    **{figure.facet: figure.name for figure in FIGURES if figure.facet},
}
"""What a fleet can be filtered by, and the column for it."""
# Facets are counted in the index alone.
Index("ix_workloads_facets", *(workloads.c[name] for name in FLEET_FACETS.values()))

labels: Final = Table(
    "labels",
    metadata,
    Column("workload_id", ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
    Column("label", String(400), primary_key=True),  # key=value
    Index(None, "label", "workload_id"),
)
"""Labels of a workload's pods, as its last capture found them."""

requests: Final = Table(
    "requests",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", String(128), nullable=False),
    Column("uid", String(128), nullable=False),
    Column("workload_id", ForeignKey("workloads.id"), nullable=False),
    Column("version", String(200), nullable=False),  # of its objects in the store
    Column("name", String(253), nullable=False),
    Column("requester", String(253), nullable=False),
    Column("state", String(64), nullable=False),
    Column("message", String(1024), nullable=False),
    Column("finished", Boolean, nullable=False),
    Column("submitted_unix_ns", BigInteger, nullable=False),
    Column("completed_unix_ns", BigInteger, nullable=False),
    Column("targeted", Integer, nullable=False),
    Column("armed", Integer, nullable=False),
    Column("captured", Integer, nullable=False),
    Column("uploaded", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("has_report", Boolean, nullable=False),
    Column("report_version", String(64), nullable=False),
    Column("problem", String(512), nullable=False),  # why its report cannot be read
    UniqueConstraint("namespace", "uid"),
)
REQUEST_ORDERS: Final = {"submitted": "submitted_unix_ns", "name": "name", "state": "state"}
for _column in REQUEST_ORDERS.values():
    Index(None, requests.c[_column], requests.c.id)
Index("ix_requests_facets", requests.c.namespace, requests.c.state)
Index(None, requests.c.namespace, requests.c.submitted_unix_ns, requests.c.id)
Index(None, requests.c.workload_id, requests.c.submitted_unix_ns, requests.c.id)

reports: Final = Table(
    "reports",
    metadata,
    Column("request_id", ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True),
    *(Column(figure.name, figure.column, nullable=False) for figure in FIGURES),
)

hosts: Final = Table(
    "hosts",
    metadata,
    Column("request_id", ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True),
    Column("host_name", String(253), primary_key=True),
    Index(None, "host_name", "request_id"),
)
"""The hosts that ranks of a report ran on."""
