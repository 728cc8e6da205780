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
from jgram.determinant import solve
from jgram.observed import Observed

__all__ = [
    "Payoffs",
    "Products",
    "noise_tests",
    "pair_payoffs",
    "payoffs",
    "payoffs_alone",
    "payoffs_of_pairs",
    "products",
]

ENTRIES = 1 << 13  # of the kernel that are looked up at a time


class Payoffs(NamedTuple):
    """Payoffs of ``k`` reports under one scorer (arrays of pairs have a leading axis).

    Attributes:
        values: ``[k, n]``, the payoff of report ``l`` at record ``n``.
        differences: ``[n]``, ``h_n . (z[0, n] - z[1, n])`` of the first two reports: swapping them
            turns its sign and leaves ``h`` as it is.
        weights: ``[n]``, frequencies; 0 where one of the reports has no label.
        means: ``[k]``, ``a_l``.
        covariance: ``[k, k]``, of the means over samples of records.
        seen: How many of the ``d - 1`` directions between classes the observations show.
    """

    values: Float[Array, "k n"]
    differences: Float[Array, " n"]
    weights: Float[Array, " n"]
    means: Float[Array, " k"]
    covariance: Float[Array, "k k"]
    seen: Float[Array, ""]


class Products(NamedTuple):
    """Reports and what the observations make of them: all that payoffs take from the kernel.

    Attributes:
        z: Reports as matrices ``[k, n, d]``; rows of zeros where labels are missing.
        weights: Frequencies ``[n]``.
        squares: ``K(y_n, y_n)``, ``[n]``.
        squared_norm: ``sum w_i w_j K_ij^2``.
        rows: ``K w``, ``[n]``.
        product: ``K diag(w) z``, ``[k, n, d]``.
        groups: Groups ``[n]`` that are left out as a whole, or ``None``.
        group_rows: As ``rows``, over pairs of records of one group.
        group_product: As ``product``, over pairs of records of one group.
    """

    z: Float[Array, "k n d"]
    weights: Float[Array, " n"]
    squares: Float[Array, " n"]
    squared_norm: Float[Array, ""]
    rows: Float[Array, " n"]
    product: Float[Array, "k n d"]
    groups: Any
    group_rows: Any
    group_product: Any

    def of(self, reports: Any) -> "Products":
        """Those of some of the reports."""
        chosen = self._replace(z=self.z[reports], product=self.product[reports])
        if self.groups is None:
            return chosen
        return chosen._replace(group_product=self.group_product[reports])


def _products(observed, z, weights, groups) -> Products:
    columns, squares, squared_norm, rows, product = _kernel_pass(observed, z, weights)
    inside = (None, None)
    if groups is not None:
        groups = np.unique(np.asarray(groups), return_inverse=True)[1]
        if groups.max() == 0:
            raise ValueError("expected at least two groups, got all records in one; leave it out")
        inside = _split(_within(observed, columns, groups), z)
        groups = jnp.asarray(groups)
    return Products(z, weights, squares, squared_norm, rows, product, groups, *inside)


@jax.jit  # one program: outside of another, every step of it would be one
def _kernel_pass(observed, z, weights):
    n = z.shape[1]
    columns = jnp.concatenate([jnp.ones((n, 1), z.dtype), jnp.moveaxis(z, 0, 1).reshape(n, -1)], 1)
    columns = weights[:, None] * columns
    found = observed.kernel_pass(columns, weights=weights)
    return columns, observed.squares, found.squared_norm, *_split(found.product, z)


def _split(product, z):
    """What a kernel pass found for the ones and for the reports."""
    k, n, d = z.shape
    return product[:, 0], jnp.moveaxis(product[:, 1:].reshape(n, k, d), 1, 0)


def products(
    observed: Observed,
    reports: Shaped[ArrayLike, "k n ..."],
    *,
    num_classes: int | None = None,
    weights: Shaped[ArrayLike, " n"] | None = None,
    groups: Int[ArrayLike, " n"] | None = None,
) -> Products:
    """The one kernel pass that all payoffs of ``k`` reports, and their noise tests, are made of.

    Takes the arguments of :func:`payoffs`; a record that some report does not label stays, with a
    row of zeros in that report.
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
    return _paid(_products(observed, z, _present(z, weights), groups))


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
        observed: Observations and kernel.
        reports: ``k >= 2`` reports, as in :func:`payoffs`.
        num_classes: ``d``.
        weights: Frequencies ``[n]``.
        groups: Groups ``[n]``, left out as a whole.
        complete: Whether every report labels every record; looked up where it is left out. Each
            pair of incomplete reports takes a kernel pass of its own, over the records both label.

    Returns:
        :class:`Payoffs` with a leading axis of pairs, in the order of ``np.triu_indices(k, 1)``.

    Raises:
        ValueError: As :func:`payoffs`; fewer than two reports.
    """
    z = report_matrices(observed, reports, num_classes)
    k = z.shape[0]
    if k < 2:
        raise ValueError(f"expected at least two reports to compare, got {k}")
    first, second = np.triu_indices(k, 1)
    if complete is None:
        complete = bool(jnp.all(jnp.sum(z, axis=2) > 0))
    if complete:
        found = _products(observed, z, _present(z, weights), groups)
        return payoffs_of_pairs(found, jnp.stack([first, second], axis=1))
    each = [
        payoffs(observed, z[np.array([i, j])], weights=weights, groups=groups)
        for i, j in zip(first, second, strict=True)
    ]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *each)


