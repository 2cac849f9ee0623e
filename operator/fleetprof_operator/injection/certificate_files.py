"""The webhook's certificate, as Kubernetes mounts it: there after a while, and replaced when it is renewed.

Guarantees: connections that begin after a renewal get the new certificate, others keep theirs; a pair that does not fit
together, or cannot be read, leaves the last good one in place.
"""

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Pair:
    certificate: bytes
    key: bytes


class CertificateFiles:
    """`tls.crt` and `tls.key` in a directory; `context` serves with the latest good pair.

    `authority` is the text of the file `hub_ca`: whom sidecars are to trust, which is not who signed our certificate.
    """

    def __init__(self, directory: Path, hub_ca: Path) -> None:
        self._directory = directory
        self._hub_ca = hub_ca
        self._loaded: _Pair | None = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.authority = ""

    def load(self) -> bool:
        """Reads the files when they have changed; tells whether there is something to serve with."""
        try:
            pair = _Pair((self._directory / "tls.crt").read_bytes(), (self._directory / "tls.key").read_bytes())
            authority = self._hub_ca.read_text()
        except (OSError, ValueError):
            return self._loaded is not None
        if not pair.certificate or not pair.key or not authority:
            return self._loaded is not None
        if pair == self._loaded:
            self.authority = authority
            return True
        try:
            # Tried on a context that nobody uses first: a half-loaded pair would break the one in use.
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                context.load_cert_chain(self._directory / "tls.crt", self._directory / "tls.key")
        except (OSError, ssl.SSLError) as problem:
            log.warning("the certificate in %s cannot be used: %s", self._directory, problem)
            return self._loaded is not None
        log.info("serving with %s certificate", "a new" if self._loaded else "the first")
        self._loaded, self.authority = pair, authority
        return True
