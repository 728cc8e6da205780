"""Which labels look wrong, and how many are: judged by the observations, no record by itself.

Predictions ``p`` ``[n, d]`` of the *given* labels, each made without the record's own label
(jgram/left_out.py), are where class overlap and label errors look the same. What tells them apart
is that errors stay where the prediction is sure:

    e(s)  share of labels that differ from the prediction among the surest share s by margin,
          within each predicted class

Lepski's rule takes the largest ``s <= 1/2`` whose ``e`` is within two standard errors of that of
every smaller share. Some hard records are still among those, and the fall of ``e`` from all records
to them goes on half as far: ``n e(s) sqrt(e(s) / e(1))`` errors by the surest predictions. Errors
at the boundary of two classes are hardly among those, and ``n e(1)`` counts them with every hard
record, so that the estimate is midway, ``n e``. Where the two are far apart, hard records and wrong
labels cannot be told apart and both numbers are said; only people who check some of the labels can
say more (``checked=``, jgram/audit.py). With ``off`` how often an error falls on each class (half
of them alike, half by the class shares), the probability that the label ``k`` of a record is wrong
is

    off_k = (1 / (d - 1) + min(share_k / (1 - share_k), 1)) / 2
    q_k ~ max(p_k - e off_k, p_k / 50)
    P   = e off_k (1 - q_k) / (e off_k (1 - q_k) + (1 - e) q_k)

A report of numbers is judged by its normal scores ``u`` and their predictions ``p``: a right one
lies around ``p`` (Student's law of 5 degrees, spread ``s``), a wrong one anywhere: half of them as
all numbers do, half alike between the smallest and the largest,

    off = (N(u) + 1 / (max u - min u)) / 2
    P   = e off / (e off + (1 - e) t5((u - p) / s) / s)

with ``e`` and ``s`` by maximum likelihood.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import jgram.display as display
from jgram.arrays import Int, float64
from jgram.audit import audit, audit_sample
from jgram.binding import (
    AS_GIVEN,
    Intake,
    bind_observations,
    input_finding,
    kind_of_reports,
    label_findings,
    leak_finding,
)
from jgram.counted import representatives
from jgram.data import check_aligned, drop_missing, encode_reports, find_leaks
from jgram.data.columns import Column, read, read_table, take
from jgram.data.labels import EncodedReports, Missing
from jgram.data.numbers import are_numbers, normal_scores
from jgram.display import Field, Line, Shown, Table, View
from jgram.findings import Finding
from jgram.kernels import Kernel, describe
from jgram.left_out import EXACT, predict_left_out, predict_numbers_left_out
from jgram.observed import Codes, Observed
from jgram.plots import curve_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CellIssues", "ClassSummary", "LabelIssues", "cell_issues", "label_issues"]

STUDENT = 8 / (3 * math.sqrt(5) * math.pi)  # density of Student's law of 5 degrees at 0
FAR_OFF = 2.57  # spreads, which 5% of right numbers exceed
SHARES = np.arange(1, 11) / 20  # of the surest predictions


@dataclass(frozen=True)
class ClassSummary:
    """What the records reported in one class look like.

    Attributes:
        name: Name of the class.
        count: Records reported so.
        issues: How many of them are among the issues.
        mean_wrong: Mean probability of a wrong label among them.
        confused_with: The class suggested most often for its issues; ``None`` without issues.
    """

    name: Any
    count: int
    issues: int
    mean_wrong: float
    confused_with: Any | None


@dataclass(frozen=True, eq=False)
class LabelIssues(Shown):
    """Every record's label judged by the observations; arrays ``[n]`` by row of the input.

    A record that was left out (no label, or no observation with ``missing="drop"``) has NaN and the
    code -1 in its row, and is not in ``order``.

    Attributes:
        name: The report.
        wrong: Probability that the label is wrong; 0 or 1 where somebody checked it.
        margin: Predicted probability of the label less that of the best other one: below 0 that
            one fits better.
        suggested: Code of that other class: the best alternative, for an issue or not.
        order: Rows, the most suspicious first.
        labels: Codes of the given labels.
        number: Estimate of the number of wrong labels: midway between that of the surest
            predictions and ``number_by_all``, or from the checked records where there are any.
        number_by_all: Labels that differ from their prediction. Hard records are in it too.
        interval: 95% interval of the number, from checked records; ``None`` without any.
        num_checked: How many records were checked.
        informative: Whether the observations predict the labels at all.
        conclusion: What the numbers are worth, in one or two sentences.
        classes: Names of the codes.
        observations: What the observations were taken for, in one line.
        findings: About the input.
        report_kind: ``"categories"``, or ``"numbers"``: ``classes`` are the numbers that occur,
            ``margin`` is less how many spreads a number is from its prediction, ``suggested`` the
            number nearest to that, and ``number_by_all`` counts those beyond 2.57 spreads.
    """

    SCHEMA: ClassVar[str] = "jgram/issues/1"
    name: str
    wrong: np.ndarray = field(repr=False, metadata={"dtype": "float64"})
    margin: np.ndarray = field(repr=False, metadata={"dtype": "float64"})
    suggested: np.ndarray = field(repr=False, metadata={"dtype": "int32"})
    order: np.ndarray = field(repr=False, metadata={"dtype": "int64"})
    labels: np.ndarray = field(repr=False, metadata={"dtype": "int32"})
    number: int
    number_by_all: int
    interval: tuple[int, int] | None
    num_checked: int
    informative: bool
    conclusion: str
    classes: tuple[Any, ...]
    observations: str
    findings: tuple[Finding, ...]
    report_kind: str = "categories"

    @property
    def num_records(self) -> int:
        """Records that were judged."""
        return len(self.order)

    @property
    def issues(self) -> np.ndarray:
        """Rows of as many records as labels are wrong, the most suspicious first."""
        return self.order[: self.number]

    def to_check(self, count: int = 50, seed: int = 0) -> np.ndarray:
        """Rows to check for the number of wrong labels, the most suspicious first.

        A random sample from every stretch of the order, denser where labels are suspicious. The
        first ``count`` of ``order`` find more errors; these say more about how many there are.
        """
        return self.order[audit_sample(len(self.order), count, seed)]

    def by_class(self) -> list[ClassSummary]:
        """One summary a class, the largest share of issues first; none of numbers."""
        if self.report_kind == "numbers":
            return []
        d, rows = len(self.classes), self.issues
        confusion = np.zeros((d, d), int)
        np.add.at(confusion, (self.labels[rows], self.suggested[rows]), 1)
        labels, wrong = self.labels[self.order], self.wrong[self.order]
        counts, issues = np.bincount(labels, minlength=d), confusion.sum(axis=1)
        wrong = np.bincount(labels, wrong, minlength=d) / counts
        return [
            ClassSummary(
                name=self.classes[k],
                count=int(counts[k]),
                issues=int(issues[k]),
                mean_wrong=float(wrong[k]),
                confused_with=self.classes[confusion[k].argmax()] if issues[k] else None,
            )
            for k in np.argsort(-issues / counts, kind="stable")
        ]

    def records(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The issues as rows for CSV or JSON, the most suspicious first, ``limit`` at most."""
        return display.records(self.listing(self.issues[:limit]))

    def listing(
        self,
        rows: Any = None,
        numbers: Any = None,
        beside: Sequence[Field] = (),
        caption: str = "Suspicious records, the worst first",
    ) -> Table:
        """Records to look at: the label of each, the other one, how surely it is wrong.

        Args:
            rows: Of the input; by default the issues.
            numbers: What they are called, by default as in the input.
            beside: More fields, of places in ``rows``.
            caption: What the records are.
        """
        rows = self.issues if rows is None else rows
        numbers = rows if numbers is None else numbers
        fields = [
            Field("row", lambda i: int(numbers[i]), keys=("row",)),
            Field("label", lambda i: self.classes[self.labels[rows[i]]], str, ("label",), True),
            Field("suggested", lambda i: self.classes[self.suggested[rows[i]]], str,
                  ("suggested",), True),
            Field("wrong", lambda i: float(self.wrong[rows[i]]), display.share, ("wrong",)),
            Field("", lambda i: float(self.margin[rows[i]]), keys=("margin",)),
        ]  # fmt: skip
        return Table(caption, range(len(rows)), [*fields, *beside], long=True)

    def table(self) -> Table:
        """One row a record, the most suspicious first."""
        return self.listing(self.order)

    def view(self, source: Mapping[str, Any] | None = None, listing: Table | None = None) -> View:
        """What was judged, how many labels are wrong, each class, the records to look at."""
        classes = Table(
            "Every class, the largest share of suspicious records first",
            self.by_class(),
            [
                Field("class", attrgetter("name"), str, name=True),
                Field("records", attrgetter("count")),
                Field("issues", attrgetter("issues")),
                Field("mean\nwrong", attrgetter("mean_wrong"), display.share),
                Field("mostly suggested", attrgetter("confused_with"), _or_nothing, name=True),
            ],
            long=True,
        )
        numbers = self.report_kind == "numbers"
        size = 0 if numbers else len(self.classes)
        head = display.judged(self.num_records, size, self.observations, source)
        listed = self.listing() if listing is None else listing
        return [*_head(self, head), *([] if numbers else [classes]), listed]

    def plot(self) -> "Figure":
        """All records in the order of suspicion: a matplotlib figure."""
        return curve_figure(self.wrong[self.order], self.number, self.interval, title=_CURVE)


