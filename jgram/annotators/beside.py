"""What is known of the items beside their answers: observations of them, and gold for a few.

**Observations** are one more voter on every item. The predictors of jgram/left_out.py learn the
consensus ``c`` of the other items from their observations. As often as ``c`` is in doubt, what they
learn is: with ``q`` the posterior, its mean ``T[c, s]`` over the items of that consensus and the
mean ``share`` of ``p``, an item's own observation says

    e_i[s]  =  log p_i(s) - log share(s)        p_i(s) = sum_c P(c | observation, others) T[c, s]

which is added to its log posterior (jgram/annotators/posterior.py), and the consensus that comes of
it is learnt anew. Observations that do not predict the consensus better than the shares of the
classes say nothing, and nothing changes.

How much annotators share, ``rho``, observations tell only if they do not share it too. Under each
``rho`` the answers' posterior is the prior of what the observations say,

    l(rho)  =  sum_i log sum_s q_i[s] p_i(s) / share(s)

Where they err as the crowd does, they agree with it the more the surer it is, and ``l`` is largest
at the least ``rho``, as on six panels of language models and on LabelMe: believing that made
probabilities far too sure. Then the ``.5`` stands that is taken without observations, and they may
change labels but make nobody surer: all is taken to the power ``t`` under which the answers' own
consensus is on average as probable as it was. Where ``l`` is largest at more, observations see the
shared errors: then ``t = 1``, and ``rho`` is half way (of logarithms) from there to ``.5``, since
what they know they learnt from the consensus.

**Gold**, the right label of a few items, is their posterior. From twenty such items on they also
put right what is wrong with the posteriors as a whole: a power of the answers' part and one of the
observations', and a factor a class, ``q[s]^t exp(u e[s] + b[s])``, ``log t``, ``log u`` and ``b``
with normal priors of deviations 1, 1 and 1/2. They are fitted to posteriors from which a fifth of
the gold was left out in turn, else answers that gold explained would look surer than all others.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from jgram.annotators.answers import Answers
from jgram.annotators.readings import CORRELATION, FOLDS, STEADY, Crowd, Estimates, at, fit_crowd
from jgram.arrays import float64
from jgram.binding import bind_observations, input_finding
from jgram.data.columns import Column, column, did_you_mean, read_table, show, take
from jgram.findings import Finding
from jgram.left_out import predict_left_out

__all__ = ["Gold", "by_item", "gold_accuracies", "judge", "to_check"]

CORRELATIONS = (0.1, 0.2, 0.3, 0.4, CORRELATION)
ROUNDS = 4
ENOUGH = 20  # items with gold that put posteriors right
SEEN = 4.0  # nats by which observations see errors that the crowd shares


class Gold(NamedTuple):
    """The right labels of a few items.

    Attributes:
        labels: By item.
        picked: Items that were chosen for their doubt; the others are taken as a random sample of
            the rest.
    """

    labels: Mapping[Any, Any]
    picked: frozenset[Any] = frozenset()


def judge(answers: Answers, y: Any = None, gold: Any = None, *, incentive: bool = False) -> Crowd:
    """The crowd fitted with observations and gold; formulas at the top of this module.

    Args:
        answers: :class:`Answers`.
        y: Observations, one row for each of ``answers.items``: texts, columns or numbers.
        gold: :class:`Gold`, right labels by item, or one for each of ``answers.items``, ``None``
            where nobody looked.
        incentive: As in :func:`jgram.annotators.readings.fit_crowd`.

    Returns:
        :class:`jgram.annotators.readings.Crowd`.

    Raises:
        ValueError: Observations or gold that do not fit the answers.
    """
    known, picked, findings = _read_gold(answers, gold)
    options: dict[str, Any] = {"known": known, "incentive": incentive}
    if y is not None:
        given, description, warnings = _read_observations(answers, y)
        heard = _heard(answers, given, options)
        told = _of_observations(description, bool(heard), len(given[0]), len(answers.items))
        findings += [*warnings, told]
        if heard:
            options |= heard
            findings += [_of_correlation(heard["correlation"])]
    crowd = fit_crowd(answers, **options)
    if gold is not None:
        findings = [*_contradiction(fit_crowd(answers).posterior, known), *findings]
        crowd = _put_right(crowd, options)
    return crowd._replace(picked=picked, findings=tuple(findings))


def _read_observations(answers: Answers, y: Any) -> tuple[Any, str, list[Finding]]:
    """The items that have an observation, bound, and as numbers; what they are; warnings."""
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
    return (rows, observed, points), description, list(map(input_finding, warnings))


def _heard(answers: Answers, given: Any, options: dict[str, Any]) -> dict[str, Any]:
    """``e``, as ``evidence``, ``rho`` and ``t``; empty where observations say nothing."""
    rows, observed, points = given
    n, shape, rho = len(rows), (len(answers.items), len(answers.classes)), CORRELATION
    q = {each: fit_crowd(answers, correlation=each, **options).posterior for each in CORRELATIONS}
    alone, evidence, likely = q[rho][rows], {each: np.zeros(shape) for each in q}, {}
    seen = False
    for _ in range(ROUNDS):
        before = q[rho][rows]
        count = np.bincount(before.argmax(axis=1), minlength=shape[1])
        kept = np.flatnonzero(count > 1)
        if len(kept) < 2:
            return {}
        consensus = before[:, kept].argmax(axis=1)
        with float64():
            predicted, informative = predict_left_out(observed, points, consensus)
        if not informative:
            return {}
        for each, e in evidence.items():
            doubt = np.eye(len(kept))[consensus].T @ q[each][rows]
            p = predicted @ (doubt / doubt.sum(axis=1, keepdims=True))
            e[rows] = np.log(np.maximum(p, 1 / n)) - np.log(np.maximum(p.mean(axis=0), 1 / n))
            q[each] = fit_crowd(answers, correlation=each, evidence=e, **options).posterior
            likely[each] = -np.log((q[each] * np.exp(-e)).sum(axis=1)).sum()
        best = max(likely, key=lambda each: likely[each])
        seen = likely[best] > likely[CORRELATIONS[0]] + SEEN
        half = (best * CORRELATION) ** 0.5 if seen else CORRELATION
        rho = min(CORRELATIONS, key=lambda each: abs(each - half))
    sure = np.ones(shape[0])
    if not seen:
        sure[rows] = _no_surer(q[rho][rows], alone)
    return {"correlation": rho, "evidence": evidence[rho], "sure": sure}


def _no_surer(q: np.ndarray, alone: np.ndarray) -> float:
    """The power, 1 at most, under which the answers' consensus is as likely as by answers alone."""
    from scipy.optimize import brentq  # a tenth of a second, rarely needed

    logs, best = np.log(np.maximum(q, 1e-30)), alone.argmax(axis=1)

    def beyond(t: float) -> float:
        return float((at(softmax(t * logs, axis=1), best) - at(alone, best)).mean())

    root: Any = brentq(beyond, 0.0, 1.0) if beyond(1.0) > 0.0 else 1.0
    return root


