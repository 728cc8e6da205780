"""Any table as one observation: mixed columns made comparable, without a look at the reports.

Numbers become the normal scores of their ranks, categories one-hot codes, dates numbers; every
column then has a mean squared distance of 2 between two records, so that none drowns another. What
says nothing or cannot be compared is left out and named. Nothing here depends on a report: nobody
can choose the observation by what it makes of theirs, and tests of reports stay valid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np

from jgram.data.columns import (
    Column,
    check_aligned,
    did_you_mean,
    listing,
    named_columns,
    read_table,
    show,
)
from jgram.data.labels import look_alikes
from jgram.data.observations import hardly_repeats, numeric, refuse_numbers_as_text
from jgram.data.texts import embed_texts

__all__ = ["ColumnKind", "PreparedTable", "Scale", "prepare_table"]

ColumnKind = Literal["number", "category", "text", "ignore"]
Scale = Literal["rank", "standard", "none"]

_FEW_LEVELS = 10  # integers of so few levels may be codes
_MOST_LEVELS = 256  # categories of more are coded by random directions
_TOO_MANY_LEVELS = 5000
_MUCH_MISSING = 0.3
_UNEVEN = 10.0  # times the median variance of an embedding's dimensions
_FEW_RECORDS = 20


@dataclass(frozen=True)
class PreparedTable:
    """A table as numbers: ``points[:, :table_width]`` its columns, the rest its blocks.

    Attributes:
        points: ``float64 [n, k]``. Columns of the table have mean squared distance 2 (one-hot
            columns of a category together); blocks are as they came.
        names: The ``k`` columns.
        table_width: How many columns of ``points`` come from the table.
        description: One line for reports.
        warnings: What was left out, and what may be meant otherwise.
    """

    points: np.ndarray
    names: tuple[str, ...]
    table_width: int
    description: str
    warnings: tuple[str, ...] = ()


def prepare_table(
    y: Any,
    *,
    name: str = "y",
    kinds: Mapping[str, ColumnKind] | None = None,
    scale: Scale = "rank",
) -> PreparedTable:
    """Mixed columns as one array of comparable numbers, ready for the table kernel.

    A number becomes the normal score of its rank, standardised. A category becomes a one-hot code
    over ``sqrt(1 - sum p^2)``, its missing cells a category of their own. Missing numbers become
    the median, and an indicator column says where. Bools are categories, dates numbers. Texts of
    several words that hardly repeat become a block of numbers by the pieces of words they share
    (:mod:`jgram.data.texts`). Columns that are constant, hold row numbers, or hardly repeat and
    hold no words are left out and named. An array ``[n, k]`` is an embedding and stays as it is;
    beside columns it stays a block of its own.

    Args:
        y: A data frame of any library, a mapping of names to columns ``[n]`` and blocks
            ``[n, k]``, one column ``[n]``, or an array ``[n, k]``.
        name: What messages call the observations.
        kinds: ``"number"``, ``"category"``, ``"text"`` or ``"ignore"`` by column, where its type is
            not what it seems: ``{"zip": "category", "id": "ignore"}``.
        scale: Of numbers: ``"rank"``, ``"standard"`` (mean 0, variance 1) or ``"none"``.

    Returns:
        A :class:`PreparedTable`.

    Raises:
        ValueError: Options that name no column or no kind, values that fit no kind, nothing left
            to observe.

    Example:
        >>> table = prepare_table({"age": [30, 41, None, 52], "sex": ["f", "m", "f", "m"]})
        >>> table.names
        ('age', 'age missing', 'sex = f', 'sex = m')
        >>> table.description
        'observations: 2 columns (1 number, 1 category), by rank; side by side and whitened; chosen
        without the reports'
    """
    if scale not in get_args(Scale):
        raise ValueError(f"scale: expected {_or(get_args(Scale))}, got {scale!r}")
    named = named_columns(y, name)
    n = check_aligned(named)
    if n == 0:
        raise ValueError(f"{name}: expected at least one record, got none")
    columns = read_table(named, name)
    asked = _checked_kinds(kinds or {}, columns)
    counts = {"number": 0, "category": 0}
    warnings = list(look_alikes(columns, "columns"))
    parts: list[tuple[list[str], np.ndarray]] = []
    blocks: list[tuple[list[str], np.ndarray]] = []
    embedded = any(given.is_block for given in columns.values())
    said: list[str] = []
    left_out: dict[str, str] = {}
    for label, given in columns.items():
        if asked.get(label) == "ignore":
            continue
        kind = "block" if given.is_block else asked.get(label) or _kind(given)
        reason = _reason(given, kind, asked=label in asked, alone=len(columns) == 1)
        if kind == "text" and embedded and label not in asked:
            reason = "is text, beside an embedding (kinds={...: 'text'} reads it too)"
        if reason is not None:
            left_out[label] = reason
            continue
        if kind == "block":
            values = numeric(given).reshape(n, -1).astype(float)
            blocks.append((given.part_names, values))
            said.append(f"a block of {values.shape[1]} numbers")
            warnings += _uneven(values, given)
            continue
        if kind == "text":
            values = embed_texts(given)
            blocks.append(([f"{label}[{j}]" for j in range(values.shape[1])], values))
            said.append(f"the texts of {label} as {values.shape[1]} numbers")
            warnings += _much_missing(given)
            continue
        counts[kind] += 1
        if kind == "number":
            parts.append(_number(given.dated, scale))
            warnings += [] if label in asked else _maybe_category(given)
        else:
            parts.append(_category(given))
            warnings += _hardly_repeats(given)
        warnings += _much_missing(given)
    if not parts and not blocks:
        reasons = "; ".join(f"{label} {reason}" for label, reason in left_out.items())
        raise ValueError(f"{name}: expected a column that says something, got none: {reasons}")
    warnings = [
        f"{label} is left out: it {reason}" for label, reason in left_out.items()
    ] + warnings
    return PreparedTable(
        points=np.column_stack([values for _, values in (*parts, *blocks)]),
        names=tuple(part for group, _ in (*parts, *blocks) for part in group),
        table_width=sum(len(group) for group, _ in parts),
        description=_describe(counts, said, scale),
        warnings=tuple(warnings),
    )


# Kinds --------------------------------------------------------------------------------------


def _checked_kinds(kinds: Mapping[str, str], columns: Mapping[str, Any]) -> dict[str, str]:
    for label, kind in kinds.items():
        if label not in columns:
            hint = did_you_mean(label, columns, f"there are {listing(columns)}")
            raise ValueError(f"kinds: expected names of columns, got {label!r}: {hint}")
        if kind not in get_args(ColumnKind):
            raise ValueError(
                f"kinds: expected {_or(get_args(ColumnKind))} for {label}, got {kind!r}"
            )
    return dict(kinds)


def _kind(given: Column) -> str:
    if given.measured:
        return "number"
    return "text" if is_text(given) else "category"


def is_text(given: Column) -> bool:
    """Whether a column holds texts of several words that hardly repeat."""
    if given.kind != "text" or given.declared:
        return False
    distinct, n = given.factors[0], len(given.values)
    words = [len(text.split()) for text in distinct]
    if hardly_repeats(distinct, n):
        return float(np.median(words)) > 2
    return 2 * len(distinct) > n > _FEW_RECORDS and float(np.mean(words)) > 3


def _reason(given: Column, kind: str, *, asked: bool, alone: bool) -> str | None:
    """Why a column is left out, if it is."""
    if kind == "block":
        return None if given.part_names else "has no columns"
    given = given.dated if kind == "number" else given
    n, distinct = len(given.values), given.factors[0]
    if not n:
        return "holds no value"
    if not asked:
        refuse_numbers_as_text(given, n)
    if len(distinct) == 1 and given.present.all():
        return f"holds nothing but {show(distinct[0])}"
    if asked:
        return None
    if kind == "number":
        rows = not alone and given.present.all() and _are_row_numbers(given.values)
        return "numbers the rows (kinds={...: 'number'} keeps it)" if rows else None
    if kind == "text":
        return None
    if 2 < len(distinct) == n:
        return "never repeats a value: an identifier (kinds={...: 'text'} reads it as text)"
    if hardly_repeats(distinct, n):
        return (
            f"hardly repeats a value, {len(distinct)} different ones in {n} records: an "
            "identifier (kinds={...: 'text'} reads it as text)"
        )
    if len(distinct) > _TOO_MANY_LEVELS:
        return f"has {len(distinct)} categories: an identifier (kinds={{...: 'category'}} keeps it)"
    return None


def _are_row_numbers(values: np.ndarray) -> bool:
    if len(values) <= _FEW_RECORDS or values.dtype.kind not in "iu":
        return False
    return bool(np.all(np.diff(np.sort(values)) == 1))


# Columns ------------------------------------------------------------------------------------


def _number(given: Column, scale: str) -> tuple[list[str], np.ndarray]:
    """The number, and where it is missing."""
    values, label = given.numbers, given.name
    if values.dtype.kind not in "biufO" or (values.dtype.kind == "O" and given.kind != "number"):
        raise ValueError(f"{label}: expected numbers, got {show(values[0])}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = int(np.argmin(np.isfinite(values)))
        raise ValueError(
            f"{label}: expected finite numbers, got {values[bad]:g} in row {given.row(bad)}: "
            "correct it, or make it missing"
        )
    points = np.zeros(len(given.present))
    points[given.present] = (
        _normal_scores(given.factors[1]) if scale == "rank" else _centred(values)
    )
    if scale != "rank":
        points[~given.present] = np.median(points[given.present])
    if scale != "none":
        points = _standardise(points)
    if given.present.all():
        return [label], points[:, None]
    absent = _standardise((~given.present).astype(float))
    if not points.any():  # one value, or none: where it is missing is all that it says
        return [f"{label} missing"], absent[:, None]
    return [label, f"{label} missing"], np.column_stack([points, absent])


def _normal_scores(codes: np.ndarray) -> np.ndarray:
    """``Phi^-1((rank - 1/2) / n)`` with the mean rank of ties: exact in units and monotone maps."""
    counts = np.bincount(codes)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    quantile = NormalDist().inv_cdf
    return np.array([quantile((rank - 0.5) / len(codes)) for rank in ranks])[codes]


def _centred(values: np.ndarray) -> np.ndarray:
    """Numbers as floats around 0, taken off in their own type: no digits are lost far from 0."""
    middle = np.sort(values)[len(values) // 2]
    if values.dtype.kind in "iu":
        return np.array([int(value) - int(middle) for value in values], float)
    return np.asarray(values - middle, float)


def _standardise(points: np.ndarray) -> np.ndarray:
    centred = points - points.mean()
    largest = np.abs(centred).max()
    if largest == 0:
        return centred
    scaled = centred / largest  # squares of tiny numbers would vanish
    return scaled / scaled.std()


def _category(given: Column) -> tuple[list[str], np.ndarray]:
    """One-hot codes of mean squared distance 2; missing cells are a category of their own."""
    label, levels = given.name, given.factors[0]
    names = [f"{label} = {level}" for level in levels]
    codes = np.where(given.present, given.codes, len(levels))
    if not given.present.all():
        names.append(f"{label} missing")
    shares = np.bincount(codes, minlength=len(names)) / len(codes)
    spread = np.sqrt(1 - np.sum(shares**2))
    if len(names) <= _MOST_LEVELS:
        return names, np.eye(len(names))[codes] / spread
    # nearly orthogonal directions: all distances between levels are equal to about 10%
    directions = np.random.default_rng(0).choice([-1.0, 1.0], (len(names), _MOST_LEVELS))
    names = [f"{label} [{j}]" for j in range(_MOST_LEVELS)]
    return names, directions[codes] / np.sqrt(_MOST_LEVELS) / spread


# Words --------------------------------------------------------------------------------------


def _maybe_category(given: Column) -> list[str]:
    values = given.values
    whole = values.dtype.kind in "iu" or (values.dtype.kind == "f" and not np.any(values % 1))
    if not whole or not 2 < len(given.factors[0]) <= _FEW_LEVELS:
        return []
    return [
        f"{given.name} holds {len(given.factors[0])} whole numbers and is read as a number: "
        f"kinds={{{given.name!r}: 'category'}} if they are codes"
    ]


def _hardly_repeats(given: Column) -> list[str]:
    distinct, n = len(given.factors[0]), len(given.values)
    few = 2 * distinct > n
    return [f"{given.name}: {distinct} categories in {n} records hardly repeat"] if few else []


def _much_missing(given: Column) -> list[str]:
    share = float(np.mean(~given.present))
    return [f"{given.name}: {share:.0%} of its values are missing"] if share > _MUCH_MISSING else []


def _uneven(values: np.ndarray, given: Column) -> list[str]:
    spread = values.std(axis=0)
    middle = float(np.median(spread))
    if values.shape[1] < 3 or not spread.max() > np.sqrt(_UNEVEN) * middle:
        return []
    return [
        f"{given.part_names[int(spread.argmax())]} varies far more than the other dimensions and "
        "decides which records are alike: rescale it, or pass the dimensions as columns of a table"
    ]


def _describe(counts: Mapping[str, int], blocks: Sequence[str], scale: str) -> str:
    columns = counts["number"] + counts["category"]
    words = {"rank": "by rank", "standard": "standardised", "none": "as they are"}
    kinds = [
        _count(counts["number"], "number", "numbers"),
        _count(counts["category"], "category", "categories"),
    ]
    table = f"{_count(columns, 'column', 'columns')} ({', '.join(filter(None, kinds))})"
    table += f", {words[scale]}" if counts["number"] else ""
    block = " and ".join(blocks)
    if not columns:
        return f"observations: {block}, as it is; chosen without the reports"
    if not blocks:
        how = "side by side and whitened"
    else:
        table += f", and {block}"
        how = "columns, block and everything in equal parts"
    return f"observations: {table}; {how}; chosen without the reports"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}" if number else ""


def _or(options: tuple[str, ...]) -> str:
    return f"{', '.join(map(repr, options[:-1]))} or {options[-1]!r}"
