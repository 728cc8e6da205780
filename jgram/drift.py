"""Drift: what reports earn tonight beside a baseline, by the baseline's own scorer.

What a report keeps is relative to the best one: where all get worse alike it does not move. A
baseline therefore keeps its scorer. With ``phi`` random features of the table kernel, centred at
the baseline, and :mod:`jgram.contrasts`' scorer at the mean report,

    h(y) = phi(y) W,    W = phi^T zt / n  Re(G + i tau D)^-1,    payoff[l] = h(y) . (z_l - q_l),

``W``, ``q``, and how columns become ``phi``, are the baseline's. Its own mean payoffs leave out
each record itself; tonight's records were never in it. The two means are of the same thing, and
share what the scorer has of chance, so that their difference has the variance of two samples. A
share ``e`` of the labels replaced at random takes ``e`` of what a report earns.

Payoffs change too where other things are observed: of this the means of ``phi`` in its first
principal directions tell (a chi-squared test), and every column by the shares of its bins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np
from jax.scipy.special import gammaincc
from jax.scipy.stats import norm

import jgram.display as display
from jgram.arrays import float64
from jgram.comparisons import holm, mean_covariance, normal_quantile, retention
from jgram.contrasts import Scorer, noise_level, payoffs_of_pairs, products, scorer_of
from jgram.data import check_aligned, encode_reports, prepare_table, quantile_bins, to_json
from jgram.data.columns import Column, listing, named_columns, read, read_table, show
from jgram.data.table import ColumnKind
from jgram.display import Field, Line, Shown, Table, View
from jgram.kernels import RandomFeatures
from jgram.observed import Features
from jgram.plots import MARK, WORSE, shares_figure
from jgram.table_kernel import TableKernel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Baseline",
    "ColumnDrift",
    "Drift",
    "FrozenColumn",
    "ReportDrift",
    "fit_baseline",
    "measure_drift",
]

_VECTOR, _MATRIX = ({"dtype": "float64", "ndim": ndim} for ndim in (1, 2))
_FEATURES = 1024
_DIRECTIONS = 32  # in which the observations are compared
_KNOTS = 512  # of a number's scale that are kept
_BINS = 10  # of a number, in which its shares are compared


@dataclass(frozen=True)
class FrozenColumn:
    """How a column of the observations became numbers, and how often it held what.

    Attributes:
        name: Of the column.
        values: Levels of a category; of a number, values in rising order, between which is
            interpolated; empty for a block, which stays as it is.
        points: ``[values, k]``, what they become.
        absent: ``[k]``, what a missing or unknown cell becomes.
        edges: Between the bins of a number; ``None`` for a category.
        counts: Records in each bin or level, then without a value, then of no known level.
    """

    name: str
    values: tuple[Any, ...]
    points: tuple[tuple[float, ...], ...]
    absent: tuple[float, ...]
    edges: tuple[float, ...] | None
    counts: tuple[float, ...]

    def apply(self, given: Column, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points ``[n, k]`` of tonight's cells, and records in each bin."""
        if not self.values:
            return _block(given), np.zeros(0)
        present, points = given.plain.present, np.array(self.points)
        found = np.tile(np.array(self.absent), (len(given), 1))
        if self.edges is None:
            place = {value: i for i, value in enumerate(self.values)}
            level = np.array([place.get(str(value), -1) for value in given.factors[0]], int)
            codes = level[given.codes]
            unknown = len(self.values) + 1
            cells = np.where(present, np.where(codes < 0, unknown, codes), unknown - 1)
            known = present & (codes >= 0)
            found[known] = points[codes[known]]
        else:
            values = _measured(given)
            columns = [np.interp(values, self.values, column) for column in points.T]
            found[present] = np.stack(columns, axis=1)
            cells = np.full(len(given), len(self.edges) + 1)
            cells[present] = np.searchsorted(self.edges, values, side="left")
        return found, np.bincount(cells, weights, minlength=len(self.counts))


