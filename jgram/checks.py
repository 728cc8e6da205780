"""The door: labels and observations are checked once, on the host, before any kernel.

Labels of any type become 0-based int32 codes with their class names kept; observations become a
NumPy array whose kind is known. Past the door wrong values go wrong silently (`segment_sum` drops
a -1, `.at[].add` wraps it, `bincount` clips it, a NaN cast to int joins class 0), so everything
that can be refused is refused here, in one line that names the column, the value and the fix.

pandas, polars and Arrow columns are recognised by what they can do; none is imported.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

__all__ = [
    "EncodedLabels",
    "EncodedReports",
    "Observations",
    "check_aligned",
    "check_codes",
    "check_observations",
    "check_soft_labels",
    "drop_missing",
    "encode_labels",
    "encode_reports",
]

Kind = Literal["auto", "categorical", "numeric", "probability"]
Missing = Literal["raise", "drop"]

_MISSING_NAMES = frozenset(
    ["", "na", "n/a", "nan", "none", "null", "nat", "<na>", "#n/a", "missing", "unknown"]
)
_LARGEST = 1e18  # squares of larger numbers overflow float32


@dataclass(frozen=True)
class EncodedLabels:
    """One report as 0-based codes: `classes[codes[i]]` is the label of input row `rows[i]`."""

    codes: np.ndarray
    classes: tuple[Any, ...]
    rows: np.ndarray
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class EncodedReports:
    """Several reports of the same records over one common tuple of classes."""

    codes: dict[str, np.ndarray]
    classes: tuple[Any, ...]
    rows: np.ndarray
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Observations:
    """Observations that passed the door.

    `values` is int32 `[n]` with `names` the outcomes (categorical), or float `[n, ...]` with
    `names` the columns (numeric and probability).
    """

    values: np.ndarray
    kind: Literal["categorical", "numeric", "probability"]
    names: tuple[Any, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Column:
    """A 1-D column: its present values, where they stood, and the classes its type declares."""

    name: str
    values: np.ndarray
    present: np.ndarray
    declared: tuple[Any, ...] | None

    def row(self, position: int) -> int:
        """The input row of present value number `position`."""
        return int(np.flatnonzero(self.present)[position])


def encode_labels(
    labels: Any,
    *,
    name: str = "x_hat",
    classes: Sequence[Any] | None = None,
    num_classes: int | None = None,
    missing: Missing = "raise",
) -> EncodedLabels:
    """Labels of any type as 0-based int32 codes, their class names kept.

    The classes are `classes` if given, else `0..num_classes-1` if that is given, else the
    categories that the column's type declares (pandas categorical, polars Enum, bool), else the
    distinct labels in sorted order. A class that is declared and never reported stays a class.

    Args:
        labels: `[n]` ints, strings, bools, whole floats or any hashables of one type: a sequence,
            a NumPy or JAX array, a pandas, polars or Arrow column.
        name: What error messages call the column.
        classes: The possible labels, in order.
        num_classes: The number of classes of labels that already are 0-based ints.
        missing: `"raise"` refuses missing labels, `"drop"` leaves them out (`rows` says which
            stayed; see `drop_missing` to drop the same records from several columns).

    Returns:
        Codes int32 `[n]`, the classes, the rows kept, and warnings.

    Raises:
        ValueError: Missing, mixed, fractional, negative, out-of-range, unknown, empty or
            multi-dimensional labels.

    Example:
        >>> encoded = encode_labels(["dog", "cat", "dog"])
        >>> encoded.codes, encoded.classes
        (array([1, 0, 1], dtype=int32), ('cat', 'dog'))
    """
    reports = encode_reports(
        {name: labels}, classes=classes, num_classes=num_classes, missing=missing
    )
    return EncodedLabels(reports.codes[name], reports.classes, reports.rows, reports.warnings)


def encode_reports(
    reports: Mapping[str, Any],
    *,
    classes: Sequence[Any] | None = None,
    num_classes: int | None = None,
    missing: Missing = "raise",
) -> EncodedReports:
    """Several reports of the same records as codes over one common class set.

    Args:
        reports: Name to labels `[n]`, each as in `encode_labels`.
        classes: The possible labels, in order; the labels of all reports together by default.
        num_classes: The number of classes of labels that already are 0-based ints.
        missing: `"drop"` leaves out the records in which any report is missing.

    Returns:
        Codes int32 `[n]` by name, the classes, the rows kept, and warnings.

    Raises:
        ValueError: As `encode_labels`; reports of different lengths, indexes or label types.

    Example:
        >>> encoded = encode_reports({"ann": ["a", "b"], "bob": ["b", "c"]})
        >>> encoded.classes, encoded.codes["bob"]
        (('a', 'b', 'c'), array([1, 2], dtype=int32))
    """
    check_aligned(reports)
    columns = [_labels_column(labels, name) for name, labels in reports.items()]
    keep = np.logical_and.reduce([column.present for column in columns])
    if missing != "drop":
        for column in columns:
            _refuse_missing(column, "labels are")
    elif not keep.any():
        raise ValueError(f"{columns[0].name}: no record is left after dropping missing labels")
    _refuse_mixed(columns)

    factors = [_factorise(column.values) for column in columns]
    order = _class_order(columns, factors, classes, num_classes)
    code_of = {label: code for code, label in enumerate(order)}
    codes = {}
    for column, (labels, inverse) in zip(columns, factors, strict=True):
        _refuse_unknown(column, labels, inverse, code_of, named=classes is not None)
        full = np.zeros(len(column.present), np.int32)
        full[column.present] = np.array([code_of[x] for x in labels], np.int32)[inverse]
        codes[column.name] = full[keep]
    return EncodedReports(codes, order, np.flatnonzero(keep), tuple(_name_warnings(order)))


def check_observations(y: Any, *, name: str = "y", kind: Kind = "auto") -> Observations:
    """Observations as one finite array of known kind.

    Several categorical columns become one column of joint outcomes; several numeric columns are
    stacked to `[n, k]`. `"auto"` reads text, bools and declared categories as categorical and
    numbers as numeric; integer outcomes and probabilities are only taken as such when asked for.

    Args:
        y: `[n]` or `[n, ...]` array, a sequence, a pandas, polars or Arrow column or frame, or a
            mapping of column names to columns `[n]` and blocks `[n, k]`.
        name: What error messages call the observations.
        kind: `"auto"`, `"categorical"`, `"numeric"` or `"probability"` (rows that sum to 1).

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
    columns = _named_columns(y, name)
    if check_aligned(columns) == 0:
        raise ValueError(f"{name}: expected at least one record, got none")
    if kind == "auto":
        kind = _detect_kind(columns)
    if kind == "categorical":
        return _categorical(columns, name)

    blocks = {label: _numeric(data, label) for label, data in columns.items()}
    names = tuple(part for label, block in blocks.items() for part in _part_names(label, block))
    if len(blocks) == 1 and not _is_frame(y):
        (values,) = blocks.values()
    else:
        values = np.column_stack(list(blocks.values()))
    if kind == "probability":
        _refuse_improbable(values, name)
    return Observations(values, kind, names, tuple(_constant_warnings(values, names)))


