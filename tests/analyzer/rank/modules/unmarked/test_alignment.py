"""Two sequences are aligned by what all best alignments agree on."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest
from fleetprof_analyzer.rank.modules.unmarked.alignment import align
from hypothesis import given, settings
from hypothesis import strategies as st

Pairs = tuple[tuple[int, int], ...]


def best_alignments(first: Sequence[int], second: Sequence[int]) -> Iterator[Pairs]:
    """All alignments that leave out the fewest, by trying."""

    @cache
    def least(i: int, j: int) -> int:
        if i == len(first) or j == len(second):
            return len(first) - i + len(second) - j
        left_out = min(least(i + 1, j), least(i, j + 1)) + 1
        return min(left_out, least(i + 1, j + 1)) if first[i] == second[j] else left_out

    def follow(i: int, j: int) -> Iterator[Pairs]:
        if i == len(first) and j == len(second):
            yield ()
            return
        if i < len(first) and 1 + least(i + 1, j) == least(i, j):
            yield from follow(i + 1, j)
        if j < len(second) and 1 + least(i, j + 1) == least(i, j):
            yield from follow(i, j + 1)
        if i < len(first) and j < len(second) and first[i] == second[j] and least(i + 1, j + 1) == least(i, j):
            yield from (((i, j), *rest) for rest in follow(i + 1, j + 1))

    yield from follow(0, 0)


words = st.text("abc", max_size=6).map(lambda text: [ord(one) for one in text])


@settings(max_examples=150, deadline=None)
@given(words, words)
def test_a_pair_is_told_where_all_best_alignments_have_it(first: list[int], second: list[int]) -> None:
    found = align(np.array(first, np.int64), np.array(second, np.int64))
    every = [set(one) for one in best_alignments(first, second)]
    sure, possible = set.intersection(*every), set.union(*every)
    assert found is not None
    partner = dict.fromkeys(range(len(second)), -1) | {j: i for i, j in sure}
    assert found.partner.tolist() == list(partner.values())
    certain = {i for i, _ in sure}
    assert np.flatnonzero(found.is_doubtful).tolist() == sorted({i for i, _ in possible} - certain)
    assert all(found.low[j] <= i <= found.high[j] for i, j in possible)


@pytest.mark.parametrize(
    ("first", "second", "partner"),
    [
        ("abcde", "abcde", [0, 1, 2, 3, 4]),
        ("abcde", "abxcde", [0, 1, -1, 2, 3, 4]),
        ("abcde", "abde", [0, 1, 3, 4]),
        # Of equal layers one is missing: nobody knows which.
        ("s123123123e", "s123123e", [0, -1, -1, -1, -1, -1, -1, 10]),
        ("", "ab", [-1, -1]),
    ],
)
def test_what_is_left_out_has_no_partner(first: str, second: str, partner: list[int]) -> None:
    found = align(*(np.array([ord(one) for one in text], np.int64) for text in (first, second)))
    assert found is not None
    assert found.partner.tolist() == partner


def test_sequences_that_have_little_in_common_are_not_compared() -> None:
    assert align(np.zeros(3, np.int64), np.ones(9000, np.int64)) is None