@dataclass(frozen=True, eq=False)
class Baseline:
    """What :func:`fit_baseline` keeps of a night: no record, but all that pays later ones.

    Attributes:
        classes: Names of the ``d`` classes.
        edges: Report to the inner edges of its bins, where reports are numbers.
        columns: The observations.
        frequencies: Of the random features ``[m/2, k]``.
        feature_weights: Theirs ``[m/2]``.
        center: What is taken off the points ``[k]``.
        mean: Mean features ``[m]``.
        scorer: ``W``, ``[m, d]``.
        shares: ``q``: report to shares of the classes ``[d]``.
        earned: Report to its mean payoff, the variance of that, and the records it labels.
        directions: The principal directions of the features ``[m, r]``.
        variances: Of the mean features in these ``[r]``.
        num_records: The records, or their total frequency.
    """

    SCHEMA: ClassVar[str] = "jgram/baseline/1"
    classes: tuple[str, ...]
    edges: dict[str, tuple[float, ...]]
    columns: tuple[FrozenColumn, ...]
    shares: dict[str, tuple[float, ...]]
    earned: dict[str, tuple[float, float, float]]
    frequencies: np.ndarray = field(repr=False, metadata=_MATRIX)
    feature_weights: np.ndarray = field(repr=False, metadata=_VECTOR)
    center: np.ndarray = field(repr=False, metadata=_VECTOR)
    mean: np.ndarray = field(repr=False, metadata=_VECTOR)
    scorer: np.ndarray = field(repr=False, metadata=_MATRIX)
    directions: np.ndarray = field(repr=False, metadata=_MATRIX)
    variances: np.ndarray = field(repr=False, metadata=_VECTOR)
    num_records: float

    def to_json(self) -> str:
        """All of it, which :func:`jgram.load` reads."""
        return to_json(display.to_record(self))

    def features(self, points: np.ndarray) -> np.ndarray:
        """Features ``[n, m]`` of points ``[n, k]``, about the baseline's mean."""
        kernel = RandomFeatures(self.frequencies, self.center, self.feature_weights)
        with float64():
            return np.asarray(kernel.features(points)) - self.mean

    def seen(self, columns: Mapping[Any, Column]) -> np.ndarray:
        """:meth:`features` ``[n, m]`` of columns of observations."""
        n = len(columns[self.columns[0].name])
        points = [one.apply(columns[one.name], np.ones(n))[0] for one in self.columns]
        return self.features(np.column_stack(points))

    def codes(self, name: str, given: Column) -> tuple[np.ndarray, np.ndarray]:
        """Classes by number, -1 for another or none, and where there is a label."""
        if name in self.edges:
            given = _binned(given, self.edges[name])
        place = {label: i for i, label in enumerate(self.classes)}
        level = np.array([*(place.get(str(value), -1) for value in given.factors[0]), -1])
        return level[given.codes], given.present

    def paid(self, away: np.ndarray, report: str, codes: np.ndarray) -> np.ndarray:
        """Payoffs ``[n]`` of labels by code, -1 for a class that the baseline does not know."""
        d = len(self.classes)
        z = np.vstack([np.eye(d), np.zeros((1, d))])[codes]
        return np.sum(away @ self.scorer * (z - self.shares[report]), axis=1)


@dataclass(frozen=True)
class ReportDrift:
    """What a report earns, beside the baseline.

    Attributes:
        name: The report.
        earns: Its mean payoff over that in the baseline, by one scorer: 1 where nothing changed, 0
            where nothing is left; ``None`` where it earned nothing that could be lost.
        interval: Of it, for all reports together.
        p_value: One-sided p-value of "it is no worse than it was", for all reports together.
        worse: Whether it is worse.
        num_records: Records that it labels tonight.
        unknown: Of these, with a label that the baseline does not know: they earn nothing.
    """

    name: str
    earns: float | None
    interval: tuple[float, float] | None
    p_value: float
    worse: bool
    num_records: float
    unknown: float


@dataclass(frozen=True)
class ColumnDrift:
    """Whether a column of the observations holds its bins and levels as often as it did.

    Attributes:
        name: The column.
        p_value: Of the chi-squared test of its shares, for all columns together.
        changed: Whether they differ.
        largest: Where the most, in words.
    """

    name: str
    p_value: float
    changed: bool
    largest: str


