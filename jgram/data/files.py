"""Files of any size: columns by name from text, Parquet, Arrow and npz, batch by batch or whole.

Text is read the one way it can be read, or refused with the option that decides; nothing is guessed
and nothing is dropped silently. What a column of text is depends on all its distinct cells, and is
decided when they are known (:func:`parsed`).
"""

import glob
import gzip
import io
import itertools
import json
import operator
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from jgram.data.columns import EXACT, Column, did_you_mean, distinct, listing, narrow, objects, read
from jgram.data.delimited import NUMBER, find_encoding, find_separator, open_text, text_rows
from jgram.data.written import WORDS_FOR_MISSING, find_written

__all__ = [
    "FIRST_ROW", "Batch", "Reading", "batches", "column_names", "joined", "list_files", "numbered",
    "opened", "parsed", "read_cells", "read_columns", "read_files", "readable", "rows_of", "select",
    "shared", "told",
]  # fmt: skip

_FORMATS = {
    "text in columns": (".csv", ".tsv", ".txt"),
    "a Parquet file": (".parquet", ".pq"),
    "an Arrow file": (".feather", ".arrow", ".ipc"),
    "an npz file": (".npz",),
    "an Excel file": (".xlsx",),
    "lines of JSON": (".jsonl", ".ndjson"),
}
_SIGNS = {b"PAR1": ".parquet", b"PK\x03\x04": ".npz", b"ARRO": ".feather"}
_KINDS = {suffix: kind for kind, suffixes in _FORMATS.items() for suffix in suffixes}
_TEXT, _PARQUET, _ARROW, _NPZ, _EXCEL, _LINES = _FORMATS
_RECORDS = 1 << 18  # of a batch of Parquet
_CODED = ("string", "large_string", "binary", "large_binary")  # types that Parquet codes
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})*")  # where a comma may be the decimal mark
FIRST_ROW = 2  # of records, as a spreadsheet numbers them: the header is row 1
_SNIFFED = 50  # lines by which the separator is found


@dataclass(frozen=True)
class Reading:
    """How files are read.

    Attributes:
        names: Columns; all of the first file by default.
        separator: Of the fields of text files; found from their first lines by default.
        thousands: The character that groups digits, as in `1,234`.
        decimal: The decimal mark, `.` or `,`.
        missing_values: Cells of text files that are missing whatever the column.
        edges: Columns of numbers to put into bins, by their inner edges.
        drop: Whether records that lack a value are left out in the end.
        encoding: Of text files; found from their bytes by default.
        sheet: Of workbooks; the first that holds records by default.
    """

    names: tuple[str, ...] | None = None
    separator: str | None = None
    thousands: str | None = None
    decimal: str | None = None
    missing_values: Sequence[str] = ()
    edges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    drop: bool = False
    encoding: str | None = None
    sheet: str | None = None


class Batch(dict[str, Any]):
    """Columns of some records by name, the numbers of their ``rows`` from 0, and of the row after.

    Rows are counted through all files; blank rows of text files are none of the records, but count.
    """

    rows: np.ndarray
    end: int

    def __init__(self, columns: Mapping[str, Any], rows: np.ndarray, end: int) -> None:
        super().__init__(columns)
        self.rows, self.end = rows, end


