"""One ProfileRequest, as a user makes, watches and deletes it."""

from dataclasses import dataclass, field
from typing import Any

from fleetprof_api.ledger import Ledger, RankState

from scene.api import Api, Object, wait_until
from scene.store import Bucket

API = "fleetprof.io/v1alpha1"
KIND = "ProfileRequest"
# What else runs on the machine slows the ranks down as well; that guard has tests of its own, with hub and sidecar.
_FOR_A_BUSY_MACHINE: Object = {"canary": "Never", "limits": {"maxSlowdownPercent": 0}}


@dataclass
class JobRequest:
    """A request of one Job's ranks; `spec` adds to or replaces the fields of a capture without a canary or a guard."""

    api: Api
    store: Bucket
    namespace: str
    name: str
    job: str
    spec: Object = field(default_factory=dict)
    uid: str = ""

    def apply(self) -> None:
        """`kubectl apply`."""
        target = {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": self.job}}
        self.api.apply(
            {
                "apiVersion": API,
                "kind": KIND,
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": {"target": target, "window": {"iterations": 5}, **_FOR_A_BUSY_MACHINE, **self.spec},
            }
        )
        self.uid = self.get()["metadata"]["uid"]

    def get(self) -> Object:
        """The object as it is now."""
        found = self.api.get(KIND, self.name, self.namespace, API)
        assert found is not None
        return found

    def await_end(self, patience_s: int = 180) -> None:
        """`kubectl wait` for either end."""
        until = "--for=jsonpath={.status.completionTime}"
        self.api.kubectl(
            "wait",
            until,
            f"profreq/{self.name}",
            "-n",
            self.namespace,
            f"--timeout={patience_s}s",
            timeout_s=patience_s + 30,
        )

    def await_states(self, *states: RankState, ranks: int) -> None:
        """Returns once so many lines of the ledger are in one of the states."""

        def reached() -> bool:
            found = [entry.state for entry in self._ledger_or_empty().entries]
            return sum(state in states for state in found) >= ranks

        wait_until(reached, lambda: f"{states} of {ranks} ranks: {self._ledger_or_empty()}\n{self.describe()}")

    def await_condition(self, kind: str, status: str, reason: str) -> None:
        """Returns once a condition is as told."""
        wait_until(lambda: self.conditions().get(kind) == (status, reason), lambda: f"{kind}: {self.describe()}")

    def delete(self) -> None:
        """`kubectl delete`; returns when it is gone."""
        self.api.kubectl("delete", "profreq", self.name, "-n", self.namespace, "--timeout=150s", timeout_s=180)

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Type → (status, reason)."""
        conditions: list[Any] = self.get().get("status", {}).get("conditions") or []
        return {each["type"]: (each["status"], each["reason"]) for each in conditions}

    def message(self, kind: str = "Succeeded") -> str:
        """The sentence of a condition."""
        conditions: list[Any] = self.get().get("status", {}).get("conditions") or []
        return next((each["message"] for each in conditions if each["type"] == kind), "")

    def outcome(self) -> tuple[str, str]:
        """(status, reason) of Succeeded."""
        return self.conditions()["Succeeded"]

    def ledger(self) -> Ledger:
        """The store's record of every rank."""
        return self.store.ledger(self.namespace, self.uid)

    def states(self) -> dict[int, str]:
        """Rank → state, from the ledger."""
        return {entry.rank: entry.state.value for entry in self.ledger().entries}

    def reasons(self) -> dict[int, str]:
        """Rank → reason of the ranks that failed, from the ledger."""
        return {entry.rank: entry.reason.value for entry in self.ledger().entries if entry.reason}

    def describe(self) -> str:
        """All that is known, for a test that fails."""
        return self.api.kubectl("describe", "profreq", self.name, "-n", self.namespace)

    def _ledger_or_empty(self) -> Ledger:
        if "ledger.json" not in self.store.keys(self.namespace, self.uid):
            return Ledger(uid=self.uid, name=self.name, namespace=self.namespace)
        return self.ledger()