_CURVE = "Probability that the label is wrong, the most suspicious record first"


def _head(found: "LabelIssues | CellIssues", lines: list[Line]) -> list[Line]:
    findings = map(display.finding_line, found.findings)
    return [*lines[:-1], *findings, Line(found.conclusion, "conclusion"), Line()]


def _or_nothing(value: Any) -> str:
    return "" if value is None else str(value)


def label_issues(
    x_hat: Any,
    y: Any,
    kernel: Kernel | str | None = None,
    intake: Intake = AS_GIVEN,
    *,
    name: str = "x_hat",
    columns: Any = None,
    checked: Mapping[Any, Any] | None = None,
    **options: Any,
) -> LabelIssues:
    """Rank records by how likely their label is wrong, and estimate how many are.

    Formulas at the top of this module; one pass over the kernel, and ridge regressions on it (on
    500 landmarks above 2,000 records). There are no ``weights``: a record is one row to look at,
    and copies of it would vouch for its label.

    Pass the columns or the embedding themselves where you have them: they find more errors than
    class probabilities that a model made of them. Where probabilities ``[n, d]`` are all there is,
    made out of fold, pass them with ``kernel="pseudo-posterior"``. On 13 tables with 20% of three
    kinds of errors the mean AUROC from probabilities of logistic regression and of 10 neighbours
    was .927 and .906 so; .909 and .890 without a kernel, which sees more of what the model learnt
    from the very labels; .926 and .903 for the self-confidence that cleanlab ranks by.

    Args:
        x_hat: Labels ``[n]`` of any type.
        y: Observations: a table of any columns, an embedding ``[n, k]``, or bound to a kernel
            already (:func:`jgram.observed.observe`).
        kernel: ``None`` takes what fits the observations
            (:func:`jgram.binding.bind_observations`).
        intake: How both are read (:class:`jgram.Intake`); nothing here takes its ``weights``,
            ``groups``, ``abstain``, ``block_length`` and ``mesh``.
        name: What messages call the report.
        columns: The observations as numbers ``[n, m]``, for predictor ``L``, where ``y`` is bound.
        checked: What somebody who looked found, by row: the right label, or ``True`` where the
            given label is right and ``False`` where it is wrong. The interval holds where the
            records to check were chosen before anybody looked, by the order of suspicion or at
            random, and later stretches of the order hold no larger share of errors.
        **options: Fields of ``intake`` by name, as ``missing=`` or ``kinds=``.

    Returns:
        :class:`LabelIssues`.

    Raises:
        ValueError: One class alone, a class with one record, an identifier for a report, checked
            rows or labels that do not exist, or labels and observations that do not fit.

    Example:
        >>> y = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 5.0, 5.1, 5.2, 5.3, 5.4])
        >>> found = label_issues(list("aaabaabbbb"), y)
        >>> found.order[:2].tolist()
        [3, 5]
        >>> found.classes[found.suggested[3]]
        'a'

    Reference: Lepski, *On a problem of adaptive estimation in Gaussian white noise*, 1991; Zou and
    Donner, *Construction of confidence limits about effect measures*, 2008, for the interval.
    """
    intake = replace(intake, **options)
    for unused in ("weights", "groups", "abstain"):
        if getattr(intake, unused) is not None:
            raise ValueError(
                f"expected no {unused}= for label issues: a record is one row to look at"
            )
    bound = _bind(name, x_hat, y, kernel, columns, intake)
    found, order = _judge(bound, name)
    labels, wrong, n, rows = found["labels"], found["wrong"], len(order), bound.rows
    place = {int(row): i for i, row in enumerate(rows)} if checked else {}
    names = found["classes"]
    known = _read_checks(
        checked or {}, place, bound.size, labels, names, bound.classes, bound.amounts
    )
    interval = None
    if known:
        looked, bad = np.zeros((2, n), bool)
        looked[list(known)] = True
        bad[[i for i, code in known.items() if code != labels[i]]] = True
        found["number"], interval = audit(looked[order], bad[order], wrong[order])
        found["conclusion"] = (
            f"{found['number']} of {n} labels are wrong by the {len(known)} that were checked (95% "
            f"interval {interval[0]} to {interval[1]})"
        )
        for i, code in known.items():
            wrong[i] = float(code != labels[i])
            if code >= 0 and code != labels[i]:
                found["suggested"][i] = code
        order = order[np.argsort(-wrong[order], kind="stable")]
    for key, absent in {"wrong": np.nan, "margin": np.nan, "suggested": -1, "labels": -1}.items():
        full = np.full(bound.size, absent, found[key].dtype)
        full[rows] = found[key]
        found[key] = full
    return LabelIssues(order=rows[order], interval=interval, num_checked=len(known), **found)


