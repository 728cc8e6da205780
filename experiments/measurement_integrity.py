"""Peer grading: who measures well, and who is lied to, beside the mechanisms of the literature.

The simulation of Burrell and Schoenebeck (EC '23), from their model: 100 students grade one another
in ten assignments, four a submission; grades 0 to 10 of a truth that is binomial with .7; an effort
(three draws or one; or one and a Poisson number of them), perhaps a standard normal bias; a signal
is the mean of the draws. *Measurement integrity* is how well payments tell effort: AUC of active
against passive graders, Kendall's tau with continuous effort. *Robustness* is how many ranks of 100
one grader loses who follows a strategy, biased graders of continuous effort, others truthful or a
fifth of them lying alike. Reconstructed: who grades whom is drawn from permutations, not from a
regular graph; the serum counts grades of earlier assignments; the pairing by model takes a
grading's variance as .7, as published; everything else as the model and the mechanisms say.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.progress import track
from scipy.stats import kendalltau, rankdata

from experiments.figures import finish, panels, save
from experiments.statistics import mean_interval
from experiments.verdicts import verdict
from jgram.payments import rewards

GRADES, PRIOR, GRADERS, EACH, ASSIGNMENTS = 11, 0.7, 100, 4, 10
MERGED = np.array([0, 3, 3, 3, 6, 6, 6, 7, 7, 7, 10])
TRIED = 3  # graders of a semester who try each strategy, one at a time
STRATEGIES = ("noise", "correct a bias", "merge", "always 7", "always 10", "hedge")


class Semester(NamedTuple):
    """Grades ``[assignments, items, 4]`` and who gave them; as many items as graders.

    Attributes:
        truth: ``[assignments, items]``.
        grader: Who graded.
        signal: What they saw.
        report: What they said.
        effort: ``[graders]``.
        honest: Bool ``[graders]``.
        leaning: Biases ``[graders]``, 0 where there are none.
    """

    truth: np.ndarray
    grader: np.ndarray
    signal: np.ndarray
    report: np.ndarray
    effort: np.ndarray
    honest: np.ndarray
    leaning: np.ndarray


def assigned(rng: Any, clusters: bool) -> np.ndarray:
    """Graders ``[items, 4]``: four others of each, at random or four at a time the same four."""
    order = rng.permutation(GRADERS)
    if clusters:
        four = order.reshape(-1, EACH)
        return np.repeat(np.roll(four, 1, axis=0), EACH, axis=0)
    while True:
        found = np.stack([rng.permutation(GRADERS) for _ in range(EACH)], axis=1)
        for _ in range(1000):  # swap what is its own grader, or graded twice by one
            rows = np.column_stack([found, np.arange(GRADERS)])
            ordered = np.sort(rows, axis=1)
            wrong = np.flatnonzero((np.diff(ordered, axis=1) == 0).any(axis=1))
            if not len(wrong):
                return found
            column = rng.integers(EACH)
            one, other = wrong[0], rng.integers(GRADERS)
            found[[one, other], column] = found[[other, one], column]


def semester(
    rng: Any, effort: str, *, bias: bool, liars: int = 0, strategy: str = "", clusters: bool = False
) -> Semester:
    """Ten assignments of 100 students who grade one another.

    Args:
        rng: Of NumPy.
        effort: ``"binary"``, half see three draws and half one, or ``"continuous"``.
        bias: Whether graders lean by a standard normal amount.
        liars: How many follow the strategy.
        strategy: One of ``STRATEGIES``.
        clusters: Whether the same four grade the same four.
    """
    truth = rng.binomial(GRADES - 1, PRIOR, (ASSIGNMENTS, GRADERS))
    grader = np.stack([assigned(rng, clusters) for _ in range(ASSIGNMENTS)])
    leaning = rng.normal(size=GRADERS) * bias
    if effort == "binary":
        known = rng.permutation(np.repeat([1.0, 0.0], GRADERS // 2))
        draws = np.where(known[grader] == 1, 3, 1)
    else:
        known = rng.uniform(0, 2, GRADERS)
        draws = 1 + rng.poisson(known[grader])
    chance = (truth[..., None] + leaning[grader]) / (GRADES - 1)
    mean = rng.binomial(draws * (GRADES - 1), np.clip(chance, 0, 1)) / draws
    signal = np.rint(mean).astype(int)
    honest = np.ones(GRADERS, bool)
    honest[rng.permutation(GRADERS)[:liars]] = False
    told = said(rng, strategy, signal, leaning, grader)
    report = np.where(honest[grader], signal, told)
    return Semester(truth, grader, signal, report, known, honest, leaning)


def said(rng: Any, strategy: str, signal: np.ndarray, leaning: Any, grader: Any) -> np.ndarray:
    """What a strategy makes of signals."""
    if strategy == "noise":
        found = signal + rng.normal(size=signal.shape)
    elif strategy == "correct a bias":
        correction = -np.sign(leaning) * np.abs(rng.normal(size=GRADERS))
        found = signal + correction[grader]
    elif strategy == "merge":
        found = MERGED[signal]
    elif strategy in ("always 7", "always 10"):
        found = np.full_like(signal, int(strategy.split()[1]))
    elif strategy == "hedge":
        found = (7 + signal) / 2
    else:
        found = signal
    return np.clip(np.rint(found), 0, GRADES - 1).astype(int)


# The mechanisms: payments [graders] of a semester ---------------------------------------------


def summed(found: Semester, paid: np.ndarray) -> np.ndarray:
    """What each grader is paid in all, from payments ``[assignments, items, 4]``."""
    return np.bincount(found.grader.ravel(), paid.ravel(), GRADERS)


def squared_error(found: Semester, _: Any) -> np.ndarray:
    """The baseline, which knows the truth."""
    return summed(found, -((found.report - found.truth[..., None]) ** 2.0))


def agreed(found: Semester) -> np.ndarray:
    """With how many of the three others each grade agrees."""
    return (found.report[..., :, None] == found.report[..., None, :]).sum(axis=-1) - 1.0


def agreement(found: Semester, _: Any) -> np.ndarray:
    """Output agreement."""
    return summed(found, agreed(found))


def truth_serum(found: Semester, _: Any) -> np.ndarray:
    """Agreement over how often a grade was given in earlier assignments."""
    counts, paid = np.ones(GRADES), agreed(found)
    for t, reports in enumerate(found.report):
        paid[t] /= (counts / counts.sum())[reports]
        counts += np.bincount(reports.ravel(), minlength=GRADES)
    return summed(found, paid)


def determinants(found: Semester, rng: Any) -> np.ndarray:
    """Products of two determinants of joint counts, of clusters of four, grades cut at 7."""
    total = np.zeros(GRADERS)
    for graders, reports in zip(found.grader, found.report, strict=True):
        high = (reports >= 7).reshape(-1, EACH, EACH)[:, rng.permutation(EACH)]
        z = np.stack([~high, high], axis=-1).astype(float)  # cluster, item, grader, class
        one, other = (
            np.linalg.det(np.einsum("ciax,ciby->cabxy", half, half))
            for half in (z[:, : EACH // 2], z[:, EACH // 2 :])
        )
        both = one * other
        paid = both.sum(axis=2) - np.einsum("caa->ca", both)
        np.add.at(total, graders.reshape(-1, EACH, EACH)[:, 0], paid)
    return total


SLOPES: dict[str, Any] = {
    "TVD": (lambda a: np.sign(a - 1) / 2, lambda b: b),
    "KL": (lambda a: 1 + np.log(a), lambda b: np.exp(b - 1)),
    "H²": (lambda a: 1 - 1 / np.sqrt(a), lambda b: 1 / (1 - b) - 1),
}
"""Of a divergence the slope of ``f`` and the convex conjugate at it."""
FIRST, SECOND = np.triu_indices(EACH, 1)
LOWEST = -(2.0**63)  # what stands for minus infinity


def pairing(found: Semester, rng: Any, divergence: str, ratios: Any) -> np.ndarray:
    """Phi-divergence pairing: the slope at the ratio of both grades of an item, less the conjugate
    of that at their grades of two other items.

    ``ratios(found, rng)`` gives a function of the assignment, the item, both graders and both
    grades: how much more often these come together than by chance, ``nan`` where unknown.
    """
    slope, conjugate = SLOPES[divergence]
    ratio, total = ratios(found, rng), np.zeros(GRADERS)

    def paid(*about: Any) -> np.ndarray:
        value = ratio(*about)
        with np.errstate(divide="ignore"):
            return np.where(np.isnan(value), 0.0, slope(np.where(np.isnan(value), 1.0, value)))

    for t in range(ASSIGNMENTS):
        graders, reports = found.grader[t], found.report[t]
        cells = np.argsort(graders.ravel(), kind="stable").reshape(GRADERS, EACH)
        item = np.arange(GRADERS)[:, None]
        one, two = graders[:, FIRST], graders[:, SECOND]
        bonus = paid(t, item, one, two, reports[:, FIRST], reports[:, SECOND])
        first = chosen(rng, cells[one], item)
        second = chosen(rng, cells[two], item, first // EACH)
        flat = reports.ravel()
        penalty = conjugate(paid(t, item, one, two, flat[first], flat[second]))
        score = np.maximum(bonus - penalty, LOWEST)
        np.add.at(total, one, score)
        np.add.at(total, two, score)
    return total


def chosen(rng: Any, cells: np.ndarray, *barred: np.ndarray) -> np.ndarray:
    """One of the cells ``[..., 4]`` of a grader at random, of none of the items barred."""
    chance = rng.random(cells.shape)
    for item in barred:
        chance[cells // EACH == np.broadcast_to(item, cells.shape[:-1])[..., None]] = -1.0
    return np.take_along_axis(cells, chance.argmax(axis=-1)[..., None], axis=-1)[..., 0]


def counted(found: Semester, rng: Any) -> Any:
    """Ratios as counted in the other half of the items."""
    half = np.stack([rng.permutation(GRADERS) < GRADERS // 2 for _ in range(ASSIGNMENTS)]).astype(
        int
    )
    tables = np.full((ASSIGNMENTS, 2, GRADES, GRADES), np.nan)
    z = np.eye(GRADES)[found.report]
    for t in range(ASSIGNMENTS):
        for side in (0, 1):
            part = z[t][half[t] != side]
            joint = np.einsum("nax,nby->xy", part, part) - np.einsum("nax,nay->xy", part, part)
            single = part.sum(axis=(0, 1)) / part[..., 0].size
            chance = np.outer(single, single)
            known = chance > 0
            tables[t, side][known] = (joint / joint.sum())[known] / chance[known]
    return lambda t, item, one, two, x, y: tables[t, half[t][item], x, y]


MEAN, PRIOR_SPREAD, SPREAD = 7.0, 2.1, 0.7  # of grades, their variance and that of one grading


def modelled(found: Semester, _: Any) -> Any:
    """Ratios of two normal grades of one normal truth, biases as fitted."""
    leaning = np.stack([fitted(found, t)[1] for t in range(ASSIGNMENTS)])
    whole = PRIOR_SPREAD + SPREAD
    shared = PRIOR_SPREAD / whole

    def ratio(t: int, item: Any, one: Any, two: Any, x: Any, y: Any) -> np.ndarray:
        a, b = x - MEAN - leaning[t][one], y - MEAN - leaning[t][two]
        inside = (2 * shared * a * b - shared**2 * (a**2 + b**2)) / (2 * whole * (1 - shared**2))
        return np.exp(inside) / np.sqrt(1 - shared**2)

    return ratio


def fitted(found: Semester, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Truths and biases of one assignment by model PG1 of Piech et al., which knows the prior."""
    graders, reports = found.grader[t], found.report[t]
    truth, leaning = np.full(GRADERS, MEAN), np.zeros(GRADERS)
    steady, before = np.full(GRADERS, 1 / 1.05), np.ones(GRADERS)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(graders.ravel(), values.ravel(), GRADERS)

    prior = 1 / np.sqrt(PRIOR_SPREAD)
    for _ in range(1000):
        if np.linalg.norm(truth - before) <= 1e-4:
            break
        before, weight = truth, np.sqrt(steady)[graders]
        away = reports - leaning[graders]
        truth = (prior * MEAN + (weight * away).sum(axis=1)) / (prior + weight.sum(axis=1))
        if found.leaning.any():  # the model knows whether there are biases
            leaning = steady * total(reports - truth[:, None]) / (1 + EACH * steady)
        left = total((reports - truth[:, None] - leaning[graders]) ** 2)
        steady = (10 / 1.05 + EACH / 2) / (10 + left / 2)
    return truth, leaning


