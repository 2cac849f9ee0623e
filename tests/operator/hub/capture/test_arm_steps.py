"""One look at a request's ranks, and the step that follows from it."""

from dataclasses import replace
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import Conflict, Spec, parse_request
from fleetprof_operator.hub.capture.arm_steps import (
    EarlierLooks,
    Look,
    StepKind,
    decide,
    find_pause_ns,
    is_grace_over,
    note_missing,
    queue_for_place,
)
from fleetprof_operator.hub.planning.places import NoPlace
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.planning.resolution import Resolution
from fleetprof_operator.hub.settings import SECOND_NS, HubSettings
from harness.kubernetes.documents.requests import with_value

NOW = 1_000_000 * SECOND_NS
DEADLINE = NOW + 600 * SECOND_NS


def spec(**changes: Any) -> Spec:
    found = parse_request(with_value("spec.window", {"durationMillis": 500})).spec
    return found.model_copy(update=changes)


def ranks(*, busy: bool = False, device: str = "", **more: Any) -> Resolution:
    process = pb.Process(
        process_id="p-1",
        polls_kineto=True,
        has_agent=True,
        poll_interval_ns=SECOND_NS,
        last_poll_unix_ns=NOW,
        busy=busy,
        device_kind=device,
    )
    target = RankTarget(rank=0, rank_source="ENV", sidecar_id="s", pod_name="p", node_name="n", process=process)
    return Resolution(targets=[target], **more)


NOBODY = Resolution(reason="NothingMatched", message="no sidecar is connected")
LOOK = Look(
    now_unix_ns=NOW,
    deadline_unix_ns=DEADLINE,
    spec=spec(),
    settings=HubSettings(),
    found=ranks(),
    holder="",
    earlier=(),
    is_impatient=False,
    canary="",
)
GATHERED = EarlierLooks(gather_until_unix_ns=NOW - 1)


@pytest.mark.parametrize(
    ("changes", "memory", "kind", "reason", "message"),
    [
        ({}, EarlierLooks(), "BEGIN", "Gathering", ""),
        ({"found": ranks(incomplete="1 of 2 ranks")}, EarlierLooks(), "GATHER", "Gathering", "1 of 2 ranks"),
        ({"found": ranks(incomplete="1 of 2 ranks")}, GATHERED, "BEGIN", "Gathering", "1 of 2 ranks"),
        ({"found": ranks(incomplete="1 of 2 ranks", final=True)}, EarlierLooks(), "BEGIN", "Gathering", ""),
        ({"found": ranks(busy=True)}, GATHERED, "GATHER", "Gathering", "are being profiled by their job"),
        (
            {"found": ranks(busy=True), "canary": "p-1"},
            EarlierLooks(),
            "GATHER",
            "Gathering",
            "still record, for the canary",
        ),
        ({"found": ranks(busy=True), "deadline_unix_ns": NOW}, EarlierLooks(), "BEGIN", "Gathering", ""),
        (
            {"holder": "x captures them"},
            GATHERED,
            "QUEUE",
            "Queued",
            "place 1 in the queue for these ranks: x",
        ),
        ({"holder": "x", "earlier": ("a", "b")}, EarlierLooks(), "QUEUE", "Queued", "place 3 in the queue"),
        ({"earlier": ("a",)}, EarlierLooks(), "QUEUE", "Queued", "a waits for the same ranks, and comes first"),
        ({"holder": "x", "spec": spec(conflict=Conflict.FAIL)}, EarlierLooks(), "END", "AlreadyCapturing", "x"),
        ({"found": NOBODY}, GATHERED, "SEARCH", "NothingMatched", "no sidecar is connected"),
        (
            {"found": NOBODY, "deadline_unix_ns": NOW},
            EarlierLooks(),
            "END",
            "NothingMatched",
            "(until the deadline of ",
        ),
        ({"found": NOBODY, "is_impatient": True}, EarlierLooks(), "END", "NothingMatched", "no sidecar is connected"),
        (
            {"found": replace(NOBODY, starts=True), "is_impatient": True},
            EarlierLooks(),
            "SEARCH",
            "NothingMatched",
            "no ",
        ),
        (
            {"spec": spec(activities=["Device"]), "found": ranks(device="cpu")},
            EarlierLooks(),
            "END",
            "NoDevice",
            "records nothing of ranks on a CPU",
        ),
        (
            {"spec": spec(activities=["Device"]), "found": ranks(device="cuda")},
            EarlierLooks(),
            "BEGIN",
            "Gathering",
            "",
        ),
        ({"found": replace(NOBODY, deaf_since_unix_ns=1)}, EarlierLooks(), "END", "NothingMatched", "no sidecar"),
    ],
)
def test_a_look_says_what_is_next(
    changes: dict[str, Any], memory: EarlierLooks, kind: str, reason: str, message: str
) -> None:
    step, _ = decide(replace(LOOK, **changes), memory)
    assert (step.kind.name, step.reason) == (kind, reason)
    assert message in step.message


def test_ranks_are_gathered_from_when_they_are_there_and_nobody_else_has_them() -> None:
    waits = replace(LOOK, found=ranks(incomplete="1 of 2"))
    _, first = decide(waits, EarlierLooks())
    _, second = decide(replace(waits, now_unix_ns=NOW + SECOND_NS), first)
    assert first == second == EarlierLooks(gather_until_unix_ns=NOW + LOOK.settings.gather_ns)
    for change in ({"holder": "x"}, {"found": NOBODY}):
        assert decide(replace(waits, **change), first)[1] == EarlierLooks()


def test_missing_ranks_have_a_grace_from_when_others_are_there() -> None:
    gives = spec(missing_ranks_grace_seconds=60)
    memory = note_missing(EarlierLooks(), replace(NOBODY, others=1), NOW)
    memory = note_missing(memory, replace(NOBODY, others=1), NOW + 59 * SECOND_NS)
    assert not is_grace_over(memory, gives, NOW + 59 * SECOND_NS)
    assert is_grace_over(memory, gives, NOW + 60 * SECOND_NS)
    assert not is_grace_over(memory, spec(), NOW + 60 * SECOND_NS)
    assert not is_grace_over(note_missing(memory, NOBODY, NOW), gives, NOW + 600 * SECOND_NS)


def test_who_is_ready_waits_for_a_place_or_fails() -> None:
    step = queue_for_place(spec(), NoPlace(3, "all are taken"))
    assert (step.kind, step.message, step.position) == (StepKind.QUEUE, "place 3 in the queue: all are taken", 3)
    step = queue_for_place(spec(conflict=Conflict.FAIL), NoPlace(3, "all are taken"))
    assert (step.kind, step.reason, step.message) == (StepKind.END, "TooManyCaptures", "all are taken")


def test_who_has_waited_for_long_looks_rarely() -> None:
    settings = LOOK.settings
    gathering, _ = decide(replace(LOOK, found=ranks(incomplete="1 of 2")), EarlierLooks())
    searching, _ = decide(replace(LOOK, found=NOBODY), EarlierLooks())
    assert find_pause_ns(gathering, 3600 * SECOND_NS, settings) == settings.look_again_ns
    assert find_pause_ns(searching, 0, settings) == settings.look_again_ns
    assert find_pause_ns(searching, 3600 * SECOND_NS, settings) == settings.look_rarely_ns