def check_soft_labels(
    x_hat: Any, *, name: str = "x_hat", num_classes: int | None = None
) -> np.ndarray:
    """Soft reports `[n, d]`: each row the probabilities of one record's classes.

    Args:
        x_hat: `[n, d]` array of rows that are non-negative and sum to 1.
        name: What error messages call it.
        num_classes: The expected `d`.

    Returns:
        The float array `[n, d]`.

    Raises:
        ValueError: Another shape, missing or negative values, rows that do not sum to 1.

    Example:
        >>> check_soft_labels([[0.9, 0.1], [0.2, 0.8]]).shape
        (2, 2)
    """
    values = check_observations(x_hat, name=name, kind="probability").values
    if num_classes not in (None, values.shape[1]):
        raise ValueError(
            f"{name}: expected {num_classes} columns, one per class, got {values.shape[1]}"
        )
    return values


def check_codes(x_hat: Any, num_classes: int | None = None, *, name: str = "x_hat") -> int:
    """The number of classes of 0-based int codes, none of which is out of range.

    The light check of the JAX core: for concrete arrays; two passes over the codes.

    Args:
        x_hat: Int codes `[n]`, NumPy or JAX, concrete.
        num_classes: The number of classes; the largest code + 1 by default.
        name: What error messages call it.

    Returns:
        `num_classes`.

    Raises:
        ValueError: Codes that are not ints, negative, or `>= num_classes`; no codes at all.

    Example:
        >>> check_codes(np.array([0, 2, 1]))
        3
    """
    codes = np.asarray(x_hat)
    if codes.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: expected int class codes, got {codes.dtype}: "
            "encode labels with jgram.checks.encode_labels"
        )
    if codes.size == 0:
        raise ValueError(f"{name}: expected at least one label, got none")
    smallest, largest = int(codes.min()), int(codes.max())
    if smallest < 0:
        row = int(np.argmax(codes.ravel() < 0))
        raise ValueError(
            f"{name}: expected class codes from 0 on, got {smallest} (first negative in row {row}): "
            "leave missing labels out with weight 0 or encode with jgram.checks.encode_labels"
        )
    if num_classes is not None and largest >= num_classes:
        row = int(np.argmax(codes.ravel() >= num_classes))
        raise ValueError(
            f"{name}: expected class codes 0..{num_classes - 1}, got {largest} "
            f"(first out of range in row {row}): codes are 0-based; pass a larger num_classes"
        )
    return largest + 1 if num_classes is None else num_classes


