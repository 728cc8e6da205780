"""Which report is better, asked at any time: verdicts on a stream that one may stop when one likes.

A test for a fixed number of records, looked at after each, finds a difference sooner or later where
there is none. Here each record is paid by a scorer made of *past* records, and bets are placed on
the sign of the difference ``v`` of two reports' payoffs. Where the reports may be swapped, that
sign is a fair coin whatever else is known, so that

    W_t = mean over theta of prod_(s <= t) (1 + tanh(theta v_s / rms_s)),     rms_s^2 = mean v^2

is a martingale: it ever exceeds ``1/level`` with a probability of at most ``level`` (Ville),
however often one looks. Reports of equal means and unlike errors may not be swapped; for those the
mixture over normal effects, ``(1 + t/T)^(-1/2) exp(S_t^2 / (2 V_t) t/(t + T))`` with the sums ``S``
of ``v`` and ``V`` of ``v^2``, must have exceeded ``1/level`` as well: that holds in the limit,
whatever the law of ``v``. Its bound in Fieller's interval makes what one report keeps of another a
confidence sequence, which holds at all times together.

The state is a pytree of sums, ``O(m (m + d))`` numbers a pair of reports for ``m`` features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, log, sqrt
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jgram.display as display
from jgram.arrays import HIGHEST, Array, ArrayLike, Int, Shaped, float64
from jgram.comparisons import normal_quantile, retention
from jgram.contrasts import Scorer, noise_level, pairs_of, scorer_of
from jgram.display import Field, Line, Shown, Table, View
from jgram.plots import Figure, shares_figure

__all__ = ["SequentialPair", "SequentialRanking", "State", "start", "update", "verdict"]

BATCH = 32  # records that one scorer pays
FIRST = 30  # records before the first bet
EFFECTS = (0.06, 0.12, 0.25, 0.5, 1.0)  # means of v in root mean squares that are bet on
PATIENCE = 30.0
"""``T``: the confidence sequence is narrowest, beside fixed intervals, at about ten times this."""


class State(NamedTuple):
    """What past records leave, an entry for each pair of reports; a pytree, to be saved as one.

    Attributes:
        centre: ``[m]``, taken off all features.
        moments: Sums ``[p, 1 + 2d + m, 1 + 2d + m]`` of the products of one, both reports as
            matrices, and the features.
        own: Sums ``[p, d + 2, d + 2]`` of the squared lengths of features, times the products of
            one, the mean report, and those lengths.
        paid: Sums ``[p, 3, 3]`` of the products of one and the payoffs of both reports.
        bets: ``[p, 3]``: records whose payoffs differ; sums of ``v`` and ``v^2``.
        wealth: Logarithms ``[p, 2, effects]``: of bets on the first report, and on the second.
        peaks: Logarithms ``[p, 2, 2]`` of the largest wealth so far of coins, and of means.
    """

    centre: Any
    moments: Any
    own: Any
    paid: Any
    bets: Any
    wealth: Any
    peaks: Any


def start(features: Shaped[ArrayLike, "n m"], *, num_reports: int = 2, num_classes: int) -> State:
    """The state before the first record.

    Args:
        features: Of some typical records (:meth:`jgram.kernels.RandomFeatures.features`), about
            whose mean those to come are taken; they count for nothing else.
        num_classes: ``d``, for good: a stream whose labels gain a class starts again.

    Example:
        >>> start(np.eye(3), num_classes=2).moments.shape
        (1, 8, 8)
    """
    if num_reports < 2 or num_classes < 2:
        raise ValueError(
            f"expected two reports and two classes or more, got {num_reports} and {num_classes}"
        )
    with float64():
        centre = jnp.mean(jnp.asarray(features, float), axis=0)
        p, size = num_reports * (num_reports - 1) // 2, 1 + 2 * num_classes + len(centre)
        own = num_classes + 2
        shapes = [(size, size), (own, own), (3, 3), (3,), (2, len(EFFECTS)), (2, 2)]
        return State(centre, *(jnp.zeros((p, *shape)) for shape in shapes))


def update(
    state: State, reports: Int[ArrayLike, "k n"], features: Shaped[ArrayLike, "n m"]
) -> State:
    """The state after more records.

    Args:
        state: From :func:`start` or :func:`update`.
        reports: Labels ``[k, n]``, negative where missing; a pair takes the records both label.
        features: Of their observations, by the same kernel for the whole stream.

    Raises:
        ValueError: Shapes that do not fit, labels beyond the classes of the state.

    Example:
        >>> from jgram.kernels import Delta
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 2, 600)
        >>> worse = np.where(rng.random(600) < 0.3, 1 - truth, truth)
        >>> seen = Delta(2).features(truth)
        >>> state = start(seen[:50], num_classes=2)
        >>> for batch in np.split(np.arange(600), 6):
        ...     state = update(state, np.stack([truth, worse])[:, batch], seen[batch])
        >>> verdict(state, ["truth", "worse"]).conclusion
        'truth is the most reliable.'
    """
    labels, d = np.asarray(reports), state.own.shape[1] - 2
    k, n = _num_reports(state), np.shape(features)[0]
    if labels.shape != (k, n) or np.shape(features)[1] != len(state.centre):
        raise ValueError(
            f"expected labels [{k}, n] and features [n, {len(state.centre)}] of the same records, "
            f"got {labels.shape} and {np.shape(features)}"
        )
    if n and labels.max() >= d:
        raise ValueError(
            f"expected classes 0 to {d - 1}, those that the stream began with, got "
            f"{labels.max()}: begin again with all possible classes"
        )
    parts = 1 << max(0, (n - 1) // BATCH).bit_length()  # few distinct sizes, few compilations
    padding = parts * BATCH - n
    with float64():
        labels = jnp.asarray(np.pad(labels, [(0, 0), (0, padding)], constant_values=-1))
        seen = jnp.pad(jnp.asarray(features, float), [(0, padding), (0, 0)])
        return _advance(state, labels[pairs_of(k)], seen)


@jax.jit
def _advance(state: State, labels: Array, features: Array) -> State:
    """The state after records: labels ``[p, 2, n]``, features ``[n, m]``."""
    p, _, n = labels.shape
    parts = jnp.moveaxis(labels.reshape(p, 2, n // BATCH, BATCH), 2, 0)
    seen = (features - state.centre).reshape(n // BATCH, BATCH, -1)

    def step(sums: State, part: Any) -> tuple[State, None]:
        return State(sums.centre, *jax.vmap(_after, (0, 0, None))(sums[1:], *part)), None

    return jax.lax.scan(step, state, (parts, seen))[0]


def _after(sums: Any, labels: Array, features: Array) -> Any:
    """The sums of one pair after a batch, which the records before it pay."""
    past = State(None, *sums)
    z = jax.nn.one_hot(labels, past.own.shape[0] - 2, dtype=features.dtype)
    w = jnp.all(labels >= 0, axis=0).astype(features.dtype)[:, None]
    z, features = w * z, w * features
    paid, v, betting = _paid(past, z, features)
    moved, total, square = past.bets
    moves = betting & (v != 0)
    counts = moved + jnp.cumsum(moves)
    squares = square + jnp.cumsum(v**2)
    rms = jnp.sqrt(squares / jnp.maximum(counts, 1))
    stakes = 2 * jnp.asarray(EFFECTS)[:, None] * v / jnp.where(rms > 0, rms, 1.0)
    gains = jax.nn.log_sigmoid(jnp.stack([stakes, -stakes])) + log(2.0)  # log(1 +- tanh)
    wealth = past.wealth[..., None] + jnp.cumsum(jnp.where(moves, gains, 0.0), axis=2)
    coins = jax.nn.logsumexp(wealth, axis=1) - log(len(EFFECTS))
    total = total + jnp.cumsum(v)
    share = counts / (counts + PATIENCE)
    chance = total**2 / jnp.where(squares > 0, squares, 1.0)
    means = (jnp.log1p(-share) + chance * share) / 2
    means = jnp.where(jnp.stack([total, -total]) > 0, means, -inf)
    peaks = jnp.maximum(past.peaks, jnp.max(jnp.stack([coins, means]), axis=2))
    lengths = jnp.sum(features**2, axis=1, keepdims=True)
    rows = jnp.concatenate([w, *z, features], axis=1)
    near = jnp.concatenate([w, jnp.mean(z, axis=0), lengths], axis=1)
    earned = jnp.concatenate([betting * w.T, paid])
    return (
        past.moments + jnp.matmul(rows.T, rows, precision=HIGHEST),
        past.own + (lengths * near).T @ near,
        past.paid + earned @ earned.T,
        jnp.stack([counts[-1], total[-1], squares[-1]]),
        wealth[..., -1],
        peaks,
    )


def _paid(past: State, z: Array, features: Array) -> tuple[Array, Array, Array]:
    """Payoffs ``[2, n]`` of new records, their differences, and whether past records are enough."""
    d = z.shape[2]
    total = past.moments[0, 0]
    n = jnp.maximum(total, 2.0)
    mean = past.moments[0] / n
    cov = past.moments / n - jnp.outer(mean, mean)
    shares, centre = mean[1 : 1 + 2 * d].reshape(2, d), mean[1 + 2 * d :]
    q, means = jnp.mean(shares, axis=0), cov[1 : 1 + 2 * d, 1 + 2 * d :]
    means = jnp.mean(means.reshape(2, d, -1), axis=0)
    about, unit = past.own[:-1, :-1], jnp.eye(1 + d)
    away = unit[1:] - jnp.outer(q, unit[0])  # (1, z) to z - q
    own = away @ about @ away.T / n**2
    length = about[0, 0] - n * centre @ centre
    spread = jnp.sum((n * cov[1 + 2 * d :, 1 + 2 * d :]) ** 2) - past.own[0, -1]
    spread = jnp.maximum(spread, 0.0) / (n * (n - 1))
    gram = jnp.matmul(means, means.T, precision=HIGHEST) - own
    noise, tau = noise_level(n, q, spread, length, length)
    scorer = jnp.real(scorer_of(Scorer((gram + gram.T) / 2, noise, tau)))
    betting = total >= FIRST
    h = jnp.where(betting, (features - centre) @ means.T @ scorer, 0.0)
    labelled = jnp.sum(z, axis=2, keepdims=True)
    paid = jnp.sum(h * (z - labelled * shares[:, None]), axis=2)
    return paid, jnp.sum(h * (z[0] - z[1]), axis=1), betting


def _num_reports(state: State) -> int:
    return round((1 + sqrt(1 + 8 * len(state.bets))) / 2)


@dataclass(frozen=True)
class SequentialPair:
    """Two reports, after as many records as there were.

    Attributes:
        better: Name of the report that is paid more so far.
        worse: Name of the other.
        decided: Whether the order was told at some time; it then stands.
        keeps: What the worse one keeps of the better one; ``None`` where not estimable.
        keeps_interval: Confidence sequence of it: holds at all times together.
        evidence: How far the bets on the order have come, 1 where it is told: the logarithm of the
            largest wealth over that of the level.
        num_records: Records that were paid.
    """

    better: str
    worse: str
    decided: bool
    keeps: float | None
    keeps_interval: tuple[float, float] | None
    evidence: float
    num_records: int


@dataclass(frozen=True)
class SequentialRanking(Shown):
    """What a stream says so far, right whenever one looks.

    Attributes:
        pairs: Every pair of reports.
        confidence: Of all that is ever said, together.
        num_records: Records of which both reports of some pair have a label.
    """

    SCHEMA: ClassVar[str] = "jgram/sequential/1"
    pairs: tuple[SequentialPair, ...]
    confidence: float
    num_records: int

    @property
    def decided(self) -> bool:
        """Whether every order is told."""
        return all(pair.decided for pair in self.pairs)

    @property
    def most_reliable(self) -> tuple[str, ...]:
        """Reports that none is told from as a better one."""
        names = dict.fromkeys(name for pair in self.pairs for name in (pair.better, pair.worse))
        beaten = {pair.worse for pair in self.pairs if pair.decided}
        return tuple(name for name in names if name not in beaten)

    @property
    def conclusion(self) -> str:
        """What the records so far say."""
        if not any(pair.decided for pair in self.pairs):
            return f"No order is told after {self.num_records} records: go on."
        best = self.most_reliable
        if len(best) == 1:
            return f"{best[0]} is the most reliable."
        return f"{', '.join(best[:-1])} and {best[-1]} are not told apart yet."

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """The pairs and the conclusion."""
        fields = [
            Field("better so far", attrgetter("better"), keys=("better",), name=True),
            Field("worse", attrgetter("worse"), keys=("worse",), name=True),
            Field("told", attrgetter("decided"), lambda told: "yes" if told else "no",
                  ("decided",)),
            Field("worse keeps of better\nat any time",
                  lambda pair: (pair.keeps, *(pair.keeps_interval or (None, None))),
                  display.in_brackets(".0%"), ("keeps", "keeps_low", "keeps_high")),
            Field("evidence", attrgetter("evidence"), "{:.0%}".format, ("evidence",)),
            Field("records", attrgetter("num_records"), keys=("num_records",)),
        ]  # fmt: skip
        head = Line(f"{self.num_records} records, {self.confidence:.0%} at all times together")
        table = Table("Every pair of reports", self.pairs, fields)
        return [head, Line(), table, Line(self.conclusion, "conclusion")]

    def plot(self) -> Figure:
        """What the worse of each pair keeps: a matplotlib figure."""
        return shares_figure(
            [f"{pair.worse} beside {pair.better}" for pair in self.pairs],
            [pair.keeps for pair in self.pairs],
            [pair.keeps_interval for pair in self.pairs],
            title=f"Keeps, {self.confidence:.0%} at all times together",
        )


def verdict(state: State, names: Sequence[str], *, confidence: float = 0.95) -> SequentialRanking:
    """What the records so far say; look as often as you like, and stop when you like.

    Args:
        state: From :func:`update`.
        names: Of the reports, in their order.
        confidence: One minus the probability of ever telling a wrong order of any two reports that
            are as good as each other, or of a confidence sequence ever being wrong.

    Raises:
        ValueError: Names that are not as many as the reports.

    Reference:
        Ville, *Étude critique de la notion de collectif*, 1939; Howard et al., *Time-uniform,
        nonparametric, nonasymptotic confidence sequences*, 2021.
    """
    normal_quantile(confidence)  # refuses what is no confidence
    if len(names) != _num_reports(state):
        raise ValueError(f"expected {_num_reports(state)} names, got {len(names)}")
    bar = log(len(state.bets) / (1 - confidence))
    sums, peaks = np.asarray(state.paid, float), np.asarray(state.peaks, float)
    found = []
    for p, pair in enumerate(combinations(names, 2)):
        t, paid, squares = max(sums[p, 0, 0], 1.0), sums[p, 0, 1:], sums[p, 1:, 1:]
        # The smaller of both bets on an order has to reach the bar; coins bet on two sides.
        reached = np.minimum(peaks[p, 0] - log(2.0), peaks[p, 1]) / bar
        way = slice(None, None, 1 if reached[0] >= reached[1] else -1)
        covariance = (squares / t - np.outer(paid, paid) / t**2)[way, way] / t
        factor = (t + PATIENCE) / t
        width = sqrt(2 * factor * (bar + 0.5 * log(1 + t / PATIENCE)))
        with float64():
            share = retention(paid[way] / t, covariance, width)
        decided = bool(reached.max() >= 1)
        most = 1.0 if decided else inf  # never against the bets that decide
        ends = min(float(share.lower), most), min(float(share.upper), most)
        known = bool(share.estimable) and np.isfinite(share.upper)
        evidence = max(float(reached.max()), 0.0) if np.isfinite(reached.max()) else 0.0
        better, worse = pair[way]
        ratio, interval = (float(share.ratio), ends) if known else (None, None)
        count = int(sums[p, 0, 0])
        found.append(SequentialPair(better, worse, decided, ratio, interval, evidence, count))
    return SequentialRanking(tuple(found), confidence, int(sums[:, 0, 0].max()))
