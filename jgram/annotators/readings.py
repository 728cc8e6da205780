"""What each annotator's answers come to, in numbers.

In words. Two models are fitted (jgram/annotators/posterior.py): one takes the labels of an item as
independent, the other, the *wary* one, as correlated by ``rho = .15``, as real crowds' errors are.
An answer is judged where somebody else labelled the item too.

**Log score.** Mean over judged own labels of the log probability that the wary cavity, the others
alone, gives the label; a probability below .05 counts as .05, so that one confident disagreement
does not decide. Shrunk by two answers toward the mean annotator, and its variance by ten toward
that within all annotators.

**Determinant.** Of the shrunk confusion matrix of the independent model: ``|det C_a|^(1/(d-1))``, 1
where nothing of the truth is lost, 0 where some class is never told from the others. Uniform flips
of a share ``e`` leave ``1 - e d/(d-1)``. Its error is first-order in the Dirichlet posterior,
``Var log|det C| = sum_k (sum_l C_kl (C^-1)_lk^2 - 1) / (N_k + strength + 1)``.

**Accuracy.** ``p``, the mean probability of own labels under the wary model, with the own answer
(too high: it vouches for itself) and without it (too low: it is evidence), averaged. It is worth
``k_e`` of the ``k`` judged answers after the model's own doubt ``v = sum q(1-q)/k^2``:

    k_e = k p(1-p) / (p(1-p) + k v)       a = s g + k_e p      b = s(1-g) + k_e(1-p)
    logit accuracy  =  psi(a) - psi(b)  +-  z sqrt(psi'(a) + psi'(b) + shared^2 + difference^2)

with ``g`` the crowd's mean, ``s <= 10`` its worth by beta-binomial likelihood, ``difference`` that
of the pooled logits with and without the own answers, and ``shared = .5`` an allowance learnt from
other crowds: errors that everybody makes are invisible to any likelihood, however many answers
there are.

**Noise.** Own labels dealt anew over own items would give the sum of own cavity probabilities a
known mean and variance (the permutation moments of Hoeffding); the standardised sum, two-sided.

**Alike.** If all annotators were alike, the labels of an item would be exchangeable among those who
gave them. ``S_a`` sums own agreement with the item's other labels, less the item's mean; ``T = sum
S_a^2 / V_a``, whose mean is the number of annotators, is referred to a scaled chi-square with
variance ``2 tr(correlations^2) + sum of excess kurtoses``. Where items have two labels or so, what
there is to see is *which* items an annotator agrees on: the same statistic of the items' means.
Twice the smaller p-value of the two; the second takes items to be handed out without regard to
their difficulty.

**Renaming.** Each own label means the class under which it is likeliest. Where that is a
permutation, every label it moves must by itself pass a sign test: the cavities of the items so
labelled prefer the new meaning to the given one (Chernoff's bound on the binomial tail).
"""

from math import sqrt
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import betaln, ndtr, polygamma, psi

from jgram.annotators.answers import Answers, tally
from jgram.annotators.posterior import cross_fit, item_weights, majority

__all__ = [
    "Crowd",
    "Estimates",
    "accuracies",
    "alike",
    "balanced_accuracies",
    "determinants",
    "fit_crowd",
    "habits",
    "log_scores",
    "noise_p_values",
    "renamings",
]

WARY = 0.15
FLOOR = 0.05
WORTH = 2.0
STEADY = 10.0
SHARED = 0.5
MOST_WORTH = 10.0
FOLDS = 5
CHUNK = 1 << 20
PROBES = 16


class Crowd(NamedTuple):
    """The labels, abstentions left out, and what the others say of their items.

    Attributes:
        item: ``[n]`` codes, sorted.
        annotator: ``[n]`` codes.
        label: ``[n]`` codes.
        votes: ``[items, d]``, the labels of each item.
        judged: ``[n]``, whether somebody else labelled the item.
        answers: ``[m]``, the number of judged labels.
        cavity: ``[n, d]`` of the wary model.
        own: ``[2, n]``, the wary probability of the own label, with it and without it.
        counts: ``[m, d, d]``, soft counts of own labels by true class under the independent model.
        strength: Strength of its prior.
        posterior: ``[items, d]``, the mean of both models.
    """

    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    votes: np.ndarray
    judged: np.ndarray
    answers: np.ndarray
    cavity: np.ndarray
    own: np.ndarray
    counts: np.ndarray
    strength: float
    posterior: np.ndarray


