"""Imbalanced prior: Experiment 1 with 70% of the records in the first class.

The prior is .7 for the first label and .075 for each of the other four; all else as in policies.
"""

from typing import Any

import numpy as np

from experiments import policies
from experiments.policies import plot
from jgram import simulate

__all__ = ["plot", "run", "table_rows"]


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """The imbalanced sweep, and the balanced one beside it for its spread."""
    prior = simulate.imbalanced_prior(policies.CLASSES)
    settings: dict[str, Any] = dict(smoke=smoke, as_published=as_published, seed=seed)
    balanced = policies.run(**settings)
    return policies.run(**settings, prior=prior) | {"balanced": balanced["scores"]["score"]}


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the results table."""

    def relative_spread(score: dict[str, Any]) -> float:
        mean, half = (np.asarray(score[part])[:, 1:] for part in ("mean", "half"))
        return float(np.median(half / mean)) * np.sqrt(results["trials"]) / 1.96

    score = results["scores"]["score"]
    falls = [np.all(np.diff(line) < 0) for line in score["mean"]]
    share = results["consistency"]["score"]["hamming"]
    return [
        {
            "quantity": "policies whose mean score falls at every step of p",
            "paper": "all 6",
            "ours": f"{sum(falls)} of 6",
            "interval": "",
        },
        {
            "quantity": "relative spread of a score, median cell: imbalanced / balanced",
            "paper": "“higher variance”",
            "ours": f"{relative_spread(score):.3f} / {relative_spread(results['balanced']):.3f}",
            "interval": "",
        },
        {
            "quantity": "cross-policy pairs of cells ordered as Hamming orders them, on means",
            "paper": "",
            "ours": share["means"],
            "interval": f"in one trial {share['trials']:.3f} ± {share['half']:.3f}",
        },
    ]
