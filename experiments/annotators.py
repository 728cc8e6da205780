"""Annotators judged by their peers, on four crowds whose truth is known, and planted ones.

Nothing but the answers is used; the truth only judges the judges. Ranked by the determinant score,
by the prevalence-weighted estimate of accuracy and by plain agreement with the others, and by the
skills of Dawid and Skene's model (crowd-kit's, where it is installed), each compared with two true
quantities: the accuracy, and the log-determinant of the true confusion matrix, which is what the
score estimates. Then one annotator at a time is added who always names the commonest class, answers
at random, swaps the names of classes, or copies somebody.

The crowds are read from ``JGRAM_DATA``, by default ``../shared/data`` beside the repository.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from experiments.figures import finish, panels, save
from jgram.annotators import AnnotatorRanking, rank_annotators

DATA = Path(os.environ.get("JGRAM_DATA", Path(__file__).parents[2] / "shared" / "data"))
CROWDS = {
    "CF_amt": ("crowd_peers/CF_amt.npz", "answers", "truth"),
    "SP_amt": ("crowd_peers/SP_amt.npz", "answers", "truth"),
    "ZenCrowd_all": ("crowd_peers/ZenCrowd_all.npz", "answers", "truth"),
    "LabelMe": ("crowd_labelme/labelme_crowd.npz", "answers_train", "truth_train"),
}
METHODS = {
    "score": "score",
    "accuracy": "accuracy reading",
    "agreement": "agreement",
    "dawid_skene": "Dawid-Skene",
}
TARGETS = {"accuracy": "true accuracy", "information": "true log |det|"}
LEAST = 20
PLANTED = {
    "commonest": "always the commonest class",
    "random": "at random",
    "renamed": "right as often as the median,\nnames swapped",
    "copy": "copies a poor annotator",
}


def crowd(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Answers ``[items, annotators]`` and truth ``[items]``."""
    file, answers, truth = CROWDS[name]
    if not (DATA / file).exists():
        raise FileNotFoundError(f"no {DATA / file}: set JGRAM_DATA to the folder of the data sets")
    with np.load(DATA / file) as arrays:
        return arrays[answers].astype(np.int32), arrays[truth].astype(np.int32)


