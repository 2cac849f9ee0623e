"""The causes of idle time, by the names of the report's fields.

They stand apart from what measures them, so that a program that only shows a report needs no numpy.
"""

from typing import Final

CAUSES: Final = ("data_loading", "synchronization", "launching", "host", "optimizer", "waiting", "unknown")
"""The fields of IdleCauses that add up to the idle time; the others are parts of these."""
