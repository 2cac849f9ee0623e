"""`make attack`: runs the attacks that docs/security.md names, and prints each threat with what came of its tests.

Loopback only, bounded like all tests. The exit code is that of pytest, or 1 when a test of the page did not run:
a skipped attack is never told as one that was resisted.
"""

import sys
from collections import Counter

import pytest

sys.path.insert(0, str(__file__).rsplit("/", 1)[0])

from harness.reference.threats import PAGE, Threat, read_threats

RESISTED, SUCCEEDED, NOT_RUN = "resisted", "SUCCEEDED", "not run"


class Outcomes:
    """A pytest plug-in that keeps what came of each test, the cases of a table under one name."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts the call of each case, and a set-up that did not come to one."""
        if report.when != "call" and report.outcome == "passed":
            return
        path, _, name = report.nodeid.partition("::")
        test = f"{path}::{name.rpartition('::')[2].partition('[')[0]}"
        self.counts.setdefault(test, Counter())[report.outcome] += 1

    def judge(self, test: str) -> str:
        """The verdict on a test: one failed case is a success of the attack."""
        counts = self.counts.get(test, Counter())
        if counts["failed"]:
            return SUCCEEDED
        return RESISTED if counts["passed"] else NOT_RUN


def tell(threats: list[Threat], outcomes: Outcomes) -> bool:
    """Prints the table; tells whether every test ran."""
    verdicts = Counter[str]()
    for threat in threats:
        print(f"\n{threat.text}")
        for test in threat.tests:
            verdict = outcomes.judge(test)
            verdicts[verdict] += 1
            cases = sum(outcomes.counts.get(test, Counter()).values())
            print(f"  {verdict:9}  {cases:4}  {test}")
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in (RESISTED, SUCCEEDED, NOT_RUN))
    print(f"\n{len(threats)} threats, {verdicts.total()} attacks: {counts}")
    return not verdicts[NOT_RUN]


def main() -> int:
    """Runs all, with what else the command line has for pytest."""
    threats = read_threats(PAGE.read_text())
    tests = list(dict.fromkeys(test for threat in threats for test in threat.tests))
    outcomes = Outcomes()
    code = int(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:], *tests], plugins=[outcomes]))
    return code if tell(threats, outcomes) else code or 1


if __name__ == "__main__":
    raise SystemExit(main())
