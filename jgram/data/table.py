"""Any table as one observation: mixed columns made comparable, without a look at the reports.

Numbers become the normal scores of their ranks, categories one-hot codes, dates numbers; every
column then has a mean squared distance of 2 between two records, so that none drowns another. What
says nothing or cannot be compared is left out and named. Nothing here depends on a report: nobody
can choose the observation by what it makes of theirs, and tests of reports stay valid.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from jgram.data.columns import (
    Column,
    check_aligned,
    did_you_mean,
    listing,
    named_columns,
    read_table,
    show,
)
from jgram.data.features import Block, Category, Number, Text
from jgram.data.labels import look_alikes
from jgram.data.observations import hardly_repeats, refuse_unlike_numbers
from jgram.data.written import in_words

__all__ = [
    "GOLD", "LEFT_OUT", "OBSERVATION", "REPORT", "ColumnKind", "PreparedTable", "Role", "Scale",
    "column_roles", "prepare_table",
]  # fmt: skip

ColumnKind = Literal["number", "category", "text", "ignore"]
Scale = Literal["rank", "standard", "none"]
Feature = Number | Category | Text | Block

_MADE = {"category": Category.of, "text": Text.of, "block": Block.of}

_FEW_LEVELS = 10  # integers of so few levels may be codes
_TOO_MANY_LEVELS = 5000
_MUCH_MISSING = 0.3
_UNEVEN = 10.0  # times the median variance of an embedding's dimensions
_FEW_RECORDS = 20

REPORT, GOLD, OBSERVATION, LEFT_OUT = "report", "right labels (gold)", "observation", "left out"
_MOST_CLASSES = 50
_MOSTLY = 0.5  # of the records lack a right label; of the classes are shared
_FEW_NUMBERS = 10  # whole ones that may be codes of classes


@dataclass(frozen=True)
class PreparedTable:
    """A table as numbers: ``points[:, :table_width]`` its columns, the rest its blocks.

    Attributes:
        points: ``float64 [n, k]``. Columns of the table have mean squared distance 2 (one-hot
            columns of a category together); blocks are as they came.
        names: The ``k`` columns.
        table_width: How many columns of ``points`` come from the table.
        description: One line for reports.
        warnings: What was left out, and what may be meant otherwise.
        columns: What each column that is used was found to be, by name, in the order of ``points``.
    """

    points: np.ndarray
    names: tuple[str, ...]
    table_width: int
    description: str
    warnings: tuple[str, ...] = ()
    columns: Mapping[str, Feature] = field(default_factory=dict, repr=False)

    def points_of(self, y: Any, *, name: str = "y") -> np.ndarray:
        """Other records as these were prepared: ranks, levels and texts by what was found here.

        A number that was not there has a score between those of its neighbours, and outside of
        them that of the last; a category that was not there is equally far from all.

        Args:
            y: Columns as :func:`prepare_table` takes them, of the same meaning; others are passed
                over.
            name: What messages call the observations.

        Returns:
            ``float64 [m, k]``; of the same records ``points``.

        Raises:
            ValueError: A column that is not there, or holds values of another kind.

        Example:
            >>> table = prepare_table({"age": [30, 41, 52], "sex": ["f", "m", "f"]})
            >>> table.points_of({"age": [41, 99], "sex": ["m", "x"]})[:, 0].round(1)
            array([0. , 1.2])
        """
        given = read_table(y, name)
        if lacking := [label for label in self.columns if label not in given]:
            raise ValueError(f"{name}: expected columns {listing(lacking)}, got {listing(given)}")
        return np.column_stack([found(given[label]) for label, found in self.columns.items()])


def prepare_table(
    y: Any,
    *,
    name: str = "y",
    kinds: Mapping[str, ColumnKind] | None = None,
    scale: Scale = "rank",
) -> PreparedTable:
    """Mixed columns as one array of comparable numbers, ready for the table kernel.

    A number becomes the normal score of its rank, standardised; missing ones the median, and an
    indicator says where. A category becomes a one-hot code over ``sqrt(1 - sum p^2)``, missing
    cells a category. Bools are categories, dates numbers. Texts of several words that hardly repeat
    become numbers by the pieces of words they share (:mod:`jgram.data.features`). Columns that are
    constant, hold row numbers, or hardly repeat and hold no words are left out and named. An array
    ``[n, k]`` is an embedding and stays as it is; beside columns it stays a block of its own.

    Args:
        y: A data frame of any library, a mapping of names to columns ``[n]`` and blocks
            ``[n, k]``, one column ``[n]``, or an array ``[n, k]``.
        name: What messages call the observations.
        kinds: ``"number"``, ``"category"``, ``"text"`` or ``"ignore"`` by column, where its type is
            not what it seems: ``{"zip": "category", "id": "ignore"}``.
        scale: Of numbers: ``"rank"``, ``"standard"`` (mean 0, variance 1) or ``"none"``.

    Raises:
        ValueError: Options that name no column or no kind, values that fit no kind, nothing left
            to observe.

    Example:
        >>> table = prepare_table({"age": [30, 41, None, 52], "sex": ["f", "m", "f", "m"]})
        >>> table.names
        ('age', 'age missing', 'sex = f', 'sex = m')
        >>> table.description
        'observations: 2 columns (1 number, 1 category), by rank; side by side and whitened; chosen
        without the reports'
    """
    if scale not in get_args(Scale):
        raise ValueError(f"scale: expected {_or(get_args(Scale))}, got {scale!r}")
    named = named_columns(y, name)
    if check_aligned(named) == 0:
        raise ValueError(f"{name}: expected at least one record, got none")
    columns, asked = read_table(named, name), kinds or {}
    found, reasons = _found_kinds(columns, asked, name)
    made = {"number": partial(Number.of, scale=scale), **_MADE}
    order = sorted(found, key=lambda label: found[label] in ("text", "block"))
    features = {label: made[found[label]](columns[label]) for label in order}
    points = {label: feature(columns[label]) for label, feature in features.items()}
    warnings = [f"{label} is left out: it {reason}" for label, reason in reasons.items()]
    warnings += look_alikes(columns, "columns")
    for label, kind in found.items():
        warnings += _remarks(columns[label], kind, points[label], asked=label in asked)
    widths = [len(one.names) for one in features.values() if isinstance(one, Number | Category)]
    return PreparedTable(
        np.column_stack([*points.values()]),
        tuple(part for one in features.values() for part in one.names),
        sum(widths),
        _describe(features.values(), scale),
        tuple(warnings),
        features,
    )


# Kinds --------------------------------------------------------------------------------------


def _found_kinds(
    columns: Mapping[str, Column], asked: Mapping[str, str], name: str
) -> tuple[dict[str, str], dict[str, str]]:
    """What each column is taken for, and why others are left out."""
    for label, kind in asked.items():
        if label not in columns:
            hint = did_you_mean(label, columns, f"there are {listing(columns)}")
            raise ValueError(f"kinds: expected names of columns, got {label!r}: {hint}")
        if kind not in get_args(ColumnKind):
            expected = _or(get_args(ColumnKind))
            raise ValueError(f"kinds: expected {expected} for {label}, got {kind!r}")
    embedded, alone = any(given.is_block for given in columns.values()), len(columns) == 1
    found, reasons = {}, {}
    for label, given in columns.items():
        if asked.get(label) == "ignore":
            continue
        kind, reason = _kind(given, asked.get(label), alone)
        if kind == "text" and embedded and label not in asked:
            reason = "is text, beside an embedding (kinds={...: 'text'} reads it too)"
        if reason is None:
            found[label] = kind
        else:
            reasons[label] = reason
    if not found:
        why = "; ".join(f"{label} {reason}" for label, reason in reasons.items())
        raise ValueError(f"{name}: expected a column that says something, got none: {why}")
    return found, reasons


def _kind(given: Column, asked: str | None = None, alone: bool = False) -> tuple[str, str | None]:
    """What a column is taken for, and why it is left out, if it is."""
    kind = "block" if given.is_block else asked
    kind = kind or ("number" if given.measured else "text" if is_text(given) else "category")
    if kind == "block":
        return kind, None if given.part_names else "has no columns"
    given = given.plain if kind == "number" else given
    n, distinct = len(given.values), given.factors[0]
    if n and asked is None:
        refuse_unlike_numbers(given)
    reason = None
    if not n:
        reason = "holds no value"
    elif len(distinct) == 1 and given.present.all():
        reason = f"holds nothing but {show(distinct[0])}"
    elif asked is None and kind == "number":
        whole = n > _FEW_RECORDS and given.values.dtype.kind in "iu" and given.present.all()
        if whole and not alone and bool(np.all(np.diff(np.sort(given.values)) == 1)):
            reason = "numbers the rows (kinds={...: 'number'} keeps it)"
    elif asked is None and kind == "category":
        as_text, size = "an identifier (kinds={...: 'text'} reads it as text)", len(distinct)
        if 2 < size == n:
            reason = f"never repeats a value: {as_text}"
        elif hardly_repeats(distinct, n):
            reason = f"hardly repeats a value, {size} different ones in {n} records: {as_text}"
        elif size > _TOO_MANY_LEVELS:
            reason = f"has {size} categories: an identifier (kinds={{...: 'category'}} keeps it)"
    return kind, reason


def is_text(given: Column) -> bool:
    """Whether a column holds texts of several words that hardly repeat."""
    if given.kind != "text" or given.declared:
        return False
    distinct, n = given.factors[0], len(given.values)
    words = [len(text.split()) for text in distinct]
    if hardly_repeats(distinct, n):
        return float(np.median(words)) > 2
    return 2 * len(distinct) > n > _FEW_RECORDS and float(np.mean(words)) > 3


# Words --------------------------------------------------------------------------------------


def _remarks(given: Column, kind: str, points: np.ndarray, *, asked: bool) -> list[str]:
    """What may be meant otherwise."""
    if kind == "block":
        spread = points.std(axis=0)
        if len(spread) < 3 or spread.max() <= np.sqrt(_UNEVEN) * float(np.median(spread)):
            return []
        return [
            f"{given.part_names[int(spread.argmax())]} varies far more than the other dimensions "
            "and decides which records are alike: rescale it, or pass the dimensions as columns of "
            "a table"
        ]
    label, values, distinct = given.name, given.values, len(given.factors[0])
    share = float(np.mean(~given.present))
    found = [f"{label}: {share:.0%} of its values are missing"] if share > _MUCH_MISSING else []
    if kind == "category" and 2 * distinct > len(values):
        found.insert(0, f"{label}: {distinct} categories in {len(values)} records hardly repeat")
    whole = values.dtype.kind in "iu" or (values.dtype.kind == "f" and not np.any(values % 1))
    if kind == "number" and not asked and whole and 2 < distinct <= _FEW_LEVELS:
        said = (
            f"{label} holds {distinct} whole numbers and is read as a number: "
            f"kinds={{{label!r}: 'category'}} if they are codes"
        )
        found.insert(0, said)
    return found


def _describe(features: Collection[Feature], scale: str) -> str:
    numbers = sum(isinstance(one, Number) for one in features)
    categories = sum(isinstance(one, Category) for one in features)
    blocks = [
        f"a block of {len(one.names)} numbers"
        if isinstance(one, Block)
        else f"the texts of {one.label} as {len(one.names)} numbers"
        for one in features
        if isinstance(one, Block | Text)
    ]
    if not numbers + categories:
        return f"observations: {' and '.join(blocks)}, as it is; chosen without the reports"
    words = {"rank": "by rank", "standard": "standardised", "none": "as they are"}
    kinds = [_count(numbers, "number", "numbers"), _count(categories, "category", "categories")]
    columns = _count(numbers + categories, "column", "columns")
    table = f"{columns} ({', '.join(filter(None, kinds))})"
    table += f", {words[scale]}" if numbers else ""
    table += f", and {' and '.join(blocks)}" if blocks else ""
    table += in_words({one.label: one.written for one in features if isinstance(one, Number)})
    how = "columns, block and everything in equal parts" if blocks else "side by side and whitened"
    return f"observations: {table}; {how}; chosen without the reports"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}" if number else ""


def _or(options: tuple[str, ...]) -> str:
    return f"{', '.join(map(repr, options[:-1]))} or {options[-1]!r}"


# Roles --------------------------------------------------------------------------------------


class Role(NamedTuple):
    """One column: what it may be, what is in it, or why it is left out, and the share missing."""

    name: str
    role: str
    holds: str
    missing: float


def column_roles(columns: Mapping[str, Column], reports: Collection[str] = ()) -> list[Role]:
    """What every column may be.

    Reports are columns whose class names are alike, of several groups of such columns those of most
    classes; a mostly empty column of the same names has right labels; any other that says something
    is an observation. Some may be known to be ``reports``.
    """
    classes = {name: names for name, one in columns.items() if (names := _classes(one))}
    gaps = {name: 1 - len(one.values) / max(len(one), 1) for name, one in columns.items()}
    group = _most_alike(classes, reports)
    labels = [name for name in group if name in reports or gaps[name] <= _MOSTLY]
    found = []
    for name, one in columns.items():
        if name in group and (len(labels) > 1 or reports):
            role, holds = REPORT if name in labels else GOLD, listing(one.factors[0])
        else:
            reason, holds = _reason(one)
            role, holds = OBSERVATION if reason is None else LEFT_OUT, reason or holds
        found.append(Role(name, role, holds, gaps[name]))
    return found


def _classes(one: Column) -> frozenset[Any]:
    """The values of a column that may be labels; none of any other."""
    if one.is_block or not one.values.size or one.kind not in ("text", "number", "bool"):
        return frozenset()
    names = one.factors[0]
    few = _FEW_NUMBERS if one.kind == "number" else _MOST_CLASSES
    whole = one.kind != "number" or all(isinstance(name, int) for name in names)
    unlike = not whole or (one.kind == "text" and (one.measured or one.writing[1] is not None))
    if unlike or not 1 < len(names) <= min(few, len(one.values) / 2):
        return frozenset()
    return frozenset(names)


def _most_alike(classes: Mapping[str, frozenset[Any]], reports: Collection[str]) -> Sequence[str]:
    """The columns whose classes are those of the reports, or of most columns of most classes."""
    if reports:
        known = frozenset().union(*(classes.get(name, ()) for name in reports))
        return [n for n, x in classes.items() if n in reports or _alike(x, known)]
    groups = [[n for n, x in classes.items() if _alike(x, own)] for own in classes.values()]
    groups = [group for group in groups if len(group) > 1]
    return max(groups, key=lambda group: (len(classes[group[0]]), len(group)), default=[])


def _alike(one: frozenset[Any], other: frozenset[Any]) -> bool:
    return len(one & other) > 1 and len(one & other) >= _MOSTLY * min(len(one), len(other))


def _reason(one: Column) -> tuple[str | None, str]:
    """Why a column cannot be observed, if it cannot, and what it holds."""
    try:
        kind, reason = _kind(one)
        reason = None if reason is None else reason.partition(" (kinds")[0]
    except ValueError as error:
        return str(error).removeprefix(f"{one.name}: "), ""
    if kind == "number":
        dated = {"date": "dates", "duration": "durations"}.get(one.plain.kind, "numbers")
        return reason, dated + in_words({"": one.writing[0]}).replace("; read ", ",")
    if kind == "category":
        return reason, f"categories: {listing(one.factors[0])}"
    return reason, "texts" if kind == "text" else f"{len(one.part_names)} numbers"
