"""The triggers on what real jobs told (tests/data/telemetry), one job of each story; the table is in docs/policy.md."""

import json
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.policy import Trigger, parse_policy
from fleetprof_operator.policies.triggers.evaluation import JobEvaluation
from fleetprof_operator.policies.triggers.figures import Job, JobFigures
from harness.kubernetes.documents.policies import with_value

ROOT = Path(__file__).parents[4]
FILES = sorted((ROOT / "tests/data/telemetry").glob("*.json"))
CHANGES_S = 600
"""The jobs that change do so later than this."""
TRIGGERS: list[Trigger] = parse_policy(
    with_value(
        "spec.triggers",
        [
            {"name": "low", "type": "LowUtilization", "lowUtilization": {"forSeconds": 600}},
            {"name": "drift", "type": "IterationTimeDrift", "iterationTimeDrift": {"forSeconds": 600}},
        ],
    )
).spec.triggers
# A job that waits for data is slower than it was as well.
EXPECTED = {"data-starved": {"low", "drift"}, "idle": {"low"}, "drift": {"drift"}}


def find_fired(recorded: dict[str, Any]) -> dict[str, int]:
    """Trigger → when it fired first, in seconds of the recording."""
    evaluation = JobEvaluation(TRIGGERS)
    fired: dict[str, int] = {}
    columns = (recorded[name] for name in ("at_s", "iteration", "iteration_ns", "activity_permille"))
    for at_s, iteration, iteration_ns, activity in zip(*columns, strict=True):
        figures = JobFigures(
            job=Job("local", "batch/v1", "Job", "recorded"),
            ranks=recorded["ranks"],
            began_unix_ns=1,
            iteration=iteration,
            iteration_ns=iteration_ns,
            activity_permille=activity,
        )
        for detection in evaluation.add(figures, at_s * 10**9):
            fired.setdefault(detection.trigger, at_s)
    return fired


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_recorded_job_fires_what_its_story_says(path: Path) -> None:
    recorded = json.loads(path.read_text())
    fired = find_fired(recorded)
    assert set(fired) == EXPECTED.get(path.stem, set())
    assert all(at_s > CHANGES_S for at_s in fired.values())


def test_the_table_of_the_page_has_every_recorded_job() -> None:
    page = (ROOT / "docs/policy.md").read_text()
    for path in FILES:
        found = EXPECTED.get(path.stem, set())
        cells = ("fired (expected)" if name in found else "" for name in ("low", "drift"))
        assert f"| {path.stem.replace('-', ' ')} | {' | '.join(cells)} |" in page
