"""Any container as columns that are read once: values, where they are, their kind, their codes.

NumPy and JAX arrays and plain sequences are read as they are. Data frames and columns of any
library (pandas, polars, Arrow, DuckDB, Modin, ...) are read through one protocol, narwhals, or the
Arrow interchange protocol behind it; none of these libraries is imported here unless an object of
its kind comes in. A :class:`Column` is a container too: what was read is not read again.
"""

import contextlib
import datetime
import difflib
import math
import numbers
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from jgram.data.written import Dates, Written, find_dates, find_written, is_plain

__all__ = [
    "Column", "check_aligned", "column", "dataset_columns", "drop_missing", "named_columns", "read",
    "read_table",
]  # fmt: skip

_FEW_NAMES = 20
_NARROW = 1 << 16  # so wide a range of integers is looked up in a table
_CODED_TEXTS = ("dictionary<values=string", "dictionary<values=large_string")
EXACT = 1 << 53  # floats hold every integer up to here
_MEASURED = ("number", "date", "duration")
_SCALARS = {str, int, float, bool, type(None)}
_KINDS: dict[tuple[type, ...], str] = {
    (bool, np.bool_): "bool",
    (complex, np.complexfloating): "complex",
    (numbers.Real, Decimal): "number",
    (str,): "text",
    (datetime.date,): "date",
    (datetime.timedelta,): "duration",
}

DROP_HINT = "fill them in, or drop those records with missing='drop' (--missing drop)"

Factors = tuple[list[Any], np.ndarray]
"""Distinct values as sorted Python scalars, and which of them each value is."""


