"""``jgram annotators``: people, or labelling functions, by the answers of their peers."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from jgram.cli.options import Confidence, Input, Listing, Missing
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import columns_of, progress, say, say_error, say_finding, say_json, say_table
from jgram.cli.write import check_target, to_text, write_records

if TYPE_CHECKING:
    from jgram.annotators import AnnotatorRanking, Answers, Reading

__all__ = ["run"]


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
    item: Annotated[str, Option(help="Column that names the item.")] = "item",
    annotator: Annotated[str, Option(help="Column that names the annotator.")] = "annotator",
    label: Annotated[str, Option(help="Column of the labels.")] = "label",
    answers: Annotated[
        str | None,
        Option(help="Instead: array [items, annotators] of an npz, -1 for no answer or abstained."),
    ] = None,
    by: Annotated[
        By, Option(help="Agreement with the others, what is left of the truth, share right.")
    ] = By.LOG_SCORE,
    repeats: Annotated[
        Repeats, Option(help="Of an annotator's different labels for one item: which to keep.")
    ] = Repeats.REFUSE,
    incentive: Annotated[
        bool,
        Option("--incentive", help="For payments: no answer has a part in what it is judged by."),
    ] = False,
    labels_out: Annotated[
        Path | None, Option(help="Write inferred labels and probabilities to this .csv or .json.")
    ] = None,
    plot: Annotated[Path | None, Option(help="Draw readings and answers into this file.")] = None,
    confidence: Confidence = 0.95,
) -> int:
    """Rank annotators by their peers' answers: no truth needed, one row for each answer.

    Examples:

        jgram annotators answers.csv --item image --annotator worker --label answer

        jgram annotators votes.csv --abstain skip --by accuracy --labels-out labels.csv

        jgram annotators answers.npz --answers answers --out annotators.csv --plot them.png
    """
    from jgram.cli.plots import check_figure, draw_annotators

    for path in (listing.out, labels_out):
        check_target(path, (".csv", ".json"))
    check_figure(plot)
    with progress("ranking annotators"):
        from jgram.annotators import infer_labels, rank_annotators
        from jgram.data import to_data

        columns = (item, annotator, label)
        given = _answers(source, columns, answers, repeats.value)
        reading: Any = by.value.replace("-", "_")
        found = rank_annotators(given, by=reading, incentive=incentive, confidence=confidence)
        text = to_text({"source": {"file": str(source.file)}, **to_data(found)})
        write_records(listing.out, text, found.records())
        if labels_out is not None:
            rows = infer_labels(given).records()
            write_records(labels_out, to_text({"labels": rows}), rows)
        if plot:
            draw_annotators(plot, found, max(listing.limit, 1))
    if listing.as_json:
        say_json(text)
        if not found.separated:
            say_error(found.conclusion)
    else:
        _say(found, listing.limit)
        for path in (listing.out, labels_out, plot):
            if path is not None:
                say(f"written: {path}", "dim")
    return 0 if found.separated else CANNOT_TELL


def _answers(
    source: Input, columns: tuple[str, str, str], matrix: str | None, repeats: Any
) -> "Answers":
    """The answers of the file, from its columns or its matrix."""
    from jgram.annotators import answers_from_columns, answers_from_matrix
    from jgram.cli.read import listed, read_raw

    if matrix is not None:
        if source.classes is not None:
            raise ValueError(
                "--classes: expected columns of a long table, got --answers with codes"
            )
        return answers_from_matrix(read_raw(source, [matrix])[matrix])
    given = _columns(source, columns)
    label = given[columns[2]]
    return answers_from_columns(
        *given.values(),
        classes=listed(source.classes, label),
        repeats=repeats,
        abstain=listed(source.abstain, label) or (),
        missing="raise" if source.missing is Missing.RAISE else "drop",
    )


def _columns(source: Input, names: tuple[str, str, str]) -> dict[str, Any]:
    """The three columns, of a large file or of many by way of codes."""
    from jgram.cli.counted import is_large, is_many, reading_of
    from jgram.cli.read import read_raw
    from jgram.data.counting import read_long

    if is_many(source.file) or is_large(source.file):
        return read_long(source.file, reading_of(source, None, names))
    return read_raw(source, list(names))


def _say(found: "AnnotatorRanking", limit: int) -> None:
    """The table, what to know before acting, the conclusion."""
    say(f"{len(found.annotators)} annotators, {len(found.classes)} classes")
    say(f"ranked by {found.by.replace('_', ' ')}: {found.question}\n")
    partly = any(one.coverage < 1.0 for one in found.annotators)
    shown = [
        {
            "annotator": one.name,
            "rank": f"{one.rank} [{one.rank_interval[0]}, {one.rank_interval[1]}]",
            "answers": one.answers,
            **({"coverage": f"{one.coverage:.0%}"} if partly else {}),
            "log_score": _reading(one.log_score, found.by == "log_score"),
            "determinant": _reading(one.determinant, found.by == "determinant"),
            "accuracy": _reading(one.accuracy, True),
            "remarks": ", ".join(one.remarks),
        }
        for one in found.annotators[:limit]
    ]
    if shown:
        heads = dict.fromkeys(shown[0], False)
        say_table(columns_of(shown, **{**heads, "annotator": True, "remarks": True}))
    for finding in found.findings:
        say_finding(finding)
    say(found.conclusion, "bold")


def _reading(reading: "Reading | None", with_interval: bool) -> str:
    if reading is None:
        return "none"
    bounds = f" [{reading.low:.2f}, {reading.high:.2f}]" if with_interval else ""
    return f"{reading.value:.2f}{bounds}"
