import numpy as np
import pytest

from jgram.kernels import RBF, Linear, delta, linear, rbf
from jgram.label_issues import label_issues
from tests import oracles


def blobs(counts, rate, seed=0, dimension=4, spread=1.0):
    """Gaussian classes, labels flipped to another class at ``rate``."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(counts)), counts)
    centres = 3.0 * rng.normal(size=(len(counts), dimension))
    y = centres[truth] + spread * rng.normal(size=(len(truth), dimension))
    flipped = rng.random(len(truth)) < rate
    shift = rng.integers(1, len(counts), len(truth))
    return truth, np.where(flipped, (truth + shift) % len(counts), truth), y


def auroc(bad, suspicion):
    order = np.argsort(np.argsort(suspicion))
    return (order[bad].mean() - (bad.sum() - 1) / 2) / (~bad).sum()


def predicted_by_hand(x_hat, y, kernel, d, normalise):
    """The module's formula with every record really left out, pair by pair in float64."""
    n, z = len(y), np.eye(d)[x_hat]
    gram = np.array([[kernel(a, b) for b in y] for a in y])
    f = np.linalg.solve(z.T @ gram @ z, z.T @ gram).T
    out = np.empty((n, d))
    for i in range(n):
        keep = np.arange(n) != i
        part = gram[np.ix_(keep, keep)]
        out[i] = np.linalg.solve(z[keep].T @ part @ z[keep], z[keep].T @ gram[keep, i])
        if normalise:
            out[i] /= gram[keep, i].sum()
            f[i] /= gram[i].sum()
    return out @ np.linalg.lstsq(f, z)[0]


@pytest.mark.parametrize(
    ("kernel", "oracle"), [(RBF(2.0), oracles.gaussian(2.0)), (Linear(), oracles.inner)]
)
def test_margins_equal_refits_without_the_record(kernel, oracle):
    _, x_hat, y = blobs([12, 9, 7], 0.2)
    found = label_issues(x_hat, y, kernel)
    expected = predicted_by_hand(x_hat, y, oracle, 3, normalise=isinstance(kernel, RBF))
    rows = np.arange(len(y))
    own = expected[rows, x_hat]
    np.testing.assert_allclose(found.quality, own.clip(0, 1), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(found.order, np.argsort(own))
    expected[rows, x_hat] = -np.inf
    np.testing.assert_array_equal(found.suggested, expected.argmax(axis=1))
    np.testing.assert_allclose(found.margin, own - expected.max(axis=1), rtol=1e-8, atol=1e-8)


def test_gain_is_the_change_of_the_score_on_relabelling():
    _, x_hat, y = blobs([12, 9, 7], 0.2)
    found = label_issues(x_hat, y, RBF(2.0))
    before = oracles.log_score(x_hat, y, oracles.gaussian(2.0), 3)
    for row in found.order[:3]:
        moved = x_hat.copy()
        moved[row] = found.suggested[row]
        after = oracles.log_score(moved, y, oracles.gaussian(2.0), 3)
        assert found.gain[row] == pytest.approx(after - before, abs=1e-8)


@pytest.mark.parametrize("counts", [[100, 100, 100, 100], [300, 80, 20, 12]])
def test_planted_flips_come_first(counts):
    truth, x_hat, y = blobs(counts, 0.15, seed=3)
    found = label_issues(x_hat, y, rbf)
    bad = truth != x_hat
    assert auroc(bad, -found.quality) > 0.97
    assert bad[found.order[: bad.sum()]].mean() > 0.8
    right = found.suggested[bad] == truth[bad]
    assert right.mean() > 0.9


def test_rare_classes_are_judged_on_the_same_scale():
    # h alone, without the class shares, orders these at chance.
    truth, x_hat, y = blobs([300, 80, 20, 12], 0.1, seed=3)
    bad = truth != x_hat
    from jgram.influences import influence

    h = np.asarray(influence(x_hat, y.astype(np.float32), RBF(3.0)))
    rows = np.arange(len(y))
    other = h.copy()
    other[rows, x_hat] = -np.inf
    raw = auroc(bad, other.max(axis=1) - h[rows, x_hat])
    ours = auroc(bad, -label_issues(x_hat, y, RBF(3.0)).quality)
    assert ours > raw + 0.05


def test_duplicated_record_cannot_vouch_for_itself():
    # Far from everything: in-sample its own kernel value makes any label look right.
    _, x_hat, y = blobs([30, 30], 0.0)
    y = np.vstack([y, 100.0 * np.ones((1, y.shape[1]))])
    found = label_issues(np.append(x_hat, 1), y, RBF(1.0))
    assert found.quality[-1] == pytest.approx(31 / 61)
    assert found.margin[-1] == 0.0


def test_names_rows_and_summary_survive():
    truth, x_hat, y = blobs([40, 40, 40], 0.1, seed=1)
    names = np.array(["ant", "bee", "cat"])
    found = label_issues(names[x_hat], y, rbf)
    first = found.records(1)[0]
    assert first["label"] == names[x_hat[first["row"]]]
    assert first["suggested"] == names[truth[first["row"]]]
    assert [record["row"] for record in found.records()] == found.issues.tolist()
    summary = found.to_dict()["classes"]
    assert sum(item["issues"] for item in summary) == len(found.issues)
    shares = [item["issues"] / item["count"] for item in summary]
    assert shares == sorted(shares, reverse=True)
    assert {item["name"] for item in summary} == set(names)


def test_categorical_observations():
    x_hat, y = np.repeat([0, 1], 20), np.repeat(["low", "high"], 20)
    y[3] = "high"
    found = label_issues(x_hat, y, delta)
    assert found.order[0] == 3
    assert found.issues.tolist() == [3]


@pytest.mark.parametrize(
    ("y", "kernel"),
    [([0, 1, 1, 1, 1], delta), (np.array([[1.0, 1.0], *[[0.0, 1.0]] * 4]), linear)],
)
def test_record_on_which_a_class_stands_is_left_open(y, kernel):
    # Without row 0 the two classes look alike: there is nothing to hold against it.
    found = label_issues([0, 0, 1, 1, 1], y, kernel)
    assert found.quality[0] == pytest.approx(2 / 5)
    assert found.margin[0] == 0.0


def test_inputs_stay_as_they_are():
    _, x_hat, y = blobs([20, 20], 0.1)
    before = x_hat.copy(), y.copy()
    label_issues(x_hat, y, rbf)
    np.testing.assert_array_equal(x_hat, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize(
    ("x_hat", "y", "kernel", "options", "message"),
    [
        ([0, 0, 1, 1], [0.0, 1.0, 2.0], rbf, {}, "expected 4 records"),
        (["a", "a", "a", "b"], np.arange(4.0), rbf, {}, "got one of 'b' \\(row 3\\)"),
        ([0, 0, 1, 1], np.arange(4.0), rbf, {"num_classes": 3}, "class 2 is never reported"),
        ([0, 0, 1, 1, 2, 2], np.eye(6)[:, :2] + 1, linear, {}, "2 features cannot span 3"),
        ([0, 0, 1, 1], [1, 2, 1, 2], delta, {}, "rank is 1 of 2"),
        ([0, None, 1, 1], np.arange(4.0), rbf, {}, "1 of 4 labels missing"),
    ],
)
def test_refusals(x_hat, y, kernel, options, message):
    with pytest.raises(ValueError, match=message):
        label_issues(x_hat, y, kernel, **options)
