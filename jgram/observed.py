"""Observations bound to a kernel, once: all that a score ever asks of them.

:func:`observe` gives one of three bindings, and everything behind the door asks it for Gram
matrices, products and squares without knowing which:

- :class:`Codes`: integer outcomes under the delta kernel, counted;
- :class:`Features`: an explicit kernel, one row of features a record;
- :class:`Pairs`: any other kernel, exact over all pairs of records in tiles of at most
  ``block_size`` squared, of which only those on and above the diagonal are evaluated.

A binding is a pytree. Under ``vmap`` over reports it is shared: the kernel is evaluated once for
all of them. Every function that takes ``y`` and a kernel takes a binding in the place of ``y``.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import HIGHEST, Array, Float, is_concrete, report_matrix
from jgram.determinant import (
    Elimination,
    eliminate_gram,
    eliminate_sums,
    log_top_determinant,
    log_top_determinant_of_sums,
)
from jgram.kernels import Delta, Kernel, resolve

__all__ = ["Codes", "Features", "Frame", "KernelPass", "Observed", "Pairs", "observe"]

BLOCK_SIZE = 1024


class KernelPass(NamedTuple):
    """What one pass over the kernel matrix ``K`` finds.

    Attributes:
        product: ``K Z``, ``[n, k]``.
        squared_norm: ``sum over i, j of w_i w_j K_ij^2`` with the weights given, or 1.
    """

    product: Float[Array, "n k"]
    squared_norm: Float[Array, ""]


class Frame(NamedTuple):
    """The span of the class means, and where each record lies in it.

    With ``M`` the class means in feature space and ``G = M^T M``, the columns of
    ``M inverse_factor`` are orthonormal.

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


