"""What each column of a table may be: a report, right labels, an observation, or nothing to use."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from jgram.data.columns import Column, listing
from jgram.data.table import column_kind, why_left_out
from jgram.data.written import in_words

__all__ = ["GOLD", "LEFT_OUT", "OBSERVATION", "REPORT", "Role", "column_roles"]

REPORT, GOLD, OBSERVATION, LEFT_OUT = "report", "right labels (gold)", "observation", "left out"
_MOST_CLASSES = 50
_MOSTLY = 0.5  # of the records lack a right label; of the classes are shared
_FEW_NUMBERS = 10  # whole ones that may be codes of classes


class Role(NamedTuple):
    """One column.

    Attributes:
        name: Of the column.
        role: What it may be.
        holds: What is in it, or why it is left out.
        missing: Share of the records without a value.
    """

    name: str
    role: str
    holds: str
    missing: float


def column_roles(columns: Mapping[str, Column], reports: Collection[str] = ()) -> list[Role]:
    """What every column may be.

    Reports are columns whose class names are alike, of several groups of such columns those of most
    classes; a mostly empty column of the same names has right labels; any other that says something
    is an observation. Some may be known to be ``reports``.

    Example:
        >>> ann, bob, age = [*"abab"], [*"bbaa"], [3.5, 4.0, 8.5, 9.0]
        >>> from jgram.data.columns import read
        >>> table = {n: read(x, n) for n, x in {"ann": ann, "bob": bob, "age": age}.items()}
        >>> [(one.name, one.role) for one in column_roles(table)]
        [('ann', 'report'), ('bob', 'report'), ('age', 'observation')]
    """
    classes = {name: names for name, one in columns.items() if (names := _classes(one))}
    gaps = {name: 1 - len(one.values) / max(len(one), 1) for name, one in columns.items()}
    group = _most_alike(classes, reports)
    labels = [name for name in group if name in reports or gaps[name] <= _MOSTLY]
    found = []
    for name, one in columns.items():
        if name in group and (len(labels) > 1 or reports):
            role = REPORT if name in labels else GOLD
            found.append(Role(name, role, listing(one.factors[0]), gaps[name]))
            continue
        reason, holds = _reason(one)
        role = OBSERVATION if reason is None else LEFT_OUT
        found.append(Role(name, role, reason or holds, gaps[name]))
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
        kind = "block" if one.is_block else column_kind(one)
        reason = why_left_out(one, kind, asked=False, alone=False)
        reason = None if reason is None else reason.partition(" (kinds")[0]
    except ValueError as error:
        return str(error).removeprefix(f"{one.name}: "), ""
    if kind == "number":
        dated = {"date": "dates", "duration": "durations"}.get(one.plain.kind, "numbers")
        return reason, dated + in_words({"": one.writing[0]}).replace("; read ", ",")
    if kind == "category":
        return reason, f"categories: {listing(one.factors[0])}"
    return reason, "texts" if kind == "text" else f"{len(one.part_names)} numbers"
