"""How far random features are from the kernel that they stand for.

Random features are a kernel of their own: tests of reports are right under them as they are. Their
error is about *which* weighted mean over directions a share is. Features are drawn in 16
independent blocks (:class:`jgram.kernels.RandomFeatures`), and a figure ``T`` of the answer has the
delete-one-block jackknife variance

    15/16  sum over blocks b of (T_b - mean T)^2,        T_b: the features without block b.

The kernel of 15 blocks is ``16/15`` of the inner products of what is left. Added to the covariance
of the mean payoffs over records, it makes intervals for the answer of the exact kernel: those of
95% held it in 90 to 99% of 100 draws on 600 records (``tests/test_approximation.py``).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, ArrayLike, Float, Key, Shaped, float64
from jgram.comparisons import normal_quantile, student_quantile
from jgram.contrasts import Products, by_report, pairs_of, payoffs_of_pairs, report_matrices
from jgram.determinant import eliminate_sums
from jgram.kernels import FEATURE_BLOCKS, RandomFeatures
from jgram.observed import Codes, Mapped, Observed, Pairs, feature_spreads

__all__ = [
    "LEAST_FEATURES", "MOST_FEATURES", "LeftOut", "approximate", "half_width", "jackknife",
    "leave_blocks_out", "shortfall",
]  # fmt: skip

LEAST_FEATURES, MOST_FEATURES = 1024, 4096
TOLERATED = 1 / 3
"""Standard errors of the difference of two reports that its error from features may reach."""
DEGREES = 6
"""Degrees of freedom that an error by 16 blocks is taken to have."""
HELD = 1 << 27  # numbers of kernel products that are held at a time, a gigabyte of float64


class LeftOut(NamedTuple):
    """What the answers are without one block of features after the other.

    Attributes:
        means: ``[16, pairs, 2]``, mean payoffs of every pair of reports at its midpoint
            (of a single report: beside itself).
        log_scores: ``[16, k]``, published log scores.
    """

    means: Float[np.ndarray, "blocks p 2"]
    log_scores: Float[np.ndarray, "blocks k"]


def approximate(
    kernel: Any,
    points: Float[np.ndarray, "n k"],
    num_features: int = LEAST_FEATURES,
    key: Key[Array, ""] | None = None,
) -> Mapped:
    """Observations bound to random features, both in single precision; sums in the default one.

    Args:
        kernel: A kernel with ``random_features`` (:class:`jgram.table_kernel.TableKernel`).
        num_features: ``m``, a multiple of 32.
        key: A typed key, ``jax.random.key(0)`` unless given.

    Example:
        >>> from jgram.table_kernel import TableKernel
        >>> points = np.random.default_rng(0).normal(size=(50, 3))
        >>> observed = approximate(TableKernel.of(points), points)
        >>> observed.size, observed.num_features
        (50, 1024)
    """
    drawn = kernel.random_features(jax.random.key(0) if key is None else key, num_features)
    centred = (points - np.asarray(drawn.center)).astype(np.float32)
    frequencies, weights = (x.astype(np.float32) for x in (drawn.frequencies, drawn.weights))
    single = RandomFeatures(frequencies, np.float32(0), weights, stands_for=kernel)
    return Mapped(jnp.asarray(centred), single, num_features)


def leave_blocks_out(
    observed: Observed,
    reports: Shaped[ArrayLike, "k n ..."],
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> LeftOut | None:
    """Mean payoffs and log scores without one block of random features after the other.

    Takes the arguments of :func:`jgram.contrasts.payoffs` but for groups: leaving them out as a
    whole changes the figures, hardly how they vary. ``None`` where the kernel is exact, or its
    features are not in 16 blocks.
    """
    if isinstance(observed, Codes | Pairs) or not isinstance(observed.kernel, RandomFeatures):
        return None
    blocks = observed.kernel.blocks()
    if blocks is None:
        return None
    kept = jnp.asarray(np.arange(FEATURE_BLOCKS)[:, None] != blocks, observed.dtype)
    z = report_matrices(observed, reports, num_classes)
    k, n, _ = z.shape
    w = jnp.ones(n, z.dtype) if weights is None else jnp.asarray(weights, z.dtype)
    present = np.asarray(jnp.sum(z, axis=2) > 0)
    pairs = pairs_of(k) if k > 1 else np.zeros((1, 2), int)
    asked = [(z, w, pairs)]
    if not present.all():
        asked = [(z[two], w * present[two].all(axis=0), np.array([[0, 1]])) for two in pairs]
    means = np.concatenate([_means(observed, *one, kept) for one in asked], axis=1)
    sums = observed.sums(_columns(z, w))[1:]
    return LeftOut(means, np.asarray(_log_scores(sums.reshape(k, -1, sums.shape[1]), z, w, kept)))


def jackknife(values: Float[np.ndarray, "blocks ..."]) -> Float[np.ndarray, "..."]:
    """The variance of a figure over draws of features, from its values without each block.

    Example:
        >>> float(jackknife(np.arange(16.0)))
        318.75
    """
    away = values - values.mean(axis=0)
    return np.asarray((len(values) - 1) / len(values) * np.sum(away**2, axis=0))


def half_width(values: Float[np.ndarray, " blocks"] | None, confidence: float) -> float | None:
    """Half an interval of a figure over draws of features, by Student's law of 6 degrees.

    16 blocks have 15; rare classes leave fewer, for their directions rest on few features, and
    features are doubled until the error looks small, which is where it is taken for too small.
    ``None`` where the kernel is exact or the figure is not finite without one of the blocks.

    Example:
        >>> round(half_width(np.arange(16.0), 0.95), 1)
        43.5
    """
    if values is None or not np.isfinite(values).all():
        return None
    with float64():
        quantile = student_quantile(normal_quantile(confidence), DEGREES)
    return float(quantile * np.sqrt(jackknife(values)))


def shortfall(left_out: LeftOut, standard_errors: Float[np.ndarray, " p"]) -> float:
    """The largest error of a difference from features, in thirds of its standard error.

    The error falls like ``1/sqrt(m)``: more than 1, and it takes more features. Standard errors are
    those of the differences of the pairs' mean payoffs, over samples of records.
    """
    errors = np.sqrt(jackknife(left_out.means[..., 0] - left_out.means[..., 1]))
    known = standard_errors > 0
    return float(np.max(errors[known] / standard_errors[known], initial=0.0)) / TOLERATED


def _means(observed: Any, z: Array, w: Array, pairs: Any, kept: Array) -> np.ndarray:
    """Mean payoffs ``[16, pairs, 2]`` of reports that label every record of weight above 0."""
    n, count = z.shape[1], len(kept)
    sums = observed.sums(_columns(z, w))
    scale = count / (count - 1)
    spreads = feature_spreads(observed, w, sums[0], np.sqrt(scale) * kept)
    squares, each = observed.squares, count
    while each > 1 and each * n * len(sums) > HELD:
        each //= 2
    found, pairs = [], jnp.asarray(pairs)
    for start in range(0, count, each):
        product = observed.project(_left_sums(sums, scale * kept[start : start + each]))
        about = z, w, squares, product
        found += [_pair_means(*about, spreads[start + j], j, pairs) for j in range(each)]
    return np.stack(found)


@jax.jit
def _columns(z: Array, w: Array) -> Array:
    """A one and all reports of each record, times its weight, ``[n, 1 + k d]``."""
    columns = jnp.moveaxis(z, 0, 1).reshape(z.shape[1], -1)
    return w[:, None] * jnp.concatenate([jnp.ones_like(columns[:, :1]), columns], axis=1)


@jax.jit
def _left_sums(sums: Array, factors: Array) -> Array:
    """Sums of features times the factors of one block after the other, ``[m, blocks k]``."""
    return (factors[:, None] * sums).reshape(-1, sums.shape[1]).T


@jax.jit
def _pair_means(
    z: Array, w: Array, squares: Array, product: Array, spread: Array, place: Any, pairs: Array
) -> Array:
    """Mean payoffs ``[pairs, 2]`` from the columns of ``product`` of one block."""
    width = 1 + z.shape[0] * z.shape[2]
    mine = jax.lax.dynamic_slice_in_dim(product, place * width, width, axis=1)
    found = Products(z, w, squares, spread, by_report(mine[:, 1:], z), None, None)
    return payoffs_of_pairs(found, pairs).means


@jax.jit
def _log_scores(sums: Array, z: Array, w: Array, kept: Array) -> Array:
    """Log scores ``[16, k]`` of class sums ``[k, d, m]``."""
    totals = jnp.sum(jnp.sum(z, axis=2) * w, axis=1)
    means = sums / jnp.maximum(totals, 1.0)[:, None, None]
    scale = jnp.sqrt(kept.shape[0] / (kept.shape[0] - 1))

    def score(keep: Array, mean: Array) -> Array:
        return eliminate_sums(mean * keep * scale).log_determinant

    return jax.vmap(jax.vmap(score, (None, 0)), (0, None))(kept, means)
