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

__all__ = ["Counted", "Fold", "count", "merge", "representatives"]

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
        """
        columns = {}
        for (name, labels), codes in zip(self.labels.items(), self.codes.T, strict=True):
            values = np.array([*labels, None], object)[codes]
            plain = set(map(type, values)) in ({int}, {bool})
            columns[name] = np.array(values.tolist()) if plain else values
        return columns


class Fold(NamedTuple):
    """Which records are alike: the first of each, increasing ``[distinct]``, and the place of every
    record's like among those ``[n]``."""

    first: np.ndarray
    place: np.ndarray


def count(
    columns: Mapping[str, tuple[Sequence[Any], Any]], counts: np.ndarray | None = None
) -> Counted:
    """Distinct records of one part.

    Args:
        columns: Name to labels, distinct, used or not, and codes ``[n]`` among them, -1 where
            missing.
        counts: int64 ``[n]``, how many records each row stands for; 1 by default.

    Example:
        >>> count({"x": (("no", "yes"), [1, 1, -1])}).counts.tolist()
        [1, 2]
    """
    labels = {name: tuple(given) for name, (given, _) in columns.items()}
    codes = [np.asarray(given) for _, given in columns.values()]
    alike = representatives(codes, list(map(len, labels.values())))
    rows = np.stack(codes, axis=1)[alike.first].astype(np.int32)
    order, found = np.lexsort(rows.T[::-1]), np.zeros(len(rows), np.int64)
    np.add.at(found, alike.place, 1 if counts is None else counts)
    return Counted(labels, rows[order], found[order])


def merge(parts: Sequence[Counted]) -> Counted:
    """Distinct records of one part or more together, by label in order of appearance."""
    columns = {}
    for j, name in enumerate(parts[0].labels):
        place: dict[tuple[bool, Any], int] = {}  # True is not 1, but 1.0 is
        recoded = []
        for part in parts:
            keys = [(isinstance(label, bool), label) for label in part.labels[name]]
            codes = np.array([place.setdefault(key, len(place)) for key in keys] + [-1], np.int32)
            recoded.append(codes[part.codes[:, j]])
        columns[name] = [label for _, label in place], np.concatenate(recoded)
    return count(columns, np.concatenate([part.counts for part in parts]))


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
    keys, n = codes[0], len(codes[0])
    size = math.prod(each + 1 for each in sizes)
    if size > _LARGEST_KEY:
        keys = np.stack(codes, axis=1)
    else:  # one number a row
        keys = keys.astype(np.int32 if size < 2**31 else np.int64)
        keys += 1
        for column, each in zip(codes[1:], sizes[1:], strict=True):
            keys *= each + 1
            keys += column.astype(keys.dtype, copy=False)
            keys += 1
    if size > max(_DENSE, 4 * n):
        keys = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        size = int(keys.max()) + 1
    first = np.full(size, n, np.int64)
    first[keys[::-1]] = np.arange(n - 1, -1, -1)  # of equal positions the last one stays
    there = np.flatnonzero(first < n)
    order = there[np.argsort(first[there], kind="stable")]
    place = np.empty(size, np.int32 if n < 2**31 else np.int64)
    place[order] = np.arange(len(order))
    return Fold(first[order], place[keys])