def check_aligned(columns: Mapping[str, Any]) -> int:
    """The common number of records of columns that must line up row by row.

    Args:
        columns: Name to column; pandas indexes must agree, plain arrays line up by position.

    Returns:
        The number of records.

    Raises:
        ValueError: Different lengths, pandas indexes that differ in order or content, no column.

    Example:
        >>> check_aligned({"x_hat": [0, 1], "y": [2.5, 3.5]})
        2
    """
    if not columns:
        raise ValueError("expected at least one column, got none")
    lengths = {name: _length(data, name) for name, data in columns.items()}
    first = next(iter(lengths))
    for name, length in lengths.items():
        if length != lengths[first]:
            raise ValueError(
                f"{name}: expected {lengths[first]} records as in {first}, got {length}"
            )
    indexed = {name: data.index for name, data in columns.items() if _has_index(data)}
    for name, index in indexed.items():
        reference, expected = next(iter(indexed.items()))
        if index.equals(expected):
            continue
        if set(index) == set(expected):
            raise ValueError(
                f"{name}: its index holds the rows of {reference} in another order: "
                f"use {name}.loc[{reference}.index], or .to_numpy() if the rows do line up"
            )
        raise ValueError(
            f"{name}: its index differs from that of {reference}: align them with .loc, "
            "or pass .to_numpy() if the rows do line up"
        )
    return lengths[first]


def drop_missing(columns: Mapping[str, Any]) -> tuple[dict[str, Any], np.ndarray]:
    """The records that are complete in every column, dropped from all columns together.

    Args:
        columns: Name to column `[n]` or block `[n, ...]`.

    Returns:
        The columns without incomplete records, and the rows kept.

    Raises:
        ValueError: Columns that do not line up; no complete record.

    Example:
        >>> columns, rows = drop_missing({"x_hat": ["a", None, "b"], "y": [1.0, 2.0, 3.0]})
        >>> columns["y"], rows
        (array([1., 3.]), array([0, 2]))
    """
    n = check_aligned(columns)
    keep = np.ones(n, bool)
    for name, data in columns.items():
        for part in _named_columns(data, name).values():
            keep &= _present(part, name)
    rows = np.flatnonzero(keep)
    if rows.size == 0:
        raise ValueError(f"every one of the {n} records misses a value in {', '.join(columns)}")
    if rows.size == n:
        return dict(columns), rows
    return {name: _take(data, rows) for name, data in columns.items()}, rows