@dataclass(frozen=True, eq=False)
class CellIssues(Shown):
    """Distinct records judged, each standing for ``counts`` records of one label and observation.

    Attributes:
        name: The report.
        wrong: Probability that the label is wrong, ``[cells]``.
        margin: As of :class:`LabelIssues`.
        suggested: Code of the best other class.
        labels: Codes of the given labels.
        counts: Records of each.
        suspicious: How many records of each are among the issues: all but of the last one of them,
            of which it does not matter which are taken.
        number: Estimate of the number of wrong labels, as of :class:`LabelIssues`.
        number_by_all: Labels that differ from their prediction.
        informative: Whether the observations predict the labels at all.
        conclusion: What the numbers are worth.
        classes: Names of the codes.
        observations: What the observations were taken for, in one line.
        findings: About the input.
    """

    SCHEMA: ClassVar[str] = "jgram/cells/1"
    name: str
    wrong: np.ndarray = field(repr=False, metadata={"dtype": "float64"})
    margin: np.ndarray = field(repr=False, metadata={"dtype": "float64"})
    suggested: np.ndarray = field(repr=False, metadata={"dtype": "int32"})
    labels: np.ndarray = field(repr=False, metadata={"dtype": "int32"})
    counts: np.ndarray = field(repr=False, metadata={"dtype": "int64"})
    suspicious: np.ndarray = field(repr=False, metadata={"dtype": "int64"})
    number: int
    number_by_all: int
    informative: bool
    conclusion: str
    classes: tuple[Any, ...]
    observations: str
    findings: tuple[Finding, ...]

    def table(self, beside: Sequence[Field] = (), limit: int | None = None) -> Table:
        """The suspicious distinct records, the worst first.

        Args:
            beside: More fields, of places in ``labels``.
            limit: Rows at most.
        """
        order = np.lexsort((self.margin, -self.wrong))
        fields = [
            Field("records", lambda i: int(self.suspicious[i]), keys=("records",)),
            Field("label", lambda i: self.classes[self.labels[i]], str, ("label",), True),
            Field(
                "suggested", lambda i: self.classes[self.suggested[i]], str, ("suggested",), True
            ),
            Field("wrong", lambda i: float(self.wrong[i]), display.share, ("wrong",)),
            Field("", lambda i: float(self.margin[i]), keys=("margin",)),
        ]
        rows = order[self.suspicious[order] > 0][:limit].tolist()
        caption = "Suspicious distinct records, the worst first"
        return Table(caption, rows, [*fields, *beside], long=True)

    def view(self, source: Mapping[str, Any] | None = None, listing: Table | None = None) -> View:
        """What was judged, how many labels are wrong, the distinct records to look at."""
        n = int(self.counts.sum())
        head = display.judged(n, len(self.classes), self.observations, source)
        return [*_head(self, head), self.table() if listing is None else listing]

    def plot(self) -> "Figure":
        """All records in the order of suspicion: a matplotlib figure."""
        order = np.lexsort((self.margin, -self.wrong))
        last = np.cumsum(self.counts[order])
        return curve_figure(self.wrong[order], self.number, None, title=_CURVE, places=last)


