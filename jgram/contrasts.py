"""Payoffs: what each record says for a report, and how much of another report's a report retains.

Every record ``n`` is scored by all the *other* records: they say, through the kernel, which classes
its observation looks like (``h_n``), and a report is paid for naming them,

    payoff[l, n] = h_n . (z[l, n] - q_l),        a_l = mean over n of payoff[l, n],

``z`` the report as a matrix, ``q_l`` its shares. One scorer ``h``, built from the *mean* report,
pays all reports, so that a ratio ``r_lm = a_m / a_l`` needs no correction for what the scorer does
not see: for uniform flips it is ``(1 - e_m) / (1 - e_l)`` exactly, whatever the scorer. No record
speaks for itself, so noise has no volume here: the payoff of a report independent of the
observations is 0, where its published score is ``share^2 K(y, y)/N`` a class and largest for the
report whose classes look most balanced. At the midpoint of two reports,
``2 (d-1) (a_1 - a_2) / ((a_1 + a_2)/2)`` equals ``log det G_1 - log det G_2`` up to third order.

The scorer weighs every direction between classes that the observations show alike, and noise not at
all. With ``H`` centring, ``N = n - 1``, ``zt`` the centred mean report, ``q`` its shares:

    kap = H K zt / n        kt = diag(H K H)        D = diag(max(q, 1/2n)) sum(kt) / (n N)
    G = sym(zt^T (kap - kt zt / n)) / n             tau = 2 sqrt(d-1) rms(offdiag H K H) / mean(kt)
    P = (G + i tau D)^-1

whose real part weighs a generalised eigenvalue ``E`` of ``G`` by ``E / (E^2 + tau^2)``. The record
itself leaves ``kap`` and ``G`` (a rank-2 downdate, ``D`` and ``tau`` held), in closed form:

    k0 = kap - kt zt / N     al = k0 P k0     be = k0 P zt     ga = zt P zt
    h  = Re{ N [(N - be) P k0 + al P zt] / [(N - be)^2 - al ga] }

``weights`` are frequencies: one of the ``w`` copies is left out, and every figure equals that of
the records repeated. With ``groups`` (duplicates, patients, weeks) the whole group leaves.

Observations and kernel come as one binding (:func:`jgram.observed.observe`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import (
    Array,
    ArrayLike,
    Float,
    Int,
    Shaped,
    infer_num_classes,
    is_concrete,
    refuse_unbounded,
)
from jgram.comparisons import mean_covariance
from jgram.determinant import solve
from jgram.observed import Observed

__all__ = [
    "Payoffs", "Products", "by_records", "noise_tests", "pair_payoffs", "payoffs", "payoffs_alone",
    "payoffs_of_pairs", "products", "scores",
]  # fmt: skip

ENTRIES = 1 << 13  # of the kernel that are looked up at a time


class Payoffs(NamedTuple):
    """Payoffs of ``k`` reports under one scorer (arrays of pairs have a leading axis).

    Attributes:
        values: ``[k, n]``, the payoff of report ``l`` at record ``n``.
        differences: ``[n]``, ``h_n . (z[0, n] - z[1, n])`` of the first two reports: swapping them
            turns its sign alone.
        weights: ``[n]``, frequencies; 0 where one of the reports has no label.
        means: ``[k]``, ``a_l``.
        covariance: ``[k, k]``, of the means over samples of records.
        seen: How many of the ``d - 1`` directions between classes the observations show.
        sureness: ``[n]``, how far what the other records say of a record depends on its class: the
            variance of ``h_n`` over the class shares; ``None`` where the records are not kept.
        gains: ``[n]``, what the first report would be paid more for the class that ``h_n`` favours
            (the second one: that plus its difference); ``None`` with ``sureness``.
        by_records: ``[3, n]``, values of the first two reports and gains where every record weighs
            alike (:func:`by_records`); ``None`` with ``sureness``.
    """

    values: Float[Array, "k n"]
    differences: Float[Array, " n"]
    weights: Float[Array, " n"]
    means: Float[Array, " k"]
    covariance: Float[Array, "k k"]
    seen: Float[Array, ""]
    sureness: Float[Array, " n"] | None = None
    gains: Float[Array, " n"] | None = None
    by_records: Float[Array, "3 n"] | None = None


def pairs_of(k: int) -> Int[np.ndarray, "p 2"]:
    """Every pair of ``k`` reports, by number."""
    return np.stack(np.triu_indices(k, 1), axis=1)


def one_pair(pairs: Any, number: int) -> Any:
    """The payoffs of one of several pairs."""
    return jax.tree.map(lambda leaf: leaf[number], pairs)


def stacked(each: Sequence[Payoffs]) -> Any:
    """The payoffs of several pairs, from those of each, on the host."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *each)