def modelled_error(found: Semester, _: Any) -> np.ndarray:
    """Minus the squared distance to the truth as fitted, biases removed: MSE_P."""
    total = np.zeros(GRADERS)
    for t, (graders, reports) in enumerate(zip(found.grader, found.report, strict=True)):
        truth, leaning = fitted(found, t)
        away = reports - leaning[graders] - truth[:, None]
        total -= np.bincount(graders.ravel(), (away**2).ravel(), GRADERS)
    return total


def paid_as(found: Semester, _: Any, *, numbers: bool) -> np.ndarray:
    """``jgram.payments``, grades as numbers or as classes, each grader paid by the others."""
    said = np.full((GRADERS, ASSIGNMENTS * GRADERS), -1)
    said[found.grader.reshape(-1, EACH), np.arange(said.shape[1])[:, None]] = found.report.reshape(
        -1, EACH
    )
    there = said >= 0
    if not numbers:
        z = np.eye(GRADES + 1)[said][..., :GRADES]
    else:
        count = there.sum(axis=1, keepdims=True)
        away = np.where(there, said - np.sum(said, axis=1, keepdims=True, where=there) / count, 0.0)
        spread = np.sqrt(np.sum(away**2, axis=1, keepdims=True) / count)
        score = np.where(spread > 0, away / np.where(spread > 0, spread, 1.0), 0.0)
        z = there[..., None] * (1 + np.stack([-score, score], axis=2)) / 2
    return np.sum(rewards(z) * z, axis=(1, 2))


