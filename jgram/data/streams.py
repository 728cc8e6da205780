"""Files of any size as distinct records with counts: folders, globs, and streams of Arrow batches.

One pass in bounded memory: each file is read batch by batch and counted with a vocabulary of its
own (:mod:`jgram.cells`), then all are merged by label. Cells of text files are counted as they
stand and read once, at the end, as :func:`jgram.data.read_columns` reads the cells of one file:
what a column is depends on its distinct cells alone, so that labels and missing values are the same
by both routes.

Where files are counted is the business of ``map=``: any callable ``map(function, items)`` that
gives results, or futures with a method ``result``, in the order of the items. The builtin is one,
so is the ``map`` of an executor, and of a Dask client. Finished files can be kept in a folder
(``checkpoint=``), by which a run that was killed goes on.
"""

import builtins
import csv
import functools
import glob
import gzip
import hashlib
import io
import itertools
import json
import operator
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jgram.cells import Cells, count, merge, objects, recode
from jgram.data.bins import quantile_bins
from jgram.data.columns import DROP_HINT, column, drop_missing, factorise
from jgram.data.files import (
    ARROW,
    PARQUET,
    TEXT,
    find_separator,
    make_reader,
    parse_cells,
    select,
    separator_of,
)
from jgram.whole_file import whole_file

__all__ = [
    "Counted",
    "Reading",
    "coded_batches",
    "count_batches",
    "count_files",
    "list_files",
    "opened",
    "quantile_edges",
    "read_long",
]

