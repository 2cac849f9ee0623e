"""The state of a capture as an exit code, a document and a display."""

import json

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_cli.capture.jobs import choose_job, group_jobs
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.terminal.progress import draw_capture
from fleetprof_cli.terminal.status_text import (
    exit_code,
    failure_lines,
    sentence,
    status_document,
    view,
)
from rich.console import Console

S = 10**9


def make_status(
    *states: pb.RankState.ValueType, succeeded: str = "True", reason: str = "", message: str = ""
) -> pb.CaptureStatus:
    return pb.CaptureStatus(
        uid="u1",
        name="look",
        target="Job/llama",
        finished=True,
        start_mode="step",
        first_step=71,
        submitted_unix_ns=100 * S,
        completed_unix_ns=103 * S,
        conditions=[pb.Condition(type="Succeeded", status=succeeded, reason=reason, message=message)],
        ranks=[
            pb.CaptureEvent(
                rank=number,
                state=state,
                reason="ProcessKilled" if state == pb.FAILED else "",
                message="it ended by signal 9" if state == pb.FAILED else "",
                trace_bytes=2048 if state == pb.UPLOADED else 0,
                compressed_bytes=100 if state == pb.UPLOADED else 0,
            )
            for number, state in enumerate(states)
        ],
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (make_status(pb.UPLOADED, pb.UPLOADED), ExitCode.DONE),
        (make_status(pb.UPLOADED, pb.FAILED), ExitCode.PARTIAL),
        (
            make_status(pb.UPLOADED, pb.UPLOADED, reason="PartiallyCaptured"),
            ExitCode.PARTIAL,
        ),  # from different steps on
        (make_status(pb.FAILED, pb.FAILED, succeeded="False"), ExitCode.CAPTURE_FAILED),
        (make_status(pb.UPLOADED, succeeded="False", reason="AnalysisFailed"), ExitCode.PARTIAL),
        (make_status(succeeded="False", reason="NothingMatched"), ExitCode.REFUSED),
        (make_status(succeeded="False", reason="Cancelled"), ExitCode.CAPTURE_FAILED),
    ],
)
def test_the_exit_code_says_how_a_capture_ended(status: pb.CaptureStatus, code: ExitCode) -> None:
    assert exit_code(status) == code


def test_the_document_is_json_with_numbers_as_numbers() -> None:
    document = json.loads(json.dumps(status_document(make_status(pb.UPLOADED, pb.FAILED))))
    assert document["submitted_unix_ns"] == 100 * S
    assert [(rank["rank"], rank["state"], rank["reason"]) for rank in document["ranks"]] == [
        (0, "UPLOADED", ""),
        (1, "FAILED", "ProcessKilled"),
    ]


def test_the_document_holds_every_field_of_a_status() -> None:
    keys = set(status_document(make_status(pb.UPLOADED)))
    assert keys == {field.name for field in pb.CaptureStatus.DESCRIPTOR.fields} - {"request_json"}
    rank = status_document(make_status(pb.UPLOADED))["ranks"][0]
    assert set(rank) == {field.name for field in pb.CaptureEvent.DESCRIPTOR.fields} - {"capture_id"}


def test_failures_are_grouped_by_reason() -> None:
    (line,) = failure_lines(make_status(*[pb.FAILED] * 100, pb.UPLOADED))
    assert line.startswith(
        "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 88 more: ProcessKilled: it ended by signal 9"
    )


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (make_status(pb.UPLOADED, pb.FAILED, reason="Partial"), "1 of 2 ranks uploaded, 1 failed: Partial"),
        (make_status(succeeded="False", message="no sidecar matches"), "no sidecar matches"),
        (pb.CaptureStatus(), "no rank yet"),
    ],
)
def test_a_status_in_one_line(status: pb.CaptureStatus, text: str) -> None:
    assert sentence(status) == text


def drawn(status: pb.CaptureStatus) -> list[str]:
    console = Console(width=100, record=True, file=None, force_terminal=False, quiet=True)
    with console.capture() as taken:
        console.quiet = False
        console.print(draw_capture(view(status), 103 * S))
    return [line.rstrip() for line in taken.get().splitlines()]


def test_few_ranks_are_shown_one_by_one() -> None:
    lines = drawn(make_status(pb.UPLOADED, pb.STARTED, pb.FAILED))
    assert lines[0].startswith("look of Job/llama, from step 71, 3s: 1 of 3 ranks uploaded, 1 failed")
    assert lines[1].split() == ["rank", "0", "uploaded", "2.00", "KiB,", "100", "bytes", "uploaded"]
    assert lines[2].split() == ["rank", "1", "recording"]
    assert lines[3].split() == ["rank", "2", "failed", "ProcessKilled:", "it", "ended", "by", "signal", "9"]


