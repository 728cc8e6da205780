"""Files of any size as distinct records with counts, in one pass and bounded memory.

Each file is counted batch by batch with a vocabulary of its own, then all are merged by label
(:mod:`jgram.counted`). Where that is done is the business of ``map=``: any ``map(function, items)``
that gives results, or futures with a method ``result``, in the order of the items: the builtin, the
``map`` of an executor, or of a Dask client. Finished files can be kept in a folder
(``checkpoint=``), by which a run that was killed goes on.
"""

import builtins
import functools
import hashlib
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jgram.counted import Counted, count, merge, representatives
from jgram.data.columns import DROP_HINT, column, distinct, drop_missing, objects
from jgram.data.files import (
    Batch,
    Reading,
    batches,
    joined,
    numbered,
    opened,
    parsed,
    rows_of,
    select,
)
from jgram.data.numbers import quantile_bins
from jgram.data.written import Written

__all__ = [
    "count_batches", "count_files", "draw", "locate", "over_files", "patterns", "quantile_edges",
]  # fmt: skip

MOST_DISTINCT = 2_000_000
SAMPLED = 100_000  # records that quantiles are taken from
PATIENCE = 30.0  # seconds without any worker of a cluster
_PARTS = 32  # merged at once
_DIGEST = 32  # bytes of a hash at the start of each kept file
_GO_ON = "start workers; with --checkpoint the same command goes on where it ended"

Coded = dict[str, tuple[Sequence[Any], np.ndarray]]
"""Name of a column to its labels, and codes ``[n]`` among them, -1 where missing."""


