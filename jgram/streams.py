"""Records that are never in memory together: labels and numbers of files, in two passes.

All that a payoff takes from the other records is linear in their features ``phi``. The first pass
therefore keeps, for every combination of labels, the number of records and the sum of their
``phi``: records of equal labels at their mean have exactly the scorers (:mod:`jgram.contrasts`) of
all records. The second pass pays every record and keeps moments only: by quarter of sureness the
number of records, and the sums of the payoffs and of their products.

What follows looks at records one by one. A sample stands for all: weighted to have as many records
of every combination of labels as there are, its payoffs moved by the linear map nearest to the
identity (itself, of a sample of all records) that gives them these moments in every quarter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jgram.contrasts as contrasts
from jgram.approximation import LeftOut, leave_blocks_out
from jgram.arrays import Array, Float, Int, float64
from jgram.assumptions import STRATA, strata
from jgram.contrasts import Paid, Payoffs, Products, paid_together, pairs_of, tested_together
from jgram.influences import contributions, leave_one_out, linearise_frame
from jgram.observed import Frame, Mapped, feature_spreads, frame_of_means
from jgram.uncertainty import Uncertainty, uncertainty_of

__all__ = ["Judged", "Records", "Stream"]

FEATURED, PAID = 1 << 13, 1 << 14  # records whose features are made at once, that are paid at once
FEWEST = 10  # records that moments are given to


class Records(NamedTuple):
    """Some records.

    Attributes:
        pattern: ``[n]``, which combination of labels each has.
        points: ``[n, p]``, what random features are made of.
        weights: Frequencies ``[n]``.
    """

    pattern: Int[np.ndarray, " n"]
    points: Float[np.ndarray, "n p"]
    weights: Float[np.ndarray, " n"]


class Judged(NamedTuple):
    """What is found of ``k`` reports, at the records of the sample.

    Attributes:
        pairs: As :func:`jgram.contrasts.pair_payoffs`.
        alone: As :func:`jgram.contrasts.payoffs_alone`.
        noise_p_values: ``[k]``, as :func:`jgram.contrasts.noise_tests`.
        published: :class:`jgram.uncertainty.Uncertainty` of each report's published score.
        left: What the sample says without one block of features after the other.
    """

    pairs: Payoffs
    alone: Payoffs
    noise_p_values: Float[Array, " k"]
    published: list[Uncertainty]
    left: LeftOut | None


class _View(NamedTuple):
    """Reports over the records that all of them label, and what gives a record its product."""

    z: np.ndarray  # [k, c, d], the labels of every pattern; zeros where missing
    kept: np.ndarray  # [c], 1 for patterns that belong to it
    columns: np.ndarray  # [m, 1 + k d], all features summed, and those of classes about that: small
    shares: np.ndarray  # [k, d], what is taken off
    spread: Any  # as of jgram.contrasts.Products

    def part(self, records: Records, found: np.ndarray) -> Products:
        """Records, given with their features times the columns."""
        k, _, d = self.z.shape
        product = found[:, 1:].reshape(len(found), k, d).swapaxes(0, 1)
        product = jnp.asarray(product + self.shares[:, None] * found[:, 0][:, None])
        weights = jnp.asarray(records.weights * self.kept[records.pattern])
        z, ones = jnp.asarray(self.z[:, records.pattern]), jnp.ones_like(weights)
        return Products(z, weights, ones, self.spread, product, None, None)


class _Asked(NamedTuple):
    """A function of a part of a view, by its name: a compiled one has no other address."""

    view: int
    name: str
    arguments: Any
    cuts: Any = None


@dataclass(frozen=True, eq=False)
class Stream:
    """Reports and random features of records that are read anew in every pass.

    Memory is that of one batch, of the sample and of ``c m`` numbers for ``c`` combinations of
    labels and ``m`` features.

    Attributes:
        kernel: :class:`jgram.kernels.RandomFeatures`.
        labels: ``[k, c]``, the labels of every combination; -1 where missing.
        over: Gives a function the batches (:class:`Records`) of one source after the other, and
            yields the arrays that it makes of them: a ``map``, which may run elsewhere.
        sample: Some of the records, one of every combination at least, weighted to be as many.
        drawn: The share of the records that they are.
        totals: ``[c]``, records of every combination.
        sums: ``[c, m]``, of their features.

    Example:
        >>> from jgram.kernels import RandomFeatures
        >>> y = np.arange(40.0)[:, None] % 2
        >>> kernel = RandomFeatures.draw(jax.random.key(0), 64, dimension=1, bandwidth=1.0)
        >>> labels, pattern = np.array([[0, 1, 0], [0, 1, 1]]), np.arange(40) % 2
        >>> pattern[::10] = 2
        >>> whole = Records(pattern, y, np.ones(40))
        >>> found = Stream.of(kernel, labels, 2, whole, lambda function: [function([whole])])
        >>> found.judge().pairs.means.round(2).tolist()
        [[1.17, 0.94]]
    """

    kernel: Any
    labels: Int[np.ndarray, "k c"]
    num_classes: int
    over: Callable[[Callable[[Iterable[Records]], Any]], Iterable[Sequence[np.ndarray]]]
    sample: Records
    drawn: float
    totals: Float[np.ndarray, " c"]
    sums: Float[np.ndarray, "c m"]

    @classmethod
    def of(
        cls, kernel: Any, labels: np.ndarray, num_classes: int, sample: Records, over: Any
    ) -> "Stream":
        """The first pass over the records."""
        totals, sums = _added(over(_Summed(kernel, labels.shape[1])))
        drawn = np.bincount(sample.pattern, sample.weights, len(totals))
        scale = totals / np.where(drawn > 0, drawn, 1.0)
        share = float(drawn.sum() / totals.sum())
        sample = sample._replace(weights=sample.weights * scale[sample.pattern])
        return cls(kernel, labels, num_classes, over, sample, share, totals, sums)

    @property
    def observed(self) -> Mapped:
        """The observations of the sample."""
        width = 2 * len(self.kernel.frequencies)
        return Mapped(jnp.asarray(self.sample.points), self.kernel, width)

    def judge(self, names: Int[np.ndarray, "k d"] | None = None) -> Judged:
        """Payoffs of all pairs and of each report alone, noise tests and published scores.

        Args:
            names: The name of every class of every report, by which they are compared
                (:func:`jgram.alignment.align`).
        """
        k, d = len(self.labels), self.num_classes
        names = np.tile(np.arange(d), (k, 1)) if names is None else names
        renamed = np.take_along_axis(names, np.maximum(self.labels, 0), axis=1)
        labels = np.where(self.labels >= 0, renamed, -1)
        with float64(), jax.default_matmul_precision("highest"):
            alone, pairs = np.stack([np.arange(k)] * 2, 1), pairs_of(k)
            each = np.eye(d + 1)[self.labels][..., :-1]  # as classes are named in files
            sums = np.einsum("kcd,cm->kdm", each, self.sums)
            views = [self._view(labels, np.ones(labels.shape[1]))]
            asked: Any = [
                (0, tested_together, (np.arange(k),)),
                (0, _published, (sums, names)),
                (0, paid_together, (alone,)),
            ]
            if (labels >= 0).all():
                asked += [(0, paid_together, (pairs,))] if k > 1 else []
            else:
                views += [self._view(labels[pair], labels[pair].min(axis=0) >= 0) for pair in pairs]
                asked += [(1 + i, paid_together, (np.array([[0, 1]]),)) for i in range(len(pairs))]
            noise, published, alone, *paid = self._answers(views, asked)
            found = jax.tree.map(lambda *parts: np.concatenate(parts), *(paid or [alone]))
            held, weights = labels[:, self.sample.pattern], self.sample.weights * self.drawn
            left = leave_blocks_out(self.observed, held, num_classes=d, weights=weights)
        return Judged(found, alone, noise, published, left)

    def _view(self, labels: np.ndarray, kept: np.ndarray) -> _View:
        """Some reports over the patterns that are kept."""
        k, d = len(labels), self.num_classes
        z = np.eye(d + 1)[labels][..., :d] * kept[:, None]
        sums = np.einsum("kcd,cm->mkd", z, self.sums)
        whole = kept @ self.sums
        shares = np.einsum("kcd,c->kd", z, self.totals) / max(kept @ self.totals, 1.0)
        away = (sums - whole[:, None, None] * shares).reshape(len(whole), k * d)
        weights = self.sample.weights * self.drawn * kept[self.sample.pattern]
        mean = jnp.asarray(whole / max(kept @ self.totals, 1.0) * weights.sum())
        ones = jnp.ones((1, len(whole)))
        spread = feature_spreads(self.observed, jnp.asarray(weights), mean, ones)[0]
        return _View(z, kept, np.column_stack([whole, away]), shares, np.asarray(spread))

    def _answers(self, views: list[_View], asked: list[tuple[int, Any, Any]]) -> list[Any]:
        """Answers of figures (:func:`jgram.contrasts.answer`), in one pass over the records."""
        size = np.maximum(self.totals, 1e-300)
        means = Records(np.arange(len(size)), np.zeros((len(size), 0)), self.totals)
        at_means = [view.part(means, self.sums / size[:, None] @ view.columns) for view in views]
        figures, wants = [], []
        for number, figure, arguments in asked:
            figures.append(figure(at_means[number], *arguments))
            function, given = next(figures[-1])
            if function in contrasts.OF_MEANS:
                function, given = figures[-1].send(function(at_means[number], *given))
            name = next(name for name, other in _FUNCTIONS.items() if other is function)
            wants.append(_Asked(number, name, jax.device_get(given)))
        pay = _Pays(self.kernel, views, wants)
        parts = [jax.device_get(part) for part in pay.found([self.sample])]
        sampled = list(map(_end_to_end, zip(*parts, strict=True)))
        places = [_strata_of(one, len(self.sample.weights)) for one in sampled]
        cuts = map(_cuts, sampled, places)
        wants = [want._replace(cuts=cut) for want, cut in zip(wants, cuts, strict=True)]
        totals = iter(_added(self.over(pay._replace(asked=wants))))
        answers = []
        for figure, one, place in zip(figures, sampled, places, strict=True):
            if isinstance(one, Paid):
                found = _standing(one, place, next(totals), next(totals))
            else:
                found = jax.tree.map(lambda _: next(totals), one)
            try:
                figure.send(found)
            except StopIteration as end:
                answers.append(jax.device_get(end.value))
        return answers


def waves(kernel: Any, points: np.ndarray) -> np.ndarray:
    """Random features ``[n, m]`` before they are weighed, by NumPy: a tenth of the time of JAX."""
    center = np.asarray(kernel.center, points.dtype)
    angles = (points - center) @ np.asarray(kernel.frequencies, points.dtype).T
    found = np.empty((len(points), 2, angles.shape[1]), points.dtype)
    with np.errstate(over="ignore"):  # a flag that products of matrices may leave behind
        np.cos(angles, out=found[:, 0])
        np.sin(angles, out=found[:, 1])
    return found.reshape(len(points), -1)


def sizes(kernel: Any) -> np.ndarray:
    """What the features weigh ``[m]``."""
    count = len(kernel.frequencies)
    weights = np.full(count, 1 / count) if kernel.weights is None else np.asarray(kernel.weights)
    return np.sqrt(np.tile(weights, 2).astype(float))


class _Summed(NamedTuple):
    """Records of every pattern, and the sums of their features."""

    kernel: Any
    size: int

    def __call__(self, batches: Iterable[Records]) -> list[np.ndarray]:
        from scipy.sparse import csr_matrix

        totals = np.zeros(self.size)
        sums = np.zeros((self.size, 2 * len(self.kernel.frequencies)))
        for batch in batches:
            totals += np.bincount(batch.pattern, batch.weights, self.size)
            for part in _cut(batch, FEATURED):
                phi = waves(self.kernel, part.points)
                used, place = np.unique(part.pattern, return_inverse=True)
                entries = part.weights.astype(phi.dtype), (place, np.arange(len(place)))
                sums[used] += csr_matrix(entries, shape=(len(used), len(place))) @ phi
        return [totals, sums * sizes(self.kernel)]


class _Pays(NamedTuple):
    """What functions find of records that are paid, as moments."""

    kernel: Any
    views: Sequence[_View]
    asked: Sequence[_Asked]

    def __call__(self, batches: Iterable[Records]) -> list[np.ndarray]:
        cuts = [want.cuts for want in self.asked]

        def tallied(found: list[Any]) -> list[np.ndarray]:
            return jax.device_get(jax.tree.leaves(list(map(_tallied, found, cuts))))

        with float64(), jax.default_matmul_precision("highest"):
            return _sum(map(tallied, self.found(batches)))

    def found(self, batches: Iterable[Records]) -> Iterator[list[Any]]:
        """What each function finds, of records of few distinct numbers."""
        dtype = np.asarray(self.kernel.frequencies).dtype
        columns = np.concatenate([view.columns for view in self.views], axis=1)
        columns = (sizes(self.kernel)[:, None] * columns).astype(dtype)
        ends = np.cumsum([view.columns.shape[1] for view in self.views])[:-1]
        for batch in batches:
            for part in _cut(batch, PAID):
                few = [waves(self.kernel, few.points) @ columns for few in _cut(part, FEATURED)]
                more = PAID - len(part.pattern)  # of weight 0: all parts are of one size
                found = np.pad(np.concatenate(few).astype(np.float64), [(0, more), (0, 0)])
                pattern, weights = (np.pad(x, (0, more)) for x in (part.pattern, part.weights))
                part, own = Records(pattern, part.points, weights), np.split(found, ends, axis=1)
                parts = [view.part(part, x) for view, x in zip(self.views, own, strict=True)]
                yield [_FUNCTIONS[name](parts[i], *given) for i, name, given, _ in self.asked]


def _cut(batch: Records, size: int) -> Iterator[Records]:
    """A batch in parts of few records."""
    for start in range(0, len(batch.pattern), size):
        yield Records(*(field[start : start + size] for field in batch))


def _sum(found: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The sums of arrays that are there; nothing where none are."""
    totals: list[np.ndarray] = []
    for arrays in filter(None, found):
        totals = list(map(np.add, totals, arrays)) if totals else list(arrays)
    return totals


