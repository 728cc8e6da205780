"""Annotators ranked by their peers: no truth and no features, only who answered what.

In words. What the others say of an item, their posterior without the own answer, is the observation
that an annotator's answers are judged by (jgram/annotators/posterior.py). Four readings of it
answer four questions (jgram/annotators/readings.py):

    log_score    how well do the others foretell the answers, every class alike? the best order
    determinant  what is left of the truth, every class alike, whatever the names?
    balanced     what share of the answers is right, every class alike?
    accuracy     what share of the answers is right, if the consensus is mostly right?

Where an annotator may abstain, accuracy is the precision of the labels that were given, and
``coverage`` says how many were.

An annotator who only ever gives one label has determinant 0 by definition, and is judged by the
precision of that label. Better than average is only said of annotators who can be told from noise.

A rank's interval counts the annotators who are separated from this one, above and below, by a
normal test corrected for the number of others (Bonferroni).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np

import jgram.display as display
from jgram.annotators.answers import as_answers, consistencies
from jgram.annotators.beside import gold_accuracies, judge
from jgram.annotators.collusion import CollusionSearch, find_collusion
from jgram.annotators.readings import (
    Crowd,
    Estimates,
    accuracies,
    agreements,
    alike,
    balanced_accuracies,
    determinants,
    log_scores,
    noise_p_values,
    renamings,
)
from jgram.comparisons import normal_quantile
from jgram.display import Field, Line, Shown, Table, View
from jgram.findings import Finding
from jgram.plots import MARK, SOFT, WORSE, Figure, intervals_figure

__all__ = [
    "Annotator",
    "AnnotatorRanking",
    "InferredLabels",
    "Reading",
    "infer_labels",
    "rank_annotators",
]

LEVEL = 0.05
ONE_SIDED = 0.25  # share of annotators with one label beside what may be an abstention
By = Literal["log_score", "balanced", "determinant", "accuracy"]
QUESTIONS: dict[str, str] = {
    "log_score": "how well the others foretell the answers, every class alike (0 is best)",
    "balanced": "share of right answers if every class were as frequent",
    "determinant": "what is left of the truth, every class alike, whatever the names (1 is all)",
    "accuracy": "share of right answers if the consensus is mostly right",
}


@dataclass(frozen=True)
class Reading:
    """A value with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Annotator:
    """One annotator's standing.

    Attributes:
        name: Name of the annotator.
        answers: Number of labels on items that somebody else labelled too.
        coverage: Share of all items that the annotator labelled.
        rank: 1 is the best.
        first_rank: Lowest rank that the data leave.
        last_rank: Highest rank that they leave.
        log_score: Mean log probability that the others give to the own labels, every class alike.
        balanced: Balanced accuracy: share of right answers if every class were as frequent.
        determinant: ``|det C|^(1/(d-1))`` of the confusion matrix; ``None`` where only one label is
            ever given.
        accuracy: Share of right answers; of an annotator who abstains, the precision.
        agreement: Mean share of an item's other labels that are the same.
        p_value: P-value of labels that have nothing to do with their items.
        standing: Whether the interval of the reading ranked by lies above or below the mean
            annotator; never ``"better"`` where the p-value is .05 or more.
        consistency: How often the same answer comes where the annotator was asked again; ``None``
            where nothing was.
        only_label: The label, where the annotator gives no other and the crowd would have.
        renaming: Own label to what it means by the others' naming, where a test says so.
    """

    name: Any
    answers: int
    coverage: float
    rank: int
    first_rank: int
    last_rank: int
    log_score: Reading
    balanced: Reading
    determinant: Reading | None
    accuracy: Reading
    agreement: float
    p_value: float
    standing: Literal["better", "worse", "unclear"]
    consistency: Reading | None
    only_label: Any | None
    renaming: Mapping[Any, Any] | None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know about this annotator, in a few words each."""
        remarks = []
        if self.renaming:
            swaps = (f"{a!r} for {b!r}" for a, b in self.renaming.items() if a != b)
            remarks.append(f"uses other names: {', '.join(swaps)}")
        if self.only_label is not None:
            remarks.append(f"only says {self.only_label!r}: see its accuracy")
        elif self.p_value >= LEVEL:
            remarks.append("cannot be told from noise")
        if self.standing != "unclear":
            remarks.append(self.standing)
        return tuple(remarks)


@dataclass(frozen=True)
class AnnotatorRanking(Shown):
    """Annotators, the best first, and whether the data can tell them apart at all.

    Attributes:
        annotators: Best first.
        by: The reading ranked by.
        question: What that reading answers, in a line.
        confidence: Confidence level of each interval.
        p_value: P-value of all annotators being alike.
        reliability: Squared correlation to expect of the values ranked by with what they estimate.
        collusion: Pairs who agree too much, and how many could be judged.
        unjudged: Names without any label that could be judged.
        classes: Class names.
        findings: What to know before acting.
    """

    SCHEMA: ClassVar[str] = "jgram/annotators/1"
    annotators: tuple[Annotator, ...]
    by: By
    question: str
    confidence: float
    p_value: float
    reliability: float
    collusion: CollusionSearch
    unjudged: tuple[Any, ...]
    classes: tuple[Any, ...]
    findings: tuple[Finding, ...]

    @property
    def separated(self) -> bool:
        """Whether the annotators can be told apart."""
        return self.p_value < LEVEL

    @property
    def conclusion(self) -> str:
        """What the data say, in one sentence."""
        m = len(self.annotators)
        if not self.separated:
            return f"The data cannot tell these {m} annotators apart (p = {self.p_value:.2f})."
        better, worse = (
            sum(a.standing == side for a in self.annotators) for side in ("better", "worse")
        )
        noise = sum(a.p_value >= LEVEL for a in self.annotators)
        if better + worse == 0:
            return (
                f"These {m} annotators differ (p = {self.p_value:.2g}), but the data cannot tell "
                "which of them is better or worse than the average."
            )
        return (
            f"Of {m} annotators {better} {'is' if better == 1 else 'are'} better and {worse} worse "
            f"than the average; {noise} "
            "cannot be told from noise."
        )

    def table(self) -> Table:
        """One row an annotator, best first."""

        def reading(key: str) -> Field:
            def values(one: Annotator) -> tuple[float | None, ...]:
                found = getattr(one, key)
                return (None,) * 3 if found is None else (found.value, found.low, found.high)

            keys = key, f"{key}_low", f"{key}_high"
            detail = key not in (self.by, "accuracy", "consistency")
            text = display.in_brackets(".2f")
            shown = (lambda v: text((v[0], None, None))) if detail else text
            other = "log_score" if self.by == "balanced" else "balanced"
            return Field("" if key == other else key.replace("_", " "), values, shown, keys)

        fields = [
            Field("annotator", attrgetter("name"), str, ("annotator",), name=True),
            Field("rank", attrgetter("rank", "first_rank", "last_rank"),
                  lambda ranks: "{} [{}, {}]".format(*ranks), ("rank", "first_rank", "last_rank")),
            Field("answers", attrgetter("answers"), keys=("answers",)),
            Field("coverage", attrgetter("coverage"), display.share, ("coverage",)),
            *map(reading, ("log_score", "balanced", "determinant", "accuracy")),
            *([reading("consistency")] if any(a.consistency for a in self.annotators) else []),
            Field("", attrgetter("agreement"), keys=("agreement",)),
            Field("", attrgetter("p_value"), keys=("p_value",)),
            Field("", attrgetter("standing"), keys=("standing",)),
            Field("remarks", lambda one: "; ".join(one.remarks), str, ("remarks",), name=True),
        ]  # fmt: skip
        return Table("Every annotator, the best first", self.annotators, fields, long=True)

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """Annotators, best first, what to know before acting, the conclusion."""
        pairs = Table(
            "Pairs who agree too much, the strongest evidence first",
            self.collusion.flagged,
            [
                Field("annotator", attrgetter("first"), str, name=True),
                Field("and", attrgetter("second"), str, name=True),
                Field("common\nitems", attrgetter("items")),
                Field("agree on", attrgetter("agreement"), display.share),
                Field("expected", attrgetter("expected"), display.share),
            ],
            detail=True,
        )
        return [
            Line(f"{len(self.annotators)} annotators, {len(self.classes)} classes"),
            Line(f"ranked by {self.by.replace('_', ' ')}: {self.question}"),
            Line(),
            self.table(),
            *map(display.finding_line, self.findings),
            pairs,
            Line(self.conclusion, "conclusion"),
        ]

    def plot(self) -> Figure:
        """The picture that ``jgram annotators --plot`` draws: a matplotlib figure."""
        readings = [getattr(one, self.by) for one in self.annotators]
        known = [one for one in readings if one is not None]
        colours = {"better": (MARK, MARK), "worse": (WORSE, WORSE), "unclear": (SOFT, SOFT)}
        return intervals_figure(
            [f"{one.name} · {one.answers:,} answers" for one in self.annotators],
            [one and one.value for one in readings],
            [one and (one.low, one.high) for one in readings],
            title=f"{self.by.replace('_', ' ').capitalize()}, and the mean annotator; "
            "blue: better, orange: worse than it",
            absent="only ever gives one label",
            marks=[colours[one.standing] for one in self.annotators],
            ends=[sum(one.value for one in known) / len(known)] if known else [],
        )


@dataclass(frozen=True, eq=False)
class InferredLabels(Shown):
    """What the items most probably are.

    Attributes:
        items: Names.
        classes: Names.
        probabilities: ``[items, d]``.
        answers: ``[items]``, the number of labels.
    """

    SCHEMA: ClassVar[str] = "jgram/labels/1"
    items: tuple[Any, ...]
    classes: tuple[Any, ...]
    probabilities: np.ndarray = field(repr=False, metadata={"dtype": "float64", "ndim": 2})
    answers: np.ndarray = field(repr=False, metadata={"dtype": "int64"})

    @property
    def labels(self) -> tuple[Any, ...]:
        """The most probable label of each item."""
        return tuple(self.classes[k] for k in self.probabilities.argmax(axis=1))

    def table(self) -> Table:
        """One row an item: its label, and the probability of every class."""
        best = self.probabilities.argmax(axis=1)
        fields = [
            Field("item", lambda i: self.items[i], str, ("item",), name=True),
            Field("label", lambda i: self.classes[best[i]], str, ("label",), name=True),
            Field("probability", lambda i: float(self.probabilities[i, best[i]]), "{:.3f}".format,
                  ("probability",)),
            Field("answers", lambda i: int(self.answers[i]), keys=("answers",)),
        ]  # fmt: skip
        for k, name in enumerate(self.classes):
            share = partial(lambda k, i: float(self.probabilities[i, k]), k)
            fields.append(Field("", share, keys=(f"p({name})",)))
        return Table("Every item", range(len(self.items)), fields, long=True)

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """Items, and what each most probably is."""
        mean = self.probabilities.max(axis=1).mean()
        conclusion = f"The labels have a probability of {mean:.0%} on average."
        head = Line(f"{len(self.items)} items, {len(self.classes)} classes")
        return [head, Line(), self.table(), Line(conclusion, "conclusion")]


def rank_annotators(
    answers: Any,
    y: Any = None,
    gold: Any = None,
    *,
    by: By | None = None,
    incentive: bool = False,
    num_classes: int | None = None,
    confidence: float = 0.95,
) -> AnnotatorRanking:
    """Rank annotators by what the others say of their items; formulas at the top of the modules.

    Time and memory are linear in the answers, but for the search for collusion, which is linear in
    the pairs of answers to the same item.

    Args:
        answers: :class:`Answers`, or ints ``[items, annotators]`` with -1 for no answer.
        y: Observations, a row for each of ``answers.items``, missing where an item has none: texts,
            columns, an embedding. They are one more voter (jgram/annotators/beside.py).
        gold: Right labels of some items, by item, or one for each of ``answers.items`` with
            ``None`` where nobody looked; :class:`jgram.annotators.Gold` where some were picked.
        by: The reading to rank by. Unless given the log score, and where annotators abstain, as
            labelling functions do, the accuracy: the precision of what they vote.
        incentive: Judge every answer by what others said alone, items cross-fitted, so that no
            answer has a part in what it is judged by. For payments.
        num_classes: Number of classes of a matrix; default the largest code plus one.
        confidence: Confidence level of the intervals.

    Returns:
        An :class:`AnnotatorRanking`.

    Raises:
        ValueError: Fewer than three annotators who can be judged (two only judge each other),
            fewer than two classes, codes out of range, a reading that nobody has.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 2, 300)
        >>> wrong = rng.random((300, 4)) < np.array([0.05, 0.1, 0.2, 0.4])
        >>> answers = np.where(wrong, 1 - truth[:, None], truth[:, None])
        >>> [annotator.name for annotator in rank_annotators(answers).annotators]
        [0, 1, 2, 3]

    Reference: Dawid and Skene (1979) for the model; judging annotators by their peers is not in
    *Data Reliability Scoring*.
    """
    if by is not None and by not in list(QUESTIONS):
        raise ValueError(f"by: expected one of {', '.join(QUESTIONS)}, got {by!r}")
    crowd = judge(as_answers(answers, num_classes), y, gold, incentive=incentive)
    return ranked(crowd, by=by, confidence=confidence)


def ranked(crowd: Crowd, *, by: By | None = None, confidence: float = 0.95) -> AnnotatorRanking:
    """:func:`rank_annotators`, of a crowd that is judged already."""
    z = normal_quantile(confidence)
    judged = np.flatnonzero(crowd.answers > 0)
    _refuse_too_few(crowd, judged)
    told = np.where(_only_labels(crowd) >= 0, np.nan, 1.0)
    readings = {
        "log_score": log_scores(crowd, z),
        "balanced": balanced_accuracies(crowd, z),
        "determinant": Estimates(*(told * part for part in determinants(crowd, z))),
        "accuracy": gold_accuracies(crowd, accuracies(crowd, z), z),
    }
    by = by or ("accuracy" if crowd.silent else "log_score")
    if np.isnan(readings[by].value[judged]).all():
        raise ValueError(
            "by: every annotator only ever gives one label, so that nobody has a determinant: "
            "use by='log_score'"
        )
    listed = list(_listed(crowd, judged, readings, by, z))
    p_value, collusion = alike(crowd), find_collusion(crowd.source)
    return AnnotatorRanking(
        annotators=tuple(listed),
        by=by,
        question=QUESTIONS[by],
        confidence=confidence,
        p_value=p_value,
        reliability=_reliability(readings[by], judged),
        collusion=collusion,
        unjudged=tuple(crowd.source.annotators[a] for a in np.flatnonzero(crowd.answers == 0)),
        classes=crowd.source.classes,
        findings=(*crowd.findings, *_findings(by, crowd, listed, p_value, collusion)),
    )


def infer_labels(
    answers: Any, y: Any = None, gold: Any = None, *, num_classes: int | None = None
) -> InferredLabels:
    """What the items most probably are, from all their answers and what else is known.

    Answers that share errors count as fewer (jgram/annotators/posterior.py), so that probabilities
    are as often right as they say on crowds like the public ones.

    Args:
        answers: As in :func:`rank_annotators`, as all others.
        y: Observations.
        gold: Right labels of some items.
        num_classes: Number of classes of a matrix; default the largest code plus one.

    Returns:
        :class:`InferredLabels`.

    Raises:
        ValueError: As :func:`rank_annotators`, but for the number of annotators.

    Example:
        >>> found = infer_labels(np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]]))
        >>> [row["label"] for row in found.records()]
        [0, 1, 0, 1]
    """
    return inferred(judge(as_answers(answers, num_classes), y, gold))


def inferred(crowd: Crowd) -> InferredLabels:
    """:func:`infer_labels`, of a crowd that is judged already."""
    counts = crowd.votes.sum(axis=1).astype(np.int64)
    names = crowd.source.items, crowd.source.classes
    return InferredLabels(*names, crowd.posterior.astype(np.float64), counts)


def _refuse_too_few(crowd: Crowd, judged: np.ndarray) -> None:
    if len(judged) == 0:
        raise ValueError(
            "expected items that two annotators or more labelled, got none: annotators are judged "
            "by each other's answers to the same items"
        )
    if len(np.unique(crowd.item[crowd.judged])) < 2:
        raise ValueError(
            "expected two items or more that several annotators labelled, got 1: one item tells "
            "nobody from anybody"
        )
    if len(judged) < 3:
        raise ValueError(
            f"expected three annotators or more with labels on common items, got {len(judged)} of "
            f"{len(crowd.answers)}: two only judge each other (rank compares two by observations)"
        )


def _only_labels(crowd: Crowd) -> np.ndarray:
    """``[m]``: the one label an annotator gives, where the crowd would not by itself, else -1."""
    count = crowd.often
    total, label = count.sum(axis=1), count.argmax(axis=1)
    share = crowd.votes.sum(axis=0) / crowd.votes.sum()
    one = (count.max(axis=1) == total) & (total > 0)
    return np.where(one & (share[label] ** total < LEVEL), label, -1)


def _listed(
    crowd: Crowd, judged: np.ndarray, readings: dict[str, Estimates], by: By, z: float
) -> Iterator[Annotator]:
    """The judged annotators, best first."""
    answers, classes = crowd.source, crowd.source.classes
    p_value, only, agreement = noise_p_values(crowd), _only_labels(crowd), agreements(crowd)
    value = readings[by].value
    if not crowd.silent:  # who always says the same comes last
        value = np.where(only >= 0, np.nan, value)
    ranks = _ranks(value, readings[by].error, judged)
    average, naming = np.nanmean(readings[by].value[judged]), renamings(crowd, LEVEL)
    again = consistencies(answers, z)
    coverage = np.bincount(crowd.annotator, minlength=len(crowd.answers)) / len(answers.items)
    for a in judged[np.argsort(ranks[0])].tolist():
        rank, first, last = map(int, ranks[:, np.searchsorted(judged, a)])
        low, high = readings[by].low[a], readings[by].high[a]
        better = low > average and p_value[a] < LEVEL
        read: dict[str, Any] = {
            key: Reading(*(float(part[a]) for part in found[:3])) for key, found in readings.items()
        }
        read["determinant"] = None if only[a] >= 0 else read["determinant"]
        yield Annotator(
            name=answers.annotators[a],
            answers=int(crowd.answers[a]),
            coverage=float(coverage[a]),
            rank=rank,
            first_rank=first,
            last_rank=last,
            **read,
            agreement=float(agreement[a]),
            p_value=float(p_value[a]),
            standing="better" if better else "worse" if high < average else "unclear",
            consistency=None if np.isnan(again[0, a]) else Reading(*map(float, again[:, a])),
            only_label=classes[only[a]] if only[a] >= 0 else None,
            renaming={classes[j]: classes[k] for j, k in enumerate(naming[a])}
            if (naming[a] != np.arange(len(classes))).any()
            else None,
        )


def _ranks(value: np.ndarray, error: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Ranks of the judged, the first and the last that are left; who has no value comes last."""
    value, error = np.nan_to_num(value[judged], nan=-1e300), np.nan_to_num(error[judged])
    m = len(judged)
    z = NormalDist().inv_cdf(1.0 - LEVEL / (2.0 * max(m - 1, 1)))
    ranks = np.ones((3, m), int) * [[0], [1], [m]]
    ranks[0, np.argsort(-value, kind="stable")] = np.arange(1, m + 1)
    for a in range(m):
        gap = value - value[a]
        bar = z * np.hypot(error, error[a])
        ranks[1:, a] += (gap > bar).sum(), -(-gap > bar).sum()
    return ranks


