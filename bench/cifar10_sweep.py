"""Experiment 2's sweep beside vectorised NumPy: ``python -m bench.cifar10_sweep``.

6 policies x 11 levels x 100 trials on N = 10,000 embeddings of dimension 8: 6,600 reports of ten
classes, each scored by the volume of its eight leading directions, or by the exact RBF kernel.
NumPy draws by the same inverse transform, sums classes by ``bincount`` over all trials of a cell at
once, and gives the kernel one product with the stacked one-hot reports. Ratios are NumPy's time to
jgram's.

Ten times NumPy is out of reach of two cores: the 66 million uniforms of the sweep alone take JAX's
generator more than a tenth of NumPy's time for everything, and the RBF kernel is one matrix product
on either side, of which jgram does half (the tiles on and above the diagonal).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from bench.timing import Row, report, time_call
from experiments.cifar10 import CLASSES, TRIALS, transitions
from jgram.data import cifar10_embeddings
from jgram.determinant import log_top_determinant_of_sums
from jgram.gram_matrix import gram_state
from jgram.kernels import RBF, linear, rbf, resolve
from jgram.observed import normalised
from jgram.scores import plugin_log_score
from jgram.simulate import policies

RANK, BLOCK, IN_CACHE = 8, 1000, 5


def numpy_reports(
    rng: np.random.Generator, x: np.ndarray, transition: np.ndarray, trials: int
) -> np.ndarray:
    """Reports ``[trials, n]`` by inverse transform, one uniform a record."""
    thresholds = np.cumsum(transition, axis=1)[:, :-1].astype(np.float32)[x]
    draws = rng.random((trials, len(x)), np.float32)
    reports = np.zeros(draws.shape, np.int32)
    for column in thresholds.T:
        reports += draws >= column
    return reports


def numpy_sums(reports: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Class sums ``[trials, d, m]``."""
    trials, n = reports.shape
    cells = (reports + CLASSES * np.arange(trials, dtype=np.int32)[:, None]).ravel()
    sums = [
        np.bincount(cells, np.tile(column, trials), minlength=trials * CLASSES) for column in y.T
    ]
    return np.stack(sums, axis=-1).reshape(trials, CLASSES, -1) / n


def numpy_volume(sums: np.ndarray) -> np.ndarray:
    """Log of the product of the squares of the leading singular values."""
    return 2.0 * np.log(np.linalg.svd(sums, compute_uv=False)[:, :RANK]).sum(axis=1)


def numpy_rbf(reports: np.ndarray, y: np.ndarray, bandwidth: float) -> np.ndarray:
    """Log determinants of all reports from one pass over the kernel matrix, in blocks of rows."""
    trials, n = reports.shape
    one_hot = np.zeros((n, trials, CLASSES), np.float32)
    np.put_along_axis(one_hot, reports.T[..., None], 1.0, axis=2)
    flat = one_hot.reshape(n, -1)
    points = (y - y.mean(axis=0)) / bandwidth
    squares = (points**2).sum(axis=1)
    gram = np.zeros((trials, CLASSES, CLASSES), np.float32)
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        distances = squares[rows, None] + squares - 2.0 * points[rows] @ points.T
        kernel = np.exp(-np.maximum(distances, 0.0))
        part = (kernel @ flat).reshape(-1, trials, CLASSES).transpose(1, 0, 2)
        gram += one_hot[rows].transpose(1, 2, 0) @ part
    return np.linalg.slogdet(gram.astype(float) / n**2)[1]


@jax.jit
@partial(jax.vmap, in_axes=(0, None, None))
def jax_reports(key: jax.Array, x: jax.Array, transition: jax.Array) -> jax.Array:
    """Reports ``[trials, n]``."""
    return policies.corrupt(key, x, transition)


@jax.jit
def jax_sums(reports: jax.Array, y: jax.Array) -> jax.Array:
    """Class sums ``[trials, d, m]``, a few reports at once: their one-hot rows stay in cache."""

    def sums(report: jax.Array) -> jax.Array:
        return normalised(*gram_state(report, y, linear, num_classes=CLASSES))

    return jax.lax.map(sums, reports, batch_size=IN_CACHE)


@jax.jit
@jax.vmap
def jax_volume(sums: jax.Array) -> jax.Array:
    """Log of the product of the squares of the leading singular values."""
    return log_top_determinant_of_sums(sums, RANK)


@jax.jit
@partial(jax.vmap, in_axes=(0, None, None))
def jax_rbf(reports: jax.Array, y: jax.Array, kernel: RBF) -> jax.Array:
    """Log scores of all reports; the kernel is evaluated once for all."""
    return plugin_log_score(reports, y, kernel, num_classes=CLASSES)


def main() -> None:
    """Stages on one cell of 100 trials, then the whole sweep with the volume."""
    y, x, _ = cifar10_embeddings()
    points, labels = jnp.asarray(y), jnp.asarray(x)
    means = jnp.stack([points[labels == label].mean(axis=0) for label in range(CLASSES)])
    mixed = policies.mixed(jax.random.key(0), CLASSES)
    cells = np.asarray(transitions(means, mixed)).reshape(-1, CLASSES, CLASSES)
    keys = jax.random.split(jax.random.key(1), (len(cells), TRIALS))
    rng = np.random.default_rng(0)
    kernel = resolve(rbf, points)

    def numpy_sweep() -> np.ndarray:
        every = [numpy_reports(rng, x, cell, TRIALS) for cell in cells]
        return np.stack([numpy_volume(numpy_sums(reports, y)) for reports in every])

    def jax_sweep() -> jax.Array:
        every = [jax_reports(key, labels, cell) for key, cell in zip(keys, cells, strict=True)]
        return jnp.stack([jax_volume(jax_sums(reports, points)) for reports in every])

    cell = cells[7]
    reports = jax_reports(keys[7], labels, cell)
    same, sums = np.asarray(reports), jax_sums(reports, points)
    stages = {
        "reports": (
            lambda: numpy_reports(rng, x, cell, TRIALS),
            lambda: jax_reports(keys[7], labels, cell),
            False,
        ),
        "class sums": (lambda: numpy_sums(same, y), lambda: jax_sums(reports, points), True),
        "log volume": (lambda: numpy_volume(np.asarray(sums)), lambda: jax_volume(sums), True),
        "exact RBF log score": (
            lambda: numpy_rbf(same, y, float(kernel.bandwidth)),
            lambda: jax_rbf(reports, points, kernel),
            True,
        ),
    }
    rows: list[Row] = []
    for name, (theirs, ours, checked) in stages.items():
        named = f"{name} of {TRIALS} reports"
        rows.append(time_call(f"{named}: jgram", ours, repeats=3))
        expected = np.asarray(ours()) if checked else None
        rows.append(
            time_call(f"{named}: numpy", theirs, expected=expected, against=rows[-1], repeats=3)
        )
    rows.append(time_call(f"sweep of {keys.size} reports, volume: jgram", jax_sweep, repeats=3))
    rows.append(
        time_call(
            f"sweep of {keys.size} reports, volume: numpy", numpy_sweep, against=rows[-1], repeats=1
        )
    )
    report("cifar10_sweep", rows)


if __name__ == "__main__":
    main()
