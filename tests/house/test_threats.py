"""docs/security.md and the attacks agree: every threat has its tests, and every attack its threat."""

import pytest
from harness.reference.threats import PAGE, Threat, exists, find_marked, read_threats

THREATS = read_threats(PAGE.read_text())


@pytest.mark.parametrize("threat", THREATS, ids=lambda threat: threat.text[:60])
def test_every_threat_names_tests_that_are_there(threat: Threat) -> None:
    assert threat.tests, "no test stands beside this threat"
    assert [test for test in threat.tests if not exists(test)] == []


def test_every_attack_is_named_beside_a_threat() -> None:
    named = {test for threat in THREATS for test in threat.tests}
    assert [test for test in find_marked() if test not in named] == []


def test_the_page_has_threats() -> None:
    assert len(THREATS) >= 20
