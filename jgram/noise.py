"""The noise floor and the bootstrap: the plug-in log score of permuted and resampled records.

These functions run eagerly, in float64. Categorical observations are counted: a permutation or a
resample costs a table, whatever the number of records.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, ArrayLike, Key, Shaped, float64, infer_num_classes
from jgram.determinant import log_determinant_of_sums
from jgram.kernels import Kernel, rbf
from jgram.observed import Codes, Observed, observe
from jgram.uncertainty import normal_quantile

__all__ = ["Bootstrap", "NoiseFloor", "bootstrap", "noise_floor"]

CHUNK_BYTES = 2**27


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
    with float64():
        observed = observe(kernel, y)
        if isinstance(observed, Codes) and block_length == 1:
            table = np.asarray(observed.table(labels, d))
            tables = _tables_with_margins(rng, table.sum(axis=1), table.sum(axis=0), draws)
            both = _log_scores_of_tables(np.concatenate([table[None], tables]))
            own, scores = float(both[0]), both[1:]
        else:
            own = float(_log_scores_of_reports(observed, jnp.asarray(labels[None]), d)[0])
            size = _chunk_size(n * d * 8)
            scores = np.concatenate(
                [
                    np.asarray(_log_scores_of_reports(observed, jnp.asarray(part), d))
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
    y: Shaped[ArrayLike, "n ..."] | Observed,
    kernel: Kernel | str = rbf,
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
        confidence: Confidence level of the interval.

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
    with float64():
        observed = observe(kernel, y)
        n = observed.size
        own = float(observed.eliminate(jnp.asarray(x_hat), d).log_determinant)
        if not np.isfinite(own):
            raise ValueError("expected a report with a finite log score to resample, got -inf")
        if isinstance(observed, Codes) and np.ndim(x_hat) == 1:
            table = np.asarray(observed.table(x_hat, d))
            tables = rng.multinomial(n, table.ravel() / n, size=draws).reshape(draws, *table.shape)
            scores = _log_scores_of_tables(tables)
        else:
            parts = []
            size = _chunk_size(n * d * 8)
            for start in range(0, draws, size):
                weights = rng.multinomial(n, np.full(n, 1.0 / n), size=min(size, draws - start))
                found = _log_scores_of_weights(
                    observed, jnp.asarray(x_hat), jnp.asarray(weights, float), d
                )
                parts.append(np.asarray(found))
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
    with float64():
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
def _log_scores_of_reports(observed: Any, x_hats: Array, num_classes: int) -> Array:
    """Log scores of many reports ``[t, n]`` on one ``y``."""
    return jax.vmap(lambda x_hat: observed.eliminate(x_hat, num_classes).log_determinant)(x_hats)


@partial(jax.jit, static_argnames="num_classes")
def _log_scores_of_weights(observed: Any, x_hat: Array, weights: Array, num_classes: int) -> Array:
    """Log scores of one report under many weights ``[t, n]``."""
    return jax.vmap(lambda w: observed.eliminate(x_hat, num_classes, w).log_determinant)(weights)
