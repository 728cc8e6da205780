"""Scores that explain themselves: :func:`score` one report, :func:`rank_reports` several.

The eager front door. Labels of any type come in, are checked once, and a record comes out. A
ranking is decided by what each pair of reports is paid at its own midpoint
(:mod:`jgram.contrasts`); the published score of each report stands beside it for reference. Inside
``jit`` use ``jgram.plugin_log_score`` and :func:`jgram.contrasts.payoffs`.

Intervals are for fresh records of the same kind. The test behind a separated pair is right also for
these very records with fixed labels: it asks whether the two reports might be swapped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, exp, isfinite, log, log2
from operator import attrgetter
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import jgram.approximation as approximation
import jgram.assumptions as assumptions
import jgram.comparisons as comparisons
import jgram.contrasts as contrasts
import jgram.display as display
import jgram.evidence as evidence
from jgram.alignment import Alignment, align, most_likely
from jgram.arrays import Array, Key, float64, labelled
from jgram.binding import AS_GIVEN, Bound, Intake, bind, with_features
from jgram.comparisons import ESTIMABLE, Retention, holm, normal_quantile, sign_test
from jgram.contrasts import Payoffs, noise_tests_of, records_of
from jgram.data.columns import named_columns
from jgram.evidence import CHECKED, FEWEST_REPORTS, GOLD, OBSERVATIONS, OTHERS
from jgram.findings import Evidence, Finding, class_counts, diagnose, relabelling
from jgram.gold import accuracies
from jgram.kernels import Kernel, Linear, describe
from jgram.noise import FEWEST_GROUPS, grouped_noise_tests
from jgram.observed import Features
from jgram.ranking import (
    CLASSES,
    RECORDS,
    PairComparison,
    PairReading,
    RankedReport,
    Ranking,
    ScoreReport,
    StratumKeeps,
    Taken,
)
from jgram.ranks import RankedPairs, Ranks, rank_pairs, ranks_left
from jgram.slices import Slices, slices
from jgram.uncertainty import padded_groups, padded_length, uncertainties

__all__ = ["compare", "rank_reports", "score"]


def score(
    x_hat: Any,
    y: Any = None,
    kernel: Kernel | str | None = None,
    intake: Intake = AS_GIVEN,
    *,
    name: str = "x_hat",
    confidence: float = 0.95,
    **options: Any,
) -> ScoreReport:
    """Score one report and say how far the number may be trusted.

    Args:
        x_hat: Labels ``[n]`` of any type (text, ints, pandas, polars, ...), or soft reports
            ``[n, d]`` with rows on the simplex; or files of any size, observations and all
            (:func:`jgram.bind_files`).
        y: Observations: a table of mixed columns, categories ``[n]``, numbers ``[n]`` or
            ``[n, k]``, or rows of class probabilities.
        kernel: ``None`` takes what fits the observations, without looking at the reports
            (:func:`jgram.binding.bind_observations`).
        intake: How both are read (:class:`jgram.Intake`).
        name: What messages call the report.
        confidence: Confidence level of the interval.
        **options: Fields of ``intake`` by name, as ``weights=`` or ``missing=``.

    Returns:
        A :class:`ScoreReport`.

    Raises:
        ValueError: Labels or observations that do not fit; the message names the column, the value
            and the fix.

    Example:
        >>> report = score(["yes", "yes", "no", "no"] * 10, ["+", "+", "-", "-"] * 10)
        >>> round(report.score, 4), report.class_counts
        (0.0625, {'no': 20, 'yes': 20})

    Reference: Definitions 4.4 and 4.10 of *Data Reliability Scoring*.
    """
    intake = replace(intake, **options)
    if y is None and not isinstance(x_hat, Bound):
        raise ValueError("expected y=, what is observed of the records, got none")
    reports = x_hat if isinstance(x_hat, Bound) else {name: x_hat}
    judged = _judgement(reports, y, kernel, intake, confidence)
    few = filter(None, [_few_groups(judged.groups)])
    (report,) = _published(judged, (*judged.bound.findings, *few))
    return report


def rank_reports(
    reports: Any,
    y: Any = None,
    kernel: Kernel | str | None = None,
    intake: Intake = AS_GIVEN,
    *,
    gold: Any = None,
    differing: Sequence[str] = (),
    weigh: str = CLASSES,
    confidence: float = 0.95,
    key: Key[Array, ""] | None = None,
    **options: Any,
) -> Ranking:
    """Rank reports of the same records by reliability, and say which can be told apart.

    Every pair is judged at its own midpoint, on the records that both label, by all evidence that
    there is: observations, the reports that are not judged (three or more), right labels of some
    records. Kinds of evidence that agree are joined; where two contradict each other, the order is
    in doubt (:mod:`jgram.evidence`). All statements hold together at the confidence level.

    Args:
        reports: Name to labels ``[n]``, all of the same ``n`` records, or a data frame of them; two
            or more. Or all soft ``[n, d]``: what they tell apart counts, not how boldly
            (:func:`jgram.alignment.align`).
        y: Observations of these records, as in :func:`score`; without them three or more reports
            are judged by one another.
        kernel: ``None`` takes what fits the observations; frozen for all reports.
        intake: How both are read (:class:`jgram.Intake`).
        gold: Right labels ``[n]`` of some records at random, missing (``None``) for all others.
        differing: Names of two reports or more where the right labels are not of records at random,
            but at random of those where these reports differ
            (:func:`jgram.evidence.rows_to_check`): the surest way to tell them apart.
        weigh: What weighs alike: ``"classes"``, however rare, or ``"records"``, for the order of
            shares of right labels (:func:`jgram.contrasts.by_records`). A finding says where two
            reports change places by it.
        confidence: Confidence level of intervals, sets of ranks and separations.
        key: Random key of the simultaneous intervals, ``jax.random.key(0)`` unless given: they
            differ between keys in the third digit, and nothing else does.
        **options: Fields of ``intake`` by name, as ``weights=`` or ``missing=``.

    Returns:
        A :class:`Ranking`.

    Raises:
        ValueError: Fewer than two reports, different records, or values that do not fit.

    Example:
        >>> truth = np.arange(200) % 2
        >>> noisy = np.where(np.arange(200) % 7 == 0, 1 - truth, truth)
        >>> ranking = rank_reports({"noisy": noisy, "truth": truth}, truth.astype(str))
        >>> ranking.conclusion, round(ranking.reports[1].keeps, 2)
        ('truth is the most reliable.', 0.71)
    """
    if not (isinstance(reports, Mapping | Bound) or hasattr(type(reports), "columns")):
        raise ValueError(
            f"expected reports by name, {{name: labels}} or a data frame, got "
            f"{type(reports).__name__}"
        )
    reports = reports if isinstance(reports, Bound) else named_columns(reports, "reports")
    if (count := len(reports.reports if isinstance(reports, Bound) else reports)) < 2:
        raise ValueError(f"expected two reports or more to rank, got {count}: use score for one")
    intake = replace(intake, **options)
    judged = _judgement(reports, y, kernel, intake, confidence, gold)
    if len(judged.bound.classes) < 2:
        only = ", ".join(map(repr, judged.bound.classes))
        raise ValueError(
            f"expected two classes or more, got {only} alone in every report: list all possible "
            "labels in classes="
        )
    with float64():
        judged = _questioned(_weighed(_with_enough_features(judged), weigh))
        judged = _joined(judged, differing)
        key = jax.random.key(0) if key is None else key
        beyond = getattr(judged.joined, "beyond", np.zeros(len(judged.pairs.means)))
        about = judged.told_noise, judged.groups, beyond, confidence
        verdicts = jax.device_get(_verdicts(key, judged.pairs, *about))
    return _ranking(judged, verdicts)


def compare(
    first: Any,
    second: Any,
    y: Any,
    kernel: Kernel | str | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    **options: Any,
) -> PairComparison:
    """Which of two reports of the same records is more reliable, by how much, and how surely.

    Args:
        first: Labels ``[n]`` or soft reports ``[n, d]``.
        second: The other report of these records.
        y: Observations of these records, as in :func:`score`.
        kernel: ``None`` takes what fits the observations.
        names: What the result calls the two.
        **options: As :func:`rank_reports`, ``intake`` and its fields among them.

    Returns:
        A :class:`PairComparison`.

    Raises:
        ValueError: As :func:`rank_reports`.

    Example:
        >>> truth = np.arange(200) % 2
        >>> noisy = np.where(np.arange(200) % 7 == 0, 1 - truth, truth)
        >>> found = compare(noisy, truth, truth.astype(str), names=("noisy", "truth"))
        >>> found.better, found.separated
        ('truth', True)
    """
    return rank_reports({names[0]: first, names[1]: second}, y, kernel, **options).pairs[0]


# --------------------------------------------------------------------------------------------


class _Question(NamedTuple):
    """What could be wrong with the order of a pair (:mod:`jgram.assumptions`)."""

    p_value: float | None = None
    alike: bool = False
    flattered: bool = False  # the payoffs say the same, which may be what flatters a report
    strata: tuple[Any, ...] = ()


class _Verdicts(NamedTuple):
    """What follows of the payoffs, for the pairs and for all of them together."""

    ranked: RankedPairs
    z: Any
    p_values: Any
    needed: Any
    means: Any  # of the better report of every pair first
    kept: Retention


class _Judged(NamedTuple):
    """Reports and all that is found of them; pairs in the order of ``np.triu_indices(k, 1)``."""

    bound: Bound
    aligned: Alignment
    groups: np.ndarray | None  # blocks of time among them
    confidence: float
    length: int = 1  # of a block of time
    pairs: Any = None
    alone: Any = None  # payoffs of every report paired with itself
    noise: Any = None  # p-values of the tests against noise
    product: Any = None  # the kernel times the reports as they were given
    left: approximation.LeftOut | None = None
    uncertain: Any = None  # the published scores of records out of memory
    published: tuple[ScoreReport, ...] = ()  # of reports that are judged by one another
    kinds: Mapping[str, Payoffs] = {}  # of all evidence, where there is other than observations
    joined: evidence.Joined | None = None
    told_noise: Any = None  # as ``noise``, by all evidence together
    weigh: str = CLASSES
    otherwise: Payoffs | None = None  # where the other one of classes and records weighs alike
    expected: Any = None  # accuracies by the other reports
    plain: Any = None  # payoffs before any pair was made to weigh every record alike
    questions: Sequence[_Question] = ()

    @property
    def soft(self) -> bool:
        """Whether reports are probabilities, of which no posterior is fitted."""
        return self.aligned.reports.ndim > 2 and not self.bound.numbers

    @property
    def names(self) -> list[str]:
        return list(self.bound.reports)


def _judgement(
    reports: Mapping[str, Any] | Bound,
    y: Any,
    kernel: Any,
    intake: Intake,
    confidence: float,
    gold: Any = None,
) -> _Judged:
    """Reports bound, aligned and judged."""
    normal_quantile(confidence)  # refuses what is no confidence
    if y is None and kernel is not None:
        raise ValueError("expected y=, the observations that kernel= compares, got none")
    if isinstance(reports, Bound) and not (y is None and gold is None):
        raise ValueError("expected no y=, kernel= or gold= beside files that are bound with them")
    bound = reports if isinstance(reports, Bound) else bind(reports, y, kernel, intake, gold)
    judge = _judge_stream if bound.stream else _judge if bound.is_observed else _judge_by_others
    d, n, length = len(bound.classes), bound.observed.size, intake.block_length
    aligned = align(np.stack(list(bound.reports.values())), d, bound.weights)
    judged = _Judged(bound, aligned, bound.groups, confidence)
    with float64():
        if length is None and d > 1:
            paid = judge(judged._replace(groups=None)).pairs
            series = np.concatenate([paid.differences[:, None], paid.values], axis=1)
            length = comparisons.suggested_block_length(series)
        length = 1 if length is None else length
        if not 1 <= length <= max(n // 2, 1):
            raise ValueError(
                f"expected block_length in 1..{n // 2}, half of the records, got {length}"
            )
        groups = bound.groups if length == 1 else comparisons.blocks(n, length)
        judged = judged._replace(groups=groups, length=length)
        return judge(judged) if d > 1 else judged  # one class says nothing


def _judge(judged: _Judged) -> _Judged:
    """Payoffs of every pair and of every report alone, and tests of each report against noise."""
    bound, reports, groups = judged.bound, judged.aligned.reports, judged.groups
    n, k, numbered = bound.observed.size, len(reports), reports.ndim > 2
    about = {"num_classes": len(bound.classes), "weights": bound.weights}
    left = approximation.leave_blocks_out(bound.observed, reports, **about)
    # Few distinct shapes, few compilations: pad with records of weight 0, each its own group.
    padding = padded_length(n) - n
    observed = bound.observed.padded(padding)
    about["weights"] = np.pad(np.ones(n) if bound.weights is None else bound.weights, (0, padding))
    padded = np.pad(reports, [(0, 0), (0, padding)] + [(0, 0)] * numbered)
    about["groups"] = groups if groups is None else padded_groups(groups, padding)
    found = contrasts.products(observed, padded, **about)
    pairs = alone = contrasts.payoffs_alone(found)
    if k > 1 and all(labelled(one).all() for one in reports):
        pairs = contrasts.payoffs_of_pairs(found, contrasts.pairs_of(k))
    elif k > 1:
        pairs = contrasts.pair_payoffs(observed, padded, complete=False, **about)
    noise = noise_tests_of(found) if groups is None else grouped_noise_tests(observed, found)
    pairs, alone, noise, product = jax.device_get((pairs, alone, noise, found.product))
    pairs, alone = (records_of(paid, lambda part: part[..., :n]) for paid in (pairs, alone))
    if numbered and k > 1:
        pairs = evidence.with_boldness(pairs, reports, groups)
        pairs = pairs._replace(gains=None) if bound.numbers else pairs
    product = product[:, :n] @ np.linalg.inv(judged.aligned.matrices)
    return judged._replace(
        pairs=pairs, alone=alone, noise=noise, told_noise=noise, product=product, left=left
    )


def _judge_stream(judged: _Judged) -> _Judged:
    """The same of records out of memory, at the records of a sample."""
    stream: Any = judged.bound.stream
    pairs, alone, noise, published, left = stream.judge(judged.aligned.names)
    uncertain = dict(zip(judged.names, published, strict=True))
    return judged._replace(
        pairs=pairs, alone=alone, noise=noise, told_noise=noise, left=left, uncertain=uncertain
    )


def _judge_by_others(judged: _Judged) -> _Judged:
    """Payoffs of every pair by the reports that are left, and each report by all others."""
    bound, labels, gold = judged.bound, judged.aligned.reports, judged.bound.gold
    if judged.soft and gold is None:
        raise ValueError("expected y= or gold= to rank soft reports, got none: give either")
    d = len(bound.classes)
    if gold is not None and (judged.soft or len(labels) < FEWEST_REPORTS):  # it alone judges them
        rows, groups = np.flatnonzero(labelled(gold)), judged.groups
        what = "numbers" if bound.numbers else "labels"
        bound = replace(bound, description=f"evidence: {len(rows)} right {what}")
        judged = judged._replace(
            bound=bound, pairs=evidence.by_gold(labels, gold, d, bound.weights, groups)
        )
        near = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        seen = [evidence.observed_gold(gold[rows], d)] * len(labels)
        alone = _each_alone(judged._replace(groups=near), seen, rows)
    else:
        judged, alone = _others(judged)
    published = tuple(part for one in alone for part in _published(one))
    noise = np.array([float(one.noise[0]) for one in alone])
    return judged._replace(noise=noise, told_noise=noise, published=published)


def _others(judged: _Judged) -> tuple[_Judged, list[_Judged]]:
    """Every pair by the reports that are left, the share of labels of each that all others expect
    to be right, and each report judged by them."""
    bound, labels = judged.bound, judged.aligned.reports
    about = (len(bound.classes), bound.weights, judged.groups)
    pairs, posteriors = evidence.by_others(labels, *about)
    seen = [Features(jax.numpy.asarray(q), Linear()) for q in posteriors]
    expected = evidence.expected_accuracies(labels, posteriors, bound.weights)
    return judged._replace(pairs=pairs, expected=expected), _each_alone(judged, seen)


def _each_alone(judged: _Judged, seen: Sequence[Any], rows: Any = slice(None)) -> list[_Judged]:
    """Every report alone, through observations of its own of some records."""
    bound, labels = judged.bound, judged.aligned.reports
    weights, found = None if bound.weights is None else bound.weights[rows], []
    for name, own, observed in zip(judged.names, labels[:, rows], seen, strict=True):
        alone = align(own[None], len(bound.classes), weights)
        part = replace(bound, reports={name: own}, observed=observed, weights=weights)
        found.append(_judge(_Judged(part, alone, judged.groups, judged.confidence)))
    return found


def _in_question(judged: _Judged, names: Sequence[str]) -> list[int]:
    """Numbers of the reports on whose differences somebody looked up who is right."""
    every = judged.names
    if not names:
        return []
    if lost := [name for name in names if name not in every] or len(set(names)) < 2:
        raise ValueError(f"differing: expected two of {', '.join(every)}, got {lost or names}")
    if judged.aligned.reports.ndim > 2:
        raise ValueError(
            "differing: expected labels, got numbers or soft reports, which all differ"
        )
    if judged.bound.gold is None:
        raise ValueError("differing: expected gold=, the right labels of these records, got none")
    if not judged.bound.is_observed and len(every) < FEWEST_REPORTS:
        raise ValueError("differing: expected y= or three reports beside the records checked")
    return [every.index(name) for name in names]


def _joined(judged: _Judged, differing: Sequence[str]) -> _Judged:
    """All kinds of evidence together, where there are others than observations."""
    bound, labels, between = judged.bound, judged.aligned.reports, _in_question(judged, differing)
    several, observed = len(labels) >= FEWEST_REPORTS and not judged.soft, bound.is_observed
    about = (len(bound.classes), bound.weights, judged.groups)
    lead = OBSERVATIONS if observed else OTHERS if several else GOLD
    kinds = {lead: judged.pairs}
    if observed and several:
        others, alone = _others(judged)
        noise = np.minimum(judged.noise, [one.noise[0] for one in alone])
        noise = np.minimum(2 * noise, 1.0)  # by either, and both are looked at
        judged = judged._replace(told_noise=noise, expected=others.expected)
        kinds[OTHERS] = others.pairs
    if between and bound.gold is not None:
        kinds[CHECKED] = evidence.by_checks(labels, bound.gold, between, *about)
    elif bound.gold is not None and lead != GOLD:
        kinds[GOLD] = evidence.by_gold(labels, bound.gold, *about)
    if [*kinds] == [OBSERVATIONS]:
        return judged
    if judged.weigh == RECORDS:
        for kind in {*kinds} & {OTHERS, GOLD} - {lead}:
            kinds[kind] = contrasts.by_records(kinds[kind], judged.groups)
    joined = evidence.join(kinds, normal_quantile(judged.confidence), judged.groups)
    return judged._replace(pairs=joined.pairs, kinds=kinds, joined=joined)


def _weighed(judged: _Judged, weigh: str) -> _Judged:
    """Pairs by classes or by records, and by the other one of the two."""
    if weigh not in (CLASSES, RECORDS):
        raise ValueError(f"weigh: expected {CLASSES!r} or {RECORDS!r}, got {weigh!r}")
    soft, stream = judged.aligned.reports.ndim > 2, judged.pairs.by_records is None
    if weigh == RECORDS and soft:
        raise ValueError("weigh='records': expected labels, got soft reports: weigh classes")
    if weigh == RECORDS and stream:
        raise ValueError("weigh='records': expected records that fit into memory, got a stream")
    if soft or stream:
        return judged
    classes, records = judged.pairs, contrasts.by_records(judged.pairs, judged.groups)
    if weigh == CLASSES:
        return judged._replace(otherwise=records)
    return judged._replace(pairs=records, otherwise=classes, weigh=weigh, left=None)


def _with_enough_features(judged: _Judged) -> _Judged:
    """Random features doubled until their error hardly shows, and that error in all covariances."""
    left: Any = judged.left
    if left is None:
        return judged
    kernel, size = judged.bound.observed.kernel, _num_features(judged)
    fixed = kernel.stands_for is None or judged.bound.stream is not None
    while not fixed and size < approximation.MOST_FEATURES:
        short = approximation.shortfall(left, _paired_errors(judged.pairs))
        if short <= 1:
            break
        size = min(size << ceil(2 * log2(short)), approximation.MOST_FEATURES)
        judged = _judge(judged._replace(bound=with_features(judged.bound, size)))
        left = judged.left
    away = left.means - left.means.mean(axis=0)
    added = np.einsum("bpi,bpj->pij", away, away) * (len(away) - 1) / len(away)
    pairs = judged.pairs
    return judged._replace(pairs=pairs._replace(covariance=pairs.covariance + added))


def _questioned(judged: _Judged) -> _Judged:
    """Pairs that share more than the truth with every record weighing alike, and why."""
    pairs, labels, groups = judged.pairs, judged.aligned.reports, judged.groups
    count = len(pairs.means)
    if pairs.sureness is None or labels.ndim > 2:
        return judged._replace(questions=[_Question()] * count)
    observed, d = judged.bound.observed, len(judged.bound.classes)
    w = np.ones(observed.size) if judged.bound.weights is None else judged.bound.weights
    drawn = 1.0 if judged.bound.stream is None else judged.bound.stream.drawn
    rows, often, functions = assumptions.instruments(observed, w * drawn, d + 3)
    near, tests, weighted, strata = None if groups is None else groups[rows], [], [], []
    for number, (i, j) in enumerate(contrasts.pairs_of(len(labels))):
        paid = contrasts.one_pair(pairs, number)
        own = np.where(paid.weights[rows] > 0, often, 0.0)
        sure = assumptions.standing(paid.sureness[rows], own) - 0.5
        tools = np.column_stack([functions, assumptions.of_observations(sure, functions, own)])
        found = assumptions.disagreement_test(labels[i][rows], labels[j][rows], tools, own, near)
        scale = paid.weights.sum() / max(own.sum(), 1e-300)
        tests.append(found._replace(excess=found.excess * scale))
        alike, kept = assumptions.record_weighted(paid, groups)
        weighted.append(alike)
        strata.append(tuple(kept))
    same = contrasts.stacked(weighted)
    z, before = (_signed(one, groups)[0] for one in (same, pairs))
    turned = assumptions.turning(tests, z, 1 - judged.confidence)
    flattered = turned & (before * np.sign(z) >= normal_quantile(judged.confidence))
    weighed = jax.tree.map(
        lambda new, old: np.where(turned.reshape(-1, *[1] * (np.ndim(old) - 1)), new, old),
        same,
        pairs,
    )
    told = [one.p_value for one in tests], turned.tolist(), flattered.tolist(), strata
    return judged._replace(pairs=weighed, plain=pairs, questions=[*map(_Question, *told)])


def _signed(pairs: Payoffs, groups: Any) -> tuple[np.ndarray, np.ndarray]:
    """``z`` and p-values of the sign tests of all pairs."""
    z, p = jax.vmap(sign_test, (0, 0, None))(pairs.differences, pairs.weights, groups)
    return np.asarray(z), np.asarray(p)


def _num_features(judged: _Judged) -> int:
    return 2 * len(judged.bound.observed.kernel.frequencies)


def _paired_errors(pairs: Payoffs) -> np.ndarray:
    """Standard errors of the differences of the mean payoffs of every pair."""
    part = pairs.covariance
    return np.sqrt(np.maximum(part[:, 0, 0] + part[:, 1, 1] - 2 * part[:, 0, 1], 0.0))


@partial(jax.jit, static_argnames="confidence")
def _verdicts(
    key: Any, pairs: Payoffs, noise: Any, groups: Any, beyond: Any, confidence: float
) -> _Verdicts:
    each = (pairs.differences, pairs.weights, groups, beyond)
    z, p_values = jax.vmap(sign_test, (0, 0, None, 0))(*each)
    needed = jax.vmap(partial(comparisons.records_needed, confidence=confidence), (0, 0, None, 0))
    turned, means, covariance = z < 0, pairs.means, pairs.covariance
    means = jnp.where(turned[:, None], means[:, ::-1], means)
    covariance = jnp.where(turned[:, None, None], covariance[:, ::-1, ::-1], covariance)
    degrees = comparisons.share_degrees(pairs.values, pairs.means, pairs.weights, groups)
    quantile = comparisons.student_quantile(norm.ppf(0.5 + confidence / 2), degrees)
    ranked = rank_pairs(key, pairs, noise, groups=groups, beyond=beyond, confidence=confidence)
    kept = comparisons.retention(means, covariance, quantile)
    return _Verdicts(ranked, z, p_values, needed(*each), means, kept)


def _published(judged: _Judged, more: Sequence[Finding] = ()) -> Iterator[ScoreReport]:
    """The published score of each report, how much of it is not noise, and what to know of it."""
    bound, d = judged.bound, len(judged.bound.classes)
    if judged.published:
        yield from judged.published
        return
    about = {"num_classes": d, "weights": bound.weights, "product": judged.product}
    uncertain = judged.uncertain or uncertainties(bound.reports, bound.observed, **about)
    classes, few = () if bound.numbers else bound.classes, _few_groups(judged.groups)
    for i, (name, labels) in enumerate(bound.reports.items()):
        found, seen, p_value, noise = uncertain[name], 0.0, 1.0, 1.0
        if judged.alone is not None:
            seen, p_value = float(judged.alone.seen[i]), float(judged.noise[i])
            noise = float(judged.told_noise[i])
        looked = (found, seen, None if few else noise, judged.confidence, bound.similar)
        findings = diagnose(Evidence(labels, bound.observed, classes, *looked))
        n, value = found.weights.sum(), found.log_score
        known = isfinite(value) and not any(f.level == "fatal" for f in findings)
        bounded = known and isfinite(found.standard_error)
        volume = 2.0 * float(np.sum(np.log(found.line.lengths))) if known else 0.0
        counts = map(_number, class_counts(labels, d, found.weights))
        left = None if judged.left is None else judged.left.log_scores[:, i]
        yield ScoreReport(
            name=name, confidence=judged.confidence, seen=seen, noise_p_value=p_value,
            num_records=_number(n), observations=bound.description, findings=(*findings, *more),
            kernel=describe(bound.observed.kernel), gram_rank=int(found.line.elimination.rank),
            class_counts=dict(zip(classes, counts, strict=False)),
            log_score=value if known else None,
            score=(exp(value) if value > -700 else None) if known else 0.0,
            counts_log_score=value + 2 * d * log(n) if known else None,
            standard_error=found.standard_error if bounded else None,
            interval=found.interval(judged.confidence) if bounded else None,
            bias=None if found.bias is None else float(found.bias),
            normalised_score=d * exp(value / (2 * d)) if known else 0.0,
            hadamard_ratio=exp(min(0.0, value - volume)) if known else 0.0,
            log_score_features_error=approximation.half_width(left, judged.confidence),
        )  # fmt: skip


def _number(value: Any) -> int | float:
    return round(value) if abs(value - round(value)) < 1e-9 * max(value, 1.0) else float(value)


def _ranking(judged: _Judged, verdicts: _Verdicts) -> Ranking:
    bound, d, ranked = judged.bound, len(judged.bound.classes), verdicts.ranked
    names, published, order = judged.names, list(_published(judged)), _order(ranked)
    place, best = {names[i]: position for position, i in enumerate(order)}, names[order[0]]
    chosen = enumerate(contrasts.pairs_of(len(names)).tolist())
    pairs = [_pair(judged, verdicts, p, i, j) for p, (i, j) in chosen]
    pairs.sort(key=lambda pair: sorted((place[pair.better], place[pair.worse])))
    pairs = [
        replace(pair, taken=_taken(bound, pair)) if best in (pair.better, pair.worse) else pair
        for pair in pairs
    ]
    better = np.zeros((len(names), len(names)), bool)
    for pair in pairs:
        better[names.index(pair.better), names.index(pair.worse)] = pair.told
    ranks = jax.device_get(ranks_left(better, ranked.noise))
    known = _accuracies(judged)
    reports = tuple(_ranked(judged, ranked, published[i], ranks, i, known[i]) for i in order)
    seen, d = reports[0].published.seen, 0 if bound.numbers else d
    looked = (
        *_renamed(judged), _few_groups(judged.groups), _capped(judged), _apart(pairs),
        _dependent(pairs), _places(judged, pairs), _hidden(seen, d), _not_estimable(reports),
    )  # fmt: skip
    return Ranking(
        reports=reports, pairs=tuple(pairs), seen=seen, num_classes=d, weigh=judged.weigh,
        most_reliable=tuple(names[i] for i in order if ranks.foremost[i]),
        num_records=_number(bound.observed.size if bound.weights is None else bound.weights.sum()),
        confidence=judged.confidence, observations=bound.description, block_length=judged.length,
        findings=(*bound.findings, *filter(None, looked)),
        slices=_slices(judged, order) if bound.by else None,
    )  # fmt: skip


def _taken(bound: Bound, pair: PairComparison) -> tuple[Taken, ...]:
    """Which class is taken for which between two reports, as they were given."""
    one, two = bound.reports[pair.better], bound.reports[pair.worse]
    if one.ndim > 1:
        one, two = most_likely(one), most_likely(two)
    both, d, names = (one >= 0) & (two >= 0), len(bound.classes), bound.classes
    w = None if bound.weights is None else bound.weights[both]
    counts = np.bincount(one[both].astype(np.int64) * d + two[both], w, d * d).reshape(d, d)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    cells = sorted(zip(*np.nonzero(counts), strict=True), key=lambda c: (c[0] == c[1], -counts[c]))
    return tuple(
        Taken(names[i], names[j], _number(counts[i, j]), float(shares[i, j])) for i, j in cells
    )


def _pair_of(judged: _Judged, i: int, j: int) -> int:
    """The place of two reports in :func:`jgram.contrasts.pairs_of`."""
    (i, j), k = sorted((i, j)), len(judged.names)
    return i * (2 * k - i - 1) // 2 + j - i - 1


def _slices(judged: _Judged, order: Sequence[int]) -> Slices:
    """What each report keeps of the best one in every slice, by the payoffs of their pair."""
    names, (best, *others), paid = judged.names, order, {}
    for i in others:
        number = _pair_of(judged, best, i)
        pairs = judged.plain if judged.questions[number].alike else judged.pairs
        way = slice(None, None, 1 if best < i else -1)
        paid[names[i]] = np.asarray(pairs.values[number][way]), np.asarray(pairs.weights[number])
    by, groups = judged.bound.by, judged.groups
    return slices(by, names[best], paid, groups, confidence=judged.confidence)


def _accuracies(judged: _Judged) -> list[dict[str, Any]]:
    """Accuracies of all reports, where there is gold."""
    labels, gold, joined = judged.aligned.reports, judged.bound.gold, judged.joined
    if gold is None or joined is None or CHECKED in joined.contrasts or labels.ndim > 2:
        return [{}] * len(labels)
    rows = np.flatnonzero(gold >= 0)
    part = labels[:, rows]
    right = np.where(part < 0, np.nan, part == gold[rows])
    weights = None if judged.bound.weights is None else judged.bound.weights[rows]
    first, second = contrasts.pairs_of(len(labels)).T
    readings = [] if judged.expected is None else [judged.expected]
    for kind, values in joined.contrasts.items():
        reading, known = np.zeros(len(labels)), np.nan_to_num(values)
        np.add.at(reading, first, known)
        np.subtract.at(reading, second, known)
        readings += [reading] * (kind != GOLD)
    found = accuracies(right, readings, weights, confidence=judged.confidence)
    return [
        {"accuracy": float(mean), "accuracy_interval": (float(low), float(high))}
        for mean, low, high in zip(found.mean, found.low, found.high, strict=True)
    ]


def _order(ranked: RankedPairs) -> list[int]:
    """By value, reports inside the noise last, and never against a separated pair."""
    left, order = list(range(len(ranked.values))), []
    while left:
        free = [i for i in left if not ranked.better[left, i].any()] or left
        order.append(min(free, key=lambda i: (bool(ranked.noise[i]), -float(ranked.values[i]))))
        left.remove(order[-1])
    return order


def _ranked(
    judged: _Judged, ranked: RankedPairs, published: ScoreReport, ranks: Ranks, i: int, known: Any
) -> RankedReport:
    ratio, interval = (None, None) if ranked.noise.all() else _share(ranked.keeps, i)
    best, shares = int(ranked.best), None
    if interval is not None and i != best:  # never against the tests that decide
        interval = _with(interval, 1.0, not ranked.better[best, i])
        interval = _with(interval, 0.0, True) if ranked.noise[i] else interval
    if judged.left is not None and ratio is not None:
        means = judged.left.means[:, 0 if i == best else _pair_of(judged, best, i)]
        one, two = means.T if i < best else means.T[::-1]
        shares = np.ones(len(one)) if i == best else one / two
    return RankedReport(
        name=published.name, keeps=ratio, keeps_interval=interval, published=published,
        first_rank=int(ranks.first[i]), last_rank=int(ranks.last[i]),
        noise_p_value=float(judged.told_noise[i]), inside_noise=bool(ranked.noise[i]),
        keeps_features_error=approximation.half_width(shares, judged.confidence), **known,
    )  # fmt: skip


def _with(interval: tuple[float, float], share: float, held: bool) -> tuple[float, float]:
    """An interval that holds a share that a test does not exclude, and ends at one that it does."""
    low, high = interval
    return (min(low, share), max(high, share)) if held else (min(low, share), min(high, share))


def _share(found: Retention, i: int) -> tuple[float | None, tuple[float, float] | None]:
    """A share and its interval, or ``None`` where it cannot be estimated."""
    if not found.estimable[i] or not isfinite(found.upper[i]):
        return None, None
    return float(found.ratio[i]), (float(found.lower[i]), float(found.upper[i]))


def _pair(judged: _Judged, verdicts: _Verdicts, p: int, i: int, j: int) -> PairComparison:
    """What is said of pair ``p``, of the reports ``i`` and ``j``."""
    d, left, ranked = len(judged.bound.classes), judged.left, verdicts.ranked
    question, way = judged.questions[p], -1 if verdicts.z[p] < 0 else 1
    p_value, needed = float(verdicts.p_values[p]), float(verdicts.needed[p])
    separated = bool(ranked.better[i, j] or ranked.better[j, i])
    better, worse = (judged.names[i], judged.names[j])[::way]
    one, two = verdicts.means[p]
    ratio, interval = _share(verdicts.kept, p)
    if interval is not None:
        interval = _with(interval, 1.0, p_value > 1 - judged.confidence)
    ratios = logs = None
    if left is not None and ratio is not None:
        first, second = left.means[:, p, ::way].T
        ratios, logs = second / first, _log_ratio(first, second, d)
    return PairComparison(
        better=better, worse=worse, retention=ratio, retention_interval=interval, p_value=p_value,
        adjusted_p_value=float(ranked.p_values[i, j]), separated=separated, alike=question.alike,
        disagreement_p_value=question.p_value, seen=float(judged.pairs.seen[p]),
        num_records=_number(judged.pairs.weights[p].sum()),
        log_ratio=None if ratio is None else float(_log_ratio(one, two, d)),
        records_needed=None if separated or not isfinite(needed) else needed,
        retention_features_error=approximation.half_width(ratios, judged.confidence),
        log_ratio_features_error=approximation.half_width(logs, judged.confidence),
        doubts=tuple(_doubts(judged, p, way, separated)),
        readings=tuple(_readings(judged, p, way)),
        strata=tuple(_kept_in(stratum, way) for stratum in question.strata),
        **(_overturn(judged, p) if separated else {}),
    )  # fmt: skip


def _doubts(judged: _Judged, p: int, way: int, separated: bool) -> Iterator[str]:
    """What could have turned the order of a pair, or keeps it from being told."""
    joined, quantile, agree = judged.joined, normal_quantile(judged.confidence), False
    if joined is not None and (separated or joined.against[p]):
        z = {
            kind: way * values[p] / max(joined.errors[kind][p], 1e-12)
            for kind, values in joined.contrasts.items()
        }
        agree = any(z[kind] > quantile for kind in z if kind != OBSERVATIONS)
        if against := joined.against[p]:
            yield f"{against[0]} against {against[1]}"
        elif not isfinite(z.get(OBSERVATIONS, 0.0)) and not z.get(GOLD, -1.0) > 0:
            yield "other reports alone"
    if separated and judged.questions[p].flattered and not agree:
        yield "shared errors"


def _readings(judged: _Judged, p: int, way: int) -> Iterator[PairReading]:
    """What each kind of evidence says of a pair, by ``D`` and its error."""
    joined, quantile = judged.joined, normal_quantile(judged.confidence)
    if joined is None:
        return
    for kind, values in joined.contrasts.items():
        contrast = values[p] * way
        error, wide = joined.errors[kind][p], joined.wide[kind][p]
        if not isfinite(contrast):
            yield PairReading(kind, None, None, 1.0)
            continue
        low, middle, high = (
            (1 - part / 2) / (1 + part / 2) if part > -2 else float("inf")
            for part in (contrast + quantile * wide, contrast, contrast - quantile * wide)
        )
        z, needed = abs(contrast) / max(error, 1e-12), None
        if kind in (GOLD, CHECKED) and 0 < z < quantile:
            rows = (judged.kinds[kind].weights[p] > 0).sum()
            needed = float(rows * ((quantile + normal_quantile(0.6)) / z) ** 2)
        bounded = (float(low), float(high)) if isfinite(high) else None
        yield PairReading(kind, float(middle), bounded, float(2 * NormalDist().cdf(-z)), needed)


def _kept_in(stratum: Any, way: int) -> StratumKeeps:
    better, worse = stratum.means[::way]
    if better <= 0 or not isfinite(stratum.error):
        return StratumKeeps(stratum.share, None, None)
    return StratumKeeps(stratum.share, worse / better, stratum.error / better)


def _overturn(judged: _Judged, p: int) -> dict[str, Any]:
    """What would overturn the order of a pair that is separated."""
    pairs, quantile = judged.pairs, normal_quantile(judged.confidence)
    differences, w = pairs.differences[p], pairs.weights[p]
    found = {"leaning": assumptions.leaning(differences, w, quantile)}
    if pairs.gains is None:
        return found if judged.bound.numbers else {}
    return found | {"breakdown_share": assumptions.breakdown_share(differences, pairs.gains[p], w)}


def _log_ratio(one: Any, two: Any, d: int) -> Any:
    """The midpoint contrast of two mean payoffs."""
    return 4 * (d - 1) * (one - two) / (one + two)


# Findings -----------------------------------------------------------------------------------


def _renamed(judged: _Judged) -> Iterator[Finding]:
    """What is said of reports that are read with their classes renamed."""
    bound, aligned = judged.bound, judged.aligned
    reports = [
        (name, labels if labels.ndim == 1 else most_likely(labels))
        for name, labels in bound.reports.items()
    ]
    for report, names, near in zip(reports, aligned.names, aligned.nearest, strict=True):
        if (names == np.arange(len(names))).all():
            continue
        if not bound.numbers:
            yield relabelling(reports[near], (*report, names), bound.classes, bound.weights)
            continue
        (name, _), (other, _) = report, reports[near]
        said = (
            f"the larger {name!r} is, the smaller {other!r}: {name!r} is read the other way round"
        )
        yield Finding("relabelling", "warning", said, "check which of the two has its sign right")


def _capped(judged: _Judged) -> Finding | None:
    """Random features whose error shows, although there are as many as there may be."""
    left = judged.left
    if left is None:
        return None
    errors = np.sqrt(approximation.jackknife(left.means[..., 0] - left.means[..., 1]))
    # The paired errors have the error of the features in them.
    paired = _paired_errors(judged.kinds.get(OBSERVATIONS, judged.pairs))
    short = approximation.shortfall(left, np.sqrt(np.maximum(paired**2 - errors**2, 0.0)))
    said = (
        f"{_num_features(judged):,} random features stand for the kernel: to the difference of two "
        f"reports they add an error of {short / 3:.1f} standard errors, which intervals include"
    )
    advice = (
        "the order and its tests hold under these features as they are; for shares nearer to the "
        "exact kernel's rank some of the records"
    )
    found = Finding("random features", "note", said, advice, short / 3, "ranking")
    return found if short > 1 else None


def _few_groups(groups: Any) -> Finding | None:
    """Groups that are too few to tell a report from noise."""
    count = FEWEST_GROUPS if groups is None else len(np.unique(groups))
    said = (
        f"fewer than {FEWEST_GROUPS} groups of records ({count}): whether a report is more than "
        "noise is not judged"
    )
    advice = f"collect records of {FEWEST_GROUPS} groups or more, or shorter blocks of time"
    found = Finding("few groups", "warning", said, advice, count)
    return found if count < FEWEST_GROUPS else None


def _apart(pairs: Sequence[PairComparison]) -> Finding | None:
    """Pairs of reports that have no record in common."""
    found = [pair for pair in pairs if pair.num_records == 0]
    names = ", ".join(f"{pair.better} and {pair.worse}" for pair in found[:3])
    names += ", ..." if len(found) > 3 else ""
    said = f"{len(found)} of {len(pairs)} pairs label no record in common ({names})"
    advice = "nothing tells which of two such reports is better: have both label some records"
    told = Finding("nothing in common", "warning", said, advice, len(found), "ranking")
    return told if found else None


def _dependent(pairs: Sequence[PairComparison]) -> Finding | None:
    """Pairs whose errors depend on the observations, the clearest of them in full."""
    found = sorted((pair for pair in pairs if pair.alike), key=attrgetter("disagreement_p_value"))
    if not found:
        return None
    pair, *others = found
    kept = ", ".join(display.share(one.keeps) for one in pair.strata)
    also = f" (and {len(others)} more pair{'s' * (len(others) != 1)})" if others else ""
    said = (
        f"errors of {pair.better} and {pair.worse}{also} depend on the observations (p "
        f"{_p_value(pair.disagreement_p_value)}): {pair.worse} keeps {kept} of {pair.better}, from "
        "the quarter of the records where the observations are least sure to the surest"
    )
    advice = (
        "between these reports every record weighs alike, and an order that payoffs tell too is in "
        "doubt: have somebody label some records where they differ"
    )
    return Finding("shared errors", "warning", said, advice, len(found) / len(pairs), "ranking")


def _places(judged: _Judged, pairs: Sequence[PairComparison]) -> Finding | None:
    """Pairs that change places where records weigh alike, not classes, or the other way round."""
    if judged.otherwise is None:
        return None
    names, chosen = judged.names, contrasts.pairs_of(len(judged.names))
    z, p_values = _signed(judged.otherwise, judged.groups)
    values = np.zeros((len(names),) * 2)
    values[tuple(chosen.T)] = np.subtract(*judged.otherwise.means.T)
    order = np.argsort((values.T - values).sum(axis=1), kind="stable")
    told = {(pair.better, pair.worse) for pair in pairs if pair.separated}
    turned = [
        (p, names[i], names[j])
        for p, way, pair in zip(holm(p_values.tolist()), z, chosen, strict=True)
        for i, j in [pair if way > 0 else pair[::-1]]
        if p <= 1 - judged.confidence and (names[j], names[i]) in told
    ]
    if not turned:
        return None
    p, better, worse = min(turned)
    other = RECORDS if judged.weigh == CLASSES else CLASSES
    also = f" (and {len(turned) - 1} more pairs)" if len(turned) > 1 else ""
    said = (
        f"{better} and {worse}{also} change places where {other} weigh alike, not {judged.weigh} "
        f"(p {_p_value(p)}): then the order is {', '.join(names[i] for i in order)}"
    )
    advice = (
        "say which counts: where records weigh alike the order is that of the shares of right "
        f"labels, where classes do rare ones count as much (weigh={other!r}, --weigh {other})"
    )
    return Finding("weights", "warning", said, advice, len(turned) / len(pairs), "ranking")


def _p_value(value: float | None) -> str:
    return "<.001" if value is not None and value < 0.001 else f"= {value:.2g}"


def _hidden(seen: float, d: int) -> Finding | None:
    """What the data do not see, in words."""
    if not d or seen >= 0.7 * (d - 1):
        return None
    said = (
        f"{d} classes differ in {d - 1} independent way{'s' * (d != 2)}, of which the data see "
        f"{max(seen, 0):.1f}"
    )
    advice = "shares are of what can be seen: observe something that tells more classes apart"
    return Finding("visible differences", "note", said, advice, seen, "ranking")


def _not_estimable(reports: Sequence[RankedReport]) -> Finding | None:
    """That no report's share can be said."""
    if any(report.keeps is not None for report in reports):
        return None
    said = (
        "what reports keep of one another cannot be estimated: the better one of a pair is paid "
        f"less than {ESTIMABLE:g} standard errors more than noise"
    )
    advice = "collect more records, or observations that depend more on the truth"
    return Finding("not estimable", "warning", said, advice, concerns="ranking")
