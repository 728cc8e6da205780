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

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import betaln, chdtrc, expit, logit, ndtr, polygamma, psi

from jgram.annotators.answers import Answers, tally
from jgram.annotators.posterior import cross_fit, majority, power, tempered
from jgram.findings import Finding

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
GOLD = 200  # items that are worth as much as what is known of shared errors without any
CERTAIN = 50.0  # nats for what somebody looked up


class Crowd(NamedTuple):
    """The labels, abstentions left out, what the others say of their items, and what is known.

    Attributes:
        source: All answers, with their names.
        item: ``[n]`` codes, sorted.
        annotator: ``[n]`` codes.
        label: ``[n]`` codes.
        votes: ``[items, d]``, the labels of each item.
        judged: ``[n]``, whether somebody else labelled the item, or it has gold.
        answers: ``[m]``, the number of judged labels.
        cavity: ``[n, d]``, what the others alone say of the item.
        own: ``[n]``, the posterior of the own label.
        counts: ``[3, m, d, d]``, soft counts of judged own labels by true class, at ``rho``, at
            less and at more.
        strength: Strength of the confusion matrices' prior.
        posterior: ``[items, d]``.
        before: ``[items, d]``, the same without gold.
        known: ``[items]``, codes of the right labels, -1 where nobody looked.
        picked: ``[items]``, whether chosen for its doubt.
        findings: What was used of what is known beside the answers, and what was not.
    """

    source: Answers
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
    before: np.ndarray
    known: np.ndarray
    picked: np.ndarray
    findings: tuple[Finding, ...] = ()

    @property
    def often(self) -> np.ndarray:
        """``[m, d]``, how often each label is given."""
        return tally(self.annotator, self.label, (len(self.answers), self.votes.shape[1]))

    @property
    def silent(self) -> bool:
        """Whether anybody abstains."""
        return len(self.label) < len(self.source.label)

    @property
    def allowance(self) -> float:
        """What gold leaves of the doubt about shared errors, 1 without any."""
        return float((1.0 + (self.known >= 0).sum() / GOLD) ** -0.5)


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
    evidence: np.ndarray | None = None,
    sure: Any = 1.0,
    known: np.ndarray | None = None,
) -> Crowd:
    """The model fitted, and what the readings need of it.

    Args:
        answers: :class:`Answers`.
        incentive: No answer has a part in what it is judged by: items are cross-fitted and every
            reading is of the cavities.
        correlation: ``rho`` of shared errors.
        evidence: Log likelihoods ``[items, d]`` of what is known beside the answers.
        sure: A power of all that is said of an item, ``[items]``.
        known: Codes ``[items]`` of right labels, -1 where nobody looked.
    """
    m, d, items = len(answers.annotators), len(answers.classes), len(answers.items)
    everything, given = (answers.item, answers.annotator, answers.label), answers.label < d
    rows = item, annotator, label = tuple(part[given] for part in everything)
    start, size = majority(item, label, items, d), np.bincount(item, minlength=items)
    known = np.full(items, -1) if known is None else known
    certain = np.where(known[:, None] < 0, 0.0, -CERTAIN * (np.arange(d) != known[:, None]))
    beside: Any = jnp.zeros((items, 1)) if evidence is None else jnp.asarray(evidence, start.dtype)
    told, heard = beside + certain, evidence is not None or certain.any()
    folds, sure = FOLDS if incentive else 1, np.broadcast_to(sure, items)
    model, q, without = cross_fit(
        start, everything, told if heard else None, m=m, classes=d, folds=folds
    )
    without, judged = without[given], ((size > 1) | (known >= 0))[item]
    beside, told = (sure[:, None] * part for part in (beside, told))

    def together(rho: float, evidence: Any) -> np.ndarray:
        return np.asarray(tempered(q, sure * power(size, rho), evidence))

    def others(rho: float) -> np.ndarray:
        return np.asarray(tempered(without, (sure * power(size - 1, rho))[item], told[item]))

    def counted(rho: float) -> np.ndarray:
        seen = others(rho) if incentive else together(rho, told)[item]
        return np.stack([tally(annotator, label, (m, d), p * judged) for p in seen.T], axis=1)

    cavity, posterior = others(correlation), together(correlation, told)
    return Crowd(
        answers,
        *rows,
        votes=tally(item, label, (items, d)).astype(np.int32),
        judged=judged,
        answers=np.bincount(annotator, judged, m),
        cavity=cavity,
        own=at(cavity if incentive else posterior[item], label),
        counts=np.stack([counted(rho) for rho in correlation * np.array(RANGE)]),
        strength=float(model.strength),
        posterior=posterior,
        before=together(correlation, beside),
        known=known,
        picked=np.zeros(items, bool),
    )


def at(table: np.ndarray, label: np.ndarray) -> np.ndarray:
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
    """Mean log probability of the own label if classes were as frequent; ``z`` of the intervals."""
    m, d = crowd.counts.shape[1:3]
    judged = np.flatnonzero(crowd.judged)
    annotator = crowd.annotator[judged]
    said = crowd.cavity[judged]
    said = said / ((said.sum(axis=0, dtype=float) + 1.0) / (len(said) + d))
    weight = said.mean(axis=1, dtype=float)
    values = np.log(np.maximum(at(said, crowd.label[judged]) / (d * weight), FLOOR))

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
    """Logarithms or logits that an allowance for shared errors leaves."""
    shared = np.hypot((ends[0] - ends[1]) / 2.0, unseen) * crowd.allowance
    wide = z * np.hypot(own, shared)
    return middle - wide, middle + wide


