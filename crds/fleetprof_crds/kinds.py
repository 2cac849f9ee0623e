"""Our kinds: their types, and what people see of each in a table."""

from dataclasses import dataclass
from typing import Final

from fleetprof_api import policy, request
from fleetprof_api.policy import PolicyStatus, ProfilePolicy
from fleetprof_api.request import ProfileRequest, Status
from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class CustomResourceKind:
    """One of our kinds. A column is name, field and what it says; `wide` ones are shown by `-o wide`."""

    name: str
    plural: str
    short: str
    document: type[BaseModel]
    status: type[BaseModel]
    selectable: tuple[str, ...]
    columns: tuple[tuple[str, str, str], ...]
    wide: tuple[tuple[str, str, str], ...]
    source: str  # the folder of its types
    noun: str  # what the pages call one
    elsewhere: tuple[str, ...] = ()  # beginnings of paths that another page describes


REQUEST: Final = CustomResourceKind(
    name=request.KIND,
    plural="profilerequests",
    short="profreq",
    document=ProfileRequest,
    status=Status,
    selectable=("spec.target.workload.kind", "spec.target.workload.name", "spec.traces", "spec.suspend"),
    columns=(
        ("Target", "status.target", "What is profiled, as kind/name or as a label selector."),
        ("Captured", "status.ranks.captured", "Ranks whose trace is complete."),
        ("Ranks", "status.ranks.targeted", "Ranks that are to be captured."),
        (
            "State",
            'status.conditions[?(@.type=="Succeeded")].reason',
            "How the request stands, which is the reason of its Succeeded condition.",
        ),
        (
            "Queue",
            "status.queuePosition",
            "Place in the queue while it waits for its turn; 1 comes next of those that wait for the same.",
        ),
        ("Age", "metadata.creationTimestamp", "Time since the request was made."),
    ),
    wide=(
        (
            "Busy-Permille",
            "status.headline.busyPermille",
            "Share of the window in which the GPUs were busy, or the hosts where there is none, in permille.",
        ),
        ("Straggler", "status.headline.straggler", "The rank that holds the others back."),
        ("Requester", "status.requester", "Who made the request, by admission's word."),
        ("Report", "status.reportURL", "Where the report is."),
    ),
    source="api/fleetprof_api/request",
    noun="request",
)
POLICY: Final = CustomResourceKind(
    name=policy.KIND,
    plural="profilepolicies",
    short="profpol",
    document=ProfilePolicy,
    status=PolicyStatus,
    selectable=("spec.mode",),
    columns=(
        ("Mode", "spec.mode", "Whether it captures, or only records what it would capture."),
        ("Ready", 'status.conditions[?(@.type=="Ready")].status', "Whether it is watched for."),
        ("Fired", "status.fired", "How often a trigger fired for a job."),
        ("Captured", "status.captured", "How many captures these triggers made."),
        ("Suppressed", "status.suppressed", "How often there was none, for a reason."),
        ("Age", "metadata.creationTimestamp", "Time since the policy was made."),
    ),
    wide=(("Last-Fired", "status.lastFiredTime", "When a trigger fired last."),),
    source="api/fleetprof_api/policy",
    noun="policy",
    elsewhere=("metadata.", "spec.template.spec."),
)
