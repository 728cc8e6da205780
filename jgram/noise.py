"""What noise does: permuted and resampled records, and the test against it of records in groups.

These functions run eagerly, in float64. Categorical observations are counted: a permutation or a
resample costs a table, whatever the number of records.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, ArrayLike, Float, Key, Shaped, float64, infer_num_classes
from jgram.comparisons import normal_quantile
from jgram.contrasts import Products
from jgram.determinant import log_determinant_of_sums
from jgram.kernels import Kernel, rbf
from jgram.observed import BATCH, Codes, Features, Observed, Pairs, observe
from jgram.uncertainty import padded_length

__all__ = [
    "FEWEST_GROUPS", "Bootstrap", "NoiseFloor", "bootstrap", "grouped_noise_tests", "noise_floor",
]  # fmt: skip

CHUNK_BYTES = 2**27
FEWEST_GROUPS = 10
"""Groups below which records in groups are not told from noise."""
ALL_SIGNS, MOST_GROUPS, SIGNS = 14, 512, 9999


@dataclass(frozen=True)
class NoiseFloor:
    """Log scores of the same labels once they are permuted against the observations.

    The floor rises as ``n`` falls: scores of different data sizes cannot be compared, margins can.

    Attributes:
        mean: Mean of the finite draws.
        standard_deviation: Standard deviation of the finite draws.
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


