"""The door of score, rank, compare and issues: anything in, reports as codes and one binding out.

Everything is checked once, here. The kernel is chosen from the observations alone, never from the
reports: nobody can choose the observation by what it makes of theirs.
"""

import hashlib
import io
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from jgram.approximation import approximate
from jgram.arrays import float64, labelled, number_matrix
from jgram.counted import Counted, Fold, representatives
from jgram.data import (  # fmt: skip
    Reading,
    check_aligned,
    check_observations,
    check_soft_labels,
    count_files,
    drop_missing,
    encode_reports,
    find_leaks,
    prepare_table,
)
from jgram.data.columns import Column, column, read, read_table
from jgram.data.columns import take as take_rows
from jgram.data.counting import draw, over_files, patterns
from jgram.data.files import numbered, opened
from jgram.data.labels import EncodedReports, Merge, Missing
from jgram.data.numbers import ReportKind, are_numbers, cut, look_like_grades, normal_scores
from jgram.data.observations import hardly_repeats
from jgram.data.table import ColumnKind, Scale, is_text
from jgram.data.written import in_words
from jgram.findings import Finding
from jgram.kernels import Delta, Kernel, Linear, RandomFeatures, describe, takes
from jgram.observed import Observed, Pairs, observe
from jgram.streams import Records, Stream
from jgram.table_kernel import TableKernel

__all__ = [
    "AS_GIVEN", "Bound", "Intake", "bind", "bind_files", "bind_observations", "categories",
    "encode", "input_finding", "kind_of_reports", "label_findings", "leak_finding", "with_features",
]  # fmt: skip

FOLDED = 20_000  # records from which categories are folded to distinct ones
RECORDS_AN_OUTCOME = 20  # of joint categories, for the delta kernel to be the default
EXACT_RECORDS = 50_000  # of a table up to which all pairs are looked at; random features beyond
DRAWN = 50_000  # records of files
MOST_PATTERNS = 1 << 14  # combinations of labels that are kept apart
MOST_COPIES = 10  # records equal to one another that are taken for copies
_OBSERVATIONS, _WEIGHTS, _GROUPS, _GOLD = "y", "weights", "groups", "gold"
NUMBERS = ("low", "high")  # what stands for classes where reports are numbers
_UNOBSERVED = "evidence: every report is judged by the other reports"


@dataclass(frozen=True)
class Bound:
    """Reports and observations of the same records, checked.

    Attributes:
        reports: Name to int32 codes ``[n]``, -1 where a label is missing, or soft reports
            ``[n, d]``; numbers as :func:`jgram.arrays.number_matrix` has them.
        classes: The ``d`` class names.
        observed: The observations, bound to their kernel, in float64.
        points: ``[n, k]`` numbers behind the binding; ``None`` for categories.
        description: One line: what the observations were taken for.
        weights: Frequencies ``[n]``, or ``None``.
        groups: Group ``0..n-1`` of each record, or ``None``.
        rows: The rows of the input that the records come from.
        findings: About the input.
        gold: Codes ``[n]`` of right labels, -1 where nobody looked, or right numbers as a matrix;
            ``None`` without gold.
        similar: Names of classes that are nearly equal to more frequent ones.
        stream: All records, where the others are a sample of them (:func:`bind_files`).
        by: By column the slices in words, and which of them each record is in ``[n]``.
        numbers: Whether the reports are numbers.
        is_observed: Whether there is other evidence than the reports and gold.
    """

    reports: dict[str, Any]
    classes: tuple[Any, ...]
    observed: Observed
    points: np.ndarray | None
    description: str
    weights: np.ndarray | None
    groups: np.ndarray | None
    rows: np.ndarray
    findings: tuple[Finding, ...]
    gold: np.ndarray | None = None
    similar: tuple[Any, ...] = ()
    stream: Stream | None = None
    by: Mapping[str, tuple[Sequence[str], np.ndarray]] = field(default_factory=dict)
    numbers: bool = False
    is_observed: bool = True


