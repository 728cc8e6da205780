"""All checks and timings of an accelerator in one run of minutes: ``python -m bench.device``.

For whoever has a GPU or a TPU: the headline functions against float64 NumPy, tile sizes beside each
other, then how long a kernel pass, rankings, a sweep, a training step and an attack take, and the
memory they need. Prints a table and writes ``results/device.json``; ends with 1 where one is wrong.
``--small`` does the same on little data, on any machine, in about a minute of processor time, most
of it compilation, and writes nothing unless ``--output`` says where.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jgram
from bench.gram import CLASSES, records, temporaries
from bench.timing import RESULTS, Row, time_call
from experiments.environment import environment
from jgram import simulate
from jgram.attack import ascend_reports
from jgram.contrasts import payoffs
from jgram.influences import influence
from jgram.observed import observe
from jgram.simclr import train as training
from jgram.simclr.augment import augment
from jgram.simclr.encoder import RESNET18, Architecture, convolve
from jgram.simulate.policies import mix, uniform
from jgram.simulate.sampling import multinomial

KEY = jax.random.key(0)
KERNEL = jgram.RBF(3.0)
TILES = (1024, 2048, 4096, 8192)
TOLERANCE = 1e-4
"""Largest relative error of a check, in float32; gradients and scores are well within it."""


def gaussian(y: np.ndarray) -> np.ndarray:
    """The kernel matrix in float64."""
    y = np.asarray(y, np.float64)
    lengths = (y**2).sum(axis=1)
    return np.exp(-(lengths[:, None] + lengths - 2 * y @ y.T) / KERNEL.bandwidth**2)


def error(found: Any, wanted: Any) -> float:
    """Largest difference, relative to the largest number."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def check_kernel(n: int) -> dict[str, float]:
    """Kernel pass, Gram matrix, log score, influence, gradient and payoffs beside NumPy."""
    x, y = records(n)
    kernel, z = gaussian(y), np.eye(CLASSES)[x]
    gram = z.T @ kernel @ z / n**2
    centred = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
    np.fill_diagonal(centred, 0.0)
    h = kernel @ z @ np.linalg.inv(gram) / n
    observed = observe(KERNEL, y)
    found = jax.jit(lambda o, z: o.kernel_pass(z))(observed, z.astype(np.float32))
    score = partial(jgram.plugin_log_score, num_classes=CLASSES)
    slope = jax.jit(jax.grad(lambda y: score(x, y, KERNEL)))(y)
    # d log det G / d y_n = 2/n sum_m K_nm (y_m - y_n) (h_n[x_m] + h_m[x_n]) / (n bandwidth^2), by
    # A = G^-1: the derivative of z^T K z weighs the pair (n, m) by A[x_n, x_m] twice.
    pairs = kernel * np.linalg.inv(gram)[np.ix_(x, x)]
    points = np.asarray(y, np.float64)
    exact = 4 * (pairs @ points - pairs.sum(axis=1)[:, None] * points)
    reports = np.stack([x, np.roll(x, 1)])
    own = jax.jit(partial(payoffs, num_classes=CLASSES))(observed, reports)
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        on_host = payoffs(observe(KERNEL, y.astype(np.float64)), reports, num_classes=CLASSES)
        on_host = jax.tree.map(np.asarray, on_host)
    return {
        "K z": error(found.product, kernel @ z),
        "spread of K": error(found.spread, (centred**2).sum() / n / (n - 1)),
        "Gram matrix": error(jgram.gram(x, observed, num_classes=CLASSES), gram),
        "log score": error(score(x, observed), np.linalg.slogdet(gram)[1]),
        "influence": error(influence(x, observed, num_classes=CLASSES), h),
        "gradient in y": error(slope, exact / (n * KERNEL.bandwidth) ** 2),
        "payoffs, beside float64 on the host": error(own.values, on_host.values),
    }


