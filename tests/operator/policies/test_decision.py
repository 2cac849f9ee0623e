"""Capture or not, and why: one rule after the other, and that no order of events breaks the budget."""

from dataclasses import replace
from typing import Any

import pytest
from fleetprof_api.policy import Mode, PolicyCapture, PolicySpec, PolicyStatus, Suppression, parse_policy
from fleetprof_operator.policies.decision import CaptureOrder, Firing, NoCapture, count_ranks, decide, name_request
from fleetprof_operator.policies.log import DAY_NS, PolicyLog, read_log, to_time, write_log
from harness.kubernetes.documents.policies import with_value
from hypothesis import given, settings
from hypothesis import strategies as st

SECOND = 10**9
GIB = 1 << 30
NOW = 1_800_000_000 * SECOND
FIRING = Firing(
    trigger="low", occasion="1", cause="12 %", workload="Job/llama", ranks=4, began_unix_ns=NOW - 3600 * SECOND
)
MADE = PolicyCapture(
    request="starved-1",
    workload="Job/llama",
    trigger="low",
    occasion="0",
    cause="11 %",
    mode=Mode.CAPTURE,
    fired_time=to_time(NOW - 7200 * SECOND),
    trace_bytes=GIB,
    completion_time=to_time(NOW - 7000 * SECOND),
)
POLICY = ("starved", "uid-1")


def capture(**changes: Any) -> PolicyCapture:
    """MADE with these changes."""
    return MADE.model_copy(update=changes)


def make_spec(**budget: int) -> PolicySpec:
    return parse_policy(with_value("spec.budget", budget)).spec


def refused(
    spec: PolicySpec, own: list[PolicyCapture], firing: Firing = FIRING, others: tuple[PolicyCapture, ...] = ()
) -> str:
    decision = decide(spec, POLICY, own, others, firing, NOW)
    return decision.reason.value if isinstance(decision, NoCapture) else ""


@pytest.mark.parametrize(
    ("reason", "budget", "own", "firing"),
    [
        ("", {}, [], FIRING),
        ("", {}, [MADE], FIRING),
        ("Exempt", {}, [], replace(FIRING, is_exempt=True)),
        ("TooYoung", {"minimumAgeSeconds": 3601}, [], FIRING),
        ("", {"minimumAgeSeconds": 3600}, [], FIRING),
        ("AlreadyAnswered", {}, [capture(occasion="1")], FIRING),
        ("AlreadyCapturing", {"concurrent": 9}, [capture(completion_time=None)], FIRING),
        ("Cooldown", {"cooldownSeconds": 7201}, [MADE], FIRING),
        ("", {"cooldownSeconds": 7200}, [MADE], FIRING),
        ("Cooldown", {"cooldownSeconds": 7201}, [capture(mode=Mode.DRY_RUN)], FIRING),
        ("Concurrent", {}, [capture(workload="Job/b", completion_time=None)], FIRING),
        ("", {"concurrent": 2}, [capture(workload="Job/b", completion_time=None)], FIRING),
        ("PerDay", {"perDay": 1}, [capture(workload="Job/b")], FIRING),
        ("", {"perDay": 1}, [capture(workload="Job/b", fired_time=to_time(NOW - DAY_NS - SECOND))], FIRING),
        ("BytesPerDay", {"bytesPerDay": GIB}, [capture(workload="Job/b")], FIRING),
        ("BytesPerDay", {"bytesPerDay": 4 * (32 << 20) - 1}, [], FIRING),
    ],
)
def test_a_firing_makes_a_capture_unless_a_rule_speaks_against_it(
    reason: str, budget: dict[str, int], own: list[PolicyCapture], firing: Firing
) -> None:
    assert refused(make_spec(**budget), own, firing) == reason


@pytest.mark.parametrize(
    ("reason", "other"),
    [
        ("AlreadyCapturing", capture(completion_time=None)),
        ("Cooldown", capture(fired_time=to_time(NOW - SECOND))),
        ("", capture(fired_time=to_time(NOW - SECOND), mode=Mode.DRY_RUN)),
        ("", capture(fired_time=to_time(NOW - SECOND), workload="Job/b")),
    ],
)
def test_policies_heed_each_others_captures_of_a_job(reason: str, other: PolicyCapture) -> None:
    assert refused(make_spec(), [], others=(other,)) == reason


