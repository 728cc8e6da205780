"""Files of any size as batches of codes: folders, globs, Parquet, Arrow and text.

Each batch has a vocabulary of its own, and no file is held as a whole. Cells of text files are
passed on as they stand: what a column is depends on all its distinct cells, and is decided when
they are known (:func:`parsed`), as :func:`jgram.data.read_columns` does for one file.
"""

import glob
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jgram.data.columns import DROP_HINT, column, factorise
from jgram.data.files import (
    ARROW,
    PARQUET,
    SNIFFED,
    TEXT,
    find_separator,
    open_text,
    parse_cells,
    readable,
    select,
    separator_of,
    text_rows,
)

__all__ = ["Batch", "Reading", "coded_batches", "encoded", "list_files", "opened", "parsed"]

_BATCH = 1 << 18
_GLOB = set("*?[")

Batch = dict[str, tuple[Sequence[Any], np.ndarray]]
"""Name of a column to its labels, and codes ``[n]`` among them, -1 where missing."""


@dataclass(frozen=True)
class Reading:
    """How files are read.

    Attributes:
        names: Columns.
        separator: Of the fields of text files; found from their first lines by default.
        thousands: The character that groups digits.
        decimal: The decimal mark.
        missing_values: Cells of text files that are missing whatever the column.
        edges: Columns of numbers to put into bins, by their inner edges.
        drop: Whether records that lack a value are left out in the end.
    """

    names: tuple[str, ...]
    separator: str | None = None
    thousands: str | None = None
    decimal: str | None = None
    missing_values: tuple[str, ...] = ()
    edges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    drop: bool = False


def list_files(source: str | Path) -> list[Path]:
    """The files of a folder (and folders in it), of a glob such as ``"2024-*.parquet"``, or one.

    Args:
        source: A path. Files whose name begins with ``.`` or ``_`` are passed over in folders, as
            Spark and Hadoop mean it.

    Returns:
        Paths, sorted.

    Raises:
        ValueError: No such file, nothing that can be streamed, files of several formats.

    Example:
        >>> from importlib.resources import files
        >>> [path.name for path in list_files(str(files("jgram.data") / "*.csv"))]
        ['employment.csv']
    """
    path, known = Path(source), (*TEXT, *PARQUET, *ARROW)
    if path.is_dir():
        inside = (each for each in path.rglob("*") if each.is_file())
        parts = {each: each.relative_to(path).parts for each in inside}
        found = [each for each, names in parts.items() if not any(n[0] in "._" for n in names)]
        found = sorted(each for each in found if _suffix(each) in known)
        if not found:
            raise ValueError(f"{path}: expected {', '.join(known)} files in the folder, got none")
    elif path.exists():
        found = [path]
    elif _GLOB & set(str(source)):
        found = sorted(map(Path, glob.glob(str(source), recursive=True)))
        found = [each for each in found if each.is_file()]
        if not found:
            raise ValueError(f"{source}: expected files that match, got none")
    else:
        raise FileNotFoundError(2, "No such file or directory", str(source))
    kinds = {_kind(each): each for each in reversed(found)}
    if len(kinds) > 1:
        first, second, *_ = sorted(kinds.values())
        raise ValueError(
            f"{source}: expected files of one format, got {first.name} and {second.name}: say "
            "which, as in '*.parquet'"
        )
    return found


def opened(
    source: str | Path | Sequence[Path], reading: Reading
) -> tuple[list[Path], Reading, bool]:
    """The files, how to read all of them, by the first's separator, and whether they are text."""
    alone = isinstance(source, str | Path)
    files = list_files(source) if alone else [Path(each) for each in source]
    text = _kind(files[0]) == "text"
    if text:
        separator = separator_of(reading.separator, _suffix(files[0]))
        if separator is None:
            with readable(files[0], "text in columns"), open_text(files[0]) as file:
                first = list(itertools.islice(file, SNIFFED))
            separator = find_separator(first, str(files[0]))
        reading = replace(reading, separator=separator)
    return files, reading, text


def coded_batches(
    path: Path, reading: Reading, choose: Callable[[int], Any] | None = None
) -> Iterator[Batch]:
    """The columns of one file, batch by batch, as labels and codes.

    Args:
        path: A text, Parquet or Arrow file.
        reading: Columns and how to read them.
        choose: From the size of a batch the rows of it that are wanted; all by default.

    Yields:
        Name to labels (texts as they stand in a text file) and codes ``[n]``.

    Raises:
        ValueError: As :func:`count_files`.
    """
    if _kind(path) == "text":
        yield from _binned_text(_text_batches(path, reading, choose), reading, path)
    else:
        batches = _arrow_batches(path, reading.names)
        if choose is not None:
            batches = (batch.take(choose(batch.num_rows)) for batch in batches)
        yield from encoded(batches, reading, path)


# One file -------------------------------------------------------------------------------------


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _kind(path: Path) -> str:
    suffix = _suffix(path)
    for kind, suffixes in (("text", TEXT), ("Parquet", PARQUET), ("Arrow", ARROW)):
        if suffix in suffixes and not (kind != "text" and path.suffix.lower() == ".gz"):
            return kind
    raise ValueError(
        f"{path}: expected {', '.join((*TEXT, *PARQUET, *ARROW))} files, text also with .gz"
    )