MOST_CELLS = 2_000_000
SAMPLED = 100_000  # records that quantiles are taken from
_BATCH, _TEXT_BATCH = 1 << 18, 50_000
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
        edges: Columns of numbers to put into buckets, by their inner edges.
        drop: Whether records that lack a value are left out in the end.
    """

    names: tuple[str, ...]
    separator: str | None = None
    thousands: str | None = None
    decimal: str | None = None
    missing_values: tuple[str, ...] = ()
    edges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    drop: bool = False


class Counted(NamedTuple):
    """Distinct records of files, and where their labels stand in them.

    Attributes:
        cells: :class:`jgram.cells.Cells`, labels as :func:`jgram.data.read_columns` reads them.
        places: Name of a column to its labels as they stand in the files, and their codes in
            ``cells``.
        dropped: Records left out because they lack a value.
    """

    cells: Cells
    places: Mapping[str, Mapping[Any, int]]
    dropped: int


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


def count_files(
    source: str | Path | Sequence[Path],
    reading: Reading,
    *,
    map: Callable[..., Iterable[Any]] = builtins.map,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Counted:
    """Distinct records of files, and how often each occurs.

    Args:
        source: As :func:`list_files`, or the files themselves, of one format.
        reading: Columns and how to read them.
        map: What runs a function on every file (see the top of this module). Workers of another
            process read the files by the same paths.
        checkpoint: A folder that keeps what was counted of every finished file; files that changed
            since, and anything there that cannot be read, are counted anew.
        progress: Called with the numbers of finished files and of all files.

    Returns:
        :class:`Counted`.

    Raises:
        ValueError: A file that cannot be read, lacks a column, or holds other types than another;
            more distinct records than categories have; no records.

    Example:
        >>> from importlib.resources import files
        >>> path = files("jgram.data") / "employment.csv"
        >>> counted = count_files(str(path), Reading(("first", "final")))
        >>> counted.cells.num_records
        209
    """
    files, reading, text = opened(source, reading)
    kept = _Checkpoint.of(checkpoint, reading)
    loaded = {path: kept.load(path) for path in files}
    parts = [part for part in loaded.values() if part is not None]
    waiting = [path for path, part in loaded.items() if part is None]
    done = len(files) - len(waiting)
    found = map(functools.partial(_count_file, reading=reading), waiting)
    for path, one in zip(waiting, found, strict=True):
        part = one.result() if hasattr(one, "result") else one
        kept.save(path, part)
        parts = _compacted([*parts, part])
        done += 1
        if progress is not None:
            progress(done, len(files))
    return _counted(merge(parts), reading, text=text)


def count_batches(batches: Iterable[Any], names: Sequence[str] | None = None) -> Cells:
    """Distinct records of a stream of Arrow record batches: from DuckDB, Spark, Polars or Flight.

    Args:
        batches: ``pyarrow.RecordBatch`` objects, or anything that iterates over them, such as a
            ``RecordBatchReader``.
        names: The columns wanted; those of the first batch by default.

    Returns:
        :class:`jgram.cells.Cells`.

    Raises:
        ValueError: A column that is not there; more distinct records than categories have; no
            records.

    Example:
        >>> import pyarrow
        >>> batch = pyarrow.record_batch({"ann": ["a", "b", "a"], "crp": [1, 2, 1]})
        >>> cells = count_batches([batch, batch], ["ann", "crp"])
        >>> cells.table()["ann"].tolist(), cells.counts.tolist()
        (['a', 'b'], [4, 2])
    """
    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        raise ValueError("expected at least one record batch, got none")
    reading = Reading(tuple(first.schema.names if names is None else names))
    encoded = _encoded(itertools.chain([first], stream), reading, "the stream")
    return _counted(_count(encoded, reading.names), reading, text=False).cells


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
        yield from _bucketed_text(_text_batches(path, reading, choose), reading, path)
    else:
        batches = _arrow_batches(path, reading.names)
        if choose is not None:
            batches = (batch.take(choose(batch.num_rows)) for batch in batches)
        yield from _encoded(batches, reading, path)


def quantile_edges(
    source: str | Path | Sequence[Path],
    bins: Mapping[str, int],
    reading: Reading,
    *,
    map: Callable[..., Iterable[Any]] = builtins.map,
    seed: int = 0,
) -> tuple[dict[str, tuple[float, ...]], int]:
    """Inner edges of quantile buckets of numeric columns, from a uniform sample of all records.

    Args:
        source: As :func:`count_files`.
        bins: Number of buckets by column; columns of text are passed over.
        reading: Columns and how to read them.
        map: As :func:`count_files`.
        seed: Of the sample.

    Returns:
        Edges by column, and the size of the sample: all records where there are few.

    Raises:
        ValueError: As :func:`jgram.data.quantile_bins`.
    """
    files, reading, text = opened(source, reading)
    work = functools.partial(_sample_file, reading=reading)
    seeds = [(path, (seed, number)) for number, path in enumerate(files)]
    parts = [one.result() if hasattr(one, "result") else one for one in map(work, seeds)]
    sample = _smallest(parts)
    columns = {}
    for name, values in sample.columns.items():
        parsed = _parsed(values.tolist(), name, reading) if text else values
        given = column(parsed, name)
        columns[name] = given.values if given.present.all() else parsed
    if reading.drop:
        columns, _ = drop_missing(columns)
    edges = {}
    for name, number in bins.items():
        values = column(columns[name], name).values
        if values.dtype.kind in "iuf":
            edges[name] = tuple(quantile_bins(values, number, name=name).edges.tolist())
    return edges, len(sample.priorities)


def read_long(source: str | Path | Sequence[Path], reading: Reading) -> dict[str, np.ndarray]:
    """Columns of all files end to end, every label held once: 4 bytes a cell and the labels.

    Args:
        source: As :func:`count_files`.
        reading: Columns and how to read them.

    Returns:
        Name to values ``[n]``, ``None`` where missing.

    Raises:
        ValueError: As :func:`count_files`.
    """
    files, reading, text = opened(source, reading)
    vocabularies: dict[str, dict[Any, int]] = {name: {} for name in reading.names}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in reading.names}
    for path in files:
        for batch in coded_batches(path, reading):
            for name, (labels, codes) in batch.items():
                place = vocabularies[name]
                found = [place.setdefault(label, len(place)) for label in labels]
                parts[name].append(np.array([*found, -1], np.int32)[codes])
    columns = {}
    for name, place in vocabularies.items():
        values = _parsed(list(place), name, reading) if text else objects(list(place))[:-1]
        codes = np.concatenate(parts.pop(name)) if parts[name] else np.zeros(0, np.int32)
        if len(codes) == 0:
            raise ValueError(f"{source}: expected at least one record, got none")
        columns[name] = values[codes] if (codes >= 0).all() else objects(values.tolist())[codes]
    return columns


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


def _count_file(path: Path, reading: Reading) -> Cells:
    return _count(coded_batches(path, reading), reading.names)


def _count(batches: Iterable[Batch], names: Sequence[str]) -> Cells:
    empty = count({name: np.zeros(0, np.int32) for name in names}, {name: () for name in names})
    parts = [empty]
    for batch in batches:
        codes = {name: batch[name][1] for name in names}
        parts.append(count(codes, {name: batch[name][0] for name in names}))
        if len(parts) >= 64 or len(parts[-1].counts) > _BATCH // 64:
            parts = _compacted(parts)
    return merge(parts)


def _compacted(parts: list[Cells]) -> list[Cells]:
    """The parts, merged where there are many, and refused where they are no categories."""
    if len(parts) < 32 and sum(len(part.counts) for part in parts) <= MOST_CELLS:
        return parts
    merged = merge(parts)
    if len(merged.counts) > MOST_CELLS:
        name, labels = max(merged.labels.items(), key=lambda item: len(item[1]))
        raise ValueError(
            f"{name}: expected categories that repeat, got more than {MOST_CELLS:,} distinct "
            f"records, {len(labels):,} values of {name} among them: put numbers into buckets "
            "(--bins 4), or leave the column out"
        )
    return [merged]


def _arrow_batches(path: Path, names: Sequence[str]) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError:
        raise ValueError(
            f"{path}: reading {_kind(path)} files takes pyarrow: pip install 'jgram[cli]'"
        ) from None
    try:
        if _kind(path) == "Parquet":
            with parquet.ParquetFile(path) as file:
                schema = file.schema_arrow
                select(schema.names, names, str(path))
            texts = [name for name in names if _is_text(schema.field(name).type)]
            with parquet.ParquetFile(path, read_dictionary=texts) as file:
                yield from file.iter_batches(batch_size=_BATCH, columns=list(names))
        else:
            with pyarrow.memory_map(str(path)) as memory, ipc.open_file(memory) as file:
                select(file.schema.names, names, str(path))
                for i in range(file.num_record_batches):
                    yield file.get_batch(i).select(list(names))
    except (pyarrow.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        line = str(error).splitlines()[0]
        raise ValueError(f"{path}: not a whole {_kind(path)} file: {line}") from None


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "binary", "large_binary")


def _encoded(batches: Iterable[Any], reading: Reading, path: Any) -> Iterator[Batch]:
    """Arrow record batches as labels and codes."""
    seen: dict[str, tuple[Any, Any]] = {}
    for batch in batches:
        select(batch.schema.names, reading.names, str(path))
        found: Batch = {}
        for name in reading.names:
            array = batch.column(batch.schema.names.index(name))
            if name in reading.edges:
                numbers, present = _numbers_of_arrow(array, name, path)
                found[name] = _bucketed(numbers, present, name, reading, path)
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


def _bucketed(
    values: np.ndarray, present: np.ndarray, name: str, reading: Reading, path: Any
) -> tuple[Sequence[Any], np.ndarray]:
    """Numbers as the buckets they fall into."""
    if not reading.drop and not present.all():
        raise ValueError(
            f"{path}: {name}: {np.sum(~present)} values missing, which no bucket holds: {DROP_HINT}"
        )
    edges = reading.edges[name]
    codes = np.searchsorted(edges, values, side="left").astype(np.int32)
    return range(len(edges) + 1), np.where(present, codes, -1)


# Text -------------------------------------------------------------------------------------------


def _text_batches(
    path: Path, reading: Reading, choose: Callable[[int], Any] | None
) -> Iterator[Batch]:
    """Cells of a text file as they stand there."""
    for header, rows in _rows(path, reading):
        rows = rows if choose is None else [rows[i] for i in choose(len(rows))]
        found: Batch = {}
        for name in reading.names:
            cells = list(builtins.map(operator.itemgetter(header.index(name)), rows))
            place = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
            codes = np.fromiter(builtins.map(place.__getitem__, cells), np.int32, len(cells))
            found[name] = (list(place), codes)
        yield found


def _rows(path: Path, reading: Reading) -> Iterator[tuple[list[str], list[list[str]]]]:
    """The header of a text file with some of its rows, again and again."""
    with _text_errors(path), _open_text(path) as file:
        reader = make_reader(file, reading.separator or ",")
        header = next((row for row in reader if row), None)
        if header is None:
            raise ValueError(f"{path}: expected a header and records, got an empty file")
        names = [cell.strip() or f"column {j + 1}" for j, cell in enumerate(header)]
        select(names, reading.names, str(path))
        while rows := list(itertools.islice(reader, _TEXT_BATCH)):
            rows = [row for row in rows if row]
            if set(builtins.map(len, rows)) - {len(header)}:
                row = next(row for row in rows if len(row) != len(header))
                raise ValueError(
                    f"{path}: expected {len(header)} fields as in the header, got {len(row)} in "
                    f"a line before line {reader.line_num + 1}: check its quotes, or the separator "
                    "(--separator)"
                )
            if rows:
                yield names, rows


@contextmanager
def _text_errors(path: Path) -> Iterator[None]:
    """What may be wrong with a text file, in one line."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: expected UTF-8 text, got byte {error.object[error.start]:#04x}: save the "
            "file as UTF-8"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: expected a whole gzip file: {error}") from None
    except csv.Error as error:
        raise ValueError(f"{path}: cannot be read as text in columns: {error}") from None


