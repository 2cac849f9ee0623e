"""Settings, orders, samples, host and device readings, the slowdown's measure."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_api.ledger import TimeCost
from fleetprof_api.samples import HostColumns, RankSamples
from fleetprof_sidecar.capture.orders import agent_command, build_order, read_terms, sample_interval_ns
from fleetprof_sidecar.capture.process_capture import ProcessCapture, Terms
from fleetprof_sidecar.capture.slowdown import SlowdownWatch
from fleetprof_sidecar.hub.address import HubAddress, LocalHub
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.views import ProcessView, StepView
from fleetprof_sidecar.samples.device import DeviceReading, NvmlSource
from fleetprof_sidecar.samples.host import HostHistory, HostSource
from fleetprof_sidecar.samples.rank_samples import RankRecorder, after_window_ns
from fleetprof_sidecar.samples.sampler import Sampler
from fleetprof_sidecar.samples.time_cost import measure_time
from fleetprof_sidecar.settings import read_settings

S = 10**9
NEEDED = ["--directory", "/run/fp", "--spool", "/spool", "--hub", "127.0.0.1:9", "--token-file", "/t"]


def view(**more: Any) -> ProcessView:
    base = dict.fromkeys(ProcessView.__slots__, "") | {
        **{"process_id": "p", "pid": 7, "uid": 1000, "role": Role.TRAINER, "rank": 1, "local_rank": 1, "world_size": 2},
        **{"has_agent": True, "busy": False, "polls_kineto": True, "rank_source": "RANK_AGENT", "poll_interval_ns": S},
        "step": StepView(step=50, at_unix_ns=1, iteration_ns=S, steps_per_iteration=2),
    }
    return ProcessView(**{**base, **more})


# ---------------------------------------------------------------- settings


def test_settings_come_from_flags_and_environment_and_the_flag_wins() -> None:
    environment = {
        "FLEETPROF_SPOOL": "/from-env",
        "FLEETPROF_NAMESPACE": "env",
        "FLEETPROF_WORKLOAD": "batch/v1/Job/llama",
        "FLEETPROF_LABEL": "a=1,b=2",
        "FLEETPROF_SPOOL_LIMIT_BYTES": "2000000",
    }
    settings = read_settings([*NEEDED, "--namespace", "flag"], environment)
    assert (settings.namespace, settings.spool, settings.spool_limit_bytes) == ("flag", Path("/spool"), 2_000_000)
    assert settings.workload is not None
    assert (settings.workload.api_version, settings.workload.kind, settings.workload.name) == (
        "batch/v1",
        "Job",
        "llama",
    )
    assert settings.labels == {"a": "1", "b": "2"}
    assert settings.hub == HubAddress(target="127.0.0.1:9", token_file=Path("/t"))
    assert read_settings([*NEEDED[:4], "--state", "/state"], {}).hub == LocalHub(Path("/state"))
    pairs = zip(NEEDED[::2], NEEDED[1::2], strict=True)
    flagless = read_settings([], {f"FLEETPROF_{k[2:].upper().replace('-', '_')}": v for k, v in pairs})
    assert flagless.directory == Path("/run/fp")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--directory"),
        ([*NEEDED, "--hub", "nowhere"], "HOST:PORT"),
        ([*NEEDED, "--hub", "h:99999"], "HOST:PORT"),
        (NEEDED[:4], "--hub and --token-file are needed, or --state alone"),
        (NEEDED[:6], "--hub and --token-file are needed, or --state alone"),
        ([*NEEDED, "--state", "/state"], "exclude each other"),
        ([*NEEDED, "--workload", "llama"], "APIVERSION/KIND/NAME"),
        ([*NEEDED, "--label", "x"], "KEY=VALUE"),
        ([*NEEDED, "--spool-limit-bytes", "5"], "1048576 or more"),
        ([*NEEDED, "--grace-seconds", "-1"], "from 0 to 3600"),
    ],
)
def test_wrong_settings_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_settings(arguments, {})
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


# ---------------------------------------------------------------- orders

ARM = {
    "capture_id": "cap",
    "window": hub_pb2.Window(iterations=5, warmup_iterations=1),
    "first_step": 100,
    "deliver_until_unix_ns": 50 * S,
    "give_up_unix_ns": 90 * S,
    "collect": ["Shapes"],
}
ORDER = hub_pb2.Order(process_id="p", rank=1)
WITHOUT_STEP = {key: value for key, value in ARM.items() if key != "first_step"}


def test_an_order_by_step_counts_in_optimizer_steps() -> None:
    terms = read_terms(hub_pb2.Arm(**ARM), ORDER, view())
    config, until = build_order(terms, Path("/run/fp/traces"), "cuda")
    assert until == 50 * S
    lines = dict(line.split("=") for line in config.splitlines())
    assert lines["PROFILE_START_ITERATION"] == "98"
    assert lines["ACTIVITIES_ITERATIONS"] == "10"
    assert lines["REQUEST_TRACE_ID"] == "cap-r1"
    assert lines["ACTIVITIES_LOG_FILE"] == "/run/fp/traces/cap-r1.json"
    assert agent_command(terms) == {
        "capture": "cap",
        "first_step": 100,
        "last_step": 109,
        "start_unix_ns": None,
        "end_unix_ns": None,
        "memory_needed_bytes": 0,
        "ranks": 1,
        "sample_interval_ns": 200_000_000,
        "until_unix_ns": 90 * S,
        "device_counters": False,
        "thread_samples": False,
    }


@pytest.mark.parametrize(
    ("asked", "collect", "samples"),
    [(True, ["Shapes"], True), (False, [], False), (True, ["Stacks"], False)],
)
def test_the_training_thread_is_sampled_unless_the_trace_has_stacks(
    asked: bool, collect: list[str], samples: bool
) -> None:
    """With stacks Kineto records every Python function of every thread: the sampler's too."""
    terms = read_terms(hub_pb2.Arm(**{**ARM, "collect": collect}, thread_samples=asked), ORDER, view())
    assert agent_command(terms)["thread_samples"] is samples


