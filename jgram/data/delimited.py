"""Text files as rows none of which is lost, in the encoding and by the separator that they show.

The standard library's reader splits the lines.
"""

import codecs
import csv
import functools
import gzip
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jgram.data.written import WORDS_FOR_MISSING

__all__ = ["find_separator", "open_text", "text_rows"]

_ROWS = 50_000  # split at once
_SEPARATORS = {",": ",", ";": ";", "\t": "tab", "|": "|"}
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?", re.IGNORECASE)

_UTF_8 = "utf-8-sig"
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16",
          b"\xfe\xff": "utf-16"}  # fmt: skip
_POSSIBLE = [  # of spreadsheets, the most usual first
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
    "cp932", "gb18030", "big5", "cp949", "koi8_r", "mac_roman", "utf_16_le", "utf_16_be",
]  # fmt: skip
_BLOCK, _SAMPLE = 1 << 20, 1 << 16

csv.field_size_limit(1 << 26)  # texts are long; a stray quote must not take in a whole large file


def find_encoding(source: Path | bytes, encoding: str | None = None) -> str:
    """The encoding that reads all of a text file, which is read through for it once.

    A mark at its beginning tells it, UTF-8 needs none; any other is found from the lines that are
    not ASCII, by charset-normalizer. Bytes that it does not know are refused, named by their row.
    """
    state = source.stat() if isinstance(source, Path) else None
    return _found(source, encoding, state and (state.st_size, state.st_mtime_ns, state.st_ino))


@functools.lru_cache(maxsize=1 << 14)
def _found(source: Path | bytes, encoding: str | None, _: Any) -> str:
    with open_bytes(source) as file:
        head = file.read(4)
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), _UTF_8)
    told = encoding or marked
    if (fault := _fault(source, told)) is None:
        return told
    found = None if encoding else _guessed(source)
    if found is None or _fault(source, found) is not None:
        fix = "it is another" if encoding else "say which it is (--encoding cp1252)"
        raise ValueError(f"{source}: expected text in {told}, got {fault}: {fix}")
    return found


@contextmanager
def open_bytes(source: Path | bytes) -> Iterator[Any]:
    """The bytes of a file, of a path (also gzipped), or themselves."""
    if not isinstance(source, Path):
        yield io.BytesIO(source)
        return
    with gzip.open(source) if source.suffix.lower() == ".gz" else source.open("rb") as file:
        yield file


