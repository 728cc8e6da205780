"""Scores that explain themselves: :func:`score` one report, :func:`rank_reports` several.

The eager front door. Labels of any type come in, are checked once, and a record comes out with the
score, its uncertainty, its noise floor and what stands against using it. Inside ``jit`` use
``jgram.plugin_log_score``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import exp, log
from typing import Any

import jax
import numpy as np

from jgram.arrays import Array, Key
from jgram.data import (
    check_aligned,
    check_observations,
    check_soft_labels,
    drop_missing,
    encode_reports,
)
from jgram.data.labels import Missing
from jgram.findings import Evidence, Finding, diagnose, relabelling
from jgram.kernels import Kernel, describe, takes
from jgram.noise import NoiseFloor, noise_floor
from jgram.observed import Observed, observe
from jgram.uncertainty import PluginComparison, Uncertainty, compare_plugin, uncertainties

__all__ = ["PairComparison", "Ranking", "ScoreReport", "rank_reports", "score"]


@dataclass(frozen=True)
class ScoreReport:
    """The plug-in Gram determinant score of one report, with all that belongs to it.

    Attributes:
        name: Of the report.
        log_score: Natural logarithm of the score; ``None`` where the score is 0.
        score: ``exp(log_score)``; ``None`` where that is below the range of a float.
        counts_log_score: ``log_score + 2 d log n``, the scale of Table 1 of the paper (counts
            instead of shares); grows with ``n``, for comparison with published figures only.
        standard_error: Of the log score; ``None`` where there is none.
        interval: Of the log score.
        confidence: Of the interval.
        bias: Jackknife estimate for the log score, not subtracted; ``None`` where it cannot be
            told.
        rank: Numerical rank of the Gram matrix; the score is 0 below ``num_classes``.
        normalised_score: ``d * score^(1 / 2d)``: 1 for perfect reports of balanced classes under
            perfectly separating observations.
        hadamard_ratio: ``det G / prod(G_kk)`` in [0, 1]: 1 where classes' observations share
            nothing.
        floor: Scores of permuted labels; ``None`` where no key was given.
        num_records: ``n``.
        class_counts: Class name to number of records reported so.
        kernel: In words, with its bandwidth.
        findings: What to know before acting, the gravest first.
    """

    name: str
    log_score: float | None
    score: float | None
    counts_log_score: float | None
    standard_error: float | None
    interval: tuple[float, float] | None
    confidence: float
    bias: float | None
    rank: int
    normalised_score: float | None
    hadamard_ratio: float | None
    floor: NoiseFloor | None
    num_records: int
    class_counts: dict[Any, int | float]
    kernel: str
    findings: tuple[Finding, ...]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The class names, in order."""
        return tuple(self.class_counts)

    @property
    def num_classes(self) -> int:
        """``d``."""
        return len(self.class_counts)

    @property
    def reason(self) -> str | None:
        """Why there is no score, or ``None`` where there is one."""
        fatal = [finding for finding in self.findings if finding.level == "fatal"]
        return fatal[0].message if fatal else None

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON-able data: no NaN or infinity, ``None`` with a ``reason`` instead."""
        return {
            "name": self.name,
            "estimator": "plug-in",
            "log_score": self.log_score,
            "score": self.score,
            "counts_log_score": self.counts_log_score,
            "standard_error": self.standard_error,
            "interval": None if self.interval is None else list(self.interval),
            "confidence": self.confidence,
            "bias": self.bias,
            "rank": self.rank,
            "num_classes": self.num_classes,
            "num_records": self.num_records,
            "class_counts": {str(name): count for name, count in self.class_counts.items()},
            "kernel": self.kernel,
            "normalised_score": self.normalised_score,
            "hadamard_ratio": self.hadamard_ratio,
            "floor": _floor_dict(self.floor),
            "reason": self.reason,
            "findings": [asdict(finding) for finding in self.findings],
        }


@dataclass(frozen=True)
class PairComparison:
    """Two ranked reports compared.

    Attributes:
        better: Name of the report with the higher score.
        worse: Name of the other.
        comparison: :class:`jgram.uncertainty.PluginComparison` of the better with the worse.
        adjusted_p_value: Two-sided, adjusted for all pairs by Holm's method.
    """

    better: str
    worse: str
    comparison: PluginComparison
    adjusted_p_value: float

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-able data; infinite values are ``None``."""
        return {
            "better": self.better,
            "worse": self.worse,
            "log_ratio": _finite(self.comparison.log_ratio),
            "standard_error": _finite(self.comparison.standard_error),
            "interval": [_finite(value) for value in self.comparison.interval],
            "probability": self.comparison.probability,
            "p_value": self.comparison.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "determinant_ratio": _finite(self.comparison.determinant_ratio),
            "determinant_ratio_interval": [
                _finite(value) for value in self.comparison.determinant_ratio_interval
            ],
        }


