"""The last day of telemetry, as a Prometheus has it: more of it than the hub keeps, and of more workloads.

Guarantees: one query for all measures of a workload, in the points of the stored history, and two for all workloads of
the fleet; names are quoted, so that no workload's name changes a query; the administrator's matchers are in every
query, so that the figures of one cluster are read where Prometheus has several; answers are read within limits of size
and time; a Prometheus that was silent is left alone for a while; no redirect is followed.
"""

import json
import math
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
from fleetprof_api.errors import FleetprofError
from fleetprof_api.telemetry.history import POINTS, STEP_NS
from fleetprof_api.telemetry.measures import IN_HISTORY

_CALL_S: Final = 10.0
_LEFT_ALONE_S: Final = 30.0
_MOST_BYTES: Final = 4 << 20
_MOST_SAID: Final = 300
_STEP_S: Final = STEP_NS // 10**9
_RECENT: Final = 3
"""A figure of now is the last of so many steps, a quarter of an hour."""
RATE_STEP_NS: Final = 6 * STEP_NS
_RATES: Final = POINTS // 6
_RATE: Final = "iterations_per_second"
_PRESENCE: Final = "ranks"
"""A workload that tells anything at all has this one, which has no aggregation."""
_NOW: Final = (
    *("gpu_sm_active_ratio", "gpu_busy_ratio", "iteration_seconds", "gpu_power_watts", "host_cpu_busy_ratio"),
    _RATE,
    _PRESENCE,
)
_MATCHERS: Final = re.compile(r'\s*[a-zA-Z_]\w*\s*(=|!=|=~|!~)\s*"([^"\\\n]|\\.)*"\s*')


