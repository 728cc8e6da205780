import numpy as np
import pytest

from jgram import issues
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


def auroc(bad, suspicion):
    order = np.argsort(np.argsort(suspicion))
    return (order[bad].mean() - (bad.sum() - 1) / 2) / (~bad).sum()


def gaussian(y):
    return np.exp(-((y[:, None] - y[None]) ** 2).sum(axis=2) / 4.0)


def test_left_out_ridge_equals_refits_without_the_record(monkeypatch):
    _, labels, y = blobs([12, 9, 7], 0.2)
    kernel, n, z = gaussian(y), 28, np.eye(3)[labels]
    monkeypatch.setattr(issues, "PENALTIES", np.array([0.3]))
    basis = issues._kernel_basis(lambda i, j: kernel[np.ix_(i, j)], n)
    penalty, expected = 0.3 * basis.squares[-1], np.empty((n, 3))
    for i in range(n):
        # Kernel ridge with a free intercept as one linear system, no hat matrix in it.
        keep = np.arange(n) != i
        inner = kernel[np.ix_(keep, keep)] + penalty * np.eye(n - 1)
        system = np.block([[inner, np.ones((n - 1, 1))], [np.ones((1, n - 1)), np.zeros((1, 1))]])
        solved = np.linalg.solve(system, np.vstack([z[keep], np.zeros((1, 3))]))
        expected[i] = kernel[i, keep] @ solved[:-1] + solved[-1] - z[keep].mean(axis=0)
    np.testing.assert_allclose(issues._left_out(basis, z), expected, atol=1e-8)
    columns = issues._left_out(issues._basis(y), z)
    linear_kernel = issues._kernel_basis(lambda i, j: y[i] @ y[j].T, n)
    np.testing.assert_allclose(columns, issues._left_out(linear_kernel, z), atol=1e-8)


def test_penalty_is_the_one_with_the_least_left_out_error(monkeypatch):
    _, labels, y = blobs([12, 9, 7], 0.2)
    basis, z, errors = issues._basis(y), np.eye(3)[labels], []
    others = (z.sum(axis=0) - z) / (len(z) - 1)
    chosen = ((z - others - issues._left_out(basis, z)) ** 2).sum()
    for penalty in issues.PENALTIES:
        monkeypatch.setattr(issues, "PENALTIES", np.array([penalty]))
        errors.append(((z - others - issues._left_out(basis, z)) ** 2).sum())
    assert chosen == pytest.approx(min(errors))
    assert min(errors) < 0.9 * max(errors)


def test_vote_equals_a_double_loop():
    _, labels, y = blobs([6, 5], 0.2)
    z, kernel = np.eye(2)[labels], gaussian(y)
    n = len(y)
    centring = np.eye(n) - 1 / n
    centred = centring @ kernel @ centring
    expected = np.zeros((n, 2))
    for i in range(n):
        for k in range(2):
            peers = [j for j in range(n) if j != i and labels[j] == k]
            expected[i, k] = np.mean([centred[i, j] for j in peers])
        expected[i] -= expected[i].mean()
    vote = issues._vote(observe(RBF(2.0), y), z)
    np.testing.assert_allclose(vote, expected, atol=2e-5)


def test_no_predictor_sees_the_records_own_label():
    _, labels, y = blobs([12, 9, 7], 0.2)
    other = labels.copy()
    other[5] = (labels[5] + 1) % 3
    observed = observe(RBF(2.0), y)
    votes = [issues._vote(observed, np.eye(3)[x])[5] for x in (labels, other)]
    np.testing.assert_allclose(votes[0], votes[1], atol=1e-5)


def test_landmarks_are_close_to_the_whole_kernel(monkeypatch):
    truth, labels, y = blobs([150, 120, 80], 0.15, seed=3, spread=1.5)
    exact = label_issues(labels, y)
    monkeypatch.setattr(issues, "EXACT", 100)
    monkeypatch.setattr(issues, "LANDMARKS", 60)
    near = label_issues(labels, y)
    assert np.corrcoef(exact.wrong, near.wrong)[0, 1] > 0.97
    assert auroc(truth != labels, near.wrong) > auroc(truth != labels, exact.wrong) - 0.02
    monkeypatch.setattr(issues, "LANDMARKS", len(y))
    all_of_them = label_issues(labels, y)
    np.testing.assert_allclose(all_of_them.wrong, exact.wrong, atol=0.02)


def test_calibration_is_the_maximum_of_the_penalised_likelihood():
    rng = np.random.default_rng(1)
    labels, predictions = rng.integers(0, 3, 60), rng.normal(size=(60, 3, 2))
    predictions[np.arange(60), labels] += 0.7
    p, mean = issues._calibrate(predictions, labels)

    def objective(a, b):
        logits = predictions @ a + b
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        prior = ((a - a.mean()) ** 2).sum() + 0.01 * (a @ a + b @ b)
        return log_p[np.arange(60), labels].sum() - prior / 2, np.exp(log_p)

    from scipy.optimize import minimize

    best = minimize(lambda t: -objective(t[:2], t[2:])[0], np.zeros(5), tol=1e-12).x
    np.testing.assert_allclose(p, objective(best[:2], best[2:])[1], atol=1e-4)
    assert mean == pytest.approx(best[:2].mean(), abs=1e-3)


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


