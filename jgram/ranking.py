"""What is said of reports: a score, a pair, a ranking, and how each shows itself.

Results of :mod:`jgram.report`, which makes them; nothing is judged here.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

import jgram.display as display
from jgram.comparisons import ESTIMABLE
from jgram.display import Field, Line, Shown, Table, View
from jgram.findings import Finding
from jgram.plots import MARK, PAPER, Figure, intervals_figure, shares_figure
from jgram.slices import Slices

__all__ = ["CLASSES", "RECORDS", "PairComparison", "PairReading", "RankedReport", "Ranking",
           "ScoreReport", "StratumKeeps", "Taken"]  # fmt: skip

AFFORDABLE = 20  # times as many records as there are, beyond which nobody collects them
MOST_UNDECIDED = 2  # pairs that are spoken of one by one
MOST_TAKEN = 10  # rows of classes that a terminal shows
MOST_READINGS = 9  # that are shown where there is little room
CLASSES, RECORDS = "classes", "records"  # that weigh alike
_NONE = (None, None)


def _field(key: str, head: str = "", text: Callable[[Any], str] = str, **more: Any) -> Field:
    """An attribute of a row, which has its name in frames."""
    return Field(head, attrgetter(key), text, (key,), **more)


def _names(key: str, of: Callable[[Any], Any] = lambda row: row) -> Field:
    """An attribute that is a name, the same above the column and in frames."""
    return Field(key, lambda row: getattr(of(row), key), keys=(key,), name=True)


def _optional(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """A number in words, nothing where there is none."""
    return lambda value: "" if value is None else text(value)


def _roughly(number: float) -> str:
    """A number of two digits that count."""
    return f"{float(f'{number:.2g}'):,.0f}"


def _kept_field(head: str, key: str, of: Callable[[Any], Any] = lambda row: row) -> Field:
    """A share, with its interval."""

    def values(row: Any) -> tuple[Any, ...]:
        one = of(row)
        low_high = getattr(one, f"{key}_interval") or _NONE
        return (getattr(one, key), *low_high, getattr(one, f"{key}_features_error", None))

    return Field(head, values, _kept, (key, f"{key}_low", f"{key}_high"))


@dataclass(frozen=True)
class ScoreReport(Shown):
    """The plug-in Gram determinant score of one report, with all that belongs to it.

    Attributes:
        name: The report.
        log_score: Natural logarithm of the score; ``None`` where the score is 0.
        score: ``exp(log_score)``; ``None`` where that is below the range of a float.
        counts_log_score: ``log_score + 2 d log n``, the scale of Table 1 of the paper (counts
            instead of shares); grows with ``n``, for comparison with published figures only.
        standard_error: Standard error of the log score; ``None`` where there is none.
        interval: Interval of the log score.
        confidence: Confidence level of the interval.
        bias: Jackknife estimate for the log score, not subtracted; ``None`` where it cannot be
            told.
        gram_rank: Numerical rank of the Gram matrix; the score is 0 below ``num_classes``.
        seen: ``d`` classes can differ in ``d - 1`` independent ways: two in one, and a third from
            both in one more. In how many of these the observations of records reported in different
            classes differ, no record speaking for itself. Where it is far below ``d - 1``, most of
            the score is the volume of noise.
        noise_p_value: P-value of "this report has nothing to do with the observations".
        normalised_score: ``d * score^(1 / 2d)``: 1 for perfect reports of balanced classes under
            perfectly separating observations.
        hadamard_ratio: ``det G / prod(G_kk)`` in [0, 1]: 1 where classes' observations share
            nothing.
        num_records: ``n``, the records with a label, or their total frequency.
        class_counts: Class name to number of records reported so; empty for a report of numbers.
        kernel: The kernel in words, with its bandwidth.
        observations: What they are and how they were read, in words.
        findings: What to know before acting, the gravest first.
        log_score_features_error: What random features add to the error of the log score, half an
            interval at ``confidence``; ``None`` where the kernel is exact.
    """

    SCHEMA: ClassVar[str] = "jgram/score/1"
    name: str
    log_score: float | None
    score: float | None
    counts_log_score: float | None
    standard_error: float | None
    interval: tuple[float, float] | None
    confidence: float
    bias: float | None
    gram_rank: int
    seen: float
    noise_p_value: float
    normalised_score: float
    hadamard_ratio: float
    num_records: int | float
    class_counts: dict[Any, int | float]
    kernel: str
    observations: str
    findings: tuple[Finding, ...]
    log_score_features_error: float | None = None

    @property
    def classes(self) -> tuple[Any, ...]:
        """The class names, in order."""
        return tuple(self.class_counts)

    @property
    def num_classes(self) -> int:
        """``d``."""
        return len(self.class_counts)

    @property
    def reason(self) -> str | None:
        """Why there is no score, or ``None`` where there is one."""
        fatal = [finding for finding in self.findings if finding.level == "fatal"]
        return fatal[0].message if fatal else None

    @property
    def conclusion(self) -> str:
        """The number, or why there is none."""
        if self.reason is not None:
            return f"No score: {self.reason}."
        return f"The published log score of {self.name} is {_plus_minus(_log_score(self))}."

    def table(self, *, counts_scale: bool = False) -> Table:
        """One row."""
        hidden = map(_field, (
            "standard_error", "normalised_score", "hadamard_ratio", "seen", "noise_p_value",
            "num_records", "num_classes", "reason",
        ))  # fmt: skip
        name = Field("report", attrgetter("name"), keys=("report",), name=True)
        fields = [name, *_published_fields(self, counts_scale), *hidden]
        return Table("The published score", [self], fields)

    def view(self, source: Mapping[str, Any] | None = None, *, counts_scale: bool = False) -> View:
        """What was judged, the number, how far it may be trusted."""
        amounts = ", ".join(f"{name} {count:g}" for name, count in self.class_counts.items())
        d = self.num_classes
        lines = [f"records of each class: {amounts}"] if d else [display.NUMBERS]
        if self.reason is None and not d:
            lines.append(f"p of noise {self.noise_p_value:.2g}")
        elif self.reason is None:
            lines += [
                f"normalised score {self.normalised_score:.3f}, Hadamard ratio "
                f"{self.hadamard_ratio:.3g} (both from 0 to 1)",
                f"the observations show {min(max(self.seen, 0), d - 1):.1f} of the {d - 1} "
                f"way{'s' * (d != 2)} in which the classes differ; p of noise "
                f"{self.noise_p_value:.2g}",
            ]
        judged = (self.num_records, d, self.observations, source, f"kernel {self.kernel}")
        return [
            *display.judged(*judged),
            self.table(counts_scale=counts_scale),
            *map(Line, lines),
            *map(display.finding_line, self.findings),
            Line(self.conclusion, "conclusion"),
        ]

    def plot(self) -> Figure:
        """The picture that ``jgram score --plot`` draws: a matplotlib figure."""
        title = f"Published log score, {self.confidence:.0%} interval"
        shown = [self.name], [self.log_score], [self.interval]
        return intervals_figure(*shown, title=title, absent="no score")


@dataclass(frozen=True)
class StratumKeeps:
    """What the worse report of a pair keeps where the observations are about as sure.

    Attributes:
        share: Of the records.
        keeps: Payoff of the worse report over that of the better one; ``None`` where that is not
            above 0.
        standard_error: Of ``keeps``.
    """

    share: float
    keeps: float | None
    standard_error: float | None


@dataclass(frozen=True)
class PairReading:
    """What one kind of evidence says of a pair.

    Attributes:
        kind: ``"observations"``, ``"other reports"``, ``"gold"`` or ``"checked records"``.
        keeps: What the worse report keeps of the better one, by this kind alone; ``None`` where it
            pays neither of them enough to say.
        keeps_interval: Interval of it, for this pair and kind alone; of the other reports with what
            reports share with one another.
        p_value: Two-sided p-value of "these two reports might be swapped".
        rows_needed: Of right labels, how many like these in all would tell the two apart with a
            probability of 80%; ``None`` where they do, or for other kinds.
    """

    kind: str
    keeps: float | None
    keeps_interval: tuple[float, float] | None
    p_value: float
    rows_needed: float | None = None


@dataclass(frozen=True)
class Taken:
    """Records of which two reports say two classes.

    Attributes:
        better_class: The class that the better report of a pair says.
        worse_class: The class that the other one says.
        count: Records, or their total frequency.
        share: Of those of which the better one says this.
    """

    better_class: Any
    worse_class: Any
    count: int | float
    share: float


@dataclass(frozen=True)
class PairComparison(Shown):
    """Two reports of the same records, compared at their own midpoint.

    Attributes:
        better: Name of the report that is paid more.
        worse: Name of the other.
        retention: How far the worse report's labels go with what was observed, as a share of how
            far the better one's do; ``None`` where it is not estimable.
        retention_interval: Fieller's interval of the retention, for this pair alone.
        log_ratio: The midpoint contrast, ``log det G_better - log det G_worse`` up to third order
            and without the volume of noise; ``None`` where it is not estimable.
        p_value: Two-sided p-value of "these two reports might be swapped".
        adjusted_p_value: The same, adjusted for all pairs of the ranking.
        separated: Whether the observations tell the order of the two, if their errors do not
            depend on them.
        seen: As of :class:`ScoreReport`, of the pair.
        num_records: Records that both label, or their total frequency.
        records_needed: For a pair that is not separated, how many records like these in all would
            separate it with a probability of 80%; ``None`` where it is separated, or no number
            would.
        retention_features_error: What random features add to the error of the retention, half an
            interval at the ranking's confidence, which ``retention_interval`` includes; ``None``
            where the kernel is exact.
        log_ratio_features_error: The same of ``log_ratio``.
        doubts: What could have turned the order, or keeps it from being told, where kinds of
            evidence contradict each other, in a few words each: ``"shared errors"``. The
            order of a pair with doubts is not told, and no report is the most reliable by it.
        strata: Four quarters of the records, from the least sure by the observations to the surest.
        disagreement_p_value: P-value of "the two and the observations share nothing but the truth"
            (:func:`jgram.assumptions.disagreement_test`); ``None`` where it is not tested.
        alike: Whether every record weighs alike, because that p-value is small: payoffs weigh a
            record by how sure the observations are of it.
        leaning: Errors that lean that many to 1 to what the observations show would explain the
            whole difference (:func:`jgram.assumptions.leaning`); ``None`` where not separated.
        breakdown_share: The smallest share of records that, rewritten with knowledge of the
            observations, overturns the order; ``None`` where not separated, or none does.
        readings: What every kind of evidence says alone, where there are several.
        taken: Beside the report that is ranked first, which class is taken for which, most records
            first, and then where both say the same; soft reports by their most likely class.
    """

    SCHEMA: ClassVar[str] = "jgram/pair/1"
    better: str
    worse: str
    retention: float | None
    retention_interval: tuple[float, float] | None
    log_ratio: float | None
    p_value: float
    adjusted_p_value: float
    separated: bool
    seen: float
    num_records: int | float
    records_needed: float | None
    retention_features_error: float | None = None
    log_ratio_features_error: float | None = None
    doubts: tuple[str, ...] = ()
    strata: tuple[StratumKeeps, ...] = ()
    disagreement_p_value: float | None = None
    alike: bool = False
    leaning: float | None = None
    breakdown_share: float | None = None
    readings: tuple[PairReading, ...] = ()
    taken: tuple[Taken, ...] = ()

    @property
    def told(self) -> bool:
        """Whether the order is told and nothing speaks against it."""
        return self.separated and not self.doubts

    @property
    def conclusion(self) -> str:
        """What the data say of the two, in one sentence."""
        if self.doubts:
            return _doubted([self])
        if self.separated:
            return f"{self.better} is more reliable than {self.worse}."
        return f"The data cannot tell {self.better} and {self.worse} apart."

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """The two, what the worse one keeps, the conclusion."""
        seen = f"{self.num_records} records that both label"
        tables = [_pairs_table([self]), _taken_table([self])]
        return [Line(seen), Line(), *tables, Line(self.conclusion, "conclusion")]

    def plot(self) -> Figure:
        """What the worse report keeps: a matplotlib figure."""
        return shares_figure(
            [self.worse], [self.retention], [self.retention_interval],
            title=f"Keeps, beside {self.better}, interval of this pair",
        )  # fmt: skip


@dataclass(frozen=True)
class RankedReport:
    """One report's place.

    Attributes:
        name: The report.
        keeps: How far its labels go with what was observed, as a share of how far the best report's
            do: 0 for noise; ``None`` where the data cannot estimate it.
        keeps_interval: Interval of it, simultaneous over reports and over the choice of the best.
        first_rank: Lowest rank that the data leave it, 1 for the best.
        last_rank: Highest rank that they leave it.
        noise_p_value: P-value of "this report has nothing to do with the observations", nor with
            the other reports where they judge beside them.
        inside_noise: Whether it cannot be told from noise.
        published: Its :class:`ScoreReport`, for reference.
        keeps_features_error: What random features add to the error of ``keeps``, half an interval
            at the ranking's confidence, which ``keeps_interval`` includes; ``None`` where the
            kernel is exact.
        accuracy: Share of right labels, from gold and all other evidence (:mod:`jgram.gold`);
            ``None`` without gold.
        accuracy_interval: Interval of it, for this report alone.
    """

    name: str
    keeps: float | None
    keeps_interval: tuple[float, float] | None
    first_rank: int
    last_rank: int
    noise_p_value: float
    inside_noise: bool
    published: ScoreReport
    keeps_features_error: float | None = None
    accuracy: float | None = None
    accuracy_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Ranking(Shown):
    """Reports of the same records, the most reliable first, and which of them can be told apart.

    Attributes:
        reports: :class:`RankedReport`, best first.
        pairs: Every pair, in the order of the ranking.
        most_reliable: Names of all reports that none is told from as a better one, without those
            inside the noise.
        seen: As of :class:`ScoreReport`, of the best report.
        num_classes: ``d``; 0 where the reports are numbers.
        num_records: ``n``, or the total frequency.
        confidence: Confidence level of intervals, sets of ranks and separations, each all together.
        observations: What the observations were taken for, in one line.
        block_length: Records judged together because they follow each other in time; 1 for none.
        findings: About the comparison as a whole.
        weigh: What weighs alike, ``"classes"`` or ``"records"``.
        slices: What each report keeps in slices of the records, where they are asked for.
    """

    SCHEMA: ClassVar[str] = "jgram/ranking/1"
    reports: tuple[RankedReport, ...]
    pairs: tuple[PairComparison, ...]
    most_reliable: tuple[str, ...]
    seen: float
    num_classes: int
    num_records: int | float
    confidence: float
    observations: str
    block_length: int
    findings: tuple[Finding, ...]
    weigh: str = CLASSES
    slices: Slices | None = None

    @property
    def inside_noise(self) -> tuple[str, ...]:
        """Reports that cannot be told from noise."""
        return tuple(report.name for report in self.reports if report.inside_noise)

    @property
    def separated(self) -> bool:
        """Whether any two reports can be told apart."""
        return any(pair.separated for pair in self.pairs)

    @property
    def in_question(self) -> tuple[str, ...]:
        """The reports of which it has to be settled who is the best: two or more."""
        best = self.most_reliable
        doubted = {name for one in self.pairs if one.doubts for name in (one.better, one.worse)}
        if len(best) < 2:
            best = tuple(one.name for one in self.reports if one.name in doubted)
        return best if len(best) > 1 else tuple(one.name for one in self.reports[:2])

    @property
    def _in_doubt(self) -> list[PairComparison]:
        """Pairs among the most reliable whose order something speaks against."""
        best = {*self.most_reliable}
        return [
            pair for pair in self.pairs
            if pair.separated and pair.doubts and {pair.better, pair.worse} <= best
        ]  # fmt: skip

    @property
    def told(self) -> bool:
        """Whether the conclusion tells an order: exit code 0 of ``jgram rank``, else 3."""
        return any(pair.told for pair in self.pairs) and not self._in_doubt

    @property
    def undecided(self) -> tuple[str, ...]:
        """What would decide the pairs of reports that are not separated, a sentence a pair."""
        return tuple(
            self._undecided(pair)
            for pair in self.pairs
            if not pair.separated and not pair.doubts and pair.better not in self.inside_noise
        )

    def _asides(self) -> list[str]:
        """What would decide the first pairs, and what the second report is like beside the best."""
        said = list(self.undecided)
        if len(said) > MOST_UNDECIDED:
            rest = len(said) - MOST_UNDECIDED
            also = f"and {rest} more pairs are not told apart (the page and JSON have all)"
            said = [*said[:MOST_UNDECIDED], also]
        pair = self.pairs[0]
        if pair.told and pair.retention is not None and 0 <= pair.retention < 1:
            replaced = round(100 * (1 - pair.retention))
            like = f"as if {replaced} of 100 labels of {pair.better} had been replaced at random"
            if not self.num_classes:
                like = f"its correlation with the truth is that share of {pair.better}'s"
            said.append(f"{pair.worse} keeps {pair.retention:.0%} of {pair.better}: {like}")
        return said

    def _undecided(self, pair: PairComparison) -> str:
        names, p = f"{pair.better} and {pair.worse}", pair.adjusted_p_value
        if p <= 1 - self.confidence:
            return (
                f"the order of {names} is not estimable: they differ (p = {p:.2g}), but "
                f"{pair.better} is paid less than {ESTIMABLE:g} standard errors more than noise"
            )
        names += " cannot be told apart"
        if pair.records_needed is None:
            return (
                f"{names}: no number of records like these would separate them; right labels of "
                "some where they differ may (--to-check 40)"
            )
        more = pair.records_needed - pair.num_records
        if more > AFFORDABLE * pair.num_records:
            return f"{names}, nor would they by {AFFORDABLE} times as many records like these"
        if more <= 0:
            return f"{names} once all pairs are looked at together (p = {p:.3f})"
        return f"{names}; about {_roughly(more)} more records like these would"

    @property
    def conclusion(self) -> str:
        """What the data say, in one sentence."""
        noise = self.inside_noise
        if len(noise) == len(self.reports):
            return "The data cannot tell any of these reports from noise."
        tail = f"; {listed(noise)} cannot be told from noise." if noise else "."
        best, told = self.most_reliable, any(pair.told for pair in self.pairs)
        if doubted := self._in_doubt or [pair for pair in self.pairs if pair.doubts and not told]:
            return _doubted(doubted) + (f" {tail[2].upper()}{tail[3:]}" if noise else "")
        if not told:
            return f"The data cannot tell these reports apart{tail}"
        if len(best) == 1:
            return f"{best[0]} is the most reliable{tail}"
        return f"{listed(best)} are the most reliable and cannot be told apart{tail}"

    def table(self, *, counts_scale: bool = False) -> Table:
        """One row a report, best first."""
        interval, known = f"\n{self.confidence:.0%} interval", self.reports[0].accuracy is not None
        fields = [
            Field("report", attrgetter("name"), keys=("report",), name=True),
            _kept_field(f"keeps of the best{interval}", "keeps"),
            *[_kept_field(f"accuracy{interval}", "accuracy")] * known,
            Field("rank", attrgetter("first_rank", "last_rank"), display.between,
                  ("first_rank", "last_rank")),
            _field("noise_p_value", "p of\nnoise", display.p_value),
            _field("inside_noise"),
            *_published_fields(self, counts_scale),
            Field("", lambda one: one.published.num_records, keys=("num_records",)),
        ]  # fmt: skip
        return Table("Every report, the best first", self.reports, fields)

    def view(self, source: Mapping[str, Any] | None = None, *, counts_scale: bool = False) -> View:
        """What was judged, the reports, what stands against the ranking, the conclusion."""
        time = f"records in order of time, judged in blocks of {self.block_length}"
        asides = [time] if self.block_length > 1 else []
        several = len(self.reports) > 2
        return [
            *display.judged(self.num_records, self.num_classes, self.observations, source, *asides),
            self.table(counts_scale=counts_scale),
            Line(
                "'keeps': how far a report's labels go with what was observed: 0% as noise, 100% "
                "as the best report",
                "aside",
            ),
            *_ranking_findings(self),
            *(Line(line, "aside") for line in self._asides()),
            *([_pairs_table(self.pairs)] if several else map(_overturned, self.pairs)),
            _readings_table(self.pairs),
            _taken_table(self.pairs),
            *([] if self.slices is None else [self.slices.table(), Line(self.slices.conclusion)]),
            Line(self.conclusion, "conclusion"),
        ]

    def plot(self) -> Figure:
        """The picture that ``jgram rank --plot`` draws: a matplotlib figure."""
        ranks = [display.between((one.first_rank, one.last_rank)) for one in self.reports]
        hollow = [one.inside_noise for one in self.reports]
        return shares_figure(
            [f"{one.name} · rank {rank}" for one, rank in zip(self.reports, ranks, strict=True)],
            [one.keeps for one in self.reports],
            [one.keeps_interval for one in self.reports],
            title=f"Keeps, beside the best report, {self.confidence:.0%} intervals that "
            "hold together" + ("; hollow: not told from noise" if any(hollow) else ""),
            marks=[(MARK, PAPER if noise else MARK) for noise in hollow],
        )


def _doubted(pairs: Sequence[PairComparison]) -> str:
    """What is said of pairs whose order something speaks against."""
    first, *others = pairs
    names = f"{first.better} and {first.worse}"
    more = f" (and of {len(others)} more pair{'s' * (len(others) != 1)})" if others else ""
    doubts = dict.fromkeys(doubt for pair in pairs for doubt in pair.doubts)
    why = {
        "shared errors": f"errors that depend on the observations may be why {first.better} is "
        "paid more",
        "other reports alone": "only the other reports tell it",
    }
    said = [why.get(doubt, doubt.replace(" against ", " and ") + " contradict each other")
            for doubt in doubts]  # fmt: skip
    return (
        f"The order of {names}{more} is in doubt: {'; '.join(said)}. Label 40 records at random "
        "among those where they differ (--to-check 40)."
    )


def _readings_table(pairs: Sequence[PairComparison]) -> Table:
    """What every kind of evidence says of every pair, where there are several kinds."""
    rows = [(pair, one) for pair in pairs if len(pair.readings) > 1 for one in pair.readings]
    one = itemgetter(1)
    needed = "right labels\nto tell them" if any(row[1].rows_needed for row in rows) else ""
    fields = [
        _names("better", itemgetter(0)),
        _names("worse", itemgetter(0)),
        Field("by", lambda row: row[1].kind, keys=("kind",), name=True),
        _kept_field("worse keeps of better\ninterval of this pair", "keeps", one),
        Field("p of\nno order", lambda row: row[1].p_value, display.p_value, ("p_value",)),
        Field(needed, lambda row: row[1].rows_needed, _optional(_roughly), ("rows_needed",)),
    ]
    return Table("Every kind of evidence alone", rows, fields, detail=len(rows) > MOST_READINGS)


def _taken_table(pairs: Sequence[PairComparison]) -> Table:
    """Which class one report takes for which of another's."""
    rows, alone = [(pair, one) for pair in pairs for one in pair.taken], len(pairs) == 1
    named = [] if alone else [_names("better", itemgetter(0)), _names("worse", itemgetter(0))]
    one, other = (pairs[0].better, pairs[0].worse) if alone else ("better", "worse")
    fields = [
        *named,
        Field(f"{one} says", lambda row: row[1].better_class, str, ("better_class",), name=True),
        Field(f"{other} says", lambda row: row[1].worse_class, str, ("worse_class",), name=True),
        Field("records", lambda row: row[1].count, "{:,g}".format, ("count",)),
        Field(f"share of what\n{one} says so", lambda row: row[1].share, "{:.1%}".format,
              ("share",)),
    ]  # fmt: skip
    caption = "Which class is taken for which"
    return Table(caption, rows, fields, long=True, detail=not alone, most=MOST_TAKEN)


