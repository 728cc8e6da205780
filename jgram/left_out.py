"""Predict every record's label from the others: three predictors, calibrated together.

Each is ``[n, d]`` and made without the record's own label:

    R   ridge regression of the labels' one-hot rows ``Z`` on the kernel with an intercept, left out
        exactly by its hat matrix, ``F = Z - (Z - fit) / (1 - h)``; the penalty by the squared error
        of F
    C   the mean centred similarity ``K_c[n, m]`` to the other records ``m`` of each class
    L   as R, on the columns or the embedding themselves

The mean of the others' ``Z`` is taken off: it alone would tell the own label. Then

    p = softmax(a1 R + a2 C + a3 L + b)

by maximum likelihood of the given labels. A unit normal prior holds the three weights together:
they say nearly the same, and freely fitted weights with opposite signs rank worse.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jgram.arrays import Float, Int, Num
from jgram.observed import Codes, Observed, block

__all__ = ["predict_left_out", "predict_numbers_left_out"]

EXACT = 2000  # records up to which the whole kernel matrix is decomposed
LANDMARKS = 500
PENALTIES = np.logspace(-6, 1, 22)  # times the largest eigenvalue
NO_SIGNAL = 11.34  # 99% point of chi-squared with the three weights as degrees of freedom


def predict_left_out(
    observed: Observed,
    columns: Float[np.ndarray, "n m"] | None,
    labels: Int[np.ndarray, " n"],
    weights: Num[np.ndarray, " n"] | None = None,
) -> tuple[Float[np.ndarray, "n d"], bool]:
    """Every record's label predicted from the others, formulas at the top of this module.

    One pass over the kernel, and a decomposition of it (on 500 landmarks above 2,000 records; of
    categories by their outcomes, up to 2,000 of them).

    Args:
        observed: Observations, bound to their kernel.
        columns: The same as numbers, for predictor ``L``; ``None`` goes without.
        labels: Codes ``[n]``; every class occurs twice or more.
        weights: Frequencies ``[n]`` of categories: one copy of a record is left out.

    Returns:
        Probabilities ``[n, d]``, and whether they predict labels better than the shares of classes.

    Example:
        >>> from jgram.observed import observe
        >>> labels = np.repeat([0, 1], 10)
        >>> observed = observe("rbf", 5.0 * labels + np.arange(20))
        >>> found, informative = predict_left_out(observed, None, labels)
        >>> informative, bool((found.argmax(axis=1) == labels).all())
        (True, True)
    """
    n, d = len(labels), int(labels.max()) + 1
    w = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    z = np.eye(d)[labels]
    kernel, *linear = _bases(observed, columns, n, weights)
    predictions = [_left_out(kernel, z, w), _scaled(_vote(observed, z, w), z, w)]
    predictions += [_left_out(basis, z, w) for basis in linear]
    predicted, weight = _calibrate(np.stack(predictions, axis=2), labels, w)
    share = (w @ z / w.sum())[labels]
    gain = 2 * np.sum(w * (np.log(predicted[np.arange(n), labels]) - np.log(share)))
    return predicted, bool(weight > 0 and gain > NO_SIGNAL)


def predict_numbers_left_out(
    observed: Observed,
    columns: Float[np.ndarray, "n m"] | None,
    numbers: Float[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " n"], bool]:
    """Every record's number predicted from the others, by predictors ``R`` and ``L``.

    Args:
        observed: Observations, bound to their kernel.
        columns: As of :func:`predict_left_out`.
        numbers: The report, of mean 0.

    Returns:
        Predictions ``[n]``, and whether they say more than the mean of the numbers.
    """
    n, z = len(numbers), numbers[:, None]
    bases = _bases(observed, columns, n, None)
    found = np.concatenate([_left_out(basis, z, np.ones(n)) for basis in bases], axis=1)
    weights = np.maximum(np.linalg.lstsq(found, numbers, rcond=None)[0], 0.0)
    predicted = found @ weights
    left = np.sum((numbers - predicted) ** 2) / max(float(np.sum(numbers**2)), 1e-300)
    return predicted, bool(-n * np.log(max(left, 1e-300)) > NO_SIGNAL)


def _bases(observed: Observed, columns: np.ndarray | None, n: int, weights: Any) -> "list[_Basis]":
    """Of the kernel, and of the columns where there are any."""
    w = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    if isinstance(observed, Codes) and observed.num_features <= EXACT:
        found = [_basis(np.asarray(observed.coordinates(), np.float64), w)]
    elif weights is None:
        found = [_kernel_basis(partial(block, observed), n)]
    else:
        raise ValueError(f"weights: expected at most {EXACT} outcomes, got other observations")
    if columns is not None:
        numbers = columns / max(np.abs(columns).max(), 1e-300)
        found.append(
            _basis(numbers, w)
            if numbers.shape[1] <= LANDMARKS
            else _kernel_basis(lambda i, j: numbers[i] @ numbers[j].T, n)
        )
    return found


class _Basis(NamedTuple):
    """Orthonormal directions ``[n, r]`` of centred features and their squared lengths ``[r]``."""

    directions: np.ndarray
    squares: np.ndarray


def _basis(features: np.ndarray, w: np.ndarray) -> _Basis:
    centred = features - w @ features / w.sum()
    squares, vectors = np.linalg.eigh(centred.T @ (w[:, None] * centred))
    kept = squares > 1e-9 * max(squares[-1], 1e-300)
    squares = squares[kept]
    return _Basis(centred @ vectors[:, kept] / np.sqrt(squares), squares)


def _kernel_basis(between: Callable[[Any, Any], Any], n: int) -> _Basis:
    """Of the doubly centred kernel matrix, or of its projection on landmarks."""
    if n <= EXACT:
        kernel = np.asarray(between(np.arange(n), np.arange(n)), np.float64)
        centred = kernel - kernel.mean(axis=0)
        centred -= centred.mean(axis=1, keepdims=True)
        values, vectors = np.linalg.eigh((centred + centred.T) / 2)
        kept = values > 1e-9 * max(values[-1], 1e-9 * np.abs(kernel).max(), 1e-300)
        return _Basis(vectors[:, kept], values[kept])
    # Seeded, and blind to the labels: no record chooses who judges it.
    landmarks = np.sort(np.random.default_rng(0).choice(n, LANDMARKS, replace=False))
    values, vectors = np.linalg.eigh(np.asarray(between(landmarks, landmarks), np.float64))
    kept = values > 1e-6 * values[-1]
    across = np.asarray(between(np.arange(n), landmarks), np.float64)
    return _basis(across @ (vectors[:, kept] / np.sqrt(values[kept])), np.ones(n))


def _left_out(basis: _Basis, z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Ridge regression of ``z`` with an intercept, every record predicted without itself.

    What is returned is the prediction less the mean of the others' ``z``: that mean tells the
    record's own label.
    """
    n, (directions, squares) = w.sum(), basis
    centred = z - w @ z / n
    coordinates = directions.T @ (w[:, None] * centred)
    best, found = np.inf, np.zeros(z.shape)
    for penalty in PENALTIES * squares[-1] if len(squares) else ():
        kept = squares / (squares + penalty)
        leverage = 1 / n + (directions**2) @ kept
        residual = centred - directions @ (kept[:, None] * coordinates)
        residual /= np.maximum(1 - leverage, 1e-6)[:, None]
        if (error := w @ (residual**2).sum(axis=1)) < best:
            best, found = error, centred * n / (n - 1) - residual
    return found