def noise_floor(
    key: Key[Array, ""],
    x_hat: Shaped[ArrayLike, " n"],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str = rbf,
    *,
    num_classes: int | None = None,
    draws: int = 1000,
    block_length: int = 1,
) -> NoiseFloor:
    """What the labels would score if they had nothing to do with the observations.

    A permutation test. Under the delta kernel tables with the given margins are drawn, whatever
    ``n``; otherwise all permuted reports share one pass over the kernel.

    Args:
        draws: Number of permutations.
        block_length: For records in time order: runs of so many are permuted as blocks, so that
            slow movements of both series are not mistaken for agreement.

    Example:
        >>> x_hat = np.repeat([0, 1], 50)
        >>> noise_floor(jax.random.key(0), x_hat, x_hat, "delta", draws=99).p_value
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
    labels, rng = np.asarray(x_hat).astype(np.int32), _host_generator(key)

    def alike(table: np.ndarray) -> np.ndarray:
        from scipy.stats import random_table  # as slow to import as the rest of jgram

        margins = random_table(table.sum(axis=1), table.sum(axis=0))
        return margins.rvs(draws, random_state=rng).astype(np.int64)

    def permuted(size: int) -> tuple[Any, Any]:
        return _permuted(rng, labels, size, block_length), None

    own, scores = _drawn(
        kernel, y, labels, d, draws, permuted, alike if block_length == 1 else None
    )
    finite = scores[np.isfinite(scores)]
    mean = float(finite.mean()) if finite.size else -np.inf
    deviation = float(finite.std(ddof=1)) if finite.size > 1 else 0.0
    margin = (own - mean) / deviation if np.isfinite(own) and deviation > 0 else None
    p_value = (1 + int(np.sum(scores >= own))) / (1 + draws)
    return NoiseFloor(mean, deviation, margin, p_value, scores)


def bootstrap(
    key: Key[Array, ""],
    x_hat: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str = rbf,
    *,
    num_classes: int | None = None,
    draws: int = 1000,
    confidence: float = 0.95,
) -> Bootstrap:
    """Resample the records with replacement, as weights: nothing is copied.

    Under the delta kernel the cells of the contingency table are resampled, whatever ``n``;
    otherwise ``draws`` weights share one pass over the kernel. A log score of ``-inf`` is refused.

    Example:
        >>> x_hat = np.repeat([0, 1], 50); y = np.roll(x_hat, 10)
        >>> low, high = bootstrap(jax.random.key(0), x_hat, y, "delta").interval
        >>> low < high
        True
    """
    d = infer_num_classes(x_hat, num_classes)
    if draws < 2:
        raise ValueError(f"expected draws >= 2, got {draws}")
    normal_quantile(confidence)  # refuses what is no confidence
    n, rng = len(np.asarray(x_hat)), _host_generator(key)

    def resampled(table: np.ndarray) -> np.ndarray:
        return rng.multinomial(n, table.ravel() / n, size=draws).reshape(draws, *table.shape)

    def weighted(size: int) -> tuple[Any, Any]:
        return jnp.asarray(x_hat), rng.multinomial(n, np.full(n, 1.0 / n), size).astype(float)

    tables = resampled if np.ndim(x_hat) == 1 else None
    own, scores = _drawn(kernel, y, x_hat, d, draws, weighted, tables)
    if not np.isfinite(own):
        raise ValueError("expected a report with a finite log score to resample, got -inf")
    finite = scores[np.isfinite(scores)]
    if finite.size < 2:
        raise ValueError("expected resamples with every class, got none: classes are too rare")
    low, high = np.quantile(finite, [0.5 - confidence / 2.0, 0.5 + confidence / 2.0])
    interval = (2.0 * own - float(high), 2.0 * own - float(low))
    return Bootstrap(float(finite.std(ddof=1)), float(finite.mean() - own), interval, scores)


def _host_generator(key: Key[Array, ""]) -> np.random.Generator:
    """NumPy's generator seeded by a JAX key, for draws that NumPy makes exactly on the host."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def _drawn(
    kernel: Any, y: Any, x_hat: Any, d: int, draws: int, records: Any, tables: Any
) -> tuple[float, np.ndarray]:
    """The log score of a report and those of draws: of ``tables(own)`` of categories, where it is
    there, or of the reports and weights ``records(size)``, in chunks of one size, to compile once.
    """
    with float64():
        observed = observe(kernel, y)
        if isinstance(observed, Codes) and tables is not None:
            table = np.asarray(observed.table(x_hat, d))
            found = _log_scores_of_tables(np.concatenate([table[None], tables(table)]))
            return float(found[0]), found[1:]
        own = observed.eliminate(jnp.asarray(x_hat), d).log_determinant
        size = min(max(1, CHUNK_BYTES // (8 * observed.size * d)), draws)
        chunks = (_log_scores(observed, *records(size), d) for _ in range(0, draws, size))
        return float(own), np.concatenate([*map(np.asarray, chunks)])[:draws]


def _log_scores_of_tables(tables: np.ndarray) -> np.ndarray:
    """Log scores ``[t]`` of contingency tables ``[t, m, d]``, in float64."""
    means = tables / tables.sum(axis=(1, 2), keepdims=True)
    return np.asarray(_log_determinants(means.swapaxes(1, 2)))


_log_determinants = jax.jit(jax.vmap(log_determinant_of_sums))


def _permuted(rng: Any, labels: np.ndarray, count: int, block_length: int) -> np.ndarray:
    """Permuted labels ``[count, n]``."""
    if block_length == 1:
        return rng.permuted(np.tile(labels, (count, 1)), axis=1)
    starts, permuted = np.arange(0, len(labels), block_length), []
    for _ in range(count):
        # A random turn first, so that the blocks do not always begin at the same records.
        turned = np.roll(labels, rng.integers(len(labels)))
        blocks = [turned[start : start + block_length] for start in rng.permutation(starts)]
        permuted.append(np.concatenate(blocks))
    return np.stack(permuted)


@partial(jax.jit, static_argnames="num_classes")
def _log_scores(observed: Any, x_hats: Any, weights: Any, num_classes: int) -> Array:
    """Log scores of many reports ``[t, n]``, or of one under many weights ``[t, n]``."""

    def one(x_hat: Array, weights: Any) -> Array:
        return observed.eliminate(x_hat, num_classes, weights).log_determinant

    return jax.vmap(one, (0, None) if weights is None else (None, 0))(x_hats, weights)


def grouped_noise_tests(observed: Observed, found: Products) -> Float[np.ndarray, " k"]:
    """P-values ``[k]`` of "this report has nothing to do with the observations", by groups.

    ``sum (H K H)_ij z_i . z_j / q`` over pairs of records of different groups, less what centring
    makes of it, against the same with a random sign for every group: where report and observations
    are independent from group to group, signs change nothing. All signs are taken up to 14 groups,
    9,999 draws of a fixed seed beyond; more than 512 groups are joined at random to 512. 1 for
    constant reports, and for those of fewer than :data:`FEWEST_GROUPS` groups, too few to tell.
    ``found`` is of :func:`jgram.contrasts.products`, with groups.

    Reference:
        Leucht and Neumann, *Dependent wild bootstrap for degenerate U- and V-statistics*, 2013.
    """
    z, weights = np.asarray(found.z), np.asarray(found.weights)
    rng, groups = np.random.default_rng(0), np.asarray(found.groups)
    used, groups = np.unique(np.where(weights > 0, groups, -1), return_inverse=True)
    groups = np.maximum(groups - (used[0] < 0), 0)  # what has no weight may be anywhere
    count = groups.max() + 1
    if count > MOST_GROUPS:
        groups, count = (rng.permutation(count) % MOST_GROUPS)[groups], MOST_GROUPS
    size = padded_length(int(count))
    sums = np.asarray(_group_sums(observed, found, jnp.asarray(groups), size))
    if count <= ALL_SIGNS:
        places = np.arange(1 << (count - 1))[:, None] >> np.arange(size)
        signs = 1.0 - 2 * (places & 1)
    else:
        signs = np.vstack([np.ones(size), rng.choice([-1.0, 1.0], (SIGNS, size))])
    p_values = np.ones(len(z))
    for report, present in enumerate(z.any(axis=2) & (weights > 0)):
        if len(np.unique(groups[present])) >= FEWEST_GROUPS:
            apart = sums[report] - np.diag(np.diag(sums[report]))
            drawn = np.sum((signs @ apart) * signs, axis=1)  # the first signs are 1
            p_values[report] = np.mean(drawn >= drawn[0] - 1e-9 * np.abs(apart).sum())
    return p_values


@partial(jax.jit, static_argnames="count")
def _group_sums(observed: Any, found: Products, groups: Array, count: int) -> Array:
    """``[k, G, G]``, sums of ``(H K H)_ij z_i . z_j / q`` over the records of two groups.

    Centred about means of few groups, entries between groups are below 0 on average on both sides,
    of the kernel and of the reports: the product of the averages is taken off.
    """
    labelled = jnp.sum(found.z, axis=2) * found.weights
    totals = jnp.maximum(jnp.sum(labelled, axis=1), 1.0)
    shares = jnp.einsum("n,knd->kd", found.weights, found.z) / totals[:, None]
    scale = jnp.sqrt(jnp.maximum(shares, 0.5 / totals[:, None]))
    centred = labelled[:, :, None] * (found.z - shares[:, None]) / scale[:, None]
    rows = jnp.sum(found.product, axis=2) / totals[:, None]
    means = jnp.sum(labelled * rows, axis=1) / totals
    columns = [centred, rows[:, :, None] * centred, jnp.stack([labelled, labelled * rows], axis=2)]
    columns = jnp.moveaxis(jnp.concatenate(columns, axis=2), 1, 0)
    d = found.z.shape[2]

    def inside(groups: Array, count: int) -> list[Array]:
        sums = jnp.moveaxis(jax.ops.segment_sum(columns, groups, count), 1, 0)
        return jnp.split(sums, [d, 2 * d, 2 * d + 1], axis=2)

    with jax.default_matmul_precision("highest"):
        reports, _, sizes, by_row = inside(found.groups, len(columns))
        within = jnp.sum(labelled * jnp.sum(found.group_product, axis=2), axis=1)
        within -= jnp.sum((2 * by_row - means[:, None, None] * sizes) * sizes, axis=(1, 2))
        pairs = jnp.maximum(totals**2 - jnp.sum(sizes**2, axis=(1, 2)), 1.0)
        average = within * jnp.sum(reports**2, axis=(1, 2)) / pairs**2
        reports, crossed, sizes, _ = inside(groups, count)
        crossed = crossed @ reports.swapaxes(1, 2)
        centring = means[:, None, None] * reports @ reports.swapaxes(1, 2)
        centring = centring - crossed - crossed.swapaxes(1, 2)
        centring -= average[:, None, None] * sizes @ sizes.swapaxes(1, 2)
        plain = _group_kernel if isinstance(observed, Pairs) else _group_features
        return plain(observed, centred, groups, count) + centring


def _group_kernel(observed: Any, centred: Array, groups: Array, count: int) -> Array:
    """Sums over pairs of groups of ``K_ij centred_i . centred_j``, in rows of tiles."""
    n = observed.size
    size = min(max(1, BATCH // n), n)
    places = jnp.arange(-(-n // size) * size).reshape(-1, size)

    def add(total: Array, place: Array) -> tuple[Array, None]:
        inside, place = place < n, jnp.minimum(place, n - 1)
        block = jnp.where(inside[:, None], observed.block(place, slice(None)), 0.0)

        def one(part: Array) -> Array:
            values = (block * (part[place] @ part.T)).T
            by_group = jax.ops.segment_sum(values, groups, count)
            return jax.ops.segment_sum(by_group.T, groups[place], count)

        return total + jax.lax.map(one, centred), None

    start = jnp.zeros((len(centred), count, count), centred.dtype)
    return jax.lax.scan(add, start, places)[0]


def _group_features(observed: Any, centred: Array, groups: Array, count: int) -> Array:
    """The same of an explicit kernel: inner products of what each group's features sum up to."""
    n, m = observed.size, observed.num_features
    size = min(max(1, BATCH // m), n)
    places = jnp.arange(-(-n // size) * size).reshape(-1, size)

    def one(column: Array) -> Array:
        if isinstance(observed, Codes):
            sums = jax.ops.segment_sum(column, groups * m + observed.points, count * m)
            return sums.reshape(count, m) @ sums.reshape(count, m).T

        def add(total: Array, place: Array) -> tuple[Array, None]:
            inside, place = place < n, jnp.minimum(place, n - 1)
            rows = observed.points[place]
            rows = rows if isinstance(observed, Features) else observed.kernel.features(rows)
            rows = jnp.where(inside, column[place], 0.0)[:, None] * rows
            return total + jax.ops.segment_sum(rows, groups[place], count), None

        sums = jax.lax.scan(add, jnp.zeros((count, m), column.dtype), places)[0]
        return sums @ sums.T

    return jax.lax.map(lambda columns: jnp.sum(jax.lax.map(one, columns.T), axis=0), centred)
