import re

import numpy as np
import pytest

from jgram import left_out
from jgram.issues import label_issues
from jgram.kernels import RBF, delta, linear
from jgram.observed import observe


def blobs(counts, rate, seed=0, dimension=4, spread=1.0):
    """Gaussian classes, labels flipped to another class at ``rate``."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(counts)), counts)
    centres = 3.0 * rng.normal(size=(len(counts), dimension))
    y = centres[truth] + spread * rng.normal(size=(len(truth), dimension))
    flipped = rng.random(len(truth)) < rate
    shift = rng.integers(1, len(counts), len(truth))
    return truth, np.where(flipped, (truth + shift) % len(counts), truth), y


SIZES = [40, 40, 40]  # one, so that compiled code is met again


def auroc(bad, suspicion):
    order = np.argsort(np.argsort(suspicion))
    return (order[bad].mean() - (bad.sum() - 1) / 2) / (~bad).sum()


def test_landmarks_are_close_to_the_whole_kernel(monkeypatch):
    truth, labels, y = blobs(SIZES, 0.15, seed=3, spread=1.5)
    exact = label_issues(labels, y)
    monkeypatch.setattr(left_out, "EXACT", 100)
    monkeypatch.setattr(left_out, "LANDMARKS", 40)
    near = label_issues(labels, y)
    assert np.corrcoef(exact.wrong, near.wrong)[0, 1] > 0.97
    assert auroc(truth != labels, near.wrong) > auroc(truth != labels, exact.wrong) - 0.02
    monkeypatch.setattr(left_out, "LANDMARKS", len(y))
    all_of_them = label_issues(labels, y)
    np.testing.assert_allclose(all_of_them.wrong, exact.wrong, atol=0.02)


@pytest.mark.parametrize("counts", [[100, 100, 100, 100], [300, 80, 20, 12]])
@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_planted_flips_come_first_and_are_counted(counts, rate):
    truth, labels, y = blobs(counts, rate, seed=3)
    found, bad = label_issues(labels, y), truth != labels
    assert auroc(bad, found.wrong) > 0.97
    assert bad[found.order[: bad.sum()]].mean() > 0.8
    assert (found.suggested[bad] == truth[bad]).mean() > 0.9
    assert 0.6 < found.number / bad.sum() < 1.5
    assert found.issues.tolist() == found.order[: found.number].tolist()


def test_clean_labels_and_observations_that_say_nothing_call_no_label_wrong():
    _, labels, y = blobs(SIZES, 0.0, spread=0.5)
    for given in (y, np.zeros(120), np.random.default_rng(2).normal(size=(120, 4))):
        found = label_issues(labels, given, RBF(1.0))
        assert found.number == 0
        assert found.records() == []
        assert np.isfinite(found.wrong).all()
        assert ("do not predict the labels" in found.conclusion) == (given is not y)


def test_hard_records_and_wrong_labels_are_two_numbers():
    # One dimension, classes that overlap: nobody could tell.
    truth = np.repeat([0, 1], 150)
    y = truth + np.random.default_rng(0).normal(size=300)
    found = label_issues(truth, y)
    number, sure, everywhere = map(int, re.findall(r"(\d+) (?:of|by)", found.conclusion))
    assert number == found.number
    assert everywhere == found.number_by_all == (found.margin < 0).sum() > 1.5 * sure
    assert abs(number - (sure + everywhere) / 2) <= 0.5
    assert "cannot tell hard records from wrong labels" in found.conclusion


def test_errors_at_the_boundary_are_counted_better_than_by_the_surest_alone():
    """Of the labels nearest to another class a quarter is wrong."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 150)
    y = 2.5 * truth + rng.normal(size=300)
    near = np.argsort(np.abs(y - 1.25))[:100]
    labels = truth.copy()
    labels[near[::4]] = 1 - truth[near[::4]]
    found = label_issues(labels, y)
    sure = 2 * found.number - found.number_by_all
    assert abs(np.log(found.number / 25)) < abs(np.log(max(sure, 1) / 25))


