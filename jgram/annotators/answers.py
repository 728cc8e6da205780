"""Who answered what: the long form, one entry an answer.

In words. Answers are three columns of equal length: which item, which annotator, which label. Where
an annotator saw an item and declined to label it, that is an answer too, the *abstention*, coded as
one more outcome after the classes: a labelling function that only ever votes "spam" says something
by its silence. Items nobody was asked about by an annotator take no memory.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from jgram.data import Reading, check_aligned, drop_missing, encode_labels
from jgram.data.columns import Column, distinct, read
from jgram.data.files import Batch, batches, joined, numbered, opened, rows_of, shared
from jgram.data.labels import EncodedLabels, Merge, merging

__all__ = [
    "Answers",
    "answers_from_columns",
    "answers_from_files",
    "answers_from_matrix",
    "as_answers",
    "consistencies",
    "draw_answers",
    "merged",
    "tally",
]

MOST = 10_000_000  # answers held of files
_ALL = 1 << 64  # above every hash
LARGEST = 1 << 28  # entries of all confusion matrices
Repeats = Literal["refuse", "first", "last", "majority"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers in long form, sorted by item and, within an item, by annotator.

    Attributes:
        item: ``[n]`` int32 codes of the items.
        annotator: ``[n]`` int32 codes of the annotators.
        label: ``[n]`` int32 codes of the classes; ``len(classes)`` is an abstention.
        items: Names by code.
        annotators: Names by code.
        classes: Names by code.
        agreed: ``[n]``, where an annotator was asked several times about the item, the share of
            pairs of those answers that are the same, else NaN; ``None`` where nobody was.
        answered: The number of all answers, where these are those of items drawn at random.
    """

    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    items: tuple[Any, ...]
    annotators: tuple[Any, ...]
    classes: tuple[Any, ...]
    agreed: np.ndarray | None = None
    answered: int | None = None


def answers_from_columns(
    item: Any,
    annotator: Any,
    label: Any,
    *,
    classes: Sequence[Any] | None = None,
    repeats: Repeats = "refuse",
    abstain: Iterable[Any] = (),
    missing: Literal["raise", "drop"] = "raise",
) -> Answers:
    """The columns of a long table, one row an answer, with all names kept.

    Args:
        item: ``[n]`` names of any type.
        annotator: ``[n]`` names of any type.
        label: ``[n]`` labels of any type.
        classes: All possible labels, in order.
        repeats: What to do where one annotator gave one item different labels: ``"refuse"`` the
            table, keep the ``"first"``, the ``"last"`` or the ``"majority"`` (of equally frequent
            ones the first). However often asked, an annotator has one vote an item; how often the
            repeats agree is kept as ``agreed``.
        abstain: Labels that mean "saw it and did not label it".
        missing: ``"drop"`` leaves out rows in which anything is missing.

    Returns:
        :class:`Answers`.

    Raises:
        ValueError: Columns that do not line up, missing or mixed values, labels outside
            ``classes``, an abstention that never occurs, repeats that contradict each other.

    Example:
        >>> answers = answers_from_columns(
        ...     ["i", "i", "k", "k"], ["ann", "bob", "bob", "ann"], ["yes", "no", "no", "skip"],
        ...     abstain=["skip"],
        ... )
        >>> answers.annotators, answers.classes, answers.label
        (('ann', 'bob'), ('no', 'yes'), array([1, 0, 2, 0], dtype=int32))
    """
    _check_options(repeats, missing, abstain)
    columns = {"item": item, "annotator": annotator, "label": label}
    if missing == "drop":
        columns, _ = drop_missing(columns)
    check_aligned(columns)
    given = read(columns["item"], "item")
    items = encode_labels(given, name="item")
    people = encode_labels(columns["annotator"], name="annotator")
    codes, names = _labels(columns["label"], classes, tuple(abstain))
    _check_size(len(people.classes), len(names))
    kept, agreed = _one_each(items, people, codes, names, repeats, given.row_of)
    found = items.codes[kept], people.codes[kept], codes[kept]
    return Answers(*found, items.classes, people.classes, names, agreed)


