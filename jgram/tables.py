"""Files and tables: columns by name from CSV, TSV, Parquet and npz; buckets; strict JSON.

A file's columns come as arrays that :mod:`jgram.checks` takes. Text is read the one way it can be
read, or refused with the option that decides; nothing is guessed and nothing is dropped silently.
"""

import csv
import dataclasses
import difflib
import itertools
import json
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jgram.checks import check_observations

__all__ = ["Bins", "difference", "employment", "quantile_bins", "read_columns", "to_json"]

_SEPARATORS = {",": ",", ";": ";", "\t": "tab", "|": "|"}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?", re.IGNORECASE)
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([ ,.'’\u00a0\u202f]\d{3})+([.,]\d+)?|[-+]?\d+(,\d+)?")
_NOT_A_NUMBER = frozenset(["na", "n/a", "#n/a", "nan", "null", "none", "<na>", ".", "-"])


class Bins(NamedTuple):
    """Numbers in buckets: `codes` int32 `[n]`, inner `edges`, and the buckets' `names`."""

    codes: np.ndarray
    edges: np.ndarray
    names: tuple[str, ...]


def read_columns(
    path: str | Path,
    names: Sequence[str] | None = None,
    *,
    separator: str | None = None,
    thousands: str | None = None,
    decimal: str | None = None,
    missing_values: Sequence[str] = (),
) -> dict[str, Any]:
    """Columns of a CSV, TSV, Parquet or npz file by name.

    In text files an empty cell is missing. `NA` and the like are missing in a column that
    otherwise holds numbers, and a class name in a column of text, unless `missing_values` lists
    them. Integers with leading zeros stay text, as codes do.

    Args:
        path: The file; its suffix tells the format (`.csv`, `.tsv`, `.txt`, `.parquet`, `.npz`).
        names: The columns wanted, all by default.
        separator: Of the fields of a text file; found from its first lines by default.
        thousands: The character that groups digits, as in `1,234`.
        decimal: The decimal mark, `.` or `,`.
        missing_values: Cells that are missing values whatever the column.

    Returns:
        Name to column: `[n]`, or a block `[n, k]` (npz arrays, Parquet lists).

    Raises:
        ValueError: A file that cannot be read as its format, or only with an option given; names
            that are not there or there twice; no records.

    Example:
        >>> from importlib.resources import files
        >>> columns = read_columns(files("jgram") / "data" / "employment.csv", ["first"])
        >>> columns["first"][:3]
        array([135038, 135361, 135188])
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if names is not None and len(set(names)) < len(names):
        raise ValueError(f"expected distinct columns, got {', '.join(names)}")
    if suffix in (".csv", ".tsv", ".txt"):
        separator = "\t" if separator in ("tab", r"\t") or suffix == ".tsv" else separator
        return _read_text(path, names, separator, thousands, decimal, missing_values)
    if suffix in (".parquet", ".pq"):
        return _read_parquet(path, names)
    if suffix == ".npz":
        return _read_npz(path, names)
    raise ValueError(f"{path}: expected a .csv, .tsv, .txt, .parquet or .npz file")


def quantile_bins(values: Any, bins: int, *, name: str = "values") -> Bins:
    """Numbers in `bins` buckets of about equal size, cut at their empirical quantiles.

    Bucket `k` holds the values above edge `k - 1` and up to edge `k`; the edges are the quantiles
    `1/bins, 2/bins, ...` (linear interpolation). Ties that would leave fewer buckets are refused.

    Args:
        values: `[n]` finite numbers.
        bins: The number of buckets.
        name: What error messages call the column.

    Returns:
        Codes from 0, inner edges `[bins - 1]`, and bucket names.

    Raises:
        ValueError: `bins < 2`, values that are not finite numbers, edges that coincide.

    Example:
        >>> quantile_bins([5.0, 1.0, 9.0, 3.0], 2)
        Bins(codes=array([1, 0, 1, 0], dtype=int32), edges=array([4.]), names=('<= 4', '> 4'))
    """
    if bins < 2:
        raise ValueError(f"{name}: expected at least 2 bins, got {bins}")
    values = _numbers(values, name)
    edges, codes, used = _cut(values, bins)
    if used < bins:
        levels, counts = np.unique(values, return_counts=True)
        fewer = next((k for k in range(bins - 1, 1, -1) if _cut(values, k)[2] == k), None)
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
        values: `[n]` numbers or `[n, k]` columns of them, in order of time.
        name: What error messages call the column.

    Returns:
        `[n - 1, ...]` changes.

    Raises:
        ValueError: Fewer than 2 records, values that are not finite numbers.

    Example:
        >>> difference([3, 5, 4])
        array([ 2., -1.])
    """
    values = _numbers(values, name)
    if len(values) < 2:
        raise ValueError(f"{name}: expected at least 2 records to take changes of, got 1")
    return np.diff(values, axis=0)


def employment() -> dict[str, Any]:
    """U.S. nonfarm employment as first published and twice revised, and taxes deposited.

    Returns:
        `month`, `first`, `one_month_later`, `final` (thousands of people, not seasonally
        adjusted) and `tax_deposits` (million dollars), 209 months. Sources: `data/README.md`.

    Example:
        >>> len(employment()["final"])
        209

    Reference: Experiment 3 and Table 1.
    """
    with (files("jgram") / "data" / "employment.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    months, *columns = zip(*rows, strict=True)
    numbers = [np.array(column, np.int64) for column in columns]
    return dict(zip(header, [np.array(months), *numbers], strict=True))


def to_json(record: Any) -> str:
    """A record as strict JSON: no NaN and no Infinity, but null and the reason beside it.

    Args:
        record: Mappings, sequences, dataclasses, named tuples, arrays and scalars, nested.

    Returns:
        Indented JSON text.

    Example:
        >>> print(to_json({"log_score": float("-inf"), "rank": np.int32(3)}))
        {
          "log_score": null,
          "log_score_reason": "-Infinity",
          "rank": 3
        }
    """
    return json.dumps(_plain(record), indent=2, allow_nan=False, ensure_ascii=False)


# Text ---------------------------------------------------------------------------------------


def _read_text(
    path: Path,
    names: Sequence[str] | None,
    separator: str | None,
    thousands: str | None,
    decimal: str | None,
    missing_values: Sequence[str],
) -> dict[str, Any]:
    lines = _decode(path).splitlines(keepends=True)
    separator = separator or _find_separator(lines, path)
    try:
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator != " ")
        rows = [(reader.line_num, row) for row in reader if row]
    except (csv.Error, TypeError) as error:
        raise ValueError(f"{path}: cannot be read with separator {separator!r}: {error}") from None
    if len(rows) < 2:
        raise ValueError(
            f"{path}: expected a header and at least one record, got {len(rows)} lines"
        )
    header = [cell.strip() or f"column {j + 1}" for j, cell in enumerate(rows.pop(0)[1])]
    for number, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path}: expected {len(header)} fields as in the header, got {len(row)} in line "
                f"{number}: check its quotes, or the separator (--separator)"
            )
    columns = {}
    for name in _select(header, names, path):
        j = header.index(name)
        cells = [row[j] for _, row in rows]
        columns[name] = _parse(cells, name, separator, thousands, decimal, missing_values)
    return columns


