"""``jgram annotators``: people by the answers of their peers."""

from enum import StrEnum
from typing import Annotated

from typer import Option

from jgram.cli.options import Confidence, Input, Listing, Missing
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import (
    columns_of,
    plus_minus,
    progress,
    say,
    say_error,
    say_finding,
    say_json,
    say_table,
)
from jgram.cli.write import check_target, to_text, write_records

__all__ = ["run"]


class Reading(StrEnum):
    """What annotators are ranked by."""

    SCORE = "score"
    ACCURACY = "accuracy"


def run(
    source: Input,
    listing: Listing,
    item: Annotated[str, Option(help="Column that names the item.")] = "item",
    annotator: Annotated[str, Option(help="Column that names the annotator.")] = "annotator",
    label: Annotated[str, Option(help="Column of the labels.")] = "label",
    answers: Annotated[
        str | None, Option(help="Instead: array [items, annotators] of an npz, -1 for no answer.")
    ] = None,
    by: Annotated[
        Reading, Option(help="Weigh every class alike, or classes as they occur.")
    ] = Reading.SCORE,
    confidence: Confidence = 0.95,
) -> int:
    """Rank annotators by their peers' answers: no truth needed, one row for each answer.

    Examples:

        jgram annotators answers.csv --item image --annotator worker --label answer

        jgram annotators answers.npz --answers answers --by accuracy --out annotators.csv
    """

    check_target(listing.out, (".csv", ".json"))
    if answers is not None and source.classes is not None:
        raise ValueError("--classes: expected columns of a long table, got --answers with codes")
    with progress("ranking annotators"):
        from jgram.annotators import prepare, rank_annotators
        from jgram.cli.read import listed, read_raw

        names = [item, annotator, label] if answers is None else [answers]
        columns = read_raw(source, names)
        given = columns[names[-1]]
        if answers is None:
            missing = Missing(source.missing).value
            classes = listed(source.classes, given)
            given = prepare(*columns.values(), classes=classes, missing=missing)
        found = rank_annotators(given, by=by.value, confidence=confidence)
    record = found.to_dict()
    text = to_text({"source": {"file": str(source.file)}, **record})
    write_records(listing.out, text, record["annotators"])
    code = 0 if found.separated else CANNOT_TELL
    if listing.as_json:
        say_json(text)
        if code:
            say_error(found.conclusion)
        return code
    scores = f"score ± {confidence:.0%}"
    shown = [
        {
            "rank": one.rank,
            "annotator": one.name,
            "answers": one.answers,
            scores: plus_minus(one.score, one.score_interval),
            "accuracy": one.accuracy,
            "agreement": one.agreement,
            "p": f"{one.p_value:.3f}",
            "remarks": ", ".join(one.remarks),
        }
        for one in found.annotators[: listing.limit]
    ]
    say(f"{len(found.annotators)} annotators, {len(found.classes)} classes, by {by}\n")
    if shown:
        names = dict.fromkeys(shown[0], False)
        say_table(columns_of(shown, **{**names, "annotator": True, "remarks": True}))
    for finding in found.findings:
        say_finding(finding)
    say(found.conclusion, "bold")
    if listing.out is not None:
        say(f"all of them in {listing.out}", "dim")
    return code