MECHANISMS: dict[str, Any] = {
    "squared error, knows the truth": squared_error,
    "output agreement": agreement,
    "peer truth serum": truth_serum,
    "determinant": determinants,
    "pairing, TVD": partial(pairing, divergence="TVD", ratios=counted),
    "pairing, H²": partial(pairing, divergence="H²", ratios=counted),
    "pairing by model, TVD": partial(pairing, divergence="TVD", ratios=modelled),
    "pairing by model, KL": partial(pairing, divergence="KL", ratios=modelled),
    "pairing by model, H²": partial(pairing, divergence="H²", ratios=modelled),
    "squared error by model": modelled_error,
    "jgram, grades as numbers": partial(paid_as, numbers=True),
    "jgram, grades as classes": partial(paid_as, numbers=False),
}
OURS = ("jgram, grades as numbers", "jgram, grades as classes")
NO_PRIOR = ("output agreement", "peer truth serum", "determinant", "pairing, TVD", "pairing, H²")
PUBLISHED: dict[str, tuple[float, ...]] = {
    "output agreement": (-13.7, -2.3, 25.0, 45.8, 46.8, 29.7),
    "peer truth serum": (-3.3, -5.1, -8.0, -41.4, -38.2, -23.3),
    "determinant": (0.8, 6.1, 0.0, -27.6, -27.6, 0.0),
    "pairing, TVD": (-4.2, -2.1, -3.9, -33.6, -28.7, -1.1),
    "pairing, H²": (-6.6, 0.2, 26.0, 46.4, 44.0, 35.1),
    "pairing by model, TVD": (-17.4, 1.4, -14.0, -41.7, -48.3, -9.6),
    "pairing by model, KL": (-23.2, 1.3, -5.5, -39.3, -42.3, -11.6),
    "pairing by model, H²": (-26.5, 0.1, -3.6, -28.0, -35.7, 2.8),
    "squared error by model": (-30.5, 2.3, 20.3, 43.4, 19.5, 48.6),
    "squared error, knows the truth": (-18.9, 1.6, 10.3, 28.3, -42.0, 31.0),
}
"""Mean gains in ranks by each of ``STRATEGIES``, a fifth lying, from the authors' repository: the
data behind their figure of incentives. Their squared error is another one."""


