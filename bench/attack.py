"""What an attack costs beside the score it attacks: ``python -m bench.attack``.

One gradient step on soft reports (score, gradient, optimiser, budget) beside the forward score, and
one greedy step, which values every relabelling, beside two ways to value them by brute force: the
score of the records recomputed for each, and the class sums updated and one determinant for each,
which is what a careful NumPy user would write.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bench.timing import report, time_in_turns
from jgram import linear, plugin_log_score
from jgram.attack import ascend_reports, flip_greedily
from jgram.influences import linearise, relabelling_gains

STEPS = 20
SAMPLE = 200


def records(n: int, m: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and features with overlapping classes, so that lies pay."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, d, n)
    return x, (0.2 * rng.normal(size=(d, m))[x] + rng.normal(size=(n, m))).astype(np.float32)


def flips_from_records(x: np.ndarray, y: np.ndarray, cells: np.ndarray, d: int) -> np.ndarray:
    """The log score after each of the given relabellings, from the records each time."""
    values = np.empty(len(cells))
    for i, (record, target) in enumerate(cells):
        changed = x.copy()
        changed[record] = target
        sums = np.stack([y[changed == label].sum(axis=0) for label in range(d)]) / len(x)
        values[i] = np.linalg.slogdet(sums @ sums.T)[1]
    return values


def flips_from_sums(x: np.ndarray, y: np.ndarray, d: int) -> np.ndarray:
    """The log score after every relabelling, from updated class sums, ``[n, d]``."""
    z = np.eye(d)[x]
    sums = z.T @ y / len(x)
    values = np.empty((len(x), d))
    for target in range(d):
        change = (np.eye(d)[target] - z)[:, :, None] * (y / len(x))[:, None, :]
        changed = sums + change
        values[:, target] = np.linalg.slogdet(changed @ changed.transpose(0, 2, 1))[1]
    return values


def main() -> None:
    """Measure, print and write ``results/attack.json``."""
    n, m, d = 100_000, 64, 10
    x, y = records(n, m, d)
    key, soft = jax.random.key(0), jnp.asarray(np.eye(d, dtype=np.float32)[x])
    forward = jax.jit(lambda z, y: plugin_log_score(z, y, linear, num_classes=d))

    def ascend(steps: int, optimizer: optax.GradientTransformation) -> jax.Array:
        return ascend_reports(
            key[None], x, y, linear, budget=0.1, optimizer=optimizer, steps=steps
        ).path

    y = jnp.asarray(y)
    optimizers = {"sgd": optax.sgd(0.3), "adam": optax.adam(0.1)}
    runs = {f"forward score, n={n:,}, m={m}, d={d}": lambda: forward(soft, y)}
    for name, optimizer in optimizers.items():
        for steps in (1, 1 + STEPS):
            runs[f"ascend_reports, {steps} steps, {name}"] = lambda s=steps, o=optimizer: ascend(
                s, o
            )
    rows = time_in_turns(runs)
    fastest = {row["name"]: row["fastest"] for row in rows}
    extra = {
        f"gradient step ({name}) / forward score": round(
            (
                fastest[f"ascend_reports, {1 + STEPS} steps, {name}"]
                - fastest[f"ascend_reports, 1 steps, {name}"]
            )
            / STEPS
            / rows[0]["fastest"],
            2,
        )
        for name in optimizers
    }

    n = 2000
    x, y = records(n, m, d)
    cells = np.random.default_rng(1).permutation(n * d)[:SAMPLE]
    cells = np.stack([cells // d, cells % d], axis=1)
    found = flip_greedily(x, y, linear, flips=1)
    gains = relabelling_gains(linearise(x, y, linear), x)
    values = flips_from_sums(x, y, d)
    start = float(plugin_log_score(x, y, linear))
    np.testing.assert_allclose(start + gains, values, atol=2e-5)
    np.testing.assert_allclose(flips_from_records(x, y, cells, d), values[*cells.T], atol=2e-5)
    np.testing.assert_allclose(found.path[0], values.max(), atol=2e-5)
    greedy = time_in_turns(
        {
            f"{SAMPLE} of {n * d:,} relabellings from the records, n={n:,}": lambda: (
                flips_from_records(x, y, cells, d)
            ),
            "all relabellings from class sums, NumPy": lambda: flips_from_sums(x, y, d),
            "flip_greedily, 1 step": lambda: flip_greedily(x, y, linear, flips=1).path,
            f"flip_greedily, {1 + STEPS} steps": lambda: (
                flip_greedily(x, y, linear, flips=1 + STEPS).path
            ),
        }
    )
    step = (greedy[3]["fastest"] - greedy[2]["fastest"]) / STEPS
    extra |= {
        "greedy step, ms": round(step * 1e3, 3),
        "all flips from the records / greedy step": round(
            greedy[0]["fastest"] * n * d / SAMPLE / step
        ),
        "all flips from class sums / greedy step": round(greedy[1]["fastest"] / step, 1),
    }
    report("attack", rows + greedy, extra)


if __name__ == "__main__":
    main()