def cell_issues(
    x_hat: Any,
    y: Any,
    counts: Int[np.ndarray, " n"],
    *,
    name: str = "x_hat",
    classes: Sequence[Any] | None = None,
) -> CellIssues:
    """:func:`label_issues` of distinct records of categories (:mod:`jgram.counted`) with counts.

    Args:
        x_hat: Labels ``[n]`` of any type, none missing.
        y: Categories, as in :func:`label_issues`, under the delta kernel.
        counts: How many records each row stands for.
        name: What messages call the report.
        classes: All possible labels, in order.

    Returns:
        :class:`CellIssues`.

    Raises:
        ValueError: As :func:`label_issues`.

    Example:
        >>> counts = np.array([90, 3, 5, 80])
        >>> found = cell_issues(["a", "b", "a", "b"], ["x", "x", "y", "y"], counts)
        >>> found.number, found.suspicious.tolist()
        (8, [0, 3, 5, 0])
    """
    counts = np.asarray(counts, np.int64)
    bound = _bind(
        name, x_hat, y, "delta", None, Intake(classes=classes, missing="raise", weights=counts)
    )
    found, order = _judge(bound, name, counts)
    suspicious = np.zeros_like(counts)
    before = np.cumsum(counts[order]) - counts[order]
    suspicious[order] = np.clip(found["number"] - before, 0, counts[order])
    return CellIssues(counts=counts, suspicious=suspicious, **found)


