"""Lengths of time as kubectl takes and prints them: `40s`, `1h30m`, `500ms`.

Measured figures of a job, such as an iteration's time, are no such lengths: they have a unit and decimals.

Guarantees: pure; a plain number is seconds; what is printed can be given back. Sources: Go's time.ParseDuration,
Kubernetes' apimachinery duration.HumanDuration.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:  # `fleetprof run` does without pydantic
    from fleetprof_api.request.part import Part

_S: Final = 10**9
_UNITS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": _S, "m": 60 * _S, "h": 3600 * _S}
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = re.compile(r"\d{1,12}(?:\.\d{1,9})?")
# The least length, in seconds, that is written with this unit, and up to which with the next smaller one beside it.
_HUMAN: Final = ((2 * 86_400, 86_400, "d", 8 * 86_400, 3600, "h"), (3 * 3600, 3600, "h", 8 * 3600, 60, "m"))


def parse_duration(text: str) -> int:
    """Nanoseconds. Raises ValueError with the rule."""
    if _SECONDS.fullmatch(text):
        return int(Fraction(text) * _S)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration, for example 40s, 2m or 1h30m")
    return int(sum(Fraction(number) * _UNITS[unit] for number, unit in parts))


def format_duration(duration_ns: int) -> str:
    """All of it: `15m`, `1h30m`, `500ms`."""
    parts = list(_split(duration_ns))
    return "".join(f"{number}{unit}" for number, unit in parts) or "0s"


def say_duration(duration_ns: int) -> str:
    """About how long, as kubectl says ages: `40s`, `2m5s`, `3h`, `9d`."""
    seconds = max(0, duration_ns) // _S
    for least, size, unit, most, smaller, beside in _HUMAN:
        if seconds >= least:
            rest = seconds % size // smaller if seconds < most else 0
            return f"{seconds // size}{unit}" + (f"{rest}{beside}" if rest else "")
    if seconds < 120:
        return f"{seconds}s"
    rest = seconds % 60 if seconds < 600 else 0
    return f"{seconds // 60}m" + (f"{rest}s" if rest else "")


class Duration(click.ParamType[int]):
    """An option's value in whole multiples of `unit_ns`, within bounds that are in this unit as well."""

    name = "duration"

    def __init__(self, least: int, most: int, unit_ns: int = _S) -> None:
        self._least = least
        self._most = most
        self._unit_ns = unit_ns

    @classmethod
    def of_field(cls, part: "type[Part]", field: str, unit_ns: int = _S) -> "Duration":
        """With the bounds of a request's field."""
        rules = part.model_fields[field].metadata
        (least,) = (rule.ge for rule in rules if hasattr(rule, "ge"))
        (most,) = (rule.le for rule in rules if hasattr(rule, "le"))
        return cls(least, most, unit_ns)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of units. Fails with the rule."""
        if isinstance(value, int):
            return value
        try:
            duration_ns = parse_duration(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        if not self._least * self._unit_ns <= duration_ns <= self._most * self._unit_ns:
            least, most = (format_duration(bound * self._unit_ns) for bound in (self._least, self._most))
            self.fail(f"{value} is not in the range {least} to {most}.", param, ctx)
        if duration_ns % self._unit_ns:
            self.fail(f"{value} must be a multiple of {format_duration(self._unit_ns)}.", param, ctx)
        return duration_ns // self._unit_ns


def _split(duration_ns: int) -> Iterator[tuple[int, str]]:
    """Its whole hours, minutes and so on, without zeros."""
    left = duration_ns
    for unit in ("h", "m", "s", "ms", "us", "ns"):
        number, left = divmod(left, _UNITS[unit])
        if number:
            yield number, unit