def records_of(paid: Payoffs, pick: Any) -> Any:
    """Payoffs of other records, on the host: ``pick`` of every array with an entry a record."""
    each = ("values", "differences", "weights", "sureness", "gains", "by_records")
    held = {name: getattr(paid, name) for name in each}
    return paid._replace(**{name: pick(part) for name, part in held.items() if part is not None})


def sampled_covariance(
    values: Any, means: Any, weights: Any, groups: Any = None
) -> Float[np.ndarray, "p k k"]:
    """Covariances of the mean payoffs of pairs over samples of records, on the host."""
    away = values - np.asarray(means)[:, :, None]
    each = zip(away, weights, strict=True)
    return np.stack([mean_covariance(one, w, groups) for one, w in each])


def by_records(pairs: Payoffs, groups: Any = None) -> Payoffs:
    """Payoffs of pairs, on the host, with every record weighing alike, not every class.

    A label ``c`` is paid ``q_c (1 + h_nc)`` less ``sum q^2``: the mixture of the classes' mean
    features that is nearest to the record's, so that the mean is the share of right labels less
    that of chance, where the scorer's classes are the truth's.
    """
    found = np.asarray(pairs.by_records)
    values = found[:, :2]
    total = np.maximum(pairs.weights.sum(axis=1), 2.0)[:, None]
    means = np.einsum("pkn,pn->pk", values, pairs.weights) / total

    own = sampled_covariance(pairs.values, pairs.means, pairs.weights, groups)
    new = sampled_covariance(values, means, pairs.weights, groups)
    scale = np.trace(new, axis1=1, axis2=2) / np.maximum(np.trace(own, axis1=1, axis2=2), 1e-300)
    return pairs._replace(
        values=values,
        differences=values[:, 0] - values[:, 1],
        means=means,
        covariance=new + scale[:, None, None] * (pairs.covariance - own),
        gains=found[:, 2],
    )


class Margins(NamedTuple):
    """Sums over the records that a report ``z`` labels, times weights.

    Attributes:
        total: Of the weights.
        reports: Of ``z``, ``[d]``.
        rows: Of the rows of the kernel between those records.
        product: Of ``K diag(w) z``, ``[d]``.
    """

    total: Any
    reports: Any
    rows: Any
    product: Any


class Products(NamedTuple):
    """Reports and what the observations make of them: all that payoffs take from the kernel.

    All records of a binding, or one of several parts of them (:class:`jgram.streams.Stream`): a
    figure is made of sums over parts.

    Attributes:
        z: Reports as matrices ``[k, n, d]``; rows of zeros where labels are missing.
        weights: Frequencies ``[n]``.
        squares: ``K(y_n, y_n)``, ``[n]``.
        spread: Mean square of the doubly centred kernel off its diagonal.
        product: ``K diag(w) z``, ``[k, n, d]``, the product with all records.
        groups: Groups ``[n]`` that are left out as a whole, or ``None``.
        group_product: As ``product``, over pairs of records of one group.
    """

    z: Float[Array, "k n d"]
    weights: Float[Array, " n"]
    squares: Float[Array, " n"]
    spread: Float[Array, ""]
    product: Float[Array, "k n d"]
    groups: Any
    group_product: Any

    @property
    def counts(self) -> Float[Array, "k d"]:
        """Weights of the classes of all reports."""
        return jnp.einsum("n,knd->kd", self.weights, self.z)

    def margins(self, mixed: Any, chosen: Any) -> Margins:
        """:class:`Margins` of ``mixed(reports, each)`` for each of those chosen."""

        def one(each: Any) -> Margins:
            z, product = mixed(self.z, each), mixed(self.product, each)
            w = self.weights * jnp.sum(z, axis=1)
            return Margins(jnp.sum(w), self.weights @ z, w @ jnp.sum(product, axis=1), w @ product)

        return jax.lax.map(one, jnp.asarray(chosen))


class Paid(NamedTuple):
    """What a part of the records gives payoffs: rows ``[s, k + 1, n]`` of the payoffs of ``k``
    reports and of their differences, weights ``[s, n]``, sums ``[s, k, d, d]`` of the centred mean
    report times the centred reports, and sureness, gains, and both by records ``[s, 5, n]``."""

    rows: Any
    weights: Any
    crossed: Any
    about: Any