def _judge(
    bound: "_Bound", name: str, counts: np.ndarray | None = None
) -> tuple[dict[str, Any], np.ndarray]:
    """What all results hold of records, or of distinct ones with their counts, and their order."""
    if bound.amounts:
        return _judge_numbers(bound, name)
    present, labels = np.unique(bound.codes, return_inverse=True)
    classes = tuple(bound.classes[k] for k in present)
    rows = bound.rows if bound.numbers is None else bound.numbers[bound.rows]
    _refuse_single_classes(labels, classes, rows, name, counts)
    with float64():
        predicted, informative = _predict(bound, labels, counts)
    sure, everywhere = _disagreement(predicted, labels, counts)
    rate = (sure * informative + everywhere) / 2
    wrong = _probability_wrong(predicted, labels, rate, counts)
    suggested, margin = _alternatives(predicted, labels)
    n = len(labels) if counts is None else int(counts.sum())
    return {
        "name": name,
        "wrong": wrong,
        "margin": margin,
        "suggested": suggested.astype(np.int32),
        "labels": labels.astype(np.int32),
        "number": round(rate * n) if informative else 0,
        "number_by_all": round(everywhere * n),
        "informative": informative,
        "conclusion": _conclude(n, sure, everywhere, informative),
        "classes": classes,
        "observations": bound.description,
        "findings": bound.findings,
    }, np.lexsort((margin, -wrong))


