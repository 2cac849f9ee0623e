"""Panels and dashboards as ours look: one width, one data source that people choose, lines named by their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef, GridPos

_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${source}")
_WIDTH: Final = 12
_HEIGHT: Final = 8


@dataclass(frozen=True, slots=True)
class Graph:
    """A title, what it answers, a unit of Grafana's, and (PromQL, name of the lines) each."""

    title: str
    description: str
    unit: str
    lines: tuple[tuple[str, str], ...]


def make_dashboard(uid: str, title: str, description: str, chosen: Sequence[str], graphs: Sequence[Graph]) -> str:
    """The JSON of a dashboard. `chosen`: labels of `fleetprof_workload_ranks` whose values people choose, in order."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["fleetprof"])
        .time("now-6h", "now")
        .refresh("1m")
        .readonly()
        .with_variable(dashboard.DatasourceVariable("source").label("Data source").type("prometheus"))
    )
    for at, label in enumerate(chosen):
        known = ",".join(f'{before}="${before}"' for before in chosen[:at])
        query = f"label_values(fleetprof_workload_ranks{{{known}}}, {label})"
        variable = dashboard.QueryVariable(label).label(label.capitalize()).datasource(_SOURCE).query(query)
        made = made.with_variable(variable)
    for at, graph in enumerate(graphs):
        made = made.with_panel(_make_panel(graph, at))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def _make_panel(graph: Graph, at: int) -> timeseries.Panel:
    row, column = divmod(at, 24 // _WIDTH)
    panel = (
        timeseries.Panel()
        .title(graph.title)
        .description(graph.description)
        .unit(graph.unit)
        .datasource(_SOURCE)
        .min(0)
        .grid_pos(GridPos(h=_HEIGHT, w=_WIDTH, x=column * _WIDTH, y=row * _HEIGHT))
    )
    for number, (expression, legend) in enumerate(graph.lines):
        query = prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(chr(ord("A") + number))
        panel = panel.with_target(query)
    return panel
