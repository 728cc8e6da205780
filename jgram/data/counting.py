"""Files of any size as distinct records with counts, in one pass and bounded memory.

Each file is counted batch by batch with a vocabulary of its own, then all are merged by label
(:mod:`jgram.cells`).

Where files are counted is the business of ``map=``: any callable ``map(function, items)`` that
gives results, or futures with a method ``result``, in the order of the items. The builtin is one,
so is the ``map`` of an executor, and of a Dask client. Finished files can be kept in a folder
(``checkpoint=``), by which a run that was killed goes on.
"""

import builtins
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jgram.cells import Cells, count, merge, objects, recode
from jgram.data.bins import quantile_bins
from jgram.data.checkpoint import Checkpoint, State
from jgram.data.columns import column, drop_missing, factorise, narrow
from jgram.data.streams import Batch, Reading, coded_batches, encoded, opened, parsed

__all__ = ["Counted", "count_batches", "count_files", "quantile_edges", "read_long"]

MOST_CELLS = 2_000_000
SAMPLED = 100_000  # records that quantiles are taken from
PATIENCE = 30.0  # seconds without any worker of a cluster
_MANY = 4096  # cells of a batch that are merged at once
_GO_ON = "start workers; with --checkpoint the same command goes on where it ended"


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
    kept = Checkpoint.of(checkpoint, reading)
    loaded = [kept.load(path) for path in files]
    parts = [part for part in loaded if part is not None]
    waiting = [path for path, part in zip(files, loaded, strict=True) if part is None]
    done = len(files) - len(waiting)
    found = map(functools.partial(_count_file, reading=reading), waiting)
    for path, one in zip(waiting, found, strict=True):
        state, part = _result(one)
        kept.save(path, state, part)
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
    coded = encoded(itertools.chain([first], stream), reading, "the stream")
    return _counted(_count(coded, reading.names), reading, text=False).cells


def quantile_edges(
    source: str | Path | Sequence[Path],
    bins: Mapping[str, int],
    reading: Reading,
    *,
    map: Callable[..., Iterable[Any]] = builtins.map,
    seed: int = 0,
) -> tuple[dict[str, tuple[float, ...]], int]:
    """Inner edges of quantile bins of numeric columns, from a uniform sample of all records.

    Args:
        source: As :func:`count_files`.
        bins: Number of bins by column; columns of text are passed over.
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
    parts = [_result(one) for one in map(work, seeds)]
    sample = _smallest(parts)
    columns = {}
    for name, values in sample.columns.items():
        read = parsed(values.tolist(), name, reading) if text else values
        given = column(read, name)
        columns[name] = given.values if given.present.all() else read
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
        labels = list(place)
        values = parsed(labels, name, reading) if text else narrow(objects(labels)[:-1], name)
        codes = np.concatenate(parts.pop(name)) if parts[name] else np.zeros(0, np.int32)
        if len(codes) == 0:
            raise ValueError(f"{source}: expected at least one record, got none")
        columns[name] = values[codes] if (codes >= 0).all() else objects(values.tolist())[codes]
    return columns


# --------------------------------------------------------------------------------------------


def _count_file(path: Path, reading: Reading) -> tuple[State, Cells]:
    state = State.of(path)
    found = _count(coded_batches(path, reading), reading.names)
    if State.of(path) != state:
        raise ValueError(
            f"{path}: changed while it was counted: run the same again once it is all written"
        )
    return state, found


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
                raise  # the file's own
            waited = 0.0 if client.scheduler_info()["workers"] else waited + PATIENCE / 6
        except Exception as error:
            if not type(error).__module__.startswith("distributed"):
                raise
            raise ValueError(f"the Dask cluster did not count a file: {error}: {_GO_ON}") from None
    raise ValueError(
        f"expected workers to count files, the Dask cluster has had none for {PATIENCE:.0f} "
        f"seconds: {_GO_ON}"
    )


def _count(batches: Iterable[Batch], names: Sequence[str]) -> Cells:
    empty = count({name: np.zeros(0, np.int32) for name in names}, {name: () for name in names})
    parts = [empty]
    for batch in batches:
        codes = {name: batch[name][1] for name in names}
        parts.append(count(codes, {name: batch[name][0] for name in names}))
        if len(parts) >= 64 or len(parts[-1].counts) > _MANY:
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
            f"records, {len(labels):,} values of {name} among them: put numbers into bins "
            "(--bins 4), or leave the column out"
        )
    return [merged]


def _counted(raw: Cells, reading: Reading, *, text: bool) -> Counted:
    """Cells with their labels read, without records that lack a value if they are to go."""
    if raw.num_records == 0:
        raise ValueError("expected at least one record, got none")
    places, labels, recoded = {}, {}, {}
    for name, given in raw.labels.items():
        values: Any = objects(given)[:-1]
        if text and name not in reading.edges:
            values = parsed(list(given), name, reading)
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
