"""What the bench's sections share: a measured figure beside the named figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured, beside the target or the peer of the same run."""

    section: str
    name: str
    value: str
    target: str = ""
    met: bool | None = None

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def quantile(values: list[float], q: float) -> float:
    """The q-quantile by the nearest rank; `values` must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(q * (len(ordered) - 1))))]
