"""Drift: what reports earn tonight beside a baseline, by the baseline's own scorer.

What a report keeps is relative to the best one: where all get worse alike it does not move. A
baseline therefore keeps its scorer. With ``phi`` random features of the table kernel, centred at
the baseline, and :mod:`jgram.contrasts`' scorer at the mean report,

    h(y) = phi(y) W,    W = phi^T zt / n  Re(G + i tau D)^-1,    payoff[l] = h(y) . (z_l - q_l),

``W``, ``q``, and how columns become ``phi``, are the baseline's. Its own mean payoffs leave out
each record itself; tonight's records were never in it: the two means are of the same thing, and
share what the scorer has of chance. A share ``e`` of the labels replaced at random takes ``e`` of
what a report earns. Whether other things are observed is told by the means of ``phi`` in its first
principal directions (a chi-squared test), and for every column by the shares of its bins.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar

import jax
import numpy as np
from jax.scipy.special import gammaincc
from jax.scipy.stats import norm

import jgram.display as display
from jgram.arrays import float64
from jgram.comparisons import holm, mean_covariance, normal_quantile, retention
from jgram.contrasts import one_pair, payoffs_of_pairs, products, scorer_of, scorers_at
from jgram.data import check_aligned, encode_reports, prepare_table, quantile_bins, to_json
from jgram.data.columns import Column, listing, named_columns, read, read_table, show
from jgram.data.features import Block, Category, Number
from jgram.data.table import ColumnKind, is_text
from jgram.display import Field, Line, Shown, Table, View
from jgram.kernels import RandomFeatures
from jgram.observed import Features
from jgram.plots import MARK, WORSE, Figure, shares_figure
from jgram.table_kernel import TableKernel

__all__ = [
    "Baseline", "ColumnDrift", "Drift", "FrozenColumn", "ReportDrift", "fit_baseline",
    "measure_drift",
]  # fmt: skip

_VECTOR, _MATRIX = ({"dtype": "float64", "ndim": ndim} for ndim in (1, 2))
_SHARES, _YES = display.in_brackets(".0%"), {True: "yes", False: "no"}.__getitem__
_FEATURES = 1024
_DIRECTIONS = 32  # in which the observations are compared
_KNOTS = 512  # of a number's scale that are kept
_BINS = 10  # of a number, in which its shares are compared


@dataclass(frozen=True)
class FrozenColumn:
    """How a column of the observations became numbers, and how often it held what.

    Attributes:
        fitted: What it was found to be.
        edges: Between the bins of a number; ``None`` for any other column.
        counts: Records in each bin or level, then without a value, then of no known level.
    """

    fitted: Number | Category | Block
    edges: tuple[float, ...] | None = None
    counts: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """The column."""
        return self.fitted.label

    def points(self, given: Column) -> np.ndarray:
        """What tonight's cells become ``[n, k]``."""
        return self.fitted(given.plain if isinstance(self.fitted, Number) else given)

    def counted(self, given: Column, weights: np.ndarray) -> np.ndarray:
        """Records of tonight in each bin or level."""
        if isinstance(self.fitted, Category):
            cells, size = self.fitted.rows(given), len(self.fitted.points)
        else:
            edges, given = self.edges or (), given.plain
            cells, size = np.full(len(given), len(edges) + 1), len(edges) + 2
            cells[given.present] = np.searchsorted(edges, given.values, side="left")
        return np.bincount(cells, weights, minlength=size)


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
        points = [one.points(columns[one.name]) for one in self.columns]
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
        worse = [one for one in self.reports if one.worse]
        said = ", ".join(f"{x.name} (earns {_SHARES(_interval(x))} of what it did)" for x in worse)
        verb = "is" if len(worse) == 1 else "are"
        found = f"{said} {verb} worse" if worse else "No report is worse"
        names = ", ".join(one.name for one in self.columns if one.changed)
        also = f"; the observations changed{f' ({names})' if names else ''}"
        return f"{found} than in the baseline{also if self.observations_changed else ''}."

    def table(self) -> Table:
        """One row a report."""
        fields = [
            Field("report", attrgetter("name"), keys=("report",), name=True),
            Field(f"earns of baseline\n{self.confidence:.0%} interval", _interval, _SHARES,
                  ("earns", "earns_low", "earns_high")),
            Field("p of\nno worse", attrgetter("p_value"), display.p_value, ("p_value",)),
            Field("worse", attrgetter("worse"), _YES, ("worse",)),
            Field("labels never\nseen before", attrgetter("unknown"), "{:g}".format, ("unknown",)),
        ]  # fmt: skip
        return Table("What every report earns, beside the baseline", self.reports, fields)

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """The reports, the observations, what follows."""
        fields = [
            Field("observation", attrgetter("name"), name=True),
            Field("changed", attrgetter("changed"), _YES),
            Field("p", attrgetter("p_value"), display.p_value),
            Field("largest change", attrgetter("largest"), name=True),
        ]
        joint = display.p_value(self.observations_p_value)
        return [
            Line(f"{self.num_records:g} records beside {self.baseline_records:g} of the baseline"),
            Line(),
            self.table(),
            Table("Observations beside the baseline", self.columns, fields),
            Line(f"p of observations as they were, jointly: {joint}", "aside"),
            Line(self.conclusion, "conclusion"),
        ]

    def plot(self) -> Figure:
        """What every report earns: a matplotlib figure."""
        colours = [WORSE if one.worse else MARK for one in self.reports]
        return shares_figure(
            *zip(*((one.name, one.earns, one.interval) for one in self.reports), strict=True),
            title=f"Earns of what it earned in the baseline, {self.confidence:.0%} intervals",
            absent="earned nothing",
            marks=[(colour, colour) for colour in colours],
        )


