"""One trigger before one job: `observe` takes each moment of the job and gives the detections of that moment.

Guarantees: pure, time is passed in; a job that begins anew gets new watches.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from fleetprof_api.errors import FleetprofError

from fleetprof_operator.policies.triggers.alerts import FiringAlert
from fleetprof_operator.policies.triggers.figures import JobFigures
from fleetprof_operator.policies.triggers.persistence import Persistence

INTERVAL_NS: Final = 30 * 10**9


class InvalidTrigger(FleetprofError, ValueError):
    """The trigger can never fire; the message names the field and says what to write."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A trigger has fired: for what, and what was seen, in a sentence."""

    trigger: str
    occasion: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFigures:
    """The mean figures of 30 seconds; `rate` is iterations per second, `lowest` a rank and its share in permille."""

    activity_permille: float | None = None
    rate: float | None = None
    iteration_ns: float | None = None
    lowest: tuple[int, float] | None = None


@dataclass(frozen=True, slots=True)
class JobMoment:
    """One job now, the interval that ends now, if one does, and the alerts about the job since the last moment."""

    figures: JobFigures
    now_unix_ns: int
    interval: IntervalFigures | None = None
    alerts: Sequence[FiringAlert] = ()


Details = TypeVar("Details")


class Watch(ABC, Generic[Details]):
    """A trigger by its name and the details of its type. Raises InvalidTrigger where it can never fire."""

    fires_once_in_a_run: ClassVar[bool] = False
    """Whether its captures are remembered for as long as the job is there."""
    repeats_after_restart: ClassVar[bool] = False
    """Whether a new operator sees the same occasion again, so that it is no news that it was answered."""

    def __init__(self, name: str, details: Details) -> None:
        self.name = name
        self.details = details

    @classmethod
    def answers_with_stacks(cls, occasion: str) -> bool:
        """Tells whether a request for this occasion asks for stacks, whatever the template says.

        A trace of a job that stands holds nothing.
        """
        return False

    @abstractmethod
    def observe(self, moment: JobMoment) -> Iterator[Detection]:
        """The detections of this moment."""


class LastingWatch(Watch[Details]):
    """A trigger that fires when most intervals of `for_seconds` speak for it (`persistence`)."""

    def __init__(self, name: str, details: Details, for_seconds: int) -> None:
        super().__init__(name, details)
        self.lasting = f"for most of {for_seconds} s"
        self.persistence = Persistence(-(-for_seconds * 10**9 // INTERVAL_NS))

    def observe(self, moment: JobMoment) -> Iterator[Detection]:
        """See Watch."""
        if moment.interval is not None and (cause := self.judge(moment.interval)) is not None:
            yield Detection(self.name, f"{moment.now_unix_ns // 10**9}", cause)

    @abstractmethod
    def judge(self, interval: IntervalFigures) -> str | None:
        """The sentence about what has lasted, once it has; an interval without a figure counts neither way."""
