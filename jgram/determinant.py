"""Log-determinants that say when there is none, and small systems.

Scores are about 1e-15 at five classes and 1e-40 at ten: the logarithm is the primary quantity.
Both routes scale every class to unit length first, so that rare classes do not look dependent, and
then eliminate with pivoting, so that the last pivots show the rank. They are written as ``d`` small
vector steps: under ``vmap`` thousands of reports go through as one batch, on any device.

:func:`solve`, :func:`determinant` and :func:`inverse_cholesky` are written so too, because LAPACK's
may never return: on a CPU of two cores two calls of jaxlib 0.10's ``potrf`` or ``trsm`` in one
program wait for the threads that they run in (``bench/canary.py``). What jgram compiles holds
no ``potrf``, ``trsm`` or ``getrf``; ``geqrf``, ``orgqr``, ``syevd`` and ``gesdd`` return.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jgram.arrays import HIGHEST, Array, ArrayLike, Float, Int, Num

__all__ = [
    "Elimination", "default_tolerance", "determinant", "eliminate_gram", "eliminate_sums",
    "inverse_cholesky", "log_determinant_of_sums", "log_top_determinant",
    "log_top_determinant_of_sums", "solve",
]  # fmt: skip


class Elimination(NamedTuple):
    """What an elimination found.

    Attributes:
        log_determinant: Natural logarithm, ``-inf`` where the rank is below ``d``.
        rank: Number of pivots above the tolerance.
        pivots: ``[d]``, largest first, relative lengths in [0, 1]: what is left of a class's unit
            vector once all classes before it are taken out. The last one is 0 when a class is a
            mixture of the others.
    """

    log_determinant: Float[Array, ""]
    rank: Int[Array, ""]
    pivots: Float[Array, " d"]


def default_tolerance(num_classes: int, dtype: jnp.dtype) -> float:
    """Pivots at or below this count as zero: ``8 d eps`` of the dtype."""
    return 8.0 * num_classes * float(jnp.finfo(dtype).eps)


def eliminate_sums(sums: Float[ArrayLike, "d m"], *, tolerance: float | None = None) -> Elimination:
    """QR of the feature sums: ``log det(sums sums^T) = 2 sum(log |diag R|)``.

    Pivoted modified Gram-Schmidt on unit rows, whose ``R`` is backward stable. The condition number
    is that of the sums, not its square as in a Cholesky factor of the Gram matrix. The gradient of
    the log-determinant is ``2 pinv(sums)^T``, and zero where it is ``-inf``.

    Args:
        sums: Feature sums ``[d, m]``, one row a class.
        tolerance: Pivots at or below count as zero; default :func:`default_tolerance`.

    Example:
        >>> print(f"{eliminate_sums(jnp.diag(jnp.array([2.0, 3.0]))).log_determinant:.4f}")
        3.5835
    """
    sums = _matrix(sums, "[d, m]")
    return _eliminate_sums(sums, _tolerance(sums) if tolerance is None else tolerance)


def eliminate_gram(gram: Float[ArrayLike, "d d"], *, tolerance: float | None = None) -> Elimination:
    """Pivoted Cholesky of the Gram matrix scaled to unit diagonal.

    For kernels that leave nothing else; nothing is added to the diagonal. Pivots are square roots,
    comparable to those of :func:`eliminate_sums`.

    Args:
        gram: Symmetric positive semi-definite ``[d, d]``.
        tolerance: Squared pivots at or below count as zero; default :func:`default_tolerance`.

    Example:
        >>> eliminate_gram(jnp.array([[1.0, 1.0], [1.0, 1.0]])).rank
        Array(1, dtype=int32)
    """
    gram = _matrix(gram, "[d, d]")
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(f"expected a square Gram matrix [d, d], got {gram.shape}")
    return _eliminate_gram(gram, _tolerance(gram) if tolerance is None else tolerance)


def log_determinant_of_sums(
    sums: Float[ArrayLike, "d m"], *, tolerance: float | None = None
) -> Float[Array, ""]:
    """``log det(sums sums^T)``, ``-inf`` where rank-deficient; see :func:`eliminate_sums`.

    Example:
        >>> log_determinant_of_sums(jnp.ones((2, 3)))
        Array(-inf, dtype=float32)
    """
    return eliminate_sums(sums, tolerance=tolerance).log_determinant


def log_top_determinant_of_sums(sums: Float[ArrayLike, "d m"], rank: int) -> Float[Array, ""]:
    """Log of the product of the ``rank`` largest eigenvalues of ``sums sums^T``.

    The largest squared volume of ``rank`` orthonormal combinations of the classes, in 1..min(d, m).
    Not multiplicative in the misreport matrix: the order of reports may depend on the experiment.

    Example:
        >>> print(f"{log_top_determinant_of_sums(jnp.diag(jnp.array([1.0, 2.0, 3.0])), 2):.4f}")
        3.5835
    """
    sums = _matrix(sums, "[d, m]")
    return 2.0 * _log_of_top(jnp.linalg.svd(sums, compute_uv=False), rank, sums)


def log_top_determinant(gram: Float[ArrayLike, "d d"], rank: int) -> Float[Array, ""]:
    """Log of the product of the ``rank`` largest eigenvalues of the Gram matrix, in 1..d.

    Example:
        >>> print(f"{log_top_determinant(jnp.diag(jnp.array([1.0, 2.0, 3.0])), 2):.4f}")
        1.7918
    """
    gram = _matrix(gram, "[d, d]")
    return _log_of_top(jnp.linalg.eigvalsh(gram)[::-1], rank, gram)


def solve(matrix: Num[Array, "d d"], right: Num[Array, "d k"]) -> Num[Array, "d k"]:
    """``matrix^-1 right`` by Gauss-Jordan elimination with partial pivoting, real or complex.

    Not finite where the matrix is singular. Differentiable: a gradient is one more solution.

    Example:
        >>> solve(jnp.array([[0.0, 2.0], [4.0, 0.0]]), jnp.array([[2.0], [4.0]])).ravel()
        Array([1., 1.], dtype=float32)
    """
    return jax.lax.custom_linear_solve(
        lambda x: jnp.matmul(matrix, x, precision=HIGHEST),
        right,
        solve=lambda _, b: _eliminated(matrix, b)[0],
        transpose_solve=lambda _, b: _eliminated(matrix.T, b)[0],
    )


def determinant(matrix: Num[Array, "d d"]) -> Num[Array, ""]:
    """The determinant, with its sign, by the same elimination; exactly 0 where a pivot is.

    Example:
        >>> float(determinant(jnp.array([[0.0, 2.0], [4.0, 0.0]])))
        -8.0
    """
    return jnp.prod(_eliminated(matrix, matrix[:, :0])[1])


def _eliminated(matrix: Array, right: Array) -> tuple[Array, Array]:
    """``matrix^-1 right``, and the pivots with signs: their product is the determinant."""
    d = len(matrix)
    numbers = jnp.arange(d)

    def step(state: tuple[Array, Array], j: Array) -> tuple[tuple[Array, Array], Any]:
        rows, left = state
        column = jax.lax.dynamic_index_in_dim(rows, j, 1, keepdims=False)
        place = jnp.argmax(jnp.where(left, jnp.abs(jax.lax.stop_gradient(column)), -1.0))
        chosen = numbers == place
        pivot = jnp.sum(jnp.where(chosen, column, 0))
        row = jnp.sum(jnp.where(chosen[:, None], rows, 0), axis=0)
        row = row / pivot if right.size else row / jnp.where(pivot == 0, 1, pivot)
        rows = jnp.where(chosen[:, None], row, rows - column[:, None] * row)
        passed = jnp.sum(left & (numbers < place))  # swaps that bring the row to its place
        return (rows, left & ~chosen), (place, jnp.where(passed % 2, -pivot, pivot))

    state = (jnp.concatenate([matrix, right], axis=1), jnp.ones(d, bool))
    (rows, _), (places, pivots) = jax.lax.scan(step, state, numbers, unroll=min(d, 4))
    return rows[places, d:], pivots


def inverse_cholesky(matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """``L^-1`` of a positive definite ``matrix = L L^T``, lower triangular; else not finite.

    Example:
        >>> inverse_cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
        [[0.5, 0.0], [-0.25, 0.5]]
    """
    d = len(matrix)
    below = jnp.arange(d)

    def step(rows: Array, j: Array) -> tuple[Array, Array]:
        row = jax.lax.dynamic_index_in_dim(rows, j, 0, keepdims=False)
        column = jax.lax.dynamic_index_in_dim(rows, j, 1, keepdims=False)
        pivot = jax.lax.dynamic_index_in_dim(row, j, keepdims=False)
        factors = jnp.where(below > j, column / pivot, 0.0)
        return rows - factors[:, None] * row, pivot

    state = jnp.concatenate([matrix, jnp.eye(d, dtype=matrix.dtype)], axis=1)
    rows, pivots = jax.lax.scan(step, state, below, unroll=min(d, 4))
    return rows[:, d:] / jnp.sqrt(pivots)[:, None]


def _matrix(value: Any, shape: str) -> Array:
    value = jnp.asarray(value)
    if value.ndim != 2 or 0 in value.shape:
        raise ValueError(f"expected a matrix {shape}, got shape {value.shape}; vmap over batches")
    return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)


def _tolerance(matrix: Array) -> float:
    return default_tolerance(len(matrix), matrix.dtype)


def _log_of_top(values: Array, rank: int, matrix: Array) -> Array:
    if not 1 <= rank <= len(values):
        raise ValueError(f"expected rank in 1..{len(values)}, got {rank}")
    return _sum_of_logs(values[:rank], values[:rank] > _tolerance(matrix) * values[0])


def _sum_of_logs(values: Array, positive: Array, others: Any = 0.0) -> Array:
    """Sum of logs and of ``others``; ``-inf``, without gradient, unless all values are positive."""
    total = jnp.sum(jnp.log(jnp.where(positive, values, 1.0))) + jnp.sum(others)
    return jnp.where(jnp.all(positive), total, -jnp.inf)


def _unit_rows(sums: Array) -> tuple[Array, Array]:
    """Rows of length one (or zero) and the logarithms of the lengths they had."""
    scale = jax.lax.stop_gradient(jnp.max(jnp.abs(sums), axis=1))
    scale = jnp.where(scale > 0, scale, 1.0)
    scaled = sums / scale[:, None]
    squares = jnp.sum(scaled**2, axis=1)
    lengths = jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
    return scaled / lengths[:, None], jnp.log(scale) + jnp.log(lengths)


@jax.jit
def _eliminate_sums(sums: Array, tolerance: Any) -> Elimination:
    d = sums.shape[0]
    rows, log_lengths = _unit_rows(sums)

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        rows, left = state
        squares = jnp.sum(rows**2, axis=1)
        chosen = jnp.arange(d) == jnp.argmax(jnp.where(left, squares, -1.0))
        row = jnp.sum(jnp.where(chosen[:, None], rows, 0.0), axis=0)
        square = jnp.sum(row**2)
        length = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        unit = row / length
        rows = rows - jnp.sum(rows * unit, axis=1)[:, None] * unit
        return (rows, left & ~chosen), jnp.where(square > 0, length, 0.0)

    _, pivots = jax.lax.scan(step, (rows, jnp.ones(d, bool)), length=d, unroll=min(d, 4))
    positive = pivots > tolerance
    value = _sum_of_logs(pivots, positive, log_lengths)
    return Elimination(2.0 * value, jnp.sum(positive), pivots)


@jax.jit
def _eliminate_gram(gram: Array, tolerance: Any) -> Elimination:
    d = gram.shape[0]
    diagonal = jnp.diagonal(gram)
    diagonal = jnp.where(diagonal > 0, diagonal, 1.0)
    scale = jnp.sqrt(diagonal)
    unit = (gram / scale[:, None]) / scale

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        rest, left = state
        chosen = jnp.arange(d) == jnp.argmax(jnp.where(left, jnp.diagonal(rest), -jnp.inf))
        column = jnp.sum(jnp.where(chosen, rest, 0.0), axis=1)
        pivot = jnp.sum(jnp.where(chosen, column, 0.0))
        safe = jnp.where(pivot > tolerance, pivot, 1.0)
        rest = rest - jnp.where(pivot > tolerance, column[:, None] * (column / safe), 0.0)
        return (rest, left & ~chosen), pivot

    _, pivots = jax.lax.scan(step, (unit, jnp.ones(d, bool)), length=d, unroll=min(d, 4))
    positive = pivots > tolerance
    value = _sum_of_logs(pivots, positive, jnp.log(diagonal))
    lengths = jnp.sqrt(jnp.where(positive, pivots, 1.0)) * positive
    return Elimination(value, jnp.sum(positive), lengths)
