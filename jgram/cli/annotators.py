"""``jgram annotators``: people, or labelling functions, by the answers of their peers."""

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


def run(
    source: Input,
    listing: Listing,
    output: Output,
    item: Annotated[
        str, Option(help="Column that names the item.", rich_help_panel="Input")
    ] = _ITEM,
    annotator: Annotated[
        str, Option(help="Column that names the annotator.", rich_help_panel="Input")
    ] = _ANNOTATOR,
    label: Annotated[str, Option(help="Column of the labels.", rich_help_panel="Input")] = _LABEL,
    answers: Annotated[
        str | None,
        Option(
            help="Instead: array of an npz, a row an item, a column an annotator, -1 for no answer "
            "or abstained.",
            rich_help_panel="Input",
        ),
    ] = None,
    by: Annotated[
        By,
        Option(
            help="Agreement with the others, what is left of the truth, share right.",
            rich_help_panel="Ranking",
        ),
    ] = By.LOG_SCORE,
    repeats: Annotated[
        Repeats,
        Option(
            help="Of an annotator's different labels for one item: which to keep.",
            rich_help_panel="Input",
        ),
    ] = Repeats.REFUSE,
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

        given = _answers(source, (item, annotator, label), answers, repeats.value)
        reading: Any = by.value.replace("-", "_")
        found = rank_annotators(given, by=reading, incentive=incentive, confidence=confidence)
        if labels_out is not None:
            inferred = infer_labels(given)
            write_records(labels_out, inferred.to_json(), inferred.records())
    out = None if listing.out is None else (listing.out, found.table())
    about = {"file": str(source.file)}
    options = {"out": out, "written": [labels_out], "limit": listing.limit}
    return emit(found, about, output, told=found.separated, **options)


def _answers(
    source: Input, columns: tuple[str, str, str], matrix: str | None, repeats: Any
) -> "Answers":
    """The answers of the file, from its columns or its matrix."""
    from jgram.annotators import (
        answers_from_columns,
        answers_from_label_studio,
        answers_from_matrix,
    )
    from jgram.cli.read import listed, read_raw

    missing = "raise" if source.missing is Missing.RAISE else "drop"
    if source.file.suffix.lower() == ".json":
        item, annotator, label = columns
        if annotator != _ANNOTATOR or matrix is not None:
            option = "--answers" if matrix is not None else "--annotator"
            raise ValueError(
                f"{option}: expected a table or an array, got a Label Studio export, which names "
                "annotators by completed_by"
            )
        return answers_from_label_studio(
            source.file,
            item=None if item == _ITEM else item,
            label=None if label == _LABEL else label,
            classes=listed(source.classes, []),
            repeats=repeats,
            abstain=listed(source.abstain, []) or (),
            missing=missing,
        )
    if matrix is not None:
        if source.classes is not None:
            raise ValueError(
                "--classes: expected columns of a long table, got --answers with codes"
            )
        return answers_from_matrix(read_raw(source, [matrix])[matrix])
    given = read_raw(source, columns)
    label = given[columns[2]]
    return answers_from_columns(
        *given.values(),
        classes=listed(source.classes, label),
        repeats=repeats,
        abstain=listed(source.abstain, label) or (),
        missing=missing,
    )
