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

``weights`` are frequencies: one of the ``w`` copies is left out, and every figure equals that of the
records repeated. With ``groups`` (duplicates, patients, weeks) the whole group leaves.

Observations and kernel come as one binding, ``observed``, with ``size``, ``squares`` (``K(y, y)``)
and ``kernel_pass``; only ``groups`` need its ``within(z, groups)``, the kernel product
restricted to pairs of one group.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from jgram.types import Array, ArrayLike, Bool, Float, Int, Shaped

__all__ = [
    "ESTIMABLE",
    "Payoffs",
    "Retention",
    "align",
    "block_length",
    "blocks",
    "noise_tests",
    "pair_payoffs",
    "payoffs",
    "records_needed",
    "retention",
    "sign_test",
]

ESTIMABLE = 3.0
"""Standard errors by which the better report's mean payoff must exceed 0 before a share of it, or
an order, is stated."""


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


class Retention(NamedTuple):
    """``a_m / a_l`` with Fieller's interval; ``[0, inf]`` and 0 where it is not ``estimable``."""

    ratio: Float[Array, "..."]
    lower: Float[Array, "..."]
    upper: Float[Array, "..."]
    estimable: Bool[Array, "..."]


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
        groups: Group ``0..n-1`` of each record; groups are left out, and sampled, as a whole.

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
        found = observed.within(columns, groups) - by_row
        found = found + (self.mean - self.rows)[:, None] * plain
        return found[:, 0], found[:, 1:], plain[:, 0], plain[:, 1:]


def _paid(observed, z, weights, rows, kernel_centre, squared_norm, groups) -> Payoffs:
    """Payoffs from the products of the kernel with the weights and the weighted mean report."""
    with jax.default_matmul_precision("highest"):
        kernel = _Centred.of(observed.squares, weights, rows, squared_norm)
        n = kernel.total
        shares = weights @ jnp.mean(z, axis=0) / n
        centre = jnp.where(weights[:, None] > 0, jnp.mean(z, axis=0) - shares, 0.0)
        directions = jnp.maximum(jnp.sum(shares > 0) - 1, 0)
        kap = kernel.product(kernel_centre - jnp.outer(rows, shares), weights)
        if groups is None:
            own, own_centre = kernel.own, kernel.own[:, None] * centre
            left, k0 = n - 1, kap - own_centre / jnp.maximum(n - 1, 1)
        else:
            groups = jnp.asarray(groups)
            own, own_centre, size, sums = kernel.within(observed, centre, weights, groups)
            left = jnp.maximum(n - size, 1)
            k0 = kap - (own_centre + own[:, None] * sums / left[:, None]) / n
        gram = _symmetric(centre.T @ (weights[:, None] * (kap - own_centre / n)) / n)
        volume = jnp.maximum(weights @ own, _tiny(gram)) / (n * (n - 1))
        noise = jnp.maximum(shares, 0.5 / n) * volume
        mean_own = jnp.maximum(weights @ kernel.own, _tiny(gram)) / (n - 1)
        tau = 2 * jnp.sqrt(jnp.maximum(directions * kernel.spread, _tiny(gram))) / mean_own
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
        unexplained = jnp.maximum(kernel.spread - _explained(gram, noise, volume), 0.0)
        copies = (weights @ own / jnp.maximum(weights @ kernel.own, _tiny(gram))) ** 2
        covariance = covariance + unexplained * copies * crossed / n**2
        differences = jnp.sum(h * (z[0] - z[1 % z.shape[0]]), axis=1)
        return Payoffs(values, differences, weights, means, covariance, jnp.mean(means))


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


def _explained(gram, noise, volume):
    """Mean square of the centred kernel matrix that class means explain."""
    scaled = gram * volume / noise[:, None]
    return jnp.sum(scaled * scaled.T)


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


