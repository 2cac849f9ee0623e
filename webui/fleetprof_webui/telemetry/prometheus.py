"""The last day of telemetry, as a Prometheus has it: more of it than the hub keeps, and of more workloads.

Guarantees: one question for all measures of a workload, in the points of the stored history; names in it are quoted, so
that no workload's name changes the question; the administrator's matchers are in every one, so that of several
clusters' figures one cluster's are read; answers are read within limits of size and time; one that was silent is left
alone for a while; no redirect is followed.
Source: Prometheus' HTTP API, https://prometheus.io/docs/prometheus/latest/querying/api/.
"""

import json
import math
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
from fleetprof_api.telemetry.history import POINTS, STEP_NS
from fleetprof_api.telemetry.measures import IN_HISTORY

_CALL_S: Final = 10.0
_LEFT_ALONE_S: Final = 30.0
_MOST_BYTES: Final = 4 << 20
_MOST_SAID: Final = 300
_STEP_S: Final = STEP_NS // 10**9
_MATCHERS: Final = re.compile(r'\s*[a-zA-Z_]\w*\s*(=|!=|=~|!~)\s*"([^"\\\n]|\\.)*"\s*')


class PrometheusFailed(Exception):
    """It gave no answer that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """Where it is. `matchers`: of PromQL, by commas, such as cluster="a"."""

    url: str
    matchers: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None


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
        end_s = end_unix_ns // 10**9
        answer = self._ask(
            query=make_query(namespace, kind, name, self._settings.matchers),
            start=str(end_s - (POINTS - 1) * _STEP_S),
            end=str(end_s),
            step=str(_STEP_S),
        )
        found: dict[str, list[float | None]] = {}
        for series in answer.data.result:
            points: list[float | None] = [None] * POINTS
            for at_s, text in series.values:
                place = POINTS - 1 - round((end_s - at_s) / _STEP_S)
                if 0 <= place < POINTS:
                    points[place] = _read_number(text)
            found[series.metric.get("measure", "")] = points
        return {measure: found[measure] for measure in IN_HISTORY if measure in found}

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