def _put_right(crowd: Crowd, options: dict[str, Any]) -> Crowd:
    """Posteriors as gold has them, and without it as the gold that was left out would have them."""
    known = crowd.known
    gold, before = np.flatnonzero(known >= 0), crowd.before.copy()
    if len(gold) >= ENOUGH:
        for fold in range(FOLDS):
            left = gold[fold::FOLDS]
            others: dict[str, Any] = {**options, "known": known.copy()}
            others["known"][left] = -1
            before[left] = fit_crowd(crowd.source, **others).before[left]
    said = options.get("evidence", np.zeros(before.shape))
    answered = np.log(np.maximum(before, 1e-30)) - options.get("sure", np.ones(1))[:, None] * said
    parts = np.stack([answered, said])
    powers, shift = _recalibrated(parts[:, gold], known[gold])
    before = softmax(np.tensordot(powers, parts, 1) + shift, axis=1)
    posterior = np.where(known[:, None] < 0, before, np.arange(before.shape[1]) == known[:, None])
    return crowd._replace(before=before, posterior=posterior)


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


def _recalibrated(parts: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Powers of both parts ``[2, n, d]`` and a shift of each class, the likeliest by gold."""
    from scipy.optimize import minimize

    d = parts.shape[2]
    if len(right) < ENOUGH:
        return np.ones(2), np.zeros(d)
    precision = np.append([1.0, 1.0], np.full(d, 4.0))

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        weighed = np.exp(x[:2])[:, None, None] * parts
        z = weighed.sum(axis=0) + x[2:]
        away = softmax(z, axis=1) - np.eye(d)[right]
        slope = np.append((away * weighed).sum(axis=(1, 2)), away.sum(axis=0))
        value = (logsumexp(z, axis=1) - z[np.arange(len(z)), right]).sum() + precision @ x**2 / 2
        return float(value), slope + precision * x

    best = minimize(loss, np.zeros(d + 2), jac=True, method="L-BFGS-B", bounds=[(-3, 3)] * (d + 2))
    return np.exp(best.x[:2]), best.x[2:]


def _read_gold(answers: Answers, gold: Any) -> tuple[np.ndarray, np.ndarray, list[Finding]]:
    """Codes by item, -1 where nobody looked; which were picked; what could not be used."""
    items = len(answers.items)
    known, picked = np.full(items, -1), np.zeros(items, bool)
    if gold is None:
        return known, picked, []
    if not isinstance(gold, Gold | Mapping):
        given = column(gold, "gold")
        if len(given) != items:
            raise ValueError(
                f"gold: expected a label or none for each of the {items} items, in the order of "
                f"answers.items, got {len(given)}"
            )
        names = [answers.items[i] for i in np.flatnonzero(given.present)]
        gold = dict(zip(names, given.values.tolist(), strict=True))
    gold = gold if isinstance(gold, Gold) else Gold(gold)
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
    told = Finding(
        "gold",
        "note",
        f"{used} of {items} items have gold{rest}",
        f"{int(picked.sum())} were picked for their doubt, the others are taken as a random sample "
        "of the rest",
        used,
    )
    return known, picked, [told]


def gold_accuracies(crowd: Crowd, model: Estimates, z: float) -> Estimates:
    """Accuracies by the posteriors of all items, put right by what gold shows of them.

    An annotator's accuracy is the mean of ``r``, the probability of the own label before gold (1 or
    0 where the item was picked), plus the mean of ``right - r`` on the items of the random sample,
    for the share of answers that they stand for. The errors' second moment has ten answers of all
    annotators added, and half an answer.

    Args:
        crowd: Judged with gold, or without.
        model: The accuracies without gold, for annotators with too little of it.
        z: Normal quantile of the intervals.

    Reference: Angelopoulos et al., *Prediction-powered inference*, 2023; a difference estimator of
    survey sampling.
    """
    known, m = crowd.known[crowd.item], len(crowd.answers)
    expected = crowd.before[crowd.item, crowd.label]
    right = (known == crowd.label).astype(float)
    random = crowd.judged & (known >= 0) & ~crowd.picked[crowd.item]
    exact = crowd.judged & (known >= 0) & crowd.picked[crowd.item]

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
    few, value = (sample < 2) & (rest > 0), np.clip(value, 0.0, 1.0)
    low, high = np.maximum(value - z * spread, 0.0), np.minimum(value + z * spread, 1.0)
    found = zip(model, (value, low, high, spread), strict=True)
    return Estimates(*(np.where(few, without, by_gold) for without, by_gold in found))


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
        "so far do their errors go together, by the observations"
        if correlation < CORRELATION
        else "so far do errors go together in other crowds; these observations may err as the "
        "answers do, and cannot tell",
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
