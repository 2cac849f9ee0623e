"""The job has made so many iterations."""

from collections.abc import Iterator
from typing import ClassVar

from fleetprof_api.policy import SteadyStateTrigger

from fleetprof_operator.policies.triggers.watch import Detection, JobMoment, Watch


class SteadyStateWatch(Watch[SteadyStateTrigger]):
    """Fires once in each run, when every rank has reached the iteration."""

    fires_once_in_a_run: ClassVar[bool] = True

    def __init__(self, name: str, details: SteadyStateTrigger) -> None:
        super().__init__(name, details)
        self._is_reached = False

    def observe(self, moment: JobMoment) -> Iterator[Detection]:
        """See Watch."""
        figures, iteration = moment.figures, self.details.iteration
        if self._is_reached or figures.iteration is None or figures.iteration < iteration:
            return
        self._is_reached = True
        cause = f"iteration {iteration} was reached by all {figures.ranks} ranks"
        yield Detection(self.name, f"run-{figures.began_unix_ns // 10**9}", cause)
