"""The door for reports: labels of any type become codes, and what cannot be a label is refused.

Past the door wrong labels go wrong silently (``segment_sum`` drops a -1, ``.at[].add`` wraps it,
``bincount`` clips it, a NaN cast to int joins class 0), so whatever can be refused is refused here,
in one line that names the column, the value and the fix.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, time
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from jgram.data.columns import (
    EXACT,
    Column,
    check_aligned,
    column,
    did_you_mean,
    is_missing,
    listing,
    named_columns,
    read,
    refuse_mixed,
    show,
)
from jgram.data.observations import check_observations
from jgram.data.written import Written

__all__ = [
    "EncodedLabels", "EncodedReports", "Merge", "Missing", "check_soft_labels", "encode_labels",
    "encode_reports", "look_alikes", "merging",
]  # fmt: skip

Missing = Literal["raise", "drop", "keep"]
Merge = Mapping[Any, Any] | str | None

_MISSING_WORDS = frozenset(["", "na", "n/a", "#n/a", "nan", "nat", "none", "null", "<na>"])
_MOST_CLASSES = 5000  # a Gram matrix of 200 MB, and minutes for its determinant
_FEW_RECORDS = 20  # so few may all differ by chance
_RARE = 5  # times as frequent is the name that one with a wrong letter is meant to be
_ONE_LETTER, _TWO_LETTERS = 5, 8  # characters of names that may have so many wrong ones
_MOST_COMPARED = 500  # names
_SHOWN = 5


class Similar(NamedTuple):
    """Class names that became others, what is said of that, and names nearly equal to others."""

    merged: Mapping[Any, Any] = MappingProxyType({})
    said: str | None = None
    names: tuple[Any, ...] = ()


NONE_SIMILAR = Similar()


@dataclass(frozen=True)
class EncodedLabels:
    """A report as 0-based codes: ``classes[codes[i]]`` is the label of input row ``rows[i]``."""

    codes: np.ndarray
    classes: tuple[Any, ...]
    rows: np.ndarray
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class EncodedReports:
    """Several reports as codes by name, over one tuple of classes and the same rows.

    With ``missing="keep"`` a missing label has code -1.
    """

    codes: dict[str, np.ndarray]
    classes: tuple[Any, ...]
    rows: np.ndarray
    warnings: tuple[str, ...] = ()
    similar: Similar = NONE_SIMILAR


def encode_labels(labels: Any, *, name: str = "x_hat", **options: Any) -> EncodedLabels:
    """Labels of any type as 0-based int32 codes, their class names kept.

    Args:
        labels: ``[n]`` ints, whole floats, strings, bools or other hashables of one type: a
            sequence, a NumPy or JAX array, a column of any data frame library.
        name: What error messages call the column.
        **options: As :func:`encode_reports`; every record may be a class of its own.

    Returns:
        Codes int32 ``[n]``, the classes, the rows kept, and warnings.

    Raises:
        ValueError: As :func:`encode_reports`.

    Example:
        >>> encoded = encode_labels(["dog", "cat", "dog"])
        >>> encoded.codes, encoded.classes
        (array([1, 0, 1], dtype=int32), ('cat', 'dog'))
    """
    encoded = encode_reports({name: labels}, **{"identifiers": True, **options})
    return EncodedLabels(encoded.codes[name], encoded.classes, encoded.rows, encoded.warnings)


def encode_reports(
    reports: Any,
    *,
    classes: Sequence[Any] | None = None,
    num_classes: int | None = None,
    missing: Missing = "raise",
    abstain: Any = None,
    weights: np.ndarray | None = None,
    merge: Merge = None,
    identifiers: bool = False,
) -> EncodedReports:
    """Several reports of the same records as codes over one common class set.

    The classes are ``classes``, or ``0..num_classes-1``, or the categories that the columns' types
    declare (pandas categorical, polars Enum, bool), reported or not, and all labels in order.

    Args:
        reports: Name to labels ``[n]``, each as in :func:`encode_labels`; or a data frame.
        classes: As in :class:`jgram.Intake`; so are ``num_classes``, ``abstain`` and ``merge``.
        missing: The same; a missing label that is kept has the code -1.
        weights: Frequencies ``[n]``: how many records each one stands for.
        identifiers: Whether every record may be a class of its own, as where classes are listed.

    Raises:
        ValueError: Missing, mixed, fractional, negative, unknown, empty or multi-dimensional
            labels; reports of different lengths, indexes or label types.

    Example:
        >>> encoded = encode_reports({"ann": ["a", "b"], "bob": ["b", None]}, missing="keep")
        >>> encoded.codes["bob"], encoded.classes
        (array([ 1, -1], dtype=int32), ('a', 'b'))
    """
    columns = _checked(reports, missing)
    similar = merging(_counts(columns.values(), weights), merge, classes)
    if similar.merged:
        columns = {name: _renamed(labels, similar.merged) for name, labels in columns.items()}
    keep = np.all([one.present | (missing != "drop") for one in columns.values()], axis=0)
    used = _used(columns, keep)
    if not identifiers and classes is None and num_classes is None:
        for labels in columns.values():
            _refuse_identifiers(labels, weights)
    order = _class_order(columns.values(), used, classes, num_classes, abstain)
    code_of = {label: code for code, label in enumerate(order)}
    codes = {}
    for name, labels in columns.items():
        _refuse_unknown(labels, code_of, classes is not None)
        places = [code_of[label] for label in labels.factors[0]]
        codes[name] = np.array([*places, -1], np.int32)[labels.codes[keep]]
    warnings = [similar.said] if similar.said else []
    warnings += [
        f"{name!r} is read as a class name, not as a missing value"
        for name in order
        if isinstance(name, str) and name.strip().casefold() in _MISSING_WORDS
    ]
    warnings += look_alikes(codes, "reports")
    return EncodedReports(codes, order, np.flatnonzero(keep), tuple(warnings), similar)


def check_soft_labels(
    x_hat: Any, *, name: str = "x_hat", num_classes: int | None = None
) -> np.ndarray:
    """Soft reports ``[n, d]``: each row the probabilities of one record's classes.

    Args:
        x_hat: ``[n, d]`` rows that are non-negative and sum to 1.
        name: What error messages call it.
        num_classes: The expected ``d``.

    Returns:
        The float array ``[n, d]``.

    Raises:
        ValueError: Another shape, missing or negative values, rows that do not sum to 1.

    Example:
        >>> check_soft_labels([[0.9, 0.1], [0.2, 0.8]]).shape
        (2, 2)
    """
    given = read(x_hat, name)
    if given.present.shape[1:] == (1,):
        raise ValueError(
            f"{name}: expected labels [n], or probabilities [n, d] of two classes or more, got "
            f"shape {given.present.shape}: take its only column, [:, 0]"
        )
    values = check_observations(given, name=name, kind="probability").values
    if num_classes not in (None, values.shape[1]):
        raise ValueError(
            f"{name}: expected one column per class, {num_classes}, got {values.shape[1]}"
        )
    return values


def look_alikes(names: Iterable[Any], what: str) -> Iterator[str]:
    """Warnings of names that a reader takes for one another."""
    alike: dict[Any, str] = {}
    for name in names:
        first = alike.setdefault(_alike(name), name)
        if first != name:
            spell = ascii if _look_the_same(first, name) else repr
            how = "look the same" if spell is ascii else "differ only in case or spaces"
            yield f"{what} {spell(first)} and {spell(name)} {how}"


def merging(counts: Mapping[Any, float | int], merge: Merge, kept: Any = None) -> Similar:
    """Which class names become others, and what to say of names that are nearly equal.

    Names are nearly equal that differ in case, spaces, invisible characters, Unicode's several ways
    of writing one character, or the writing of a number; and where one is a fifth as frequent or
    less, in one letter of five or two of eight, the first letter and all digits being the same.

    Args:
        counts: Records of every name.
        merge: ``None`` merges nothing; ``"auto"`` what differs in one letter at most from one more
            frequent name, but for those ``kept``; names to names what it says.
    """
    if isinstance(merge, Mapping):
        names = {str(name): name for name in counts}
        told = {names.get(str(a), a): names.get(str(b), b) for a, b in merge.items()}
        if lost := next((name for name in told.values() if name in told), None):
            raise ValueError(f"merge: expected names to stay, got {show(lost)} merged itself")
        sure, others = {name: other for name, other in told.items() if name in counts}, {}
        if told and not sure:
            first = next(iter(told))
            hint = did_you_mean(first, counts, f"there are {listing(counts)}")
            raise ValueError(f"merge: expected names of classes, got {show(first)}: {hint}")
    elif merge in (None, "auto"):
        sure, others = _near_equal(counts)
        left = sure if merge is None else {x: y for x, y in sure.items() if x in (kept or ())}
        sure, others = {x: y for x, y in sure.items() if x not in left}, left | others
    else:
        raise ValueError(f"merge: expected 'auto' or names by name, got {show(merge)}")
    said = [f"class names are merged: {_pairs(sure, counts, 'into')}"] if sure else []
    said += [f"class names are nearly equal: {_pairs(others, counts, 'beside')}"] if others else []
    return Similar(sure, "; ".join(said) or None, tuple(others))


def _pairs(names: Mapping[Any, Any], counts: Mapping[Any, float | int], word: str) -> str:
    """Names and those they are taken for, with their records."""
    said = []
    for other in dict.fromkeys(names.values()):
        group = [name for name in names if names[name] == other]
        spell = ascii if any(_look_the_same(name, other) for name in group) else repr
        shown = [f"{spell(name)} ({counts.get(name, 0):g})" for name in (*group, other)]
        said.append(f"{', '.join(shown[:-1])} {word} {shown[-1]}")
    more = [f"and {len(said) - _SHOWN} more"] if len(said) > _SHOWN else []
    return "; ".join([*said[:_SHOWN], *more])


def _look_the_same(name: Any, other: Any) -> bool:
    """Whether two names differ, and in nothing that can be seen."""
    texts = isinstance(name, str) and isinstance(other, str) and _alike(name) == _alike(other)
    return texts and name.strip().casefold() != other.strip().casefold()


def _near_equal(counts: Mapping[Any, float | int]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Names and the more frequent ones they are surely meant to be, and perhaps."""
    names = sorted((x for x in counts if isinstance(x, str)), key=lambda x: -counts[x])
    heads: dict[Any, str] = {}
    sure = {x: head for x in names if (head := heads.setdefault(_alike(x), x)) != x}
    total = dict(counts)
    for name, head in sure.items():
        total[head] += counts[name]
    perhaps, compared = {}, [*heads.values()] if len(heads) <= _MOST_COMPARED else []
    for name in compared:
        near = [
            (wrong, other)
            for other in compared
            if _RARE * total[name] <= total[other] and (wrong := _wrong_letters(name, other))
        ]
        if near:
            wrong, other = min(near, key=lambda one: one[0])
            (sure if wrong == len(near) == 1 else perhaps)[name] = other
    return {name: sure.get(other, other) for name, other in sure.items()}, perhaps