@dataclass(frozen=True, eq=False)
class Intake:
    """How labels and observations are read, as one value for every front door.

    Attributes:
        classes: All possible labels, in order; the ones reported by default.
        num_classes: Number of classes of labels that are 0-based ints already.
        missing: What becomes of a missing label: ``"keep"`` leaves its record out for that report
            (and compares each pair on the records that both label), ``"drop"`` leaves out a record
            for all where any label or observation lacks a value, ``"raise"`` refuses missing
            labels.
        abstain: The label that says "no answer": it becomes a class of its own.
        merge: ``"auto"`` makes class names that are surely meant to be one another one, names by
            name make what they say (:func:`jgram.data.labels.merging`).
        weights: Frequencies ``[n]``: a weight of 3 counts as three such records.
        groups: Group of each record (patients, days): groups are judged and sampled as a whole.
            Records with exactly equal numbers are a group unless said otherwise.
        kinds: ``"number"``, ``"category"``, ``"text"`` or ``"ignore"`` by column of a table.
        scale: Numbers of a table by ``"rank"``, ``"standard"`` or ``"none"``.
        block_length: For records in order of time, how many are judged together; ``None`` finds a
            length from the autocorrelation of what the reports are paid.
        by: Columns ``[n]`` by name whose values cut the records into slices, for what every report
            keeps in each (:mod:`jgram.slices`).
        report_kind: Reports as ``"categories"`` or ``"numbers"`` (amounts, grades, scores), read by
            the ranks of their values; ``"auto"`` reads fractions, negative numbers and whole
            numbers that lie far apart as numbers.
        mesh: Devices, as from ``jax.make_mesh``, that share all pairs of records under a kernel
            that compares pairs, however many records there are (:func:`jgram.observed.observe`).

    Example:
        >>> weekly = Intake(kinds={"week": "category"}, block_length=4)
        >>> weekly.missing, weekly.scale
        ('keep', 'rank')
    """

    classes: Sequence[Any] | None = None
    num_classes: int | None = None
    missing: Missing = "keep"
    abstain: Any = None
    merge: Merge = None
    weights: Any = None
    groups: Any = None
    kinds: Mapping[str, ColumnKind] | None = None
    scale: Scale = "rank"
    block_length: int | None = 1
    by: Any = None
    report_kind: ReportKind = "auto"
    mesh: Mesh | None = None


AS_GIVEN = Intake()
"""Nothing said: labels and observations are read as they are."""