class Estimates(NamedTuple):
    """A reading of every annotator with its interval; NaN where there is none."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    error: np.ndarray


def fit_crowd(
    answers: Answers,
    *,
    incentive: bool = False,
    correlation: float = WARY,
    evidence: np.ndarray | None = None,
) -> Crowd:
    """Both models fitted, and what the readings need of them.

    Args:
        answers: :class:`Answers`.
        incentive: Whether no answer may have a part in what its own item is judged by: items are
            cross-fitted and every reading is of the cavities.
        correlation: ``rho`` of the wary model.
        evidence: Log likelihoods ``[items, d]`` of what is known beside the answers; then the wary
            model serves for both.

    Returns:
        A :class:`Crowd`.
    """
    m, d, items = len(answers.annotators), len(answers.classes), len(answers.items)
    given = np.flatnonzero(answers.label < d)
    item, annotator, label = (
        part[given] for part in (answers.item, answers.annotator, answers.label)
    )
    everything = answers.item, answers.annotator, answers.label
    start = majority(item, label, items, d)
    folds = FOLDS if incentive else 1
    own, posterior = np.empty((2, len(given)), np.float32), np.zeros((items, d), np.float32)
    cavity = counts = np.zeros(0)
    strength = 0.0
    wariness = (0.0, correlation) if evidence is None else (correlation,)
    known: Any = 0.0 if evidence is None else jnp.asarray(evidence, start.dtype)
    for rho in wariness:
        weight = item_weights(item, items, rho)
        model, q, without = cross_fit(
            start, everything, weight, m=m, classes=d, folds=folds, evidence=known
        )
        q, cavity = np.asarray(q), np.asarray(without)[given]
        posterior += q / len(wariness)
        seen = cavity if incentive else q[item]
        if rho == wariness[0]:
            columns = [tally(annotator, label, (m, d), seen[:, k]) for k in range(d)]
            counts, strength = np.stack(columns, axis=1), float(model.strength)
        own[0] = _at(seen, label)
    own[1] = _at(cavity, label)
    votes = tally(item, label, (items, d))
    judged = votes.sum(axis=1)[item] > 1
    return Crowd(
        item,
        annotator,
        label,
        votes.astype(np.int32),
        judged,
        np.bincount(annotator, judged, m),
        cavity,
        own,
        counts,
        strength,
        posterior,
    )


def _at(table: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Of each row the entry at its label."""
    return np.take_along_axis(table, label[:, None], axis=1)[:, 0]


def _mean(crowd: Crowd, values: np.ndarray) -> np.ndarray:
    """Of judged answers, by annotator; 0 where there are none."""
    total = np.bincount(crowd.annotator, np.where(crowd.judged, values, 0.0), len(crowd.answers))
    return total / np.maximum(crowd.answers, 1)


def agreements(crowd: Crowd) -> np.ndarray:
    """Mean share of an item's other labels that are the same."""
    votes = crowd.votes[crowd.item, crowd.label]
    others = crowd.votes.sum(axis=1)[crowd.item] - 1
    return _mean(crowd, (votes - 1) / np.maximum(others, 1))


def log_scores(crowd: Crowd, z: float) -> Estimates:
    """Mean log cavity probability of the own label; formulas at the top.

    Args:
        crowd: A :class:`Crowd`.
        z: Normal quantile of the intervals.
    """
    said = _at(crowd.cavity, crowd.label)
    values = np.log(np.maximum(said.astype(float), FLOOR))
    mean, k = _mean(crowd, values), crowd.answers
    some = k > 0
    square = np.maximum(_mean(crowd, values**2) - mean**2, 0.0) * k
    within = square.sum() / max(k.sum() - some.sum(), 1)
    centre = mean[some].mean()
    value = (k * mean + WORTH * centre) / (k + WORTH)
    variance = (square + STEADY * within) / (k + STEADY)
    error = np.sqrt(variance / (k + WORTH))
    return Estimates(value, value - z * error, np.minimum(value + z * error, 0.0), error)