def _wrong_letters(name: str, other: str) -> int | None:
    """In how many letters a name is another one with faults, 1 or 2, if it may be."""
    a, b = _alike(name), _alike(other)
    size = min(len(a), len(b)) if isinstance(a, str) and isinstance(b, str) else 0
    allowed = (size >= _ONE_LETTER) + (size >= _TWO_LETTERS)
    if not allowed or abs(len(a) - len(b)) > allowed or a[0] != b[0]:
        return None
    parts = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    wrong = sum(max(j - i, m - k) for kind, i, j, k, m in parts if kind != "equal")
    digits = ["".join(filter(str.isdigit, text)) for text in (a, b)]
    return wrong if wrong <= allowed and digits[0] == digits[1] else None


def _alike(name: Any) -> Any:
    """What names have in common that a reader takes for one another."""
    if not isinstance(name, str):
        return (name,)
    same = unicodedata.normalize("NFKC", name.strip().casefold())
    same = "".join(" " if c.isspace() else c for c in same if unicodedata.category(c)[0] != "C")
    same = " ".join(same.split())
    with suppress(ValueError):
        return number if np.isfinite(number := float(same)) else same
    return same


# ---------------------------------------------------------------------------------------------


def _checked(reports: Any, missing: Missing) -> dict[str, Column]:
    """Reports as columns of labels."""
    given = named_columns(reports, "reports")
    if not isinstance(reports, Mapping) and next(iter(given.values()), None) is reports:
        raise ValueError(
            f"reports: expected names and labels, {{'ann': [...], 'bob': [...]}} or a data frame, "
            f"got {type(reports).__name__}"
        )
    if missing not in get_args(Missing):
        raise ValueError(f"missing: expected 'raise', 'drop' or 'keep', got {missing!r}")
    n = check_aligned(given)
    columns = {name: column(labels, str(name)) for name, labels in given.items()}
    if n == 0:
        raise ValueError(f"{next(iter(columns))}: expected at least one label, got none")
    for labels in columns.values():
        if missing == "raise":
            labels.refuse_missing("labels")
        _refuse_unlike_labels(labels)
    dates = {x for one in columns.values() if one.kind == "date" for x in one.factors[0]}
    days = {x: datetime.combine(x, time()) for x in dates if not isinstance(x, datetime)}
    if 0 < len(days) < len(dates):  # some reports have days, others moments: one class at midnight
        columns = {name: _renamed(labels, days) for name, labels in columns.items()}
    return columns