def bind(
    reports: Mapping[str, Any],
    y: Any,
    kernel: Kernel | str | None = None,
    intake: Intake = AS_GIVEN,
    gold: Any = None,
) -> Bound:
    """Check and encode reports, bind their observations, note what a user should know of both.

    Categories of many records are folded to distinct records with frequencies, unless records are
    in order of time. Without ``y`` nothing is observed; ``gold`` has some right labels.
    """
    labels, y, frequencies, numbers, gold, by, rows = _read_all(reports, y, intake, gold)
    encoded = _encode(labels, intake, frequencies)
    codes, names = encoded.codes, encoded.classes
    known, numeric = None, names == NUMBERS
    if gold is not None:
        known = _gold_numbers(gold) if numeric else _gold_codes(gold, encoded)
    chosen = _Chosen(Linear(), np.zeros((len(rows), 1)), None, _UNOBSERVED, ())
    if y is not None:
        records = None if frequencies is None else float(frequencies.sum())
        chosen = _choose(y, kernel, intake.kinds, intake.scale, records)
    found = [*label_findings(encoded), *map(input_finding, chosen.warnings)]
    found += _missing(codes, frequencies)
    plain = codes
    if numeric:  # numbers [n], NaN where missing
        plain = {x: np.where(z.any(axis=1), z[:, 1] - z[:, 0], np.nan) for x, z in codes.items()}
    found += [leak_finding(*leak) for leak in find_leaks(plain, y or {})]
    every = [*codes.values(), *([] if known is None else [known])]
    alone = numbers is None and intake.block_length == 1
    if alone and (kept := _distinct(every, len(names), by, chosen)) is not None:
        frequencies = np.bincount(kept.place, frequencies).astype(np.float64)
        codes = {name: labels[kept.first] for name, labels in codes.items()}
        known = None if known is None else known[kept.first]
        by = {name: (words, place[kept.first]) for name, (words, place) in by.items()}
        chosen, rows = chosen._replace(values=chosen.values[kept.first]), rows[kept.first]
    observed, description = _observe(chosen, intake.mesh)
    continuous = isinstance(observed, Pairs) or isinstance(observed.kernel, RandomFeatures)
    if numbers is None and continuous and chosen.points is not None:
        numbers = _duplicates(y or {}, chosen.points)
        if numbers is not None:
            copies = len(numbers) - (int(numbers.max()) + 1)
            said = f"{copies} of {len(numbers)} records have exactly the observations of another"
            advice = "equal records are judged and sampled together, since a copy would speak for "
            found.append(Finding("duplicates", "note", said, f"{advice}itself", copies))
    return Bound(
        codes, names, observed, chosen.points, description, frequencies, numbers, rows,
        tuple(found), known, encoded.similar.names, by=by, numbers=numeric,
        is_observed=y is not None,
    )  # fmt: skip


def _read_all(reports: Mapping[str, Any], y: Any, intake: Intake, gold: Any) -> tuple[Any, ...]:
    """Labels, observations, frequencies, groups, gold and slices of the records that stay, read,
    and their rows in the input."""
    for taken in {_OBSERVATIONS, _WEIGHTS, _GROUPS, _GOLD} & set(reports):
        raise ValueError(f"expected another name for the report {taken!r}: it names an argument")
    others = {_OBSERVATIONS: y, _WEIGHTS: intake.weights, _GROUPS: intake.groups}
    given = {**reports, **{name: data for name, data in others.items() if data is not None}}
    slicing = {} if intake.by is None else read_table(intake.by, "by")
    beside = {f"by {name}": column for name, column in slicing.items()}
    beside |= {} if gold is None else {_GOLD: gold}
    rows = np.arange(check_aligned({**given, **beside}))
    columns: dict[str, Any] = {
        name: read_table(data, name) if name == _OBSERVATIONS else read(data, str(name))
        for name, data in given.items()
    }
    if intake.missing == "drop":
        columns, rows = drop_missing(columns)
    y, weights, groups = (columns.pop(name, None) for name in others)
    if groups is not None:
        found = check_observations(groups, name=_GROUPS, kind="categorical")
        if len(found.names) < 2:
            raise ValueError("groups: expected two groups or more, got one: it holds every record")
        groups = found.values
    return (
        columns,
        None if y is None else read_table(y, _OBSERVATIONS),
        _frequencies(weights),
        groups,
        None if gold is None else read(gold, _GOLD).take(rows),
        {name: cut(column.take(rows)) for name, column in slicing.items()},
        rows,
    )


def encode(
    reports: Mapping[str, Any], y: Any = None, intake: Intake = AS_GIVEN, gold: Any = None
) -> tuple[EncodedReports, np.ndarray]:
    """Reports encoded as :func:`bind` does, none folded, and the rows of the records that stay."""
    labels, _, frequencies, *_, rows = _read_all(reports, y, intake, gold)
    return _encode(labels, intake, frequencies), rows


