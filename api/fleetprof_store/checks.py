"""Rules that every store applies to what it is asked, so that all of them refuse the same things in the same words.

Guarantees: a key that passes cannot climb out of a root directory, is valid in S3, and never begins with the dot that
the directory store keeps for itself. Limits are those of S3 multipart uploads (docs.aws.amazon.com, "qfacts").
"""

import re
from collections.abc import Sequence
from typing import Final

from fleetprof_store.base import StoreError, UploadPart

MIN_PART_BYTES: Final = 5 << 20  # of every part but the last
MAX_PART_BYTES: Final = 64 << 20  # ours; S3 would take 5 GiB, a retry of that is too dear
MAX_PARTS: Final = 10_000
MAX_WRITE_BYTES: Final = 512 << 20  # of an object written at once: a report of thousands of ranks
MAX_KEY_CHARACTERS: Final = 900  # S3's limit is 1024, less room for a configured prefix
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


def check_key(key: str) -> str:
    """The key itself. Raises StoreError when it is not a relative path of plain segments."""
    if len(key) > MAX_KEY_CHARACTERS or not all(
        _SEGMENT.fullmatch(segment) and ".." not in segment for segment in key.split("/")
    ):
        raise StoreError(
            f"object key {key[:200]!r} is not usable: segments of A-Z a-z 0-9 . _ - that begin with none of . and -, "
            f"without '..', at most {MAX_KEY_CHARACTERS} characters",
            retryable=False,
        )
    return key


def find_part_problem(parts: Sequence[UploadPart]) -> str:
    """The fault of announced parts, as a sentence; empty when nothing is."""
    if not 1 <= len(parts) <= MAX_PARTS:
        return f"an upload has 1 to {MAX_PARTS} parts, got {len(parts)}"
    for number, part in enumerate(parts, 1):
        smallest = MIN_PART_BYTES if number < len(parts) else 1
        if not smallest <= part.size_bytes <= MAX_PART_BYTES:
            return f"part {number} of {len(parts)} must be {smallest} to {MAX_PART_BYTES} bytes, got {part.size_bytes}"
        if len(part.sha256) != 32:
            return f"part {number} needs a SHA-256 of 32 bytes, got {len(part.sha256)}"
    return ""


def check_parts(parts: Sequence[UploadPart]) -> None:
    """Raises StoreError when the announced parts break a rule."""
    problem = find_part_problem(parts)
    if problem:
        raise StoreError(problem, retryable=False)


def find_write_problem(data: UploadPart) -> str:
    """The fault of an object that is to be written at once, as a sentence; empty when nothing is."""
    if not 0 <= data.size_bytes <= MAX_WRITE_BYTES:
        return f"an object written at once has 0 to {MAX_WRITE_BYTES} bytes, got {data.size_bytes}"
    if len(data.sha256) != 32:
        return f"an object needs a SHA-256 of 32 bytes, got {len(data.sha256)}"
    return ""
