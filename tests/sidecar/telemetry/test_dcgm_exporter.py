"""The figures taken of a dcgm-exporter's text, for which rank, and what becomes of answers that are none."""

from contextlib import suppress

import pytest
from fleetprof_sidecar.telemetry import dcgm_exporter
from fleetprof_sidecar.telemetry.dcgm_exporter import STALE_NS, DcgmExporter, ExportedGpu, read_exposition
from harness.http_answers import answering
from hypothesis import given
from hypothesis import strategies as st

S = 10**9
FIRST, SECOND = "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52", "GPU-11111111-d9cf-fef3-62e9-d92044ab6e52"
OURS = 'namespace="team",pod="llama-0",container="train"'


def labels(uuid: str, pod: str = "") -> str:
    return f'gpu="0",UUID="{uuid}",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",Hostname="n7",{pod}'


# As an exporter of version 3.3 writes it, its blank values among it.
TEXT = f"""\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{{{labels(FIRST, OURS)}}} 1410
# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy consumption since boot (in mJ).
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{labels(FIRST, OURS)}}} 51843285403
DCGM_FI_DEV_MEMORY_TEMP{{{labels(FIRST, OURS)}}} 9223372036854775794
DCGM_FI_DEV_GPU_TEMP{{{labels(FIRST, OURS)}}} 9223372036854775794
DCGM_FI_DEV_POWER_USAGE{{{labels(FIRST, OURS)}}} 312.573000
DCGM_FI_DEV_GPU_UTIL{{{labels(FIRST, OURS)}}} 97
DCGM_FI_DEV_FB_USED{{{labels(FIRST, OURS)}}} 30000
DCGM_FI_DEV_FB_FREE{{{labels(FIRST, OURS)}}} 10000
DCGM_FI_PROF_SM_ACTIVE{{{labels(FIRST, OURS)}}} 0.614512
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels(FIRST, OURS)}}} 0.216
DCGM_FI_PROF_NVLINK_TX_BYTES{{{labels(FIRST, OURS)}}} 4211031
DCGM_FI_DEV_SM_CLOCK{{{labels(SECOND)}}} 210
DCGM_FI_DEV_SM_CLOCK{{{labels(SECOND)},GPU_I_ID="7",GPU_I_PROFILE="1g.5gb"}} 99
""".replace(",,", ",")


def test_the_figures_of_each_gpu() -> None:
    assert read_exposition(TEXT) == {
        FIRST: ExportedGpu(
            "team",
            "llama-0",
            {
                "sm_clock_megahertz": 1410,
                "energy_millijoules": 51843285403,
                "power_milliwatts": 312573,
                "utilization_permille": 970,
                "memory_used_bytes": 30000 << 20,
                "memory_bytes": 40000 << 20,
                "sm_active_permille": 615,
                "tensor_active_permille": 216,
                "nvlink_sent_bytes_per_s": 4211031,
            },
        ),
        SECOND: ExportedGpu("", "", {"sm_clock_megahertz": 210}),
    }


@given(st.text(alphabet='DCGM_FIPROV{}="\\,\n 0123456789.eNa-+#'))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(*dcgm_exporter.UNREADABLE):
        read_exposition(f"DCGM_FI_DEV_SM_CLOCK{text}\n{text}")


class Clock:
    now = 100 * S

    def __call__(self) -> int:
        return self.now


async def ask(body: bytes, *, status: int = 200, pod: str = "llama-0", clock: Clock | None = None) -> DcgmExporter:
    with answering(status, body) as (address, _):
        exporter = DcgmExporter(f"{address}/metrics", "team", pod, clock or Clock())
        await exporter.ask()
    return exporter


@pytest.mark.parametrize(
    ("uuid", "pod", "clock"),
    [
        (FIRST, "llama-0", 1410),
        (FIRST.removeprefix("GPU-"), "llama-0", 1410),
        (SECOND, "llama-0", 210),
        ("", "llama-0", 1410),
        ("", "llama-1", None),
        ("", "", None),
        ("MIG-604ac76c-d9cf-fef3-62e9-d92044ab6e52", "llama-0", None),
        ("GPU-00000000", "llama-0", None),
    ],
    ids=["ours", "as PyTorch writes it", "another's pod", "of our pod", "of another", "of no pod", "MIG", "unknown"],
)
async def test_a_ranks_gpu_is_found_by_its_uuid_or_as_its_pods_only_one(uuid: str, pod: str, clock: int | None) -> None:
    found = (await ask(TEXT.encode(), pod=pod)).find(uuid)
    assert (found[1]["sm_clock_megahertz"] if found else None) == clock


async def test_of_two_gpus_of_a_pod_none_is_guessed() -> None:
    text = TEXT + f"DCGM_FI_DEV_SM_CLOCK{{{labels(SECOND, OURS)}}} 211\n"
    assert (await ask(text.encode())).find("") is None


async def test_what_is_old_is_not_told() -> None:
    clock = Clock()
    exporter = await ask(TEXT.encode(), clock=clock)
    clock.now += STALE_NS
    assert exporter.find(FIRST) is not None
    clock.now += 1
    assert exporter.find(FIRST) is None


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (503, b"", "it answered 503"),
        (302, b"", "it answered 302"),
        (200, b"DCGM_FI_DEV_SM_CLOCK{ 7\n", "no figures of GPUs"),
        (200, b"DCGM_FI_DEV_SM_CLOCK 7\n" * 200_000, "more than 4194304 bytes"),
    ],
)
async def test_an_answer_that_is_none_is_said_once(
    status: int, body: bytes, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with answering(status, body) as (address, _):
        exporter = DcgmExporter(f"{address}/metrics", "team", "llama-0", Clock())
        await exporter.ask()
        await exporter.ask()
    assert exporter.find(FIRST) is None
    (line,) = [record.getMessage() for record in caplog.records]
    assert message in line


async def test_an_exporter_that_is_not_there_is_said(caplog: pytest.LogCaptureFixture) -> None:
    exporter = DcgmExporter("http://127.0.0.1:9/metrics", "team", "llama-0", Clock())
    await exporter.ask()
    assert exporter.find(FIRST) is None
    assert len(caplog.records) == 1