@dataclass(frozen=True)
class Ranking:
    """Reports of the same records, the most reliable first, and which of them can be told apart.

    Attributes:
        reports: :class:`ScoreReport`, best first.
        pairs: Every pair, in the order of the ranking.
        tie_groups: Largest runs of names in which no pair is separated at ``level``.
        level: Of the adjusted p-values.
        findings: About the comparison as a whole.
    """

    reports: tuple[ScoreReport, ...]
    pairs: tuple[PairComparison, ...]
    tie_groups: tuple[tuple[str, ...], ...]
    level: float
    findings: tuple[Finding, ...]

    @property
    def inside_noise(self) -> tuple[str, ...]:
        """Reports without a score, or that permuted labels score as high as too often."""
        return tuple(
            report.name
            for report in self.reports
            if report.log_score is None
            or (report.floor is not None and report.floor.p_value >= self.level)
        )

    @property
    def separated(self) -> bool:
        """Whether any report can be told both from another one and from noise."""
        return any(
            pair.adjusted_p_value < self.level and pair.better not in self.inside_noise
            for pair in self.pairs
        )

    @property
    def conclusion(self) -> str:
        """What the data say, in one sentence."""
        noise = self.inside_noise
        if len(noise) == len(self.reports):
            return "The data cannot tell any of these reports from noise."
        if not self.separated:
            return "The data cannot tell these reports apart."
        first = self.tie_groups[0]
        sentence = (
            f"{first[0]} is the most reliable"
            if len(first) == 1
            else f"{', '.join(first[:-1])} and {first[-1]} are the most reliable and cannot be "
            "told apart"
        )
        return sentence + (f"; {', '.join(noise)} cannot be told from noise." if noise else ".")

    def to_dict(self) -> dict[str, Any]:
        """The ranking as JSON-able data."""
        return {
            "conclusion": self.conclusion,
            "separated": self.separated,
            "level": self.level,
            "reports": [report.to_dict() for report in self.reports],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "tie_groups": [list(group) for group in self.tie_groups],
            "findings": [asdict(finding) for finding in self.findings],
        }


