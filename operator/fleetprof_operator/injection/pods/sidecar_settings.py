"""The look of an injected sidecar in this installation: image, hub, resources.

Guarantees: values are checked as a whole when they are made; the message names the value and the rule.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from fleetprof_api import __version__
from fleetprof_api.errors import FleetprofError

from fleetprof_operator.injection.pods.quantity import read_quantity

_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?")
_HUB: Final = re.compile(rf"(?P<host>{_HOST.pattern}):(?P<port>[0-9]{{1,5}})")
# name.namespace.svc, with or without the cluster's domain.
_CLUSTER_NAME: Final = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+\.svc(\..+)?")
_SERVICE_IP: Final = re.compile(r"[0-9a-fA-F.:]{0,45}")
_URL: Final = re.compile(r"https?://[^\s?#@/]+(/[^\s?#@]*)?")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MAX_CA_BYTES: Final = 64 << 10
"""Annotations of a pod hold 256 KiB together."""
MIN_MEMORY: Final = 64 << 20


class InvalidSettings(FleetprofError, ValueError):
    """The sidecar cannot be described like this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarResources:
    """Requests and limits of the sidecar, quantities of Kubernetes.

    `guaranteed` is both in a pod of class Guaranteed, and where a LimitRange wants requests and limits close together.
    `storage` limits the ephemeral storage, in pods that limit it already: sockets, traces and spool count to the pod.
    """

    requests: Mapping[str, str] = field(default_factory=lambda: {"cpu": "20m", "memory": "128Mi"})
    limits: Mapping[str, str] = field(default_factory=lambda: {"cpu": "1", "memory": "384Mi"})
    guaranteed: Mapping[str, str] = field(default_factory=lambda: {"cpu": "200m", "memory": "384Mi"})
    storage: str = "8Gi"

    def __post_init__(self) -> None:
        for name in ("requests", "limits", "guaranteed"):
            amounts: Mapping[str, str] = getattr(self, name)
            if set(amounts) != {"cpu", "memory"}:
                raise InvalidSettings(f"{name}: must have cpu and memory and nothing else, got {sorted(amounts)}")
            for resource, amount in amounts.items():
                if not _read(f"{name}.{resource}", amount) > 0:
                    raise InvalidSettings(f"{name}.{resource}: must be more than 0, or the pod's class would change")
        for resource in ("cpu", "memory"):
            if read_quantity(self.requests[resource]) > read_quantity(self.limits[resource]):
                raise InvalidSettings(f"requests.{resource}: is more than limits.{resource}")
        for name in ("limits", "guaranteed"):
            if read_quantity(getattr(self, name)["memory"]) < MIN_MEMORY:
                raise InvalidSettings(f"{name}.memory: must be 64Mi or more; the sidecar needs that")
        _read("storage", self.storage)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionSettings:
    """All that the change of a pod is made from, besides the pod.

    `hub` is HOST:PORT by name, `store_host` the name of the object store ("" where sidecars need none); `hub_ip` and
    `store_ip` are their addresses, for pods that cannot resolve the cluster's names ("" when they are not known). `ca`
    holds PEM certificates to check hub and store with. `run_as_user` None: the image's, or whatever admission gives
    (OpenShift). `dcgm_url` is where sidecars ask the dcgm-exporter of their node, "" for nowhere; in it
    $(FLEETPROF_NODE_IP) is the node's address. `native_sidecars`: the cluster knows them (Kubernetes 1.29).
    """

    image: str
    hub: str
    ca: str
    hub_ip: str = ""
    store_host: str = ""
    store_ip: str = ""
    dcgm_url: str = ""
    image_pull_policy: str = "IfNotPresent"
    run_as_user: int | None = 65532
    native_sidecars: bool = True
    resources: SidecarResources = field(default_factory=SidecarResources)
    version: str = __version__

    def __post_init__(self) -> None:
        if not self.image or any(character.isspace() for character in self.image):
            raise InvalidSettings(f"image: {self.image!r} is not the name of an image")
        match = _HUB.fullmatch(self.hub)
        if match is None or not 0 < int(match["port"]) < 65536:
            raise InvalidSettings(f"hub: {self.hub!r} must be HOST:PORT")
        for name, address in (("hub_ip", self.hub_ip), ("store_ip", self.store_ip)):
            if not _SERVICE_IP.fullmatch(address):
                raise InvalidSettings(f"{name}: {address!r} is not an address")
        if self.store_host and not _HOST.fullmatch(self.store_host):
            raise InvalidSettings(f"store_host: {self.store_host!r} is not the name of a host")
        if self.dcgm_url and not _URL.fullmatch(self.dcgm_url):
            raise InvalidSettings(f"dcgm_url: {self.dcgm_url!r} must be http://HOST:PORT/PATH, or https://")
        if len(self.ca) > MAX_CA_BYTES or "-----BEGIN CERTIFICATE-----" not in self.ca:
            raise InvalidSettings(f"ca: must hold PEM certificates, at most {MAX_CA_BYTES} bytes")
        if "PRIVATE KEY" in self.ca:
            raise InvalidSettings("ca: holds a private key; it would be written into every pod")
        if self.image_pull_policy not in _PULL_POLICIES:
            raise InvalidSettings(f"image_pull_policy: must be one of {', '.join(_PULL_POLICIES)}")
        if self.run_as_user is not None and not 0 < self.run_as_user < 2**31:
            raise InvalidSettings("run_as_user: must be from 1 to 2147483647; root is refused by restricted namespaces")

    @property
    def hub_name(self) -> str:
        """The host of `hub`: the name in its certificate."""
        return self.hub.rpartition(":")[0]


def is_cluster_name(host: str) -> bool:
    """Tells whether the cluster's own DNS alone knows this name."""
    return bool(_CLUSTER_NAME.fullmatch(host))


def _read(name: str, amount: str) -> Decimal:
    try:
        return read_quantity(amount)
    except ValueError:
        raise InvalidSettings(f"{name}: {amount!r} is not a quantity such as 200m or 128Mi") from None
