"""Words on the command line: pure functions, table in, table out."""

import socket
from datetime import datetime
from typing import Any

import click
import pytest
from click.testing import CliRunner
from fleetprof_api.process.address import HostPort
from fleetprof_api.request import parse_request
from fleetprof_cli.capture.jobs import TargetWorkload
from fleetprof_cli.capture.rank_numbers import parse_ranks
from fleetprof_cli.capture.request_flags import CaptureOptions, find_contradiction, make_document
from fleetprof_cli.commands.local import capture as local_capture
from fleetprof_cli.kubernetes.commands import capture as cluster_capture
from fleetprof_cli.local.network import advertise
from fleetprof_cli.local.run.job_name import as_label, name_job
from fleetprof_cli.store_location import StoreLocation, parse_store
from hypothesis import given
from hypothesis import strategies as st

JOB = TargetWorkload(api_version="batch/v1", kind="Job", name="llama", namespace="local")
NOW = datetime(2026, 11, 21, 9, 45, 12)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("torchrun --nproc-per-node 4 train.py --lr 1", "train"),
        ("torchrun -m my_package.Train_GPT", "train-gpt"),
        ("python -m torch.distributed.run scripts/fine_tune.py", "fine-tune"),
        ("python -u train.py", "train"),
        ("./a.out x", "a-out"),
        ("bash -c ls", "bash"),
        ("/opt/日本", "job"),
    ],
)
def test_a_job_is_called_after_its_script(command: str, name: str) -> None:
    assert name_job(command.split(), {}, set()) == name


def test_two_jobs_of_one_script_get_two_names() -> None:
    assert name_job(["train.py"], {}, {"train", "train-2"}) == "train-3"


def test_all_nodes_of_a_slurm_job_give_it_one_name() -> None:
    environment = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "My Run"}
    assert name_job(["train.py"], environment, {"my-run-4711"}) == "my-run-4711"


@given(st.text(max_size=80))
def test_any_text_makes_a_label(text: str) -> None:
    label = as_label(text)
    assert 1 <= len(label) <= 52
    assert as_label(label) == label


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("0", [0]),
        ("0,8,16-19", [0, 8, 16, 17, 18, 19]),
        (" 1 , 2-2 ", [1, 2]),
        ("2-4,3,2", [2, 3, 4]),
        ("0-1023", list(range(1024))),
    ],
)
def test_ranks_are_numbers_and_ranges(text: str, ranks: list[int]) -> None:
    assert parse_ranks(text) == ranks


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must be a rank or a range of ranks"),
        ("a", "must be a rank or a range of ranks"),
        ("1,", "must be a rank or a range of ranks"),
        ("3-1", "from a lower to a higher rank"),
        ("0-99999", "use --sample or --every"),
        ("0-1000,2000-3000", "use --sample or --every"),
    ],
)
def test_wrong_ranks_are_refused_with_the_rule(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        parse_ranks(text)


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        (CaptureOptions(), {"window": {"iterations": 5}}),
        (CaptureOptions(iterations=3, warmup=1), {"window": {"iterations": 3, "warmupIterations": 1}}),
        (CaptureOptions(duration_ms=500), {"window": {"durationMillis": 500}}),
        (
            CaptureOptions(deadline_s=40, missing_grace_s=5, conflict="Fail"),
            {
                "window": {"iterations": 5},
                "activeDeadlineSeconds": 40,
                "missingRanksGraceSeconds": 5,
                "conflict": "Fail",
            },
        ),
        (CaptureOptions(ranks=[0, 8]), {"window": {"iterations": 5}, "ranks": {"list": [0, 8]}}),
        (CaptureOptions(every=2), {"window": {"iterations": 5}, "ranks": {"every": 2}}),
        (CaptureOptions(collect=["Shapes"]), {"window": {"iterations": 5}, "collect": ["Shapes"]}),
        (CaptureOptions(thread_samples="Never"), {"window": {"iterations": 5}, "threadSamples": "Never"}),
        (CaptureOptions(iterations=5, duration_ms=500), {"window": {"iterations": 5, "durationMillis": 500}}),
        (CaptureOptions(activities=["Device"]), {"window": {"iterations": 5}, "activities": ["Device"]}),
        (
            CaptureOptions(duration_ms=500, iteration_range="execute_model"),
            {"window": {"durationMillis": 500}, "iteration": {"range": "execute_model"}},
        ),
        (CaptureOptions(traces="Auto"), {"window": {"iterations": 5}, "traces": "Auto"}),
        (CaptureOptions(deadline_s=60), {"window": {"iterations": 5}, "activeDeadlineSeconds": 60}),
        (CaptureOptions(max_trace_mib=2), {"window": {"iterations": 5}, "limits": {"maxTraceBytes": 2 << 20}}),
        (
            CaptureOptions(max_slowdown_percent=50, max_trace_mib=1),
            {"window": {"iterations": 5}, "limits": {"maxTraceBytes": 1 << 20, "maxSlowdownPercent": 50}},
        ),
    ],
)
def test_flags_make_the_request_that_a_file_would_hold(options: CaptureOptions, spec: dict[str, Any]) -> None:
    document = make_document(JOB.target(), JOB.name, JOB.namespace, options, NOW)
    target = {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}}
    assert document["spec"] == {"target": target, **spec}
    assert parse_request(document).metadata.name == "llama-1121-094512"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (CaptureOptions(iterations=5, duration_ms=500, warmup=1), ""),
        (CaptureOptions(warmup=1, duration_ms=500), "--warmup counts iterations"),
        (CaptureOptions(iteration_range="a"), "--iteration-range needs --duration"),
        (CaptureOptions(ranks=[1], sample=2), "--ranks and --sample exclude each other"),
        (CaptureOptions(sample=2, every=2), "--sample and --every exclude each other"),
        (CaptureOptions(duration_ms=20_000), "--duration above 10s needs --ranks, --sample or --every"),
        (CaptureOptions(duration_ms=20_000, ranks=[0]), ""),
        (CaptureOptions(warmup=1), ""),
    ],
)
def test_what_flags_cannot_say_together_is_said_in_their_names(options: CaptureOptions, says: str) -> None:
    problem = find_contradiction(options)
    assert says in problem
    assert bool(problem) == bool(says)


