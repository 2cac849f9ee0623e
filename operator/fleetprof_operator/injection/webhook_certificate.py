"""The webhook's certificate, as Kubernetes mounts it: there after a while, and replaced when it is renewed.

Guarantees: connections that begin after a renewal get the new certificate, others keep theirs; a pair that does not fit
together, or cannot be read, leaves the last good one in place.
"""

import logging
import ssl
from pathlib import Path

from fleetprof_operator.web.certificate_files import CertificateFiles, KeyPair

log = logging.getLogger(__name__)


class WebhookCertificate:
    """`tls.crt` and `tls.key` in a directory; `context` serves with the latest good pair.

    `authority` is the text of the file `hub_ca`: whom sidecars are to trust, which is not who signed our certificate.
    """

    def __init__(self, directory: Path, hub_ca: Path) -> None:
        self._files = CertificateFiles(directory)
        self._hub_ca = hub_ca
        self._served: KeyPair | None = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.authority = ""

    def load(self) -> bool:
        """Reads the files when they have changed; tells whether there is something to serve with."""
        pair = self._files.load()
        try:
            authority = self._hub_ca.read_text()
            if pair is None or not authority:
                return self._served is not None
            if pair != self._served:
                self.context.load_cert_chain(self._files.chain_file, self._files.key_file)
                log.info("serving with %s certificate", "a new" if self._served else "the first")
        except (OSError, ValueError):
            return self._served is not None  # they are being replaced: the next look finds them
        self._served, self.authority = pair, authority
        return True
