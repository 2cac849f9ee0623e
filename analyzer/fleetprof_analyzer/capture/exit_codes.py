"""The meaning of the exit code of `fleetprof-analyzer`, for the Job's podFailurePolicy; docs/analyzer.md has the table.

Guarantees: a code that another try cannot change is never the code of something that it can.
"""

from enum import IntEnum


class JobExit(IntEnum):
    """One meaning per code. 137 and 143 are the kernel's and Kubernetes': out of memory, and evicted."""

    DONE = 0  # written; what could not be read stands in the report
    FAULT = 1  # our own fault; another try may help
    INVALID = 2  # the command line or FLEETPROF_STORE is wrong
    NOTHING_STORED = 3  # the store holds nothing of this capture
    STORE_REFUSES = 4  # wrong bucket, missing permission, credentials that do not work
    STORE_AWAY = 5  # the store does not answer; another try may help
