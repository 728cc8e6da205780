"""Gram matrices and log-determinants beside their rivals: ``python -m bench.gram``.

Every row does the same work to the same answer, which is checked before it is timed: the exact RBF
Gram matrix by scikit-learn, by blocked NumPy and by pykeops (where installed); one categorical
score by ``np.bincount`` and ``slogdet``; a hundred reports on one ``y``; gradients, memory.
"""

from typing import Any

import jax
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

import jgram
from bench.timing import Row, report, time_call, time_in_turns
from jgram.determinant import log_determinant_of_sums

CLASSES, FEATURES = 10, 8


def records(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and observations of which the classes explain a part."""
    rng = np.random.default_rng(0)
    x_hat = rng.integers(0, CLASSES, n).astype(np.int32)
    centres = rng.normal(size=(CLASSES, FEATURES))
    return x_hat, (rng.normal(size=(n, FEATURES)) + centres[x_hat]).astype(np.float32)


def scikit_learn(x_hat: np.ndarray, y: np.ndarray, bandwidth: float) -> float:
    """The kernel matrix, held whole, between two one-hot products."""
    z = np.eye(CLASSES, dtype=y.dtype)[x_hat]
    gram = z.T @ rbf_kernel(y, gamma=1.0 / bandwidth**2) @ z
    return np.linalg.slogdet(gram.astype(float) / len(y) ** 2)[1]


def blocked_numpy(x_hat: np.ndarray, y: np.ndarray, bandwidth: float, block: int = 1000) -> float:
    """The same in blocks of rows, float32, in place."""
    z = np.eye(CLASSES, dtype=np.float32)[x_hat]
    points = (y - y.mean(axis=0)) / np.float32(bandwidth)
    squares = (points**2).sum(axis=1)
    gram = np.zeros((CLASSES, CLASSES))
    for start in range(0, len(y), block):
        rows = slice(start, start + block)
        values = points[rows] @ points.T
        values *= 2.0
        values -= squares[rows, None]
        values -= squares
        np.minimum(values, 0.0, out=values)
        np.exp(values, out=values)
        gram += z[rows].T @ (values @ z)
    return np.linalg.slogdet(gram / len(y) ** 2)[1]


def keops(x_hat: np.ndarray, y: np.ndarray, bandwidth: float) -> float:
    """Lazy reduction, where pykeops is installed."""
    from pykeops.numpy import LazyTensor

    z = np.eye(CLASSES, dtype=np.float32)[x_hat]
    points = np.ascontiguousarray(y / np.float32(bandwidth))
    first, second = LazyTensor(points[:, None, :]), LazyTensor(points[None, :, :])
    product = (-((first - second) ** 2).sum(-1)).exp() @ z
    return np.linalg.slogdet((z.T @ product).astype(float) / len(y) ** 2)[1]


def numpy_categorical(x_hat: np.ndarray, y: np.ndarray, outcomes: int) -> float:
    """Count, divide, square, take the determinant."""
    table = np.bincount(y * CLASSES + x_hat, minlength=outcomes * CLASSES)
    table = table.reshape(outcomes, CLASSES) / len(y)
    return np.linalg.slogdet(table.T @ table)[1]


def temporaries(function: Any, *arguments: Any) -> float:
    """Megabytes that the compiled function needs beside its arguments and results."""
    compiled = jax.jit(function).lower(*arguments).compile()
    return compiled.memory_analysis().temp_size_in_bytes / 1e6


def main() -> None:
    """Measure, check, print and write ``results/gram.json``."""
    rows: list[Row] = []
    x_hat, y = records(10_000)
    bandwidth = float(jgram.kernels.median_bandwidth(y))
    score = jax.jit(
        lambda x, y: jgram.plugin_log_score(x, y, jgram.RBF(bandwidth), num_classes=CLASSES)
    )
    exact = scikit_learn(x_hat, y.astype(float), bandwidth)
    base = time_call("jgram, RBF Gram, n=10,000, m=8, d=10", score, x_hat, y, expected=exact)
    rows.append(base)
    rivals = [
        ("scikit-learn float64", scikit_learn, y.astype(float)),
        ("scikit-learn float32", scikit_learn, y),
    ]
    rivals += [("blocked NumPy float32", blocked_numpy, y)]
    try:
        import pykeops  # noqa: F401

        rivals.append(("pykeops float32", keops, y))
    except ImportError:
        pass
    for name, rival, values in rivals:
        rows.append(time_call(name, rival, x_hat, values, bandwidth, expected=exact, against=base))

    reports = np.stack([np.roll(x_hat, shift) for shift in range(100)])
    many = jax.jit(jax.vmap(score, in_axes=(0, None)))
    rows += time_in_turns(
        {
            "jgram, one report": lambda: score(x_hat, y),
            "jgram, 100 reports on one y": lambda: many(reports, y),
        }
    )

    slope = jax.jit(jax.grad(score, argnums=1))
    rows.append(time_call("jgram, gradient in y, n=10,000", slope, x_hat, y, against=base))
    big_x, big_y = records(50_000)
    rows.append(time_call("jgram, n=50,000", score, big_x, big_y, against=base, repeats=3))
    memory = {
        "forward, n=50,000": temporaries(score, big_x, big_y),
        "gradient, n=10,000": temporaries(slope, x_hat, y),
    }

    outcomes = np.random.default_rng(1).integers(0, CLASSES, 10_000).astype(np.int32)
    outcomes = np.where(np.random.default_rng(2).random(10_000) < 0.5, x_hat, outcomes)
    kernel = jgram.Delta(CLASSES)
    categorical = jax.jit(lambda x, y: jgram.plugin_log_score(x, y, kernel, num_classes=CLASSES))
    expected = numpy_categorical(x_hat, outcomes, CLASSES)
    one = time_call(
        "jgram, categorical score, n=10,000, d=10", categorical, x_hat, outcomes, expected=expected
    )
    rows += [
        one,
        time_call(
            "NumPy bincount + slogdet",
            numpy_categorical,
            x_hat,
            outcomes,
            CLASSES,
            expected=expected,
            against=one,
        ),
    ]
    batch = np.random.default_rng(3).normal(size=(6600, 5, 5)).astype(np.float32)
    logs = time_call(
        "jgram, 6,600 log-determinants 5 x 5", jax.jit(jax.vmap(log_determinant_of_sums)), batch
    )
    rows += [
        logs,
        time_call(
            "NumPy slogdet of 6,600 Gram matrices, float64",
            lambda b: np.linalg.slogdet(b @ b.swapaxes(1, 2))[1],
            batch.astype(float),
            against=logs,
        ),
    ]
    report("gram", rows, {"temporaries_megabytes": memory})


if __name__ == "__main__":
    main()