# Columns ------------------------------------------------------------------------------------


def _column(data: Any, name: str) -> _Column:
    """`data` as a 1-D column with missing values set apart."""
    if isinstance(data, str | bytes | Mapping | set | frozenset) or not (
        hasattr(data, "__len__") and hasattr(data, "__getitem__") and _shape(data) != ()
    ):
        raise ValueError(f"{name}: expected a sequence [n], got {type(data).__name__}")
    if len(_shape(data)) > 1:
        raise ValueError(
            f"{name}: expected one value per record, shape [n], got shape {_shape(data)}: "
            "pass a single column"
        )
    values, present = _split_missing(data, name)
    return _Column(name, values, present, _declared(data, values))


def _split_missing(data: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Present values (native dtype where there is one, else object) and where they stand."""
    if hasattr(data, "isna") and hasattr(data, "to_numpy"):  # pandas
        present = ~np.asarray(data.isna(), bool)
        values = data[present].to_numpy()
    elif hasattr(data, "is_not_null") and hasattr(data, "drop_nulls"):  # polars
        present = data.is_not_null().to_numpy().astype(bool)
        values = data.drop_nulls().to_numpy()
    elif hasattr(data, "to_pylist"):  # Arrow
        values, present = _objects(data.to_pylist()), None
    elif hasattr(data, "__array__"):  # NumPy, JAX
        values, present = np.asarray(data), None
    else:
        values, present = _objects(list(data)), None
    if present is None:
        present = np.ones(len(values), bool)

    if values.dtype.kind == "V":  # JAX's small floats
        values = values.astype(np.float32)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    if values.dtype.kind in "UT":
        values = values.astype(object)
    here = _is_present(values)
    if not here.all():
        present = present.copy()
        present[np.flatnonzero(present)[~here]] = False
        values = values[here]
    return _narrow(values, name), present


def _objects(values: list[Any]) -> np.ndarray:
    """A 1-D object array, whatever the elements are."""
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value.item() if getattr(value, "ndim", None) == 0 else value
    return array


def _is_present(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return ~np.isnan(values)
    if values.dtype.kind in "mM":
        return ~np.isnat(values)
    if values.dtype.kind == "O":
        return np.fromiter((not _is_missing(value) for value in values), bool, len(values))
    return np.ones(len(values), bool)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | np.datetime64) and bool(value != value)


def _narrow(values: np.ndarray, name: str) -> np.ndarray:
    """An object array of one type of numbers as that native dtype; others unchanged."""
    if values.dtype.kind != "O" or len(values) == 0:
        return values
    kinds = {_kind(t) for t in set(map(type, values))}
    if len(kinds) > 1:
        _raise_mixed(name, values)
    kind = kinds.pop()
    if kind == "number":
        if any(isinstance(value, float | np.floating) for value in values):
            return values.astype(float)
        try:
            return values.astype(np.int64)
        except OverflowError:
            return values  # ids beyond 64 bits stay Python ints
    return values.astype(bool) if kind == "bool" else values


def _kind(kind: type) -> str:
    if issubclass(kind, bool | np.bool_):
        return "bool"
    if issubclass(kind, int | float | np.integer | np.floating):
        return "number"
    return "text" if issubclass(kind, str) else kind.__name__


def _column_kind(column: _Column) -> str:
    kind = column.values.dtype.kind
    if kind == "O":
        return _kind(type(column.values[0])) if len(column.values) else "text"
    return {"b": "bool", "i": "number", "u": "number", "f": "number"}.get(kind, "date")


def _declared(data: Any, values: np.ndarray) -> tuple[Any, ...] | None:
    """Classes that the type of the column names, reported or not."""
    categories = getattr(getattr(data, "dtype", None), "categories", None)
    if categories is None:
        return (False, True) if values.dtype.kind == "b" else None
    if not hasattr(data, "isna") and type(data.dtype).__name__ != "Enum":
        return None  # the categories of a polars Categorical are a global pool
    labels = categories.to_list() if hasattr(categories, "to_list") else list(categories)
    return tuple(labels)


def _factorise(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct labels as Python scalars, and for each value the position of its label."""
    if values.dtype.kind == "O":
        position: dict[Any, int] = {}
        inverse = np.fromiter(
            (position.setdefault(value, len(position)) for value in values), np.intp, len(values)
        )
        return [str(x) if isinstance(x, str) else x for x in position], inverse
    labels, inverse = np.unique(values, return_inverse=True)
    if values.dtype.kind == "f":
        return [int(x) for x in labels], inverse
    return labels.tolist(), inverse


# Labels -------------------------------------------------------------------------------------


def _labels_column(data: Any, name: str) -> _Column:
    column = _column(data, name)
    if len(column.present) == 0:
        raise ValueError(f"{name}: expected at least one label, got none")
    values = column.values
    if values.dtype.kind == "c":
        raise ValueError(f"{name}: expected labels, got complex numbers")
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values))
        if not whole.all():
            bad = int(np.argmin(whole))
            raise ValueError(
                f"{name}: expected class labels, got {values[bad]:g} in row {column.row(bad)}: "
                "put numeric reports into buckets with jgram.tables.quantile_bins (--bins 4)"
            )
    return column


