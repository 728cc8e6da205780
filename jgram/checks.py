"""The door: labels and observations are checked once, on the host, before any kernel.

Labels of any type become 0-based int32 codes with their class names kept; observations become a
NumPy array of known kind. Past the door wrong values go wrong silently (`segment_sum` drops a -1,
`.at[].add` wraps it, `bincount` clips it, a NaN cast to int joins class 0), so whatever can be
refused is refused here, in one line that names the column, the value and the fix.

pandas, polars and Arrow columns are recognised by what they can do; none is imported.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = [
    "EncodedLabels",
    "EncodedReports",
    "Observations",
    "check_aligned",
    "check_observations",
    "check_soft_labels",
    "drop_missing",
    "encode_labels",
    "encode_reports",
]

Kind = Literal["categorical", "numeric", "probability"]
Missing = Literal["raise", "drop"]

_LARGEST = 1e18  # squares of larger numbers overflow float32
_MISSING_WORDS = frozenset(["", "na", "n/a", "#n/a", "nan", "nat", "none", "null", "<na>"])
_DROP_HINT = "fill them in, or drop those records with missing='drop' (--missing drop)"


@dataclass(frozen=True)
class EncodedLabels:
    """A report as 0-based codes: `classes[codes[i]]` is the label of input row `rows[i]`."""

    codes: np.ndarray
    classes: tuple[Any, ...]
    rows: np.ndarray
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class EncodedReports:
    """Several reports as codes by name, over one tuple of classes and the same rows."""

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
    kind: Kind
    names: tuple[Any, ...]
    warnings: tuple[str, ...] = ()


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
        labels: `[n]` ints, whole floats, strings, bools or other hashables of one type: a
            sequence, a NumPy or JAX array, a pandas, polars or Arrow column.
        name: What error messages call the column.
        classes: The possible labels, in order.
        num_classes: The number of classes of labels that already are 0-based ints.
        missing: `"raise"` refuses missing labels, `"drop"` leaves them out (`rows` says which
            stayed; `drop_missing` drops the same records from several columns).

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
    encoded = encode_reports(
        {name: labels}, classes=classes, num_classes=num_classes, missing=missing
    )
    return EncodedLabels(encoded.codes[name], encoded.classes, encoded.rows, encoded.warnings)


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
        >>> encoded.codes["bob"], encoded.classes
        (array([1, 2], dtype=int32), ('a', 'b', 'c'))
    """
    n = check_aligned(reports)
    columns = {name: _column(labels, name) for name, labels in reports.items()}
    if n == 0:
        raise ValueError(f"{next(iter(columns))}: expected at least one label, got none")
    keep = np.ones(n, bool)
    for name, column in columns.items():
        if missing == "raise":
            _refuse_missing(column, name, "labels")
        _refuse_fractional(column, name)
        keep &= column.present
    if not keep.any():
        raise ValueError(f"{', '.join(columns)}: every one of the {n} records lacks a label")
    kinds = {_kind(column.values) for column in columns.values()}
    if len(kinds) > 1:
        together = np.concatenate([column.values.astype(object) for column in columns.values()])
        _narrow(together, ", ".join(columns))  # raises

    factors = {name: _factorise(column.values) for name, column in columns.items()}
    seen = _sorted(dict.fromkeys(label for labels, _ in factors.values() for label in labels))
    declared = dict.fromkeys(label for c in columns.values() for label in c.declared)
    order = _class_order(seen, tuple(declared), classes, num_classes, numeric=kinds == {"number"})
    code_of = {label: code for code, label in enumerate(order)}
    codes = {}
    for name, (labels, inverse) in factors.items():
        _refuse_unknown(labels, inverse, columns[name], name, code_of, classes is not None)
        full = np.zeros(n, np.int32)
        full[columns[name].present] = np.array([code_of[x] for x in labels], int)[inverse]
        codes[name] = full[keep]
    return EncodedReports(codes, order, np.flatnonzero(keep), tuple(_name_warnings(order)))


