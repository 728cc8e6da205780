"""Kernels: what it means for two observations to be alike.

A kernel is a small immutable pytree written for one pair, ``kernel(y1, y2) -> scalar``. Any
function of that form is a kernel too, and so is the name of one of :data:`KERNELS`. Whatever
depends on which kernel it is stands in its class, all of it optional:

- ``features(y) -> [n, m]`` with ``kernel(y1, y2) = features(y1) @ features(y2)`` makes a kernel
  *explicit*: its Gram matrix needs one pass over the records instead of one over all pairs;
- ``resolve(y)`` fills in what is read from the observations, a bandwidth for instance;
- ``describe()`` says in words which kernel it is, with its parameters;
- ``takes`` is the kind of observation: ``"categorical"``, ``"numeric"`` (unless said otherwise) or
  ``"probability"``;
- ``prepare(y) -> points``, ``block(points1, points2) -> [n1, n2]`` and ``squares(points) -> [n]``
  are a faster way to many pairs of an implicit kernel.

The guarantees of Theorem 4.9 (kernelized score) need the kernel to tell any two mixtures of the
classes' observation distributions apart. ``delta`` does on finite outcomes and ``rbf`` on any real
observations. ``linear`` does where the features of the possible outcomes are linearly independent,
which is what the paper calls injective: fewer features than classes never are (its Experiment 2:
8-dimensional embeddings of 10 classes).
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import (
    HIGHEST,
    Array,
    ArrayLike,
    Float,
    Int,
    Key,
    Shaped,
    is_concrete,
    pytree,
    refuse_unbounded,
    rows,
)

__all__ = [
    "FEATURE_BLOCKS", "KERNELS", "RBF", "Delta", "Kernel", "Linear", "MultiscaleRBF",
    "PseudoPosterior", "RandomFeatures", "delta", "describe", "linear", "median_bandwidth",
    "mixture_features", "rbf", "resolve", "takes",
]  # fmt: skip

MOST_OUTCOMES = 1 << 24  # whose counts are held
SUBSAMPLE = 1000  # records that constants are read from
FEATURE_BLOCKS = 16
"""Independent blocks that random features are drawn in."""


Kind = Literal["categorical", "numeric", "probability"]
"""What an observation is."""


@runtime_checkable
class Kernel(Protocol):
    """Anything that gives the similarity of one pair of observations."""

    def __call__(self, y1: Any, y2: Any, /) -> Any: ...


@pytree
@dataclass(frozen=True)
class Delta:
    """The delta kernel ``K(y, y') = 1[y = y']`` on integer outcomes (Definition 4.1).

    Args:
        num_outcomes: Number ``m`` of possible outcomes, static. ``None`` reads it from the
            observations, which is possible only outside ``jit`` and ``vmap``.

    Example:
        >>> Delta(3).features(jnp.array([0, 2])).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    num_outcomes: int | None = field(default=None, metadata={"static": True})
    takes: ClassVar[Kind] = "categorical"

    def __call__(self, y1: Any, y2: Any) -> Array:
        return jnp.asarray(y1 == y2, dtype=jnp.result_type(float))

    def features(self, y: Shaped[ArrayLike, " n"]) -> Float[Array, "n m"]:
        """One-hot rows ``[n, num_outcomes]``."""
        return jax.nn.one_hot(y, self._outcomes(), dtype=jnp.result_type(float))

    def resolve(self, y: Any) -> "Delta":
        """With the number of outcomes, which must be integers from 0."""
        shape, dtype = jnp.shape(y), jnp.result_type(y)
        whole = jnp.issubdtype(dtype, jnp.integer) or jnp.issubdtype(dtype, jnp.bool_)
        if len(shape) != 1 or not whole:
            raise ValueError(
                f"expected integer outcomes of shape [n] for the delta kernel, got {dtype}"
                f"{list(shape)}: bin numeric observations (jgram.data.quantile_bins) or use rbf"
            )
        if not is_concrete(y):
            return Delta(self._outcomes())
        values = np.asarray(y)
        smallest, largest = int(values.min(initial=0)), int(values.max(initial=-1))
        if smallest < 0:
            raise ValueError(
                f"expected outcomes 0, 1, ..., got {smallest}: encode the outcomes first "
                "(jgram.data.encode_labels)"
            )
        if largest >= MOST_OUTCOMES:
            raise ValueError(
                f"expected outcomes below {MOST_OUTCOMES:,}, got {largest}: number them from 0 "
                "without gaps (jgram.data.encode_labels)"
            )
        if self.num_outcomes is not None and largest >= self.num_outcomes:
            raise ValueError(
                f"expected outcomes below num_outcomes={self.num_outcomes}, got {largest}"
            )
        return Delta(largest + 1) if self.num_outcomes is None else self

    def describe(self) -> str:
        """The kernel in words."""
        return f"delta(num_outcomes={self.num_outcomes})"

    def _outcomes(self) -> int:
        if self.num_outcomes is None:
            raise ValueError(
                "expected Delta(num_outcomes=...) inside jit, vmap and grad, got Delta(): the "
                "number of outcomes is part of the array shapes"
            )
        return self.num_outcomes