def _decode(path: Path) -> str:
    data = path.read_bytes()
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: expected UTF-8 text, got byte {data[error.start]:#04x} at {error.start}: "
            "save the file as UTF-8"
        ) from None


def _find_separator(lines: list[str], path: Path) -> str:
    """The separator that cuts the first lines into equally many fields."""
    widths = {}
    for separator in _SEPARATORS:
        rows = [row for row in csv.reader(lines[:50], delimiter=separator) if row]
        widths[separator] = {len(row) for row in rows}
    even = [s for s, width in widths.items() if len(width) == 1 and width != {1}]
    if len(even) > 1:
        shown = " and ".join(repr(_SEPARATORS[s]) for s in even)
        raise ValueError(f"{path}: both {shown} could separate its fields: say which (--separator)")
    return even[0] if even else max(_SEPARATORS, key=lambda s: "".join(lines[:1]).count(s))


def _parse(
    cells: list[str],
    name: str,
    separator: str,
    thousands: str | None,
    decimal: str | None,
    missing_values: Sequence[str],
) -> np.ndarray:
    """A column of cells as int64, float64, or objects (text; None where missing)."""
    empty = [cell.strip() == "" or cell in missing_values for cell in cells]
    words = [
        blank or cell.strip().casefold() in _NOT_A_NUMBER
        for blank, cell in zip(empty, cells, strict=True)
    ]
    raw = [cell.strip() for cell, word in zip(cells, words, strict=True) if not word]
    plain = [_plain_number(cell, thousands, decimal) for cell in raw]
    whole = all(_INTEGER.fullmatch(cell) for cell in plain)
    padded = not whole and all(cell.lstrip("+-").isdigit() for cell in plain)  # codes: 007
    numeric = bool(raw) and not padded and all(_NUMBER.fullmatch(cell) for cell in plain)
    if thousands is None and decimal is None and (not numeric or separator == ";"):
        _refuse_grouped(raw, name)
    if not numeric:
        texts = [None if blank else cell for blank, cell in zip(empty, cells, strict=True)]
        return np.array(texts, object)

    numbers = iter(plain)
    if whole:
        return _integers([None if word else int(next(numbers)) for word in words])
    return np.array([math.nan if word else float(next(numbers)) for word in words])