def _added(found: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The sums of what was found of every source that holds any record."""
    if totals := _sum(found):
        return totals
    raise ValueError("expected at least one record, got none")


@jax.jit
def _tallied(found: Any, cuts: Any) -> Any:
    """Moments ``[s, strata, 1 + rows, 1 + rows]`` in the place of payoffs; sums as they are."""
    if not isinstance(found, Paid):
        return found
    place = jnp.sum(found.about[:, :1] >= cuts[:, :, None], axis=1)
    inside = (place[:, None] == jnp.arange(STRATA)[:, None]) * found.weights[:, None]
    rows = jnp.concatenate([jnp.ones_like(found.rows[:, :1]), _varying(found)], axis=1)
    weighted = inside[:, :, None] * rows[:, None]
    return jnp.einsum("sgin,sjn->sgij", weighted, rows), found.crossed


def _varying(paid: Paid) -> Any:
    """All payoffs ``[s, rows, n]``, those by records behind those by classes."""
    return jnp.concatenate([paid.rows, paid.about[:, 2:4]], axis=1)


def _end_to_end(parts: Sequence[Any]) -> Any:
    """Payoffs of parts of the sample as those of all of it; of sums those of the first part."""
    if not isinstance(parts[0], Paid):
        return parts[0]
    parts = [part._replace(crossed=None) for part in parts]
    return jax.tree.map(lambda *part: np.concatenate(part, axis=-1), *parts)


def _strata_of(paid: Any, size: int) -> Any:
    """By how sure the observations are of the sample's records, the quarter ``[s, n]`` of each."""
    if not isinstance(paid, Paid):
        return None
    each = np.asarray(paid.about)[:, 0, :size], np.asarray(paid.weights)[:, :size]
    return np.stack([strata(sureness, w) for sureness, w in zip(*each, strict=True)])


def _cuts(paid: Any, place: Any) -> Any:
    """``[s, strata - 1]``, the sureness between one stratum and the next."""
    if not isinstance(paid, Paid):
        return None
    sureness = np.asarray(paid.about)[:, 0, : place.shape[1]]
    below = [np.max(sureness, 1, where=place < s, initial=-np.inf) for s in range(1, STRATA)]
    above = [np.min(sureness, 1, where=place >= s, initial=np.inf) for s in range(1, STRATA)]
    return np.stack([(low + high) / 2 for low, high in zip(below, above, strict=True)], axis=1)


def _standing(paid: Paid, place: np.ndarray, moments: np.ndarray, crossed: np.ndarray) -> Paid:
    """The sample's payoffs, moved so that every stratum has the moments of all records: values of
    both reports together, their differences and what they are by records apart, no 0 if possible.
    """
    size, count, about = place.shape[1], paid.rows.shape[1], paid.about
    rows, weights = np.array(_varying(paid)[..., :size]), np.array(paid.weights[:, :size])
    cuts = sorted({0, max(count - 1, 1), count, rows.shape[1]})
    for s, stratum in np.ndindex(moments.shape[:2]):
        inside, found = (place[s] == stratum) & (weights[s] > 0), moments[s, stratum]
        weights[s, inside] *= found[0, 0] / max(weights[s] @ inside, 1e-300)
        for block in map(slice, cuts[:-1], cuts[1:]):
            some = inside & (rows[s, block] != 0).any(axis=0)
            some = some if some.sum() >= FEWEST else inside
            if found[0, 0] > 0 and some.any():
                aims = found[0, 1:][block], found[1:, 1:][block, block]
                rows[s, block, some] = _moved(rows[s, block][:, some], weights[s, some], *aims).T
    about = jnp.asarray(about[..., :size]).at[:, 2:4].set(rows[:, count:])
    return Paid(jnp.asarray(rows[:, :count]), jnp.asarray(weights), jnp.asarray(crossed), about)


def _moved(own: np.ndarray, w: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Payoffs ``[r, n]`` moved to the sums, and sums of products, that are given."""
    total = w.sum()
    mean = sums / total
    away = own - (own @ w / total)[:, None]
    wanted = squares / total - np.outer(mean, mean)
    return mean[:, None] + _nearest(w * away @ away.T / total, wanted) @ away


def _nearest(covariance: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The symmetric map of deviations of one covariance to those of another, ``C^-1 # W``."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-14 * max(values[-1], 1e-300)
    root = np.sqrt(np.where(kept, values, 0.0))
    back = np.where(kept, 1 / np.where(kept, root, 1.0), 0.0)
    middle = root[:, None] * (vectors.T @ wanted @ vectors) * root
    found, turned = np.linalg.eigh(middle)
    inside = (turned * np.sqrt(np.maximum(found, 0.0))) @ turned.T
    return vectors @ (back[:, None] * inside * back) @ vectors.T


def _published(means: Products, sums: np.ndarray, names: np.ndarray) -> Any:
    """A figure (:func:`jgram.contrasts.answer`): the published scores, of labels as given."""
    totals = jnp.sum(means.counts, axis=1)
    shares = jnp.asarray(sums) / jnp.maximum(totals, 1.0)[:, None, None]
    frames: Frame = jax.vmap(frame_of_means)(shares)
    frames = frames._replace(inside=jnp.zeros((*names.shape[:1], 0, names.shape[1])))
    paid = yield _contributed, (frames, totals, names)
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
def _contributed(part: Products, frames: Frame, totals: Array, names: Array) -> Paid:
    """Contributions to the log scores, and the sums of what leaving a record out changes."""

    def one(each: Any) -> Paid:
        frame, total, z, product, order = each
        z, product = z[:, order], product[:, order]
        frame = frame._replace(inside=product / total @ frame.inverse_factor)
        line = linearise_frame(frame, part.squares, total)
        weights = part.weights * jnp.sum(z, axis=1)
        changes = leave_one_out(line, z, weights > 0)
        finite = jnp.isfinite(changes) | (weights == 0)
        sums = [weights @ jnp.where(finite, changes, 0.0), weights @ ~finite]
        about = jnp.zeros((5, len(weights)))  # all records are as sure
        return Paid(contributions(line, z)[None], weights, jnp.stack(sums), about)

    return jax.lax.map(one, (frames, totals, part.z, part.product, names))


_FUNCTIONS: dict[str, Any] = {**contrasts.OF_RECORDS, "contributed": _contributed}