class _Explicit:
    """What :class:`Codes` and :class:`Features` have in common: a space to work in."""

    def product(self, z: Any) -> Array:
        """``K z``, ``[n, k]``."""
        return self.project(self.sums(z).T)

    def gram(self, z: Any) -> Array:
        """``z^T K z``, ``[k, k]``."""
        sums = self.sums(z)
        return jnp.matmul(sums, sums.T, precision=HIGHEST)

    def kernel_pass(self, z: Any, weights: Any = None) -> KernelPass:
        """``K z`` and the squared norm of ``K``."""
        return KernelPass(self.product(z), self.squared_norm(weights))

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
        means = self._means(x_hat, num_classes, weights)
        d, dtype = num_classes, means.dtype
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
        inverse = jax.scipy.linalg.solve_triangular(upper, jnp.eye(d, dtype=dtype))
        inverse = jnp.where(full, inverse / scale[:, None], 0.0)
        return Frame(found, self.project(basis), inverse, lengths)

    def _means(self, x_hat: Any, num_classes: int, weights: Any) -> Array:
        return normalised(*self.class_sums(x_hat, num_classes, weights))

    def coordinates(self) -> Array:
        """The features ``[n, m]``."""
        return self.project(jnp.eye(self.num_features, dtype=self.dtype))

    @property
    def num_features(self) -> int:
        raise NotImplementedError

    @property
    def dtype(self) -> Any:
        raise NotImplementedError

    def class_sums(self, x_hat: Any, num_classes: int, weights: Any) -> tuple[Array, Array]:
        raise NotImplementedError

    def sums(self, z: Any) -> Array:
        raise NotImplementedError

    def project(self, matrix: Any) -> Array:
        raise NotImplementedError

    def squared_norm(self, weights: Any = None) -> Array:
        raise NotImplementedError


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Codes(_Explicit):
    """Integer outcomes ``codes[n]`` of ``num_outcomes`` under the delta kernel."""

    codes: Any
    kernel: Any
    num_outcomes: int = field(metadata={"static": True})

    @property
    def size(self) -> int:
        """The number of records."""
        return self.codes.shape[0]

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
        return len(np.unique(np.asarray(self.codes)))

    @property
    def num_features(self) -> int:
        """The number of outcomes."""
        return self.num_outcomes

    def padded(self, count: int) -> "Codes":
        """With ``count`` more records, to be given weight 0."""
        return replace(self, codes=_pad(self.codes, self.size + count, "edge"))

    def table(self, x_hat: Any, num_classes: int, weights: Any = None) -> Array:
        """Contingency table ``[m, d]``: int32 counts of labels, sums of weights otherwise."""
        x_hat, d = jnp.asarray(x_hat), num_classes
        if x_hat.ndim == 2:
            z = report_matrix(x_hat, d, weights, x_hat.dtype)
            return jax.ops.segment_sum(z, self.codes, num_segments=self.num_outcomes)
        ones = jnp.ones(self.size, jnp.int32) if weights is None else _countable(weights)
        cells = self.codes.astype(jnp.int32) * d + x_hat.astype(jnp.int32)
        found = jax.ops.segment_sum(ones, cells, num_segments=self.num_outcomes * d)
        return found.reshape(self.num_outcomes, d)

    def class_sums(self, x_hat: Any, num_classes: int, weights: Any) -> tuple[Array, Array]:
        """Feature sums ``[d, m]`` and total weight ``[d]`` of each class; exact for counts."""
        sums = self.table(x_hat, num_classes, weights).T
        return sums, jnp.sum(sums, axis=1)

    def sums(self, z: Any) -> Array:
        """``z^T features``, ``[k, m]``."""
        return jax.ops.segment_sum(jnp.asarray(z), self.codes, num_segments=self.num_outcomes).T

    def project(self, matrix: Any) -> Array:
        """``features matrix``: a gather."""
        return matrix[self.codes]

    def block(self, first: Any, second: Any) -> Array:
        """The kernel between two sets of records, given by their indices or slices."""
        return (self.codes[first][:, None] == self.codes[second]).astype(self.dtype)

    def squared_norm(self, weights: Any = None) -> Array:
        """``sum w_i w_j K_ij^2``."""
        ones = jnp.ones(self.size, self.dtype) if weights is None else weights
        return jnp.sum(self.sums(ones[:, None]) ** 2)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Features(_Explicit):
    """Features ``[n, m]`` whose inner products are the kernel."""

    features: Any
    kernel: Any

    @property
    def size(self) -> int:
        """The number of records."""
        return self.features.shape[0]

    @property
    def dtype(self) -> Any:
        """Floating-point type of what is computed."""
        return self.features.dtype

    @property
    def squares(self) -> Array:
        """``K(y_n, y_n)``, ``[n]``."""
        return jnp.sum(self.features**2, axis=1)

    @property
    def num_features(self) -> int:
        """The number of features."""
        return self.features.shape[1]

    def padded(self, count: int) -> "Features":
        """With ``count`` more records, to be given weight 0."""
        return replace(self, features=_pad(self.features, self.size + count, "edge"))

    @property
    def rank_bound(self) -> int:
        """How many classes the observations can tell apart at most."""
        return self.num_features

    def class_sums(self, x_hat: Any, num_classes: int, weights: Any) -> tuple[Array, Array]:
        """Feature sums ``[d, m]`` and total weight ``[d]`` of each class."""
        z = report_matrix(x_hat, num_classes, weights, self.dtype)
        if jnp.ndim(x_hat) == 2 or weights is not None:
            return self.sums(z), jnp.sum(z, axis=0)
        ones, labels = jnp.ones(self.size, jnp.int32), jnp.asarray(x_hat).astype(jnp.int32)
        return self.sums(z), jax.ops.segment_sum(ones, labels, num_segments=num_classes)

    def sums(self, z: Any) -> Array:
        """``z^T features``, ``[k, m]``."""
        return jnp.matmul(jnp.asarray(z).T, self.features, precision=HIGHEST)

    def project(self, matrix: Any) -> Array:
        """``features matrix``."""
        return jnp.matmul(self.features, matrix, precision=HIGHEST)

    def block(self, first: Any, second: Any) -> Array:
        """The kernel between two sets of records, given by their indices or slices."""
        return jnp.matmul(self.features[first], self.features[second].T, precision=HIGHEST)

    def squared_norm(self, weights: Any = None) -> Array:
        """``sum w_i w_j K_ij^2``."""
        weighted = self.features if weights is None else self.features * weights[:, None]
        return jnp.sum(jnp.matmul(self.features.T, weighted, precision=HIGHEST) ** 2)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pairs:
    """Points ``[n, ...]`` and a kernel of pairs, as the kernel's ``prepare`` left them."""

    points: Any
    kernel: Any
    block_size: int = field(default=BLOCK_SIZE, metadata={"static": True})

    @property
    def size(self) -> int:
        """The number of records."""
        return self.points.shape[0]

    @property
    def dtype(self) -> Any:
        """Floating-point type of what is computed."""
        return jnp.result_type(self.points.dtype, jnp.float32)

    @property
    def squares(self) -> Array:
        """``K(y_n, y_n)``, ``[n]``."""
        if hasattr(self.kernel, "squares"):
            return self.kernel.squares(self.points)
        pairs = _pairs(self.kernel)
        return jax.vmap(lambda point: pairs(point[None], point[None])[0, 0])(self.points)

    @property
    def rank_bound(self) -> int:
        """How many classes the observations can tell apart at most."""
        return len(np.unique(np.asarray(self.points).reshape(self.size, -1), axis=0))

    def padded(self, count: int) -> "Pairs":
        """With ``count`` more records, to be given weight 0."""
        return replace(self, points=_pad(self.points, self.size + count, "edge"))

    def block(self, first: Any, second: Any) -> Array:
        """The kernel between two sets of records, given by their indices or slices."""
        return _pairs(self.kernel)(self.points[first], self.points[second])

    def gram(self, z: Any) -> Array:
        """``z^T K z``, ``[k, k]``."""
        return _tiled_gram(self.kernel, self.points, jnp.asarray(z), self.block_size)

    def product(self, z: Any) -> Array:
        """``K z``, ``[n, k]``."""
        return self.kernel_pass(z).product

    def kernel_pass(self, z: Any, weights: Any = None) -> KernelPass:
        """``K z`` and the squared norm of ``K``, in one pass over the pairs."""
        z = jnp.asarray(z)
        weights = jnp.ones(self.size, z.dtype) if weights is None else jnp.asarray(weights, z.dtype)
        return _tiled_pass(self.kernel, self.points, z, weights, self.block_size)

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


