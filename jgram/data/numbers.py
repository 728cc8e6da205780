"""Reports that are amounts, grades or scores: found, and read by the ranks of their values."""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from jgram.data.columns import Column, show
from jgram.data.observations import numeric
from jgram.data.written import is_number

__all__ = ["ReportKind", "are_numbers", "look_like_grades", "normal_scores"]

ReportKind = Literal["auto", "categories", "numbers"]
_FEW_CLASSES = 20  # whole numbers that may be names


def are_numbers(reports: Mapping[str, Column], kind: ReportKind = "auto") -> bool:
    """Whether reports are amounts, grades or scores rather than categories.

    Found so where all are numbers, and one has fractions, several negative values, or whole numbers
    that lie far apart.

    Raises:
        ValueError: Numbers beside words, or an unknown kind.

    Example:
        >>> from jgram.data.columns import read
        >>> [are_numbers({"a": read(x, "a")}) for x in ([1, 2, 3], [1.5, 2.0, 2.5], [-4, -1, 3])]
        [False, True, True]
    """
    if kind not in get_args(ReportKind):
        raise ValueError(f"report_kind: expected auto, categories or numbers, got {kind!r}")
    used = [one.plain for one in reports.values() if one.values.size]
    numbers = [one for one in used if one.kind == "number" and not one.declared]
    if kind == "categories" or not (kind == "numbers" or any(map(_is_amount, numbers))):
        return False
    if other := next((one for one in used if one not in numbers), None):
        beside = f"numbers as in {numbers[0].name!r}" if numbers else "numbers"
        at = next((i for i, value in enumerate(other.values) if not is_number(value)), 0)
        raise ValueError(
            f"{other.name}: expected {beside}, got {show(other.values[at])} in row "
            f"{other.row(at)}: rank numbers beside numbers and categories beside categories"
        )
    return True


def _is_amount(given: Column) -> bool:
    values, size = given.values, len(given.factors[0])
    apart = float(values.max()) - float(values.min()) > 2 * size > 2 * _FEW_CLASSES
    negative = sum(label < 0 for label in given.factors[0][:2]) == 2
    return apart or negative or bool((values != np.round(values)).any())


def look_like_grades(reports: Mapping[str, Column]) -> tuple[str, ...]:
    """A warning of whole numbers that are read as categories and may be grades."""
    used = [one for one in reports.values() if one.values.size]
    if not used or any(one.kind != "number" or one.declared for one in used):
        return ()
    seen = {label for one in used for label in one.factors[0]}
    if len(seen) <= _FEW_CLASSES and (min(seen) == 0 or len(seen) < 4):
        return ()
    return (
        f"whole numbers from {min(seen)} to {max(seen)} are read as categories, whose order says "
        "nothing: where they are grades or amounts, report_kind='numbers' (--report-kind numbers)",
    )


def normal_scores(given: Column, weights: np.ndarray | None = None) -> np.ndarray:
    """Quantiles of the normal law at the mid-ranks of a report of numbers, NaN where it has none.

    What they say does not depend on a scale, nor on how strict a judge is: they are the same after
    any increasing transformation.

    Args:
        given: Numbers ``[n]``.
        weights: Frequencies ``[n]``.

    Raises:
        ValueError: No number at all, or infinite ones.

    Example:
        >>> from jgram.data.columns import read
        >>> normal_scores(read([1, 10, 10, 1000], "a")).round(2)
        array([-1.15,  0.  ,  0.  ,  1.15])
    """
    from scipy.special import ndtri  # a tenth of a second

    if not given.values.size:
        raise ValueError(f"{given.name}: expected numbers, got none in {len(given)} records")
    given = given.plain
    _, place = np.unique(numeric(given.take(given.present.nonzero()[0])), return_inverse=True)
    mass = np.bincount(place, None if weights is None else weights[given.present])
    total = max(float(mass.sum()), 1e-300)
    middle = np.clip((np.cumsum(mass) - mass / 2) / total, 0.5 / total, 1 - 0.5 / total)
    scores = np.full(len(given), np.nan)
    scores[given.present] = ndtri(middle)[place]
    return scores
