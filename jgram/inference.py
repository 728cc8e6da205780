"""How far a score may be trusted: standard errors, paired comparisons, the noise floor, bootstrap.

Everything is on the log scale. Two reports are compared on the *same* records under the same
kernel, by the paired difference of their influences, and on the only scale with a meaning:
``|det Q_a / det Q_b| = exp(half the difference of the log scores)``, which does not depend on the
experiment (Proposition 4.3).

These functions run eagerly on the host's arrays. Categorical observations are counted and handled
in float64; numeric observations are computed in the dtype they come in.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from math import erfc, exp, sqrt
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jgram.determinant import eliminate_gram, eliminate_sums, log_determinant_of_sums
from jgram.gram import gram, infer_num_classes, joint_table, memberships
from jgram.influence import Linearisation, contributions, leave_one_out, linearise
from jgram.kernels import HIGHEST, Delta, Kernel, as_pytree, is_explicit, resolve
from jgram.types import Array, ArrayLike, Key, Shaped

__all__ = [
    "Bootstrap",
    "Comparison",
    "NoiseFloor",
    "Uncertainty",
    "bootstrap",
    "compare",
    "holm",
    "noise_floor",
    "standard_error",
    "tie_groups",
    "uncertainties",
]

CHUNK_BYTES = 2**27
NEAR_SINGULAR = 0.1


@dataclass(frozen=True)
class Uncertainty:
    """A log score with what sampling does to it.

    Attributes:
        log_score: The plug-in value, ``-inf`` where there is none.
        standard_error: ``2 sd(h[n, x_hat_n]) / sqrt(n)``, the infinitesimal jackknife; ``inf``
            where the log score is ``-inf``.
        bias: Jackknife estimate of ``E[log_score] - truth``. Noise has volume, which raises the
            score, and the logarithm is concave, which lowers it. ``None`` where it cannot be told:
            a record carries a class alone, or the report is near singular.
        rank: Numerical rank of the Gram matrix.
        pivots: ``[d]`` of the elimination, the last the smallest.
        lengths: ``[d]``, ``sqrt(G[k, k])``.
        inverse: ``G^-1``, ``[d, d]``; 0 where the log score is ``-inf``.
        contributions: ``[n]``, of mean zero (:func:`jgram.influence.contributions`).
    """

    log_score: float
    standard_error: float
    bias: float | None
    rank: int
    pivots: np.ndarray = field(repr=False)
    lengths: np.ndarray = field(repr=False)
    inverse: np.ndarray = field(repr=False)
    contributions: np.ndarray = field(repr=False)

    @property
    def d(self) -> int:
        """The number of classes."""
        return len(self.pivots)

    @property
    def near_singular(self) -> bool:
        """Whether the score is so near zero that its standard error, and the bias, are not right.

        Retention, ``d score^(1/2d)``, has a relative standard error of 10% or more.
        """
        return self.standard_error >= NEAR_SINGULAR * 2 * self.d

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Normal interval of the log score; its measured coverage is in experiments/README.md."""
        half = normal_quantile(confidence) * self.standard_error
        return self.log_score - half, self.log_score + half


@dataclass(frozen=True)
class Comparison:
    """Two reports of the same records, compared record by record.

    Attributes:
        log_ratio: Log score of the first less that of the second.
        standard_error: Of the log ratio, paired.
        interval: Of the log ratio.
        probability: That the first is better: normal, no prior. Like the p-value it is computed on
            the scale of retention, ``d score^(1/2d)``, where a report near noise has a bounded
            error; on the log scale it has none and could not be told from the best.
        p_value: Two-sided, of equal reliability.
        determinant_ratio: ``exp(log_ratio / 2)``, estimating ``|det Q_first / det Q_second|``.
        determinant_ratio_interval: Of the ratio.
    """

    log_ratio: float
    standard_error: float
    interval: tuple[float, float]
    probability: float
    p_value: float
    determinant_ratio: float
    determinant_ratio_interval: tuple[float, float]