def _judge_numbers(bound: "_Bound", name: str) -> tuple[dict[str, Any], np.ndarray]:
    """:func:`_judge` of a report of numbers, whose classes are the numbers that occur."""
    present, labels = np.unique(bound.codes, return_inverse=True)
    n, classes = len(labels), tuple(bound.classes[k] for k in present)
    if len(present) < 2:
        raise ValueError(f"{name}: expected numbers that differ, got {bound.classes[0]:g} alone")
    values = np.array(classes, float)[labels]
    u = normal_scores(Column(name, values, np.ones(n, bool), rows=bound.rows))
    u = (u - u.mean()) / u.std()
    levels = u[np.unique(labels, return_index=True)[1]]
    with float64():
        predicted, informative = predict_numbers_left_out(bound.observed, bound.columns, u)
    wrong, spread = _far_off(u, predicted)
    away, number = np.abs(u - predicted) / spread, round(float(wrong.sum())) * informative
    said = (
        f"about {number} of {n} numbers are wrong, as far as these observations tell: errors "
        "within the spread of right numbers are not seen"
    )
    suggested = np.searchsorted((levels[1:] + levels[:-1]) / 2, predicted)
    return {
        "name": name,
        "wrong": wrong,
        "margin": -away,
        "suggested": suggested.astype(np.int32),
        "labels": labels.astype(np.int32),
        "number": number,
        "number_by_all": int(np.sum(away > FAR_OFF)),
        "informative": informative,
        "conclusion": said if informative else _conclude(n, 0.0, 0.0, informative),
        "classes": classes,
        "observations": bound.description,
        "findings": bound.findings,
        "report_kind": "numbers",
    }, np.lexsort((-away, -wrong))


def _far_off(u: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, float]:
    """``P`` of the module's formula for numbers, and the spread of the right ones."""
    away = u - predicted
    spread, rate = max(1.4826 * float(np.median(np.abs(away))), 1e-3), 0.05
    among, flat = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi), 1 / max(float(np.ptp(u)), 1.0)
    anywhere, wrong = (among + flat) / 2, np.zeros(len(u))
    for _ in range(200):
        square = (away / spread) ** 2
        around = (1 - rate) * STUDENT / spread * (1 + square / 5) ** -3
        wrong = rate * anywhere / (rate * anywhere + around)
        weights = (1 - wrong) * 6 / (5 + square)
        rate = float(wrong.mean())
        spread = max(math.sqrt(float(weights @ away**2 / np.sum(1 - wrong))), 1e-3)
    return wrong, spread


