"""Distinct records with counts: folding, merging, and the same answers as from the records."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest

import jgram
from jgram import binding
from jgram.counted import count, fold, merge, representatives


def part(rows):
    """Distinct rows of labels, each part with a vocabulary of its own, in order of appearance."""
    names = [f"c{j}" for j in range(len(rows[0]))]
    codes, labels = {}, {}
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        vocabulary = list(dict.fromkeys(x for x in column if x is not None))
        codes[name] = np.array([-1 if x is None else vocabulary.index(x) for x in column])
        labels[name] = vocabulary
    return count(codes, labels)


def counted(found):
    rows = zip(*found.table().values(), strict=True)
    return dict(zip(rows, found.counts.tolist(), strict=True))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    columns = [rng.choice([*"abcd", None], 300), rng.choice([*"xyz"], 300), rng.integers(0, 3, 300)]
    return [tuple(row) for row in np.stack(columns, axis=1).astype(object)]


def test_counted_are_the_distinct_rows(rows):
    assert counted(part(rows)) == Counter(rows)


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
    found, counts = fold(codes, sizes, np.full(500, 7))
    expected = Counter(zip(*(column.tolist() for column in codes), strict=True))
    assert dict(zip(map(tuple, found.tolist()), (counts // 7).tolist(), strict=True)) == expected
    assert sorted(map(tuple, found.tolist())) == list(map(tuple, found.tolist()))
    kept = representatives(codes, sizes)
    table = np.stack(codes, axis=1)
    assert np.array_equal(table[kept.first][kept.place], table)
    assert (np.diff(kept.first) > 0).all()
    assert len(kept.first) == len(expected)


def records(n=30_000):
    """Four reports: two noisy, one that is renamed, one with gaps; and an outcome."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, n)
    words = np.array(["cold", "flu", "well"], object)

    def noisy(share):
        return np.where(rng.random(n) < share, rng.integers(0, 3, n), truth)

    gaps = words[noisy(0.4)]
    gaps[rng.random(n) < 0.2] = None
    reports = {
        "ann": words[noisy(0.1)],
        "renamed": words[(noisy(0.2) + 1) % 3],
        "gaps": gaps,
    }
    return reports, np.array([*"abcde"])[np.minimum(noisy(0.3) + 2 * (rng.random(n) < 0.1), 4)]


def numbers(found, path=""):
    """Every number and text of a result, by where it stands."""
    if dataclasses.is_dataclass(found):
        found = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    if isinstance(found, dict):
        parts = found.items()
    elif isinstance(found, tuple | list):
        parts = enumerate(found)
    else:
        return {path: found}
    return {key: x for name, part in parts for key, x in numbers(part, f"{path}.{name}").items()}


def assert_equal(one, two):
    one, two = numbers(one), numbers(two)
    assert list(one) == list(two)
    for path, value in one.items():
        if isinstance(value, float):
            tolerance = 1e-9 if path.endswith(".bias") else 1e-12
            assert value == pytest.approx(two[path], rel=tolerance, abs=1e-13), path
        else:
            assert value == two[path], path


@pytest.mark.thorough
@pytest.mark.parametrize("missing", ["keep", "drop"])
def test_a_ranking_of_folded_records_is_the_ranking_of_the_records(monkeypatch, missing):
    reports, y = records(6000)
    monkeypatch.setattr(binding, "FOLDED", 10**9)
    plain = jgram.rank_reports(reports, y, missing=missing)
    monkeypatch.setattr(binding, "FOLDED", 0)
    bound = binding.bind(reports, y, intake=binding.Intake(missing=missing))
    assert bound.observed.size < 3**4 * 5 * 2
    assert bound.weights.sum() == plain.num_records
    assert_equal(jgram.rank_reports(reports, y, missing=missing), plain)


@pytest.mark.thorough
def test_counts_of_as_many_classes_as_rows_are_no_identifiers():
    labels = [f"class {k}" for k in range(25)]
    found = jgram.score(labels, labels, weights=[1000] * 25)
    assert found.num_records == 25_000
    with pytest.raises(ValueError, match="every record is its own class"):
        jgram.score(labels, labels)


def test_messages_of_folded_records_count_rows_of_the_input(monkeypatch):
    monkeypatch.setattr(binding, "FOLDED", 0)
    labels = np.array(["a", "b"] * 50, object)
    labels[77] = "c"
    with pytest.raises(ValueError, match="got 'c' in row 77"):
        jgram.score(labels, np.array(["x", "y"] * 50), classes=["a", "b"])


@pytest.mark.thorough
def test_totals_beyond_32_bits(monkeypatch):
    reports, y = records(3000)
    monkeypatch.setattr(binding, "FOLDED", 0)
    once = jgram.rank_reports(reports, y)
    found = jgram.rank_reports(reports, y, weights=np.full(3000, 10**7))
    assert found.num_records == 3 * 10**10
    for few, many in zip(once.reports, found.reports, strict=True):
        assert many.published.log_score == pytest.approx(few.published.log_score, abs=1e-6)
        assert many.published.standard_error == pytest.approx(
            few.published.standard_error / 10**3.5, rel=1e-3
        )
    x_hat = np.array([0, 0, 1, 1])
    total = np.full(4, 2**31)
    for weights in (total, total.astype(float)):
        assert float(
            jgram.plugin_score(x_hat, x_hat, "delta", num_classes=2, weights=weights)
        ) == pytest.approx(1 / 16)
