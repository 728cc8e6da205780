"""The empirical Gram matrix: from records to class sums, and from class sums to ``[d, d]``.

Explicit kernels go through :class:`GramState`, a commutative monoid: batches, shards and streams
merge by addition. Implicit kernels (``rbf``, any function of a pair) are exact over all pairs, in
tiles: only tiles on and above the diagonal are evaluated, memory is ``O(block * n)`` at most, and
under ``vmap`` over reports the kernel is evaluated once for all of them.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.kernels import (
    HIGHEST,
    RBF,
    Delta,
    Kernel,
    as_pytree,
    is_concrete,
    is_explicit,
    resolve,
    rows,
)
from jgram.types import Array, ArrayLike, Float, Num, Shaped

__all__ = [
    "GramState",
    "gram",
    "gram_of_state",
    "init",
    "joint_table",
    "kernel_product",
    "memberships",
    "merge",
    "update",
]

BLOCK_SIZE = 1024


class GramState(NamedTuple):
    """All that an explicit kernel's score needs of the records.

    Attributes:
        sums: ``[d, m]`` sum of the features of the records reported in each class: the paper's
            ``N (P Q)^T``, empirical. Integer counts under the delta kernel.
        counts: ``[d]`` total weight of each class; int32 for hard, unweighted labels (exact up to
            2^31 records; beyond, merge states on the host: ``merge`` of NumPy int64 states).
    """

    sums: Num[Array, "d m"]
    counts: Num[Array, " d"]


def infer_num_classes(x_hat: Any, num_classes: int | None) -> int:
    """The number of classes, read from soft reports' shape or, outside ``jit``, from the labels."""
    shape = jnp.shape(x_hat)
    if len(shape) == 2:
        if num_classes not in (None, shape[1]):
            raise ValueError(f"expected soft reports [n, {num_classes}], got {list(shape)}")
        return shape[1]
    if len(shape) != 1:
        raise ValueError(f"expected labels [n] or soft reports [n, d], got shape {list(shape)}")
    dtype = jnp.result_type(x_hat)
    if not (jnp.issubdtype(dtype, jnp.integer) or jnp.issubdtype(dtype, jnp.bool_)):
        raise ValueError(
            f"expected integer labels [n], got {dtype}: encode them (jgram.data.encode_labels), or "
            "give soft reports [n, d]"
        )
    if not is_concrete(x_hat):
        if num_classes is None:
            raise ValueError("expected num_classes=... inside jit, vmap and grad, got None")
        return num_classes
    labels = np.asarray(x_hat)
    if not labels.size:
        raise ValueError("expected at least one record, got none")
    smallest, largest = int(labels.min()), int(labels.max())
    if smallest < 0 or (num_classes is not None and largest >= num_classes):
        wrong = smallest if smallest < 0 else largest
        limit = "" if num_classes is None else f"..{num_classes - 1}"
        raise ValueError(
            f"expected labels 0{limit or ', 1, ...'}, got {wrong}"
            + (": drop records without a label, or give them weight 0" if smallest < 0 else "")
        )
    return largest + 1 if num_classes is None else num_classes


def memberships(
    x_hat: Shaped[ArrayLike, "n ..."],
    num_classes: int,
    weights: Shaped[ArrayLike, " n"] | None = None,
    dtype: Any = None,
) -> Float[Array, "n d"]:
    """Reports as rows ``[n, d]``: one-hot for labels, themselves when soft, times the weights.

    Example:
        >>> memberships(jnp.array([1, 0]), 2, weights=jnp.array([1.0, 0.5]))
        Array([[0. , 1. ],
               [0.5, 0. ]], dtype=float32)
    """
    dtype = jnp.result_type(float) if dtype is None else dtype
    x_hat = jnp.asarray(x_hat)
    z = x_hat.astype(dtype) if x_hat.ndim == 2 else jax.nn.one_hot(x_hat, num_classes, dtype=dtype)
    return z if weights is None else z * jnp.asarray(weights, dtype)[:, None]


