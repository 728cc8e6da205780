"""Observations that are a report in disguise."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jgram.counted import fold
from jgram.data.columns import block_columns, cells, column, factorise, named_columns
from jgram.data.observations import part_names

__all__ = ["find_leaks"]


def find_leaks(
    reports: Mapping[str, np.ndarray], y: Any, *, name: str = "y"
) -> tuple[tuple[str, str], ...]:
    """Columns of the observations that equal a report, up to the names of the classes.

    A report copied into the observations scores best whatever it says. Here a column equals a
    report where each of its values goes with one class and each class with one value, over all
    records in which both are present.

    Args:
        reports: Name to codes int ``[n]``, -1 where missing; soft reports are not compared.
        y: Observations of the same records, in any container.
        name: What messages call the observations.

    Returns:
        Pairs of a report and a column.

    Example:
        >>> find_leaks({"ann": np.array([0, 1, 1])}, {"age": [3, 4, 5], "note": ["n", "y", "y"]})
        (('ann', 'note'),)
    """
    found = []
    labels_of = {report: labels for report, labels in reports.items() if np.ndim(labels) == 1}
    # A copy has as many values as the report has classes, and others only where it has no label.
    most = max((int(np.max(x)) + 1 + int(np.sum(x < 0)) for x in labels_of.values()), default=0)
    for label, data in named_columns(y, name).items():
        values, present = cells(data, label)
        parts = zip(part_names(label, values), block_columns(values, present), strict=True)
        for part_name, part in parts:
            given = column(part, part_name)
            levels, codes = factorise(given.values)
            if len(levels) > most:
                continue  # a report has no so many classes
            outcomes = np.full(len(part), -1)
            outcomes[given.present] = codes
            found += [
                (report, part_name)
                for report, labels in labels_of.items()
                if _same(np.asarray(labels), outcomes)
            ]
    return tuple(found)


def _same(codes: np.ndarray, outcomes: np.ndarray) -> bool:
    both = (codes >= 0) & (outcomes >= 0)
    if not both.any():
        return False
    columns = [codes[both], outcomes[both]]
    pairs, _ = fold(columns, [int(column.max()) + 1 for column in columns])
    classes = len(np.unique(pairs[:, 0]))
    return 2 <= classes == len(pairs) == len(np.unique(pairs[:, 1]))
