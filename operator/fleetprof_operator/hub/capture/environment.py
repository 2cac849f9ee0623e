"""The hub as a capture needs it: the store, the sidecars, bounds, time and the analyzer; it knows nothing else.

Guarantees: one object for all captures of a hub, never changed.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from fleetprof_api.ledger import RecordingEstimate
from fleetprof_api.request import Analysis, ProfileRequest

from fleetprof_operator.hub.planning.places import NoPlace
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.planning.resolution import FoundSidecars, Resolution, find_sidecars, resolve
from fleetprof_operator.hub.planning.target_pods import FindPods, TargetPods
from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRegistry
from fleetprof_operator.hub.stack_questions import StackQuestions
from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.hub.storage.workload_costs import WorkloadRecords


@dataclass(frozen=True, slots=True)
class AnalysisOrder:
    """A report to be made: `ranks` of the capture are in the store; `analysis` is what its request says about it."""

    namespace: str
    uid: str
    name: str
    ranks: int
    analysis: Analysis | None


Analyze = Callable[[AnalysisOrder], Awaitable[None]]  # raises when it cannot


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEnvironment:
    """The parts of a hub that a capture needs."""

    calls: StoreCalls
    registry: SidecarRegistry
    settings: HubSettings
    clock: Callable[[], int]
    analyze: Analyze | None
    find_pods: FindPods | None  # None: sidecars say what they belong to
    estimate: Callable[[str, str, Collection[str]], RecordingEstimate | None]  # of a namespace, a target, its collect
    records: WorkloadRecords
    questions: StackQuestions
    find_holder: Callable[[Sequence[RankTarget]], str]  # which unfinished request holds one of these, as a sentence
    find_earlier: Callable[[str, Sequence[RankTarget]], Sequence[str]]  # whom a request's uid lets go first there
    claim_place: Callable[[str, int], NoPlace | None]  # for a request's uid, at this time

    def pods_of(self, uid: str) -> TargetPods | None:
        """The pods of a request; None where nobody tells them."""
        return None if self.find_pods is None else self.find_pods(uid)

    def resolve(
        self, request: ProfileRequest, namespace: str, uid: str, *, without_missing: bool = False
    ) -> Resolution:
        """The processes of a request as of now; `without_missing`: those that are there."""
        return resolve(
            request.spec,
            namespace,
            self.registry.list_of(namespace),
            self.clock(),
            request.target_text(),
            self.pods_of(uid),
            without_missing=without_missing,
        )

    def find_sidecars(self, request: ProfileRequest, namespace: str, uid: str) -> FoundSidecars:
        """The sidecars of a request as of now."""
        known = self.registry.list_of(namespace)
        return find_sidecars(request.spec, namespace, known, request.target_text(), self.pods_of(uid))