def _class_order(
    columns: list[_Column],
    factors: list[tuple[list[Any], np.ndarray]],
    classes: Sequence[Any] | None,
    num_classes: int | None,
) -> tuple[Any, ...]:
    """The common classes, in order."""
    if classes is not None:
        order = tuple(x.item() if isinstance(x, np.generic) else x for x in classes)
        if len(set(order)) != len(order) or not order:
            raise ValueError(f"classes: expected distinct labels, got {order}")
        if num_classes not in (None, len(order)):
            raise ValueError(f"num_classes: expected {len(order)} as in classes, got {num_classes}")
        return order

    seen = list(dict.fromkeys(label for labels, _ in factors for label in labels))
    if num_classes is not None:
        if num_classes < 1:
            raise ValueError(f"num_classes: expected a positive int, got {num_classes}")
        if _column_kind(columns[0]) == "number":
            return tuple(range(num_classes))
        declared = _union(columns)
        if len(declared or seen) != num_classes:
            raise ValueError(
                f"{columns[0].name}: expected {num_classes} classes, got {len(declared or seen)} "
                f"({_listing(declared or seen)}): pass classes= with every label, "
                "reported or not"
            )

    declared = _union(columns)
    rest = [label for label in seen if label not in set(declared)]
    if not declared:
        _refuse_negative(columns)
    try:
        rest = sorted(rest)
    except TypeError:
        pass  # labels without an order keep the order in which they appear
    return (*declared, *rest)


def _union(columns: list[_Column]) -> list[Any]:
    return list(dict.fromkeys(x for column in columns for x in column.declared or ()))


def _refuse_missing(column: _Column, what: str) -> None:
    count = int((~column.present).sum())
    if count:
        raise ValueError(
            f"{column.name}: {count} of {len(column.present)} {what} missing (first in row "
            f"{int(np.argmin(column.present))}): fill them in, or drop those records with "
            "missing='drop' (--missing drop)"
        )