def joint_table(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, " n"],
    *,
    num_classes: int | None = None,
    num_outcomes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> Num[Array, "m d"]:
    """Contingency table of outcomes and reports: ``N`` times the empirical ``P Q``.

    Args:
        x_hat: Labels ``[n]`` or soft reports ``[n, d]``.
        y: Outcomes ``[n]``, integers from 0.
        num_classes: ``d``, static; required inside ``jit``.
        num_outcomes: ``m``, static; required inside ``jit``.
        weights: ``[n]``, at least 0.

    Returns:
        ``[m, d]``: int32 counts, or sums of weights.

    Raises:
        ValueError: Labels or outcomes out of range, or shapes that do not fit.

    Example:
        >>> joint_table(jnp.array([0, 1, 1]), jnp.array([0, 0, 2]))
        Array([[1, 1],
               [0, 0],
               [0, 1]], dtype=int32)
    """
    d = infer_num_classes(x_hat, num_classes)
    m = resolve(Delta(num_outcomes), y)._outcomes()  # type: ignore[union-attr]
    _check_lengths(x_hat, y, weights)
    x_hat, y = jnp.asarray(x_hat), jnp.asarray(y)
    if x_hat.ndim == 1:
        ones = jnp.ones(len(y), jnp.int32) if weights is None else 1 * jnp.asarray(weights)
        cells = y.astype(jnp.int32) * d + x_hat.astype(jnp.int32)
        return jax.ops.segment_sum(ones, cells, num_segments=m * d).reshape(m, d)
    return jax.ops.segment_sum(memberships(x_hat, d, weights, x_hat.dtype), y, num_segments=m)


def init(
    kernel: Kernel,
    num_classes: int,
    num_features: int,
    dtype: Any = None,
    *,
    weighted: bool = False,
) -> GramState:
    """The state of no records: ``merge``'s neutral element.

    Args:
        kernel: An explicit kernel.
        num_classes: ``d``.
        num_features: ``m``; the number of outcomes for the delta kernel.
        dtype: Of the sums; default int32 for unweighted delta, else the default float.
        weighted: Whether updates will carry weights or soft reports.

    Example:
        >>> init(Delta(3), num_classes=2, num_features=3).sums.shape
        (2, 3)
    """
    counted = isinstance(kernel, Delta) and not weighted
    dtype = dtype or (jnp.int32 if counted else jnp.result_type(float))
    return GramState(
        jnp.zeros((num_classes, num_features), dtype),
        jnp.zeros(num_classes, jnp.result_type(float) if weighted else jnp.int32),
    )