def test_an_order_says_the_classes_of_kernels_and_wrong_ones_are_left_out() -> None:
    asked = [("my_reduce", "communication"), ("", "memory"), ("gemm", "copying"), ("a*b", "memory")]
    entries = [hub_pb2.KernelClass(pattern=pattern, work_class=work_class) for pattern, work_class in asked]
    terms = read_terms(hub_pb2.Arm(**ARM, kernel_classes=entries), ORDER, view())
    assert [(entry.pattern, entry.work_class) for entry in terms.kernel_classes] == [asked[0], asked[3]]


@pytest.mark.parametrize(
    ("window", "step", "duration_ms"),
    [
        (hub_pb2.Window(duration_ns=2 * S), None, 2000),
        (hub_pb2.Window(iterations=5), None, 3000),
        (hub_pb2.Window(iterations=5), StepView(1, 1, S, 1), 6000),
    ],
)
def test_an_order_by_time_says_how_long(window: hub_pb2.Window, step: StepView | None, duration_ms: int) -> None:
    arm = hub_pb2.Arm(**{**WITHOUT_STEP, "start_unix_ns": 40 * S, "window": window})
    terms = read_terms(arm, ORDER, view(has_agent=False, step=step))
    config, until = build_order(terms, Path("/run/fp/traces"), "cpu")
    assert f"ACTIVITIES_DURATION_MSECS={duration_ms}\n" in config
    assert "PROFILE_START_TIME=40000\n" in config
    assert until < 40 * S


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capture_id": "../../etc"}, "capture id"),
        ({"window": hub_pb2.Window()}, "window: exactly one"),
        ({"window": hub_pb2.Window(iterations=1, duration_ns=1)}, "window: exactly one"),
        ({"window": hub_pb2.Window(duration_ns=1)}, "window.iterations"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_terms(hub_pb2.Arm(**{**ARM, **change}), ORDER, view())


def test_an_order_names_a_start_a_process_and_a_rank() -> None:
    with pytest.raises(ValueError, match="start: first_step or start_unix_ns"):
        read_terms(hub_pb2.Arm(**WITHOUT_STEP), ORDER, view())
    with pytest.raises(ValueError, match=r"orders\.rank"):
        read_terms(hub_pb2.Arm(**ARM), hub_pb2.Order(process_id="p", rank=-1), view())
    with pytest.raises(ValueError, match=r"orders\.process_id"):
        read_terms(hub_pb2.Arm(**ARM), hub_pb2.Order(process_id="", rank=1), view())


@pytest.mark.parametrize(("asked", "given"), [(0, S // 5), (1, S // 100), (S, S), (100 * S, 10 * S), (-5, S // 5)])
def test_the_sampling_rate_stays_reasonable(asked: int, given: int) -> None:
    assert sample_interval_ns(asked) == given


# ---------------------------------------------------------------- samples


@pytest.mark.parametrize(
    ("iteration_ns", "after_ns", "after_canary_ns"),
    [(0, S, S // 5), (S // 5, 2 * S, S // 2), (4 * S, 5 * S, 10 * S), (10 * S, 5 * S, 20 * S)],
)
def test_the_after_window_is_some_iterations_within_bounds(
    iteration_ns: int, after_ns: int, after_canary_ns: int
) -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, iteration_ns=iteration_ns)
    assert after_window_ns(terms) == after_ns
    assert after_window_ns(msgspec.structs.replace(terms, canary=True)) == after_canary_ns


def test_a_document_holds_each_row_once_and_in_order() -> None:
    recorder = RankRecorder()
    recorder.add_steps([5, 6], [50, 60])
    recorder.add_steps([4, 5], [40, 99])
    recorder.add_device({"at_unix_ns": [20, 30], "power_milliwatts": [2, None]})
    recorder.add_device({"at_unix_ns": [10, 20], "temperature_celsius": [60, 61]})
    terms = Terms(capture_id="cap", process_id="p", rank=1, pid=7, has_agent=True, first_step=4)
    capture = ProcessCapture(terms=terms, armed_unix_ns=1, started_unix_ns=2, written_unix_ns=3)
    document = recorder.document(capture, view(torch_version="2.15.0"), "node", HostColumns(at_unix_ns=[9]))
    samples = msgspec.json.decode(document, type=RankSamples)
    assert (samples.steps.step, samples.steps.end_unix_ns) == ([4, 5, 6], [40, 50, 60])
    assert samples.device.at_unix_ns == [10, 20, 30]
    assert samples.device.power_milliwatts == [None, None, None]
    assert samples.device.temperature_celsius == [60, 61, None]
    assert (samples.trace_id, samples.torch_version, samples.host_name) == ("cap-r1", "2.15.0", "node")
    assert (samples.armed_unix_ns, samples.started_unix_ns, samples.written_unix_ns) == (1, 2, 3)
    lengths = {len(getattr(samples.device, name)) for name in samples.device.__struct_fields__}
    assert lengths == {3}


@pytest.fixture
def fake_host(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    (tmp_path / "stat").write_text("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2\n")
    (tmp_path / "meminfo").write_text("MemTotal:  10 kB\nMemFree: 1 kB\nMemAvailable:  4 kB\n")
    interfaces = [("lo", 99, 99), ("eth0", 5, 6), ("eth1", 1, 2)]
    rows = [f"  {name}: {received} 0 0 0 0 0 0 0 {sent} 0" for name, received, sent in interfaces]
    (tmp_path / "net/dev").write_text("\n".join(["Inter-|   Receive", " face |bytes", *rows]))
    port = tmp_path / "class/infiniband/mlx5_0/ports/1/counters"
    port.mkdir(parents=True)
    (port / "port_rcv_data").write_text("10\n")
    (port / "port_xmit_data").write_text("20\n")
    return tmp_path


def test_the_host_is_read_from_proc_and_sys(fake_host: Path) -> None:
    source = HostSource(fake_host, fake_host)
    first = source.read(1)
    (fake_host / "stat").write_text("cpu  150 0 100 750 100 0 0 0 0 0\n")
    second = source.read(2)
    assert (first.cpu_busy_permille, second.cpu_busy_permille) == (None, 500)
    assert (second.memory_available_bytes, second.memory_total_bytes) == (4096, 10240)
    assert (second.network_received_bytes, second.network_sent_bytes) == (6, 8)
    assert (second.infiniband_received_bytes, second.infiniband_sent_bytes) == (40, 80)
    history = HostHistory()
    history.add(first)
    history.add(second)
    assert history.columns(2, 9).cpu_busy_permille == [500]


def test_a_host_that_cannot_be_read_gives_nothing(tmp_path: Path) -> None:
    reading = HostSource(tmp_path, tmp_path).read(5)
    values = {getattr(reading, name) for name in reading.__slots__ if name != "at_unix_ns"}
    assert values == {None}
    (tmp_path / "stat").write_text("cpu  x\n")
    (tmp_path / "meminfo").write_text("MemTotal:\n")
    assert HostSource(tmp_path, tmp_path).read(5).cpu_busy_permille is None


def test_this_machine_can_be_read() -> None:
    reading = HostSource().read(1)
    assert reading.memory_total_bytes
    assert reading.network_received_bytes is not None


class NVMLError(Exception):
    """As pynvml's."""


def test_no_driver_means_no_samples_and_no_error() -> None:
    def no_driver() -> None:
        raise NVMLError("Driver Not Loaded")

    assert NvmlSource(lambda: SimpleNamespace(nvmlInit=no_driver)).read(1, counters=False) == []

    def no_module() -> None:
        raise ModuleNotFoundError("pynvml")

    assert NvmlSource(no_module).read(1, counters=False) == []


def test_every_visible_device_is_read() -> None:
    nvml = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetPowerUsage=lambda handle: 100 + handle,
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=50, memory=20),
    )
    readings = NvmlSource(lambda: nvml).read(9, counters=False)
    assert [(r.device, r.at_unix_ns, r.values["power_milliwatts"]) for r in readings] == [(0, 9, 100), (1, 9, 101)]
    assert readings[0].values["utilization_permille"] == 500
    assert readings[0].values["temperature_celsius"] is None


def test_profiling_counters_are_read_only_while_a_capture_asks_for_them() -> None:
    asked: list[bool] = []

    class Devices:
        def read(self, now_unix_ns: int, *, counters: bool) -> list[DeviceReading]:
            asked.append(counters)
            return []

    class AlwaysWanted:
        def wants_devices(self) -> bool:
            return True

        def add_devices(self, readings: Iterable[DeviceReading]) -> None:
            pass

    async def sample_once(sampler: Sampler) -> None:
        running = asyncio.create_task(sampler.run())
        reads = len(asked)
        while len(asked) == reads:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def sample() -> None:
        sampler = Sampler(HostSource(), Devices(), AlwaysWanted())
        await sample_once(sampler)
        for capture, collect in (("plain", ["Shapes"]), ("asks", ["DeviceMetrics"])):
            terms = read_terms(hub_pb2.Arm(**{**ARM, "collect": collect}), ORDER, view())
            assert agent_command(terms)["device_counters"] is (capture == "asks")
            sampler.begin(capture, terms.sample_interval_ns, counters=terms.device_counters)
            await sample_once(sampler)
        sampler.end("asks")
        await sample_once(sampler)

    asyncio.run(sample())
    assert asked == [False, False, True, False]


# ---------------------------------------------------------------- slowdown


@pytest.mark.parametrize(
    ("reports", "percent"),
    [
        ([(90, 0), (98, 0), (99, 100), (103, 700), (105, 1000)], None),
        ([(99, 100), (101, 340), (103, 580)], None),
        ([(99, 100), (101, 440), (103, 800)], 70),
        ([(99, 100), (101, 440), (103, 1400)], 70),  # the quicker of the two
        ([(99, 100), (101, 9000), (103, 9200), (105, 18_000)], None),  # pauses of the job's own
        ([(99, 100), (101, 440)], None),
        ([(99, 100), (100, 900), (100, 1900)], None),  # less than one whole iteration
        ([(50, 0), (60, 99_999), (70, 999_999)], None),  # before the window
        ([(107, 100), (109, 440), (111, 9000)], None),  # behind it: the trace is being written
    ],
)
def test_a_slowdown_counts_from_the_windows_first_step(reports: list[tuple[int, int]], percent: int | None) -> None:
    watch = SlowdownWatch(baseline_ns=200, first_step=100, last_step=109, steps_per_iteration=2, limit_percent=50)
    found = [watch.observe(step, at) for step, at in reports]
    assert found[-1] == percent
    assert found[:-1] == [None] * (len(reports) - 1)


def test_without_a_baseline_there_is_no_slowdown() -> None:
    watch = SlowdownWatch(baseline_ns=0, first_step=1, last_step=9, steps_per_iteration=1, limit_percent=1)
    assert [watch.observe(step, step * 10**6) for step in range(5)] == [None] * 5


# ---------------------------------------------------------------- what a recording did to the iterations


@pytest.mark.parametrize(
    ("ends", "cost"),
    [
        # Four before the order, one between, the recorded one, a stall, two after the trace was there.
        (
            {1: 0, 2: 10, 3: 20, 4: 40, 5: 50, 9: 90, 10: 105, 11: 155, 12: 165, 13: 175},
            TimeCost(iteration_before_ns=10, longest_before_ns=20, iteration_ns=15, stall_ns=40, iterations_after=2),
        ),
        ({9: 90, 10: 105}, TimeCost(iteration_before_ns=12, longest_before_ns=12, iteration_ns=15)),
        ({}, TimeCost(iteration_before_ns=12, longest_before_ns=12)),
        ({8: 90, 10: 105}, TimeCost(iteration_before_ns=12, longest_before_ns=12)),  # a step was lost
    ],
)
def test_what_a_recording_did_is_told_from_the_ends_of_steps(ends: dict[int, int], cost: TimeCost) -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, first_step=10, iterations=1, iteration_ns=12)
    assert measure_time(ends, terms, 60, 160) == cost


def test_of_a_window_by_time_nothing_is_told() -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, start_unix_ns=10)
    assert measure_time({1: 1, 2: 2}, terms, 1, 2) == TimeCost()


def test_several_optimizers_make_one_iteration() -> None:
    terms = Terms(capture_id="c", process_id="p", rank=0, first_step=5, iterations=2, steps_per_iteration=2)
    ends = {step: step * 10 for step in range(1, 13)}
    assert measure_time(ends, terms, 45, 80) == TimeCost(
        iteration_before_ns=20, longest_before_ns=20, iteration_ns=20, iterations_after=2
    )