def auc(values: np.ndarray, first: np.ndarray) -> float:
    """The chance that one of the first has the larger value."""
    ones = int(first.sum())
    ranks = rankdata(values)[first].sum()
    return float((ranks - ones * (ones + 1) / 2) / (ones * (len(first) - ones)))


def quality(seed: Any, effort: str, bias: bool) -> dict[str, float]:
    """How well each mechanism's payments tell effort, in one semester."""
    found = {}
    for name, mechanism in MECHANISMS.items():
        rng = np.random.default_rng(seed)
        one = semester(rng, effort, bias=bias, clusters=name == "determinant")
        paid = mechanism(one, rng)
        told = effort == "binary"
        tau: Any = kendalltau(one.effort, paid)
        value = auc(paid, one.effort == 1) if told else tau.statistic
        found[name] = float(np.nan_to_num(value))
    return found


def gains(seed: Any, liars: int, strategies: Any) -> dict[str, dict[str, tuple[float, float]]]:
    """By mechanism and strategy what one truthful grader gains who follows it: ranks, and standard
    deviations of what graders are paid."""
    found: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in MECHANISMS}
    for name, mechanism in MECHANISMS.items():
        before: Any = None
        for strategy in strategies:
            rng = np.random.default_rng(seed)
            one = semester(rng, "continuous", bias=True, liars=liars, strategy=strategy,
                           clusters=name == "determinant")  # fmt: skip
            told = said(np.random.default_rng(seed), strategy, one.signal, one.leaning, one.grader)
            if before is None or liars:
                before = mechanism(one, np.random.default_rng(seed))
            spread = float(np.std(np.maximum(before, -1e6))) or 1.0
            each = []
            for who in np.flatnonzero(one.honest)[:TRIED]:
                lying = one._replace(report=np.where(one.grader == who, told, one.report))
                after = mechanism(lying, np.random.default_rng(seed))
                ranks = [np.sum(paid >= paid[who]) for paid in (before, after)]
                paid = np.clip((after[who] - before[who]) / spread, -9, 9)
                each.append((float(ranks[0] - ranks[1]), float(paid)))
            found[name][strategy] = tuple(np.mean(each, axis=0).tolist())
    return found


