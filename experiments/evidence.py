"""Evidence together: texts, the other reports, a few right labels; who is right, and when told.

Six panels of language models that labelled texts; the observations are the texts' features, the
truth (gold) only judges. Of every two models whose accuracies differ (binomial test at 5%): is the
better one put first by the texts alone, by the other models alone, by both together; and where the
order is told, is it right? Then gold for 15, 30 and 60 texts drawn at random: how far off are
accuracies from gold alone and with the other evidence, and how often do intervals hold.
Last, CIFAR-10N: 1,000 images at a time, people's label sets through the embeddings of our encoder,
through one another, and together.

Before that, what fools payoffs, simulated, through ``rank_reports`` as it is: errors on hard
records or near a class boundary, reports predicted from the observations, errors that reports
share, and what once fooled it: observations that repeat, rows without any, classes renamed. Of
each: how often the better of two reports is told, the worse one is told as the better, and an order
is withdrawn.

The files are read from ``JGRAM_DATA``, by default ``../shared/data`` beside the repository; what is
absent is left out.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from scipy.stats import binomtest

from experiments.annotators import DATA
from experiments.figures import finish, panels, save
from experiments.verdicts import verdict
from jgram.evidence import OBSERVATIONS, OTHERS, by_others, expected_accuracies
from jgram.gold import accuracies
from jgram.ranking import Ranking
from jgram.report import rank_reports

PANELS = ("emotion", "ibc", "implicit_hate", "persuasion", "reddit_humor", "wiki_politeness")
PEOPLE = {
    "aggre_label": 0.0901,
    "random_label1": 0.1723,
    "random_label2": 0.1812,
    "random_label3": 0.1764,
    "worse_label": 0.4021,
}
EMBEDDINGS = Path(__file__).with_name("data") / "cifar10_train.npz"
ROWS = (15, 30, 60)
TOGETHER = "together"
KINDS = {OBSERVATIONS: "texts", OTHERS: "other reports", TOGETHER: "together"}
Z = 1.959964


def panel(name: str) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Models that answer nine in ten texts, the right labels, the texts' features."""
    with np.load(DATA / "llm_panels" / f"{name}.npz") as file:
        labels, gold = file["labels"].astype(int), file["gold"].astype(int)
        kept = (labels < 0).mean(axis=1) < 0.1
        names = [str(one) for one in file["names"][kept]]
        return dict(zip(names, labels[kept], strict=True)), gold, file["features"].astype(float)


def contrasts(found: Ranking) -> dict[str, dict[tuple[str, str], float]]:
    """``D`` of the better and the worse report of every pair, by kind of evidence."""
    read: dict[str, dict[tuple[str, str], float]] = {kind: {} for kind in (*KINDS,)}
    for pair in found.pairs:
        names = pair.better, pair.worse
        read[TOGETHER][names] = 1.0
        for one in pair.readings:
            if one.keeps is not None:
                read[one.kind][names] = 2 * (1 - one.keeps) / (1 + one.keeps)
    return read


def different(reports: dict[str, np.ndarray], gold: np.ndarray) -> list[tuple[str, str]]:
    """Pairs whose accuracies differ, the better one first."""
    found = []
    for i, one in enumerate(reports):
        for two in list(reports)[:i]:
            first = int(((reports[one] == gold) & (reports[two] != gold)).sum())
            second = int(((reports[two] == gold) & (reports[one] != gold)).sum())
            if first + second and binomtest(first, first + second).pvalue < 0.05:
                found.append((one, two) if first > second else (two, one))
    return found