@dataclass(frozen=True)
class Drift(Shown):
    """What changed since a baseline: each report, and apart from them the observations.

    Attributes:
        reports: :class:`ReportDrift` of every report of the baseline.
        columns: :class:`ColumnDrift` of the observations.
        observations_p_value: Of "the observations are distributed as they were", jointly.
        observations_changed: Whether they are not, by this or by one of the columns.
        confidence: Of what is said of the reports, and of the observations.
        num_records: Tonight.
        baseline_records: In the baseline.
    """

    SCHEMA: ClassVar[str] = "jgram/drift/1"
    reports: tuple[ReportDrift, ...]
    columns: tuple[ColumnDrift, ...]
    observations_p_value: float
    observations_changed: bool
    confidence: float
    num_records: float
    baseline_records: float

    @property
    def conclusion(self) -> str:
        """Who got worse, and whether something else is observed, in one sentence."""
        worse = [f"{one.name} (earns {_earns(one)})" for one in self.reports if one.worse]
        verb = "is" if len(worse) == 1 else "are"
        found = f"{', '.join(worse)} {verb} worse" if worse else "No report is worse"
        names = ", ".join(one.name for one in self.columns if one.changed)
        also = f"; the observations changed{f' ({names})' if names else ''}"
        return f"{found} than in the baseline{also if self.observations_changed else ''}."

    def table(self) -> Table:
        """One row a report."""
        fields = [
            Field("report", attrgetter("name"), keys=("report",), name=True),
            Field(
                f"earns of baseline\n{self.confidence:.0%} interval",
                lambda one: (one.earns, *(one.interval or (None, None))),
                display.in_brackets(".0%"),
                ("earns", "earns_low", "earns_high"),
            ),
            Field("p of\nno worse", attrgetter("p_value"), display.p_value, ("p_value",)),
            Field("worse", attrgetter("worse"), lambda yes: "yes" if yes else "no", ("worse",)),
            Field("labels never\nseen before", attrgetter("unknown"), "{:g}".format, ("unknown",)),
        ]
        return Table("What every report earns, beside the baseline", self.reports, fields)

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """The reports, the observations, what follows."""
        fields = [
            Field("observation", attrgetter("name"), name=True),
            Field("changed", attrgetter("changed"), lambda yes: "yes" if yes else "no"),
            Field("p", attrgetter("p_value"), display.p_value),
            Field("largest change", attrgetter("largest"), name=True),
        ]
        return [
            Line(f"{self.num_records:g} records beside {self.baseline_records:g} of the baseline"),
            Line(),
            self.table(),
            Table("Observations beside the baseline", self.columns, fields),
            Line(
                f"p of observations as they were, jointly: "
                f"{display.p_value(self.observations_p_value)}",
                "aside",
            ),
            Line(self.conclusion, "conclusion"),
        ]

    def plot(self) -> "Figure":
        """What every report earns: a matplotlib figure."""
        colours = [WORSE if one.worse else MARK for one in self.reports]
        return shares_figure(
            [one.name for one in self.reports],
            [one.earns for one in self.reports],
            [one.interval for one in self.reports],
            title=f"Earns of what it earned in the baseline, {self.confidence:.0%} intervals",
            absent="earned nothing",
            marks=[(colour, colour) for colour in colours],
        )


def _earns(one: ReportDrift) -> str:
    low, high = one.interval or (None, None)
    shown = display.in_brackets(".0%")((one.earns, low, high))
    return f"{shown} of what it did"


