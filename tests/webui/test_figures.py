"""A figure of the fleet is a row of one table, a field of the answer, and a column of the page where it sorts."""

import re
from pathlib import Path

from fleetprof_api.slices.head import Figures
from fleetprof_webui.catalog.figures import FIGURES
from fleetprof_webui.catalog.schema import FLEET_FACETS, FLEET_ORDERS
from fleetprof_webui.models.fleet import FleetFacets

COLUMNS = Path(__file__).parents[2] / "webui/frontend/src/fleet/columns.tsx"


def test_every_field_of_the_answer_has_its_row() -> None:
    rows, fields = {figure.name for figure in FIGURES}, set(Figures.__struct_fields__)
    assert rows == fields, f"only in one of catalog/figures.py and slices/head.py: {sorted(rows ^ fields)}"


def test_every_facet_is_answered() -> None:
    # Labels of pods are no column.
    facets = {*FLEET_FACETS, "cluster", "label"} ^ set(FleetFacets.__struct_fields__)
    assert not facets, f"only in one of catalog/figures.py and models/fleet.py: {sorted(facets)}"


def test_the_page_sorts_by_what_the_service_sorts_by() -> None:
    columns = re.split(r'\bid: "(\w+)", header|\bid: "(\w+)",\n', COLUMNS.read_text())
    sortable = {
        one or other for one, other, rest in zip(*[iter(columns[1:])] * 3, strict=True) if "sortable: true" in rest
    }
    page_only, service_only = sortable - set(FLEET_ORDERS), set(FLEET_ORDERS) - sortable
    assert not page_only, f"fleet/columns.tsx sorts by what catalog/figures.py does not offer: {sorted(page_only)}"
    # A gain is in the verdict's column, which sorts by nothing.
    assert service_only == {"gain"}, f"catalog/figures.py offers a sort without a column: {sorted(service_only)}"