SETTINGS = {
    "effort of two kinds": ("binary", False),
    "effort of two kinds, with bias": ("binary", True),
    "continuous effort, with bias": ("continuous", True),
}


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    runs = 2 if smoke else 40
    measured: dict[str, Any] = {}
    for number, (setting, about) in enumerate(SETTINGS.items()):
        each = [quality([seed, number, i], *about) for i in track(range(runs), setting)]
        measured[setting] = {
            name: mean_interval([one[name] for one in each]) for name in MECHANISMS
        }
    gained: dict[str, Any] = {}
    for liars in (0, 20):
        each = [gains([seed, 9, liars, i], liars, STRATEGIES)
                for i in track(range(runs), f"{liars} lie")]  # fmt: skip
        gained[str(liars)] = {
            name: {
                strategy: [
                    mean_interval([one[name][strategy][part] for one in each]) for part in (0, 1)
                ]
                for strategy in STRATEGIES
            }
            for name in MECHANISMS
        }
    return {"runs": runs, "quality": measured, "gains": gained}


def lost(results: dict[str, Any], name: str, liars: str = "20") -> tuple[float, float]:
    """Ranks lost by lying, mean over the strategies, and half its interval."""
    parts = [part[0] for part in results["gains"][liars][name].values()]
    halves = np.array([part["half"] for part in parts])
    return -float(np.mean([p["mean"] for p in parts])), float(np.linalg.norm(halves) / len(parts))


def pays(results: dict[str, Any], name: str) -> list[str]:
    """Strategies that pay one grader more than the truth, others truthful, beyond the error."""
    found = results["gains"]["0"][name]
    return [s for s, (_, paid) in found.items() if paid["mean"] - paid["half"] > 0]


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for setting, found in results["quality"].items():
        for name, value in found.items():
            row = {"quantity": f"{setting}: {name}", "paper": "", "ours": value["mean"]}
            rows.append({**row, "interval": f"± {value['half']:.3f}"})
    for name, found in results["gains"]["20"].items():
        for number, (strategy, (ranks, _)) in enumerate(found.items()):
            paper = PUBLISHED[name][number] if name in PUBLISHED else ""
            row = {"quantity": f"ranks gained, a fifth lies, {strategy}: {name}", "paper": paper}
            rows.append({**row, "ours": ranks["mean"], "interval": f"± {ranks['half']:.1f}"})
    for name in OURS:
        for strategy, (_, paid) in results["gains"]["0"][name].items():
            row = {"quantity": f"paid more than the truth, nobody else lies, {strategy}: {name}"}
            row |= {"paper": "0 at most", "ours": paid["mean"]}
            rows.append({**row, "interval": f"± {paid['half']:.2f} standard deviations"})
    return rows


