"""CIFAR-10N: six label sets of known quality, ranked and searched for mislabels without the truth.

50,000 images, labelled by people: aggregated (9% wrong), one person each (17-18%, three times) and
the worst of three (40%), beside the clean labels. Observations are 50 principal components of the
pixels and, where the repository carries them, the 8-dimensional embeddings of our encoder. The
ranking is that of ``rank_reports`` with the default kernel and with an RBF at a quarter of the
median distance; for reference, the published score at several multiples of that distance. What a
set keeps of the clean labels stands beside ``(accuracy - 1/10) / (1 - 1/10)``. Mislabels are ranked
beside the out-of-sample self-confidence that cleanlab scores by, from cross-validated neighbours
and logistic regression on the same features. Last, 59 annotators of LabelMe by their peers:
few answers for many classes.

The files are read from ``JGRAM_DATA``, by default ``../shared/data`` beside the repository.
"""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.stats import kendalltau, norm, sem, spearmanr
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.annotators import DATA, crowd, truths
from experiments.encoder import cifar10
from experiments.figures import finish, panels, save
from experiments.statistics import holm, tie_groups
from experiments.verdicts import verdict
from jgram.annotators import rank_annotators
from jgram.data import cifar10_embeddings
from jgram.influences import influence
from jgram.issues import label_issues
from jgram.kernels import RBF, median_bandwidth
from jgram.noise import noise_floor
from jgram.report import rank_reports
from jgram.uncertainty import Uncertainty, uncertainties

LEAST = 20
SETS = {
    "clean_label": "clean",
    "aggre_label": "aggregate",
    "random_label1": "random 1",
    "random_label2": "random 2",
    "random_label3": "random 3",
    "worse_label": "worst",
}
BANDWIDTHS = (0.25, 0.5, 1.0)
COMPONENTS = 50
EMBEDDINGS = Path(__file__).with_name("data") / "cifar10_train.npz"


def label_sets() -> dict[str, np.ndarray]:
    """The six label sets by their name here, in standard order of the images."""
    path = DATA / "cifar10n" / "cifar10n_labels.npz"
    if not path.exists():
        raise FileNotFoundError(f"no {path}: set JGRAM_DATA to the folder of the data sets")
    with np.load(path) as file:
        return {words: file[name].astype(np.int32) for name, words in SETS.items()}


def principal_components(images: np.ndarray, count: int = COMPONENTS) -> np.ndarray:
    """The leading components of the pixels, the basis from the first 10,000 images."""
    pixels = images.reshape(len(images), -1).astype(np.float32) / 255.0
    pixels -= pixels.mean(axis=0)
    _, vectors = np.linalg.eigh(np.cov(pixels[:10000].T))
    return pixels @ vectors[:, ::-1][:, :count].astype(np.float32)


def features(smoke: bool) -> dict[str, np.ndarray]:
    """Observations by name, in standard order; the first 2,000 images for smoke."""
    folder = DATA / "cifar10"
    if smoke:
        with np.load(folder / "cifar10_lossless_train_first4000.npz") as file:
            return {"pixels": principal_components(file["train_images"][:2000], 20)}
    compact = folder / "cifar10_jpeg.npz"
    data = cifar10(compact if compact.exists() else folder)
    if not np.array_equal(data.train_labels, label_sets()["clean"]):
        raise ValueError("expected images and labels in one order, clean labels differ")
    found = {"pixels": principal_components(data.train)}
    if EMBEDDINGS.exists():
        with np.load(EMBEDDINGS) as file:
            epochs = cifar10_embeddings()[2]["epochs"]
            name = f"embeddings after {epochs} epochs"
            found[name] = file["embeddings"].astype(np.float32)
    return found


def log_determinant(reports: np.ndarray, truth: np.ndarray) -> float:
    """``log |det Q|`` of the misreport matrix of a label set."""
    d = int(truth.max()) + 1
    return float(np.linalg.slogdet(np.bincount(truth * d + reports).reshape(d, d) / len(truth))[1])


class PluginComparison(NamedTuple):
    """Two published scores: the log ratio, its 95% interval, the p-value of equal reliability."""

    log_ratio: float
    interval: tuple[float, float]
    p_value: float


