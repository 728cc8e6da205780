"""From a file to columns ready to be judged; imports JAX, so commands import it when they run."""

import atexit
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from jgram.binding import Intake, bind_files, categories
from jgram.cli.options import Engine, Inference, Input, Observed
from jgram.counted import Counted
from jgram.data import (
    Reading,
    check_aligned,
    check_observations,
    count_files,
    difference,
    drop_missing,
    list_files,
    quantile_bins,
    read_columns,
)
from jgram.data.columns import Column, read, time_keys
from jgram.data.counting import quantile_edges
from jgram.data.files import FIRST_ROW, batches, opened, parsed, readable, told
from jgram.data.table import ColumnKind
from jgram.data.written import Written

__all__ = [
    "Beside",
    "Given",
    "Prepared",
    "first_columns",
    "kernel_of",
    "listed",
    "merge_of",
    "prepare",
    "ranked",
    "read_for_judging",
    "read_raw",
    "read_records",
]

LARGE_BYTES, LARGE_RECORDS = 1 << 28, 5_000_000  # of text or Arrow files, of Parquet files
_NOTHING_TO_CUT = "--bins: expected a numeric column to put into bins, got none"


class Given(NamedTuple):
    """What the library judges: its arguments, and a record of where they came from."""

    reports: Any  # labels by name; or Bound, of records that stay in files
    observations: dict[str, Any] | None
    kernel: Any
    options: dict[str, Any]
    source: dict[str, Any]
    columns: dict[str, Any]
    rows: np.ndarray


class Beside(NamedTuple):
    """Columns beside reports and observations: gold, and those that cut records into slices;
    ``whole`` as of :func:`read_records`."""

    gold: str | None = None
    by: Sequence[str] = ()
    whole: str | None = None


NOTHING = Beside()


class Prepared(NamedTuple):
    """Columns ready to be judged.

    Attributes:
        columns: By name, of records or of distinct ones.
        rows: The row of each record, through all files in their order.
        notes: What was done to the records.
        size: The number of records of the files.
        counted: The distinct records with counts, where they were counted.
        reading: How their files were read.
    """

    columns: dict[str, Any]
    rows: np.ndarray
    notes: list[str]
    size: int
    counted: Counted | None = None
    reading: Reading | None = None


def read_raw(source: Input, names: Sequence[str], **marks: str | None) -> dict[str, Column]:
    """Columns as they stand in the file, their rows numbered as a spreadsheet does.

    Args:
        source: The file and how to read it.
        names: Of the columns.
        marks: Of numbers: ``thousands``, ``decimal``.
    """
    return _read_said(source, names, **marks)[0]


def _read_said(
    source: Input, names: Sequence[str], **marks: str | None
) -> tuple[dict[str, Column], list[str]]:
    """The columns, and what was found of their files and may be meant otherwise."""
    reading = Reading(encoding=source.encoding, sheet=source.sheet, separator=source.separator)
    files, reading, _ = opened(source.file, reading)
    missing = source.missing_value or ()
    how = {**source.how, "separator": reading.separator}  # found once
    columns = read_columns(files, names, missing_values=missing, **how, **marks)
    found = {name: _numbered(read(data, name)) for name, data in columns.items()}
    return found, told(files, reading)


def _numbered(one: Column) -> Column:
    return replace(one, rows=np.arange(FIRST_ROW, FIRST_ROW + len(one)))


def first_columns(source: Input) -> dict[str, Column]:
    """The first records of all columns that can be read, of the first file."""
    missing = tuple(source.missing_value or ())
    reading = Reading(missing_values=missing, separator=source.separator)
    reading = replace(reading, encoding=source.encoding, sheet=source.sheet)
    files, reading, text = opened(source.file, reading)
    found = {}
    for name, cells in next(batches(files[0], reading), {}).items():
        with suppress(ValueError):  # structs and the like
            values = parsed(cells, name, reading) if text else cells
            found[name] = _numbered(read(values, name))
    return found