def _refuse_mixed(columns: list[_Column]) -> None:
    kinds = {column.name: _column_kind(column) for column in columns if len(column.values)}
    if len(set(kinds.values())) > 1:
        name, other = (next(n for n, k in kinds.items() if k == kind) for kind in
                       list(dict.fromkeys(kinds.values()))[:2])  # fmt: skip
        examples = {c.name: c.values[0] for c in columns if len(c.values)}
        raise ValueError(
            f"{other}: expected labels of one type in all reports, got {kinds[other]} "
            f"(such as {_show(examples[other])}) beside {kinds[name]} in {name} "
            f"(such as {_show(examples[name])}): convert both, for example to text"
        )


def _raise_mixed(name: str, values: np.ndarray) -> None:
    """Refuse labels of several types, showing two that would be confused."""
    by_text: dict[str, dict[str, Any]] = {}
    examples: dict[str, Any] = {}
    for value in values:
        kind = _kind(type(value))
        examples.setdefault(kind, value)
        text = str(int(value)) if _is_whole(value) else str(value)
        by_text.setdefault(text, {}).setdefault(kind, value)
    collisions = [list(group.values()) for group in by_text.values() if len(group) > 1]
    shown = " and ".join(_show(x) for x in (collisions[0] if collisions else examples.values()))
    raise ValueError(
        f"{name}: expected labels of one type, got {', '.join(examples)} (such as {shown}): "
        "convert them, for example all to text"
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_) and float(value) % 1 == 0


def _refuse_negative(columns: list[_Column]) -> None:
    for column in columns:
        if _column_kind(column) != "number":
            continue
        negative = np.asarray(column.values < 0, bool)
        if negative.any():
            first = int(np.argmax(negative))
            raise ValueError(
                f"{column.name}: {int(negative.sum())} negative labels (first is "
                f"{int(column.values[first])} in row {column.row(first)}): -1 often means "
                "'missing'; make it a missing value, or list it in classes= if it is a class"
            )


def _refuse_unknown(
    column: _Column,
    labels: list[Any],
    inverse: np.ndarray,
    code_of: dict[Any, int],
    *,
    named: bool,
) -> None:
    unknown = [i for i, label in enumerate(labels) if label not in code_of]
    if not unknown:
        return
    label = labels[unknown[0]]
    count = int(np.isin(inverse, unknown).sum())
    row = column.row(int(np.argmax(inverse == unknown[0])))
    where = f"got {_show(label)} in row {row} ({count} such records)"
    if named:
        close = difflib.get_close_matches(str(label), [str(x) for x in code_of], 1)
        hint = f": did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{column.name}: expected one of {_listing(code_of)}, {where}{hint}")
    if label == -1:
        hint = "-1 often means 'missing': make it a missing value"
    elif label == len(code_of):
        hint = "labels are 0-based: subtract 1, or pass a larger num_classes"
    else:
        hint = "pass classes= with every label, or a larger num_classes"
    raise ValueError(f"{column.name}: expected labels 0..{len(code_of) - 1}, {where}: {hint}")


# Observations -------------------------------------------------------------------------------


def _is_frame(data: Any) -> bool:
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def _named_columns(data: Any, name: str) -> dict[str, Any]:
    """The columns of a mapping or frame by name; anything else under `name`."""
    if isinstance(data, Mapping):
        return dict(data)
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas
        names, columns = [str(x) for x in data.columns], [c for _, c in data.items()]
    elif hasattr(data, "get_columns"):  # polars
        names, columns = list(data.columns), data.get_columns()
    elif hasattr(data, "column_names"):  # Arrow
        names, columns = data.column_names, data.columns
    else:
        nested = isinstance(data, list | tuple) and len(data) and np.ndim(data[0])
        return {name: np.asarray(data) if nested else data}
    if len(set(names)) < len(names):
        twice = next(x for i, x in enumerate(names) if x in names[:i])
        raise ValueError(f"{name}: column {twice!r} appears twice: rename one")
    return dict(zip(names, columns, strict=True))