def _used(columns: Mapping[str, Column], keep: np.ndarray) -> list[Column]:
    """The columns that have a label, labels of one type in all."""
    used = [labels for labels in columns.values() if labels.values.size]
    if not (keep.any() and used):
        n = len(keep)
        raise ValueError(f"{', '.join(columns)}: every one of the {n} records lacks a label")
    if len({labels.kind for labels in used}) > 1:
        together = np.concatenate([labels.values.astype(object) for labels in used])
        refuse_mixed(together, ", ".join(columns))
    return used


def _counts(columns: Iterable[Column], weights: np.ndarray | None) -> dict[Any, float]:
    """How many records have each label, in all columns together."""
    counts: dict[Any, float] = {}
    for labels in columns:
        names, inverse = labels.factors
        copies = None if weights is None else weights[labels.present]
        for name, count in zip(names, np.bincount(inverse, copies, len(names)), strict=True):
            counts[name] = counts.get(name, 0) + float(count)
    return counts


def _renamed(labels: Column, names: Mapping[Any, Any]) -> Column:
    """The column with some labels for others."""
    found = Column.of_codes(
        labels.name, [names.get(name, name) for name in labels.factors[0]], labels.codes
    )
    declared = dict.fromkeys(names.get(name, name) for name in labels.declared)
    return replace(found, declared=tuple(declared), rows=labels.rows)