def _reliability(found: Estimates, judged: np.ndarray) -> float:
    """Spread of the values over spread and noise, by medians: one wild annotator moves neither."""
    kept = judged[~np.isnan(found.value[judged])]
    value = found.value[kept]
    spread = (1.4826 * np.median(np.abs(value - np.median(value)))) ** 2
    noise = np.median(found.error[kept] ** 2)
    return float(spread / max(spread + noise, 1e-300))


def _findings(
    by: By, crowd: Crowd, listed: list[Annotator], p_value: float, collusion: CollusionSearch
) -> Iterator[Finding]:
    """What to know before acting; each is written where it is found."""
    if p_value >= LEVEL:
        yield Finding(
            "cannot tell",
            "warning",
            f"annotators could be exchanged within items without being noticed (p = {p_value:.2f})",
            "do not act on the order; collect more answers an annotator",
            p_value,
        )
    yield Finding(
        "consensus",
        "note",
        "all readings take the consensus to be mostly right; errors that everybody makes are "
        "invisible, but for an allowance in the accuracies' intervals learnt from other crowds: "
        "the order is firmer than the levels",
        "check some items yourself where levels matter",
    )
    if crowd.source.answered is not None:
        held = len(crowd.source.item)
        yield Finding(
            "drawn",
            "note",
            f"of {crowd.source.answered:,} answers {held:,} are held in memory, all those of items "
            "drawn at random (by a hash of their names)",
            "intervals are those of the answers held; to hold more, answers_from_files(most=)",
            held / crowd.source.answered,
        )
    if again := sum(a.consistency is not None for a in listed):
        yield Finding(
            "repeats",
            "note",
            f"{again} of {len(listed)} annotators were asked again; consistency is how often the "
            "same answer came, whether right or wrong",
            "one answer an item was kept and judged: repeats are no further votes",
            again,
        )
    if few := sum(a.answers < 10 for a in listed):
        yield Finding(
            "few answers",
            "note",
            f"{few} of {len(listed)} annotators have fewer than 10 answers that can be judged",
            "read their place as 'not known', not as 'average'",
            few,
        )
    yield from _of_labels(by, crowd, listed)
    judged = f"{collusion.judged} of {collusion.pairs} pairs with common items could be judged"
    pairs, first = len(collusion.flagged), "".join(one.message for one in collusion.flagged[:1])
    yield Finding(
        "collusion",
        "warning" if pairs else "note",
        f"{pairs} flagged; {judged}. {first}" if pairs else f"no pair flagged; {judged}",
        "copies vouch for each other: leave one of each pair out and rank again"
        if pairs
        else "no flag is no acquittal: few common items or a share copied stay unseen",
        pairs,
    )
    alone, unjudged = int((~crowd.judged).sum()), np.flatnonzero(crowd.answers == 0)
    if alone or len(unjudged):
        names = [repr(crowd.source.annotators[a]) for a in unjudged[:3]] + [".."]
        who = f"; nobody else labelled any item of {', '.join(names[: len(unjudged)])}"
        yield Finding(
            "no peers",
            "note",
            f"{alone} answers stand on items that nobody else labelled" + who * bool(len(unjudged)),
            "they were left out of the readings",
            alone,
        )