@pytree
@dataclass(frozen=True)
class Linear:
    """The inner product of features, ``K(y, y') = <f(y), f(y')>`` (section 4.3, example 1).

    Args:
        feature_map: Function ``f`` of one observation returning a vector, static. ``None`` takes
            the observation itself, flattened.

    Example:
        >>> kernel = Linear(lambda y: jnp.stack([y, y**2]))
        >>> float(kernel(2.0, 3.0))
        42.0
    """

    feature_map: Callable[[Any], Any] | None = field(default=None, metadata={"static": True})

    def __call__(self, y1: Any, y2: Any) -> Array:
        f = (lambda y: y) if self.feature_map is None else self.feature_map
        return jnp.vdot(f(jnp.asarray(y1)), f(jnp.asarray(y2)), precision=HIGHEST)

    def features(self, y: Shaped[ArrayLike, "n ..."]) -> Float[Array, "n m"]:
        """Rows ``[n, m]`` of features."""
        return rows(y if self.feature_map is None else jax.vmap(self.feature_map)(jnp.asarray(y)))

    def describe(self) -> str:
        """The kernel in words."""
        inner = getattr(self.feature_map, "__name__", "")
        return f"linear(feature_map={inner})" if self.feature_map else "linear"


@pytree
@dataclass(frozen=True)
class PseudoPosterior:
    """The inner product of posteriors, ``K(y, y') = <y, y'>`` with ``y[c] = Pr[x = c | y]``.

    Observations are rows of class probabilities ``[n, d]`` under any prior of full support, a
    calibrated classifier's output for instance (section 4.3, example 3).

    Example:
        >>> PseudoPosterior()(jnp.array([0.5, 0.5]), jnp.array([1.0, 0.0]))
        Array(0.5, dtype=float32)
    """

    takes: ClassVar[Kind] = "probability"

    def __call__(self, y1: Any, y2: Any) -> Array:
        return jnp.vdot(y1, y2, precision=HIGHEST)

    def describe(self) -> str:
        """The kernel in words."""
        return "pseudo-posterior"

    def features(self, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The probabilities themselves ``[n, d]``."""
        y = jnp.asarray(y)
        if y.ndim != 2:
            raise ValueError(f"expected class probabilities of shape [n, d], got {y.shape}")
        if is_concrete(y):
            values = np.asarray(y)
            off = np.abs(values.sum(axis=1) - 1.0) if values.size else np.zeros(0)
            if not np.isfinite(values).all() or (values < -1e-6).any() or (off > 1e-3).any():
                raise ValueError(
                    "expected rows of probabilities (>= 0, summing to 1) for the pseudo-posterior "
                    f"kernel, got values in [{values.min():.3g}, {values.max():.3g}] with a row "
                    f"sum off by {off.max():.3g}: normalise them, or use the linear kernel"
                )
        return rows(y)


@pytree
@dataclass(frozen=True)
class RBF:
    """The Gaussian kernel ``K(y, y') = exp(-||y - y'||^2 / bandwidth^2)`` (section 4.3, example 2).

    There is no factor 2: scikit-learn's ``gamma`` is ``1 / bandwidth**2``.

    Args:
        bandwidth: Length scale, in the units of the observations. ``None`` takes the median
            distance between observations (:func:`median_bandwidth`). Reports may be compared
            only under one frozen bandwidth.

    Example:
        >>> print(f"{RBF(bandwidth=2.0)(jnp.array([0.0]), jnp.array([2.0])):.4f}")
        0.3679
    """

    bandwidth: Any = None

    def __call__(self, y1: Any, y2: Any) -> Array:
        if self.bandwidth is None:
            name, fix = type(self).__name__, "resolve(y) reads it"
            raise ValueError(f"expected {name}(bandwidth=...), got bandwidth=None: {fix}")
        difference = (jnp.asarray(y1) - jnp.asarray(y2)) / self.bandwidth
        return self._of(jnp.sum(difference**2))

    def resolve(self, y: Any) -> "RBF":
        """With the median distance between observations where no bandwidth was given."""
        if self.bandwidth is None:
            return replace(self, bandwidth=median_bandwidth(y))
        if is_concrete(self.bandwidth) and not 0 < float(self.bandwidth) < np.inf:
            raise ValueError(f"expected a bandwidth above 0, got {float(self.bandwidth):g}")
        return self

    def describe(self) -> str:
        """The kernel in words."""
        width = "median" if self.bandwidth is None else f"{float(self.bandwidth):.6g}"
        return f"rbf(bandwidth={width})"

    def prepare(self, y: Any) -> Any:
        """Observations in units of the bandwidth, centred for ``|a|^2 + |b|^2 - 2ab``."""
        points = rows(y)
        return (points - jax.lax.stop_gradient(points.mean(axis=0))) / self.bandwidth

    def block(self, first: Array, second: Array) -> Array:
        """All pairs of prepared observations, ``[n1, n2]``."""
        return self._of(squared_distances(first, second))

    def squares(self, points: Array) -> Array:
        """``K(y, y) = 1`` for every observation."""
        return jnp.ones(len(points), points.dtype)

    def _of(self, squares: Array) -> Array:
        return jnp.exp(-squares)


@pytree
@dataclass(frozen=True)
class MultiscaleRBF(RBF):
    """The mean of four Gaussian kernels, of bandwidths ``b``, ``b/2``, ``b/4`` and ``b/8``.

    ``K(y, y') = mean over j = 0..3 of exp(-4^j ||y - y'||^2 / b^2)``: one exponential, squared
    again and again.

    Args:
        bandwidth: ``b``, as in :class:`RBF`.
        center: ``[k]``, taken off every observation first. It changes no distance, but numbers far
            from 0 keep their digits.

    Example:
        >>> print(f"{MultiscaleRBF(2.0)(jnp.array([0.0]), jnp.array([2.0])):.4f}")
        0.0965
    """

    center: Any = 0.0

    def resolve(self, y: Any) -> "MultiscaleRBF":
        """With bandwidth and center read from the observations."""
        if self.bandwidth is not None:
            return self
        if not is_concrete(y):
            raise ValueError("expected MultiscaleRBF(bandwidth=...) inside jit, got bandwidth=None")
        return MultiscaleRBF(median_distance(y), frozen_sample(y).mean(axis=0))

    def prepare(self, y: Any) -> Any:
        """Observations ``[n, k]`` about the center and in units of the bandwidth."""
        return (y.reshape(len(y), -1) - self.center) / self.bandwidth

    def describe(self) -> str:
        """The kernel in words."""
        return super().describe().replace(")", ", /2, /4, /8)")

    def _of(self, squares: Array) -> Array:
        return four_bandwidths(squares)


def four_bandwidths(squares: Array) -> Array:
    """The mean of ``exp(-4^j squares)`` over ``j = 0..3``."""
    one = jnp.exp(-squares)
    four = (one**2) ** 2
    sixteen = (four**2) ** 2
    return (one + four + sixteen + (sixteen**2) ** 2) / 4


@pytree
@dataclass(frozen=True)
class RandomFeatures:
    """Random Fourier features: an explicit, streamable approximation of a Gaussian kernel.

    ``features(y) = sqrt(w) [cos(W y), sin(W y)]`` with ``W[m/2, k]`` normal with standard
    deviation ``sqrt(2) / bandwidth`` and ``w = 2/m``; the expectation of their inner product is the
    Gaussian kernel (Rahimi and Recht, 2007). A mixture of such kernels has frequencies, and
    weights, of its parts (:func:`mixture_features`). The error of a log score falls like
    ``1/sqrt(m)``, alike for all reports only in part: compare reports under one draw. Frequencies
    come in :data:`FEATURE_BLOCKS` independent blocks of consecutive rows: leaving out one after the
    other tells how far they are from the kernel (:mod:`jgram.approximation`).

    Args:
        frequencies: ``[m/2, k]``, as drawn by :meth:`draw`.
        center: ``[k]``, taken off every observation first, since numbers far from 0 lose their
            digits in the angles. The same for all batches of a stream.
        weights: ``[m/2]``, adding up to 1; ``None`` for equal ones.
        stands_for: The kernel that is approximated, where that is not one :class:`RBF`.

    Example:
        >>> kernel = RandomFeatures.draw(jax.random.key(0), 256, dimension=3, bandwidth=1.0)
        >>> kernel.features(jnp.zeros((5, 3))).shape
        (5, 256)
    """

    frequencies: Any
    center: Any = 0.0
    weights: Any = None
    stands_for: Any = None

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        num_features: int,
        *,
        dimension: int,
        bandwidth: Any,
        center: Any = 0.0,
    ) -> "RandomFeatures":
        """Draw the frequencies of ``num_features`` (even) features of ``dimension``-vectors."""
        if num_features < 2 or num_features % 2:
            raise ValueError(f"expected an even number of random features, got {num_features}")
        normal = jax.random.normal(key, (num_features // 2, dimension))
        return cls(normal * (jnp.sqrt(2.0) / bandwidth), center)

    def __call__(self, y1: Any, y2: Any) -> Array:
        both = self.features(jnp.stack([jnp.asarray(y1), jnp.asarray(y2)]))
        return jnp.vdot(both[0], both[1], precision=HIGHEST)

    def features(self, y: Shaped[ArrayLike, "n ..."]) -> Float[Array, "n m"]:
        """Rows ``[n, m]``, ``m = 2 * frequencies.shape[0]``, of squared length one."""
        angles = jnp.matmul(rows(y) - self.center, self.frequencies.T, precision=HIGHEST)
        share = 1 / len(self.frequencies) if self.weights is None else self.weights
        size = jnp.sqrt(share)
        return jnp.concatenate([size * jnp.cos(angles), size * jnp.sin(angles)], axis=1)

    def squares(self, y: Shaped[ArrayLike, "n ..."]) -> Float[Array, " n"]:
        """``K(y, y) = 1`` for every observation."""
        return jnp.ones(len(jnp.asarray(y)), jnp.result_type(float))

    def blocks(self) -> Int[np.ndarray, " m"] | None:
        """The block ``0..15`` of each feature; ``None`` where they do not divide evenly."""
        count = self.frequencies.shape[0]
        if count % FEATURE_BLOCKS:
            return None
        return np.tile(np.arange(count) // (count // FEATURE_BLOCKS), 2)

    def describe(self) -> str:
        """The kernel in words."""
        size = 2 * len(self.frequencies)
        if self.stands_for is None:
            return f"random_features(num_features={size})"
        return f"{describe(self.stands_for)}, by {size:,} random features"


def mixture_features(
    key: Key[Array, ""],
    num_features: int,
    maps: Sequence[Float[np.ndarray, "k r"]],
    weights: Sequence[float],
    **fields: Any,
) -> RandomFeatures:
    """Random features of ``K(y, y') = sum_p weights[p] exp(-||(y - y') maps[p]||^2)``.

    Every block has the same number of frequencies of every part, so that no part is left to luck:
    ``num_features`` is a multiple of 32 with at least one a part and block. ``weights`` add up to
    1; ``fields`` are others of :class:`RandomFeatures`.

    Example:
        >>> kernel = mixture_features(jax.random.key(0), 64, [np.eye(1), 2 * np.eye(1)], [0.5, 0.5])
        >>> kernel.frequencies.shape, round(float(kernel.weights.sum()), 6)
        ((32, 1), 1.0)
    """
    each, rest = divmod(num_features, 2 * FEATURE_BLOCKS)
    if rest or each < len(maps):
        raise ValueError(
            f"expected random features in multiples of {2 * FEATURE_BLOCKS}, "
            f"{2 * FEATURE_BLOCKS * len(maps)} or more, got {num_features}"
        )
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    part = np.arange(each) % len(maps)
    share = np.asarray(weights) / np.bincount(part) / FEATURE_BLOCKS
    frequencies = np.empty((FEATURE_BLOCKS, each, len(maps[0])))
    for number, view in enumerate(maps):
        normal = rng.normal(size=(FEATURE_BLOCKS, int(np.sum(part == number)), view.shape[1]))
        frequencies[:, part == number] = np.sqrt(2.0) * normal @ view.T
    shares = np.tile(share[part], FEATURE_BLOCKS)
    return RandomFeatures(frequencies.reshape(-1, len(maps[0])), weights=shares, **fields)


delta: Delta = Delta()
linear: Linear = Linear()
rbf: RBF = RBF()

KERNELS: Mapping[str, Any] = MappingProxyType({
    "delta": delta, "linear": linear, "multiscale-rbf": MultiscaleRBF(),
    "pseudo-posterior": PseudoPosterior(), "rbf": rbf,
})  # fmt: skip
"""Kernels by the name they have on the command line, and as ``kernel="rbf"``."""


def as_kernel(kernel: Any) -> Any:
    """A kernel, a function of a pair or a name, as a pytree that internal jitted functions take."""
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            close = difflib.get_close_matches(kernel, KERNELS, 1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"expected a kernel among {', '.join(KERNELS)}, got {kernel!r}{hint}")
        return KERNELS[kernel]
    if not callable(kernel):
        raise ValueError(
            f"expected a kernel, a function of two observations or one of {', '.join(KERNELS)}, "
            f"got {type(kernel).__name__}"
        )
    leaves = jax.tree.leaves(kernel)
    plain = len(leaves) == 1 and leaves[0] is kernel  # without leaves it can pass into jit
    return jax.tree_util.Partial(kernel) if plain else kernel


def takes(kernel: Kernel | str) -> Kind:
    """The kind of observation that a kernel is for.

    Example:
        >>> takes(delta), takes(rbf)
        ('categorical', 'numeric')
    """
    return getattr(as_kernel(kernel), "takes", "numeric")


def median_bandwidth(
    y: Shaped[ArrayLike, "n ..."], *, subsample: int = SUBSAMPLE, seed: int = 0
) -> Float[Array, ""]:
    """The median heuristic: :func:`median_distance`, also of what JAX traces, without a gradient.

    Example:
        >>> median_bandwidth(jnp.array([0.0, 0.0, 0.0, 0.0, 3.0]))
        Array(3., dtype=float32)
    """
    if is_concrete(y):
        dtype = rows(y[:1]).dtype
        return jnp.asarray(median_distance(y, records=subsample, seed=seed), dtype)
    points = jax.lax.stop_gradient(rows(y))
    points = points[_chosen(len(points), subsample, seed)]
    return _median_distance(points) if len(points) > 1 else jnp.ones((), points.dtype)


@jax.jit
def _median_distance(points: Array) -> Array:
    # Coordinate by coordinate: [n, n] and never [n, n, k], and no cancellation.
    def add(total: Array, coordinate: Array) -> tuple[Array, None]:
        return total + (coordinate[:, None] - coordinate) ** 2, None

    n = len(points)
    squares, _ = jax.lax.scan(add, jnp.zeros((n, n), points.dtype), points.T)
    distances = jnp.where(jnp.tri(n, dtype=bool), jnp.nan, jnp.sqrt(squares))
    median = jnp.nanmedian(distances)
    positive = jnp.nanmedian(jnp.where(distances > 0, distances, jnp.nan))
    return jnp.where(median > 0, median, jnp.where(jnp.isnan(positive), 1.0, positive))


def median_distance(
    points: Shaped[ArrayLike, "n ..."], *, records: int = SUBSAMPLE, seed: int = 0
) -> float:
    """The median distance between two observations, in float64 on the host.

    Neither a large offset nor a tiny unit costs digits. At most ``records`` records are compared,
    chosen by ``seed`` and ``n`` alone. Where more than half of the distances are 0 the median of
    the positive ones is taken, where all are 0 it is 1.

    Example:
        >>> median_distance(np.array([[1e9], [1e9 + 1], [1e9 + 2]]))
        1.0
    """
    sample = frozen_sample(points, records, seed)
    sample = sample - sample.mean(axis=0)
    largest = float(np.abs(sample).max(initial=0.0))
    if largest == 0 or len(sample) < 2:
        return 1.0
    squares = _squares_of_pairs(sample / largest)
    median = _median_root(squares)
    if median <= 1e-15:
        positive = squares[squares > 1e-30]
        return largest * _median_root(positive) if positive.size else 1.0
    return largest * median


def _squares_of_pairs(points: np.ndarray) -> np.ndarray:
    """Squared distances of all pairs of points, in tiles that stay in a processor's cache."""
    parts, tile = [], 64
    for start in range(0, len(points), tile):
        rows = points[start : start + tile]
        if points.shape[1] > 8:
            squares = host_squares(rows, points[start:])
        else:  # exact: no cancellation
            squares = np.zeros((len(rows), len(points) - start))
            for one, other in zip(rows.T, points[start:].T, strict=True):
                squares += (one[:, None] - other) ** 2
        parts += [squares[:, tile:].ravel(), squares[:, :tile][np.triu_indices(len(rows), 1)]]
    return np.concatenate(parts)