@pytest.mark.parametrize(
    ("left_bytes", "most"), [(64 * GIB, None), (4 * GIB, None), (2 * GIB, GIB // 2), (4 * (32 << 20), 32 << 20)]
)
def test_the_limit_of_a_trace_is_lowered_to_what_is_left(left_bytes: int, most: int | None) -> None:
    decision = decide(make_spec(bytesPerDay=left_bytes), POLICY, [], [], FIRING, NOW)
    assert isinstance(decision, CaptureOrder)
    assert decision.max_trace_bytes == most
    assert decision.capture.trace_bytes == 4 * (most or GIB)


@pytest.mark.parametrize(
    ("chosen", "count"),
    [(None, 10), ({"list": [0, 3]}, 2), ({"sample": 4}, 4), ({"sample": 99}, 10), ({"every": 4}, 3)],
)
def test_the_ranks_of_a_template_are_counted(chosen: dict[str, Any] | None, count: int) -> None:
    spec: dict[str, Any] = {"window": {"iterations": 5}} | ({"ranks": chosen} if chosen else {})
    template = parse_policy(with_value("spec.template.spec", spec)).spec.template.spec
    assert count_ranks(template, 10) == count


def test_a_name_is_that_of_policy_job_trigger_and_occasion() -> None:
    name = name_request(POLICY, FIRING)
    assert name.startswith("starved-")
    assert name == name_request(POLICY, replace(FIRING, cause="13 %", ranks=5))
    others = [replace(FIRING, occasion="2"), replace(FIRING, trigger="told"), replace(FIRING, workload="Job/b")]
    assert len({name, *(name_request(POLICY, f) for f in others), name_request(("starved", "uid-2"), FIRING)}) == 5
    assert len(name_request(("a" * 34 + "-" + "b" * 17, "uid-1"), FIRING)) <= 52


JOBS = ("Job/a", "Job/b", "Job/c")
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("fire"), st.sampled_from(JOBS), st.sampled_from(("low", "told")), st.integers(0, 5)),
        st.tuples(st.just("end"), st.integers(0, 20), st.integers(0, 4 * GIB)),
        st.tuples(st.just("wait"), st.integers(1, 50_000)),
        st.tuples(st.just("restart")),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(
    events=EVENTS,
    per_day=st.integers(1, 4),
    concurrent=st.integers(1, 2),
    cooldown=st.integers(60, 20_000),
    gib=st.integers(1, 12),
)
def test_no_order_of_events_makes_more_than_the_budget(
    events: list[tuple[Any, ...]], per_day: int, concurrent: int, cooldown: int, gib: int
) -> None:
    """Firings, ends, waiting and restarts, which keep no more than the status."""
    spec = make_spec(perDay=per_day, concurrent=concurrent, cooldownSeconds=cooldown, bytesPerDay=gib * GIB)
    log, now = PolicyLog({}, {}), NOW
    made: list[PolicyCapture] = []
    for event in events:
        match event:
            case "fire", workload, trigger, occasion:
                firing = replace(FIRING, workload=workload, trigger=trigger, occasion=str(occasion))
                decision = decide(spec, POLICY, log.captures.values(), [], firing, now)
                if isinstance(decision, CaptureOrder):
                    assert decision.capture.request not in {c.request for c in made} or (
                        now - next(c for c in made if c.request == decision.capture.request).fired_unix_ns > DAY_NS
                    )
                    made.append(decision.capture)
                    log.note_capture(decision.capture)
                    check(made, log, now, per_day, concurrent, cooldown, gib * GIB)
                else:
                    log.note_left(workload, trigger, decision.reason, decision.message, now)
            case "end", index, written:
                running = [c for c in log.captures.values() if not c.is_over]
                if running:
                    chosen = running[index % len(running)]
                    log.change(
                        chosen.request,
                        completion_time=to_time(now),
                        trace_bytes=min(written, chosen.trace_bytes),
                    )
            case "wait", seconds:
                now += seconds * SECOND + 1
            case _:
                log = read_log(PolicyStatus.model_validate(write_log(log)).model_dump(mode="json", by_alias=True))
        log.forget(now, lambda capture: False)
    assert log.fired == log.captured + log.suppressed


def check(
    made: list[PolicyCapture], log: PolicyLog, now: int, per_day: int, concurrent: int, cooldown: int, budget_bytes: int
) -> None:
    today = [c for c in made if now - c.fired_unix_ns <= DAY_NS]
    assert len(today) <= per_day
    assert sum(not c.is_over for c in log.captures.values()) <= concurrent
    assert sum(c.trace_bytes for c in log.captures.values() if now - c.fired_unix_ns <= DAY_NS) <= budget_bytes
    latest = today[-1]
    for other in today[:-1]:
        if other.workload == latest.workload:
            assert latest.fired_unix_ns - other.fired_unix_ns >= (cooldown - 1) * SECOND


def test_alike_suppressions_are_one_entry_and_the_oldest_leave() -> None:
    log = PolicyLog({}, {})
    assert log.note_left("Job/a", "low", Suppression.COOLDOWN, "later", NOW)
    assert not log.note_left("Job/a", "low", Suppression.COOLDOWN, "later", NOW + SECOND)
    for n in range(64):
        log.note_left(f"Job/{n}", "low", Suppression.COOLDOWN, "later", NOW)
    assert len(log.left) == 64
    assert ("Job/a", "low", Suppression.COOLDOWN) not in log.left
    assert (log.fired, log.suppressed) == (66, 66)


def test_a_capture_is_kept_for_a_day_and_while_it_is_remembered() -> None:
    log = PolicyLog({}, {})
    log.note_capture(MADE)
    log.note_capture(capture(request="starved-2", completion_time=None))
    log.forget(MADE.fired_unix_ns + DAY_NS, lambda capture: False)
    assert set(log.captures) == {"starved-1", "starved-2"}
    log.forget(MADE.fired_unix_ns + DAY_NS + 1, lambda capture: capture.request == "starved-1")
    assert set(log.captures) == {"starved-1", "starved-2"}
    log.forget(MADE.fired_unix_ns + DAY_NS + 1, lambda capture: False)
    assert set(log.captures) == {"starved-2"}, "it has not ended"