def read_for_judging(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    inference: Inference,
    engine: Engine,
    progress: Callable[[int, int], None],
    beside: Beside = NOTHING,
) -> Given:
    """All that score and rank hand to the library."""
    gold, by, whole = beside
    length, order = inference.block_length, inference.order
    if (length or 1) > 1 and order is None:
        raise ValueError(
            "--block-length: expected --order, the column that puts the records in order of "
            "time, got none"
        )
    about = {"file": str(source.file), "observations": observed.columns, "seed": inference.seed}
    asked = (source, observed, reports, inference, engine, progress, gold)
    bound = None if whole or by else _streamed(*asked)
    if bound is not None:
        notes = ["records stay in the files, which are read again in every pass"]
        options = {"confidence": inference.confidence}
        return Given(bound, None, None, options, {**about, "notes": notes}, {}, np.arange(0))
    others = [name for name in (inference.weight, inference.group, gold, *by) if name]
    whole = "--gold" if gold else whole or (None if observed.columns else "no --observation")
    columns, rows, notes, _, counted, _ = read_records(
        source, observed, reports, engine, progress, order=order, others=others, whole=whole
    )
    labels = {name: columns[name] for name in reports}
    weights = columns[inference.weight] if inference.weight else None
    if counted is not None:
        frequencies = weights
        weights = counted.counts
        if frequencies is not None:
            name = inference.weight or ""
            weights = weights * check_observations(frequencies, name=name, kind="numeric").values
    options = {
        "classes": listed(source.classes, labels[reports[0]]),
        "missing": source.missing,
        "abstain": _as_label(source.abstain, labels[reports[0]]),
        "merge": merge_of(source.merge),
        "groups": columns[inference.group] if inference.group else None,
        "confidence": inference.confidence,
        "weights": weights,
        "report_kind": observed.report_kind,
        "kinds": kinds_of(observed.kind),
        "scale": observed.scale,
        "block_length": length if length or order else 1,
        "by": {name: columns[name] for name in by} or None,
        **({"gold": columns[gold]} if gold else {}),
    }
    kernel = kernel_of(observed.kernel, observed.bandwidth) if counted is None else "delta"
    observations = {name: columns[name] for name in observed.columns} or None
    about = {**about, "notes": notes}
    return Given(labels, observations, kernel, options, about, columns, rows)


def _streamed(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    inference: Inference,
    engine: Engine,
    progress: Callable[[int, int], None],
    gold: str | None,
) -> Any:
    """Large files with numbers among the observations, bound; ``None`` where they are read whole,
    or counted."""
    plain = replace(observed, kind=None, scale="rank")
    ordered = inference.order or inference.group or inference.block_length
    if not observed.columns or ordered or observed.binned or _takes_records(plain):
        return None
    if str(source.file) == "-":  # it can be read once
        return None
    if observed.kernel or not (engine.told or is_large(source.file)):
        return None
    reading = _reading(source, observed, (*reports, *observed.columns))
    files, reading, _ = opened(source.file, reading)
    first = _first(files[0], reading)
    if not any(first[name].measured for name in observed.columns if name in first):
        return None
    labels = first[reports[0]]
    intake = Intake(
        classes=listed(source.classes, labels),
        missing=source.missing,
        abstain=_as_label(source.abstain, labels),
        kinds=kinds_of(observed.kind),
        scale=observed.scale,
        weights=inference.weight,
        merge=merge_of(source.merge),
    )
    held = ExitStack()  # the passes are made when the reports are judged
    atexit.register(held.close)
    how = {"map": held.enter_context(_mapped(engine)), "checkpoint": engine.checkpoint}
    about: Any = {"gold": gold, "reading": reading, "progress": progress, **how}
    return bind_files(files, reports, observed.columns, intake, **about)