def update(
    state: GramState,
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."],
    kernel: Kernel,
    *,
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> GramState:
    """The state with more records added.

    Args:
        state: From :func:`init` or an earlier update; fixes ``d`` and ``m``.
        x_hat: Labels ``[n]`` or soft reports ``[n, d]``.
        y: Observations ``[n, ...]``.
        kernel: The same explicit kernel in every update.
        weights: ``[n]``, at least 0.

    Raises:
        ValueError: The kernel has no features, or shapes or values do not fit.

    Example:
        >>> state = init(delta := Delta(3), num_classes=2, num_features=3)
        >>> state = update(state, jnp.array([0, 1]), jnp.array([2, 2]), delta)
        >>> state.sums
        Array([[0, 0, 1],
               [0, 0, 1]], dtype=int32)
    """
    d, m = state.sums.shape
    added = _state(x_hat, y, kernel, num_classes=d, num_features=m, weights=weights)
    return merge(state, added)


def merge(first: GramState, second: GramState) -> GramState:
    """The state of both sets of records together. NumPy states stay NumPy, with their dtypes.

    Example:
        >>> one = GramState(np.ones((2, 2)), np.ones(2))
        >>> merge(one, one).counts
        array([2., 2.])
    """
    if np.shape(first.sums) != np.shape(second.sums):
        raise ValueError(
            f"expected two states of one shape, got sums {np.shape(first.sums)} and "
            f"{np.shape(second.sums)}"
        )
    return GramState(first.sums + second.sums, first.counts + second.counts)


def gram_of_state(state: GramState) -> Float[Array, "d d"]:
    """The plug-in Gram matrix ``sums sums^T / N^2`` (Definition 4.4), for inspection.

    Scores come from the sums themselves (:func:`jgram.determinant.eliminate_sums`): this product
    squares their condition number.

    Example:
        >>> gram_of_state(GramState(jnp.array([[1, 0], [0, 3]]), jnp.array([1, 3])))
        Array([[0.0625, 0.    ],
               [0.    , 0.5625]], dtype=float32)
    """
    means = normalised_sums(state)
    return jnp.matmul(means, means.T, precision=HIGHEST)


def normalised_sums(state: GramState) -> Float[Array, "d m"]:
    """``sums / N``: the transposed empirical ``P Q`` in feature space."""
    sums, counts = jnp.asarray(state.sums), jnp.asarray(state.counts)
    dtype = sums.dtype if jnp.issubdtype(sums.dtype, jnp.floating) else jnp.result_type(float)
    total = jnp.sum(counts.astype(dtype))
    return sums.astype(dtype) / jnp.where(total > 0, total, 1.0)


def gram_state(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."],
    kernel: Kernel,
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> GramState:
    """:class:`GramState` of one batch: ``update(init(...), ...)`` with the sizes inferred."""
    d = infer_num_classes(x_hat, num_classes)
    return _state(x_hat, y, resolve(kernel, y), num_classes=d, num_features=None, weights=weights)


def gram(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."],
    kernel: Kernel,
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
    block_size: int = BLOCK_SIZE,
) -> Float[Array, "d d"]:
    """The plug-in Gram matrix of reports (Definitions 4.4 and 4.10).

    ``G[a, b] = (1/N^2) sum over records n reported a and m reported b of K(y_n, y_m)``, the pairs
    ``n = m`` included, with ``N`` the number of records, or the total weight.

    Args:
        x_hat: Labels ``[n]`` or soft reports ``[n, d]`` (rows on the simplex).
        y: Observations ``[n, ...]``.
        kernel: A kernel, or any function of two observations.
        num_classes: ``d``, static; inferred outside ``jit``.
        weights: ``[n]``, at least 0; 0 leaves a record out.
        block_size: Rows of a tile of an implicit kernel, static. Temporaries hold a few
            ``block_size**2`` numbers.

    Returns:
        ``[d, d]``, symmetric, positive semi-definite for a positive definite kernel.

    Raises:
        ValueError: Shapes or concrete values that do not fit.

    Example:
        >>> gram(jnp.array([0, 1]), jnp.array([0.0, 0.0]), RBF(1.0))
        Array([[0.25, 0.25],
               [0.25, 0.25]], dtype=float32)
    """
    d = infer_num_classes(x_hat, num_classes)
    kernel = resolve(kernel, y)
    if is_explicit(kernel):
        return gram_of_state(gram_state(x_hat, y, kernel, num_classes=d, weights=weights))
    _check_lengths(x_hat, y, weights)
    points = _points(y)
    z = memberships(x_hat, d, weights, points.dtype)
    total = jnp.sum(z)
    return _tiled_gram(as_pytree(kernel), points, z, block_size) / total**2


def kernel_product(
    kernel: Kernel,
    y: Shaped[ArrayLike, "n ..."],
    z: Float[ArrayLike, "n c"],
    *,
    block_size: int = BLOCK_SIZE,
) -> Float[Array, "n c"]:
    """``K @ z`` with the kernel matrix ``K[n, n]`` never held: ``block_size`` rows at a time.

    Example:
        >>> kernel_product(RBF(1.0), jnp.zeros(3), jnp.ones((3, 1)))[:, 0]
        Array([3., 3., 3.], dtype=float32)
    """
    kernel = resolve(kernel, y)
    if is_explicit(kernel):
        features = kernel.features(jnp.asarray(y))  # type: ignore[attr-defined]
        inner = jnp.matmul(features.T, z, precision=HIGHEST)
        return jnp.matmul(features, inner, precision=HIGHEST)
    return _tiled_product(as_pytree(kernel), _points(y), jnp.asarray(z), block_size)


def _check_lengths(x_hat: Any, y: Any, weights: Any) -> None:
    n = jnp.shape(x_hat)[0]
    if jnp.ndim(y) == 0 or jnp.shape(y)[0] != n:
        raise ValueError(
            f"expected as many observations as reports, got y {list(jnp.shape(y))} for {n} reports"
        )
    if weights is None:
        return
    if jnp.shape(weights) != (n,):
        raise ValueError(f"expected weights of shape [{n}], got {list(jnp.shape(weights))}")
    if is_concrete(weights):
        values = np.asarray(weights)
        if not np.isfinite(values).all() or (values < 0).any() or not (values > 0).any():
            raise ValueError("expected weights >= 0, finite and not all 0")


def _state(
    x_hat: Any, y: Any, kernel: Kernel, *, num_classes: int, num_features: int | None, weights: Any
) -> GramState:
    if not is_explicit(kernel):
        raise ValueError(
            "expected a kernel with features for a GramState (delta, linear, random features), got "
            f"{kernel!r}: states of implicit kernels cannot be merged, use gram or RandomFeatures"
        )
    infer_num_classes(x_hat, num_classes)
    _check_lengths(x_hat, y, weights)
    hard = jnp.ndim(x_hat) == 1
    if isinstance(kernel, Delta):
        sums = joint_table(
            x_hat,
            y,
            num_classes=num_classes,
            num_outcomes=num_features or kernel.num_outcomes,
            weights=weights,
        ).T
        return GramState(sums, jnp.sum(sums, axis=1))
    features = kernel.features(jnp.asarray(y))  # type: ignore[attr-defined]
    if num_features not in (None, features.shape[1]):
        raise ValueError(f"expected {num_features} features, got {features.shape[1]}")
    z = memberships(x_hat, num_classes, weights, features.dtype)
    sums = jnp.matmul(z.T, features, precision=HIGHEST)
    if hard and weights is None:
        ones = jnp.ones(len(features), jnp.int32)
        labels = jnp.asarray(x_hat).astype(jnp.int32)
        return GramState(sums, jax.ops.segment_sum(ones, labels, num_segments=num_classes))
    return GramState(sums, jnp.sum(z, axis=0))


def _points(y: Any) -> Array:
    y = jnp.asarray(y)
    return y if jnp.issubdtype(y.dtype, jnp.floating) else y.astype(jnp.result_type(float))


def _pairwise(kernel: Any, points: Array) -> tuple[Array, Any]:
    """Points, prepared once, and a function from two blocks of them to a block of the kernel."""
    if not isinstance(kernel, RBF):
        return points, jax.vmap(jax.vmap(kernel, in_axes=(None, 0)), in_axes=(0, None))
    # |a|^2 + |b|^2 - 2ab loses everything at a large mean: centre first. Distances do not change.
    scaled = rows(points)
    scaled = (scaled - jax.lax.stop_gradient(scaled.mean(axis=0))) / kernel.bandwidth
    return scaled, _gaussian_block


def _gaussian_block(first: Array, second: Array) -> Array:
    inner = jnp.matmul(first, second.T, precision=HIGHEST)
    squares = jnp.sum(first**2, axis=1)[:, None] + jnp.sum(second**2, axis=1) - 2.0 * inner
    return jnp.exp(-jnp.maximum(squares, 0.0))


def _pad(values: Array, length: int, mode: str) -> Array:
    widths = [(0, length - len(values))] + [(0, 0)] * (values.ndim - 1)
    return jnp.pad(values, widths, mode=mode)


def _block(values: Array, index: Array, size: int) -> Array:
    return jax.lax.dynamic_slice_in_dim(values, index * size, size)


@partial(jax.jit, static_argnames="block_size")
def _tiled_gram(kernel: Any, points: Array, z: Array, block_size: int) -> Array:
    """``z^T K z`` over the tiles on and above the diagonal."""
    size = min(block_size, len(points))
    blocks = -(-len(points) // size)
    points, block_of = _pairwise(kernel, points)
    # Padding repeats the last observation (any kernel is defined there) with membership 0.
    points, z = _pad(points, blocks * size, "edge"), _pad(z, blocks * size, "constant")
    first, second = np.triu_indices(blocks)

    @partial(jax.checkpoint, prevent_cse=False)
    def tile(points: Array, z: Array, i: Array, j: Array) -> Array:
        values = block_of(_block(points, i, size), _block(points, j, size)).astype(z.dtype)
        right = jnp.matmul(values, _block(z, j, size), precision=HIGHEST)
        part = jnp.matmul(_block(z, i, size).T, right, precision=HIGHEST)
        return jnp.where(i == j, 0.5, 1.0) * (part + part.T)

    def add(carry: tuple[Array, Array], ij: tuple[Array, Array]) -> tuple[Any, None]:
        total, lost = carry  # compensated: the tiles of a large n are many
        part = tile(points, z, *ij) - lost
        new = total + part
        return (new, (new - total) - part), None

    zero = jnp.zeros((z.shape[1], z.shape[1]), z.dtype)
    (total, _), _ = jax.lax.scan(add, (zero, zero), (jnp.asarray(first), jnp.asarray(second)))
    return total


@partial(jax.jit, static_argnames="block_size")
def _tiled_product(kernel: Any, points: Array, z: Array, block_size: int) -> Array:
    n = len(points)
    size = min(block_size, n)
    blocks = -(-n // size)
    points, block_of = _pairwise(kernel, points)
    padded = _pad(points, blocks * size, "edge")

    def one(i: Array) -> Array:
        values = block_of(_block(padded, i, size), points).astype(z.dtype)
        return jnp.matmul(values, z, precision=HIGHEST)

    return jax.lax.map(one, jnp.arange(blocks)).reshape(blocks * size, -1)[:n]