def test_clean_separable_labels_have_no_issues():
    _, labels, y = blobs([80, 80, 80], 0.0, spread=0.5)
    found = label_issues(labels, y)
    assert found.number == 0
    assert found.records() == []
    assert np.isfinite(found.wrong).all()


def test_hard_records_and_wrong_labels_are_two_numbers():
    # One dimension, classes that overlap: nobody could tell.
    truth = np.repeat([0, 1], 300)
    y = truth + np.random.default_rng(0).normal(size=600)
    found = label_issues(truth, y)
    assert found.number_by_all > 1.5 * found.number
    assert "cannot tell hard records from wrong labels" in found.conclusion


def test_observations_that_say_nothing_call_no_label_wrong():
    labels = np.repeat([0, 1, 2], [60, 50, 40])
    for y in (np.zeros(150), np.random.default_rng(2).normal(size=(150, 3))):
        found = label_issues(labels, y, RBF(1.0))
        assert found.number == 0
        assert "do not predict the labels" in found.conclusion
        assert np.isfinite(found.wrong).all()


def test_order_of_the_records_does_not_matter():
    _, labels, y = blobs([40, 30, 20], 0.1)
    shuffled = np.random.default_rng(0).permutation(len(y))
    first, second = label_issues(labels, y), label_issues(labels[shuffled], y[shuffled])
    np.testing.assert_allclose(second.wrong, first.wrong[shuffled], atol=1e-4)
    assert first.number == second.number


def test_names_rows_and_summary_survive():
    truth, labels, y = blobs([40, 40, 40], 0.1, seed=1)
    names = np.array(["ant", "bee", "cat"])
    found = label_issues(names[labels], y)
    first = found.records(1)[0]
    assert first["label"] == names[labels[first["row"]]]
    assert first["suggested"] == names[truth[first["row"]]]
    assert first["confidence"] == found.wrong[first["row"]]
    assert [record["row"] for record in found.records()] == found.issues.tolist()
    summary = found.by_class()
    assert sum(item.issues for item in summary) == found.number
    shares = [item.issues / item.count for item in summary]
    assert shares == sorted(shares, reverse=True)
    assert {item.name for item in summary} == set(names)


def test_categories_and_bound_observations():
    labels, y = np.repeat([0, 1], 20), np.repeat([0, 1], 20)
    y[3] = 1
    found = label_issues(labels, y, delta)
    assert found.order[0] == 3
    _, labels, y = blobs([30, 30], 0.1)
    bound = label_issues(labels, observe(RBF(2.0), y), columns=y)
    np.testing.assert_array_equal(bound.order, label_issues(labels, y, RBF(2.0)).order)
    label_issues(labels, y, linear)


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


@pytest.mark.parametrize("n", [4, 5, 8])
def test_few_records_give_numbers(n):
    rng = np.random.default_rng(n)
    labels = np.arange(n) % 2
    for y in (labels + 0.1 * rng.normal(size=n), rng.normal(size=(n, 2)), np.ones(n)):
        found = label_issues(labels, y, RBF(1.0))
        assert np.isfinite(found.wrong).all()
        assert np.isfinite(found.margin).all()
        assert ((found.wrong >= 0) & (found.wrong <= 1)).all()


def test_a_class_that_is_declared_and_never_reported_is_left_out():
    _, labels, y = blobs([20, 20], 0.1)
    found = label_issues(labels, y, num_classes=5)
    np.testing.assert_array_equal(found.wrong, label_issues(labels, y).wrong)
    assert found.classes == (0, 1)
    checked = label_issues(labels, y, num_classes=5, checked={3: 4})
    assert checked.wrong[3] == 1.0


def test_inputs_stay_as_they_are():
    _, labels, y = blobs([20, 20], 0.1)
    before = labels.copy(), y.copy()
    label_issues(labels, y, checked={0: 1})
    np.testing.assert_array_equal(labels, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize(
    ("labels", "y", "options", "message"),
    [
        ([0, 0, 1, 1], [0.0, 1.0, 2.0], {}, "expected 4 records"),
        (["a", "a", "a", "b"], np.arange(4.0), {}, "got one of 'b' \\(row 3\\)"),
        (["a", "b"], np.arange(2.0), {}, "expected two records or more of every class"),
        (["a", "a", "a"], np.arange(3.0), {}, "got 'a' for every record"),
        ([0, None, 1, 1], np.arange(4.0), {}, "1 of 4 labels missing"),
        ([None, None, None], np.arange(3.0), {}, "missing"),
        (np.full((4, 2), 0.5), np.arange(4.0), {}, "expected shape \\[n\\]"),
        ([0, 0, 1, 1], np.arange(4.0), {"checked": {4: 0}}, "expected rows 0..3, got 4"),
        ([0, 0, 1, 1], np.arange(4.0), {"checked": {"1": 0}}, "expected rows 0..3, got '1'"),
        ([0, 0, 1, 1], np.arange(4.0), {"checked": {1: 7}}, "got 7 for row 1"),
    ],
)
def test_refusals(labels, y, options, message):
    with pytest.raises(ValueError, match=message):
        label_issues(labels, y, **options)
