"""A fault of one measure costs its section, with a reason, and never its rank or the report.

Guarantees: whatever a measure raises is told as a problem, except for want of memory; what needs a lost section is lost
with it, and silently.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from fleetprof_api.errors import FleetprofError

from fleetprof_analyzer.trace.problems import ProblemKind, Problems

T = TypeVar("T")

log = logging.getLogger(__name__)


class RankSection(StrEnum):
    """A section of a rank's measures; the value is its name in `Rank.lost`."""

    WINDOW = "recorded window"
    CALLS = "launch calls"
    DEVICES = "devices"
    ITERATIONS = "iterations"
    TIME = "time"
    IDLE = "idle time"
    IDLE_PLACES = "places of idle time"
    CODE = "lines of code"
    LOADING = "data loading"
    STAGES = "stages"
    LAUNCHES = "launches"
    COPIES = "copies"
    KERNELS = "kernels"
    OPERATORS = "operators that launch"
    COMMUNICATION = "communication"
    OPERATIONS = "waits between ranks"
    COURSE = "course of the iterations"
    ENERGY = "energy"
    MEMORY = "memory"
    CORES = "cores"
    FLOPS = "floating-point operations"
    CAUSES = "known causes"
    SAMPLES = "samples"
    MODULES = "modules"
    STEP_TIMES = "step times"


class SectionLost(FleetprofError):
    """The section that was asked for is lost."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """The result of a measure; nothing where it failed."""

    _values: tuple[T, ...]

    @property
    def value(self) -> T:
        """The result. Raises SectionLost."""
        for value in self._values:
            return value
        raise SectionLost

    def otherwise(self, lost: T) -> T:
        """The result, or `lost`."""
        return self._values[0] if self._values else lost

    def or_none(self) -> T | None:
        """The result, or None."""
        return self._values[0] if self._values else None


class Sections:
    """Runs the measures of one rank, and remembers which sections are lost."""

    def __init__(self, source: str, problems: Problems) -> None:
        self._source, self._problems = source, problems
        self._lost: set[RankSection] = set()

    @property
    def lost(self) -> list[str]:
        """The names of the lost sections, in the order of `RankSection`."""
        return [section.value for section in RankSection if section in self._lost]

    def find(self, section: RankSection, measure: Callable[[], T]) -> Found[T]:
        """The findings of `measure`. Raises MemoryError."""
        try:
            return Found((measure(),))
        except MemoryError:
            raise
        except SectionLost:
            pass
        except Exception as error:
            log.exception("the %s of %s could not be measured", section.value, self._source)
            self._problems.add(ProblemKind.ANALYZER_FAULT, f"its {section.value}: {type(error).__name__}: {error}")
        self._lost.add(section)
        return Found(())
