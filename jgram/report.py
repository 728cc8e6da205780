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
import numpy as np
from jax.scipy.stats import norm

import jgram.display as display
from jgram.alignment import Alignment, align, most_likely
from jgram.approximation import (
    MOST_FEATURES,
    LeftOut,
    half_width,
    jackknife,
    leave_blocks_out,
    shortfall,
)
from jgram.arrays import Array, Key, float64, labelled
from jgram.assumptions import (
    breakdown_share,
    disagreement_test,
    instruments,
    leaning,
    of_observations,
    record_weighted,
    standing,
    turning,
)
from jgram.binding import AS_GIVEN, Bound, Intake, bind, with_features
from jgram.comparisons import (
    ESTIMABLE,
    Retention,
    blocks,
    holm,
    normal_quantile,
    records_needed,
    retention,
    share_degrees,
    sign_test,
    student_quantile,
    suggested_block_length,
)
from jgram.contrasts import (
    Payoffs,
    by_records,
    noise_tests_of,
    one_pair,
    pair_payoffs,
    pairs_of,
    payoffs_alone,
    payoffs_of_pairs,
    products,
    records_of,
    stacked,
)
from jgram.data.columns import named_columns
from jgram.evidence import (
    CHECKED,
    FEWEST_REPORTS,
    GOLD,
    OBSERVATIONS,
    OTHERS,
    Joined,
    by_checks,
    by_gold,
    by_others,
    expected_accuracies,
    join,
    observed_gold,
    with_boldness,
)
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
    judged, _ = _judgement(reports, y, kernel, intake, confidence)
    found = (*judged.bound.findings, *_few_groups(judged.groups))
    (report,) = _published(judged, found)
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
    judged, length = _judgement(reports, y, kernel, intake, confidence, gold)
    bound = judged.bound
    if len(bound.classes) < 2:
        only = ", ".join(map(repr, bound.classes))
        raise ValueError(
            f"expected two classes or more, got {only} alone in every report: list all possible "
            "labels in classes="
        )
    with float64():
        judged, questions = _questioned(_weighed(_with_enough_features(judged), weigh))
        observed = bound.is_observed
        judged = _joined(judged, observed, _in_question(judged, differing, observed))
        key = jax.random.key(0) if key is None else key
        beyond = (
            np.zeros(len(judged.pairs.means)) if judged.joined is None else judged.joined.beyond
        )
        found = _verdicts(key, judged.pairs, judged.told_noise, judged.groups, beyond, confidence)
        verdicts = jax.device_get(found)
    return _ranking(judged, verdicts, questions, length)


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


class _Judged(NamedTuple):
    """Reports and what one kernel pass says of them.

    Attributes:
        bound: The reports and their observations.
        aligned: The reports as they are compared.
        groups: Group of each record, blocks of time among them, or ``None``.
        confidence: Of all that is said.
        pairs: Payoffs, in the order of ``np.triu_indices(k, 1)``.
        alone: Payoffs of every report paired with itself.
        noise: P-values of the tests against noise.
        product: The kernel times the reports as they were given.
        left: Figures without one block of random features after the other.
        uncertain: The published scores of records out of memory.
        published: Scores of reports that are judged by one another.
        own: Payoffs by the observations alone, where there is other evidence too.
        joined: All kinds of evidence, where there are others than observations.
        rows: By kind, right labels of every pair.
        evident: P-values of the tests against noise by all evidence together, where it is joined.
        weigh: What weighs alike.
        otherwise: The pairs where the other one of classes and records does.
        expected: Accuracies of the reports by one another.
        plain: Payoffs by the observations before any pair was made to weigh every record alike.
    """

    bound: Bound
    aligned: Alignment
    groups: np.ndarray | None
    confidence: float
    pairs: Any = None
    alone: Any = None
    noise: Any = None
    product: Any = None
    left: LeftOut | None = None
    uncertain: Any = None
    published: tuple[ScoreReport, ...] = ()
    own: Payoffs | None = None
    joined: Joined | None = None
    rows: Mapping[str, np.ndarray] | None = None
    evident: Any = None
    weigh: str = CLASSES
    otherwise: Payoffs | None = None
    expected: Any = None
    plain: Any = None

    @property
    def soft(self) -> bool:
        """Whether reports are probabilities, of which no posterior is fitted."""
        return self.aligned.reports.ndim > 2 and not self.bound.numbers

    @property
    def told_noise(self) -> Any:
        """P-values of the tests against noise, by all evidence where it is joined."""
        return self.noise if self.evident is None else self.evident


