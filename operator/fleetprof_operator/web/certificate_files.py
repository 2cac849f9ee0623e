"""A server's certificate that somebody else makes and renews, mounted as files by Kubernetes.

Guarantees: a pair that is being replaced, does not fit together or cannot be read leaves the last good one in place and
is logged once.
"""

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# OpenSSL would ask the terminal for the password of an encrypted key.
_NO_PASSWORD: Final = ""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Certificate chain and private key, PEM."""

    certificate_chain: bytes
    private_key: bytes


class CertificateFiles:
    """`tls.crt` and `tls.key` of a directory, read again with each call of `load`, from any thread."""

    def __init__(self, directory: Path) -> None:
        self.chain_file = directory / "tls.crt"
        self.key_file = directory / "tls.key"
        self._pair: KeyPair | None = None
        self._trouble = ""

    def load(self) -> KeyPair | None:
        """The latest good pair; None while there has been none."""
        try:
            found = KeyPair(self.chain_file.read_bytes(), self.key_file.read_bytes())
            if found != self._pair:
                # Refuses what does not fit together, which clients would find out with each connection.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.chain_file, self.key_file, _NO_PASSWORD)
                self._pair = found
            self._trouble = ""
        except (OSError, ValueError) as problem:
            if str(problem) != self._trouble:
                log.warning("the certificate %s cannot be used: %s", self.chain_file, problem)
            self._trouble = str(problem)
        return self._pair