def ranked(given: Given, seed: int, weigh: str = "classes") -> Any:
    """The ranking of what was read."""
    import jax

    from jgram import rank_reports

    options = {"key": jax.random.key(seed), "weigh": weigh, **given.options}
    return rank_reports(given.reports, given.observations, given.kernel, **options)


def read_records(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    engine: Engine,
    progress: Callable[[int, int], None],
    *,
    order: str | None = None,
    others: Sequence[str] = (),
    whole: str | None = None,
) -> Prepared:
    """Reports and observations prepared as asked, of files of any size.

    Where the files are large and categories are asked of them, distinct records are counted, which
    says as much; else the records are read, in the order of a column if one is named.

    Args:
        source: The files and how to read them.
        observed: The observations and how to prepare them.
        reports: Columns of labels.
        engine: Who counts, and where what was counted is kept.
        progress: Called with the numbers of counted files and of all.
        order: The column that puts the records in order of time.
        others: Columns that are neither reports nor observations.
        whole: An option that takes the records themselves, if one is given.
    """
    named = [*reports, *observed.columns]
    if twice := next((name for name in named if named.count(name) > 1), None):
        raise ValueError(f"expected distinct columns, got {twice} twice")
    asked = whole or ("--order" if order else _takes_records(observed))
    if engine.told and asked:
        raise ValueError(
            f"{asked}: expected no --checkpoint and no --scheduler, which serve to count distinct "
            f"records: {asked} takes the records themselves"
        )
    wanted = tuple(dict.fromkeys([*named, *others]))
    if not asked and (engine.told or is_large(source.file)):
        found = _read_counted(source, observed, reports, wanted, engine, progress)
        if found is not None:
            return found
    keep = whole == "--gold"  # the library drops records, but not those without gold
    return _read_whole(source, observed, wanted, order, others, keep=keep)


def is_large(source: Path) -> bool:
    """Whether files are so large that their distinct records are counted, where that is enough."""
    size = records = 0
    for path in [] if str(source) == "-" else list_files(source):
        if path.suffix.lower() in (".parquet", ".pq"):
            with readable(path, "a Parquet file"):
                from pyarrow import parquet

                records += parquet.read_metadata(path).num_rows
        else:
            size += path.stat().st_size
        if size > LARGE_BYTES or records > LARGE_RECORDS:
            return True
    return False


def _takes_records(observed: Observed) -> str | None:
    """The first option that takes the records themselves, rather than how often each occurs."""
    asked = {
        "--difference": observed.difference,
        "--kind": observed.kind,
        "--report-kind numbers": observed.report_kind == "numbers",
        "--scale": observed.scale != "rank",
        "--bandwidth": observed.bandwidth,
        f"--kernel {observed.kernel}": observed.kernel not in (None, "delta"),
    }
    return next((option for option, given in asked.items() if given), None)


def _read_counted(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    wanted: tuple[str, ...],
    engine: Engine,
    progress: Callable[[int, int], None],
) -> Prepared | None:
    """Distinct records with counts; ``None`` where the observations are no categories."""
    reading = _reading(source, observed, wanted)
    files, reading, _ = opened(source.file, reading)
    if not observed.binned and observed.kernel is None:
        first = _first(files[0], replace(reading, names=tuple(observed.columns)))
        if any(one.measured for one in first.values()):
            return None
    with _mapped(engine) as map_files:
        reading, notes = _with_bins(files, reading, observed, reports, map_files)
        counted = count_files(
            files, reading, map=map_files, checkpoint=engine.checkpoint, progress=progress
        )
    notes = [*told(files, reading), *notes]
    total = counted.num_records + counted.dropped
    if counted.dropped:
        notes.insert(0, f"dropped {counted.dropped} of {total} records that lack a value")
    columns: dict[str, Any] = counted.table()
    observations = {name: columns[name] for name in observed.columns}
    for name in set(observations) & set(reading.edges):
        columns[name] = observations[name] = observations[name].astype(str).astype(object)
    gaps = any(value is None for values in observations.values() for value in values)
    if gaps or (
        observed.kernel is None and categories(observations, float(counted.num_records)) is None
    ):
        return None
    size = f"{len(files)} files" if len(files) > 1 else "the file"
    notes.append(f"{len(counted.counts)} distinct records counted in {size}")
    return Prepared(columns, np.zeros(0, int), notes, total, counted, reading)


