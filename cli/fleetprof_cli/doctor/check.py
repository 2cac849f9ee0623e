"""One finding of `doctor`."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

NO_AGENT: Final = "captures start by time, and a plain os.fork() child hangs at sys.exit (docs/limits.md)"


class Verdict(StrEnum):
    """The weight of a check."""

    OK = "ok"
    WARN = "warn"  # works, with the limit that the advice names
    FAIL = "fail"  # a capture cannot work


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: what was looked at, what was found, what to do about it."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""

    def document(self) -> dict[str, Any]:
        """Its item in `doctor -o json`."""
        return asdict(self)