def _arrow_batches(path: Path, names: Sequence[str]) -> Iterator[Any]:
    with readable(path, f"a{'n' * (_kind(path) == 'Arrow')} {_kind(path)} file"):
        import pyarrow
        from pyarrow import ipc, parquet

        if _kind(path) == "Parquet":
            with parquet.ParquetFile(path) as file:
                schema = file.schema_arrow
                select(schema.names, names, str(path))
            texts = [name for name in names if _is_text(schema.field(name).type)]
            with parquet.ParquetFile(path, read_dictionary=texts) as file:
                for batch in file.iter_batches(batch_size=_BATCH, columns=list(names)):
                    batch.validate(full=True)  # a flipped byte may point out of memory
                    yield batch
        else:
            with pyarrow.memory_map(str(path)) as memory, ipc.open_file(memory) as file:
                select(file.schema.names, names, str(path))
                for i in range(file.num_record_batches):
                    batch = file.get_batch(i).select(list(names))
                    batch.validate(full=True)
                    yield batch


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "binary", "large_binary")


def encoded(batches: Iterable[Any], reading: Reading, path: Any) -> Iterator[Batch]:
    """Arrow record batches as labels and codes."""
    seen: dict[str, tuple[Any, Any]] = {}
    for batch in batches:
        select(batch.schema.names, reading.names, str(path))
        found: Batch = {}
        for name in reading.names:
            array = batch.column(batch.schema.names.index(name))
            if name in reading.edges:
                numbers, present = _numbers_of_arrow(array, name, path)
                found[name] = _binned(numbers, present, name, reading, path)
            else:
                found[name] = _labels_of_arrow(array, name, path, seen)
        yield found


def _labels_of_arrow(array: Any, name: str, path: Any, seen: dict[str, Any]) -> Any:
    kind = str(array.type)
    if kind.startswith(("list", "large_list", "fixed_size_list", "struct", "map")):
        raise ValueError(f"{path}: {name}: expected one value a record, got {kind}")
    if not kind.startswith("dictionary"):
        array = array.dictionary_encode()
    known = seen.get(name)
    if known is None or not known[0].equals(array.dictionary):
        given = column(array.dictionary, name)
        distinct, inverse = factorise(given.values)
        place = np.full(len(given.present) + 1, -1, np.int32)
        place[:-1][given.present] = inverse
        plain = bool((np.sort(place[:-1]) == np.arange(len(place) - 1)).all())
        if plain:  # indices are codes
            distinct = [distinct[i] for i in place[:-1]]
        seen[name] = known = (array.dictionary, (distinct, None if plain else place))
    labels, place = known[1]
    indices = array.indices if array.null_count == 0 else array.indices.fill_null(-1)
    codes = np.asarray(indices)
    return labels, codes if place is None else place[codes]


def _numbers_of_arrow(array: Any, name: str, path: Any) -> tuple[np.ndarray, np.ndarray]:
    if not str(array.type).startswith(("int", "uint", "float", "double", "halffloat")):
        raise ValueError(f"{path}: {name}: expected numbers as in other files, got {array.type}")
    given = column(array, name)
    values = np.full(len(array), np.nan)
    values[given.present] = given.values
    return values, given.present


def _binned(
    values: np.ndarray, present: np.ndarray, name: str, reading: Reading, path: Any
) -> tuple[Sequence[Any], np.ndarray]:
    """Numbers as the bins they fall into."""
    if not reading.drop and not present.all():
        raise ValueError(
            f"{path}: {name}: {np.sum(~present)} values missing, which no bin holds: {DROP_HINT}"
        )
    edges = reading.edges[name]
    codes = np.searchsorted(edges, values, side="left").astype(np.int32)
    return range(len(edges) + 1), np.where(present, codes, -1)


# Text -------------------------------------------------------------------------------------------


def _text_batches(
    path: Path, reading: Reading, choose: Callable[[int], Any] | None
) -> Iterator[Batch]:
    """Cells of a text file as they stand there."""
    with readable(path, "text in columns"), open_text(path) as file:
        for header, rows in text_rows(file, reading.separator or ",", path):
            select(header, reading.names, str(path))
            rows = rows if choose is None else [rows[i] for i in choose(len(rows))]
            found: Batch = {}
            for name in reading.names:
                cells = list(map(operator.itemgetter(header.index(name)), rows))
                place = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
                codes = np.fromiter(map(place.__getitem__, cells), np.int32, len(cells))
                found[name] = (list(place), codes)
            yield found


def _binned_text(batches: Iterable[Batch], reading: Reading, path: Path) -> Iterator[Batch]:
    for batch in batches:
        for name in reading.edges:
            labels, codes = batch[name]
            read = parsed(list(labels), name, reading)
            present = np.array([x is not None and x == x for x in read], bool)
            if read.dtype.kind not in "iuf" and present.any():
                other = next(x for x in read if x is not None)
                raise ValueError(f"{path}: {name}: expected numbers, got {other!r}")
            values = np.full(len(read), np.nan)
            values[present] = read[present].astype(float)
            batch[name] = _binned(values[codes], present[codes], name, reading, path)
        yield batch


def parsed(cells: list[str], name: str, reading: Reading) -> np.ndarray:
    """Distinct cells of a text column as :func:`jgram.data.read_columns` reads them."""
    separator = reading.separator or ","
    marks = (reading.thousands, reading.decimal, reading.missing_values)
    return parse_cells(cells, name, separator, *marks)