@contextmanager
def _open_text(path: Path) -> Iterator[io.TextIOWrapper]:
    zipped = path.suffix.lower() == ".gz"
    with gzip.open(path) if zipped else path.open("rb") as file:
        buffered: Any = file
        wide = buffered.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
        yield io.TextIOWrapper(buffered, "utf-16" if wide else "utf-8-sig", newline="")


def _bucketed_text(batches: Iterable[Batch], reading: Reading, path: Path) -> Iterator[Batch]:
    for batch in batches:
        for name in reading.edges:
            labels, codes = batch[name]
            parsed = _parsed(list(labels), name, reading)
            present = np.array([x is not None and x == x for x in parsed], bool)
            if parsed.dtype.kind not in "iuf" and present.any():
                other = next(x for x in parsed if x is not None)
                raise ValueError(f"{path}: {name}: expected numbers, got {other!r}")
            values = np.full(len(parsed), np.nan)
            values[present] = parsed[present].astype(float)
            batch[name] = _bucketed(values[codes], present[codes], name, reading, path)
        yield batch


def _parsed(cells: list[str], name: str, reading: Reading) -> np.ndarray:
    """Distinct cells of a text column as :func:`jgram.data.read_columns` reads them."""
    separator = reading.separator or ","
    marks = (reading.thousands, reading.decimal, reading.missing_values)
    return parse_cells(cells, name, separator, *marks)


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
            with _text_errors(files[0]), _open_text(files[0]) as file:
                separator = find_separator(list(itertools.islice(file, 50)), str(files[0]))
        reading = replace(reading, separator=separator)
    return files, reading, text