@dataclass(frozen=True)
class NoiseFloor:
    """Log scores of the same labels once they are permuted against the observations.

    The floor rises as ``n`` falls: scores of different data sizes cannot be compared, margins can.

    Attributes:
        mean: Of the finite draws.
        standard_deviation: Of the finite draws.
        margin: ``(log_score - mean) / standard_deviation``; ``None`` where either has no value.
        p_value: ``(1 + draws at or above the score) / (1 + draws)``.
        draws: All log scores of permuted labels.
    """

    mean: float
    standard_deviation: float
    margin: float | None
    p_value: float
    draws: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Bootstrap:
    """Log scores of resampled records.

    Attributes:
        standard_error: Standard deviation of the finite draws.
        bias: Mean of the finite draws less the log score.
        interval: Basic (reflected) interval on the log scale, which takes the bias out; the naive
            percentile interval is shifted upwards twice.
        draws: All log scores.
    """

    standard_error: float
    bias: float
    interval: tuple[float, float]
    draws: np.ndarray = field(repr=False)


def normal_quantile(confidence: float) -> float:
    """The two-sided normal quantile, 1.96 at 0.95."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"expected confidence in (0, 1), got {confidence}")
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


def standard_error(
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."],
    kernel: Kernel,
    *,
    num_classes: int | None = None,
) -> float:
    """Standard error of the plug-in log score, from one solve.

    ``2 sd(h[n, x_hat_n]) / sqrt(n)`` with ``h`` of :func:`jgram.influence.influence`.

    Args:
        x_hat: Labels ``[n]`` or soft reports ``[n, d]``.
        y: Observations ``[n, ...]``.
        kernel: A kernel, or any function of two observations.
        num_classes: ``d``.

    Returns:
        A float; ``inf`` where the log score is ``-inf``.

    Example:
        >>> from jgram.kernels import delta
        >>> x_hat = np.array([0, 0, 0, 1, 1, 1]); y = np.array([0, 0, 1, 1, 1, 0])
        >>> round(standard_error(x_hat, y, delta), 2)
        2.53
    """
    return uncertainties({"": x_hat}, y, kernel, num_classes=num_classes)[""].standard_error


def uncertainties(
    reports: dict[str, Any], y: Any, kernel: Kernel, *, num_classes: int | None = None
) -> dict[str, Uncertainty]:
    """:class:`Uncertainty` of several reports of the same records, in one pass over the kernel.

    Args:
        reports: Name to labels ``[n]`` (or soft reports ``[n, d]``), all of one shape.
        y: Observations ``[n, ...]``.
        kernel: A kernel, or any function of two observations.
        num_classes: ``d``; default the largest label of any report, plus one.

    Raises:
        ValueError: No report, or reports and observations that do not fit.

    Example:
        >>> from jgram.kernels import delta
        >>> found = uncertainties({"a": np.array([0, 0, 1, 1])}, np.array([0, 0, 1, 1]), delta)
        >>> round(found["a"].log_score, 3)
        -2.773
    """
    if not reports:
        raise ValueError("expected at least one report, got none")
    d = _common_classes(reports, num_classes)
    with jax.enable_x64(True):
        kernel = as_pytree(resolve(kernel, y))
        stacked = np.stack([np.asarray(report) for report in reports.values()])
        points, n = jnp.asarray(y), len(np.asarray(y))
        # Few distinct shapes, few compilations: pad with records of weight 0.
        padding = _padded_length(n) - n
        stacked = np.pad(stacked, [(0, 0), (0, padding)] + [(0, 0)] * (stacked.ndim - 2))
        points = jnp.pad(points, [(0, padding)] + [(0, 0)] * (points.ndim - 1), mode="edge")
        weights = jnp.arange(n + padding) < n
        found = jax.device_get(_linearise_all(kernel, jnp.asarray(stacked), points, weights, d))
    linearised, parts, changes = found
    return {
        name: _uncertainty(
            jax.tree.map(lambda leaf, i=i: leaf[i], linearised), parts[i, :n], changes[i, :n]
        )
        for i, name in enumerate(reports)
    }


def _padded_length(n: int) -> int:
    """The next of 16 sizes to every doubling."""
    step = 1 << max(0, n.bit_length() - 5)
    return -(-n // step) * step


@partial(jax.jit, static_argnames="num_classes")
def _linearise_all(
    kernel: Any, x_hats: Array, y: Array, weights: Array, num_classes: int
) -> tuple[Linearisation, Array, Array]:
    """Small parts of linearisations, contributions and leave-one-out changes ``[t, n]``."""

    def one(x_hat: Array) -> tuple[Linearisation, Array, Array]:
        found = linearise(x_hat, y, kernel, num_classes=num_classes, weights=weights)
        parts, changes = contributions(found, x_hat), leave_one_out(found, x_hat, weights)
        empty = jnp.zeros(0, y.dtype)
        return found._replace(influence=empty, residual=empty), parts, changes

    return jax.vmap(one)(x_hats)


def _uncertainty(found: Linearisation, parts: np.ndarray, changes: np.ndarray) -> Uncertainty:
    n = len(parts)
    log_score = float(found.elimination.log_determinant)
    known = bool(np.isfinite(log_score))
    uncertainty = Uncertainty(
        log_score=log_score,
        standard_error=_standard_error(parts) if known else np.inf,
        bias=None,
        rank=int(found.elimination.rank),
        pivots=np.asarray(found.elimination.pivots),
        lengths=np.asarray(found.lengths),
        inverse=np.asarray(found.inverse),
        contributions=parts if known else np.zeros(n),
    )
    if uncertainty.near_singular or not np.isfinite(changes).all():
        return uncertainty
    return replace(uncertainty, bias=float((n - 1) * changes.mean(dtype=np.float64)))


def _common_classes(reports: dict[str, Any], num_classes: int | None) -> int:
    sizes = {name: np.shape(report) for name, report in reports.items()}
    first = next(iter(sizes))
    for name, shape in sizes.items():
        if shape != sizes[first]:
            raise ValueError(
                f"expected reports of the same records, got {name!r} {list(shape)} beside "
                f"{first!r} {list(sizes[first])}"
            )
    return max(infer_num_classes(report, num_classes) for report in reports.values())


def compare(
    first: Shaped[ArrayLike, "n ..."],
    second: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."],
    kernel: Kernel,
    *,
    num_classes: int | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Which of two reports of the same records is more reliable, and how surely.

    The log ratio of scores estimates ``2 log |det Q_first / det Q_second|`` whatever the
    experiment. Its error comes from the paired difference of the two influences: far smaller than
    that of two separate scores.

    Args:
        first: Labels ``[n]`` or soft reports ``[n, d]``.
        second: Of the same records.
        y: Observations ``[n, ...]`` of these records.
        kernel: A kernel, or any function of two observations.
        num_classes: ``d``.
        confidence: Of the intervals.

    Returns:
        A :class:`Comparison`. Where only one score is ``-inf`` the ratio is infinite and certain
        as far as the data go; where both are, nothing is known and the probability is 1/2.

    Raises:
        ValueError: Reports and observations that do not fit.

    Example:
        >>> from jgram.kernels import delta
        >>> y = np.repeat([0, 1], 50)
        >>> worse = y.copy(); worse[::5] = 1 - worse[::5]
        >>> compare(y, worse, y, delta).probability > 0.999
        True

    Reference: Proposition 4.3 (experiment agnosticism) of *Data Reliability Scoring*.
    """
    found = uncertainties({"first": first, "second": second}, y, kernel, num_classes=num_classes)
    return compare_uncertainties(found["first"], found["second"], confidence=confidence)