def check_rest() -> dict[str, float]:
    """Categorical score, sampler and convolution; the sampler's errors are over 1e4 of their size.

    A mean of ``t`` counts is off by some standard deviations over ``sqrt(t)`` where the sampler is
    right; five of them are the tolerance.
    """
    table = np.random.default_rng(0).integers(1, 99, (6, 4))
    share = table / table.sum()
    found = {
        "categorical log score": error(
            simulate.table_log_score(jnp.asarray(table)), np.linalg.slogdet(share.T @ share)[1]
        )
    }
    draws, p = 20_000, 0.25
    for n in (40, 400, 4_000_000):
        counts = np.asarray(multinomial(KEY, jnp.full(draws, n), jnp.array([p, 1 - p])))[:, 0]
        deviation = np.sqrt(n * p * (1 - p))
        apart = abs(counts.mean() - n * p) / deviation * np.sqrt(draws)
        spread = abs(counts.std() / deviation - 1) * np.sqrt(2 * draws)
        found[f"binomial counts of {n:,}"] = max(apart, spread) / 5 * TOLERANCE
    rng = np.random.default_rng(1)
    images = rng.normal(size=(4, 8, 8, 16)).astype(np.float32)
    kernel = rng.normal(size=(3, 3, 16, 32)).astype(np.float32)
    padded = np.pad(images.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = [padded[:, i : i + 8, j : j + 8] @ kernel[i, j] for i in range(3) for j in range(3)]
    with jax.default_matmul_precision("highest"):
        found["convolution"] = error(jax.jit(convolve)(images, kernel), sum(taps))
    return found


def time_kernel(n: int) -> tuple[list[Row], dict[str, float]]:
    """A kernel pass by tile size, the default first, and what it needs beside its arguments."""
    x, y = records(n)
    z, rows, memory = jax.nn.one_hot(x, CLASSES), [], {}
    for size in (None, *(size for size in TILES if size <= n)):
        observed = observe(KERNEL, y, block_size=size)
        run = jax.jit(lambda o, z: o.kernel_pass(z).product)
        name = f"kernel pass, n={n:,}, tiles by {'default' if size is None else f'{size:,}'}"
        rows.append(time_call(name, run, observed, z, against=rows[0] if rows else None, repeats=3))
        memory[f"megabytes of temporaries: {name}"] = temporaries(run, observed, z)
    return rows, memory


def time_rest(n: int, trials: int, batch: int, architecture: Architecture) -> list[Row]:
    """Rankings, sweep, training step, attack step."""
    x, y = records(n)
    rng = np.random.default_rng(0)
    reports = {
        f"{share:.0%} redrawn": np.where(rng.random(n) < share, rng.integers(0, CLASSES, n), x)
        for share in (0.1, 0.2, 0.3)
    }
    counts = jnp.full((CLASSES, CLASSES), 400)
    levels = jax.vmap(mix, (None, 0))(uniform(CLASSES), jnp.linspace(0, 0.5, 11))
    scores = {"log": simulate.table_log_score}
    images = jax.random.uniform(KEY, (2 * batch, 32, 32, 3))
    step = jax.jit(partial(training._update, architecture=architecture))
    view = jax.jit(augment)
    state = training.initialize(KEY, architecture)
    optimizer = optax.sgd(0.3)

    def attack(steps: int) -> Any:
        return ascend_reports(
            KEY[None], x, jnp.asarray(y), KERNEL, budget=0.1, optimizer=optimizer, steps=steps
        ).path

    runs: dict[str, Callable[[], Any]] = {
        f"rank 3 reports, explicit RBF, n={n:,}": lambda: jgram.rank_reports(reports, y, KERNEL),
        f"rank 3 reports, four bandwidths, n={n:,}": lambda: jgram.rank_reports(
            reports, y, "multiscale-rbf"
        ),
        f"rank 3 reports, categories, n={n:,}": lambda: jgram.rank_reports(
            reports, np.digitize(y[:, 0], [-1.0, 0.0, 1.0])
        ),
        f"sweep of 11 levels, {trials} trials, d={CLASSES}": lambda: simulate.sweep(
            KEY, counts, levels, scores, trials=trials
        ),
        f"augmentation of 2 x {batch} images": lambda: view(KEY, images),
        f"training step, 2 x {batch} views": lambda: step(state[:3], images),
        f"gradient attack, 1 step, RBF, n={n:,}": lambda: attack(1),
        f"gradient attack, 6 steps, RBF, n={n:,}": lambda: attack(6),
    }
    return [time_call(name, run, repeats=3) for name, run in runs.items()]


def main(arguments: list[str] | None = None) -> int:
    """Check, measure, print, write; 1 where a check fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="little data, for any machine")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    given = parser.parse_args(arguments)
    small = given.small
    architecture = Architecture(widths=(8, 16), depth=1) if small else RESNET18
    checks = check_kernel(1500 if small else 6000) | check_rest()
    for name, value in checks.items():
        print(f"{name:<78} {value:10.1e}  {'right' if value <= TOLERANCE else 'WRONG'}")
    rows, memory = time_kernel(3000 if small else 100_000)
    rows += time_rest(*((500, 10, 16) if small else (20_000, 100, 256)), architecture=architecture)
    for row in rows:
        first = f"first {row['first_seconds']:.1f} s"
        ratio = "" if row["ratio"] is None else f"x {row['ratio']:.2f}"
        print(f"{row['name']:<78} {row['seconds'] * 1e3:10.2f} ms  {first:<16} {ratio}")
    statistics = jax.devices()[0].memory_stats() or {}
    memory["megabytes at most"] = statistics.get("peak_bytes_in_use", 0) / 1e6
    for name, value in memory.items():
        print(f"{name:<78} {value:10.1f}")
    output = given.output or (None if small else RESULTS / "device.json")
    if output:
        found = {**environment(), "rows": rows, "relative errors": checks, **memory}
        output.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n")
    return int(any(not value <= TOLERANCE for value in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
