"""The meaning of the exit code of `fleetprof`, so that scripts need not read text. docs/cli.md holds the same table.

Guarantees: `fleetprof run` is the exception: it ends with the code of the command that it ran.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """One meaning per code, the same for every command."""

    DONE = 0  # what was asked is there: every rank's trace, the report, nothing wrong
    FAILED = 1  # could not do it, for a reason of this machine: a file, a port, a missing program; doctor: found faults
    INVALID = 2  # the command line or the request is wrong; every problem is named
    PARTIAL = 3  # some ranks were captured, others were not, or not the same iterations
    CAPTURE_FAILED = 4  # no rank was captured
    REFUSED = 5  # hub or cluster refused: nothing matches, nothing speaks Kineto, no right, or ranks are being captured
    NO_HUB = 6  # no hub (on Kubernetes: no API server) answers, or it does not accept the token
    REGRESSED = 7  # diff --fail-on-regression: iterations take longer than allowed, and it is more than noise
    NOT_COMPARABLE = 8  # diff: the two cannot be compared; with --fail-on-regression also too little to tell
    INTERRUPTED = 130  # left by Ctrl-C; a capture that is followed by a second one
