"""Other measures of dependence between reports and observations, from their joint table.

The joint table ``J[m, d]`` (outcomes by reported labels, counts or probabilities) gives
Phi-mutual informations and functions of the singular values of its *whitened* form, in which it is
less the product of its marginals and each side has unit variance:

    W[y, x] = (p(y, x) - p(y) p(x)) / sqrt(p(y) p(x))

The singular values are the canonical correlations of report and outcome. ``W`` is centred
(``sqrt(p(y)) W = 0``), so that its rank is ``min(m, d) - 1`` at most. All are the paper's
alternatives to the Gram determinant score (section 5.4, appendix G), and unlike it none is
experiment-agnostic: two reports may change places when the observations change.

Everything transforms: ``jit``, ``vmap`` over tables, ``grad``. Empty rows and columns add nothing.
Gradients are finite everywhere: at an empty cell, where the derivative of KL and of the Hellinger
distance is infinite toward the inside, they leave that term out; equal singular values have that of
their sum (each a subgradient), those below the rounding of the table count as 0, with gradient 0.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, Float, Num, is_concrete
from jgram.determinant import default_tolerance

__all__ = ["ky_fan_sum", "maximal_correlation", "mutual_information", "top_k_volume"]

Kind = Literal["kl", "chi2", "total_variation", "squared_hellinger"]


def mutual_information(table: Num[Array, "m d"], kind: Kind = "kl") -> Float[Array, ""]:
    """Phi-divergence of the joint distribution from the product of its marginals (Definition G.1).

    ``sum_{y,x} p(y) p(x) Phi(p(y, x) / (p(y) p(x)))`` with ``Phi(a)`` by ``kind``, static, equal to
    ``a log a`` (KL: the Shannon mutual information, in nats), ``a^2 - 1`` (chi2), ``|a - 1| / 2``
    (total variation) or ``(1 - sqrt(a))^2`` (squared Hellinger distance); 0 under independence.

    Example:
        >>> table = jnp.array([[2, 0], [0, 2]])
        >>> [float(mutual_information(table, kind)) for kind in ("chi2", "total_variation")]
        [1.0, 0.5]
    """
    if kind not in _PHI:
        raise ValueError(f"expected kind in {', '.join(_PHI)}, got {kind!r}")
    joint, product = _joint_and_product(table)
    inside = product > 0
    ratio = jnp.where(inside, joint, 0.0) / jnp.where(inside, product, 1.0)
    return jnp.sum(jnp.where(inside, product * _PHI[kind](ratio), 0.0))


def maximal_correlation(table: Num[Array, "m d"]) -> Float[Array, ""]:
    """The largest correlation of a function of the report with a function of the outcome.

    The first singular value of the whitened table, in [0, 1] (Hirschfeld, Gebelein, Renyi).

    Example:
        >>> print(f"{maximal_correlation(jnp.array([[3, 1], [1, 3]])):.4f}")
        0.5000
    """
    return _singular_values(table)[0]


def top_k_volume(table: Num[Array, "m d"], k: int) -> Float[Array, ""]:
    """The product of the ``k`` largest singular values of the whitened table.

    ``k`` is static, in 1..min(m, d) - 1: the table is centred. The paper uses ``d - 1``.

    Example:
        >>> print(f"{top_k_volume(jnp.array([[4, 1, 1], [1, 4, 1], [1, 1, 4]]), 2):.4f}")
        0.2500
    """
    largest = min(jnp.shape(table)) - 1
    if not 1 <= k <= largest:
        raise ValueError(
            f"expected k in 1..{largest}, got {k}: the whitened table is centred, of rank at most "
            "min(m, d) - 1, and a larger volume is rounding noise"
        )
    return jnp.prod(_singular_values(table)[:k])


def ky_fan_sum(table: Num[Array, "m d"], k: int) -> Float[Array, ""]:
    """The sum of the ``k`` largest singular values of the whitened table, ``k`` in 1..min(m, d).

    Example:
        >>> print(f"{ky_fan_sum(jnp.array([[4, 1, 1], [1, 4, 1], [1, 1, 4]]), 2):.4f}")
        1.0000
    """
    values = _singular_values(table)
    if not 1 <= k <= len(values):
        raise ValueError(f"expected k in 1..{len(values)}, got {k}")
    return jnp.sum(values[:k])


def _entropy(ratio: Array) -> Array:
    # a log a - a + 1, whose sum is that of a log a: no term is negative, none cancels another.
    inside = ratio > 0
    return jnp.where(inside, ratio * jnp.log(jnp.where(inside, ratio, 1.0)), 0.0) - ratio + 1.0


def _hellinger(ratio: Array) -> Array:
    inside = ratio > 0
    return jnp.where(inside, (1.0 - jnp.sqrt(jnp.where(inside, ratio, 1.0))) ** 2, 1.0)


_PHI = {
    "kl": _entropy,
    "chi2": lambda ratio: (ratio - 1.0) ** 2,  # the sum of a^2 - 1
    "total_variation": lambda ratio: jnp.abs(ratio - 1.0) / 2.0,
    "squared_hellinger": _hellinger,
}


def _joint_and_product(table: Num[Array, "m d"]) -> tuple[Array, Array]:
    """The joint distribution and the product of its marginals, ``[m, d]`` each."""
    table = jnp.asarray(table)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"expected a joint table [m, d], got shape {list(table.shape)}")
    if is_concrete(table):
        values = np.asarray(table)
        if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
            raise ValueError("expected a joint table of finite entries >= 0, not all 0")
    dtype = table.dtype if jnp.issubdtype(table.dtype, jnp.floating) else jnp.result_type(float)
    table = table.astype(dtype)
    joint = table / jnp.sum(table)
    return joint, jnp.sum(joint, axis=1, keepdims=True) * jnp.sum(joint, axis=0)


def _singular_values(table: Num[Array, "m d"]) -> Float[Array, " r"]:
    """Singular values of the whitened table; 0 below rounding: uncentred, the largest is 1."""
    joint, product = _joint_and_product(table)
    inside = product > 0
    white = jnp.where(inside, joint - product, 0.0) / jnp.sqrt(jnp.where(inside, product, 1.0))
    values = jnp.linalg.svd(white, compute_uv=False)
    tolerance = default_tolerance(max(white.shape), white.dtype)
    return jnp.where(values > tolerance, values, 0.0)