def _fault(source: Path | bytes, encoding: str) -> str | None:
    """The first byte that an encoding does not know, and its row."""
    try:
        decoder, row = codecs.getincrementaldecoder(encoding)(), 1
    except LookupError:
        raise ValueError(f"encoding: expected one such as cp1252, got {encoding!r}") from None
    with open_bytes(source) as file:
        block = b"-"
        while block:
            block = file.read(_BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                wrong, before = error.object[error.start], error.object[: error.start]
                return f"byte {wrong:#04x} in row {row + before.count(10)}"
            except UnicodeError:
                return "no mark at its beginning"
            row += text.count("\n")
            if encoding == _UTF_8 and "\0" in text:
                return f"byte 0x00 before row {row + 1}"
    return None


def _guessed(source: Path | bytes) -> str | None:
    """What charset-normalizer takes a file for; ``None`` for UTF-8 with a fault in it."""
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    sample, size, whole = [], 0, 0
    with open_bytes(source) as file:
        for line in file:
            if size < _SAMPLE and (not line.isascii() or b"\0" in line):
                sample.append(line)
                size += len(line)
                whole += b"\0" not in line and line.decode(errors="ignore").encode() == line
    found = list(from_bytes(b"".join(sample), cp_isolation=_POSSIBLE))
    if 2 * whole > len(sample) or not found:
        return None
    first = found[0].chaos, found[0].coherence
    _, best = min(_unlikely(one) for one in found if (one.chaos, one.coherence) == first)
    return codecs.lookup(_POSSIBLE[best]).name


def _unlikely(found: Any) -> tuple[int, int]:
    """By what encodings differ that are alike to charset-normalizer: signs at letters, usage."""
    text = str(found)
    beside = zip(f" {text}", text, f"{text[1:]} ", strict=False)
    odd = ((a + b) for a, x, b in beside if not (x.isascii() or x.isalpha()))
    signs = sum(a.isalpha() or b.isalpha() for a, b in odd)
    names = {found.encoding, *found.could_be_from_charset} & {*_POSSIBLE}
    return signs, min(map(_POSSIBLE.index, names))


@contextmanager
def open_text(source: Path | bytes, encoding: str | None = None) -> Iterator[io.TextIOWrapper]:
    """A text file's lines, of a path (also gzipped) or of bytes, in an encoding that is found.

    A first line such as ``sep=;``, by which Excel tells itself the separator, is none of them.
    """
    encoding = find_encoding(source, encoding)
    with open_bytes(source) as file:
        text = io.TextIOWrapper(file, encoding, newline="")
        if not re.fullmatch(r"sep=.\r?\n?", text.readline(16), re.IGNORECASE):
            text.seek(0)
        yield text


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


def text_rows(
    lines: Iterable[str], separator: str, path: Any
) -> Iterator[tuple[list[str], list[list[str]], np.ndarray]]:
    """Rows of a text file, batch by batch; none is lost to a stray quote.

    Yields:
        The names of the columns; rows of as many cells, none where there is a header alone; and
        which rows after the header they are, from 0, blank ones counted.

    Raises:
        ValueError: A quote that does not enclose a cell, or may join several records to one; a row
            of other fields than the header's.
    """
    seen: list[str] = []  # lines of this record

    def passed() -> Iterator[str]:
        for line in lines:
            seen.append(line)
            yield line

    def here() -> str:
        row = f"row {number + 2}" if header else "the header"
        return f"{row} (line {reader.line_num - len(seen) + 1})"

    spaces = separator != " "
    reader = csv.reader(passed(), delimiter=separator, skipinitialspace=spaces, strict=True)
    header: list[str] = []
    rows: list[list[str]] = []
    numbers: list[int] = []
    joined: list[tuple[str, str, list[str]]] = []  # where, lines and cells of records of several
    number = 0
    try:
        for cells in reader:
            if len(seen) > 1:
                joined.append((here(), "".join(seen), cells))
            seen.clear()
            if cells and len(cells) != len(header or cells):
                raise ValueError(
                    f"{path}: expected {len(header)} fields as in the header, got {len(cells)} in "
                    f"line {reader.line_num}: check its quotes, or the separator (--separator)"
                )
            if cells and not header:
                header = cells
                continue
            if cells:
                rows.append(cells)
                numbers.append(number)
            number += 1
            if len(rows) == _ROWS:
                yield _names(header, rows, joined, separator, path), rows, np.array(numbers)
                rows, numbers, joined = [], [], []
    except csv.Error:
        raise ValueError(
            f"{path}: {here()}: a quote begins a cell and does not enclose it: take it out, or "
            "enclose the cell and double the quotes in it"
        ) from None
    if not header:
        raise ValueError(f"{path}: expected a header and at least one record, got none")
    yield _names(header, rows, joined, separator, path), rows, np.array(numbers, int)


def _names(
    header: list[str],
    rows: list[list[str]],
    joined: Sequence[tuple[str, str, list[str]]],
    separator: str,
    path: Any,
) -> list[str]:
    """The names of columns, if quotes have joined no records."""
    for where, text, cells in joined:
        if not _well_quoted(text, separator) or _several_records(cells, separator, rows):
            raise ValueError(
                f"{path}: {where}: quotes join lines that may be records of their own: take stray "
                "quotes out, or, if it is a cell of several lines, save the file as Parquet"
            )
    return [cell.strip() or f"column {j + 1}" for j, cell in enumerate(header)]


def _well_quoted(text: str, separator: str) -> bool:
    """Whether quotes of a row enclose whole cells, and stand nowhere else."""
    mark = re.escape(separator)
    space = "" if separator == " " else " *+"
    cell = rf'{space}(?:"(?:[^"]++|"")*+"|[^"\r\n{mark}]*+)'
    return re.fullmatch(rf"{cell}(?:{mark}{cell})*+[\r\n]*", text) is not None


def _several_records(cells: list[str], separator: str, others: Sequence[list[str]]) -> bool:
    """Whether a row with a cell of several lines may be several rows that quotes have joined.

    It may where a line has as many fields as a row, and so has what is before it, from its
    beginning or from a quote within it; unless that would put words into a column of numbers.
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
                continue
            head = "\n".join(lines[:i])
            ends = [0] * (i == 1) + [mark.end() for mark in re.finditer('"', head)]
            if any(j + 1 + head.count(separator, end) == width for end in ends):
                whole = [row for row in rows if len(row) == width]
                words = [c for c in range(width) if not all(_is_number(row[c]) for row in whole)]
                mixed = (any(not _is_number(other[c]) for other in others) for c in words)
                if len(others) < 10 or all(mixed):
                    return True
    return False


def _is_number(cell: str) -> bool:
    """Whether a cell can stand in a column of numbers, stray quotes aside."""
    cell = cell.replace('"', "").strip()
    return cell.casefold() in WORDS_FOR_MISSING or bool(NUMBER.fullmatch(cell))
