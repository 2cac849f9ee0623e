"""Generated jobs with a planted truth: what is seen of each every ten seconds, and which triggers ought to fire.

Each is four hours long. Iteration times are log-normal, activity has noise of its own; phases come at random times.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fleetprof_operator.policies.triggers.figures import Job, JobFigures

SECOND = 10**9
EVERY_S = 10
HOURS = 4
LENGTH_S = HOURS * 3600
LLAMA = Job("team", "batch/v1", "Job", "llama")
RANKS = 8


@dataclass(frozen=True)
class Moment:
    """A moment of a job: `pace` is the length of an iteration (1: as it should be; 0: none is made), `activity` in
    permille, `behind` the share of the lowest rank's activity in permille and which rank that is (-1: any).
    """

    pace: float = 1.0
    activity: float = 850.0
    behind: tuple[int, float] = (-1, 970.0)


Story = Callable[[random.Random], Callable[[int], Moment]]


def healthy(_: random.Random) -> Callable[[int], Moment]:
    return lambda _: Moment()


def idle(draw: random.Random) -> Callable[[int], Moment]:
    """Holds its GPUs and does nothing from some time on."""
    since = draw.randint(600, LENGTH_S // 2)
    return lambda at: Moment(pace=0, activity=0) if at >= since else Moment()


def starved(draw: random.Random) -> Callable[[int], Moment]:
    """Waits for data for most of each iteration, more and less so."""
    share = draw.uniform(0.05, 0.25)
    return lambda _: Moment(pace=1 / share, activity=900 * share * draw.uniform(0.6, 1.4))


def evaluating(draw: random.Random) -> Callable[[int], Moment]:
    """Evaluates for 2 to 13 minutes each hour, with little activity and no optimizer step."""
    length, offset = draw.randint(120, 780), draw.randint(0, 3000)
    return lambda at: Moment(pace=0, activity=200) if (at + offset) % 3600 < length else Moment()


def checkpointing(draw: random.Random) -> Callable[[int], Moment]:
    """Writes a checkpoint for 20 to 180 seconds every half an hour; one iteration takes as long."""
    length, offset = draw.randint(20, 180), draw.randint(0, 1500)
    return lambda at: Moment(pace=0, activity=10) if (at + offset) % 1800 < length else Moment()


def starting_slowly(draw: random.Random) -> Callable[[int], Moment]:
    """Compiles and fills its caches for 3 to 14 minutes."""
    length, pace = draw.randint(180, 840), draw.uniform(2, 6)
    return lambda at: Moment(pace=pace, activity=850 / pace) if at < length else Moment()


def one_slow_rank(draw: random.Random) -> Callable[[int], Moment]:
    """One rank's GPU does 30 to 75 % of its peers' work in the same time."""
    rank, share, since = draw.randrange(RANKS), draw.uniform(300, 750), draw.randint(0, LENGTH_S // 2)
    return lambda at: Moment(pace=1.05, behind=(rank, share)) if at >= since else Moment()


def drifting(draw: random.Random) -> Callable[[int], Moment]:
    """Becomes slower by 18 to 100 %, at once or over an hour."""
    since, slower = draw.randint(1800, LENGTH_S // 2), draw.uniform(0.18, 1.0)
    over = draw.choice([1, 3600])
    return lambda at: Moment(pace=1 + slower * min(1.0, max(0, at - since) / over), activity=800)


def stalling(draw: random.Random) -> Callable[[int], Moment]:
    """Evaluates and writes checkpoints as others do; then one rank hangs, and the others spin in a collective."""
    before, since = checkpointing(draw), draw.randint(1200, LENGTH_S // 2)
    return lambda at: Moment(pace=0, activity=950) if at >= since else before(at)


# name → story, and the triggers that ought to fire
STORIES: dict[str, tuple[Story, frozenset[str]]] = {
    "healthy": (healthy, frozenset()),
    "idle": (idle, frozenset({"low", "stands"})),
    "data-starved": (starved, frozenset({"low"})),
    "evaluation phases": (evaluating, frozenset()),
    "checkpoint pauses": (checkpointing, frozenset()),
    "slow start": (starting_slowly, frozenset()),
    "one slow rank": (one_slow_rank, frozenset({"behind"})),
    "drift": (drifting, frozenset({"drift"})),
    "hung in a collective": (stalling, frozenset({"stands"})),
}


def tell(story: Story, seed: int, *, has_gpu: bool = True) -> Iterator[tuple[int, JobFigures]]:
    """(Unix ns, figures) of one job, from its begin to its end."""
    draw = random.Random(seed)
    moment_at = story(draw)
    iteration_s, noise = draw.uniform(0.2, 3.0), draw.uniform(0.02, 0.15)
    iterations = 0.0
    latest_ns = 0
    for at in range(0, LENGTH_S, EVERY_S):
        moment = moment_at(at)
        if moment.pace:
            taken_s = iteration_s * moment.pace * draw.lognormvariate(0, noise)
            iterations += EVERY_S / taken_s
            latest_ns = int(taken_s * SECOND)
        activity = min(1000.0, max(0.0, draw.gauss(moment.activity, 0.06 * moment.activity)))
        rank, share = moment.behind
        lowest = (rank if rank >= 0 else draw.randrange(RANKS), round(draw.gauss(share, 15)))
        yield (
            (at + 1) * SECOND,
            JobFigures(
                job=LLAMA,
                ranks=RANKS,
                began_unix_ns=SECOND,
                iteration=int(iterations),
                iteration_ns=latest_ns or None,
                activity_permille=round(activity) if has_gpu else None,
                lowest=lowest if has_gpu else None,
            ),
        )
