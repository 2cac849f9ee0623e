"""Sessions of people who signed in elsewhere: an opaque id in their browser, everything else here.

Guarantees: an id is found by its hash, and the person's token is encrypted with a key that only the id yields, so that
what lies here opens no session and reveals no token; a session ends at its time, whatever is done in it; their number
is bounded, of one person and of all. Sources: OWASP, Session Management; RFC 5869.
"""

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fleetprof_webui.access.subject import Subject

_MOST_SESSIONS: Final = 10_000
_MOST_OF_ONE: Final = 20
_NONCE_BYTES: Final = 12
_MOST_ID: Final = 64


@dataclass(frozen=True, slots=True)
class _Session:
    subject: Subject
    ends_unix_s: float
    sealed: bytes
    digest: bytes


class Sessions:
    """The sessions of one process; they end with it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._open: OrderedDict[bytes, _Session] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, subject: Subject, token: str, ends_unix_s: float) -> str:
        """A new session; the answer is its id, which nobody has had before."""
        session_id = secrets.token_urlsafe(32)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + AESGCM(_derive(session_id, b"token")).encrypt(nonce, token.encode(), None)
        with self._lock:
            self._drop(subject)
            self._open[_derive(session_id, b"place")] = _Session(subject, ends_unix_s, sealed, _digest(token))
        return session_id

    def find(self, session_id: str) -> Subject | None:
        """The person whose session this is; None where there is none, or where it has ended."""
        session = self._find(session_id)
        return session.subject if session else None

    def read_token(self, session_id: str) -> str | None:
        """The token that the person signed in with."""
        session = self._find(session_id)
        if session is None:
            return None
        nonce, sealed = session.sealed[:_NONCE_BYTES], session.sealed[_NONCE_BYTES:]
        return AESGCM(_derive(session_id, b"token")).decrypt(nonce, sealed, None).decode()

    def end(self, session_id: str) -> Subject | None:
        """Ends it; whose it was."""
        with self._lock:
            session = self._open.pop(_derive(session_id, b"place"), None)
        return session.subject if session else None

    def end_all_of(self, token: str) -> None:
        """Ends each session that was opened with this token."""
        digest = _digest(token)
        with self._lock:
            for place in [place for place, each in self._open.items() if each.digest == digest]:
                del self._open[place]

    def _find(self, session_id: str) -> _Session | None:
        if not session_id or len(session_id) > _MOST_ID:
            return None
        place = _derive(session_id, b"place")
        with self._lock:
            session = self._open.get(place)
            if session is not None and self._clock() >= session.ends_unix_s:
                del self._open[place]
                return None
        return session

    def _drop(self, subject: Subject) -> None:
        """Makes room: those that have ended, then this person's oldest, then the oldest of all."""
        now = self._clock()
        for place in [place for place, each in self._open.items() if now >= each.ends_unix_s]:
            del self._open[place]
        own = [place for place, each in self._open.items() if each.subject.name == subject.name]
        for place in own[: max(0, len(own) - _MOST_OF_ONE + 1)]:
            del self._open[place]
        while len(self._open) >= _MOST_SESSIONS:
            self._open.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _derive(session_id: str, purpose: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=b"fleetprof session " + purpose).derive(session_id.encode())