def test_names_rows_and_summary_survive_in_any_order():
    truth, labels, y = blobs(SIZES, 0.1, seed=1)
    names, before = np.array(["ant", "bee", "cat"]), y.copy()
    found = label_issues(names[labels], y)
    first = found.records(1)[0]
    assert first["label"] == names[labels[first["row"]]]
    assert first["suggested"] == names[truth[first["row"]]]
    assert first["wrong"] == found.wrong[first["row"]]
    assert [record["row"] for record in found.records()] == found.issues.tolist()
    summary = found.by_class()
    assert sum(item.issues for item in summary) == found.number
    shares = [item.issues / item.count for item in summary]
    assert shares == sorted(shares, reverse=True)
    assert {item.name for item in summary} == set(names)
    shuffled = np.random.default_rng(0).permutation(len(y))
    second = label_issues(labels[shuffled], y[shuffled], num_classes=5)  # two never reported
    np.testing.assert_allclose(second.wrong, found.wrong[shuffled], atol=1e-4)
    assert (second.number, second.classes) == (found.number, (0, 1, 2))
    assert label_issues(labels, y, num_classes=5, checked={3: 4}).wrong[3] == 1.0
    np.testing.assert_array_equal(y, before)


@pytest.mark.thorough
def test_any_observations_and_their_options():
    _, labels, y = blobs(SIZES, 0.1)
    codes = labels.copy()
    codes[3] = 1
    assert label_issues(labels, codes, delta).order[0] == 3
    bound = label_issues(labels, observe(RBF(2.0), y), columns=y)
    np.testing.assert_array_equal(bound.order, label_issues(labels, y, RBF(2.0)).order)
    label_issues(labels, y, linear)
    table = {"a": y[:, 0], "b": y[:, 1], "c": y[:, 2]}
    ignored = label_issues(labels, table, kinds={"c": "ignore"}, scale="standard")
    fewer = label_issues(labels, {"a": y[:, 0], "b": y[:, 1]}, scale="standard")
    np.testing.assert_array_equal(ignored.wrong, fewer.wrong)
    assert (ignored.wrong != label_issues(labels, table).wrong).any()
    assert "2 columns" in ignored.observations
    table["a"][3] = np.nan
    assert label_issues(labels, table).num_records == 120
    dropped = label_issues(labels, table, missing="drop")
    assert dropped.num_records == 119
    assert 3 not in dropped.order
    assert np.isnan(dropped.wrong[3])
    leaking = label_issues(labels, {"y": y[:, 0], "copy": np.array(["n", "y", "z"])[labels]})
    assert [finding.name for finding in leaking.findings] == ["leak"]
    assert leaking.number == 0


def test_distinct_records_with_counts_are_that_many_records():
    counts = np.array([90, 3, 5, 80])
    labels, y = np.array(list("abab")), np.array(list("xxyy"))
    found = label_issues(labels, y, "delta", weights=counts)
    place = np.repeat(np.arange(4), counts)
    records = label_issues(labels[place], y[place], "delta")
    np.testing.assert_allclose(found.wrong[place], records.wrong, rtol=1e-6)
    assert (found.num_records, found.number) == (178, records.number) == (178, 8)
    assert found.suspicious().tolist() == [0, 3, 5, 0]
    assert [one.issues for one in found.by_class()] == [one.issues for one in records.by_class()]
    assert [row["records"] for row in found.records()] == found.suspicious()[found.issues].tolist()
    with pytest.raises(ValueError, match="expected labels for weights=, got numbers"):
        label_issues([0.5, 1.5, 2.5, 0.5], y, "delta", weights=counts)


def test_checked_records_give_the_number_and_are_believed():
    truth, labels, y = blobs([150, 150], 0.2, seed=4, spread=3.0)
    before = label_issues(labels, y)
    rows = before.to_check(60)
    assert len(set(rows.tolist())) == 60
    checked = {int(row): int(truth[row]) for row in rows}
    found, bad = label_issues(labels, y, checked=checked), truth != labels
    low, high = found.interval
    assert low <= bad.sum() <= high
    assert low <= found.number <= high
    np.testing.assert_array_equal(found.wrong[rows], bad[rows])
    assert (found.suggested[rows][bad[rows]] == truth[rows][bad[rows]]).all()
    assert set(rows[bad[rows]]) <= set(found.issues)
    by_verdict = label_issues(labels, y, checked={row: not bad[row] for row in checked})
    assert by_verdict.interval == found.interval
    assert "by the 60 that were checked" in found.conclusion