def _judgement(
    reports: Mapping[str, Any] | Bound,
    y: Any,
    kernel: Any,
    intake: Intake,
    confidence: float,
    gold: Any = None,
) -> tuple[_Judged, int]:
    """Reports bound, aligned and judged, and how many records in order of time are one block."""
    normal_quantile(confidence)  # refuses what is no confidence
    if y is None and kernel is not None:
        raise ValueError("expected y=, the observations that kernel= compares, got none")
    files = isinstance(reports, Bound)
    if files and not (y is None and kernel is None and gold is None):
        raise ValueError("expected no y=, kernel= or gold= beside files that are bound with them")
    bound = reports if isinstance(reports, Bound) else bind(reports, y, kernel, intake, gold)
    judge = _judge_stream if bound.stream else _judge if bound.is_observed else _judge_by_others
    d, n, length = len(bound.classes), bound.observed.size, intake.block_length
    aligned = align(np.stack(list(bound.reports.values())), d, bound.weights)
    judged = _Judged(bound, aligned, bound.groups, confidence)
    with float64():
        if length is None:
            length = _suggested(judge(judged._replace(groups=None)).pairs) if d > 1 else 1
        if not 1 <= length <= max(n // 2, 1):
            raise ValueError(
                f"expected block_length in 1..{n // 2}, half of the records, got {length}"
            )
        if length != 1:
            judged = judged._replace(groups=blocks(n, length))
        return judge(judged) if d > 1 else judged, length  # one class says nothing


def _renamed(judged: _Judged) -> list[Finding]:
    """What is said of reports that are read with their classes renamed."""
    bound, aligned = judged.bound, judged.aligned
    same = np.arange(len(bound.classes))
    if bound.numbers:
        return [
            _reversed(name, list(bound.reports)[near])
            for name, names, near in zip(bound.reports, aligned.names, aligned.nearest, strict=True)
            if (names != same).any()
        ]
    reports = [
        (name, labels if labels.ndim == 1 else most_likely(labels))
        for name, labels in bound.reports.items()
    ]
    return [
        relabelling(reports[near], (*report, names), bound.classes, bound.weights)
        for report, names, near in zip(reports, aligned.names, aligned.nearest, strict=True)
        if (names != same).any()
    ]


def _reversed(name: str, other: str) -> Finding:
    return Finding(
        "relabelling",
        "warning",
        f"the larger {name!r} is, the smaller {other!r}: {name!r} is read the other way round",
        "check which of the two has its sign right",
    )


def _suggested(paid: Payoffs) -> int:
    return suggested_block_length(np.concatenate([paid.differences[:, None], paid.values], axis=1))


def _judge(judged: _Judged) -> _Judged:
    """Payoffs of every pair and of every report alone, and tests of each report against noise."""
    bound, stacked, groups = judged.bound, judged.aligned.reports, judged.groups
    n, k = bound.observed.size, len(stacked)
    # Few distinct shapes, few compilations: pad with records of weight 0, each its own group.
    padding = padded_length(n) - n
    observed = bound.observed.padded(padding)
    weights = np.pad(np.ones(n) if bound.weights is None else bound.weights, (0, padding))
    reports = np.pad(stacked, [(0, 0), (0, padding)] + [(0, 0)] * (stacked.ndim - 2))
    if groups is not None:
        groups = padded_groups(groups, padding)
    options = {"num_classes": len(bound.classes), "weights": weights, "groups": groups}
    found = products(observed, reports, **options)
    alone = payoffs_alone(found)
    if k == 1:
        pairs = alone
    elif (stacked >= 0).all() if stacked.ndim == 2 else stacked.any(axis=2).all():
        pairs = payoffs_of_pairs(found, pairs_of(k))
    else:
        pairs = pair_payoffs(observed, reports, complete=False, **options)
    noise = noise_tests_of(found) if groups is None else grouped_noise_tests(observed, found)
    pairs, alone, noise, product = jax.device_get((pairs, alone, noise, found.product))
    pairs = records_of(pairs, lambda part: part[..., :n])
    if stacked.ndim == 3 and k > 1:
        pairs = with_boldness(pairs, judged.aligned.reports, judged.groups)
        pairs = pairs._replace(gains=None) if bound.numbers else pairs
    return judged._replace(
        pairs=pairs,
        alone=records_of(alone, lambda part: part[..., :n]),
        noise=noise,
        product=product[:, :n] @ np.linalg.inv(judged.aligned.matrices),
        left=leave_blocks_out(
            bound.observed, stacked, num_classes=len(bound.classes), weights=bound.weights
        ),
    )


def _judge_stream(judged: _Judged) -> _Judged:
    """The same of records out of memory, at the records of a sample."""
    stream: Any = judged.bound.stream
    found = stream.judge(judged.aligned.names)
    pairs, alone, noise, left = found.pairs, found.alone, found.noise_p_values, found.left
    uncertain = dict(zip(judged.bound.reports, found.published, strict=True))
    return judged._replace(pairs=pairs, alone=alone, noise=noise, left=left, uncertain=uncertain)


def _judge_by_others(judged: _Judged) -> _Judged:
    """Payoffs of every pair by the reports that are left, and each report by all others."""
    bound, labels = judged.bound, judged.aligned.reports
    if judged.soft and bound.gold is None:
        raise ValueError("expected y= or gold= to rank soft reports, got none: give either")
    d, rows, groups = len(bound.classes), slice(None), judged.groups
    gold, expected = bound.gold, None
    few = judged.soft or len(labels) < FEWEST_REPORTS
    if few and gold is not None:  # which alone judges them
        rows = np.flatnonzero(labelled(gold))
        what = "numbers" if bound.numbers else "labels"
        bound = replace(bound, description=f"evidence: {len(rows)} right {what}")
        pairs = by_gold(labels, gold, d, bound.weights, groups)
        seen = [observed_gold(gold[rows], d)] * len(labels)
        groups = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
    else:
        pairs, seen, expected = _others(judged)
    each = _each_alone(judged._replace(bound=bound, groups=groups), seen, rows)
    published = [part for one in each for part in _published(one)]
    noise = [float(one.noise[0]) for one in each]
    found = {"pairs": pairs, "noise": np.array(noise), "published": tuple(published)}
    return judged._replace(bound=bound, expected=expected, **found)


def _others(judged: _Judged) -> tuple[Payoffs, list[Features], Any]:
    """Every pair by the reports that are left; by all others, what is seen of each report and the
    share of its labels that they expect to be right."""
    bound, labels = judged.bound, judged.aligned.reports
    about = (len(bound.classes), bound.weights, judged.groups)
    pairs, posteriors = by_others(labels, *about)
    seen = [Features(jax.numpy.asarray(q), Linear()) for q in posteriors]
    return pairs, seen, expected_accuracies(labels, posteriors, bound.weights)


def _each_alone(judged: _Judged, seen: Sequence[Any], rows: Any = slice(None)) -> list[_Judged]:
    """Every report alone, through observations of its own of some records."""
    bound, labels = judged.bound, judged.aligned.reports
    weights, found = None if bound.weights is None else bound.weights[rows], []
    for name, own, observed in zip(bound.reports, labels[:, rows], seen, strict=True):
        alone = align(own[None], len(bound.classes), weights)
        part = replace(bound, reports={name: own}, observed=observed, weights=weights)
        found.append(_judge(_Judged(part, alone, judged.groups, judged.confidence)))
    return found


def _in_question(judged: _Judged, names: Sequence[str], observed: bool) -> list[int]:
    """Numbers of the reports on whose differences somebody looked up who is right."""
    every = list(judged.bound.reports)
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
    if not observed and len(every) < FEWEST_REPORTS:
        raise ValueError("differing: expected y= or three reports beside the records checked")
    return [every.index(name) for name in names]


def _joined(judged: _Judged, observed: bool, between: Sequence[int] = ()) -> _Judged:
    """All kinds of evidence together, where there are others than observations."""
    bound, labels = judged.bound, judged.aligned.reports
    several = len(labels) >= FEWEST_REPORTS and not judged.soft
    about = (len(bound.classes), bound.weights, judged.groups)
    lead = OBSERVATIONS if observed else OTHERS if several else GOLD
    kinds = {lead: judged.pairs}
    noise, expected = judged.noise, judged.expected
    if observed and several:
        kinds[OTHERS], seen, expected = _others(judged)
        by = [one.noise[0] for one in _each_alone(judged, seen)]
        noise = np.minimum(2 * np.minimum(noise, by), 1.0)  # by either, and both are looked at
    if between and bound.gold is not None:
        kinds[CHECKED] = by_checks(labels, bound.gold, between, *about)
    elif bound.gold is not None and lead != GOLD:
        kinds[GOLD] = by_gold(labels, bound.gold, *about)
    if [*kinds] == [OBSERVATIONS]:
        return judged
    if judged.weigh == RECORDS:
        for kind in {*kinds} & {OTHERS, GOLD} - {lead}:
            kinds[kind] = by_records(kinds[kind], judged.groups)
    joined = join(kinds, normal_quantile(judged.confidence), judged.groups)
    rows = {
        kind: (kinds[kind].weights > 0).sum(axis=1) for kind in (GOLD, CHECKED) if kind in kinds
    }
    return judged._replace(
        pairs=joined.pairs, own=judged.pairs, joined=joined, rows=rows, evident=noise,
        expected=expected,
    )  # fmt: skip


def _weighed(judged: _Judged, weigh: str) -> _Judged:
    """Pairs by classes or by records, and by the other one of the two."""
    if weigh not in (CLASSES, RECORDS):
        raise ValueError(f"weigh: expected {CLASSES!r} or {RECORDS!r}, got {weigh!r}")
    if judged.aligned.reports.ndim > 2:
        if weigh == RECORDS:
            raise ValueError("weigh='records': expected labels, got soft reports: weigh classes")
        return judged
    if judged.pairs.by_records is None:
        if weigh == RECORDS:
            raise ValueError("weigh='records': expected records that fit into memory, got a stream")
        return judged
    classes, records = judged.pairs, by_records(judged.pairs, judged.groups)
    if weigh == CLASSES:
        return judged._replace(otherwise=records)
    return judged._replace(pairs=records, otherwise=classes, weigh=weigh, left=None)


def _with_enough_features(judged: _Judged) -> _Judged:
    """Random features doubled until their error hardly shows, and that error in all covariances."""
    if judged.left is None:
        return judged
    left: Any = judged.left
    kernel, size = judged.bound.observed.kernel, _num_features(judged)
    fixed = kernel.stands_for is None or judged.bound.stream is not None
    while not fixed and size < MOST_FEATURES:
        short = shortfall(left, _paired_errors(judged.pairs))
        if short <= 1:
            break
        size = min(size << ceil(2 * log2(short)), MOST_FEATURES)
        judged = _judge(judged._replace(bound=with_features(judged.bound, size)))
        left = judged.left
    away = left.means - left.means.mean(axis=0)
    added = np.einsum("bpi,bpj->pij", away, away) * (len(away) - 1) / len(away)
    pairs = judged.pairs
    return judged._replace(pairs=pairs._replace(covariance=pairs.covariance + added))


class _Question(NamedTuple):
    """What could be wrong with the order of a pair (:mod:`jgram.assumptions`)."""

    p_value: float | None = None
    alike: bool = False
    flattered: bool = False  # the payoffs say the same, which may be what flatters a report
    strata: tuple[Any, ...] = ()


def _questioned(judged: _Judged) -> tuple[_Judged, list[_Question]]:
    """Pairs that share more than the truth with every record weighing alike, and why."""
    pairs, labels, groups = judged.pairs, judged.aligned.reports, judged.groups
    each = [one_pair(pairs, number) for number in range(len(pairs.means))]
    if pairs.sureness is None or labels.ndim > 2:
        return judged, [_Question()] * len(each)
    observed, d = judged.bound.observed, len(judged.bound.classes)
    w = np.ones(observed.size) if judged.bound.weights is None else judged.bound.weights
    drawn = 1.0 if judged.bound.stream is None else judged.bound.stream.drawn
    rows, often, functions = instruments(observed, w * drawn, d + 3)
    near = None if groups is None else groups[rows]
    tests, weighted, strata = [], [], []
    for (i, j), paid in zip(zip(*np.triu_indices(len(labels), 1), strict=True), each, strict=True):
        own = np.where(paid.weights[rows] > 0, often, 0.0)
        sure = of_observations(standing(paid.sureness[rows], own) - 0.5, functions, own)
        tools = np.column_stack([functions, sure])
        found = disagreement_test(labels[i][rows], labels[j][rows], tools, own, near)
        scale = paid.weights.sum() / max(own.sum(), 1e-300)
        tests.append(found._replace(excess=found.excess * scale))
        alike, kept = record_weighted(paid, groups)
        weighted.append(alike)
        strata.append(tuple(kept))
    same = stacked(weighted)
    signed = jax.vmap(sign_test, (0, 0, None))
    z, before = (
        np.asarray(signed(one.differences, one.weights, groups)[0]) for one in (same, pairs)
    )
    turned = turning(tests, z, 1 - judged.confidence)
    flattered = turned & (before * np.sign(z) >= normal_quantile(judged.confidence))
    weighed = jax.tree.map(
        lambda new, old: np.where(turned.reshape(-1, *[1] * (np.ndim(old) - 1)), new, old),
        same,
        pairs,
    )
    questions = map(_Question, (one.p_value for one in tests), turned.tolist(), flattered.tolist(),
                    strata)  # fmt: skip
    return judged._replace(pairs=weighed, plain=pairs), list(questions)


def _num_features(judged: _Judged) -> int:
    return 2 * len(judged.bound.observed.kernel.frequencies)


def _paired_errors(pairs: Payoffs) -> np.ndarray:
    """Standard errors of the differences of the mean payoffs of every pair."""
    part = pairs.covariance
    return np.sqrt(np.maximum(part[:, 0, 0] + part[:, 1, 1] - 2 * part[:, 0, 1], 0.0))


class _Verdicts(NamedTuple):
    """What follows of the payoffs, for the pairs and for all of them together."""

    ranked: RankedPairs
    z: Any
    p_values: Any
    needed: Any
    forward: Retention
    backward: Retention


@partial(jax.jit, static_argnames="confidence")
def _verdicts(
    key: Any, pairs: Payoffs, noise: Any, groups: Any, beyond: Any, confidence: float
) -> _Verdicts:
    each = (pairs.differences, pairs.weights, groups, beyond)
    z, p_values = jax.vmap(sign_test, (0, 0, None, 0))(*each)
    degrees = share_degrees(pairs.values, pairs.means, pairs.weights, groups)
    quantile = student_quantile(norm.ppf(0.5 + confidence / 2), degrees)
    return _Verdicts(
        rank_pairs(key, pairs, noise, groups=groups, beyond=beyond, confidence=confidence),
        z,
        p_values,
        jax.vmap(partial(records_needed, confidence=confidence), (0, 0, None, 0))(*each),
        retention(pairs.means, pairs.covariance, quantile),
        retention(pairs.means[:, ::-1], pairs.covariance[:, ::-1, ::-1], quantile),
    )


def _published(judged: _Judged, more: Sequence[Finding] = ()) -> Iterator[ScoreReport]:
    """The published score of each report, how much of it is not noise, and what to know of it."""
    bound, d = judged.bound, len(judged.bound.classes)
    if judged.published:
        yield from judged.published
        return
    uncertain = judged.uncertain or uncertainties(
        bound.reports,
        bound.observed,
        num_classes=d,
        weights=bound.weights,
        product=judged.product,
    )
    few = _few_groups(judged.groups)
    for i, (name, labels) in enumerate(bound.reports.items()):
        found, seen, p_value = uncertain[name], 0.0, 1.0
        if judged.alone is not None:
            seen, p_value = float(judged.alone.seen[i]), float(judged.noise[i])
        noise = p_value if judged.evident is None else float(judged.evident[i])
        about = (found, seen, None if few else noise, judged.confidence, bound.similar)
        classes = () if bound.numbers else bound.classes
        findings = diagnose(Evidence(labels, bound.observed, classes, *about))
        n, value = found.weights.sum(), found.log_score
        known = isfinite(value) and not any(f.level == "fatal" for f in findings)
        bounded = known and isfinite(found.standard_error)
        volume = 2.0 * float(np.sum(np.log(found.lengths))) if known else 0.0
        counts = class_counts(labels, d, found.weights)
        left = None if judged.left is None else judged.left.log_scores[:, i]
        yield ScoreReport(
            name=name,
            log_score=value if known else None,
            score=(exp(value) if value > -700 else None) if known else 0.0,
            counts_log_score=value + 2 * d * log(n) if known else None,
            standard_error=found.standard_error if bounded else None,
            interval=found.interval(judged.confidence) if bounded else None,
            confidence=judged.confidence,
            bias=None if found.bias is None else float(found.bias),
            gram_rank=found.rank,
            seen=seen,
            noise_p_value=p_value,
            normalised_score=d * exp(value / (2 * d)) if known else 0.0,
            hadamard_ratio=exp(min(0.0, value - volume)) if known else 0.0,
            num_records=_number(n),
            class_counts={}
            if bound.numbers
            else dict(zip(bound.classes, map(_number, counts), strict=True)),
            kernel=describe(bound.observed.kernel),
            observations=bound.description,
            findings=(*findings, *more),
            log_score_features_error=half_width(left, judged.confidence),
        )


def _number(value: Any) -> int | float:
    return round(value) if abs(value - round(value)) < 1e-9 * max(value, 1.0) else float(value)


def _ranking(
    judged: _Judged, verdicts: _Verdicts, questions: Sequence[_Question], length: int
) -> Ranking:
    bound, d, ranked = judged.bound, len(judged.bound.classes), verdicts.ranked
    names, published, order = list(bound.reports), list(_published(judged)), _order(ranked)
    place = {names[i]: position for position, i in enumerate(order)}
    pairs = sorted(
        (
            _pair(judged, verdicts, questions[number], number, int(i), int(j))
            for number, (i, j) in enumerate(zip(*np.triu_indices(len(names), 1), strict=True))
        ),
        key=lambda pair: sorted((place[pair.better], place[pair.worse])),
    )
    pairs = [
        replace(pair, taken=_taken(bound, pair)) if names[order[0]] in (pair.better, pair.worse)
        else pair
        for pair in pairs
    ]  # fmt: skip
    ranks = jax.device_get(ranks_left(_told(pairs, names), ranked.noise))
    known = _accuracies(judged)
    reports = tuple(
        replace(_ranked(judged, ranked, published[i], ranks, i), **known[i]) for i in order
    )
    seen = reports[0].published.seen
    found = (*bound.findings, *_renamed(judged), *_few_groups(judged.groups), *_capped(judged))
    return Ranking(
        reports=reports,
        pairs=tuple(pairs),
        most_reliable=tuple(names[i] for i in order if ranks.foremost[i]),
        seen=seen,
        num_classes=0 if bound.numbers else d,
        num_records=_number(bound.observed.size if bound.weights is None else bound.weights.sum()),
        confidence=judged.confidence,
        observations=bound.description,
        block_length=length,
        findings=(
            *found,
            *_apart(pairs),
            *_dependent(pairs),
            *_places(judged, pairs),
            *_visibility(seen, 0 if bound.numbers else d, reports),
        ),
        weigh=judged.weigh,
        slices=_slices(judged, questions, order) if bound.by else None,
    )


def _taken(bound: Bound, pair: PairComparison) -> tuple[Taken, ...]:
    """Which class is taken for which between two reports, as they were given."""
    one, two = bound.reports[pair.better], bound.reports[pair.worse]
    if one.ndim > 1:
        one, two = most_likely(one), most_likely(two)
    both, d = (one >= 0) & (two >= 0), len(bound.classes)
    w = None if bound.weights is None else bound.weights[both]
    counts = np.bincount(one[both].astype(np.int64) * d + two[both], w, d * d).reshape(d, d)
    said = counts.sum(axis=1)
    cells = sorted(zip(*np.nonzero(counts), strict=True), key=lambda c: (c[0] == c[1], -counts[c]))
    return tuple(
        Taken(
            bound.classes[i], bound.classes[j], _number(counts[i, j]), float(counts[i, j] / said[i])
        )
        for i, j in cells
    )


def _slices(judged: _Judged, questions: Sequence[_Question], order: Sequence[int]) -> Slices:
    """What each report keeps of the best one in every slice, by the payoffs of their pair."""
    names, (best, *others) = list(judged.bound.reports), order
    first, second = np.triu_indices(len(names), 1)
    paid = {}
    for i in others:
        number = np.flatnonzero((first == min(best, i)) & (second == max(best, i)))[0]
        pairs = judged.plain if questions[number].alike else judged.pairs
        way = slice(None, None, 1 if best < i else -1)
        paid[names[i]] = np.asarray(pairs.values[number][way]), np.asarray(pairs.weights[number])
    by, groups = judged.bound.by, judged.groups
    return slices(by, names[best], paid, groups, confidence=judged.confidence)


def _told(pairs: Sequence[PairComparison], names: Sequence[str]) -> np.ndarray:
    """``[k, k]``, whether report ``i`` is told from report ``j`` as a better one."""
    better = np.zeros((len(names), len(names)), bool)
    for pair in pairs:
        better[names.index(pair.better), names.index(pair.worse)] = pair.told
    return better


def _accuracies(judged: _Judged) -> list[dict[str, Any]]:
    """Accuracies of all reports, where there is gold."""
    labels, gold, joined = judged.aligned.reports, judged.bound.gold, judged.joined
    if gold is None or joined is None or CHECKED in joined.contrasts or labels.ndim > 2:
        return [{}] * len(labels)
    rows = np.flatnonzero(gold >= 0)
    part = labels[:, rows]
    right = np.where(part < 0, np.nan, part == gold[rows])
    weights = None if judged.bound.weights is None else judged.bound.weights[rows]
    first, second = np.triu_indices(len(labels), 1)
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
    judged: _Judged, ranked: RankedPairs, published: ScoreReport, ranks: Ranks, i: int
) -> RankedReport:
    ratio, interval = (None, None) if ranked.noise.all() else _share(ranked.keeps, i)
    best, shares = int(ranked.best), None
    if interval is not None and i != best:  # never against the tests that decide
        interval = _with(interval, 1.0, not ranked.better[best, i])
        interval = _with(interval, 0.0, True) if ranked.noise[i] else interval
    if judged.left is not None and ratio is not None:
        first, second = np.triu_indices(len(ranked.values), 1)
        number = (first == min(best, i)) & (second == max(best, i))
        one, two = judged.left.means[:, np.argmax(number)].T
        shares = np.ones(len(one)) if i == best else one / two if i < best else two / one
    return RankedReport(
        name=published.name,
        keeps=ratio,
        keeps_interval=interval,
        first_rank=int(ranks.first[i]),
        last_rank=int(ranks.last[i]),
        noise_p_value=float(judged.told_noise[i]),
        inside_noise=bool(ranked.noise[i]),
        published=published,
        keeps_features_error=half_width(shares, judged.confidence),
    )


