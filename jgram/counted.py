"""Distinct records with counts: all that scores of categories ever need of a file of any size.

The distinct records ``(x_1, .., x_k, y)`` of categories, each with the number of times it occurs,
are sufficient: passed on as ``weights`` they give the scores, standard errors and tests of the
records themselves. Parts of the data are counted apart, each by its own vocabulary, and merged *by
label*, which is associative and commutative but for the order of labels. Counts are int64.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Counted", "Fold", "count", "fold", "merge", "objects", "representatives"]

_DENSE = 1 << 16  # so many combinations are counted in an array, there or not
_LARGEST_KEY = 1 << 62


@dataclass(frozen=True, eq=False)
class Counted:
    """Distinct records of named columns, each with its count.

    Attributes:
        labels: Name of a column to its labels.
        codes: ``[distinct, columns]`` int32 positions among the labels, -1 where missing; sorted.
        counts: ``[distinct]`` int64, at least 1.
        places: Name of a column to its labels as they stand in files, and their codes.
        dropped: Records left out because they lack a value.
    """

    labels: Mapping[str, tuple[Any, ...]]
    codes: np.ndarray
    counts: np.ndarray
    places: Mapping[str, Mapping[Any, int]] = field(default_factory=dict, repr=False)
    dropped: int = 0

    @property
    def num_records(self) -> int:
        """How many records were counted."""
        return int(self.counts.sum())

    def table(self) -> dict[str, np.ndarray]:
        """The columns ``[distinct]``: objects, ``None`` where missing.

        Integers and bools without gaps are in their own type.

        Example:
            >>> found = merge([count({"x": [0, 1, 0]}, {"x": ("no", "yes")})])
            >>> found.table()["x"].tolist(), found.counts.tolist()
            (['no', 'yes'], [2, 1])
        """
        columns = {}
        for (name, labels), codes in zip(self.labels.items(), self.codes.T, strict=True):
            values = objects(labels)[codes]
            plain = set(map(type, values)) in ({int}, {bool})
            columns[name] = np.array(values.tolist()) if plain else values
        return columns


class Fold(NamedTuple):
    """Which records are alike.

    Attributes:
        first: ``[distinct]``, the first of each, increasing.
        place: ``[n]``, where the like of every record stands in ``first``.
    """

    first: np.ndarray
    place: np.ndarray


def objects(labels: Sequence[Any]) -> np.ndarray:
    """Labels as objects with ``None`` at the end, where the code -1 finds it."""
    values = np.empty(len(labels) + 1, object)
    values[:-1] = labels
    return values


def count(
    codes: Mapping[str, Any], labels: Mapping[str, Sequence[Any]], counts: np.ndarray | None = None
) -> Counted:
    """Distinct records of one part.

    Args:
        codes: Name to codes ``[n]``, -1 where missing.
        labels: Name to the labels of the codes, distinct; used or not.
        counts: int64 ``[n]``, how many records each row stands for; 1 by default.

    Example:
        >>> count({"x": [1, 1, -1]}, {"x": ("no", "yes")}).counts.tolist()
        [1, 2]
    """
    columns = [np.asarray(column) for column in codes.values()]
    rows, counts = fold(columns, [len(labels[name]) for name in codes], counts)
    return Counted({name: tuple(labels[name]) for name in codes}, rows, counts)


def merge(parts: Sequence[Counted]) -> Counted:
    """Distinct records of one part or more together, by label in order of appearance.

    Example:
        >>> one = count({"x": [0, 0]}, {"x": ("b",)})
        >>> two = count({"x": [0, 1]}, {"x": ("b", "a")})
        >>> both = merge([one, two])
        >>> both.labels["x"], both.counts.tolist()
        (('b', 'a'), [3, 1])
    """
    labels, columns = {}, {}
    for j, name in enumerate(parts[0].labels):
        place: dict[tuple[bool, Any], int] = {}  # True is not 1, but 1.0 is
        recoded = []
        for part in parts:
            keys = [(isinstance(label, bool), label) for label in part.labels[name]]
            codes = np.array([place.setdefault(key, len(place)) for key in keys] + [-1], np.int32)
            recoded.append(codes[part.codes[:, j]])
        labels[name] = [label for _, label in place]
        columns[name] = np.concatenate(recoded)
    return count(columns, labels, np.concatenate([part.counts for part in parts]))


def fold(
    codes: Sequence[np.ndarray], sizes: Sequence[int], counts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of columns of codes, and how often each occurs.

    Args:
        codes: Columns ``[n]`` of ints, -1 where missing.
        sizes: The number of codes of each column.
        counts: int64 ``[n]``, how many records each row stands for; 1 by default.

    Returns:
        Rows int32 ``[distinct, columns]`` in lexicographic order, and their counts int64.

    Example:
        >>> rows, counts = fold([np.array([1, 0, 1]), np.array([0, 0, 0])], [2, 1])
        >>> rows.tolist(), counts.tolist()
        ([[0, 0], [1, 0]], [1, 2])
    """
    keys, size = _keys(codes, sizes)
    if size <= max(_DENSE, 4 * len(keys)):
        found = _sums(keys, size, counts)
        occupied = np.flatnonzero(found)
        found = found[occupied]
    else:
        occupied, place = np.unique(keys, axis=0, return_inverse=True)
        found = _sums(place.ravel(), len(occupied), counts)
    if occupied.ndim == 1:
        occupied = np.stack(np.unravel_index(occupied, [size + 1 for size in sizes]), axis=1) - 1
    return occupied.astype(np.int32), found


def representatives(codes: Sequence[np.ndarray], sizes: Sequence[int]) -> Fold:
    """The first of every distinct record, in order of appearance, and which each record is.

    Args:
        codes: Columns ``[n]`` of ints, -1 where missing.
        sizes: The number of codes of each column.

    Example:
        >>> found = representatives([np.array([1, 0, 1, 0])], [2])
        >>> found.first.tolist(), found.place.tolist()
        ([0, 1], [0, 1, 0, 1])
    """
    keys, size = _keys(codes, sizes)
    if size > max(_DENSE, 4 * len(keys)):
        keys = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        size = int(keys.max()) + 1
    n = len(keys)
    first = np.full(size, n, np.int64)
    first[keys[::-1]] = np.arange(n - 1, -1, -1)  # of equal positions the last one stays
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < n)]
    place = np.empty(size, np.int32 if n < 2**31 else np.int64)
    place[order] = np.arange(len(order))
    return Fold(first[order], place[keys])


# --------------------------------------------------------------------------------------------


def _keys(codes: Sequence[np.ndarray], sizes: Sequence[int]) -> tuple[np.ndarray, int]:
    """One number a row, in the rows' lexicographic order, and their bound; rows where too large."""
    size = math.prod(each + 1 for each in sizes)
    if size > _LARGEST_KEY:
        return np.stack(codes, axis=1), size
    kind = np.int32 if size < 2**31 else np.int64
    keys = codes[0].astype(kind)
    keys += 1
    for column, each in zip(codes[1:], sizes[1:], strict=True):
        keys *= each + 1
        keys += column.astype(kind, copy=False)
        keys += 1
    return keys, size


def _sums(places: np.ndarray, size: int, counts: np.ndarray | None) -> np.ndarray:
    if counts is None:
        return np.bincount(places, minlength=size)
    found = np.zeros(size, np.int64)
    np.add.at(found, places, counts)
    return found
