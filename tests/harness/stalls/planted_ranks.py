"""Stacks of many ranks as agents tell them: of a job that hangs, and of healthy ones that are slow for a while."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import ProcessStacks, RecordedCollective, ThreadStack

SECOND = 10**9
NOW = 1_790_000_000 * SECOND
TORCH = "/x/site-packages/torch"
Frame = tuple[str, str, int]
MAIN: Frame = ("/job/train.py", "main", 40)
REDUCE: Frame = (f"{TORCH}/distributed/distributed_c10d.py", "all_reduce", 4181)
SLEEPS: Frame = ("/job/model.py", "forward", 12)
SAVES: list[list[Frame]] = [
    [(f"{TORCH}/serialization.py", "write_record", 900), ("/job/train.py", "save", 70)],
    [
        ("/usr/lib/python3.11/threading.py", "wait", 327),
        (f"{TORCH}/distributed/checkpoint/state_dict_saver.py", "save", 100),
        ("/job/train.py", "save", 70),
    ],
]
EVALUATES: list[list[Frame]] = [
    [(f"{TORCH}/nn/modules/linear.py", "forward", 125), ("/job/train.py", "evaluate", 80)],
    [(f"{TORCH}/nn/functional.py", "cross_entropy", 3500), ("/job/train.py", "evaluate", 81)],
]
COMPILES: list[list[Frame]] = [
    [(f"{TORCH}/_inductor/compile_fx.py", "compile_fx", 700), MAIN],
    [("/usr/lib/python3.11/threading.py", "wait", 327), (f"{TORCH}/_dynamo/convert_frame.py", "_compile", 900), MAIN],
]


def make_rank(
    number: int, size: int, frames: Sequence[Frame], *, reached: int = 10, waits: bool = False, **fields: Any
) -> ProcessStacks:
    """A rank whose latest step is a minute old; with `waits` it is in its next collective."""
    known = [_collective(reached, size, is_over=True)] + ([_collective(reached + 1, size)] if waits else [])
    given: dict[str, Any] = {
        "world_size": size,
        "is_trainer": True,
        "has_agent": True,
        "has_answered": True,
        "state": "S",
        "busy_permille": 0,
        "at_unix_ns": NOW,
        "step": 100,
        "step_unix_ns": NOW - 60 * SECOND,
        "iteration_ns": SECOND // 2,
        "node": f"gpu-{number // 8}",
        "places": [CodePlace(file=file, function=function, line=line) for file, function, line in frames],
        "threads": [ThreadStack(name="MainThread", task=1, is_main=True, stack=list(range(len(frames))))],
        "collectives": known,
    }
    return ProcessStacks(process_id=f"p{number}", pid=number + 1, rank=number, **given | fields)


def hang(size: int, culprit: int, depth: int = 40) -> list[ProcessStacks]:
    """A job in which one rank sleeps in its model, and all others wait in a collective, deep in wrappers."""
    deep: list[Frame] = [(f"{TORCH}/wrapper_{n}.py", "call", n) for n in range(depth)]
    return [
        make_rank(n, size, [SLEEPS, *deep, MAIN] if n == culprit else [REDUCE, *deep, MAIN], waits=n != culprit)
        for n in range(size)
    ]


def _collective(sequence: int, size: int, *, is_over: bool = False) -> RecordedCollective:
    return RecordedCollective(
        group="0 default_pg",
        sequence=sequence,
        name="all_reduce",
        is_p2p=False,
        sizes="[[4]]",
        is_over=is_over,
        created_unix_ns=NOW,
        ranks=f"0-{size - 1}",
    )


def _some_wait(draw: random.Random, size: int, make: Callable[[int], ProcessStacks]) -> list[ProcessStacks]:
    """Some ranks are busy as `make` says, one at least, and the others wait for them in the next collective."""
    busy = set(draw.sample(range(size), draw.choice([1, size, draw.randint(1, size)])))
    return [make(n) if n in busy else make_rank(n, size, [REDUCE, MAIN], waits=True) for n in range(size)]


def _save(draw: random.Random, size: int) -> list[ProcessStacks]:
    frames, busy = draw.choice(SAVES), draw.randint(0, 900)
    return _some_wait(draw, size, lambda n: make_rank(n, size, frames, busy_permille=busy, state=draw.choice("SDR")))


def _evaluate(draw: random.Random, size: int) -> list[ProcessStacks]:
    def make(number: int) -> ProcessStacks:
        return make_rank(number, size, draw.choice(EVALUATES), busy_permille=draw.randint(100, 1000), state="R")

    return _some_wait(draw, size, make)


def _compile(draw: random.Random, size: int) -> list[ProcessStacks]:
    begun: dict[str, Any] = {"step": None, "step_unix_ns": None, "iteration_ns": 0}

    def make(number: int) -> ProcessStacks:
        return make_rank(number, size, draw.choice(COMPILES), busy_permille=draw.randint(0, 1000), **begun)

    return _some_wait(draw, size, make)


def _step_slowly(draw: random.Random, size: int) -> list[ProcessStacks]:
    iteration_s = draw.uniform(5, 60)
    since_ns = int(draw.uniform(0, 4.5 * iteration_s) * SECOND)
    ranks = _some_wait(draw, size, lambda n: make_rank(n, size, [SLEEPS, MAIN]))
    for rank in ranks:
        rank.step_unix_ns, rank.iteration_ns = NOW - since_ns, int(iteration_s * SECOND)
    return ranks


HEALTHY: dict[str, Callable[[random.Random, int], list[ProcessStacks]]] = {
    "checkpoint": _save,
    "evaluation": _evaluate,
    "first compile": _compile,
    "slow iterations": _step_slowly,
}


def work_slowly(kind: str, seed: int) -> list[ProcessStacks]:
    """A healthy job of 2 to 64 ranks that makes no step for a while."""
    draw = random.Random(seed)
    return HEALTHY[kind](draw, draw.choice([2, 4, 8, 64]))