def _unmarked_silence(crowd: Crowd) -> int | None:
    """A label that is most of the answers and never alone, as abstentions of functions are."""
    given = crowd.often[crowd.often.any(axis=1)]
    label = int(given.sum(axis=0).argmax())
    others = (np.delete(given, label, axis=1) > 0).sum(axis=1)
    most = given[:, label].sum() > given.sum() / 2 and given.shape[1] > 2 and (others > 0).all()
    return label if most and not crowd.silent and (others == 1).mean() >= ONE_SIDED else None


def _of_labels(by: By, crowd: Crowd, listed: list[Annotator]) -> Iterator[Finding]:
    """A label that may mean "no answer", a class with few answers, annotators with one label."""
    share, classes = crowd.votes.sum(axis=0) / crowd.votes.sum(), crowd.source.classes
    if (silence := _unmarked_silence(crowd)) is not None:
        label = classes[silence]
        yield Finding(
            "no answer",
            "warning",
            f"does {label!r} mean 'no answer'? It is {share[silence]:.0%} of the answers, nobody "
            "gives it alone, and some give one label beside it",
            f"if so say abstain=[{label!r}] (--abstain {label}): it is judged as a label now",
            float(share[silence]),
        )
    rare = int(np.argmin(share))
    if by == "determinant" and share[rare] * len(share) < 0.5:
        yield Finding(
            "rare class",
            "warning",
            f"the determinant weighs every class alike, and class {classes[rare]!r} has "
            f"{share[rare]:.1%} of the answers",
            "where accuracy is meant use by='log_score' or by='accuracy'",
            float(share[rare]),
        )
    if count := sum(a.only_label is not None for a in listed):
        yield Finding(
            "one label",
            "note" if crowd.silent else "warning",
            f"{count} of {len(listed)} annotators only ever give one label: their determinant is 0 "
            "by definition, and they are judged by the precision of that label",
            "read their accuracy and coverage"
            if crowd.silent
            else "if they could abstain, include the abstentions (abstain=), which tell them apart",
            count,
        )
