"""The most that a request may ask of one rank: rules of its fields, and what a sidecar itself refuses to go beyond.

In one place, since both enforce it: the hub for whoever asks, the sidecar for its trainers, in case that a hub is
imitated or taken over. Bounds that an administrator sets lie within these.
"""

from typing import Final

SECOND_NS: Final = 10**9
MOST_ITERATIONS: Final = 100
MOST_WARMUP_ITERATIONS: Final = 100
LONGEST_WINDOW_NS: Final = 60 * SECOND_NS
LONGEST_WINDOW_OF_ALL_RANKS_NS: Final = 10 * SECOND_NS
MOST_LISTED_RANKS: Final = 1024
HIGHEST_RANK: Final = 1_000_000
LEAST_TRACE_BYTES: Final = 1 << 20
MOST_TRACE_BYTES: Final = 1 << 36
MOST_SLOWDOWN_PERCENT: Final = 1000
LONGEST_DEADLINE_NS: Final = 86_400 * SECOND_NS
