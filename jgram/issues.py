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
from typing import Any, ClassVar, NamedTuple

import numpy as np

import jgram.binding as binding
import jgram.display as display
from jgram.arrays import float64
from jgram.audit import audit, audit_sample
from jgram.binding import AS_GIVEN, Intake, kind_of_reports
from jgram.counted import representatives
from jgram.data import check_aligned, drop_missing, encode_reports, find_leaks
from jgram.data.columns import Column, read, read_table, take
from jgram.data.labels import EncodedReports
from jgram.data.numbers import are_numbers, normal_scores
from jgram.display import Field, Line, Shown, Table, View
from jgram.findings import Finding
from jgram.kernels import Delta, Kernel, describe
from jgram.left_out import EXACT, predict_left_out, predict_numbers_left_out
from jgram.observed import Codes, Observed
from jgram.plots import Figure, curve_figure

__all__ = ["ClassSummary", "LabelIssues", "label_issues"]

STUDENT = 8 / (3 * math.sqrt(5) * math.pi)  # density of Student's law of 5 degrees at 0
FAR_OFF = 2.57  # spreads, which 5% of right numbers exceed
SHARES = np.arange(1, 11) / 20  # of the surest predictions
NOTHING = (
    "these observations do not predict the labels: none can be called wrong, and the order means "
    "little"
)
ABSENT = {"wrong": np.nan, "margin": np.nan, "suggested": -1, "labels": -1}


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
        counts: Of distinct records how many records each row stands for; ``None`` where it is one.
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
    counts: tuple[int, ...] | None = field(default=None, repr=False)

    @property
    def num_records(self) -> int:
        """Records that were judged."""
        return int(self._counts[self.order].sum())

    @property
    def issues(self) -> np.ndarray:
        """Rows of as many records as labels are wrong, the most suspicious first."""
        return self.order[self.suspicious()[self.order] > 0]

    @property
    def _counts(self) -> np.ndarray:
        return np.ones(len(self.wrong), int) if self.counts is None else np.array(self.counts, int)

    def suspicious(self) -> np.ndarray:
        """How many records of each row are among the issues.

        All but of the last distinct one, of which it does not matter which are taken.
        """
        found, counts = np.zeros(len(self.wrong), int), self._counts[self.order]
        before = np.cumsum(counts) - counts
        found[self.order] = np.clip(self.number - before, 0, counts)
        return found

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
        d, rows, suspicious = len(self.classes), self.issues, self.suspicious()
        confusion = np.zeros((d, d), int)
        np.add.at(confusion, (self.labels[rows], self.suggested[rows]), suspicious[rows])
        labels, w = self.labels[self.order], self._counts[self.order]
        counts, issues = np.bincount(labels, w, d), confusion.sum(axis=1)
        wrong = np.bincount(labels, w * self.wrong[self.order], d) / counts
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
            numbers: What they are called, by default as in the input; of distinct records how many
                are suspicious.
            beside: More fields, of places in ``rows``.
            caption: What the records are.
        """
        rows = self.issues if rows is None else rows
        of = "row" if self.counts is None else "records"
        named = rows if self.counts is None else self.suspicious()[rows]
        numbers = named if numbers is None else numbers
        fields = [
            Field(of, lambda i: int(numbers[i]), keys=(of,)),
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
        fields = [
            Field("class", attrgetter("name"), str, name=True),
            Field("records", attrgetter("count")),
            Field("issues", attrgetter("issues")),
            Field("mean\nwrong", attrgetter("mean_wrong"), display.share),
            Field("mostly suggested", attrgetter("confused_with"),
                  lambda one: "" if one is None else str(one), name=True),
        ]  # fmt: skip
        caption = "Every class, the largest share of suspicious records first"
        size = 0 if self.report_kind == "numbers" else len(self.classes)
        return [
            *display.judged(self.num_records, size, self.observations, source)[:-1],
            *map(display.finding_line, self.findings),
            Line(self.conclusion, "conclusion"),
            Line(),
            Table(caption, self.by_class(), fields, long=True),
            self.listing() if listing is None else listing,
        ]

    def plot(self) -> Figure:
        """All records in the order of suspicion: a matplotlib figure."""
        title = "Probability that the label is wrong, the most suspicious record first"
        places = np.cumsum(self._counts[self.order])
        values = self.wrong[self.order]
        return curve_figure(values, self.number, self.interval, title=title, places=places)


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

    One pass over the kernel, and ridge regressions on it (on 500 landmarks above 2,000 records).
    Pass the columns or the embedding themselves where you have them: they find more errors than
    class probabilities that a model made of them; those, made out of fold, take
    ``kernel="pseudo-posterior"``.

    Args:
        x_hat: Labels ``[n]`` of any type.
        y: Observations: a table of any columns, an embedding ``[n, k]``, or bound to a kernel
            already (:func:`jgram.observed.observe`).
        kernel: ``None`` takes what fits the observations
            (:func:`jgram.binding.bind_observations`).
        intake: How both are read (:class:`jgram.Intake`), but for ``groups``, ``abstain``,
            ``block_length`` and ``mesh``. A record is one row to look at, and copies of it would
            vouch for its label: ``weights`` count distinct records, under the delta kernel alone.
        name: What messages call the report.
        columns: The observations as numbers ``[n, m]``, for predictor ``L``, where ``y`` is bound.
        checked: What somebody who looked found, by row: the right label, or ``True`` where the
            given label is right and ``False`` where it is wrong. The interval holds where the
            records to check were chosen before anybody looked (:mod:`jgram.audit`).
        **options: Fields of ``intake`` by name, as ``missing=`` or ``kinds=``.

    Raises:
        ValueError: One class alone, a class with one record, an identifier for a report, checked
            rows or labels that do not exist, or labels and observations that do not fit.

    Example:
        >>> y = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 5.0, 5.1, 5.2, 5.3, 5.4])
        >>> found = label_issues(list("aaabaabbbb"), y)
        >>> found.order[:2].tolist()
        [3, 5]

    Reference: Lepski, *On a problem of adaptive estimation in Gaussian white noise*, 1991.
    """
    bound = _bind(name, x_hat, y, kernel, columns, replace(intake, **options))
    found = _judge_numbers(bound) if bound.numbers else _judge(bound)
    order = np.lexsort((found.margin, -found.wrong))
    if checked:
        known = _read_checks(checked, bound)
        found, order = _believed(found, order, known)
    parts = {key: np.full(bound.size, absent, getattr(found, key).dtype)
             for key, absent in ABSENT.items()}  # fmt: skip
    for key, values in parts.items():
        values[bound.rows] = getattr(found, key)
    return replace(found, order=bound.rows[order], **parts)


