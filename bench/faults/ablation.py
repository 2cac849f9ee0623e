"""The worth of each rule of the straggler verdict: every suite's cases without it, and without all that add nothing.

python bench/faults/ablation.py [--cases N] [--seed S] [--real FOLDER] [--without RULE,RULE]

Judges the cases of ablation_cases.py with all rules, and without one rule at a time (ablation_rules.py) where it says
anything. Then takes out all together that add nothing singly, and puts those back that are needed: what several rules
find each must not keep them all. Prints a line per rule: in how many cases it says something, how many are worse and
better without it alone, and whether it stays; then the cases that differ. --without judges the cases with all rules
and without these together only, which takes a tenth of the time, and says which of them keeps each case that is worse.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from faults.ablation_cases import KeptCase, keep_all  # noqa: E402
from faults.ablation_rules import RULES, once, watched, without  # noqa: E402
from faults.verdicts import OUTCOMES, judge  # noqa: E402
from harness.traces.straggler_sections import stragglers_of  # noqa: E402

WORDS = ("right", "cause", "gain", *OUTCOMES[1:])
WORTH = {"right": 0, "moves": -1, "gain": -1, "cause": -1, "open": -2, "small": -2, "nobody": -3, "wrong": -6,
         "crash": -6}  # fmt: skip
"""What an outcome is worth beside the right one: a cause is less than a rank, a false rank more than two missed."""


class Suite:
    """All cases, with what was found without which rules."""

    def __init__(self) -> None:
        self._paths: list[Path] = []
        self.names: list[str] = []
        self.suites: list[str] = []
        self._known: list[dict[frozenset[str], tuple[str, frozenset[str]]]] = []

    def load(self, number: int) -> KeptCase:
        case = pickle.loads(self._paths[number].read_bytes())
        assert isinstance(case, KeptCase)
        return case

    def add(self, path: Path, together: frozenset[str]) -> None:
        """Judges a case with all rules, and without each one that says something, or without some together."""
        number = len(self._paths)
        self._paths.append(path)
        self._known.append({})
        case = self.load(number)
        self.names.append(f"{case.suite}: {case.name}")
        self.suites.append(case.suite)
        with once():
            usual, speaking = self.find(number, frozenset(), case)
            tried = [together & speaking] if together else [frozenset((rule,)) for rule in sorted(speaking)]
            for out in tried:
                self.find(number, out, case)
            if together and WORTH[self.outcome(number, together)] < WORTH[usual]:
                for rule in sorted(together):
                    self.outcome(number, together - {rule})
        sets = [together] if together else [frozenset((rule,)) for rule in RULES]
        differ = [f"{found} without {', '.join(out)}" for out in sets if (found := self.outcome(number, out)) != usual]
        print(f"{number + 1}: {self.names[-1]}: {usual} {'; '.join(differ)}", file=sys.stderr, flush=True)

    def find(self, number: int, out: frozenset[str], case: KeptCase | None = None) -> tuple[str, frozenset[str]]:
        """(the outcome of a case without these rules, which of the others say something in it)."""
        known = self._known[number]
        if out not in known:
            case = case or self.load(number)
            with without(out), watched(set(RULES) - out) as speaking:
                try:
                    found = stragglers_of(case.operations, hosts=case.hosts)
                except Exception:  # a rule that another one relies on
                    outcome = "crash"
                else:
                    outcome = "right" if found is None else judge(found, case.truth).word
            known[out] = outcome, frozenset(speaking)
        return known[out]

    def outcome(self, number: int, out: frozenset[str]) -> str:
        """Without rules that say nothing nothing changes."""
        removed: frozenset[str] = frozenset()
        while True:
            found, speaking = self.find(number, removed)
            more = (out & speaking) - removed
            if not more:
                return found
            removed |= more

    def compare(self, out: frozenset[str], before: frozenset[str]) -> list[tuple[int, str, str]]:
        """(case, outcome before, outcome now) of those that differ."""
        cases = range(len(self._paths))
        found = [(number, self.outcome(number, before), self.outcome(number, out)) for number in cases]
        return [one for one in found if one[1] != one[2]]


def weigh(differ: list[tuple[int, str, str]]) -> int:
    """The gain without a rule, less the loss."""
    return sum(WORTH[now] - WORTH[before] for _, before, now in differ)


def eliminate(suite: Suite) -> tuple[frozenset[str], dict[str, list[str]]]:
    """(the rules that go together, the cases that keep each of those that stay).

    All that add nothing singly are taken out; then that one is put back with which most of the cases are as before that
    are worse without them all, until none is worse.
    """
    singly = {rule: weigh(suite.compare(frozenset((rule,)), frozenset())) for rule in RULES}
    out = frozenset(rule for rule, worth in singly.items() if worth >= 0)
    kept: dict[str, list[str]] = {}
    while worse := [one for one in suite.compare(out, frozenset()) if WORTH[one[2]] < WORTH[one[1]]]:
        mended = {
            rule: [number for number, before, _ in worse if WORTH[suite.outcome(number, out - {rule})] >= WORTH[before]]
            for rule in sorted(out)
        }
        rule = max(mended, key=lambda one: len(mended[one]))
        if not mended[rule]:  # several rules together keep the case
            rule = max(out, key=lambda one: sum(one in suite.find(number, frozenset())[1] for number, _, _ in worse))
        out -= {rule}
        kept[rule] = [suite.names[number] for number in mended[rule]]
    return out, kept


def count_outcomes(suite: Suite, out: frozenset[str]) -> list[str]:
    """A line per suite, without some rules."""
    cases = range(len(suite.names))
    counts = Counter((suite.suites[number], suite.outcome(number, out)) for number in cases)
    return [f"{'suite':<12}" + "".join(f"{one:>8}" for one in WORDS)] + [
        f"{one:<12}" + "".join(f"{counts[one, word]:>8}" for word in WORDS) for one in dict.fromkeys(suite.suites)
    ]


def compare_together(suite: Suite, together: frozenset[str]) -> list[str]:
    """The outcomes with and without some rules together, and each case that differs with the rules that keep it."""
    lines = [*count_outcomes(suite, frozenset()), "", f"without {', '.join(sorted(together))}:", ""]
    lines += [*count_outcomes(suite, together), ""]
    for number, before, now in suite.compare(together, frozenset()):
        kept = [
            rule for rule in sorted(together)
            if WORTH[now] < WORTH[before] and WORTH[suite.outcome(number, together - {rule})] >= WORTH[before]
        ]  # fmt: skip
        lines.append(f"{suite.names[number]}: {now}, {before} with them: {', '.join(kept)}")
    return lines


def table(suite: Suite) -> list[str]:
    """A line per rule, and the cases that keep those that stay."""
    cases = range(len(suite.names))
    lines = count_outcomes(suite, frozenset())
    out, kept = eliminate(suite)
    lines += ["", f"{'without':<34}{'says':>6}{'worse':>8}{'better':>8}{'worth':>8}   with the others"]
    for rule in RULES:
        differ = suite.compare(frozenset((rule,)), frozenset())
        worse = sum(WORTH[now] < WORTH[before] for _, before, now in differ)
        better = sum(WORTH[now] > WORTH[before] for _, before, now in differ)
        says = sum(rule in suite.find(number, frozenset())[1] for number in cases)
        last = "may go" if rule in out else f"stays for {len(kept[rule]) or 'several'}" if rule in kept else "stays"
        lines.append(f"{rule:<34}{says:>6}{worse:>8}{better:>8}{weigh(differ):>8}   {last}")
    lines.append("")
    for rule in RULES:
        for number, before, now in suite.compare(frozenset((rule,)), frozenset()):
            lines.append(f"without {rule}: {suite.names[number]}: {now}, {before} with it")
    return lines + [f"{rule} beside the others: {', '.join(names)}" for rule, names in kept.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=1, help="of each class")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--real", type=Path, help="a folder of captures, as planted_faults.py --keep leaves them")
    parser.add_argument("--without", default="", help="rules that are taken out together")
    given = parser.parse_args()
    suite, together = Suite(), frozenset(one for one in given.without.split(",") if one)
    for path in keep_all(given.cases, given.seed, given.real):
        suite.add(path, together)
    lines = compare_together(suite, together) if together else table(suite)
    print(f"python bench/faults/ablation.py {' '.join(sys.argv[1:])}\n\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
