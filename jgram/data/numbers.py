"""Numbers made ready to be reports or outcomes: bins, changes, and scores by rank."""

import itertools
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from jgram.data.columns import Column, show
from jgram.data.observations import check_observations, numeric
from jgram.data.written import is_number

__all__ = [
    "Bins", "ReportKind", "are_numbers", "cut", "difference", "look_like_grades", "normal_scores",
    "quantile_bins",
]  # fmt: skip

ReportKind = Literal["auto", "categories", "numbers"]
_FEW_CLASSES = 20  # whole numbers that may be names
MOST_SLICES = 200  # of a column: more are names of records
_QUARTERED = 12  # distinct numbers or dates beyond which they are cut in quarters


class Bins(NamedTuple):
    """Numbers in bins: ``codes`` int32 ``[n]``, inner ``edges``, and the bins' ``names``."""

    codes: np.ndarray
    edges: np.ndarray
    names: tuple[str, ...]


def quantile_bins(values: Any, bins: int, *, name: str = "values") -> Bins:
    """Numbers in ``bins`` bins of about equal size, cut at their empirical quantiles.

    Bin ``k`` holds the values above edge ``k - 1`` and up to edge ``k``; the edges are the
    quantiles ``1/bins, 2/bins, ...`` (linear interpolation). Ties that would leave fewer bins
    are refused.

    Args:
        values: ``[n]`` finite numbers.
        bins: The number of bins.
        name: What error messages call the column.

    Returns:
        Codes from 0, inner edges ``[bins - 1]``, and bin names.

    Raises:
        ValueError: Fewer than 2 bins or more than records, values that are not finite numbers,
            edges that coincide.

    Example:
        >>> quantile_bins([5.0, 1.0, 9.0, 3.0], 2)
        Bins(codes=array([1, 0, 1, 0], dtype=int32), edges=array([4.]), names=('<= 4', '> 4'))
    """
    if not isinstance(bins, int | np.integer):
        raise ValueError(f"{name}: expected a whole number of bins, got {bins!r}")
    if bins < 2:
        raise ValueError(f"{name}: expected at least 2 bins, got {bins}")
    values = check_observations(values, name=name, kind="numeric").values
    if values.ndim != 1:
        raise ValueError(f"{name}: expected one column [n] to cut, got shape {values.shape}")
    levels, counts = np.unique(values, return_counts=True)
    most = min(bins, len(levels) + 1)  # more cannot all hold values
    edges, codes, used = _cut(values, most)
    if used < bins:
        tried = range(min(most, 51) - 1, 1, -1)
        fewer = next((k for k in tried if _cut(values, k)[2] == k), None)
        raise ValueError(
            f"{name}: {bins} bins asked for, {used} would hold values: quantiles coincide, "
            f"{counts.max()} of {len(values)} values being {levels[counts.argmax()]:g}: use "
            f"{f'{fewer} bins or ' if fewer else ''}categories of your own"
        )
    marks = [f"{edge:.6g}" for edge in edges]
    middle = [f"{low} to {high}" for low, high in itertools.pairwise(marks)]
    return Bins(codes, edges, (f"<= {marks[0]}", *middle, f"> {marks[-1]}"))


def difference(values: Any, *, name: str = "values") -> np.ndarray:
    """Period-to-period changes; the first record has none and is dropped.

    Args:
        values: ``[n]`` numbers or ``[n, k]`` columns of them, in order of time.
        name: What error messages call the column.

    Returns:
        ``[n - 1, ...]`` changes.

    Raises:
        ValueError: Fewer than 2 records, values that are not finite numbers.

    Example:
        >>> difference([3, 5, 4])
        array([ 2., -1.])
    """
    values = check_observations(values, name=name, kind="numeric").values
    if len(values) < 2:
        raise ValueError(f"{name}: expected at least 2 records to take changes of, got 1")
    return np.diff(values, axis=0)


def cut(column: Column) -> tuple[list[str], np.ndarray]:
    """The slices of a column in words, and which of them each record is in.

    Numbers and dates that are many are cut in quarters; records without a value are a slice; more
    than 200 slices, or one alone, are refused.
    """
    if column.is_block:
        raise ValueError(f"{column.name}: expected one column to slice by, got several")
    given = column.plain
    values, place = given.factors
    names = [*map(str, values)]
    if given.measured and len(values) > _QUARTERED:
        edges, order = np.quantile(place, [0.25, 0.5, 0.75]), place
        place = np.unique(np.searchsorted(edges, order), return_inverse=True)[1]
        each = [order[place == quarter] for quarter in range(place.max() + 1)]
        names = [f"{values[one.min()]} to {values[one.max()]}" for one in each]
    codes = np.full(len(given), len(names))
    codes[given.present] = place
    names += [] if given.present.all() else ["no value"]
    if not 2 <= len(names) <= MOST_SLICES:
        raise ValueError(
            f"{column.name}: expected 2 to {MOST_SLICES} values to slice by, got {len(names)}"
        )
    return names, codes


def _cut(values: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Inner edges, codes, and how many bins hold values.

    Positions of quantiles are exact fractions, so that an edge that is a value holds that value.
    """
    ranked = np.sort(values)
    position, part = np.divmod(np.arange(1, bins) * (len(values) - 1), bins)
    above = ranked[np.minimum(position + 1, len(values) - 1)]
    edges = ranked[position] + (above - ranked[position]) * part / bins
    codes = np.searchsorted(edges, values, side="left").astype(np.int32)
    return edges, codes, len(np.unique(codes))


def are_numbers(reports: Mapping[str, Column], kind: ReportKind = "auto") -> bool:
    """Whether reports are amounts, grades or scores rather than categories.

    Found so where all are numbers, and one has fractions, several negative values, or whole numbers
    that lie far apart. Numbers beside words are refused.
    """
    if kind not in get_args(ReportKind):
        raise ValueError(f"report_kind: expected auto, categories or numbers, got {kind!r}")
    used = [one.plain for one in reports.values() if one.values.size]
    numbers = [one for one in used if one.kind == "number" and not one.declared]
    amounts = kind == "numbers"
    for one in numbers if kind == "auto" else ():
        values, labels = one.values, one.factors[0]
        apart = float(values.max()) - float(values.min()) > 2 * len(labels) > 2 * _FEW_CLASSES
        negative = sum(label < 0 for label in labels[:2]) == 2
        amounts |= apart or negative or bool((values != np.round(values)).any())
    if not amounts:
        return False
    if other := next((one for one in used if one not in numbers), None):
        beside = f"numbers as in {numbers[0].name!r}" if numbers else "numbers"
        at = next((i for i, value in enumerate(other.values) if not is_number(value)), 0)
        raise ValueError(
            f"{other.name}: expected {beside}, got {show(other.values[at])} in row "
            f"{other.row(at)}: rank numbers beside numbers and categories beside categories"
        )
    return True


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
    any increasing transformation. ``weights`` are frequencies ``[n]``.

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