def _class_order(
    columns: Iterable[Column],
    used: Sequence[Column],
    classes: Sequence[Any] | None,
    num_classes: int | None,
    abstain: Any,
) -> tuple[Any, ...]:
    """The classes, in order; negative labels are classes only where they are listed."""
    whole = isinstance(num_classes, int | np.integer) and not isinstance(num_classes, bool)
    if num_classes is not None and not (whole and num_classes > 0):
        raise ValueError(f"num_classes: expected a positive int, got {num_classes!r}")
    numeric = used[0].kind == "number"
    if classes is not None:
        if isinstance(classes, str | bytes) or not np.iterable(classes):
            raise ValueError(f"classes: expected a list of labels, got {show(classes)}")
        order = tuple(x.item() if isinstance(x, np.generic) else x for x in classes)
        if not order or any(map(is_missing, order)):
            raise ValueError(f"classes: expected labels, got {listing(order) or 'none'}")
    elif num_classes is not None and numeric:
        order = tuple(range(num_classes))
    else:
        declared = dict.fromkeys(label for labels in columns for label in labels.declared)
        seen = [*dict.fromkeys(label for labels in used for label in labels.factors[0])]
        with suppress(TypeError):  # labels without an order stay as they appeared
            seen.sort()
        rest = (x for x in seen if x not in declared and not (numeric and x < 0))
        order = (*declared, *rest)
    if abstain is not None:
        order = (*(label for label in order if label != abstain), abstain)
        num_classes = num_classes and num_classes + 1
    if len(set(order)) < len(order):
        raise ValueError(f"classes: expected distinct labels, got {listing(order)}")
    if num_classes not in (None, len(order)):
        raise ValueError(
            f"num_classes: expected {len(order)}, the classes being {listing(order)}, got "
            f"{num_classes}: list every class, reported or not, in classes="
        )
    return order