def ordered(found: Ranking, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Shares of pairs in their true order by each kind, and of those that are told."""
    row: dict[str, Any] = {"pairs": len(pairs)}
    for kind, read in contrasts(found).items():
        signs = [read.get((a, b), -read.get((b, a), 0.0)) for a, b in pairs]
        row[kind] = float(np.mean([0.5 * (1 + np.sign(sign)) for sign in signs]))
    told = {(one.better, one.worse) for one in found.pairs if one.told}
    apart = {(one.better, one.worse) for one in found.pairs if one.separated}
    for name, chosen in (("told", told), ("separated", apart)):
        row[name] = sum((a, b) in chosen for a, b in pairs)
        row[f"{name}_wrong"] = sum((b, a) in chosen for a, b in pairs)
    return row


def judged(name: str, samples: int, seed: int) -> dict[str, Any]:
    """One panel: the order of its models, and their accuracies from a few right labels."""
    reports, gold, features = panel(name)
    given = {one: [None if v < 0 else int(v) for v in labels] for one, labels in reports.items()}
    found = rank_reports(given, features, classes=sorted(set(gold.tolist())))
    row = {"panel": name, "models": len(reports), "texts": len(gold)}
    row |= ordered(found, different(reports, gold))
    labels = np.stack([*reports.values()])
    readings = [expected_accuracies(labels, by_others(labels, int(gold.max()) + 1)[1])]
    for kind, read in contrasts(found).items():
        reading = dict.fromkeys(reports, 0.0)
        for (a, b), value in read.items():
            reading[a] += value
            reading[b] -= value
        readings += [np.array([*reading.values()])] * (kind != TOGETHER)
    row["gold"] = from_gold(labels, gold, readings, samples, seed)
    return row


def from_gold(
    labels: np.ndarray, gold: np.ndarray, readings: list[Any], samples: int, seed: int
) -> list[dict[str, Any]]:
    """Errors of accuracies by number of right labels; shares of intervals that hold."""
    right = np.where(labels < 0, np.nan, labels == gold)
    truth, rng, rows = np.nanmean(right, axis=1), np.random.default_rng(seed), []
    for m in ROWS:
        errors: dict[str, list[Any]] = {"alone": [], "with": []}
        held = []
        for _ in range(samples):
            part = right[:, rng.permutation(len(gold))[:m]]
            own = accuracies(part, readings)
            errors["with"].append(own.mean - truth)
            errors["alone"].append(own.alone - truth)
            held.append((own.low <= truth) & (truth <= own.high))
        squares = {k: float(np.sqrt(np.nanmean(np.square(v)))) for k, v in errors.items()}
        rows.append({"rows": m, **squares, "coverage": float(np.mean(held))})
    return rows


def people(size: int, samples: int, seed: int) -> dict[str, Any]:
    """CIFAR-10N: pairs of label sets in their true order, image by image drawn anew."""
    with np.load(DATA / "cifar10n" / "cifar10n_labels.npz") as file:
        labels = {name: file[name].astype(int) for name in PEOPLE}
    with np.load(EMBEDDINGS) as file:
        points = file["embeddings"].astype(float)
    names, rng = list(PEOPLE), np.random.default_rng(seed)
    pairs = [(a, b) for a in names for b in names if PEOPLE[b] - PEOPLE[a] > 0.02]
    found = []
    for _ in track(range(samples), "people"):
        chosen = rng.permutation(len(points))[:size]
        ranking = rank_reports({name: labels[name][chosen] for name in names}, points[chosen])
        found.append(ordered(ranking, pairs))
    row = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    return {"size": size, "samples": samples, **row}


def flipped(rng: Any, x: np.ndarray, share: float, d: int = 3) -> np.ndarray:
    """Labels of which a share is drawn anew."""
    return np.where(rng.random(len(x)) < share, rng.integers(0, d, len(x)), x)


def around(rng: Any, x: np.ndarray, distance: float, dimension: int = 4) -> np.ndarray:
    """Unit Gaussians around class centres that stay."""
    centres = np.random.default_rng(99).normal(size=(int(x.max()) + 1, dimension))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    return centres[x] + rng.normal(size=(len(x), dimension))


def hard(rng: Any, n: int, *, share: float, hidden: bool = False) -> tuple[Any, Any]:
    """``b`` errs only on records that are noisy, which a column says unless hidden."""
    x, noisy = rng.integers(0, 3, n), rng.random(n) < 0.4
    y = around(rng, x, 3.0) + 2 * noisy[:, None] * rng.normal(size=(n, 4))
    reports = {"a": flipped(rng, x, 0.15), "b": np.where(noisy, flipped(rng, x, share), x)}
    return reports, y if hidden else np.c_[y, noisy]


def boundary(rng: Any, n: int, *, spread: float, noise: float = 0.5) -> tuple[Any, Any]:
    """Two classes of one quantity; ``b`` errs where that is near to their boundary."""
    latent = rng.normal(size=n)
    y = np.c_[latent + noise * rng.normal(size=n), rng.normal(size=(n, 2))]
    x = (latent > 0).astype(int)
    near = (latent + spread * rng.normal(size=n) > 0).astype(int)
    return {"a": flipped(rng, x, 0.2, 2), "b": near}, y


def leak(rng: Any, n: int) -> tuple[Any, Any]:
    """``b`` is predicted from the observations by the labels of 15 neighbours."""
    x = rng.integers(0, 3, n)
    y, taught = around(rng, x, 1.7), flipped(rng, x, 0.3)
    squares = ((y[:, None] - y) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    votes = np.eye(3)[taught[np.argsort(squares, axis=1)[:, :15]]].sum(axis=1)
    return {"a": flipped(rng, x, 0.2), "b": votes.argmax(axis=1)}, y


def shared(rng: Any, n: int) -> tuple[Any, Any]:
    """``b`` is as good as ``a`` but for 5 in 100; ``c`` repeats its errors and adds some."""
    x = rng.integers(0, 3, n)
    reports = {"a": flipped(rng, x, 0.2), "b": flipped(rng, x, 0.275)}
    return {**reports, "c": flipped(rng, reports["b"], 0.25)}, around(rng, x, 2.5)


def atoms(rng: Any, n: int, *, share: float, missing: bool = False) -> tuple[Any, Any]:
    """A share of the records has the same observations, or none."""
    x = rng.integers(0, 3, n)
    y = around(rng, x, 3.0, 2)
    y[rng.random(n) < share] = np.nan if missing else 0.0
    return {"a": flipped(rng, x, 0.05), "b": flipped(rng, x, 0.3)}, y


def renamed(rng: Any, n: int) -> tuple[Any, Any]:
    """The first report is noise, the worse one of two others has its classes renamed."""
    x = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    y, noise = around(rng, x, 2.5), rng.choice(3, n, p=[0.5, 0.3, 0.2])
    worse = np.array([1, 2, 0])[flipped(rng, x, 0.3)]
    return {"noise": noise, "a": flipped(rng, x, 0.1), "b": worse}, y


FOOLING: dict[str, Any] = {  # a is the better one of a and b
    "errors on hard records, b 13% wrong, a 10": partial(hard, share=0.5),
    "errors on hard records, b 20% wrong, a 10": partial(hard, share=0.75),
    "the same, hidden": partial(hard, share=0.75, hidden=True),
    "near a boundary, b 12% wrong, a 10": partial(boundary, spread=0.4),
    "near a boundary, b 15% wrong, a 10": partial(boundary, spread=0.5),
    "near a boundary, b 17% wrong, a 10": partial(boundary, spread=0.6),
    "near a boundary, 15%, observed badly": partial(boundary, spread=0.5, noise=1.0),
    "near a boundary, 17%, observed well": partial(boundary, spread=0.6, noise=0.25),
    "b predicted from the observations": leak,
    "errors that c shares with b": shared,
    "30% observed as the same": partial(atoms, share=0.3),
    "30% not observed": partial(atoms, share=0.3, missing=True),
    "b with its classes renamed": renamed,
}


def fooled(name: str, n: int, repetitions: int, seed: int) -> dict[str, Any]:
    """What ``rank_reports`` says of ``a`` and ``b``: shares of data sets."""
    counts = dict.fromkeys(("right", "wrong", "withdrawn"), 0)
    for repetition in range(repetitions):
        reports, y = FOOLING[name](np.random.default_rng([seed, repetition]), n)
        found = rank_reports(reports, {f"y{i}": part for i, part in enumerate(y.T)})
        (pair,) = (one for one in found.pairs if {one.better, one.worse} == {"a", "b"})
        said = "right" if pair.better == "a" else "wrong"
        if pair.separated:
            counts[said if pair.told else "withdrawn"] += 1
    shares = {name: count / repetitions for name, count in counts.items()}
    return {"setting": name, "n": n, "repetitions": repetitions, **shares}


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Every part whose files are there."""
    names = [name for name in PANELS if (DATA / "llm_panels" / f"{name}.npz").exists()]
    if not names:
        raise FileNotFoundError(f"no {DATA / 'llm_panels'}: set JGRAM_DATA to the data sets")
    samples = 5 if smoke else 40
    chosen = names[:1] if smoke else names
    found: dict[str, Any] = {
        "fooled": [
            fooled(name, n, 2 if smoke else 20, seed)
            for n in ((300,) if smoke else (1000,))
            for name in track(list(FOOLING)[: 2 if smoke else None], f"what fools payoffs, {n}")
        ],
        "panels": [judged(name, samples, seed) for name in track(chosen, "panels")],
    }
    if (DATA / "cifar10n" / "cifar10n_labels.npz").exists():
        found["people"] = people(300 if smoke else 1000, 2 if smoke else 20, seed)
    return found


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    """Over all pairs of all panels."""
    return float(np.average([row[name] for row in rows], weights=[row["pairs"] for row in rows]))


def _gold(rows: list[dict[str, Any]], number: int, name: str) -> float:
    values = np.array([row["gold"][number][name] for row in rows])
    return float(np.mean(values) if name == "coverage" else np.sqrt(np.mean(values**2)))


def _shown(rows: list[dict[str, Any]], name: str) -> str:
    return f"{_mean(rows, name):.3f}; {min(row[name] for row in rows):.2f}"


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Orders by kind of evidence, accuracies by number of right labels, people."""
    rows = results["panels"]
    total = sum(row["pairs"] for row in rows)
    table: list[dict[str, Any]] = [
        {
            "quantity": f"models in their true order by {words}: all pairs; worst panel",
            "paper": "none given",
            "ours": _shown(rows, kind),
            "interval": f"{total} pairs of {len(rows)} panels",
        }
        for kind, words in KINDS.items()
    ]
    told, wrong = (sum(row[name] for row in rows) for name in ("told", "told_wrong"))
    table.append(
        {
            "quantity": "orders of models that are told, and right",
            "paper": "none given",
            "ours": told / max(told + wrong, 1),
            "interval": f"{told + wrong} of {total} told",
        }
    )
    for number, m in enumerate(ROWS):
        alone, mixed, held = (_gold(rows, number, name) for name in ("alone", "with", "coverage"))
        table.append(
            {
                "quantity": f"error of accuracies from {m} right labels (root mean square)",
                "paper": f"gold alone: {alone:.3f}",
                "ours": mixed,
                "interval": f"95% intervals hold {held:.3f}",
            }
        )
    table += [
        {
            "quantity": f"{row['setting']}, n = {row['n']}: the worse report told as the better",
            "paper": "none given",
            "ours": row["wrong"],
            "interval": f"the better one told {row['right']:.2f}, an order withdrawn "
            f"{row['withdrawn']:.2f}; {row['repetitions']} data sets",
        }
        for row in results["fooled"]
    ]
    if one := results.get("people"):
        table += [
            {
                "quantity": f"CIFAR-10N, {one['size']} images: label sets in their true order by "
                + words.replace("texts", "embeddings"),
                "paper": "none given",
                "ours": one[kind],
                "interval": f"{one['samples']} samples of {one['pairs']:.0f} pairs; "
                f"told {one['told'] / one['pairs']:.2f}, wrong {one['told_wrong']:.2f} a sample",
            }
            for kind, words in KINDS.items()
        ]
    return table


BESIDE = "one kind alone"


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """The order by all evidence, accuracies from gold, what is told."""
    rows = results["panels"]
    told, wrong = (sum(row[name] for row in rows) for name in ("told", "told_wrong"))
    numbers = [
        (
            "models that differ in their true order (worst panel)",
            f"{_mean(rows, OBSERVATIONS):.2f} (texts), {_mean(rows, OTHERS):.2f} (other reports)",
            f"{_mean(rows, TOGETHER):.2f} ({min(row[TOGETHER] for row in rows):.2f})",
        ),
        (
            "error of accuracies from 15, 30, 60 right labels",
            ", ".join(f"{_gold(rows, i, 'alone'):.3f}" for i in range(3)) + " (gold)",
            ", ".join(f"{_gold(rows, i, 'with'):.3f}" for i in range(3)),
        ),
        (
            "orders that are told, and right",
            "",
            f"{told / max(told + wrong, 1):.3f} of {told + wrong}",
        ),
    ]
    words = (
        "**Holds for the order and for accuracies**: all evidence together is right more often "
        "than the texts alone, and 30 right labels with it do the work of more without."
    )
    return numbers, verdict(
        words,
        _mean(rows, TOGETHER) > _mean(rows, OBSERVATIONS),
        _gold(rows, 1, "with") < 0.9 * _gold(rows, 1, "alone"),
    )


def plot(results: dict[str, Any], path: Any) -> None:
    """Orders by kind of evidence, a line a panel; accuracies by number of right labels."""
    rows = results["panels"]
    figure, axes = panels(1, 2, width=5.2, height=3.6)
    left, right = axes[0]
    heights = np.arange(len(rows))[::-1]
    for kind, marker in zip(KINDS, "ovs", strict=True):
        left.plot([row[kind] for row in rows], heights, marker, label=KINDS[kind])
    left.set_yticks(heights, [row["panel"] for row in rows], fontsize=8)
    finish(left, "share of the pairs that differ", "", "models in their true order", legend=True)
    for name, words in {
        "alone": "gold alone",
        "with": "gold with texts and other reports",
    }.items():
        right.plot(ROWS, [_gold(rows, i, name) for i in range(3)], "o-", label=words)
    right.set_ylim(bottom=0)
    right.set_xticks(ROWS)
    finish(right, "right labels", "root mean square", "error of accuracies", legend=True)
    save(figure, axes.flat, path)