def fit_baseline(
    reports: Any,
    y: Any,
    *,
    weights: Any = None,
    groups: Any = None,
    bins: int | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    num_features: int = _FEATURES,
) -> Baseline:
    """What later nights are measured by: bins, bandwidths, the scorer, and what reports earn.

    Args:
        reports: Name to labels ``[n]``, some of which may be missing.
        y: Observations of these records: a table of numbers and categories, or an embedding.
            Dates move on by themselves and are left out.
        weights: Frequencies ``[n]``.
        groups: Group of each record: groups are sampled as a whole.
        bins: Quantile bins of reports that are numbers.
        kinds: ``"number"``, ``"category"`` or ``"ignore"`` by column.
        num_features: Random features that stand for the kernel.

    Returns:
        A :class:`Baseline`.

    Raises:
        ValueError: Texts among the observations, or what :func:`jgram.rank_reports` refuses.

    Example:
        >>> truth = np.arange(200) % 2
        >>> night = fit_baseline({"ann": truth}, {"level": truth + 0.1 * np.sin(np.arange(200.0))})
        >>> measure_drift(night, {"ann": 1 - truth}, {"level": 1.0 * truth}).reports[0].worse
        True
    """
    (named, columns, w, groups), edges = _night(reports, y, weights, groups), {}
    for label, given in named.items() if bins else ():
        if given.kind == "number":
            edges[label] = _floats(quantile_bins(given, bins or 0, name=label).edges)
            named[label] = _binned(given, edges[label])
    encoded = encode_reports(named, missing="keep")
    frozen = _all_frozen(columns, w, kinds)
    points = np.column_stack([one.apply(columns[one.name], w)[0] for one in frozen])
    kernel = TableKernel.of(points, sum(len(one.absent) for one in frozen if one.values))
    kernel = kernel.random_features(jax.random.key(0), num_features)
    z = _filled(np.stack([*encoded.codes.values()]), len(encoded.classes))
    paid, mean, away, scorer, directions = _trained(kernel, points, z, kept := w * z[0].any(axis=1))
    each = [*zip(encoded.codes.items(), z, paid, strict=True)]
    return Baseline(
        classes=tuple(map(str, encoded.classes)),
        edges=edges,
        columns=tuple(frozen),
        frequencies=np.asarray(kernel.frequencies),
        feature_weights=np.asarray(kernel.weights),
        center=np.asarray(kernel.center),
        mean=mean,
        scorer=scorer,
        shares={label: _floats(kept @ one / kept.sum()) for (label, _), one, _ in each},
        earned={label: _mean(v, w * (codes >= 0), groups) for (label, codes), _, v in each},
        directions=directions,
        variances=np.array([_mean(part, kept, groups)[1] for part in (away @ directions).T]),
        num_records=float(w.sum()),
    )


def measure_drift(
    baseline: Baseline,
    reports: Any,
    y: Any,
    *,
    weights: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
) -> Drift:
    """What every report earns tonight by the baseline's scorer, and what else is observed.

    Args:
        baseline: From :func:`fit_baseline` or :func:`jgram.load`.
        reports: Name to labels ``[n]``: every report of the baseline.
        y: Observations of these records: every column of the baseline.
        weights: Frequencies ``[n]``.
        groups: Groups ``[n]``, sampled as a whole.
        confidence: Of all statements on reports together, and of those on observations.

    Returns:
        A :class:`Drift`.

    Raises:
        ValueError: A report or a column that is not there, or of another kind.
    """
    named, columns, w, groups = _night(reports, y, weights, groups)
    for name in [*baseline.earned, *(one.name for one in baseline.columns)]:
        if name not in named and name not in columns:
            got = listing([*named, *columns])
            raise ValueError(f"{name}: expected this column of the baseline, there are {got}")
    applied = [one.apply(columns[one.name], w) for one in baseline.columns]
    away = baseline.features(np.column_stack([points for points, _ in applied]))
    k = len(baseline.earned)
    quantile = normal_quantile(1 - (1 - confidence) / k)
    found, tails = [], []
    for name, (before, variance, _) in baseline.earned.items():
        codes, present = baseline.codes(name, named[name])
        now, new, size = _mean(baseline.paid(away, name, codes), w * present, groups)
        with float64():
            share = retention(np.array([before, now]), np.diag([variance, new]), quantile)
        known = bool(share.estimable)
        found.append((name, float(share.ratio) if known else None,
                      (float(share.lower), float(share.upper)) if known else None,
                      size, float(w @ (present & (codes < 0)))))  # fmt: skip
        tails.append(float(norm.cdf((now - before) / np.sqrt(max(variance + new, 1e-300)))))
    adjusted = holm(tails).tolist()
    changes = _column_drifts(baseline, [counts for _, counts in applied], confidence)
    joint = _joint(baseline, away, w, groups)
    return Drift(
        reports=tuple(
            ReportDrift(name, earns, interval, p, p <= 1 - confidence, size, unknown)
            for (name, earns, interval, size, unknown), p in zip(found, adjusted, strict=True)
        ),
        columns=changes,
        observations_p_value=joint,
        observations_changed=2 * min([joint, *(c.p_value for c in changes)]) <= 1 - confidence,
        confidence=confidence,
        num_records=float(w.sum()),
        baseline_records=baseline.num_records,
    )