def _reading(source: Input, observed: Observed, names: tuple[str, ...]) -> Reading:
    """How files of any size are read."""
    return Reading(
        names,
        source.separator,
        observed.thousands,
        observed.decimal,
        tuple(source.missing_value or ()),
        drop=source.missing == "drop",
        encoding=source.encoding,
        sheet=source.sheet,
    )


def _first(file: Any, reading: Reading) -> dict[str, Column]:
    """Columns of the first records of a file."""
    return {
        name: read(parsed(values, name, reading) if isinstance(values, list) else values, name)
        for name, values in next(batches(file, reading), {}).items()
    }


@contextmanager
def _mapped(engine: Engine) -> Iterator[Callable[..., Any]]:
    """``map``, or that of a Dask cluster."""
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


def _with_bins(
    files: Sequence[Path],
    reading: Reading,
    observed: Observed,
    reports: Sequence[str],
    map_files: Callable[..., Any],
) -> tuple[Reading, list[str]]:
    """Numbers to put into bins, cut at quantiles of a sample of all records."""
    wanted = dict.fromkeys(reports, observed.bins)
    wanted |= dict.fromkeys(observed.columns, observed.observation_bins or observed.bins)
    bins = {name: number for name, number in wanted.items() if number}
    if not bins:
        return reading, []
    edges, size = quantile_edges(files, bins, reading, map=map_files)
    if not edges:
        raise ValueError(_NOTHING_TO_CUT)
    notes = [
        f"{name}: {bins[name]} bins, cut at {', '.join(f'{edge:g}' for edge in cuts)}, "
        f"quantiles of {size} records drawn with seed 0"
        for name, cuts in edges.items()
    ]
    return replace(reading, edges=edges), notes


def _read_whole(
    source: Input,
    observed: Observed,
    wanted: Sequence[str],
    order: str | None,
    others: Sequence[str],
    *,
    keep: bool = False,
) -> Prepared:
    """Records, in the order of a column if one is named."""
    from jgram.kernels import takes

    columns, said = _read_said(
        source,
        [*wanted, *([order] if order and order not in wanted else [])],
        thousands=observed.thousands,
        decimal=observed.decimal,
    )
    if order is not None:
        columns = _ordered(columns, order, keep=order in wanted)
    takes_numbers = observed.kernel is not None and takes(observed.kernel) != "categorical"
    found = prepare(
        columns,
        observed.columns,
        drop=source.missing == "drop" and not keep,
        others=others,
        changes=observed.difference,
        bins=observed.bins,
        observation_bins=observed.observation_bins or (None if takes_numbers else observed.bins),
    )
    return found._replace(notes=[*said, *found.notes])


