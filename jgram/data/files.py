"""Files: columns by name from text, Parquet, Arrow and npz files, and files written whole.

A file's columns come as arrays that the rest of :mod:`jgram.data` takes. Text is read the one way
it can be read, or refused with the option that decides; nothing is guessed and nothing is dropped
silently. The standard library's reader splits the lines; what is done by hand is finding the
separator, telling numbers from codes, and refusing what can be read in two ways, because no library
refuses it.
"""

import csv
import difflib
import gzip
import io
import math
import operator
import re
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jgram.data.columns import cells

__all__ = [
    "ARROW",
    "PARQUET",
    "TEXT",
    "find_separator",
    "make_reader",
    "parse_cells",
    "read_cells",
    "read_columns",
    "select",
    "separator_of",
]

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")
_SEPARATORS = {",": ",", ";": ";", "\t": "tab", "|": "|"}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?", re.IGNORECASE)
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([ ,.'’\u00a0\u202f]\d{3})+([.,]\d+)?|[-+]?\d+(,\d+)?")
_NOT_A_NUMBER = frozenset(["na", "n/a", "#n/a", "nan", "null", "none", "<na>", ".", "-"])


def read_columns(
    path: str | Path,
    names: Sequence[str] | None = None,
    *,
    separator: str | None = None,
    thousands: str | None = None,
    decimal: str | None = None,
    missing_values: Sequence[str] = (),
) -> dict[str, Any]:
    """Columns of a file by name: CSV, TSV, Parquet, Arrow (Feather) or npz, also gzipped.

    In text files an empty cell is missing. `NA` and the like are missing in a column that
    otherwise holds numbers, and a class name in a column of text, unless `missing_values` lists
    them. Integers with leading zeros stay text, as codes do.

    Args:
        path: The file; its suffix tells the format (``.csv``, ``.tsv``, ``.txt``, ``.parquet``,
            ``.feather``, ``.npz``, each also with ``.gz``). ``-`` is standard input, of any format.
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
        >>> columns = read_columns(files("jgram.data") / "employment.csv", ["first"])
        >>> columns["first"][:3]
        array([135038, 135361, 135188])
    """
    if names is not None and len(set(names)) < len(names):
        raise ValueError(f"expected distinct columns, got {', '.join(names)}")
    for option, value in {
        "separator": separator,
        "thousands": thousands,
        "decimal": decimal,
    }.items():
        if value == "":
            raise ValueError(f"{option}: expected a character, got none")
    path, source, suffix = _open(path)
    if suffix in TEXT:
        separator = separator_of(separator, suffix)
        return _read_text(path, source, names, separator, thousands, decimal, missing_values)
    if suffix in (*PARQUET, *ARROW):
        return _read_arrow(path, source, suffix, names)
    if suffix == ".npz":
        return _read_npz(path, source, names)
    raise ValueError(
        f"{path}: expected a .csv, .tsv, .txt, .feather, .parquet or .npz file, or one of them "
        "with .gz"
    )


def read_cells(path: str | Path, *, separator: str | None = None) -> dict[str, Any]:
    """Every column of a file as it stands there, to be shown and never computed with.

    Args:
        path: The file, as in :func:`read_columns`; not standard input, which can be read once.
        separator: Of the fields of a text file.

    Returns:
        Name to cells ``[n]``: texts of a text file, values of others. Columns that hold several
        values a record (embeddings, images) are left out, and so are arrays of other lengths than
        most in an npz file.

    Raises:
        ValueError: A file that cannot be read as its format.

    Example:
        >>> from importlib.resources import files
        >>> cells = read_cells(files("jgram.data") / "employment.csv")
        >>> cells["first"][:2]
        ['135038', '135361']
    """
    path, source, suffix = _open(path)
    if suffix in TEXT:
        separator = separator_of(separator, suffix)
        header, rows, _ = _table(path, source, separator)
        return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    if suffix in (*PARQUET, *ARROW):
        columns = _read_arrow(path, source, suffix, None)
        return {
            name: column.to_pylist()
            for name, column in columns.items()
            if not isinstance(column, np.ndarray)
        }
    arrays = _read_npz(path, source, None)
    lengths = [len(array) for array in arrays.values() if array.ndim]
    usual = max(set(lengths), key=lengths.count)
    return {name: array.tolist() for name, array in arrays.items() if array.shape == (usual,)}


def _open(path: str | Path) -> tuple[str, Any, str]:
    """What messages call the file, what to read (a path, or bytes in memory), and its suffix."""
    if str(path) == "-":
        data = sys.stdin.buffer.read()
        if data[:2] == b"\x1f\x8b":
            data = _unzip(data, "standard input")
        signs = {b"PAR1": ".parquet", b"PK\x03\x04": ".npz", b"ARRO": ".feather"}
        return "standard input", io.BytesIO(data), signs.get(data[:4], ".csv")
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix != ".gz":
        return str(path), path, suffix
    return str(path), io.BytesIO(_unzip(path.read_bytes(), path)), Path(path.stem).suffix.lower()


def _unzip(data: bytes, path: Any) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(f"{path}: expected a whole gzip file: {error}") from None
    except Exception as error:  # zlib.error is no OSError
        raise ValueError(f"{path}: expected a whole gzip file: {error}") from None


# Text ---------------------------------------------------------------------------------------


def _read_text(
    path: str,
    source: Any,
    names: Sequence[str] | None,
    separator: str | None,
    thousands: str | None,
    decimal: str | None,
    missing_values: Sequence[str],
) -> dict[str, Any]:
    header, rows, separator = _table(path, source, separator)
    columns = {}
    for name in select(header, names, path):
        cells = list(map(operator.itemgetter(header.index(name)), rows))
        columns[name] = parse_cells(cells, name, separator, thousands, decimal, missing_values)
    return columns


def _table(path: str, source: Any, separator: str | None) -> tuple[list[str], list[list[str]], str]:
    """The names of a text file's columns, its rows of as many cells, and its separator."""
    lines = _lines(path, source)
    separator = separator or find_separator(lines, path)
    try:
        header, *rows = [row for row in make_reader(lines, separator) if row] or [[]]
    except (csv.Error, TypeError) as error:
        raise ValueError(f"{path}: cannot be read with separator {separator!r}: {error}") from None
    if not rows:
        raise ValueError(
            f"{path}: expected a header and at least one record, got {len(header) > 0:d} lines"
        )
    if set(map(len, rows)) != {len(header)}:
        reader = make_reader(lines, separator)
        row = next(row for row in reader if len(row) not in (0, len(header)))
        raise ValueError(
            f"{path}: expected {len(header)} fields as in the header, got {len(row)} in line "
            f"{reader.line_num}: check its quotes, or the separator (--separator)"
        )
    header = [cell.strip() or f"column {j + 1}" for j, cell in enumerate(header)]
    return header, rows, separator


def separator_of(separator: str | None, suffix: str) -> str | None:
    """The separator as it stands in the file, if it is told."""
    return "\t" if separator in ("tab", r"\t") or suffix == ".tsv" else separator


def make_reader(lines: Iterable[str], separator: str) -> Any:
    """Rows of cells of lines of text."""
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator != " ")


def _lines(path: str, source: Any) -> list[str]:
    data = source.getvalue() if isinstance(source, io.BytesIO) else source.read_bytes()
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: expected UTF-8 text, got byte {data[error.start]:#04x} at {error.start}: "
            "save the file as UTF-8"
        ) from None
    return io.StringIO(text, newline="").readlines()  # str.splitlines would cut at U+2028 too


def find_separator(lines: list[str], path: str) -> str:
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


def parse_cells(
    cells: list[str],
    name: str,
    separator: str,
    thousands: str | None,
    decimal: str | None,
    missing_values: Sequence[str],
) -> np.ndarray:
    """A column of cells as int64, float64, or objects (text; None where missing)."""
    plain_numbers = not missing_values and decimal is None and thousands is None
    if plain_numbers and separator != ";" and (numbers := _plain_numbers(cells)) is not None:
        return numbers
    distinct = dict.fromkeys(cells)
    if 2 * len(distinct) < len(cells):  # what a column is depends on its distinct cells alone
        parsed = parse_cells(list(distinct), name, separator, thousands, decimal, missing_values)
        position = {cell: j for j, cell in enumerate(distinct)}
        return parsed[[position[cell] for cell in cells]]
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


def _plain_numbers(cells: list[str]) -> np.ndarray | None:
    """Cells that are all plainly written numbers, many at a time; None where any is not."""
    text = "\n".join(cells)
    signs = set(text) - set("0123456789\n")
    if not signs <= set("+-.eE") or text.count("\n") != len(cells) - 1:
        return None
    whole = signs <= set("+-")
    if whole and re.search(r"(?:\A|\n)[-+]?0\d", text):  # codes: 007
        return None
    try:
        return np.array(cells, np.int64 if whole else np.float64)
    except (ValueError, OverflowError):
        return None


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


# Arrow and npz --------------------------------------------------------------------------------


def _read_arrow(path: str, source: Any, suffix: str, names: Sequence[str] | None) -> dict[str, Any]:
    what = "a Parquet" if suffix in PARQUET else "an Arrow"
    try:
        from pyarrow import ArrowInvalid, ipc, parquet
    except ImportError:
        raise ValueError(
            f"{path}: reading {what} file takes pyarrow: pip install 'jgram[cli]'"
        ) from None
    try:
        if suffix in PARQUET:
            with parquet.ParquetFile(source) as file:
                wanted = select(file.schema_arrow.names, names, path)
                table = file.read(columns=wanted)
        else:
            table = ipc.open_file(source if isinstance(source, io.BytesIO) else str(source))
            table = table.read_all()
            table = table.select(wanted := select(table.column_names, names, path))
    except ArrowInvalid as error:
        raise ValueError(f"{path}: not {what} file: {str(error).splitlines()[0]}") from None
    if table.num_rows == 0:
        raise ValueError(f"{path}: expected at least one record, got none")
    return {
        name: _block(column, name) if "list" in str(column.type) else column
        for name, column in zip(wanted, table.columns, strict=True)
    }


def _block(column: Any, name: str) -> np.ndarray:
    values, present = cells(column, name)
    return values if present.all() else np.ma.array(values, mask=~present)


def _read_npz(path: str, source: Any, names: Sequence[str] | None) -> dict[str, Any]:
    if not zipfile.is_zipfile(source):
        raise ValueError(f"{path}: not an npz file")
    with np.load(source, allow_pickle=False) as archive:
        return {name: archive[name] for name in select(archive.files, names, path)}


def select(present: Sequence[str], names: Sequence[str] | None, path: str) -> list[str]:
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