def _overturned(pair: PairComparison) -> Line:
    """What would explain the order of a pair, or nothing."""
    if pair.leaning is None:
        return Line()
    text = (
        f"errors that lean {pair.leaning:.1f} to 1 to what the observations show would explain "
        "this order"
    )
    if pair.breakdown_share is not None:
        text += f"; rewriting {pair.breakdown_share:.1%} of the records would overturn it"
    return Line(text, "aside")


def _pairs_table(pairs: Sequence[PairComparison]) -> Table:
    """Which reports can be told apart; of a ranking, where there is room for it."""
    fields = [
        _names("better"),
        _names("worse"),
        _field("separated", "told\napart", lambda told: "yes" if told else "no"),
        _kept_field("worse keeps of better\ninterval of this pair", "retention"),
        _field("adjusted_p_value", "p, all pairs\ntogether", display.p_value),
        _field("log_ratio"),
        _field("num_records"),
        _field("records_needed"),
        Field("", lambda pair: ", ".join(pair.doubts), keys=("doubts",)),
        _field("disagreement_p_value", "p of\nindependence", _optional(display.p_value)),
        _field("leaning", "errors lean,\nto explain it", _optional("{:.1f} to 1".format)),
        _field("breakdown_share", "rewritten,\nto overturn it", _optional("{:.1%}".format)),
    ]  # fmt: skip
    return Table("Every pair of reports", pairs, fields, detail=len(pairs) > 1)