def prepare(
    columns: Mapping[str, Any],
    observations: Sequence[str],
    *,
    drop: bool = False,
    others: Sequence[str] = (),
    changes: bool = False,
    bins: int | None = None,
    observation_bins: int | None = None,
) -> Prepared:
    """Columns after dropping, changes and bins, in this order.

    Args:
        columns: Name to column.
        observations: The names of those that are observations.
        drop: Leave out records that lack a value.
        others: The names of those that are neither reports nor observations.
        changes: Take changes from record to record of numeric columns.
        bins: Quantile bins for numeric reports.
        observation_bins: Quantile bins for numeric observations.
    """
    size, notes = check_aligned(columns), []
    prepared, rows = {name: read(data, name) for name, data in columns.items()}, np.arange(size)
    if drop:
        prepared, rows = drop_missing(prepared)
        if len(rows) < size:
            notes.append(f"dropped {size - len(rows)} of {size} records that lack a value")
            if changes:
                raise ValueError(
                    f"{size - len(rows)} records lack a value, and changes cannot be taken across "
                    "them: fill them in, or leave out --difference"
                )
    for name, data in prepared.items():
        wanted = observation_bins if name in observations else bins
        if (wanted or changes) and name not in others and isinstance(data.writing[0], Written):
            data = data.plain
        numeric = name not in others and data.values.dtype.kind in "iuf"
        if changes and numeric:
            rows_left = rows[1:] + FIRST_ROW
            data = replace(read(difference(data, name=name), name), rows=rows_left)
        elif changes:
            data = data.take(np.arange(1, len(data)))
        if wanted and numeric:
            binned = quantile_bins(data, wanted, name=name)
            edges = ", ".join(f"{edge:g}" for edge in binned.edges)
            notes.append(f"{name}: {wanted} bins, cut at {edges}")
            codes = binned.codes.astype(str) if name in observations else binned.codes
            data = replace(read(codes, name), rows=data.rows)
        prepared[name] = data
    if (bins or observation_bins) and not any("bins" in note for note in notes):
        raise ValueError(_NOTHING_TO_CUT)
    return Prepared(prepared, rows[1:] if changes else rows, notes, size)


def kernel_of(name: str | None, bandwidth: float | None) -> Any:
    """A kernel by name (``jgram.kernels.KERNELS``), ``None`` for what fits, or ``RBF``."""
    from jgram.kernels import RBF

    if bandwidth is None:
        return name
    if name not in (None, "rbf"):
        raise ValueError(f"--bandwidth: expected the rbf kernel, got {name}")
    if not 0 < bandwidth < float("inf"):
        raise ValueError(f"--bandwidth: expected a positive number, got {bandwidth:g}")
    return RBF(bandwidth)


def merge_of(given: str | None) -> Any:
    """``auto``, or names by name from a file: columns ``from`` and ``to``, or a JSON object."""
    if given is None or given == "auto":
        return given
    path = Path(given)
    if path.suffix.lower() == ".json":
        with readable(path, "JSON"):
            found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, Mapping):
            return found
        raise ValueError(f"{path}: expected an object of names by name, got {type(found).__name__}")
    pair = [read(cells, name) for name, cells in read_columns(path, ["from", "to"]).items()]
    for one in pair:
        _numbered(one).refuse_missing("names")
    return dict(zip(*(map(str, one.values.tolist()) for one in pair), strict=True))


def kinds_of(given: Sequence[str] | None) -> dict[str, Any] | None:
    """``["zip=category"]`` as ``{"zip": "category"}``."""
    pairs = [text.rpartition("=") for text in given or ()]
    for name, _, kind in pairs:
        if not name or kind not in get_args(ColumnKind):
            raise ValueError(
                f"--kind: expected COLUMN=number, =category, =text or =ignore, got {name or kind!r}"
            )
    return {name: kind for name, _, kind in pairs} or None


def _as_label(text: str | None, labels: Any) -> Any:
    """A label of the command line, as a number where the column holds numbers."""
    found = listed(text, labels)
    return None if found is None else found[0]


def listed(classes: str | None, labels: Any) -> list[Any] | None:
    """Labels listed on the command line, as numbers where the column holds numbers."""
    if classes is None:
        return None
    labels_listed = [label.strip() for label in classes.split(",")]
    if read(labels, "labels").kind != "number":
        return labels_listed
    try:
        return [int(label) for label in labels_listed]
    except ValueError:
        raise ValueError(
            f"--classes: expected whole numbers as in the file, got {classes}"
        ) from None


def _ordered(columns: Mapping[str, Column], by: str, *, keep: bool) -> dict[str, Column]:
    """All columns in the order of one of them, which goes unless it is used otherwise."""
    order = np.argsort(time_keys(columns[by]), kind="stable")
    return {name: data.take(order) for name, data in columns.items() if keep or name != by}