def _judge(bound: "_Bound") -> LabelIssues:
    """Labels judged, in the order of the records that have one."""
    counts, labels = bound.counts, bound.labels
    n = int(counts.sum())
    with float64():
        predicted, informative = _predict(bound)
    sure, everywhere = _disagreement(predicted, labels, counts)
    rate = (sure * informative + everywhere) / 2
    rows, others = np.arange(len(labels)), predicted.copy()
    others[rows, labels] = -1.0
    return LabelIssues(
        **bound.about,
        wrong=_probability_wrong(predicted, labels, rate, counts),
        margin=predicted[rows, labels] - others.max(axis=1),
        suggested=others.argmax(axis=1).astype(np.int32),
        number=round(rate * n) if informative else 0,
        number_by_all=round(everywhere * n),
        informative=informative,
        conclusion=_conclude(n, sure, everywhere) if informative else NOTHING,
    )


def _judge_numbers(bound: "_Bound") -> LabelIssues:
    """:func:`_judge` of a report of numbers, whose classes are the numbers that occur."""
    n, labels, about = len(bound.labels), bound.labels, bound.about
    values = np.array(about["classes"], float)[labels]
    u = normal_scores(Column(about["name"], values, np.ones(n, bool), rows=bound.rows))
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
    return LabelIssues(
        **bound.about,
        wrong=wrong,
        margin=-away,
        suggested=suggested.astype(np.int32),
        number=number,
        number_by_all=int(np.sum(away > FAR_OFF)),
        informative=informative,
        conclusion=said if informative else NOTHING,
    )


def _believed(
    found: LabelIssues, order: np.ndarray, known: Mapping[int, int]
) -> tuple[LabelIssues, np.ndarray]:
    """What was found by hand, by record the right code, believed; the known wrong ones first."""
    n, rows, right = len(order), np.array([*known]), np.array([*known.values()])
    looked, bad = np.zeros((2, n), bool)
    looked[rows], bad[rows] = True, right != found.labels[rows]
    number, (low, high) = audit(looked[order], bad[order], found.wrong[order])
    said = (
        f"{number} of {n} labels are wrong by the {len(known)} that were checked (95% interval "
        f"{low} to {high})"
    )
    wrong, suggested = found.wrong.copy(), found.suggested.copy()
    wrong[rows] = bad[rows]
    told = bad[rows] & (right >= 0)
    suggested[rows[told]] = right[told]
    found = replace(
        found, wrong=wrong, suggested=suggested, number=number, interval=(low, high),
        num_checked=len(known), conclusion=said,
    )  # fmt: skip
    return found, order[np.argsort(-wrong[order], kind="stable")]


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


