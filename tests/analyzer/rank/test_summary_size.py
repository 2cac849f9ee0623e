"""The largest summary that a rank can have, of numbers that do not compress, is one that the store takes."""

import io
import random

import msgspec
from fleetprof_analyzer.rank.communication.operations import MOST_OPERATIONS_BYTES
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.measures.kernels.kernels import KernelGroup
from fleetprof_analyzer.rank.measures.kernels.operator_launches import OperatorGroup
from fleetprof_analyzer.rank.measures.stages.silences import MOST_SILENCES
from fleetprof_analyzer.rank.stored_summary import MOST_BYTES, pack_summary
from fleetprof_analyzer.rank.summary import RankSummary, summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import Iteration, TimeBreakdown
from fleetprof_api.report.report_tables import Silence
from harness.traces.planted.traces import plant

DICE = random.Random(7)
LETTERS = "abcdefghij<>_:,"


def digits(count: int) -> int:
    return DICE.randrange(10**count)


def name(length: int) -> str:
    return "".join(DICE.choices(LETTERS, k=length))


def of_chance(iteration: Iteration) -> Iteration:
    assert iteration.time_ns is not None
    duration_ns = digits(9)
    parts = {field: digits(8) for field in TimeBreakdown.__struct_fields__}
    return msgspec.structs.replace(
        iteration,
        start_ns=iteration.start_ns + digits(6),
        duration_ns=duration_ns,
        time_ns=TimeBreakdown(**parts | {"span": duration_ns}),  # of one device
        idle_ns=iteration.idle_ns and IdleCauses(**{field: digits(8) for field in IdleCauses.__struct_fields__}),
        energy_mj=digits(6),
    )


def test_the_largest_summary_fits() -> None:
    trace = read_trace(io.BytesIO(plant(0, iterations=500).gzipped()), "t", Problems())
    whole = summarise(trace, None, rank_number=0, terms=RecordingTerms(), problems=Problems())
    assert whole.rank is not None
    assert whole.rank.stages is not None
    iterations = [of_chance(iteration) for iteration in whole.rank.iterations]
    assert len(iterations) == 400
    stages = [
        msgspec.structs.replace(stage, iterations_ns=[digits(8) for _ in iterations])
        for stage in whole.rank.stages.stages
    ]
    silences = [
        Silence(
            after=name(160), before=name(160), time_ns=digits(10), count=digits(5),
            place=PlaceInCode(file=name(256), line=digits(5), function=name(256), samples=600, of_samples=600),
        )
        for _ in range(MOST_SILENCES)
    ]  # fmt: skip
    rank = msgspec.structs.replace(
        whole.rank,
        iterations=iterations,
        stages=msgspec.structs.replace(whole.rank.stages, stages=stages, silences=silences),
    )
    kernels = [
        KernelGroup(
            name=name(150), work_class=0, count=digits(5), total_ns=digits(10), min_ns=digits(4), max_ns=digits(6),
            spread=DICE.random() * 1e20, buckets={bucket: digits(3) for bucket in sorted(DICE.sample(range(600), 100))},
        )
        for _ in range(48)
    ]  # fmt: skip
    operators = [
        OperatorGroup(name=name(40), calls=digits(5), own_launches=digits(5), own_device_ns=digits(10),
                      launches=digits(5), device_ns=digits(10))
        for _ in range(48)
    ]  # fmt: skip
    largest: RankSummary = msgspec.structs.replace(
        whole, rank=rank, kernels=kernels, operators=operators, operations=DICE.randbytes(MOST_OPERATIONS_BYTES)
    )
    assert len(pack_summary(largest, trace_bytes=1, samples_bytes=1)) <= MOST_BYTES
