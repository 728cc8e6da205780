"""How work grows with its sizes, in processor seconds: ``python -m bench.growth``.

The fastest of three warm calls at each size, in processor seconds (user and system, all threads,
which load from elsewhere disturbs least), and the exponent between neighbours,
``log(t2 / t1) / log(size2 / size1)``. SCALE.md puts them beside what the cost model says.
"""

import json
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jgram
from bench.gram import CLASSES, records
from bench.timing import RESULTS, processor_seconds
from experiments.environment import environment
from jgram import simulate
from jgram.contrasts import payoffs_of_pairs, products
from jgram.kernels import Delta
from jgram.observed import observe
from jgram.simulate.policies import mix, uniform

KEY = jax.random.key(0)


def fastest(run: Callable[[], Any], repeats: int = 3) -> float:
    """The least processor seconds of some calls, after one that compiles."""
    jax.block_until_ready(run())
    return min(processor_seconds(run) for _ in range(repeats))


def kernel_pass(n: int = 10_000, k: int = 8, columns: int = 11) -> Callable[[], Any]:
    """``K z`` of ``columns`` columns, RBF over ``k`` coordinates."""
    rng = np.random.default_rng(0)
    observed = observe(jgram.RBF(3.0), rng.normal(size=(n, k)).astype(np.float32))
    z, run = jnp.ones((n, columns)), jax.jit(lambda o, z: o.kernel_pass(z).product)
    return lambda: run(observed, z)


def features(n: int = 100_000, m: int = 256) -> Callable[[], Any]:
    """Log score of features that lie in memory."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, CLASSES, n), rng.normal(size=(n, m)).astype(np.float32)
    x, y = jnp.asarray(x), jnp.asarray(y)
    run = jax.jit(lambda x, y: jgram.plugin_log_score(x, y, jgram.linear, num_classes=CLASSES))
    return lambda: run(x, y)


def counts(n: int = 1_000_000) -> Callable[[], Any]:
    """Log score of categories."""
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.integers(0, 10, (2, n)).astype(np.int32))
    run = jax.jit(lambda x, y: jgram.plugin_log_score(x, y, Delta(10), num_classes=10))
    return lambda: run(x, y)


def pairs(n: int = 20_000, reports: int = 4) -> Callable[[], Any]:
    """Payoffs of all pairs of reports at their midpoints, after the kernel pass."""
    x, y = records(n)
    stacked = np.stack([np.roll(x, shift) for shift in range(reports)])
    found = products(observe(jgram.linear, y), stacked, num_classes=CLASSES)
    both = jnp.stack(np.triu_indices(reports, 1), axis=1)
    return lambda: payoffs_of_pairs(found, both)


def sweep(trials: int = 100, d: int = 10, n: int = 40_000) -> Callable[[], Any]:
    """Eleven levels of trials."""
    truth = jnp.full((d, d), n // d**2)
    levels = jax.vmap(mix, (None, 0))(uniform(d), jnp.linspace(0, 0.5, 11))
    scores = {"log": simulate.table_log_score}
    return lambda: simulate.sweep(KEY, truth, levels, scores, trials=trials)


GROWTH: dict[str, tuple[Callable[..., Callable[[], Any]], str, tuple[int, ...]]] = {
    "kernel pass by records": (kernel_pass, "n", (5_000, 10_000, 20_000, 40_000)),
    "kernel pass by coordinates": (kernel_pass, "k", (8, 64, 512)),
    "kernel pass by columns": (kernel_pass, "columns", (8, 32, 128)),
    "features by records": (features, "n", (50_000, 200_000, 800_000)),
    "features by features": (features, "m", (64, 256, 1024)),
    "counts by records": (counts, "n", (1_000_000, 4_000_000, 16_000_000)),
    "pairs by reports": (pairs, "reports", (3, 6, 12)),
    "pairs by records": (pairs, "n", (10_000, 40_000)),
    "sweep by trials": (sweep, "trials", (50, 200, 800)),
    "sweep by classes": (sweep, "d", (5, 10, 20)),
}


def main() -> None:
    """Measure, print and write ``results/growth.json``."""
    found: dict[str, Any] = {}
    for name, (make, argument, sizes) in GROWTH.items():
        seconds = [fastest(make(**{argument: size})) for size in sizes]
        steps = zip(sizes, sizes[1:], seconds, seconds[1:], strict=False)
        exponents = [math.log(u / t) / math.log(b / a) for a, b, t, u in steps]
        found[name] = {"sizes": sizes, "processor seconds": seconds, "exponents": exponents}
        spent = ", ".join(f"{size:,}: {t:.3f}" for size, t in zip(sizes, seconds, strict=True))
        print(f"{name:<28} {spent}; exponents {[round(e, 2) for e in exponents]}", flush=True)
    record = {**environment(), "rows": [], "growth": found}
    (RESULTS / "growth.json").write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
