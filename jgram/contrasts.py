"""Payoffs: what each record says for a report, and how much of another report's a report retains.

Every record ``n`` is scored by all the *other* records: they say, through the kernel, which classes
its observation looks like (``h_n``), and a report is paid for naming them,

    payoff[l, n] = h_n . (z[l, n] - q_l),        a_l = mean over n of payoff[l, n],

``z`` the report as memberships, ``q_l`` its shares. One scorer ``h``, built from the *mean* report,
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

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, ArrayLike, Float, Int, Shaped

__all__ = [
    "Payoffs",
    "noise_tests",
    "pair_payoffs",
    "payoffs",
]


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


def payoffs(
    observed: Any,
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
        reports: Labels ``[k, n]``, negative where missing, or memberships ``[k, n, d]``, a row of
            zeros where missing.
        num_classes: ``d``; the largest label plus one where it is left out.
        weights: Frequencies ``[n]``.
        groups: Group ``0..n-1`` of each record, concrete; groups are left out, and sampled, as a
            whole.

    Returns:
        :class:`Payoffs`.

    Raises:
        ValueError: Fewer than two records or classes, or shapes that do not fit.

    Reference:
        Section 2 of the paper for the score; the retention is not in it.
    """
    z = _memberships(observed, reports, num_classes)
    present = _present(z, weights)
    centre = jnp.mean(z, axis=0)
    columns = jnp.concatenate([jnp.ones_like(present)[:, None], centre], axis=1)
    found = observed.kernel_pass(present[:, None] * columns, weights=present)
    return _paid(
        observed, z, present, found.product[:, 0], found.product[:, 1:], found.squared_norm, groups
    )