Observed = Codes | Features | Pairs
"""Observations bound to a kernel."""


def observe(kernel: Kernel | str, y: Any, *, block_size: int = BLOCK_SIZE) -> Observed:
    """Bind observations to a kernel, which is resolved here and nowhere else.

    Args:
        kernel: A kernel, the name of one, or any function of two observations.
        y: Observations ``[n, ...]``; integer outcomes ``[n]`` for ``delta``. A binding is returned
            as it is.
        block_size: Rows of a tile of an implicit kernel, static. Temporaries hold a few
            ``block_size**2`` numbers.

    Returns:
        :class:`Codes`, :class:`Features` or :class:`Pairs`.

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
    if isinstance(resolved, Delta):
        return Codes(jnp.asarray(y), resolved, resolved.num_outcomes or 0)
    if hasattr(resolved, "features"):
        return Features(resolved.features(jnp.asarray(y)), resolved)
    points = jnp.asarray(y)
    if points.ndim == 0:
        raise ValueError("expected observations of shape [n] or [n, k], got a scalar")
    if not jnp.issubdtype(points.dtype, jnp.floating):
        points = points.astype(jnp.result_type(float))
    if hasattr(resolved, "prepare"):
        points = resolved.prepare(points)
    return Pairs(points, resolved, block_size)


def _countable(weights: Any) -> Array:
    """Frequencies, as floats where their sum may exceed 32 bits."""
    large = is_concrete(weights) and np.sum(np.asarray(weights), dtype=np.float64) >= 2**31
    return jnp.asarray(weights, jnp.result_type(float)) if large else 1 * jnp.asarray(weights)


def normalised(sums: Any, counts: Any) -> Array:
    """``sums / N``: class sums of features as means over all records, floating point."""
    sums, counts = jnp.asarray(sums), jnp.asarray(counts)
    dtype = sums.dtype if jnp.issubdtype(sums.dtype, jnp.floating) else jnp.result_type(float)
    total = jnp.sum(counts.astype(dtype))
    return sums.astype(dtype) / jnp.where(total > 0, total, 1.0)


def frame_of_product(gram: Array, mean: Array) -> Frame:
    """:class:`Frame` from the Gram matrix ``[d, d]`` and ``mean = K Z / N``, ``[n, d]``."""
    d, dtype = gram.shape[0], gram.dtype
    found = eliminate_gram(gram)
    full = found.rank == d
    lengths = jnp.sqrt(jnp.maximum(jnp.diagonal(gram), 0.0))
    scale = jnp.where(lengths > 0, lengths, 1.0)
    unit = jnp.where(full, gram / scale[:, None] / scale, jnp.eye(d, dtype=dtype))
    lower = jnp.linalg.cholesky(unit)
    inverse = jax.scipy.linalg.solve_triangular(lower, jnp.eye(d, dtype=dtype), lower=True)
    inverse = jnp.where(full, inverse / scale, 0.0).T
    return Frame(found, jnp.matmul(mean, inverse, precision=HIGHEST), inverse, lengths)


def _pairs(kernel: Any) -> Any:
    """A function from two blocks of points to a block of the kernel."""
    if hasattr(kernel, "block"):
        return kernel.block
    return jax.vmap(jax.vmap(kernel, in_axes=(None, 0)), in_axes=(0, None))


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
    pairs = _pairs(kernel)
    # Padding repeats the last observation (any kernel is defined there) with weight 0.
    points, z = _pad(points, blocks * size, "edge"), _pad(z, blocks * size, "constant")
    first, second = np.triu_indices(blocks)

    @partial(jax.checkpoint, prevent_cse=False)
    def tile(points: Array, z: Array, i: Array, j: Array) -> Array:
        values = pairs(_block(points, i, size), _block(points, j, size)).astype(z.dtype)
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
def _tiled_pass(
    kernel: Any, points: Array, z: Array, weights: Array, block_size: int
) -> KernelPass:
    """``K z`` and ``w^T K^2 w`` (squared entry by entry): tile ``(i, j)`` serves ``(j, i)`` too."""
    n = len(points)
    size = min(block_size, n)
    blocks = -(-n // size)
    pairs = _pairs(kernel)
    points, z = _pad(points, blocks * size, "edge"), _pad(z, blocks * size, "constant")
    weights = _pad(weights, blocks * size, "constant")

    @partial(jax.checkpoint, prevent_cse=False)
    def tile(points: Array, z: Array, i: Array, j: Array) -> tuple[Array, Array, Array]:
        values = pairs(_block(points, i, size), _block(points, j, size)).astype(z.dtype)
        right = jnp.matmul(values, _block(z, j, size), precision=HIGHEST)
        left = jnp.matmul(values.T, _block(z, i, size), precision=HIGHEST)
        rows = jnp.matmul(values**2, _block(weights, j, size), precision=HIGHEST)
        return right, jnp.where(i == j, 0.0, 1.0) * left, jnp.dot(_block(weights, i, size), rows)

    def add(carry: tuple[Array, Array], ij: tuple[Array, Array]) -> tuple[Any, None]:
        (product, norm), (i, j) = carry, ij
        right, left, square = tile(points, z, i, j)
        product = product.at[i].add(right).at[j].add(left)
        return (product, norm + jnp.where(i == j, 1.0, 2.0) * square), None

    first, second = np.triu_indices(blocks)
    start = (jnp.zeros((blocks, size, z.shape[1]), z.dtype), jnp.zeros((), z.dtype))
    (product, norm), _ = jax.lax.scan(add, start, (jnp.asarray(first), jnp.asarray(second)))
    return KernelPass(product.reshape(blocks * size, -1)[:n], norm)
