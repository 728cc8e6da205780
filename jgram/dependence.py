"""Other measures of dependence between reports and observations, from the table or the Gram matrix.

The joint table ``J[m, d]`` (outcomes by reported labels, counts or probabilities) gives
Phi-mutual informations and functions of the singular values of its *whitened* form; the Gram
matrix ``G[d, d]`` gives HSIC and MMD for any kernel, at no further pass over the data. All are the
paper's alternatives to the Gram determinant score, and unlike it none is experiment-agnostic: two
reports may change places when the observations change.

Everything transforms: ``jit``, ``vmap`` over tables, ``grad``. Empty rows and columns add nothing.
Gradients are finite everywhere. At an empty cell the derivative of KL and of the Hellinger distance
is infinite toward the inside; there the returned gradient leaves that term out. Equal singular
values have a finite gradient of their sum (and each a subgradient); singular values below the
rounding of the table count as 0, with gradient 0.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, Float, Num
from jgram.determinant import default_tolerance
from jgram.kernels import HIGHEST, is_concrete

__all__ = [
    "hsic",
    "ky_fan_sum",
    "log_top_k_volume",
    "maximal_correlation",
    "maximum_mean_discrepancy",
    "mutual_information",
    "top_k_volume",
    "whitened_table",
]

Kind = Literal["kl", "chi2", "total_variation", "squared_hellinger"]


def mutual_information(table: Num[Array, "m d"], kind: Kind = "kl") -> Float[Array, ""]:
    """Phi-divergence of the joint distribution from the product of its marginals.

    ``sum_{y,x} p(y) p(x) Phi(p(y, x) / (p(y) p(x)))`` with ``Phi(a)`` equal to ``a log a`` (KL: the
    Shannon mutual information, in nats), ``a^2 - 1`` (chi2), ``|a - 1| / 2`` (total variation) or
    ``(1 - sqrt(a))^2`` (squared Hellinger distance).

    Args:
        table: ``[m, d]`` counts or probabilities of (outcome, reported label).
        kind: Which ``Phi``, static.

    Returns:
        Scalar, at least 0, and 0 under independence.

    Raises:
        ValueError: No matrix, negative or infinite entries, nothing but zeros, an unknown kind.

    Example:
        >>> table = jnp.array([[2, 0], [0, 2]])
        >>> [float(mutual_information(table, kind)) for kind in ("chi2", "total_variation")]
        [1.0, 0.5]

    Reference: Definition G.1 and section 5.4 of *Data Reliability Scoring*.
    """
    if kind not in _PHI:
        raise ValueError(f"expected kind in {', '.join(_PHI)}, got {kind!r}")
    joint, product = _joint_and_product(table)
    inside = product > 0
    ratio = jnp.where(inside, joint, 0.0) / jnp.where(inside, product, 1.0)
    return jnp.sum(jnp.where(inside, product * _PHI[kind](ratio), 0.0))


def whitened_table(table: Num[Array, "m d"]) -> Float[Array, "m d"]:
    """The joint table less the product of its marginals, each side scaled to unit variance.

    ``W[y, x] = (p(y, x) - p(y) p(x)) / sqrt(p(y) p(x))``. Its singular values are the canonical
    correlations of report and outcome. It is centred (``sqrt(p(y)) W = 0``), so that its rank is
    ``min(m, d) - 1`` at most.

    Args:
        table: ``[m, d]`` counts or probabilities of (outcome, reported label).

    Returns:
        ``[m, d]``; rows and columns without mass are 0.

    Raises:
        ValueError: As :func:`mutual_information`.

    Example:
        >>> whitened_table(jnp.array([[2, 0], [0, 2]]))
        Array([[ 0.5, -0.5],
               [-0.5,  0.5]], dtype=float32)

    Reference: section 5.4 and appendix G of *Data Reliability Scoring*.
    """
    joint, product = _joint_and_product(table)
    inside = product > 0
    return jnp.where(inside, joint - product, 0.0) / jnp.sqrt(jnp.where(inside, product, 1.0))


def maximal_correlation(table: Num[Array, "m d"]) -> Float[Array, ""]:
    """The largest correlation of a function of the report with a function of the outcome.

    The first singular value of :func:`whitened_table` (Hirschfeld, Gebelein, Renyi).

    Args:
        table: ``[m, d]`` counts or probabilities of (outcome, reported label).

    Returns:
        Scalar in [0, 1].

    Raises:
        ValueError: As :func:`mutual_information`.

    Example:
        >>> print(f"{maximal_correlation(jnp.array([[3, 1], [1, 3]])):.4f}")
        0.5000

    Reference: section 5.4 and appendix G of *Data Reliability Scoring*.
    """
    return _singular_values(table)[0]


def top_k_volume(table: Num[Array, "m d"], k: int) -> Float[Array, ""]:
    """The product of the ``k`` largest singular values of :func:`whitened_table`.

    Args:
        table: ``[m, d]`` counts or probabilities of (outcome, reported label).
        k: Static, in 1..min(m, d) - 1: the table is centred, a larger volume is 0 by construction
            and rounding noise when computed. The paper uses ``d - 1``.

    Returns:
        Scalar in [0, 1].

    Raises:
        ValueError: ``k`` out of range, or as :func:`mutual_information`.

    Example:
        >>> print(f"{top_k_volume(jnp.array([[4, 1, 1], [1, 4, 1], [1, 1, 4]]), 2):.4f}")
        0.2500

    Reference: section 5.4 and appendix G of *Data Reliability Scoring*.
    """
    return jnp.prod(_singular_values(table)[: _check_volume(table, k)])


def log_top_k_volume(table: Num[Array, "m d"], k: int) -> Float[Array, ""]:
    """Logarithm of :func:`top_k_volume`; ``-inf`` where the volume is 0.

    Example:
        >>> log_top_k_volume(jnp.array([[1, 1, 1], [1, 1, 1], [0, 0, 3]]), 2)
        Array(-inf, dtype=float32)

    Reference: section 5.4 and appendix G of *Data Reliability Scoring*.
    """
    return jnp.sum(jnp.log(_singular_values(table)[: _check_volume(table, k)]))


def ky_fan_sum(table: Num[Array, "m d"], k: int) -> Float[Array, ""]:
    """The sum of the ``k`` largest singular values of :func:`whitened_table`.

    Args:
        table: ``[m, d]`` counts or probabilities of (outcome, reported label).
        k: Static, in 1..min(m, d).

    Raises:
        ValueError: ``k`` out of range, or as :func:`mutual_information`.

    Example:
        >>> print(f"{ky_fan_sum(jnp.array([[4, 1, 1], [1, 4, 1], [1, 1, 4]]), 2):.4f}")
        1.0000

    Reference: appendix G of *Data Reliability Scoring*.
    """
    values = _singular_values(table)
    if not 1 <= k <= len(values):
        raise ValueError(f"expected k in 1..{len(values)}, got {k}")
    return jnp.sum(values[:k])


def hsic(gram: Float[Array, "d d"], frequencies: Num[Array, " d"]) -> Float[Array, ""]:
    """Hilbert-Schmidt independence criterion of reports (delta kernel) and observations.

    The trace of the centred Gram matrix ``C G C^T``, ``C = I - q 1^T``: equal to the usual
    ``trace(K H L H) / N^2`` over all pairs of records (the biased V-statistic).

    Args:
        gram: The plug-in Gram matrix ``[d, d]`` (``jgram.gram_matrix.gram``).
        frequencies: ``[d]`` counts or frequencies of the reported labels.

    Returns:
        Scalar, at least 0.

    Raises:
        ValueError: Shapes that do not fit, negative frequencies.

    Example:
        >>> print(f"{hsic(jnp.eye(2) / 4, jnp.array([2, 2])):.4f}")
        0.2500

    Reference: Gretton et al., *Measuring Statistical Dependence with Hilbert-Schmidt Norms*, 2005.
    """
    gram, q = _gram_and_frequencies(gram, frequencies)
    centre = jnp.eye(len(q)) - q[:, None]
    centred = jnp.matmul(jnp.matmul(centre, gram, precision=HIGHEST), centre.T, precision=HIGHEST)
    return jnp.maximum(jnp.trace(centred), 0.0)


def maximum_mean_discrepancy(
    gram: Float[Array, "d d"], frequencies: Num[Array, " d"]
) -> Float[Array, "d d"]:
    """*Squared* maximum mean discrepancy between the observations of every two labels.

    ``MMD^2[a, b] = G_aa / q_a^2 + G_bb / q_b^2 - 2 G_ab / (q_a q_b)`` (the biased V-statistic): how
    well the observations tell two reported labels apart.

    Args:
        gram: The plug-in Gram matrix ``[d, d]`` (``jgram.gram_matrix.gram``).
        frequencies: ``[d]`` counts or frequencies of the reported labels.

    Returns:
        ``[d, d]``, symmetric, at least 0; 0 in the row and column of a label never reported.

    Raises:
        ValueError: Shapes that do not fit, negative frequencies.

    Example:
        >>> maximum_mean_discrepancy(jnp.eye(2) / 4, jnp.array([2, 2]))
        Array([[0., 2.],
               [2., 0.]], dtype=float32)

    Reference: Gretton et al., *A Kernel Two-Sample Test*, 2012.
    """
    gram, q = _gram_and_frequencies(gram, frequencies)
    reported = q > 0
    q = jnp.where(reported, q, 1.0)
    means = gram / q[:, None] / q
    diagonal = jnp.diagonal(means)
    squared = jnp.maximum(diagonal[:, None] + diagonal - 2.0 * means, 0.0)
    return jnp.where(reported[:, None] & reported, squared, 0.0)


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
    _check_masses(table, "a joint table")
    dtype = table.dtype if jnp.issubdtype(table.dtype, jnp.floating) else jnp.result_type(float)
    table = table.astype(dtype)
    joint = table / jnp.sum(table)
    return joint, jnp.sum(joint, axis=1, keepdims=True) * jnp.sum(joint, axis=0)


def _singular_values(table: Num[Array, "m d"]) -> Float[Array, " r"]:
    """Singular values of the whitened table, those within rounding of 0 set to 0.

    Rounding is absolute: before centring the largest singular value is 1.
    """
    white = whitened_table(table)
    values = jnp.linalg.svd(white, compute_uv=False)
    tolerance = default_tolerance(max(white.shape), white.dtype)
    return jnp.where(values > tolerance, values, 0.0)


def _check_volume(table: Num[Array, "m d"], k: int) -> int:
    largest = min(jnp.shape(table)) - 1
    if not 1 <= k <= largest:
        raise ValueError(
            f"expected k in 1..{largest}, got {k}: the whitened table is centred, of rank at most "
            "min(m, d) - 1, and a larger volume is rounding noise"
        )
    return k


def _gram_and_frequencies(gram: Array, frequencies: Array) -> tuple[Array, Array]:
    gram, frequencies = jnp.asarray(gram), jnp.asarray(frequencies)
    if gram.ndim != 2 or gram.shape != 2 * frequencies.shape:
        raise ValueError(
            f"expected a Gram matrix [d, d] and frequencies [d], got {list(gram.shape)} and "
            f"{list(frequencies.shape)}"
        )
    _check_masses(frequencies, "frequencies")
    return gram, frequencies / jnp.sum(frequencies)


def _check_masses(masses: Array, name: str) -> None:
    if is_concrete(masses):
        values = np.asarray(masses)
        if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
            raise ValueError(f"expected {name} of finite entries >= 0, not all 0")