# All files ----------------------------------------------------------------------------------


def _counted(raw: Cells, reading: Reading, *, text: bool) -> Counted:
    """Cells with their labels read, without records that lack a value if they are to go."""
    if raw.num_records == 0:
        raise ValueError("expected at least one record, got none")
    places, labels, recoded = {}, {}, {}
    for name, given in raw.labels.items():
        values: Any = objects(given)[:-1]
        if text and name not in reading.edges:
            values = _parsed(list(given), name, reading)
        read = column(values, name)
        labels[name], inverse = factorise(read.values)
        codes = np.full(len(given) + 1, -1, np.int32)
        codes[:-1][read.present] = inverse
        recoded[name] = codes
        places[name] = dict(zip(given, codes[:-1].tolist(), strict=True))
    cells = recode(raw, recoded, labels)
    whole = (cells.codes >= 0).all(axis=1) if reading.drop else np.ones(len(cells.counts), bool)
    kept = Cells(cells.labels, cells.codes[whole], cells.counts[whole])
    if not whole.any():
        raise ValueError(
            f"every one of the {cells.num_records} records lacks a value in "
            f"{', '.join(reading.names)}"
        )
    return Counted(kept, places, cells.num_records - kept.num_records)


class _Sample(NamedTuple):
    """Records with the smallest of random numbers drawn for all: a uniform sample that merges."""

    priorities: np.ndarray
    columns: dict[str, np.ndarray]