def _with(interval: tuple[float, float], share: float, held: bool) -> tuple[float, float]:
    """An interval that holds a share that a test does not exclude, and ends at one that it does."""
    low, high = interval
    return (min(low, share), max(high, share)) if held else (min(low, share), min(high, share))


def _share(found: Retention, i: int) -> tuple[float | None, tuple[float, float] | None]:
    """A share and its interval, or ``None`` where it cannot be estimated."""
    if not found.estimable[i] or not isfinite(found.upper[i]):
        return None, None
    return float(found.ratio[i]), (float(found.lower[i]), float(found.upper[i]))


def _pair(
    judged: _Judged, verdicts: _Verdicts, question: _Question, number: int, i: int, j: int
) -> PairComparison:
    names, d, left = list(judged.bound.reports), len(judged.bound.classes), judged.left
    ranked, confidence = verdicts.ranked, judged.confidence
    p_value, needed = float(verdicts.p_values[number]), float(verdicts.needed[number])
    separated = bool(ranked.better[i, j] or ranked.better[j, i])
    turned = bool(verdicts.z[number] < 0)
    way = slice(None, None, -1 if turned else 1)
    better, worse = (names[i], names[j])[way]
    one, two = judged.pairs.means[number][way]
    ratio, interval = _share(verdicts.backward if turned else verdicts.forward, number)
    if interval is not None:
        interval = _with(interval, 1.0, p_value > 1 - confidence)
    ratios = logs = None
    if left is not None and ratio is not None:
        first, second = left.means[:, number, way].T
        ratios, logs = second / first, _log_ratio(first, second, d)
    return PairComparison(
        better=better,
        worse=worse,
        retention=ratio,
        retention_interval=interval,
        log_ratio=None if ratio is None else float(_log_ratio(one, two, d)),
        p_value=p_value,
        adjusted_p_value=float(ranked.p_values[i, j]),
        separated=separated,
        seen=float(judged.pairs.seen[number]),
        num_records=_number(judged.pairs.weights[number].sum()),
        records_needed=None if separated or not isfinite(needed) else needed,
        retention_features_error=half_width(ratios, confidence),
        log_ratio_features_error=half_width(logs, confidence),
        doubts=_doubts(judged, question, number, turned, separated),
        readings=_readings(judged, number, turned),
        strata=tuple(_kept_in(stratum, turned) for stratum in question.strata),
        disagreement_p_value=question.p_value,
        alike=question.alike,
        **_overturn(judged, number, confidence, separated),
    )


