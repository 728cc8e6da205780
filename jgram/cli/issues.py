"""``jgram issues``: the records to look at first, and how many labels are wrong."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from jgram.cli.options import Engine, Input, Listing, Missing, Observed, Page
from jgram.cli.outputs import (
    FIGURES,
    PAGES,
    TABLES,
    check_outputs,
    unspelled,
    write_records,
)
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import progress, say, say_error, say_json, say_view
from jgram.display import Column, issues_head, issues_view, suspects, to_record

if TYPE_CHECKING:
    import numpy as np

    from jgram.cli.read import Prepared
    from jgram.issues import LabelIssues

__all__ = ["run"]

_VERDICTS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_SHOWN_COLUMNS, _SHOWN_CLASSES, _MOST_IMAGES = 8, 20, 100


def run(
    report: Annotated[str, Option(help="Column of reported labels.", rich_help_panel="Input")],
    source: Input,
    observed: Observed,
    engine: Engine,
    listing: Listing,
    to_check: Annotated[
        int | None,
        Option(
            help="Instead of the issues, list so many rows to check by hand: they tell how many "
            "labels are wrong.",
            min=1,
            rich_help_panel="Checking by hand",
        ),
    ] = None,
    checked: Annotated[
        Path | None,
        Option(
            help="What you found: a file with the columns row and right, the right label or yes "
            "or no; rows without an answer are passed over.",
            rich_help_panel="Checking by hand",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        Option(
            help="Images of the rows: an .npz file, or a folder, file names in row order.",
            rich_help_panel="Images",
        ),
    ] = None,
    image_column: Annotated[
        str | None,
        Option(
            help="Column that names the files of the folder, or array of the npz.",
            rich_help_panel="Images",
        ),
    ] = None,
    plot: Annotated[
        Path | None, Option(help="Draw the images listed into this file.", rich_help_panel="Images")
    ] = None,
    page: Page = None,
) -> int:
    """List the records whose label fits its observation badly, and say how many are wrong.

    No trained model is needed. Rows count from 0 after the header; rows whose label is --abstain
    are left out as those without one.

    Examples:

        jgram issues visits.csv --report diagnosis --observation crp --html found.html

        jgram issues visits.csv --report diagnosis --observation crp \\
          --to-check 50 --out check.csv

        jgram issues visits.csv --report diagnosis --observation crp \\
          --checked check.csv

        jgram issues labels.npz --report answers --observation features \\
          --images photos --plot suspects.png
    """
    from jgram.cli.html import check_page, write_issues

    outputs = {
        "--out": (listing.out, TABLES),
        "--plot": (plot, FIGURES),
        "--html": (page, PAGES),
        "--checkpoint": (engine.checkpoint, ()),
    }
    check_outputs(outputs, [source.file, checked, images])
    _check_options(images, image_column, plot)
    check_page(page)
    with progress("looking for label issues") as bar:
        from jgram.cli.images import read_images
        from jgram.cli.plots import draw_images
        from jgram.cli.read import kernel_of, kinds_of, listed, read_records
        from jgram.data import read_cells, to_json
        from jgram.issues import label_issues

        whole = {
            "--to-check": to_check,
            "--checked": checked,
            "--images": images,
            "--html": page,
            f"--out {listing.out}": listing.out and listing.out.suffix.lower() != ".csv",
        }
        asked = next((option for option, given in whole.items() if given), None)
        read = read_records(source, observed, [report], engine, bar, whole=asked)
        columns, rows, notes = read.columns, read.rows, read.notes
        labels = _answered(columns.pop(report), source.abstain)
        if read.counted is not None:
            return _judge_counted(report, labels, source, observed, listing, read)
        classes = listed(source.classes, labels)
        found = label_issues(
            labels,
            {name: columns[name] for name in observed.observation},
            kernel_of(observed.kernel, observed.bandwidth),
            name=report,
            classes=classes,
            missing="raise" if source.missing is Missing.RAISE else "keep",
            kinds=kinds_of(observed.kind),
            scale=observed.scale.value,
            checked=_read_checks(checked, labels, classes, rows),
        )
        chosen = found.issues if to_check is None else found.to_check(to_check)
        records = [{**found.record(row), "row": int(rows[row])} for row in chosen]
        if str(source.file) == "-":  # can be read once
            cells = {name: [column[row] for row in chosen] for name, column in columns.items()}
        else:
            cells = read_cells(source.file, rows[chosen].tolist(), separator=source.separator)
        own = [dict(zip(cells, mine, strict=True)) for mine in zip(*cells.values(), strict=True)]
        about = {
            "file": str(source.file),
            "observations": observed.observation,
            "notes": notes,
        }
        text = to_json(
            {
                **to_record(found, source=about),
                "issues": rows[found.issues],
                "by_class": found.by_class(),
                "records": records,
            }
        )
        if plot and images:
            first = records[: min(max(listing.limit, 1), _MOST_IMAGES)]
            if not first:
                raise ValueError(f"--plot: there is nothing to draw: {found.conclusion}")
            beside = {name: values[: len(first)] for name, values in cells.items()}
            places = [record["row"] for record in first]
            pictures = read_images(images, places, read.size, image_column, beside)
            draw_images(plot, pictures, [_title(record) for record in first])
        extra = {} if to_check is None else {"right": ""}
        lines = [
            record | extra | _beside(record, mine, report)
            for record, mine in zip(records, own, strict=True)
        ]
        write_records(listing.out, text, lines)
        if page:
            pairs = list(zip(records, own, strict=True))
            write_issues(page, found, about, pairs, to_check is not None, text)
    undecided = not found.informative and found.interval is None
    if listing.as_json:
        say_json(text)
        if undecided:
            say_error(found.conclusion)
    else:
        say_view(issues_view(found, notes=notes, limit=max(listing.limit, _SHOWN_CLASSES)))
        shown = [name for name in observed.observation if name in cells]
        first = own[: listing.limit]
        beside = {name: [mine[name] for mine in first] for name in shown[:_SHOWN_COLUMNS]}
        say_view(suspects(records[: listing.limit], beside))
        if first and len(shown) > _SHOWN_COLUMNS:
            say(f"{len(shown) - _SHOWN_COLUMNS} more observations: --out writes all", "dim")
        _say_next(found, to_check, listing.out)
        for path in (listing.out, plot, page):
            if path is not None:
                say(f"written: {path}", "dim")
    return CANNOT_TELL if undecided else 0


def _judge_counted(
    report: str,
    labels: "np.ndarray",
    source: Input,
    observed: Observed,
    listing: Listing,
    read: "Prepared",
) -> int:
    """Large files of categories: distinct records are judged, a second pass writes the issues."""
    import numpy as np

    from jgram.cli.read import listed
    from jgram.data import to_json
    from jgram.data.counting import locate
    from jgram.issues import cell_issues

    assert read.counted is not None
    assert read.reading is not None
    counts = read.counted.counts
    judged = np.flatnonzero([x is not None for x in labels])
    if source.missing is Missing.RAISE and len(judged) < len(labels):
        lacking = int(counts.sum() - counts[judged].sum())
        raise ValueError(f"{report}: {lacking} labels missing: leave them out with --missing keep")
    given = {name: read.columns[name][judged] for name in observed.observation}
    classes = listed(source.classes, labels[judged])
    found = cell_issues(labels[judged], given, counts[judged], name=report, classes=classes)

    def record(i: int) -> dict[str, Any]:
        return {
            "label": found.classes[found.labels[i]],
            "suggested": found.classes[found.suggested[i]],
            "wrong": float(found.wrong[i]),
            "margin": float(found.margin[i]),
            **{name: values[i] for name, values in given.items()},
        }

    if listing.out is not None:
        wanted, place = np.zeros((2, len(counts)), int)
        wanted[judged], place[judged] = found.suspicious, np.arange(len(judged))
        located = locate(source.file, read.reading, read.counted, wanted)
        rows = ({"file": str(f), "row": row, **record(int(place[i]))} for f, row, i in located)
        write_records(listing.out, "", rows)
    order = np.lexsort((found.margin, -found.wrong))
    first = order[found.suspicious[order] > 0][: listing.limit].tolist()
    lines = [{"records": int(found.suspicious[i]), **record(i)} for i in first]
    if listing.as_json:
        about = {"file": str(source.file), "observations": observed.observation}
        about |= {"notes": read.notes}
        say_json(to_json({**to_record(found, source=about), "cells": lines}))
        if not found.informative:
            say_error(found.conclusion)
    else:
        say_view(issues_head(found, int(found.counts.sum()), read.notes))
        if lines:
            say_view([_counted_table(lines)])
        if listing.out is not None:
            say(f"written: {listing.out}, in the order of the files", "dim")
    return 0 if found.informative else CANNOT_TELL


def _counted_table(lines: Sequence[Mapping[str, Any]]) -> list[Column]:
    shown = [{**line, "wrong": f"{line['wrong']:.0%}"} for line in lines]
    heads = [name for name in shown[0] if name != "margin"]
    return [
        Column(
            name,
            ["" if line[name] is None else str(line[name]) for line in shown],
            name not in ("records", "wrong"),
        )
        for name in heads
    ]


def _check_options(images: Path | None, image_column: str | None, plot: Path | None) -> None:
    from jgram.cli.images import check_images
    from jgram.cli.plots import check_figure

    check_figure(plot)
    if images is not None:
        check_images(images)
    if plot is not None and images is None:
        raise ValueError("--plot: expected --images, the images to draw, got none")
    if plot is None and (images or image_column):
        raise ValueError("--images: expected --plot, the file to draw them into, got none")


def _answered(labels: Any, abstain: str | None) -> Any:
    """The labels, missing where the answer is that there is none."""
    if abstain is None:
        return labels
    import numpy as np

    values = np.array(labels, object)
    values[[str(value) == abstain for value in values]] = None
    return values


def _read_checks(
    path: Path | None, labels: Any, classes: Sequence[Any] | None, rows: "np.ndarray"
) -> dict[int, Any]:
    """What was found, by record: the right label, or whether the label given is right.

    Answers that are labels of the report, all of them, are the right labels; otherwise yes and no
    are verdicts.
    """
    if path is None:
        return {}
    import numpy as np

    from jgram.data import read_columns
    from jgram.data.columns import column

    given = {
        name: column(cells, name) for name, cells in read_columns(path, ["row", "right"]).items()
    }
    place = {int(row): i for i, row in enumerate(rows)}
    names = classes if classes is not None else np.unique(column(labels, "labels").values).tolist()
    by_text = {str(name): name for name in names}
    answers = {
        row: str(right).strip()
        for row, right in zip(_row_numbers(path, given), _values(given["right"]), strict=True)
        if right is not None
    }
    if not answers:
        raise ValueError(f"{path}: expected answers in the column right, got none")
    answers = {row: text if text in by_text else unspelled(text) for row, text in answers.items()}
    verdicts = {} if all(text in by_text for text in answers.values()) else _VERDICTS
    found = {}
    for row, text in answers.items():
        if row not in place:
            raise ValueError(
                f"{path}: expected rows that are judged, 0 to {int(rows[-1])}, got {row}"
            )
        if text not in by_text and text.casefold() not in verdicts:
            raise ValueError(
                f"{path}: expected the right label ({', '.join(list(by_text)[:8])}), or yes or no, "
                f"got {text!r} for row {row}"
            )
        verdict = verdicts.get(text.casefold())
        found[place[row]] = by_text[text] if verdict is None else verdict
    return found


def _row_numbers(path: Path, given: Mapping[str, Any]) -> list[int]:
    found = []
    for value in _values(given["row"]):
        if not isinstance(value, int) and not (isinstance(value, float) and value.is_integer()):
            raise ValueError(f"{path}: expected numbers of rows in the column row, got {value!r}")
        found.append(int(value))
    twice = next((row for i, row in enumerate(found) if row in set(found[:i])), None)
    if twice is not None:
        raise ValueError(f"{path}: expected every row once, got row {twice} twice")
    return found


def _values(given: Any) -> list[Any]:
    """Cells of a column, ``None`` where missing."""
    cells: list[Any] = [None] * len(given.present)
    kept = iter(given.values.tolist())
    return [
        next(kept) if present else cell for cell, present in zip(cells, given.present, strict=True)
    ]


def _beside(record: Mapping[str, Any], own: Mapping[str, Any], report: str) -> dict[str, Any]:
    """The row's own columns, under other names where those of the record are the same."""
    return {
        f"{name} (file)" if name in record or name == "right" else name: cell
        for name, cell in own.items()
        if name != report
    }


def _title(record: Mapping[str, Any]) -> str:
    return f"{record['label']} → {record['suggested']}\nrow {record['row']}, {record['wrong']:.0%}"


def _say_next(found: "LabelIssues", to_check: int | None, out: Path | None) -> None:
    """How to get a number that can be trusted."""
    if found.interval is None:
        if to_check is None:
            say("for a number with an interval: --to-check 50 --out check.csv, then", "dim")
        elif out is None:
            say("--out check.csv writes these rows with an empty column right, then", "dim")
        say("fill in the column right (yes, no, or the right label): --checked check.csv", "dim")
