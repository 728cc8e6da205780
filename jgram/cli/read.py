"""From a file to columns ready to be judged; imports JAX, so commands import it when they run."""

import atexit
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from jgram.binding import Intake, bind_files, categories
from jgram.cli.options import Asked, Engine, Input, Observed
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
)
from jgram.data.columns import Column, read, time_keys
from jgram.data.counting import quantile_edges
from jgram.data.files import FIRST_ROW, Batch, batches, numbered, opened, read_files, readable, told
from jgram.data.table import ColumnKind
from jgram.data.written import Written

__all__ = [
    "Given", "Prepared", "first_columns", "kernel_of", "listed", "merge_of", "prepare",
    "ranked", "read_for_judging", "read_raw", "read_records", "reading_of",
]  # fmt: skip

LARGE_BYTES, LARGE_RECORDS = 1 << 28, 5_000_000  # of text or Arrow files, of Parquet files
_NOTHING_TO_CUT = "--bins: expected a numeric column to put into bins, got none"
PLAIN, _NO_ROWS = Observed(), np.zeros(0, int)


class Given(NamedTuple):
    """What the library judges: its arguments, and a record of where they came from."""

    reports: Any  # labels by name; or Bound, of records that stay in files
    observations: Any
    kernel: Any
    options: dict[str, Any]
    source: dict[str, Any]
    rows: np.ndarray


class Prepared(NamedTuple):
    """Columns ready to be judged, of records or of distinct ones, and where they came from."""

    columns: dict[str, Any]
    rows: np.ndarray  # of each record, through all files in their order
    notes: list[str]  # what was done to the records
    size: int  # of all files, in records
    counted: Counted | None = None
    reading: Reading | None = None


def read_raw(source: Input, names: Sequence[str]) -> dict[str, Column]:
    """Columns as they stand in the file, their rows numbered as a spreadsheet does."""
    return _read_said(source, reading_of(source, names))[0]


def reading_of(source: Input, names: Sequence[str] | None, observed: Observed = PLAIN) -> Reading:
    """How files of any size are read."""
    return Reading(
        None if names is None else tuple(names),
        thousands=observed.thousands,
        decimal=observed.decimal,
        missing_values=tuple(source.missing_value or ()),
        drop=source.missing == "drop",
        **source.how,
    )


def _read_said(source: Input, reading: Reading) -> tuple[dict[str, Column], list[str]]:
    """The columns, and what was found of their files and may be meant otherwise."""
    files, reading, _ = opened(source.file, reading)
    found = read_files(files, reading)
    return numbered(found, found.rows, reading), told(files, reading)


def first_columns(
    source: Input, names: Sequence[str] | None = None, observed: Observed = PLAIN
) -> dict[str, Column]:
    """The first records of columns, of all that can be read by default, of the first file."""
    files, reading, _ = opened(source.file, reading_of(source, names, observed))
    first, found = next(batches(files[0], reading), Batch({}, _NO_ROWS, 0)), {}
    for name, cells in first.items():
        with suppress(ValueError) if names is None else nullcontext():  # structs and the like
            found |= numbered({name: cells}, first.rows, reading)
    return found


def _measured(asked: Any) -> bool:
    """Whether there are numbers among the observations."""
    return any(one.measured for one in first_columns(asked, asked.columns, asked).values())


