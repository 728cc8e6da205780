"""The plug-in Gram determinant score (Definitions 4.4 and 4.10), for use inside JAX code.

``jgram.score`` (report.py) is the eager entry point that explains itself; these are the bare,
transformable functions: ``jit``, ``vmap`` over reports with ``y`` shared (the kernel is evaluated
once for all of them), ``grad`` in observations, soft reports, weights and kernel parameters.

The score compares reports of the *same* records under the *same* frozen kernel. It is blind to a
relabelling of the classes: any permutation of the labels scores the same.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jgram.arrays import Array, ArrayLike, Float, Shaped, check_lengths, infer_num_classes
from jgram.kernels import Kernel, rbf
from jgram.observed import Codes, Observed, countable, observe

__all__ = ["plugin_log_score", "plugin_score"]


def plugin_log_score(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str = rbf,
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
    rank: int | None = None,
    block_size: int | None = None,
) -> Float[Array, ""]:
    """Log of the plug-in score, ``log det G`` with ``G`` of :func:`jgram.gram` (Definition 4.4).

    Explicit kernels never form ``G``: the log-determinant comes from a QR of the feature sums,
    whose error grows with the condition number and not with its square.

    Args:
        kernel: A kernel, or any function of two observations. ``rbf`` reads its bandwidth from
            ``y``: the same for all reports on one ``y``.
        rank: Static. ``None`` for the determinant; ``k`` for the product of the ``k`` largest
            eigenvalues, where ``G`` cannot have full rank. That score is not experiment-agnostic.

    Returns:
        Natural logarithm; ``-inf``, with zero gradient, where ``G`` is rank-deficient: a class
        never reported, classes that no observation tells apart, fewer features than classes.

    Example:
        >>> from jgram.kernels import RBF
        >>> x_hat, y = jnp.array([0, 0, 1, 1]), jnp.array([0.0, 0.1, 1.0, 1.1])
        >>> print(f"{plugin_log_score(x_hat, y, RBF(1.0)):.3f}")
        -2.931
    """
    d = infer_num_classes(x_hat, num_classes)
    observed = observe(kernel, y, block_size=block_size)
    check_lengths(x_hat, observed.size, weights)
    if isinstance(observed, Codes):
        observed.refuse_many(d)  # before the program: JAX adds lines to errors in one
    weights = None if weights is None else countable(weights)
    return _log_score(observed, jnp.asarray(x_hat), weights, d, rank)


@partial(jax.jit, static_argnames=("num_classes", "rank"))
def _log_score(
    observed: Any, x_hat: Array, weights: Any, num_classes: int, rank: int | None
) -> Array:
    """One program: step by step, a score of counts is all waiting for its steps."""
    if rank is None:
        return observed.eliminate(x_hat, num_classes, weights).log_determinant
    return observed.log_top_determinant(x_hat, num_classes, weights, rank)


def plugin_score(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str = rbf,
    **how: Any,
) -> Float[Array, ""]:
    """The plug-in score ``det G`` itself: ``exp`` of :func:`plugin_log_score`, as its arguments.

    About 1e-15 at five classes and 1e-40, below float32's range, at ten: prefer the logarithm.

    Example:
        >>> plugin_score(jnp.array([0, 1, 0, 1]), jnp.array([0, 1, 0, 1]), "delta")
        Array(0.0625, dtype=float32)
    """
    return jnp.exp(plugin_log_score(x_hat, y, kernel, **how))
