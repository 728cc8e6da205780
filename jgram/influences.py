"""What one record does to a log score: one closed form behind standard errors, label issues,
leave-one-out bias and attacks.

With ``M[m, d]`` the mean feature sums, ``G = M^T M`` and ``phi_n`` the features of record ``n``,

    h[n, j] = (G^-1 M^T phi_n)_j        (implicit kernels: ``(K Z G^-1)[n, j] / N``)

is half the derivative of ``N log det G`` in the share of record ``n`` that is in class ``j``. When
the reports are true and classes balanced, ``h[n, j] / d`` estimates without bias whether ``n``
belongs to ``j``. With the part of ``phi_n`` outside the span of the class means it gives *exactly*
the log score after any one record is dropped or relabelled, by the matrix determinant lemma.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jgram.arrays import (
    HIGHEST,
    Array,
    ArrayLike,
    Float,
    Shaped,
    check_lengths,
    infer_num_classes,
    report_matrix,
)
from jgram.determinant import Elimination
from jgram.kernels import Kernel, rbf
from jgram.observed import Frame, Observed, observe

__all__ = [
    "Linearisation", "contributions", "influence", "leave_one_out", "linearise",
    "relabelling_gains",
]  # fmt: skip


class Linearisation(NamedTuple):
    """A log score and all that is needed to change one record of it.

    Attributes:
        elimination: Log score, rank and pivots (:class:`jgram.determinant.Elimination`).
        influence: ``h``, ``[n, d]``; all 0 where the log score is ``-inf``.
        inverse: ``G^-1``, ``[d, d]``; 0 where the log score is ``-inf``.
        lengths: ``sqrt(G[k, k])``, ``[d]``.
        residual: ``[n]``, squared length of ``phi_n`` outside the span of the class means.
        total: ``N``, the number of records or their total weight.
    """

    elimination: Elimination
    influence: Float[Array, "n d"]
    inverse: Float[Array, "d d"]
    lengths: Float[Array, " d"]
    residual: Float[Array, " n"]
    total: Float[Array, ""]

    @property
    def log_score(self) -> Float[Array, ""]:
        """``log det G``."""
        return self.elimination.log_determinant


def linearise(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str = rbf,
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
    block_size: int | None = None,
    product: Float[ArrayLike, "n d"] | None = None,
) -> Linearisation:
    """Log score, influence, and what exact changes of single records need.

    Of the arguments of :func:`jgram.gram`, and ``K z`` of the weighted reports, where it is known.

    Example:
        >>> found = linearise(jnp.array([0, 0, 1, 1]), jnp.array([0, 0, 1, 1]), "delta")
        >>> found.influence.shape, found.inverse.shape
        ((4, 2), (2, 2))
    """
    d = infer_num_classes(x_hat, num_classes)
    observed = observe(kernel, y, block_size=block_size)
    check_lengths(x_hat, observed.size, weights)
    z = report_matrix(x_hat, d, weights, observed.dtype)
    frame = observed.frame(x_hat, d, weights, product)
    return linearise_frame(frame, observed.squares, jnp.sum(z))


def influence(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str = rbf,
    **how: Any,
) -> Float[Array, "n d"]:
    """``h[n, j]``, of :func:`linearise`: ``N/2`` times the derivative of the log score in a share.

    The weighted mean of ``h`` at the own labels is exactly ``d``; all is 0 where the log score is
    ``-inf``.

    Example:
        >>> influence(jnp.array([0, 0, 1, 1]), jnp.array([0, 0, 1, 1]), "delta")[0]
        Array([2., 0.], dtype=float32)
    """
    return linearise(x_hat, y, kernel, **how).influence


def contributions(
    linearisation: Linearisation, x_hat: Shaped[ArrayLike, "n ..."]
) -> Float[Array, " n"]:
    """What each record contributes to the log score: ``2 (h[n, x_hat_n] - d)``, of mean zero.

    The influence function of the plug-in log score: its standard error is ``std / sqrt(n)`` of
    them. The records are those that were linearised, unweighted.

    Example:
        >>> x_hat = y = jnp.array([0, 0, 0, 0, 1])
        >>> contributions(linearise(x_hat, y, "delta"), x_hat)
        Array([-1.5, -1.5, -1.5, -1.5,  6. ], dtype=float32)
    """
    d = _classes_of(linearisation, x_hat)
    z = report_matrix(x_hat, d, None, linearisation.influence.dtype)
    return 2.0 * (jnp.sum(z * linearisation.influence, axis=1) - d)


def leave_one_out(
    linearisation: Linearisation,
    x_hat: Shaped[ArrayLike, "n ..."],
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> Float[Array, " n"]:
    """Exact change of the log score when one record is left out, for every record, ``O(n d^2)``.

    ``[n]``; ``-inf`` where a record's absence makes the Gram matrix singular. Reports and weights
    are those given to :func:`linearise`.

    Example:
        >>> x_hat = y = jnp.array([0, 0, 1, 1])
        >>> change = leave_one_out(linearise(x_hat, y, "delta"), x_hat)[0]
        >>> print(f"{change:.4f} {2 * jnp.log((1 / 3 * 2 / 3) / (1 / 2 * 1 / 2)):.4f}")
        -0.2356 -0.2356
    """
    d = _classes_of(linearisation, x_hat)
    z = report_matrix(x_hat, d, weights, linearisation.influence.dtype)
    share = jnp.sum(z, axis=1) / linearisation.total
    return _log_ratio(linearisation, -z) - 2 * d * jnp.log1p(-share)


def relabelling_gains(
    linearisation: Linearisation, x_hat: Shaped[ArrayLike, " n"]
) -> Float[Array, "n d"]:
    """Exact change of the log score when record ``n`` alone is relabelled ``j``, for all ``n, j``.

    ``[n, d]``; 0 at the own label, ``[n]``.

    Example:
        >>> x_hat, y = jnp.array([0, 0, 1, 0]), jnp.array([0, 0, 1, 1])
        >>> int(relabelling_gains(linearise(x_hat, y, "delta"), x_hat)[3].argmax())
        1
    """
    d = _classes_of(linearisation, x_hat)
    own = jax.nn.one_hot(x_hat, d, dtype=linearisation.influence.dtype)
    targets = jnp.eye(d, dtype=own.dtype)
    gains = jax.vmap(lambda target: _log_ratio(linearisation, target - own), out_axes=1)(targets)
    return jnp.where(own > 0, 0.0, gains)


def _classes_of(linearisation: Linearisation, x_hat: Any) -> int:
    """``d``, once the reports are seen to be of as many records and classes."""
    n, d = linearisation.influence.shape
    check_lengths(x_hat, n, None)
    return infer_num_classes(x_hat, d)


def _log_ratio(linearisation: Linearisation, change: Array) -> Array:
    """Log of the ratio of determinants when row ``n`` of the reports changes by ``change[n]``.

    ``M' = M + phi c^T / N`` gives ``det G' / det G = (1 + c.h / N)^2 + (c^T G^-1 c) r / N^2``.
    """
    n = linearisation.total
    step = jnp.sum(change * linearisation.influence, axis=1) / n
    spread = jnp.sum(change * jnp.matmul(change, linearisation.inverse, precision=HIGHEST), axis=1)
    # The ratio less 1: it is about 1/n, and sums over n of its logarithm must be right.
    excess = step * (2.0 + step) + spread * linearisation.residual / n**2
    # Below the rounding of (1 + c.h/N)^2 the remaining determinant is numerically zero.
    left = excess > -1.0 + 64 * jnp.finfo(excess.dtype).eps
    return jnp.where(left, jnp.log1p(jnp.where(left, excess, 0.0)), -jnp.inf)


def linearise_frame(frame: Frame, squares: Array, total: Array) -> Linearisation:
    """:func:`linearise` from a frame and ``squares[n] = K(y_n, y_n)``."""
    inside, inverse = frame.inside, frame.inverse_factor
    influence, squared = (jnp.matmul(x, inverse.T, precision=HIGHEST) for x in (inside, inverse))
    residual = jnp.maximum(squares - jnp.sum(inside**2, axis=1), 0.0)
    return Linearisation(frame.elimination, influence, squared, frame.lengths, residual, total)
