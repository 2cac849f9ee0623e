"""Puts a report with its page and its slices into the store. Raises StoreError."""

from fleetprof_api import keys
from fleetprof_api.report.report import Report, write_report
from fleetprof_store.base import Store

from fleetprof_analyzer.slices.writer import write_slices


def put_report(store: Store, namespace: str, uid: str, report: Report, page: str = "") -> None:
    """Writes the page, if there is one, then the slices, and the report last: where it is, the others are too."""
    if page:
        store.put(keys.report_page_key(namespace, uid), page.encode())
    for name, data in write_slices(report).items():
        store.put(keys.slice_key(namespace, uid, name), data)
    store.put(keys.report_key(namespace, uid), write_report(report))
