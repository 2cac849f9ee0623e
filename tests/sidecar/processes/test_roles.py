"""Trainers: families of processes as they occur, and what is made of each member."""

import itertools
from typing import Any

import pytest
from fleetprof_sidecar.processes.roles import Environment, Role, RoleEvidence, infer_roles
from hypothesis import given
from hypothesis import strategies as st

TRAINER, LAUNCHER, WORKER, UNKNOWN = Role.TRAINER, Role.LAUNCHER, Role.WORKER, Role.UNKNOWN
NO_RANK = Environment()


def below_torchrun(rank: int, restart: int = 0) -> Environment:
    return Environment(rank=rank, local_rank=rank, world_size=2, run_id="x", restart_count=restart)


def process(name: str, *pids: int, **facts: Any) -> RoleEvidence:
    return RoleEvidence(name, pids, **facts)


FAMILIES = {
    "torchrun, everything visible": (
        [
            process("run", 10, 1, environment=Environment(launcher_program=True)),
            process("r0", 11, 10, 1, environment=below_torchrun(0)),
            process("r1", 12, 10, 1, environment=below_torchrun(1)),
        ],
        {"run": LAUNCHER, "r0": TRAINER, "r1": TRAINER},
        {"r0", "r1"},
    ),
    "a launcher of an unknown name": (
        [
            process("run", 10, 1, environment=NO_RANK, settled=True),
            process("r0", 11, 10, 1, environment=below_torchrun(0)),
        ],
        {"run": LAUNCHER, "r0": TRAINER},
        {"r0"},
    ),
    "an operator gave the launcher the rank of its node": (
        [
            process("run", 10, 1, environment=Environment(rank=0, world_size=2), settled=True),
            process("r0", 11, 10, 1, environment=below_torchrun(0)),
        ],
        {"run": LAUNCHER, "r0": TRAINER},
        {"r0"},
    ),
    "the same, before its children poll": (
        [process("run", 10, 1, environment=Environment(rank=0, world_size=2))],
        {"run": UNKNOWN},
        set(),
    ),
    "one process a pod, rank from the operator": (
        [process("train", 1, environment=Environment(rank=0, world_size=2), settled=True)],
        {"train": TRAINER},
        {"train"},
    ),
    "spawned data-loader workers inherit the rank": (
        [
            process("run", 10, 1, environment=Environment(launcher_program=True)),
            process("r0", 11, 10, environment=below_torchrun(0)),
            process("w0", 21, 11, 10, environment=below_torchrun(0), settled=True),
            process("w1", 22, 11, 10, environment=below_torchrun(0), settled=True),
        ],
        {"run": LAUNCHER, "r0": TRAINER, "w0": WORKER, "w1": WORKER},
        {"r0"},
    ),
    "a worker of a worker": (
        [
            process("r0", 11, 10, environment=below_torchrun(0)),
            process("server", 21, 11, 10, environment=below_torchrun(0)),
            process("w0", 22, 21, 11, 10, environment=below_torchrun(0)),
        ],
        {"r0": TRAINER, "server": WORKER, "w0": WORKER},
        {"r0"},
    ),
    "a worker whose environment was emptied": (
        [
            process("r0", 11, 10, environment=below_torchrun(0)),
            process("w0", 21, 11, 10, environment=NO_RANK, settled=True),
        ],
        {"r0": TRAINER, "w0": WORKER},
        {"r0"},
    ),
    "agents, nothing else visible": (
        [
            process("run", 10, settled=True),
            process("r0", 11, 10, stepped=True),
            process("r1", 12, 10, stepped=True),
            process("w0", 21, 11, 10, settled=True),
        ],
        {"run": LAUNCHER, "r0": TRAINER, "r1": TRAINER, "w0": WORKER},
        {"r0", "r1"},
    ),
    "a rank that has not stepped yet, beside one that has": (
        [
            process("run", 10, settled=True),
            process("r0", 11, 10, stepped=True),
            process("r1", 12, 10, settled=True),
        ],
        {"run": LAUNCHER, "r0": TRAINER, "r1": UNKNOWN},
        {"r0", "r1"},
    ),
    "a lone script": ([process("train", 10, 1, environment=NO_RANK, settled=True)], {"train": UNKNOWN}, {"train"}),
    "a lone script, just started": ([process("train", 10, 1)], {"train": UNKNOWN}, set()),
    "a script with spawned children, or a launcher with ranks: nobody can tell": (
        [
            process("a", 10, 1, settled=True),
            process("b", 11, 10, 1, settled=True),
            process("c", 12, 10, 1, settled=True),
        ],
        {"a": UNKNOWN, "b": UNKNOWN, "c": UNKNOWN},
        set(),
    ),
    "two containers of one pod repeat a pid": (
        [process("a", 7, stepped=True), process("b", 7, stepped=True)],
        {"a": TRAINER, "b": TRAINER},
        {"a", "b"},
    ),
    "a trainer that starts another trainer": (
        [process("a", 10, stepped=True), process("b", 11, 10, stepped=True)],
        {"a": TRAINER, "b": TRAINER},
        {"a", "b"},
    ),
    "torchrun started another group of workers": (
        [
            process("run", 10, 1, environment=Environment(launcher_program=True)),
            process("old", 11, 10, environment=below_torchrun(0, restart=0)),
            process("new", 31, 10, environment=below_torchrun(0, restart=1)),
        ],
        {"run": LAUNCHER, "old": TRAINER, "new": TRAINER},
        {"old", "new"},
    ),
}


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_each_member_of_a_family_is_told(family: str) -> None:
    members, roles, candidates = FAMILIES[family]
    verdicts = infer_roles(members)
    assert {key: verdict.role for key, verdict in verdicts.items()} == roles
    assert {key for key, verdict in verdicts.items() if verdict.candidate} == candidates


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_the_order_of_the_facts_does_not_matter(family: str) -> None:
    members = FAMILIES[family][0]
    verdicts = [infer_roles(order) for order in itertools.permutations(members)]
    assert all(verdict == verdicts[0] for verdict in verdicts)