def pair_payoffs(
    observed: Any,
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
    z = _memberships(observed, reports, num_classes)
    k, n, d = z.shape
    if k < 2:
        raise ValueError(f"expected at least two reports to compare, got {k}")
    first, second = np.triu_indices(k, 1)
    if complete is None:
        complete = bool(jnp.all(jnp.sum(z, axis=2) > 0))
    if not complete:
        one = partial(payoffs, observed, weights=weights, groups=groups)
        return jax.lax.map(lambda ends: one(z[jnp.stack(ends)]), (first, second))
    present = _present(z, weights)
    columns = jnp.concatenate([jnp.ones((n, 1), z.dtype), jnp.moveaxis(z, 0, 1).reshape(n, -1)], 1)
    found = observed.kernel_pass(present[:, None] * columns, weights=present)
    products = jnp.moveaxis(found.product[:, 1:].reshape(n, k, d), 1, 0)

    def pair(ends):
        i, j = ends
        middle = (products[i] + products[j]) / 2
        both = jnp.stack([z[i], z[j]])
        rows, norm = found.product[:, 0], found.squared_norm
        return _paid(observed, both, present, rows, middle, norm, groups)

    return jax.lax.map(pair, (first, second))


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
        total = jnp.sum(weights)
        rows = rows / total
        mean = weights @ rows / total
        own = squares - 2 * rows + mean
        norm = squared_norm - 2 * total * (weights @ rows**2) + (total * mean) ** 2
        off = (norm - weights @ own**2) / jnp.maximum(total * (total - 1), 1)
        return cls(total, rows, mean, own, jnp.maximum(off, 0.0))

    def product(self, kernel_product, weights):
        """``H K v / total`` from ``K v`` for centred columns ``v``."""
        return (kernel_product - weights @ kernel_product / self.total) / self.total

    def within(self, observed, centre, weights, groups):
        """Sums of the entries over each record's own group, plain and times ``centre``."""
        n = weights.shape[0]
        columns = weights[:, None] * jnp.concatenate([jnp.ones((n, 1)), centre], axis=1)
        both = jnp.concatenate([columns, self.rows[:, None] * columns], axis=1)
        sums = jax.ops.segment_sum(both, groups, n)[groups]
        plain, by_row = jnp.split(sums, 2, axis=1)
        found = _within(observed, columns, groups) - by_row
        found = found + (self.mean - self.rows)[:, None] * plain
        return found[:, 0], found[:, 1:], plain[:, 0], plain[:, 1:]


def _paid(observed, z, weights, rows, kernel_centre, squared_norm, groups) -> Payoffs:
    """Payoffs from the products of the kernel with the weights and the weighted mean report."""
    with jax.default_matmul_precision("highest"):
        kernel = _Centred.of(observed.squares, weights, rows, squared_norm)
        n = kernel.total
        shares = weights @ jnp.mean(z, axis=0) / n
        centre = jnp.where(weights[:, None] > 0, jnp.mean(z, axis=0) - shares, 0.0)
        kap = kernel.product(kernel_centre - jnp.outer(rows, shares), weights)
        if groups is None:
            own, own_centre = kernel.own, kernel.own[:, None] * centre
            left, k0 = n - 1, kap - own_centre / jnp.maximum(n - 1, 1)
        else:
            groups = np.asarray(groups)
            own, own_centre, size, sums = kernel.within(observed, centre, weights, groups)
            left = jnp.maximum(n - size, 1)
            k0 = kap - (own_centre + own[:, None] * sums / left[:, None]) / n
        gram = _symmetric(centre.T @ (weights[:, None] * (kap - own_centre / n)) / n)
        noise, tau = _noise(kernel, shares, own, weights)
        if groups is None:
            h = _score_without_own(gram, noise, tau, k0, centre, left)
        else:
            h = _score_without_group(gram, noise, tau, k0, centre, weights, left, groups)
        h = jnp.where(weights[:, None] > 0, h, 0.0)
        of_report = jnp.einsum("n,knd->kd", weights, z) / n
        values = jnp.einsum("nd,knd->kn", h, z - of_report[:, None])
        means = values @ weights / n
        scorer = jnp.real(_scorer(gram, noise, tau))
        covariance = _covariance(values, means, weights, groups)
        spread = jnp.einsum("nd,n,kne->kde", centre, weights, z - of_report[:, None]) / n
        crossed = jnp.einsum("kab,bc,lcd,da->kl", spread, scorer, spread, scorer)
        explained = gram / jnp.maximum(shares, 0.5 / n)[:, None]
        unexplained = jnp.maximum(kernel.spread - jnp.sum(explained * explained.T), 0.0)
        copies = (weights @ own / jnp.maximum(weights @ kernel.own, _tiny(gram))) ** 2
        covariance = covariance + unexplained * copies * crossed / n**2
        differences = jnp.sum(h * (z[0] - z[1 % z.shape[0]]), axis=1)
        return Payoffs(values, differences, weights, means, covariance, jnp.mean(means))


def _within(observed, columns, groups):
    """The kernel times ``columns``, over pairs of records of one group."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[order])
    last = starts + np.bincount(groups)[groups[order]] - 1
    place = np.arange(len(order)) - starts
    entry = jax.vmap(lambda i, j: observed.block(i[None], j[None])[0, 0])
    order, starts, last = jnp.asarray(order), jnp.asarray(starts), jnp.asarray(last)

    def add(shift, total):
        other = order[jnp.minimum(starts + shift, last)]
        found = jnp.where(starts + shift <= last, entry(order, other), 0.0)
        return total + found[:, None] * columns[other]

    total = jax.lax.fori_loop(0, int(place.max()) + 1, add, jnp.zeros_like(columns))
    return jnp.zeros_like(columns).at[order].set(total)


def _scorer(gram, noise, tau):
    """``(gram + i tau diag(noise))^-1``, by a real system of twice the size."""
    d = gram.shape[0]
    root = 1 / jnp.sqrt(noise)
    scaled = root[:, None] * gram * root
    level = tau * jnp.eye(d, dtype=gram.dtype)
    system = jnp.block([[scaled, -level], [level, scaled]])
    solved = jnp.linalg.solve(system, jnp.eye(2 * d, d, dtype=gram.dtype))
    return root[:, None] * jax.lax.complex(solved[:d], solved[d:]) * root


def _score_without_own(gram, noise, tau, k0, centre, left):
    """``h``, the record itself left out of the Gram matrix in closed form."""
    scorer = _scorer(gram, noise, tau)
    left_k, left_z = k0 @ scorer, centre @ scorer
    al = jnp.sum(left_k * k0, axis=1, keepdims=True)
    be = jnp.sum(left_k * centre, axis=1, keepdims=True)
    ga = jnp.sum(left_z * centre, axis=1, keepdims=True)
    return jnp.real(left * ((left - be) * left_k + al * left_z) / ((left - be) ** 2 - al * ga))


def _score_without_group(gram, noise, tau, k0, centre, weights, left, groups):
    """``h``, the whole group left out: one ``d x d`` inverse a group."""
    outer = (weights / left)[:, None, None] * k0[:, :, None] * centre[:, None, :]
    change = jax.ops.segment_sum(outer, groups, k0.shape[0])

    def one(record):
        k, group = record
        part = change[group]
        return jnp.real(_scorer(gram - part - part.T, noise, tau)) @ k

    return jax.lax.map(one, (k0, groups), batch_size=1024)


def _noise(kernel, shares, own, weights):
    """What noise leaves of a class in the Gram matrix, ``D``, and its level ``tau``."""
    n, tiny = kernel.total, _tiny(shares)
    directions = jnp.maximum(jnp.sum(shares > 0) - 1, 0)
    volume = jnp.maximum(weights @ own, tiny) / (n * jnp.maximum(n - 1, 1))
    level = jnp.sqrt(jnp.maximum(directions * kernel.spread, tiny))
    mean = jnp.maximum(weights @ kernel.own, tiny) / jnp.maximum(n - 1, 1)
    return jnp.maximum(shares, 0.5 / n) * volume, 2 * level / mean


def _covariance(values, means, weights, groups):
    """Covariance of the mean payoffs over samples of records, or of groups."""
    total = jnp.sum(weights)
    deviations = values - means[:, None]
    if groups is None:
        return (weights * deviations) @ deviations.T / (total * jnp.maximum(total - 1, 1))
    n = weights.shape[0]
    sums = jax.ops.segment_sum((weights * deviations).T, groups, n)
    count = jnp.sum(jax.ops.segment_sum(weights, groups, n) > 0)
    return sums.T @ sums / total**2 * count / jnp.maximum(count - 1, 1)


def noise_tests(
    observed: Any,
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
    z = _memberships(observed, reports, num_classes)
    k, n, d = z.shape
    w = jnp.ones(n, z.dtype) if weights is None else jnp.asarray(weights, z.dtype)
    flat = jnp.moveaxis(z, 0, 1).reshape(n, -1)
    columns = w[:, None] * jnp.concatenate([jnp.ones((n, 1), z.dtype), flat], axis=1)
    found = observed.kernel_pass(columns, weights=w)
    products = jnp.moveaxis(found.product[:, 1:].reshape(n, k, d), 1, 0)
    everyone = _Centred.of(observed.squares, w, found.product[:, 0], found.squared_norm)
    total, total_product = jnp.sum(z, axis=0), jnp.sum(products, axis=0)

    def one(memberships, product):
        labelled = jnp.sum(memberships, axis=1)
        own = _own_statistic(observed, memberships, w * labelled, product, everyone.spread)
        if k == 1:
            return own
        other = (total - memberships) / (k - 1), (total_product - product) / (k - 1)
        linear = _linear_statistic(observed, memberships, w, *other, everyone.spread)
        return jnp.minimum(1.0, 2 * jnp.minimum(own, linear))

    with jax.default_matmul_precision("highest"):
        return jax.lax.map(lambda both: one(*both), (z, products))


def _subset(observed, weights, rows, spread):
    """The centred kernel matrix of some records, its mean square taken from all."""
    kernel = _Centred.of(observed.squares, weights, rows, jnp.zeros(()))
    return kernel._replace(spread=spread)


def _own_statistic(observed, z, w, product, spread):
    """P-value of ``sum_ij (H K H)_ij z_i . z_j / q`` under permutations, by a gamma law."""
    kernel = _subset(observed, w, jnp.sum(product, axis=1), spread)
    n = jnp.maximum(kernel.total, 5.0)
    shares = w @ z / n
    centre = jnp.where(w[:, None] > 0, z - shares, 0.0)
    scale = 1 / jnp.maximum(shares, 0.5 / n)
    smooth = n * kernel.product(product - jnp.outer(kernel.rows * kernel.total, shares), w)
    statistic = jnp.sum(w[:, None] * centre * smooth * scale)
    cross = (centre.T @ (w[:, None] * centre)) * scale
    lengths = centre**2 @ scale
    squares = w @ kernel.own**2
    k1, k2 = w @ kernel.own, spread * n * (n - 1) + squares
    z1, z2, z_squares = w @ lengths, jnp.sum(cross * cross.T), w @ lengths**2
    mean = k1 * z1 / (n - 1)
    pairs = 2 * ((n - 1) * k2 - k1**2) * ((n - 1) * z2 - z1**2)
    own = (n * (n + 1) * squares - (n - 1) * (k1**2 + 2 * k2)) * (
        n * (n + 1) * z_squares - (n - 1) * (z1**2 + 2 * z2)
    )
    variance = pairs / ((n - 1) ** 2 * (n + 1) * (n - 2))
    variance = variance + own / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    usable = (kernel.total >= 5) & (mean > 0) & (variance > 1e-9 * mean**2)
    mean, variance = jnp.where(usable, mean, 1.0), jnp.where(usable, variance, 1.0)
    tail = jax.scipy.special.gammaincc(
        mean**2 / variance, jnp.maximum(statistic, 0.0) * mean / variance
    )
    return jnp.where(usable, tail, 1.0)


def _linear_statistic(observed, z, w, other, other_product, spread):
    """P-value of the payoffs under the scorer of the other reports, by the normal law."""
    copies = jnp.sum(other, axis=1)
    scoring = w * copies
    kernel = _subset(observed, scoring, jnp.sum(other_product, axis=1), spread)
    n = jnp.maximum(kernel.total, 2.0)
    shares = w @ other / n
    centre = other - jnp.outer(copies, shares)
    kap = kernel.product(other_product - jnp.outer(kernel.rows * kernel.total, shares), scoring)
    k0 = kap - kernel.own[:, None] * centre / n
    gram = _symmetric(centre.T @ (w[:, None] * k0) / n)
    h = k0 @ jnp.real(_scorer(gram, *_noise(kernel, shares, kernel.own, scoring)))
    w = w * jnp.sum(z, axis=1)
    size = jnp.maximum(jnp.sum(w), 2.0)
    h, z = h - w @ h / size, z - w @ z / size
    statistic = jnp.sum(w[:, None] * h * z)
    variance = jnp.sum((h.T @ (w[:, None] * h)) * (z.T @ (w[:, None] * z))) / (size - 1)
    usable = variance > 0
    tail = jax.scipy.stats.norm.sf(statistic / jnp.sqrt(jnp.where(usable, variance, 1.0)))
    return jnp.where(usable, tail, 1.0)


def _memberships(observed, reports, num_classes):
    """Reports as memberships ``[k, n, d]``, zero rows where labels are missing."""
    reports = jnp.asarray(reports)
    if reports.ndim not in (2, 3) or reports.shape[1] != observed.size:
        raise ValueError(
            f"expected reports [k, {observed.size}] or [k, {observed.size}, d], one label a record,"
            f" got shape {reports.shape}"
        )
    if reports.ndim == 2:
        num_classes = int(jnp.max(reports)) + 1 if num_classes is None else num_classes
        reports = jax.nn.one_hot(reports, num_classes, dtype=observed.squares.dtype)
    if reports.shape[2] < 2 or reports.shape[1] < 2:
        raise ValueError(
            "expected at least two records and two classes, "
            f"got {reports.shape[1]} and {reports.shape[2]}"
        )
    return reports.astype(observed.squares.dtype)


def _present(z, weights):
    """Frequencies of the records that every report labels."""
    labelled = jnp.all(jnp.sum(z, axis=2) > 0, axis=0).astype(z.dtype)
    return labelled if weights is None else labelled * jnp.asarray(weights, z.dtype)


def _symmetric(matrix):
    return (matrix + matrix.T) / 2


def _tiny(array):
    return jnp.finfo(array.dtype).tiny ** 0.5