@pytest.mark.parametrize("n", [4, 5])
def test_few_records_give_numbers(n):
    rng = np.random.default_rng(n)
    labels = np.arange(n) % 2
    for y in (labels + 0.1 * rng.normal(size=n), rng.normal(size=(n, 2)), np.ones(n)):
        found = label_issues(labels, y, RBF(1.0))
        assert np.isfinite(found.wrong).all()
        assert np.isfinite(found.margin).all()
        assert ((found.wrong >= 0) & (found.wrong <= 1)).all()


@pytest.mark.parametrize(
    ("labels", "y", "options", "message"),
    [
        ([0, 0, 1, 1], [0.0, 1.0, 2.0], {}, "expected 4 records"),
        ([f"p{i}" for i in range(60)], np.arange(60.0), {}, "every record is its own class"),
        (["a", "a", "a", "b"], np.arange(4.0), {}, "got one of 'b' \\(row 3\\)"),
        (["a", "b"], np.arange(2.0), {}, "expected two records or more of every class"),
        (["a", "a", "a"], np.arange(3.0), {}, "got 'a' for every record"),
        ([0, None, 1, 1], np.arange(4.0), {"missing": "raise"}, "1 of 4 labels missing"),
        ([None, None, None], np.arange(3.0), {}, "every one of the 3 records lacks a label"),
        (np.full((4, 2), 0.5), np.arange(4.0), {}, "expected shape \\[n\\]"),
        ([0, 0, 1, 1], np.arange(4.0), {"checked": {4: 0}}, "expected rows 0..3, got 4"),
        ([0, 0, 1, 1], np.arange(4.0), {"checked": {"1": 0}}, "expected rows 0..3, got '1'"),
        ([0, 0, 1, 1], np.arange(4.0), {"checked": {1: 7}}, "got 7 for row 1"),
        ([0, 0, 1, 1], np.arange(4.0), {"weights": [1, 1, 1, 1]}, "expected no weights="),
    ],
)
def test_refusals(labels, y, options, message):
    with pytest.raises(ValueError, match=message):
        label_issues(labels, y, **options)


def test_records_without_a_label_keep_the_rows_of_the_others():
    truth, labels, y = blobs(SIZES, 0.1, seed=1)
    full = np.array(["ant", "bee", "cat"], object)[labels]
    gone = np.array([0, 7, 44, 89])
    full[gone] = None
    kept = np.setdiff1d(np.arange(120), gone)
    found = label_issues(full, y, name="ann")
    alone = label_issues(full[kept], y[kept])
    np.testing.assert_array_equal(found.order, kept[alone.order])
    np.testing.assert_array_equal(found.wrong[kept], alone.wrong)
    assert np.isnan(found.wrong[gone]).all()
    assert (found.suggested[gone] == -1).all()
    assert (found.num_records, found.number) == (116, alone.number)
    assert found.by_class() == alone.by_class()
    assert "116 of 120 records are judged, the others lack a label of 'ann'" in str(found.findings)
    assert set(found.to_check(80)) <= set(kept)
    row = int(found.order[0])
    right = ["ant", "bee", "cat"][truth[row]]
    checked = label_issues(full, y, checked={row: right})
    assert checked.wrong[row] == float(right != full[row])
    with pytest.raises(ValueError, match="expected rows that have a label, got 7"):
        label_issues(full, y, checked={7: "ant"})
    with pytest.raises(ValueError, match="expected a label for every record of observations"):
        label_issues(full, observe(RBF(2.0), y))


def test_class_probabilities_by_the_documented_route_rank_as_well_as_their_own_confidence():
    truth, labels, y = blobs([100, 100, 100], 0.2, seed=2, spread=3.0)
    fold = np.arange(300) % 5
    p = np.empty((300, 3))
    for k in range(5):
        means = np.stack([y[(fold != k) & (labels == c)].mean(axis=0) for c in range(3)])
        inside = y[fold == k]
        log_p = -((inside[:, None] - means) ** 2).sum(axis=2) / 18
        p[fold == k] = np.exp(log_p) / np.exp(log_p).sum(axis=1, keepdims=True)
    found, bad = label_issues(labels, p, "pseudo-posterior"), truth != labels
    assert auroc(bad, found.wrong) > auroc(bad, 1 - p[np.arange(300), labels]) - 0.01
