"""What each annotator's answers come to, in numbers.

In words. What the answers to an item say together, and what the others alone say of it, are known
up to the errors that annotators share (jgram/annotators/posterior.py): ``n`` answers count as
``n / (1 + rho (n - 1))`` independent ones. An answer is judged where somebody else labelled the
item too.

**Log score**, as if every class were as frequent. Of the cavity ``h_r``, what the others alone say
of the item of answer ``r``, and its mean ``p`` over all judged answers,

    g_r[s] = (h_r[s]/p[s]) / sum_k h_r[k]/p[k]         w_r = mean over k of h_r[k]/p[k]
    log score  =  sum w_r log max(g_r[label_r], .05) / sum w_r

over own answers: the mean over the classes of the log probability that the others give to the own
label. Whoever always says the same gains nothing from saying what is frequent. The floor keeps one
confident disagreement from deciding. Shrunk by two answers toward the mean annotator, and its
variance by ten toward that within all annotators.

**Confusion matrices** ``C_a`` of true by own label are counted from the posteriors and shrunk to
the pooled one by at most ``3`` answers a row. **Balanced accuracy** is the mean diagonal; the
**determinant** ``|det C_a|^(1/(d-1))``, 1 where nothing of the truth is lost, 0 where some class is
never told from the others, as where a label is never given. Uniform flips of a share ``e`` leave
``1 - e d/(d-1)``. Its error is first-order in the Dirichlet posterior,
``Var log|det C| = sum_k (sum_l C_kl (C^-1)_lk^2 - 1) / (N_k + strength + 1)``.

**Accuracy.** ``p``, the mean posterior of own labels, is worth ``k_e`` of the ``k`` judged answers
after its own doubt ``v = sum q(1-q)/k^2``:

    k_e = k p(1-p) / (p(1-p) + k v)       a = s g + k_e p      b = s(1-g) + k_e(1-p)
    logit accuracy  =  psi(a) - psi(b)    variance  psi'(a) + psi'(b)

with ``g`` the crowd's mean and ``s <= 10`` its worth by beta-binomial likelihood.

**Intervals** of these three. How much is shared, ``rho``, is not known: each is read at ``rho``,
``rho/2.5`` and ``2.5 rho``, and half of what lies between (of logits, for the determinant of logs)
is a standard error beside its own, so that where an item's answers leave no doubt nothing hangs on
it. The logits have a third, ``.3``, for errors that no answer shows. Both shrink by
``sqrt(1 + G/200)`` with gold for ``G`` items. At the end half an answer of slack: a perfect record
is 1.

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
from scipy.special import betaln, expit, logit, ndtr, polygamma, psi

from jgram.annotators.answers import Answers, tally
from jgram.annotators.posterior import cross_fit, majority, power, tempered

__all__ = [
    "Crowd",
    "Estimates",
    "accuracies",
    "alike",
    "balanced_accuracies",
    "determinants",
    "fit_crowd",
    "log_scores",
    "noise_p_values",
    "renamings",
]

CORRELATION = 0.5
RANGE = (1.0, 0.4, 2.5)
UNSEEN = 0.3
FLOOR = 0.05
WORTH = 2.0
STEADY = 10.0
MOST_WORTH = 10.0
MOST_STRENGTH = 3.0
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
        cavity: ``[n, d]``, what the others alone say of the item.
        own: ``[3, n]``, the posterior of the own label at ``rho``, at less and at more.
        counts: ``[3, m, d, d]``, soft counts of own labels by true class, likewise.
        strength: Strength of the confusion matrices' prior.
        posterior: ``[items, d]``.
        allowance: What gold leaves of the doubt about shared errors, 1 without any.
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
    allowance: float = 1.0


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
    correlation: float = CORRELATION,
    fitted: float = 0.0,
    evidence: np.ndarray | None = None,
) -> Crowd:
    """The model fitted, and what the readings need of it.

    Args:
        answers: :class:`Answers`.
        incentive: Whether no answer may have a part in what its own item is judged by: items are
            cross-fitted and every reading is of the cavities.
        correlation: ``rho`` of the errors that annotators share.
        fitted: The one that the confusion matrices are fitted under.
        evidence: Log likelihoods ``[items, d]`` of what is known beside the answers.

    Returns:
        A :class:`Crowd`.
    """
    m, d, items = len(answers.annotators), len(answers.classes), len(answers.items)
    given = np.flatnonzero(answers.label < d)
    everything = answers.item, answers.annotator, answers.label
    item, annotator, label = (part[given] for part in everything)
    start, size = majority(item, label, items, d), np.bincount(item, minlength=items)
    weight = power(size, fitted)
    known: Any = None if evidence is None else jnp.asarray(evidence, start.dtype)
    model, q, without = cross_fit(
        start, everything, weight, m=m, classes=d, folds=FOLDS if incentive else 1, evidence=known
    )
    known, without = np.zeros((items, 1)) if known is None else known, without[given]

    def together(rho: float) -> np.ndarray:
        return np.asarray(tempered(q, power(size, rho) / weight, known))

    def others(rho: float) -> np.ndarray:
        less = power(size - 1, rho) / weight
        return np.asarray(tempered(without, less[item], known[item]))

    own, counts = np.empty((3, len(given)), np.float32), []
    for k, rho in enumerate(correlation * np.array(RANGE)):
        seen = others(rho) if incentive else together(rho)[item]
        columns = [tally(annotator, label, (m, d), part) for part in seen.T]
        counts.append(np.stack(columns, axis=1))
        own[k] = _at(seen, label)
    judged = size[item] > 1
    return Crowd(
        item=item,
        annotator=annotator,
        label=label,
        votes=tally(item, label, (items, d)).astype(np.int32),
        judged=judged,
        answers=np.bincount(annotator, judged, m),
        cavity=others(correlation),
        own=own,
        counts=np.stack(counts),
        strength=float(model.strength),
        posterior=together(correlation),
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
    """Mean log probability of the own label if classes were as frequent; formulas at the top.

    Args:
        crowd: A :class:`Crowd`.
        z: Normal quantile of the intervals.
    """
    m, d = crowd.counts.shape[1:3]
    judged = np.flatnonzero(crowd.judged)
    annotator = crowd.annotator[judged]
    said = crowd.cavity[judged]
    said = said / ((said.sum(axis=0, dtype=float) + 1.0) / (len(said) + d))
    weight = said.mean(axis=1, dtype=float)
    values = np.log(np.maximum(_at(said, crowd.label[judged]) / (d * weight), FLOOR))

    def total(part: np.ndarray) -> np.ndarray:
        return np.bincount(annotator, part, m)

    sums, squares = total(weight), np.maximum(total(weight**2), 1e-12)
    mean, k = total(weight * values) / np.maximum(sums, 1e-12), sums**2 / squares
    some = crowd.answers > 0
    square = total((weight * (values - mean[annotator])) ** 2) / squares * k
    within = square.sum() / max(k.sum() - some.sum(), 1)
    centre = mean[some].mean()
    value = (k * mean + WORTH * centre) / (k + WORTH)
    error = np.sqrt((square + STEADY * within) / (k + STEADY) / (k + WORTH))
    return Estimates(value, value - z * error, np.minimum(value + z * error, 0.0), error)


def confusions(crowd: Crowd) -> tuple[np.ndarray, np.ndarray]:
    """Shrunk confusion matrices ``[3, m, true, said]``, and what their rows are worth."""
    strength = min(crowd.strength, MOST_STRENGTH)
    pool = crowd.counts.sum(axis=1, keepdims=True) + 1e-3
    pool /= pool.sum(axis=3, keepdims=True)
    total = crowd.counts.sum(axis=3, keepdims=True) + strength
    return (crowd.counts + strength * pool) / total, total[..., 0]


def _interval(
    crowd: Crowd,
    middle: np.ndarray,
    own: np.ndarray,
    ends: np.ndarray,
    z: float,
    unseen: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms or logits that an allowance for shared errors leaves; formulas at the top."""
    shared = np.hypot((ends[0] - ends[1]) / 2.0, unseen) * crowd.allowance
    wide = z * np.hypot(own, shared)
    return middle - wide, middle + wide


