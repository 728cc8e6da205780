"""Rankings of records that are never in memory together: two passes over batches, exactly.

For an explicit kernel, with ``c_n`` a one and all reports of record ``n`` side by side, ``phi_n``
its features and ``s_n = phi_n . phi_n``, all that payoffs take from the other records is in sums:

    sum w c c^T phi      sum w s c c^T      sum w phi phi^T      sum w s phi      sum w s^2

The first pass adds these up, the second pays every record and adds up the payoffs and their
products. What is said of pairs and rankings (:mod:`jgram.comparisons`, :mod:`jgram.ranks`) depends
on payoffs through these two moments alone: a few *stand-ins*, records of equal weight that have
exactly the same moments, take the place of all. Only how far a share that rests on few records
widens its interval (:func:`jgram.comparisons.share_degrees`) is beyond two moments: streams are
taken to be too long for that.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, Float, float64
from jgram.contrasts import Payoffs, noise_level, score_without_own, scorer_of
from jgram.determinant import eliminate_sums
from jgram.kernels import as_kernel

__all__ = ["StreamedPayoffs", "stream_payoffs"]


class StreamedPayoffs(NamedTuple):
    """What two passes over batches find of ``k`` reports.

    Attributes:
        pairs: As :func:`jgram.contrasts.pair_payoffs`, of a few stand-ins with the moments of all
            records; for :func:`jgram.ranks.rank_pairs` and :mod:`jgram.comparisons`.
        log_scores: Published log scores ``[k]``.
        standard_errors: Of the log scores ``[k]``; infinite where a score is 0.
        noise_p_values: ``[k]``, of "this report has nothing to do with the observations", from its
            mean payoff and the standard error of that.
        num_records: ``n``, or the total frequency.
    """

    pairs: Payoffs
    log_scores: Float[np.ndarray, " k"]
    standard_errors: Float[np.ndarray, " k"]
    noise_p_values: Float[Array, " k"]
    num_records: float


class _Sums(NamedTuple):
    """Sums over records of weights times products; the names say of what."""

    labels_labels: Any
    labels_labels_features: Any
    square_labels_labels: Any
    features_features: Any
    square_features: Any
    square_square: Any


class _Centre(NamedTuple):
    """The mean features, and what the doubly centred kernel has on its diagonal and beside it."""

    total: Any
    features: Any
    mean: Any
    own: Any
    spread: Any


class _Scorer(NamedTuple):
    """What pays a pair: columns to its centred mean report, to its own reports, and its scorer."""

    centre: Any
    reports: Any
    direction: Any
    gram: Any
    noise: Any
    tau: Any


def stream_payoffs(
    batches: Iterable[tuple[Any, ...]], kernel: Any, *, num_classes: int
) -> StreamedPayoffs:
    """Payoffs of every pair of reports, log scores and standard errors, in two passes.

    Args:
        batches: ``(reports [k, b], y [b, ...])`` or ``(reports, y, weights [b])``, which can be
            read twice: a list, or an object whose ``__iter__`` opens the files again. Memory is
            that of one batch and of ``(1 + k d)^2 m + m^2`` numbers.
        kernel: An explicit kernel, complete: ``Delta(m)``, ``Linear``, ``RandomFeatures``.
        num_classes: ``d``.

    Returns:
        :class:`StreamedPayoffs`, equal to what all records in memory give.

    Raises:
        ValueError: No batch, batches that can be read once, a kernel without features, labels out
            of range.

    Example:
        >>> from jgram.kernels import Delta
        >>> y = np.arange(40) % 2
        >>> reports = np.stack([y, np.where(np.arange(40) % 5, y, 0)])
        >>> batches = [(reports[:, :25], y[:25]), (reports[:, 25:], y[25:])]
        >>> found = stream_payoffs(batches, Delta(2), num_classes=2)
        >>> round(float(found.log_scores[0]), 4), found.num_records
        (-2.7726, 40.0)
    """
    kernel = as_kernel(kernel)
    if not hasattr(kernel, "features"):
        raise ValueError(
            "expected a kernel with features for a stream (delta, linear, random features), got "
            f"{type(kernel).__name__}: draw RandomFeatures of it"
        )
    if iter(batches) is batches:
        raise ValueError(
            "expected batches that can be read twice, got an iterator: give a list, or an object "
            "whose __iter__ starts again"
        )
    with float64():
        return _stream(batches, kernel, num_classes)


def _stream(batches: Iterable[tuple[Any, ...]], kernel: Any, d: int) -> StreamedPayoffs:
    sums: Any = None
    for batch in batches:
        found = _added(kernel, *_checked(batch, d), d)
        sums = found if sums is None else jax.tree.map(jnp.add, sums, found)
    if sums is None:
        raise ValueError("expected at least one batch, got none")
    k = (len(sums.labels_labels) - 1) // d
    first, second = np.triu_indices(k, 1)
    pairs = jnp.stack([np.append(np.arange(k), first), np.append(np.arange(k), second)], axis=1)
    centre = _centre(sums)
    scorers, crossed = jax.vmap(partial(_scorer, sums, centre, d))(pairs)
    means = sums.labels_labels_features[0, 1:].reshape(k, d, -1) / centre.total
    scores = np.asarray(jax.vmap(lambda mean: eliminate_sums(mean).log_determinant)(means))
    inverses = jnp.linalg.pinv(means)
    moments: Any = 0.0
    for batch in batches:
        given = _checked(batch, d)
        moments = moments + _paid(kernel, centre, scorers, inverses, *given, d)
    return _found(np.asarray(moments), np.asarray(crossed), k, scores)


def _found(moments: np.ndarray, crossed: np.ndarray, k: int, scores: Any) -> StreamedPayoffs:
    """Answers from the moments of a one, payoffs, their differences and contributions."""
    total, p = moments[0, 0], len(crossed)
    paid = np.arange(1, 1 + 2 * p).reshape(p, 2)
    average = moments[0] / total
    spread = (moments - total * np.outer(average, average)) / (total * (total - 1))
    covariance = spread[paid[:, :, None], paid[:, None, :]] + crossed
    errors = np.sqrt(np.maximum(covariance[:k, 0, 0], 1e-300))
    alone = jax.scipy.stats.norm.sf(average[paid[:k, 0]] / errors)
    values, weight = _stand_ins(moments[: 1 + 3 * p, : 1 + 3 * p])
    means = average[paid[k:]]
    pairs = Payoffs(
        jnp.asarray(values[paid[k:]]),
        jnp.asarray(values[1 + 2 * p + k :]),
        jnp.full((p - k, values.shape[1]), weight),
        jnp.asarray(means),
        jnp.asarray(covariance[k:]),
        jnp.asarray(means.mean(axis=1)),
    )
    own = np.sqrt(np.maximum(np.diagonal(spread)[1 + 3 * p :], 0.0))
    return StreamedPayoffs(
        pairs, scores, np.where(np.isfinite(scores), own, np.inf), alone, float(total)
    )


def _stand_ins(moments: np.ndarray) -> tuple[np.ndarray, float]:
    """Columns of equal weight whose sums, and sums of products, are ``moments``.

    A root of the moments, turned so that the one of every column has the same size.
    """
    size = len(moments)
    values, vectors = np.linalg.eigh(moments)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    turn = _reflection(root[0] / np.linalg.norm(root[0])) @ _reflection(
        np.full(size, 1 / np.sqrt(size))
    )
    weight = moments[0, 0] / size
    return root @ turn / np.sqrt(weight), weight


def _reflection(direction: np.ndarray) -> np.ndarray:
    """The symmetric orthogonal matrix that swaps a direction with the first axis."""
    away = direction - np.eye(len(direction))[0]
    length = away @ away
    return np.eye(len(away)) - (2 * np.outer(away, away) / length if length > 1e-30 else 0.0)


def _checked(batch: tuple[Any, ...], d: int) -> tuple[Array, Array, Array]:
    """Reports ``[k, b]``, observations and weights of a batch."""
    reports, y = np.asarray(batch[0]), jnp.asarray(batch[1])
    weights = np.ones(len(y)) if len(batch) < 3 else np.asarray(batch[2], np.float64)
    if reports.ndim != 2 or reports.shape[1] != len(y) or weights.shape != (len(y),):
        raise ValueError(
            f"expected batches of reports [k, b], observations [b, ...] and weights [b], got "
            f"{reports.shape}, {y.shape} and {weights.shape}"
        )
    if reports.size and not 0 <= reports.min() <= reports.max() < d:
        raise ValueError(
            f"expected labels 0..{d - 1} in every batch, got {reports.min()}..{reports.max()}: "
            "leave out records without a label"
        )
    return jnp.asarray(reports), y, jnp.asarray(weights)


def _columns(reports: Array, d: int) -> Array:
    """A one and all reports side by side, ``[b, 1 + k d]``."""
    z = jax.nn.one_hot(reports.T, d, dtype=jnp.float64).reshape(reports.shape[1], -1)
    return jnp.concatenate([jnp.ones((len(z), 1)), z], axis=1)


@partial(jax.jit, static_argnames="d")
def _added(kernel: Any, reports: Array, y: Array, weights: Array, d: int) -> _Sums:
    labels = _columns(reports, d)
    features = kernel.features(y).astype(jnp.float64)
    weighted, square = weights[:, None] * features, jnp.sum(features**2, axis=1)
    both = labels[:, :, None] * labels[:, None, :]
    flat = both.reshape(len(labels), -1)
    shape = both.shape[1:]
    with jax.default_matmul_precision("highest"):
        return _Sums(
            (weights @ flat).reshape(shape),
            (flat.T @ weighted).reshape(*shape, -1),
            ((weights * square) @ flat).reshape(shape),
            features.T @ weighted,
            square @ weighted,
            weights @ square**2,
        )


@jax.jit
def _centre(sums: _Sums) -> _Centre:
    with jax.default_matmul_precision("highest"):
        total = sums.labels_labels[0, 0]
        features = sums.labels_labels_features[0, 0] / total
        mean = features @ features
        rows = features @ sums.features_features @ features  # of squares
        own = sums.square_labels_labels[0, 0] - total * mean
        squares = sums.square_square + 4 * rows - 3 * total * mean**2
        squares += 2 * mean * sums.square_labels_labels[0, 0] - 4 * sums.square_features @ features
        norm = jnp.sum(sums.features_features**2) - 2 * total * rows + (total * mean) ** 2
        spread = jnp.maximum((norm - squares) / (total * (total - 1)), 0.0)
        return _Centre(total, features, mean, own, spread)


def _scorer(sums: _Sums, centre: _Centre, d: int, pair: Array) -> tuple[_Scorer, Array]:
    """The scorer at the midpoint of a pair, and what scoring each other adds to its covariance."""
    n, size = centre.total, len(sums.labels_labels)
    columns = jnp.arange(size)[:, None]
    with jax.default_matmul_precision("highest"):
        reports = (columns == 1 + d * pair[:, None, None] + jnp.arange(d)).astype(jnp.float64)
        shares = sums.labels_labels[0] @ reports / n
        reports = reports.at[:, 0].set(-shares)
        middle, share = jnp.mean(reports, axis=0), jnp.mean(shares, axis=0)
        own = sums.square_labels_labels - 2 * sums.labels_labels_features @ centre.features
        own = middle.T @ (own + centre.mean * sums.labels_labels) @ middle
        direction = sums.labels_labels_features[0].T @ middle / n
        gram = direction.T @ direction - own / n**2
        gram = (gram + gram.T) / 2
        noise, tau = noise_level(n, share, centre.spread, centre.own, centre.own)
        real = jnp.real(scorer_of(gram, noise, tau))
        spread = middle.T @ sums.labels_labels @ reports / n
        crossed = jnp.einsum("kab,bc,lcd,da->kl", spread, real, spread, real)
        explained = gram / jnp.maximum(share, 0.5 / n)[:, None]
        unexplained = jnp.maximum(centre.spread - jnp.sum(explained * explained.T), 0.0)
    return _Scorer(middle, reports, direction, gram, noise, tau), unexplained * crossed / n**2


@partial(jax.jit, static_argnames="d")
def _paid(
    kernel: Any,
    centre: _Centre,
    scorers: _Scorer,
    inverses: Array,
    reports: Array,
    y: Array,
    weights: Array,
    d: int,
) -> Array:
    """Weighted sums of products of a one, payoffs, differences and contributions."""
    labels, features = _columns(reports, d), kernel.features(y).astype(jnp.float64)
    with jax.default_matmul_precision("highest"):
        inside = features @ centre.features
        own = jnp.sum(features**2, axis=1) - 2 * inside + centre.mean
        left = centre.total - 1

        def pay(scorer: _Scorer) -> tuple[Array, Array]:
            middle = labels @ scorer.centre
            seen = (features - centre.features) @ scorer.direction - own[:, None] * middle / left
            h = score_without_own(scorer.gram, scorer.noise, scorer.tau, seen, middle, left)
            paid = jnp.einsum("nd,knd->kn", h, labels @ scorer.reports)
            shares = scorer.reports[1, 0] - scorer.reports[0, 0]  # their columns have them off
            return paid, paid[0] - paid[1] + h @ shares

        paid, differences = jax.vmap(pay)(scorers)
        labelled = labels[:, 1:].reshape(len(labels), -1, d)
        scored = jnp.einsum("nm,kmd,nkd->kn", features, inverses, labelled)
        rows = [jnp.ones((1, len(labels))), paid.reshape(-1, len(labels)), differences]
        rows = jnp.concatenate([*rows, 2 * (scored - d)])
        return weights * rows @ rows.T