def _slack(crowd: Crowd, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half an answer, in [0, 1]."""
    half = 0.5 / np.maximum(crowd.answers, 1)
    return np.maximum(low - half, 0.0), np.minimum(high + half, 1.0)


def determinants(crowd: Crowd, z: float) -> Estimates:
    """``|det C|^(1/(d-1))`` of the shrunk confusion matrix; formulas at the top."""
    channels, worth = confusions(crowd)
    d, channel = channels.shape[2], channels[0]
    logs = np.linalg.slogdet(channels)[1] / (d - 1)
    inverse = np.linalg.pinv(channel)
    spread = np.einsum("akl,alk->ak", channel, inverse**2) - 1.0
    error = np.sqrt(np.maximum(spread / (worth[0] + 1.0), 0.0).sum(axis=1)) / (d - 1)
    low, high = _interval(crowd, logs[0], error, logs[1:], z)
    never = (crowd.often == 0).any(axis=1)
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
    k, own = crowd.answers, crowd.own.astype(float)
    means = np.einsum("rakk->ra", crowd.counts) / np.maximum(k, 1)
    means = np.clip(means, 1e-6, 1.0 - 1e-6)
    p = means[0]
    doubt = _mean(crowd, own * (1.0 - own)) / np.maximum(k, 1)
    worth = k * p * (1.0 - p) / (p * (1.0 - p) + k * doubt)
    g = means @ k / max(k.sum(), 1)
    right, wrong = worth * p, worth * (1.0 - p)
    grid = np.geomspace(0.5, most_worth, 14)
    a, b = grid[:, None] * g[0], grid[:, None] * (1.0 - g[0])
    s = grid[np.argmax((betaln(a + right, b + wrong) - betaln(a, b)).sum(axis=1))]
    a, b = s * g[0] + right, s * (1.0 - g[0]) + wrong
    middle, error = psi(a) - psi(b), np.sqrt(polygamma(1, a) + polygamma(1, b))
    ends = logit((s * g[1:, None] + k * means[1:]) / (s + k))
    low, high = _interval(crowd, middle, error, ends, z, unseen)
    low, high = _slack(crowd, expit(low), expit(high))
    value = expit(middle)
    return Estimates(value, low, high, value * (1.0 - value) * error)


def noise_p_values(crowd: Crowd) -> np.ndarray:
    """``[m]`` p-values of own labels having nothing to do with own items; 1 where none is told."""
    m, d = crowd.counts.shape[1:3]
    k = np.maximum(crowd.answers, 1)[:, None]
    often = tally(crowd.annotator, crowd.label, (m, d), crowd.judged)
    seen = np.stack([_mean(crowd, crowd.cavity[:, j]) for j in range(d)], axis=1)
    total = _mean(crowd, at(crowd.cavity, crowd.label))
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
    """p-value of all annotators being alike; formulas at the top."""
    size, item, m = crowd.votes.sum(axis=1), crowd.item, len(crowd.answers)
    share = crowd.votes / np.maximum(size, 1)[:, None]
    agreement = (crowd.votes - 1) / np.maximum(size - 1, 1)[:, None]
    mean, several = (share * agreement).sum(axis=1), size > 1
    # labels of an item exchanged among those who gave them
    gain = agreement - mean[:, None]
    square = (share * gain**2).sum(axis=1) * several
    fourth = (share * gain**4).sum(axis=1) * several - 3.0 * square**2
    total, scale, excess = (
        np.bincount(crowd.annotator, part, m)
        for part in (gain[item, crowd.label], square[item], fourth[item])
    )
    within = _chi_square(crowd, total, scale, excess, -square / np.maximum(size - 1, 1))
    # items exchanged among annotators, each keeping the number that it had
    item = item[crowd.judged]
    values = ((mean - mean[item].mean()) * several)[item]
    variance = float((values**2).mean())
    left = np.maximum(1.0 - crowd.answers / max(several.sum(), 1), 0.0)
    total = np.bincount(crowd.annotator[crowd.judged], values, m)
    excess = crowd.answers * (float((values**4).mean()) - 3.0 * variance**2)
    shared = np.full(len(size), variance)
    between = _chi_square(crowd, total, crowd.answers * variance * left, excess, shared)
    return min(1.0, 2.0 * min(within, between))


def _chi_square(
    crowd: Crowd, total: np.ndarray, scale: np.ndarray, excess: np.ndarray, shared: np.ndarray
) -> float:
    """Upper tail of ``sum total^2 / scale``, an item correlating its annotators by ``shared``.

    The trace of the squared correlations of the sums is exact, by unit vectors, for few annotators,
    else by probes of random signs (Hutchinson).
    """
    live = scale > 1e-9
    mean = int(live.sum())
    if mean < 2:
        return 1.0
    item, annotator, m = crowd.item, crowd.annotator, len(scale)
    root, exact = np.sqrt(np.where(live, scale, 1.0)), mean <= 4 * PROBES
    signs = np.sign(np.random.default_rng(0).random((PROBES, m)) - 0.5)
    squares = []
    for probe in np.eye(m)[live] if exact else signs * live:
        part = (probe / root)[annotator]
        others = np.bincount(item, part, len(shared))[item] - part
        product = probe + np.bincount(annotator, shared[item] * others, m) / root
        squares.append(float((product[live] ** 2).sum()))
    spread = 2.0 * sum(squares) * (1.0 if exact else 1.0 / PROBES)
    spread += max(float((excess / root**4)[live].sum()), 0.0)
    freedom, ratio = 2.0 * mean**2 / spread, float((total[live] ** 2 / scale[live]).sum()) / mean
    return float(chdtrc(freedom, ratio * freedom))


def renamings(crowd: Crowd, level: float) -> np.ndarray:
    """``[m, d]``: the class that each own label means, by tests at a level over all of them."""
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
