"""Facts that forbid a comparison of two reports, or may explain a change by itself, in words.

Guarantees: pure; a part of a sentence each, without a full stop; at most eight values of anything.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_analyzer.comparison.obstacles import (
    CameAndWent,
    Circumstance,
    Differs,
    FewIterations,
    FewShared,
    LeftOut,
    NoIterations,
    Obstacle,
    OtherCollection,
    OtherKind,
    OtherTarget,
    OtherTorch,
    Property,
    RanksNotKnown,
    SameCapture,
    Sampled,
    Truncated,
    WarmingUp,
)
from fleetprof_analyzer.words.ranks import some

_WHERE: Final = {"gpu": "GPUs", "cpu": "CPUs only"}
_PROPERTIES: Final = {
    Property.WORLD_SIZE: "the size of the job",
    Property.DEVICE: "the device",
    Property.DEVICES_PER_RANK: "the number of devices per rank",
    Property.ITERATION_MARKS: "what bounds an iteration",
    Property.STEPS_PER_ITERATION: "optimizer steps per iteration",
}


def say_obstacle(found: Obstacle) -> str:
    """The reason why the reports cannot be compared."""
    match found:
        case NoIterations(side):
            return f"no rank of the report {side} lists an iteration: nothing marks them in its traces"
        case OtherKind(before, after):
            return f"before it ran on {_WHERE[before]}, after on {_WHERE[after]}"
        case RanksNotKnown():
            return "traces do not say which rank they are, and their number differs"
        case FewShared(shared, before, after):
            return (
                f"only {shared} ranks are in both ({before} before, {after} after): "
                "capture the same ranks of a job of the same size"
            )
        case Differs(what, before, after):
            return f"{_PROPERTIES[what]} differs: {some(before)} before, {some(after)} after"
        case OtherCollection(before, after):
            return (
                "the captures recorded different things, which changes what recording costs: "
                f"{_say_collected(before)} before, {_say_collected(after)} after; capture with the same --collect"
            )
        case Sampled(side):
            return f"the traces {side} hold a sample of what ran"


def say_circumstance(found: Circumstance) -> str:
    """A fact that differs besides, or limits the comparison."""
    match found:
        case LeftOut(lacking, ranks):
            return f"left out, since the report {lacking} lacks them: ranks {some(ranks)}"
        case SameCapture():
            return "both are the same capture"
        case OtherTarget(before, after):
            return f"the targets differ: {before} before, {after} after"
        case OtherTorch(before, after):
            return f"PyTorch {some(before)} before, {some(after)} after"
        case WarmingUp(side, iteration):
            return f"the capture {side} begins at iteration {iteration}: the job may still have been warming up"
        case Truncated(side, traces):
            return f"{traces} trace{'s' * (traces > 1)} {side} end in the middle"
        case FewIterations(side, iterations, fewest):
            return f"{iterations} iterations {side}, at least {fewest} are needed for a verdict: capture more"
        case CameAndWent(longer):
            return (
                f"iterations before the captures were {'longer' if longer else 'shorter'} after the change, captured "
                "ones were not: something else that came and went; capture again"
            )


def _say_collected(what: Sequence[str]) -> str:
    return " and ".join(what) or "nothing more"