def answer(found: Products, figure: Any) -> Any:
    """What a figure comes to: a generator that yields a function of some records and its arguments,
    is sent what that finds (of several parts of the records the sum), and returns its answer."""
    total = None
    while True:
        try:
            function, arguments = figure.send(total)
        except StopIteration as end:
            return end.value
        total = function(found, *arguments)


def _products(observed, z, weights, groups) -> Products:
    columns, squares, spread, product = _kernel_pass(observed, z, weights)
    inside = None
    if groups is not None:
        groups = np.unique(np.asarray(groups), return_inverse=True)[1]
        if groups.max() == 0:
            raise ValueError("expected at least two groups, got all records in one; leave it out")
        inside = by_report(_within(observed, columns, groups), z)
        groups = jnp.asarray(groups)
    return Products(z, weights, squares, spread, product, groups, inside)


@jax.jit  # one program: outside of another, every step of it would be one
def _kernel_pass(observed, z, weights):
    columns = weights[:, None] * jnp.moveaxis(z, 0, 1).reshape(z.shape[1], -1)
    found = observed.kernel_pass(columns, weights)
    return columns, observed.squares, found.spread, by_report(found.product, z)


@jax.jit
def by_report(product, z):
    """What a kernel pass found for each of the reports, ``[n, k d]`` as ``[k, n, d]``."""
    k, n, d = z.shape
    return jnp.moveaxis(product.reshape(n, k, d), 1, 0)


def products(
    observed: Observed,
    reports: Shaped[ArrayLike, "k n ..."],
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
    groups: Int[ArrayLike, " n"] | None = None,
) -> Products:
    """The one kernel pass that all payoffs of ``k`` reports, and their noise tests, are made of.

    Takes the arguments of :func:`payoffs`; a record stays that some report does not label.
    """
    z = report_matrices(observed, reports, num_classes)
    ones = jnp.ones(z.shape[1], z.dtype)
    w = ones if weights is None else jnp.asarray(weights, z.dtype)
    return _products(observed, z, w, groups)


def payoffs(
    observed: Observed,
    reports: Shaped[ArrayLike, "k n ..."],
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
    groups: Int[ArrayLike, " n"] | None = None,
) -> Payoffs:
    """Payoffs of all reports under one scorer at their mean.

    Records that one of the reports does not label are left out of all. One kernel pass, then
    ``O(d^2)`` work a record (``O(d^3)`` with ``groups``).

    Args:
        observed: Observations and kernel.
        reports: Labels ``[k, n]``, negative where missing, or matrices ``[k, n, d]``, a row of
            zeros where missing.
        num_classes: ``d``; the largest label plus one where it is left out.
        weights: Frequencies ``[n]``.
        groups: Group of each record, any integers, concrete; groups are left out, and sampled, as
            a whole.

    Returns:
        :class:`Payoffs`.

    Raises:
        ValueError: Fewer than two records, classes or groups, or shapes that do not fit.

    Reference:
        Section 2 of the paper for the score; the retention is not in it.
    """
    z = report_matrices(observed, reports, num_classes)
    found = _products(observed, z, _present(z, weights), groups)
    return _first(payoffs_of_pairs(found, np.arange(len(z))[None]))


def pair_payoffs(
    observed: Observed,
    reports: Shaped[ArrayLike, "k n ..."],
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
    groups: Int[ArrayLike, " n"] | None = None,
    complete: bool | None = None,
) -> Payoffs:
    """Payoffs of every pair of reports at the pair's own midpoint, from one kernel pass.

    A pool of all reports as scorer is not neutral: reports that share an error teach it to the
    scorer. A pair at its own midpoint depends on no other report.

    Args:
        observed, reports, num_classes, weights, groups: As in :func:`payoffs`, two reports or more.
        complete: Whether every report labels every record; looked up where it is left out. Each
            pair of incomplete reports takes a kernel pass of its own, over the records both label.

    Returns:
        :class:`Payoffs` with a leading axis of pairs, in the order of ``np.triu_indices(k, 1)``.
    """
    z = report_matrices(observed, reports, num_classes)
    if len(z) < 2:
        raise ValueError(f"expected at least two reports to compare, got {len(z)}")
    pairs = pairs_of(len(z))
    if complete is None:
        complete = bool(jnp.all(jnp.sum(z, axis=2) > 0))
    if complete:
        return payoffs_of_pairs(_products(observed, z, _present(z, weights), groups), pairs)
    each = [payoffs(observed, z[pair], weights=weights, groups=groups) for pair in pairs]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *each)