FLAGS = [
    ("--iterations=0", "--iterations", "must be a whole number from 1 to 100"),
    ("--duration=1ms", "--duration", "10ms to 1m"),
    ("--missing-grace=25h", "--missing-grace", "0s to 24h"),
    ("--conflict=Never", "--conflict", "'wait', 'fail'"),
    ("--warmup=101", "--warmup", "must be a whole number from 0 to 100"),
    ("--sample=0", "--sample", "must be a whole number from 1 to 100000"),
    ("--every=1", "--every", "must be a whole number from 2 to 100000"),
    ("--max-trace-mib=0", "--max-trace-mib", "must be a whole number from 1 to 65536"),
    ("--max-slowdown=-1", "--max-slowdown", "must be a whole number from 0 to 1000"),
    ("--deadline=29", "--deadline", "30s to 24h"),
    ("--collect=Shapes,foo", "--collect", "'foo' is not one of Shapes"),
    ("--ranks=a", "--ranks", "must be a rank"),
]


@pytest.mark.parametrize("command", [local_capture.command, cluster_capture.command])
@pytest.mark.parametrize(("flag", "name", "rule"), FLAGS)
def test_a_wrong_flag_is_refused_in_its_own_name_before_anybody_is_asked(
    command: click.Command, flag: str, name: str, rule: str
) -> None:
    result = CliRunner().invoke(command, ["job/llama", flag])
    assert result.exit_code == 2
    assert f"Invalid value for '{name}'" in result.output
    assert rule in " ".join(result.output.split())
    assert "spec." not in result.output


def test_what_to_collect_may_be_named_in_any_case_and_twice() -> None:
    context = click.Context(local_capture.command)
    option = next(p for p in local_capture.command.params if p.name == "collect")
    assert option.process_value(context, ("shapes,STACKS", "Shapes")) == ["Shapes", "Stacks"]


def test_a_long_job_name_still_makes_a_valid_request() -> None:
    document = make_document(JOB.target(), "a" * 37 + "-" + "b" * 14, "local", CaptureOptions(), NOW)
    assert len(parse_request(document).metadata.name or "") <= 52


@pytest.mark.parametrize(
    ("listen", "advertised"),
    [
        (HostPort("127.0.0.1", 0), HostPort("127.0.0.1", 80)),
        (HostPort("::1", 80), HostPort("::1", 80)),
        (HostPort("0.0.0.0", 0), HostPort(socket.getfqdn(), 80)),
        (HostPort("::", 0), HostPort(socket.getfqdn(), 80)),
    ],
)
def test_who_listens_on_all_addresses_is_reached_by_the_machine_s_name(listen: HostPort, advertised: HostPort) -> None:
    assert advertise(listen, 80) == advertised


@pytest.mark.parametrize(
    ("text", "endpoint", "location"),
    [
        ("/data/x", "", StoreLocation(directory="/data/x")),
        ("s3://bucket", "", StoreLocation(bucket="bucket")),
        ("s3://bucket/a/b/", "http://h:1", StoreLocation(bucket="bucket", prefix="a/b", endpoint="http://h:1")),
        ("s3://b?endpoint=http://h:1&region=eu", "", StoreLocation(bucket="b", endpoint="http://h:1", region="eu")),
    ],
)
def test_a_store_is_a_directory_or_a_bucket(text: str, endpoint: str, location: StoreLocation) -> None:
    assert parse_store(text, endpoint) == location


@pytest.mark.parametrize(
    ("text", "endpoint", "rule"),
    [
        ("gs://bucket", "", "must be a directory or s3://"),
        ("s3://", "", "must be s3://bucket"),
        ("s3://b?x=1", "", "'x' in the store's address must be one of"),
        ("s3://b?endpoint=http://h:1", "http://h:2", "names an endpoint already"),
        ("/data", "http://h:1", "--s3-endpoint needs --store s3://"),
    ],
)
def test_a_wrong_store_is_refused(text: str, endpoint: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        parse_store(text, endpoint)