@dataclass(frozen=True, eq=False)
class Column:
    """One column ``[n]``, or a block ``[n, ...]`` of numbers, read once."""

    name: str  # what messages call it
    values: np.ndarray  # of a column those present: bools, numbers, dates, objects; of a block all
    present: np.ndarray  # bool [n] or [n, ...], where values are
    declared: tuple[Any, ...] = ()  # the classes that the column's type names, used or not
    rows: np.ndarray | None = None  # of the input, where they are not 0, 1, ...
    coded: Factors | None = field(default=None, repr=False)  # where found in reading

    @classmethod
    def of_codes(cls, name: str, labels: Sequence[Any], codes: np.ndarray) -> "Column":
        """A column of distinct values ``[k]`` and codes int ``[n]``, -1 where one is missing."""
        given, present = read(list(labels), name), codes >= 0
        inverse = codes if present.all() else codes[present]
        coded = _used(given.factors[0], given.factors[1][inverse])
        return cls(name, given.values[inverse], present, coded=coded)

    def __len__(self) -> int:
        return len(self.present)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The cells ``[n, ...]``, ``None`` where a value is missing."""
        cells = self.values
        if not self.is_block and not self.present.all():
            cells = np.empty(len(self), object)
            cells[self.present] = self.values
        return np.array(cells, dtype) if copy else np.asarray(cells, dtype)

    @property
    def is_block(self) -> bool:
        """Whether a record has several numbers."""
        return self.present.ndim > 1

    @cached_property
    def kind(self) -> str:
        """``number``, ``text``, ``bool``, ``date``, ``duration``, ... or the name of a type."""
        if self.values.dtype.kind == "O":
            return _kind_of_type(type(self.values.flat[0])) if self.values.size else "text"
        kinds = {"b": "bool", "M": "date", "m": "duration", "c": "complex"}
        return kinds.get(self.values.dtype.kind, "number")

    @cached_property
    def factors(self) -> Factors:
        """Distinct values as sorted Python scalars, and which of them each value is."""
        try:
            return self.coded or _factorise(self.values)
        except TypeError:
            raise ValueError(
                f"{self.name}: expected single values, got {self.kind} such as "
                f"{show(self.values[0])}"
            ) from None

    @cached_property
    def codes(self) -> np.ndarray:
        """Which of the distinct values each record has, int32 ``[n]``, -1 where it has none."""
        codes = np.full(len(self), -1, np.int32)
        codes[self.present] = self.factors[1]
        return codes

    @cached_property
    def writing(self) -> tuple[Dates | Written | None, str | None, str]:
        """Of texts that are dates or numbers how they are written, or the one that does not fit,
        and why; ``ValueError`` of dates that can be read in two ways."""
        if self.kind != "text" or not self.values.size:
            return None, None, ""
        labels, n = self.factors[0], len(self.values)
        if (dates := find_dates(labels, self.name)) is not None:
            return dates, None, ""
        few = len(labels) <= _FEW_NAMES and 2 * len(labels) <= n  # "1.0" and "2.0" may be names
        return (None, None, "") if few and all(map(is_plain, labels)) else find_written(labels)

    @cached_property
    def plain(self) -> "Column":
        """The same with texts that are dates as dates, and those that are numbers as numbers."""
        return self if self.writing[0] is None else self.told(self.writing[0])

    def told(self, way: Dates | Written) -> "Column":
        """The same with its texts as dates or numbers, written in a known way."""
        labels, inverse = self.factors
        values = way.read(labels, self.name, lambda j: self.row(np.argmax(inverse == j)))[inverse]
        present, kept = self.present.copy(), values == values  # not so NaN and NaT
        present[present] = kept
        return Column(self.name, values[kept], present, rows=self.rows)

    @cached_property
    def measured(self) -> bool:
        """Whether it holds numbers, dates or times rather than categories."""
        return self.plain.kind in _MEASURED and not self.declared

    @property
    def numbers(self) -> np.ndarray:
        """The values, dates and durations in seconds since the first of them."""
        dated = self.plain.kind in ("date", "duration")
        return seconds(self.plain.values, self.name) if dated else self.plain.values

    @property
    def parts(self) -> "list[Column]":
        """The columns of a block one by one; itself otherwise."""
        if not self.is_block:
            return [self]
        values, present = (x.reshape(len(self), -1).T for x in (self.values, self.present))
        return [
            Column(name, narrow(v if p.all() else v[p], name), p, rows=self.rows)
            for name, v, p in zip(self.part_names, values, present, strict=True)
        ]

    @property
    def part_names(self) -> list[str]:
        """What messages call the columns of a block."""
        if not self.is_block:
            return [self.name]
        places = np.ndindex(self.present.shape[1:])
        return [f"{self.name}[{', '.join(map(str, place))}]" for place in places]

    def row(self, position: int | np.integer) -> int:
        """The input row of ``values[position]``."""
        return self.row_of(position if self.is_block else np.flatnonzero(self.present)[position])

    def row_of(self, record: int | np.integer) -> int:
        """The input row of a record."""
        return int(record if self.rows is None else self.rows[record])

    def take(self, records: np.ndarray) -> "Column":
        """The column of some of its records, by number."""
        rows = records if self.rows is None else self.rows[records]
        present, place = self.present[records], records
        if not (self.is_block or self.present.all()):
            place = (np.cumsum(self.present) - 1)[records][present]
        coded = self.coded and _used(self.coded[0], self.coded[1][place])
        return replace(self, values=self.values[place], present=present, rows=rows, coded=coded)

    def refuse_missing(self, what: str = "values") -> None:
        """Refuse missing cells, counting them and naming the first."""
        if self.present.all():
            return
        lacking = ~self.present
        record, part = divmod(int(np.argmax(lacking)), max(lacking[0].size, 1))
        total = "" if self.is_block else f" of {len(self)}"
        raise ValueError(
            f"{self.part_names[part]}: {np.sum(lacking)}{total} {what} missing (first in row "
            f"{self.row_of(record)}): {DROP_HINT}"
        )


def column(data: Any, name: str) -> Column:
    """A column ``[n]`` of any container: present values in their native dtype, and where they are.

    Decimals and objects that are numbers become numbers, NaN is missing. Blocks and values of
    several types are refused.

    Example:
        >>> column(np.ma.array([3, 4, 5], mask=[0, 1, 0]), "age").values
        array([3, 5])
    """
    found = read(data, name)
    if found.is_block:
        shape = found.present.shape
        fix = ": take its only column, [:, 0]" if shape[1:] == (1,) else ""
        raise ValueError(f"{name}: expected shape [n], one value per record, got {shape}{fix}")
    return found


def read(data: Any, name: str) -> Column:
    """A column ``[n]`` or a block ``[n, ...]`` of any container; one that was read as it is."""
    if isinstance(data, Column):
        return data
    length(data, name)
    foreign = _foreign(data, name)
    if foreign is not None and (coded := _codes_of_foreign(foreign)) is not None:
        return Column.of_codes(name, *coded)
    values, mask = _array(data, foreign, name)
    declared = _declared(data)
    if texts := _texts(values, mask, name, declared):
        return texts
    present = _not_missing(values) & (True if mask is None else mask)
    if values.ndim > 1:
        found = Column(name, _narrow_block(values, present, name), present)
    else:
        kept = narrow(values if present.all() else values[present], name)
        declared = (False, True) if kept.dtype.kind == "b" and not declared else declared
        found = Column(name, kept, present, declared)
    if found.values.size and found.kind in ("complex", "lists", "records", "set"):
        raise ValueError(
            f"{name}: expected numbers or categories, one a record, got {found.kind} such as "
            f"{show(found.values.flat[0])} in row {found.row(0)}: pass their parts as columns"
        )
    return found


def read_table(data: Any, name: str) -> dict[Any, Column]:
    """The columns and blocks of a mapping or data frame by name, each read once.

    Anything else is one column or block called ``name``. Blocks that are not all numbers become
    columns of their own.
    """
    found: dict[Any, Column] = {}
    for label, part in named_columns(data, name).items():
        one = read(part, str(label))
        mixed = one.is_block and one.values.dtype.kind == "O"
        found |= {part.name: part for part in one.parts} if mixed else {label: one}
    return found


def take(columns: Mapping[Any, Column], records: np.ndarray) -> dict[Any, Column]:
    """Some records of all columns, by number."""
    return {label: one.take(records) for label, one in columns.items()}


def named_columns(data: Any, name: str) -> dict[str, Any]:
    """The columns of a mapping or data frame by name; anything else as it is, under ``name``."""
    if isinstance(data, Mapping):
        found = dict(data)
    elif hasattr(data, "column_names") and isinstance(getattr(data, "features", None), Mapping):
        found = dataset_columns(data)
    else:
        foreign = _foreign(data, name)
        if foreign is None or not hasattr(foreign, "columns"):
            return {name: data}
        found = {label: foreign.get_column(label).to_native() for label in foreign.columns}
    names = list(map(str, found))
    if twice := next((label for label in names if names.count(label) > 1), None):
        raise ValueError(f"{name}: expected distinct column names, got {twice!r} twice: rename one")
    return found if isinstance(data, Mapping) else dict(zip(names, found.values(), strict=True))


def dataset_columns(dataset: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Columns of a Hugging Face ``datasets.Dataset`` by name, class labels by their names.

    Args:
        dataset: One split; ``datasets`` itself is not needed here.
        names: The columns wanted, all by default.

    Returns:
        Name to column ``[n]``, or a list of vectors. Of a ``ClassLabel`` feature the names, None
        where the code is -1, which stands for "no label" there.

    Raises:
        ValueError: Several splits, or a column that is not there.

    Example:
        >>> from types import SimpleNamespace as Namespace
        >>> class Dataset(dict):
        ...     column_names = ["label"]
        ...     features = {"label": Namespace(names=["cat", "dog"])}
        >>> dataset_columns(Dataset(label=[1, 0, -1]))
        {'label': ['dog', 'cat', None]}
    """
    features = getattr(dataset, "features", None)
    if not isinstance(features, Mapping):
        splits = listing(dataset) if isinstance(dataset, Mapping) else type(dataset).__name__
        raise ValueError(f"expected one split of a dataset, got {splits}: pass dataset['train']")
    plain = dataset.with_format(None) if hasattr(dataset, "with_format") else dataset
    columns = {}
    for name in dataset.column_names if names is None else names:
        if name not in features:
            raise ValueError(f"expected a column {name!r}: it has {listing(features)}")
        values, classes = list(plain[name]), getattr(features[name], "names", None)
        if classes is not None:
            values = [None if code in (None, -1) else classes[code] for code in values]
        columns[name] = values
    return columns


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
        for label, part in named_columns(data, name).items()
    }
    if not parts:
        raise ValueError("expected at least one column, got none")
    first, n = next((name, length(data, name)) for name, data in parts.items())
    for name, data in parts.items():
        if length(data, name) != n:
            raise ValueError(f"{name}: expected {n} records as in {first}, got {len(data)}")
    pandas = {name: x.index for name, x in parts.items() if hasattr(x, "iloc")}
    reference, expected = next(iter(pandas.items()), ("", None))
    for name, index in pandas.items():
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
        columns: Name to column ``[n]``, block ``[n, ...]`` or frame.

    Returns:
        The columns without incomplete records, as :class:`Column` or, of frames, name to
        :class:`Column`; and the rows kept.

    Raises:
        ValueError: Columns that do not line up; no complete record.

    Example:
        >>> columns, rows = drop_missing({"x_hat": ["a", None, "b"], "y": [1.0, 2.0, 3.0]})
        >>> columns["y"].values, rows
        (array([1., 3.]), array([0, 2]))
    """
    n = check_aligned(columns)
    tables = {name: read_table(data, name) for name, data in columns.items()}
    every = [one.present.reshape(n, -1) for table in tables.values() for one in table.values()]
    rows = np.flatnonzero(np.all([present.all(axis=1) for present in every], axis=0))
    if rows.size == 0:
        raise ValueError(f"every one of the {n} records lacks a value in {', '.join(columns)}")
    kept = {name: take(table, rows) for name, table in tables.items()}
    return {n: part[n] if list(part) == [n] else part for n, part in kept.items()}, rows


def time_keys(given: Column) -> np.ndarray:
    """What records are put in order of time by: numbers, dates, or texts of one form.

    Texts such as ``2009Q1`` or ``t007``, all of one length and with the same letters, are in the
    order of time as they stand; any others are refused.
    """
    given.plain.refuse_missing()
    if given.plain.kind in _MEASURED:  # also of declared categories
        return given.numbers
    labels, inverse = given.factors
    forms = {re.sub(r"\d", "0", str(label)) for label in labels}
    if len(forms) > 1 or re.fullmatch(r"0?0\D0?0\D00.*", forms.pop()):
        raise ValueError(
            f"{given.name}: expected numbers or dates to put records in order of time, got "
            f"{show(labels[0])}: write dates as 2009-05-31"
        )
    return inverse


def length(data: Any, name: str) -> int:
    """The number of records; what is not a sequence is refused."""
    if hasattr(data, "toarray"):
        raise ValueError(
            f"{name}: expected a dense array, got a sparse {type(data).__name__} of shape "
            f"{np.shape(data)}: pass .toarray(), or fewer numbers (sklearn's TruncatedSVD)"
        )
    text_or_set = isinstance(data, str | bytes | set | frozenset)
    if text_or_set or not isinstance(data, Sized) or not getattr(data, "shape", (1,)):
        raise ValueError(f"{name}: expected a sequence [n], got {type(data).__name__}")
    return len(data)


# Frames and columns of other libraries ------------------------------------------------------


def _foreign(data: Any, name: str = "y") -> Any:
    """The narwhals frame or column of an object of a data frame library, or None."""
    home = type(data).__module__.partition(".")[0]
    interchanged = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    signs = ("iloc", "__narwhals_dataframe__", "__dataframe__", "collect")
    if home in ("numpy", "jax", "jaxlib", "builtins") or not (
        interchanged or any(hasattr(data, sign) for sign in signs)
    ):
        return None
    try:
        import narwhals as nw
    except ImportError:
        raise ValueError(
            f"{name}: columns of {home} are read through narwhals: pip install 'jgram[cli]', or "
            "pass NumPy arrays (.to_numpy())"
        ) from None
    try:
        found = nw.from_native(data, allow_series=True)
    except nw.exceptions.DuplicateError:
        names = listing(getattr(data, "column_names", data.columns))
        raise ValueError(f"{name}: expected distinct column names, got {names}") from None
    except TypeError:
        if not interchanged:
            return None
        import pyarrow

        one_column = hasattr(data, "type") and not hasattr(data, "schema")
        native = pyarrow.chunked_array([data]) if one_column else pyarrow.table(data)
        found = nw.from_native(native, allow_series=True)
    return found.collect() if hasattr(found, "collect") else found


def _codes_of_foreign(found: Any) -> tuple[Any, np.ndarray] | None:
    """Texts as their library codes them: distinct ones, and which each cell is, -1 for none."""
    native = None if hasattr(found, "columns") else found.to_native()
    coded = str(getattr(native, "type", "")).startswith(_CODED_TEXTS)  # an Arrow dictionary
    if native is None or not (coded or str(found.dtype) == "String"):
        return None
    if hasattr(native, "to_arrow"):
        with contextlib.suppress(ImportError):  # without pyarrow texts are read one by one
            native = native.to_arrow()
    if hasattr(native, "factorize"):
        codes, labels = native.factorize()
        return labels.tolist(), codes
    if not hasattr(native, "dictionary_encode") or str(native.type).endswith("_view"):
        return None
    coded = native.dictionary_encode()
    coded = coded.combine_chunks() if hasattr(coded, "combine_chunks") else coded
    if coded.dictionary.null_count:
        coded = coded.dictionary_decode().dictionary_encode()
    return coded.dictionary.to_pylist(), np.asarray(coded.indices.fill_null(-1))


def _of_foreign(found: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A narwhals column ``[n]`` or frame ``[n, k]`` as an array, and which cells are present."""
    if hasattr(found, "columns"):
        parts = [_of_foreign(found.get_column(label), str(label)) for label in found.columns]
        if not parts:
            raise ValueError(f"{name}: expected at least one column, got none")
        kinds = {values.dtype.kind for values, _ in parts}
        if "O" in kinds or (len(kinds) > 1 and not kinds <= set("biuf")):
            parts = [(values.astype(object), present) for values, present in parts]
        return tuple(np.column_stack(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]
    kind = str(getattr(found.to_native(), "type", ""))  # of an Arrow column
    if "Struct" in str(found.dtype) or kind.startswith("map"):
        raise ValueError(
            f"{name}: expected one value a record, got struct cells: pass their fields as columns "
            "of their own"
        )
    if kind.endswith("_view") or str(found.dtype) in ("Unknown", "Int128", "UInt128"):
        values = objects(found.to_list())  # NumPy has no type for them
        return values, _not_missing(values)
    present = ~np.asarray(found.is_null().to_numpy(), bool)
    kept = np.asarray(found.to_numpy() if present.all() else found.drop_nulls().to_numpy())
    kept = _stacked(kept, name)
    empty = None if kept.dtype.kind == "O" else 0
    values = np.full((len(present), *kept.shape[1:]), empty, kept.dtype)
    values[present] = kept
    return values, np.broadcast_to(present.reshape(-1, *[1] * (kept.ndim - 1)), values.shape)


def _declared(data: Any) -> tuple[Any, ...]:
    """The classes that the column's type names, reported or not."""
    dtype = getattr(data, "dtype", None)
    found = getattr(dtype, "categories", None)
    if found is None or type(dtype).__name__ == "Categorical":
        return ()  # polars: a pool that other columns share
    return tuple(found.to_list() if hasattr(found, "to_list") else found)


# Values -------------------------------------------------------------------------------------


def seconds(values: np.ndarray, name: str, start: Any = None) -> np.ndarray:
    """Dates or durations of any type in seconds since ``start``, the first of them by default."""
    start = first_of(values) if start is None and values.size else start
    try:
        if values.dtype.kind in "mM":
            return (values - start) / np.timedelta64(1, "s") if values.size else values
        return np.array([(_begun(x) - start).total_seconds() for x in values])
    except TypeError:
        raise ValueError(f"{name}: expected dates of one kind, got several") from None


def first_of(values: np.ndarray) -> Any:
    """What :func:`seconds` counts from."""
    return values.min() if values.dtype.kind in "mM" else _begun(values[0])


def _begun(value: Any) -> Any:
    return getattr(value, "start_time", value)  # of pandas periods


def _array(data: Any, foreign: Any, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Any container as an array ``[n, ...]``, and which cells its library says are present."""
    present = None
    if foreign is not None:
        values, present = _of_foreign(foreign, name)
    elif isinstance(data, np.ma.MaskedArray):
        values, present = np.ma.getdata(data), ~np.ma.getmaskarray(data)
    elif isinstance(data, list | tuple):
        nested = not _SCALARS.issuperset(map(type, data)) and any(
            isinstance(x, list | tuple) or getattr(x, "ndim", 0) for x in data
        )
        values = _stacked(data, name) if nested else objects(data)
    else:
        values = np.asarray(data)
        values = objects(data) if values.ndim == 0 else values  # a dict's values and the like
    if values.dtype.names:
        raise ValueError(
            f"{name}: expected one value a record, got records of "
            f"{', '.join(values.dtype.names)}: pass its fields as columns"
        )
    if values.dtype.kind == "V":
        values = values.astype(np.float32)  # JAX's small floats
    values = _stacked(values, name)
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values.astype(np.bytes_), "utf-8")
        except UnicodeDecodeError as error:
            got = show(error.object)
            raise ValueError(f"{name}: expected text in UTF-8, got {got}") from None
    return values.astype(object) if values.dtype.kind in "UT" else values, present


def _texts(values: np.ndarray, mask: np.ndarray | None, name: str, declared: Any) -> Column | None:
    """A column of texts and gaps, counted as it is read; ``None`` where there is anything else."""
    single = values.dtype.kind == "O" and values.ndim == 1
    if not single or not isinstance(next((x for x in values if not is_missing(x)), None), str):
        return None
    try:
        labels, codes = distinct(values)
    except TypeError:  # lists and the like
        return None
    texts = np.array([isinstance(label, str) for label in labels])
    if not all(is_text or is_missing(x) for x, is_text in zip(labels, texts, strict=True)):
        return None
    present = texts[codes] if mask is None else texts[codes] & mask
    coded = _used(list(map(str, labels)), codes[present])
    return Column(name, values[present], present, declared, coded=coded)


def _narrow_block(values: np.ndarray, present: np.ndarray, name: str) -> np.ndarray:
    """A block of objects that are all numbers in their native type; any other as it is."""
    if values.dtype.kind != "O":
        return values
    try:
        kept = narrow(values[present], name)
    except ValueError:
        return values  # of several types
    if kept.dtype.kind not in "iuf":
        return values
    block = np.zeros(values.shape, kept.dtype)
    block[present] = kept
    return block


def objects(values: Iterable[Any]) -> np.ndarray:
    """A 1-D object array of Python scalars, whatever the elements are."""
    values = list(values)
    if not _SCALARS.issuperset(map(type, values)):
        values = [
            None if x is np.ma.masked else x.item() if getattr(x, "ndim", None) == 0 else x
            for x in values
        ]
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _stacked(values: Any, name: str) -> np.ndarray:
    """Records that are lists, all of one shape, as a block ``[n, k]``; any others as they are."""
    if isinstance(values, np.ndarray):
        objects_alone = values.dtype.kind == "O" and values.ndim == 1 and len(values) > 0
        if not objects_alone or not isinstance(values[0], list | np.ndarray):
            return values
    shape = np.shape(values[0])
    for row, record in enumerate(values):
        if np.shape(record) != shape:
            size = "several" if np.ndim(record) else "one value"
            raise ValueError(
                f"{name}: expected records of one length, got {np.size(values[0])} values in row 0 "
                f"and {np.size(record) if size == 'several' else size} in row {row}"
            )
    block = np.array([np.asarray(record) for record in values])
    mixed = block.dtype.kind in "USO"  # NumPy would make texts of the numbers
    return np.array([list(record) for record in values], object) if mixed else block


def _not_missing(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "O":
        return values == values  # not so NaN and NaT
    return np.array([not is_missing(x) for x in values.flat], bool).reshape(values.shape)


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or NA, of any library."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating) and math.isnan(value)


def narrow(values: np.ndarray, name: str) -> np.ndarray:
    """Objects that are all numbers or all bools in that native dtype; mixed types refused."""
    if values.dtype.kind != "O" or values.size == 0:
        return values
    types = set(map(type, values.flat))
    kind, *others = {_kind_of_type(kind) for kind in types}
    if others:
        refuse_mixed(values, name)
    if kind != "number":
        return values.astype(bool) if kind == "bool" else values
    if not all(issubclass(kind, numbers.Integral) for kind in types):
        integers = (int(x) for x in values.flat if isinstance(x, numbers.Integral))
        exact = max(map(abs, integers), default=0) <= EXACT
        if exact or not all(math.isfinite(x) and x == int(x) for x in values.flat):
            return values.astype(float)
        values = np.array([int(x) for x in values.flat], object).reshape(values.shape)
    try:
        return values.astype(np.int64)
    except OverflowError:
        return values  # ids beyond 64 bits stay Python ints


def _kind_of_type(kind: type) -> str:
    named = {"Period": "date", "list": "lists", "ndarray": "lists", "dict": "records"}
    words = (word for types, word in _KINDS.items() if issubclass(kind, types))
    return next(words, named.get(kind.__name__, kind.__name__))


def refuse_mixed(values: np.ndarray, name: str) -> None:
    """Refuse values of several types, showing two that would be confused."""
    examples: dict[str, Any] = {}
    alike: dict[str, dict[str, Any]] = {}
    for value in values.flat:
        kind = _kind_of_type(type(value))
        examples.setdefault(kind, value)
        text = str(int(value) if kind == "bool" else value)
        alike.setdefault(text.removesuffix(".0"), {}).setdefault(kind, value)
    collision = next((group for group in alike.values() if len(group) > 1), examples)
    raise ValueError(
        f"{name}: expected values of one type, got {', '.join(examples)} (such as "
        f"{' and '.join(map(show, collision.values()))}): convert them, for example all to text"
    )


def _factorise(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct values as sorted Python scalars, and the position of each value among them."""
    if values.dtype.kind in "iu" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low <= max(_NARROW, len(values)):  # need no sorting
            wide = values.dtype == np.uint64  # which int64 does not hold
            offsets = values - values.min() if wide else values.astype(np.int64) - low
            used = np.zeros(high - low + 1, bool)
            used[offsets] = True
            place = np.cumsum(used, dtype=np.int32) - 1
            return [int(x) + low for x in np.flatnonzero(used)], place[offsets]
    if values.dtype.kind == "O":
        return _used(*distinct(values))
    used, inverse = np.unique(values, return_inverse=True)
    if values.dtype.kind == "M":  # finer dates have no Python scalar
        used = used.astype("datetime64[us]")
    whole = values.dtype.kind == "f" and bool(np.all(np.isfinite(used) & (used == np.round(used))))
    return [int(x) if whole else x for x in used.tolist()], inverse


def distinct(values: Sequence[Any] | np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct objects in order of appearance, and which of them each value is."""
    place: dict[Any, int] = defaultdict()
    place.default_factory = place.__len__
    inverse = np.fromiter(map(place.__getitem__, values), np.int32, len(values))
    return list(place), inverse


def _used(labels: Sequence[Any], inverse: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The labels that occur, in order, and which of them each value is."""
    used = np.flatnonzero(np.bincount(inverse, minlength=len(labels))).tolist()
    with contextlib.suppress(TypeError):  # labels without an order stay as they appeared
        used = sorted(used, key=labels.__getitem__)
    place = np.zeros(len(labels), np.intp)
    place[used] = np.arange(len(used))
    return [labels[i] for i in used], place[inverse]


# Words --------------------------------------------------------------------------------------


def show(value: Any) -> str:
    """A value for a message, on one line and short."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:37] + "..."


def did_you_mean(name: Any, names: Iterable[Any], otherwise: str = "") -> str:
    """The name that is nearest to one that is not there, as a question."""
    close = difflib.get_close_matches(str(name), map(str, names), 1, 0.5)
    return f"did you mean {close[0]!r}?" if close else otherwise


def listing(values: Iterable[Any], *, quote: bool = True) -> str:
    """Several values for a message, the first five and the last."""
    shown = [show(value) if quote else str(value) for value in values]
    if len(shown) <= 6:
        return ", ".join(shown)
    return f"{', '.join(shown[:5])}, ..., {shown[-1]} ({len(shown)} in all)"