def check_observations(
    y: Any, *, name: str = "y", kind: Kind | Literal["auto"] = "auto"
) -> Observations:
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
    title = _listing(columns, quote=False)
    if kind == "categorical":
        return _categorical(columns, title)
    blocks = {label: _numeric(data, label) for label, data in columns.items()}
    names = tuple(part for label, block in blocks.items() for part in _part_names(label, block))
    values = blocks[name] if list(columns) == [name] else np.column_stack(list(blocks.values()))
    if kind == "probability":
        _refuse_improbable(values, title)
    lowest, highest = values.min(axis=0), values.max(axis=0)
    constant = [part for part, same in zip(names, np.ravel(lowest == highest), strict=True) if same]
    warning = f"constant observation columns say nothing: {_listing(constant, quote=False)}"
    return Observations(values, kind, names, (warning,) if constant else ())


def check_soft_labels(
    x_hat: Any, *, name: str = "x_hat", num_classes: int | None = None
) -> np.ndarray:
    """Soft reports `[n, d]`: each row the probabilities of one record's classes.

    Args:
        x_hat: `[n, d]` rows that are non-negative and sum to 1.
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
            f"{name}: expected one column per class, {num_classes}, got {values.shape[1]}"
        )
    return values


def check_aligned(columns: Mapping[str, Any]) -> int:
    """The common number of records of columns that must line up row by row.

    Args:
        columns: Name to column; pandas indexes must agree, other columns line up by position.

    Returns:
        The number of records.

    Raises:
        ValueError: Different lengths, pandas indexes that differ in order or content, no column.

    Example:
        >>> check_aligned({"x_hat": [0, 1], "y": [2.5, 3.5]})
        2
    """
    parts = {
        (name if label == name else f"{name}[{label!r}]"): part
        for name, data in columns.items()
        for label, part in _named_columns(data, name).items()
    }
    if not parts:
        raise ValueError("expected at least one column, got none")
    first, n = next((name, _length(data, name)) for name, data in parts.items())
    reference = None
    for name, data in parts.items():
        if _length(data, name) != n:
            raise ValueError(f"{name}: expected {n} records as in {first}, got {len(data)}")
        if not (hasattr(data, "iloc") and hasattr(data, "index")):
            continue
        reference = reference or name
        index, expected = data.index, parts[reference].index
        if not index.equals(expected):
            same = len(index.symmetric_difference(expected)) == 0
            fault = "holds the same rows in another order than" if same else "differs from"
            raise ValueError(
                f"{name}: its index {fault} that of {reference}: align them with "
                f".loc[{reference}.index], or pass .to_numpy() if the rows do line up"
            )
    return n


def drop_missing(columns: Mapping[str, Any]) -> tuple[dict[str, Any], np.ndarray]:
    """The records that are complete in every column, taken from all columns together.

    Args:
        columns: Name to column `[n]`, block `[n, ...]` or frame.

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
            keep &= _present(_array(part, name)).reshape(n, -1).all(axis=1)
    rows = np.flatnonzero(keep)
    if rows.size == 0:
        raise ValueError(f"every one of the {n} records lacks a value in {', '.join(columns)}")
    return {name: _take(data, rows, name) for name, data in columns.items()}, rows


# Columns ------------------------------------------------------------------------------------


class _Column(NamedTuple):
    """The values of a 1-D column that are present, where they are, the classes its type names."""

    values: np.ndarray
    present: np.ndarray
    declared: tuple[Any, ...]

    def row(self, position: int | np.integer) -> int:
        """The input row of `values[position]`."""
        return int(np.flatnonzero(self.present)[position])


def _column(data: Any, name: str) -> _Column:
    array = _array(data, name)
    if array.ndim != 1:
        raise ValueError(f"{name}: expected shape [n], one value per record, got {array.shape}")
    present = _present(array)
    values = _narrow(array[present], name)
    return _Column(values, present, _declared(data, values))


def _array(data: Any, name: str) -> np.ndarray:
    """Any container as a NumPy array in which missing is None, NA, NaN or NaT."""
    _length(data, name)
    if isinstance(data, list | tuple):
        nested = len(data) > 0 and isinstance(data[0], list | tuple | np.ndarray)
        array = np.asarray(data) if nested else _objects(data)
    else:
        array = np.asarray(data)
        stored = str(getattr(data, "dtype", getattr(data, "type", "")))
        if array.dtype.kind == "f" and "int" in stored.lower():  # nulls made floats of large ids
            array = _objects(data.to_pylist() if hasattr(data, "to_pylist") else data)
    if array.dtype.kind == "V":  # JAX's small floats
        return array.astype(np.float32)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    return array.astype(object) if array.dtype.kind in "UT" else array


