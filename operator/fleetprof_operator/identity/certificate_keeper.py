"""Keeps a Secret filled with certificates of our own: the hub's, or the webhook's, which the API server is to trust.

Needs `get` and `patch` on that one Secret, and for the webhook's on that one MutatingWebhookConfiguration. The operator
keeps the hub's; the webhook's is kept by an identity that does nothing else (`identity.main`).
Guarantees: whoever else writes meanwhile, nobody's certificates are overwritten by older ones (each write names the
version that it changes); what is good is not written. A failure is logged and tried again; the last good pair serves.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_operator.hub.server import ServerTls
from fleetprof_operator.identity.certificates import Certificates, join_authorities, renew_certificates
from fleetprof_operator.kubernetes.cluster import Cluster

LOOK_EVERY_S: Final = 3600.0
_AGAIN_AFTER_S: Final = 5.0
_TRIES: Final = 5
HAND_OVER: Final = timedelta(hours=1)
"""So long the API server trusts what it trusted before as well: the webhook's pods are replaced meanwhile."""
_KEYS: Final = {"ca_crt": "ca.crt", "ca_key": "ca.key", "tls_crt": "tls.crt", "tls_key": "tls.key"}
_CONFLICT: Final = 409

log = logging.getLogger(__name__)


class CertificateKeeper:
    """The Secret `secret` of `namespace`, good for `names`. `webhook_configuration` "": nobody calls a webhook."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        secret: str,
        names: Sequence[str],
        webhook_configuration: str = "",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not names:
            raise ValueError("a certificate needs a name at least")
        self._cluster = cluster
        self._secret = f"/api/v1/namespaces/{namespace}/secrets/{secret}"
        self._configuration = (
            f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{webhook_configuration}"
            if webhook_configuration
            else ""
        )
        self._names = list(names)
        self._now = now
        self._serving: ServerTls | None = None
        self._handed_over = datetime.min.replace(tzinfo=UTC)
        self.trouble = "starting"
        """The reason why the certificates are not as they should be; "" when they are."""

    def current(self) -> ServerTls:
        """The pair to serve with now; callable from any thread, after the first `ensure`."""
        if self._serving is None:
            raise RuntimeError("no certificate yet: ensure() comes first")
        return self._serving

    async def ensure(self) -> None:
        """Makes what is missing or due. Raises ApiRefused, ApiUnreachable."""
        certificates = await self._ensure_secret()
        self._serving = ServerTls(certificate_chain=certificates.tls_crt, private_key=certificates.tls_key)
        if self._configuration:
            await self._ensure_bundle(certificates.ca_crt)
        self.trouble = ""

    async def run(self) -> None:
        """Ensures again and again, until cancelled. Raises nothing else."""
        while True:
            try:
                await self.ensure()
                pause_s = LOOK_EVERY_S
            except (ApiRefused, ApiUnreachable) as problem:
                self.trouble = f"the certificates cannot be kept: {problem}"
                log.warning("%s", self.trouble)
                pause_s = _AGAIN_AFTER_S
            await asyncio.sleep(pause_s)

    async def _ensure_secret(self) -> Certificates:
        for _ in range(_TRIES):
            document = await self._cluster.get(self._secret)
            found = _read(document.get("data") or {})
            wanted = renew_certificates(found, self._names, self._now())
            if wanted == found:
                return found
            data = {key: base64.b64encode(getattr(wanted, field)).decode() for field, key in _KEYS.items()}
            if await self._write(self._secret, document, {"data": data}):
                log.info("wrote a new certificate for %s", ", ".join(self._names))
                return wanted
        raise ApiUnreachable(f"{self._secret} is changed by somebody else all the time")

    async def _ensure_bundle(self, authority: bytes) -> None:
        for _ in range(_TRIES):
            document = await self._cluster.get(self._configuration)
            webhooks = document.get("webhooks") or []
            bundle = base64.b64encode(self._join(authority, webhooks)).decode()
            if all(webhook["clientConfig"].get("caBundle") == bundle for webhook in webhooks):
                return
            trusting = [
                {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": bundle}} for webhook in webhooks
            ]
            if await self._write(self._configuration, document, {"webhooks": trusting}):
                log.info("the API server trusts the webhook's certificate now")
                return
        raise ApiUnreachable(f"{self._configuration} is changed by somebody else all the time")

    def _join(self, authority: bytes, webhooks: Sequence[dict[str, Any]]) -> bytes:
        """The authority, and for a while those that the API server trusts now."""
        found = {webhook["clientConfig"].get("caBundle") or "" for webhook in webhooks}
        trusted = join_authorities(authority, *(_decode(text) for text in sorted(found)), now=self._now())
        if trusted == authority:
            return authority
        if self._handed_over == datetime.min.replace(tzinfo=UTC):
            self._handed_over = self._now() + HAND_OVER
        return trusted if self._now() < self._handed_over else authority

    async def _write(self, path: str, document: dict[str, Any], change: dict[str, Any]) -> bool:
        """False when somebody was faster."""
        version = {"metadata": {"resourceVersion": document["metadata"]["resourceVersion"]}}
        try:
            await self._cluster.merge(path, {**version, **change})
        except ApiRefused as refused:
            if refused.status == _CONFLICT:
                return False
            raise
        return True


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def _read(data: dict[str, str]) -> Certificates:
    try:
        return Certificates(**{field: base64.b64decode(data.get(key) or "") for field, key in _KEYS.items()})
    except (binascii.Error, ValueError):
        return Certificates()