def test_many_ranks_are_counted_and_the_slowest_named() -> None:
    lines = drawn(make_status(*[pb.UPLOADED] * 98, pb.ASKED, pb.STARTED))
    assert [line.split(maxsplit=1) for line in lines[1:4]] == [
        ["1", "waiting for its next poll"],
        ["1", "recording"],
        ["98", "uploaded"],
    ]
    assert "rank 98" in lines[4]
    assert "rank 99" in lines[5]
    assert len(lines) == 9


def test_what_comes_from_elsewhere_is_no_markup() -> None:
    status = make_status(pb.FAILED)
    status.ranks[0].message = "[bold red]boo[/] \x1b[31mred"
    text = "\n".join(drawn(status))
    assert "[bold red]boo[/]" in text
    assert "\x1b" not in text


def make_sidecar(name: str, namespace: str = "local", host: str = "h1", left: bool = False) -> pb.SidecarStatus:
    workload = pb.Workload(api_version="batch/v1", kind="Job", name=name)
    return pb.SidecarStatus(
        sidecar_id=host + name,
        connected_unix_ns=0 if left else 100 * S,
        identity=pb.Identity(namespace=namespace, node_name=host, workload=workload),
        processes=[
            pb.Process(process_id="a", role=pb.TRAINER, rank=0, polls_kineto=True),
            pb.Process(process_id="b", role=pb.LAUNCHER, polls_kineto=True),
            pb.Process(process_id="c", role=pb.WORKER, polls_kineto=True),
            pb.Process(process_id="d", role=pb.TRAINER, rank=1, polls_kineto=False),
        ],
    )


def test_sidecars_of_one_workload_are_one_job() -> None:
    (running,) = group_jobs([make_sidecar("llama", host="h2"), make_sidecar("llama")])
    assert running.hosts == ("h1", "h2")
    assert len(running.trainers()) == 2


FLEET = group_jobs(
    [make_sidecar("a"), make_sidecar("b"), make_sidecar("b", namespace="team"), make_sidecar("gone", left=True)]
)


@pytest.mark.parametrize(
    ("name", "namespace", "chosen"),
    [("a", None, ("a", "local")), ("Job/a", None, ("a", "local")), ("b", "team", ("b", "team"))],
)
def test_a_job_is_chosen_by_name(name: str, namespace: str | None, chosen: tuple[str, str]) -> None:
    job = choose_job(FLEET, name, namespace).job
    assert (job.name, job.namespace) == chosen


@pytest.mark.parametrize(
    ("name", "message", "code"),
    [
        ("gone", "no job gone is running", ExitCode.REFUSED),
        (None, "several jobs are running", ExitCode.INVALID),
        ("b", "several jobs are named b", ExitCode.REFUSED),
        ("c", "no job c is running", ExitCode.REFUSED),
    ],
)
def test_a_choice_that_cannot_be_made_names_what_there_is(name: str | None, message: str, code: ExitCode) -> None:
    with pytest.raises(Failure) as caught:
        choose_job(FLEET, name, None)
    assert caught.value.message == message
    assert caught.value.exit_code == code
    assert "b (namespace team)" in caught.value.next_step


def test_a_job_that_has_ended_stands_in_nobodys_way() -> None:
    """The hub remembers for a while who was there."""
    jobs = group_jobs([make_sidecar("a"), make_sidecar("gone", left=True), make_sidecar("a", host="h2", left=True)])
    assert choose_job(jobs, None, None).hosts == ("h1",)


def rank_on(sidecar: pb.SidecarStatus, *ranks: int, pid: int) -> pb.SidecarStatus:
    del sidecar.processes[:]
    for rank in ranks:
        sidecar.processes.add(rank=rank, pid=pid + rank, role=pb.TRAINER, polls_kineto=True)
    return sidecar


def test_two_jobs_of_one_name_are_told_apart_and_neither_is_taken_for_the_other() -> None:
    """Sidecars of one job never see the same rank."""
    one_job = [rank_on(make_sidecar("a"), 0, 1, pid=10), rank_on(make_sidecar("a", host="h2"), 2, 3, pid=10)]
    (alone,) = group_jobs(one_job)
    assert alone.namesakes == ()
    assert choose_job([alone], "a", None) is alone
    (both,) = group_jobs([*one_job, rank_on(make_sidecar("a", host="h2"), 0, 1, pid=70)])
    assert [words.partition(" since ")[0] for words in both.namesakes] == ["on h1, h2", "on h2"]
    assert [words.partition("pid ")[2] for words in both.namesakes] == ["10 and others", "70 and others"]
    with pytest.raises(Failure, match=r"2 jobs are named a: on h1, h2 since .*; on h2 since ") as caught:
        choose_job([both], "a", None)
    assert "--name" in caught.value.next_step
    assert both.document()["namesakes"] == list(both.namesakes)


def test_the_only_job_needs_no_name() -> None:
    assert choose_job(FLEET[:1], None, None).job.name == "a"