def confusions(answers: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Counts ``[annotators, truth, answer]``."""
    d = int(max(answers.max(), truth.max())) + 1
    counts = np.zeros((answers.shape[1], d, d))
    item, annotator = np.nonzero(answers >= 0)
    np.add.at(counts, (annotator, truth[item], answers[item, annotator]), 1.0)
    return counts


def true_quantities(answers: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Share of right answers; log-determinant of the confusion matrix with 5 pooled answers."""
    counts = confusions(answers, truth)
    smooth = counts + 5.0 * counts.sum(axis=0) / counts.sum()
    channels = smooth / smooth.sum(axis=2, keepdims=True)
    answered = np.maximum(counts.sum(axis=(1, 2)), 1)
    return {
        "accuracy": np.einsum("akk->a", counts) / answered,
        "information": np.linalg.slogdet(channels)[1],
    }


def shared_errors(answers: np.ndarray, truth: np.ndarray) -> float:
    """Correlation of two annotators' errors on an item, truth and own error rates given.

    0 is the conditional independence that every method here assumes.
    """
    item, annotator = np.nonzero(answers >= 0)
    wrong = (answers[item, annotator] != truth[item]).astype(float)
    d = int(truth.max()) + 1
    cell = annotator * d + truth[item]
    rate = np.bincount(cell, wrong, answers.shape[1] * d)
    count = np.bincount(cell, minlength=answers.shape[1] * d)
    kept = count[cell] >= 5
    left = (wrong - rate[cell] / np.maximum(count[cell], 1))[kept]
    sums = np.bincount(item[kept], left, len(truth))
    squares = np.bincount(item[kept], left**2, len(truth))
    counts = np.bincount(item[kept], minlength=len(truth))
    pairs = (counts * (counts - 1.0)).sum()
    return float((sums**2 - squares).sum() / pairs / np.mean(left**2))


def dawid_skene(answers: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """crowd-kit's skills and log-determinants of its confusion matrices; ``None`` without it."""
    try:
        import pandas
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        return None
    item, annotator = np.nonzero(answers >= 0)
    label = answers[item, annotator]
    table = pandas.DataFrame({"task": item, "worker": annotator, "label": label})
    model = DawidSkene(n_iter=100).fit(table)
    d = int(answers.max()) + 1
    prior = model.priors_.reindex(range(d)).fillna(0.0).to_numpy()
    channels = np.full((answers.shape[1], d, d), np.nan)
    for worker, rows in model.errors_.groupby(level="worker"):
        one = rows.droplevel("worker").reindex(index=range(d), columns=range(d)).fillna(0.0)
        channels[worker] = one.to_numpy().T
    smooth = 0.95 * channels + 0.05 / d
    return np.einsum("k,akk->a", prior, channels), np.linalg.slogdet(smooth)[1]


def columns(ranking: AnnotatorRanking, size: int) -> dict[str, np.ndarray]:
    """The readings of a ranking, by annotator number; NaN where unjudged."""
    found = {name: np.full(size, np.nan) for name in ("score", "accuracy", "agreement")}
    for annotator in ranking.annotators:
        for name, values in found.items():
            values[annotator.name] = getattr(annotator, name)
    return found


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the seconds of the faster of two calls."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def spearman(first: np.ndarray, second: np.ndarray, rng: np.random.Generator, draws: int) -> Any:
    """Rank correlation over annotators, with its bootstrap 95% interval."""
    values = np.array([spearmanr(first, second).statistic])
    for _ in range(draws):
        drawn = rng.integers(0, len(first), len(first))
        values = np.append(values, spearmanr(first[drawn], second[drawn]).statistic)
    low, high = np.quantile(np.nan_to_num(values[1:]), [0.025, 0.975])
    return {"value": float(values[0]), "low": float(low), "high": float(high)}


def study(name: str, rng: np.random.Generator, draws: int) -> dict[str, Any]:
    """One crowd: what is found without the truth, and how it compares with it."""
    answers, truth = crowd(name)
    true = true_quantities(answers, truth)
    ranking, seconds = timed(lambda: rank_annotators(answers))
    by_accuracy = rank_annotators(answers, by="accuracy")
    readings, times = columns(ranking, answers.shape[1]), {"jgram": seconds}
    model, model_seconds = timed(lambda: dawid_skene(answers))
    if model is not None:
        readings["dawid_skene"], readings["dawid_skene_information"] = model
        times["dawid_skene"] = model_seconds
    counts = (answers >= 0).sum(axis=0)
    correlations = {}
    for least in (1, 10, LEAST, 40):
        kept = (counts >= least) & ~np.isnan(np.stack(list(readings.values()))).any(axis=0)
        again = draws if least == LEAST else 0
        correlations[str(least)] = {"annotators": int(kept.sum())} | {
            target: {
                method: spearman(values[kept], true[target][kept], rng, max(again, 1))
                for method, values in [*readings.items(), ("truth", true["information"])]
            }
            for target in TARGETS
        }
    suspects = sorted({who for pair in ranking.collusions for who in (pair.first, pair.second)})
    return {
        "items": len(answers),
        "annotators": answers.shape[1],
        "classes": len(ranking.classes),
        "answers": int(counts.sum()),
        "smallest_share": float(np.bincount(answers[answers >= 0]).min() / counts.sum()),
        "shared_errors": shared_errors(answers, truth),
        "mean_accuracy": {
            "truth": float(np.average(true["accuracy"], weights=counts)),
            "accuracy": float(np.average(readings["accuracy"], weights=counts)),
            "agreement": float(np.average(readings["agreement"], weights=counts)),
        },
        "correlations": correlations,
        "seconds": times,
        "by_score": summary(ranking),
        "by_accuracy": summary(by_accuracy),
        "collusions": [vars(pair) for pair in ranking.collusions],
        "suspects": [
            {
                "name": who,
                "answers": int(counts[who]),
                "true_accuracy": float(true["accuracy"][who]),
            }
            for who in suspects
        ],
        "relabellers": sum(a.relabelling is not None for a in ranking.annotators),
        "findings": [finding.to_dict() for finding in ranking.findings],
    }


def summary(ranking: AnnotatorRanking) -> dict[str, Any]:
    """Whether a ranking says anything."""
    return {
        "conclusion": ranking.conclusion,
        "separated": ranking.separated,
        "p_value": ranking.p_value,
        "reliability": ranking.reliability,
        "pseudo_answers": ranking.pseudo_answers,
    }


def plant(
    kind: str, answers: np.ndarray, truth: np.ndarray, rng: np.random.Generator, size: int = 150
) -> np.ndarray:
    """The answers of one more annotator to ``size`` items, as a column."""
    d = int(answers.max()) + 1
    column = np.full(len(truth), -1, np.int32)
    items = rng.choice(len(truth), min(size, len(truth)), replace=False)
    if kind == "commonest":
        column[items] = np.bincount(answers[answers >= 0]).argmax()
    elif kind == "random":
        column[items] = rng.integers(0, d, len(items))
    elif kind == "renamed":
        counts = (answers >= 0).sum(axis=0)
        accuracy = float(np.median(true_quantities(answers, truth)["accuracy"][counts >= LEAST]))
        right = rng.random(len(items)) < accuracy
        other = (truth[items] + rng.integers(1, d, len(items))) % d
        column[items] = (np.where(right, truth[items], other) + 1) % d
    else:
        accuracy = true_quantities(answers, truth)["accuracy"]
        counts = (answers >= 0).sum(axis=0)
        busy = np.flatnonzero(counts >= min(100, np.sort(counts)[-10]))
        victim = busy[accuracy[busy] <= np.median(accuracy[busy])]
        chosen = rng.choice(victim)
        items = rng.permutation(np.flatnonzero(answers[:, chosen] >= 0))[:size]
        column[items] = answers[items, chosen]
    return column


def planted(name: str, rng: np.random.Generator, repetitions: int) -> dict[str, Any]:
    """Where planted annotators end up: percentile among those with enough answers, 0 the worst."""
    answers, truth = crowd(name)
    kept = np.flatnonzero((answers >= 0).sum(axis=0) >= LEAST)
    found: dict[str, Any] = {}
    for kind in PLANTED:
        percentiles: dict[str, list[float]] = {}
        flagged = []
        for _ in range(repetitions):
            both = np.column_stack([answers, plant(kind, answers, truth, rng)])
            ranking = rank_annotators(both)
            readings = columns(ranking, both.shape[1])
            model = dawid_skene(both)
            if model is not None:
                readings["dawid_skene"] = model[0]
            for method, values in readings.items():
                below = np.mean(values[kept] < values[-1]) + np.mean(values[kept] == values[-1]) / 2
                percentiles.setdefault(method, []).append(float(below))
            new = next(a for a in ranking.annotators if a.name == answers.shape[1])
            pairs = {who for pair in ranking.collusions for who in (pair.first, pair.second)}
            flagged.append(
                {
                    "commonest": new.p_value >= 0.05,
                    "random": new.p_value >= 0.05,
                    "renamed": new.relabelling is not None,
                    "copy": answers.shape[1] in pairs,
                }[kind]
            )
        found[kind] = {
            "percentile": {
                method: float(np.mean(values)) for method, values in percentiles.items()
            },
            "flagged": float(np.mean(flagged)),
        }
    return found


def simulated(setting: dict[str, Any], seed: int, repetitions: int) -> dict[str, Any]:
    """Coverage of the 95% intervals where the model holds, and how often alike ones are told apart.

    60 annotators answer 15 to 200 of 400 items; channels have accuracies of 0.5 to 0.95.
    """
    prior = np.asarray(setting["prior"])
    d, m, items = len(prior), 60, 400
    hits: dict[str, list[Any]] = {"score": [], "accuracy": [], "rank": [], "separated": []}
    for number in range(repetitions):
        rng = np.random.default_rng([seed, number])
        truth = rng.choice(d, items, p=prior)
        right = np.full(m, 0.75) if setting["alike"] else rng.uniform(0.5, 0.95, m)
        errors = (
            np.full((m, d, d), 1.0 / d) if setting["alike"] else rng.dirichlet(np.ones(d), (m, d))
        )
        channels = right[:, None, None] * np.eye(d) + (1 - right[:, None, None]) * errors
        answers = np.full((items, m), -1)
        for a in range(m):
            own = rng.permutation(items)[: int(np.exp(rng.uniform(np.log(15), np.log(200))))]
            drawn = rng.random((len(own), 1)) > np.cumsum(channels[a, truth[own]], axis=1)
            answers[own, a] = drawn.sum(axis=1).clip(max=d - 1)
        share = (answers >= 0).sum(axis=0) / (answers >= 0).sum()
        pool = np.einsum("a,ajk->jk", share, channels)
        ranking = rank_annotators(answers, num_classes=d)
        true = {
            "score": np.linalg.slogdet(channels)[1] - np.linalg.slogdet(pool)[1],
            "accuracy": np.einsum("k,akk->a", prior, channels),
        }
        true["rank"] = 1 + np.argsort(np.argsort(-true["score"]))
        hits["separated"].append(ranking.separated)
        for quantity in true:
            bounds = np.array([getattr(a, f"{quantity}_interval") for a in ranking.annotators])
            values = true[quantity][[a.name for a in ranking.annotators]]
            hits[quantity].append(np.mean((bounds[:, 0] <= values) & (values <= bounds[:, 1])))
    return setting | {quantity: float(np.mean(values)) for quantity, values in hits.items()}


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Correlations on the four crowds, planted annotators on three, coverage where it is known."""
    del as_published  # not in the paper
    rng = np.random.default_rng(seed)
    names = list(CROWDS)[:2] if smoke else list(CROWDS)
    settings = [
        {"prior": [0.5, 0.5], "alike": False},
        {"prior": [1 / 3, 1 / 3, 1 / 3], "alike": False},
        {"prior": [0.7, 0.2, 0.1], "alike": False},
        {"prior": [1 / 3, 1 / 3, 1 / 3], "alike": True},
    ]
    return {
        "crowds": {name: study(name, rng, 50 if smoke else 2000) for name in names},
        "planted": {
            name: planted(name, rng, 1 if smoke else 20) for name in names if name != "LabelMe"
        },
        "simulated": [simulated(setting, seed, 3 if smoke else 200) for setting in settings],
    }


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Correlations by crowd and target, planted annotators, coverage."""
    rows = []
    for name, crowd_ in results["crowds"].items():
        found = crowd_["correlations"][str(LEAST)]
        for target, words in TARGETS.items():
            methods = [method for method in METHODS if method in found[target]]
            values = [found[target][method] for method in methods]
            rows.append(
                {
                    "quantity": f"{name}, Spearman with {words}: "
                    + " / ".join(METHODS[method] for method in methods),
                    "paper": "",
                    "ours": " / ".join(f"{v['value']:.2f}" for v in values),
                    "interval": " / ".join(f"{v['low']:.2f} to {v['high']:.2f}" for v in values),
                }
            )
        verdict = "told apart" if crowd_["by_score"]["separated"] else "the data cannot tell"
        rows.append(
            {
                "quantity": f"{name}: {verdict}; reliability of the score; p of no difference",
                "paper": "",
                "ours": f"{crowd_['by_score']['reliability']:.2f}",
                "interval": f"p = {crowd_['by_score']['p_value']:.2g}; seconds "
                + ", ".join(f"{who} {spent:.2f}" for who, spent in crowd_["seconds"].items()),
            }
        )
    for name, kinds in results["planted"].items():
        for kind, found in kinds.items():
            methods = [method for method in METHODS if method in found["percentile"]]
            words = " ".join(PLANTED[kind].split())
            rows.append(
                {
                    "quantity": f"{name}, planted: {words}; percentile by "
                    + " / ".join(METHODS[method] for method in methods),
                    "paper": "",
                    "ours": " / ".join(f"{found['percentile'][method]:.0%}" for method in methods),
                    "interval": f"flagged {found['flagged']:.0%}",
                }
            )
    for row in results["simulated"]:
        prior = ", ".join(f"{p:.2g}" for p in row["prior"])
        what = "alike" if row["alike"] else "unlike"
        rows.append(
            {
                "quantity": f"simulated, classes {prior}, annotators {what}: coverage of score / "
                "accuracy / rank",
                "paper": "",
                "ours": " / ".join(f"{row[key]:.3f}" for key in ("score", "accuracy", "rank"))
                if not row["alike"]
                else f"{row['score']:.3f} / {row['accuracy']:.3f} / no ranks",
                "interval": f"told apart in {row['separated']:.1%}",
            }
        )
    return rows


def plot(results: dict[str, Any], path: Any) -> None:
    """Correlations with the two true quantities, and where planted annotators end up."""
    figure, axes = panels(1, 3, width=4.6, height=3.6)
    crowds, correlation = results["crowds"], str(LEAST)
    for axis, (target, words) in zip(axes[0], TARGETS.items(), strict=False):
        for i, (method, label) in enumerate(METHODS.items()):
            found = [
                (j, crowd_["correlations"][correlation][target].get(method))
                for j, crowd_ in enumerate(crowds.values())
            ]
            found = [(j, value) for j, value in found if value]
            centre = np.array([value["value"] for _, value in found])
            low = centre - [value["low"] for _, value in found]
            high = [value["high"] for _, value in found] - centre
            where = np.array([j for j, _ in found]) + 0.15 * (i - 1.5)
            axis.errorbar(
                where, centre, yerr=np.maximum([low, high], 0.0), fmt="osD^"[i], capsize=2,
                markersize=5, linewidth=1, color=f"C{i}", label=label,
            )  # fmt: skip
        if target == "accuracy":
            for j, crowd_ in enumerate(crowds.values()):
                limit = crowd_["correlations"][correlation][target]["truth"]["value"]
                axis.plot(
                    [j - 0.35, j + 0.35], [limit, limit], color="0.4", linewidth=1, linestyle=":",
                    label="true log |det|" if j == 0 else None,
                )  # fmt: skip
        axis.set_xticks(
            range(len(crowds)), [f"{n}\n{c['classes']} classes" for n, c in crowds.items()]
        )
        axis.tick_params(axis="x", labelsize=7)
        axis.set_ylim(-0.35, 1.05)
        finish(axis, "", "Spearman correlation", f"with {words}", legend=target == "accuracy")
    axis, spots = axes[0, 2], results["planted"]
    for i, (method, label) in enumerate(METHODS.items()):
        values = [
            [found[kind]["percentile"].get(method, np.nan) for found in spots.values()]
            for kind in PLANTED
        ]
        for j, row in enumerate(values):
            axis.plot(
                row, np.full(len(row), -j - 0.17 * (i - 1.5)), "osD^"[i], color=f"C{i}",
                markersize=5, label=label if j == 0 else None,
            )  # fmt: skip
    axis.set_yticks([-j for j in range(len(PLANTED))], list(PLANTED.values()), fontsize=7)
    axis.set_xlim(-0.03, 1.03)
    finish(axis, "percentile among the others, one mark a crowd", "", "planted annotators")
    save(figure, axes.flat, path)
