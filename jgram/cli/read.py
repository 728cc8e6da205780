"""From a file to columns ready to be judged; imports JAX, so commands import it when they run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jgram.cli.counted import by_cells, read_cells_of
from jgram.cli.options import Engine, Inference, Input, Missing, Observed
from jgram.data import (
    check_aligned,
    check_observations,
    difference,
    drop_missing,
    quantile_bins,
    read_columns,
)
from jgram.data.dates import moments

__all__ = [
    "Given",
    "Prepared",
    "kernel_of",
    "listed",
    "prepare",
    "read_for_judging",
    "read_prepared",
    "read_raw",
]


class Given(NamedTuple):
    """What the library judges: its arguments, and a record of where they came from."""

    reports: dict[str, Any]
    observations: dict[str, Any]
    kernel: Any
    options: dict[str, Any]
    source: dict[str, Any]


class Prepared(NamedTuple):
    """Columns ready to be judged, the rows of the file they come from, what was done to them."""

    columns: dict[str, Any]
    rows: np.ndarray
    notes: list[str]


def read_raw(source: Input, names: Sequence[str], **marks: str | None) -> dict[str, Any]:
    """Columns as they stand in the file.

    Args:
        source: The file and how to read it.
        names: Of the columns.
        marks: Of numbers: ``thousands``, ``decimal``.
    """
    columns = read_columns(
        source.file,
        names,
        separator=source.separator,
        missing_values=source.missing_value or (),
        **marks,
    )
    for name, column in columns.items():
        _refuse_nested(column, name)
    return columns


def read_for_judging(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    inference: Inference,
    engine: Engine,
    progress: Callable[[int, int], None],
) -> Given:
    """All that score and rank hand to the library."""
    if by_cells(source, observed, engine, inference):
        return _read_counted(source, observed, reports, inference, engine, progress)
    length, order = inference.block_length, inference.order
    if (length or 1) > 1 and order is None:
        raise ValueError(
            "--block-length: expected --order, the column that puts the records in order of "
            "time, got none"
        )
    others = [name for name in (inference.weight, inference.group) if name]
    columns, _, notes = read_prepared(source, observed, reports, order=order, others=others)
    options = {
        "weights": columns[inference.weight] if inference.weight else None,
        "kinds": kinds_of(observed.kind),
        "scale": observed.scale.value,
        "block_length": length if length or order else 1,
    }
    kernel = kernel_of(observed.kernel, observed.bandwidth)
    return _given(source, observed, reports, inference, columns, notes, kernel, options)


def _read_counted(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    inference: Inference,
    engine: Engine,
    progress: Callable[[int, int], None],
) -> Given:
    """The same of files of any size: distinct records with counts."""
    others = [name for name in (inference.weight, inference.group) if name]
    counted, columns, _, notes = read_cells_of(source, observed, reports, others, engine, progress)
    weights = counted.cells.counts
    if inference.weight:
        frequencies = check_observations(
            columns[inference.weight], name=inference.weight, kind="numeric"
        )
        weights = weights * frequencies.values
    options = {"weights": weights}
    return _given(source, observed, reports, inference, columns, notes, "delta", options)


def _given(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    inference: Inference,
    columns: Mapping[str, Any],
    notes: list[str],
    kernel: Any,
    options: Mapping[str, Any],
) -> Given:
    """Columns as the library takes them, with the options that any of them has."""
    labels = {name: columns[name] for name in reports}
    shared = {
        "classes": listed(source.classes, labels[reports[0]]),
        "missing": source.missing.value,
        "abstain": _as_label(source.abstain, labels[reports[0]]),
        "groups": columns[inference.group] if inference.group else None,
        "confidence": inference.confidence,
    }
    about = {
        "file": str(source.file),
        "observations": observed.observation,
        "seed": inference.seed,
        "notes": notes,
    }
    observations = {name: columns[name] for name in observed.observation}
    return Given(labels, observations, kernel, {**shared, **options}, about)


def read_prepared(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    *,
    order: str | None = None,
    others: Sequence[str] = (),
) -> Prepared:
    """Reports and observations, in the order of a column if one is named, prepared as asked."""
    from jgram.kernels import takes

    named = [*reports, *observed.observation]
    if twice := next((name for name in named if named.count(name) > 1), None):
        raise ValueError(f"expected distinct columns, got {twice} twice")
    wanted = list(dict.fromkeys([*reports, *observed.observation, *others]))
    columns = read_raw(
        source,
        [*wanted, *([order] if order else [])],
        thousands=observed.thousands,
        decimal=observed.decimal,
    )
    if order is not None:
        columns = _ordered(columns, order, keep=order in wanted)
    takes_numbers = observed.kernel is not None and takes(observed.kernel) != "categorical"
    return prepare(
        columns,
        observed.observation,
        drop=source.missing is Missing.DROP,
        others=others,
        changes=observed.difference,
        bins=observed.bins,
        observation_bins=observed.observation_bins or (None if takes_numbers else observed.bins),
    )


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
    size, notes, prepared = check_aligned(columns), [], dict(columns)
    rows = np.arange(size)
    if drop:
        prepared, rows = drop_missing(columns)
        if len(rows) < size:
            notes.append(f"dropped {size - len(rows)} of {size} records that lack a value")
            if changes:
                raise ValueError(
                    f"{size - len(rows)} records lack a value, and changes cannot be taken across "
                    "them: fill them in, or leave out --difference"
                )
    for name, column in prepared.items():
        if name in others:
            prepared[name] = column[1:] if changes else column
            continue
        numeric = np.asarray(column).dtype.kind in "iuf"
        wanted = observation_bins if name in observations else bins
        if changes:
            column = difference(column, name=name) if numeric else column[1:]
        if wanted and numeric:
            binned = quantile_bins(column, wanted, name=name)
            edges = ", ".join(f"{edge:g}" for edge in binned.edges)
            notes.append(f"{name}: {wanted} bins, cut at {edges}")
            column = binned.codes.astype(str) if name in observations else binned.codes
        prepared[name] = column
    if (bins or observation_bins) and not any("bins" in note for note in notes):
        raise ValueError("--bins: expected a numeric column to put into bins, got none")
    return Prepared(prepared, rows[1:] if changes else rows, notes)


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


def kinds_of(given: Sequence[str] | None) -> dict[str, Any] | None:
    """``["zip=category"]`` as ``{"zip": "category"}``."""
    pairs = [text.rpartition("=") for text in given or ()]
    for name, _, kind in pairs:
        if not name or kind not in ("number", "category", "ignore"):
            raise ValueError(
                f"--kind: expected COLUMN=number, =category or =ignore, got {name or kind!r}"
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
    if np.asarray(labels).dtype.kind not in "iuf":
        return labels_listed
    try:
        return [int(label) for label in labels_listed]
    except ValueError:
        raise ValueError(
            f"--classes: expected whole numbers as in the file, got {classes}"
        ) from None


def _ordered(columns: Mapping[str, Any], by: str, *, keep: bool) -> dict[str, Any]:
    """All columns in the order of one of them, which goes unless it is used otherwise."""
    order = np.argsort(moments(columns[by], by), kind="stable")
    return {name: np.asarray(data)[order] for name, data in columns.items() if keep or name != by}


def _refuse_nested(column: Any, name: str) -> None:
    """Refuse records that are lists of unlike lengths or structures: they are no one value."""
    kind = str(getattr(column, "type", ""))  # of an Arrow column
    if not kind.startswith(("struct", "map", "list", "large_list")):
        values = np.asarray(column)
        nested = values.dtype.kind == "O" and any(
            isinstance(x, list | dict | tuple) for x in values.flat
        )
        if not nested:
            return
        kind = "lists of unlike lengths or with gaps"
    raise ValueError(f"{name}: expected one value or equally many numbers a record, got {kind}")
