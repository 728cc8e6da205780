"""Independent routes to the numbers: plain float64 NumPy, written from the definitions."""

import math

import numpy as np


def delta(a, b):
    return float(a == b)


def inner(a, b):
    return float(np.dot(np.atleast_1d(a), np.atleast_1d(b)))


def gaussian(bandwidth):
    return lambda a, b: math.exp(
        -float(np.sum((np.asarray(a) - np.asarray(b)) ** 2)) / bandwidth**2
    )


def gram(x_hat, y, kernel, num_classes, weights=None):
    """Definition 4.10, pair by pair. Soft reports share a record out among the classes."""
    n = len(y)
    z = np.eye(num_classes)[x_hat] if np.ndim(x_hat) == 1 else np.asarray(x_hat, float)
    w = np.ones(n) if weights is None else np.asarray(weights, float)
    total = np.zeros((num_classes, num_classes))
    for i in range(n):
        for j in range(n):
            value = w[i] * w[j] * kernel(y[i], y[j])
            for a in range(num_classes):
                for b in range(num_classes):
                    total[a, b] += value * z[i, a] * z[j, b]
    return total / w.sum() ** 2


def log_score(x_hat, y, kernel, num_classes, weights=None):
    sign, value = np.linalg.slogdet(gram(x_hat, y, kernel, num_classes, weights))
    return value if sign > 0 else -np.inf
