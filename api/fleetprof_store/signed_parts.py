"""The directory store's grants: a URL that permits one PUT of known bytes, and says so by itself.

Guarantees: key, upload, part, size, SHA-256 and expiry are under an HMAC-SHA-256; who has the secret checks a URL
without memory of the grant.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from fleetprof_api.errors import FleetprofError

URL_PATH: Final = "/objects/"


class GrantRefused(FleetprofError):
    """A PUT that no grant covers; the message is for the one who sent it."""


@dataclass(frozen=True, slots=True)
class SignedPart:
    """The permission of a grant's URL: these bytes, as this part of this upload."""

    key: str
    upload_id: str
    number: int
    size_bytes: int
    sha256: bytes


class PartSigner:
    """Makes and checks the URLs of parts. `secret` has at least 16 bytes, else ValueError."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < 16:
            raise ValueError(f"secret must be at least 16 bytes, got {len(secret)}")
        self._secret = secret

    def address(self, part: SignedPart, expires_s: int) -> str:
        """Path and query of the PUT, behind the address of the server; `expires_s` in Unix seconds."""
        query = {
            "upload": part.upload_id,
            "part": str(part.number),
            "size": str(part.size_bytes),
            "sha256": part.sha256.hex(),
            "expires": str(expires_s),
            "signature": self._sign(part, expires_s),
        }
        return f"{URL_PATH}{quote(part.key)}?{urlencode(query)}"

    def check(self, key: str, query: Mapping[str, str], now_unix_ns: int) -> SignedPart:
        """Reads the permission in the URL of a PUT. Raises GrantRefused when it was not signed here or has expired."""
        try:
            part = SignedPart(
                key, query["upload"], int(query["part"]), int(query["size"]), bytes.fromhex(query["sha256"])
            )
            expires_s = int(query["expires"])
            signature = query["signature"]
        except (KeyError, ValueError):
            raise GrantRefused("this is no pre-signed URL of ours") from None
        if not hmac.compare_digest(self._sign(part, expires_s).encode(), signature.encode()):
            raise GrantRefused("the signature does not belong to this URL")
        if now_unix_ns >= expires_s * 1_000_000_000:
            raise GrantRefused("this pre-signed URL has expired; ask for a new one")
        return part

    def _sign(self, part: SignedPart, expires_s: int) -> str:
        # No field can hold the separator: keys and ids are checked, the rest are numbers.
        text = "\n".join(
            ["PUT", part.key, part.upload_id, str(part.number), str(part.size_bytes), part.sha256.hex(), str(expires_s)]
        )
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()