def _plain_number(cell: str, thousands: str | None, decimal: str | None) -> str:
    """A number as Python writes it, once the separators are told."""
    if thousands and re.fullmatch(rf"[-+]?\d{{1,3}}({re.escape(thousands)}\d{{3}})+(\D\d+)?", cell):
        cell = cell.replace(thousands, "")
    return cell.replace(decimal, ".") if decimal and decimal != "." else cell


def _refuse_grouped(cells: list[str], name: str) -> None:
    """Refuse a column of numbers that are not written plainly, naming the options to read it."""
    cell = next((cell for cell in cells if not cell.lstrip("+-").isdigit()), None)
    if cell is None or not all(_GROUPED.fullmatch(cell) for cell in cells):
        return
    marks = re.findall(r"[^-+\d]", cell)
    group, point = f"--thousands {marks[0]!r}", f"--decimal {marks[-1]!r}"
    if len(set(marks)) > 1:
        options = f"{group} {point}"
    elif len(marks) > 1 or marks[0] not in ",.":
        options = group
    else:
        options = f"{group} or {point}" if re.search(r"\D\d{3}$", cell) else point
    raise ValueError(f"{name}: {cell!r} may be a number written with separators: use {options}")


def _integers(values: list[int | None]) -> np.ndarray:
    try:
        return np.array(values, np.int64)
    except (OverflowError, TypeError):  # beyond 64 bits, or missing
        return np.array(values, object)


# Parquet and npz ----------------------------------------------------------------------------


def _read_parquet(path: Path, names: Sequence[str] | None) -> dict[str, Any]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise ValueError(
            f"{path}: reading Parquet takes pyarrow: pip install 'jgram[cli]'"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            wanted = _select(file.schema_arrow.names, names, path)
            table = file.read(columns=wanted)
    except ArrowInvalid as error:
        raise ValueError(f"{path}: not a Parquet file: {str(error).splitlines()[0]}") from None
    return {
        name: np.array(column.to_pylist()) if "list" in str(column.type) else column
        for name, column in zip(wanted, table.columns, strict=True)
    }


def _read_npz(path: Path, names: Sequence[str] | None) -> dict[str, Any]:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not an npz file")
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in _select(archive.files, names, path)}


def _select(present: Sequence[str], names: Sequence[str] | None, path: Path) -> list[str]:
    """The wanted names, each of which must be there exactly once."""
    wanted = list(present) if names is None else list(names)
    for name in wanted:
        if name not in present:
            close = difflib.get_close_matches(name, present, 1, 0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(present[:20])}"
            raise ValueError(f"{path}: expected a column {name!r}: {hint}")
        if present.count(name) > 1:
            places = [str(j + 1) for j, other in enumerate(present) if other == name]
            raise ValueError(f"{path}: {name!r} names columns {' and '.join(places)}: rename one")
    return wanted


# Numbers and records ------------------------------------------------------------------------


def _cut(values: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Inner edges, codes, and how many buckets hold values.

    Positions of quantiles are exact fractions, so that an edge that is a value holds that value.
    """
    ranked = np.sort(values)
    position, part = np.divmod(np.arange(1, bins) * (len(values) - 1), bins)
    above = ranked[np.minimum(position + 1, len(values) - 1)]
    edges = ranked[position] + (above - ranked[position]) * part / bins
    codes = np.searchsorted(edges, values, side="left").astype(np.int32)
    return edges, codes, len(np.unique(codes))


def _numbers(values: Any, name: str) -> np.ndarray:
    return check_observations(values, name=name, kind="numeric").values


def _plain(value: Any) -> Any:
    """JSON types; the non-finite numbers of an object become null, and say so beside."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif hasattr(value, "tolist"):
        value = np.asarray(value).tolist()
    if isinstance(value, Mapping):
        plain = {}
        for key, item in value.items():
            plain[str(key)] = _plain(item)
            number = item.item() if getattr(item, "ndim", None) == 0 else item
            if isinstance(number, float) and not math.isfinite(number):
                plain[f"{key}_reason"] = json.dumps(float(number))
        return plain
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