def _doubts(
    judged: _Judged, question: _Question, number: int, turned: bool, separated: bool
) -> tuple[str, ...]:
    """What could have turned the order of a pair, or keeps it from being told."""
    joined, quantile = judged.joined, normal_quantile(judged.confidence)
    found, agree = [], False
    if joined is not None and (separated or joined.against[number]):
        z = {
            kind: (-1 if turned else 1) * values[number] / max(joined.errors[kind][number], 1e-12)
            for kind, values in joined.contrasts.items()
        }
        agree = any(z[kind] > quantile for kind in z if kind != OBSERVATIONS)
        if against := joined.against[number]:
            found.append(f"{against[0]} against {against[1]}")
        elif not isfinite(z.get(OBSERVATIONS, 0.0)) and not z.get(GOLD, -1.0) > 0:
            found.append("other reports alone")
    if separated and question.flattered and not agree:
        found.append("shared errors")
    return tuple(found)


def _readings(judged: _Judged, number: int, turned: bool) -> tuple[PairReading, ...]:
    """What each kind of evidence says of a pair, by ``D`` and its error."""
    joined, confidence = judged.joined, judged.confidence
    if joined is None:
        return ()
    found, quantile = [], normal_quantile(confidence)
    for kind, values in joined.contrasts.items():
        contrast = values[number] * (-1 if turned else 1)
        error, wide = joined.errors[kind][number], joined.wide[kind][number]
        if not isfinite(contrast):
            found.append(PairReading(kind, None, None, 1.0))
            continue
        low, middle, high = (
            (1 - part / 2) / (1 + part / 2) if part > -2 else float("inf")
            for part in (contrast + quantile * wide, contrast, contrast - quantile * wide)
        )
        z = abs(contrast) / max(error, 1e-12)
        needed, rows = None, (judged.rows or {}).get(kind)
        if rows is not None and 0 < z < quantile:
            needed = float(rows[number] * ((quantile + normal_quantile(0.6)) / z) ** 2)
        bounded = (float(low), float(high)) if isfinite(high) else None
        p_value = float(2 * NormalDist().cdf(-z))
        found.append(PairReading(kind, float(middle), bounded, p_value, needed))
    return tuple(found)


