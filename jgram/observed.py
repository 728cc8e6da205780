"""Observations bound to a kernel, once: all that a score ever asks of them.

:func:`observe` gives one of four bindings, and everything behind the door asks it for Gram
matrices, products and squares without knowing which:

- :class:`Codes`: integer outcomes under the delta kernel, counted;
- :class:`Features`: an explicit kernel, one row of features a record;
- :class:`Mapped`: an explicit kernel of so many records that their features are not kept, but made
  anew in every pass, a batch of records at a time;
- :class:`Pairs`: any other kernel, exact over all pairs of records (:mod:`jgram.ring`).

A binding is a pytree. Under ``vmap`` over reports it is shared: the kernel is evaluated once for
all of them. Every function that takes ``y`` and a kernel takes a binding in the place of ``y``.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jgram.arrays import (
    HIGHEST,
    Array,
    ArrayLike,
    Float,
    Int,
    extended,
    is_concrete,
    pytree,
    report_matrix,
)
from jgram.determinant import (
    Elimination,
    eliminate_gram,
    eliminate_sums,
    inverse_cholesky,
    log_top_determinant,
    log_top_determinant_of_sums,
    solve,
)
from jgram.kernels import Delta, Kernel, resolve
from jgram.ring import flat_mesh, place, ring_gram, ring_pass

__all__ = [
    "Codes", "Features", "Frame", "KernelPass", "Mapped", "Observed", "Pairs", "block",
    "observe",
]  # fmt: skip

MOST_CELLS = 1 << 28  # of a table, some gigabytes
KEPT = 1 << 26  # numbers of features that are kept, half a gigabyte of float64
BATCH = 1 << 22  # numbers of features that are made at a time
SPREAD_RECORDS = 8192  # that the spread of a kernel is read from where features are not kept


class KernelPass(NamedTuple):
    """What one pass over the kernel matrix ``K`` finds.

    Attributes:
        product: ``K Z``, ``[n, k]``.
        spread: Mean square of the doubly centred kernel off its diagonal, by the weights or 1.
    """

    product: Float[Array, "n k"]
    spread: Float[Array, ""]


class Frame(NamedTuple):
    """The span of the class means ``M`` in feature space, and where each record lies in it.

    The columns of ``M inverse_factor`` are orthonormal; ``G = M^T M``.

    Attributes:
        elimination: Log-determinant, rank and pivots of ``G``.
        inside: ``[n, d]`` coordinates of the records in the span; 0 where ``G`` is singular.
        inverse_factor: ``[d, d]`` with ``G^-1 = inverse_factor inverse_factor^T``; 0 where ``G`` is
            singular.
        lengths: ``sqrt(G[k, k])``, ``[d]``.
    """

    elimination: Elimination
    inside: Float[Array, "n d"]
    inverse_factor: Float[Array, "d d"]
    lengths: Float[Array, " d"]


class _Bound:
    """What all bindings have in common: points ``[n, ...]`` that stand for the records."""

    points: Any
    kernel: Any
    _pass: Any  # from columns and weights to the products of the columns and the spread

    @property
    def size(self) -> int:
        """The number of records."""
        return self.points.shape[0]

    def padded(self, count: int) -> Any:
        """With ``count`` more records, to be given weight 0."""
        return replace(self, points=extended(self.points, count, "edge"))  # type: ignore[type-var]

    def kernel_pass(self, z: Any, weights: Any = None) -> KernelPass:
        """``K z`` and the spread of ``K``, in one pass."""
        z = jnp.asarray(z)
        weights = jnp.ones(self.size, z.dtype) if weights is None else jnp.asarray(weights, z.dtype)
        columns = jnp.concatenate([weights[:, None], z], axis=1)
        product, spread = self._pass(columns, weights)
        return KernelPass(product[:, 1:], spread)


class _Explicit(_Bound):
    """What bindings of explicit kernels have in common: a space to work in."""

    dtype: Any
    num_features: Any
    sums: Any
    project: Any
    squares: Any
    squared_norm: Any

    @property
    def rank_bound(self) -> int:
        """How many classes the observations can tell apart at most."""
        return self.num_features

    def product(self, z: Any) -> Array:
        """``K z``, ``[n, k]``."""
        return self.project(self.sums(z).T)

    def gram(self, z: Any) -> Array:
        """``z^T K z``, ``[k, k]``."""
        sums = self.sums(z)
        return jnp.matmul(sums, sums.T, precision=HIGHEST)

    def _pass(self, columns: Any, weights: Any) -> tuple[Array, Array]:
        product = self.product(columns)
        norm = self.squared_norm(weights)
        return product, mean_square(self.squares, weights, product[:, 0], norm)

    def class_gram(self, x_hat: Any, num_classes: int, weights: Any = None) -> Array:
        """The Gram matrix ``[d, d]`` of reports, for inspection: it squares condition numbers."""
        means = self._means(x_hat, num_classes, weights)
        return jnp.matmul(means, means.T, precision=HIGHEST)

    def eliminate(self, x_hat: Any, num_classes: int, weights: Any = None) -> Elimination:
        """Log-determinant, rank and pivots of the Gram matrix of reports."""
        return eliminate_sums(self._means(x_hat, num_classes, weights))

    def log_top_determinant(self, x_hat: Any, num_classes: int, weights: Any, rank: int) -> Array:
        """Log of the product of the ``rank`` largest eigenvalues of the Gram matrix."""
        return log_top_determinant_of_sums(self._means(x_hat, num_classes, weights), rank)

    def frame(
        self, x_hat: Any, num_classes: int, weights: Any = None, product: Any = None
    ) -> Frame:
        """The span of the class means, by a QR of them; a ``product`` is not needed."""
        found = frame_of_means(self._means(x_hat, num_classes, weights))
        return found._replace(inside=self.project(found.inside))

    def _means(self, x_hat: Any, num_classes: int, weights: Any) -> Array:
        return normalised(*self.class_sums(x_hat, num_classes, weights))

    def class_sums(self, x_hat: Any, num_classes: int, weights: Any) -> tuple[Array, Array]:
        """Feature sums ``[d, m]`` and total weight ``[d]`` of each class."""
        z = report_matrix(x_hat, num_classes, weights, self.dtype)
        if jnp.ndim(x_hat) == 2 or weights is not None:
            return self.sums(z), jnp.sum(z, axis=0)
        ones, labels = jnp.ones(self.size, jnp.int32), jnp.asarray(x_hat).astype(jnp.int32)
        return self.sums(z), jax.ops.segment_sum(ones, labels, num_segments=num_classes)

    def coordinates(self) -> Array:
        """The features ``[n, m]``."""
        return self.project(jnp.eye(self.num_features, dtype=self.dtype))


@pytree
@dataclass(frozen=True)
class Codes(_Explicit):
    """Integer outcomes ``points[n]`` of ``num_features`` under the delta kernel."""

    points: Any
    kernel: Any
    num_features: int = field(metadata={"static": True})

    @property
    def dtype(self) -> Any:
        """Floating-point type of what is computed."""
        return jnp.result_type(float)

    @property
    def squares(self) -> Array:
        """``K(y_n, y_n)``, ``[n]``."""
        return jnp.ones(self.size, self.dtype)

    @property
    def rank_bound(self) -> int:
        """How many classes the observations can tell apart at most."""
        return len(np.unique(np.asarray(self.points)))

    def refuse_many(self, num_classes: int) -> None:
        """Refuse a table of so many classes that memory would not hold it."""
        if self.num_features * num_classes > MOST_CELLS:
            raise ValueError(
                f"expected at most {MOST_CELLS:,} cells of outcomes and classes, got "
                f"{self.num_features:,} times {num_classes:,}: number both from 0 without gaps"
            )

    def table(self, x_hat: Any, num_classes: int, weights: Any = None) -> Array:
        """Contingency table ``[m, d]``: int32 counts of labels, sums of weights otherwise."""
        x_hat, d = jnp.asarray(x_hat), num_classes
        self.refuse_many(d)
        if x_hat.ndim == 2:
            return self.sums(report_matrix(x_hat, d, weights, x_hat.dtype)).T
        ones = jnp.ones(self.size, jnp.int32) if weights is None else countable(weights)
        cells = self.points.astype(jnp.int32) * d + x_hat.astype(jnp.int32)
        found = jax.ops.segment_sum(ones, cells, num_segments=self.num_features * d)
        return found.reshape(self.num_features, d)

    def class_sums(self, x_hat: Any, num_classes: int, weights: Any) -> tuple[Array, Array]:
        """Feature sums ``[d, m]`` and total weight ``[d]`` of each class; exact for counts."""
        sums = self.table(x_hat, num_classes, weights).T
        return sums, jnp.sum(sums, axis=1)

    def sums(self, z: Any) -> Array:
        """``z^T features``, ``[k, m]``."""
        return jax.ops.segment_sum(jnp.asarray(z), self.points, num_segments=self.num_features).T

    def project(self, matrix: Any) -> Array:
        """``features matrix``: a gather."""
        return matrix[self.points]

    def block(self, first: Any, second: Any) -> Array:
        """The kernel between two sets of records, given by their indices or slices."""
        return (self.points[first][:, None] == self.points[second]).astype(self.dtype)

    def squared_norm(self, weights: Any = None) -> Array:
        """``sum w_i w_j K_ij^2``."""
        ones = jnp.ones(self.size, self.dtype) if weights is None else weights
        return jnp.sum(self.sums(ones[:, None]) ** 2)


@pytree
@dataclass(frozen=True)
class Features(_Explicit):
    """Features ``points[n, m]`` whose inner products are the kernel."""

    points: Any
    kernel: Any

    @property
    def dtype(self) -> Any:
        """Floating-point type of what is computed."""
        return self.points.dtype

    @property
    def squares(self) -> Array:
        """``K(y_n, y_n)``, ``[n]``."""
        return jnp.sum(self.points**2, axis=1)

    @property
    def num_features(self) -> int:
        """The number of features."""
        return self.points.shape[1]

    def sums(self, z: Any) -> Array:
        """``z^T features``, ``[k, m]``."""
        return jnp.matmul(jnp.asarray(z).T, self.points, precision=HIGHEST)

    def project(self, matrix: Any) -> Array:
        """``features matrix``."""
        return jnp.matmul(self.points, matrix, precision=HIGHEST)

    def block(self, first: Any, second: Any) -> Array:
        """The kernel between two sets of records, given by their indices or slices."""
        return jnp.matmul(self.points[first], self.points[second].T, precision=HIGHEST)

    def squared_norm(self, weights: Any = None) -> Array:
        """``sum w_i w_j K_ij^2``."""
        weighted = self.points if weights is None else self.points * weights[:, None]
        return jnp.sum(jnp.matmul(self.points.T, weighted, precision=HIGHEST) ** 2)


@pytree
@dataclass(frozen=True)
class Mapped(_Explicit):
    """Points ``[n, ...]`` and a kernel with features, made anew in every pass, batch by batch.

    Memory is that of one batch, not ``[n, m]``. All is as from :class:`Features`, except that the
    spread of the kernel, a matter of ``n m^2``, is from :data:`SPREAD_RECORDS` of the records.
    """

    points: Any
    kernel: Any
    num_features: int = field(metadata={"static": True})

    @property
    def dtype(self) -> Any:
        """Floating-point type of what is computed."""
        return jnp.result_type(self.points.dtype, jnp.result_type(float))

    @property
    def squares(self) -> Array:
        """``K(y_n, y_n)``, ``[n]``."""
        if hasattr(self.kernel, "squares"):
            return self.kernel.squares(self.points).astype(self.dtype)
        lengths = _mapped(_Held(self.kernel), self.points, None, self._batch)
        return lengths[:, 0].astype(self.dtype)

    def sums(self, z: Any) -> Array:
        """``z^T features``, ``[k, m]``."""
        z = jnp.asarray(z, self.dtype)
        return _mapped_sums(_Held(self.kernel), self.points, z, self._batch)

    def project(self, matrix: Any) -> Array:
        """``features matrix``."""
        matrix = jnp.asarray(matrix, self.dtype)
        return _mapped(_Held(self.kernel), self.points, matrix, self._batch)

    def block(self, first: Any, second: Any) -> Array:
        """The kernel between two sets of records, given by their indices or slices."""
        one, two = (self.kernel.features(self.points[part]) for part in (first, second))
        return jnp.matmul(one, two.T, precision=HIGHEST).astype(self.dtype)

    def _pass(self, columns: Any, weights: Any) -> tuple[Array, Array]:
        sums, kept = self.sums(columns), jnp.ones((1, self.num_features), self.dtype)
        return self.project(sums.T), feature_spreads(self, weights, sums[0], kept)[0]

    @property
    def _batch(self) -> int:
        return max(1, BATCH // self.num_features)


@pytree
@dataclass(frozen=True)
class Pairs(_Bound):
    """Points ``[n, ...]`` and a kernel of pairs, as the kernel's ``prepare`` left them.

    With a ``mesh`` all passes over the pairs go round its devices.
    """

    points: Any
    kernel: Any
    block_size: int | None = field(default=None, metadata={"static": True})
    mesh: Mesh | None = field(default=None, metadata={"static": True})

    @property
    def dtype(self) -> Any:
        """Floating-point type of what is computed."""
        return jnp.result_type(self.points.dtype, jnp.float32)

    @property
    def squares(self) -> Array:
        """``K(y_n, y_n)``, ``[n]``."""
        if hasattr(self.kernel, "squares"):
            return self.kernel.squares(self.points)
        pairs = _Held(self.kernel)
        return jax.vmap(lambda point: pairs(point[None], point[None])[0, 0])(self.points)

    @property
    def rank_bound(self) -> int:
        """How many classes the observations can tell apart at most."""
        return len(np.unique(np.asarray(self.points).reshape(self.size, -1), axis=0))

    def block(self, first: Any, second: Any) -> Array:
        """The kernel between two sets of records, given by their indices or slices."""
        return _Held(self.kernel)(self.points[first], self.points[second])

    def gram(self, z: Any) -> Array:
        """``z^T K z``, ``[k, k]``."""
        return _pairs_gram(self, place(self.mesh, jnp.asarray(z)))

    def product(self, z: Any) -> Array:
        """``K z``, ``[n, k]``."""
        return self.kernel_pass(z).product

    def _pass(self, columns: Any, weights: Any) -> tuple[Array, Array]:
        placed = place(self.mesh, columns), place(self.mesh, weights)
        product, norm = _pairs_pass(self, *placed)
        return product, mean_square(self.squares, weights, product[:, 0], norm)

    def class_gram(self, x_hat: Any, num_classes: int, weights: Any = None) -> Array:
        """The Gram matrix ``[d, d]`` of reports."""
        z = report_matrix(x_hat, num_classes, weights, self.dtype)
        return self.gram(z) / jnp.sum(z) ** 2

    def coordinates(self) -> Array:
        """A square root ``[n, r]`` of the kernel matrix, of its numerical rank; small data only."""
        values, vectors = np.linalg.eigh(np.asarray(self.product(jnp.eye(self.size)), np.float64))
        if values[0] < -1e-9 * values[-1]:
            raise ValueError(
                "expected a positive semi-definite kernel, got an eigenvalue "
                f"{values[0]:.3g} of the kernel matrix (largest: {values[-1]:.3g})"
            )
        kept = values > self.size * np.finfo(np.float64).eps * values[-1]
        return jnp.asarray(vectors[:, kept] * np.sqrt(values[kept]))

    def eliminate(self, x_hat: Any, num_classes: int, weights: Any = None) -> Elimination:
        """Log-determinant, rank and pivots of the Gram matrix of reports."""
        return eliminate_gram(self.class_gram(x_hat, num_classes, weights))

    def log_top_determinant(self, x_hat: Any, num_classes: int, weights: Any, rank: int) -> Array:
        """Log of the product of the ``rank`` largest eigenvalues of the Gram matrix."""
        return log_top_determinant(self.class_gram(x_hat, num_classes, weights), rank)

    def frame(
        self, x_hat: Any, num_classes: int, weights: Any = None, product: Any = None
    ) -> Frame:
        """The span of the class means, by a Cholesky factor of the Gram matrix.

        ``product`` is ``K z`` of the weighted reports, where a pass over the pairs made it already.
        """
        z = report_matrix(x_hat, num_classes, weights, self.dtype)
        total = jnp.sum(z)
        mean = (self.product(z) if product is None else product) / total
        gram = jnp.matmul(z.T, mean, precision=HIGHEST) / total
        return frame_of_product(0.5 * (gram + gram.T), mean)


Observed = Codes | Features | Mapped | Pairs
"""Observations bound to a kernel."""


def observe(
    kernel: Kernel | str, y: Any, *, block_size: int | None = None, mesh: Mesh | None = None
) -> Observed:
    """Bind observations to a kernel, which is resolved here and nowhere else.

    Args:
        kernel: A kernel, the name of one, or any function of two observations.
        y: Observations ``[n, ...]``; integer outcomes ``[n]`` for ``delta``. A binding is returned
            as it is.
        block_size: As of :func:`jgram.gram`; 4,096 on CUDA and 1,024 elsewhere unless given.
        mesh: Devices, as from ``jax.make_mesh``, for an implicit kernel: the records are split over
            all of them where their number is a multiple of the devices', and every pass over the
            pairs goes round a ring (:mod:`jgram.ring`). Explicit kernels need none: JAX splits sums
            over records where the records are split.

    Returns:
        :class:`Codes`, :class:`Features` (:class:`Mapped` beyond :data:`KEPT` numbers) or
        :class:`Pairs`.

    Raises:
        ValueError: The observations do not fit the kernel.

    Example:
        >>> from jgram.kernels import rbf
        >>> observed = observe(rbf, np.array([0.0, 1.0, 3.0]))
        >>> observed.size, float(observed.kernel.bandwidth)
        (3, 2.0)
    """
    if isinstance(y, Observed):
        return y
    resolved: Any = resolve(kernel, y)
    points = jnp.asarray(y)
    if isinstance(resolved, Delta):
        return Codes(points, resolved, resolved.num_outcomes or 0)
    if hasattr(resolved, "features"):
        m = jax.eval_shape(resolved.features, points[:1]).shape[1] if points.ndim else 0
        if m and len(points) * m > KEPT:
            return Mapped(points, resolved, m)
        return Features(resolved.features(points), resolved)
    if points.ndim == 0:
        raise ValueError("expected observations of shape [n] or [n, k], got a scalar")
    if not jnp.issubdtype(points.dtype, jnp.floating):
        points = points.astype(jnp.result_type(float))
    if hasattr(resolved, "prepare"):
        points = resolved.prepare(points)
    devices = None if mesh is None else flat_mesh(mesh)
    return Pairs(place(devices, points), resolved, block_size, devices)


@jax.jit  # one program: outside of another, every step of it would be one
def block(observed: Any, first: Int[ArrayLike, " a"], second: Int[ArrayLike, " b"]) -> Array:
    """The kernel between two sets of records ``[a, b]``, given by their indices."""
    return observed.block(first, second)


def countable(weights: Any) -> Array:
    """Frequencies, as floats where their sum may exceed 32 bits."""
    large = is_concrete(weights) and np.sum(np.asarray(weights), dtype=np.float64) >= 2**31
    return jnp.asarray(weights, jnp.result_type(float)) if large else 1 * jnp.asarray(weights)


def normalised(sums: Any, counts: Any) -> Array:
    """``sums / N``: class sums of features as means over all records, floating point."""
    sums, counts = jnp.asarray(sums), jnp.asarray(counts)
    dtype = sums.dtype if jnp.issubdtype(sums.dtype, jnp.floating) else jnp.result_type(float)
    total = jnp.sum(counts.astype(dtype))
    return sums.astype(dtype) / jnp.where(total > 0, total, 1.0)


def frame_of_means(means: Array) -> Frame:
    """:class:`Frame` from class means ``[d, m]``, by a QR of them; ``inside`` is its basis."""
    d, dtype = means.shape[0], means.dtype
    found = eliminate_sums(means)
    full = found.rank == d
    lengths = jnp.linalg.norm(means, axis=1)
    scale = jnp.where(lengths > 0, lengths, 1.0)
    if means.shape[1] < d:  # rank-deficient by construction
        upper, basis = jnp.eye(d, dtype=dtype), jnp.zeros((means.shape[1], d), dtype)
    else:
        basis, upper = jnp.linalg.qr((means / scale[:, None]).T)
        basis = jnp.where(full, basis, 0.0)
        upper = jnp.where(full, upper, jnp.eye(d, dtype=dtype))
    inverse = solve(upper, jnp.eye(d, dtype=dtype))
    return Frame(found, basis, jnp.where(full, inverse / scale[:, None], 0.0), lengths)


def frame_of_product(gram: Array, mean: Array) -> Frame:
    """:class:`Frame` from the Gram matrix ``[d, d]`` and ``mean = K Z / N``, ``[n, d]``."""
    d, dtype = gram.shape[0], gram.dtype
    found = eliminate_gram(gram)
    full = found.rank == d
    lengths = jnp.sqrt(jnp.maximum(jnp.diagonal(gram), 0.0))
    scale = jnp.where(lengths > 0, lengths, 1.0)
    unit = jnp.where(full, gram / scale[:, None] / scale, jnp.eye(d, dtype=dtype))
    inverse = jnp.where(full, inverse_cholesky(unit) / scale, 0.0).T
    return Frame(found, jnp.matmul(mean, inverse, precision=HIGHEST), inverse, lengths)


def feature_spreads(observed: Any, weights: Array, sums: Array, scales: Array) -> Array:
    """Mean squares ``[r]`` of the doubly centred kernel off its diagonal, of rescaled features.

    Of :class:`Mapped` features by :data:`SPREAD_RECORDS` of the records with a weight. ``sums`` is
    the weighted sum ``[m]`` of all features, ``scales[r, m]`` has a factor for each.
    """
    mean = sums / jnp.maximum(jnp.sum(weights), 1.0)
    if isinstance(observed, Mapped) and observed.size > SPREAD_RECORDS:
        places = np.random.default_rng(0).random(observed.size)
        chosen = jnp.argsort(jnp.where(weights > 0, places, 2.0))[:SPREAD_RECORDS]
        weights, features = weights[chosen], observed.kernel.features(observed.points[chosen])
    else:
        features = observed.coordinates()
    return _spreads(features - mean.astype(features.dtype), weights, scales)


@jax.jit
def _spreads(centred: Array, weights: Array, scales: Array) -> Array:
    factors = scales**2
    weighted = centred * weights[:, None].astype(centred.dtype)
    entries = jnp.matmul(centred.T, weighted, precision=HIGHEST) ** 2
    norms = jnp.sum(factors @ entries * factors, axis=1)
    own = jnp.matmul(centred**2, factors.T, precision=HIGHEST)
    total = jnp.sum(weights)
    pairs = jnp.maximum(total * (total - 1), 1.0)
    return jnp.maximum((norms - weights @ own**2) / pairs, 0.0)


def mean_square(squares: Array, weights: Array, rows: Array, squared_norm: Array) -> Array:
    """Mean square of the doubly centred kernel off its diagonal, from ``sum w_i w_j K_ij^2``."""
    total = jnp.maximum(jnp.sum(weights), 2.0)  # fewer records say nothing, in numbers
    rows = rows / total
    mean = weights @ rows / total
    own = squares - 2 * rows + mean
    norm = squared_norm - 2 * total * (weights @ rows**2) + (total * mean) ** 2
    return jnp.maximum((norm - weights @ own**2) / jnp.maximum(total * (total - 1), 1), 0.0)


@pytree
@dataclass(frozen=True)
class _Held:
    """A kernel as an argument of what is compiled; of two blocks of points it gives a block."""

    kernel: Any

    def __call__(self, first: Array, second: Array) -> Array:
        if hasattr(self.kernel, "block"):
            return self.kernel.block(first, second)
        each = jax.vmap(self.kernel, in_axes=(None, 0))
        return jax.vmap(each, in_axes=(0, None))(first, second)


def _batches(values: Array, batch: int, mode: str) -> Array:
    """Batches ``[batches, size, ...]`` of records, the last one filled up."""
    size = min(batch, len(values))
    whole = extended(values, -len(values) % size, mode)
    return whole.reshape(-1, size, *values.shape[1:])


@partial(jax.jit, static_argnames="batch")
def _mapped_sums(held: _Held, points: Array, z: Array, batch: int) -> Array:
    """``z^T features`` over batches of records; the last one is filled up with rows of zeros."""

    def add(total: Array, part: tuple[Array, Array]) -> tuple[Array, None]:
        features = held.kernel.features(part[0]).astype(z.dtype)
        return total + jnp.matmul(part[1].T, features, precision=HIGHEST), None

    m = jax.eval_shape(held.kernel.features, points[:1]).shape[1]
    parts = _batches(points, batch, "edge"), _batches(z, batch, "constant")
    return jax.lax.scan(add, jnp.zeros((z.shape[1], m), z.dtype), parts)[0]


@partial(jax.jit, static_argnames="batch")
def _mapped(held: _Held, points: Array, matrix: Any, batch: int) -> Array:
    """``features matrix``, or squared lengths of features without one, over batches of records."""

    def one(part: Array) -> Array:
        features = held.kernel.features(part)
        if matrix is None:
            return jnp.sum(features**2, axis=1, keepdims=True)
        return jnp.matmul(features.astype(matrix.dtype), matrix, precision=HIGHEST)

    found = jax.lax.map(one, _batches(points, batch, "edge"))
    return found.reshape(-1, found.shape[-1])[: len(points)]


@jax.jit
def _pairs_gram(observed: Pairs, z: Array) -> Array:
    pairs = _Held(observed.kernel)
    return ring_gram(observed.mesh, pairs, observed.points, z, observed.block_size)


@jax.jit
def _pairs_pass(observed: Pairs, z: Array, weights: Array) -> tuple[Array, Array]:
    pairs = _Held(observed.kernel)
    return ring_pass(observed.mesh, pairs, observed.points, z, weights, observed.block_size)
