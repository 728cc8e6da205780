"""Experiment-agnostic rates: does a score order two channels alike on the truth and on y?

d = 4; a random prior, experiment and two channels in each of 1000 trials, 1e8 records each, drawn
as contingency tables. A trial keeps the order if the score difference of the two reports has the
same sign against y as against the truth x.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.figures import finish, panels, save
from experiments.statistics import proportion
from jgram import dependence, policies, simulate

CLASSES, TRIALS, RECORDS = 4, 1000, 10**8
SCORES = {
    "Gram": simulate.table_log_score,
    "Top-3 volume": partial(dependence.top_k_volume, k=3),
    "Top-2 volume": partial(dependence.top_k_volume, k=2),
    "Max correlation": dependence.maximal_correlation,
    "Ky Fan 3-sum": partial(dependence.ky_fan_sum, k=3),
    "χ²-MI": partial(dependence.mutual_information, kind="chi2"),
    "KL divergence": partial(dependence.mutual_information, kind="kl"),
}


def tables(key: jax.Array, n: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """Tables of one trial, two channels each: (y, x_hat) and (x, x_hat), ``[2, d, d]``."""
    keys = jax.random.split(key, 6)
    prior = jax.random.dirichlet(keys[0], jnp.ones(CLASSES))
    experiment = simulate.random_experiment(keys[1], CLASSES)
    channels = jax.vmap(lambda k: simulate.random_experiment(k, CLASSES).T)(keys[2:4])
    counts = simulate.truth_counts(keys[4], n, experiment, prior)
    reports = jax.vmap(policies.corrupt_counts, in_axes=(0, None, 0))(
        jax.random.split(keys[5]), counts, channels
    )  # [channel, x, y, x_hat]
    return jnp.sum(reports, axis=1), jnp.sum(reports, axis=2)


@jax.jit
def gaps(keys: jax.Array, n: jax.Array | int) -> dict[str, tuple[jax.Array, jax.Array]]:
    """Score differences of the two reports, against y and against x, of every trial."""

    def trial(key: jax.Array) -> dict[str, tuple[jax.Array, jax.Array]]:
        against_y, against_x = tables(key, n)
        return {
            name: (
                score(against_y[0]) - score(against_y[1]),
                score(against_x[0]) - score(against_x[1]),
            )
            for name, score in SCORES.items()
        }

    return jax.vmap(trial)(keys)


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Share of trials that keep the order, by score."""
    trials, n = (20, 10**6) if smoke else (TRIALS, RECORDS)
    with jax.enable_x64(True):
        found = jax.device_get(gaps(jax.random.split(jax.random.key(seed), trials), n))
    kept = {name: on_y * on_x > 0 for name, (on_y, on_x) in found.items()}
    return {
        "trials": trials,
        "records": n,
        "rates": {name: proportion(x, trials) for name, x in kept.items()},
        "flipped": {name: np.flatnonzero(~x) for name, x in kept.items() if x.mean() > 0.95},
    }


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the results table."""
    claims = {"Gram": "substantially highest", "Top-3 volume": "lower", "Ky Fan 3-sum": ""}
    return [
        {
            "quantity": f"experiment-agnostic rate, {name}",
            "paper": claims.get(name, "lower"),
            "ours": rate["share"],
            "interval": f"[{rate['low']:.3f}, {rate['high']:.3f}]",
        }
        for name, rate in results["rates"].items()
    ]


def plot(results: dict[str, Any], path: Any) -> None:
    """One bar a score."""
    figure, axes = panels(1, 1, width=6.5)
    axis, names = axes[0, 0], list(results["rates"])
    rates = [results["rates"][name] for name in names]
    share = np.array([rate["share"] for rate in rates])
    error = [share - [rate["low"] for rate in rates], [rate["high"] for rate in rates] - share]
    axis.bar(names, share, yerr=error, capsize=3, color=[f"C{i}" for i in range(len(names))])
    axis.set_ylim(0.5, 1.02)
    axis.tick_params(axis="x", labelsize=7)
    finish(axis, "", "experiment-agnostic rate")
    save(figure, axes.flat, path)