def _mean(values, chosen):
    """The mean of some reports."""
    return jnp.mean(values[chosen], axis=0)


def _others(values, report):
    """The mean of all reports but one."""
    return (jnp.sum(values, axis=0) - values[report]) / (len(values) - 1)


class _Records(NamedTuple):
    """What the records of a part are to a scoring report; ``left`` is what leaving out leaves."""

    weights: Any
    centre: Any
    kap: Any
    each: Any
    """The doubly centred kernel of a record with itself."""
    own: Any
    """The same with its group, and times ``centre``."""
    own_centre: Any
    k0: Any
    left: Any


def _records(part: Products, margins: Margins, mixed: Any, chosen: Any) -> _Records:
    z, product = mixed(part.z, chosen), mixed(part.product, chosen)
    n = jnp.maximum(margins.total, 2.0)  # fewer records say nothing, in numbers
    shares, mean = margins.reports / n, margins.rows / n**2
    copies, rows = jnp.sum(z, axis=1), jnp.sum(product, axis=1)
    centre = jnp.where(part.weights[:, None] > 0, z - jnp.outer(copies, shares), 0.0)
    product = product - jnp.outer(rows, shares)
    kap = (product - (margins.product - margins.rows * shares) / n) / n
    each = part.squares - 2 * rows / n + mean
    weights = part.weights * copies
    if part.groups is None:
        own, own_centre, left = each, each[:, None] * centre, jnp.maximum(n - 1, 1.0)
        return _Records(weights, centre, kap, each, own, own_centre, kap - own_centre / left, left)
    inside = mixed(part.group_product, chosen)
    own, own_centre, size, sums = _inside(part, inside, rows / n, mean, shares, centre)
    left = jnp.maximum(n - size, 1)
    k0 = kap - (own_centre + own[:, None] * sums / left[:, None]) / n
    return _Records(weights, centre, kap, each, own, own_centre, k0, left)


def _inside(part, product, rows, mean, shares, centre):
    """Sums of the centred kernel over each record's own group, plain and times ``centre``; and of
    the group's weights and ``centre``."""
    columns = part.weights[:, None] * jnp.concatenate([jnp.ones_like(rows)[:, None], centre], 1)
    both = jnp.concatenate([columns, rows[:, None] * columns], axis=1)
    sums = jax.ops.segment_sum(both, part.groups, len(both))[part.groups]
    plain, by_row = jnp.split(sums, 2, axis=1)
    own = jnp.sum(product, axis=1)
    inside = jnp.concatenate([own[:, None], product - jnp.outer(own, shares)], axis=1)
    inside = inside - by_row + (mean - rows)[:, None] * plain
    return inside[:, 0], inside[:, 1:], plain[:, 0], plain[:, 1:]


class Scorer(NamedTuple):
    """What a scorer is made of: see :func:`scorer_of`."""

    gram: Any
    noise: Any
    tau: Any


class _Second(NamedTuple):
    """Sums of the Gram matrix, and of the kernel of records with their group and themselves."""

    gram: Any
    own: Any
    each: Any


def scorers_at(found: Products, chosen: Any) -> tuple[Margins, Scorer]:
    """:class:`Margins` and scorers of sets ``[s, k]`` of reports, at their means."""
    margins = found.margins(_mean, chosen)
    return margins, _scorers(found, margins, _second(found, margins, jnp.asarray(chosen)))


def _scorers(found: Any, margins: Margins, second: _Second) -> Scorer:
    def one(margins: Margins, second: _Second) -> Scorer:
        n = jnp.maximum(margins.total, 2.0)
        shares = margins.reports / n
        level = noise_level(n, shares, found.spread, second.own, second.each)
        return Scorer((second.gram + second.gram.T) / 2, *level)

    return jax.vmap(one)(margins, second)


@partial(jax.jit, static_argnames="mixed")
def _second(part: Products, margins: Margins, chosen: Array, mixed: Any = _mean) -> _Second:
    def one(each: Any) -> _Second:
        margins, chosen = each
        found, n = _records(part, margins, mixed, chosen), jnp.maximum(margins.total, 2.0)
        gram = found.centre.T @ (part.weights[:, None] * (found.kap - found.own_centre / n)) / n
        return _Second(gram, found.weights @ found.own, found.weights @ found.each)

    return jax.lax.map(one, (margins, chosen))