def _interval(one: ReportDrift) -> tuple[float | None, ...]:
    return one.earns, *(one.interval or (None, None))


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
    frozen = tuple(_frozen(columns, w, kinds))
    points = np.column_stack([one.points(columns[one.name]) for one in frozen])
    kernel = TableKernel.of(points, sum(len(one.fitted.names) for one in frozen if one.counts))
    kernel = kernel.random_features(jax.random.key(0), num_features)
    z = _filled(np.stack([*encoded.codes.values()]), len(encoded.classes))
    paid, away, trained = _trained(kernel, points, z, kept := w * z[0].any(axis=1))
    spread = [_mean(part, kept, groups)[1] for part in (away @ trained["directions"]).T]
    each = [*zip(encoded.codes.items(), z, paid, strict=True)]
    return Baseline(
        classes=tuple(map(str, encoded.classes)),
        edges=edges,
        columns=frozen,
        shares={label: _floats(kept @ one / kept.sum()) for (label, _), one, _ in each},
        earned={label: _mean(v, w * (codes >= 0), groups) for (label, codes), _, v in each},
        variances=np.array(spread),
        num_records=float(w.sum()),
        **trained,
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
        baseline: From :func:`fit_baseline` or :func:`jgram.load`; every report and every column of
            it is asked for.
        reports, y, weights, groups: As there.
        confidence: Of all statements on reports together, and of those on observations.

    Raises:
        ValueError: A report or a column that is not there, or of another kind.
    """
    named, columns, w, groups = _night(reports, y, weights, groups)
    for name in [*baseline.earned, *(one.name for one in baseline.columns)]:
        if name not in named and name not in columns:
            got = listing([*named, *columns])
            raise ValueError(f"{name}: expected this column of the baseline, there are {got}")
    away = baseline.seen(columns)
    quantile = normal_quantile(1 - (1 - confidence) / len(baseline.earned))
    found = []
    for name, (before, variance, _) in baseline.earned.items():
        codes, present = baseline.codes(name, named[name])
        now, new, size = _mean(baseline.paid(away, name, codes), w * present, groups)
        with float64():
            share = retention(np.array([before, now]), np.diag([variance, new]), quantile)
        p = float(norm.cdf((now - before) / np.sqrt(max(variance + new, 1e-300))))
        ratio, *interval = map(float, (share.ratio, share.lower, share.upper))
        known: Any = (ratio, tuple(interval)) if share.estimable else (None, None)
        unknown = float(w @ (present & (codes < 0)))
        found.append(ReportDrift(name, known[0], known[1], p, False, size, unknown))
    adjusted = holm([one.p_value for one in found]).tolist()
    changes = _column_drifts(baseline, columns, w, confidence)
    joint = _joint(baseline, away, w, groups)
    told = tuple(
        replace(one, p_value=p, worse=p <= 1 - confidence)
        for one, p in zip(found, adjusted, strict=True)
    )
    changed = 2 * min([joint, *(one.p_value for one in changes)]) <= 1 - confidence
    records = float(w.sum()), baseline.num_records
    return Drift(told, changes, joint, changed, confidence, *records)


# --------------------------------------------------------------------------------------------


def _frozen(columns: Mapping[str, Any], w: np.ndarray, kinds: Any) -> Iterator[FrozenColumn]:
    """Every column that says something as it was fitted, blocks behind the others."""
    asked = {label: kind for label, kind in (kinds or {}).items() if label in columns}
    for label, given in columns.items():
        if given.plain.kind in ("date", "duration"):
            asked[label] = "ignore"
        text = is_text(given) and not given.measured
        if asked.get(label, "text" if text else None) == "text":
            raise ValueError(
                f"{label}: expected numbers and categories in a baseline, got texts: give their "
                f"embeddings, or leave them out (--kind {label}=ignore)"
            )
    if all(asked.get(label) == "ignore" for label in columns):
        raise ValueError(f"y: expected a column to observe beside dates, got {listing(columns)}")
    plain = {x: one if asked.get(x) == "category" else one.plain for x, one in columns.items()}
    fitted: Mapping[str, Any] = prepare_table(plain, kinds=asked).columns
    for label, one in fitted.items():
        edges = None
        if isinstance(one, Number) and one.scores is not None:
            cuts = np.quantile(plain[label].values.astype(float), np.arange(1, _BINS) / _BINS)
            kept = np.unique(np.linspace(0, len(one.levels) - 1, _KNOTS).astype(int))
            one = replace(one, levels=one.levels[kept].astype(float), scores=one.scores[kept])
            edges = _floats(np.unique(cuts))
        elif isinstance(one, Category):  # by texts, as JSON has them
            one = replace(one, place={str(level): row for level, row in one.place.items()})
        found = FrozenColumn(one, edges)
        counts = () if isinstance(one, Block) else found.counted(columns[label], w)
        yield replace(found, counts=_floats(counts))


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(map(float, values))


def _binned(given: Column, edges: Sequence[float]) -> Column:
    if given.values.dtype.kind not in "biuf":
        got = show(given.values[0]) if len(given.values) else "nothing"
        raise ValueError(f"{given.name}: expected numbers as in the baseline, got {got}")
    codes = np.full(len(given), -1)
    codes[given.present] = np.searchsorted(edges, given.values, side="left")
    return Column.of_codes(given.name, list(range(len(edges) + 1)), codes)


def _filled(codes: np.ndarray, d: int) -> np.ndarray:
    """Reports as matrices ``[k, n, d]``; a missing label is the mean of the other reports'."""
    z = np.eye(d + 1)[codes][..., :d]
    labelled = np.maximum((codes >= 0).sum(axis=0), 1)
    return np.where((codes >= 0)[..., None], z, z.sum(axis=0) / labelled[:, None])


def _trained(kernel: Any, points: np.ndarray, z: np.ndarray, kept: np.ndarray) -> Any:
    """Payoffs, the features about their mean, and what a baseline keeps of both."""
    with float64():
        phi = np.asarray(kernel.features(points))
        found = products(Features(phi, kernel), z, weights=kept)
        paid = payoffs_of_pairs(found, np.arange(len(z))[None])
        _, scorer = scorers_at(found, np.arange(len(z))[None])
        scorer = np.real(np.asarray(scorer_of(one_pair(scorer, 0))))
    mean, middle = kept @ phi / kept.sum(), z.mean(axis=0)
    away, centred = phi - mean, middle - kept @ middle / kept.sum()
    sums = away.T @ (kept[:, None] * centred) / kept.sum()
    squares, vectors = np.linalg.eigh(away.T @ (kept[:, None] * away))
    trained = {
        "frequencies": np.asarray(kernel.frequencies), "mean": mean, "scorer": sums @ scorer,
        "feature_weights": np.asarray(kernel.weights), "center": np.asarray(kernel.center),
        "directions": vectors[:, squares > 1e-6 * squares[-1]][:, -_DIRECTIONS:],
    }  # fmt: skip
    return np.asarray(paid.values[0]), away, trained


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
    baseline: Baseline, columns: Mapping[str, Column], w: np.ndarray, confidence: float
) -> tuple[ColumnDrift, ...]:
    found, frozen = [], [one for one in baseline.columns if one.counts]
    tables = [np.array([one.counts, one.counted(columns[one.name], w)]) for one in frozen]
    for table in tables:
        table = table[:, table.sum(axis=0) > 0]
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        statistic, degrees = np.sum((table - expected) ** 2 / expected), table.shape[1] - 1
        found.append(float(gammaincc(degrees / 2, statistic / 2)) if degrees else 1.0)
    return tuple(
        ColumnDrift(one.name, p, p <= 1 - confidence, _largest(one, table))
        for one, table, p in zip(frozen, tables, holm(found).tolist(), strict=True)
    )


def _largest(one: FrozenColumn, table: np.ndarray) -> str:
    """Where the shares of a column differ most."""
    before, after = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    if isinstance(one.fitted, Category):
        cells = [*map(str, one.fitted.place), "missing", "not seen before"]
    else:
        cuts = [f"{x:.4g}" for x in one.edges or ()]
        lows, highs = ["", *(f"{x} < " for x in cuts)], [*(f" <= {x}" for x in cuts), ""]
        cells = [*(f"{low}x{high}" for low, high in zip(lows, highs, strict=True)), "missing"]
    i = int(np.argmax(np.abs(after - before)))
    return f"{cells[i]}: {before[i]:.0%} to {after[i]:.0%}"