def _kept_in(stratum: Any, turned: bool) -> StratumKeeps:
    better, worse = stratum.means[:: -1 if turned else 1]
    if better <= 0 or not isfinite(stratum.error):
        return StratumKeeps(stratum.share, None, None)
    return StratumKeeps(stratum.share, worse / better, stratum.error / better)


def _overturn(judged: _Judged, number: int, confidence: float, separated: bool) -> dict[str, Any]:
    """What would overturn the order of a pair that is separated."""
    pairs = judged.pairs
    if not separated or (pairs.gains is None and not judged.bound.numbers):
        return {}
    differences, w = pairs.differences[number], pairs.weights[number]
    return {
        "leaning": leaning(differences, w, normal_quantile(confidence)),
        "breakdown_share": None
        if pairs.gains is None
        else breakdown_share(differences, pairs.gains[number], w),
    }


def _log_ratio(one: Any, two: Any, d: int) -> Any:
    """The midpoint contrast of two mean payoffs."""
    return 4 * (d - 1) * (one - two) / (one + two)


def _capped(judged: _Judged) -> list[Finding]:
    """Random features whose error shows, although there are as many as there may be."""
    left = judged.left
    if left is None:
        return []
    errors = np.sqrt(jackknife(left.means[..., 0] - left.means[..., 1]))
    paired = _paired_errors(judged.own or judged.pairs)  # with the error of the features in it
    sampling = np.sqrt(np.maximum(paired**2 - errors**2, 0.0))
    short = shortfall(left, sampling)
    if short <= 1:
        return []
    return [
        Finding(
            "random features",
            "note",
            f"{_num_features(judged):,} random features stand for the kernel: to the difference of "
            f"two reports they add an error of {short / 3:.1f} standard errors, which intervals "
            "include",
            "the order and its tests hold under these features as they are; for shares nearer to "
            "the exact kernel's rank some of the records",
            short / 3,
            "ranking",
        )
    ]


