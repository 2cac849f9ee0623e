"""A certificate that somebody else makes and renews (cert-manager), mounted as files.

Guarantees: a pair that is being replaced, or cannot be read, leaves the last one in place.
"""

import logging
from pathlib import Path

import grpc

from fleetprof_operator.hub.server import ServerTls

log = logging.getLogger(__name__)


class MountedCertificate:
    """`tls.crt` and `tls.key` of a directory. Raises OSError when they are not there at the start."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._last = self._read()

    def current(self) -> ServerTls:
        """The pair to serve with now; callable from any thread."""
        try:
            found = self._read()
            if found != self._last:
                # Refuses what does not fit together, which a server would find out with each connection.
                grpc.ssl_server_credentials([(found.private_key, found.certificate_chain)])
                self._last = found
        except (OSError, ValueError) as problem:
            log.warning("the certificate in %s cannot be used: %s", self._directory, problem)
        return self._last

    def _read(self) -> ServerTls:
        return ServerTls(
            certificate_chain=(self._directory / "tls.crt").read_bytes(),
            private_key=(self._directory / "tls.key").read_bytes(),
        )