def bind_observations(
    y: Any,
    kernel: Kernel | str | None = None,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    scale: Scale = "rank",
    records: float | int | None = None,
) -> tuple[Observed, np.ndarray | None, str, tuple[str, ...]]:
    """Observations bound: the numbers behind them, one line about both, warnings.

    Without a kernel one category, or several that repeat together, take ``delta``; anything else is
    one table (:func:`jgram.data.prepare_table`) under :class:`jgram.table_kernel.TableKernel`: all
    pairs up to :data:`EXACT_RECORDS` records, its random features beyond. A kernel given is exact.
    ``records`` is how many records the rows stand for, where they are frequencies.
    """
    check_aligned({_OBSERVATIONS: y})
    chosen = _choose(read_table(y, _OBSERVATIONS), kernel, kinds, scale, records)
    observed, description = _observe(chosen)
    return observed, chosen.points, description, chosen.warnings


def bind_files(
    source: Any,
    reports: Sequence[str],
    observations: Sequence[str],
    intake: Intake = AS_GIVEN,
    *,
    gold: str | None = None,
    reading: Reading | None = None,
    **how: Any,
) -> Bound:
    """Files of any size bound for :func:`jgram.rank_reports` and :func:`jgram.score`.

    Labels are counted, observations become numbers by what a sample of 50,000 records is like, and
    their random features are summed and paid in two more passes (:mod:`jgram.streams`).

    Args:
        source: A file, a folder or a glob (:func:`jgram.data.list_files`), or files.
        reports: Columns of labels.
        observations: Columns of any kind.
        intake: How both are read; ``weights`` names a column, and nothing that takes records in
            memory, groups or an order, can be asked for.
        gold: Column of right labels of some records.
        reading: How the files are read.
        **how: ``map``, ``checkpoint`` and ``progress`` of :func:`jgram.data.count_files`.

    Returns:
        A :class:`Bound` of the sample, weighted to be as many as all records.

    Raises:
        ValueError: As :func:`bind`; a column of another kind in some file than in the sample.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        ...     _ = file.write("ann,bob,level\\n" + "a,b,1.5\\na,a,2.5\\nb,b,0.5\\n" * 50)
        ...     file.flush()
        ...     bound = bind_files(file.name, ["ann", "bob"], ["level"])
        >>> float(bound.weights.sum())
        150.0
    """
    whole = intake.groups is not None or intake.block_length != 1 or intake.mesh is not None
    if whole or intake.report_kind == "numbers":
        raise ValueError(
            "expected no groups=, block_length=, mesh= or numbers with files: they take records in "
            "memory: read them with jgram.data.read_columns"
        )
    labels = (*reports, *([gold] if gold else []))
    reading = replace(reading or Reading(), names=labels, drop=False)
    paths, reading, _ = opened(source, reading)
    counted = count_files(paths, reading, **how)
    others = (*observations, *([intake.weights] if intake.weights else []))
    reading = replace(reading, names=(*labels, *others))
    return _Files(reading, counted, tuple(observations), intake).bound(paths, gold, how)