class _Bound(NamedTuple):
    """Labels and observations of the records that are judged."""

    labels: np.ndarray  # codes of the classes that occur
    observed: Observed
    columns: np.ndarray | None
    rows: np.ndarray  # of the input
    size: int  # of the input
    declared: tuple[Any, ...]
    counts: np.ndarray  # records that each stands for
    about: dict[str, Any]  # fields of the result

    @property
    def numbers(self) -> bool:
        """Whether the report is one of numbers."""
        return self.about["report_kind"] == "numbers"


def _bind(name: str, x_hat: Any, y: Any, kernel: Any, columns: Any, intake: Intake) -> _Bound:
    """Labels encoded, records without one left out, the others' observations bound."""
    plain = isinstance(kernel, Delta) or kernel == "delta"
    for unused in ("groups", "abstain", *([] if plain else ["weights"])):
        if getattr(intake, unused) is not None:
            raise ValueError(
                f"expected no {unused}= for label issues: a record is one row to look at"
            )
    bound = isinstance(y, Observed)
    n = check_aligned({name: x_hat, "y": np.empty(y.size) if bound else y})
    rows, called = np.arange(n), getattr(x_hat, "rows", None)
    if intake.missing == "drop" and not bound:
        given, rows = drop_missing({name: x_hat, "y": y})
        x_hat, y = given[name], given["y"]
    encoded, amounts = _encoded(read(x_hat, name), intake)
    codes, noted = encoded.codes[name], binding.label_findings(encoded)
    labelled = np.flatnonzero(codes >= 0)
    if len(labelled) < n:
        lacking = f"a label of {name!r}" if intake.missing == "keep" else "a value"
        said = f"{len(labelled)} of {n} records are judged, the others lack {lacking}"
        advice = "rows are counted as in the input"
        noted.append(Finding("missing", "note", said, advice, len(labelled)))
    codes, rows = codes[labelled], rows[labelled]
    counted = intake.weights is not None
    counts = np.asarray(intake.weights, np.int64)[rows] if counted else np.ones(len(rows), int)
    if bound:
        if len(labelled) < n:
            raise ValueError(
                f"{name}: expected a label for every record of observations that are bound "
                f"already, got {len(labelled)} for {n}: pass the observations themselves"
            )
        observed, points, description = y, None, f"observations: kernel {describe(y.kernel)}"
    else:
        y = take(read_table(y, "y"), labelled)
        compared = codes.astype(float) if amounts else codes
        noted += [binding.leak_finding(*leak) for leak in find_leaks({name: compared}, y)]
        records = float(counts.sum()) if counted else None
        observed, points, description, warnings = binding.bind_observations(
            y, kernel, kinds=intake.kinds, scale=intake.scale, records=records
        )
        noted += [binding.input_finding(text) for text in warnings]
    points = points if columns is None else np.asarray(columns)[rows]
    points = None if points is None else np.asarray(points, np.float64)
    present, labels = np.unique(codes, return_inverse=True)
    about = {
        "name": name, "order": rows, "labels": labels.astype(np.int32), "interval": None,
        "num_checked": 0, "classes": tuple(encoded.classes[k] for k in present),
        "observations": description, "findings": tuple(noted),
        "report_kind": "numbers" if amounts else "categories",
        "counts": tuple(counts.tolist()) if counted else None,
    }  # fmt: skip
    found = _Bound(labels, observed, points, rows, n, encoded.classes, counts, about)
    _refuse_alone(found, rows if called is None else called[rows])
    return found


def _encoded(given: Column, intake: Intake) -> tuple[EncodedReports, bool]:
    """Codes of the labels, of a report of numbers which of those that occur, and whether it is."""
    kept: Any = "raise" if intake.missing == "raise" else "keep"
    amounts = not given.is_block and are_numbers({given.name: given}, kind_of_reports(intake))
    if not amounts:
        return encode_reports(
            {given.name: given}, classes=intake.classes, num_classes=intake.num_classes,
            missing=kept, weights=intake.weights, merge=intake.merge,
        ), False  # fmt: skip
    if kept == "raise":
        given.refuse_missing("numbers")
    if intake.weights is not None:
        raise ValueError(f"{given.name}: expected labels for weights=, got numbers")
    plain = given.plain
    codes = {given.name: plain.codes}
    return EncodedReports(codes, tuple(plain.factors[0]), np.arange(len(plain))), True