def answers_from_files(
    source: str | Path,
    item: str = "item",
    annotator: str = "annotator",
    label: str = "label",
    *,
    most: int = MOST,
    reading: Reading | None = None,
    **options: Any,
) -> Answers:
    """The columns of a long table in files of any size, in bounded memory.

    Of more answers than ``most`` those of items drawn at random are kept, all answers of an item
    together, so that everything is judged as well as so many answers allow. An item is drawn by a
    hash of its name: the same ones in every run, however the files are sorted or cut.

    Args:
        source: As in :func:`jgram.data.read_columns`.
        item: Column that names the item.
        annotator: Column that names the annotator.
        label: Column of the labels.
        most: How many answers are held, at about 300 bytes each.
        reading: How the files are read.
        **options: Of :func:`answers_from_columns`.

    Returns:
        :class:`Answers`, with the number of all answers where not all are kept.

    Raises:
        ValueError: As :func:`jgram.data.read_columns` and :func:`answers_from_columns`.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
        >>> rows = [f"i{i},{who},{'no yes'.split()[i % 2]}" for i in range(500) for who in "abc"]
        >>> _ = path.write_text("\\n".join(["item,annotator,label", *rows]))
        >>> answers = answers_from_files(path, most=100)
        >>> answers.answered, len(answers.item) <= 100, set(np.bincount(answers.item).tolist())
        (1500, True, {3})
    """
    columns, total = draw_answers(source, (item, annotator, label), reading or Reading(), most)
    answers = answers_from_columns(*(columns[name] for name in (item, annotator, label)), **options)
    return replace(answers, answered=total)


def draw_answers(
    source: Any, names: Sequence[str], reading: Reading, most: int = MOST
) -> tuple[dict[str, Column], int | None]:
    """Columns of files, the first of which names the items, of as many items as memory holds.

    Args:
        source: As of :func:`answers_from_files`, as all others.
        names: Item, annotator and label.
        reading: How the files are read.
        most: How many answers are held.

    Returns:
        The columns, and the number of all records where not all are kept.
    """
    files, reading, _ = opened(source, replace(reading, names=tuple(names)))
    kept: list[Batch] = []
    known: dict[str, str] = {}
    limit, size, total, end = _ALL, 0, 0, 0
    for path in files:
        for batch in batches(path, reading, start=end):
            end, total = batch.end, total + len(batch.rows)
            kept.append(shared(_drawn(batch, names[0], limit), known))
            size += len(kept[-1].rows)
            while size > most and limit > 1:
                limit = limit * 3 // 4
                kept = [_drawn(part, names[0], limit) for part in kept]
                size = sum(len(part.rows) for part in kept)
    if not size:
        raise ValueError(f"{source}: expected at least one record, got none")
    rows = np.concatenate([part.rows for part in kept])
    found = numbered(joined(kept, source), rows, reading)
    return found, total if size < total else None


