"""How many labels are wrong, by the records that somebody checked.

Records stand in an order of suspicion, which is cut in stretches: the last half, the half before
it, and so on. The checked records of a stretch are taken as a random sample of it, whose errors lie
in the exact (hypergeometric) interval; the stretches' errors add up by squares. A stretch in which
nobody looked is part of the one before it for the upper limit, of the one after it for the lower.
The interval holds where the records to check were chosen before anybody looked, at random or by
their place in the order, and where errors do not become more frequent further down.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from jgram.arrays import Bool, Float, Int

__all__ = ["Audit", "audit", "audit_sample"]

SHORTEST = 15  # records in the first stretch, at least, where there are that many


class Audit(NamedTuple):
    """The number of wrong labels with its 95% interval."""

    number: int
    interval: tuple[int, int]


def audit(
    checked: Bool[np.ndarray, " n"],
    wrong: Bool[np.ndarray, " n"],
    expected: Float[np.ndarray, " n"],
) -> Audit:
    """Number of wrong labels from checked records; all arrays in the order of suspicion.

    Args:
        checked: Whether somebody looked.
        wrong: Whether the label was found wrong; read where ``checked``.
        expected: Probability of a wrong label, for the stretches in which nobody looked.

    Example:
        >>> checked = np.arange(100) % 2 == 0
        >>> audit(checked, np.arange(100) < 20, np.zeros(100))
        Audit(number=19, interval=(14, 27))

    Reference: Zou and Donner, *Construction of confidence limits about effect measures*, 2008, for
    intervals of sums from those of the parts.
    """
    n, wrong = len(checked), checked & wrong
    unseen = n if checked.all() else int(np.argmin(checked))
    edges = np.unique([*_stretches(n), unseen])  # what was checked from the top down is known
    starts, sizes = edges[:-1], np.diff(edges)
    looked, bad = (np.add.reduceat(part, starts, dtype=int) for part in (checked, wrong))
    guess = np.add.reduceat(np.where(checked, 0.0, expected), starts)
    estimate = np.where(looked > 0, sizes * bad / np.maximum(looked, 1), guess)
    parts = np.stack([sizes, looked, bad, estimate], axis=1)

    def squares(groups: Any, kind: int) -> float:
        """Squared distances of a limit: of the errors, or of the labels that are none."""
        found = 0.0
        for size, sample, errors, middle in (group.sum(axis=0) for group in groups):
            few, middle = ((errors, middle), (sample - errors, size - middle))[kind]
            found += max(middle - _fewest(int(size), int(sample), int(few)), 0.0) ** 2
        return found

    head, *above = np.split(parts, np.flatnonzero(looked))
    *below, tail = np.split(parts, np.flatnonzero(looked) + 1)
    up, down = squares(above, 1), squares(below, 0)
    highest, lowest = head[:, 0].sum() - head[:, 3].sum(), -tail[:, 3].sum()
    number, seen = estimate.sum(), int(wrong.sum())
    low = max(math.floor(number + lowest - math.sqrt(down) + 1e-9), seen)
    high = min(math.ceil(number + highest + math.sqrt(up) - 1e-9), n - int(checked.sum()) + seen)
    return Audit(int(np.clip(round(number), low, high)), (low, high))


def audit_sample(n: int, count: int, seed: int = 0) -> Int[np.ndarray, " count"]:
    """Places in the order to check: a random sample of every stretch, denser at the top.

    A stretch of ``s`` records gets checks in proportion to ``s^(2/3)``: the interval is short where
    its length comes from stretches without a single error.

    Example:
        >>> audit_sample(1000, 5).tolist()
        [38, 150, 313, 706, 959]
    """
    rng, edges = np.random.default_rng(seed), _stretches(n)
    sizes = np.diff(edges)
    ends = np.round(min(count, n) * np.cumsum(sizes ** (2 / 3)) / np.sum(sizes ** (2 / 3)))
    wanted = np.minimum(np.diff(ends.astype(int), prepend=0), sizes)
    for last in range(len(sizes) - 1, -1, -1):  # what short stretches cannot take
        wanted[last] += min(min(count, n) - wanted.sum(), sizes[last] - wanted[last])
    each = zip(edges, sizes, wanted, strict=False)
    return np.concatenate([np.sort(at + rng.permutation(size)[:few]) for at, size, few in each])


def _stretches(n: int) -> np.ndarray:
    edges = [n]
    while edges[-1] >= 2 * SHORTEST:
        edges.append(edges[-1] // 2)
    return np.array([0, *edges[::-1]])


def _fewest(size: int, sample: int, found: int, level: float = 0.025) -> int:
    """The fewest errors of ``size`` with a probability above ``level`` of ``found`` or more."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])

    def choose(total: Any, part: Any) -> Any:
        return logs[total] - logs[part] - logs[total - part]

    def probability(errors: int) -> float:
        drawn = np.arange(max(found, sample - (size - errors)), min(sample, errors) + 1)
        terms = choose(errors, drawn) + choose(size - errors, sample - drawn)
        return float(np.exp(terms - choose(size, sample)).sum())

    low, high = found, size - (sample - found)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if probability(middle) > level else (middle + 1, high)
    return low
