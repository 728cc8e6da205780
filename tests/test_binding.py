"""The binding: any table gets the kernel that fits it, and everything is checked once."""

import jax
import numpy as np
import pandas as pd
import pytest

import jgram
from jgram.binding import Intake, bind, bind_observations
from jgram.data import columns
from jgram.kernels import RBF, Delta, MultiscaleRBF
from jgram.observed import Codes, Features, Pairs
from jgram.report import compare, rank_reports
from jgram.table_kernel import TableKernel
from tests.refusals import refused

N, D = 120, 3
ROWS = np.arange(N)
RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, D, N)
FLIPPED = np.where(RNG.random(N) < 0.5, RNG.integers(0, D, N), TRUTH)
LEVEL = TRUTH + RNG.normal(0, 0.4, N)
SEX, CITY = np.array(["f", "m"])[ROWS % 2], np.array(["rome", "oslo", "bern"])[TRUTH]
MANY = [f"street {row % 30}" for row in ROWS]
CHOSEN = "; chosen without the reports"


def bound(reports=None, y=LEVEL, kernel=None, **options):
    reports = {"a": TRUTH, "b": FLIPPED} if reports is None else reports
    return bind(reports, y, kernel, Intake(**options))


def found(result, name):
    return [finding.message for finding in result.findings if finding.name == name]


# The kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "kind", "kernel", "description"),
    [
        (CITY, Codes, Delta, "3 outcomes; kernel delta(num_outcomes=3)"),
        (SEX == "f", Codes, Delta, "2 outcomes; kernel delta(num_outcomes=2)"),
        (pd.Series(pd.Categorical(TRUTH)), Codes, Delta, "3 outcomes; kernel"),
        ({"sex": SEX, "city": CITY}, Codes, Delta, "6 outcomes; kernel delta(num_outcomes=6)"),
        (MANY, Codes, Delta, "30 outcomes; kernel delta(num_outcomes=30)"),
        ({"sex": SEX, "street": MANY}, Pairs, TableKernel, "2 columns (2 categories); side"),
        ({"city": [None, *CITY[1:]]}, Pairs, TableKernel, "1 column (1 category); side"),
        (LEVEL, Pairs, TableKernel, "1 column (1 number), by rank; side by side and whitened"),
        (ROWS % 7, Pairs, TableKernel, "1 column (1 number), by rank"),
        ({"level": LEVEL, "sex": SEX}, Pairs, TableKernel, "2 columns (1 number, 1 category)"),
        (np.stack([LEVEL, -LEVEL**2], 1), Pairs, TableKernel, "a block of 2 numbers, as it is"),
        ({"sex": SEX, "v": np.stack([LEVEL, LEVEL**2], 1)}, Pairs, TableKernel,
         "1 column (1 category), and a block of 2 numbers; columns, block and everything"),
    ],
)  # fmt: skip
def test_every_table_gets_the_kernel_that_fits_it(y, kind, kernel, description):
    observed, points, said, _ = bind_observations(y)
    assert isinstance(observed, kind)
    assert isinstance(observed.kernel, kernel)
    assert said.startswith(f"observations: {description}")
    assert said.endswith(CHOSEN)
    assert (points is None) == (kind is Codes)
    assert observed.size == N
    assert kind is Codes or observed.points.dtype == np.float64


def test_texts_that_hardly_repeat_are_no_categories():
    texts = [f"word {row}" for row in np.maximum(ROWS, 5)]
    assert "y hardly repeats a value, 115 different ones in 120" in refused(
        bind_observations, texts
    )
    assert bind_observations(texts, "delta")[0].size == N
    _, points, _, (warning, *_) = bind_observations({"note": texts, "level": LEVEL})
    assert points.shape == (N, 1)
    assert "note is left out: it hardly repeats a value" in warning


def test_a_named_kernel_takes_the_numbers_as_they_are():
    four, points, said, _ = bind_observations(LEVEL, "multiscale-rbf")
    one, *_ = bind_observations(LEVEL, "rbf")
    assert isinstance(four.kernel, MultiscaleRBF)
    assert isinstance(one.kernel, RBF)
    median = np.median(np.abs(LEVEL[:, None] - LEVEL)[np.triu_indices(N, 1)])
    assert four.kernel.bandwidth == pytest.approx(median)
    assert float(one.kernel.bandwidth) == pytest.approx(median)
    np.testing.assert_array_equal(points[:, 0], LEVEL)
    assert said.startswith("observations: 1 numbers; kernel")
    assert bind_observations(LEVEL, RBF(2.0))[2] == (
        f"observations: 1 numbers; kernel rbf(bandwidth=2){CHOSEN}"
    )
    features, *_ = bind_observations(np.eye(D)[TRUTH], "pseudo-posterior")
    assert isinstance(features, Features)
    assert isinstance(bind_observations(TRUTH, "delta")[0], Codes)


