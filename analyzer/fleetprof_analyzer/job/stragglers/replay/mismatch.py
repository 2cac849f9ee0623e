"""Why operations of different ranks cannot be matched.

Guarantees: frozen; holds no sentence.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why operations cannot be matched; `matched_percent` of them have their partners."""

    kind: Literal["no_common_iteration", "groups_not_known", "few_partners"]
    matched_percent: float = 0.0
