"""Names the kind of a collective from its metadata, else from the name of its kernel or range.

Guarantees: every name has a kind of `operations.KINDS`; what is not known is "other", which is matched like the rest
but never used to align clocks.
"""

import re
from typing import Final

from fleetprof_analyzer.rank.communication.operations import KINDS

# First match wins; the names are lower case, without `_`.
_RULES: Final = tuple(
    (re.compile(pattern), KINDS.index(kind))
    for pattern, kind in (
        (r"alltoall|a2a|dispatch|combine", "all_to_all"),  # of experts: DeepEP, MoRI, TensorRT-LLM
        (r"reducescatter", "reduce_scatter"),
        (r"allgather", "all_gather"),
        (r"allreduce|crossdevicereduce|oneshot|twoshot", "all_reduce"),
        (r"barrier", "barrier"),
        (r"broadcast|bcast", "broadcast"),
        (r"sendi?recv", "send_receive"),
        (r"scatter", "scatter"),
        (r"gather", "gather"),
        (r"reduce", "reduce"),
        (r"\bsend|:send|isend", "send"),
        (r"\brecv|:recv|irecv|receive", "receive"),
    )
)
_OTHER: Final = KINDS.index("other")


def kind_of(collective_name: str, row_name: str) -> int:
    """The index into KINDS, by the first of the two names that a rule knows; that of `other` where none does."""
    for name in (collective_name, row_name.partition("(")[0]):
        plain = name.lower().replace("_", "")
        if plain:
            for pattern, kind in _RULES:
                if pattern.search(plain):
                    return kind
    return _OTHER