def _vote(observed: Observed, z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Mean centred similarity to the other records of each class, less its mean over classes."""
    n, total = w.sum(), w @ z
    product = np.asarray(observed.product(w[:, None] * z), np.float64)
    row = product.sum(axis=1) / n
    mean = w @ row / n
    centred = product - row[:, None] * total - (w * row) @ z + mean * total
    itself = np.asarray(observed.squares, np.float64) - 2 * row + mean
    vote = (centred - itself[:, None] * z) / (total - z)
    return vote - vote.mean(axis=1, keepdims=True)


def _scaled(vote: np.ndarray, z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """To ``z`` by one coefficient; more would let a record's label in through the others' votes."""
    centred = z - w @ z / w.sum()
    slope = w @ np.sum(vote * centred, axis=1) / max(w @ np.sum(vote**2, axis=1), 1e-300)
    return vote * max(slope, 0.0)


def _calibrate(
    predictions: np.ndarray, labels: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, float]:
    """``softmax(predictions a + b)`` of most likelihood, and the mean of the weights ``a``."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    n, d, k = predictions.shape
    z, total = np.eye(d)[labels], w.sum()
    penalty = 0.01 * np.eye(k + d)
    penalty[:k, :k] += np.eye(k) - 1 / k

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        log_p = log_softmax(predictions @ parameters[:k] + parameters[k:], axis=1)
        residual, prior = w[:, None] * (z - np.exp(log_p)), penalty @ parameters
        slope = [np.einsum("nd,ndk->k", residual, predictions), residual.sum(axis=0)]
        value = parameters @ prior / 2 - w @ log_p[np.arange(n), labels]
        return value / total, (prior - np.concatenate(slope)) / total

    start = np.concatenate([np.ones(k), np.zeros(d)])
    found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8}).x
    p = np.exp(log_softmax(predictions @ found[:k] + found[k:], axis=1))
    return p, float(found[:k].mean())