def plot(results: dict[str, Any], path: Any) -> None:
    figure, axes = panels(1, 2, width=5.0, height=4.2)
    told = results["quality"]["effort of two kinds, with bias"]
    for number, name in enumerate(MECHANISMS, 1):
        x, y, colour = lost(results, name), told[name], "C1" if name in OURS else "C0"
        axes[0, 0].errorbar(x[0], y["mean"], xerr=x[1], yerr=y["half"], fmt=".", color=colour,
                            linewidth=0.8, label=f"{number} {name}")  # fmt: skip
        axes[0, 0].annotate(f"{number}", (x[0], y["mean"]), fontsize=8, xytext=(3, 3),
                            textcoords="offset points", color=colour)  # fmt: skip
    axes[0, 0].legend(fontsize=6, loc=(0.01, 0.38), handlelength=0, markerscale=0)
    axes[0, 0].axvline(0, color="grey", linewidth=0.8)
    finish(axes[0, 0], "ranks lost by lying, mean of six strategies",
           "active told from passive graders (AUC)", "Measured well, and not lied to")  # fmt: skip
    shown = [OURS[0], "squared error by model", "pairing by model, TVD", "peer truth serum"]
    for index, name in enumerate(shown):
        parts = [part[0] for part in results["gains"]["20"][name].values()]
        axes[0, 1].errorbar([-p["mean"] for p in parts], np.arange(len(parts)) + 0.1 * index,
                            xerr=[p["half"] for p in parts], fmt="os^D"[index], label=name,
                            color=f"C{(1, 0, 2, 3)[index]}", markersize=4)  # fmt: skip
    axes[0, 1].set_yticks(np.arange(len(STRATEGIES)), STRATEGIES)
    axes[0, 1].axvline(0, color="grey", linewidth=0.8)
    finish(axes[0, 1], "ranks lost", "", "Each strategy, a fifth lying alike", legend=True)
    save(figure, axes.flat, path)


BESIDE = "published mechanisms"


def dominating(results: dict[str, Any]) -> list[str]:
    """Mechanisms that measure better than ours in every setting and lose lying more ranks."""
    ours, found = OURS[0], []
    for name in MECHANISMS:
        better = all(
            told[name]["mean"] > told[ours]["mean"] for told in results["quality"].values()
        )
        if name not in OURS and better and lost(results, name)[0] > lost(results, ours)[0]:
            found.append(name)
    return found


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    ours, model, by_model = OURS[0], "squared error by model", "pairing by model, TVD"
    told = results["quality"]["effort of two kinds, with bias"]
    numbers = [
        (
            "active told from passive graders, with bias (AUC)",
            f"{told[model]['mean']:.2f} ({model}), {told[by_model]['mean']:.2f} ({by_model})",
            f"{told[ours]['mean']:.2f}",
        ),
        (
            "ranks of 100 lost by lying, mean of six strategies",
            f"{lost(results, model)[0]:.0f} ({model}), "
            f"{lost(results, by_model)[0]:.0f} ({by_model})",
            f"{lost(results, ours)[0]:.0f}",
        ),
        (
            "strategies that pay who alone follows one",
            f"{len(pays(results, model))} of 6 ({model})",
            f"{len(pays(results, ours))} of 6",
        ),
    ]
    told = results["quality"].values()
    gaps = [
        abs(ranks["mean"] - published)
        for name, gains in PUBLISHED.items()
        if name != "squared error, knows the truth"
        for (ranks, _), published in zip(results["gains"]["20"][name].values(), gains, strict=True)
    ]
    classes = results["quality"]["effort of two kinds, with bias"][OURS[1]]["mean"]
    return numbers, verdict(
        "**No mechanism dominates ours**, grades read as numbers: it measures better than all that "
        "know no prior, and a liar loses the most ranks by it. The squared error to a model's "
        "truth, with the prior, measures better and pays four of six lies; pairing by the model's "
        "H² measures better where nobody leans, and loses a liar half as much. No strategy pays "
        "who alone follows it. Eleven grades read as classes are too many for 40 answers (AUC "
        f"{classes:.2f}). The published gains by lying come out within {np.mean(gaps):.0f} ranks "
        "on average.",
        not dominating(results),
        all(one[ours]["mean"] > one[name]["mean"] for one in told for name in NO_PRIOR),
        all(lost(results, ours)[0] > lost(results, name)[0] for name in MECHANISMS if name != ours),
        all(one[model]["mean"] > one[ours]["mean"] for one in told),
        len(pays(results, model)) == 4,
        [one["pairing by model, H²"]["mean"] > one[ours]["mean"] for one in told]
        == [True, False, False],
        lost(results, "pairing by model, H²")[0] < 0.6 * lost(results, ours)[0],
        not pays(results, ours),
    )
