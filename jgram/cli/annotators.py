"""``jgram annotators``: people, or labelling functions, by the answers of their peers."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from jgram.cli.options import Confidence, Input, Listing, Missing, Output
from jgram.cli.outputs import TABLES, write_records
from jgram.cli.show import check_output, emit, progress

if TYPE_CHECKING:
    from jgram.annotators import Answers

__all__ = ["run"]


_ITEM, _ANNOTATOR, _LABEL = "item", "annotator", "label"


class By(StrEnum):
    """What annotators are ranked by."""

    LOG_SCORE = "log-score"
    DETERMINANT = "determinant"
    ACCURACY = "accuracy"


class Repeats(StrEnum):
    """What to do where one annotator gave one item different labels."""

    REFUSE = "refuse"
    FIRST = "first"
    LAST = "last"
    MAJORITY = "majority"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Input"""

    item: Annotated[str, Option(help="Column that names the item.")] = _ITEM
    annotator: Annotated[str, Option(help="Column that names the annotator.")] = _ANNOTATOR
    label: Annotated[str, Option(help="Column of the labels.")] = _LABEL
    answers: Annotated[
        str | None,
        Option(
            help="Instead: array of an npz, a row an item, a column an annotator, -1 for no answer "
            "or abstained."
        ),
    ] = None
    repeats: Annotated[
        Repeats,
        Option(help="Of an annotator's different labels for one item: which to keep."),
    ] = Repeats.REFUSE


def run(
    source: Input,
    columns: Columns,
    listing: Listing,
    output: Output,
    by: Annotated[
        By,
        Option(
            help="Agreement with the others, what is left of the truth, share right.",
            rich_help_panel="Ranking",
        ),
    ] = By.LOG_SCORE,
    incentive: Annotated[
        bool,
        Option(
            "--incentive",
            help="For payments: no answer has a part in what it is judged by.",
            rich_help_panel="Ranking",
        ),
    ] = False,
    labels_out: Annotated[
        Path | None,
        Option(
            help="Write inferred labels and probabilities to this .csv or .json file.",
            rich_help_panel="Output",
        ),
    ] = None,
    confidence: Confidence = 0.95,
) -> int:
    """Rank annotators by their peers' answers: no truth needed, one row for each answer.

    FILE may also be the JSON export of Label Studio: --label is then the name of its choices, and
    --item a field of the task's data.

    Examples:

        jgram annotators answers.csv --item image --annotator worker --label answer \\
          --html workers.html

        jgram annotators votes.csv --abstain skip --by accuracy --labels-out labels.csv

        jgram annotators label-studio.json --by accuracy

        jgram annotators answers.npz --answers answers --out annotators.csv --plot them.png
    """
    outputs = {"--out": (listing.out, TABLES), "--labels-out": (labels_out, TABLES)}
    check_output(output, [source.file], outputs)
    with progress("ranking annotators", quiet=output.quiet):
        from jgram.annotators import infer_labels, rank_annotators

        given = _answers(source, columns)
        reading: Any = by.value.replace("-", "_")
        found = rank_annotators(given, by=reading, incentive=incentive, confidence=confidence)
        if labels_out is not None:
            inferred = infer_labels(given)
            write_records(labels_out, inferred.to_json(), inferred.records())
    out = None if listing.out is None else (listing.out, found.table())
    about = {"file": str(source.file)}
    options = {"out": out, "written": [labels_out], "limit": listing.limit}
    return emit(found, about, output, told=found.separated, **options)


def _answers(source: Input, given: Columns) -> "Answers":
    """The answers of the file, from its columns or its matrix."""
    from jgram.annotators import (
        answers_from_columns,
        answers_from_label_studio,
        answers_from_matrix,
    )
    from jgram.cli.read import listed, read_raw

    missing = "raise" if source.missing is Missing.RAISE else "drop"
    if source.file.suffix.lower() == ".json":
        if given.annotator != _ANNOTATOR or given.answers is not None:
            option = "--answers" if given.answers is not None else "--annotator"
            raise ValueError(
                f"{option}: expected a table or an array, got a Label Studio export, which names "
                "annotators by completed_by"
            )
        return answers_from_label_studio(
            source.file,
            item=None if given.item == _ITEM else given.item,
            label=None if given.label == _LABEL else given.label,
            classes=listed(source.classes, []),
            repeats=given.repeats.value,
            abstain=listed(source.abstain, []) or (),
            missing=missing,
        )
    if given.answers is not None:
        if source.classes is not None:
            raise ValueError(
                "--classes: expected columns of a long table, got --answers with codes"
            )
        return answers_from_matrix(read_raw(source, [given.answers])[given.answers])
    columns = read_raw(source, [given.item, given.annotator, given.label])
    label = columns[given.label]
    return answers_from_columns(
        *columns.values(),
        classes=listed(source.classes, label),
        repeats=given.repeats.value,
        abstain=listed(source.abstain, label) or (),
        missing=missing,
    )