def _median_root(squares: np.ndarray) -> float:
    """The median of the roots; of one number partitions are many times faster than of two."""
    middle = len(squares) // 2
    parted = np.partition(squares, middle)
    lower = parted[middle] if len(squares) % 2 else parted[:middle].max()
    return float(np.sqrt(lower) + np.sqrt(parted[middle])) / 2


def squared_distances(
    first: Float[Array, "n1 k"], second: Float[Array, "n2 k"]
) -> Float[Array, "n1 n2"]:
    """Squared distances of all pairs, by one matrix product; 0 where there are but a few roundings
    of ``|a|^2 + |b|^2``: equal points as far as anybody can tell."""
    lengths = jnp.sum(first**2, axis=1)[:, None] + jnp.sum(second**2, axis=1)
    squares = lengths - 2.0 * jnp.matmul(first, second.T, precision=HIGHEST)
    return jnp.where(squares > 4 * jnp.finfo(squares.dtype).eps * lengths, squares, 0.0)


def frozen_sample(points: Any, records: int = SUBSAMPLE, seed: int = 0) -> np.ndarray:
    """At most ``records`` rows ``[., k]`` in float64, chosen by ``seed`` and ``n`` alone."""
    points = np.asarray(points)
    points = points.reshape(len(points), -1)
    return points[_chosen(len(points), records, seed)].astype(np.float64)


