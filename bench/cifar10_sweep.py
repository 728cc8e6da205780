"""Experiment 2's sweep beside vectorised NumPy: ``python -m bench.cifar10_sweep [--trials T]``.

6 policies x 11 levels x 100 trials on N = 10,000 embeddings of dimension 8: 6,600 reports of ten
classes, each scored by the volume of its eight leading directions, and by the exact RBF kernel.
NumPy draws by the same inverse transform, sums classes by ``bincount`` over all trials of a cell at
once, and gives the kernel one product with the stacked one-hot reports. Both sides get the same
reports in turn, and their scores are compared before anything is timed.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.cifar10 import CLASSES, transitions
from jgram import policies
from jgram.datasets import cifar10_embeddings
from jgram.determinant import log_top_determinant_of_sums
from jgram.gram import gram_state, normalised_sums
from jgram.kernels import RBF, linear, resolve
from jgram.kernels import rbf as rbf_kernel
from jgram.scores import plugin_log_score

RANK, BLOCK = 8, 1000


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
@partial(jax.vmap, in_axes=(0, None))
def jax_sums(reports: jax.Array, y: jax.Array) -> jax.Array:
    """Class sums ``[trials, d, m]``."""
    return normalised_sums(gram_state(reports, y, linear, num_classes=CLASSES))


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


def stages(
    cells: np.ndarray,
    draw: Callable[[int, Any], Any],
    sums: Callable[[Any], Any],
    volume: Callable[[Any], Any],
    rbf: Callable[[Any], Any] | None,
) -> tuple[dict[str, float], list[np.ndarray]]:
    """Seconds by stage over all cells, and the volumes."""
    seconds = dict.fromkeys(["reports", "class sums", "volume", "RBF"], 0.0)
    found = []

    def timed(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        start = time.perf_counter()
        result = jax.block_until_ready(call(*arguments))
        seconds[name] += time.perf_counter() - start
        return result

    for number, transition in enumerate(cells):
        reports = timed("reports", draw, number, transition)
        total = timed("class sums", sums, reports)
        found.append(np.asarray(timed("volume", volume, total)))
        if rbf is not None:
            timed("RBF", rbf, reports)
    return seconds, found


def main() -> None:
    """Times both and writes ``results/cifar10_sweep.json``."""
    parser = argparse.ArgumentParser(prog="python -m bench.cifar10_sweep")
    parser.add_argument("--trials", type=int, default=100, help="of each cell (default: 100)")
    parser.add_argument("--rbf-cells", type=int, default=3, help="cells timed with the RBF kernel")
    options = parser.parse_args()
    trials = options.trials
    y, x, _ = cifar10_embeddings()
    key = jax.random.key(0)
    points, labels = jnp.asarray(y), jnp.asarray(x)
    means = jnp.stack([points[labels == label].mean(axis=0) for label in range(CLASSES)])
    matrix = np.asarray(transitions(means, policies.mixed(key, CLASSES)))
    cells = matrix.reshape(-1, CLASSES, CLASSES)
    kernel = resolve(rbf_kernel, points)
    bandwidth = float(kernel.bandwidth)

    def keys(cell: int) -> jax.Array:
        return jax.random.split(jax.random.fold_in(key, cell), trials)

    ours = (
        lambda cell, transition: jax_reports(keys(cell), labels, transition),
        lambda reports: jax_sums(reports, points),
        jax_volume,
        lambda reports: jax_rbf(reports, points, kernel),
    )
    rng = np.random.default_rng(0)
    theirs = (
        lambda cell, transition: numpy_reports(rng, x, transition, trials),
        lambda reports: numpy_sums(reports, y),
        numpy_volume,
        lambda reports: numpy_rbf(reports, y, bandwidth),
    )
    # the same reports give the same scores; this also compiles
    start = time.perf_counter()
    reports = ours[0](7, cells[7])
    volume, log_score = ours[2](ours[1](reports)), ours[3](reports)
    jax.block_until_ready((volume, log_score))
    first_call = time.perf_counter() - start
    few = np.asarray(reports)[:5]
    differences = {
        "volume": np.abs(numpy_volume(numpy_sums(few, y)) - np.asarray(volume)[:5]).max(),
        "RBF": np.abs(numpy_rbf(few, y, bandwidth) - np.asarray(log_score)[:5]).max(),
    }
    some = cells[:: max(1, len(cells) // options.rbf_cells)][: options.rbf_cells]
    record: dict[str, Any] = {
        "device": jax.devices()[0].device_kind,
        "records": len(x),
        "reports": len(cells) * trials,
        "first_call_seconds": first_call,
        "largest_differences": {name: float(value) for name, value in differences.items()},
    }
    for name, (draw, sums, volume_of, rbf) in (("jgram", ours), ("numpy", theirs)):
        seconds, _ = stages(cells, draw, sums, volume_of, None)
        seconds["RBF"] = stages(some, draw, sums, volume_of, rbf)[0]["RBF"]
        seconds["RBF"] *= len(cells) / len(some)  # per cell the work is the same
        record[name] = seconds
    record["ratio"] = {
        stage: record["numpy"][stage] / record["jgram"][stage] for stage in record["jgram"]
    }
    explicit = ("reports", "class sums", "volume")
    totals = [sum(record[name][stage] for stage in explicit) for name in ("numpy", "jgram")]
    record["ratio"]["sweep with volume"] = totals[0] / totals[1]
    path = Path(__file__).with_name("results") / "cifar10_sweep.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