@jax.jit
def _paid(part: Products, margins: Margins, scorers: Scorer, shares: Array, chosen: Array) -> Paid:
    def one(each: Any) -> Paid:
        margins, scorer, shares, chosen = each
        records = _records(part, margins, _mean, chosen)
        h = _score(part.groups, scorer, records)
        h = jnp.where(records.weights[:, None] > 0, h, 0.0)
        z = part.z[chosen]
        away = z - shares[:, None]
        values = jnp.einsum("nd,knd->kn", h, away)
        differences = jnp.sum(h * (z[0] - z[1 % len(z)]), axis=1)
        crossed = jnp.einsum("nd,n,kne->kde", records.centre, records.weights, away)
        mean = margins.reports / jnp.maximum(margins.total, 2.0)
        sureness = jnp.maximum(h**2 @ mean - (h @ mean) ** 2, 0.0)

        def gains(paid: Array) -> Array:
            most = jnp.max(paid, axis=1, where=mean > 0, initial=-jnp.inf)
            return jnp.where(records.weights > 0, most - jnp.sum(paid * z[0], axis=1), 0.0)

        mixed = mean * (1 + h)
        right = jnp.einsum("nd,knd->kn", mixed, z[jnp.array([0, -1])]) - mean @ mean
        right = jnp.where(records.weights > 0, right, 0.0)
        rows = jnp.concatenate([values, differences[None]])
        about = jnp.stack([sureness, gains(h), *right, gains(mixed)])
        return Paid(rows, records.weights, crossed, about)

    return jax.lax.map(one, (margins, scorers, shares, chosen))


def paid_together(found: Any, chosen: Any) -> Any:
    """A figure (:func:`answer`): :class:`Payoffs` of sets ``[s, k]`` of reports at their means."""
    chosen = jnp.asarray(chosen)
    margins = found.margins(_mean, chosen)
    second = yield _second, (margins, chosen)
    scorers = _scorers(found, margins, second)
    shares = found.counts[chosen] / jnp.maximum(margins.total, 2.0)[:, None, None]
    paid = yield _paid, (margins, scorers, shares, chosen)

    def one(margins, second, scorer, paid) -> Payoffs:
        n = jnp.maximum(margins.total, 2.0)
        values = paid.rows[:-1]
        means = values @ paid.weights / n
        real = jnp.real(scorer_of(scorer))
        spread = paid.crossed / n
        crossed = jnp.einsum("kab,bc,lcd,da->kl", spread, real, spread, real)
        copies = (second.own / _nonzero(second.each)) ** 2
        more = _unexplained(found.spread, scorer.gram, margins.reports / n, n) * copies * crossed
        covariance = _covariance(values, means, paid.weights, found.groups) + more / n**2
        about = paid.about
        figures = values, paid.rows[-1], paid.weights, means, covariance, jnp.mean(means)
        return Payoffs(*figures, about[0], about[1], about[2:])

    return jax.vmap(one)(margins, second, scorers, paid)


def _unexplained(spread, gram, shares, n):
    """The mean square of the kernel that the Gram matrix does not explain."""
    explained = gram / jnp.maximum(shares, 0.5 / n)[:, None]
    return jnp.maximum(spread - jnp.sum(explained * explained.T), 0.0)


