"""The door for observations: one finite array of known kind, or a message.

:mod:`jgram.data.table` prepares tables of mixed columns.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from jgram.data.columns import (
    DROP_HINT,
    Column,
    block_columns,
    cells,
    check_aligned,
    column,
    factorise,
    kind_of,
    listing,
    named_columns,
    narrow,
    refuse_missing,
    show,
)
from jgram.data.dates import as_dates, as_seconds, is_measured

__all__ = ["Kind", "Observations", "check_observations"]

Kind = Literal["categorical", "numeric", "probability"]

_FEW_RECORDS = 50  # so few may well differ
_LARGEST = 1e18  # squares of larger numbers overflow float32
_NUMBER_WITH_SIGNS = re.compile(
    r"[-+(]?\s*[$€£¥₹]?\s*[-+]?\d[\d.,'’\s\u00a0\u202f]*(e[-+]?\d+)?\s*[%‰$€£¥₹)]?", re.IGNORECASE
)


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

    Several categorical columns become one column of joint outcomes; several numeric columns are
    stacked to ``[n, k]``. ``"auto"`` reads text, bools and declared categories as categorical and
    numbers and dates as numeric; integer outcomes and probabilities are only taken as such when
    asked for.

    Args:
        y: ``[n]`` or ``[n, ...]`` array, a sequence, a column or frame of any data frame library,
            and a mapping of column names to columns ``[n]`` and blocks ``[n, k]``.
        name: What error messages call the observations.
        kind: ``"auto"``, ``"categorical"``, ``"numeric"`` or ``"probability"`` (rows that sum
            to 1).
        records: How many records the rows stand for, where they are frequent; ``n`` by default.

    Returns:
        Values, kind, outcome or column names, and warnings (constant columns, outcomes that
        hardly ever repeat).

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
    columns = named_columns(y, name)
    if check_aligned(columns) == 0:
        raise ValueError(f"{name}: expected at least one record, got none")
    if kind == "auto":
        kind = _detect_kind(columns, records)
    title = listing(columns, quote=False)
    if kind == "categorical":
        return _categorical(columns, title, records)
    blocks = {label: numeric(data, label) for label, data in columns.items()}
    names = tuple(part for label, block in blocks.items() for part in part_names(label, block))
    if not names:
        raise ValueError(f"{title}: expected at least one column, got none")
    values = (
        next(iter(blocks.values()))
        if list(columns) == [name]
        else np.column_stack([block.reshape(len(block), -1) for block in blocks.values()])
    )
    if kind == "probability":
        _refuse_improbable(values, title)
    lowest, highest = values.min(axis=0), values.max(axis=0)
    constant = [part for part, same in zip(names, np.ravel(lowest == highest), strict=True) if same]
    warning = f"constant observation columns say nothing: {listing(constant, quote=False)}"
    return Observations(values, kind, names, (warning,) if constant else ())


def numeric(data: Any, name: str) -> np.ndarray:
    """A column ``[n]`` or block ``[n, ...]`` as finite floats; missing cells are refused."""
    values, present = cells(data, name)
    if values.ndim == 1:
        given = as_dates(column(data, name), name)
        refuse_missing(given, name, "values")
        values = as_seconds(given.values, name)
    elif not present.all():
        part, row = _first(~present, name)
        raise ValueError(
            f"{part}: {np.sum(~present)} values missing (first in row {row}): {DROP_HINT}"
        )
    else:
        values = narrow(values, name)
    if values.dtype.kind not in "biuf":
        got = show(values.flat[0]) if values.size else "an empty array"
        raise ValueError(
            f"{name}: expected numbers, got {got}: use --kernel delta for categories, or say how "
            "the file writes numbers (--thousands, --decimal)"
        )
    values = values.astype(np.float32 if values.dtype in (np.float16, np.float32) else np.float64)
    large = np.abs(values) > _LARGEST
    if large.any():
        part, row = _first(large, name)
        raise ValueError(
            f"{part}: expected finite numbers up to {_LARGEST:g}, got {values[large][0]:g} in row "
            f"{row}: correct, drop or rescale"
        )
    return values


def part_names(name: str, block: np.ndarray) -> list[str]:
    """What messages call the columns of a block."""
    if block.ndim == 1:
        return [name]
    return [f"{name}[{', '.join(map(str, index))}]" for index in np.ndindex(block.shape[1:])]


def numbers_as_text(distinct: Sequence[Any], n: float | int) -> str | None:
    """An example where ``n`` cells of text are numbers, ``1.5``, ``19.1%`` or ``€ 1,50``.

    Whole numbers are codes, and a few numbers that repeat may be names.
    """
    if not all(isinstance(text, str) for text in distinct):
        return None
    texts = [text.strip() for text in distinct]
    if (len(texts) <= 20 and 2 * len(texts) <= n) or len(texts) < 3:
        return None
    if not all(_NUMBER_WITH_SIGNS.fullmatch(text) for text in texts):
        return None
    return next((text for text in texts if not text.lstrip("+-").isdigit()), None)


def hardly_repeats(distinct: Sequence[Any], n: float | int) -> bool:
    """Whether ``n`` records hold so many different values that these are no categories."""
    return n > _FEW_RECORDS and 10 * len(distinct) >= 9 * n


# --------------------------------------------------------------------------------------------


def _detect_kind(
    columns: Mapping[str, Any], records: float | None
) -> Literal["categorical", "numeric"]:
    kinds: dict[bool, str] = {}
    for label, given in _parts(columns):
        values = given.values
        if kind_of(values) == "complex":
            raise ValueError(
                f"{label}: expected numbers or categories, got the complex {show(values.flat[0])}: "
                "pass the real and imaginary parts as two columns"
            )
        measured = is_measured(given, label)
        if not measured and (text := numbers_as_text(*_texts(values, records))) is not None:
            raise ValueError(
                f"{label}: expected categories or numbers, got {text!r}, a number written as text: "
                "convert the column to numbers"
            )
        kinds.setdefault(measured, label)
    if len(kinds) > 1:
        raise ValueError(
            f"{kinds[False]}: cannot mix categories with the numbers of {kinds[True]}: bin the "
            "numbers (--bins 4), or encode the categories as numbers"
        )
    return "numeric" if True in kinds else "categorical"


def _parts(columns: Mapping[str, Any]) -> Iterator[tuple[str, Column]]:
    """Columns ``[n]``, those of object blocks one by one, and blocks of one dtype as they are."""
    for label, data in columns.items():
        values, present = cells(data, label)
        if values.ndim == 1:
            yield label, column(data, label)
        elif values.dtype.kind == "O":
            names, parts = part_names(label, values), block_columns(values, present)
            yield from ((name, column(part, name)) for name, part in zip(names, parts, strict=True))
        else:
            yield label, Column(values, present)


def _texts(values: np.ndarray, records: float | None) -> tuple[list[Any], float | int]:
    texts = list(dict.fromkeys(values.flat)) if kind_of(values) == "text" else []
    return texts, values.size if records is None else records


def _categorical(columns: Mapping[str, Any], name: str, records: float | None) -> Observations:
    factors = []
    for label, data in columns.items():
        array, present = cells(data, label)
        if array.ndim > 2:
            raise ValueError(f"{label}: expected outcomes [n] or [n, k], got shape {array.shape}")
        parts = [data] if array.ndim == 1 else block_columns(array, present)
        for part, part_name in zip(parts, part_names(label, array), strict=True):
            given = column(part, part_name)
            refuse_missing(given, part_name, "values")
            infinite = given.values.dtype.kind == "f" and np.isinf(given.values)
            if np.any(infinite):
                raise ValueError(
                    f"{part_name}: expected finite outcomes, got {given.values[infinite][0]:g} in "
                    f"row {given.row(np.argmax(infinite))}: correct or drop"
                )
            factors.append(factorise(given.values))
    if not factors:
        raise ValueError(f"{name}: expected at least one column, got none")
    outcomes, codes = factors[0]
    if len(factors) > 1:
        joint, codes = np.unique(
            np.column_stack([inverse for _, inverse in factors]), axis=0, return_inverse=True
        )
        labels = [labels for labels, _ in factors]
        outcomes = [tuple(labels[j][code] for j, code in enumerate(row)) for row in joint]
    warnings = ()
    size = len(codes) if records is None else records
    if len(outcomes) == 1:
        warnings = (f"{name}: every record has the outcome {show(outcomes[0])}",)
    elif 2 * len(outcomes) > size:
        warnings = (
            f"{name}: {len(outcomes)} distinct outcomes in {size:g} records hardly repeat: "
            "bin numbers (--bins 4) or use a kernel for numbers",
        )
    return Observations(codes.astype(np.int32).ravel(), "categorical", tuple(outcomes), warnings)


def _first(flags: np.ndarray, name: str) -> tuple[str, int]:
    """The name of the column, and the row, of the first flag."""
    row, position = divmod(int(np.argmax(flags)), flags[0].size)
    return part_names(name, flags)[position], row


def _refuse_improbable(values: np.ndarray, name: str) -> None:
    """Refuse rows that are not probabilities, saying what they look like instead."""
    if values.ndim != 2:
        raise ValueError(
            f"{name}: expected probability rows [n, d], got shape {values.shape}: for a binary "
            "probability p pass np.stack([1 - p, p], axis=1)"
        )
    tolerance = 1e-6 if values.dtype == np.float64 else 1e-5
    sums = values.sum(axis=1, dtype=np.float64)
    row = int(np.argmax(np.abs(sums - 1)))
    lowest = values.min()
    if lowest < -tolerance:
        raise ValueError(
            f"{name}: expected probabilities, got values from {values.min():g} to "
            f"{values.max():g}, which look like logits: apply softmax to each row"
        )
    if lowest < 0:
        raise ValueError(
            f"{name}: expected probabilities, got {lowest:g} in row "
            f"{int(np.argmin(values.min(axis=1)))}: clip rounding errors at 0"
        )
    if abs(sums[row] - 1) > tolerance:
        fix = "percentages: divide by 100" if abs(sums[row] - 100) < 1 else "divide by the row sums"
        raise ValueError(
            f"{name}: expected rows that sum to 1, got {sums[row]:g} in row {row}: {fix}"
        )
