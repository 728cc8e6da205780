"""Evidence of several kinds for the same pair: observations, the other reports, gold for some rows.

Each kind gives every pair the same reading, payoffs (:mod:`jgram.contrasts`), with another ``y``:

- **the other reports**: the posterior of the truth by all reports but the two, ``y = q_(-ij)``,
  ``log q_(-ij)[s] = log pi[s] + sum_(l != i, j) log C_l[s, x_l]``, under the linear kernel. ``pi``
  and the channels ``C_l`` are fitted to all reports (:mod:`jgram.annotators.posterior`); swapping
  the two leaves ``q_(-ij)`` as it is, so that the test of a pair stays exact. Copies of either
  are left out with it;
- **gold**: the right labels of some records at random, under the delta kernel;
- **checked records**: right labels of records where the reports in question differ
  (:func:`rows_to_check`). ``D`` is the difference of their shares of right labels over their mean
  above chance, where they agree taken to be right. It assumes nothing and settles: a kind that it
  contradicts is left out of the pair.

Of reports of numbers ``y`` is the mean of the other reports' scores, or the right numbers, both
under the linear kernel.

With ``D = (a - b) / m`` the relative contrast of a pair, ``m`` the mean of ``a`` and ``b``, and
``V`` its variance, kinds are joined record by record: payoffs over ``m``, weighted by
``1/(V + B^2)``. The other reports beside another kind have ``B`` = :data:`BETWEEN`: they share
errors, however many records there are, and a garbled copy of one report would else decide between
two equal ones; that variance stays in the errors of what is joined. Where both kinds read
:data:`FEWEST_READ` pairs or more and differ by more than ``V`` and :data:`BETWEEN`, the rest is the
``B`` of the observations (by moments, DerSimonian and Laird), which lean to what they show. A kind
that pays neither report three standard errors more than noise abstains, as do other reports that
see fewer of the ways in which classes differ than observations do (:data:`LEAST_SEEN`: they merge
some); where all do, payoffs over their mean of all pairs say what they can. Kinds *contradict* each
other where their intervals of ``D``, of the other reports with ``B``, are disjoint: then something
is shared that should not be, and nothing here says by whom.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jgram.contrasts as contrasts
from jgram.annotators.posterior import fit, majority
from jgram.arrays import Bool, Float, Int, Num, float64, labelled
from jgram.comparisons import ESTIMABLE, mean_covariance
from jgram.contrasts import Payoffs, one_pair, pairs_of, payoffs, records_of, stacked
from jgram.counted import representatives
from jgram.kernels import Delta, Linear
from jgram.observed import Features, Observed, observe
from jgram.uncertainty import padded_groups, padded_length

__all__ = [
    "BETWEEN", "CHECKED", "FEWEST_REPORTS", "GOLD", "OBSERVATIONS", "OTHERS", "Joined", "by_checks",
    "by_gold", "by_others", "copies", "expected_accuracies", "join", "observed_gold",
    "rows_to_check", "with_boldness",
]  # fmt: skip

OBSERVATIONS, OTHERS, GOLD = "observations", "other reports", "gold"
CHECKED = "checked records"
BETWEEN = 0.2  # standard deviation of D by what reports share with one another, beyond noise
LEAST_SEEN = 0.7  # by the other reports, of what observations see
FOLDED = 4096  # records beyond which those labelled alike are one; below, shapes stay few
FEWEST_READ = 6  # pairs that both kinds read, for how far they differ
SAME_NUMBERS = 0.999  # correlation beyond which one report is taken for a copy of another
FEWEST_REPORTS = 3  # of which one is left where two are judged


class Joined(NamedTuple):
    """Pairs judged by all kinds of evidence together.

    Attributes:
        pairs: Payoffs of every pair, over their mean, all kinds together.
        beyond: Standard deviation ``[p]`` of ``D`` by what reports share, which the covariance has.
        contrasts: By kind, ``D`` of every pair ``[p]``, ``nan`` where the kind abstains.
        errors: By kind, standard errors of ``D`` ``[p]``.
        wide: The same with what reports share with one another, beside other kinds of evidence.
        against: For every pair, two kinds whose intervals are disjoint, or ``None``.
    """

    pairs: Payoffs
    beyond: Float[np.ndarray, " p"]
    contrasts: Mapping[str, Float[np.ndarray, " p"]]
    errors: Mapping[str, Float[np.ndarray, " p"]]
    wide: Mapping[str, Float[np.ndarray, " p"]]
    against: tuple[tuple[str, str] | None, ...]


def by_others(
    labels: Num[np.ndarray, "k n ..."], num_classes: int, weights: Any = None, groups: Any = None
) -> tuple[Payoffs, Float[np.ndarray, "k n d"]]:
    """Every pair through the reports that are not judged, and what those say of each report.

    Args:
        labels: Three reports or more, negative where missing, or numbers ``[k, n, 2]``.

    Returns:
        Payoffs of the pairs, in the order of ``np.triu_indices(k, 1)``, and the posteriors of the
        truth by all reports but each one; of numbers 1 and the mean of the others.

    Raises:
        ValueError: Fewer than three reports.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.integers(0, 2, 400)
        >>> said = [np.where(rng.random(400) < e, 1 - x, x) for e in (0.1, 0.2, 0.3)]
        >>> found, _ = by_others(np.stack(said), 2)
        >>> (found.means[:, 0] > found.means[:, 1]).tolist()
        [True, True, True]
    """
    k, n = labels.shape[:2]
    if k < FEWEST_REPORTS:
        raise ValueError(
            f"expected {FEWEST_REPORTS} reports or more to judge them by one another, got {k}: "
            "observe something that depends on the truth (y=, --observation), or add a report"
        )
    w = np.ones(n) if weights is None else np.asarray(weights, float)
    if labels.ndim == 3:
        return _by_other_numbers(labels, w, groups)
    kept, folded, place = labels, w, slice(None)
    if groups is None and n > FOLDED:  # records labelled alike are one, that many times
        first, place = representatives(list(labels), [num_classes] * k)
        kept, folded = labels[:, first], np.bincount(place, w)
    padding = padded_length(len(folded)) - len(folded)
    padded = np.pad(kept, [(0, 0), (0, padding)], constant_values=-1)
    same, chosen = copies(labels, w), pairs_of(k)
    left = [*(same[pair].any(axis=0) for pair in chosen), *same]
    with float64():
        counts = jnp.asarray(np.pad(folded, (0, padding)))
        said = _channels(jnp.asarray(padded), counts, num_classes)
        without = [np.asarray(_without(said, some))[: len(folded)] for some in left]
    seen = map(_numbers, without[: len(chosen)])
    found = _each_paid(seen, kept, [folded] * len(chosen), groups, num_classes)
    found = records_of(found, lambda part: part[..., place])
    both = (labels[chosen] >= 0).all(axis=1)
    alone = np.stack(without[len(chosen) :])[:, place]
    return found._replace(weights=np.where(both, w, 0.0)), alone


def _each_paid(
    seen: Iterable[Observed], reports: np.ndarray, weights: Iterable[Any], groups: Any, d: Any
) -> Payoffs:
    """Payoffs of every pair through observations of its own, padded to few distinct shapes, on the
    host, and without what is asked of others."""
    found, absent = [], -1 if reports.ndim == 2 else 0
    for observed, pair, w in zip(seen, pairs_of(len(reports)), weights, strict=True):
        size = observed.size
        padding = padded_length(size) - size
        near = None if groups is None else padded_groups(groups, padding)
        more = [(0, 0), (0, padding)] + [(0, 0)] * (reports.ndim - 2)
        with float64():
            two = np.pad(reports[pair], more, constant_values=absent)
            about = {"num_classes": d, "weights": np.pad(w, (0, padding)), "groups": near}
            paid = jax.device_get(payoffs(observed.padded(padding), two, **about))
        found.append(records_of(paid, lambda part, size=size: part[..., :size]))
    return stacked(found)._replace(sureness=None, gains=None)


def expected_accuracies(
    labels: Num[np.ndarray, "k n ..."], posteriors: Float[np.ndarray, "k n d"], weights: Any = None
) -> Float[np.ndarray, " k"] | None:
    """The share of labels that all other reports expect to be right; ``None`` of numbers.

    Args:
        labels: Reports, negative where missing.
        posteriors: From :func:`by_others`.

    Example:
        >>> labels, sure = np.array([[0, 1, -1]]), np.array([[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]])
        >>> expected_accuracies(labels, sure).round(2).tolist()
        [0.85]
    """
    if labels.ndim > 2:
        return None
    w = (labels >= 0) * (1.0 if weights is None else np.asarray(weights, float))
    said = np.take_along_axis(posteriors, np.maximum(labels, 0)[..., None], axis=2)[..., 0]
    return (w * said).sum(axis=1) / np.maximum(w.sum(axis=1), 1e-300)


def _by_other_numbers(
    z: np.ndarray, weights: np.ndarray, groups: Any
) -> tuple[Payoffs, np.ndarray]:
    """:func:`by_others` of numbers: ``y`` is the mean of the others, under the linear kernel."""
    present: Any = z.any(axis=2)
    values = z[..., 1] - z[..., 0]
    cross = (weights * values) @ values.T
    lengths = np.sqrt(np.maximum(np.diag(cross), 1e-300))
    same = np.asarray(np.abs(cross) > SAME_NUMBERS * np.outer(lengths, lengths))
    np.fill_diagonal(same, True)

    def mean(left: Any) -> tuple[np.ndarray, np.ndarray]:
        count = present[~left].sum(axis=0)
        return (values[~left].sum(axis=0) / np.maximum(count, 1))[:, None], count > 0

    y, seen = zip(*(mean(same[pair].any(axis=0)) for pair in pairs_of(len(z))), strict=True)
    pairs = _each_paid(map(_numbers, y), z, [weights * one for one in seen], groups, None)
    alone = [np.column_stack([np.ones(z.shape[1]), mean(one)[0]]) for one in same]
    return with_boldness(pairs._replace(by_records=None), z, groups), np.stack(alone)


def _numbers(y: np.ndarray) -> Features:
    """Numbers ``[n, m]`` as observations, in double precision."""
    with float64():
        return Features(jnp.asarray(y), Linear())


@partial(jax.jit, static_argnames="num_classes")
def _channels(labels: Any, weights: Any, num_classes: int) -> Any:
    """``log pi`` ``[d]``, and ``log C_l[s, x_l]`` of each label ``[k, n, d]``, 0 where missing."""
    k, n = labels.shape
    item = jnp.where(labels >= 0, jnp.arange(n), n).ravel()
    annotator, outcome = jnp.repeat(jnp.arange(k), n), jnp.maximum(labels, 0).ravel()
    start = majority(item, outcome, n + 1, num_classes)
    rows = (item, annotator, outcome)
    counted = jnp.append(weights, 0.0)
    model, _ = fit(start, rows, counted, m=k, classes=num_classes)
    said = model.log_channels[jnp.arange(k)[:, None], jnp.maximum(labels, 0)]
    return model.log_prior, jnp.where(labels[..., None] >= 0, said, 0.0)


@jax.jit
def _without(said: Any, left: Any) -> Any:
    """The posterior ``[n, d]`` by all reports but those left out ``[k]``."""
    prior, parts = said
    return jax.nn.softmax(prior + jnp.sum(jnp.where(left[:, None, None], 0.0, parts), 0), axis=1)


def with_boldness(pairs: Payoffs, soft: Float[np.ndarray, "k n d"], groups: Any = None) -> Payoffs:
    """Payoffs of soft reports with what each record does to how bold they were made."""
    first, second = np.triu_indices(len(soft), 1)
    w = soft.sum(axis=2) * np.max(pairs.weights, axis=0)
    w /= np.maximum(w.sum(axis=1, keepdims=True), 1e-300)
    lengths = np.sum((soft - np.einsum("kn,knd->kd", w, soft)[:, None]) ** 2, axis=2)
    away = lengths / np.maximum(np.sum(w * lengths, axis=1), 1e-300)[:, None] - 1
    change = np.stack([away[first], away[second]], axis=1) * pairs.means[:, :, None] / 2

    def covariance(values: Any) -> np.ndarray:
        return contrasts.sampled_covariance(values, pairs.means, pairs.weights, groups)

    values: Any = pairs.values - change
    differences = pairs.differences - change[:, 0] + change[:, 1]
    rounding = np.abs(differences) < 1e-9 * np.abs(values).max()
    return pairs._replace(
        values=values,
        differences=np.where(rounding, 0.0, differences),
        covariance=pairs.covariance + covariance(values) - covariance(pairs.values),
    )


def copies(
    labels: Int[np.ndarray, "k n"], weights: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, "k k"]:
    """Which reports say the same on all but one in a hundred records, themselves included.

    Example:
        >>> labels = np.array([[0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 1, 1]])
        >>> copies(labels, np.ones(4)).sum(axis=1).tolist()
        [2, 2, 1]
    """
    found = np.eye(len(labels), dtype=bool)
    for i, one in enumerate(labels):
        both = weights * ((one >= 0) & (labels >= 0))
        found[i] |= (both * (labels == one)).sum(axis=1) > 0.99 * np.maximum(both.sum(axis=1), 1e-9)
    return found


def by_gold(
    labels: Num[np.ndarray, "k n ..."],
    gold: Num[np.ndarray, "n ..."],
    num_classes: int,
    weights: Any = None,
    groups: Any = None,
) -> Payoffs:
    """Every pair through the records whose right label is known.

    Args:
        labels: Reports, negative where missing, or soft ones or numbers ``[k, n, d]``.
        gold: Right labels ``[n]``, negative where nobody looked, or right numbers ``[n, 2]``.

    Returns:
        Payoffs of the pairs, 0 with weight 0 where there is no gold.

    Example:
        >>> gold = np.where(np.arange(60) < 30, np.arange(60) % 2, -1)
        >>> labels = np.stack([np.arange(60) % 2, np.arange(60) // 2 % 2])
        >>> found = by_gold(labels, gold, 2)
        >>> int((found.weights > 0).sum()), bool(found.means[0, 0] > found.means[0, 1])
        (30, True)
    """
    rows, count = np.flatnonzero(labelled(gold)), len(labels) * (len(labels) - 1) // 2
    w = np.ones(len(gold)) if weights is None else np.asarray(weights, float)
    near = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
    with float64():
        observed = observed_gold(gold[rows], num_classes)
    part = _each_paid([observed] * count, labels[:, rows], [w[rows]] * count, near, num_classes)
    if labels.ndim > 2:
        part = with_boldness(part, labels[:, rows], near)

    def whole(values: np.ndarray) -> np.ndarray:
        full = np.zeros((*values.shape[:-1], len(gold)))
        full[..., rows] = values
        return full

    return records_of(part, whole)


def rows_to_check(
    labels: Int[np.ndarray, "k n"], count: int, seed: int = 0
) -> Int[np.ndarray, " c"]:
    """Records where reports in question differ, at random within the strata of what they say.

    Each has the same chance, so that what is found of them is unbiased.

    Args:
        labels: The reports in question, negative where missing.
        count: How many records.
        seed: Of the draws.

    Raises:
        ValueError: Fewer records where they differ.

    Example:
        >>> labels = np.array([[0, 0, 1, 1, 0], [0, 1, 1, 0, 1]])
        >>> rows_to_check(labels, 2).tolist() in ([1, 3], [3, 4])
        True
    """
    lowest = np.where(labels < 0, np.iinfo(int).max, labels).min(axis=0)
    rows = np.flatnonzero((labels >= 0).any(axis=0) & (labels.max(axis=0) > lowest))
    if not 1 <= count <= len(rows):
        raise ValueError(
            f"expected 1 to {len(rows)} records to check, those where the reports differ, got "
            f"{count}"
        )
    rng = np.random.default_rng(seed)
    order = rows[np.lexsort((rng.random(len(rows)), *labels[:, rows]))]
    return np.sort(order[((np.arange(count) + rng.random()) * len(rows) / count).astype(int)])


def by_checks(
    labels: Int[np.ndarray, "k n"],
    right: Int[np.ndarray, " n"],
    between: Sequence[int],
    num_classes: int,
    weights: Any = None,
    groups: Any = None,
) -> Payoffs:
    """Pairs of the reports in question through records where they differ and one was checked.

    Args:
        labels: Reports, negative where missing.
        right: Right labels ``[n]`` of :func:`rows_to_check`, negative where nobody looked.
        between: Numbers of the reports in question.

    Returns:
        Payoffs of all pairs, nothing for those that are not in question.

    Example:
        >>> labels = np.array([[0, 0, 1, 1, 0, 1], [0, 1, 1, 0, 1, 1]])
        >>> found = by_checks(labels, np.array([-1, 0, -1, 1, 1, -1]), [0, 1], 2)
        >>> found.differences.tolist()
        [[0.0, 0.5, 0.0, 0.5, -0.5, 0.0]]
    """
    n, found = labels.shape[1], []
    w = np.ones(n) if weights is None else np.asarray(weights, float)
    for pair in pairs_of(len(labels)):
        both, own = (labels[pair] >= 0).all(axis=0), labels[pair]
        apart = both & (own[0] != own[1])
        share = w @ apart / max(w @ both, 1e-300)
        checked = np.where(apart & (right >= 0) & np.isin(pair, between).all(), w, 0.0)
        hits = share * (own == right) * (checked > 0)
        total = max(checked.sum(), 1e-300)
        known = checked.sum() > 0
        means = known * (hits @ checked / total + 1 - share - 1 / num_classes)
        gap = hits[0] - hits[1]  # not centred: under the null its mean is 0
        level = (hits.sum(axis=0) - hits.sum(axis=0) @ checked / total) * (checked > 0)
        away = np.stack([level + gap, level - gap]) / 2
        covariance = mean_covariance(away, checked, groups)
        values = np.where(checked > 0, hits + 1 - share - 1 / num_classes, 0.0)
        figures: Any = (values, gap, checked, means, covariance, means.mean())
        found.append(Payoffs(*figures))
    return stacked(found)


def observed_gold(gold: Num[np.ndarray, "m ..."], num_classes: int) -> Observed:
    """Gold as an observation: right labels ``[m]``, or right numbers ``[m, 2]``."""
    return observe(Delta(num_classes), gold) if gold.ndim == 1 else _numbers(gold)


def contrast(paid: Payoffs) -> tuple[np.ndarray, np.ndarray]:
    """``D`` of every pair and its standard error, ``nan`` where the payoffs say nothing."""
    a, b = np.asarray(paid.means, float).T
    cov = np.asarray(paid.covariance, float)
    middle = (a + b) / 2
    spread = np.sqrt(np.maximum(np.stack([cov[:, 0, 0], cov[:, 1, 1]]), 1e-300))
    known = (np.stack([a, b]) > np.maximum(ESTIMABLE * spread, 1e-6)).any(axis=0) & (middle > 0)
    middle = np.where(known, middle, 1.0)
    found = (a - b) / middle
    one, two = (1 - found / 2) / middle, -(1 + found / 2) / middle
    square = one**2 * cov[:, 0, 0] + two**2 * cov[:, 1, 1] + 2 * one * two * cov[:, 0, 1]
    error = np.sqrt(np.maximum(square, 0.0))
    return np.where(known, found, np.nan), np.where(known, error, np.nan)


def join(
    kinds: Mapping[str, Payoffs], quantile: float, groups: Int[np.ndarray, " n"] | None = None
) -> Joined:
    """All kinds of evidence together; formulas at the top of this module.

    Args:
        kinds: Payoffs of the same pairs of the same records by kind, the leading kind first.
        quantile: Standard errors of an interval of ``D``.

    Returns:
        :class:`Joined`.
    """
    read = {kind: contrast(paid) for kind, paid in kinds.items()}
    if OBSERVATIONS in kinds and OTHERS in kinds:
        seen = kinds[OTHERS].seen, kinds[OBSERVATIONS].seen
        blind = (seen[0] < LEAST_SEEN * seen[1]) & np.isfinite(read[OBSERVATIONS][0])
        found, error = read[OTHERS]
        read[OTHERS] = np.where(blind, np.nan, found), np.where(blind, np.nan, error)
    told = {kind: found for kind, (found, _) in read.items()}
    errors = {kind: error for kind, (_, error) in read.items()}
    first, several = next(iter(kinds.values())), len(kinds) > 1
    between = {OTHERS: BETWEEN if several else 0.0}
    if OBSERVATIONS in kinds and OTHERS in kinds:
        between[OBSERVATIONS] = _excess(read[OBSERVATIONS], read[OTHERS])
    scaled = {kind: _scaled(paid, *read[kind]) for kind, paid in kinds.items()}
    square = [error**2 + between.get(kind, 0.0) ** 2 for kind, (_, error) in scaled.items()]
    precision = 1 / np.maximum(square, 1e-12)
    speaks = np.isfinite([*told.values()])
    precision *= speaks | ~speaks.any(axis=0)
    shares = dict(zip(kinds, precision / precision.sum(axis=0), strict=True))
    both = several & (speaks.sum(axis=0) > 1)
    beyond = np.where(both, shares.get(OTHERS, 0.0) * between[OTHERS], 0.0)
    wide = errors | {OTHERS: np.hypot(errors.get(OTHERS, 0.0), between[OTHERS])}
    joined, against = [], []
    for p in range(len(beyond)):
        speak = [kind for kind in kinds if np.isfinite(told[kind][p])]
        apart = _contradiction(speak, told, wide, p, quantile)
        settled = apart is not None and CHECKED in speak
        against.append(None if settled else apart)
        parts = [
            (one_pair(paid, p), (1.0 if settled else shares[kind][p]) / scaled[kind][0][p])
            for kind, paid in kinds.items()
            if kind == CHECKED or not settled
        ]
        joined.append(_together(one_pair(first, p), parts, groups))
    pairs = stacked(joined)
    more = beyond[:, None, None] ** 2 * np.array([[1.0, -1.0], [-1.0, 1.0]]) / 4
    pairs = pairs._replace(covariance=pairs.covariance + more)
    return Joined(pairs, beyond, told, errors, wide, tuple(against))


def _scaled(paid: Payoffs, contrast: np.ndarray, error: np.ndarray) -> tuple[Any, Any]:
    """What payoffs of every pair are divided by, and the standard error of their difference then:
    their mean, of all pairs where a kind abstains."""
    middles, cov = np.asarray(paid.means, float).mean(axis=1), np.asarray(paid.covariance, float)
    known = np.isfinite(contrast)
    scale = np.where(known, middles, max(float(np.mean(np.maximum(middles, 0.0))), 1e-12))
    spread = np.sqrt(np.maximum(cov[:, 0, 0] + cov[:, 1, 1] - 2 * cov[:, 0, 1], 1e-300)) / scale
    return scale, np.where(known, error, spread)


def _excess(observed: tuple[Any, Any], others: tuple[Any, Any]) -> float:
    """Standard deviation of ``D`` by which observations and other reports differ beyond noise."""
    square = observed[1] ** 2 + others[1] ** 2
    both = np.isfinite(square)
    if both.sum() < FEWEST_READ:
        return 0.0
    weight = both / (np.where(both, square, 1.0) + BETWEEN**2)
    away = np.where(both, (observed[0] - others[0]) ** 2 - square, 0.0)
    return float(np.sqrt(max(weight @ away / weight.sum() - BETWEEN**2, 0.0)))


def _contradiction(
    kinds: Sequence[str], told: Any, errors: Any, p: int, quantile: float
) -> tuple[str, str] | None:
    """Two kinds whose intervals are furthest apart, if any are."""
    gaps = {
        (one, two): abs(told[one][p] - told[two][p]) - quantile * (errors[one][p] + errors[two][p])
        for i, one in enumerate(kinds)
        for two in kinds[i + 1 :]
    }
    worst = max(gaps, key=lambda pair: gaps[pair], default=None)
    return worst if worst is not None and gaps[worst] > 0 else None


def _together(plain: Payoffs, parts: Sequence[tuple[Payoffs, float]], groups: Any) -> Payoffs:
    """The sum of payoffs times factors, on the records of the leading kind."""
    w = np.asarray(plain.weights)
    means, covariance = np.zeros(2), np.zeros((2, 2))
    away, differences = np.zeros_like(plain.values, float), np.zeros(len(w))
    for paid, factor in parts:
        own, frequencies = np.asarray(paid.values) - paid.means[:, None], np.asarray(paid.weights)
        share = np.where(w > 0, frequencies / np.where(w > 0, w, 1.0), 0.0)
        share *= factor * w.sum() / max(float(frequencies.sum()), 1e-300)
        means += factor * paid.means
        away += share * own
        differences += share * paid.differences
        covariance += factor**2 * (paid.covariance - mean_covariance(own, frequencies, groups))
    covariance += mean_covariance(away, w, groups)
    factor = sum(factor for paid, factor in parts if paid.gains is not None)
    return plain._replace(
        values=means[:, None] + away,
        differences=differences,
        means=means,
        covariance=covariance,
        gains=None if plain.gains is None else factor * plain.gains,
    )
