"""Pairs of annotators who agree more than their habits and their items explain.

In words. Two annotators may agree because both are right, because both like the same label, or
because an item is hard and misleads both; none of it is copying. So the items get twice as many
states as there are classes, each class easy or hard, and ``q`` is an item's posterior over them
without either's answer (jgram/annotators/posterior.py). Given the state, independent annotators
with rows ``A_s`` and ``B_s`` both say ``l`` with probability ``D``; the most that any coupling of
the same two habits allows is ``N``:

    D_l = sum_s q_s A_s[l] B_s[l]          N_l = sum_s q_s min(A_s[l], B_s[l])
    differ:  1 - sum_l D_l                 1 - sum_l N_l
    R   = N / D - 1 at what was observed   L(c) = sum over items of log(1 + c R)

A pair that shares a part ``c`` of its answers beyond that has log likelihood ratio ``L(c)``, on a
grid of ``c``. No model fits a crowd exactly, and where most annotators share errors, the honest
rest look as if they shared theirs. So each pair is tested against ``c0``: the coupling of the
average pair, the likeliest over all, or if that is more, the one that both have with a third, up to
.2 (surely: ``L`` within 1 of its largest). Who reads as several others do has copied none of them.

    E = mean over c > c0 of exp(L(c) - L(c0))

which is an e-value: under at most ``c0`` its mean is at most 1, so that ``E > P / .05`` for any of
``P`` judged pairs has probability at most .05, however the pairs depend on each other. A pair is
judged where it has 10 common items, and where full copying would be expected to reach that bar (the
sum of the divergences of ``N`` from ``D``).

No flag is no acquittal: what it takes to be found is in experiments/annotators.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from jgram.annotators.answers import Answers, as_answers, tally
from jgram.annotators.posterior import Model, fit, majority
from jgram.arrays import Array

__all__ = ["Collusion", "CollusionSearch", "Pairs", "find_collusion", "pair_evidence"]

LEVEL = 0.05
COMMON = 10
COUPLINGS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95])
MOST_SHARED = 5  # place of what readings in common have come to; copies share more
ITERATIONS = 20
BLOCK = 2_000_000  # pairs of answers held at once
CHUNK = 1 << 16  # pairs of answers in one compiled call
ENTRIES = 1 << 24  # of their states and labels


@dataclass(frozen=True)
class Collusion:
    """Two annotators who agree beyond their habits and their items.

    Attributes:
        first: Name.
        second: Name.
        items: Number of items that both answered.
        agreement: Share of these on which they agree.
        expected: Share expected from their own habits and the items' difficulty.
        log_evidence: Natural logarithm of the e-value.
    """

    first: Any
    second: Any
    items: int
    agreement: float
    expected: float
    log_evidence: float

    @property
    def message(self) -> str:
        """What was seen, and what cannot be told from it."""
        return (
            f"{self.first!r} and {self.second!r} agree on {self.agreement:.0%} of {self.items} "
            f"common items; {self.expected:.0%} expected from their own habits and item "
            "difficulty. Copying, one person with two accounts, or shared misreading cannot be "
            "told apart, nor who copied"
        )


@dataclass(frozen=True)
class CollusionSearch:
    """What was found, and how much could be looked at.

    Attributes:
        flagged: The pairs, the strongest evidence first.
        judged: Number of pairs with enough common items and enough information.
        pairs: Number of pairs with any common item.
        background: ``c0``, the coupling of the average pair.
    """

    flagged: tuple[Collusion, ...]
    judged: int
    pairs: int
    background: float


class Pairs(NamedTuple):
    """Of the pairs with 10 common items or more: who, and what their items add up to."""

    first: np.ndarray
    second: np.ndarray
    items: np.ndarray
    agreement: np.ndarray
    expected: np.ndarray
    information: np.ndarray
    likelihood: np.ndarray
    met: int


def find_collusion(answers: Any) -> CollusionSearch:
    """Pairs of annotators who agree beyond their habits and their items; formulas at the top.

    Args:
        answers: :class:`Answers`, or ints ``[items, annotators]`` with -1 for no answer;
            abstentions are left out.

    Returns:
        A :class:`CollusionSearch`. The family-wise level is .05.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 2, 200)
        >>> matrix = np.where(rng.random((200, 8)) < 0.3, 1 - truth[:, None], truth[:, None])
        >>> matrix[:, 7] = matrix[:, 2]
        >>> found = find_collusion(matrix)
        >>> [(pair.first, pair.second) for pair in found.flagged]
        [(2, 7)]
    """
    answers = as_answers(answers)
    pairs, names = pair_evidence(answers), answers.annotators
    background = int(np.argmax(pairs.likelihood[:, :-1].sum(axis=0)))
    judged = pairs.information >= np.log(max(len(pairs.items), 1) / LEVEL)
    bar = np.log(max(int(judged.sum()), 1) / LEVEL)
    own = tally(answers.annotator, answers.label, (len(names), len(answers.classes) + 1))[:, :-1]
    own = own / np.maximum(own.sum(axis=1, keepdims=True), 1)  # how often each label is given
    habits = (own[pairs.first] * own[pairs.second]).sum(axis=1)
    beyond = judged & (pairs.agreement > np.maximum(pairs.expected, habits))
    found = {}
    for k in np.flatnonzero(beyond & (_log_evidence(pairs.likelihood, background) > bar)):
        reference = max(background, _of_a_third(pairs, int(k)))
        evidence = float(_log_evidence(pairs.likelihood[k], reference))
        if evidence > bar:
            found[evidence, -k] = Collusion(
                names[pairs.first[k]],
                names[pairs.second[k]],
                int(pairs.items[k]),
                float(pairs.agreement[k]),
                float(pairs.expected[k]),
                evidence,
            )
    flagged = tuple(found[key] for key in sorted(found, reverse=True))
    return CollusionSearch(flagged, int(judged.sum()), pairs.met, float(COUPLINGS[background]))


def _log_evidence(likelihood: np.ndarray, reference: int) -> Any:
    """``log E`` by ``L`` ``[..., couplings]``."""
    more = likelihood[..., reference + 1 :] - likelihood[..., reference, None]
    return logsumexp(more, axis=-1) - np.log(more.shape[-1])


def _of_a_third(pairs: Pairs, k: int) -> int:
    """The place of the largest coupling that both of a pair surely have with one and the same."""
    likely, two = pairs.likelihood, (pairs.first[k], pairs.second[k])
    sure = np.zeros((2, 1 + max(pairs.second)), int)
    for one, row in zip(two, sure, strict=True):
        own = (pairs.first == one) | (pairs.second == one)
        least = likely[own] >= likely[own].max(axis=1, keepdims=True) - 1.0
        row[(pairs.first + pairs.second)[own] - one] = np.argmax(least, axis=1)
    sure[:, list(two)] = 0
    return min(int(sure.min(axis=0).max()), MOST_SHARED)


def pair_evidence(answers: Answers) -> Pairs:
    """The evidence of every pair of annotators with 10 common items or more."""
    given = answers.label < len(answers.classes)
    item, annotator, label = (
        part[given] for part in (answers.item, answers.annotator, answers.label)
    )
    m, d = len(answers.annotators), len(answers.classes)
    model, q = _easy_or_hard(item, annotator, label, len(answers.items), m, d)
    log_q = jnp.log(jnp.maximum(q, 1e-30))
    totals: list[np.ndarray] = [np.zeros((6 + len(COUPLINGS), 0))]
    met = 0
    for left, right, pair, keys, some in _common_items(item, annotator, m):
        met += some
        ratio, *more = _evaluate(model, log_q, (item, annotator, label), left, right)
        parts = [label[left] == label[right], *more, *(np.log1p(c * ratio) for c in COUPLINGS)]
        sums = [np.bincount(pair, part, len(keys)) for part in parts]
        totals.append(
            np.stack([keys // m, keys % m, np.bincount(pair, minlength=len(keys)), *sums])
        )
    first, second, items, same, information, expected, *likelihood = np.concatenate(totals, axis=1)
    who, likelihood = (first.astype(int), second.astype(int)), np.stack(likelihood, axis=1)
    return Pairs(*who, items, same / items, expected / items, information, likelihood, met)


def _easy_or_hard(
    item: np.ndarray, annotator: np.ndarray, label: np.ndarray, items: int, m: int, d: int
) -> tuple[Model, Array]:
    """The model of ``2d`` states, started from vote shares: easy as far as the votes agree."""
    votes = majority(item, label, items, d)
    easy = votes.max(axis=1, keepdims=True)
    start = jnp.concatenate([votes * easy, votes * (1.0 - easy)], axis=1)
    rows = item, annotator, label
    return fit(start, rows, jnp.ones(items), m=m, classes=d, iterations=ITERATIONS)


def _common_items(
    item: np.ndarray, annotator: np.ndarray, m: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]]:
    """Blocks of first annotators: rows of both answers, number of the pair, keys, pairs met.

    Only pairs with enough common items; a key is ``first * m + second``. ``item`` is sorted.
    """
    size = np.bincount(item)
    starts = np.append(0, np.cumsum(size))
    rows = np.argsort(annotator, kind="stable")
    work = np.bincount(annotator, size[item].astype(float), m)
    ends = np.cumsum(np.bincount(annotator, minlength=m))
    widest = max(1, BLOCK // max(m, 1))
    low = 0
    while low < m:
        high = low + max(1, int((np.cumsum(work[low : low + widest]) <= BLOCK).sum()))
        own = rows[(ends[low - 1] if low else 0) : ends[high - 1]]
        length = size[item[own]]
        left = np.repeat(own, length)
        offset = np.arange(len(left)) - np.repeat(np.cumsum(length) - length, length)
        right = np.repeat(starts[item[own]], length) + offset
        later = annotator[right] > annotator[left]
        left, right = left[later], right[later]
        code = (annotator[left] - low).astype(np.int64) * m + annotator[right]
        count = np.bincount(code, minlength=(high - low) * m)
        enough = count >= COMMON
        kept = enough[code]
        keys = np.flatnonzero(enough)
        number = np.cumsum(enough) - 1
        some = int((count > 0).sum())
        yield left[kept], right[kept], number[code[kept]], keys + low * m, some
        low = high


def _evaluate(model: Model, log_q: Array, rows: Any, left: Any, right: Any) -> np.ndarray:
    """``R``, divergence and expected agreement of each pair of answers, chunk by chunk."""
    item, annotator, label = rows
    n, chunk = len(left), min(CHUNK, max(1, ENTRIES // model.log_channels[0].size))
    found = np.empty((3, n), np.float32)
    for low in range(0, n, chunk):
        part = slice(low, min(low + chunk, n))
        padding = (0, chunk - (part.stop - low))
        one, two = (np.pad(rows[part], padding) for rows in (left, right))
        said = item[one], annotator[one], label[one], annotator[two], label[two]
        values = _couple(model.log_channels, log_q, *said)
        found[:, part] = np.asarray(values)[:, : part.stop - low]
    return found


@jax.jit
def _couple(
    log_channels: Array, log_q: Array, item: Any, a: Any, label_a: Any, b: Any, label_b: Any
) -> Array:
    """``R``, divergence, expected agreement ``[3, n]``."""
    without = log_q[item] - log_channels[a, label_a] - log_channels[b, label_b]
    q = jax.nn.softmax(without, axis=1)[:, None, :]
    first, second = (jnp.exp(log_channels[who, :-1]) for who in (a, b))  # no abstentions here
    alone = (q * first * second).sum(axis=2)
    coupled = (q * jnp.minimum(first, second)).sum(axis=2)
    alone, coupled = (
        jnp.maximum(jnp.concatenate([part, 1.0 - part.sum(axis=1, keepdims=True)], axis=1), 1e-6)
        for part in (alone, coupled)
    )
    cell = jnp.where(label_a == label_b, label_a, alone.shape[1] - 1)[:, None]
    ratio = jnp.take_along_axis(coupled / alone, cell, axis=1)[:, 0] - 1.0
    divergence = (coupled * jnp.log(coupled / alone)).sum(axis=1)
    return jnp.stack([ratio, divergence, alone[:, :-1].sum(axis=1)])