# --------------------------------------------------------------------------------------------


def _all_frozen(columns: Mapping[str, Column], w: np.ndarray, kinds: Any) -> list[FrozenColumn]:
    """Every column that says something, blocks behind the columns of the table."""
    found = [_frozen(str(label), given, w, kinds) for label, given in columns.items()]
    if not any(found):
        raise ValueError(f"y: expected a column to observe beside dates, got {listing(columns)}")
    return sorted(filter(None, found), key=lambda one: not one.values)


def _frozen(label: str, given: Column, w: np.ndarray, kinds: Any) -> FrozenColumn | None:
    """How a column becomes numbers; ``None`` where it says nothing, or is a date."""
    if given.is_block:
        width = _block(given).shape[1]
        return FrozenColumn(label, (), (), (0.0,) * width, None, ())
    asked = {label: kinds[label]} if kinds and label in kinds else {}
    number = asked.get(label, "number" if given.measured else "category") == "number"
    if given.plain.kind in ("date", "duration") or asked.get(label) == "ignore":
        return None
    try:
        table = prepare_table({label: given}, name=label, kinds=asked)
    except ValueError as error:
        if "says something" not in str(error):
            raise
        return None
    if not table.table_width:
        raise ValueError(
            f"{label}: expected numbers and categories in a baseline, got texts: give their "
            f"embeddings, or leave them out (--kind {label}=ignore)"
        )
    present = given.plain.present
    absent = table.points[~present][0] if not present.all() else np.zeros(table.points.shape[1])
    if number:
        values, first = np.unique(_measured(given), return_index=True)
        kept = np.unique(np.linspace(0, len(values) - 1, _KNOTS).astype(int))
        values, first = values[kept], first[kept]
        edges = _floats(np.unique(np.quantile(_measured(given), np.arange(1, _BINS) / _BINS)))
        size, shown = len(edges) + 2, _floats(values)
    else:
        levels, codes = given.factors
        first = np.unique(codes, return_index=True)[1]
        edges, size, shown = None, len(levels) + 2, tuple(map(str, levels))
    points = table.points[present][first]
    made = FrozenColumn(
        label, shown, tuple(map(_floats, points)), _floats(absent), edges, (0.0,) * size
    )
    counts = made.apply(given, w)[1]
    return replace(made, counts=_floats(counts))


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(map(float, values))


def _block(given: Column) -> np.ndarray:
    given.refuse_missing()
    return np.asarray(given.values, float).reshape(len(given), -1)


def _measured(given: Column) -> np.ndarray:
    """The numbers that are present."""
    if given.values.dtype.kind not in "biuf":
        got = show(given.values[0]) if len(given.values) else "nothing"
        raise ValueError(f"{given.name}: expected numbers as in the baseline, got {got}")
    return np.asarray(given.values, float)


def _binned(given: Column, edges: Sequence[float]) -> Column:
    codes = np.full(len(given), -1)
    codes[given.present] = np.searchsorted(edges, _measured(given), side="left")
    return Column.of_codes(given.name, list(range(len(edges) + 1)), codes)


def _filled(codes: np.ndarray, d: int) -> np.ndarray:
    """Reports as matrices ``[k, n, d]``; a missing label is the mean of the other reports'."""
    z = np.eye(d + 1)[codes][..., :d]
    labelled = np.maximum((codes >= 0).sum(axis=0), 1)
    return np.where((codes >= 0)[..., None], z, z.sum(axis=0) / labelled[:, None])