ENVIRONMENTS = st.none() | st.builds(
    Environment,
    rank=st.none() | st.integers(0, 1),
    local_rank=st.none() | st.integers(0, 1),
    launcher_program=st.booleans(),
)


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True), st.booleans(), st.booleans(), ENVIRONMENTS
        ),
        max_size=7,
    )
)
def test_whoever_begot_or_serves_a_trainer_is_no_candidate_unless_it_steps_itself(
    rows: list[tuple[list[int], bool, bool, Environment]],
) -> None:
    members = [
        RoleEvidence(str(number), tuple(pids), stepped, settled, environment)
        for number, (pids, stepped, settled, environment) in enumerate(rows)
    ]
    verdicts = infer_roles(members)
    assert set(verdicts) == {member.key for member in members}
    for member in members:
        verdict = verdicts[member.key]
        assert verdict.candidate or verdict.role is not TRAINER
        if member.stepped:
            assert verdict.role is TRAINER
            continue
        related = [
            other
            for other in members
            if other.stepped
            and other.pids[0] != member.pids[0]
            and (member.pids[0] in other.pids[1:] or other.pids[0] in member.pids[1:])
        ]
        if related:
            assert verdict.role in (LAUNCHER, WORKER)
            assert not verdict.candidate


@pytest.mark.parametrize(
    ("command_launches", "members", "expected", "candidates"),
    [
        (
            True,
            [process("run", 1), process("r0", 11, settled=True), process("r1", 12, settled=True)],
            {"run": LAUNCHER, "r0": UNKNOWN, "r1": UNKNOWN},
            {"r0", "r1"},
        ),
        (
            True,
            [process("run", 7), process("r0", 11, 7, settled=True)],
            {"run": LAUNCHER, "r0": UNKNOWN},
            {"r0"},
        ),
        (True, [process("run", 1, settled=True)], {"run": LAUNCHER}, set()),
        (
            True,
            [process("run", 1), process("r0", 11, settled=True), process("w", 21, 11, settled=True)],
            {"run": LAUNCHER, "r0": UNKNOWN, "w": UNKNOWN},
            set(),
        ),
        (
            True,
            [process("run", 1), process("r0", 11, stepped=True), process("w", 21, 11, settled=True)],
            {"run": LAUNCHER, "r0": TRAINER, "w": WORKER},
            {"r0"},
        ),
        (True, [process("train", 1, stepped=True)], {"train": TRAINER}, {"train"}),
        (False, [process("train", 1, settled=True)], {"train": UNKNOWN}, {"train"}),
        (
            False,
            [process("train", 1, settled=True), process("w", 11, settled=True)],
            {"train": UNKNOWN, "w": UNKNOWN},
            set(),
        ),
        (
            False,
            [process("train", 1, stepped=True), process("w", 11, settled=True)],
            {"train": TRAINER, "w": WORKER},
            {"train"},
        ),
        (
            False,
            [process("run", 1, settled=True), process("r0", 11, stepped=True)],
            {"run": LAUNCHER, "r0": TRAINER},
            {"r0"},
        ),
    ],
)
def test_families_of_a_container_that_cannot_be_seen_into(
    command_launches: bool, members: list[RoleEvidence], expected: dict[str, Role], candidates: set[str]
) -> None:
    """As in a pod: no environment of anybody is visible, and Kineto leaves pid 1 out of its lists of ancestors.

    What the container's command says decides about its first process.
    """
    verdicts = infer_roles(members, command_launches=command_launches)
    assert {key: verdict.role for key, verdict in verdicts.items()} == expected
    assert {key for key, verdict in verdicts.items() if verdict.candidate} == candidates
