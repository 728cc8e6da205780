"""Means with intervals, rank distances and proportions, over trials on the last axis."""

import math
from typing import Any

import numpy as np

Z = 1.959963984540054


def mean_interval(values: Any) -> dict[str, np.ndarray]:
    """Mean over the last axis and the half-width 1.96 SE of its 95% interval."""
    values = np.asarray(values, float)
    spread = values.std(axis=-1, ddof=1) if values.shape[-1] > 1 else np.zeros(values.shape[:-1])
    return {"mean": values.mean(axis=-1), "half": Z * spread / math.sqrt(values.shape[-1])}


def proportion(successes: Any, trials: int) -> dict[str, float]:
    """A share with its 95% Wilson interval, which stays in [0, 1] and is never empty."""
    share = float(np.sum(successes)) / trials
    scale = 1.0 + Z**2 / trials
    centre = (share + Z**2 / (2 * trials)) / scale
    half = Z * math.sqrt(share * (1 - share) / trials + Z**2 / (4 * trials**2)) / scale
    return {"share": share, "low": max(0.0, centre - half), "high": min(1.0, centre + half)}


def pair_signs(values: Any) -> np.ndarray:
    """Which of two entries is larger, -1, 0 or 1, for every pair on the last axis."""
    values = np.asarray(values, float)
    first, second = np.triu_indices(values.shape[-1], 1)
    a, b = values[..., first], values[..., second]
    return (a > b).astype(int) - (a < b)  # not a difference: two scores may both be -inf


def rank_distance(scores: Any, errors: Any) -> np.ndarray:
    """Normalised Kendall-tau distance of the reversed score order from the order of the errors.

    0 is the same order, 1/2 what chance gives, 1 the opposite; a tie in one order only counts 1/2.
    """
    return np.abs(pair_signs(scores) + pair_signs(errors)).mean(axis=-1) / 2


def same_ranking(scores: Any, errors: Any) -> np.ndarray:
    """Whether the reversed score order is the order of the errors in every pair, ties included."""
    return (pair_signs(scores) == -pair_signs(errors)).all(axis=-1)


def holm(p_values: dict[Any, float]) -> dict[Any, float]:
    """Holm's adjustment of p-values for looking at all of them.

    Example:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    adjusted, largest = {}, 0.0
    for passed, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - passed) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def tie_groups(
    order: list[Any], p_values: dict[frozenset[Any], float], level: float = 0.05
) -> list[list[Any]]:
    """The largest runs of the order in which no pair can be separated.

    Groups may overlap: the first may not be separable from the second, nor the second from the
    third, while the first and the third are.

    Args:
        order: Names, best first.
        p_values: Adjusted p-value of every pair.
        level: A pair at or above cannot be separated.

    Example:
        >>> pairs = {frozenset("ab"): 0.5, frozenset("bc"): 0.5, frozenset("ac"): 0.01}
        >>> tie_groups(list("abc"), pairs)
        [['a', 'b'], ['b', 'c']]
    """
    groups: list[list[Any]] = []
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and all(
            p_values[frozenset((order[stop], other))] >= level for other in order[start:stop]
        ):
            stop += 1
        if not groups or order[stop - 1] not in groups[-1]:
            groups.append(order[start:stop])
    return groups
