"""The empirical Gram matrix: from records to class sums, and from class sums to ``[d, d]``.

Explicit kernels go through :class:`GramState`, a commutative monoid: batches, shards and streams
merge by addition. Implicit kernels (``rbf``, any function of a pair) are exact over all pairs, in
tiles (:mod:`jgram.observed`).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jgram.arrays import (
    Array,
    ArrayLike,
    Float,
    Num,
    Shaped,
    check_lengths,
    extended,
    infer_num_classes,
    refuse_unbounded,
)
from jgram.kernels import Delta, Kernel, rbf, takes
from jgram.observed import Observed, Pairs, observe

__all__ = [
    "GramState", "gram", "gram_state", "init", "joint_table", "merge", "sharded_gram_state",
    "update",
]  # fmt: skip


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


def joint_table(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, " n"],
    *,
    num_classes: int | None = None,
    num_outcomes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> Num[Array, "m d"]:
    """Contingency table ``[m, d]`` of outcomes and reports: ``N`` times the empirical ``P Q``.

    Of integers from 0, int32 counts or sums of weights; the sizes are static, required in ``jit``.

    Example:
        >>> joint_table(jnp.array([0, 1, 1]), jnp.array([0, 0, 2]))[2]
        Array([0, 1], dtype=int32)
    """
    d = infer_num_classes(x_hat, num_classes)
    observed = observe(Delta(num_outcomes), y)
    check_lengths(x_hat, observed.size, weights)
    return observed.table(x_hat, d, weights)  # pyright: ignore[reportAttributeAccessIssue]


def init(
    kernel: Kernel,
    num_classes: int,
    num_features: int,
    dtype: Any = None,
    *,
    weighted: bool = False,
) -> GramState:
    """The state of no records: ``merge``'s neutral element.

    Sums are int32 for ``delta``, whose features are its outcomes, else of the default float; floats
    too where ``weighted``: for updates with weights or soft reports.

    Example:
        >>> init(Delta(3), num_classes=2, num_features=3).sums.shape
        (2, 3)
    """
    counted = takes(kernel) == "categorical" and not weighted
    dtype = dtype or (jnp.int32 if counted else jnp.result_type(float))
    counts = jnp.zeros(num_classes, jnp.result_type(float) if weighted else jnp.int32)
    return GramState(jnp.zeros((num_classes, num_features), dtype), counts)


def update(
    state: GramState,
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str,
    *,
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> GramState:
    """The state with the records of :func:`gram_state` added; it fixes ``d`` and ``m``.

    Example:
        >>> state = init(Delta(3), num_classes=2, num_features=3)
        >>> update(state, jnp.array([0, 1]), jnp.array([2, 2]), Delta(3)).sums[1]
        Array([0, 0, 1], dtype=int32)
    """
    return merge(state, gram_state(x_hat, y, kernel, num_classes=len(state.sums), weights=weights))


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
            f"{np.shape(second.sums)}: give the delta kernel its num_outcomes"
        )
    return GramState(first.sums + second.sums, first.counts + second.counts)


def gram_state(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str,
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> GramState:
    """:class:`GramState` of one batch, of arguments as :func:`gram` takes them.

    Raises:
        ValueError: The kernel has no features, or shapes or values do not fit.
    """
    d = infer_num_classes(x_hat, num_classes)
    observed = observe(kernel, y)
    check_lengths(x_hat, observed.size, weights)
    if isinstance(observed, Pairs):
        raise ValueError(
            "expected a kernel with features for a GramState (delta, linear, random features), got "
            f"{kernel!r}: states of implicit kernels cannot be merged, use gram or RandomFeatures"
        )
    return GramState(*observed.class_sums(x_hat, d, weights))


def gram(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str = rbf,
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
    block_size: int | None = None,
) -> Float[Array, "d d"]:
    """The plug-in Gram matrix of reports (Definitions 4.4 and 4.10).

    ``G[a, b] = (1/N^2) sum over records n reported a and m reported b of K(y_n, y_m)``, the pairs
    ``n = m`` included, with ``N`` the number of records, or the total weight.

    Args:
        x_hat: Labels ``[n]`` or soft reports ``[n, d]`` (rows on the simplex).
        y: Observations ``[n, ...]``, or a binding of them (:func:`jgram.observe`).
        kernel: A kernel, or any function of two observations.
        num_classes: ``d``, static; inferred outside ``jit``.
        weights: ``[n]``, at least 0; 0 leaves a record out, 3 counts it three times.
        block_size: Rows of a tile of an implicit kernel, static; by platform unless given.
            Temporaries hold a few ``block_size**2`` numbers.

    Returns:
        ``[d, d]``, symmetric, positive semi-definite for a positive definite kernel.

    Raises:
        ValueError: Shapes or concrete values that do not fit.

    Example:
        >>> gram(jnp.array([0, 1]), jnp.array([0.0, 0.0]), "rbf").tolist()
        [[0.25, 0.25], [0.25, 0.25]]
    """
    d = infer_num_classes(x_hat, num_classes)
    observed = observe(kernel, y, block_size=block_size)
    check_lengths(x_hat, observed.size, weights)
    return observed.class_gram(x_hat, d, weights)


def sharded_gram_state(
    mesh: Mesh,
    x_hat: Num[Array, "n ..."],
    y: Num[Array, "n ..."],
    kernel: Kernel,
    *,
    num_classes: int,
    weights: Num[Array, " n"] | None = None,
) -> GramState:
    """:class:`GramState` by one sum over devices, each with its share of the records.

    Records are split over all axes of the mesh; where they do not divide evenly, the last shard is
    filled up with records of weight 0. Nothing but the ``[d, m]`` sums travels, and every device
    has them. The kernel is explicit and complete (``Delta(num_outcomes)``).

    Example:
        >>> mesh = jax.make_mesh((1,), ("records",))
        >>> x_hat, y = jnp.array([0, 1, 1]), jnp.array([0, 0, 1])
        >>> sharded_gram_state(mesh, x_hat, y, Delta(2), num_classes=2).counts
        Array([1, 2], dtype=int32)
    """
    infer_num_classes(x_hat, num_classes)
    refuse_unbounded(y, "observations")
    records = (x_hat, y, jnp.ones(len(x_hat), jnp.int32) if weights is None else weights)
    missing = -len(x_hat) % mesh.size
    split = PartitionSpec(mesh.axis_names)
    filled = [extended(part, missing) for part in records]
    shards = jax.device_put(filled, NamedSharding(mesh, split))

    def local(x_hat: Any, y: Any, weights: Any) -> GramState:
        state = gram_state(x_hat, y, kernel, num_classes=num_classes, weights=weights)
        return jax.lax.psum(state, mesh.axis_names)

    return jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=PartitionSpec())(*shards)
