"""A report as flat tables: what DataFrames and Parquet files hold.

Guarantees: `layout` says which tables and columns there are, `rows` takes them out of a report; both follow the types
of the report, so that a new field of it is a new column without a change here. Nothing but msgspec is needed.
"""

from fleetprof_api.tables.layout import Column, Table, list_tables
from fleetprof_api.tables.rows import columns_of

__all__ = ["Column", "Table", "columns_of", "list_tables"]
