"""How many labels are wrong, by the records that somebody checked.

Records stand in an order of suspicion, which is cut in stretches: the last half, the half before
it, and so on. Within a stretch the checked records are taken as a random sample, so that its
number of errors lies in the exact (hypergeometric) interval of a sample without replacement, and
the stretches' errors add up by squares. A stretch in which nobody looked counts as part of the
one before it for the upper limit and of the one after it for the lower limit.

So the interval holds where the records to check were chosen before anybody looked, at random or
by their place in the order, and where errors do not become more frequent further down.
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

    Returns:
        The estimate and its interval.

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
    looked, bad = (
        np.add.reduceat(checked, starts, dtype=int),
        np.add.reduceat(wrong, starts, dtype=int),
    )
    guess = np.add.reduceat(np.where(checked, 0.0, expected), starts)
    estimate = np.where(looked > 0, sizes * bad / np.maximum(looked, 1), guess)
    parts = np.stack([sizes, looked, bad, estimate], axis=1)

    up, down = 0.0, 0.0  # squared distances of the limits
    head, *groups = np.split(parts, np.flatnonzero(looked))
    highest = head[:, 0].sum() - head[:, 3].sum()
    for size, sample, found, middle in (group.sum(axis=0) for group in groups):
        most = size - _fewest(int(size), int(sample), int(sample - found))
        up += max(most - middle, 0.0) ** 2
    *groups, tail = np.split(parts, np.flatnonzero(looked) + 1)
    lowest = -tail[:, 3].sum()
    for size, sample, found, middle in (group.sum(axis=0) for group in groups):
        down += max(middle - _fewest(int(size), int(sample), int(found)), 0.0) ** 2

    number, seen = estimate.sum(), int(wrong.sum())
    low = max(math.floor(number + lowest - math.sqrt(down) + 1e-9), seen)
    high = min(math.ceil(number + highest + math.sqrt(up) - 1e-9), n - int(checked.sum()) + seen)
    return Audit(int(np.clip(round(number), low, high)), (low, high))


def audit_sample(n: int, count: int, seed: int = 0) -> Int[np.ndarray, " count"]:
    """Places in the order to check: a random sample of every stretch, denser at the top.

    A stretch of ``s`` records gets checks in proportion to ``s^(2/3)``, which makes the interval
    short where its length comes from stretches without a single error.

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
    return np.concatenate(
        [
            np.sort(start + rng.permutation(end - start)[:number])
            for start, end, number in zip(edges, edges[1:], wanted, strict=False)
        ]
    )


def _stretches(n: int) -> np.ndarray:
    edges = [n]
    while edges[-1] >= 2 * SHORTEST:
        edges.append(edges[-1] // 2)
    return np.array([0, *edges[::-1]])


def _fewest(size: int, sample: int, found: int, level: float = 0.025) -> int:
    """The fewest errors among ``size`` records that make ``found`` or more in a sample likely.

    Likely is a probability above ``level``, in a sample without replacement.
    """
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
