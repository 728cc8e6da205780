"""Annotators ranked and mislabels searched for, beside the tools in use: different methods, so that
times are compared and answers only by how well they do. ``python -m bench.annotators``.

100,000 answers of 200 annotators beside crowd-kit's Dawid-Skene; label issues of 20,000 records of
50 numbers beside cross-validated 50-nearest-neighbour probabilities, which cleanlab's ranking needs
first. Both peers are left out where they are not installed.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy.stats import spearmanr

from bench.timing import Row, report, time_in_turns
from jgram.annotators import Answers, prepare, rank_annotators
from jgram.issues import label_issues
from jgram.kernels import RBF, RandomFeatures


def crowd(items: int = 20_000, annotators: int = 200, d: int = 10) -> tuple[Answers, np.ndarray]:
    """Five answers an item, by annotators of accuracy 0.4 to 0.95, and these accuracies."""
    rng = np.random.default_rng(0)
    truth, accuracy = rng.integers(0, d, items), rng.uniform(0.4, 0.95, annotators)
    item = np.repeat(np.arange(items), 5)
    annotator = np.argsort(rng.random((items, annotators)), axis=1)[:, :5].ravel()
    right = rng.random(len(item)) < accuracy[annotator]
    wrong = (truth[item] + rng.integers(1, d, len(item))) % d
    return prepare(item, annotator, np.where(right, truth[item], wrong)), accuracy


def rankings(answers: Answers, accuracy: np.ndarray) -> tuple[list[Row], dict[str, Any]]:
    """Both methods in turns, and the rank correlation of each with the true accuracies."""
    found: dict[str, np.ndarray] = {}
    item, annotator = np.nonzero(answers.matrix >= 0)
    label = answers.matrix[item, annotator]

    def ours() -> None:
        ranking = rank_annotators(answers)
        scores = np.empty(len(accuracy))
        scores[[a.name for a in ranking.annotators]] = [a.score for a in ranking.annotators]
        found["jgram"] = scores

    def dawid_skene() -> None:
        import pandas
        from crowdkit.aggregation import DawidSkene

        table = pandas.DataFrame({"task": item, "worker": annotator, "label": label})
        errors = DawidSkene(n_iter=20).fit(table).errors_
        long = errors.stack()
        right = long[long.index.get_level_values(1) == long.index.get_level_values(2)]
        found["crowd-kit"] = right.groupby(level="worker").mean().to_numpy()

    size = f"{len(item):,} answers, {len(accuracy)} annotators, {len(answers.classes)} classes"
    runs: dict[str, Callable[[], Any]] = {f"jgram, {size}: scores, intervals, collusion": ours}
    try:
        import crowdkit  # noqa: F401

        runs[f"crowd-kit, Dawid-Skene of 20 iterations, {size}"] = dawid_skene
    except ImportError:
        pass
    rows = time_in_turns(runs, repeats=5)
    return rows, {
        f"Spearman with the true accuracy, {name}": round(spearmanr(values, accuracy).statistic, 3)
        for name, values in found.items()
    }


def mislabels(
    n: int = 20_000, dimension: int = 50, d: int = 10
) -> tuple[list[Row], dict[str, Any]]:
    """Ours by the exact kernel and by random features, and neighbours, in turns."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    rng, d = np.random.default_rng(0), 10
    truth = rng.integers(0, d, n)
    centres = 0.5 * rng.normal(size=(d, dimension))
    y = (centres[truth] + rng.normal(size=(n, dimension))).astype(np.float32)
    bad = rng.random(n) < 0.15
    x_hat = np.where(bad, (truth + rng.integers(1, d, n)) % d, truth).astype(np.int32)
    draw = RandomFeatures.draw(jax.random.key(0), 1024, dimension=dimension, bandwidth=10.0)
    found: dict[str, float] = {}

    def ours(name: str, kernel: Any) -> None:
        order = label_issues(x_hat, y, kernel, num_classes=d).order
        found[name] = roc_auc_score(bad, -np.argsort(order))

    def neighbours() -> None:
        model = KNeighborsClassifier(50)
        probability = cross_val_predict(model, y, x_hat, cv=5, method="predict_proba")
        try:
            from cleanlab.rank import get_label_quality_scores

            quality = get_label_quality_scores(x_hat, probability)
        except ImportError:
            quality = probability[np.arange(n), x_hat]
        found["neighbours"] = roc_auc_score(bad, -quality)

    size = f"{n:,} records of {dimension} numbers, {d} classes"
    rows = time_in_turns(
        {
            f"50 neighbours, 5 folds, self-confidence, {size}": neighbours,
            "jgram, RBF over all pairs": lambda: ours("RBF", RBF(10.0)),
            "jgram, 1,024 random features": lambda: ours("random features", draw),
        },
        repeats=3,
    )
    return rows, {f"AUROC, {name}": round(value, 3) for name, value in found.items()}


if __name__ == "__main__":
    first, ranked = rankings(*crowd())
    second, searched = mislabels()
    report("annotators", first + second, ranked | searched)