def _few_groups(groups: Any) -> list[Finding]:
    """Groups that are too few to tell a report from noise."""
    count = FEWEST_GROUPS if groups is None else len(np.unique(groups))
    if count >= FEWEST_GROUPS:
        return []
    return [
        Finding(
            "few groups",
            "warning",
            f"fewer than {FEWEST_GROUPS} groups of records ({count}): whether a report is more "
            "than noise is not judged",
            f"collect records of {FEWEST_GROUPS} groups or more, or shorter blocks of time",
            count,
        )
    ]


def _apart(pairs: Sequence[PairComparison]) -> list[Finding]:
    """Pairs of reports that have no record in common."""
    found = [pair for pair in pairs if pair.num_records == 0]
    if not found:
        return []
    names = ", ".join(f"{pair.better} and {pair.worse}" for pair in found[:3])
    return [
        Finding(
            "nothing in common",
            "warning",
            f"{len(found)} of {len(pairs)} pairs label no record in common ({names}"
            f"{', ...' if len(found) > 3 else ''})",
            "nothing tells which of two such reports is better: have both label some records",
            len(found),
            "ranking",
        )
    ]


def _dependent(pairs: Sequence[PairComparison]) -> list[Finding]:
    """Pairs whose errors depend on the observations, the clearest of them in full."""
    found = sorted((pair for pair in pairs if pair.alike), key=attrgetter("disagreement_p_value"))
    if not found:
        return []
    pair, *others = found
    kept = ", ".join(display.share(one.keeps) for one in pair.strata)
    also = f" (and {len(others)} more pair{'s' * (len(others) != 1)})" if others else ""
    return [
        Finding(
            "shared errors",
            "warning",
            f"errors of {pair.better} and {pair.worse}{also} depend on the observations (p "
            f"{_p_value(pair.disagreement_p_value)}): {pair.worse} keeps {kept} of {pair.better}, "
            "from the quarter of the records where the observations are least sure to the surest",
            "between these reports every record weighs alike, and an order that payoffs tell too "
            "is in doubt: have somebody label some records where they differ",
            len(found) / len(pairs),
            "ranking",
        )
    ]


