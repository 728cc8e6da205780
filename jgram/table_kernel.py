"""The kernels of tables: four bandwidths at once, and two views of the same columns.

Nothing but the reports could say which single bandwidth is right; the mean over four needs no
choice. Columns side by side see what each column says; whitened ones see what correlated columns
hide (a difference of two that rise together). On the 11 tables of ``experiments/table_recipes.py``
their sum put as many pairs of reports right as the best recipe of each table, to within 3.5 points
of 100; every other recipe fell behind by 4.5 to 29 on some table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from jgram.arrays import HIGHEST, Array, ArrayLike, Float, Key, pytree
from jgram.kernels import (
    RandomFeatures,
    four_bandwidths,
    frozen_sample,
    host_squares,
    median_distance,
    mixture_features,
    squared_distances,
)

__all__ = ["TableKernel", "ledoit_wolf"]


@pytree
@dataclass(frozen=True)
class TableKernel:
    """A weighted sum of :class:`jgram.kernels.MultiscaleRBF` kernels of linear views of a table.

    ``K(y, y') = sum_p weights[p] k(||(y - y') maps[p]||^2)``, ``weights`` adding up to 1, so that
    ``K(y, y) = 1``. The views of a table are its columns side by side and whitened; each weighs
    one over the spread of its kernel (the standard deviation of the doubly centred matrix off
    its diagonal), so that neither view drowns the other.

    Args:
        maps: ``[k, r]``, the views side by side, each in units of its bandwidth.
        weights: ``[p]``, one for each view.
        center: ``[k]``, taken off every observation first.
        widths: The columns of ``maps`` that belong to each view, static.

    Example:
        >>> points = np.random.default_rng(0).normal(size=(50, 3))
        >>> kernel = TableKernel.of(points)
        >>> kernel.widths, round(float(kernel(points[0], points[0])), 6)
        ((3, 3), 1.0)
    """

    maps: Any
    weights: Any
    center: Any = 0.0
    widths: tuple[int, ...] = field(default=(), metadata={"static": True})

    @classmethod
    def of(cls, points: Float[np.ndarray, "n k"], table_width: int | None = None) -> "TableKernel":
        """The kernel of a :class:`jgram.data.PreparedTable`, its constants frozen on at most 1,000
        records. ``table_width`` columns come from the table, all by default; the others are a
        block: then columns, block, and everything side by side weigh a third each.
        """
        points = np.asarray(points, float)
        k = points.shape[1]
        width = k if table_width is None else table_width
        sample = frozen_sample(points)
        center = sample.mean(axis=0)
        table, block = sample[:, :width], sample[:, width:]
        if width == k:
            maps, parts = [np.eye(k), _whitening(table)], np.ones(2)
        elif width == 0:
            maps, parts = [np.eye(k)], np.ones(1)
        else:
            scales = np.ones(k)
            scales[width:] = _spread(table) / _spread(block)
            views = (np.eye(width), _whitening(table))
            maps = [np.vstack([view, np.zeros((k - width, width))]) for view in views]
            maps += [np.eye(k)[:, width:], np.diag(scales)]
            parts = np.array([0.5, 0.5, 1.0, 1.0])
        centred = sample - center
        units = [view / median_distance(centred @ view) for view in maps]
        weights = parts / [_kernel_spread(centred @ view) for view in units]
        widths = tuple(view.shape[1] for view in units)
        return cls(np.concatenate(units, axis=1), weights / weights.sum(), center, widths)

    def __call__(self, y1: Any, y2: Any) -> Array:
        difference = jnp.matmul(jnp.asarray(y1) - jnp.asarray(y2), self.maps, precision=HIGHEST)
        squares = [jnp.sum(part**2) for part in self._views(difference)]
        return self._sum([four_bandwidths(square) for square in squares])

    def prepare(self, points: Float[ArrayLike, "n k"]) -> Float[ArrayLike, "n r"]:
        """The views ``[n, r]`` of observations ``[n, k]``, side by side."""
        if isinstance(points, np.ndarray) and isinstance(self.maps, np.ndarray):
            return (points - self.center) @ self.maps  # float64, whatever JAX holds
        return jnp.matmul(points - self.center, self.maps, precision=HIGHEST)

    def block(
        self, first: Float[ArrayLike, "n1 r"], second: Float[ArrayLike, "n2 r"]
    ) -> Float[Array, "n1 n2"]:
        """All pairs of prepared observations."""
        pairs = zip(self._views(first), self._views(second), strict=True)
        return self._sum([four_bandwidths(squared_distances(a, b)) for a, b in pairs])

    def squares(self, points: Float[Array, "n r"]) -> Float[Array, " n"]:
        """``K(y, y) = 1`` for every observation."""
        return jnp.ones(len(points), points.dtype)

    def random_features(self, key: Key[Array, ""], num_features: int) -> RandomFeatures:
        """Random features of all views (:func:`jgram.kernels.mixture_features`).

        Example:
            >>> import jax
            >>> points = np.random.default_rng(0).normal(size=(50, 3))
            >>> features = TableKernel.of(points).random_features(jax.random.key(0), 1024)
            >>> features.describe()
            'rbf of 2 views of the table, four bandwidths each, by 1,024 random features'
        """
        maps = [2.0**j * view for view in self._views(self.maps) for j in range(4)]
        weights, own = np.repeat(np.asarray(self.weights) / 4, 4).tolist(), {"center": self.center}
        return mixture_features(key, num_features, maps, weights, **own, stands_for=self)

    def describe(self) -> str:
        """The kernel in words."""
        return f"rbf of {len(self.widths)} views of the table, four bandwidths each"

    def _views(self, prepared: Any) -> list[Any]:
        ends = np.cumsum(self.widths)
        each = zip(ends, self.widths, strict=True)
        return [prepared[..., end - width : end] for end, width in each]

    def _sum(self, kernels: Sequence[Array]) -> Array:
        weighed = [w * k for w, k in zip(self.weights, kernels, strict=True)]
        return jnp.sum(jnp.stack(weighed), axis=0)


def ledoit_wolf(points: Float[np.ndarray, "n k"]) -> tuple[np.ndarray, float]:
    """The covariance matrix ``[k, k]`` shrunk towards a multiple of the identity.

    ``(1 - s) S + s mean(diag S) I``, ``s`` the share that minimises the expected squared error.

    Example:
        >>> shrunk, share = ledoit_wolf(np.random.default_rng(0).normal(size=(100, 2)))
        >>> 0 <= share <= 1
        True

    Reference: Ledoit and Wolf, *A well-conditioned estimator for large-dimensional covariance
    matrices*, 2004.
    """
    n, k = points.shape
    centred = points - points.mean(axis=0)
    covariance = centred.T @ centred / n
    mean = np.trace(covariance) / k
    target = mean * np.eye(k)
    distance = np.sum((covariance - target) ** 2)
    error = (np.sum(np.sum(centred**2, axis=1) ** 2) / n - np.sum(covariance**2)) / n
    share = float(np.clip(error / distance, 0.0, 1.0)) if distance > 0 else 1.0
    return (1 - share) * covariance + share * target, share


# --------------------------------------------------------------------------------------------


def _whitening(points: np.ndarray) -> np.ndarray:
    """The symmetric inverse root of the shrunk covariance."""
    values, vectors = np.linalg.eigh(ledoit_wolf(points)[0])
    values = np.maximum(values, 1e-10 * values.max()) if values.max() > 0 else np.ones_like(values)
    return vectors / np.sqrt(values) @ vectors.T


def _spread(points: np.ndarray) -> float:
    """The root mean squared distance."""
    return float(np.sqrt(np.sum(points.var(axis=0)))) or 1.0


def _kernel_spread(prepared: np.ndarray) -> float:
    """The standard deviation of the doubly centred kernel matrix off its diagonal."""
    one = np.exp(-host_squares(prepared, prepared))
    kernel = (one + one**4 + one**16 + one**64) / 4
    centred = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
    off = centred[~np.eye(len(centred), dtype=bool)]
    return float(off.std()) if off.size and off.std() > 0 else 1.0