def test_every_record_is_like_itself():
    for kernel in (None, "rbf"):
        observed, *_ = bind_observations(LEVEL, kernel)
        with jax.enable_x64(True):
            np.testing.assert_allclose(observed.squares, 1, atol=1e-12)
            block = np.asarray(observed.block(ROWS[:5], ROWS[:5]))
        np.testing.assert_allclose(np.diagonal(block), 1, atol=1e-12)
        assert np.all(block[np.triu_indices(5, 1)] < 1)


def test_kinds_and_scale_prepare_the_table():
    codes = ROWS % 7
    as_number, as_category = (
        bind_observations({"zip": codes, "id": LEVEL}, kinds={"zip": kind, "id": "ignore"})
        for kind in ("number", "category")
    )
    assert as_number[1].shape == (N, 1)
    assert as_category[1].shape == (N, 7)
    assert "1 column (1 category)" in as_category[2]
    rank, standard, none = (
        bind_observations(np.exp(LEVEL), scale=scale)[1] for scale in ("rank", "standard", "none")
    )
    np.testing.assert_allclose(rank, bind_observations(LEVEL)[1])  # monotone maps change nothing
    assert standard.std() == pytest.approx(1)
    np.testing.assert_allclose(none[:, 0] - none[0, 0], np.exp(LEVEL) - np.exp(LEVEL[0]))
    for options in ({"kinds": {"y": "category"}}, {"scale": "none"}):
        assert "without kernel=" in refused(bind_observations, LEVEL, "rbf", **options)


# Labels -------------------------------------------------------------------------------------


def test_missing_labels_are_kept_for_the_pairs_that_have_them():
    gaps = [None if row % 4 == 0 else label for row, label in enumerate(TRUTH.tolist())]
    result = bound({"a": gaps, "b": FLIPPED})
    assert np.all((result.reports["a"] < 0) == (ROWS % 4 == 0))
    assert found(result, "missing labels") == ["'a' labels 90 of 120 records"]
    dropped = bound({"a": gaps, "b": FLIPPED}, missing="drop")
    np.testing.assert_array_equal(dropped.rows, ROWS[ROWS % 4 != 0])
    assert dropped.observed.size == 90
    lacking = refused(bound, {"a": gaps, "b": FLIPPED}, missing="raise")
    assert "30 of 120 labels missing" in lacking


def test_what_else_reports_may_be():
    labels = np.where(ROWS % 5 == 0, -1, TRUTH)
    result = bound({"a": labels, "b": FLIPPED}, abstain=-1)
    assert result.classes == (0, 1, 2, -1)
    np.testing.assert_array_equal(result.reports["a"] == 3, ROWS % 5 == 0)
    assert "abstain=" in refused(bound, {"a": labels, "b": FLIPPED})
    for name in ("y", "weights", "groups"):
        assert "another name" in refused(bound, {"a": TRUTH, name: FLIPPED})
    one, two = bound(), bound({"a": ROWS % 3, "b": 0 * ROWS})  # the kernel does not look at them
    np.testing.assert_array_equal(one.observed.points, two.observed.points)
    assert (one.groups, found(one, "leak")) == (None, [])
    result = bound(groups=np.array(["x", "y", "z"])[ROWS % 3])
    np.testing.assert_array_equal(result.groups, ROWS % 3)
    result = bound(y={"level": LEVEL, "copy": np.array(["u", "v", "w"])[FLIPPED]})
    assert found(result, "leak") == ["the observation 'copy' is the report 'b' under another name"]


def test_soft_reports_come_whole():
    soft = np.eye(D)[TRUTH] * 0.7 + 0.1
    result = bound({"a": soft, "b": np.eye(D)[FLIPPED]}, classes=["x", "y", "z"])
    assert result.classes == ("x", "y", "z")
    np.testing.assert_allclose(result.reports["a"], soft)
    assert bound({"a": soft, "b": soft}).classes == (0, 1, 2)
    for reports, message in (
        ({"a": soft, "b": TRUTH}, "'b' mixed in"),
        ({"a": soft, "b": 2 * soft}, "sum to 1"),
        ({"a": soft, "b": np.eye(4)[TRUTH]}, "one column per class, 3, got 4"),
    ):
        assert message in refused(bound, reports)