class _Files(NamedTuple):
    """How files become records."""

    reading: Reading
    counted: Counted
    observations: tuple[str, ...]
    intake: Intake
    labels: Any = None
    table: Any = None
    kernel: Any = None

    def bound(self, paths: Any, gold: str | None, how: Mapping[str, Any]) -> Bound:
        """A sample of the records bound, and all of them as a stream."""
        counted, missing = self.counted, self.intake.missing
        table = {name: column(values, name) for name, values in counted.table().items()}
        right = table.pop(gold) if gold else None
        if len(counted.counts) > MOST_PATTERNS:
            raise ValueError(
                f"expected at most {MOST_PATTERNS:,} combinations of labels, got "
                f"{len(counted.counts):,}: rank fewer reports at a time"
            )
        keep = replace(self.intake, missing="keep" if missing == "drop" else missing)
        keep = replace(keep, report_kind="categories")
        encoded = _encode(table, keep, counted.counts.astype(float))
        classes, labels = encoded.classes, np.stack([*encoded.codes.values()])
        drawn = draw(paths, self.reading, counted, size=DRAWN, map=how.get("map", map))
        files, records, description, more = self._replace(labels=labels).fitted(encoded, *drawn)
        over = partial(files.over, paths, how)
        stream = Stream.of(files.kernel, labels, len(classes), records, over)
        pattern, weights = stream.sample.pattern, stream.sample.weights
        held = {name: one[pattern] for name, one in encoded.codes.items()}
        found = [*label_findings(encoded), *more, *_missing(held, weights)]
        if stream.drawn <= 0.999999:
            said = (
                f"all {weights.sum():,.0f} records were paid and counted; a sample of "
                f"{len(pattern):,} tells how they vary within quarters of sureness, whether errors "
                "are shared and how far features are off"
            )
            advice = "copies of records are not looked for: take them out of the files first"
            found.append(Finding("sample", "note", said, advice, len(pattern)))
        known = None if right is None else _gold_codes(right, encoded)[pattern]
        return Bound(
            held, classes, stream.observed, stream.sample.points, description, weights, None,
            np.zeros(0, int), tuple(found), known, encoded.similar.names, stream,
        )  # fmt: skip

    def fitted(
        self, encoded: EncodedReports, pattern: np.ndarray, uniform: np.ndarray, cells: Any
    ) -> tuple["_Files", Records, str, list[Finding]]:
        """With what columns become; the sample, and words about the observations."""
        columns = numbered(cells, np.arange(len(pattern)), self.reading)
        intake = self.intake
        y = {name: columns[name] for name in self.observations}
        leaks = find_leaks({name: one[pattern] for name, one in encoded.codes.items()}, y)
        rows = np.flatnonzero(uniform & self.kept(pattern, columns))
        prepared = prepare_table(take_rows(y, rows), kinds=intake.kinds, scale=intake.scale)
        with float64():
            kernel = TableKernel.of(prepared.points, prepared.table_width)
            observed = approximate(kernel, prepared.points[:1])
        single = jax.device_get(replace(observed.kernel, stands_for=None))
        table = replace(prepared, points=prepared.points[:0])
        files = self._replace(table=table, kernel=replace(single, stands_for=kernel))
        found = [input_finding(said) for said in prepared.warnings]
        found += [leak_finding(*leak) for leak in leaks]
        description = prepared.description + _approximately(observed)
        return files, files.records(pattern, columns), description, found

    def over(self, paths: Any, how: Mapping[str, Any], work: Any) -> Iterator[Any]:
        """What is found of the records of every file."""
        held = io.BytesIO()
        pickler = pickle.Pickler(held)
        pickler.fast = True  # equal things in equal bytes, whichever of them are one object
        pickler.dump((self, work))
        about = hashlib.sha256(held.getvalue()).hexdigest()
        found = partial(self.found, work)
        return over_files(paths, self.reading, found, (_zipped, _unzipped), about=about, **how)

    def found(self, work: Any, path: Any) -> Any:
        """What is found of the records of one file."""

        def batches() -> Iterator[Records]:
            for pattern, cells in patterns(path, self.reading, self.counted):
                try:
                    yield self.records(pattern, numbered(cells, cells.rows, self.reading))
                except ValueError as error:
                    raise ValueError(f"{path}: {error}") from None

        return work(batches())

    def records(self, pattern: np.ndarray, columns: Mapping[str, Column]) -> Records:
        """Records of which all that is needed is there."""
        points = self.table.points_of({name: columns[name] for name in self.observations})
        points = (points - self.kernel.stands_for.center).astype(np.float32)
        weights, name = np.ones(len(pattern)), self.intake.weights
        if name:
            weights = check_observations(columns[name], name=name, kind="numeric").values
        kept = self.kept(pattern, columns) & (weights > 0)
        return Records(pattern[kept], points[kept], weights[kept].astype(float))

    def kept(self, pattern: np.ndarray, columns: Mapping[str, Column]) -> np.ndarray:
        """Which records are not to be left out."""
        kept = pattern >= 0
        if self.intake.missing == "drop":
            kept &= self.labels[:, pattern].min(axis=0) >= 0
            for given in columns.values():
                kept &= given.present.reshape(len(given), -1).all(axis=1)
        return kept


