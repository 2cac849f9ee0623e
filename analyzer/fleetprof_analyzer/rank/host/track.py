"""The training thread's samples on the trace's clock: when, how long each stands for, and the user's code on the stack.

A sample stands for the time since the one before: where the sampler waited for the interpreter, the code that it then
sees is what had held it. Guarantees: pure; whatever the samples hold, chains are bounded and hold known places.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.trace.own_code import FOUNDATION, OWN, tell_owner
from fleetprof_analyzer.trace.trace import Int64s

Place = tuple[str, str, int]
"""(file, function, line)."""
Chain = tuple[Place, ...]
"""The user's own frames of a stack, the outermost first; one frame of another's where there is none."""

_MOST_SAMPLES: Final = 4096
_LONGEST_CHAIN: Final = 24
_CHARACTERS: Final = 256
_NAMELESS: Final = re.compile(r"(?:\.<locals>|^|\.)\.?<(?:lambda|\w+comp|genexpr)>$")
_LATEST_NS: Final = 1 << 62
# A sampler that got no core for so long says nothing about the time before.
_LONGEST_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Track:
    """n samples in the order of time; `chain` indexes `chains`, -1 where the thread ran no Python."""

    at_ns: Int64s
    lasted_ns: Int64s  # what each stands for, before its time
    chain: Int64s
    chains: list[Chain]


def read_track(samples: RankSamples | None) -> Track | None:
    """The samples of a rank whose trace has Unix times; None where there are none."""
    if samples is None:
        return None
    pairs = zip(samples.thread.at_unix_ns[:_MOST_SAMPLES], samples.thread.stack, strict=False)
    rows = sorted({at: stack for at, stack in pairs if 0 <= at < _LATEST_NS}.items())
    if len(rows) < 2:
        return None
    number: dict[int, int] = {}
    known: dict[Chain, int] = {}
    for stack in {stack for _, stack in rows if stack is not None}:
        chain = _read_chain(samples, stack)
        number[stack] = known.setdefault(chain, len(known)) if chain else -1
    at = np.array([at for at, _ in rows], np.int64)
    lasted = np.minimum(np.diff(at, prepend=at[:1]), _LONGEST_NS)
    chains = np.array([-1 if stack is None else number[stack] for _, stack in rows], np.int64)
    return Track(at, lasted, chains, list(known))


def _read_chain(samples: RankSamples, stack: int) -> Chain:
    if not 0 <= stack < len(samples.stacks):
        return ()
    numbers = [number for number in samples.stacks[stack] if 0 <= number < len(samples.places)]
    frames = name_frames(
        [(places.file, places.function, places.line) for places in (samples.places[number] for number in numbers)]
    )
    owners = [tell_owner(file) for file, _, _ in frames]
    own = [frame for frame, owner in zip(frames, owners, strict=True) if owner == OWN]
    if own:
        return tuple(own[::-1][:_LONGEST_CHAIN])
    return next(((f,) for f, owner in zip(frames, owners, strict=True) if owner < FOUNDATION), tuple(frames[:1]))


def name_frames(stack: Sequence[Place]) -> list[Place]:
    """Frames, the innermost first; comprehensions and lambdas are called what the function around them is."""
    frames: list[Place] = []
    for file, function, line in reversed(stack):
        named = function = function[:_CHARACTERS]
        while _NAMELESS.search(named):
            named = _NAMELESS.sub("", named)
        if not named:  # before Python 3.11 they do not say where they are written
            named = frames[-1][1] if frames and frames[-1][0] == file[-_CHARACTERS:] else function
        place = file[-_CHARACTERS:], named, line if 0 <= line < 1 << 31 else 0
        if not frames or frames[-1] != place:
            frames.append(place)
    return frames[::-1]


def within(track: Track, spans: Sequence[tuple[int, int]]) -> list[tuple[Chain, int]]:
    """(chain, ns that it stands for in there) of each sample inside the spans [start, end) that shows Python."""
    found = []
    for start, end in spans:
        first, last = np.searchsorted(track.at_ns, (start, end))
        for row in range(int(first), int(last)):
            if track.chain[row] >= 0:
                lasted = min(int(track.lasted_ns[row]), int(track.at_ns[row]) - start)
                found.append((track.chains[track.chain[row]], max(lasted, 1)))
    return found
