"""A line of the user's code in a report: where a thread was while the host worked, or waited.

Guarantees: part of `report.json` and its schema; the texts come from the training process and are bounded, and nothing
else is known of them.
"""

from typing import Annotated

import msgspec
from msgspec import Meta


class PlaceInCode(msgspec.Struct, kw_only=True, frozen=True):
    """A line of Python. Which frame of a stack it is: docs/measures.md#lines-of-code."""

    file: Annotated[str, Meta(description="as Python names it; the end of a long one")]
    line: Annotated[int, Meta(description="number of the line, from 1", ge=0)]
    function: Annotated[str, Meta(description="qualified name of its function")] = ""
    samples: Annotated[int, Meta(description="samples of the thread here; 0: told by the trace's frames", ge=0)] = 0
    of_samples: Annotated[int, Meta(description="samples of the thread in that time", ge=0)] = 0