def count_files(
    source: str | Path | Sequence[Path],
    reading: Reading,
    *,
    map: Callable[..., Iterable[Any]] = builtins.map,
    checkpoint: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Counted:
    """Distinct records of files, and how often each occurs.

    Args:
        source: As :func:`jgram.data.list_files`, or the files themselves, of one format.
        reading: Columns and how to read them.
        map: What runs a function on every file (see the top of this module). Workers of another
            process read the files by the same paths.
        checkpoint: A folder that keeps what was counted of every finished file; files that changed
            since, and anything there that is not as it was written, are counted anew.
        progress: Called with the numbers of finished files and of all files.

    Returns:
        :class:`jgram.counted.Counted`, labels as :func:`jgram.data.read_columns` reads them.

    Raises:
        ValueError: A file that cannot be read, lacks a column, holds other types than another or
            changes while it is counted; more distinct records than categories have; no records.

    Example:
        >>> from importlib.resources import files
        >>> path = files("jgram.data") / "employment.csv"
        >>> counted = count_files(str(path), Reading(("first", "final")))
        >>> counted.num_records
        209
    """
    files, reading, text = opened(source, reading)
    work = functools.partial(_count, reading=reading)
    how: Any = {"map": map, "checkpoint": checkpoint, "progress": progress}
    parts = over_files(files, reading, work, (_packed, _unpacked), **how)
    return _labelled(_merged(parts), reading, source, text=text)


def count_batches(batches: Iterable[Any], names: Sequence[str] | None = None) -> Counted:
    """Distinct records of a stream of Arrow record batches: from DuckDB, Spark, Polars or Flight.

    Args:
        batches: ``pyarrow.RecordBatch`` objects, or anything that iterates over them, such as a
            ``RecordBatchReader``.
        names: The columns wanted; those of the first batch by default.

    Returns:
        :class:`jgram.counted.Counted`.

    Raises:
        ValueError: A column that is not there; more distinct records than categories have; no
            records.

    Example:
        >>> import pyarrow
        >>> batch = pyarrow.record_batch({"ann": ["a", "b", "a"], "crp": [1, 2, 1]})
        >>> counted = count_batches([batch, batch], ["ann", "crp"])
        >>> counted.table()["ann"].tolist(), counted.counts.tolist()
        (['a', 'b'], [4, 2])
    """
    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        raise ValueError("expected at least one record batch, got none")
    reading = Reading(tuple(first.schema.names if names is None else names))

    def arrays(batch: Any) -> dict[str, Any]:
        present = batch.schema.names
        return {n: batch.column(present.index(n)) for n in select(present, names, "the stream")}

    given = builtins.map(arrays, itertools.chain([first], stream))
    found = _count("the stream", reading, given)
    return _labelled(found, reading, "the stream", text=False)


def quantile_edges(
    source: str | Path | Sequence[Path],
    bins: Mapping[str, int],
    reading: Reading,
    *,
    map: Callable[..., Iterable[Any]] = builtins.map,
    seed: int = 0,
) -> tuple[dict[str, tuple[float, ...]], int]:
    """Inner edges of quantile bins of numeric columns, from a uniform sample of all records.

    ``bins`` is their number by column; columns of text are passed over. Also the size of the
    sample: all records where there are few. All else as :func:`count_files`.
    """
    files, reading, _ = opened(source, reading)
    drawn, _, cells = draw(files, reading, None, size=SAMPLED, map=map, seed=seed)
    columns: dict[str, Any] = numbered(cells, np.arange(len(drawn)), reading)
    if reading.drop:
        columns, _ = drop_missing(columns)
    edges = {}
    for name, number in bins.items():
        if isinstance(way := columns[name].writing[0], Written):
            raise ValueError(
                f"{name}: {way.example!r} is a number written with marks: say which (--thousands, "
                "--decimal)"
            )
        if (values := columns[name].values).dtype.kind in "iuf":
            edges[name] = tuple(quantile_bins(values, number, name=name).edges.tolist())
    return edges, len(drawn)


def over_files(
    files: Sequence[Path],
    reading: Reading,
    work: Callable[[Path], Any],
    packing: tuple[Callable[[Any], bytes], Callable[[bytes], Any]],
    *,
    about: str = "",
    map: Callable[..., Iterable[Any]] = builtins.map,
    checkpoint: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Any]:
    """What ``work`` finds of every file, those kept from an earlier run first.

    ``packing`` makes bytes to keep of what is found, and back; ``about`` is all that it depends on
    beside the file and the reading. All else as :func:`count_files`.
    """
    folder = None if checkpoint is None else Path(checkpoint)
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder}: expected a folder for checkpoints, got a file")
        folder.mkdir(parents=True, exist_ok=True)
    kept = [_kept(folder, _identity(path, reading, about)) for path in files]
    yield from (packing[1](data) for data in kept if data is not None)
    waiting = [path for path, data in zip(files, kept, strict=True) if data is None]
    work = functools.partial(_unchanged, work=work, reading=reading, about=about)
    for number, one in enumerate(map(work, waiting), len(files) - len(waiting) + 1):
        identity, part = _result(one)
        if folder is not None:
            _keep(folder, identity, packing[0](part))
        yield part
        if progress is not None:
            progress(number, len(files))