class PrometheusFailed(FleetprofError):
    """It gave no answer that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """The place of Prometheus. `matchers`: of PromQL, by commas, such as cluster="a"."""

    url: str
    matchers: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None


@dataclass(slots=True)
class FleetWorkload:
    """One that told anything within the day. `now`: measures of the last quarter of an hour; `rates`: its iterations
    per second in steps of RATE_STEP_NS, to the end of the day.
    """

    namespace: str
    kind: str
    name: str
    now: dict[str, float] = field(default_factory=dict)
    rates: list[float | None] = field(default_factory=lambda: [None] * _RATES)


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[_Series] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


class Prometheus:
    """One connection pool; for several threads at once. `token_file` is read anew for each question."""

    def __init__(self, settings: PrometheusSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._silent_until_s = -math.inf
        self._client = httpx2.Client(
            base_url=settings.url.rstrip("/"),
            verify=ssl.create_default_context(cafile=str(settings.ca_file) if settings.ca_file else None),
            timeout=_CALL_S,
            trust_env=False,
            follow_redirects=False,
        )

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def find_day(self, namespace: str, kind: str, name: str, end_unix_ns: int) -> Mapping[str, list[float | None]]:
        """Points of a workload by measure, the last for the step that ends at `end_unix_ns`; `kind` "" is any.

        Raises PrometheusFailed.
        """
        query = make_query(namespace, kind, name, self._settings.matchers)
        found = {
            labels.get("measure", ""): points
            for labels, points in self._ask_points(query, end_unix_ns // 10**9, _STEP_S, POINTS)
        }
        return {measure: found[measure] for measure in IN_HISTORY if measure in found}

    def find_workloads(self, end_unix_ns: int) -> list[FleetWorkload]:
        """All that told anything within the day that ends there. Raises PrometheusFailed."""
        end_s, matchers, rate_s = end_unix_ns // 10**9, self._settings.matchers, RATE_STEP_NS // 10**9
        found: dict[tuple[str, str, str], FleetWorkload] = {}

        def find(labels: Mapping[str, str]) -> FleetWorkload:
            key = (labels.get("namespace", ""), labels.get("kind", ""), labels.get("workload", ""))
            return found.setdefault(key, FleetWorkload(*key))

        of_day = make_fleet_query((_RATE, _PRESENCE), rate_s, matchers)
        for labels, points in self._ask_points(of_day, end_s, rate_s, _RATES):
            workload = find(labels)
            if labels.get("measure") == _RATE:
                workload.rates = points
        for labels, points in self._ask_points(make_fleet_query(_NOW, _STEP_S, matchers), end_s, _STEP_S, _RECENT):
            known = [point for point in points if point is not None]
            if known:
                find(labels).now[labels.get("measure", "")] = known[-1]
        return list(found.values())

    def _ask_points(
        self, query: str, end_s: int, step_s: int, count: int
    ) -> Iterable[tuple[Mapping[str, str], list[float | None]]]:
        """Labels of each series, and its `count` points, of which the last is at `end_s`."""
        answer = self._ask(query=query, start=str(end_s - (count - 1) * step_s), end=str(end_s), step=str(step_s))
        for series in answer.data.result:
            points: list[float | None] = [None] * count
            for at_s, text in series.values:
                place = count - 1 - round((end_s - at_s) / step_s)
                if 0 <= place < count:
                    points[place] = _read_number(text)
            yield series.metric, points

    def _ask(self, **parameters: str) -> _Answer:
        now_s = self._clock()
        if now_s < self._silent_until_s:
            raise PrometheusFailed(
                f"it could not be reached, and is asked again in {self._silent_until_s - now_s:.0f} s"
            )
        headers = {"Authorization": f"Bearer {self._read_token()}"} if self._settings.token_file else {}
        try:
            with self._client.stream("POST", "/api/v1/query_range", data=parameters, headers=headers) as response:
                body = b""
                for part in response.iter_bytes():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise PrometheusFailed(f"it answered with more than {_MOST_BYTES} bytes")
                    if self._clock() - now_s > _CALL_S:
                        raise httpx2.ReadTimeout(f"no whole answer within {_CALL_S:.0f} s")
                status = response.status_code
        except httpx2.HTTPError as error:
            self._silent_until_s = self._clock() + _LEFT_ALONE_S
            raise PrometheusFailed(f"it cannot be reached: {str(error) or type(error).__name__}") from None
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.DecodeError:
            raise PrometheusFailed(f"it answered {status}, and nothing of Prometheus' API") from None
        if answer.status != "success":
            raise PrometheusFailed(f"it answered {status}: {answer.error[:_MOST_SAID]}")
        return answer

    def _read_token(self) -> str:
        assert self._settings.token_file is not None
        try:
            return self._settings.token_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PrometheusFailed(f"its token cannot be read: {error}") from None


def make_query(namespace: str, kind: str, name: str, matchers: str = "") -> str:
    """PromQL for means over each step of a workload's measures, each with its name in the label `measure`.

    Several operators, one after the other, may have told of a workload: their labels are left out.
    """
    chosen: dict[str, Any] = {"namespace": namespace, "workload": name, "aggregation": "mean"}
    if kind:
        chosen["kind"] = kind
    inside = ",".join([*(f"{label}={json.dumps(value)}" for label, value in chosen.items()), *filter(None, [matchers])])
    return " or ".join(
        f'label_replace(avg(avg_over_time(fleetprof_workload_{measure}{{{inside}}}[{_STEP_S}s])), "measure", '
        f'"{measure}", "", "")'
        for measure in IN_HISTORY
    )


def make_fleet_query(measures: Iterable[str], step_s: int, matchers: str = "") -> str:
    """PromQL for means over each step of measures of every workload, as `make_query`."""
    parts = []
    for measure in measures:
        chosen = ["" if measure == _PRESENCE else 'aggregation="mean"', 'workload!=""', matchers]
        mean = f"avg_over_time(fleetprof_workload_{measure}{{{','.join(filter(None, chosen))}}}[{step_s}s])"
        parts.append(f'label_replace(avg by (namespace, kind, workload) ({mean}), "measure", "{measure}", "", "")')
    return " or ".join(parts)


def check_matchers(text: str) -> str:
    """`text`, which is matchers of PromQL by commas. Raises ValueError."""
    rest = text
    while rest:
        found = _MATCHERS.match(rest)
        if found is None or (rest := rest[found.end() :])[:1] not in ("", ","):
            raise ValueError(f'must be matchers of PromQL by commas, such as cluster="a", not {text}')
        rest = rest[1:]
    return text


def _read_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
