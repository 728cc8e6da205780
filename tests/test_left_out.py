import numpy as np
import pytest

from jgram import left_out
from jgram.kernels import RBF
from jgram.observed import observe
from tests.test_issues import blobs


def gaussian(y):
    return np.exp(-((y[:, None] - y[None]) ** 2).sum(axis=2) / 4.0)


def test_left_out_ridge_equals_refits_without_the_record(monkeypatch):
    _, labels, y = blobs([12, 9, 7], 0.2)
    kernel, n, z = gaussian(y), 28, np.eye(3)[labels]
    monkeypatch.setattr(left_out, "PENALTIES", np.array([0.3]))
    basis = left_out._kernel_basis(lambda i, j: kernel[np.ix_(i, j)], n)
    penalty, expected = 0.3 * basis.squares[-1], np.empty((n, 3))
    for i in range(n):
        # Kernel ridge with a free intercept as one linear system, no hat matrix in it.
        keep = np.arange(n) != i
        inner = kernel[np.ix_(keep, keep)] + penalty * np.eye(n - 1)
        system = np.block([[inner, np.ones((n - 1, 1))], [np.ones((1, n - 1)), np.zeros((1, 1))]])
        solved = np.linalg.solve(system, np.vstack([z[keep], np.zeros((1, 3))]))
        expected[i] = kernel[i, keep] @ solved[:-1] + solved[-1] - z[keep].mean(axis=0)
    np.testing.assert_allclose(left_out._left_out(basis, z, np.ones(len(z))), expected, atol=1e-8)
    columns = left_out._left_out(left_out._basis(y, np.ones(n)), z, np.ones(n))
    linear_kernel = left_out._kernel_basis(lambda i, j: y[i] @ y[j].T, n)
    np.testing.assert_allclose(columns, left_out._left_out(linear_kernel, z, np.ones(n)), atol=1e-8)


def test_penalty_is_the_one_with_the_least_left_out_error(monkeypatch):
    _, labels, y = blobs([12, 9, 7], 0.2)
    basis, z, errors = left_out._basis(y, np.ones(28)), np.eye(3)[labels], []
    others = (z.sum(axis=0) - z) / (len(z) - 1)
    chosen = ((z - others - left_out._left_out(basis, z, np.ones(len(z)))) ** 2).sum()
    for penalty in left_out.PENALTIES:
        monkeypatch.setattr(left_out, "PENALTIES", np.array([penalty]))
        errors.append(((z - others - left_out._left_out(basis, z, np.ones(len(z)))) ** 2).sum())
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
    vote = left_out._vote(observe(RBF(2.0), y), z, np.ones(n))
    np.testing.assert_allclose(vote, expected, atol=2e-5)


def test_calibration_is_the_maximum_of_the_penalised_likelihood():
    rng = np.random.default_rng(1)
    labels, predictions = rng.integers(0, 3, 60), rng.normal(size=(60, 3, 2))
    predictions[np.arange(60), labels] += 0.7
    p, mean = left_out._calibrate(predictions, labels, np.ones(len(labels)))

    def objective(a, b):
        logits = predictions @ a + b
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        prior = ((a - a.mean()) ** 2).sum() + 0.01 * (a @ a + b @ b)
        return log_p[np.arange(60), labels].sum() - prior / 2, np.exp(log_p)

    from scipy.optimize import minimize

    best = minimize(lambda t: -objective(t[:2], t[2:])[0], np.zeros(5), tol=1e-12).x
    np.testing.assert_allclose(p, objective(best[:2], best[2:])[1], atol=1e-4)
    assert mean == pytest.approx(best[:2].mean(), abs=1e-3)
