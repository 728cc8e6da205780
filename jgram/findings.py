"""Findings: what stands between a score and a decision, each with its number and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from jgram.arrays import float64
from jgram.determinant import default_tolerance
from jgram.observed import Features, Mapped, Observed
from jgram.uncertainty import Uncertainty

__all__ = [
    "FINDINGS", "Evidence", "Finding", "class_counts", "diagnose", "relabelling", "structural_zero",
]  # fmt: skip

RARE = 30
NEAR_MIXTURE = 0.1


@dataclass(frozen=True)
class Finding:
    """One thing to know before acting on a score.

    Attributes:
        name: What was looked at, one word or two.
        level: ``"note"``, ``"warning"`` (the number is less sure than it looks) or ``"fatal"``
            (there is no number).
        message: One sentence with the figure.
        advice: What to do about it.
        value: The figure itself.
        concerns: ``"data"``, the labels and observations and so every number made of them;
            ``"score"``, the published score, which decides no ranking; or ``"ranking"``.
    """

    name: str
    level: Literal["note", "warning", "fatal"]
    message: str
    advice: str
    value: float | int | None = None
    concerns: Literal["data", "score", "ranking"] = "data"


def structural_zero(x_hat: Any, observed: Observed, classes: Sequence[Any]) -> Finding | None:
    """Why the log score is ``-inf`` however many records there are, or ``None`` where it is not so.

    Args:
        x_hat: Labels ``[n]`` or soft reports ``[n, d]``.
        observed: Observations, bound to their kernel.
        classes: The ``d`` class names.

    Example:
        >>> from jgram.observed import observe
        >>> observed = observe("rbf", np.zeros((2, 1)))
        >>> structural_zero(np.array([0, 1]), observed, ["a", "b", "c"]).message
        "class 'c' is never reported: the score is 0 by definition"
    """
    d, bound = len(classes), observed.rank_bound
    if d == 1:
        return Finding(
            "one class", "fatal",
            f"every record is reported as {classes[0]!r}: such a report says nothing",
            "list all possible labels in classes=, if there are others", d, "score",
        )  # fmt: skip
    counts = class_counts(x_hat, d)
    if (counts == 0).any():
        missing = [name for name, count in zip(classes, counts, strict=True) if count == 0]
        names = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        are = f" {names} is" if len(missing) == 1 else f"es {names} are"
        return Finding(
            "never reported", "fatal",
            f"class{are} never reported: the score is 0 by definition",
            "leave the class out of classes=, or merge it with another in all reports",
            len(missing), "score",
        )  # fmt: skip
    if bound >= d:
        return None
    if isinstance(observed, Features | Mapped):
        return Finding(
            "too few features", "fatal",
            f"{bound} features cannot span {d} classes: the Gram matrix has rank at most {bound}, "
            "the score is 0 for every report",
            f"use rbf, whose rank is full, features of {d} or more dimensions, or the top-{bound} "
            f"volume, plugin_log_score(..., rank={bound})", bound, "score",
        )  # fmt: skip
    return Finding(
        "too few outcomes", "fatal",
        f"{bound} distinct outcomes cannot tell {d} classes apart: the score is 0 for every report",
        f"observe at least {d} distinct values: more bins, or a second observation", bound, "score",
    )  # fmt: skip


class Evidence(NamedTuple):
    """What the findings about one report look at.

    Attributes:
        x_hat: Labels ``[n]`` or soft reports ``[n, d]``.
        observed: Observations, bound to their kernel.
        classes: The ``d`` class names; none where reports are numbers.
        uncertainty: The report's :class:`jgram.uncertainty.Uncertainty`.
        seen: In how many of the ``d - 1`` independent ways in which ``d`` classes can differ the
            observations differ too.
        noise_p_value: P-value of "this report has nothing to do with the observations"; ``None``
            where that was not judged.
        confidence: Confidence level at which a report counts as told from noise.
        similar: Names of classes that are nearly equal to more frequent ones.
    """

    x_hat: Any
    observed: Observed
    classes: Sequence[Any]
    uncertainty: Uncertainty
    seen: float
    noise_p_value: float | None
    confidence: float = 0.95
    similar: Sequence[Any] = ()


def diagnose(evidence: Evidence) -> list[Finding]:
    """All findings about one report; only the fatal one where there is no score.

    Example:
        >>> from jgram.observed import observe
        >>> from jgram.uncertainty import uncertainties
        >>> x_hat = y = np.repeat([0, 1], 20)
        >>> found = uncertainties({"": x_hat}, y, "delta")[""]
        >>> evidence = Evidence(x_hat, observe("delta", y), ["no", "yes"], found, 1.0, 0.0)
        >>> [finding.name for finding in diagnose(evidence)]
        ['rare class']
    """
    fatal, others = FATAL, FINDINGS
    if not evidence.classes:
        fatal, others = (_nothing_varies,), (_inside_the_noise,)
    if found := next(filter(None, (look(evidence) for look in fatal)), None):
        return [found]
    return [*filter(None, (look(evidence) for look in others))]


def class_counts(x_hat: Any, d: int, weights: Any = None) -> np.ndarray:
    """Records of each class ``[d]`` of labels ``[n]`` or soft reports ``[n, d]``."""
    values = np.asarray(x_hat)
    copies = np.ones(len(values)) if weights is None else weights
    if values.ndim == 2:
        return copies @ values
    return np.bincount(values[values >= 0], copies[values >= 0], minlength=d)


def _nothing_varies(evidence: Evidence) -> Finding | None:
    """Why a report of numbers has no score."""
    if np.isfinite(evidence.uncertainty.log_score):
        return None
    return Finding(
        "nothing varies", "fatal",
        "the numbers of the report, or the observations, hardly vary: the score is 0",
        "leave the report out, or observe something that depends on the truth", concerns="score",
    )  # fmt: skip


def _centred_features(evidence: Evidence) -> Finding | None:
    """Features that sum to 0 over the records: whatever the reports, their class sums cancel."""
    found = evidence.uncertainty
    if np.isfinite(found.log_score) or not isinstance(evidence.observed, Features):
        return None
    features = np.asarray(evidence.observed.points, np.float64)
    mean = float(np.abs(found.weights @ features / found.weights.sum()).max())
    if mean > 1e-6 * np.sqrt(np.mean(features**2)):
        return None
    return Finding(
        "centred features", "fatal",
        "the features average to 0 over the records, so that the sums of the classes cancel: the "
        "score is 0 for every report",
        "add the constant, jgram.Linear(lambda y: jnp.append(y, 1.0)), or use rbf", mean, "score",
    )  # fmt: skip


def _merged_classes(evidence: Evidence) -> Finding | None:
    """Names the classes in the smallest combination that the observations do not see."""
    found, classes, d = evidence.uncertainty, evidence.classes, len(evidence.classes)
    if np.isfinite(found.log_score):
        return None
    with float64():
        labels = np.maximum(evidence.x_hat, 0)
        matrix = np.asarray(evidence.observed.class_gram(labels, d, found.weights), float)
    scale = np.sqrt(np.abs(np.diagonal(matrix)))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(matrix / scale[:, None] / scale)
    if values[0] < -1e-6 * d:
        return Finding(
            "not positive", "fatal",
            f"the kernel is not positive semi-definite: its Gram matrix has eigenvalue "
            f"{values[0]:.2g} at unit diagonal",
            "use a positive definite kernel", float(values[0]),
        )  # fmt: skip
    one, other = (classes[k] for k in np.argsort(-np.abs(vectors[:, 0]))[:2])
    rank = int(found.line.elimination.rank)
    return Finding(
        "merged classes", "fatal",
        f"rank {rank} of {d}: the observations do not tell classes {one!r} and {other!r} "
        "apart from mixtures of the others (tolerance "
        f"{default_tolerance(d, found.line.lengths.dtype):.1g})",
        "merge the two classes, or observe something that differs between them",
        rank, "score",
    )  # fmt: skip


def _rare_class(evidence: Evidence) -> Finding | None:
    weights = evidence.uncertainty.weights
    counts = class_counts(evidence.x_hat, len(evidence.classes), weights)
    others = [i for i, name in enumerate(evidence.classes) if name not in evidence.similar]
    rarest = min(others or range(len(counts)), key=counts.__getitem__)
    if counts[rarest] >= RARE:
        return None
    alone = ": with one record there is no unbiased score and no bias estimate"
    return Finding(
        "rare class", "warning",
        f"class {evidence.classes[rarest]!r} is reported {counts[rarest]:g} times"
        + (alone if counts[rarest] < 2 else ""),
        f"intervals want about {RARE} records of every class: merge some or collect more",
        float(counts[rarest]),
    )  # fmt: skip


def _near_singular(evidence: Evidence) -> Finding | None:
    error = evidence.uncertainty.standard_error
    if not evidence.uncertainty.near_singular:
        return None
    return Finding(
        "near singular", "warning",
        f"the standard error of the log score is {error:.2f}: the score is so near zero that "
        "intervals do not hold",
        "treat the report as not separable from noise; collect more records or better observations",
        error, "score",
    )  # fmt: skip


def _near_mixture(evidence: Evidence) -> Finding | None:
    found = evidence.uncertainty.line
    # Of the mean of each class from the span of the others, relative to its length.
    distances = 1 / (np.sqrt(np.diagonal(found.inverse)) * found.lengths)
    worst = int(np.argmin(distances))
    smallest = float(distances[worst])
    if smallest >= NEAR_MIXTURE:
        return None
    return Finding(
        "near mixture", "note",
        f"the observations of class {evidence.classes[worst]!r} are nearly a mixture of other "
        f"classes' (relative distance {smallest:.3f})",
        "the score rests on this class; an observation that tells it apart would help most",
        smallest, "score",
    )  # fmt: skip


def _inside_the_noise(evidence: Evidence) -> Finding | None:
    p_value = evidence.noise_p_value
    if p_value is None or p_value <= 1 - evidence.confidence:
        return None
    return Finding(
        "inside the noise", "warning",
        f"labels permuted at random would fit the observations as well with probability "
        f"{p_value:.2g}",
        "the data cannot tell this report from labels without any information", p_value,
    )  # fmt: skip


def _volume_of_noise(evidence: Evidence) -> Finding | None:
    ways = len(evidence.classes) - 1
    if evidence.seen >= ways / 2:
        return None
    return Finding(
        "volume of noise", "warning",
        f"{ways + 1} classes differ in {ways} independent way{'s' * (ways != 1)}, of which the "
        f"observations show {max(evidence.seen, 0.0):.1f}: most of this score is the volume of "
        "noise, which is largest for labels that look balanced",
        "do not compare scores like this one: jgram rank compares reports without that volume",
        evidence.seen, "score",
    )  # fmt: skip


def _structural_zero(evidence: Evidence) -> Finding | None:
    return structural_zero(*evidence[:3])


FATAL = (_structural_zero, _centred_features, _merged_classes)
"""Why there is no score: the first that applies stands alone."""

FINDINGS = (_rare_class, _near_singular, _near_mixture, _inside_the_noise, _volume_of_noise)
"""What to know of a score. A new finding is one function in this tuple."""


def relabelling(
    reference: tuple[str, Any],
    renamed: tuple[str, Any, Any],
    classes: Sequence[Any],
    weights: Any = None,
) -> Finding:
    """That a report is read with its classes renamed (:func:`jgram.alignment.align`).

    The score is blind to a permutation of the labels: two such reports can score alike while one
    is wrong everywhere.

    Args:
        reference: Name and labels ``[n]`` of a report in the naming that is used.
        renamed: Name, labels ``[n]`` and the new name ``[d]`` of every class of the other.
        classes: The ``d`` class names.
        weights: Frequencies ``[n]``.

    Example:
        >>> labels = np.array([0, 1, 1, 0])
        >>> relabelling(("a", labels), ("b", 1 - labels, np.array([1, 0])), ["no", "yes"]).value
        0.0
    """
    (first, one), (second, two, names) = reference, renamed
    copies = ((one >= 0) & (two >= 0)) * (1.0 if weights is None else weights)
    total = max(float(copies.sum()), 1.0)
    agree = float(copies @ (one == two)) / total
    read = float(copies @ (one == names[two])) / total
    moved = [k for k in range(len(names)) if names[k] != k]
    words = ", ".join(f"{classes[k]!r} as {classes[names[k]]!r}" for k in moved[:4])
    return Finding(
        "relabelling", "warning",
        f"{second!r} agrees with {first!r} on {agree:.0%} of the records, and on {read:.0%} when "
        f"{second!r} is read with {words}",
        "the score cannot see a swap of class names: check which naming is right", agree,
    )  # fmt: skip
