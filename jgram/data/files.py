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
import itertools
import math
import operator
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from jgram.data.columns import EXACT, cells

__all__ = [
    "ARROW",
    "PARQUET",
    "SNIFFED",
    "TEXT",
    "find_separator",
    "open_text",
    "parse_cells",
    "read_cells",
    "read_columns",
    "readable",
    "select",
    "separator_of",
    "text_rows",
]

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")
ROWS, SNIFFED = 50_000, 50  # lines split at once; lines by which the separator is found
_SEPARATORS = {",": ",", ";": ";", "\t": "tab", "|": "|"}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?", re.IGNORECASE)
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([ ,.'’\u00a0\u202f]\d{3})+([.,]\d+)?|[-+]?\d+(,\d+)?")
_NOT_A_NUMBER = frozenset(["na", "n/a", "#n/a", "nan", "null", "none", "<na>", ".", "-"])

csv.field_size_limit(1 << 26)  # texts are long; a stray quote must not take in a whole large file


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
    suffix = Path(path.stem).suffix.lower()
    return (
        str(path),
        path if suffix in TEXT else io.BytesIO(_unzip(path.read_bytes(), path)),
        suffix,
    )


def _unzip(data: bytes, path: Any) -> bytes:
    with readable(path, "a gzip file"):
        return gzip.decompress(data)


@contextmanager
def readable(path: Any, what: str) -> Iterator[None]:
    """One frame around all that reads files: whatever fails is one line that names the file.

    Args:
        path: What messages call the file.
        what: What it is read as, ``"a Parquet file"`` for example.

    Raises:
        ValueError: In place of any error but those of memory, and those of the system, which
            get the name of the file.
    """
    try:
        yield
    except MemoryError:
        raise
    except ImportError as error:
        raise ValueError(
            f"{path}: reading {what} takes {error.name}: pip install 'jgram[cli]'"
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: expected UTF-8 text, got byte {error.object[error.start]:#04x}: save the "
            "file as UTF-8"
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
    with readable(path, "text in columns"), open_text(source) as file:
        first = list(itertools.islice(file, SNIFFED))
        separator = separator or find_separator(first, path)
        batches = list(text_rows(itertools.chain(first, file), separator, path))
    header, rows = batches[0][0], list(itertools.chain.from_iterable(rows for _, rows in batches))
    if not rows:
        raise ValueError(f"{path}: expected a header and at least one record, got 1 lines")
    return header, rows, separator


@contextmanager
def open_text(source: Path | io.BytesIO) -> Iterator[io.TextIOWrapper]:
    """A text file's lines, of a path (also gzipped) or of bytes: UTF-8, or UTF-16 with its mark."""
    if isinstance(source, Path):
        zipped = source.suffix.lower() == ".gz"
        with gzip.open(source) if zipped else source.open("rb") as file:
            yield _decoded(file)
    else:
        yield _decoded(io.BufferedReader(source))


def _decoded(file: Any) -> io.TextIOWrapper:
    wide = file.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
    return io.TextIOWrapper(file, "utf-16" if wide else "utf-8-sig", newline="")


def text_rows(
    lines: Iterable[str], separator: str, path: Any
) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Rows of a text file, batch by batch; none is lost to a stray quote.

    Args:
        lines: Of the file, with their ends.
        separator: Of the fields.
        path: What messages call the file.

    Yields:
        The names of the columns, and rows of as many cells; no rows where there is a header alone.

    Raises:
        ValueError: A quote that does not enclose a cell, or may join several records to one; a row
            of other fields than the header's.
    """
    seen: list[str] = []  # lines of this batch

    def passed() -> Iterator[str]:
        for line in lines:
            seen.append(line)
            yield line

    reader = make_reader(passed(), separator)
    header: list[str] | None = None
    before = records = 0  # lines and rows of earlier batches
    while True:
        try:
            found = list(itertools.islice(reader, ROWS))
        except csv.Error:
            found = []
        rows = list(filter(None, found))
        width = len(header or (rows and rows[0]) or ())
        if len(found) != len(seen) or set(map(len, rows)) - {width}:
            _refuse_strays(seen, separator, path, header, before, records)
        if not found:
            break
        if header is None and rows:
            header = rows.pop(0)
        if header is not None:
            records += len(rows)
            yield [cell.strip() or f"column {j + 1}" for j, cell in enumerate(header)], rows
        before += len(seen)
        seen.clear()
    if header is None:
        raise ValueError(f"{path}: expected a header and at least one record, got 0 lines")


def _refuse_strays(
    lines: list[str], separator: str, path: Any, header: list[str] | None, before: int, records: int
) -> None:
    """Refuse the first row, if any, that is no record, or of which no one knows whether it is one.

    Args:
        lines: Of one batch.
        separator: Of the fields.
        path: What messages call the file.
        header: Its cells; ``None`` where the batch begins with them.
        before: The number of lines before the batch.
        records: The number of records before the batch.
    """
    reader = make_reader(lines, separator)
    start, row, batch = 0, records - (header is None), []
    several: list[tuple[int, int, int, list[str]]] = []
    while True:
        try:
            cells = next(reader, None)
        except csv.Error:
            raise ValueError(
                f"{path}: {_place(row, before + start + 1)}: a quote begins a cell and does not "
                "enclose it: take it out, or enclose the cell and double the quotes in it"
            ) from None
        if cells is None:
            break
        if cells:
            header = header or cells
            width = len(header)
            if len(cells) != width:
                raise ValueError(
                    f"{path}: expected {width} fields as in the header, got {len(cells)} in "
                    f"line {before + reader.line_num}: check its quotes, or the separator "
                    "(--separator)"
                )
            if reader.line_num - start > 1:
                several.append((row, start, reader.line_num, cells))
            elif row >= 0:
                batch.append(cells)
            row += 1
        start = reader.line_num
    numeric = [
        len(batch) >= 10 and all(_is_number(cells[j]) for cells in batch)
        for j in range(len(header or ()) if several else 0)
    ]
    for row, start, stop, cells in several:
        text = "".join(lines[start:stop])
        if not _well_quoted(text, separator) or _several_records(cells, separator, numeric):
            raise ValueError(
                f"{path}: {_place(row, before + start + 1)}: quotes join {stop - start} lines, "
                "which may be as many records: take stray quotes out, or, if it is a cell of "
                "several lines, save the file as Parquet"
            )


def _place(row: int, line: int) -> str:
    return f"row {row} (line {line})" if row >= 0 else f"the header (line {line})"


def _well_quoted(text: str, separator: str) -> bool:
    """Whether quotes of a row enclose whole cells, and stand nowhere else."""
    mark = re.escape(separator)
    space = "" if separator == " " else " *+"
    cell = rf'{space}(?:"(?:[^"]++|"")*+"|[^"\r\n{mark}]*+)'
    return re.fullmatch(rf"{cell}(?:{mark}{cell})*+[\r\n]*", text) is not None


def _several_records(cells: list[str], separator: str, numeric: Sequence[bool]) -> bool:
    """Whether a row with a cell of several lines may be several rows that quotes have joined.

    It may where the lines from some line on have as many fields as a row, and so has what is
    before them, from its beginning or from a quote within it; unless that would put words into a
    column of numbers.
    """
    width = len(cells)
    for j, cell in enumerate(cells):
        lines = re.split(r"\r\n|\r|\n", cell)
        rows = [line.split(separator) for line in lines]
        rows[0], rows[-1] = cells[:j] + rows[0], rows[-1] + cells[j + 1 :]
        lines = [line for line, row in zip(lines, rows, strict=True) if row != [""]]
        rows = [row for row in rows if row != [""]]
        for i in range(len(lines) - 1, 0, -1):
            if len(rows[i]) != width:
                break
            head = "\n".join(lines[:i])
            ends = [0] * (i == 1) + [mark.end() for mark in re.finditer('"', head)]
            if any(j + 1 + head.count(separator, end) == width for end in ends) and all(
                _is_number(cell) or not number
                for row in rows
                if len(row) == width
                for cell, number in zip(row, numeric, strict=True)
            ):
                return True
    return False


def _is_number(cell: str) -> bool:
    """Whether a cell can stand in a column of numbers, stray quotes aside."""
    cell = cell.replace('"', "").strip()
    return not cell or cell.casefold() in _NOT_A_NUMBER or bool(_NUMBER.fullmatch(cell))


def separator_of(separator: str | None, suffix: str) -> str | None:
    """The separator as it stands in the file, if it is told."""
    return "\t" if separator in ("tab", r"\t") or suffix == ".tsv" else separator


def make_reader(lines: Iterable[str], separator: str) -> Any:
    """Rows of cells of lines of text; a quote that does not enclose a cell is an error."""
    try:
        spaces = separator != " "
        return csv.reader(lines, delimiter=separator, skipinitialspace=spaces, strict=True)
    except (TypeError, ValueError):
        raise ValueError(f"separator: expected one character, got {separator!r}") from None


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
    large = (abs(int(cell)) > EXACT for cell in plain if _INTEGER.fullmatch(cell))
    if not whole and any(large):  # floats would merge such integers
        exact = [Decimal(cell) for cell in plain]
        whole = all(x.is_finite() and x == x.to_integral_value() for x in exact)
        numbers = iter(exact if whole else plain)
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
        numbers = np.array(cells, np.int64 if whole else np.float64)
    except (ValueError, OverflowError):
        return None
    return None if not whole and np.abs(numbers).max() >= EXACT else numbers


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
    with readable(path, "a Parquet file" if suffix in PARQUET else "an Arrow file"):
        from pyarrow import ipc, parquet

        if suffix in PARQUET:
            with parquet.ParquetFile(source) as file:
                wanted = select(file.schema_arrow.names, names, path)
                table = file.read(columns=wanted)
        else:
            table = ipc.open_file(source if isinstance(source, io.BytesIO) else str(source))
            table = table.read_all()
            table = table.select(wanted := select(table.column_names, names, path))
        table.validate(full=True)  # a flipped byte may point out of memory
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
    with readable(path, "an npz file"), zipfile.ZipFile(source), np.load(source) as archive:
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