def compare_uncertainties(
    first: Uncertainty, second: Uncertainty, *, confidence: float = 0.95
) -> Comparison:
    """:func:`compare`, of reports already scored together by :func:`uncertainties`."""
    finite = [np.isfinite(first.log_score), np.isfinite(second.log_score)]
    if all(finite):
        ratio = first.log_score - second.log_score
        error = _standard_error(first.contributions - second.contributions)
    else:
        ratio = 0.0 if not any(finite) else (np.inf if finite[0] else -np.inf)
        error = 0.0 if any(finite) else np.inf
    half = normal_quantile(confidence) * error
    interval = (ratio - half, ratio + half) if np.isfinite(ratio) else (ratio, ratio)
    # Retention, d score^(1/2d): the logarithm of a score near zero has no bounded error.
    kept = [_retention(found) for found in (first, second)]
    steps = [k * found.contributions for k, found in zip(kept, (first, second), strict=True)]
    difference, spread = kept[0] - kept[1], _standard_error((steps[0] - steps[1]) / 2 / first.d)
    z = (
        0.0
        if difference == 0.0
        else difference / spread
        if spread > 0
        else np.copysign(40.0, ratio)
    )
    return Comparison(
        log_ratio=float(ratio),
        standard_error=float(error),
        interval=(float(interval[0]), float(interval[1])),
        probability=0.5 * erfc(-z / sqrt(2.0)),
        p_value=erfc(abs(z) / sqrt(2.0)),
        determinant_ratio=_half_exponential(ratio),
        determinant_ratio_interval=(_half_exponential(interval[0]), _half_exponential(interval[1])),
    )