def _refuse_alone(bound: _Bound, called: np.ndarray) -> None:
    """Say which class nothing can be compared with, of records by what they are called."""
    report, classes = bound.about["name"], bound.about["classes"]
    first = classes[0]
    if len(classes) == 1 and bound.numbers:
        raise ValueError(f"{report}: expected numbers that differ, got {first:g} alone")
    if len(classes) == 1:
        raise ValueError(
            f"{report}: expected labels of two classes or more, got {first!r} for every record, "
            "which no observation can speak against"
        )
    counts = np.bincount(bound.labels, bound.counts)
    if not bound.numbers and (counts == 1).any():
        alone = int(np.argmax(counts == 1))
        row = int(called[np.argmax(bound.labels == alone)])
        raise ValueError(
            f"{report}: expected two records or more of every class, got one of "
            f"{classes[alone]!r} (row {row}), which nothing can be compared with: leave it "
            "out, or merge the class with another (merge='auto', --merge auto)"
        )


def _read_checks(checked: Mapping[Any, Any], bound: _Bound) -> dict[int, int]:
    """The right code by record; -1 where the right one was not said, or never reported."""
    place = {int(row): i for i, row in enumerate(bound.rows)}
    classes, declared, found = bound.about["classes"], bound.declared, {}
    codes = {name: code for code, name in enumerate(classes)}
    verdicts = not isinstance(classes[0], bool | np.bool_)
    for row, right in checked.items():
        if not isinstance(row, int | np.integer) or not 0 <= row < bound.size:
            raise ValueError(f"checked: expected rows 0..{bound.size - 1}, got {row!r}")
        if row not in place:
            raise ValueError(
                f"checked: expected rows that have a label, got {int(row)}, which is left out"
            )
        i = place[int(row)]
        if isinstance(right, bool | np.bool_) and verdicts:
            found[i] = int(bound.labels[i]) if right else -1
        elif right in declared or (bound.numbers and isinstance(right, int | float)):
            found[i] = codes.get(right, -1)
        else:
            raise ValueError(
                f"checked: expected one of the labels {', '.join(map(repr, declared[:8]))}, True "
                f"or False, got {right!r} for row {row}"
            )
    return found


def _predict(bound: _Bound) -> tuple[np.ndarray, bool]:
    """Left-out predictions ``[n, d]``; of categories once a distinct record."""
    observed, labels, counts = bound.observed, bound.labels, bound.counts
    if bound.columns is not None or not isinstance(observed, Codes):
        return predict_left_out(observed, bound.columns, labels)
    if observed.num_features > EXACT:
        return predict_left_out(observed, None, labels, counts if bound.about["counts"] else None)
    codes = np.asarray(observed.points)
    kept = representatives([labels, codes], [int(labels.max()) + 1, observed.num_features])
    distinct = replace(observed, points=observed.points[kept.first])
    counts = np.bincount(kept.place, counts)
    found, informative = predict_left_out(distinct, None, labels[kept.first], counts)
    return found[kept.place], informative


def _disagreement(predicted: np.ndarray, labels: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """The share of wrong labels by the surest predictions, and ``e(1)``."""
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
    predicted: np.ndarray, labels: np.ndarray, rate: float, weights: np.ndarray
) -> np.ndarray:
    """``P`` of the module's formula, at an error rate."""
    counts = np.bincount(labels, weights)
    share = counts / counts.sum()
    off = rate * (1 / (len(share) - 1) + np.minimum(share / (1 - share), 1.0)) / 2
    clean = np.maximum(predicted - off, predicted / 50)
    own = (clean / clean.sum(axis=1, keepdims=True))[np.arange(len(labels)), labels]
    wrong = off[labels] * (1 - own)
    return wrong / np.maximum(wrong + (1 - rate) * own, 1e-300)


def _conclude(n: int, sure: float, everywhere: float) -> str:
    said = f"about {round((sure + everywhere) / 2 * n)} of {n} labels are wrong"
    if everywhere > 1.5 * sure and (everywhere - sure) * n > 2 * math.sqrt(sure * n + 1):
        return (
            f"{said}: {round(sure * n)} by the surest predictions, {round(everywhere * n)} by all: "
            "these observations cannot tell hard records from wrong labels. Check 50 (to_check) "
            "and give what you find (checked)"
        )
    return said