def _within(observed, columns, groups):
    """The kernel times ``columns``, over pairs of records of one group."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[order])
    last = starts + np.bincount(groups)[groups[order]] - 1
    most = int(np.bincount(groups).max())
    return _in_groups(observed, columns, order, starts, last, most=most)


@partial(jax.jit, static_argnames="most")
def _in_groups(observed, columns, order, starts, last, *, most):
    def entry(pair):
        return observed.block(pair[0][None], pair[1][None])[0, 0]

    def add(shift, total):
        other = order[jnp.minimum(starts + shift, last)]
        found = jax.lax.map(entry, (order, other), batch_size=ENTRIES)
        found = jnp.where(starts + shift <= last, found, 0.0)
        return total + found[:, None] * columns[other]

    total = jax.lax.fori_loop(0, most, add, jnp.zeros_like(columns))
    return jnp.zeros_like(columns).at[order].set(total)


@jax.jit
def payoffs_of_pairs(found: Products, pairs: Int[ArrayLike, "p size"]) -> Payoffs:
    """:class:`Payoffs` ``[p, ...]`` of pairs of reports (or larger sets) at their midpoints.

    Of reports without missing labels, by number; one paired with itself is paid by its own scorer,
    over the records that it labels.
    """

    def one(pair: Array) -> Payoffs:  # on its own: what its steps have in common is found once
        return one_pair(answer(found, paid_together(found, pair[None])), 0)

    with jax.default_matmul_precision("highest"):
        return jax.lax.map(one, jnp.asarray(pairs))


def payoffs_alone(found: Products) -> Payoffs:
    """:class:`Payoffs` of each report paired with itself, ``[k, ...]``, where it has labels."""
    return payoffs_of_pairs(found, np.stack([np.arange(len(found.z))] * 2, axis=1))


@jax.jit
def scores(found: Products, reports: Int[ArrayLike, " s"]) -> Float[Array, "s n d"]:
    """``h`` of every record, it or its group left out, by the scorer of each report by number."""
    with jax.default_matmul_precision("highest"):
        chosen = jnp.asarray(reports)[:, None]
        margins, scorers = scorers_at(found, chosen)

        def one(each: Any) -> Array:
            margins, scorer, chosen = each
            return _score(found.groups, scorer, _records(found, margins, _mean, chosen))

        return jax.lax.map(one, (margins, scorers, chosen))


def scorer_of(scorer: Scorer) -> Array:
    """``(gram + i tau diag(noise))^-1``."""
    return _scored(scorer, jnp.eye(len(scorer.gram), dtype=scorer.gram.dtype))


def _scored(scorer: Scorer, right: Array) -> Array:
    """``(gram + i tau diag(noise))^-1 right``."""
    gram, noise, tau = scorer
    root = 1 / jnp.sqrt(noise)
    level = tau * jnp.eye(len(gram), dtype=gram.dtype)
    right = root[:, None] * right
    system = jax.lax.complex(root[:, None] * gram * root, level)
    return root[:, None] * solve(system, jax.lax.complex(right, jnp.zeros_like(right)))


def _score(groups: Any, scorer: Scorer, records: _Records) -> Array:
    """``h``: the record itself left out of the Gram matrix, or its group, by a system a record."""
    k0, centre, left = records.k0, records.centre, records.left
    if groups is None:
        inverse = scorer_of(scorer)
        left_k, left_z = k0 @ inverse, centre @ inverse
        al = jnp.sum(left_k * k0, axis=1, keepdims=True)
        be = jnp.sum(left_k * centre, axis=1, keepdims=True)
        ga = jnp.sum(left_z * centre, axis=1, keepdims=True)
        return jnp.real(left * ((left - be) * left_k + al * left_z) / ((left - be) ** 2 - al * ga))
    outer = (records.weights / left)[:, None, None] * k0[:, :, None] * centre[:, None, :]
    change = jax.ops.segment_sum(outer, groups, len(k0))

    def one(record: Any) -> Array:
        k, group = record
        gram = scorer.gram - change[group] - change[group].T
        return jnp.real(_scored(scorer._replace(gram=gram), k[:, None]))[:, 0]

    return jax.lax.map(one, (k0, groups), batch_size=1024)


def noise_level(
    total: Array, shares: Array, spread: Array, own: Array, all_own: Array
) -> tuple[Array, Array]:
    """What noise leaves of a class in the Gram matrix, ``D``, and its level ``tau``.

    ``own`` and ``all_own`` are sums of the centred kernel over each record's group and own entry.
    """
    directions = jnp.maximum(jnp.sum(shares > 0) - 1, 0)
    volume = _nonzero(own) / (total * (total - 1))
    mean = _nonzero(all_own) / (total - 1)
    level = jnp.sqrt(_nonzero(directions * spread))
    return jnp.maximum(shares, 0.5 / total) * volume, 2 * level / mean


def _covariance(values, means, weights, groups):
    """Covariance of the mean payoffs over samples of records, or of groups."""
    total = jnp.maximum(jnp.sum(weights), 2.0)
    deviations = values - means[:, None]
    if groups is None:
        return (weights * deviations) @ deviations.T / (total * (total - 1))
    n = weights.shape[0]
    sums = jax.ops.segment_sum((weights * deviations).T, groups, n)
    count = jnp.sum(jax.ops.segment_sum(weights, groups, n) > 0)
    return sums.T @ sums / total**2 * count / jnp.maximum(count - 1, 1)


def noise_tests(
    observed: Observed,
    reports: Shaped[ArrayLike, "k n ..."],
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
) -> Float[Array, " k"]:
    """P-values of "this report has nothing to do with the observations", one a report.

    Two statistics, both with the moments of *all* permutations of the report's labels in closed
    form, none drawn. The payoff under a scorer that the other reports make (linear in the labels:
    normal), which is the more powerful where another report is informative; and
    ``sum_ij (H K H)_ij z_i . z_j / q`` (a chi-squared statistic under the delta kernel: gamma),
    which does not need the others. The p-value is twice the smaller one.

    Args:
        observed: Observations and kernel.
        reports: ``k`` reports, as in :func:`payoffs`; missing labels are allowed.
        num_classes: ``d``.
        weights: Frequencies ``[n]``.

    Returns:
        ``[k]``; 1 for constant reports and fewer than five records.

    Reference:
        Kazi-Aoual, Hitier, Sabatier and Lebreton, *Refined approximations to permutation tests for
        multivariate inference*, 1995, for the moments.
    """
    return noise_tests_of(products(observed, reports, num_classes=num_classes, weights=weights))


@jax.jit
def noise_tests_of(found: Products) -> Float[Array, " k"]:
    """:func:`noise_tests`, from a kernel pass already made."""
    found = found._replace(groups=None)

    def one(report: Array) -> Array:
        return answer(found, tested_together(found, report[None]))[0]

    with jax.default_matmul_precision("highest"):
        return jax.lax.map(one, jnp.arange(len(found.z)))


def tested_together(found: Any, reports: Array) -> Any:
    """A figure (:func:`answer`): p-values of :func:`noise_tests`, of reports by number."""
    alone, others, scorers = found.margins(_mean, reports[:, None]), None, None
    if len(found.counts) > 1:
        others = found.margins(_others, reports)
        second = yield _second, (others, reports, _others)
        scorers = _scorers(found, others, second)
    own, linear = yield _tested, (alone, others, scorers, reports)
    own = jax.vmap(partial(_own_p_value, found.spread))(alone, own)
    if others is None:
        return own
    linear = jax.vmap(partial(_linear_p_value, found.spread))(others, scorers, linear)
    return jnp.minimum(1.0, 2 * jnp.minimum(own, linear))


@jax.jit
def _tested(
    part: Products, alone: Margins, others: Any, scorers: Any, reports: Array
) -> tuple[Any, Any]:
    def one(each: Any) -> tuple[Any, Any]:
        alone, others, scorer, report = each
        own = _own_sums(part, alone, report)
        return own, None if others is None else _linear_sums(part, others, scorer, report)

    return jax.lax.map(one, (alone, others, scorers, reports))


def _own_sums(part: Products, margins: Margins, report: Array) -> dict[str, Array]:
    records, scale = _records(part, margins, _mean, report[None]), _scale(margins)
    w, centre = records.weights, records.centre
    return {
        "statistic": jnp.sum(w[:, None] * centre * records.kap * scale),
        "own": w @ records.own,
        "own_squares": w @ records.own**2,
        "cross": centre.T @ (w[:, None] * centre),
        "length_squares": w @ (centre**2 @ scale) ** 2,
    }


def _scale(margins):
    n = jnp.maximum(margins.total, 2.0)
    return 1 / jnp.maximum(margins.reports / n, 0.5 / n)


def _own_p_value(spread, margins, sums):
    """P-value of ``sum_ij (H K H)_ij z_i . z_j / q`` under permutations, by a gamma law."""
    n = jnp.maximum(margins.total, 5.0)
    cross = sums["cross"] * _scale(margins)
    mean, variance = _permutation_moments(
        n,
        (sums["own"], spread * n * (n - 1) + sums["own_squares"], sums["own_squares"]),
        (jnp.trace(cross), jnp.sum(cross * cross.T), sums["length_squares"]),
    )
    varies = jnp.trace(cross) > 1e-9  # not the rounding of a constant report
    usable = (margins.total >= 5) & varies & (mean > 0) & (variance > 1e-9 * mean**2)
    mean, variance = jnp.where(usable, mean, 1.0), jnp.where(usable, variance, 1.0)
    statistic = jnp.maximum(n * sums["statistic"], 0.0)
    tail = jax.scipy.special.gammaincc(mean**2 / variance, statistic * mean / variance)
    return jnp.where(usable, tail, 1.0)


def _permutation_moments(n, first, second):
    """Mean and variance of ``tr(A B)`` over permutations of the records of ``B``.

    ``A`` and ``B`` are doubly centred ``[n, n]``, each given by its trace, the trace of its square
    and the sum of its squared diagonal.
    """
    (a, a_square, a_own), (b, b_square, b_own) = first, second
    pairs = ((n - 1) * a_square - a**2) * ((n - 1) * b_square - b**2)
    own = (n * (n + 1) * a_own - (n - 1) * (a**2 + 2 * a_square)) * (
        n * (n + 1) * b_own - (n - 1) * (b**2 + 2 * b_square)
    )
    variance = 2 * pairs / ((n - 1) ** 2 * (n + 1) * (n - 2))
    return a * b / (n - 1), variance + own / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))


def _linear_sums(
    part: Products, margins: Margins, scorer: Scorer, report: Array
) -> dict[str, Array]:
    # The record's own other labels leave the scorer: reports may agree on what nobody observes.
    records, z = _records(part, margins, _others, report), part.z[report]
    h, w = _score(None, scorer, records), part.weights * jnp.sum(z, axis=1)
    weighted = w[:, None] * z
    return {
        "size": jnp.sum(w),
        "scores": w @ h,
        "labels": w @ z,
        "paid": jnp.sum(h * weighted),
        "scores_scores": h.T @ (w[:, None] * h),
        "labels_labels": z.T @ weighted,
        "centre": w @ records.centre,
        "centre_labels": records.centre.T @ weighted,
        "k0": jnp.sum(records.k0**2),
        "kap": jnp.sum(records.kap**2),
    }


def _linear_p_value(spread, others, scorer, sums):
    """P-value of the payoffs under the scorer of the other reports, by the normal law."""
    n, size = jnp.maximum(others.total, 2.0), jnp.maximum(sums["size"], 2.0)
    statistic = sums["paid"] - sums["scores"] @ sums["labels"] / size
    scores = sums["scores_scores"] - jnp.outer(sums["scores"], sums["scores"]) / size
    labels = sums["labels_labels"] - jnp.outer(sums["labels"], sums["labels"]) / size
    variance = jnp.sum(scores * labels) / (size - 1)
    # Where the report goes with the others, i scores j and j scores i alike.
    together = sums["centre_labels"] - jnp.outer(sums["centre"], sums["labels"]) / size
    together = together / n @ jnp.real(scorer_of(scorer))
    unexplained = _unexplained(spread, scorer.gram, others.reports / n, n)
    variance = variance + unexplained * jnp.maximum(jnp.sum(together * together.T), 0.0)
    most = jnp.trace(scores) * jnp.trace(sums["labels_labels"]) / (size - 1)
    usable = (sums["k0"] > 1e-9 * sums["kap"]) & (variance > 1e-12 * most)  # no rounding of nothing
    tail = jax.scipy.stats.norm.sf(statistic / jnp.sqrt(jnp.where(usable, variance, 1.0)))
    return jnp.where(usable, tail, 1.0)


def report_matrices(observed: Observed, reports: Any, num_classes: int | None) -> Array:
    """Reports as matrices ``[k, n, d]``, zero rows where labels are missing."""
    shape = jnp.shape(reports)
    if len(shape) not in (2, 3) or shape[1] != observed.size:
        raise ValueError(
            f"expected reports [k, {observed.size}] or [k, {observed.size}, d], one label a record,"
            f" got shape {shape}"
        )
    if len(shape) == 2:
        if is_concrete(reports):  # a negative label is missing
            num_classes = infer_num_classes(np.maximum(reports, 0).ravel(), num_classes)
        elif num_classes is None:
            raise ValueError("expected num_classes=... inside jit, vmap and grad, got None")
        reports = jax.nn.one_hot(jnp.asarray(reports), num_classes, dtype=observed.dtype)
    else:
        refuse_unbounded(reports, "soft reports")
    reports = jnp.asarray(reports, observed.dtype)
    if reports.shape[2] < 2 or reports.shape[1] < 2:
        raise ValueError(
            "expected at least two records and two classes, "
            f"got {reports.shape[1]} and {reports.shape[2]}"
        )
    return reports


@jax.jit
def _present(z, weights):
    """Frequencies of the records that every report labels."""
    labelled = jnp.all(jnp.sum(z, axis=2) > 0, axis=0).astype(z.dtype)
    return labelled if weights is None else labelled * jnp.asarray(weights, z.dtype)


_first = jax.jit(partial(one_pair, number=0))


def _nonzero(number):
    """The number, or 1 where it is not positive: nothing varies there, and nothing is paid."""
    return jnp.where(number > jnp.finfo(number.dtype).tiny, number, 1.0)


OF_MEANS = (_second,)
"""Functions of a part that find the same of records of equal labels and of their mean."""

OF_RECORDS = {"paid": _paid, "tested": _tested}
"""Those that take the records themselves."""