def read_columns(
    source: str | Path | Sequence[Path], names: Sequence[str] | None = None, **how: Any
) -> dict[str, Any]:
    """Columns by name of a file, or of many end to end: CSV, TSV, Parquet, Arrow, npz or Excel.

    In text files an empty cell is missing. `NA` and the like are missing in a column that
    otherwise holds numbers, and a class name in a column of text, unless `missing_values` lists
    them. Integers with leading zeros stay text, as codes do.

    Args:
        source: A file, a folder or a glob (:func:`list_files`). The suffix tells the format
            (``.csv``, ``.tsv``, ``.txt``, ``.parquet``, ``.feather``, ``.npz``, each also with
            ``.gz``). ``-`` is standard input, of any format.
        names: The columns wanted, all by default.
        **how: ``separator``, ``thousands``, ``decimal``, ``missing_values``, ``encoding`` and
            ``sheet`` of :class:`Reading`.

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
    return dict(read_files(source, Reading(None if names is None else tuple(names), **how)))


def read_files(source: str | Path | Sequence[Path], reading: Reading) -> Batch:
    """As :func:`read_columns`, with the rows of the records."""
    for option in ("separator", "thousands", "decimal"):
        if getattr(reading, option) == "":
            raise ValueError(f"{option}: expected a character, got none")
    found, reading, kind = _read(source, reading)
    for name, column in found.items():
        if kind == _TEXT:
            found[name] = parsed(column, name, reading)
        elif "list" in str(getattr(column, "type", "")):
            block = read(column, name)
            values, present = block.values, block.present
            found[name] = values if present.all() else np.ma.array(values, mask=~present)
    return found


def read_cells(source: str | Path, rows: Sequence[int] | None = None, **how: Any) -> dict[str, Any]:
    """Every column as it stands in the files, to be shown and never computed with.

    Args:
        source: As in :func:`read_columns`; not standard input, which can be read once.
        rows: Those wanted, in this order, as a :class:`Batch` counts them; all by default.
        **how: ``separator``, ``encoding`` and ``sheet`` of :class:`Reading`.

    Returns:
        Name to cells ``[n]``: texts of a text file, values of others. Columns that hold several
        values a record (embeddings, images) are left out, and so are arrays of other lengths than
        most in an npz file.

    Raises:
        ValueError: A file that cannot be read as its format.

    Example:
        >>> from importlib.resources import files
        >>> cells = read_cells(files("jgram.data") / "employment.csv", [1, 0])
        >>> cells["first"]
        ['135361', '135038']
    """
    wanted = None if rows is None else np.asarray(rows, int)
    found, _, kind = _read(source, Reading(**how), wanted)
    if kind == _NPZ:
        lengths = Counter(len(array) for array in found.values() if array.ndim)
        usual = lengths.most_common(1)[0][0]
        cells = {name: x.tolist() for name, x in found.items() if x.shape == (usual,)}
    else:
        plain = {n: x for n, x in found.items() if "list" not in str(getattr(x, "type", ""))}
        cells = {n: x if isinstance(x, list) else x.to_pylist() for n, x in plain.items()}
    if wanted is None:
        return cells
    places = np.searchsorted(found.rows, wanted)
    return {name: [given[place] for place in places] for name, given in cells.items()}


def column_names(source: str | Path, **how: Any) -> list[str]:
    """The names of the columns, from the first records of the first file."""
    files, reading, _ = opened(source, Reading(**how))
    return list(next(batches(files[0], reading), {}))


def list_files(source: str | Path) -> list[Path]:
    """The files of a folder (and folders in it), of a glob such as ``"2024-*.parquet"``, or one.

    Args:
        source: A path. Files whose name begins with ``.`` or ``_`` are passed over in folders, as
            Spark and Hadoop mean it.

    Returns:
        Paths, sorted.

    Raises:
        ValueError: No such file, nothing that can be read, files of several formats.

    Example:
        >>> from importlib.resources import files
        >>> [path.name for path in list_files(str(files("jgram.data") / "*.csv"))]
        ['employment.csv']
    """
    path, what = Path(source), "files that match"
    if path.is_dir():
        what = f"{', '.join(_KINDS)} files in the folder"
        found = [
            each
            for each in sorted(path.rglob("*"))
            if each.is_file() and _suffix(each) in _KINDS
            and not any(part[0] in "._" for part in each.relative_to(path).parts)
        ]  # fmt: skip
    elif path.exists():
        found = [path]
    elif set("*?[") & set(str(source)):
        found = sorted(map(Path, glob.glob(str(source), recursive=True)))
        found = [each for each in found if each.is_file()]
    else:
        raise FileNotFoundError(2, "No such file or directory", str(source))
    if not found:
        raise ValueError(f"{source}: expected {what}, got none")
    kinds = {_kind(each): each for each in reversed(found)}
    if len(kinds) > 1:
        first, second, *_ = sorted(kinds.values())
        raise ValueError(
            f"{source}: expected files of one format, got {first.name} and {second.name}: say "
            "which, as in '*.parquet'"
        )
    return found


def opened(source: Any, reading: Reading) -> tuple[list[Any], Reading, bool]:
    """The files, how to read all of them, by the first's separator, and whether they are text.

    The source is as in :func:`list_files`; ``-``; or the files themselves, of one format.
    """
    if reading.names is not None and len(set(reading.names)) < len(reading.names):
        raise ValueError(f"expected distinct columns, got {', '.join(reading.names)}")
    if isinstance(source, str | Path):
        standard = str(source) == "-"
        files = [_StandardInput(sys.stdin.buffer.read())] if standard else list_files(source)
    else:
        files = list(source)
    kind, separator = _kind(files[0]), reading.separator
    for option, fits in (("encoding", _TEXT), ("sheet", _EXCEL)):
        if getattr(reading, option) is not None and kind != fits:
            raise ValueError(f"{files[0]}: expected no --{option} for {kind}")
    if kind == _TEXT:
        if separator in ("tab", r"\t") or _suffix(files[0]) == ".tsv":
            separator = "\t"
        if separator is None:
            with readable(files[0], _TEXT), open_text(files[0], reading.encoding) as file:
                separator = find_separator(list(itertools.islice(file, _SNIFFED)), str(files[0]))
        if len(separator) != 1:
            raise ValueError(f"separator: expected one character, got {separator!r}")
    return files, replace(reading, separator=separator), kind == _TEXT


def batches(
    path: Any,
    reading: Reading,
    wanted: np.ndarray | None = None,
    *,
    coded: bool = False,
    start: int = 0,
) -> Iterator[Batch]:
    """The columns of one file of :func:`opened`, batch by batch, none held longer than wanted.

    Cells of a text file as they stand there, Arrow arrays (texts of a Parquet file ``coded`` where
    asked), or arrays of an npz file; of the rows ``wanted``, counted from ``start``.
    """
    kind = _kind(path)
    with readable(path, kind):
        for columns, given in _READERS[kind](path, reading, coded):
            rows = start + given
            end = int(rows[-1]) + 1 if len(rows) else start
            if wanted is not None:
                chosen = np.flatnonzero(np.isin(rows, wanted))
                columns, rows = {n: rows_of(x, chosen) for n, x in columns.items()}, rows[chosen]
            yield Batch(columns, rows, end)


def told(files: Sequence[Any], reading: Reading) -> list[str]:
    """What was found of files and may be meant otherwise: their encoding, the sheet taken."""
    kind = _kind(files[0])
    if kind == _TEXT and reading.encoding is None:
        found = sorted({find_encoding(path) for path in files} - {"utf-8-sig"})
        said = f"text in {' and '.join(found)}, by its bytes (--encoding says another)"
        return [said] if found else []
    if kind == _EXCEL and reading.sheet is None:
        sheets = {path: _sheets(path) for path in files}
        return [
            f"{path}: sheet {names[0]!r} is read, of {listing(names)} (--sheet says another)"
            for path, names in sheets.items()
            if len(names) > 1
        ]
    return []


def numbered(cells: Mapping[str, Any], rows: np.ndarray, reading: Reading) -> dict[str, Column]:
    """Columns as they stand in rows of files, read; rows are numbered as a spreadsheet does."""
    found = {}
    for name, values in cells.items():
        one = read(parsed(values, name, reading) if isinstance(values, list) else values, name)
        found[name] = replace(one, rows=rows[: len(one)] + FIRST_ROW)
    return found


@contextmanager
def readable(path: Any, what: str) -> Iterator[None]:
    """One frame around all that reads files: whatever fails is one line that names the file.

    Errors of memory stay what they are, and those of the system get the name of the file.
    """
    try:
        yield
    except MemoryError:
        raise
    except ImportError as error:
        raise ValueError(
            f"{path}: reading {what} takes {error.name}: pip install 'jgram[cli]'"
        ) from None
    except Exception as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise OSError(error.errno, error.strerror, str(path)) from None
        if type(error) is ValueError and str(error).startswith(f"{path}: "):
            raise
        why = f"{error}".strip().partition("\n")[0][:200] or type(error).__name__
        raise ValueError(
            f"{path}: cannot be read as {what}: {why}: check that it is whole"
        ) from None


def select(present: Sequence[str], names: Sequence[str] | None, path: Any) -> list[str]:
    """The wanted names, each of which must be there exactly once."""
    wanted = list(present) if names is None else list(names)
    for name in wanted:
        if name not in present:
            hint = did_you_mean(name, present, f"it has {', '.join(present[:20])}")
            raise ValueError(f"{path}: expected a column {name!r}: {hint}")
        if present.count(name) > 1:
            places = [str(j + 1) for j, other in enumerate(present) if other == name]
            raise ValueError(f"{path}: {name!r} names columns {' and '.join(places)}: rename one")
    return wanted


# One file -------------------------------------------------------------------------------------


class _StandardInput(bytes):
    def __new__(cls, data: bytes) -> "_StandardInput":
        if data[:2] == b"\x1f\x8b":
            with readable("standard input", "a gzip file"):
                data = gzip.decompress(data)
        return super().__new__(cls, data)

    def __str__(self) -> str:
        return "standard input"


def _suffix(path: Any) -> str:
    if isinstance(path, _StandardInput):
        return _SIGNS.get(path[:4], ".csv")
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _kind(path: Any) -> str:
    if (kind := _KINDS.get(_suffix(path))) is None:
        raise ValueError(
            f"{path}: expected a .csv, .tsv, .txt, .xlsx, .jsonl, .feather, .parquet or .npz file, "
            "or one of them with .gz"
        )
    return kind


def _seekable(path: Any) -> Any:
    """A path, or the bytes of a file in memory where it is zipped or came in whole."""
    if isinstance(path, _StandardInput):
        return io.BytesIO(path)
    return io.BytesIO(gzip.decompress(path.read_bytes())) if path.suffix.lower() == ".gz" else path


Cells = Iterator[tuple[dict[str, Any], np.ndarray]]
"""Columns by name, and the rows of their records in the file, from 0."""


def _text_batches(path: Any, reading: Reading, _: bool) -> Cells:
    with open_text(path, reading.encoding) as file:
        for header, rows, numbers in text_rows(file, reading.separator or ",", path):
            names = select(header, reading.names, path)
            places = [(name, operator.itemgetter(header.index(name))) for name in names]
            yield {name: list(map(place, rows)) for name, place in places}, numbers


def _arrow_batches(path: Any, reading: Reading, coded: bool) -> Cells:
    import pyarrow
    from pyarrow import ipc, parquet

    with ExitStack() as stack:
        data, start = _seekable(path), 0
        if _kind(path) == _PARQUET:
            schema = parquet.read_schema(data)
            names = select(schema.names, reading.names, path)
            texts = [name for name in names if coded and str(schema.field(name).type) in _CODED]
            file = stack.enter_context(parquet.ParquetFile(data, read_dictionary=texts))
            found = file.iter_batches(batch_size=_RECORDS, columns=names)
        else:
            data = data if data is not path else stack.enter_context(pyarrow.memory_map(str(path)))
            opened_file = stack.enter_context(ipc.open_file(data))
            names = select(opened_file.schema.names, reading.names, path)
            found = map(opened_file.get_batch, range(opened_file.num_record_batches))
        for batch in found:
            batch.validate(full=True)  # a flipped byte may point out of memory
            yield {n: batch.column(n) for n in names}, np.arange(start, start + batch.num_rows)
            start += batch.num_rows


def _frame_batches(path: Any, reading: Reading, _: bool) -> Cells:
    """A sheet of a workbook, or one JSON object a line."""
    import pandas
    import pyarrow

    found: Any
    if _kind(path) == _EXCEL:
        sheets = _sheets(path)
        if reading.sheet not in (None, *sheets):
            hint = did_you_mean(reading.sheet, sheets, f"records are on {listing(sheets)}")
            raise ValueError(f"{path}: expected a sheet {reading.sheet!r} with records: {hint}")
        sheet: Any = reading.sheet or (sheets or [0])[0]
        found = pandas.read_excel(_seekable(path), sheet_name=sheet)
    else:
        with open_text(path, reading.encoding) as file:
            found = pandas.DataFrame([json.loads(line) for line in file if line.strip()])
    found.columns = found.columns.map(str)
    missing, columns = set(reading.missing_values), {}
    for name, column in found[select(list(found.columns), reading.names, path)].items():
        if column.dtype == object:  # a number among texts is what it looks like
            plain = [x for x in column if isinstance(x, str) or not pandas.isna(x)]
            if len({*map(type, plain)}) > 1:
                column = column.map(str, na_action="ignore")
            column = column.map(lambda x: None if x in missing else x, na_action="ignore")
        columns[str(name)] = pyarrow.array(column, from_pandas=True)
    yield columns, np.arange(len(found))


def _sheets(path: Any) -> list[str]:
    """The sheets of a workbook that hold more than a header."""
    import openpyxl

    def filled(sheet: Any) -> bool:
        rows = (row for row in sheet.iter_rows(values_only=True) if any(x is not None for x in row))
        return next(itertools.islice(rows, 1, None), None) is not None

    with closing(openpyxl.load_workbook(_seekable(path), read_only=True)) as book:
        return [sheet.title for sheet in book.worksheets if filled(sheet)]


def _npz_batches(path: Any, reading: Reading, _: bool) -> Cells:
    data = _seekable(path)
    with zipfile.ZipFile(data), np.load(data, allow_pickle=False) as archive:
        found = {name: archive[name] for name in select(archive.files, reading.names, path)}
    yield found, np.arange(max((len(array) for array in found.values() if array.ndim), default=0))


_READERS = {
    _TEXT: _text_batches, _PARQUET: _arrow_batches, _ARROW: _arrow_batches, _NPZ: _npz_batches,
    _EXCEL: _frame_batches, _LINES: _frame_batches,
}  # fmt: skip


# Files end to end -----------------------------------------------------------------------------


def _read(
    source: Any, reading: Reading, wanted: np.ndarray | None = None
) -> tuple[Batch, Reading, str]:
    """Columns of all files end to end as they stand there, how they were read, and their format."""
    files, reading, text = opened(source, reading)
    kind, parts, end = _kind(files[0]), [], 0
    known: dict[str, str] = {}
    for path in files:
        for part in batches(path, reading, None if kind == _NPZ else wanted, start=end):
            parts.append(shared(part, known) if parts else part)
            reading = replace(reading, names=tuple(part))
        end = parts[-1].end if parts else 0
    if wanted is None and not any(len(part.rows) for part in parts):
        least = "a header and at least one record" if text else "at least one record"
        raise ValueError(f"{source}: expected {least}, got none")
    rows = np.concatenate([part.rows for part in parts])
    return Batch(joined(parts, source), rows, end), reading, kind


def joined(parts: Sequence[Mapping[str, Any]], source: Any) -> dict[str, Any]:
    """The columns of several batches (:func:`batches`) end to end, as they stand there."""
    first = next(iter(parts[0].values()), None)
    if isinstance(first, np.ndarray):
        if len(parts) == 1:
            return dict(parts[0])
        return {n: np.concatenate([np.atleast_1d(x[n]) for x in parts]) for n in parts[0]}
    if isinstance(first, list):
        return {name: [cell for part in parts for cell in part[name]] for name in parts[0]}
    with readable(source, "columns of one type"):
        import pyarrow

        tables = [pyarrow.table(dict(part)) for part in parts]
        table = pyarrow.concat_tables(tables, promote_options="permissive")
    return dict(zip(table.column_names, table.columns, strict=True))


def rows_of(values: Any, rows: np.ndarray) -> Any:
    """Some rows of a column of a batch, as they stand there."""
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    return values[rows] if isinstance(values, np.ndarray) else values.take(rows)


def shared(batch: Batch, known: dict[str, str]) -> Batch:
    """Cells of which equal ones are one known text, where they repeat: they take little room so."""
    for name, cells in batch.items():
        if isinstance(cells, list) and len(set(cells[:1000])) < 500:
            batch[name] = [known.setdefault(cell, cell) for cell in cells]
    return batch


# Cells of text -------------------------------------------------------------------------------


def parsed(cells: list[str], name: str, reading: Reading) -> np.ndarray:
    """A column of cells as int64, float64, or objects (text; None where missing).

    What a column is depends on its distinct cells alone.
    """
    thousands, decimal = reading.thousands, reading.decimal
    told = bool(thousands or decimal)
    if not told and not reading.missing_values and reading.separator != ";":
        numbers = _plain_numbers(cells)
        if numbers is not None:
            return numbers
    place, position = distinct(cells)
    missing = {cell for cell in place if not cell.strip() or cell in reading.missing_values}
    words = {cell for cell in place if cell.strip().casefold() in WORDS_FOR_MISSING} | missing
    plain = {c: _plain_number(c.strip(), thousands, decimal) for c in place if c not in words}
    whole = all(map(_INTEGER.fullmatch, plain.values()))
    padded = not whole and all(cell.lstrip("+-").isdigit() for cell in plain.values())  # codes: 007
    numeric = bool(plain) and not padded and all(map(NUMBER.fullmatch, plain.values()))
    either = reading.separator == ";" and not told and not whole
    if not numeric or (either and all(_GROUPED.fullmatch(cell.strip()) for cell in plain)):
        way = find_written([cell.strip() for cell in plain])[0] if told else None
        if way is not None and (way.point == thousands or way.point != (decimal or way.point)):
            raise ValueError(
                f"{name}: expected numbers as --thousands and --decimal say, got {way.example!r}"
            )
        return np.array([None if cell in missing else cell for cell in place], object)[position]
    kept = np.array([cell in plain for cell in place])
    given = [int(x) if _INTEGER.fullmatch(x) else Decimal(x) for x in plain.values()]
    numbers = narrow(objects(given), name)
    gap = np.nan if numbers.dtype.kind == "f" else None
    values = np.full(len(place), gap, object if gap is None else float)
    values[kept] = numbers
    return (numbers if kept.all() else values)[position]


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
        numbers = np.array(cells, np.int64 if whole else np.float64)
    except (ValueError, OverflowError):
        return None
    return None if not whole and np.abs(numbers).max() >= EXACT else numbers


def _plain_number(cell: str, thousands: str | None, decimal: str | None) -> str:
    """A number as Python writes it, once the separators are told."""
    if thousands and re.fullmatch(rf"[-+]?\d{{1,3}}({re.escape(thousands)}\d{{3}})+(\D\d+)?", cell):
        cell = cell.replace(thousands, "")
    return cell.replace(decimal, ".") if decimal and decimal != "." else cell
