"""What is known of the items beside their answers: observations of them, and gold for a few.

**Observations** are one more voter on every item. The predictors of jgram/left_out.py learn the
consensus ``c`` of the other items from their observations, and an item's own observation says

    e_i[s]  =  log p_i(s) - log share(s)          p_i(s) = P(c_i = s | observation, the other items)

which is added to its log posterior (jgram/annotators/posterior.py). The consensus that comes of it
is learnt anew, three rounds in all. Observations that do not predict the consensus better than the
shares of the classes say nothing, and nothing changes.

How much the answers weigh against that voter is learnt. Errors that annotators share make ``n_i``
answers worth as many as ``n_i w_i``, ``w_i = 1/(1 + rho (n_i - 1))``, independent ones, and what
annotators share the observations do not. So ``rho`` is the likeliest by the observations, the
answers' posterior ``q^rho`` being their prior:

    rho  =  argmax  sum_i log sum_s q_i^rho[s] p_i(s) / share(s)

never below the ``.15`` that is taken without observations.

**Gold**, the right label of a few items, is their posterior. From twenty such items on they choose
``rho`` instead, by the log probability that answers and observations without the gold give to it,
and so they do what is wrong with the posteriors as a whole: a power and a factor a class,
``q[s]^t exp(b[s])``, ``log t`` and ``b`` with normal priors of deviations 1 and .5.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from jgram.annotators.answers import Answers
from jgram.annotators.posterior import fit, majority, posteriors, power, tempered
from jgram.annotators.readings import CORRELATION, Crowd, Estimates, fit_crowd
from jgram.arrays import float64
from jgram.binding import bind_observations, input_finding
from jgram.data.columns import Column, column, did_you_mean, read_table, show, take
from jgram.findings import Finding
from jgram.left_out import predict_left_out

__all__ = ["Beside", "Gold", "by_item", "gold_accuracies", "judge_beside", "to_check"]

CORRELATIONS = (0.15, 0.2, 0.3, 0.45, 0.7, 1.0)
BY_GOLD = (CORRELATION, 0.0, 0.05, 0.15, 0.3, 0.75, 1.0, 1.5, 2.5)
ROUNDS = 3
ENOUGH = 20  # items with gold that outweigh the observations
GOLD = 200  # that are worth as much as what is known of shared errors without any
CERTAIN = 50.0  # nats for what somebody looked up
STEADY = 10.0


class Gold(NamedTuple):
    """The right labels of a few items.

    Attributes:
        labels: By item.
        picked: Items that were chosen for their doubt; the others are taken as a random sample of
            the rest.
    """

    labels: Mapping[Any, Any]
    picked: frozenset[Any] = frozenset()


class Beside(NamedTuple):
    """A crowd judged with what is known beside its answers.

    Attributes:
        crowd: With all of it.
        before: Posteriors ``[items, d]`` without gold.
        known: Codes ``[items]`` of the right labels, -1 where nobody looked.
        picked: Bool ``[items]``, chosen for their doubt.
        findings: What was used, and what was not.
    """

    crowd: Crowd
    before: np.ndarray
    known: np.ndarray
    picked: np.ndarray
    findings: tuple[Finding, ...]


class _Observations(NamedTuple):
    rows: np.ndarray
    observed: Any
    points: np.ndarray | None


def judge_beside(
    answers: Answers, y: Any = None, gold: Any = None, *, incentive: bool = False
) -> Beside:
    """The crowd fitted with observations and gold; formulas at the top of this module.

    Args:
        answers: :class:`Answers`.
        y: Observations, one row for each of ``answers.items``: texts, columns or numbers.
        gold: :class:`Gold`, right labels by item, or one for each of ``answers.items``, ``None``
            where nobody looked.
        incentive: As in :func:`jgram.annotators.readings.fit_crowd`.

    Returns:
        :class:`Beside`.
    """
    items, d = len(answers.items), len(answers.classes)
    known, picked, findings = _read_gold(answers, gold)
    if y is None and gold is None:
        crowd = fit_crowd(answers, incentive=incentive)
        return Beside(crowd, crowd.posterior, known, picked, ())
    said = np.zeros((items, d))
    told = np.where(known[:, None] < 0, 0.0, -CERTAIN * (np.arange(d) != known[:, None]))
    weighed = None
    if y is not None:
        given, description, found = _read_observations(answers, y)
        crowd = fit_crowd(answers, incentive=incentive, evidence=None if gold is None else told)
        q = crowd.posterior
        for _ in range(ROUNDS):
            said[given.rows] = _said(given, q, d)
            weighed = _likeliest(answers, said, told, known) if said.any() else None
            if weighed is None:
                break
            q = softmax(np.log(np.maximum(weighed[1], 1e-30)) + told, axis=1)
        used = weighed is not None
        findings += [*found, _of_observations(description, used, len(given.rows), items)]
        if gold is None and not used:
            return Beside(crowd, crowd.posterior, known, picked, tuple(findings))
    correlation, before = weighed or _likeliest(answers, said, told, known)
    crowd = fit_crowd(
        answers,
        incentive=incentive,
        correlation=correlation,
        fitted=correlation if weighed else 0.0,
        evidence=said + told,
    )
    t, b = _recalibrated(before, known)
    before, posterior = (
        softmax(t * np.log(np.maximum(q, 1e-30)) + b, axis=1) for q in (before, crowd.posterior)
    )
    posterior = np.where(known[:, None] < 0, posterior, np.arange(d) == known[:, None])
    judged = crowd.judged | (known >= 0)[crowd.item]
    crowd = crowd._replace(
        posterior=posterior,
        judged=judged,
        allowance=float((1.0 + (known >= 0).sum() / GOLD) ** -0.5),
        answers=np.bincount(crowd.annotator, judged, len(answers.annotators)),
    )
    findings += [_of_correlation(correlation)]
    if gold is not None:
        findings = [*_contradiction(fit_crowd(answers).posterior, known), *findings]
    return Beside(crowd, before, known, picked, tuple(findings))


def _read_observations(answers: Answers, y: Any) -> tuple[_Observations, str, list[Finding]]:
    """The items that have an observation, bound."""
    table, items = read_table(y, "y"), len(answers.items)
    there = np.zeros(items, bool)
    for name, one in table.items():
        if len(one) != items:
            raise ValueError(
                f"{name}: expected an observation for each of the {items} items, in the order of "
                f"answers.items, got {len(one)}: missing where an item has none"
            )
        there |= one.present.reshape(items, -1).any(axis=1)
    rows = np.flatnonzero(there)
    if len(rows) < 3:
        raise ValueError(f"y: expected items with observations, got {len(rows)}")
    observed, points, description, warnings = bind_observations(take(table, rows))
    points = None if points is None else np.asarray(points, np.float64)
    return _Observations(rows, observed, points), description, list(map(input_finding, warnings))


def by_item(column: Column, item: Sequence[int], items: Sequence[Any]) -> Column:
    """A column by item, of rows of which an item may have several that say the same.

    Args:
        column: A column or block of ``n`` rows.
        item: ``[n]``, the number of each row's item, -1 for none.
        items: Names.

    Returns:
        One row an item, missing where it has none.

    Raises:
        ValueError: Rows of one item that differ.

    Example:
        >>> by_item(Column.of_codes("y", ["a", "b"], np.array([1, -1, 1])), [2, 2, 2], "ijk").codes
        array([-1, -1,  0], dtype=int32)
    """
    of = np.asarray(item, int)
    there = column.present.reshape(len(column), -1).any(axis=1)
    rows = np.flatnonzero(there & (of >= 0))
    first = np.full(len(items), -1)
    first[of[rows[::-1]]] = rows[::-1]
    block = column.is_block
    cells = np.where(column.present, column.values, 0) if block else column.codes
    cells = cells.reshape(len(column), -1)
    differs = (cells[rows] != cells[first[of[rows]]]).any(axis=1)
    if differs.any():
        row = int(rows[np.argmax(differs)])
        other = int(first[of[row]])
        one, two = (f"{show(np.asarray(column)[k])} (row {column.row_of(k)})" for k in (other, row))
        raise ValueError(
            f"{column.name}: expected one value an item, got {one} and {two} for item "
            f"{items[of[row]]!r} ({differs.sum()} such rows): make them the same, or give a table "
            "with a row an item (--items)"
        )
    has = first >= 0
    if not block:
        return Column(column.name, column.take(first[has]).values, has)
    lacking = has.reshape(-1, *[1] * (column.present.ndim - 1))
    return Column(column.name, column.values[first], column.present[first] & lacking)


def _said(given: _Observations, q: np.ndarray, d: int) -> np.ndarray:
    """``e`` of the items that have observations, 0 where those say nothing."""
    said, n = np.zeros((len(given.rows), d)), len(given.rows)
    kept = np.flatnonzero(np.bincount(q[given.rows].argmax(axis=1), minlength=d) > 1)
    if len(kept) < 2:
        return said
    labels = q[np.ix_(given.rows, kept)].argmax(axis=1)
    with float64():
        predicted, informative = predict_left_out(given.observed, given.points, labels)
    if informative:
        said[:, kept] = np.log(np.maximum(predicted, 1 / n)) - np.log(np.bincount(labels) / n)
    return said


def _likeliest(
    answers: Answers, said: np.ndarray, told: np.ndarray, known: np.ndarray
) -> tuple[float, np.ndarray]:
    """``rho``, and the posteriors without gold under it."""
    rows: Any = tuple(map(jnp.asarray, (answers.item, answers.annotator, answers.label)))
    items, d = said.shape
    size = np.bincount(answers.item[answers.label < d], minlength=items)
    start, ones = majority(rows[0], rows[2], items, d), jnp.ones(items)
    gold, best = np.flatnonzero(known >= 0), (-np.inf, 0.0, said)
    heard, model = said.any(), None
    for correlation in CORRELATIONS if heard else BY_GOLD:
        weight = power(size, correlation if heard else 0.0)
        if heard or model is None:
            options = {"m": len(answers.annotators), "classes": d}
            model, _ = fit(start, rows, weight, ones, evidence=jnp.asarray(said + told), **options)
        alone = posteriors(model, rows, jnp.asarray(weight))
        alone = np.asarray(tempered(alone, power(size, correlation) / weight), np.float64)
        without = alone * np.exp(said)
        total = without.sum(axis=1, keepdims=True)
        without /= total
        value = float(np.log(total).sum())
        if len(gold) >= ENOUGH:
            value = float(np.log(np.maximum(without[gold, known[gold]], 1e-6)).sum())
        if value > best[0]:
            best = value, correlation, without
    return best[1:]


def _recalibrated(before: np.ndarray, known: np.ndarray) -> tuple[float, np.ndarray]:
    """The power ``t`` and the shift of each class ``b`` that gold makes likeliest."""
    gold, d = np.flatnonzero(known >= 0), before.shape[1]
    if len(gold) < ENOUGH:
        return 1.0, np.zeros(d)
    logs, right = np.log(np.maximum(before[gold], 1e-30)), np.eye(d)[known[gold]]
    precision = np.append(1.0, np.full(d, 4.0))

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        z = np.exp(x[0]) * logs + x[1:]
        away = softmax(z, axis=1) - right
        slope = np.append(np.exp(x[0]) * (away * logs).sum(), away.sum(axis=0))
        value = (logsumexp(z, axis=1) - (z * right).sum(axis=1)).sum() + precision @ x**2 / 2
        return float(value), slope + precision * x

    best = minimize(loss, np.zeros(d + 1), jac=True, method="L-BFGS-B", bounds=[(-3, 3)] * (d + 1))
    return float(np.exp(best.x[0])), best.x[1:]


def _read_gold(answers: Answers, gold: Any) -> tuple[np.ndarray, np.ndarray, list[Finding]]:
    """Codes by item, -1 where nobody looked; which were picked; what could not be used."""
    items = len(answers.items)
    known, picked = np.full(items, -1), np.zeros(items, bool)
    if gold is None:
        return known, picked, []
    if not isinstance(gold, Gold):
        labels = gold if isinstance(gold, Mapping) else _by_item(answers, gold)
        gold = Gold(labels)
    place = {name: i for i, name in enumerate(answers.items)}
    code = {name: k for k, name in enumerate(answers.classes)}
    for item, label in gold.labels.items():
        if label not in code:
            raise ValueError(
                f"gold: expected one of the labels {', '.join(map(repr, answers.classes[:8]))}, "
                f"got {label!r} for item {item!r}"
                + did_you_mean(label, answers.classes, ": name all possible labels (classes=)")
            )
        if item in place:
            known[place[item]] = code[label]
    picked[[place[item] for item in gold.picked if item in place]] = True
    used, given = int((known >= 0).sum()), len(gold.labels)
    if not used:
        raise ValueError(
            f"gold: expected right labels of items that have answers, got {given} of others"
        )
    rest = f"; {given - used} are of items without answers" if used < given else ""
    return (
        known,
        picked,
        [
            Finding(
                "gold",
                "note",
                f"{used} of {items} items have gold{rest}",
                f"{int(picked.sum())} were picked for their doubt, the others are taken as a "
                "random sample of the rest",
                used,
            )
        ],
    )


def _by_item(answers: Answers, gold: Iterable[Any]) -> dict[Any, Any]:
    given = column(gold, "gold")
    if len(given) != len(answers.items):
        raise ValueError(
            f"gold: expected a label or none for each of the {len(answers.items)} items, in the "
            f"order of answers.items, got {len(given)}"
        )
    names = [answers.items[i] for i in np.flatnonzero(given.present)]
    return dict(zip(names, given.values.tolist(), strict=True))


def gold_accuracies(beside: Beside, model: Estimates, z: float) -> Estimates:
    """Accuracies by the posteriors of all items, put right by what gold shows of them.

    An annotator's accuracy is the mean of ``r``, the probability of the own label before gold (1 or
    0 where the item was picked), plus the mean of ``right - r`` on the items of the random sample,
    for the share of answers that they stand for. The errors' second moment has ten answers of all
    annotators added, and half an answer.

    Args:
        beside: :class:`Beside`.
        model: The accuracies without gold, for annotators with too little of it.
        z: Normal quantile of the intervals.

    Reference: Angelopoulos et al., *Prediction-powered inference*, 2023; a difference estimator of
    survey sampling.
    """
    crowd, known = beside.crowd, beside.known
    m = len(crowd.answers)
    expected = beside.before[crowd.item, crowd.label]
    right = (known[crowd.item] == crowd.label).astype(float)
    looked = known[crowd.item] >= 0
    random = crowd.judged & looked & ~beside.picked[crowd.item]
    exact = crowd.judged & looked & beside.picked[crowd.item]

    def total(values: np.ndarray, where: np.ndarray) -> np.ndarray:
        return np.bincount(crowd.annotator, np.where(where, values, 0.0), m)

    one, error = np.ones_like(expected), right - expected
    sample = total(one, random)
    rest = total(one, crowd.judged & ~exact)
    shift = total(error, random) / np.maximum(sample, 1.0)
    count = np.maximum(total(one, crowd.judged), 1.0)
    value = (total(right, exact) + total(expected, crowd.judged & ~exact) + rest * shift) / count
    square = total(error**2, random)
    pooled = square.sum() / max(sample.sum(), 1.0)
    variance = (square + STEADY * pooled + 0.5) / (sample + STEADY)
    left = np.maximum(1.0 - sample / np.maximum(rest, 1.0), 0.0)
    spread = rest / count * np.sqrt(variance * left / np.maximum(sample, 1.0))
    few = (sample < 2) & (rest > 0)
    value = np.clip(value, 0.0, 1.0)
    return Estimates(
        np.where(few, model.value, value),
        np.where(few, model.low, np.maximum(value - z * spread, 0.0)),
        np.where(few, model.high, np.minimum(value + z * spread, 1.0)),
        np.where(few, model.error, spread),
    )


def to_check(
    probabilities: np.ndarray, count: int, known: Iterable[int] = (), seed: int = 0
) -> list[tuple[int, bool]]:
    """Items that a person had best look at: half of them in most doubt, half at random.

    Those at random make what is estimated from them honest; those in doubt change most.

    Args:
        probabilities: Of the labels ``[items, d]``.
        count: How many.
        known: Items that have gold already.
        seed: Of those at random.

    Returns:
        Numbers of items, and whether each was picked for its doubt.

    Example:
        >>> sure = np.array([[0.5, 0.5], [0.9, 0.1], [0.6, 0.4], [1.0, 0.0]])
        >>> [item for item, doubt in to_check(sure, 2) if doubt]
        [0]
    """
    open_ = np.setdiff1d(np.arange(len(probabilities)), np.fromiter(known, int))
    if not 1 <= count <= len(open_):
        raise ValueError(f"expected 1 to {len(open_)} items to check, got {count}")
    doubt = open_[np.argsort(probabilities[open_].max(axis=1), kind="stable")][: count // 2]
    rest = np.setdiff1d(open_, doubt)
    chance = np.random.default_rng(seed).choice(rest, count - len(doubt), replace=False)
    return [(int(i), True) for i in doubt] + [(int(i), False) for i in np.sort(chance)]


def _of_observations(description: str, used: bool, rows: int, items: int) -> Finding:
    lacking = "" if rows == items else f"; {items - rows} of {items} items have none"
    told = "predict the labels" if used else "say nothing about the labels: they were left out"
    return Finding(
        "observations",
        "note" if used and rows == items else "warning",
        f"{description.removeprefix('observations: ')}: they {told}{lacking}",
        "they are one more voter on every item that has one" if used else "nothing changed by them",
        rows,
    )


def _of_correlation(correlation: float) -> Finding:
    return Finding(
        "shared errors",
        "note",
        f"the n answers of an item count as n / (1 + {correlation:g} (n - 1)) independent ones",
        "so far do their errors go together, by what is known beside the answers",
        correlation,
    )


def _contradiction(before: np.ndarray, known: np.ndarray) -> list[Finding]:
    """Gold that most often differs from what the answers say."""
    gold = np.flatnonzero(known >= 0)
    differs = int((before[gold].argmax(axis=1) != known[gold]).sum())
    if len(gold) < 5 or differs <= len(gold) / 2:
        return []
    return [
        Finding(
            "gold",
            "warning",
            f"gold contradicts the annotators together on {differs} of {len(gold)} items",
            "see that items and labels mean the same in both; gold was believed",
            differs,
        )
    ]
