"""The amount of an untrusted trace that is read before it is refused.

Guarantees: a reader's memory is bounded by these numbers, whatever the file claims; passing one raises
`LimitExceeded`, whose message names the limit.
"""

from dataclasses import dataclass

from fleetprof_api.errors import FleetprofError


class LimitExceeded(FleetprofError):
    """The input passes a limit and is not read further."""


@dataclass(frozen=True, slots=True)
class TraceLimits:
    """Upper limits of one trace. The defaults hold traces several times larger than the largest seen in the field."""

    decoded_bytes: int = 8 << 30  # after gunzip; a bomb ends here
    events: int = 100_000_000  # decoded, kept or not
    kept_rows: int = 24_000_000  # 45 bytes each in columns
    name_bytes: int = 256 << 20  # distinct names together
    event_bytes: int = 16 << 20  # one event, so also one string, one number, one nesting
    lost_events: int = 20_000  # without a findable end, so each costs a search
    metadata_bytes: int = 64 << 20  # everything around the list of events
    cpu_s: float = 60.0  # to read and measure it (`capture.cpu_limit`),
    cpu_s_per_mib: float = 2.0  # and this for each MiB as it is stored: honest ones take a tenth of it


def refuse(what: str, limit: int, unit: str) -> LimitExceeded:
    """The error for a passed limit, worded for people."""
    return LimitExceeded(f"{what} passes the limit of {limit:,} {unit}; it was not read further")