def compare_plugin(first: Uncertainty, second: Uncertainty) -> PluginComparison:
    """By paired records; the p-value on the scale of the normalised score, ``d score^(1/2d)``: the
    logarithm of a score near 0 has no bounded error. Of two scores of 0 nothing is known."""
    ratio, d = first.log_score - second.log_score, first.d
    error = sem(first.contributions - second.contributions)
    if not np.isfinite(ratio):
        ratio, error = (0.0, np.inf) if np.isnan(ratio) else (ratio, 0.0)
    one, two = (d * np.exp(found.log_score / (2 * d)) for found in (first, second))
    spread = sem((one * first.contributions - two * second.contributions) / 2 / d)
    z = (one - two) / spread if spread > 0 else 40.0 * (one != two)
    interval = tuple(float(ratio + sign * norm.ppf(0.975) * error) for sign in (-1, 1))
    return PluginComparison(float(ratio), interval, float(2 * norm.sf(abs(z))))


def ranked(sets: dict[str, np.ndarray], y: np.ndarray, bandwidth: float) -> dict[str, Any]:
    """The label sets under one frozen kernel: scores, all pairs, ties, agreement with the truth."""
    start = time.perf_counter()
    found = uncertainties(sets, y, RBF(bandwidth))
    order = sorted(found, key=lambda name: -found[name].log_score)
    pairs = {
        (a, b): compare_plugin(found[a], found[b])
        for i, a in enumerate(order)
        for b in order[i + 1 :]
    }
    seconds = time.perf_counter() - start
    adjusted = holm({pair: comparison.p_value for pair, comparison in pairs.items()})
    wrong = {name: float(np.mean(labels != sets["clean"])) for name, labels in sets.items()}
    volume = {name: log_determinant(labels, sets["clean"]) for name, labels in sets.items()}
    tau = kendalltau([found[name].log_score for name in sets], [-wrong[name] for name in sets])
    against_clean = {
        name: compare_plugin(found[name], found["clean"]) for name in sets if name != "clean"
    }
    return {
        "bandwidth": bandwidth,
        "seconds": seconds,
        "order": order,
        "log_scores": {name: found[name].log_score for name in sets},
        "standard_errors": {name: found[name].standard_error for name in sets},
        "kendall_tau": None if np.isnan(tau.statistic) else tau.statistic,  # all scores 0
        "tie_groups": tie_groups(order, {frozenset(pair): p for pair, p in adjusted.items()}),
        "neighbours": [
            {
                "better": a,
                "worse": b,
                "log_ratio": pairs[a, b].log_ratio,
                "interval": pairs[a, b].interval,
                "adjusted_p_value": adjusted[a, b],
                "agrees_with_truth": wrong[a] < wrong[b],
            }
            for a, b in pairwise(order)
        ],
        "against_clean": {
            name: {
                "log_ratio": comparison.log_ratio,
                "interval": comparison.interval,
                "true_log_ratio": 2.0 * (volume[name] - volume["clean"]),
            }
            for name, comparison in against_clean.items()
        },
    }


def paid(sets: dict[str, np.ndarray], y: np.ndarray, kernel: RBF | None) -> dict[str, Any]:
    """The label sets by paired payoffs: order, ranks, and what each keeps of the best."""
    start = time.perf_counter()
    ranking = rank_reports(sets, y, kernel)
    accuracy = {name: np.mean(labels == sets["clean"]) for name, labels in sets.items()}
    order = [report.name for report in ranking.reports]
    places = [-order.index(name) for name in sets]
    return {
        "seconds": time.perf_counter() - start,
        "order": order,
        "kendall_tau": kendalltau(places, list(accuracy.values())).statistic,
        "conclusion": ranking.conclusion,
        "not_told_apart": [(p.better, p.worse) for p in ranking.pairs if not p.separated],
        "seen": ranking.seen,
        "findings": [finding.message for finding in ranking.findings],
        "reports": {
            report.name: {
                "keeps": report.keeps,
                "interval": report.keeps_interval,
                "true": (accuracy[report.name] - 0.1) / 0.9,
                "ranks": [report.first_rank, report.last_rank],
            }
            for report in ranking.reports
        },
    }


def found_issues(bad: np.ndarray, suspicion: np.ndarray) -> dict[str, float]:
    """Area under the ROC curve, and the share of real errors among as many as there are."""
    first = np.argsort(-suspicion, kind="stable")[: bad.sum()]
    return {"auroc": roc_auc_score(bad, suspicion), "precision": float(bad[first].mean())}


