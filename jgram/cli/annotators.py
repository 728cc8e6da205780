"""``jgram annotators``: people, or labelling functions, by the answers of their peers."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from jgram.cli.options import Confidence, Input, Listing
from jgram.cli.outputs import TABLES, whole_file, write_records
from jgram.cli.show import Answer, emit, progress, say_note
from jgram.display import Field, Table, records

if TYPE_CHECKING:
    from jgram.annotators import Answers, InferredLabels
    from jgram.data.columns import Column

__all__ = ["run"]


_ITEM, _ANNOTATOR, _LABEL = "item", "annotator", "label"
_DOUBT = "in doubt"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Input

    Attributes:
        item: Column that names the item.
        annotator: Column that names the annotator.
        label: Column of the labels.
        answers: Instead: columns of a table, one an annotator (gpt,claude or 'model_*'), or an
            array of an npz, a row an item, a column an annotator, -1 for no answer or abstained.
        items: File with a row an item, its name in the column --item.
        observation: Column of texts, numbers or categories that depends on the truth, in --items or
            beside the answers; repeatable.
        gold: Column of right labels, in --items or beside the answers, mostly empty.
        repeats: Of an annotator's different labels for one item: which to keep.
    """

    item: str = _ITEM
    annotator: str = _ANNOTATOR
    label: str = _LABEL
    answers: str | None = None
    items: Path | None = None
    observation: list[str] | None = None
    gold: str | None = None
    repeats: Literal["refuse", "first", "last", "majority"] = "refuse"


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Ranking

    Attributes:
        by: Agreement with the others; share right if classes were as frequent; what is left of the
            truth; share right.
        incentive: For payments: no answer has a part in what it is judged by.
    """

    by: Annotated[
        Literal["log-score", "balanced", "determinant", "accuracy"] | None,
        Option(show_default="log-score, accuracy with --abstain"),
    ] = None
    incentive: bool = False


@dataclass(frozen=True, kw_only=True)
class Checking:
    """Checking by hand

    Attributes:
        to_check: Write so many items to check into --out: half in most doubt, half at random.
        checked: The sheet of --to-check with its column 'right' filled in.
    """

    to_check: Annotated[int | None, Option(min=1)] = None
    checked: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Listed(Listing):
    """Output

    Attributes:
        labels_out: Write inferred labels and probabilities to this .csv, .json or .parquet file.
    """

    labels_out: Annotated[Path | None, (*TABLES, ".parquet")] = None


def run(
    source: Input,
    columns: Columns,
    judging: Judging,
    checking: Checking,
    output: Listed,
    uncertainty: Confidence,
) -> int:
    """Rank annotators by their peers' answers: no truth needed, one row for each answer.

    Observations of the items are one more voter; --gold, and --checked, right labels of some.
    FILE may also be the JSON export of Label Studio: --label is then the name of its choices, and
    --item a field of the task's data.

    Examples:

        jgram annotators answers.csv --item image --annotator worker --label answer \\
          --html workers.html

        jgram annotators votes.csv --abstain skip --by accuracy --labels-out labels.csv

        jgram annotators sheet.csv --answers gpt,claude,mistral --observation text \
          --to-check 200 --out check.csv

        jgram annotators sheet.csv --answers 'model_*' --observation text --checked check.csv

        jgram annotators label-studio.json --by accuracy

        jgram annotators answers.npz --answers answers --out annotators.csv --plot them.png
    """
    from jgram.annotators.answers import MOST, merged
    from jgram.cli.read import merge_of

    labels_out = output.labels_out
    if checking.to_check is not None and output.out is None:
        raise ValueError("--to-check: expected --out, the file for the items to check, got none")
    with progress("ranking annotators", quiet=output.quiet):
        given, said = merged(_answers(source, columns), merge_of(source.merge))
        if source.merge and said:
            say_note(said)
        if labels_out is not None and given.answered is not None:
            raise ValueError(
                f"--labels-out: expected at most {MOST:,} answers, got {given.answered:,}: split "
                "the files by item"
            )
        y, gold = _beside(source, columns, given, checking.checked)
        labels = labels_out is not None or checking.to_check is not None
        found, inferred = _judged(given, y, gold, judging, uncertainty.confidence, labels=labels)
        if labels_out is not None:
            _write_labels(labels_out, inferred)
    answer = Answer(found, {"file": str(source.file)}, found.separated, written=[labels_out])
    if checking.to_check is not None:
        answer = answer._replace(rows=records(_sheet(inferred, checking.to_check, gold)))
    return emit(answer, output)


def _judged(
    given: "Answers", y: Any, gold: Any, judging: Judging, confidence: float, *, labels: bool
) -> tuple[Any, Any]:
    """The ranking, and the labels where they are wanted."""
    from jgram.annotators.beside import judge
    from jgram.annotators.ranking import inferred, ranked

    crowd = judge(given, y, gold, incentive=judging.incentive)
    reading: Any = judging.by and judging.by.replace("-", "_")
    found = ranked(crowd, by=reading, confidence=confidence)
    if not labels:
        return found, None
    return found, inferred(judge(given, y, gold) if judging.incentive else crowd)


def _write_labels(path: Path, inferred: "InferredLabels") -> None:
    """Labels with their probabilities, for training."""
    if path.suffix.lower() != ".parquet":
        write_records(path, inferred.to_json(), inferred.records())
        return
    with whole_file(path) as beside:
        inferred.to_frame("pandas").to_parquet(beside, index=False)


def _sheet(inferred: Any, count: int, gold: Any) -> Table:
    """The items to check, with room for what is right."""
    from jgram.annotators.beside import to_check

    place = {item: i for i, item in enumerate(inferred.items)}
    known = [place[item] for item in (gold.labels if gold else ()) if item in place]
    chosen = to_check(inferred.probabilities, count, known)
    best = inferred.probabilities.max(axis=1)
    fields = [
        Field("item", lambda row: inferred.items[row[0]], str, ("item",)),
        Field("label", lambda row: inferred.labels[row[0]], str, ("label",)),
        Field("probability", lambda row: float(best[row[0]]), "{:.3f}".format, ("probability",)),
        Field("why", lambda row: _DOUBT if row[1] else "at random", str, ("why",)),
        Field("right", lambda _: "", str, ("right",)),
    ]
    return Table("Items to check", chosen, fields)


def _beside(source: Input, given: Columns, answers: "Answers", checked: Path | None) -> Any:
    """Observations of the items, and the right labels of some."""
    from jgram.annotators import Gold
    from jgram.cli.read import read_raw

    found = _of_items(source, given, answers)
    y = {name: found[name] for name in given.observation or []} or None
    gold: dict[Any, Any] = {}
    if given.gold:
        labels = zip(answers.items, _values(found[given.gold]), strict=True)
        gold = {item: label for item, label in labels if label is not None}
    picked = set()
    if checked is not None:
        sheet = read_raw(source.of(checked), ["item", "why", "right"])
        own = {str(item): item for item in answers.items}
        for item, why, right in zip(*map(_values, sheet.values()), strict=True):
            if right is not None:
                gold[own.get(str(item), item)] = right
                picked |= {own.get(str(item), item)} if why == _DOUBT else set()
    if not gold:
        if given.gold or checked:
            raise ValueError("--gold: expected right labels of some items, got none")
        return y, None
    known = {str(label): label for label in answers.classes}
    gold = {item: known.get(str(label), label) for item, label in gold.items()}
    return y, Gold(gold, frozenset(picked))


def _of_items(source: Input, given: Columns, answers: "Answers") -> "dict[str, Column]":
    """What is known of the items, a row for each of ``answers.items``, missing where it is not."""
    from jgram.annotators.beside import by_item
    from jgram.cli.read import read_raw
    from jgram.data.files import column_names

    names: list[str] = [*(given.observation or []), *([given.gold] if given.gold else [])]
    if not names:
        return {}
    table = source if given.items is None else source.of(given.items)
    by_row = given.items is None and given.answers is not None
    if by_row and source.file.suffix.lower() != ".npz":
        by_row = given.item not in column_names(source.file, **source.how)
    read = read_raw(table, names if by_row else [given.item, *names])
    keys = range(len(read[names[0]])) if by_row else _values(read[given.item])
    place = {str(item): i for i, item in enumerate(answers.items)}
    item = [place.get(str(key), -1) for key in keys]
    if max(item, default=-1) < 0:
        raise ValueError(
            f"{given.item}: expected the items that have answers, got none of them "
            f"({answers.items[0]!r} is one)"
        )
    return {name: by_item(read[name], item, answers.items) for name in names}


def _values(column: "Column") -> list[Any]:
    """Values, ``None`` where there is none."""
    return column.__array__().tolist()


def _wide(source: Input, given: Columns) -> "Answers":
    """Answers from columns of a table, one an annotator."""
    from fnmatch import fnmatchcase

    from jgram.annotators import answers_from_columns
    from jgram.cli.read import read_raw
    from jgram.data.files import column_names

    present = column_names(source.file, **source.how)
    wanted = [part.strip() for part in (given.answers or "").split(",")]
    found = {part: [n for n in present if fnmatchcase(n, part)] for part in wanted}
    lost = [part for part in wanted if not found[part]]
    names = [n for n in present if any(n in some for some in found.values())]
    names = [n for n in names if n not in (given.gold, given.item)]
    if lost or len(names) < 2:
        raise ValueError(
            f"--answers: expected the names of two columns or more, or a pattern such as "
            f"'model_*', got {', '.join(lost) or given.answers}; there are {', '.join(present)}"
        )
    keyed = [given.item] if given.item in present else []
    read = read_raw(source, [*keyed, *names])
    size = len(read[names[0]])
    items = _values(read[given.item]) if keyed else list(range(size))
    return answers_from_columns(
        items * len(names),
        [name for name in names for _ in range(size)],
        [value for name in names for value in _values(read[name])],
        **_options(source, given, read[names[0]]),
    )


def _options(source: Input, given: Columns, label: Any) -> dict[str, Any]:
    """How labels are read."""
    from jgram.cli.read import listed

    return {
        "classes": listed(source.classes, label),
        "repeats": given.repeats,
        "abstain": listed(source.abstain, label) or (),
        "missing": "raise" if source.missing == "raise" else "drop",
    }


def _answers(source: Input, given: Columns) -> "Answers":
    """The answers of the file, from its columns or its matrix."""
    import numpy as np

    from jgram.annotators import (
        answers_from_columns,
        answers_from_label_studio,
        answers_from_matrix,
    )
    from jgram.annotators.answers import draw_answers
    from jgram.cli.read import read_raw, reading_of

    if source.file.suffix.lower() == ".json":
        if given.annotator != _ANNOTATOR or given.answers is not None:
            option = "--answers" if given.answers is not None else "--annotator"
            raise ValueError(
                f"{option}: expected a table or an array, got a Label Studio export, which names "
                "annotators by completed_by"
            )
        item = None if given.item == _ITEM else given.item
        label = None if given.label == _LABEL else given.label
        options = _options(source, given, [])
        return answers_from_label_studio(source.file, item=item, label=label, **options)
    if given.answers is None:
        names = [given.item, given.annotator, given.label]
        columns, total = draw_answers(source.file, names, reading_of(source, names))
        options = _options(source, given, columns[given.label])
        found = answers_from_columns(*(columns[name] for name in names), **options)
        whole = np.all([columns[name].present for name in names], axis=0)
        if lacking := int((~whole).sum()):
            say_note(f"left out: {lacking} of {len(whole)} rows, which lack a value")
        return replace(found, answered=total)
    if source.file.suffix.lower() != ".npz":
        return _wide(source, given)
    if source.classes is not None:
        raise ValueError("--classes: expected columns of a long table, got --answers with codes")
    return answers_from_matrix(read_raw(source, [given.answers])[given.answers])