def _zipped(arrays: Sequence[np.ndarray]) -> bytes:
    held = io.BytesIO()
    np.savez(held, *arrays)
    return held.getvalue()


def _unzipped(data: bytes) -> list[np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return list(found.values())


class _Chosen(NamedTuple):
    """A kernel, the values it is bound to, the numbers behind them, and words about them."""

    kernel: Any
    values: np.ndarray
    points: np.ndarray | None
    description: str
    warnings: tuple[str, ...]


def _choose(
    y: Mapping[str, Column], kernel: Any, kinds: Any, scale: Scale, records: float | int | None
) -> _Chosen:
    """The kernel given, or the one that fits the observations, and what it takes of them."""
    plain, read_as, checked = not kinds and scale == "rank", "", None
    if kernel is None and plain and (checked := categories(y, records)) is not None:
        kernel = "delta"
    if kernel is None:
        table = prepare_table(y, kinds=kinds, scale=scale)
        with float64():
            fitted = TableKernel.of(table.points, table.table_width)
        return _Chosen(fitted, table.points, table.points, table.description, table.warnings)
    if not plain:
        raise ValueError("expected kinds= and scale= without kernel=: they prepare its table")
    if checked is None:
        read_as = in_words({x.name: x.writing[0] for x in y.values()})
        with float64():
            checked = check_observations(y, kind=takes(kernel), records=records)
    values, points, size = checked.values, None, f"{len(checked.names)} outcomes"
    if checked.kind != "categorical":
        values = values.astype(np.float64)
        points = values.reshape(len(values), -1)
        size = f"{points.shape[1]} numbers{read_as}"
    return _Chosen(kernel, values, points, size, checked.warnings)


def _observe(chosen: _Chosen, mesh: Mesh | None = None) -> tuple[Observed, str]:
    """The binding, and one line about it."""
    kernel, values, said, points = chosen.kernel, chosen.values, chosen.description, chosen.points
    table = isinstance(kernel, TableKernel) and points is not None
    given: Any = points if table else values
    with float64():
        if table and len(given) > EXACT_RECORDS and mesh is None:
            observed = approximate(kernel, given)
        else:
            observed = observe(kernel, given, mesh=mesh)
    if not table and said != _UNOBSERVED:
        kernel = describe(observed.kernel)
        said = f"observations: {said}; kernel {kernel}; chosen without the reports"
    return observed, f"{said}{_approximately(observed) if table else ''}"


def _approximately(observed: Observed) -> str:
    if not isinstance(observed.kernel, RandomFeatures):
        return ""
    return f"; by {2 * len(observed.kernel.frequencies):,} random features"


def with_features(bound: Bound, num_features: int) -> Bound:
    """The same binding by another number of random features of its kernel."""
    points: Any = bound.points
    with float64():
        observed = approximate(bound.observed.kernel.stands_for, points, num_features)
        before, after = _approximately(bound.observed), _approximately(observed)
        description = bound.description.replace(before, after)
        return replace(bound, observed=observed, description=description)


def _distinct(
    labels: Sequence[Any], num_classes: int, by: Mapping[str, Any], chosen: _Chosen
) -> Fold | None:
    """Distinct records of categories that repeat; ``None`` where there is nothing to fold."""
    n, outcomes = len(chosen.values), chosen.values
    delta = chosen.kernel == "delta" or isinstance(chosen.kernel, Delta)
    if n < FOLDED or not delta or any(one.ndim > 1 for one in labels):
        return None
    sizes = [int(outcomes.max()) + 1, *[num_classes] * len(labels)]
    codes = [outcomes, *labels, *(place for _, place in by.values())]
    kept = representatives(codes, [*sizes, *(len(words) for words, _ in by.values())])
    return kept if 2 * len(kept.first) <= n else None


def categories(y: Any, records: float | int | None = None) -> Any:
    """One category, or several whose joint outcomes repeat; ``None`` for anything else."""
    columns = read_table(y, _OBSERVATIONS)
    try:
        checked = check_observations(columns, records=records)
    except ValueError:
        return None  # mixed, or with gaps: a table
    size = records or len(checked.values)
    if checked.kind != "categorical" or hardly_repeats(checked.names, size):
        return None
    few = RECORDS_AN_OUTCOME * len(checked.names) <= size
    return checked if few or len(columns) == 1 else None


def _encode(
    columns: Mapping[str, Column], intake: Intake, weights: np.ndarray | None
) -> EncodedReports:
    classes, num_classes = intake.classes, intake.num_classes
    soft = {name: column for name, column in columns.items() if column.is_block}
    kind, rows = kind_of_reports(intake), np.arange(len(next(iter(columns.values()))))
    if not soft and are_numbers(columns, kind):
        return EncodedReports(_number_matrices(columns, intake.missing, weights), NUMBERS, rows)
    if not soft:
        asked: Any = {"abstain": intake.abstain, "missing": intake.missing, "merge": intake.merge}
        asked |= {"classes": classes, "num_classes": num_classes, "weights": weights}
        encoded = encode_reports(columns, **asked)
        note = look_like_grades(columns) if kind == "auto" else ()
        return replace(encoded, warnings=(*encoded.warnings, *note))
    if len(soft) < len(columns):
        hard = next(name for name in columns if name not in soft)
        raise ValueError(
            f"expected all reports soft [n, d] or all labels [n], got {hard!r} mixed in"
        )
    d = next(iter(soft.values())).present.shape[1]
    size = len(classes) if classes is not None else (num_classes or d)
    checked = {x: check_soft_labels(one, name=x, num_classes=size) for x, one in soft.items()}
    return EncodedReports(checked, tuple(range(d) if classes is None else classes), rows)


def kind_of_reports(intake: Intake) -> ReportKind:
    """What reports are asked to be: those with listed classes are categories."""
    asked = (intake.classes, intake.num_classes, intake.abstain)
    listed = intake.report_kind == "auto" and any(one is not None for one in asked)
    return "categories" if listed else intake.report_kind


def _number_matrices(
    columns: Mapping[str, Column], missing: Missing, weights: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Reports of numbers as matrices of their normal scores."""
    found = {}
    for name, given in columns.items():
        if missing == "raise":
            given.refuse_missing("numbers")
        with float64():
            found[name] = np.asarray(number_matrix(normal_scores(given, weights), weights))
    return found


def _gold_numbers(gold: Column) -> np.ndarray:
    """Right numbers of some records as a matrix of their normal scores."""
    if not gold.values.size or gold.present.all() or not are_numbers({_GOLD: gold}, "numbers"):
        raise ValueError(
            f"gold: expected the right numbers of some records, got {gold.present.sum()} of "
            f"{len(gold)}: a full column is another report"
        )
    if len(gold.factors[0]) < 2:
        raise ValueError(f"gold: expected numbers that differ, got {gold.values[0]:g} alone")
    return _number_matrices({_GOLD: gold}, "keep", None)[_GOLD]


def _gold_codes(gold: Column, encoded: EncodedReports) -> np.ndarray:
    """Codes of right labels, -1 where nobody looked."""
    codes, names, merges = encoded.codes, encoded.classes, encoded.similar.merged.items()
    merged = {name: other for name, other in merges if name in gold.factors[0]}
    said = (one if one.ndim == 1 else np.flatnonzero(one.any(axis=0)) for one in codes.values())
    used = {names[i] for labels in said for i in np.unique(labels) if i >= 0}
    options: Any = {"classes": names, "missing": "keep", "merge": merged}
    found = encode_reports({_GOLD: gold}, **options).codes[_GOLD]
    seen = [names[i] for i in np.unique(found) if i >= 0]
    if not seen:
        raise ValueError("gold: expected the right labels of some records, got none")
    if (found >= 0).all():
        raise ValueError(
            f"gold: expected a column that is empty but for the records somebody checked, got a "
            f"label for all {len(found)}: a full column is another report"
        )
    if len(seen) < 2:
        raise ValueError(
            f"gold: expected right labels of two classes or more, got {seen[0]!r} alone: have "
            "records at random checked"
        )
    if other := [name for name in seen if name not in used]:
        raise ValueError(f"gold: expected labels that a report uses, got {other[0]!r}")
    return found


def _frequencies(weights: Any) -> np.ndarray | None:
    if weights is None:
        return None
    values = check_observations(weights, name="weights", kind="numeric").values
    if values.ndim != 1 or (values < 0).any():
        raise ValueError(
            f"weights: expected one frequency a record, at least 0, got shape {values.shape} with "
            f"values from {values.min():g} to {values.max():g}"
        )
    values = values.astype(np.float64)
    if values.sum() < 2:
        raise ValueError(
            f"weights: expected frequencies of two records or more in all, got {values.sum():g}: "
            "they say how often a record counts and are not shares"
        )
    return values


def _duplicates(y: Mapping[str, Column], points: np.ndarray) -> np.ndarray | None:
    """Groups of records that are copies: few, and equal in several numbers that hardly repeat.

    What many records share, a zero or a gap, is no copy but a value that many have.
    """
    _, numbers, sizes = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    n, numbers = len(points), numbers.ravel()
    most = min(MOST_COPIES, max(2, n // 20))
    copied = (sizes[numbers] > 1) & (sizes[numbers] <= most)
    if not copied.any():
        return None
    rare = np.zeros(n, int)  # how many numbers of each record hardly any other has
    for given in (part for whole in y.values() for part in whole.parts):
        if given.measured or is_text(given):  # a text is several numbers
            codes, here = given.plain.factors[1], given.plain.present
            equal = np.bincount(codes)[codes]
            alike = (equal >= sizes[numbers[here]]) & (equal <= most)
            rare[here] += (1 if given.measured else 2) * alike
    copied &= rare > 1
    numbers = np.where(copied, numbers, n + np.arange(n))
    return np.unique(numbers, return_inverse=True)[1] if copied.any() else None


def label_findings(encoded: EncodedReports) -> list[Finding]:
    """What there is to know of labels: of class names that are nearly equal, and warnings."""
    similar = encoded.similar
    rest = [input_finding(text) for text in encoded.warnings if text != similar.said]
    if similar.said is None:
        return rest
    advice = "merge= (--merge FILE) of names by name says otherwise"
    if not similar.merged:
        advice = (
            "merge='auto' (--merge auto) merges what is surely meant to be one, a file or dict "
            "others"
        )
    return [Finding("similar names", "note", similar.said, advice), *rest]


def input_finding(text: str) -> Finding:
    """A warning of the door, as a finding."""
    return Finding("input", "note", text, "make sure that this is meant")


def _missing(codes: Mapping[str, np.ndarray], weights: np.ndarray | None) -> Iterator[Finding]:
    """What there is to know of reports that do not label every record."""
    for name, labels in codes.items():
        present = labelled(labels)
        if not present.all():
            copies = np.ones(len(labels)) if weights is None else weights
            size, total = (round(float(x.sum())) for x in (copies[present], copies))
            said = f"{name!r} labels {size} of {total} records"
            advice = "every pair of reports is compared on the records that both label"
            yield Finding("missing labels", "note", said, advice, size)


def leak_finding(report: str, column: str) -> Finding:
    """The finding that an observation is a report (:func:`jgram.data.find_leaks`)."""
    said = f"the observation {column!r} is the report {report!r} under another name"
    advice = "leave the column out: a report scores best against its own copy, whatever it says"
    return Finding("leak", "warning", said, advice)