def score(
    x_hat: Any,
    y: Any,
    kernel: Kernel | str | None = None,
    *,
    name: str = "x_hat",
    classes: Sequence[Any] | None = None,
    num_classes: int | None = None,
    missing: Missing = "raise",
    key: Key[Array, ""] | None = None,
    draws: int = 1000,
    block_length: int = 1,
    confidence: float = 0.95,
) -> ScoreReport:
    """Score one report and say how far the number may be trusted.

    Args:
        x_hat: Labels ``[n]`` of any type (text, ints, pandas, polars, ...), or soft reports
            ``[n, d]`` with rows on the simplex.
        y: Observations: categories ``[n]``, numbers ``[n]`` or ``[n, k]``, a data frame, or rows of
            class probabilities.
        kernel: ``None`` takes ``delta`` for categories and ``rbf`` for numbers.
        name: What messages call the report.
        classes: All possible labels, in order; the ones reported by default.
        num_classes: Number of classes of labels that are 0-based ints already.
        missing: ``"drop"`` leaves out records without a label or an observation.
        key: Random key of the noise floor; ``None`` leaves the floor out.
        draws: Permutations for the floor.
        block_length: For records in time order, see :func:`jgram.noise.noise_floor`.
        confidence: Of the interval.

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
    return _score_all(
        {name: x_hat},
        y,
        kernel,
        classes=classes,
        num_classes=num_classes,
        missing=missing,
        key=key,
        draws=draws,
        block_length=block_length,
        confidence=confidence,
    )[0][name]


def rank_reports(
    reports: Mapping[str, Any],
    y: Any,
    kernel: Kernel | str | None = None,
    *,
    classes: Sequence[Any] | None = None,
    num_classes: int | None = None,
    missing: Missing = "raise",
    key: Key[Array, ""] | None = None,
    draws: int = 1000,
    block_length: int = 1,
    confidence: float = 0.95,
) -> Ranking:
    """Rank reports of the same records by reliability, and say which can be told apart.

    Args:
        reports: Name to labels ``[n]``, all of the same ``n`` records; two or more.
        y: Observations of these records, as in :func:`score`.
        kernel: ``None`` takes ``delta`` for categories and ``rbf`` for numbers, its bandwidth
            frozen for all reports.
        classes: All possible labels, in order.
        num_classes: Number of classes of labels that are 0-based ints already.
        missing: ``"drop"`` leaves out a record for all reports where one lacks it.
        key: Random key of the noise floors; ``None`` leaves the floors out.
        draws: Permutations for a floor.
        block_length: For records in time order, see :func:`jgram.noise.noise_floor`.
        confidence: Of the intervals; pairs are separated at ``1 - confidence``, adjusted for their
            number.

    Returns:
        A :class:`Ranking`.

    Raises:
        ValueError: Fewer than two reports, different records, or values that do not fit.

    Example:
        >>> truth = np.arange(200) % 2
        >>> noisy = np.where(np.arange(200) % 7 == 0, 1 - truth, truth)
        >>> rank_reports({"noisy": noisy, "truth": truth}, truth).conclusion
        'truth is the most reliable.'
    """
    if len(reports) < 2:
        raise ValueError(
            f"expected two reports or more to rank, got {len(reports)}: use score for one"
        )
    scored, found, codes, names = _score_all(
        reports,
        y,
        kernel,
        classes=classes,
        num_classes=num_classes,
        missing=missing,
        key=key,
        draws=draws,
        block_length=block_length,
        confidence=confidence,
    )
    order = sorted(scored, key=lambda name: -found[name].log_score)
    compared = {
        (better, worse): compare_plugin(found[better], found[worse], confidence=confidence)
        for better, worse in combinations(order, 2)
    }
    adjusted = holm({pair: comparison.p_value for pair, comparison in compared.items()})
    level = 1.0 - confidence
    groups = tie_groups(order, {frozenset(pair): p for pair, p in adjusted.items()}, level)
    findings = relabelling(codes, names)
    return Ranking(
        reports=tuple(scored[name] for name in order),
        pairs=tuple(
            PairComparison(better, worse, comparison, adjusted[better, worse])
            for (better, worse), comparison in compared.items()
        ),
        tie_groups=tuple(tuple(group) for group in groups),
        level=level,
        findings=tuple(findings),
    )


def _score_all(
    reports: Mapping[str, Any],
    y: Any,
    kernel: Kernel | str | None,
    *,
    classes: Sequence[Any] | None,
    num_classes: int | None,
    missing: Missing,
    key: Any,
    draws: int,
    block_length: int,
    confidence: float,
) -> tuple[dict[str, ScoreReport], dict[str, Uncertainty], dict[str, Any], Any]:
    """Check, score and diagnose all reports: one door, one pass over the kernel."""
    if _OBSERVATIONS in reports:
        raise ValueError(
            f"expected another name for the report {_OBSERVATIONS!r}: y are observations"
        )
    columns = {**reports, _OBSERVATIONS: y}
    if missing == "drop":
        columns, _ = drop_missing(columns)
    check_aligned(columns)
    y = columns.pop(_OBSERVATIONS)
    codes, names, warnings = _encode(columns, classes, num_classes)
    checked = check_observations(y, kind="auto" if kernel is None else takes(kernel))
    fitting = "delta" if checked.kind == "categorical" else "rbf"
    with jax.enable_x64(True):
        observed = observe(fitting if kernel is None else kernel, checked.values)
    found = uncertainties(codes, observed, num_classes=len(names))
    scored = {}
    for name, labels in codes.items():
        floor = None
        if key is not None and np.ndim(labels) == 1:
            floor = noise_floor(
                key,
                labels,
                observed,
                num_classes=len(names),
                draws=draws,
                block_length=block_length,
            )
        findings = diagnose(Evidence(labels, observed, names, found[name], floor))
        findings += [
            Finding("input", "note", text, "make sure that this is meant")
            for text in (*warnings, *checked.warnings)
        ]
        scored[name] = _record(
            name, labels, found[name], observed, names, floor, findings, confidence
        )
    return scored, found, codes, names


_OBSERVATIONS = "y"


def holm(p_values: dict[Any, float]) -> dict[Any, float]:
    """Holm's adjustment of p-values for looking at all of them.

    Example:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    adjusted, largest = {}, 0.0
    for passed, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - passed) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def tie_groups(
    order: list[Any], p_values: dict[frozenset[Any], float], level: float = 0.05
) -> list[list[Any]]:
    """The largest runs of the order in which no pair can be separated.

    Groups may overlap: the first may not be separable from the second, nor the second from the
    third, while the first and the third are.

    Args:
        order: Names, best first.
        p_values: Adjusted p-value of every pair.
        level: A pair at or above cannot be separated.

    Example:
        >>> pairs = {frozenset("ab"): 0.5, frozenset("bc"): 0.5, frozenset("ac"): 0.01}
        >>> tie_groups(list("abc"), pairs)
        [['a', 'b'], ['b', 'c']]
    """
    groups: list[list[Any]] = []
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and all(
            p_values[frozenset((order[stop], other))] >= level for other in order[start:stop]
        ):
            stop += 1
        if not groups or order[stop - 1] not in groups[-1]:
            groups.append(order[start:stop])
    return groups


