"""What is said where a guard allows it, and what below its share: the sentences as docs list them.

Guarantees: a row for each guard of `job.findings.guards`; docs/measures.md is made of it, tests hold it to the code.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from fleetprof_analyzer.job.findings import guards
from fleetprof_analyzer.job.findings.guards import SentenceGuard


class GuardedSentence(NamedTuple):
    """`words` as people read them, … for what varies; `below`: what is said below the guard's share."""

    words: str
    below: str = "nothing"


SENTENCES: Final[Mapping[SentenceGuard, GuardedSentence]] = {
    guards.DATA_LOADING: GuardedSentence("the GPU waits for the next batch"),
    guards.SYNCHRONIZATION: GuardedSentence("the host waits for the GPU, which then has nothing left to do"),
    guards.LAUNCH_BOUND: GuardedSentence("the host cannot launch work as fast as the GPU does it"),
    guards.PYTHON: GuardedSentence("the GPU waits for Python between operators"),
    guards.ALLOCATION: GuardedSentence("the GPU waits for memory to be allocated or freed"),
    guards.OPTIMIZER: GuardedSentence("the GPU waits for the optimizer's host code"),
    guards.WAITING: GuardedSentence("work that is launched does not begin, though no recorded work runs on its device"),
    guards.MOST_OF_A_PLACE: GuardedSentence("most of it between … and …", "N % of it between … and …"),
    guards.PART_OF_A_PLACE: GuardedSentence("N % of it between … and …"),
    guards.ZERO_GRAD: GuardedSentence(
        "the GPU waits for zero_grad() on the host", "the GPU waits for the optimizer's host code (fused=True)"
    ),
    guards.UNEVEN: GuardedSentence("most on rank N"),
    guards.EXPOSED_COMMUNICATION: GuardedSentence("no computation hides the communication"),
    guards.SENDING: GuardedSentence(
        "send fewer and larger messages, or fewer bytes", "the ranks wait for each other in their collectives"
    ),
    guards.SCHEDULE: GuardedSentence("by the pipeline's schedule each device waits N %", "what the transfers say"),
    guards.SIZES: GuardedSentence("of N KiB a call on average", "no size: look at what runs beside the longest"),
    guards.LARGER_MESSAGES: GuardedSentence(
        "send fewer and larger messages", "no size: look at what runs beside the longest"
    ),
    guards.EXPOSED_COPIES: GuardedSentence("nothing hides copies and sets of memory"),
    guards.WAITS_ON_DEVICE: GuardedSentence(
        "rank N holds the job up: M % waits for its device, which does not begin work that is launched", "its host code"
    ),
    guards.HELD_UP: GuardedSentence("the others wait for rank N"),
    guards.LONG_ITERATIONS: GuardedSentence("N of M iterations take K times as long as the others"),
    guards.HOST_LOADING: GuardedSentence("the training threads of all ranks wait for the next batch"),
    guards.HOST_SILENCE: GuardedSentence("the training threads of all ranks run no operator"),
    guards.SILENCE_BETWEEN: GuardedSentence("most of it between … and …"),
    guards.WAITS_FOR_CORES: GuardedSentence("the training threads wait for a core, though ready to run"),
    guards.FULL_HOSTS: GuardedSentence("all cores of the ranks' hosts are busy (N %)"),
    guards.UNEVEN_ITERATIONS: GuardedSentence("and iterations differ in length", "no finding"),
    guards.LARGEST_PART: GuardedSentence(
        "N % of the GPUs' time is idle (communication, copies)",
        "N % of the GPUs' time is computing; the longest kernel takes M %",
    ),
    guards.NOT_RECORDED: GuardedSentence("N % of the GPUs' time was not recorded"),
    guards.MOST_OF_IDLE: GuardedSentence("most of it (N %) because …", "the largest part (N %) because …"),
    guards.MOSTLY_SILENT: GuardedSentence("mostly between … and …"),
    guards.MOST_OF_COMMUNICATION: GuardedSentence("most of it all-reduce", "the largest part of it all-reduce"),
    guards.COLLECTIVES: GuardedSentence("N % of the ranks' time goes to collectives"),
    guards.STAGE: GuardedSentence("of an iteration, N % is backward"),
    guards.SILENT_STAGE: GuardedSentence("of an iteration, N % is the host between stages (between … and …)"),
    guards.LONG_SILENCE: GuardedSentence("the host runs nothing for N ms in all between … and …"),
    guards.PROVEN_CAUSE: GuardedSentence("up to N % of each iteration can be won: … (a cause of ranks.causes)"),
    guards.MORE_ELSEWHERE: GuardedSentence("up to N % can be won elsewhere: …"),
}
