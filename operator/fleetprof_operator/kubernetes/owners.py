"""Does a pod belong to a workload? Follows owner references upwards, for kinds without a label of their own.

Reads only metadata, only of owners, each owner once. A controller whose objects own the pods directly (StatefulSet) is
known without any read.

Guarantees: bounded depth; cycles end; an owner that is gone belongs to nobody; a right that is missing is a sentence
that names it.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from fleetprof_api.errors import FleetprofError
from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_api.request import WorkloadReference

from fleetprof_operator.kubernetes.cluster import Cluster, Json

MAX_DEPTH: Final = 8
_REFUSED_S: Final = 30.0


class CannotFollow(FleetprofError):
    """An owner cannot be read; the message says which right or kind is missing."""


class Owners:
    """The owners of one namespace's objects, as far as they were asked for."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._parents: dict[str, Sequence[Json]] = {}  # an owner's uid → its own owner references
        self._plurals: dict[str, Mapping[str, str]] = {}  # API version → kind → resource name
        self._refused: dict[str, tuple[CannotFollow, float]] = {}  # an owner's uid → why, and until when that stands

    async def lead_to(self, references: Sequence[Json], target: WorkloadReference) -> bool:
        """Tells whether these owner references, or those of the owners, name the target.

        Raises CannotFollow, ApiUnreachable.
        """
        seen: set[str] = set()
        level = list(references)
        for _ in range(MAX_DEPTH):
            if any(_is(reference, target) for reference in level):
                return True
            level = [r for r in level if r.get("controller") and r.get("uid") not in seen]
            seen.update(r["uid"] for r in level)
            level = [parent for reference in level for parent in await self._read_parents(reference)]
            if not level:
                break
        return False

    async def _read_parents(self, reference: Json) -> Sequence[Json]:
        uid = reference["uid"]
        if uid not in self._parents:
            refusal, until = self._refused.get(uid, (None, 0.0))
            if refusal is not None and time.monotonic() < until:
                raise refusal  # whoever asks, and however many do
            try:
                self._parents[uid] = await self._read(reference)
            except CannotFollow as error:
                self._refused[uid] = error, time.monotonic() + _REFUSED_S
                raise
            self._refused.pop(uid, None)
        return self._parents[uid]

    async def _read(self, reference: Json) -> Sequence[Json]:
        version, kind, name = reference["apiVersion"], reference["kind"], reference["name"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        try:
            if kind not in self._plurals.get(version, {}):  # a kind may be installed later
                known = await self._cluster.get(root)
                self._plurals[version] = {r["kind"]: r["name"] for r in known["resources"] if "/" not in r["name"]}
            resource = self._plurals[version].get(kind)
            if resource is None:
                return []
            path = f"{root}/namespaces/{self._namespace}/{resource}/{name}"
            metadata = (await self._cluster.get(path, metadata_only=True))["metadata"]
        except ApiRefused as refusal:
            if refusal.status == 404:
                return []
            if refusal.status == 403:
                raise CannotFollow(
                    f"the operator may not read {kind} {name} of {version}, which owns pods here: grant it `get` on "
                    "that kind, or name the target by a label selector"
                ) from None
            raise CannotFollow(f"{kind} {name} of {version} cannot be read: {refusal}") from None
        if metadata["uid"] != reference["uid"]:
            return []  # another object of the same name has taken its place
        owners: Sequence[Json] = metadata.get("ownerReferences") or []
        return owners


def _is(reference: Json, target: WorkloadReference) -> bool:
    """Versions of one group are one kind."""
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    wanted = target.api_version.rpartition("/")[0]
    return (group, reference.get("kind"), reference.get("name")) == (wanted, target.kind, target.name)