def _encode(
    columns: Mapping[str, Any], classes: Any, num_classes: int | None
) -> tuple[dict[str, Any], tuple[Any, ...], tuple[str, ...]]:
    soft = {name: column for name, column in columns.items() if np.ndim(column) == 2}
    if not soft:
        encoded = encode_reports(columns, classes=classes, num_classes=num_classes)
        return encoded.codes, encoded.classes, encoded.warnings
    if len(soft) < len(columns):
        hard = next(name for name in columns if name not in soft)
        raise ValueError(
            f"expected all reports soft [n, d] or all labels [n], got {hard!r} mixed in"
        )
    d = np.shape(next(iter(soft.values())))[1]
    size = len(classes) if classes is not None else (num_classes or d)
    checked = {
        name: check_soft_labels(column, name=name, num_classes=size)
        for name, column in soft.items()
    }
    return checked, tuple(classes) if classes is not None else tuple(range(d)), ()


def _record(
    name: str,
    labels: Any,
    found: Uncertainty,
    observed: Observed,
    names: Sequence[Any],
    floor: NoiseFloor | None,
    findings: list[Finding],
    confidence: float,
) -> ScoreReport:
    d, n = len(names), len(labels)
    value = found.log_score
    known = bool(np.isfinite(value)) and not any(f.level == "fatal" for f in findings)
    counts = labels.sum(axis=0) if np.ndim(labels) == 2 else np.bincount(labels, minlength=d)
    bounded = known and np.isfinite(found.standard_error)
    hadamard = exp(min(0.0, value - 2.0 * float(np.sum(np.log(found.lengths))))) if known else None
    return ScoreReport(
        name=name,
        log_score=value if known else None,
        score=(exp(value) if value > -700 else None) if known else 0.0,
        counts_log_score=value + 2 * d * log(n) if known else None,
        standard_error=found.standard_error if bounded else None,
        interval=found.interval(confidence) if bounded else None,
        confidence=confidence,
        bias=found.bias,
        rank=found.rank,
        normalised_score=d * exp(value / (2 * d)) if known else 0.0,
        hadamard_ratio=hadamard if known else 0.0,
        floor=floor,
        num_records=n,
        class_counts=dict(zip(names, counts.tolist(), strict=True)),
        kernel=describe(observed.kernel),
        findings=tuple(findings),
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _floor_dict(floor: NoiseFloor | None) -> dict[str, Any] | None:
    if floor is None:
        return None
    return {
        "mean": _finite(floor.mean),
        "standard_deviation": floor.standard_deviation,
        "margin": floor.margin,
        "p_value": floor.p_value,
        "draws": len(floor.draws),
    }