class _Centred(NamedTuple):
    """The doubly centred kernel matrix, as far as it is needed."""

    total: Array
    rows: Array
    mean: Array
    own: Array
    spread: Array
    """Mean square of its entries off the diagonal."""

    @classmethod
    def of(cls, squares, weights, rows, squared_norm):
        total = jnp.maximum(jnp.sum(weights), 2.0)  # fewer records say nothing, in numbers
        rows = rows / total
        mean = weights @ rows / total
        own = squares - 2 * rows + mean
        norm = squared_norm - 2 * total * (weights @ rows**2) + (total * mean) ** 2
        off = (norm - weights @ own**2) / jnp.maximum(total * (total - 1), 1)
        return cls(total, rows, mean, own, jnp.maximum(off, 0.0))

    def product(self, kernel_product, weights):
        """``H K v / total`` from ``K v`` for centred columns ``v``."""
        return (kernel_product - weights @ kernel_product / self.total) / self.total

    def within(self, found, middle, shares, centre):
        """Sums of the entries over each record's own group, plain and times ``centre``; and of
        the group's weights and ``centre``."""
        columns = found.weights[:, None] * jnp.concatenate(
            [jnp.ones_like(self.own)[:, None], centre], axis=1
        )
        both = jnp.concatenate([columns, self.rows[:, None] * columns], axis=1)
        sums = jax.ops.segment_sum(both, found.groups, len(both))[found.groups]
        plain, by_row = jnp.split(sums, 2, axis=1)
        inside = middle - jnp.outer(found.group_rows, shares)
        inside = jnp.concatenate([found.group_rows[:, None], inside], axis=1)
        inside = inside - by_row + (self.mean - self.rows)[:, None] * plain
        return inside[:, 0], inside[:, 1:], plain[:, 0], plain[:, 1:]


@jax.jit
def _paid(found: Products) -> Payoffs:
    """The payoffs, with a scorer at the mean of the reports."""
    z, weights, groups = found.z, found.weights, found.groups
    with jax.default_matmul_precision("highest"):
        kernel = _Centred.of(found.squares, weights, found.rows, found.squared_norm)
        n = kernel.total
        middle = jnp.mean(z, axis=0)
        shares = weights @ middle / n
        centre = jnp.where(weights[:, None] > 0, middle - shares, 0.0)
        kap = kernel.product(
            jnp.mean(found.product, axis=0) - jnp.outer(found.rows, shares), weights
        )
        if groups is None:
            own, own_centre = kernel.own, kernel.own[:, None] * centre
            left, k0 = n - 1, kap - own_centre / (n - 1)
        else:
            inside = jnp.mean(found.group_product, axis=0)
            own, own_centre, size, sums = kernel.within(found, inside, shares, centre)
            left = jnp.maximum(n - size, 1)
            k0 = kap - (own_centre + own[:, None] * sums / left[:, None]) / n
        gram = _symmetric(centre.T @ (weights[:, None] * (kap - own_centre / n)) / n)
        noise, tau = noise_level(n, shares, kernel.spread, weights @ own, weights @ kernel.own)
        if groups is None:
            h = score_without_own(gram, noise, tau, k0, centre, left)
        else:
            h = _score_without_group(gram, noise, tau, k0, centre, weights, left, groups)
        h = jnp.where(weights[:, None] > 0, h, 0.0)
        of_report = jnp.einsum("n,knd->kd", weights, z) / n
        values = jnp.einsum("nd,knd->kn", h, z - of_report[:, None])
        means = values @ weights / n
        scorer = jnp.real(scorer_of(gram, noise, tau))
        covariance = _covariance(values, means, weights, groups)
        spread = jnp.einsum("nd,n,kne->kde", centre, weights, z - of_report[:, None]) / n
        crossed = jnp.einsum("kab,bc,lcd,da->kl", spread, scorer, spread, scorer)
        explained = gram / jnp.maximum(shares, 0.5 / n)[:, None]
        unexplained = jnp.maximum(kernel.spread - jnp.sum(explained * explained.T), 0.0)
        copies = (weights @ own / _nonzero(weights @ kernel.own)) ** 2
        covariance = covariance + unexplained * copies * crossed / n**2
        differences = jnp.sum(h * (z[0] - z[1 % z.shape[0]]), axis=1)
        return Payoffs(values, differences, weights, means, covariance, jnp.mean(means))


