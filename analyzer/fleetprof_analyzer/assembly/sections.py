"""A fault of a measure over all ranks costs its section, with a reason, and never the report.

Guarantees: whatever a measure raises is told as a problem, except for want of memory.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from fleetprof_api.report.report import Problem

from fleetprof_analyzer.rank.sections import Found
from fleetprof_analyzer.trace.problems import ProblemKind

T = TypeVar("T")

log = logging.getLogger(__name__)


class ReportSections:
    """Runs the measures over all ranks; `problems` are their faults."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def find(self, section: str, measure: Callable[[], T]) -> Found[T]:
        """The findings of `measure`. Raises MemoryError."""
        try:
            return Found((measure(),))
        except MemoryError:
            raise
        except Exception as error:
            log.exception("the %s of the report could not be measured", section)
            message = f"the report's {section}: {type(error).__name__}: {error}"
            self.problems.append(Problem(kind=ProblemKind.ANALYZER_FAULT, message=message[:200]))
            return Found(())