def _places(judged: _Judged, pairs: Sequence[PairComparison]) -> list[Finding]:
    """Pairs that change places where records weigh alike, not classes, or the other way round."""
    if judged.otherwise is None:
        return []
    other, names = judged.otherwise, list(judged.bound.reports)
    signed = jax.vmap(sign_test, (0, 0, None))(other.differences, other.weights, judged.groups)
    z, p_values = np.asarray(signed[0]), holm(np.asarray(signed[1]).tolist())
    values = np.zeros((len(names),) * 2)
    values[np.triu_indices(len(names), 1)] = -np.subtract(*other.means.T)
    order = np.argsort((values - values.T).sum(axis=1), kind="stable")
    told = {(pair.better, pair.worse) for pair in pairs if pair.separated}
    turned = [
        (p, names[i], names[j]) if way > 0 else (p, names[j], names[i])
        for p, way, i, j in zip(p_values, z, *np.triu_indices(len(names), 1), strict=True)
    ]
    turned = [one for one in turned if one[0] <= 1 - judged.confidence and one[:0:-1] in told]
    if not turned:
        return []
    p, better, worse = min(turned)
    other = RECORDS if judged.weigh == CLASSES else CLASSES
    also = f" (and {len(turned) - 1} more pairs)" if len(turned) > 1 else ""
    return [
        Finding(
            "weights",
            "warning",
            f"{better} and {worse}{also} change places where {other} weigh alike, not "
            f"{judged.weigh} (p {_p_value(p)}): then the order is "
            f"{', '.join(names[i] for i in order)}",
            "say which counts: where records weigh alike the order is that of the shares of right "
            f"labels, where classes do rare ones count as much (weigh={other!r}, --weigh {other})",
            len(turned) / len(pairs),
            "ranking",
        )
    ]


def _p_value(value: float | None) -> str:
    return "<.001" if value is not None and value < 0.001 else f"= {value:.2g}"


def _visibility(seen: float, d: int, reports: Sequence[RankedReport]) -> list[Finding]:
    """What the data do not see, in words."""
    found = []
    if d and seen < 0.7 * (d - 1):
        found.append(
            Finding(
                "visible differences",
                "note",
                f"{d} classes differ in {d - 1} independent way{'s' * (d != 2)}, of which the data "
                f"see {max(seen, 0):.1f}",
                "shares are of what can be seen: observe something that tells more classes apart",
                seen,
                "ranking",
            )
        )
    if all(report.keeps is None for report in reports):
        found.append(
            Finding(
                "not estimable",
                "warning",
                "what reports keep of one another cannot be estimated: the better one of a pair is "
                f"paid less than {ESTIMABLE:g} standard errors more than noise",
                "collect more records, or observations that depend more on the truth",
                concerns="ranking",
            )
        )
    return found