def sign_test(
    differences: Float[ArrayLike, " n"],
    weights: Float[ArrayLike, " n"] | None = None,
    groups: Int[ArrayLike, " n"] | None = None,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Whether two reports may be swapped: random signs of the differences of their payoffs.

    Where the reports are exchangeable, the signs of the differences are random given all else,
    because swapping two reports leaves the scorer as it is. The sum over its root mean square under
    random signs is compared with the normal distribution.

    Args:
        differences: ``[n]``, :attr:`Payoffs.differences`.
        weights: Frequencies ``[n]``; each copy has a sign of its own.
        groups: ``[n]``; groups (:func:`blocks` of records in time order) are swapped as a whole.

    Returns:
        ``z``, positive where the first report is the better one, and the two-sided p-value; 0 and 1
        where the reports do not differ.

    Example:
        >>> z, p = sign_test(jnp.array([1.0, 1.0, 1.0, -1.0]))
        >>> float(z)
        1.0
    """
    differences = jnp.asarray(differences)
    w = jnp.ones_like(differences) if weights is None else jnp.asarray(weights, differences.dtype)
    if groups is None:
        squares = jnp.sum(w * differences**2)
    else:
        sums = jax.ops.segment_sum(w * differences, groups, differences.shape[0])
        squares = jnp.sum(sums**2)
    z = jnp.sum(w * differences) / jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
    return z, 2 * jax.scipy.stats.norm.sf(jnp.abs(z))


def retention(
    means: Float[ArrayLike, "... 2"],
    covariance: Float[ArrayLike, "... 2 2"],
    quantile: Float[ArrayLike, ""] | float,
) -> Retention:
    """What the second report retains of the first: ``a_2 / a_1`` with Fieller's interval,

    ``{r: (a_2 - r a_1)^2 <= quantile^2 Var(a_2 - r a_1)}``.

    Args:
        means: ``(a_1, a_2)``.
        covariance: Of the means.
        quantile: Standard errors, 1.96 for one interval of 95%.

    Returns:
        :class:`Retention`; not estimable where ``a_1`` is below :data:`ESTIMABLE` standard errors
        or the set is unbounded.

    Example:
        >>> found = retention(jnp.array([2.0, 1.0]), 0.01 * jnp.eye(2), 1.96)
        >>> [round(float(value), 3) for value in found[:3]]
        [0.5, 0.394, 0.614]

    Reference:
        E. C. Fieller, *Some problems in interval estimation*, 1954.
    """
    means, covariance = jnp.asarray(means), jnp.asarray(covariance)
    best, other = means[..., 0], means[..., 1]
    square = jnp.asarray(quantile) ** 2
    a = best**2 - square * covariance[..., 0, 0]
    b = best * other - square * covariance[..., 0, 1]
    c = other**2 - square * covariance[..., 1, 1]
    known = jnp.maximum(best, 0) ** 2 > ESTIMABLE**2 * covariance[..., 0, 0]
    known &= (best > 0) & (a > 0)
    root = jnp.sqrt(jnp.maximum(jnp.where(known, b**2 - a * c, 0.0), 0.0))
    a = jnp.where(known, a, 1.0)
    return Retention(
        jnp.where(known, other / jnp.where(known, best, 1.0), 0.0),
        jnp.where(known, (b - root) / a, 0.0),
        jnp.where(known, (b + root) / a, jnp.inf),
        known,
    )


def records_needed(
    differences: Float[ArrayLike, " n"],
    weights: Float[ArrayLike, " n"] | None = None,
    groups: Int[ArrayLike, " n"] | None = None,
    *,
    power: float = 0.8,
    level: float = 0.95,
) -> Float[Array, ""]:
    """How many records like these :func:`sign_test` needs to separate the two reports.

    ``n ((q_level + q_power) / z)^2`` with ``z`` the statistic of these ``n`` records: mean and
    spread of the differences are taken to stay.

    Args:
        differences: ``[n]``.
        weights: Frequencies ``[n]``.
        groups: Groups ``[n]``.
        power: Wanted probability of separating them.
        level: One minus the size of the two-sided test.

    Returns:
        The number, these records included; infinite where the reports do not differ.

    Example:
        >>> float(records_needed(jnp.array([1.0, 1.0, 1.0, -1.0]))).__round__(1)
        31.4
    """
    z, _ = sign_test(differences, weights, groups)
    size = jnp.asarray(differences).shape[0] if weights is None else jnp.sum(jnp.asarray(weights))
    quantile = jax.scipy.stats.norm.ppf
    wanted = quantile((1 + level) / 2) + quantile(power)
    return size * (wanted / z) ** 2


def block_length(values: Float[ArrayLike, " n"]) -> int:
    """A length of blocks within which payoffs in time order depend on each other.

    Politis and White's automatic choice for the block bootstrap: autocorrelations up to twice the
    lag after which none is significant, tapered; ``(3 g^2 n / (2 s^2))^(1/3)`` with ``s`` their
    sum and ``g`` their sum weighted by the lag.

    Args:
        values: Payoffs, or differences of payoffs, in order of time ``[n]``; concrete.

    Returns:
        Records a block, 1 to ``n / 10``.

    Example:
        >>> block_length(np.random.default_rng(0).normal(size=300))
        1

    Reference:
        Politis and White, *Automatic block-length selection for the dependent bootstrap*, 2004.
    """
    values = np.asarray(values, float)
    n = len(values)
    centred = values - values.mean()
    spread = centred @ centred
    if n < 10 or spread == 0:
        return 1
    longest = min(n // 2, int(3 * np.sqrt(n)))
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    correlations = np.fft.irfft(spectrum)[: longest + 1] / spread
    bound, quiet = 2 * np.sqrt(np.log10(n) / n), max(5, int(np.sqrt(np.log10(n))))
    loud = np.flatnonzero(np.abs(correlations) > bound)
    gaps = np.flatnonzero(np.diff(np.append(loud, longest + quiet + 1)) > quiet)
    last = loud[gaps[0]]
    if last == 0:
        return 1
    lags = np.arange(1, min(2 * last, longest) + 1)
    taper = np.clip(2 * (1 - lags / (2 * last)), 0, 1)
    total = 1 + 2 * np.sum(taper * correlations[lags])
    weighted = 2 * np.sum(taper * lags * correlations[lags])
    length = np.ceil((1.5 * weighted**2 / max(total, 0.1) ** 2 * n) ** (1 / 3))
    return int(np.clip(length, 1, max(n // 10, 1)))


def blocks(size: int, length: int) -> Int[np.ndarray, " n"]:
    """Groups of ``length`` consecutive records (the last block may be shorter).

    Example:
        >>> blocks(5, 2)
        array([0, 0, 1, 1, 2])
    """
    return np.arange(size) // length


def align(
    reports: Int[ArrayLike, "k n"], num_classes: int
) -> tuple[Int[np.ndarray, "k n"], Int[np.ndarray, "k d"]]:
    """Rename the classes of every report to those of the first, where that clearly helps.

    The scores of the paper are blind to a relabelling; payoffs are not. The best renaming maximises
    the sum of the matched cells ``(n_ab - n_a n_b / n) / sqrt(n_a n_b)`` of the cross table. It is
    used where it beats the names as they are by more than chance would: ``sqrt(2 d / n)`` (the
    spread of such a gain for unrelated reports) times ``2 + sqrt(2 log d!)`` (the choice among
    ``d!`` renamings).

    Args:
        reports: Labels ``[k, n]``, negative where missing; concrete.
        num_classes: ``d``.

    Returns:
        The reports with classes renamed, and the new name of every class, ``[k, d]``.

    Example:
        >>> reports = np.array([[0, 1] * 50, [1, 0] * 50])
        >>> align(reports, 2)[1].tolist()
        [[0, 1], [1, 0]]
    """
    reports = np.asarray(reports)
    d, first = num_classes, reports[0]
    names = np.tile(np.arange(d), (len(reports), 1))
    for number, other in enumerate(reports[1:], 1):
        both = (first >= 0) & (other >= 0)
        n = max(int(both.sum()), 1)
        cells = np.bincount(other[both] * d + first[both], minlength=d * d).reshape(d, d)
        rows, columns = cells.sum(1, keepdims=True), cells.sum(0, keepdims=True)
        scaled = (cells - rows * columns / n) / np.sqrt(np.maximum(rows * columns, 1))
        _, best = linear_sum_assignment(scaled, maximize=True)
        gain = scaled[np.arange(d), best].sum() - np.trace(scaled)
        if gain > np.sqrt(2 * d / n) * (2 + np.sqrt(2 * gammaln(d + 1))):
            names[number] = best
    aligned = np.where(reports >= 0, np.take_along_axis(names, np.maximum(reports, 0), 1), reports)
    return aligned, names
