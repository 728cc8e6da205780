"""Standard errors of plug-in log scores, by the influence of each record.

Two such scores of the *same* records differ by twice the logarithm of ``|det Q_a / det Q_b|``,
which does not depend on the experiment (Proposition 4.3): the published comparison. It ranks skewed
reports backwards where noise is most of the volume: :mod:`jgram.contrasts` decides rankings.

These functions run eagerly on the host's arrays, in float64.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, float64, infer_num_classes, labelled
from jgram.comparisons import normal_quantile
from jgram.influences import Linearisation, contributions, leave_one_out, linearise
from jgram.kernels import Kernel, rbf
from jgram.observed import observe

__all__ = ["Uncertainty", "uncertainties"]

NEAR_SINGULAR = 0.1


@dataclass(frozen=True)
class Uncertainty:
    """A log score with what sampling does to it.

    Attributes:
        line: The linearisation: log score, rank, pivots, lengths, ``G^-1``; nothing of records.
        standard_error: ``2 sd(h[n, x_hat_n]) / sqrt(n)``, the infinitesimal jackknife; ``inf``
            where the log score is ``-inf``.
        bias: Jackknife estimate of ``E[log_score] - truth``. Noise has volume, which raises the
            score, and the logarithm is concave, which lowers it. ``None`` where it cannot be told:
            a record carries a class alone, or the report is near singular.
        contributions: ``[n]``, of mean zero (:func:`jgram.influences.contributions`).
        weights: ``[n]``, frequencies; 0 where the label is missing.
    """

    line: Linearisation = field(repr=False)
    standard_error: float
    bias: float | None
    contributions: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)

    @property
    def log_score(self) -> float:
        """The plug-in value, ``-inf`` where there is none."""
        return float(self.line.elimination.log_determinant)

    @property
    def d(self) -> int:
        """The number of classes."""
        return len(self.line.lengths)

    @property
    def near_singular(self) -> bool:
        """Whether the score is so near zero that its standard error, and the bias, are not right.

        The normalised score, ``d score^(1/2d)``, has a relative standard error of 10% or more.
        """
        return self.standard_error >= NEAR_SINGULAR * 2 * self.d

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Normal interval of the log score; its measured coverage is in experiments/README.md."""
        half = normal_quantile(confidence) * self.standard_error
        return self.log_score - half, self.log_score + half


def uncertainties(
    reports: Mapping[str, Any],
    y: Any,
    kernel: Kernel | str = rbf,
    *,
    num_classes: int | None = None,
    weights: Any = None,
    product: Any = None,
) -> dict[str, Uncertainty]:
    """:class:`Uncertainty` of several reports of the same records, in one pass over the kernel.

    Args:
        reports: Name to labels ``[n]``, -1 where missing (or soft ``[n, d]``), of one shape.
        num_classes: ``d``; default the largest label of any report, plus one.
        product: ``K z`` of the weighted reports ``[t, n, d]``, where it is known already.

    Example:
        >>> found = uncertainties({"a": np.array([0, 0, 1, 1])}, np.array([0, 0, 1, 1]), "delta")
        >>> round(found["a"].log_score, 3)
        -2.773
    """
    if not reports:
        raise ValueError("expected at least one report, got none")
    codes = {name: _labels(report) for name, report in reports.items()}
    d = _common_classes(codes, num_classes)
    with float64():
        observed = observe(kernel, y)
        stacked = np.stack(list(codes.values()))
        n = observed.size
        copies = np.ones(n) if weights is None else np.asarray(weights, np.float64)
        copies = np.stack([copies * labelled(report) for report in reports.values()])
        # Few distinct shapes, few compilations: pad with records of weight 0.
        padding = padded_length(n) - n
        stacked = np.pad(stacked, [(0, 0), (0, padding)] + [(0, 0)] * (stacked.ndim - 2))
        copies = np.pad(copies, [(0, 0), (0, padding)])
        if product is not None:
            product = jnp.pad(product, [(0, 0), (0, padding), (0, 0)])
        padded = observed.padded(padding)
        found = _linearise_all(padded, jnp.asarray(stacked), jnp.asarray(copies), product, d)
        linearised, *each = (*jax.device_get(found), copies)
    return {
        name: uncertainty_of(
            jax.tree.map(lambda leaf, i=i: leaf[i], linearised), *(part[i, :n] for part in each)
        )
        for i, name in enumerate(reports)
    }


def padded_length(n: int) -> int:
    """The next of 16 sizes to every doubling."""
    step = 1 << max(0, n.bit_length() - 5)
    return -(-n // step) * step


def padded_groups(groups: np.ndarray, padding: int) -> np.ndarray:
    """Groups of more records, each of those in a group of its own."""
    return np.append(groups, groups.max() + 1 + np.arange(padding))


@partial(jax.jit, static_argnames="num_classes")
def _linearise_all(
    observed: Any, x_hats: Array, weights: Array, product: Any, num_classes: int
) -> tuple[Linearisation, Array, Array]:
    """Small parts of linearisations, contributions and leave-one-out changes ``[t, n]``."""

    def one(x_hat: Array, weights: Array, product: Any) -> tuple[Linearisation, Array, Array]:
        found = linearise(
            x_hat, observed, num_classes=num_classes, weights=weights, product=product
        )
        parts, changes = contributions(found, x_hat), leave_one_out(found, x_hat, weights > 0)
        empty = jnp.zeros(0, observed.dtype)
        return found._replace(influence=empty, residual=empty), parts, changes

    return jax.vmap(one)(x_hats, weights, product)


def uncertainty_of(
    found: Linearisation, parts: np.ndarray, changes: np.ndarray, weights: np.ndarray
) -> Uncertainty:
    """:class:`Uncertainty` from contributions, leave-one-out changes and weights ``[n]``."""
    n, present = float(weights.sum()), weights > 0
    known = bool(np.isfinite(found.elimination.log_determinant))
    parts = np.where(present & known, parts, 0.0)
    error = _standard_error(parts, weights) if known else np.inf
    uncertainty = Uncertainty(found, error, None, parts, weights)
    if uncertainty.near_singular or not np.isfinite(changes[present]).all():
        return uncertainty
    return replace(uncertainty, bias=(n - 1) * float(changes[present] @ weights[present]) / n)


def _labels(report: Any) -> np.ndarray:
    values = np.asarray(report)
    values = values if values.dtype.kind != "b" else values.astype(np.int32)
    return np.maximum(values, 0) if values.ndim == 1 else values


def _common_classes(reports: Mapping[str, Any], num_classes: int | None) -> int:
    sizes = {name: np.shape(report) for name, report in reports.items()}
    first = next(iter(sizes))
    for name, shape in sizes.items():
        if shape != sizes[first]:
            raise ValueError(
                f"expected reports of the same records, got {name!r} {list(shape)} beside "
                f"{first!r} {list(sizes[first])}"
            )
    return max(infer_num_classes(report, num_classes) for report in reports.values())


def _standard_error(contributions: np.ndarray, weights: np.ndarray) -> float:
    """Standard error of a mean of contributions, each as frequent as its weight."""
    n = float(weights.sum())
    if n <= 1:
        return np.inf
    mean = float(weights @ contributions) / n
    return sqrt(float(weights @ (contributions - mean) ** 2) / (n - 1) / n)