# Weights and groups -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": -np.ones(N)}, "at least 0"),
        ({"weights": np.full(N, 1 / N)}, "are not shares"),
        ({"weights": np.zeros(N)}, "two records or more in all, got 0"),
        ({"weights": np.full(N, np.nan)}, "missing"),
        ({"weights": ["3"] * N}, "expected numbers"),
        ({"weights": np.ones((N, 1))}, "one frequency a record"),
        ({"weights": np.ones(5)}, "expected 120 records"),
        ({"groups": np.zeros(N)}, "it holds every record"),
        ({"groups": [None, *ROWS[1:]]}, "1 of 120 values missing"),
    ],
)
def test_weights_and_groups_that_do_not_fit_are_refused(options, message):
    assert message in refused(bound, **options)


def test_copies_are_one_group_and_what_many_share_is_none():
    twice = np.where(ROWS < 110, ROWS, ROWS - 10)  # ten records
    y = np.stack([LEVEL, -(LEVEL**2)], axis=1)[twice]
    result = bound(y=y)
    assert np.array_equal(result.groups[110:], result.groups[100:110])
    assert len(set(result.groups)) == 110
    assert found(result, "duplicates") == [
        "10 of 120 records have exactly the observations of another"
    ]
    assert bound(y=y, groups=ROWS // 2).groups.max() == 59  # those given stand
    mixed = {"level": y[:, 0], "other": y[:, 1], "sex": SEX[twice]}
    assert np.array_equal(bound(y=mixed).groups, result.groups)
    notes = [f"visit {row} was quite a long one" for row in twice]
    copied = bound(y=notes).groups
    assert len(set(copied)) == 110
    assert np.array_equal(copied[110:], copied[100:110])
    assert bound(y={"level": LEVEL[twice], "row": ROWS}).groups is None
    third, few = ROWS % 3 == 0, ROWS % 60 == 0
    zeros = np.where(RNG.random(N) < 0.4, 0, LEVEL)
    for shared in (
        LEVEL[twice],
        ROWS % 7,
        CITY,
        {"sex": SEX, "street": MANY},
        {"level": zeros},
        {"level": zeros, "other": zeros**2},
        {"level": np.where(third, np.nan, LEVEL), "other": np.where(third, np.nan, LEVEL**3)},
        {"level": np.where(few, np.nan, LEVEL), "other": np.where(few, np.nan, LEVEL**3)},
    ):
        assert bound(y=shared).groups is None


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("confidence", ["0.9", 0, 1.0, 95, float("nan")])
def test_what_is_no_confidence_is_refused(confidence):
    answers, two = np.stack([TRUTH, FLIPPED, TRUTH], axis=1), {"a": TRUTH, "b": FLIPPED}
    for call, *given in (
        (jgram.score, TRUTH, CITY), (rank_reports, two, CITY), (compare, TRUTH, FLIPPED, CITY),
        (jgram.rank_annotators, answers),
        (jgram.bootstrap, jax.random.key(0), TRUTH, TRUTH, jgram.delta),
    ):  # fmt: skip
        assert "expected confidence in (0, 1), got" in refused(call, *given, confidence=confidence)


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.4, 0.3])
def test_atoms_and_records_without_observation_keep_power(share):
    rng = np.random.default_rng(1)
    y = rng.normal(3.0 * TRUTH, 1.0)
    y[rng.random(N) < share] = 0 if share == 0.4 else np.nan
    wrong = [np.where(rng.random(N) < e, rng.integers(0, D, N), TRUTH) for e in (0.05, 0.5)]
    (pair,) = rank_reports({"a": wrong[0], "b": wrong[1]}, {"amount": y}).pairs
    assert (pair.better, pair.separated) == ("a", True)


# Reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [N, 30_000])
def test_every_column_is_read_once_whatever_is_said_of_it(n, monkeypatch):
    counted, read = [], columns.distinct
    monkeypatch.setattr(columns, "distinct", lambda values: counted.append(1) or read(values))
    rows = np.arange(n)
    texts = {
        name: np.array([f"{name}{x}" for x in rows * (3 + j) % (5 + j)], object)
        for j, name in enumerate("abcd")
    }
    reports = {name: texts.pop(name) for name in "ab"}
    assert bound(reports, texts).observed.size == min(n, 420)
    assert len(counted) == 4
    counted.clear()
    message = refused(bound, reports, texts, classes=["a0"])
    assert "expected labels among 'a0', got 'a1' in row 2" in message
    assert len(counted) == 4
