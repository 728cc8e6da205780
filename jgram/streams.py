"""Records that are never in memory together: batches that are read again in every pass, exactly.

For an explicit kernel all that a record takes from the others is in two sums, ``sum w z phi^T`` and
``sum w phi phi^T`` over records with reports ``z`` and features ``phi``. With the first pass's
sums every batch becomes a part (:class:`jgram.contrasts.Products`), and the figures of
:mod:`jgram.contrasts` are sums over parts, in two more passes. What is said of pairs and rankings
(:mod:`jgram.comparisons`, :mod:`jgram.ranks`) depends on payoffs through their means and the sums
of their products alone: a few *stand-ins* that have the same take the place of the records.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, Float, float64
from jgram.contrasts import (
    Margins,
    Paid,
    Payoffs,
    Products,
    paid_together,
    tested_together,
    together,
)
from jgram.influences import contributions, leave_one_out, linearise_frame
from jgram.kernels import as_kernel
from jgram.observed import Frame, frame_of_means
from jgram.uncertainty import Uncertainty, padded_length, uncertainty_of

__all__ = ["Judged", "Stream"]


class Judged(NamedTuple):
    """What three passes over batches find of ``k`` reports.

    Attributes:
        pairs: As :func:`jgram.contrasts.pair_payoffs`, of a few stand-ins with the moments of all
            records; for :func:`jgram.ranks.rank_pairs` and :mod:`jgram.comparisons`.
        alone: As :func:`jgram.contrasts.payoffs_alone`, of stand-ins.
        noise_p_values: ``[k]``, as :func:`jgram.contrasts.noise_tests`.
        published: :class:`jgram.uncertainty.Uncertainty` of each report's published score, with
            contributions of stand-ins.
    """

    pairs: Payoffs
    alone: Payoffs
    noise_p_values: Float[Array, " k"]
    published: list[Uncertainty]


class _Sums(NamedTuple):
    """Sums over records of weights times products; ``squares`` are of ``K(y_n, y_n)``."""

    counts: Any
    labels_features: Any
    features: Any
    features_features: Any
    squares: Any
    squares_features: Any
    squares_squares: Any


class Stream:
    """Reports, weights and an explicit kernel of batches, read anew in every pass.

    Memory is that of one batch and of ``(1 + k d) m + m^2`` numbers for ``m`` features.

    Args:
        batches: ``(reports, y [b, ...])`` or ``(reports, y, weights [b])``, reports as labels
            ``[k, b]`` or matrices ``[k, b, d]``, which can be read again: a list, or an object
            whose ``__iter__`` opens the files again.
        kernel: An explicit kernel, complete: ``Delta(m)``, ``Linear``, ``RandomFeatures``.
        num_classes: ``d``.

    Raises:
        ValueError: No batch, batches that can be read once, a kernel without features, labels out
            of range.

    Example:
        >>> from jgram.kernels import Delta
        >>> y = np.arange(40) % 2
        >>> reports = np.stack([y, np.where(np.arange(40) % 5, y, 0)])
        >>> batches = [(reports[:, :25], y[:25]), (reports[:, 25:], y[25:])]
        >>> stream = Stream(batches, Delta(2), num_classes=2)
        >>> found = stream.judge()
        >>> round(found.published[0].log_score, 4), stream.num_records
        (-2.7726, 40.0)
    """

    batches: Iterable[tuple[Any, ...]]
    kernel: Any
    num_classes: int
    num_records: float
    sums: Any
    counts: Any
    spread: Any
    groups: None = None

    def __init__(self, batches: Iterable[tuple[Any, ...]], kernel: Any, *, num_classes: int):
        self.batches, self.kernel, self.num_classes = batches, as_kernel(kernel), num_classes
        if not hasattr(self.kernel, "features"):
            raise ValueError(
                "expected a kernel with features for a stream (delta, linear, random features), "
                f"got {type(self.kernel).__name__}: draw RandomFeatures of it"
            )
        if iter(batches) is batches:
            raise ValueError(
                "expected batches that can be read twice, got an iterator: give a list, or an "
                "object whose __iter__ starts again"
            )
        with float64():
            sums: Any = None
            self.num_records = 0.0
            for batch in self._checked():
                self.num_records += float(batch[2].sum())
                found = _summed(self.kernel, *batch)
                sums = found if sums is None else jax.tree.map(jnp.add, sums, found)
            if sums is None:
                raise ValueError("expected at least one batch, got none")
            self.sums, self.counts = sums, sums.counts
            self.spread = _spread(sums)

    def _checked(self) -> Iterator[tuple[Array, Array, Array]]:
        """Report matrices, observations and weights of each batch, of few distinct lengths."""
        for batch in self.batches:
            reports, y, d = np.asarray(batch[0]), np.asarray(batch[1]), self.num_classes
            weights = np.ones(len(y)) if len(batch) < 3 else np.asarray(batch[2], np.float64)
            if reports.shape[1:2] != (len(y),) or weights.shape != (len(y),):
                raise ValueError(
                    "expected batches of reports [k, b], observations [b, ...] and weights [b], "
                    f"got {reports.shape}, {y.shape} and {weights.shape}"
                )
            if reports.ndim == 2 and reports.size and not 0 <= reports.min() <= reports.max() < d:
                raise ValueError(
                    f"expected labels 0..{d - 1} in every batch, got {reports.min()}.."
                    f"{reports.max()}: leave out records without a label"
                )
            if not len(y):
                continue
            z = reports if reports.ndim == 3 else np.eye(d)[reports]
            more = padded_length(len(y)) - len(y)
            y = np.pad(y, [(0, more)] + [(0, 0)] * (y.ndim - 1), mode="edge")
            yield (
                jnp.asarray(np.pad(z, [(0, 0), (0, more), (0, 0)]), jnp.float64),
                jnp.asarray(y),
                jnp.asarray(np.pad(weights, (0, more))),
            )

    def margins(self, mixed: Any, chosen: Any) -> Margins:
        """:class:`jgram.contrasts.Margins` of ``mixed(reports, each)`` for each of those chosen."""

        def one(each: Any) -> Margins:
            counts, sums = mixed(self.counts, each), mixed(self.sums.labels_features, each)
            labelled = jnp.sum(sums, axis=0)
            return Margins(jnp.sum(counts), counts, labelled @ labelled, sums @ labelled)

        return jax.vmap(one)(jnp.asarray(chosen))

    def over(self, asked: Any) -> list[Any]:
        """What functions find of the records, each given with its arguments."""
        totals: Any = None
        for batch in self._checked():
            part = _part(self.kernel, self.sums.labels_features, self.spread, *batch)
            found = [_moments(function(part, *arguments)) for function, arguments in asked]
            totals = found if totals is None else jax.tree.map(jnp.add, totals, found)
        return [_stand_ins(total) for total in totals]

    def judge(self) -> Judged:
        """Payoffs of all pairs and of each report alone, noise tests and published scores."""
        k = len(self.counts)
        alone, pairs = np.stack([np.arange(k)] * 2, axis=1), np.stack(np.triu_indices(k, 1), axis=1)
        with float64(), jax.default_matmul_precision("highest"):
            paid, noise, published = together(
                self,
                paid_together(self, np.concatenate([alone, pairs])),
                tested_together(self, jnp.arange(k)),
                _published(self),
            )
        alone, pairs = (
            jax.tree.map(lambda leaf, part=part: leaf[part], paid)
            for part in (slice(0, k), slice(k, None))
        )
        return Judged(alone if k == 1 else pairs, alone, noise, published)


@jax.jit
def _summed(kernel: Any, z: Array, y: Array, weights: Array) -> _Sums:
    features = kernel.features(y).astype(z.dtype)
    weighted, squares = weights[:, None] * features, jnp.sum(features**2, axis=1)
    with jax.default_matmul_precision("highest"):
        return _Sums(
            jnp.einsum("n,knd->kd", weights, z),
            jnp.einsum("knd,nm->kdm", z, weighted),
            jnp.sum(weighted, axis=0),
            features.T @ weighted,
            weights @ squares,
            squares @ weighted,
            weights @ squares**2,
        )


@jax.jit
def _spread(sums: _Sums) -> Array:
    """Mean square of the doubly centred kernel off its diagonal."""
    with jax.default_matmul_precision("highest"):
        n = jnp.maximum(jnp.sum(sums.counts[0]), 2.0)
        features = sums.features / n
        mean = features @ features
        rows = features @ sums.features_features @ features  # of squares
        norm = jnp.sum(sums.features_features**2) - 2 * n * rows + (n * mean) ** 2
        own = sums.squares_squares - 4 * sums.squares_features @ features + 4 * rows
        own += 2 * mean * sums.squares - 3 * n * mean**2
        return jnp.maximum((norm - own) / (n * (n - 1)), 0.0)


@jax.jit
def _part(kernel: Any, sums: Array, spread: Array, z: Array, y: Array, weights: Array) -> Products:
    features = kernel.features(y).astype(z.dtype)
    with jax.default_matmul_precision("highest"):
        product = jnp.einsum("nm,kdm->knd", features, sums)
    return Products(z, weights, jnp.sum(features**2, axis=1), spread, product, None, None)


@jax.jit
def _moments(found: Any) -> Any:
    """Sums of products of a one and all rows in the place of rows of payoffs."""
    if not isinstance(found, Paid):
        return found
    rows = found.rows.reshape(-1, found.rows.shape[-1])
    rows = jnp.concatenate([jnp.ones_like(rows[:1]), rows])
    with jax.default_matmul_precision("highest"):
        return Paid((found.weights[0] * rows) @ rows.T, None, found.crossed)


def _stand_ins(found: Any) -> Any:
    """Rows of equal weight whose sums, and sums of products, are the moments."""
    if not isinstance(found, Paid):
        return found
    moments, sets = np.asarray(found.rows), len(found.crossed)
    total, means, size = moments[0, 0], moments[0, 1:] / moments[0, 0], len(moments) - 1
    values, vectors = np.linalg.eigh(moments[1:, 1:] - total * np.outer(means, means))
    away = vectors * np.sqrt(np.maximum(values, 0.0) * size / total)
    rows = np.concatenate([means[:, None] + away, means[:, None] - away], axis=1)
    weights = np.full((sets, 2 * size), total / (2 * size))
    return Paid(jnp.asarray(rows.reshape(sets, -1, 2 * size)), jnp.asarray(weights), found.crossed)


def _published(stream: Stream) -> Any:
    """A figure (:func:`jgram.contrasts.together`): the published scores."""
    totals = jnp.sum(stream.counts, axis=1)
    frames = jax.vmap(frame_of_means)(stream.sums.labels_features / totals[:, None, None])
    paid = yield _contributed, (frames, totals)
    frames = frames._replace(inside=jnp.zeros((*stream.counts.shape[:1], 0, stream.num_classes)))
    lines = jax.vmap(linearise_frame)(frames, jnp.zeros((len(totals), 0)), totals)
    lines, paid = jax.device_get((lines, paid))
    answers = []
    for i, total in enumerate(np.asarray(totals)):
        change, lost = paid.crossed[i]
        changes = np.full(paid.rows.shape[2], -np.inf if lost else change / total)
        line = jax.tree.map(lambda leaf, i=i: leaf[i], lines)
        answers.append(uncertainty_of(line, paid.rows[i, 0], changes, paid.weights[i]))
    return answers


@jax.jit
def _contributed(part: Products, frames: Frame, totals: Array) -> Paid:
    """Contributions to the log scores, and the sums of what leaving a record out changes."""

    def one(each: Any) -> Paid:
        frame, total, z, product = each
        frame = frame._replace(inside=product / total @ frame.inverse_factor)
        line = linearise_frame(frame, part.squares, total)
        changes = leave_one_out(line, z, part.weights > 0)
        finite = jnp.isfinite(changes) | (part.weights == 0)
        sums = [part.weights @ jnp.where(finite, changes, 0.0), part.weights @ ~finite]
        return Paid(contributions(line, z)[None], part.weights, jnp.stack(sums))

    return jax.lax.map(one, (frames, totals, part.z, part.product))
