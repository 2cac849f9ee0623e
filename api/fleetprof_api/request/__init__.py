"""ProfileRequest: one bounded capture, as a user asks for it (`fleetprof.io/v1alpha1`, docs/architecture.md#a-request).

Guarantees: `parse_request` either returns a request in which every rule holds, or raises `InvalidRequest` with *all*
that is wrong, each with the field's path, the rule and the allowed values. These types are the one source of the kind:
the CRD is made of them (crds/), so that the YAML that is applied to Kubernetes and the YAML that `fleetprof capture -f`
takes are the same. pydantic and PyYAML are imported here and nowhere else in the contract, so that the sidecar's image
does without them.
"""

from fleetprof_api.choices import Collect, Traces
from fleetprof_api.request.analysis import Analysis, KernelClass, KernelWork, Resources, read_quantity
from fleetprof_api.request.document import (
    API_VERSION,
    KIND,
    Metadata,
    ProfileRequest,
    load_request,
    parse_request,
)
from fleetprof_api.request.kernel_classes import load_kernel_classes, plain_classes
from fleetprof_api.request.refusal import InvalidRequest
from fleetprof_api.request.spec import (
    CanaryMode,
    Conflict,
    Limits,
    Ranks,
    Recording,
    Redact,
    Spec,
    Storage,
    ThreadSampling,
)
from fleetprof_api.request.status import Condition, FailedRanks, Headline, RankCounts, Status
from fleetprof_api.request.target import LabelRequirement, Selector, Target, WorkloadReference
from fleetprof_api.request.window import Reading, Stacks, Window

__all__ = [
    "API_VERSION",
    "KIND",
    "Analysis",
    "CanaryMode",
    "Collect",
    "Condition",
    "Conflict",
    "FailedRanks",
    "Headline",
    "InvalidRequest",
    "KernelClass",
    "KernelWork",
    "LabelRequirement",
    "Limits",
    "Metadata",
    "ProfileRequest",
    "RankCounts",
    "Ranks",
    "Reading",
    "Recording",
    "Redact",
    "Resources",
    "Selector",
    "Spec",
    "Stacks",
    "Status",
    "Storage",
    "Target",
    "ThreadSampling",
    "Traces",
    "Window",
    "WorkloadReference",
    "load_kernel_classes",
    "load_request",
    "parse_request",
    "plain_classes",
    "read_quantity",
]