def _within(observed, columns, groups):
    """The kernel times ``columns``, over pairs of records of one group."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[order])
    last = starts + np.bincount(groups)[groups[order]] - 1
    place = np.arange(len(order)) - starts
    order, starts, last = jnp.asarray(order), jnp.asarray(starts), jnp.asarray(last)

    def entry(pair):
        return observed.block(pair[0][None], pair[1][None])[0, 0]

    def add(shift, total):
        other = order[jnp.minimum(starts + shift, last)]
        found = jax.lax.map(entry, (order, other), batch_size=ENTRIES)
        found = jnp.where(starts + shift <= last, found, 0.0)
        return total + found[:, None] * columns[other]

    total = jax.lax.fori_loop(0, int(place.max()) + 1, add, jnp.zeros_like(columns))
    return jnp.zeros_like(columns).at[order].set(total)


@jax.jit
def payoffs_of_pairs(found: Products, pairs: Int[ArrayLike, "p 2"]) -> Payoffs:
    """Payoffs of pairs of reports at their midpoints, one pair after the other.

    Args:
        found: From :func:`products`, of reports without missing labels.
        pairs: Indices ``[p, 2]``; a report paired with itself is paid by its own scorer.

    Returns:
        :class:`Payoffs` with a leading axis of pairs.
    """
    return jax.lax.map(lambda pair: _paid(found.of(pair)), jnp.asarray(pairs))


@jax.jit
def payoffs_alone(found: Products) -> Payoffs:
    """Payoffs of every report paired with itself, over the records that it labels.

    Args:
        found: From :func:`products`.

    Returns:
        :class:`Payoffs` with a leading axis of reports.
    """

    def one(report):
        labelled = jnp.sum(found.z[report], axis=1) > 0
        weights = jnp.where(labelled, found.weights, 0.0)
        return _paid(found._replace(weights=weights).of(jnp.stack([report, report])))

    return jax.lax.map(one, jnp.arange(found.z.shape[0]))


def scorer_of(gram: Array, noise: Array, tau: Array) -> Array:
    """``(gram + i tau diag(noise))^-1``."""
    return _scored(gram, noise, tau, jnp.eye(len(gram), dtype=gram.dtype))


def _scored(gram: Array, noise: Array, tau: Array, right: Array) -> Array:
    """``(gram + i tau diag(noise))^-1 right``."""
    root = 1 / jnp.sqrt(noise)
    level = tau * jnp.eye(len(gram), dtype=gram.dtype)
    right = root[:, None] * right
    system = jax.lax.complex(root[:, None] * gram * root, level)
    return root[:, None] * solve(system, jax.lax.complex(right, jnp.zeros_like(right)))


def score_without_own(
    gram: Array, noise: Array, tau: Array, k0: Array, centre: Array, left: Array
) -> Array:
    """``h``, the record itself left out of the Gram matrix in closed form."""
    scorer = scorer_of(gram, noise, tau)
    left_k, left_z = k0 @ scorer, centre @ scorer
    al = jnp.sum(left_k * k0, axis=1, keepdims=True)
    be = jnp.sum(left_k * centre, axis=1, keepdims=True)
    ga = jnp.sum(left_z * centre, axis=1, keepdims=True)
    return jnp.real(left * ((left - be) * left_k + al * left_z) / ((left - be) ** 2 - al * ga))


def _score_without_group(gram, noise, tau, k0, centre, weights, left, groups):
    """``h``, the whole group left out: one ``d x d`` system a record."""
    outer = (weights / left)[:, None, None] * k0[:, :, None] * centre[:, None, :]
    change = jax.ops.segment_sum(outer, groups, k0.shape[0])

    def one(record):
        k, group = record
        part = change[group]
        return jnp.real(_scored(gram - part - part.T, noise, tau, k[:, None]))[:, 0]

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
    k, w = found.z.shape[0], found.weights
    spread = _Centred.of(found.squares, w, found.rows, found.squared_norm).spread
    total, total_product = jnp.sum(found.z, axis=0), jnp.sum(found.product, axis=0)

    def one(report):
        z, product = report
        own = _own_statistic(found.squares, z, w * jnp.sum(z, axis=1), product, spread)
        if k == 1:
            return own
        other = (total - z) / (k - 1), (total_product - product) / (k - 1)
        linear = _linear_statistic(found.squares, z, w, *other, spread)
        return jnp.minimum(1.0, 2 * jnp.minimum(own, linear))

    with jax.default_matmul_precision("highest"):
        return jax.lax.map(one, (found.z, found.product))


def _subset(squares, weights, rows, spread):
    """The centred kernel matrix of some records, its mean square taken from all."""
    kernel = _Centred.of(squares, weights, rows, jnp.zeros(()))
    return kernel._replace(spread=spread)


def _own_statistic(squares, z, w, product, spread):
    """P-value of ``sum_ij (H K H)_ij z_i . z_j / q`` under permutations, by a gamma law."""
    kernel = _subset(squares, w, jnp.sum(product, axis=1), spread)
    n = jnp.maximum(kernel.total, 5.0)
    shares = w @ z / n
    centre = jnp.where(w[:, None] > 0, z - shares, 0.0)
    scale = 1 / jnp.maximum(shares, 0.5 / n)
    smooth = n * kernel.product(product - jnp.outer(kernel.rows * kernel.total, shares), w)
    statistic = jnp.sum(w[:, None] * centre * smooth * scale)
    cross = (centre.T @ (w[:, None] * centre)) * scale
    lengths = centre**2 @ scale
    squares = w @ kernel.own**2
    mean, variance = _permutation_moments(
        n,
        (w @ kernel.own, spread * n * (n - 1) + squares, squares),
        (w @ lengths, jnp.sum(cross * cross.T), w @ lengths**2),
    )
    usable = (kernel.total >= 5) & (mean > 0) & (variance > 1e-9 * mean**2)
    mean, variance = jnp.where(usable, mean, 1.0), jnp.where(usable, variance, 1.0)
    tail = jax.scipy.special.gammaincc(
        mean**2 / variance, jnp.maximum(statistic, 0.0) * mean / variance
    )
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


def _linear_statistic(squares, z, w, other, other_product, spread):
    """P-value of the payoffs under the scorer of the other reports, by the normal law."""
    copies = jnp.sum(other, axis=1)
    scoring = w * copies
    kernel = _subset(squares, scoring, jnp.sum(other_product, axis=1), spread)
    n = kernel.total
    shares = w @ other / n
    centre = other - jnp.outer(copies, shares)
    kap = kernel.product(other_product - jnp.outer(kernel.rows * kernel.total, shares), scoring)
    # The record's own other labels leave the scorer: reports may agree on what nobody observes.
    left = jnp.maximum(n - 1, 1.0)
    k0 = kap - kernel.own[:, None] * centre / left
    gram = _symmetric(centre.T @ (w[:, None] * (kap - kernel.own[:, None] * centre / n)) / n)
    volume = scoring @ kernel.own
    noise, tau = noise_level(n, shares, kernel.spread, volume, volume)
    h = score_without_own(gram, noise, tau, k0, centre, left)
    something = jnp.sum(k0**2) > 1e-9 * jnp.sum(kap**2)  # not the rounding of nothing
    w = w * jnp.sum(z, axis=1)
    size = jnp.maximum(jnp.sum(w), 2.0)
    h, z = h - w @ h / size, z - w @ z / size
    statistic = jnp.sum(w[:, None] * h * z)
    variance = jnp.sum((h.T @ (w[:, None] * h)) * (z.T @ (w[:, None] * z))) / (size - 1)
    # Where the report goes with the others, i scores j and j scores i alike.
    scorer = jnp.real(scorer_of(gram, noise, tau))
    together = (centre.T @ (w[:, None] * z) / n) @ scorer
    explained = gram / jnp.maximum(shares, 0.5 / n)[:, None]
    unexplained = jnp.maximum(spread - jnp.sum(explained * explained.T), 0.0)
    variance = variance + unexplained * jnp.maximum(jnp.sum(together * together.T), 0.0)
    usable = something & (variance > 0)
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


def _present(z, weights):
    """Frequencies of the records that every report labels."""
    labelled = jnp.all(jnp.sum(z, axis=2) > 0, axis=0).astype(z.dtype)
    return labelled if weights is None else labelled * jnp.asarray(weights, z.dtype)


def _symmetric(matrix):
    return (matrix + matrix.T) / 2


def _nonzero(number):
    """The number, or 1 where it is not positive: nothing varies there, and nothing is paid."""
    return jnp.where(number > jnp.finfo(number.dtype).tiny, number, 1.0)
