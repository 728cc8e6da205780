"""The door for observations: one finite array of known kind, or a message.

:mod:`jgram.data.table` prepares tables of mixed columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from jgram.counted import representatives
from jgram.data.columns import Column, check_aligned, listing, named_columns, read_table, show

__all__ = ["Kind", "Observations", "check_observations", "find_leaks"]

Kind = Literal["categorical", "numeric", "probability"]

_FEW_RECORDS = 50  # so few may well differ
_LARGEST = 1e18  # squares of larger numbers overflow float32


@dataclass(frozen=True)
class Observations:
    """Observations that passed the door.

    ``values`` is int32 ``[n]`` with ``names`` the outcomes (categorical), or float ``[n, ...]``
    with ``names`` the columns (numeric and probability).
    """

    values: np.ndarray
    kind: Kind
    names: tuple[Any, ...]
    warnings: tuple[str, ...] = ()


def check_observations(
    y: Any,
    *,
    name: str = "y",
    kind: Kind | Literal["auto"] = "auto",
    records: float | int | None = None,
) -> Observations:
    """Observations as one finite array of known kind.

    Several categorical columns become joint outcomes, several numeric ones ``[n, k]``. ``"auto"``
    reads text, bools and declared categories as categorical, numbers and dates as numeric.

    Args:
        y: ``[n]`` or ``[n, ...]`` array, a sequence, a column or frame of any data frame library,
            and a mapping of column names to columns ``[n]`` and blocks ``[n, k]``.
        name: What error messages call the observations.
        kind: ``"auto"``, ``"categorical"``, ``"numeric"`` or ``"probability"`` (rows that sum
            to 1).
        records: How many records the rows stand for, where they are frequent; ``n`` by default.

    Returns:
        Values, kind, names, and warnings (constant columns, outcomes that hardly ever repeat).

    Raises:
        ValueError: Missing, infinite or too large values, text where numbers were asked for,
            numbers mixed with text, rows that are not probabilities.

    Example:
        >>> check_observations({"age": [30, 41], "dose": [0.5, 1.0]}).values
        array([[30. ,  0.5],
               [41. ,  1. ]])
    """
    if kind not in ("auto", *get_args(Kind)):
        raise ValueError(f"kind: expected auto, {', '.join(get_args(Kind))}, got {kind!r}")
    named = named_columns(y, name)
    if check_aligned(named) == 0:
        raise ValueError(f"{name}: expected at least one record, got none")
    columns = read_table(named, name)
    if kind == "auto":
        kind = _detect_kind(columns)
    title = listing(columns, quote=False)
    if kind == "categorical":
        return _categorical(columns, title, records)
    blocks = [numeric(given) for given in columns.values()]
    names = tuple(part for given in columns.values() for part in given.part_names)
    if not names:
        raise ValueError(f"{title}: expected at least one column, got none")
    values = blocks[0]
    if list(columns) != [name]:
        values = np.column_stack([block.reshape(len(block), -1) for block in blocks])
    if kind == "probability":
        _refuse_improbable(values, title)
    lowest, highest = values.min(axis=0), values.max(axis=0)
    constant = [part for part, same in zip(names, np.ravel(lowest == highest), strict=True) if same]
    warning = f"constant observation columns say nothing: {listing(constant, quote=False)}"
    return Observations(values, kind, names, (warning,) if constant else ())


def numeric(given: Column) -> np.ndarray:
    """A column ``[n]`` or block ``[n, ...]`` as finite floats; missing cells are refused."""
    given.plain.refuse_missing()
    values = given.numbers
    if values.dtype.kind not in "biuf":
        refuse_unlike_numbers(given)
        got = show(values.flat[0]) if values.size else "an empty array"
        raise ValueError(
            f"{given.name}: expected numbers, got {got}: use --kernel delta for categories, or say "
            "how the file writes numbers (--thousands, --decimal)"
        )
    values = values.astype(np.float32 if values.dtype in (np.float16, np.float32) else np.float64)
    large = np.abs(values) > _LARGEST
    if large.any():
        record, part = divmod(int(np.argmax(large)), large[0].size)
        raise ValueError(
            f"{given.part_names[part]}: expected finite numbers up to {_LARGEST:g}, got "
            f"{values[large][0]:g} in row {given.row(record)}: correct, drop or rescale"
        )
    return values


def find_leaks(
    reports: Mapping[str, np.ndarray], y: Any, *, name: str = "y"
) -> tuple[tuple[str, str], ...]:
    """Pairs of a report and a column of the observations that equals it, which would score best.

    Each value of such a column goes with one class, and each class with one value, over all records
    in which both are present.

    Args:
        reports: Name to codes int ``[n]``, -1 where missing, or to numbers, NaN where missing, of
            which a column is a copy that has their order; soft reports are not compared.
        y: Observations of the same records, in any container.
        name: What messages call the observations.

    Example:
        >>> find_leaks({"ann": np.array([0, 1, 1])}, {"age": [3, 4, 5], "note": ["n", "y", "y"]})
        (('ann', 'note'),)
    """
    found: list[tuple[str, str]] = []
    given = {report: np.asarray(x) for report, x in reports.items() if np.ndim(x) == 1}
    numbers = {report: x for report, x in given.items() if x.dtype.kind == "f"}
    labels_of = {report: x for report, x in given.items() if report not in numbers}
    # A copy has as many values as the report has classes, and others only where it has no label.
    most = max((int(np.max(x)) + 1 + int(np.sum(x < 0)) for x in labels_of.values()), default=0)
    for part in (part for whole in read_table(y, name).values() for part in whole.parts):
        if part.measured:
            found += [(report, part.name) for report, x in numbers.items() if _ordered(x, part)]
        some = part.values[: 4 * most + 4]
        if some.dtype.kind in "iuf" and len(np.unique(some)) > most:
            continue  # a report has no so many classes
        if len(part.factors[0]) <= most:
            found += [(report, part.name) for report, x in labels_of.items() if _same(x, part)]
    return tuple(found)


def _detect_kind(columns: Mapping[Any, Column]) -> Kind:
    kinds: dict[bool, str] = {}
    for label, given in columns.items():
        if not given.measured:
            refuse_unlike_numbers(given)
        kinds.setdefault(given.measured, label)
    if len(kinds) > 1:
        raise ValueError(
            f"{kinds[False]}: cannot mix categories with the numbers of {kinds[True]}: bin the "
            "numbers (--bins 4), or encode the categories as numbers"
        )
    return "numeric" if True in kinds else "categorical"


def _ordered(numbers: np.ndarray, part: Column) -> bool:
    """Whether a column has the order of these numbers, or its opposite, where both have one."""
    column = part.plain
    both = column.present & ~np.isnan(numbers)
    one = np.unique(numbers[both], return_inverse=True)[1]
    two = np.unique(column.numbers[both[column.present]], return_inverse=True)[1]
    size = int(one.max(initial=0))
    return size > 1 and (np.array_equal(one, two) or np.array_equal(one, size - two))


def _same(labels: np.ndarray, part: Column) -> bool:
    """Whether each label goes with one value of a column, and each value with one label."""
    codes = labels, part.codes
    first = representatives(codes, [int(labels.max()) + 1, len(part.factors[0])]).first
    pairs = np.stack(codes, axis=1)[first]
    pairs = pairs[(pairs >= 0).all(axis=1)]
    return 2 <= len(np.unique(pairs[:, 0])) == len(pairs) == len(np.unique(pairs[:, 1]))


def refuse_unlike_numbers(given: Column) -> None:
    """Refuse texts of which nearly all are numbers, naming the one that does not fit."""
    _, odd, why = given.writing
    if odd is None:
        return
    labels, inverse = given.factors
    row = given.row(np.argmax(inverse == labels.index(odd)))
    raise ValueError(f"{given.name}: expected numbers, got {odd!r} in row {row}: {why}")


def hardly_repeats(distinct: Sequence[Any], n: float | int) -> bool:
    """Whether ``n`` records hold so many different values that these are no categories."""
    return n > _FEW_RECORDS and 10 * len(distinct) >= 9 * n


def _categorical(columns: Mapping[str, Column], name: str, records: float | None) -> Observations:
    for given in columns.values():
        if given.present.ndim > 2:
            raise ValueError(
                f"{given.name}: expected outcomes [n] or [n, k], got shape {given.present.shape}"
            )
    parts = [part for given in columns.values() for part in given.parts]
    if not parts:
        raise ValueError(f"{name}: expected at least one column, got none")
    for part in parts:
        part.refuse_missing()
        if part.values.dtype.kind == "f" and (infinite := np.isinf(part.values)).any():
            raise ValueError(
                f"{part.name}: expected finite outcomes, got {part.values[infinite][0]:g} in "
                f"row {part.row(np.argmax(infinite))}: correct or drop"
            )
    outcomes, codes = parts[0].factors[0], parts[0].codes
    if len(parts) > 1:  # joint ones in lexicographic order
        labels, each = zip(*((part.factors[0], part.codes) for part in parts), strict=True)
        alike = representatives(each, list(map(len, labels)))
        rows = np.stack(each, axis=1)[alike.first]
        order = np.lexsort(rows.T[::-1])
        outcomes = [tuple(map(list.__getitem__, labels, row)) for row in rows[order]]
        codes = np.argsort(order).astype(np.int32)[alike.place]
    said, size = "", len(codes) if records is None else records
    if len(outcomes) == 1:
        said = f"{name}: every record has the outcome {show(outcomes[0])}"
    elif 2 * len(outcomes) > size:
        said = (
            f"{name}: {len(outcomes)} distinct outcomes in {size:g} records hardly repeat: "
            "bin numbers (--bins 4) or use a kernel for numbers"
        )
    return Observations(codes, "categorical", tuple(outcomes), (said,) if said else ())


def _refuse_improbable(values: np.ndarray, name: str) -> None:
    """Refuse rows that are not probabilities, saying what they look like instead."""
    if values.ndim != 2:
        raise ValueError(
            f"{name}: expected probability rows [n, d], got shape {values.shape}: for a binary "
            "probability p pass np.stack([1 - p, p], axis=1)"
        )
    tolerance = 1e-6 if values.dtype == np.float64 else 1e-5
    sums = values.sum(axis=1, dtype=np.float64)
    row, (low, high) = int(np.argmax(np.abs(sums - 1))), (values.min(), values.max())
    if low < -tolerance:
        raise ValueError(
            f"{name}: expected probabilities, got values from {low:g} to {high:g}, which look "
            "like logits: apply softmax to each row"
        )
    if low < 0:
        raise ValueError(
            f"{name}: expected probabilities, got {low:g} in row "
            f"{int(np.argmin(values.min(axis=1)))}: clip rounding errors at 0"
        )
    if abs((found := sums[row]) - 1) > tolerance:
        fix = "percentages: divide by 100" if abs(found - 100) < 1 else "divide by the row sums"
        raise ValueError(f"{name}: expected rows that sum to 1, got {found:g} in row {row}: {fix}")