def issues(
    x_hat: np.ndarray, truth: np.ndarray, y: np.ndarray, kernels: dict[str, RBF | None]
) -> dict[str, Any]:
    """Mislabels of one set by our order and by self-confidence of two cross-validated models."""
    bad, found = x_hat != truth, {}
    for name, kernel in kernels.items():
        start = time.perf_counter()
        ours = label_issues(x_hat, y, kernel)
        found[name] = found_issues(bad, -np.argsort(ours.order)) | {
            "seconds": time.perf_counter() - start,
            "number": [ours.number, ours.number_by_all, int(bad.sum())],
            "suggested_right": float(np.mean(ours.suggested[bad] == truth[bad])),
        }
    models = {
        "50 neighbours": KNeighborsClassifier(50),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
    }
    for name, model in models.items():
        start = time.perf_counter()
        probability = cross_val_predict(model, y, x_hat, cv=5, method="predict_proba")
        confidence = self_confidence(x_hat, probability)
        probability[np.arange(len(bad)), x_hat] = -1.0
        found[name] = found_issues(bad, -confidence) | {
            "seconds": time.perf_counter() - start,
            "suggested_right": float(np.mean(probability.argmax(axis=1)[bad] == truth[bad])),
        }
    return found


def self_confidence(x_hat: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """cleanlab's label quality, by cleanlab where it is installed: the same number."""
    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return probability[np.arange(len(x_hat)), x_hat]
    return get_label_quality_scores(x_hat, probability)


def imbalance(seed: int, repetitions: int) -> dict[str, Any]:
    """What ranks planted errors best where classes are unequal: digits, 178 down to 12 a class."""
    images, digit = load_digits(return_X_y=True)
    counts = [max(12, round(180 * 0.65**k)) for k in range(10)]
    kept = np.concatenate([np.flatnonzero(digit == k)[:c] for k, c in enumerate(counts)])
    y, truth = images[kept].astype(np.float32), digit[kept].astype(np.int32)
    rng = np.random.default_rng(seed)
    auroc: dict[str, list[float]] = {}
    for _ in range(repetitions):
        flipped = rng.random(len(truth)) < 0.2
        x_hat = np.where(flipped, (truth + rng.integers(1, 10, len(truth))) % 10, truth)
        x_hat, rows = x_hat.astype(np.int32), np.arange(len(truth))
        h = np.asarray(influence(x_hat, y, RBF(median_bandwidth(y)), num_classes=10), float)
        share = np.bincount(x_hat, minlength=10) / len(x_hat)
        margins = {"own influence less the best other": h, "the same times class shares": share * h}
        for name, values in margins.items():
            own, other = values[rows, x_hat], values.copy()
            other[rows, x_hat] = -np.inf
            auroc.setdefault(name, []).append(roc_auc_score(flipped, other.max(axis=1) - own))
        ours = label_issues(x_hat, y, RBF(median_bandwidth(y)), num_classes=10)
        auroc.setdefault("label_issues", []).append(roc_auc_score(flipped, -np.argsort(ours.order)))
        model = KNeighborsClassifier(10)
        probability = cross_val_predict(model, y, x_hat, cv=5, method="predict_proba")
        auroc.setdefault("10 neighbours", []).append(
            roc_auc_score(flipped, -self_confidence(x_hat, probability))
        )
    return {name: {"mean": np.mean(v), "low": min(v), "high": max(v)} for name, v in auroc.items()}


def labelme(seed: int, draws: int) -> dict[str, Any]:
    """59 annotators over 8 classes by their peers: like accuracy, and every class alike."""
    answers, truth = crowd("LabelMe")
    accuracy = truths(answers, truth)["accuracy"]
    rng, found = np.random.default_rng(seed), {}
    for by in ("log_score", "determinant"):
        ranking = rank_annotators(answers, by=by)
        judged = [a for a in ranking.annotators if a.answers >= LEAST and getattr(a, by)]
        readings = [getattr(a, by) for a in judged]
        score, true = np.array([r.value for r in readings]), accuracy[[a.name for a in judged]]
        drawn = rng.integers(0, len(true), (draws, len(true)))
        again = [spearmanr(score[row], true[row]).statistic for row in drawn]
        low, high = np.quantile(np.nan_to_num(again), [0.025, 0.975])
        found[by.replace("_", " ")] = {
            "conclusion": ranking.conclusion,
            "p_value": ranking.p_value,
            "reliability": ranking.reliability,
            "spearman": {"value": spearmanr(score, true).statistic, "low": low, "high": high},
            "score": score,
            "interval": [(r.low, r.high) for r in readings],
            "true_accuracy": true,
        }
    return found


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Rankings by features and bandwidth, mislabels, imbalance, and LabelMe's annotators."""
    del as_published  # not in the paper
    observed = features(smoke)
    n = len(next(iter(observed.values())))
    sets = {name: labels[:n] for name, labels in label_sets().items()}
    results: dict[str, Any] = {
        "records": n,
        "wrong": {name: np.mean(labels != sets["clean"]) for name, labels in sets.items()},
        "paid": {},
        "rankings": {},
        "floors": {},
        "issues": {},
    }
    for name, y in observed.items():
        median = float(median_bandwidth(y))
        factors = BANDWIDTHS[1:] if smoke else BANDWIDTHS
        kernels = {"default kernel": None, f"RBF, {BANDWIDTHS[0]:g} x median": RBF(median / 4)}
        results["paid"][name] = {words: paid(sets, y, kernel) for words, kernel in kernels.items()}
        results["rankings"][name] = {f"{f:g}": ranked(sets, y, f * median) for f in factors}
        floor = noise_floor(
            jax.random.key(seed), sets["worst"], y, RBF(median), num_classes=10, draws=20
        )
        results["floors"][name] = {"mean": floor.mean, "sd": floor.standard_deviation}
        ours = {f"ours, {words}": kernel for words, kernel in kernels.items()}
        results["issues"][name] = {
            chosen: issues(sets[chosen], sets["clean"], y, ours)
            for chosen in (("worst",) if smoke else ("aggregate", "worst"))
        }
    return results | {
        "imbalance": imbalance(seed, 2 if smoke else 20),
        "labelme": labelme(seed, 100 if smoke else 2000),
    }


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Order and ties by bandwidth, mislabels beside cleanlab's method, LabelMe."""
    rows = []

    def add(quantity: str, ours: Any, interval: str) -> None:
        rows.append({"quantity": quantity, "paper": "", "ours": ours, "interval": interval})

    for name, rankings in results["paid"].items():
        for words, one in rankings.items():
            told = [f"{better} = {worse}" for better, worse in one["not_told_apart"]]
            add(
                f"CIFAR-10N, {name}, {words}: Kendall tau of the ranking with the true error rates",
                one["kendall_tau"],
                f"{' > '.join(one['order'])}; not told apart: {', '.join(told) or 'none'}",
            )
            kept = {label: found for label, found in one["reports"].items() if found["keeps"]}
            true = " / ".join(f"{found['true']:.2f}" for found in kept.values())
            add(
                f"the same: kept of the best, {' / '.join(kept)} (true: {true})",
                " / ".join(f"{found['keeps']:.2f}" for found in kept.values()),
                " / ".join("{:.2f}-{:.2f}".format(*found["interval"]) for found in kept.values())
                + "; ranks "
                + " / ".join("{}-{}".format(*found["ranks"]) for found in kept.values()),
            )
    for name, rankings in results["rankings"].items():
        for factor, one in rankings.items():
            ties = [" = ".join(group) for group in one["tie_groups"] if len(group) > 1]
            add(
                f"CIFAR-10N, {name}, {factor} x median, published score: Kendall tau",
                "none, all scores are 0" if one["kendall_tau"] is None else one["kendall_tau"],
                f"{' > '.join(one['order'])}; not told apart: {', '.join(ties) or 'none'}",
            )
        one, floor = rankings["1"], results["floors"][name]
        add(
            f"CIFAR-10N, {name}: log score of the worst set (40% wrong) above its noise floor",
            one["log_scores"]["worst"] - floor["mean"],
            f"sd of the floor {floor['sd']:.2f}, standard error "
            f"{one['standard_errors']['worst']:.2f}",
        )
    for name, sets in results["issues"].items():
        for chosen, found in sets.items():
            numbers = [
                f"{words}: {number[0]} wrong by the surest, {number[1]} by all, truly {number[2]}"
                for words, number in ((w, m["number"]) for w, m in found.items() if "number" in m)
            ]
            add(
                f"CIFAR-10N {chosen}, {name}: AUROC of mislabels by {' / '.join(found)}",
                " / ".join(f"{method['auroc']:.3f}" for method in found.values()),
                "precision "
                + " / ".join(f"{method['precision']:.3f}" for method in found.values())
                + ", seconds "
                + " / ".join(f"{method['seconds']:.0f}" for method in found.values())
                + f"; {'; '.join(numbers)}",
            )
    unequal = results["imbalance"]
    add(
        f"digits, 178 to 12 a class, 20% planted: AUROC by {' / '.join(unequal)}",
        " / ".join(f"{value['mean']:.3f}" for value in unequal.values()),
        "range " + " / ".join(f"{v['low']:.3f}-{v['high']:.3f}" for v in unequal.values()),
    )
    for name, found in results["labelme"].items():
        spearman = found["spearman"]
        add(
            f"LabelMe, 59 annotators by {name}: Spearman of score and true accuracy",
            spearman["value"],
            f"{spearman['low']:.2f} to {spearman['high']:.2f}; {found['conclusion']}",
        )
    return rows


BESIDE = "truth"


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, the truth and ours, and a verdict."""
    found = results["paid"]["embeddings after 60 epochs"]["default kernel"]
    numbers = [
        (
            f"{name} ({results['wrong'][name]:.0%} of the labels wrong) keeps",
            f"{found['reports'][name]['true']:.2f}",
            f"{found['reports'][name]['keeps']:.2f} [{{:.2f}}, {{:.2f}}]".format(
                *found["reports"][name]["interval"]
            ),
        )
        for name in ("aggregate", "random 1", "worst")
    ]
    apart = found["not_told_apart"]
    wrong = " and ".join(f"{100 * results['wrong'][name]:.1f}" for name in apart[0])
    words = (
        f"**Holds**: all six label sets stand in their true order, and only {apart[0][0]} and "
        f"{apart[0][1]} ({wrong}% wrong) are not told apart. What they keep is a little too high, "
        "because their errors lean to what the observation shows."
    )
    higher = [one["keeps"] >= one["true"] for one in found["reports"].values()]
    return numbers, verdict(words, found["kendall_tau"] > 0.999, *higher, len(apart) == 1)


def plot(results: dict[str, Any], path: Any) -> None:
    """What is kept beside the truth, mislabels found, and LabelMe's intervals."""
    figure, axes = panels(1, 3, width=4.8, height=3.7)
    axis, paid = axes[0, 0], results["paid"]
    axis.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    chosen = [
        (f"{where}, {kernel}", found["reports"].values())
        for where, by_kernel in paid.items()
        for kernel, found in by_kernel.items()
    ]
    for i, (words, reports) in enumerate(chosen):
        kept = np.array([one["keeps"] for one in reports])
        bounds = np.array([one["interval"] for one in reports]).T
        axis.errorbar(
            np.array([one["true"] for one in reports]) + 0.004 * (i - 1.5), kept,
            yerr=np.abs(bounds - kept), fmt="osD^"[i], markersize=4, capsize=2, color=f"C{i}",
            linewidth=0.8, label=words,
        )  # fmt: skip
    axis.set(xlim=(0.5, 1.03), ylim=(0.5, 1.03))
    finish(axis, "truth, from the errors", "kept of the clean labels",
           "CIFAR-10N, six label sets", legend=True)  # fmt: skip
    axis, ticks = axes[0, 1], []
    groups = [
        (f"{name}\n{chosen}", found)
        for name, sets in results["issues"].items()
        for chosen, found in sets.items()
    ]
    methods = list(groups[0][1])
    for i, (words, found) in enumerate(groups):
        ticks.append(words.replace(" after ", "\nafter "))
        for j, method in enumerate(methods):
            axis.bar(
                i + 0.17 * (j - 2), found[method]["auroc"], 0.15, color=f"C{j}",
                label=method if i == 0 else None,
            )  # fmt: skip
    axis.set_xticks(range(len(ticks)), ticks, fontsize=7)
    axis.set_ylim(0.5, 1.0)
    finish(axis, "", "AUROC", "mislabels found (.5 is chance)", legend=True)
    axis = axes[0, 2]
    for i, (name, found) in enumerate(results["labelme"].items()):
        score, bounds = np.array(found["score"]), np.array(found["interval"])
        axis.errorbar(
            np.array(found["true_accuracy"]) + 0.004 * i, score,
            yerr=[score - bounds[:, 0], bounds[:, 1] - score], fmt="os"[i], markersize=3,
            linewidth=0.6, color=f"C{i}", label=f"by {name} (p = {found['p_value']:.2f})",
        )  # fmt: skip
    axis.axhline(0.0, color="0.5", linewidth=0.8)
    finish(
        axis,
        "true accuracy",
        "score, 95% interval",
        "LabelMe, annotators with 20 answers or more",
        legend=True,
    )
    save(figure, axes.flat, path)