def _trained(kernel: Any, points: np.ndarray, z: np.ndarray, kept: np.ndarray) -> Any:
    """Payoffs, the mean features, the features about it, the scorer, principal directions."""
    with float64():
        phi = np.asarray(kernel.features(points))
        found = products(Features(phi, kernel), z, weights=kept)
        paid = payoffs_of_pairs(found, np.arange(len(z))[None])
        mean = kept @ phi / kept.sum()
        away = phi - mean
        scorer = _scorer(away, z.mean(axis=0), kept, found.spread)
    squares, vectors = np.linalg.eigh(away.T @ (kept[:, None] * away))
    directions = vectors[:, squares > 1e-6 * squares[-1]][:, -_DIRECTIONS:]
    return np.asarray(paid.values[0]), mean, away, scorer, directions


def _scorer(away: np.ndarray, z: np.ndarray, w: np.ndarray, spread: Any) -> np.ndarray:
    """``W``: what the features say of each class."""
    n = w.sum()
    shares = w @ z / n
    centred = np.where(w[:, None] > 0, z - shares, 0.0)
    sums, own = away.T @ (w[:, None] * centred) / n, w * np.sum(away**2, axis=1)
    gram = sums.T @ sums - centred.T @ (own[:, None] * centred) / n**2
    level = noise_level(*map(jax.numpy.asarray, (n, shares, spread, own.sum(), own.sum())))
    inverse = np.asarray(scorer_of(Scorer(jax.numpy.asarray(gram), *level)))
    return sums @ np.real(inverse)


def _night(reports: Any, y: Any, weights: Any, groups: Any) -> tuple[Any, Any, np.ndarray, Any]:
    """Reports and observations by name, frequencies, and groups by number."""
    given = named_columns(reports, "reports")
    named = {str(label): read(part, str(label)) for label, part in given.items()}
    n = check_aligned({**named, "y": y})
    w = np.ones(n) if weights is None else np.asarray(weights, float)
    groups = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    return named, read_table(y, "y"), w, groups


def _mean(values: np.ndarray, w: np.ndarray, groups: Any) -> tuple[float, float, float]:
    """Mean, the variance of it over samples of records or groups, and total weight."""
    total = max(float(w.sum()), 1.0)
    mean = float(w @ values / total)
    return mean, float(mean_covariance((values - mean)[None], w, groups)[0, 0]), total


def _joint(baseline: Baseline, away: np.ndarray, w: np.ndarray, groups: Any) -> float:
    """P-value of equal means of the features in the baseline's principal directions."""
    means, variances, _ = np.array([_mean(x, w, groups) for x in (away @ baseline.directions).T]).T
    statistic = np.sum(means**2 / np.maximum(variances + baseline.variances, 1e-300))
    return float(gammaincc(len(means) / 2, statistic / 2))


def _column_drifts(
    baseline: Baseline, counts: Sequence[np.ndarray], confidence: float
) -> tuple[ColumnDrift, ...]:
    found, names = [], [one for one in baseline.columns if one.values]
    kept = [now for one, now in zip(baseline.columns, counts, strict=True) if one.values]
    for one, now in zip(names, kept, strict=True):
        table = np.array([one.counts, now])
        table = table[:, table.sum(axis=0) > 0]
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        statistic, degrees = np.sum((table - expected) ** 2 / expected), table.shape[1] - 1
        found.append(float(gammaincc(degrees / 2, statistic / 2)) if degrees else 1.0)
    return tuple(
        ColumnDrift(one.name, p, p <= 1 - confidence, _largest(one, now))
        for one, now, p in zip(names, kept, holm(found).tolist(), strict=True)
    )


def _largest(one: FrozenColumn, now: np.ndarray) -> str:
    """Where the shares of a column differ most."""
    before, after = (np.array(part) / max(np.sum(part), 1) for part in (one.counts, now))
    i = int(np.argmax(np.abs(after - before)))
    if i >= len(before) - (1 if one.edges is not None else 2):
        cell = "missing" if one.edges is not None or i == len(before) - 2 else "not seen before"
    elif one.edges is None:
        cell = str(one.values[i])
    else:
        low, high = (("", *(f"{x:.4g} < " for x in one.edges))[i],
                     (*(f" <= {x:.4g}" for x in one.edges), "")[i])  # fmt: skip
        cell = f"{low}x{high}"
    return f"{cell}: {before[i]:.0%} to {after[i]:.0%}"