def _detect_kind(columns: dict[str, Any]) -> Literal["categorical", "numeric"]:
    numeric = {}
    for label, data in columns.items():
        if len(_shape(data)) > 1:
            numeric[label] = np.asarray(data).dtype.kind in "biufV"
        else:
            column = _column(data, label)
            numeric[label] = column.declared is None and _column_kind(column) == "number"
    if len(set(numeric.values())) > 1:
        text = next(label for label, is_numeric in numeric.items() if not is_numeric)
        number = next(label for label, is_numeric in numeric.items() if is_numeric)
        raise ValueError(
            f"{text}: observations mix categories with numbers ({number}): bucket the numbers "
            "(--bins 4) or encode the categories as numbers"
        )
    return "numeric" if all(numeric.values()) else "categorical"


def _categorical(columns: dict[str, Any], name: str) -> Observations:
    parts: list[tuple[np.ndarray, list[Any]]] = []
    for label, data in columns.items():
        if len(_shape(data)) > 2:
            raise ValueError(f"{label}: expected outcomes [n] or [n, k], got {_shape(data)}")
        block = np.asarray(data) if len(_shape(data)) == 2 else None
        for j in range(1 if block is None else block.shape[1]):
            part = data if block is None else block[:, j]
            column = _column(part, label if block is None else f"{label}[{j}]")
            _refuse_missing(column, "values are")
            outcomes, inverse = _factorise_sorted(column.values)
            parts.append((inverse, outcomes))
    if len(parts) == 1:
        codes, outcomes = parts[0]
    else:
        stacked = np.column_stack([inverse for inverse, _ in parts])
        rows, codes = np.unique(stacked, axis=0, return_inverse=True)
        outcomes = [tuple(parts[j][1][code] for j, code in enumerate(row)) for row in rows]
    warnings = []
    if len(outcomes) == 1:
        warnings.append(f"{name}: every record has the outcome {_show(outcomes[0])}")
    elif 2 * len(outcomes) > len(codes):
        warnings.append(
            f"{name}: {len(outcomes)} distinct outcomes in {len(codes)} records hardly repeat: "
            "bucket numbers (--bins 4) or use a kernel for numbers"
        )
    return Observations(
        codes.astype(np.int32).ravel(), "categorical", tuple(outcomes), tuple(warnings)
    )