def confusions(crowd: Crowd) -> tuple[np.ndarray, np.ndarray]:
    """Shrunk confusion matrices ``[m, true, said]`` and what their rows are worth ``[m, true]``."""
    pool = crowd.counts.sum(axis=0) + 1e-3
    pool /= pool.sum(axis=1, keepdims=True)
    total = crowd.counts.sum(axis=2, keepdims=True) + crowd.strength
    return (crowd.counts + crowd.strength * pool) / total, total[:, :, 0]


def determinants(crowd: Crowd, z: float) -> Estimates:
    """``|det C|^(1/(d-1))`` of the shrunk confusion matrix; formulas at the top.

    Args:
        crowd: A :class:`Crowd`.
        z: Normal quantile of the intervals.
    """
    channel, worth = confusions(crowd)
    d = channel.shape[1]
    log = np.linalg.slogdet(channel)[1] / (d - 1)
    inverse = np.linalg.pinv(channel)
    spread = np.einsum("akl,alk->ak", channel, inverse**2) - 1.0
    error = np.sqrt(np.maximum(spread / (worth + 1.0), 0.0).sum(axis=1)) / (d - 1)
    value, low, high = (np.exp(np.minimum(log + s * z * error, 0.0)) for s in (0, -1, 1))
    return Estimates(value, low, high, value * np.minimum(error, 1e3))


def balanced_accuracies(crowd: Crowd, z: float, *, shared: float = SHARED) -> Estimates:
    """Mean diagonal of the shrunk confusion matrix: the accuracy if all classes were as frequent.

    Whoever always says the same has ``1/d``, however frequent that class is. Intervals have the
    allowance for errors that everybody makes; the error, which ranks go by, has not.

    Args:
        crowd: A :class:`Crowd`.
        z: Normal quantile of the intervals.
        shared: The allowance, on the logit scale.
    """
    channel, worth = confusions(crowd)
    right = np.einsum("akk->ak", channel)
    value = np.clip(right.mean(axis=1), 1e-6, 1.0 - 1e-6)
    error = np.sqrt(np.sum(right * (1.0 - right) / (worth + 1.0), axis=1)) / right.shape[1]
    scale = value * (1.0 - value)
    wide = z * np.sqrt((error / scale) ** 2 + shared**2)
    middle = np.log(value / (1.0 - value))
    low, high = (1.0 / (1.0 + np.exp(-(middle + sign * wide))) for sign in (-1, 1))
    return Estimates(value, low, high, error)


def habits(crowd: Crowd) -> float:
    """How far annotators' shares of labels are from those of all, beyond what sampling does.

    Half the sum of absolute differences less its expectation for answers drawn from the shares of
    all, at least 0, the mean over answers.
    """
    m, d = crowd.counts.shape[:2]
    said = tally(crowd.annotator, crowd.label, (m, d))
    said = said[said.sum(axis=1) > 0]
    size, pooled = said.sum(axis=1), said.sum(axis=0) / said.sum()
    away = np.abs(said / size[:, None] - pooled).sum(axis=1) / 2
    chance = np.sqrt(2 * pooled * (1 - pooled) / np.pi / size[:, None]).sum(axis=1) / 2
    return float(size @ np.maximum(away - chance, 0.0) / size.sum())