def _chosen(n: int, records: int, seed: int) -> Any:
    if n <= records:
        return slice(None)
    return np.sort(np.random.default_rng(seed).choice(n, records, replace=False))


def host_squares(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Squared distances ``[n1, n2]`` by a matrix product; 0 between duplicates, to rounding."""
    lengths = np.sum(first**2, axis=1)[:, None] + np.sum(second**2, axis=1)
    squares = lengths - 2 * first @ second.T
    return np.where(squares > 1e-14 * lengths, squares, 0.0)


def resolve(kernel: Kernel | str, y: Shaped[ArrayLike, "n ..."]) -> Kernel:
    """The kernel with everything filled in that it reads from the observations, a bandwidth or the
    number of outcomes. Freeze a kernel once, and use it for all reports that are compared.

    Example:
        >>> resolve(delta, np.array([0, 3, 1]))
        Delta(num_outcomes=4)
    """
    found = as_kernel(kernel)
    refuse_unbounded(y, "observations")
    return found.resolve(y) if hasattr(found, "resolve") else found


def describe(kernel: Kernel | str) -> str:
    """The kernel in words with its parameters, for reports.

    Example:
        >>> describe(RBF(2.0))
        'rbf(bandwidth=2)'
    """
    found = as_kernel(kernel)
    if hasattr(found, "describe"):
        return found.describe()
    function = getattr(found, "func", found)
    return getattr(function, "__name__", type(function).__name__)
