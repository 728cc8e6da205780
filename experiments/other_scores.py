"""Experiment 4: mutual informations, maximal correlation, volumes and the Gram score compared.

The data and policies of Experiment 1. "Consistent across policies" is made a number: the share of
pairs of cells (policy and level) of different policies that a score orders as Hamming does.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments import policies
from experiments.figures import curve, finish, panels, save
from jgram import dependence

VOLUME = policies.CLASSES - 1
SCORES = {
    **policies.SCORES,
    "KL divergence": partial(dependence.mutual_information, kind="kl"),
    "χ²-MI": partial(dependence.mutual_information, kind="chi2"),
    "Max correlation": dependence.maximal_correlation,
    "Top-4 volume": partial(dependence.top_k_volume, k=VOLUME),
    "Ky Fan 4-sum": partial(dependence.ky_fan_sum, k=VOLUME),
}
MERGE = policies.POLICIES.index("Merge 0/1→0")


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """All scores on the same reports."""
    return policies.run(smoke=smoke, as_published=as_published, seed=seed, scores=SCORES)


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the results table."""
    claims = {"score": "consistent", "Top-4 volume": "consistent", "Ky Fan 4-sum": ""}
    rows = [
        {
            "quantity": f"{'Gram score' if name == 'score' else name}: cross-policy pairs ordered "
            "as Hamming orders them, on means",
            "paper": claims.get(name, "inconsistent"),
            "ours": found["hamming"]["means"],
            "interval": f"in one trial {found['hamming']['trials']:.3f} "
            f"± {found['hamming']['half']:.3f}",
        }
        for name, found in results["consistency"].items()
    ]
    best = results["scores"]["Max correlation"]["mean"][MERGE]
    gram = results["scores"]["score"]["mean"][MERGE]
    rows.append(
        {
            "quantity": "Merge at p = .5 against p = 0: max correlation, Gram score (ratios)",
            "paper": "“almost identical”",
            "ours": f"{best[-1] / best[0]:.3f}, {gram[-1] / gram[0]:.3f}",
            "interval": "",
        }
    )
    return rows


def plot(results: dict[str, Any], path: Any) -> None:
    """Hamming and l2 errors against each score."""
    names = list(results["scores"])
    figure, axes = panels(2, len(names), width=3.4)
    for column, name in enumerate(names):
        for row, error in enumerate(("hamming", "l2")):
            axis = axes[row, column]
            for i, policy in enumerate(results["policies"]):
                score, loss = (
                    {part: np.asarray(values)[i] for part, values in table.items()}
                    for table in (results["scores"][name], results["errors"][error])
                )
                curve(axis, score, loss, index=i, label=policy)
            label = "Gram score" if name == "score" else name
            loss = ("Hamming distance", r"$\ell_2$ norm")[row]
            finish(axis, label, loss, legend=row == column == 0)
    save(figure, axes.flat, path)