def _standard_error(contributions: np.ndarray) -> float:
    """Of a sum of ``1/n`` times contributions of mean zero."""
    n = len(contributions)
    return float(contributions.std(ddof=1, dtype=np.float64)) / sqrt(n) if n > 1 else np.inf


def _retention(found: Uncertainty) -> float:
    return found.d * exp(found.log_score / (2 * found.d)) if np.isfinite(found.log_score) else 0.0


def _half_exponential(value: float) -> float:
    return exp(value / 2.0) if value < 1400.0 else np.inf


def holm(p_values: dict[Any, float]) -> dict[Any, float]:
    """Holm's adjustment of p-values for looking at all of them.

    Example:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    adjusted, largest = {}, 0.0
    for passed, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - passed) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def tie_groups(
    order: list[Any], p_values: dict[frozenset[Any], float], level: float = 0.05
) -> list[list[Any]]:
    """The largest runs of the order in which no pair can be separated.

    Groups may overlap: the first may not be separable from the second, nor the second from the
    third, while the first and the third are.

    Args:
        order: Names, best first.
        p_values: Adjusted p-value of every pair.
        level: A pair at or above cannot be separated.

    Example:
        >>> pairs = {frozenset("ab"): 0.5, frozenset("bc"): 0.5, frozenset("ac"): 0.01}
        >>> tie_groups(list("abc"), pairs)
        [['a', 'b'], ['b', 'c']]
    """
    groups: list[list[Any]] = []
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and all(
            p_values[frozenset((order[stop], other))] >= level for other in order[start:stop]
        ):
            stop += 1
        if not groups or order[stop - 1] not in groups[-1]:
            groups.append(order[start:stop])
    return groups


def noise_floor(
    key: Key[Array, ""],
    x_hat: Shaped[ArrayLike, " n"],
    y: Shaped[ArrayLike, "n ..."],
    kernel: Kernel,
    *,
    num_classes: int | None = None,
    draws: int = 1000,
    block_length: int = 1,
) -> NoiseFloor:
    """What the labels would score if they had nothing to do with the observations.

    A permutation test. Under the delta kernel only the contingency table matters: tables with the
    given margins are drawn directly, whatever ``n``. Otherwise all permuted reports share one pass
    over the kernel.

    Args:
        key: Random key.
        x_hat: Labels ``[n]``.
        y: Observations ``[n, ...]``.
        kernel: A kernel, or any function of two observations.
        num_classes: ``d``.
        draws: Number of permutations.
        block_length: For records in time order: runs of so many records are kept together and
            permuted as blocks, so that slow movements of both series are not mistaken for
            agreement.

    Returns:
        A :class:`NoiseFloor`.

    Raises:
        ValueError: Soft reports, or arguments out of range.

    Example:
        >>> from jgram.kernels import delta
        >>> x_hat = np.repeat([0, 1], 50)
        >>> noise_floor(jax.random.key(0), x_hat, x_hat, delta, draws=99).p_value
        0.01
    """
    d = infer_num_classes(x_hat, num_classes)
    if np.ndim(x_hat) != 1:
        raise ValueError(f"expected labels [n] to permute, got shape {list(np.shape(x_hat))}")
    n = len(np.asarray(x_hat))
    if draws < 1 or not 1 <= block_length <= n:
        raise ValueError(
            f"expected draws >= 1 and block_length in 1..{n}, got {draws} and {block_length}"
        )
    labels = np.asarray(x_hat).astype(np.int32)
    rng = _host_generator(key)
    with jax.enable_x64(True):
        kernel = as_pytree(resolve(kernel, y))
        if isinstance(kernel, Delta) and block_length == 1:
            table = np.asarray(joint_table(labels, y, num_classes=d))
            tables = _tables_with_margins(rng, table.sum(axis=1), table.sum(axis=0), draws)
            both = _log_scores_of_tables(np.concatenate([table[None], tables]))
            own, scores = float(both[0]), both[1:]
        else:
            points = jnp.asarray(y)
            own = float(_log_scores_of_reports(kernel, jnp.asarray(labels[None]), points, d)[0])
            size = _chunk_size(n * d * 8)
            scores = np.concatenate(
                [
                    np.asarray(_log_scores_of_reports(kernel, jnp.asarray(part), points, d))
                    for part in _permuted(rng, labels, draws, block_length, size)
                ]
            )[:draws]
    return summarise_floor(own, scores)


def summarise_floor(log_score: float, draws: np.ndarray) -> NoiseFloor:
    """:class:`NoiseFloor` of a log score among the log scores of permuted labels."""
    finite = draws[np.isfinite(draws)]
    mean = float(finite.mean()) if finite.size else -np.inf
    deviation = float(finite.std(ddof=1)) if finite.size > 1 else 0.0
    known = np.isfinite(log_score) and deviation > 0
    return NoiseFloor(
        mean=mean,
        standard_deviation=deviation,
        margin=(log_score - mean) / deviation if known else None,
        p_value=(1 + int(np.sum(draws >= log_score))) / (1 + len(draws)),
        draws=draws,
    )


def bootstrap(
    key: Key[Array, ""],
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."],
    kernel: Kernel,
    *,
    num_classes: int | None = None,
    draws: int = 1000,
    confidence: float = 0.95,
) -> Bootstrap:
    """Resample the records with replacement, as weights: nothing is copied.

    Under the delta kernel the cells of the contingency table are resampled, whatever ``n``.
    Otherwise all resampled weights share one pass over the kernel.

    Args:
        key: Random key.
        x_hat: Labels ``[n]`` or soft reports ``[n, d]``.
        y: Observations ``[n, ...]``.
        kernel: A kernel, or any function of two observations.
        num_classes: ``d``.
        draws: Number of resamples.
        confidence: Of the interval.

    Returns:
        A :class:`Bootstrap`.

    Raises:
        ValueError: The log score is ``-inf``, or arguments do not fit.

    Example:
        >>> from jgram.kernels import delta
        >>> x_hat = np.repeat([0, 1], 50); y = np.roll(x_hat, 10)
        >>> low, high = bootstrap(jax.random.key(0), x_hat, y, delta).interval
        >>> low < high
        True
    """
    d = infer_num_classes(x_hat, num_classes)
    if draws < 2:
        raise ValueError(f"expected draws >= 2, got {draws}")
    normal_quantile(confidence)  # refuses what is no confidence
    rng = _host_generator(key)
    n = len(np.asarray(y))
    with jax.enable_x64(True):
        kernel = as_pytree(resolve(kernel, y))
        points = jnp.asarray(y)
        own = uncertainties({"": x_hat}, y, kernel, num_classes=d)[""].log_score
        if not np.isfinite(own):
            raise ValueError("expected a report with a finite log score to resample, got -inf")
        if isinstance(kernel, Delta) and np.ndim(x_hat) == 1:
            table = np.asarray(joint_table(x_hat, y, num_classes=d))
            tables = rng.multinomial(n, table.ravel() / n, size=draws).reshape(draws, *table.shape)
            scores = _log_scores_of_tables(tables)
        else:
            parts = []
            size = _chunk_size(n * d * 8)
            for start in range(0, draws, size):
                weights = rng.multinomial(n, np.full(n, 1.0 / n), size=min(size, draws - start))
                parts.append(
                    np.asarray(
                        _log_scores_of_weights(
                            kernel, jnp.asarray(x_hat), points, jnp.asarray(weights, float), d
                        )
                    )
                )
            scores = np.concatenate(parts)
    finite = scores[np.isfinite(scores)]
    if finite.size < 2:
        raise ValueError("expected resamples with every class, got none: classes are too rare")
    low, high = np.quantile(finite, [0.5 - confidence / 2.0, 0.5 + confidence / 2.0])
    return Bootstrap(
        standard_error=float(finite.std(ddof=1)),
        bias=float(finite.mean() - own),
        interval=(2.0 * own - float(high), 2.0 * own - float(low)),
        draws=scores,
    )


def _host_generator(key: Key[Array, ""]) -> np.random.Generator:
    """NumPy's generator seeded by a JAX key, for draws that NumPy makes exactly on the host."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def _chunk_size(bytes_each: int) -> int:
    return max(1, CHUNK_BYTES // bytes_each)


def _tables_with_margins(
    rng: np.random.Generator, outcomes: np.ndarray, classes: np.ndarray, draws: int
) -> np.ndarray:
    """Random tables ``[draws, m, d]`` of given margins: permuted labels, without the records.

    Cell by cell, each a univariate hypergeometric given the cells before it.
    """
    left = np.repeat(classes[None].astype(np.int64), draws, axis=0)  # of each class, not yet placed
    tables = np.empty((draws, len(outcomes), len(classes)), np.int64)
    for row, size in enumerate(outcomes[:-1]):
        wanted = np.full(draws, size, np.int64)
        others = left.sum(axis=1)
        for column in range(len(classes) - 1):
            others -= left[:, column]
            taken = rng.hypergeometric(left[:, column], others, wanted)
            tables[:, row, column] = taken
            wanted -= taken
        tables[:, row, -1] = wanted
        left -= tables[:, row]
    tables[:, -1] = left
    return tables


def _log_scores_of_tables(tables: np.ndarray) -> np.ndarray:
    """Log scores ``[t]`` of contingency tables ``[t, m, d]``, in float64."""
    with jax.enable_x64(True):
        means = tables / tables.sum(axis=(1, 2), keepdims=True)
        return np.asarray(_log_determinants(means.swapaxes(1, 2)))


@jax.jit
@jax.vmap
def _log_determinants(sums: Array) -> Array:
    return log_determinant_of_sums(sums)


def _permuted(
    rng: np.random.Generator, labels: np.ndarray, draws: int, block_length: int, size: int
) -> Any:
    """Permuted labels in chunks ``[size, n]``; the last chunk is full too, to compile once."""
    size = min(size, draws)
    starts = np.arange(0, len(labels), block_length)
    for _ in range(0, draws, size):
        if block_length == 1:
            yield rng.permuted(np.tile(labels, (size, 1)), axis=1)
            continue
        chunk = np.empty((size, len(labels)), labels.dtype)
        for row in chunk:
            # A random turn first, so that the blocks do not always begin at the same records.
            turned = np.roll(labels, rng.integers(len(labels)))
            blocks = [turned[start : start + block_length] for start in rng.permutation(starts)]
            row[:] = np.concatenate(blocks)
        yield chunk


@partial(jax.jit, static_argnames="num_classes")
def _log_scores_of_reports(kernel: Any, x_hats: Array, y: Array, num_classes: int) -> Array:
    """Log scores of many reports ``[t, n]`` on one ``y``."""
    return jax.vmap(lambda x_hat: _log_score(kernel, x_hat, y, None, num_classes))(x_hats)


@partial(jax.jit, static_argnames="num_classes")
def _log_scores_of_weights(
    kernel: Any, x_hat: Array, y: Array, weights: Array, num_classes: int
) -> Array:
    """Log scores of one report under many weights ``[t, n]``."""
    return jax.vmap(lambda weight: _log_score(kernel, x_hat, y, weight, num_classes))(weights)


def _log_score(kernel: Any, x_hat: Array, y: Array, weights: Any, num_classes: int) -> Array:
    if not is_explicit(kernel):
        matrix = gram(x_hat, y, kernel, num_classes=num_classes, weights=weights)
        return eliminate_gram(matrix).log_determinant
    features = kernel.features(y)
    z = memberships(x_hat, num_classes, weights, features.dtype)
    sums = jnp.matmul(z.T, features, precision=HIGHEST) / jnp.sum(z)
    return eliminate_sums(sums).log_determinant
