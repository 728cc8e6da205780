"""Annotators ranked beside crowd-kit's Dawid-Skene: times, and how well each does.
``python -m bench.annotators``; with ``--large`` 10,000,000 answers of 10,000 annotators, once; with
``--files`` 100,000,000 of 1,000 in 20 Parquet files, by the command line.

The methods differ: ours fits three models and looks at every pair of annotators. At the large size
the fit alone is timed too, iteration against iteration, with the peak memory of the process. The
peer is left out where it is not installed. Mislabels, searched for beside cross-validated
neighbours, follow at the small size.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from bench.timing import Row, report, time_in_turns
from jgram.annotators import Answers, answers_from_columns, rank_annotators
from jgram.annotators.posterior import ITERATIONS, fit, majority
from jgram.issues import label_issues
from jgram.kernels import RBF, RandomFeatures


def columns(
    items: int, annotators: int, d: int, each: int, seed: int = 0
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """``each`` answers an item, by annotators of accuracy 0.4 to 0.95, and these accuracies."""
    accuracy = np.random.default_rng(0).uniform(0.4, 0.95, annotators)
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, d, items)
    item = np.repeat(np.arange(items), each)
    first = np.repeat(rng.integers(0, annotators, items), each)  # distinct within an item
    step = np.repeat(rng.integers(1, annotators // each, items), each)
    annotator = (first + step * np.tile(np.arange(each), items)) % annotators
    right = rng.random(len(item)) < accuracy[annotator]
    wrong = (truth[item] + rng.integers(1, d, len(item))) % d
    label = np.where(right, truth[item], wrong)
    return (item, annotator, label), accuracy


def crowd(
    items: int = 20_000, annotators: int = 200, d: int = 10, each: int = 5
) -> tuple[Answers, np.ndarray]:
    """The answers of :func:`columns`."""
    found, accuracy = columns(items, annotators, d, each)
    return answers_from_columns(*found), accuracy


def dawid_skene(answers: Answers, iterations: int) -> np.ndarray:
    """The mean diagonal of crowd-kit's confusion matrices, by annotator."""
    import pandas
    from crowdkit.aggregation import DawidSkene

    table = pandas.DataFrame(
        {"task": answers.item, "worker": answers.annotator, "label": answers.label}
    )
    long = DawidSkene(n_iter=iterations).fit(table).errors_.stack()
    right = long[long.index.get_level_values(1) == long.index.get_level_values(2)]
    return right.groupby(level="worker").mean().to_numpy()


def ranked(answers: Answers) -> np.ndarray:
    """Our log scores, by annotator."""
    found = {one.name: one.log_score.value for one in rank_annotators(answers).annotators}
    return np.array([found[name] for name in answers.annotators])


def rankings(answers: Answers, accuracy: np.ndarray) -> tuple[list[Row], dict[str, Any]]:
    """Both methods in turns, and the rank correlation of each with the true accuracies."""
    found: dict[str, np.ndarray] = {}

    def keep(name: str, method: Callable[[], np.ndarray]) -> Callable[[], None]:
        return lambda: found.update({name: method()})

    size = f"{len(answers.item):,} answers, {len(accuracy)} annotators, 10 classes"
    runs: dict[str, Callable[[], Any]] = {
        f"jgram, {size}: readings, intervals, collusion": keep("jgram", lambda: ranked(answers))
    }
    try:
        import crowdkit  # noqa: F401

        name = f"crowd-kit, Dawid-Skene of 20 iterations, {size}"
        runs[name] = keep("crowd-kit", lambda: dawid_skene(answers, 20))
    except ImportError:
        pass
    return time_in_turns(runs, repeats=5), {
        f"Spearman with the true accuracy, {name}": round(spearmanr(values, accuracy).statistic, 3)
        for name, values in found.items()
    }


def fitted(answers: Answers) -> jax.Array:
    """The posteriors of one fit."""
    m, d, items = len(answers.annotators), len(answers.classes), len(answers.items)
    start, ones = majority(answers.item, answers.label, items, d), jnp.ones(items)
    rows = (answers.item, answers.annotator, answers.label)
    return fit(start, rows, ones, m=m, classes=d)[1]


def large() -> None:
    """10,000,000 answers of 10,000 annotators: seconds and peak memory, ours before the peer's."""

    def gigabytes() -> float:
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)

    def seconds(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        answer = jax.block_until_ready(work())
        found[f"seconds, {name}"] = round(time.perf_counter() - start, 1)
        found[f"peak gigabytes after {name}"] = gigabytes()
        print(found, flush=True)
        return answer

    found: dict[str, Any] = {}
    answers, accuracy = crowd(1_000_000, 10_000, 10, 10)
    found["peak gigabytes before"] = gigabytes()
    name = f"jgram, fit of {ITERATIONS} iterations"
    seconds(name, lambda: fitted(answers))
    scores = seconds("jgram, rank_annotators", lambda: ranked(answers))
    found["Spearman with the true accuracy, jgram"] = float(spearmanr(scores, accuracy).statistic)
    try:
        name = f"crowd-kit, Dawid-Skene of {ITERATIONS} iterations"
        skills = seconds(name, lambda: dawid_skene(answers, ITERATIONS))
        found["Spearman, crowd-kit"] = float(spearmanr(skills, accuracy).statistic)
    except ImportError:
        pass
    report("annotators_large", [], found)


def files() -> None:
    """``jgram annotators FOLDER`` of 100,000,000 answers: seconds, peak memory, how right."""
    import pandas

    with tempfile.TemporaryDirectory() as folder:
        answers, out = Path(folder) / "answers", f"{folder}/annotators.csv"
        answers.mkdir()
        for k in range(20):
            (item, annotator, label), accuracy = columns(1_000_000, 1_000, 3, 5, seed=k)
            names = (item + k * 1_000_000).astype(str)
            table = pandas.DataFrame({"item": names, "annotator": annotator, "label": label})
            table.to_parquet(answers / f"part-{k:02d}.parquet", index=False)
        start = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "jgram",
            "annotators",
            str(answers),
            "--out",
            out,
            "--quiet",
        ]
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - start
        ranking = pandas.read_csv(out)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    order = spearmanr(ranking["log_score"], accuracy[ranking["annotator"]]).statistic
    report(
        "annotators_files",
        [],
        {
            "seconds, 100,000,000 answers in 20 Parquet files": round(seconds, 1),
            "peak gigabytes": round(peak, 2),
            "Spearman with the true accuracy": round(order, 4),
        },
    )


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
    if "--large" in sys.argv:
        large()
    elif "--files" in sys.argv:
        files()
    else:
        first, found = rankings(*crowd())
        second, searched = mislabels()
        report("annotators", first + second, found | searched)