def accuracies(
    crowd: Crowd, z: float, *, shared: float = SHARED, most_worth: float = MOST_WORTH
) -> Estimates:
    """Estimated share of right answers; formulas at the top.

    Args:
        crowd: A :class:`Crowd`.
        z: Normal quantile of the intervals.
        shared: The allowance for errors that everybody makes, on the logit scale.
        most_worth: The largest ``s``.
    """
    both = crowd.own.astype(float)
    own, k = both.mean(axis=0), crowd.answers
    p = np.clip(_mean(crowd, own), 1e-6, 1.0 - 1e-6)
    doubt = _mean(crowd, own * (1.0 - own)) / np.maximum(k, 1)
    worth = k * p * (1.0 - p) / (p * (1.0 - p) + k * doubt)
    pooled = np.clip(both[:, crowd.judged].mean(axis=1), 1e-6, 1.0 - 1e-6)
    g, logits = pooled.mean(), np.log(pooled / (1.0 - pooled))
    s = _worth_of_crowd(worth * p, worth * (1.0 - p), float(g), most_worth)
    a, b = s * g + worth * p, s * (1.0 - g) + worth * (1.0 - p)
    middle, variance = psi(a) - psi(b), polygamma(1, a) + polygamma(1, b)
    error = np.sqrt(variance + shared**2 + (logits[0] - logits[1]) ** 2)
    value, low, high = (1.0 / (1.0 + np.exp(-(middle + t * z * error))) for t in (0, -1, 1))
    return Estimates(value, low, high, (high - low) / (2.0 * z))


def _worth_of_crowd(right: np.ndarray, wrong: np.ndarray, g: float, most: float) -> float:
    """``s`` by beta-binomial likelihood over a grid that ends at ``most``."""
    grid = np.geomspace(0.5, most, 14)
    a, b = grid[:, None] * g, grid[:, None] * (1.0 - g)
    likelihood = (betaln(a + right, b + wrong) - betaln(a, b)).sum(axis=1)
    return float(grid[int(np.argmax(likelihood))])


def noise_p_values(crowd: Crowd) -> np.ndarray:
    """``[m]`` p-values of own labels having nothing to do with own items; 1 where none can be told.

    Args:
        crowd: A :class:`Crowd`.
    """
    m, d = crowd.counts.shape[:2]
    k = np.maximum(crowd.answers, 1)[:, None]
    often = tally(crowd.annotator, crowd.label, (m, d), crowd.judged)
    seen = np.stack([_mean(crowd, crowd.cavity[:, j]) for j in range(d)], axis=1)
    total = _mean(crowd, _at(crowd.cavity, crowd.label))
    middle = (often * seen).sum(axis=1) / k[:, 0]
    square = np.zeros(m)
    for low in range(0, len(crowd.item), CHUNK):
        part = slice(low, low + CHUNK)
        a, values = crowd.annotator[part], crowd.cavity[part].astype(float)
        rows = (often[a] * values).sum(axis=1) / k[a, 0]
        left = (values - rows[:, None] - seen[a] + middle[a, None]) ** 2
        square += np.bincount(a, (often[a] * left).sum(axis=1) * crowd.judged[part], m)
    variance = square / np.maximum(crowd.answers - 1.0, 1.0)
    z = k[:, 0] * (total - middle) / np.sqrt(np.maximum(variance, 1e-12))
    return np.where(variance > 1e-9, 2.0 * ndtr(-np.abs(z)), 1.0)


def alike(crowd: Crowd) -> float:
    """p-value of all annotators being alike; formulas at the top.

    Args:
        crowd: A :class:`Crowd`.
    """
    size = crowd.votes.sum(axis=1)
    share = crowd.votes / np.maximum(size, 1)[:, None]
    agreement = (crowd.votes - 1) / np.maximum(size - 1, 1)[:, None]
    mean = (share * agreement).sum(axis=1)
    return min(1.0, 2.0 * min(_within(crowd, share, agreement, mean), _between(crowd, mean)))


def _within(crowd: Crowd, share: np.ndarray, agreement: np.ndarray, mean: np.ndarray) -> float:
    """Labels of an item exchanged among those who gave them."""
    size, gain = crowd.votes.sum(axis=1), agreement - mean[:, None]
    variance = np.where(size > 1, (share * gain**2).sum(axis=1), 0.0)
    fourth = np.where(size > 1, (share * gain**4).sum(axis=1), 0.0) - 3.0 * variance**2
    item, annotator, m = crowd.item, crowd.annotator, len(crowd.answers)
    total = np.bincount(annotator, gain[item, crowd.label], m)
    scale = np.bincount(annotator, variance[item], m)
    excess = np.bincount(annotator, fourth[item], m)
    return _chi_square(crowd, total, scale, excess, -variance / np.maximum(size - 1, 1))