def _factorise_sorted(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    if values.dtype.kind != "O":
        labels, inverse = np.unique(values, return_inverse=True)
        return labels.tolist(), inverse
    labels, inverse = _factorise(values)
    try:
        order = sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:
        order = list(range(len(labels)))
    return [labels[i] for i in order], np.argsort(order)[inverse]


def _numeric(data: Any, name: str) -> np.ndarray:
    """A column `[n]` or block `[n, ...]` as finite floats."""
    if len(_shape(data)) > 1:
        values = np.asarray(data)
        values = values.astype(np.float32) if values.dtype.kind == "V" else values
    else:
        column = _column(data, name)
        _refuse_missing(column, "values are")
        values = column.values
    if values.dtype.kind not in "biuf":
        got = f"{_show(values.flat[0])} in row 0" if values.size else "nothing"
        raise ValueError(
            f"{name}: expected numbers, got {got}: use a categorical kernel (--kernel delta), or "
            "convert (--thousands and --decimal say how a file writes its numbers)"
        )
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    elif values.dtype.itemsize < 4:
        values = values.astype(np.float32)

    missing = np.isnan(values)
    if missing.any():
        part, row = _first(missing, name)
        raise ValueError(
            f"{part}: {int(missing.sum())} values are missing (first in row {row}): fill them "
            "in, or drop those records with missing='drop' (--missing drop)"
        )
    large = np.abs(values) > _LARGEST
    if large.any():
        part, row = _first(large, name)
        raise ValueError(
            f"{part}: expected finite numbers up to {_LARGEST:g}, got {values[large][0]:g} in row "
            f"{row}: correct, drop or rescale"
        )
    return values


def _first(flags: np.ndarray, name: str) -> tuple[str, int]:
    """The name of the first flagged column, and its first flagged row."""
    flat = flags.reshape(len(flags), -1)
    row, column = np.unravel_index(int(np.argmax(flat)), flat.shape)
    return _part_names(name, flags)[column], int(row)


def _part_names(name: str, block: np.ndarray) -> list[str]:
    if block.ndim == 1:
        return [name]
    return [f"{name}[{', '.join(map(str, index))}]" for index in np.ndindex(block.shape[1:])]


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
    if values.min() < 0 and (values.max() > 1 + tolerance or values.min() < -tolerance):
        raise ValueError(
            f"{name}: expected probabilities, got values from {values.min():g} to "
            f"{values.max():g}, which look like logits: apply softmax over each row"
        )
    if values.min() < 0:
        where = int(np.argmin(values.min(axis=1)))
        raise ValueError(
            f"{name}: expected probabilities, got {values.min():g} in row {where}: clip rounding "
            "errors at 0"
        )
    if abs(sums[row] - 1) > tolerance:
        hint = "percentages: divide by 100" if abs(sums[row] - 100) < 1 else "divide by row sums"
        raise ValueError(
            f"{name}: expected rows that sum to 1, got {sums[row]:.6g} in row {row}: {hint}"
        )


def _constant_warnings(values: np.ndarray, names: tuple[str, ...]) -> Iterable[str]:
    flat = values.reshape(len(values), -1)
    constant = np.flatnonzero(flat.min(axis=0) == flat.max(axis=0))
    if len(constant) and len(values) > 1:
        shown = ", ".join(names[j] for j in constant[:6]) + (", ..." if len(constant) > 6 else "")
        yield f"constant observation columns say nothing: {shown}"


# Shapes, rows, words ------------------------------------------------------------------------


def _shape(data: Any) -> tuple[int, ...]:
    shape = getattr(data, "shape", None)
    if shape is not None:
        return tuple(shape)
    if not hasattr(data, "__len__"):
        return ()
    nested = isinstance(data, list | tuple) and len(data) and isinstance(data[0], list | tuple)
    return (len(data), len(data[0])) if nested else (len(data),)


def _length(data: Any, name: str) -> int:
    if isinstance(data, Mapping) or hasattr(data, "column_names"):
        return check_aligned(_named_columns(data, name))
    shape = _shape(data)
    if not shape or isinstance(data, str | bytes):
        raise ValueError(f"{name}: expected a sequence [n], got {type(data).__name__}")
    return shape[0]


def _has_index(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "index")


def _present(data: Any, name: str) -> np.ndarray:
    """Which records of a column or block have all their values."""
    if len(_shape(data)) == 1:
        return _column(data, name).present
    values = np.asarray(data)
    if values.dtype.kind == "f":
        return ~np.isnan(values).any(axis=tuple(range(1, values.ndim)))
    return np.ones(len(values), bool)


def _take(data: Any, rows: np.ndarray) -> Any:
    """The given rows, in the container's own type."""
    if isinstance(data, Mapping):
        return {label: _take(part, rows) for label, part in data.items()}
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if isinstance(data, list | tuple):
        return _narrow(_objects(list(data))[rows], "")
    return data[rows] if hasattr(data, "__array__") else data.take(rows)


def _name_warnings(classes: Iterable[Any]) -> Iterable[str]:
    """Class names that look like missing values, or like one another."""
    alike: dict[str, str] = {}
    for label in classes:
        if not isinstance(label, str):
            continue
        plain = label.strip().casefold()
        if plain in _MISSING_NAMES:
            yield f"{label!r} is read as a class name, not as a missing value"
        if alike.setdefault(plain, label) != label:
            yield f"classes {alike[plain]!r} and {label!r} differ only in case or spaces"


def _show(value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _listing(values: Iterable[Any], most: int = 6) -> str:
    shown = [_show(value) for value in values]
    return ", ".join(shown[:most]) + (f", ... {len(shown)} in all" if len(shown) > most else "")
