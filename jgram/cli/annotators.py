"""``jgram annotators``: people, or labelling functions, by the answers of their peers."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from jgram.cli.options import Confidence, Input, Listing, Missing, Page
from jgram.cli.outputs import FIGURES, PAGES, TABLES, check_outputs, write_records
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import progress, say, say_error, say_json, say_view
from jgram.display import annotators_view, to_record

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
    plot: Annotated[
        Path | None,
        Option(help="Draw readings and answers into this file.", rich_help_panel="Output"),
    ] = None,
    confidence: Confidence = 0.95,
    page: Page = None,
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
    from jgram.cli.html import check_page, write_annotators
    from jgram.cli.plots import check_figure, draw_annotators

    outputs = {
        "--out": (listing.out, TABLES),
        "--labels-out": (labels_out, TABLES),
        "--plot": (plot, FIGURES),
        "--html": (page, PAGES),
    }
    check_outputs(outputs, [source.file])
    check_figure(plot)
    check_page(page)
    with progress("ranking annotators"):
        from jgram.annotators import infer_labels, rank_annotators
        from jgram.data import to_json

        columns = (item, annotator, label)
        given = _answers(source, columns, answers, repeats.value)
        reading: Any = by.value.replace("-", "_")
        found = rank_annotators(given, by=reading, incentive=incentive, confidence=confidence)
        about = {"file": str(source.file)}
        text = to_json(to_record(found, source=about))
        write_records(listing.out, text, found.records())
        if labels_out is not None:
            rows = infer_labels(given).records()
            write_records(labels_out, to_json({"labels": rows}), rows)
        if plot:
            draw_annotators(plot, found, max(listing.limit, 1))
        if page:
            write_annotators(page, found, about, confidence, text)
    if listing.as_json:
        say_json(text)
        if not found.separated:
            say_error(found.conclusion)
    else:
        say_view(annotators_view(found, limit=listing.limit))
        for path in (listing.out, labels_out, plot, page):
            if path is not None:
                say(f"written: {path}", "dim")
    return 0 if found.separated else CANNOT_TELL


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
