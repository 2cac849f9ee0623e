"""The hub's certificate where somebody else makes it (cert-manager), as the hub's server takes it."""

from pathlib import Path

from fleetprof_operator.hub.server import ServerTls
from fleetprof_operator.web.certificate_files import CertificateFiles


class MountedCertificate:
    """`tls.crt` and `tls.key` of a directory. Raises ValueError when there is no usable pair at the start."""

    def __init__(self, directory: Path) -> None:
        self._files = CertificateFiles(directory)
        if self._files.load() is None:
            raise ValueError(f"{directory} must hold tls.crt and tls.key that fit together; the log says what is wrong")

    def current(self) -> ServerTls:
        """The pair to serve with now; callable from any thread."""
        pair = self._files.load()
        assert pair is not None  # there was one at the start
        return ServerTls(certificate_chain=pair.certificate_chain, private_key=pair.private_key)