def _sample_file(item: tuple[Path, tuple[int, int]], reading: Reading) -> _Sample:
    path, seed = item
    rng = np.random.default_rng(seed)
    kept = _Sample(np.zeros(0), {name: objects(())[:0] for name in reading.names})
    drawn = kept.priorities

    def choose(size: int) -> np.ndarray:
        nonlocal drawn
        priorities = rng.random(size)
        full = len(kept.priorities) == SAMPLED
        rows = np.flatnonzero(priorities < (kept.priorities.max() if full else 2.0))
        drawn = priorities[rows]
        return rows

    for batch in coded_batches(path, reading, choose):
        columns = {name: objects(labels)[codes] for name, (labels, codes) in batch.items()}
        kept = _smallest([kept, _Sample(drawn, columns)])
    return kept


def _smallest(parts: Sequence[_Sample]) -> _Sample:
    priorities = np.concatenate([part.priorities for part in parts])
    kept = np.sort(np.argsort(priorities, kind="stable")[:SAMPLED])
    names = parts[0].columns
    columns = {name: np.concatenate([part.columns[name] for part in parts])[kept] for name in names}
    return _Sample(priorities[kept], columns)


class _Checkpoint(NamedTuple):
    """A folder of what was counted of finished files, each named by all that it depends on."""

    folder: Path | None
    reading: Reading

    @classmethod
    def of(cls, folder: Path | None, reading: Reading) -> "_Checkpoint":
        if folder is not None:
            folder = Path(folder)
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"{folder}: expected a folder for checkpoints, got a file")
            folder.mkdir(parents=True, exist_ok=True)
            for left in folder.glob(".*.arrow"):  # by a run that was killed
                left.unlink(missing_ok=True)
        return cls(folder, reading)

    def identity(self, path: Path) -> str:
        stat, reading = path.stat(), self.reading
        edges = {name: list(values) for name, values in reading.edges.items()}
        parts = ["jgram cells 1", str(path.resolve()), stat.st_size, stat.st_mtime_ns]
        marks = [reading.separator, reading.thousands, reading.decimal, reading.missing_values]
        return json.dumps([*parts, reading.names, *marks, edges])

    def place(self, identity: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.arrow"

    def load(self, path: Path) -> Cells | None:
        """Cells of a file that is as it was; ``None`` where there are none that can be read."""
        if self.folder is None:
            return None
        identity = self.identity(path)
        place = self.place(identity)
        if not place.exists():
            return None
        from pyarrow import ArrowException, ipc

        try:
            with ipc.open_file(io.BytesIO(place.read_bytes())) as file:
                table = file.read_all()
            if (table.schema.metadata or {}).get(b"jgram") != identity.encode():
                return None
            counts = table.column("count").to_numpy().astype(np.int64)
            labels, codes = {}, []
            for j, name in enumerate(self.reading.names):
                array = table.column(f"column {j}").combine_chunks()
                labels[name] = tuple(array.dictionary.to_pylist())
                codes.append(np.asarray(array.indices.fill_null(-1)))
            return Cells(labels, np.stack(codes, axis=1).astype(np.int32), counts)
        except (ArrowException, OSError, KeyError, ValueError):
            return None

    def save(self, path: Path, cells: Cells) -> None:
        """Written whole or not at all."""
        if self.folder is None:
            return
        import pyarrow
        from pyarrow import ipc

        columns = {}
        for j, labels in enumerate(cells.labels.values()):
            codes = pyarrow.array(cells.codes[:, j], mask=cells.codes[:, j] < 0)
            columns[f"column {j}"] = pyarrow.DictionaryArray.from_arrays(
                codes, pyarrow.array(labels)
            )
        columns["count"] = pyarrow.array(cells.counts)
        identity = self.identity(path)
        table = pyarrow.table(columns).replace_schema_metadata({"jgram": identity})
        with (
            whole_file(self.place(identity)) as beside,
            beside.open("wb") as file,
            ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table)
            file.flush()
            os.fsync(file.fileno())
