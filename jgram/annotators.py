"""Annotators judged by their peers: no truth and no features, only who answered what.

The observation of an item is what the *others* said of it: their label distribution ``y``, explicit
features of the linear kernel. Every annotator ``a`` has answered other items, so that scores do not
compare directly; but against the pool of all answers, linearised once (jgram/influences.py),

    R_a[k, j] = mean over own answers of h[r, k] 1[label_r = j]   ->   Q_pool^-1 Q_a

whatever the peers' own errors, as long as answers are independent given the truth. Hence

    score_a = log |det R_a| = log |det Q_a / det Q_pool|

is the only scale of the Gram determinant score with a meaning, half a difference of log scores: 0
is as reliable as the average answer. Few answers make ``R_a`` noisy, and noise has volume: it is
shrunk toward the pool (the identity) by as many pseudo-answers as the spread between annotators
is smaller than that between answers, ``within / between`` of the trace of ``R_a``. The interval is
that of the matching normal model, so that an annotator with no answer has the spread of the pool.

The score weighs every class alike, does not mind a consistent renaming and gives nothing for always
naming the commonest class: it measures what is left of the truth. Accuracy is another question,
and with unequal classes gets another answer. It has no answer from pairs of peers alone, unless one
assumes something of the peers; if the pool confuses ``j`` with ``k`` as often as ``k`` with ``j``,

    accuracy_a = tr(D^(1/2) N^(-1/2) D^(-1/2) J_a),    N = D^(-1/2) J D^(-1/2)

with ``J`` the symmetric pooled joint table, ``J_a`` the annotator's own, and ``D`` the class
shares. Errors that annotators share, on hard items, make it too high; plain agreement is too low,
and on four public crowds (experiments/annotators.py) ranked annotators by accuracy as well or
better: where accuracy is meant, look at both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial, inf, sqrt
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.data import check_aligned, check_observations, drop_missing, encode_labels
from jgram.data.labels import Missing
from jgram.findings import Finding, structural_zero
from jgram.influences import linearise
from jgram.kernels import Kernel, linear, resolve
from jgram.observed import observe
from jgram.uncertainty import normal_quantile

__all__ = [
    "Annotator",
    "AnnotatorRanking",
    "Answers",
    "Collusion",
    "prepare",
    "rank_annotators",
]

LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Answers:
    """Who answered what, as a matrix.

    Attributes:
        matrix: ``[items, annotators]`` int32 codes of the classes, -1 where there is no answer.
        items: Names of the rows.
        annotators: Names of the columns.
        classes: Names of the codes.
    """

    matrix: np.ndarray
    items: tuple[Any, ...]
    annotators: tuple[Any, ...]
    classes: tuple[Any, ...]


@dataclass(frozen=True)
class Annotator:
    """One annotator's standing.

    Attributes:
        name: Of the annotator.
        answers: Number of answers that could be judged.
        rank: 1 is the best.
        rank_interval: Of the rank, from the errors of all annotators.
        score: ``log |det Q_a / det Q_pool|``, shrunk; 0 is the average answer.
        score_interval: Of the score.
        floor: The score expected of as many answers given at random.
        accuracy: Estimated share of right answers, shrunk; ``None`` where observations are not
            the peers' labels, or peers contradict one another.
        accuracy_interval: Of the accuracy.
        agreement: Mean share of peers who gave the same answer; ``None`` without peers.
        p_value: Of answers independent of the observations (Pillai's trace). At 0.05 or above the
            annotator cannot be told from chance.
        standing: Whether the interval of the reading ranked by lies above (``"better"``) or below
            the average answer.
        relabelling: Answer to what it means by the others' naming, where another naming fits
            better beyond doubt; the score is read under it. ``None`` otherwise.
    """

    name: Any
    answers: int
    rank: int
    rank_interval: tuple[int, int]
    score: float
    score_interval: tuple[float, float]
    floor: float
    accuracy: float | None
    accuracy_interval: tuple[float, float] | None
    agreement: float | None
    p_value: float
    standing: Literal["better", "worse", "unclear"]
    relabelling: Mapping[Any, Any] | None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know about this annotator, in words."""
        remarks = []
        if self.relabelling:
            swaps = (f"{a!r} for {b!r}" for a, b in self.relabelling.items() if a != b)
            remarks.append(f"uses other names: {', '.join(swaps)}")
        if self.p_value >= LEVEL:
            remarks.append("cannot be told from chance")
        if self.standing != "unclear":
            remarks.append(f"{self.standing} than the average answer")
        return tuple(remarks)


@dataclass(frozen=True)
class Collusion:
    """Two annotators who agree more than their items and their agreement with others explain.

    Attributes:
        first: Name.
        second: Name.
        items: Number of items that both answered.
        agreement: Share of these on which they agree.
        expected: Share expected.
        z: Standardised excess, in units of the spread over all pairs.
    """

    first: Any
    second: Any
    items: int
    agreement: float
    expected: float
    z: float


@dataclass(frozen=True)
class AnnotatorRanking:
    """Annotators, the best first, and whether the data can tell them apart at all.

    Attributes:
        annotators: Best first.
        by: ``"score"`` or ``"accuracy"``.
        p_value: Of all annotators being alike, by the reading ranked by (analysis of variance).
        reliability: Expected squared correlation of the ranking's values with the quantity they
            estimate, under the model.
        pseudo_answers: By how many answers of the pool each annotator was shrunk toward it.
        collusions: Suspicious pairs, the most suspicious first.
        unjudged: Names without any answer that could be judged.
        classes: Class names.
        findings: What to know before acting.
    """

    annotators: tuple[Annotator, ...]
    by: Literal["score", "accuracy"]
    p_value: float
    reliability: float
    pseudo_answers: float
    collusions: tuple[Collusion, ...]
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
        if not self.separated:
            return (
                f"The data cannot tell these {len(self.annotators)} annotators apart "
                f"(p = {self.p_value:.2f})."
            )
        better, worse = (
            sum(a.standing == side for a in self.annotators) for side in ("better", "worse")
        )
        chance = sum(a.p_value >= LEVEL for a in self.annotators)
        if better + worse == 0:
            return (
                f"These {len(self.annotators)} annotators differ (p = {self.p_value:.2g}), but the "
                "data cannot tell which of them is better or worse than the average answer."
            )
        return (
            f"Of {len(self.annotators)} annotators {better} are better and {worse} worse than the "
            f"average answer; {chance} cannot be told from chance."
        )

    def records(self) -> list[dict[str, Any]]:
        """One flat row an annotator, best first, for CSV or JSON."""
        return [
            {
                "rank": a.rank,
                "annotator": a.name,
                "answers": a.answers,
                "rank_low": a.rank_interval[0],
                "rank_high": a.rank_interval[1],
                "score": a.score,
                "score_low": a.score_interval[0],
                "score_high": a.score_interval[1],
                "floor": a.floor,
                "accuracy": a.accuracy,
                "accuracy_low": a.accuracy_interval[0] if a.accuracy_interval else None,
                "accuracy_high": a.accuracy_interval[1] if a.accuracy_interval else None,
                "agreement": a.agreement,
                "p_value": a.p_value,
                "remarks": "; ".join(a.remarks),
            }
            for a in self.annotators
        ]

    def to_dict(self) -> dict[str, Any]:
        """The ranking as JSON-able data."""
        return {
            "conclusion": self.conclusion,
            "separated": self.separated,
            "by": self.by,
            "p_value": self.p_value,
            "reliability": self.reliability,
            "pseudo_answers": self.pseudo_answers,
            "annotators": self.records(),
            "collusions": [vars(pair) for pair in self.collusions],
            "unjudged": list(self.unjudged),
            "findings": [vars(finding) for finding in self.findings],
        }


def prepare(
    item: Any,
    annotator: Any,
    label: Any,
    *,
    classes: Sequence[Any] | None = None,
    missing: Missing = "raise",
) -> Answers:
    """A long table of item, annotator, label as an answers matrix, all names kept.

    Args:
        item: ``[n]`` names of any type.
        annotator: ``[n]`` names of any type.
        label: ``[n]`` labels of any type.
        classes: All possible labels, in order.
        missing: ``"drop"`` leaves out rows in which anything is missing.

    Returns:
        :class:`Answers`. Repeated identical rows count once.

    Raises:
        ValueError: Columns that do not line up, missing or mixed values, or two different answers
            of one annotator to one item.

    Example:
        >>> answers = prepare(["i", "i", "k"], ["ann", "bob", "bob"], ["yes", "no", "no"])
        >>> answers.matrix, answers.annotators
        (array([[ 1,  0],
               [-1,  0]], dtype=int32), ('ann', 'bob'))
    """
    columns = {"item": item, "annotator": annotator, "label": label}
    if missing == "drop":
        columns, _ = drop_missing(columns)
    check_aligned(columns)
    items = encode_labels(columns["item"], name="item")
    people = encode_labels(columns["annotator"], name="annotator")
    labels = encode_labels(columns["label"], name="label", classes=classes)
    matrix = np.full((len(items.classes), len(people.classes)), -1, np.int32)
    matrix[items.codes, people.codes] = labels.codes
    differing = matrix[items.codes, people.codes] != labels.codes
    if differing.any():
        row = int(np.argmax(differing))
        last = labels.classes[matrix[items.codes[row], people.codes[row]]]
        raise ValueError(
            f"expected one answer an annotator and item, got {labels.classes[labels.codes[row]]!r} "
            f"(row {row}) and {last!r} by annotator {people.classes[people.codes[row]]!r} for item "
            f"{items.classes[items.codes[row]]!r} ({differing.sum()} such rows): keep one of them"
        )
    return Answers(matrix, items.classes, people.classes, labels.classes)


def rank_annotators(
    answers: Any,
    y: Any = None,
    kernel: Kernel = linear,
    *,
    by: Literal["score", "accuracy"] = "score",
    num_classes: int | None = None,
    confidence: float = 0.95,
) -> AnnotatorRanking:
    """Rank annotators by what is left of the truth in their answers, without the truth.

    Formulas at the top of this module. The cost is linear in the number of answers, but for the
    search for collusion, a matrix product of annotators by items by annotators a class.

    Args:
        answers: :class:`Answers`, or ints ``[items, annotators]`` with -1 for no answer.
        y: Observations of the items, ``[items, ...]``. ``None`` takes the other annotators' answers
            to the item.
        kernel: Of the observations.
        by: ``"score"``, the determinant, which weighs every class alike; or ``"accuracy"``, which
            weighs classes as they occur.
        num_classes: Number of classes; default the largest code plus one.
        confidence: Of the intervals.

    Returns:
        An :class:`AnnotatorRanking`.

    Raises:
        ValueError: Fewer than three annotators without ``y`` (two peers judge each other alike by
            construction), no item with two answers, codes out of range, classes that the
            observations do not tell apart, accuracy asked for where there is none.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 2, 300)
        >>> wrong = rng.random((300, 4)) < np.array([0.05, 0.1, 0.2, 0.4])
        >>> answers = np.where(wrong, 1 - truth[:, None], truth[:, None])
        >>> [annotator.name for annotator in rank_annotators(answers).annotators]
        [0, 1, 2, 3]

    Reference: Proposition 4.3 (experiment agnosticism) of *Data Reliability Scoring*; judging
    annotators by their peers is not in the paper.
    """
    if by not in ("score", "accuracy"):
        raise ValueError(f"expected by='score' or by='accuracy', got {by!r}")
    answers = _check(answers, num_classes)
    d = len(answers.classes)
    record = _records(answers.matrix, d, y)
    share = np.bincount(record.label, minlength=d) / len(record.label)
    pooled = None
    if y is None:
        pooled = _tables(record.y, np.zeros_like(record.label), record.label, 1)[0]
        pooled /= len(record.label)  # symmetric: every pair of peers counts both ways
        h = _peer_influence(record, pooled, answers.classes)
    else:
        h = _influence(record, kernel, answers.classes)
    people, annotator = np.unique(record.annotator, return_inverse=True)
    m, counts = len(people), np.bincount(annotator)
    if m < (3 if y is None else 2):
        raise ValueError(
            f"expected {'three' if y is None else 'two'} annotators or more with answers that can "
            f"be judged, got {m}" + (": two peers only judge each other" if y is None else "")
        )
    rows, label = np.arange(len(h)), record.label
    # Best linear prediction of the average answer: well conditioned, for naming and chance.
    predicted = np.linalg.solve(h.T @ h / len(h), h.T).T
    naming = _namings(predicted, annotator, label, m, LEVEL / (m * factorial(min(d, 20))))
    meaning = naming[annotator, label]

    # Peers exclude oneself: who stands out by x meets peers who lack x times the own share.
    own = counts / len(label) if y is None else np.zeros(m)
    visible = np.maximum((1.0 - 2.0 * own) / (1.0 - own), 0.1)
    trace = _effects(h[rows, meaning], annotator)
    score, score_error = _scores(h, annotator, meaning, label, counts, trace.pseudo)
    score, score_error = score / visible, score_error / visible
    accurate = agreement = None
    if pooled is not None:
        agreement = np.bincount(annotator, record.y[rows, label]) / counts
        weights = _accuracy_weights(pooled, share)
        if weights is not None:
            accurate = _effects((record.y @ weights.T)[rows, label], annotator)
            accurate = accurate._replace(
                mean=accurate.pool + (accurate.mean - accurate.pool) / visible,
                error=accurate.error / visible,
            )
    if by == "accuracy" and accurate is None:
        raise ValueError(
            "expected peers' answers that agree more often than not to rank by accuracy, got "
            + ("observations y" if y is not None else "peers who contradict each other")
            + ": use by='score'"
        )
    quantile = normal_quantile(confidence)
    chosen = trace if by == "score" or accurate is None else accurate
    values, errors, average = (
        (score, score_error, 0.0) if by == "score" else (chosen.mean, chosen.error, chosen.pool)
    )
    rank, low, high = _ranks(values, errors, quantile)
    chance = _chance(predicted, annotator, label, m, d)
    names = answers.annotators

    def interval(value: Any, error: Any) -> tuple[float, float]:
        return float(value - quantile * error), float(value + quantile * error)

    listed = [
        Annotator(
            name=names[people[a]],
            answers=int(counts[a]),
            rank=int(rank[a]),
            rank_interval=(int(low[a]), int(high[a])),
            score=float(score[a]),
            score_interval=interval(score[a], score_error[a]),
            floor=float((d - 1) * np.log(trace.pseudo / (counts[a] + trace.pseudo))),
            accuracy=float(accurate.mean[a]) if accurate else None,
            accuracy_interval=interval(accurate.mean[a], accurate.error[a]) if accurate else None,
            agreement=float(agreement[a]) if agreement is not None else None,
            p_value=float(chance[a]),
            standing=(
                "better"
                if values[a] - quantile * errors[a] > average
                else "worse"
                if values[a] + quantile * errors[a] < average
                else "unclear"
            ),
            relabelling=(
                None
                if (naming[a] == np.arange(d)).all()
                else {answers.classes[j]: answers.classes[naming[a, j]] for j in range(d)}
            ),
        )
        for a in np.argsort(rank)
    ]
    collusions = tuple(
        Collusion(names[a], names[b], items, agreed, expected, z)
        for a, b, items, agreed, expected, z in _collusions(answers.matrix, d)
    )
    between, noise = float(np.var(values)), float(np.mean(errors**2))
    return AnnotatorRanking(
        annotators=tuple(listed),
        by=by,
        p_value=chosen.p_value,
        reliability=between / (between + noise),
        pseudo_answers=chosen.pseudo,
        collusions=collusions,
        unjudged=tuple(names[a] for a in np.setdiff1d(np.arange(len(names)), people)),
        classes=answers.classes,
        findings=tuple(_findings(by, share, answers, counts, chosen, collusions, len(label))),
    )


class _Record(NamedTuple):
    """One row an answer that can be judged."""

    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    y: np.ndarray


class _Effects(NamedTuple):
    """One-way random effects: posterior means and errors by annotator."""

    mean: np.ndarray
    error: np.ndarray
    pool: float
    pseudo: float
    p_value: float


def _check(answers: Any, num_classes: int | None) -> Answers:
    if not isinstance(answers, Answers):
        matrix = np.asarray(answers)
        if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
            raise ValueError(
                "expected answers [items, annotators] as ints with -1 for none, got "
                f"{matrix.dtype}{list(matrix.shape)}: use prepare for a long table"
            )
        largest = int(matrix.max(initial=-1))
        d = largest + 1 if num_classes is None else num_classes
        if matrix.min(initial=0) < -1 or largest >= d:
            wrong = largest if largest >= d else int(matrix.min())
            raise ValueError(f"expected answers -1 (none), 0..{d - 1}, got {wrong}")
        rows, columns = map(tuple, map(range, matrix.shape))
        answers = Answers(matrix.astype(np.int32), rows, columns, tuple(range(d)))
    if len(answers.classes) < 2:
        raise ValueError(f"expected two classes or more, got {len(answers.classes)}")
    return answers


def _records(matrix: np.ndarray, d: int, y: Any) -> _Record:
    item, annotator = np.nonzero(matrix >= 0)
    label = matrix[item, annotator]
    if y is not None:
        check_aligned({"answers": matrix, "y": y})
        return _Record(item, annotator, label, check_observations(y).values[item])
    cells = np.bincount(item * d + label, minlength=len(matrix) * d)
    others = cells.reshape(-1, d)[item].astype(float)
    others[np.arange(len(item)), label] -= 1.0
    total = others.sum(axis=1)
    shared = total > 0
    if not shared.any():
        raise ValueError(
            "expected items with answers of two annotators or more, got none: give observations y"
        )
    peers = others[shared] / total[shared, None]
    return _Record(item[shared], annotator[shared], label[shared], peers)


def _influence(record: _Record, kernel: Kernel, classes: Sequence[Any]) -> np.ndarray:
    """``h`` of all answers together, the pool, in float64."""
    with jax.enable_x64(True):
        label, points = jnp.asarray(record.label), jnp.asarray(record.y)
        kernel = resolve(kernel, points)
        found = linearise(label, points, kernel, num_classes=len(classes))
    if not np.isfinite(found.log_score):
        _refuse(record, kernel, classes, int(found.elimination.rank))
    return np.asarray(found.influence, np.float64)


def _peer_influence(record: _Record, pooled: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """The same for as many features as classes, ``J^-1 y``, without JAX and its compilation."""
    lengths = np.linalg.norm(pooled, axis=0)
    rank = int(np.linalg.matrix_rank(pooled / np.where(lengths > 0, lengths, 1.0)))
    if rank < len(classes):
        _refuse(record, linear, classes, rank)
    return np.linalg.solve(pooled, record.y.T).T


def _refuse(record: _Record, kernel: Kernel, classes: Sequence[Any], rank: int) -> None:
    zero = structural_zero(record.label, observe(kernel, record.y), classes)
    raise ValueError(
        "expected observations that tell the classes apart, got "
        f"{zero.message if zero else f'rank {rank} of {len(classes)}'}: leave out or merge classes"
    )


def _effects(values: np.ndarray, annotator: np.ndarray) -> _Effects:
    """Means by annotator, shrunk toward the mean of all by moments.

    The variance between annotators is taken at no less than one standard error of its estimate
    under no difference: an estimate of 0 is not knowledge that all are alike.
    """
    from scipy import special

    n = np.bincount(annotator)
    m, total = len(n), len(values)
    mean, pool = np.bincount(annotator, values) / n, values.mean()
    within = ((values - mean[annotator]) ** 2).sum() / max(total - m, 1)
    among = (n * (mean - pool) ** 2).sum() / (m - 1)
    effective = (total - (n**2).sum() / total) / (m - 1)
    between = max(among - within, sqrt(2.0 / (m - 1)) * within) / effective
    pseudo = within / between if within > 0 else 0.0
    ratio = among / within if within > 0 else inf
    shrunk = (n * mean + pseudo * pool) / (n + pseudo)
    own = np.bincount(annotator, (values - mean[annotator]) ** 2)
    error = np.sqrt(own + pseudo * within) / (n + pseudo)
    p_value = float(special.fdtrc(m - 1, max(total - m, 1), ratio))
    return _Effects(shrunk, error, float(pool), pseudo, p_value)


def _tables(values: np.ndarray, annotator: np.ndarray, label: np.ndarray, m: int) -> np.ndarray:
    """``[m, d, d]``: sums of ``values[r, k]`` over the answers ``j`` of each annotator."""
    d = values.shape[1]
    cells = annotator * d + label
    sums = [np.bincount(cells, values[:, k], minlength=m * d).reshape(m, d) for k in range(d)]
    return np.stack(sums, axis=1)


def _scores(
    h: np.ndarray,
    annotator: np.ndarray,
    meaning: np.ndarray,
    label: np.ndarray,
    counts: np.ndarray,
    pseudo: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Shrunk ``log |det R_a|`` and its standard error, from own answers and the pool's."""
    d = h.shape[1]
    n = counts + pseudo
    relative = _tables(h, annotator, meaning, len(counts)) + pseudo * np.eye(d)
    relative /= n[:, None, None]
    score = np.linalg.slogdet(relative)[1]
    inverse = np.linalg.pinv(relative)
    # d log |det R| = tr(R^-1 dR): an answer moves it by (R^-1 h)[its label].
    moves = np.einsum("rk,rk->r", inverse[annotator, meaning], h)
    mean = np.bincount(annotator, moves) / counts
    own = np.bincount(annotator, (moves - mean[annotator]) ** 2)
    second = np.stack([h[label == j].T @ h[label == j] for j in range(d)]) / len(h)
    pooled = np.einsum("ajk,jkl,ajl->a", inverse, second, inverse)
    pooled -= np.einsum("ajj->a", inverse) ** 2
    return score, np.sqrt(own + pseudo * np.maximum(pooled, 0.0)) / n


def _accuracy_weights(pooled: np.ndarray, share: np.ndarray) -> np.ndarray | None:
    """``D^(1/2) N^(-1/2) D^(-1/2)``, ``None`` where ``N`` is not positive definite."""
    root = np.sqrt(share)
    values, vectors = np.linalg.eigh(pooled / root[:, None] / root)
    if values[0] <= 1e-9:
        return None
    return root[:, None] * ((vectors / np.sqrt(values)) @ vectors.T) / root


def _namings(
    predicted: np.ndarray, annotator: np.ndarray, label: np.ndarray, m: int, level: float
) -> np.ndarray:
    """What each annotator's answers mean by the pool's naming, ``[m, d]``; mostly themselves.

    Another naming is accepted where its gain over the given one is beyond doubt at ``level``, which
    allows for the search over all permutations and annotators.
    """
    from scipy import optimize

    d, rows = predicted.shape[1], np.arange(len(label))
    tables = _tables(predicted, annotator, label, m)
    naming = np.tile(np.arange(d), (m, 1))
    for a in range(m):
        meaning, answer = optimize.linear_sum_assignment(tables[a], maximize=True)
        naming[a, answer] = meaning
    gain = predicted[rows, naming[annotator, label]] - predicted[rows, label]
    count = np.bincount(annotator)
    mean = np.bincount(annotator, gain) / count
    spread = np.bincount(annotator, (gain - mean[annotator]) ** 2) / np.maximum(count - 1, 1)
    doubtful = mean <= -NormalDist().inv_cdf(level) * np.sqrt(spread / count)
    naming[doubtful | (count < 2)] = np.arange(d)
    return naming


def _chance(
    predicted: np.ndarray, annotator: np.ndarray, label: np.ndarray, m: int, d: int
) -> np.ndarray:
    """p-value of no relation between own answers and observations: Pillai's trace, F form."""
    from scipy import special

    order = np.argsort(annotator, kind="stable")
    starts = np.searchsorted(annotator[order], np.arange(m + 1))
    p_values = np.ones(m)
    for a in range(m):
        own = order[starts[a] : starts[a + 1]]
        answers, seen = np.eye(d)[label[own]], predicted[own]
        left = _orthonormal(answers - answers.mean(axis=0))
        right = _orthonormal(seen - seen.mean(axis=0))
        p, q, n = left.shape[1], right.shape[1], len(own)
        s, wide = min(p, q), max(p, q)
        deep = n - 1 - wide
        if s == 0 or deep < s:
            continue
        trace = ((left.T @ right) ** 2).sum()
        ratio = trace / max(s - trace, 1e-300) * deep / wide
        p_values[a] = special.fdtrc(s * wide, s * deep, ratio)
    return p_values


def _orthonormal(centred: np.ndarray) -> np.ndarray:
    vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    return vectors[:, values > 1e-9 * max(1.0, values[0])]


def _ranks(
    values: np.ndarray, errors: np.ndarray, quantile: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ranks, best 1, and their intervals: own error and the others' in quadrature."""
    from scipy import special

    m = len(values)
    rank = np.empty(m, int)
    rank[np.argsort(-values, kind="stable")] = np.arange(1, m + 1)
    low, high = np.empty(m, int), np.empty(m, int)
    others = np.maximum(errors, 1e-12)
    for a in range(m):
        above = [
            np.delete(special.ndtr((values - values[a] - shift * errors[a]) / others), a)
            for shift in (quantile, 0.0, -quantile)
        ]
        best, middle, worst = (1.0 + share.sum() for share in above)
        spread = quantile**2 * (above[1] * (1.0 - above[1])).sum()
        low[a] = min(rank[a], max(1, round(middle - sqrt((middle - best) ** 2 + spread))))
        high[a] = max(rank[a], min(m, round(middle + sqrt((worst - middle) ** 2 + spread))))
    return rank, low, high


def _collusions(matrix: np.ndarray, d: int) -> list[tuple[int, int, int, float, float, float]]:
    """Pairs that agree beyond what their items and their agreement with others explain.

    On an item where a share ``g`` of all pairs agrees, annotators of quality ``w[a]``, ``w[b]``
    agree with probability ``chance + (g - chance) w[a] w[b]``; the qualities are a weighted least
    squares fit. What is left of a pair is measured by its spread over all pairs.
    """
    from scipy import sparse

    m, (item, annotator) = matrix.shape[1], np.nonzero(matrix >= 0)
    cell, ones = item * d + matrix[item, annotator], np.ones(len(item))
    answered = sparse.csr_array((ones, (item, annotator)), matrix.shape)
    chosen = sparse.csr_array((ones, (cell, annotator)), (len(matrix) * d, m))
    votes = np.bincount(cell, minlength=len(matrix) * d).reshape(-1, d)
    count = votes.sum(axis=1)
    agreeing = (votes * (votes - 1.0)).sum(axis=1) / np.maximum(count * (count - 1.0), 1.0)
    chance = ((votes.sum(axis=0) / count.sum()) ** 2).sum()

    def over_common_items(values: np.ndarray) -> np.ndarray:
        total = (answered.T @ (answered * values[:, None])).toarray()
        np.fill_diagonal(total, 0.0)
        return total

    items, signal = over_common_items(np.ones(len(matrix))), over_common_items(agreeing - chance)
    variance = over_common_items(agreeing * (1.0 - agreeing))
    same = (chosen.T @ chosen).toarray()
    weight = np.where(variance > 1.0, 1.0 / np.maximum(variance, 1.0), 0.0)
    cross, square = weight * signal * (same - chance * items), weight * signal**2
    quality = np.ones(m)
    for _ in range(30):  # damped alternating least squares, lightly shrunk toward 1
        ridge = 1e-3 * square.sum(axis=1) + 1e-12
        fitted = (cross @ quality + ridge) / (square @ quality**2 + ridge)
        quality = np.sqrt(quality * np.maximum(fitted, 1e-3))
    expected = chance * items + signal * np.outer(quality, quality)
    first, second = np.nonzero(np.triu(variance > 1.0))
    if len(first) < 3:
        return []
    z = (same - expected)[first, second] / np.sqrt(variance[first, second])
    z /= max(1.0, float(np.median(np.abs(z))) / 0.6745)
    limit = -NormalDist().inv_cdf(LEVEL / len(z))
    beyond = [i for i in np.argsort(-z) if z[i] > limit]
    found = []
    for i in beyond:
        a, b = int(first[i]), int(second[i])
        n, share = items[a, b], float(np.clip(expected[a, b] / items[a, b], 0.0, 1.0))
        found.append((a, b, int(n), float(same[a, b] / n), share, float(z[i])))
    return found


def _findings(
    by: str,
    share: np.ndarray,
    answers: Answers,
    counts: np.ndarray,
    effects: _Effects,
    collusions: Sequence[Collusion],
    judged: int,
) -> list[Finding]:
    findings = []
    d, rare = len(share), int(np.argmin(share))
    if effects.p_value >= LEVEL:
        findings.append(
            Finding(
                "cannot tell",
                "warning",
                f"differences between annotators are no larger than between their own answers "
                f"(p = {effects.p_value:.2f})",
                "do not act on the order; collect more answers an annotator",
                effects.p_value,
            )
        )
    few = int((counts < effects.pseudo).sum())
    if few:
        findings.append(
            Finding(
                "few answers",
                "note",
                f"{few} of {len(counts)} annotators have fewer than the {effects.pseudo:.0f} "
                "answers at which their own count as much as the pool",
                "read their place as 'not known', not as 'average'",
                few,
            )
        )
    if share[rare] * d < 0.5 and by == "score":
        findings.append(
            Finding(
                "rare class",
                "warning",
                f"the score weighs every class alike, and class {answers.classes[rare]!r} has "
                f"{share[rare]:.1%} of the answers",
                "it is the wrong tool where accuracy is meant: use by='accuracy' or the agreement",
                float(share[rare]),
            )
        )
    if collusions:
        worst = collusions[0]
        findings.append(
            Finding(
                "collusion",
                "warning",
                f"{len(collusions)} pairs agree more than items and quality explain, first of all "
                f"{worst.first!r} and {worst.second!r} ({worst.agreement:.0%} of {worst.items} "
                f"items, expected {worst.expected:.0%})",
                "copies vouch for each other: leave one of each pair out and rank again",
                len(collusions),
            )
        )
    alone = int((answers.matrix >= 0).sum()) - judged
    if alone:
        findings.append(
            Finding(
                "no peers",
                "note",
                f"{alone} answers stand on items that nobody else answered",
                "they were left out",
                alone,
            )
        )
    return findings
