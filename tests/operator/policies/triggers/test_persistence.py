"""The test behind the triggers that last: when it raises an alarm, and how often by chance."""

import random
import re
from pathlib import Path

import pytest
from fleetprof_operator.policies.triggers.persistence import Persistence, mean_looks_to_alarm

PAGE = Path(__file__).parents[4] / "docs/policy.md"


@pytest.mark.parametrize(
    ("looks", "alarms_at"),
    [
        ("+++", [2]),
        ("++-++", [4]),
        ("-----+++", [7]),
        ("++--++", []),
        ("++++++", [2, 5]),
        ("+-+-+-+-+-", []),
    ],
)
def test_an_alarm_is_raised_by_three_looks_more_for_than_against(looks: str, alarms_at: list[int]) -> None:
    persistence = Persistence(3)
    assert [at for at, look in enumerate(looks) if persistence.look(look == "+")] == alarms_at


@pytest.mark.parametrize(("limit", "chance"), [(1, 0.2), (4, 0.3), (6, 0.4), (10, 0.45), (5, 0.5), (3, 0.8)])
def test_the_stated_rate_of_false_alarms_is_the_simulated_one(limit: int, chance: float) -> None:
    draw = random.Random(limit)
    persistence = Persistence(limit)
    alarms = looks = 0
    while alarms < 1000:
        looks += 1
        alarms += persistence.look(draw.random() < chance)
    # The time between two alarms varies about as much as its mean: 1000 of them leave 3 % of error.
    assert looks / alarms == pytest.approx(mean_looks_to_alarm(limit, chance), rel=0.12)


def test_the_rates_on_the_page_are_those() -> None:
    rows = re.findall(r"^\| (0\.\d+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) >= 4
    for chance, cells in rows:
        for limit, cell in zip((10, 30, 120), cells.split(" | "), strict=True):
            days = mean_looks_to_alarm(limit, float(chance)) * 30 / 86_400
            match = re.fullmatch(r"([\d.]+) (minutes|hours|days|years)|more than (1,000,000) years", cell)
            assert match is not None, cell
            if match[3]:
                assert days > 365e6
            else:
                unit = {"minutes": 1 / 1440, "hours": 1 / 24, "days": 1, "years": 365}[match[2]]
                assert float(match[1]) * unit == pytest.approx(days, rel=0.06)
