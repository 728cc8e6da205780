"""Experiment 4: mutual informations, maximal correlation, volumes and the Gram score compared.

The data and policies of Experiment 1. "Consistent across policies" is made a number: the share of
pairs of cells (policy and level) of different policies that a score orders as Hamming does.
"""

from functools import partial
from typing import Any

from experiments import policies
from experiments.figures import curve, finish, over, panels, save
from experiments.verdicts import verdict
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
    rows = []
    for name, one in results["agreement"].items():
        label = "Gram score" if name == "score" else name
        row = {
            "quantity": f"{label}: cross-policy pairs ordered as Hamming orders them, means of "
            "100 trials; single trials",
            "paper": claims.get(name, "inconsistent"),
            "ours": f"{one['hamming of means']:.3f}; {one['hamming']:.3f}",
            "interval": "one experiment",
        }
        rows.append(row)
        if many := results["experiments"]:
            means, single = many[name]["hamming of means"], many[name]["hamming"]
            rows.append(
                row
                | {
                    "quantity": f"{label}: the same over random experiments",
                    "ours": f"{means['mean']:.3f}; {single['mean']:.3f}",
                    "interval": f"± {means['half']:.3f}; ± {single['half']:.3f}",
                }
            )
    ratios = (
        results["values"][name]["mean"][MERGE][-1] / results["values"][name]["mean"][MERGE][0]
        for name in ("Max correlation", "Top-4 volume", "score")
    )
    return [
        *rows,
        {
            "quantity": "Merge at p = .5 relative to p = 0: max correlation, top-4 volume, Gram",
            "paper": "“almost identical”, better, better",
            "ours": ", ".join(f"{ratio:.3f}" for ratio in ratios),
            "interval": "one experiment",
        },
    ]


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, the paper's and ours, and a verdict."""
    one, many = results["agreement"], results["experiments"]

    def both(name: str) -> str:
        over_all = many[name]["hamming of means"]["mean"]
        return f"{one[name]['hamming of means']:.2f}; {over_all:.2f}"

    what = "ordered as Hamming orders them, one experiment; 50 random ones"
    numbers = [
        (f"Gram score: pairs {what}", "consistent", both("score")),
        (f"KL divergence: pairs {what}", "inconsistent", both("KL divergence")),
        (f"Ky Fan 4-sum: pairs {what}", "", both("Ky Fan 4-sum")),
    ]
    words = (
        "**Reproduced on a well-conditioned experiment, not in general**: over random experiments "
        "KL and χ² are hardly behind the Gram score, and the Ky Fan sum is level with it on means "
        "and ahead of it on single reports."
    )
    best = min(one[name]["hamming of means"] for name in ("score", "Top-4 volume"))
    rest = max(v["hamming of means"] for k, v in one.items() if k not in ("score", "Top-4 volume"))
    gram, fan = many["score"], many["Ky Fan 4-sum"]
    close = gram["hamming of means"]["mean"] - many["KL divergence"]["hamming of means"]["mean"]
    return numbers, verdict(
        words, best > rest, close < 0.05, gram["hamming"]["mean"] < fan["hamming"]["mean"]
    )


def plot(results: dict[str, Any], path: Any) -> None:
    """Hamming and l2 errors against each score."""
    names = list(results["agreement"])
    figure, axes = panels(2, len(names), width=3.4)
    for column, name in enumerate(names):
        for row, error in enumerate(("hamming", "l2")):
            axis = axes[row, column]
            for i, policy in enumerate(results["policies"]):
                score, loss = (
                    {part: values[i] for part, values in results["values"][quantity].items()}
                    for quantity in (name, error)
                )
                score = over(score, score["mean"][0])
                curve(axis, score, loss, index=i, label=policy)
            label = "Gram score" if name == "score" else name
            loss = ("Hamming distance", r"$\ell_2$ distance")[row]
            finish(axis, "over that of the truth", loss, label, legend=row == column == 0)
    save(figure, axes.flat, path)
