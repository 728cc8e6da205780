"""Permutations and rankings beside their rivals: ``python -m bench.inference``.

A thousand permutations of a categorical score by count-level tables and by shuffling records; a
thousand under an RBF kernel beside the one matrix product that they cannot do without; a ranking of
five reports of 100,000 records on class probabilities beside cleanlab's and crowd-kit's (where
installed), which are different methods and are compared in time only.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

import jgram
from bench.timing import Row, report, time_call

DRAWS = 1000


def records_shuffled(x_hat: np.ndarray, y: np.ndarray, d: int) -> np.ndarray:
    """Shuffle, count, determinant, a thousand times over."""
    rng = np.random.default_rng(0)
    tables = np.empty((DRAWS, d, d))
    for draw in range(DRAWS):
        cells = y * d + rng.permutation(x_hat)
        tables[draw] = np.bincount(cells, minlength=d * d).reshape(d, d) / len(y)
    return np.linalg.slogdet(tables.swapaxes(1, 2) @ tables)[1]


def main() -> None:
    """Measure, print and write ``results/inference.json``."""
    rows: list[Row] = []
    key = jax.random.key(0)
    for n in (10_000, 100_000):
        rng = np.random.default_rng(n)
        x_hat, y = (rng.integers(0, 5, n).astype(np.int32) for _ in range(2))
        base = time_call(
            f"jgram, 1,000 permutations, categorical, n={n:,}, d=5",
            lambda x, y: jgram.noise_floor(key, x, y, jgram.Delta(5), draws=DRAWS).draws,
            x_hat,
            y,
        )
        rows += [
            base,
            time_call(
                "NumPy, shuffled records", records_shuffled, x_hat, y, 5, against=base, repeats=3
            ),
        ]

    n, d, m = 10_000, 10, 8
    rng = np.random.default_rng(0)
    x_hat, y = rng.integers(0, d, n).astype(np.int32), rng.normal(size=(n, m)).astype(np.float32)
    kernel = jgram.RBF(4.0)
    floor = time_call(
        "jgram, 1,000 permutations, RBF, n=10,000, d=10",
        lambda x, y: jgram.noise_floor(key, x, y, kernel, draws=DRAWS).draws,
        x_hat,
        y,
        repeats=1,
    )
    # The half of K [n, n] @ Z [n, 1000 d] on and above the diagonal, in the chunks that fit.
    flops = n * (n + 1) * DRAWS * d
    block, columns = 1024, 1000
    left = jnp.asarray(rng.normal(size=(block, block)), jnp.float32)
    right = jnp.asarray(rng.normal(size=(block, columns)), jnp.float32)
    product = jax.jit(jnp.matmul)
    product(left, right).block_until_ready()
    start, repeats = time.perf_counter(), 100
    for _ in range(repeats):
        out = product(left, right)
    out.block_until_ready()
    rate = 2 * block * block * columns * repeats / (time.perf_counter() - start)
    rows += [floor]

    n, d = 100_000, 10
    rng = np.random.default_rng(0)
    truth = rng.integers(0, d, n)
    probabilities = rng.dirichlet(np.full(d, 0.3), n) + 2.0 * np.eye(d)[truth]
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    answers = {
        f"annotator {k}": np.where(rng.random(n) < 0.1 * (k + 1), rng.integers(0, d, n), truth)
        for k in range(5)
    }
    ranked = time_call(
        "jgram, rank 5 reports with intervals, n=100,000, d=10, class probabilities",
        lambda y: jgram.rank_reports(answers, y, jgram.PseudoPosterior()),
        probabilities,
        repeats=3,
    )
    rows.append(ranked)
    table = np.stack(list(answers.values()), axis=1)
    try:
        from cleanlab.multiannotator import get_label_quality_multiannotator

        rows.append(
            time_call(
                "cleanlab, multiannotator quality (another method)",
                lambda: get_label_quality_multiannotator(table, probabilities, verbose=False),
                against=ranked,
                repeats=1,
            )
        )
    except ImportError:
        pass
    try:
        import pandas as pd
        from crowdkit.aggregation import DawidSkene

        long = pd.DataFrame(
            {
                "task": np.repeat(np.arange(n), 5),
                "worker": np.tile(list(answers), n),
                "label": table.ravel(),
            }
        )
        rows.append(
            time_call(
                "crowd-kit, Dawid-Skene, 20 iterations (another method)",
                lambda: DawidSkene(n_iter=20).fit_predict(long),
                against=ranked,
                repeats=1,
            )
        )
    except ImportError:
        pass
    extra = {
        "permutation_product": {
            "flops": flops,
            "rate_gflops": rate / 1e9,
            "seconds_at_that_rate": flops / rate,
            "ratio": floor["seconds"] / (flops / rate),
        }
    }
    report("inference", rows, extra)


if __name__ == "__main__":
    main()
