"""Files of any size, counted: which commands' files those are, what they refuse, who counts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from jgram.binding import categories
from jgram.cli.options import Engine, Inference, Input, Missing, Observed, ScaleName
from jgram.data.columns import column
from jgram.data.counting import Counted, count_files, quantile_edges
from jgram.data.dates import is_measured
from jgram.data.streams import Reading, coded_batches, opened, parsed

__all__ = ["by_cells", "is_large", "is_many", "mapped", "read_cells_of", "reading_of"]

LARGE_TEXT, LARGE_PARQUET = 1 << 28, 5_000_000  # bytes of one text file, records of a Parquet file


def is_many(file: Path) -> bool:
    """Whether the argument is a folder, or a glob that no file is called."""
    return file.is_dir() or (not file.exists() and any(c in str(file) for c in "*?["))


def by_cells(
    source: Input, observed: Observed, engine: Engine, inference: Inference | None = None
) -> bool:
    """Whether distinct records are counted, rather than the file read as a whole.

    Folders and globs are; so is one large file, unless an option asks for more than counts, or
    its observations are numbers without ``--bins``, which are read as a whole.

    Raises:
        ValueError: An option that counts of records cannot answer.
    """
    asked = _beyond_counts(observed, inference)
    many = is_many(source.file) or engine.checkpoint is not None or engine.scheduler is not None
    if many and asked:
        raise ValueError(
            f"{asked}: expected one file, read as a whole: folders, globs, --checkpoint and "
            "--scheduler count distinct records, in no order and by category"
        )
    if many or asked or not is_large(source.file):
        return many
    return bool(observed.bins or observed.observation_bins) or not _has_numbers(source, observed)


def _has_numbers(source: Input, observed: Observed) -> bool:
    """Whether an observation is numbers, by the first records of the file."""
    if observed.kernel is not None:
        return False
    reading = reading_of(source, observed, observed.observation)
    (file, *_), reading, text = opened(source.file, reading)
    for name, (labels, _) in next(coded_batches(file, reading), {}).items():
        values = parsed(list(labels), name, reading) if text else list(labels)
        if is_measured(column(values, name), name):
            return True
    return False


def _beyond_counts(observed: Observed, inference: Inference | None) -> str | None:
    """The first option that needs the records themselves."""
    asked = {
        "--order": inference and inference.order,
        "--block-length": inference and (inference.block_length or 1) > 1,
        "--difference": observed.difference,
        "--kind": observed.kind,
        "--scale": observed.scale is not ScaleName.RANK,
        "--bandwidth": observed.bandwidth,
        f"--kernel {observed.kernel}": observed.kernel not in (None, "delta"),
    }
    return next((option for option, given in asked.items() if given), None)


def is_large(file: Path) -> bool:
    """Whether one file is so large that its records are counted, or read by way of codes."""
    suffix = file.suffix.lower()
    if suffix in (".parquet", ".pq") and file.is_file():
        from pyarrow import ArrowInvalid, parquet

        try:
            return parquet.read_metadata(file).num_rows > LARGE_PARQUET
        except (ArrowInvalid, OSError):
            return False  # the reader says why
    text = suffix in (".csv", ".tsv", ".txt", ".gz") and file.is_file()
    return text and file.stat().st_size > LARGE_TEXT


def reading_of(source: Input, observed: Observed | None, names: Sequence[str]) -> Reading:
    """How the options say that files are read."""
    return Reading(
        tuple(names),
        separator=source.separator,
        thousands=observed.thousands if observed else None,
        decimal=observed.decimal if observed else None,
        missing_values=tuple(source.missing_value or ()),
        drop=source.missing is Missing.DROP,
    )


@contextmanager
def mapped(engine: Engine) -> Iterator[Callable[..., Any]]:
    """``map``, or that of a Dask cluster.

    Raises:
        ValueError: Dask is not installed, or no scheduler answers.
    """
    if engine.scheduler is None:
        yield map
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ValueError("--scheduler takes Dask: pip install 'jgram[cluster]'") from None
    try:
        client = Client(engine.scheduler, timeout="15s")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--scheduler: no Dask scheduler answers at {engine.scheduler}: {error}"
        ) from None
    with client:
        yield client.map


def read_cells_of(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    others: Sequence[str],
    engine: Engine,
    progress: Callable[[int, int], None],
) -> tuple[Counted, dict[str, Any], Reading, list[str]]:
    """Distinct records of the files, as columns too, how they were read, what was done to them.

    Raises:
        ValueError: Observations that are no categories, and everything that cannot be read.
    """
    named = [*reports, *observed.observation]
    if twice := next((name for name in named if named.count(name) > 1), None):
        raise ValueError(f"expected distinct columns, got {twice} twice")
    reading = reading_of(source, observed, list(dict.fromkeys([*named, *others])))
    files, reading, _ = opened(source.file, reading)
    with mapped(engine) as map_files:
        reading, notes = _with_bins(files, reading, observed, reports, map_files)
        counted = count_files(
            files, reading, map=map_files, checkpoint=engine.checkpoint, progress=progress
        )
    cells = counted.cells
    if counted.dropped:
        total = cells.num_records + counted.dropped
        notes.insert(0, f"dropped {counted.dropped} of {total} records that lack a value")
    columns: dict[str, Any] = cells.table()
    columns |= {
        name: columns[name].astype(str).astype(object)
        for name in observed.observation
        if name in reading.edges
    }
    _refuse_gaps(counted, observed)
    if observed.kernel is None:
        _refuse_numbers({name: columns[name] for name in observed.observation}, cells.num_records)
    size = f"{len(files)} files" if len(files) > 1 else "the file"
    notes.append(f"{len(cells.counts)} distinct records counted in {size}")
    return counted, columns, reading, notes


def _with_bins(
    files: Sequence[Path],
    reading: Reading,
    observed: Observed,
    reports: Sequence[str],
    map_files: Callable[..., Any],
) -> tuple[Reading, list[str]]:
    """Numbers to put into bins, cut at quantiles of a sample of all records."""
    wanted = dict.fromkeys(reports, observed.bins)
    wanted |= dict.fromkeys(observed.observation, observed.observation_bins or observed.bins)
    bins = {name: number for name, number in wanted.items() if number}
    if not bins:
        return reading, []
    edges, size = quantile_edges(files, bins, reading, map=map_files)
    if not edges:
        raise ValueError("--bins: expected a numeric column to put into bins, got none")
    notes = [
        f"{name}: {bins[name]} bins, cut at {', '.join(f'{edge:g}' for edge in cuts)}, "
        f"quantiles of {size} records drawn with seed 0"
        for name, cuts in edges.items()
    ]
    return replace(reading, edges=edges), notes


def _refuse_gaps(counted: Counted, observed: Observed) -> None:
    """Refuse observations with missing values, which are no category."""
    cells, names = counted.cells, list(counted.cells.labels)
    for name in observed.observation:
        codes = cells.codes[:, names.index(name)]
        if (lacking := int(cells.counts[codes < 0].sum())) > 0:
            raise ValueError(
                f"{name}: {lacking} of {cells.num_records} values missing: leave those records "
                "out with --missing drop, or list the cells that are no gaps"
            )


def _refuse_numbers(columns: dict[str, Any], records: int) -> None:
    """Refuse observations that no count of categories stands for."""
    for name, values in columns.items():
        # Hook: numbers of any size by random features would be streamed from here.
        if is_measured(column(values, name), name):
            raise ValueError(
                f"{name}: expected categories, got numbers, which are not counted one by one at "
                "this size: put them into bins (--bins 8), or say that they are categories "
                "(--kernel delta)"
            )
    if categories(columns, float(records)) is None:
        raise ValueError(
            f"{', '.join(columns)}: expected observations that repeat together, got joint outcomes "
            f"that hardly do in {records} records: take fewer columns, or --kernel delta"
        )