def _between(crowd: Crowd, mean: np.ndarray) -> float:
    """Items exchanged among annotators, each keeping the number that it had."""
    kept, m = crowd.judged, len(crowd.answers)
    gain = (mean - mean[crowd.item[kept]].mean()) * (crowd.votes.sum(axis=1) > 1)
    values = gain[crowd.item[kept]]
    variance = float((values**2).mean())
    total = np.bincount(crowd.annotator[kept], values, m)
    left = np.maximum(1.0 - crowd.answers / max((crowd.votes.sum(axis=1) > 1).sum(), 1), 0.0)
    excess = crowd.answers * (float((values**4).mean()) - 3.0 * variance**2)
    return _chi_square(crowd, total, crowd.answers * variance * left, excess, variance)


def _chi_square(
    crowd: Crowd,
    total: np.ndarray,
    scale: np.ndarray,
    excess: np.ndarray,
    shared: np.ndarray | float,
) -> float:
    """Upper tail of ``sum total^2 / scale``, an item correlating its annotators by ``shared``."""
    live = scale > 1e-9
    if live.sum() < 2:
        return 1.0
    root = np.sqrt(np.where(live, scale, 1.0))
    against = np.broadcast_to(np.asarray(shared, float), len(crowd.votes))
    spread = 2.0 * _squared_correlations(crowd, against, root, live)
    spread += max(float((excess / root**4)[live].sum()), 0.0)
    mean = float(live.sum())
    freedom = 2.0 * mean**2 / spread
    ratio = float((total[live] ** 2 / scale[live]).sum()) / mean
    z = (ratio ** (1.0 / 3.0) - 1.0 + 2.0 / (9.0 * freedom)) / sqrt(2.0 / (9.0 * freedom))
    return float(ndtr(-z))  # Wilson and Hilferty


def _squared_correlations(
    crowd: Crowd, shared: np.ndarray, root: np.ndarray, live: np.ndarray
) -> float:
    """Trace of the squared correlation matrix of the sums.

    Exact by unit vectors for few annotators, else by probes of random signs (Hutchinson).
    """
    item, annotator, m = crowd.item, crowd.annotator, len(root)
    alive = np.flatnonzero(live)
    exact = len(alive) <= 4 * PROBES
    signs = np.sign(np.random.default_rng(0).random((PROBES, m)) - 0.5)
    probes = np.eye(m)[alive] if exact else signs * live
    total = 0.0
    for probe in probes:
        part = (probe / root)[annotator]
        others = np.bincount(item, part, len(shared))[item] - part
        product = probe + np.bincount(annotator, shared[item] * others, m) / root
        total += float((product[live] ** 2).sum())
    return total if exact else total / len(probes)


def renamings(crowd: Crowd, level: float) -> np.ndarray:
    """``[m, d]``: the class that each own label means; mostly itself.

    Args:
        crowd: A :class:`Crowd`.
        level: Of the test, over all annotators and classes.
    """
    channel, _ = confusions(crowd)
    m, d = channel.shape[:2]
    same = np.broadcast_to(np.arange(d), (m, d))
    meaning = channel.argmax(axis=1)
    permutes = (np.sort(meaning, axis=1) == same).all(axis=1)
    meaning = np.where(permutes[:, None], meaning, same)
    rows = np.flatnonzero(crowd.judged & permutes[crowd.annotator])
    a, label = crowd.annotator[rows], crowd.label[rows]
    prefers = crowd.cavity[rows, meaning[a, label]] > crowd.cavity[rows, label]
    count, wins = tally(a, label, (m, d)), tally(a, label, (m, d), prefers)
    passed = _log_sign_test(wins, count) <= np.log(level / (m * max(d - 1, 1)))
    renamed = (passed | (meaning == same)).all(axis=1)
    return np.where(renamed[:, None], meaning, same)


def _log_sign_test(wins: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Log of Chernoff's bound on the probability of as many heads of a fair coin."""
    share = np.clip(wins / np.maximum(count, 1), 0.5, 1.0)
    tails = np.where(share < 1.0, (1.0 - share) * np.log(2.0 * np.maximum(1.0 - share, 1e-9)), 0.0)
    return -count * (share * np.log(2.0 * share) + tails)
