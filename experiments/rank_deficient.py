"""Rank-deficient experiments: rank distance of the Gram and top-2 scores, by rank and sample size.

d = 4, experiments of rank 1 to 4, 300 trials (experiment, truth and reports anew in each), labels
kept with probability p = .5, .6, ..., 1 and uniform otherwise. The paper has N = 2000; N = 200 000
and 20 000 000 show what remains when sampling error is gone. "Top-2" is read in two ways: the
volume of the whitened, centred table (Experiment 4's definition, whose rank is one less than the
experiment's) and the two largest eigenvalues of the Gram matrix itself.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.figures import curve, finish, panels, save
from experiments.statistics import mean_interval, rank_distance
from experiments.verdicts import verdict
from jgram import dependence, determinant, simulate
from jgram.simulate import policies

CLASSES, TRIALS, TOP = 4, 300, 2
SIZES = (2_000, 200_000, 20_000_000)
KEPT = np.linspace(0.5, 1.0, 6)


def low_rank_experiment(key: jax.Array, num_classes: int, rank: int) -> jax.Array:
    """A random experiment whose last columns are mixtures of the first ``rank`` (appendix).

    Both the first columns and the mixing weights are uniform on the simplex.
    """
    if not 1 <= rank <= num_classes:
        raise ValueError(f"expected rank in 1..{num_classes}, got {rank}")
    key_basis, key_mixture = jax.random.split(key)
    basis = jax.random.dirichlet(key_basis, jnp.ones(num_classes), (rank,))
    mixture = jax.random.dirichlet(key_mixture, jnp.ones(rank), (num_classes - rank,))
    mixed = jnp.matmul(mixture, basis, precision=jax.lax.Precision.HIGHEST)
    return jnp.concatenate([basis, mixed]).T


def top_two(table: jax.Array) -> jax.Array:
    """Log of the product of the two largest eigenvalues of the Gram matrix."""
    return determinant.log_top_determinant_of_sums(table.T / jnp.sum(table), TOP)


SCORES = {
    "Gram": simulate.table_log_score,
    "top-2 volume": partial(dependence.top_k_volume, k=TOP),
    "top-2 eigenvalues": top_two,
}


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Rank distances by score, size and rank."""
    trials, sizes, ranks = (4, SIZES[:1], (2, 3)) if smoke else (TRIALS, SIZES, (1, 2, 3, 4))
    transitions = jnp.stack([policies.mix(policies.uniform(CLASSES), 1 - p) for p in KEPT])
    truths = jax.jit(jax.vmap(simulate.truth_counts, in_axes=(0, None, 0)))
    key, distances = jax.random.key(seed), []
    for n in sizes:
        row = []
        for rank in ranks:
            key, key_experiment, key_truth, key_reports = jax.random.split(key, 4)
            draw = partial(low_rank_experiment, num_classes=CLASSES, rank=rank)
            experiments = jax.vmap(draw)(jax.random.split(key_experiment, trials))
            counts = truths(jax.random.split(key_truth, trials), n, experiments)
            found = simulate.sweep(key_reports, counts, transitions, SCORES, trials=trials)
            row.append(
                {
                    name: mean_interval(rank_distance(score.T, -KEPT))
                    for name, score in found.scores.items()
                }
            )
        distances.append(row)
    return {"sizes": sizes, "ranks": ranks, "trials": trials, "distance": distances}


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the results table."""
    claims = {
        ("Gram", 2): "“nontrivial discriminative power”",
        ("top-2 volume", 2): "like Gram at full rank",
    }
    rows = []
    for n, row in zip(results["sizes"], results["distance"], strict=True):
        for name in SCORES:
            found = [by_rank[name] for by_rank in row]
            rows.append(
                {
                    "quantity": f"N = {n}, {name}: Kendall distance to p at ranks "
                    f"{', '.join(map(str, results['ranks']))} (chance .5)",
                    "paper": claims.get((name, 2), "") if n == SIZES[0] else "",
                    "ours": ", ".join(f"{x['mean']:.3f}" for x in found),
                    "interval": f"± {max(x['half'] for x in found):.3f}",
                }
            )
    return rows


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, the paper's and ours, and a verdict."""

    def pair(name: str, rank: int) -> list[float]:
        column = results["ranks"].index(rank)
        return [results["distance"][row][column][name]["mean"] for row in (0, -1)]

    gram, full = pair("Gram", 2), pair("Gram", 4)
    top, one = pair("top-2 eigenvalues", 2), pair("Gram", 1)
    what = "pairs in wrong order, N = 2,000 and 20 million (chance .5)"
    show = "{:.2f} and {:.2f}".format
    numbers = [
        (f"Gram score at rank 4: {what}", "", show(*full)),
        (f"Gram score at rank 2: {what}", "“nontrivial discriminative power”", show(*gram)),
        (f"two largest eigenvalues at rank 2: {what}", "", show(*top)),
    ]
    words = (
        "**Reproduced, and explained**: below full rank the score without sampling error is 0, and "
        "what is left of its power is the same at every N. At rank 1 nothing is better than "
        "chance. Scores that use only as many directions as there are do order the reports."
    )
    return numbers, verdict(
        words, abs(gram[0] - gram[1]) < 0.05, max(gram) < 0.45, max(full) < 0.1, max(top) < 0.05,
        all(0.46 < value < 0.54 for value in one),
    )  # fmt: skip


def plot(results: dict[str, Any], path: Any) -> None:
    """Rank distance against rank, one panel a score, one line a size."""
    figure, axes = panels(1, len(SCORES))
    for axis, name in zip(axes.flat, SCORES, strict=True):
        for i, (n, row) in enumerate(zip(results["sizes"], results["distance"], strict=True)):
            line = {part: [x[name][part] for x in row] for part in ("mean", "half")}
            curve(axis, results["ranks"], line, index=i, label=f"N = {n:,}")
        axis.axhline(0.5, color="grey", linewidth=0.8)
        axis.set_xticks(results["ranks"])
        axis.set_ylim(-0.02, 0.6)
        finish(axis, "rank of the experiment", "Kendall distance", f"{name}; chance is .5",
                   legend=name == "Gram")  # fmt: skip
    save(figure, axes.flat, path)
