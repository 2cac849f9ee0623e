"""The facts of a verdict, and the sentence that a report says it with."""

import pytest
from fleetprof_analyzer.job.stragglers.judgement.reasons import (
    AnalyzerFault,
    HeavyStage,
    LateRanks,
    Moving,
    Nobody,
    NotComparable,
    NotStored,
    Obstacle,
    Reason,
    SlowLinks,
    TooFewIterations,
    TooNoisy,
    Unsure,
    UnsureTurns,
)
from fleetprof_analyzer.job.stragglers.judgement.untold import Alone, TooShort, Untold, WithoutRank
from fleetprof_analyzer.job.stragglers.replay.mismatch import Mismatch
from fleetprof_analyzer.words.untold import say_untold
from fleetprof_analyzer.words.verdict_reasons import say_reason
from fleetprof_api.report.stragglers import Undecided

UNSURE = Undecided(rank=3, gain=0.04, gain_low=-0.01, gain_high=0.09, iterations=8, iterations_needed=31)


@pytest.mark.parametrize(("reason", "sentence"), [
    (LateRanks([3], 7), "the others wait for rank 3"),
    (LateRanks([3, 5], 7), "the others wait for rank 3, and then for rank 5"),
    (LateRanks([3], 1),
     "the others wait for rank 3; only one other rank does the same work, so this is the slower of two"),
    (SlowLinks(3, [0, 1], 2.0, [1]), "transfers of 3 groups are slow, and all of these groups contain rank 1"),
    (SlowLinks(1, [0, 1], 2.04, []), "transfers between ranks 0 and 1 take 2.0 times as long as in groups like theirs; "
     "the traces do not say which rank's link it is"),
    (HeavyStage([1], 0.66, "host"), "the pipeline stage of rank 1 takes 66 % longer than the other stages, most of it "
     "in host code, while its device waits"),
    (Nobody([], alone=True), "no rank stands out, but no two call the same collectives in the same order, so that a "
     "late host may not show"),
    (HeavyStage([4, 5], 0.31), "the pipeline stage of ranks 4 and 5 has 31 % more to do than the other stages"),
    (Moving("data_loading"), "each iteration waits for another rank's batch; no rank is late by itself"),
    (Unsure(UNSURE), "the potential saving of rank 3 is 4.0 % [-1.0 %, 9.0 %] of each iteration; about 35 iterations "
     "would decide"),
    (TooFewIterations(0, 3), "no iterations are in all of the traces, and a verdict takes 3: capture more"),
    (TooNoisy(20), "these 20 iterations are too few or too noisy"),
    (UnsureTurns(13), "the ranks may pause in turns; about 13 iterations would decide"),
    (Nobody([]), "no rank stands out; how late one would have to be to show is not known"),
    (Nobody([], floor=0.042), "no rank is late by more than 4.2 % of an iteration"),
    (Nobody([6, 7], floor=0.042),
     "no rank is late by more than 4.2 % of an iteration, as far as the captured ranks tell: ranks 6 and 7 left no "
     "trace"),
    (NotStored(2), "the operations of 2 ranks were not stored with their summaries"),
    (NotComparable([WithoutRank(2), TooShort([4])]),
     "2 traces were left out: they do not say which rank they are, or claim the same one; "
     "Rank 4 was left out: too few of the iterations are in the trace"),
    (Mismatch("no_common_iteration"),
     "the operations of the ranks cannot be matched: the ranks have no iteration in common"),
    (Mismatch("few_partners", 61.4),
     "the operations of the ranks cannot be matched: only 61 % of the operations have their partners on "
     "the other ranks"),
    (Obstacle.MEMORY, "there is not enough memory to compare the ranks' operations"),
    (Obstacle.CIRCLE, "the matched operations wait for each other in a circle; the order of launches is lost"),
    (AnalyzerFault("KeyError", "3"), "a fault of the analyzer: KeyError: 3"),
])  # fmt: skip
def test_every_reason_has_its_sentence(reason: Reason, sentence: str) -> None:
    assert say_reason(reason) == sentence


def test_a_fault_is_told_in_bounded_length() -> None:
    assert len(say_reason(AnalyzerFault("ValueError", "x" * 1000))) == 300


@pytest.mark.parametrize(("untold", "sentence"), [
    (TooShort([4, 5]), "Ranks 4 and 5 were left out: too few of the iterations are in the trace"),
    (Alone([0], loaders_compared=True),
     "A slow host on rank 0 would not show: no other rank calls the same collectives in the same order"),
    (Alone(list(range(10)), loaders_compared=False), "A slow host or data loader on ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 "
     "more would not show: no other rank calls the same collectives in the same order"),
])  # fmt: skip
def test_what_cannot_be_told_is_said(untold: Untold, sentence: str) -> None:
    assert say_untold(untold) == sentence
