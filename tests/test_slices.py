"""What is kept in slices: sums of the ranking's payoffs, few false alarms, the bad slice found."""

import jax
import numpy as np
import pytest

import jgram
from jgram.arrays import float64
from jgram.contrasts import pair_payoffs
from jgram.data.columns import read
from jgram.data.numbers import cut
from jgram.observed import observe
from jgram.slices import slices
from tests.refusals import refused

pytestmark = pytest.mark.thorough

SHARES = np.array([0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.03, 0.02])
ERRORS = (0.05, 0.15, 0.3)


def table(rng, n, errors=ERRORS, worse=None):
    """Slices, observations and reports; classes and noise of the observations differ by slice."""
    where = rng.choice(8, n, p=SHARES)
    mixes = rng.dirichlet(np.ones(3) * 4, 8)
    truth = np.array([rng.choice(3, p=mixes[s]) for s in where])
    y = 2 * np.eye(3)[truth] + rng.normal(size=(n, 3)) * np.linspace(0.5, 2.0, 8)[where][:, None]
    wrong = np.stack([np.full(n, error) for error in errors])
    if worse is not None:
        wrong[1, where == worse[0]] = worse[1]
    drawn = rng.integers(0, 3, (len(errors), n))
    return where, y, np.where(rng.random(wrong.shape) < wrong, drawn, truth)


def read_slices(where, y, reports):
    """Through jit, so that many tables cost one compilation."""
    with float64():
        paid = jax.device_get(_paid(y, reports))
    kept = {str(i): (paid.values[i - 1], paid.weights[i - 1]) for i in range(1, len(reports))}
    return slices({"city": ([*map(str, range(8))], where)}, "0", kept)


@jax.jit
def _paid(y, reports):
    return pair_payoffs(observe(jgram.rbf, y), reports, num_classes=3, complete=True)


def tables(count, **options):
    rng = np.random.default_rng(7)
    return [read_slices(*table(rng, 600, **options)) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("errors", [ERRORS, (0.02, 0.04, 0.06)])
def test_equal_slices_are_rarely_told_apart(errors):
    found = tables(200, errors=errors)
    assert sum(any(one.differs for one in each.each) for each in found) <= 10
    true = {str(i): (1 - errors[i]) / (1 - errors[0]) for i in (1, 2)}
    rows = [one for each in found for one in each.each if one.keeps is not None]
    held = [one.keeps_interval[0] <= true[one.report] <= one.keeps_interval[1] for one in rows]
    assert np.mean(held) > 0.93


@pytest.mark.thorough
def test_the_slice_where_one_report_is_much_worse_is_found_alone():
    found = tables(20, worse=(1, 0.8))
    told = [[(one.report, one.value) for one in each.each if one.differs] for each in found]
    assert sum(("1", "1") in each for each in told) >= 18
    assert sum(bool({*each} - {("1", "1")}) for each in told) <= 3


def test_a_ranking_has_its_slices_from_its_own_payoffs():
    """Slices weighted by their payoffs make up what a pair keeps; with weights as with copies."""
    rng = np.random.default_rng(2)
    where, y, reports = table(rng, 600, worse=(0, 0.9))
    named = dict(zip(("ann", "bob", "cid"), reports, strict=True))
    city = np.array([*"ABCDEFGH"])[where]
    found = jgram.rank_reports(named, y, "rbf", by={"city": city})
    assert found.reports == jgram.rank_reports(named, y, "rbf").reports
    (row,) = [one for one in found.slices.each if (one.report, one.value) == ("bob", "A")]
    assert row.differs
    assert row.alone < 0.4
    assert row.num_records == (city == "A").sum()
    assert "bob keeps" in found.slices.conclusion
    small = [one for one in found.slices.each if one.num_records < 20]
    assert small
    assert all(one.keeps is one.p_value is None for one in small)
    assert "too few records" in str(found)
    assert jgram.load(found.to_json()) == found
    two = jgram.rank_reports(
        {"ann": named["ann"], "bob": named["bob"]}, y, "rbf", by={"city": city}
    )
    with float64():
        paid = jax.device_get(_paid(y, reports))
    a, b = paid.values[0][:, city == "A"].sum(axis=1)
    assert two.slices.each[0].alone == pytest.approx(b / a, rel=1e-6)


def test_frequencies_are_copies_and_groups_are_one_record():
    rng = np.random.default_rng(0)
    codes, a = np.arange(120) % 2, rng.normal(1, 1, 120)
    values, by = np.stack([a, a * (rng.random(120) < 0.7)]), (["f", "m"], codes)
    weighted = slices({"sex": by}, "a", {"b": (values, np.full(120, 2.0))})
    copied = (np.repeat(values, 2, axis=1), np.ones(240))
    twice = slices({"sex": (by[0], np.repeat(codes, 2))}, "a", {"b": copied})
    for one, other in zip(weighted.each, twice.each, strict=True):
        assert one.keeps_interval == pytest.approx(other.keeps_interval)
    grouped = slices(
        {"sex": (by[0], np.repeat(codes, 2))}, "a", {"b": copied}, np.repeat(np.arange(120), 2)
    )
    single = slices({"sex": by}, "a", {"b": (values, np.ones(120))})
    for one, other in zip(grouped.each, single.each, strict=True):
        assert one.keeps_interval == pytest.approx(other.keeps_interval)
        assert one.p_value == pytest.approx(other.p_value)


def test_columns_are_cut_in_words():
    assert cut(read(["m", None, "f"], "sex")) == (["f", "m", "no value"], pytest.approx([1, 2, 0]))
    names, codes = cut(read([1] * 50 + [*range(2, 20)], "visits"))
    assert names[0] == "1 to 1"
    assert codes.max() == len(names) - 1
    assert "name: expected 2 to 200 values" in refused(cut, read([*map(str, range(300))], "name"))
    assert "got 1" in refused(cut, read(["a", "a"], "sex"))


def test_classes_taken_for_one_another_are_counted():
    truth = np.arange(300) % 3
    other = np.where(np.arange(300) % 10 == 0, 0, truth)
    names = np.array(["cat", "dog", "fox"])
    gaps = np.where(np.arange(300) == 1, None, names[other])
    (pair,) = jgram.rank_reports({"a": names[truth], "b": gaps}, truth.astype(str)).pairs
    said = {(one.better_class, one.worse_class): one.count for one in pair.taken}
    assert said == {
        ("dog", "cat"): 10, ("fox", "cat"): 10, ("cat", "cat"): 100, ("dog", "dog"): 89,
        ("fox", "fox"): 90,
    }  # fmt: skip
    assert pair.taken[1].share == pytest.approx(0.1)
    assert [one.better_class != one.worse_class for one in pair.taken] == [True] * 2 + [False] * 3