def _alternatives(predicted: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best other class of every record, and the margin of its label above that."""
    rows = np.arange(len(labels))
    others = predicted.copy()
    others[rows, labels] = -1.0
    return others.argmax(axis=1), predicted[rows, labels] - others.max(axis=1)


@dataclass(frozen=True)
class _Bound:
    """Labels and observations of the records that are judged, and the rows they come from."""

    codes: np.ndarray
    classes: tuple[Any, ...]
    observed: Observed
    columns: np.ndarray | None
    description: str
    findings: tuple[Finding, ...]
    rows: np.ndarray
    size: int
    amounts: bool = False
    numbers: np.ndarray | None = None  # what rows are called, where not by their place


def _bind(name: str, x_hat: Any, y: Any, kernel: Any, columns: Any, intake: Intake) -> _Bound:
    """Labels encoded, records without one left out, the others' observations bound."""
    bound = isinstance(y, Observed)
    n = check_aligned({name: x_hat, "y": np.empty(y.size) if bound else y})
    rows, numbers = np.arange(n), getattr(x_hat, "rows", None)
    missing, weights = intake.missing, intake.weights
    if missing == "drop" and not bound:
        given, rows = drop_missing({name: x_hat, "y": y})
        x_hat, y = given[name], given["y"]
    kept: Any = "raise" if missing == "raise" else "keep"
    given = read(x_hat, name)
    amounts = not given.is_block and are_numbers({name: given}, kind_of_reports(intake))
    if amounts and kept == "raise":
        given.refuse_missing("numbers")
    encoded = (
        _as_classes(given)
        if amounts
        else encode_reports(
            {name: x_hat},
            classes=intake.classes,
            num_classes=intake.num_classes,
            missing=kept,
            weights=weights,
            merge=intake.merge,
        )
    )
    codes = encoded.codes[name]
    labelled = np.flatnonzero(codes >= 0)
    found = label_findings(encoded)
    if len(labelled) < n:
        found.append(_left_out(name, len(labelled), n, missing))
    if bound:
        if len(labelled) < n:
            raise ValueError(
                f"{name}: expected a label for every record of observations that are bound "
                f"already, got {len(labelled)} for {n}: pass the observations themselves"
            )
        observed, points = y, columns
        description = f"observations: kernel {describe(y.kernel)}"
    else:
        codes, rows = codes[labelled], rows[labelled]
        y = take(read_table(y, "y"), labelled)
        compared = codes.astype(float) if amounts else codes
        found += [leak_finding(*leak) for leak in find_leaks({name: compared}, y)]
        records = None if weights is None else float(weights.sum())
        observed, points, description, warnings = bind_observations(
            y, kernel, kinds=intake.kinds, scale=intake.scale, records=records
        )
        found += [input_finding(text) for text in warnings]
        points = points if columns is None else np.asarray(columns)[rows]
    points = None if points is None else np.asarray(points, np.float64)
    return _Bound(
        codes, encoded.classes, observed, points, description, tuple(found), rows, n, amounts,
        numbers,
    )  # fmt: skip


def _as_classes(given: Column) -> EncodedReports:
    """A report of numbers as the numbers that occur, and which of them each record has."""
    plain = given.plain
    codes = {given.name: plain.codes}
    return EncodedReports(codes, tuple(plain.factors[0]), np.arange(len(plain)))


def _left_out(name: str, judged: int, n: int, missing: Missing) -> Finding:
    lacking = f"a label of {name!r}" if missing == "keep" else "a value"
    return Finding(
        "missing",
        "note",
        f"{judged} of {n} records are judged, the others lack {lacking}",
        "rows are counted as in the input",
        judged,
    )


def _refuse_single_classes(
    labels: np.ndarray,
    names: tuple[Any, ...],
    rows: np.ndarray,
    report: str,
    weights: np.ndarray | None = None,
) -> None:
    counts = np.bincount(labels, weights)
    if len(names) == 1:
        raise ValueError(
            f"{report}: expected labels of two classes or more, got {names[0]!r} for every record, "
            "which no observation can speak against"
        )
    if (counts == 1).any():
        alone = int(np.argmax(counts == 1))
        raise ValueError(
            f"{report}: expected two records or more of every class, got one of {names[alone]!r} "
            f"(row {int(rows[np.argmax(labels == alone)])}), which nothing can be compared with: "
            "leave it out, or merge the class with another (merge='auto', --merge auto)"
        )


def _read_checks(
    checked: Mapping[Any, Any],
    place: Mapping[int, int],
    size: int,
    labels: np.ndarray,
    names: tuple[Any, ...],
    declared: tuple[Any, ...],
    numbers: bool = False,
) -> dict[int, int]:
    """The right code by record; -1 where the right one was not said, or never reported."""
    codes, found = {name: code for code, name in enumerate(names)}, {}
    for row, right in checked.items():
        if not isinstance(row, int | np.integer) or not 0 <= row < size:
            raise ValueError(f"checked: expected rows 0..{size - 1}, got {row!r}")
        if row not in place:
            raise ValueError(
                f"checked: expected rows that have a label, got {int(row)}, which is left out"
            )
        i = place[int(row)]
        if isinstance(right, bool | np.bool_) and not isinstance(names[0], bool | np.bool_):
            found[i] = int(labels[i]) if right else -1
        elif right in declared or (numbers and isinstance(right, int | float)):
            found[i] = codes.get(right, -1)
        else:
            raise ValueError(
                f"checked: expected one of the labels {', '.join(map(repr, declared[:8]))}, True "
                f"or False, got {right!r} for row {row}"
            )
    return found


def _predict(
    bound: _Bound, labels: np.ndarray, counts: np.ndarray | None
) -> tuple[np.ndarray, bool]:
    """Left-out predictions ``[n, d]``; of categories of many records once a distinct record."""
    observed = bound.observed
    alone = counts is not None or bound.columns is not None or len(labels) <= EXACT
    if alone or not isinstance(observed, Codes) or observed.num_outcomes > EXACT:
        return predict_left_out(observed, bound.columns, labels, counts)
    codes = np.asarray(observed.codes)
    kept = representatives([labels, codes], [int(labels.max()) + 1, observed.num_outcomes])
    distinct = replace(observed, codes=observed.codes[kept.first])
    counts = np.bincount(kept.place)
    found, informative = predict_left_out(distinct, None, labels[kept.first], counts)
    return found[kept.place], informative


def _disagreement(
    predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, float]:
    """The share of wrong labels by the surest predictions, and ``e(1)``."""
    w = np.ones(len(labels), np.int64) if weights is None else weights
    top = predicted.argmax(axis=1)
    two = np.partition(predicted, -2, axis=1)
    margin = two[:, -1] - two[:, -2]
    order = np.lexsort((-margin, top))
    counts = np.bincount(top, w, minlength=predicted.shape[1])
    before = np.empty(len(top))  # records of the same prediction that are surer
    before[order] = np.cumsum(w[order]) - w[order] - (np.cumsum(counts) - counts)[top[order]]
    differs = top != labels
    everywhere = float(w @ differs / w.sum())
    sure, smaller = everywhere, []
    for share in SHARES:
        inside = np.clip(np.floor(share * counts[top] + 0.5 - before + 1e-9), 0, w)
        if (size := inside.sum()) < 10:
            continue
        e = float(inside @ differs / size)
        if all(e - other <= 2 * math.sqrt(e * (1 - e) / m) for other, m in smaller):
            sure = e
        smaller.append((e, size))
    sure = min(sure, everywhere)
    return sure * math.sqrt(sure / everywhere) if sure > 0 else 0.0, everywhere


def _probability_wrong(
    predicted: np.ndarray, labels: np.ndarray, rate: float, weights: np.ndarray | None = None
) -> np.ndarray:
    """``P`` of the module's formula, at an error rate."""
    counts = np.bincount(labels, weights)
    share = counts / counts.sum()
    off = rate * (1 / (len(share) - 1) + np.minimum(share / (1 - share), 1.0)) / 2
    clean = np.maximum(predicted - off, predicted / 50)
    own = (clean / clean.sum(axis=1, keepdims=True))[np.arange(len(labels)), labels]
    wrong = off[labels] * (1 - own)
    return wrong / np.maximum(wrong + (1 - rate) * own, 1e-300)


def _conclude(n: int, sure: float, everywhere: float, informative: bool) -> str:
    if not informative:
        return (
            "these observations do not predict the labels: none can be called wrong, and the order "
            "means little"
        )
    said = f"about {round((sure + everywhere) / 2 * n)} of {n} labels are wrong"
    if everywhere > 1.5 * sure and (everywhere - sure) * n > 2 * math.sqrt(sure * n + 1):
        return (
            f"{said}: {round(sure * n)} by the surest predictions, {round(everywhere * n)} by all: "
            "these observations cannot tell hard records from wrong labels. Check 50 (to_check) "
            "and give what you find (checked)"
        )
    return said