def _drawn(batch: Batch, item: str, limit: int) -> Batch:
    """The records of a batch whose item has a hash below a limit."""
    if limit == _ALL:
        return batch
    cells: Any = batch[item]
    if not isinstance(cells, list | np.ndarray):
        cells = cells.to_pylist()
    names, codes = distinct(cells)
    hashes = (blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    rows = np.flatnonzero(np.array([int.from_bytes(x) < limit for x in hashes], bool)[codes])
    return Batch({name: rows_of(x, rows) for name, x in batch.items()}, batch.rows[rows], batch.end)


def answers_from_matrix(
    matrix: Any,
    *,
    num_classes: int | None = None,
    items: Sequence[Any] | None = None,
    annotators: Sequence[Any] | None = None,
) -> Answers:
    """A matrix ``[items, annotators]`` of class codes, -1 for no answer, as a label matrix has it.

    Every annotator is taken to have seen every item, so that -1 is an abstention. Where it only
    means that nobody asked, it carries no information about the items, which the model finds out.

    Args:
        matrix: Ints ``[items, annotators]``.
        num_classes: Number of classes; default the largest code plus one.
        items: Names of the rows; default their numbers.
        annotators: Names of the columns; default their numbers.

    Returns:
        :class:`Answers`.

    Raises:
        ValueError: Not a matrix of ints, codes below -1 or beyond the classes, names that do not
            fit.

    Example:
        >>> answers = answers_from_matrix(np.array([[0, 1], [-1, 1]]))
        >>> answers.item, answers.annotator, answers.label
        (array([0, 0, 1, 1], dtype=int32), array([0, 1, 0, 1], dtype=int32),
         array([0, 1, 2, 1], dtype=int32))
    """
    try:
        codes = np.asarray(matrix)
    except ValueError:
        raise ValueError(
            "expected answers [items, annotators], got rows of different lengths"
        ) from None
    if codes.ndim != 2 or codes.dtype.kind not in "iu":
        raise ValueError(
            "expected answers [items, annotators] as ints with -1 for none, got "
            f"{codes.dtype}{list(codes.shape)}: use answers_from_columns for a long table"
        )
    lowest, largest = (int(codes.min()), int(codes.max())) if codes.size else (-1, -1)
    d = largest + 1 if num_classes is None else num_classes
    if not isinstance(d, int | np.integer) or d < 0:
        raise ValueError(f"num_classes: expected a count, got {num_classes!r}")
    _check_size(codes.shape[1], d)
    if lowest < -1 or largest >= d:
        wrong = largest if largest >= d else lowest
        raise ValueError(f"expected answers -1 (none), 0..{d - 1}, got {wrong}")
    row, column = (part.ravel().astype(np.int32) for part in np.indices(codes.shape))
    label = np.where(codes < 0, d, codes).ravel().astype(np.int32)
    return Answers(
        row,
        column,
        label,
        _names(items, codes.shape[0], "items"),
        _names(annotators, codes.shape[1], "annotators"),
        tuple(range(d)),
    )


def merged(answers: Answers, merge: Merge) -> tuple[Answers, str | None]:
    """Answers with names of classes merged, and what to say of the names.

    Args:
        answers: :class:`Answers`.
        merge: As in :func:`jgram.data.labels.merging`.

    Raises:
        ValueError: Names that do not occur.

    Example:
        >>> answers = answers_from_columns([*"ikl"], [*"aaa"], ["yes", "no", "Yes"])
        >>> merged(answers, {"Yes": "yes"})[0].classes
        ('yes', 'no')
    """
    counts = np.bincount(answers.label, minlength=len(answers.classes)).tolist()
    found = merging(dict(zip(answers.classes, counts, strict=False)), merge)
    names = [found.merged.get(name, name) for name in answers.classes]
    classes = tuple(dict.fromkeys(names))
    codes = np.array([*map(classes.index, names), len(classes)], answers.label.dtype)
    return replace(answers, label=codes[answers.label], classes=classes), found.said


def as_answers(answers: Any, num_classes: int | None = None) -> Answers:
    """Answers of two classes or more, as they are or of a matrix."""
    if not isinstance(answers, Answers):
        answers = answers_from_matrix(answers, num_classes=num_classes)
    if len(answers.classes) < 2:
        raise ValueError(
            f"expected two classes or more, got {len(answers.classes)}: name all possible labels "
            "(classes=), if there are others"
        )
    return answers


def tally(
    first: np.ndarray, second: np.ndarray, shape: tuple[int, int], weights: Any = None
) -> np.ndarray:
    """How often every two codes occur together, or the sum of their weights."""
    cell = first.astype(np.int64) * shape[1] + second
    return np.bincount(cell, weights, shape[0] * shape[1]).reshape(shape)


def _check_options(repeats: Any, missing: Any, abstain: Any) -> None:
    for name, value, allowed in (
        ("repeats", repeats, get_args(Repeats)),
        ("missing", missing, ("raise", "drop")),
    ):
        if value not in allowed:
            raise ValueError(f"{name}: expected {' or '.join(map(repr, allowed))}, got {value!r}")
    if isinstance(abstain, str) or not isinstance(abstain, Iterable):
        raise ValueError(f"abstain: expected a list of labels, got {abstain!r}: give [{abstain!r}]")


def _check_size(annotators: int, classes: int) -> None:
    """Refuse what would need a confusion matrix too large for memory for each annotator."""
    if max(annotators, 1) * classes**2 > LARGEST:
        raise ValueError(
            f"expected fewer classes, got {classes} labels of {annotators} annotators, whose "
            "confusion matrices take more than a gigabyte: name the column of the labels, or merge "
            "rare ones"
        )


def _names(names: Sequence[Any] | None, size: int, what: str) -> tuple[Any, ...]:
    if names is not None and not isinstance(names, Iterable):
        raise ValueError(f"{what}: expected {size} names, got {names!r}")
    found = tuple(range(size)) if names is None else tuple(names)
    if len(found) != size or len(set(found)) != size:
        raise ValueError(
            f"{what}: expected {size} different names, got {len(set(found))} in {len(found)}"
        )
    return found


def _labels(
    label: Any, classes: Sequence[Any] | None, abstain: tuple[Any, ...]
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Codes, abstentions after the classes, and the names of the classes."""
    if not abstain:
        encoded = encode_labels(label, name="label", classes=classes)
        return encoded.codes, encoded.classes
    values = np.asarray(label)
    silent = np.logical_or.reduce([values == one for one in abstain])
    if not silent.any() or silent.all():
        every = "every label is one" if silent.any() else "no label is one"
        raise ValueError(f"abstain: expected some labels to be one of {list(abstain)}, but {every}")
    encoded = encode_labels(values[~silent], name="label", classes=classes)
    codes = np.full(len(values), len(encoded.classes), np.int32)
    codes[~silent] = encoded.codes
    return codes, encoded.classes


def _one_each(
    items: EncodedLabels,
    people: EncodedLabels,
    label: np.ndarray,
    names: tuple[Any, ...],
    repeats: Repeats,
    row_of: Callable[[int], int],
) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows to keep, by item and annotator, one of each pair, and how far repeats agreed."""
    pair = items.codes.astype(np.int64) * len(people.classes) + people.codes
    _, first, group, size = np.unique(
        pair, return_index=True, return_inverse=True, return_counts=True
    )
    if size.max(initial=0) < 2:
        return first, None
    differing = label != label[first][group]
    if differing.any() and repeats == "refuse":
        row = int(np.argmax(differing))
        other, said = int(first[group[row]]), [*names, "an abstention"]
        raise ValueError(
            f"expected one answer an annotator and item, got {said[label[row]]!r} (row "
            f"{row_of(row)}) and {said[label[other]]!r} (row {row_of(other)}) by annotator "
            f"{people.classes[people.codes[row]]!r} for item {items.classes[items.codes[row]]!r} "
            f"({differing.sum()} such rows): say which to keep, repeats='first', 'last' or "
            "'majority' (--repeats); how often repeats agree is then shown as consistency"
        )
    outcomes = len(names) + 1
    cell, which, often = np.unique(
        group * outcomes + label, return_inverse=True, return_counts=True
    )
    same = np.bincount(cell // outcomes, often * (often - 1.0), len(size))
    agreed = same / np.where(size > 1, size * (size - 1.0), np.nan)
    if repeats in ("refuse", "first"):
        return first, agreed
    worth = often[which] if repeats == "majority" else np.arange(len(pair))
    order = np.lexsort((-worth, group))  # of equals the first row
    return order[np.flatnonzero(np.diff(group[order], prepend=-1))], agreed


def consistencies(answers: Answers, z: float) -> np.ndarray:
    """How often annotators give the same answer when they are asked the same again, ``[3, m]``.

    The mean over items of the share of pairs that agree, with Wilson's interval; items asked more
    than twice count for more, by how much less their shares vary than single pairs would.

    Args:
        answers: :class:`Answers`.
        z: Normal quantile of the intervals.

    Returns:
        Value, low and high, NaN where nothing was asked again.
    """
    m, agreed = len(answers.annotators), answers.agreed
    if agreed is None:
        return np.full((3, m), np.nan)
    again = ~np.isnan(agreed)
    who, share = answers.annotator[again], agreed[again]
    n = np.bincount(who, minlength=m)
    n = np.where(n > 0, n, np.nan)
    p = np.bincount(who, share, m) / n
    spread = np.bincount(who, (share - p[who]) ** 2, m)
    n = n * np.maximum((n * p * (1.0 - p) + 0.25) / (spread + 0.25), 1.0)
    middle, whole = p + z * z / (2.0 * n), 1.0 + z * z / n
    half = z * np.sqrt(p * (1.0 - p) / n + (z / (2.0 * n)) ** 2)
    return np.stack([p, (middle - half) / whole, (middle + half) / whole])