def _kept(values: Sequence[Any]) -> str:
    """What a report keeps; the best one is what the others are measured by, and has no interval."""
    keeps, low, high, features = values
    if low is None or low == high == 1.0:
        return display.share(keeps)
    also = "" if features is None else f", features ± {100 * features:.1f}%"
    return f"{keeps:.0%} [{low:.0%}, {high:.0%}]{also}"


def _published_fields(found: "ScoreReport | Ranking", counts_scale: bool) -> list[Field]:
    """The published score of a report, or of one that is ranked."""

    def published(row: Any) -> ScoreReport:
        return getattr(row, "published", row)

    head, keys = "published log\nscore ± ", ("log_score", "log_score_low", "log_score_high")
    fields = [
        Field(f"{head}{found.confidence:.0%}", lambda row: _log_score(published(row)), _plus_minus,
              keys),
        Field("counts\nscale", lambda row: published(row).counts_log_score, _counts),
    ]  # fmt: skip
    return fields if counts_scale else fields[:1]


def _log_score(report: ScoreReport) -> tuple[float | None, ...]:
    return (report.log_score, *(report.interval or _NONE))


def _plus_minus(values: Sequence[Any]) -> str:
    """A number with half the width of its interval."""
    value, low, high = values
    if value is None:
        return "no score"
    return f"{value:.2f}" + ("" if low is None else f" ± {(high - low) / 2:.2f}")


def _counts(log_value: float | None) -> str:
    """A number by its logarithm, in full where that can be read."""
    if log_value is None:
        return "0"
    return f"{exp(log_value):,.0f}" if log_value < 34 else f"e^{log_value:.2f}"


def _ranking_findings(found: Ranking) -> list[Line]:
    """The findings that concern the ranking; those that reports share stand once."""
    shared: dict[tuple[str, str, int], list[tuple[str, Finding]]] = {}
    for report in found.reports:
        alike = Counter()
        for finding in report.published.findings:
            if finding.concerns != "score":
                key = (finding.name, finding.advice, alike[finding.name])
                alike[finding.name] += 1
                shared.setdefault(key, []).append((report.name, finding))
    lines = []
    for (first, finding), *others in shared.values():
        also = f" (also {', '.join(name for name, _ in others)})" if others else ""
        lines.append(display.finding_line(finding, f"{first}: {finding.message}{also}"))
    return [*lines, *map(display.finding_line, found.findings)]


def listed(names: Sequence[str]) -> str:
    """Names as a sentence says them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