def patterns(
    path: Path, reading: Reading, counted: Counted | None
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Which distinct record every record of a file is ``[n]``, -1 for none, batch by batch, and
    its other columns as they stand there; without ``counted`` all are one, 0."""
    seen: dict[str, Any] = {}
    for batch in batches(path, reading, coded=True):
        if counted is None:
            yield np.zeros(len(next(iter(batch.values()))), int), batch
            continue
        labels = {name: batch.pop(name) for name in counted.labels}
        yield _pattern(_coded(labels, reading, path, seen), counted), batch


def draw(
    files: Sequence[Path],
    reading: Reading,
    counted: Counted | None,
    *,
    size: int,
    map: Callable[..., Iterable[Any]] = builtins.map,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """A uniform sample of ``size`` records, with some of every distinct one among those counted.

    Which distinct record each record ``[n]`` is, whether it belongs to the uniform sample, and its
    other columns; all else as :func:`count_files`.
    """
    about = 0.0, size, 1  # the share drawn, the fewest of each distinct record, how many these are
    if counted is not None:
        kinds = len(counted.counts)
        about = size / counted.num_records, int(np.clip(size // kinds, 1, 16)), kinds
    work = functools.partial(_draw_file, reading=reading, counted=counted, about=about)
    seeds = [(path, (seed, number)) for number, path in enumerate(files)]
    found = [part for each in map(work, seeds) for part in _result(each)]
    drawn, pattern, cells = zip(*_smallest(found, *about)[0], strict=True)
    return np.concatenate(pattern), np.concatenate(drawn) < about[0], joined(cells, files[0])


def _draw_file(item: tuple[Path, Any], reading: Reading, counted: Any, about: Any) -> list[Any]:
    """Candidates of one file: random numbers, distinct records, and the other columns."""
    path, seed = item
    rng, parts, held, limit = np.random.default_rng(seed), [], 0, np.full(about[2], 2.0)
    for pattern, others in patterns(path, reading, counted):
        drawn = rng.random(len(pattern))
        rows = np.flatnonzero((pattern >= 0) & (drawn < limit[pattern]))
        cells = {name: rows_of(values, rows) for name, values in others.items()}
        parts.append((drawn[rows], pattern[rows], cells))
        if sum(len(part[0]) for part in parts) >= 2 * held:
            parts, limit = _smallest(parts, *about)
            held = sum(len(part[0]) for part in parts)
    return parts


def _smallest(
    parts: list[Any], share: float, fewest: int, kinds: int
) -> tuple[list[Any], np.ndarray]:
    """The candidates that stay, and below which number one of each distinct record would."""
    drawn = np.concatenate([np.zeros(0), *(part[0] for part in parts)])
    pattern = np.concatenate([np.zeros(0, int), *(part[1] for part in parts)])
    order = np.lexsort((drawn, pattern))
    rank = np.arange(len(order)) - np.searchsorted(pattern[order], pattern[order])
    stay, last = np.zeros(len(order), bool), order[rank == fewest - 1]
    stay[order] = (rank < fewest) | (drawn[order] < share)
    limit = np.full(kinds, 2.0)
    limit[pattern[last]] = np.maximum(drawn[last], share)
    kept = []
    for part in parts:
        rows, stay = np.flatnonzero(stay[: len(part[0])]), stay[len(part[0]) :]
        cells = {name: rows_of(values, rows) for name, values in part[2].items()}
        kept.append((part[0][rows], part[1][rows], cells))
    return kept, limit


def locate(
    source: str | Path, reading: Reading, counted: Counted, wanted: np.ndarray
) -> Iterator[tuple[Path, int, int]]:
    """The first ``wanted`` records of each distinct one, by another pass over the files.

    Yields the file, the row through all files, and which distinct record, in their order.
    """
    files, reading, _ = opened(source, reading)
    left, start = wanted.copy(), 0
    for path in files:
        end = 0
        for found, batch in patterns(path, reading, counted):
            for i in np.flatnonzero((found >= 0) & (left[found] > 0)).tolist():
                if left[found[i]] > 0:
                    left[found[i]] -= 1
                    yield path, start + int(batch.rows[i]), int(found[i])
            end = batch.end
        start += end


def _pattern(batch: Coded, counted: Counted) -> np.ndarray:
    """Which distinct record each record is, -1 for none."""
    codes = []
    for (name, (labels, given)), known in zip(batch.items(), counted.codes.T, strict=True):
        place = counted.places[name]
        own = np.array([*(place.get(x, len(counted.labels[name])) for x in labels), -1], np.int32)
        codes.append(np.concatenate([known, own[given]]))
    size = len(counted.counts)  # which come first, each of another kind
    place = representatives(codes, [len(x) + 1 for x in counted.labels.values()]).place[size:]
    return np.where(place < size, place, -1)


# Labels and codes -----------------------------------------------------------------------------


def _coded(batch: Mapping[str, Any], reading: Reading, path: Any, seen: dict[str, Any]) -> Coded:
    """Columns of a batch as labels, of a text file as they stand there, and codes."""
    found: Coded = {}
    for name, values in batch.items():
        if name in reading.edges:
            found[name] = _binned(values, name, reading, path)
        elif isinstance(values, list):
            found[name] = distinct(values)
        elif isinstance(values, np.ndarray):
            given = column(values, name)
            found[name] = given.factors[0], given.codes
        else:
            found[name] = _of_arrow(values, name, path, seen)
    return found


def _of_arrow(array: Any, name: str, path: Any, seen: dict[str, Any]) -> Any:
    """Labels and codes of an Arrow array; dictionaries that come again are read once."""
    kind = str(array.type)
    if kind.startswith("run_end_encoded"):
        from pyarrow import compute

        array = compute.call_function("run_end_decode", [array])
    if kind.startswith(("list", "large_list", "fixed_size_list", "struct", "map")):
        raise ValueError(f"{path}: {name}: expected one value a record, got {kind}")
    if not kind.startswith("dictionary"):
        array = array.dictionary_encode()
    if name not in seen or not seen[name][0].equals(array.dictionary):
        given = column(array.dictionary, name)
        seen[name] = array.dictionary, given.factors[0], np.append(given.codes, np.int32(-1))
    _, labels, place = seen[name]
    return labels, place[np.asarray(array.indices.cast("int64").fill_null(-1))]


def _binned(values: Any, name: str, reading: Reading, path: Any) -> tuple[range, np.ndarray]:
    """The bins that numbers fall into."""
    text, where = isinstance(values, list), f"{path}: {name}"
    given = column(parsed(values, name, reading) if text else values, name)
    if given.values.dtype.kind not in "iuf" and len(given.values):
        raise ValueError(f"{where}: expected numbers as in other files, got {given.values[0]!r}")
    if not reading.drop and not given.present.all():
        lacking = np.sum(~given.present)
        raise ValueError(f"{where}: {lacking} values missing, which no bin holds: {DROP_HINT}")
    edges = reading.edges[name]
    bins = np.full(len(given), -1, np.int32)
    bins[given.present] = np.searchsorted(edges, given.values.astype(float), side="left")
    return range(len(edges) + 1), bins


# Counts ---------------------------------------------------------------------------------------


def _unchanged(path: Path, work: Any, reading: Reading, about: str) -> tuple[str, Any]:
    """What is found of a file, and all that it depends on."""
    identity = _identity(path, reading, about)
    found = work(path)
    if _identity(path, reading, about) != identity:
        fix = "run the same again once it is all written"
        raise ValueError(f"{path}: changed while it was read: {fix}")
    return identity, found


def _count(
    path: Any, reading: Reading, given: Iterable[Mapping[str, Any]] | None = None
) -> Counted:
    """Distinct records of a file, or of the batches given."""
    none, seen = np.zeros(0, np.int32), {}
    given = batches(path, reading, coded=True) if given is None else given
    parts = (count(_coded(batch, reading, path, seen)) for batch in given)
    return _merged([count({name: ((), none) for name in reading.names or ()})], parts)


def _merged(*parts: Iterable[Counted]) -> Counted:
    """All parts as one, many at a time, refused where they are no categories."""
    held: list[Counted] = []
    for part in itertools.chain(*parts):
        held.append(part)
        if len(held) < _PARTS and sum(len(part.counts) for part in held) <= MOST_DISTINCT:
            continue
        held = [merge(held)]
        if len(held[0].counts) > MOST_DISTINCT:
            name, labels = max(held[0].labels.items(), key=lambda item: len(item[1]))
            raise ValueError(
                f"{name}: expected categories that repeat, got more than {MOST_DISTINCT:,} "
                f"distinct records, {len(labels):,} values of {name} among them: put numbers into "
                "bins (--bins 4), or leave the column out"
            )
    return merge(held)


def _result(one: Any) -> Any:
    """What a ``map`` gave: a result, or the future of one, of a cluster that may have died."""
    client = getattr(one, "client", None)
    if client is None:
        return one.result() if hasattr(one, "result") else one
    waited = 0.0
    while waited < PATIENCE:
        try:
            return one.result(timeout=PATIENCE / 6)
        except TimeoutError:
            if one.done():
                return one.result()  # or the file's own error
            waited = 0.0 if client.scheduler_info()["workers"] else waited + PATIENCE / 6
        except Exception as error:
            if not type(error).__module__.startswith("distributed"):
                raise
            raise ValueError(f"the Dask cluster did not count a file: {error}: {_GO_ON}") from None
    none = f"the Dask cluster has had none for {PATIENCE:.0f} seconds"
    raise ValueError(f"expected workers to count files, {none}: {_GO_ON}")


def _labelled(raw: Counted, reading: Reading, source: Any, *, text: bool) -> Counted:
    """Records with their labels read, without those that lack a value if they are to go."""
    if raw.num_records == 0:
        raise ValueError(f"{source}: expected at least one record, got none")
    places, columns = {}, {}
    for (name, given), own in zip(raw.labels.items(), raw.codes.T, strict=True):
        used = np.setdiff1d(own, [-1])
        kept = [given[i] for i in used]
        plain = text and name not in reading.edges
        read = column(parsed(kept, name, reading) if plain else objects(kept), name)
        place = np.full(len(given) + 1, -1, np.int32)
        place[used] = read.codes
        columns[name] = read.factors[0], place[own]
        places[name] = dict(zip(kept, place[used].tolist(), strict=True))
    found = count(columns, raw.counts)
    whole = (found.codes >= 0).all(axis=1) | (not reading.drop)
    if not whole.any():
        raise ValueError(
            f"every one of the {raw.num_records} records lacks a value in {', '.join(columns)}"
        )
    dropped = int(found.counts[~whole].sum())
    return Counted(found.labels, found.codes[whole], found.counts[whole], places, dropped)


# Finished files -------------------------------------------------------------------------------


def _identity(path: Path, reading: Reading, about: str = "") -> str:
    """All that what is found of a file depends on."""
    stat = path.stat()
    parts = ["jgram counted 4", str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ino]
    return json.dumps([*parts, {**vars(reading), "drop": None}, about])


def _hash(identity: str, data: bytes = b"") -> bytes:
    return hashlib.blake2b(identity.encode() + data, digest_size=_DIGEST).digest()


def _place(folder: Path, identity: str) -> Path:
    return folder / f"{_hash(identity).hex()[:32]}.arrow"


def _kept(folder: Path | None, identity: str) -> bytes | None:
    """What was kept of a file that is as it was; ``None`` where that is not there, or damaged."""
    if folder is None or not (place := _place(folder, identity)).is_file():
        return None
    data = place.read_bytes()
    return data[_DIGEST:] if _hash(identity, data[_DIGEST:]) == data[:_DIGEST] else None


def _keep(folder: Path, identity: str, data: bytes) -> None:
    """Kept with a hash, so that half of it is as good as nothing."""
    place = _place(folder, identity)
    try:
        place.unlink(missing_ok=True)  # a link that somebody planted there is not followed
        with place.open("xb") as file:
            file.write(_hash(identity, data) + data)
    except OSError as error:
        place.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(place)) from None


def _unpacked(data: bytes) -> Counted:
    from pyarrow import ipc

    with ipc.open_file(io.BytesIO(data)) as file:
        table = file.read_all()
    *arrays, counts = (column.combine_chunks() for column in table.columns)
    labels = [tuple(array.dictionary.to_pylist()) for array in arrays]
    codes = np.stack([np.asarray(array.indices.fill_null(-1)) for array in arrays], axis=1)
    named = dict(zip(table.column_names, labels, strict=False))
    return Counted(named, codes.astype(np.int32), counts.to_numpy().astype(np.int64))


def _packed(counted: Counted) -> bytes:
    import pyarrow
    from pyarrow import ipc

    arrays = [
        pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, mask=codes < 0), list(labels))
        for codes, labels in zip(counted.codes.T, counted.labels.values(), strict=True)
    ]
    names, payload = [*counted.labels, "count"], io.BytesIO()
    table = pyarrow.table([*arrays, pyarrow.array(counted.counts)], names)
    with ipc.new_file(payload, table.schema) as writer:
        writer.write_table(table)
    return payload.getvalue()
