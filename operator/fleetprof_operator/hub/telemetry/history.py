"""The telemetry of the last day, workload by workload, in steps of five minutes.

Guarantees: pure, time is passed in; bounded: MOST_WORKLOADS workloads of POINTS numbers of four bytes for each of
`IN_HISTORY`, 4 MiB in all, and when they are taken the namespace with the most gives way; a point is the mean of the
looks of its step; a workload that told nothing for a day is forgotten.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Final

from fleetprof_api.telemetry.figures import WorkloadFigures
from fleetprof_api.telemetry.history import POINTS, STEP_NS, NamespaceDay, WorkloadDay
from fleetprof_api.telemetry.measures import IN_HISTORY

from fleetprof_operator.hub.telemetry.board import Key
from fleetprof_operator.hub.telemetry.exposition import MOST_WORKLOADS

_DIGITS: Final = 4  # significant ones: what a picture of a day shows, in a third of the bytes


@dataclass(slots=True)
class _Row:
    """A measure's points, the last for the step that runs, and how many looks that has had."""

    points: "array[float]" = field(default_factory=lambda: array("f", [nan]) * POINTS)
    looks: int = 0

    def add(self, value: float) -> None:
        self.looks += 1
        before = self.points[-1] if self.looks > 1 else 0.0
        self.points[-1] = before + (value - before) / self.looks

    def move(self, steps: int) -> None:
        steps = min(steps, POINTS)
        del self.points[:steps]
        self.points.extend([nan] * steps)
        self.looks = 0

    @property
    def is_empty(self) -> bool:
        return all(isnan(point) for point in self.points)


class TelemetryHistory:
    """The last day of all workloads. `changed` are the namespaces with points that no document has yet."""

    def __init__(self) -> None:
        self._rows: dict[Key, dict[str, _Row]] = {}
        self._end_unix_ns = 0  # of the step that runs
        self.changed: set[str] = set()

    def take(self, workloads: Iterable[WorkloadFigures], now_unix_ns: int) -> None:
        """A look at what each workload does now, the largest first."""
        self._move(now_unix_ns)
        for one in workloads:
            key = one.namespace, one.kind, one.name
            rows = self._rows.get(key)
            if rows is None:
                if len(self._rows) >= MOST_WORKLOADS and not self._make_room(one.namespace):
                    continue
                rows = {}
            else:
                del self._rows[key]
            self._rows[key] = rows  # behind all others: the first told something longest ago
            for measure in IN_HISTORY:
                if (figure := one.figures.get(measure)) is not None:
                    rows.setdefault(measure, _Row()).add(figure.mean)
            self.changed.add(one.namespace)

    @property
    def kept_bytes(self) -> int:
        """The bytes that it keeps, names apart."""
        return sum(len(rows) for rows in self._rows.values()) * POINTS * 4

    def write(self, namespace: str) -> NamespaceDay:
        """The day of a namespace, to be stored; from now on it counts as unchanged."""
        self.changed.discard(namespace)
        days = [
            WorkloadDay(kind, name, {measure: _list_points(row.points) for measure, row in rows.items()})
            for (where, kind, name), rows in self._rows.items()
            if where == namespace
        ]
        return NamespaceDay(self._end_unix_ns, days)

    def restore(self, namespace: str, day: NamespaceDay, now_unix_ns: int) -> None:
        """Restores what an earlier hub wrote, where nothing is known yet."""
        self._move(now_unix_ns)
        missed = (self._end_unix_ns - day.end_unix_ns) // STEP_NS
        for one in day.workloads:
            key = namespace, one.kind, one.name
            if not 0 <= missed < POINTS or key in self._rows:
                continue
            if len(self._rows) >= MOST_WORKLOADS and not self._make_room(namespace):
                continue
            rows = self._rows[key] = {measure: _Row() for measure in one.values if measure in IN_HISTORY}
            for measure, row in rows.items():
                values = [nan if point is None else point for point in one.values[measure]]
                row.points[POINTS - len(values) :] = array("f", values)
                if missed:
                    row.move(missed)
                elif values and not isnan(values[-1]):
                    row.looks = 1

    def _make_room(self, namespace: str) -> bool:
        """Forgets a workload of the namespace that has the most, where that has more than this one would."""
        counts = Counter(key[0] for key in self._rows)
        greediest, count = counts.most_common(1)[0]
        if count <= counts[namespace] + 1:
            return False
        del self._rows[next(key for key in self._rows if key[0] == greediest)]
        self.changed.add(greediest)
        return True

    def _move(self, now_unix_ns: int) -> None:
        end_unix_ns = (now_unix_ns // STEP_NS + 1) * STEP_NS
        steps = (end_unix_ns - self._end_unix_ns) // STEP_NS
        if steps <= 0:
            return
        self._end_unix_ns = end_unix_ns
        for key, rows in list(self._rows.items()):
            for row in rows.values():
                row.move(steps)
            if all(row.is_empty for row in rows.values()):
                del self._rows[key]
                self.changed.add(key[0])


def _list_points(points: "array[float]") -> list[float | None]:
    """Without what is before the first point."""
    first = next((at for at, point in enumerate(points) if not isnan(point)), POINTS)
    return [None if isnan(point) else float(f"{point:.{_DIGITS}g}") for point in points[first:]]