def read_for_judging(
    asked: Asked,
    reports: Sequence[str],
    progress: Callable[[int, int], None],
    *,
    gold: str | None = None,
    by: Sequence[str] = (),
    whole: str | None = None,
) -> Given:
    """All that score and rank hand to the library; ``whole`` is as of :func:`read_records`, ``by``
    are columns that cut records into slices."""
    length, order = asked.block_length, asked.order
    if (length or 1) > 1 and order is None:
        raise ValueError(
            "--block-length: expected --order, the column that puts the records in order of "
            "time, got none"
        )
    about = {"file": str(asked.file), "observations": asked.columns, "seed": asked.seed}
    if not (whole or by or order or asked.group or length) and _stays(asked):
        about["notes"] = ["records stay in the files, which are read again in every pass"]
        labels = first_columns(asked, reports, asked)[reports[0]]
        intake = Intake(weights=asked.weight, **_intake(asked, labels))
        held = ExitStack()  # the passes are made when the reports are judged
        atexit.register(held.close)
        how: Any = {"map": held.enter_context(_mapped(asked)), "checkpoint": asked.checkpoint}
        how |= {"gold": gold, "reading": reading_of(asked, None, asked), "progress": progress}
        bound = bind_files(asked.file, reports, asked.columns, intake, **how)
        return Given(bound, None, None, {"confidence": asked.confidence}, about, _NO_ROWS)
    others = [name for name in (asked.weight, asked.group, gold, *by) if name]
    whole = "--gold" if gold else whole or (None if asked.columns else "no --observation")
    columns, rows, notes, _, counted, _ = read_records(
        asked, reports, progress, order=order, others=others, whole=whole
    )
    labels = {name: columns[name] for name in reports}
    weights = columns[asked.weight] if asked.weight else None
    if counted is not None and weights is not None:
        frequencies = check_observations(weights, name=asked.weight or "", kind="numeric")
        weights = counted.counts * frequencies.values
    elif counted is not None:
        weights = counted.counts
    options = {
        **_intake(asked, labels[reports[0]]),
        "groups": columns[asked.group] if asked.group else None,
        "confidence": asked.confidence,
        "weights": weights,
        "report_kind": asked.report_kind,
        "block_length": length if length or order else 1,
        "by": {name: columns[name] for name in by} or None,
        **({"gold": columns[gold]} if gold else {}),
    }
    kernel = kernel_of(asked.kernel, asked.bandwidth) if counted is None else "delta"
    observations = {name: columns[name] for name in asked.columns} or None
    return Given(labels, observations, kernel, options, {**about, "notes": notes}, rows)


def _intake(asked: Asked, labels: Any) -> dict[str, Any]:
    """How labels and observations are read, as fields of :class:`Intake`."""
    return {
        "classes": listed(asked.classes, labels),
        "missing": asked.missing,
        "abstain": (listed(asked.abstain, labels) or [None])[0],
        "merge": merge_of(asked.merge),
        "kinds": kinds_of(asked.kind),
        "scale": asked.scale,
    }


def _stays(asked: Asked) -> bool:
    """Whether records stay in files: large ones, with numbers among the observations."""
    plain = replace(asked, kind=None, scale="rank")
    if not asked.columns or asked.kernel or asked.binned or _takes_records(plain):
        return False
    if str(asked.file) == "-" or not (asked.told or is_large(asked.file)):
        return False  # standard input can be read once
    return _measured(asked)


def ranked(given: Given, weigh: str = "classes") -> Any:
    """The ranking of what was read."""
    import jax

    from jgram import rank_reports

    options = {"key": jax.random.key(given.source["seed"]), "weigh": weigh, **given.options}
    return rank_reports(given.reports, given.observations, given.kernel, **options)


def read_records(
    asked: Any,
    reports: Sequence[str],
    progress: Callable[[int, int], None],
    *,
    order: str | None = None,
    others: Sequence[str] = (),
    whole: str | None = None,
) -> Prepared:
    """Reports and observations prepared as asked, of files of any size.

    Where the files are large and categories are asked of them, distinct records are counted, which
    says as much; else the records are read, in the order of a column if one is named. ``asked`` are
    options of input, observations and files of any size; ``others`` are columns that are neither
    reports nor observations, ``whole`` is an option that takes the records themselves, if one is
    given; ``progress`` gets the numbers of counted files and of all.
    """
    named = [*reports, *asked.columns]
    if twice := next((name for name in named if named.count(name) > 1), None):
        raise ValueError(f"expected distinct columns, got {twice} twice")
    taking = whole or ("--order" if order else _takes_records(asked))
    if asked.told and taking:
        raise ValueError(
            f"{taking}: expected no --checkpoint and no --scheduler, which serve to count distinct "
            f"records: {taking} takes the records themselves"
        )
    reading = reading_of(asked, tuple(dict.fromkeys([*named, *others])), asked)
    if not taking and (asked.told or is_large(asked.file)):
        found = _read_counted(asked, reports, reading, progress)
        if found is not None:
            return found
    wanted = reading.names or ()
    names = tuple(dict.fromkeys([*wanted, *([order] if order else [])]))
    columns, said = _read_said(asked, replace(reading, names=names))
    if order is not None:
        places = np.argsort(time_keys(columns[order]), kind="stable")
        columns = {name: columns[name].take(places) for name in wanted}
    drop = reading.drop and whole != "--gold"  # the library drops records without a label
    prepared = prepare(columns, asked, drop=drop, others=others)
    return prepared._replace(notes=[*said, *prepared.notes])


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
    return size > LARGE_BYTES or records > LARGE_RECORDS


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
    asked: Any, reports: Sequence[str], reading: Reading, progress: Callable[[int, int], None]
) -> Prepared | None:
    """Distinct records with counts; ``None`` where the observations are no categories."""
    if not asked.binned and asked.kernel is None and _measured(asked):
        return None
    files, reading, _ = opened(asked.file, reading)
    bins = dict.fromkeys(reports, asked.bins)
    bins |= dict.fromkeys(asked.columns, asked.observation_bins or asked.bins)
    bins = {name: number for name, number in bins.items() if number}
    with _mapped(asked) as mapped:
        edges, size = quantile_edges(files, bins, reading, map=mapped) if bins else ({}, 0)
        if bins and not edges:
            raise ValueError(_NOTHING_TO_CUT)
        reading, kept = replace(reading, edges=edges), asked.checkpoint
        counted = count_files(files, reading, map=mapped, checkpoint=kept, progress=progress)
    total = counted.num_records + counted.dropped
    lost = f"dropped {counted.dropped} of {total} records that lack a value"
    notes = [*([lost] if counted.dropped else []), *told(files, reading)]
    notes += [
        f"{_binned(name, bins[name], cuts)}, quantiles of {size} records drawn with seed 0"
        for name, cuts in edges.items()
    ]
    columns: dict[str, Any] = counted.table()
    observations = {name: columns[name] for name in asked.columns}
    for name in set(observations) & set(edges):
        columns[name] = observations[name] = observations[name].astype(str).astype(object)
    if any(value is None for values in observations.values() for value in values):
        return None
    if asked.kernel is None and categories(observations, float(counted.num_records)) is None:
        return None
    where = f"{len(files)} files" if len(files) > 1 else "the file"
    notes.append(f"{len(counted.counts)} distinct records counted in {where}")
    return Prepared(columns, _NO_ROWS, notes, total, counted, reading)


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