def _slack(crowd: Crowd, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half an answer, in [0, 1]."""
    half = 0.5 / np.maximum(crowd.answers, 1)
    return np.maximum(low - half, 0.0), np.minimum(high + half, 1.0)


def determinants(crowd: Crowd, z: float) -> Estimates:
    """``|det C|^(1/(d-1))`` of the shrunk confusion matrix; formulas at the top.

    Args:
        crowd: A :class:`Crowd`.
        z: Normal quantile of the intervals.
    """
    channels, worth = confusions(crowd)
    d, channel = channels.shape[2], channels[0]
    logs = np.linalg.slogdet(channels)[1] / (d - 1)
    inverse = np.linalg.pinv(channel)
    spread = np.einsum("akl,alk->ak", channel, inverse**2) - 1.0
    error = np.sqrt(np.maximum(spread / (worth[0] + 1.0), 0.0).sum(axis=1)) / (d - 1)
    low, high = _interval(crowd, logs[0], error, logs[1:], z)
    never = (tally(crowd.annotator, crowd.label, channel.shape[:2]) == 0).any(axis=1)
    low, high = _slack(crowd, np.where(never, 0.0, np.exp(low)), np.exp(np.minimum(high, 0.0)))
    value = np.exp(logs[0])
    return Estimates(value, low, high, value * np.minimum(error, 1e3))


def balanced_accuracies(crowd: Crowd, z: float, *, unseen: float = UNSEEN) -> Estimates:
    """Mean diagonal of the shrunk confusion matrix: the accuracy if all classes were as frequent.

    Whoever always says the same has ``1/d``, however frequent that class is.

    Args:
        crowd: A :class:`Crowd`.
        z: Normal quantile of the intervals.
        unseen: Standard error, of logits, for errors that no answer shows; ranks go without it.
    """
    channels, worth = confusions(crowd)
    right = np.einsum("rakk->rak", channels)
    values = np.clip(right.mean(axis=2), 1e-6, 1.0 - 1e-6)
    error = np.sqrt((right[0] * (1.0 - right[0]) / (worth[0] + 1.0)).sum(axis=1)) / right.shape[2]
    logits, scale = logit(values), values[0] * (1.0 - values[0])
    low, high = _interval(crowd, logits[0], error / scale, logits[1:], z, unseen)
    low, high = _slack(crowd, expit(low), expit(high))
    return Estimates(values[0], low, high, error)


def accuracies(
    crowd: Crowd, z: float, *, unseen: float = UNSEEN, most_worth: float = MOST_WORTH
) -> Estimates:
    """Estimated share of right answers; formulas at the top.

    Args:
        crowd: A :class:`Crowd`.
        z: Normal quantile of the intervals.
        unseen: As in :func:`balanced_accuracies`.
        most_worth: The largest ``s``.
    """
    k = crowd.answers
    means = np.array([_mean(crowd, own) for own in crowd.own.astype(float)])
    means = np.clip(means, 1e-6, 1.0 - 1e-6)
    p, own = means[0], crowd.own[0].astype(float)
    doubt = _mean(crowd, own * (1.0 - own)) / np.maximum(k, 1)
    worth = k * p * (1.0 - p) / (p * (1.0 - p) + k * doubt)
    g = means @ k / max(k.sum(), 1)
    s = _worth_of_crowd(worth * p, worth * (1.0 - p), float(g[0]), most_worth)
    a, b = s * g[0] + worth * p, s * (1.0 - g[0]) + worth * (1.0 - p)
    middle, error = psi(a) - psi(b), np.sqrt(polygamma(1, a) + polygamma(1, b))
    ends = logit((s * g[1:, None] + k * means[1:]) / (s + k))
    low, high = _interval(crowd, middle, error, ends, z, unseen)
    low, high = _slack(crowd, expit(low), expit(high))
    value = expit(middle)
    return Estimates(value, low, high, value * (1.0 - value) * error)


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
    m, d = crowd.counts.shape[1:3]
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
    channel = confusions(crowd)[0][0]
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
