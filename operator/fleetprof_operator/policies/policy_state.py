"""One ProfilePolicy as the operator has it: its spec, its log, its status as it should be, its view of each job.

Guarantees: no I/O, time is passed in; a change of the triggers begins their watching anew, and leaves log and budget.
"""

from collections.abc import Mapping
from typing import Final

from fleetprof_api.policy import (
    InvalidPolicy,
    Mode,
    PolicyCapture,
    PolicySpec,
    parse_policy,
)

from fleetprof_operator.kubernetes.cluster import Json
from fleetprof_operator.policies.log import read_log, write_log
from fleetprof_operator.policies.triggers.evaluation import JobEvaluation
from fleetprof_operator.policies.triggers.figures import Job
from fleetprof_operator.policies.triggers.table import WATCHES, make_watch
from fleetprof_operator.policies.triggers.watch import InvalidTrigger
from fleetprof_operator.profilerequests.status import format_time

PATH: Final = "/apis/fleetprof.io/v1alpha1"
PLURAL: Final = "profilepolicies"
_MESSAGE: Final = 2000


class PolicyState:
    """`body` is the object as it was first seen; `update` takes newer ones."""

    def __init__(self, body: Json, now_unix_ns: int) -> None:
        self.metadata: Json = body["metadata"]
        self.log = read_log(body.get("status") or {})
        self.spec: PolicySpec | None = None
        self.problem = ""
        self.is_one_too_many = False  # older ones of its namespace are all that take part
        self.known: Json = body.get("status") or {}
        """The status that the object has, as far as we wrote or read it."""
        self.written_unix_ns = 0
        self.evaluations: dict[Job, JobEvaluation] = {}
        self.uids: dict[str, str] = {}  # of requests, by name, as far as this operator has seen them
        self.document_spec: Json = body["spec"]
        self._read_spec(body)

    @property
    def namespace(self) -> str:
        """The namespace whose jobs it is about."""
        return str(self.metadata["namespace"])

    @property
    def name(self) -> str:
        """The policy's name in its namespace."""
        return str(self.metadata["name"])

    @property
    def age_order(self) -> tuple[str, str]:
        """Sorts by age: the API server's time, then the uid."""
        return str(self.metadata.get("creationTimestamp", "")), str(self.metadata["uid"])

    @property
    def path(self) -> str:
        """Its path in the API, with its namespace."""
        return f"{PATH}/namespaces/{self.namespace}/{PLURAL}/{self.name}"

    def update(self, body: Json, now_unix_ns: int) -> None:
        """The object has changed. Its status is ours: what stands in it is not read again."""
        changed = body["metadata"]["generation"] != self.metadata["generation"]
        self.metadata = body["metadata"]
        self.document_spec = body["spec"]
        if changed:
            self._read_spec(body)

    def is_remembered(self, capture: PolicyCapture, jobs: Mapping[str, object]) -> bool:
        """Tells whether a trigger needs a capture beyond its day: one that fires once in a run, of a job there."""
        triggers = self.spec.triggers if self.spec is not None else []
        once = {trigger.name for trigger in triggers if WATCHES[trigger.type].fires_once_in_a_run}
        return capture.trigger in once and capture.workload in jobs

    def build_status(self, now_unix_ns: int) -> Json:
        """The status that the object should have."""
        status = write_log(self.log)
        generation = self.metadata["generation"]
        status["observedGeneration"] = generation
        if self.problem:
            facts = {"Ready": ("False", "Invalid", self.problem), "Stalled": ("True", "Invalid", self.problem)}
        elif self.is_one_too_many:
            sentence = "the namespace has too many policies, of which the oldest take part; delete some"
            facts = {"Ready": ("False", "TooManyPolicies", sentence), "Stalled": ("True", "TooManyPolicies", sentence)}
        elif self.spec is not None and self.spec.mode is Mode.DRY_RUN:
            facts = {"Ready": ("True", "DryRun", "triggers are watched for, captures are only recorded")}
        else:
            facts = {"Ready": ("True", "Watching", "triggers are watched for")}
        before = {c["type"]: c for c in self.known.get("conditions") or []}
        status["conditions"] = [
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": message[:_MESSAGE],
                "observedGeneration": generation,
                "lastTransitionTime": before[kind]["lastTransitionTime"]
                if before.get(kind, {}).get("status") == value
                else format_time(now_unix_ns),
            }
            for kind, (value, reason, message) in facts.items()
        ]
        return status

    def _read_spec(self, body: Json) -> None:
        old = self.spec
        self.spec, self.problem = None, ""
        named = {"name": body["metadata"]["name"], "namespace": body["metadata"]["namespace"]}
        try:
            spec = parse_policy(
                {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": named, "spec": body["spec"]}
            ).spec
            for trigger in spec.triggers:
                make_watch(trigger)
        except InvalidPolicy as error:
            self.problem = "; ".join(error.problems)
        except InvalidTrigger as error:
            self.problem = f"spec.triggers[]: {error}"
        else:
            self.spec = spec
        if old is None or self.spec is None or old.triggers != self.spec.triggers:
            self.evaluations = {}
