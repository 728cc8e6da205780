"""Experiment 1 and Figure 2: six policies, the score against p, Hamming and l2 errors.

N = 4000 records, d = 5 classes, a random experiment, eleven corruption levels, 100 trials each on
one fixed data set. ``as_published`` draws the Mixed policy with the published code's weights.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.figures import curve, finish, panels, save
from experiments.statistics import mean_interval, rank_distance
from jgram import policies, simulate

CLASSES, RECORDS, TRIALS = 5, 4000, 100
LEVELS = np.linspace(0.0, 0.5, 11)
POLICIES = ("Random", "Asym neighbor", "Row-sim 2nd", "Merge 0/1→0", "Mixed", "Group up/down")
SCORES = {"score": simulate.table_log_score}


def transitions(key: jax.Array, experiment: jax.Array, *, as_published: bool = False) -> jax.Array:
    """All policies at all levels, ``[6, 11, d, d]``."""
    d = experiment.shape[1]
    weights = policies.MIXED_AS_PUBLISHED if as_published else {}
    every = (
        policies.uniform(d),
        policies.asymmetric_neighbour(d),
        policies.row_similar(experiment),
        policies.merge(d),
        policies.mixed(key, d, **weights),
        policies.group_up_down(d),
    )
    return jnp.stack([jnp.stack([policies.mix(pi, p) for p in LEVELS]) for pi in every])


def run(
    *,
    smoke: bool,
    as_published: bool,
    seed: int,
    prior: jax.Array | None = None,
    scores: dict[str, Any] = SCORES,
) -> dict[str, Any]:
    """The sweep; ``prior`` and ``scores`` make it the imbalanced study and Experiment 4."""
    trials = 5 if smoke else TRIALS
    keys = jax.random.split(jax.random.key(seed), 4)
    experiment = simulate.random_experiment(keys[0], CLASSES)
    matrices = transitions(keys[2], experiment, as_published=as_published)
    counts = simulate.truth_counts(keys[1], RECORDS, experiment, prior)
    found = simulate.sweep(keys[3], counts, matrices, scores, trials=trials)
    return summary(found, scores) | {"experiment": experiment, "counts": counts}


def summary(found: simulate.Trial, scores: dict[str, Any]) -> dict[str, Any]:
    """Means with intervals, and how well each score's order agrees with that of the errors."""
    # The determinant itself is what the paper plots; the other scores are not logarithms.
    values = {name: np.exp(x) if name == "score" else x for name, x in found.scores.items()}
    errors = {"hamming": found.hamming, "l2": found.l2}
    return {
        "policies": POLICIES,
        "levels": LEVELS,
        "trials": found.l2.shape[-1],
        "scores": {name: mean_interval(values[name]) for name in scores},
        "errors": {name: mean_interval(error) for name, error in errors.items()},
        "consistency": {
            name: {error: consistency(values[name], errors[error]) for error in errors}
            for name in scores
        },
        "within": {
            name: {
                policy: mean_interval(rank_distance(values[name][i].T, LEVELS))
                for i, policy in enumerate(POLICIES)
            }
            for name in scores
        },
    }


def consistency(scores: np.ndarray, errors: np.ndarray) -> dict[str, float]:
    """Share of pairs of cells of different policies that the score orders as the error does.

    ``means`` compares means over trials, ``trials`` the cells of one trial, averaged over trials;
    pairs that the error does not order (p = 0 everywhere) are left out.
    """

    def share(score: np.ndarray, error: np.ndarray) -> np.ndarray:
        policy = np.repeat(np.arange(len(POLICIES)), len(LEVELS))
        first, second = np.nonzero(policy[:, None] < policy)
        gap, loss = (x[first] - x[second] for x in (score, error))
        return np.sum(gap * loss < 0, axis=0) / np.sum(loss != 0, axis=0)

    score, error = (x.reshape(-1, x.shape[-1]) for x in (scores, errors))
    single = mean_interval(share(score, error))
    means = share(score.mean(axis=1, keepdims=True), error.mean(axis=1, keepdims=True))
    return {"means": means.item(), "trials": single["mean"], "half": single["half"]}


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the results table."""
    share = results["consistency"]["score"]["hamming"]
    worst = max(results["within"]["score"].items(), key=lambda item: item[1]["mean"])
    falls = all(np.all(np.diff(line) < 0) for line in results["scores"]["score"]["mean"])
    return [
        {
            "quantity": "mean score falls at every step of p, all six policies",
            "paper": "“falls steadily”",
            "ours": "yes" if falls else "no",
            "interval": "",
        },
        {
            "quantity": "cross-policy pairs of cells ordered as Hamming orders them, on means",
            "paper": "“regardless of the policy”",
            "ours": share["means"],
            "interval": f"in one trial {share['trials']:.3f} ± {share['half']:.3f}",
        },
        {
            "quantity": f"Kendall distance to p within a policy, worst ({worst[0]})",
            "paper": "",
            "ours": worst[1]["mean"],
            "interval": f"± {worst[1]['half']:.3f}",
        },
    ]


def plot(results: dict[str, Any], path: Any) -> None:
    """Score against p, Hamming error and l2 error against the score."""
    figure, axes = panels(1, 3)
    score = results["scores"]["score"]
    for i, policy in enumerate(results["policies"]):
        mine = {part: values[i] for part, values in score.items()}
        curve(axes[0, 0], results["levels"], mine, index=i, label=policy)
        for axis, error in zip(axes[0, 1:], ("hamming", "l2"), strict=True):
            theirs = {part: values[i] for part, values in results["errors"][error].items()}
            curve(axis, mine, theirs, index=i)
    finish(axes[0, 0], "p", "score", "score vs p", legend=True)
    finish(axes[0, 1], "score", "Hamming distance", "Hamming vs score")
    finish(axes[0, 2], "score", r"$\ell_2$ norm", r"$\ell_2$ vs score")
    save(figure, axes.flat, path)