def prepare(
    columns: Mapping[str, Any],
    observed: Observed,
    *,
    drop: bool = False,
    others: Sequence[str] = (),
) -> Prepared:
    """Columns after dropping records that lack a value, changes and bins, in this order.

    Numbers of ``others``, which are neither reports nor observations, stay what they are.
    """
    from jgram.kernels import takes

    changes, bins, of_y = observed.difference, observed.bins, observed.observation_bins
    if not of_y and (observed.kernel is None or takes(observed.kernel) == "categorical"):
        of_y = bins
    size, notes = check_aligned(columns), []
    prepared = {name: read(data, name) for name, data in columns.items()}
    prepared, kept = drop_missing(prepared) if drop else (prepared, range(size))
    if lost := size - len(kept):
        notes.append(f"dropped {lost} of {size} records that lack a value")
    if lost and changes:
        raise ValueError(
            f"{lost} records lack a value, and changes cannot be taken across them: fill them in, "
            "or leave out --difference"
        )
    for name, data in prepared.items():
        wanted, numeric = of_y if name in observed.columns else bins, False
        if name not in others:
            written = (wanted or changes) and isinstance(data.writing[0], Written)
            data = data.plain if written else data
            numeric = data.values.dtype.kind in "iuf"
        if changes:
            later = data.take(np.arange(1, len(data)))
            changed = read(difference(data, name=name), name) if numeric else later
            data = replace(changed, rows=later.rows)
        if wanted and numeric:
            binned = quantile_bins(data, wanted, name=name)
            notes.append(_binned(name, wanted, binned.edges))
            codes = binned.codes.astype(str) if name in observed.columns else binned.codes
            data = replace(read(codes, name), rows=data.rows)
        prepared[name] = data
    if (bins or of_y) and not any("bins" in note for note in notes):
        raise ValueError(_NOTHING_TO_CUT)
    rows = next(iter(prepared.values())).rows
    return Prepared(prepared, _NO_ROWS if rows is None else rows - FIRST_ROW, notes, size)


def _binned(name: str, number: int, edges: Iterable[float]) -> str:
    return f"{name}: {number} bins, cut at {', '.join(f'{edge:g}' for edge in edges)}"


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
    pair, _ = _read_said(Input(file=path), Reading(("from", "to")))
    for one in pair.values():
        one.refuse_missing("names")
    return dict(zip(*(map(str, one.values.tolist()) for one in pair.values()), strict=True))


def kinds_of(given: Sequence[str] | None) -> dict[str, Any] | None:
    """``["zip=category"]`` as ``{"zip": "category"}``."""
    pairs = [text.rpartition("=") for text in given or ()]
    for name, _, kind in pairs:
        if not name or kind not in get_args(ColumnKind):
            raise ValueError(
                f"--kind: expected COLUMN=number, =category, =text or =ignore, got {name or kind!r}"
            )
    return {name: kind for name, _, kind in pairs} or None


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