def _objects(values: Iterable[Any]) -> np.ndarray:
    """A 1-D object array of Python scalars, whatever the elements are."""
    values = [x.item() if getattr(x, "ndim", None) == 0 else x for x in values]
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _length(data: Any, name: str) -> int:
    if isinstance(data, str | bytes | set | frozenset) or not getattr(data, "shape", (1,)):
        raise ValueError(f"{name}: expected a sequence [n], got {type(data).__name__}")
    try:
        return len(data)
    except TypeError:
        raise ValueError(f"{name}: expected a sequence [n], got {type(data).__name__}") from None


def _present(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "fc":
        return ~np.isnan(values)
    if values.dtype.kind in "mM":
        return ~np.isnat(values)
    if values.dtype.kind != "O":
        return np.ones(values.shape, bool)
    flags = [
        not (x is None or type(x).__name__ in ("NAType", "NaTType") or _is_nan(x))
        for x in values.flat
    ]
    return np.array(flags, bool).reshape(values.shape)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _narrow(values: np.ndarray, name: str) -> np.ndarray:
    """Objects that are all numbers or all bools in that native dtype; mixed types refused."""
    if values.dtype.kind != "O" or len(values) == 0:
        return values
    kinds = {_type_kind(kind) for kind in set(map(type, values))}
    if len(kinds) > 1:
        _refuse_mixed(values, name)
    if kinds == {"bool"}:
        return values.astype(bool)
    if kinds != {"number"}:
        return values
    if any(issubclass(kind, float | np.floating) for kind in set(map(type, values))):
        return values.astype(float)
    try:
        return values.astype(np.int64)
    except OverflowError:
        return values  # ids beyond 64 bits stay Python ints


def _type_kind(kind: type) -> str:
    if issubclass(kind, bool | np.bool_):
        return "bool"
    if issubclass(kind, int | float | np.integer | np.floating):
        return "number"
    return "text" if issubclass(kind, str) else kind.__name__


def _kind(values: np.ndarray) -> str:
    if values.dtype.kind == "O":
        return _type_kind(type(values[0])) if len(values) else "text"
    return {"b": "bool", "M": "date", "m": "duration", "c": "complex"}.get(
        values.dtype.kind, "number"
    )


def _declared(data: Any, values: np.ndarray) -> tuple[Any, ...]:
    """The classes that the column's type names, reported or not."""
    dtype = getattr(data, "dtype", None)
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return (False, True) if values.dtype.kind == "b" else ()
    if type(dtype).__name__ == "Categorical":
        return ()  # polars: a pool that other columns share
    return tuple(categories.to_list() if hasattr(categories, "to_list") else categories)


def _factorise(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct values as sorted Python scalars, and the position of each value among them."""
    if values.dtype.kind != "O":
        distinct, inverse = np.unique(values, return_inverse=True)
        if values.dtype.kind == "M":  # finer dates have no Python scalar
            distinct = distinct.astype("datetime64[us]")
        whole = values.dtype.kind == "f" and not np.any(distinct % 1)
        return [int(x) if whole else x for x in distinct.tolist()], inverse
    labels = _sorted(dict.fromkeys(values))
    position = {label: i for i, label in enumerate(labels)}
    inverse = np.fromiter((position[x] for x in values), np.intp, len(values))
    return [str(x) if isinstance(x, str) else x for x in labels], inverse


def _sorted(values: Iterable[Any]) -> list[Any]:
    values = list(values)
    try:
        return sorted(values)
    except TypeError:
        return values  # values without an order keep the order in which they appear


# Labels -------------------------------------------------------------------------------------


def _class_order(
    seen: list[Any],
    declared: tuple[Any, ...],
    classes: Sequence[Any] | None,
    num_classes: int | None,
    *,
    numeric: bool,
) -> tuple[Any, ...]:
    """The classes, in order; negative labels are classes only where `classes` lists them."""
    if num_classes is not None and num_classes < 1:
        raise ValueError(f"num_classes: expected a positive int, got {num_classes}")
    if classes is not None:
        order = tuple(x.item() if isinstance(x, np.generic) else x for x in classes)
    elif num_classes is not None and numeric:
        order = tuple(range(num_classes))
    else:
        rest = (x for x in seen if x not in declared and not (numeric and x < 0))
        order = (*declared, *rest)
    if len(set(order)) < len(order):
        raise ValueError(f"classes: expected distinct labels, got {_listing(order)}")
    if num_classes not in (None, len(order)):
        raise ValueError(
            f"num_classes: expected {len(order)}, the classes being {_listing(order)}, got "
            f"{num_classes}: list every class, reported or not, in classes="
        )
    return order


def _refuse_missing(column: _Column, name: str, what: str) -> None:
    if not column.present.all():
        raise ValueError(
            f"{name}: {np.sum(~column.present)} of {len(column.present)} {what} missing (first in "
            f"row {np.argmin(column.present)}): {_DROP_HINT}"
        )


def _refuse_fractional(column: _Column, name: str) -> None:
    if column.values.dtype.kind not in "fc":
        return
    whole = np.isfinite(column.values) & (column.values == np.round(column.values))
    if not whole.all():
        bad = int(np.argmin(whole))
        raise ValueError(
            f"{name}: expected class labels, got {column.values[bad]:g} in row {column.row(bad)}: "
            "put numeric reports into buckets (jgram.tables.quantile_bins, --bins 4)"
        )


def _refuse_mixed(values: np.ndarray, name: str) -> None:
    """Refuse values of several types, showing two that would be confused."""
    examples: dict[str, Any] = {}
    alike: dict[str, dict[str, Any]] = {}
    for value in values:
        kind = _type_kind(type(value))
        examples.setdefault(kind, value)
        text = str(int(value) if kind == "bool" else value)
        alike.setdefault(text.removesuffix(".0"), {}).setdefault(kind, value)
    collision = next((group for group in alike.values() if len(group) > 1), examples)
    raise ValueError(
        f"{name}: expected values of one type, got {', '.join(examples)} (such as "
        f"{' and '.join(map(_show, collision.values()))}): convert them, for example all to text"
    )


def _refuse_unknown(
    labels: list[Any],
    inverse: np.ndarray,
    column: _Column,
    name: str,
    code_of: Mapping[Any, int],
    listed: bool,
) -> None:
    unknown = [i for i, label in enumerate(labels) if label not in code_of]
    if not unknown:
        return
    label = labels[unknown[0]]
    row = column.row(np.argmax(inverse == unknown[0]))
    count = int(np.isin(inverse, unknown).sum())
    if listed:
        close = difflib.get_close_matches(str(label), map(str, code_of), 1)
        hint = f": did you mean {close[0]!r}?" if close else ""
    elif label < 0:
        hint = ": -1 often means 'missing': make it so, or list it in classes= if it is a class"
    else:
        hint = ": labels are 0-based: raise num_classes, or list every label in classes="
    raise ValueError(
        f"{name}: expected labels among {_listing(code_of)}, got {_show(label)} in row {row} "
        f"({count} such record{'s' * (count != 1)}){hint}"
    )


def _name_warnings(classes: Iterable[Any]) -> Iterator[str]:
    """Class names that look like missing values, or like one another."""
    alike: dict[str, str] = {}
    for label in classes:
        if not isinstance(label, str):
            continue
        plain = label.strip().casefold()
        if plain in _MISSING_WORDS:
            yield f"{label!r} is read as a class name, not as a missing value"
        if alike.setdefault(plain, label) != label:
            yield f"classes {alike[plain]!r} and {label!r} differ only in case or spaces"


# Observations -------------------------------------------------------------------------------


def _named_columns(data: Any, name: str) -> dict[str, Any]:
    """The columns of a mapping or frame by name; anything else as it is, under `name`."""
    if isinstance(data, Mapping):
        return dict(data)
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas
        pairs = [(str(label), column) for label, column in data.items()]
    elif hasattr(data, "get_columns"):  # polars
        pairs = [(column.name, column) for column in data.get_columns()]
    elif hasattr(data, "column_names"):  # Arrow
        pairs = list(zip(data.column_names, data.columns, strict=True))
    else:
        return {name: data}
    columns = dict(pairs)
    if len(columns) < len(pairs):
        raise ValueError(
            f"{name}: expected distinct column names, got {_listing(p[0] for p in pairs)}"
        )
    return columns


def _detect_kind(columns: Mapping[str, Any]) -> Literal["categorical", "numeric"]:
    kinds: dict[bool, str] = {}
    for label, data in columns.items():
        values = _array(data, label)
        if values.ndim == 1:
            values = _column(data, label).values
        numeric = _kind(values) == "number" and not _declared(data, values)
        kinds.setdefault(numeric, label)
    if len(kinds) > 1:
        raise ValueError(
            f"{kinds[False]}: cannot mix categories with the numbers of {kinds[True]}: bucket the "
            "numbers (--bins 4), or encode the categories as numbers"
        )
    return "numeric" if True in kinds else "categorical"


def _categorical(columns: Mapping[str, Any], name: str) -> Observations:
    factors = []
    for label, data in columns.items():
        array = _array(data, label)
        if array.ndim > 2:
            raise ValueError(f"{label}: expected outcomes [n] or [n, k], got shape {array.shape}")
        parts = [data] if array.ndim == 1 else list(array.T)
        for part, part_name in zip(parts, _part_names(label, array), strict=True):
            column = _column(part, part_name)
            _refuse_missing(column, part_name, "values")
            factors.append(_factorise(column.values))
    outcomes, codes = factors[0]
    if len(factors) > 1:
        joint, codes = np.unique(
            np.column_stack([inverse for _, inverse in factors]), axis=0, return_inverse=True
        )
        labels = [labels for labels, _ in factors]
        outcomes = [tuple(labels[j][code] for j, code in enumerate(row)) for row in joint]
    warnings = ()
    if len(outcomes) == 1:
        warnings = (f"{name}: every record has the outcome {_show(outcomes[0])}",)
    elif 2 * len(outcomes) > len(codes):
        warnings = (
            f"{name}: {len(outcomes)} distinct outcomes in {len(codes)} records hardly repeat: "
            "bucket numbers (--bins 4) or use a kernel for numbers",
        )
    return Observations(codes.astype(np.int32).ravel(), "categorical", tuple(outcomes), warnings)


def _numeric(data: Any, name: str) -> np.ndarray:
    """A column `[n]` or block `[n, ...]` as finite floats."""
    values = _array(data, name)
    if values.ndim == 1:
        column = _column(data, name)
        _refuse_missing(column, name, "values")
        values = column.values
    if values.dtype.kind not in "biuf":
        got = _show(values.flat[0]) if values.size else "an empty array"
        raise ValueError(
            f"{name}: expected numbers, got {got}: use --kernel delta for categories, or say how "
            "the file writes numbers (--thousands, --decimal)"
        )
    values = values.astype(np.float32 if values.dtype in (np.float16, np.float32) else np.float64)
    missing = np.isnan(values)
    if missing.any():
        part, row = _first(missing, name)
        raise ValueError(
            f"{part}: {missing.sum()} values missing (first in row {row}): {_DROP_HINT}"
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
    """The name of the column, and the row, of the first flag."""
    row, column = divmod(int(np.argmax(flags)), flags[0].size)
    return _part_names(name, flags)[column], row


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


def _take(data: Any, rows: np.ndarray, name: str) -> Any:
    """The given rows, in the container's own type where it declares more than values."""
    if isinstance(data, Mapping):
        return {label: _take(part, rows, label) for label, part in data.items()}
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if hasattr(data, "get_columns") or hasattr(data, "is_not_null"):  # polars
        return data[rows]
    if hasattr(data, "column_names"):  # Arrow
        return data.take(rows)
    array = _array(data, name)[rows]
    return _narrow(array, name) if array.ndim == 1 and _present(array).all() else array


# Words --------------------------------------------------------------------------------------


def _show(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else text[:37] + "..."


def _listing(values: Iterable[Any], *, quote: bool = True) -> str:
    shown = [_show(value) if quote else str(value) for value in values]
    if len(shown) <= 6:
        return ", ".join(shown)
    return f"{', '.join(shown[:5])}, ..., {shown[-1]} ({len(shown)} in all)"
