"""Distinct records with counts: folding, merging, and the same answers as from the records."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest

from jgram.counted import count, merge, representatives


def part(rows):
    """Distinct rows of labels, each part with a vocabulary of its own, in order of appearance."""
    names = [f"c{j}" for j in range(len(rows[0]))]
    columns = {}
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        vocabulary = list(dict.fromkeys(x for x in column if x is not None))
        columns[name] = vocabulary, [-1 if x is None else vocabulary.index(x) for x in column]
    return count(columns)


def counted(found):
    rows = zip(*found.table().values(), strict=True)
    return dict(zip(rows, found.counts.tolist(), strict=True))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    columns = [rng.choice([*"abcd", None], 300), rng.choice([*"xyz"], 300), rng.integers(0, 3, 300)]
    return [tuple(row) for row in np.stack(columns, axis=1).astype(object)]


def test_counted_are_the_distinct_rows(rows):
    found = part(rows)
    assert counted(found) == Counter(rows)
    assert found.codes.tolist() == sorted(found.codes.tolist())


def test_merging_is_by_label_associative_and_commutative(rows):
    parts = [part(rows[:50]), part(rows[50:90]), part(rows[90:])]
    whole = Counter(rows)
    for one, two, three in itertools.permutations(parts):
        assert counted(merge([merge([one, two]), three])) == whole
        assert counted(merge([one, merge([two, three])])) == whole
        assert counted(merge([one, two, three])) == whole


def test_counts_beyond_32_bits_are_exact():
    one = part([("a", 1)])
    large = dataclasses.replace(one, counts=np.array([2**53 - 1]))
    both = merge([large, one])
    assert both.num_records == 2**53
    assert both.counts.dtype == np.int64


@pytest.mark.parametrize("sizes", [(3, 4), (3000, 4000), (2**31, 2**31, 5)])
def test_all_ways_to_fold_agree(sizes):
    rng = np.random.default_rng(1)
    codes = [rng.choice(np.array([-1, 0, 2, size - 1]), 500) for size in sizes]
    expected = Counter(zip(*(column.tolist() for column in codes), strict=True))
    kept = representatives(codes, sizes)
    table = np.stack(codes, axis=1)
    assert np.array_equal(table[kept.first][kept.place], table)
    assert (np.diff(kept.first) > 0).all()
    assert len(kept.first) == len(expected)
