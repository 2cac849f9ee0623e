"""The skill of the triggers to tell generated jobs apart; the table in docs/policy.md is this one."""

import re
from collections import Counter
from pathlib import Path

import pytest
from fleetprof_api.policy import Trigger, parse_policy
from fleetprof_operator.policies.triggers.evaluation import JobEvaluation
from harness.kubernetes.documents.policies import with_value
from harness.policies.generated_jobs import STORIES, tell

PAGE = Path(__file__).parents[4] / "docs/policy.md"
RUNS = 20
KINDS = {"low": "LowUtilization", "behind": "Straggler", "drift": "IterationTimeDrift", "stands": "Stalled"}
TRIGGERS: list[Trigger] = parse_policy(
    with_value("spec.triggers", [{"name": name, "type": kind} for name, kind in KINDS.items()])
).spec.triggers


@pytest.fixture(scope="module")
def fired() -> dict[tuple[str, str], int]:
    """(story, trigger) → in how many of its runs it fired, with the defaults of the triggers.

    Its tests run in one worker: to tell all stories takes three seconds.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for story, (tale, _) in STORIES.items():
        for seed in range(RUNS):
            evaluation = JobEvaluation(TRIGGERS)
            names = {s.trigger for now, figures in tell(tale, seed) for s in evaluation.add(figures, now)}
            counts.update((story, name) for name in names)
    return counts


@pytest.mark.xdist_group("detection")
@pytest.mark.parametrize("trigger", KINDS)
def test_precision_and_recall_are_at_least_95_percent(fired: dict[tuple[str, str], int], trigger: str) -> None:
    right = sum(fired[story, trigger] for story, (_, expected) in STORIES.items() if trigger in expected)
    ought = sum(RUNS for _, expected in STORIES.values() if trigger in expected)
    of_all = sum(fired[story, trigger] for story in STORIES)
    assert right / ought >= 0.95
    assert right / of_all >= 0.95


def _row(fired: dict[tuple[str, str], int], story: str) -> str:
    marks = dict.fromkeys(STORIES[story][1], " (expected)")
    return f"| {story} | " + " | ".join(f"{fired[story, name]}{marks.get(name, '')}" for name in KINDS) + " |"


@pytest.mark.xdist_group("detection")
def test_the_table_of_the_page_is_what_was_found(fired: dict[tuple[str, str], int]) -> None:
    rows = [_row(fired, story) for story in STORIES]
    table = re.search(r"^\| job \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE.read_text(), re.MULTILINE)
    assert table is not None
    assert table[1].splitlines() == rows


def test_a_job_without_a_gpu_is_judged_by_its_own_best_rate() -> None:
    evaluation = JobEvaluation(TRIGGERS)
    tale, _ = STORIES["idle"]
    fired = [s for now, figures in tell(tale, 1, has_gpu=False) for s in evaluation.add(figures, now)]
    causes = [s.cause for s in fired if s.trigger == "low"]
    assert causes[0] == "0 % of the job's own best iteration rate, below 30 % for most of 900 s"