def _refuse_unlike_labels(given: Column) -> None:
    """Refuse numbers with fractions, and those that floats cannot tell apart."""
    name, values = given.name, given.values
    if values.dtype.kind != "f":
        return
    if (large := np.isfinite(values) & (np.abs(values.astype(float)) >= EXACT)).any():
        bad = int(np.argmax(large))
        raise ValueError(
            f"{name}: expected class labels, got {values[bad]:.0f} in row {given.row(bad)} "
            "as a float, which may stand for several: read the column as integers or text"
        )
    whole = np.isfinite(values) & (values == np.round(values))
    if not whole.all():
        bad = int(np.argmin(whole))
        raise ValueError(
            f"{name}: expected class labels, got {values[bad]:g} in row {given.row(bad)}: "
            "put numeric reports into bins (jgram.data.quantile_bins, --bins 4)"
        )


def _refuse_unknown(given: Column, code_of: Mapping[Any, int], listed: bool) -> None:
    labels, inverse = given.factors
    unknown = [i for i, label in enumerate(labels) if label not in code_of]
    if not unknown:
        return
    label = labels[unknown[0]]
    row = given.row(np.argmax(inverse == unknown[0]))
    count = int(np.isin(inverse, unknown).sum())
    if listed:
        hint = did_you_mean(label, code_of)
        hint = f": {hint}" if hint else ""
    elif label < 0:
        hint = (
            ": -1 often means 'missing': make it so, list it in classes= if it is a class, or in "
            "abstain= if it says that there is no answer"
        )
    else:
        hint = ": labels are 0-based: raise num_classes, or list every label in classes="
    raise ValueError(
        f"{given.name}: expected labels among {listing(code_of)}, got {show(label)} in row {row} "
        f"({count} such record{'s' * (count != 1)}){hint}"
    )


def _refuse_identifiers(given: Column, weights: np.ndarray | None) -> None:
    """Refuse a column that cannot be a report, before anything is computed."""
    name, size = given.name, len(given.factors[0])
    n = int((given.present if weights is None else weights[given.present]).sum())
    if isinstance(given.writing[0], Written) and size > min(_FEW_RECORDS, n / 2):
        raise ValueError(
            f"{name}: expected class labels, got {show(given.values[0])}, a number: put the "
            "column into bins (--bins 4)"
        )
    if size == n > _FEW_RECORDS:
        raise ValueError(
            f"{name}: expected class labels, got {n} different ones in {n} records: every "
            "record is its own class: an identifier?"
        )
    if size > _MOST_CLASSES:
        raise ValueError(
            f"{name}: expected class labels, at most {_MOST_CLASSES} classes, got {size} in "
            f"{n} records: an identifier, or numbers to put into bins (--bins 4)?"
        )
