"""The cluster that captures are of, where several share the store: their namespace says so (`keys.qualify`).

Guarantees: a cluster is found and counted by the namespaces that a person may read, and by no others.
"""

from collections import Counter

from fleetprof_api.keys import qualify, split_qualified
from sqlalchemy import Column, ColumnElement, Connection, FromClause, func, not_, select

from fleetprof_webui.catalog.filters import Conditions, most_frequent
from fleetprof_webui.models.fleet import FacetValue

FACET = "cluster"


def is_of(namespace: Column[str], cluster: str, own: str) -> ColumnElement[bool]:
    """The condition that a row of this namespace is of the cluster; `own` is the reader's."""
    if cluster == own:
        return not_(namespace.contains(".", autoescape=True))
    return namespace.startswith(qualify(cluster, ""), autoescape=True)


def count_clusters(
    connection: Connection, table: FromClause, own: str, base: Conditions, facets: Conditions
) -> list[FacetValue]:
    """The rows of each cluster that all conditions but its own let through; none where nothing names the reader's."""
    if not own:
        return []
    conditions = [condition for name, condition in facets.items() if name != FACET]
    rows = select(table.c.namespace, func.count()).where(*base.values(), *conditions).group_by(table.c.namespace)
    counts = Counter[str]()
    for namespace, number in connection.execute(rows):
        counts[split_qualified(namespace)[0] or own] += number
    return most_frequent([FacetValue(value=value, count=count) for value, count in counts.items()])
