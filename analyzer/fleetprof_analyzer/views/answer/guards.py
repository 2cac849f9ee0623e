"""The guards of a report's headline and evidence."""

from typing import Final

from fleetprof_analyzer.job.sentence_guard import SentenceGuard

LARGEST_PART: Final = SentenceGuard(
    place="headline: the largest part", figure="the largest part of totals.time_ns", whole="span", least_permille=100,
    words="N % of the GPUs' time is idle (communication, copies)",
    below="N % of the GPUs' time is computing; the longest kernel takes M %",
)  # fmt: skip
NOT_RECORDED: Final = SentenceGuard(
    place="headline: not recorded", figure="totals.time_ns.unrecorded", whole="span", least_permille=100,
    words="N % of the GPUs' time was not recorded",
)  # fmt: skip
MOST_OF_IDLE: Final = SentenceGuard(
    place="headline: why idle", figure="the largest of totals.idle_ns", whole="the idle time", least_permille=500,
    words="most of it (N %) because …", below="the largest part (N %) because …",
)  # fmt: skip
MOSTLY_SILENT: Final = SentenceGuard(
    place="headline: host gap", figure="the longest of ranks.stages.silences", whole="idle_ns.host",
    least_permille=500, words="mostly between … and …",
)  # fmt: skip
MOST_OF_COMMUNICATION: Final = SentenceGuard(
    place="headline: which communication", figure="the longest kind's exposed time", whole="the exposed communication",
    least_permille=500, words="most of it all-reduce", below="the largest part of it all-reduce",
)  # fmt: skip
COLLECTIVES: Final = SentenceGuard(
    place="headline without GPU: collectives", figure="totals.time_ns.exposed_communication", whole="span",
    least_permille=100, words="N % of the ranks' time goes to collectives",
)  # fmt: skip
STAGE: Final = SentenceGuard(
    place="headline without GPU: stages", figure="ranks.stages.time_ns", whole="all stages", least_permille=100,
    words="of an iteration, N % is backward",
)  # fmt: skip
SILENT_STAGE: Final = SentenceGuard(
    place="headline without GPU: host gap", figure="the longest of ranks.stages.silences",
    whole="ranks.stages of the host", least_permille=500,
    words="of an iteration, N % is the host between stages (between … and …)",
)  # fmt: skip
LONG_SILENCE: Final = SentenceGuard(
    place="evidence: host gaps", figure="ranks.stages.silences.time_ns", whole="all stages", least_permille=50,
    words="the host runs nothing for N ms in all between … and …",
)  # fmt: skip
PROVEN_CAUSE: Final = SentenceGuard(
    place="headline: a proven cause", figure="its potential saving", whole="that of the first finding",
    least_permille=500, words="potential saving: N % of each iteration. … (a cause of ranks.causes)",
)  # fmt: skip
MORE_ELSEWHERE: Final = SentenceGuard(
    place="headline: more elsewhere", figure="the first finding's potential saving", whole="the verdict's",
    least_permille=1000, words="potential saving elsewhere: N %. …", more=True,
)  # fmt: skip

HEADLINE: Final = (
    LARGEST_PART, NOT_RECORDED, MOST_OF_IDLE, MOSTLY_SILENT, MOST_OF_COMMUNICATION, COLLECTIVES, STAGE, SILENT_STAGE,
    LONG_SILENCE, PROVEN_CAUSE, MORE_ELSEWHERE,
)  # fmt: skip
