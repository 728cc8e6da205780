"""``jgram issues``: the records to look at first, and how many labels are wrong."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from jgram.cli.options import Engine, Input, Listing, Observed
from jgram.cli.outputs import unspelled
from jgram.cli.show import Answer, emit, progress
from jgram.display import Field, Line, records

if TYPE_CHECKING:
    import numpy as np

    from jgram.cli.read import Prepared
    from jgram.issues import LabelIssues

__all__ = ["beside", "filled_in", "run"]

_VERDICTS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_SHOWN_COLUMNS, _PAGE_COLUMNS, _LONGEST = 8, 24, 32


@dataclass(frozen=True, kw_only=True)
class Judged(Engine, Observed, Input):
    """Input

    Attributes:
        report: Column of reported labels.
    """

    report: str


@dataclass(frozen=True, kw_only=True)
class Checking:
    """Checking by hand

    Attributes:
        to_check: Instead of the issues, list so many rows to check by hand: they tell how many
            labels are wrong.
        checked: What you found: a file with the columns row and right, the right label or yes or
            no; rows without an answer are passed over.
        id: Column that names the records, shown beside their rows.
    """

    to_check: Annotated[int | None, Option(min=1)] = None
    checked: Path | None = None
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images

    Attributes:
        images: Images of the rows: an .npz file, or a folder, file names in row order.
        image_column: Column that names the files of the folder, or array of the npz.
    """

    images: Path | None = None
    image_column: str | None = None


def run(asked: Judged, output: Listing, checking: Checking, pictures: Images) -> int:
    """List the records whose label fits its observation badly, and say how many are wrong.

    No trained model is needed. Rows are numbered as a spreadsheet does, the header is row 1;
    rows whose label is --abstain are left out as those without one.

    Examples:

        jgram issues visits.csv --report diagnosis --observation crp --html found.html

        jgram issues visits.csv --report diagnosis --observation crp \\
          --to-check 50 --out check.csv

        jgram issues visits.csv --report diagnosis --observation crp \\
          --checked check.csv

        jgram issues labels.npz --report answers --observation features \\
          --images photos --plot suspects.png
    """
    _ = asked.needed
    images = pictures.images
    if output.plot is None and (images or pictures.image_column):
        raise ValueError("--images: expected --plot, the file to draw them into, got none")
    with progress("looking for label issues", quiet=output.quiet) as bar:
        from jgram.cli.images import check_images
        from jgram.cli.read import read_records
        from jgram.data.files import column_names, select

        if images is not None:
            check_images(images)
        if checking.id and str(asked.file) == "-":
            raise ValueError("--id: expected a file, got standard input")
        if checking.id:
            select(column_names(asked.file, **asked.how), [checking.id], asked.file)
        whole = {
            "--id": checking.id,
            "--merge": asked.merge,
            "--to-check": checking.to_check,
            "--checked": checking.checked,
            "--images": images,
            f"--out {output.out}": output.out and output.out.suffix.lower() != ".csv",
        }
        taking = next((option for option, given in whole.items() if given), None)
        read = read_records(asked, [asked.report], bar, whole=taking)
        read.columns[asked.report] = _answered(read.columns[asked.report], asked.abstain)
        notes = [*read.notes, "rows are numbered as a spreadsheet does: the header is row 1"]
        about = {"file": str(asked.file), "observations": asked.columns, "notes": notes}
        if read.counted is None:
            answer = _judge(asked, output, checking, pictures, read, about)
        else:
            answer = _judge_counted(asked, output, read, about)
    return emit(answer, output)


def _judge(
    asked: Judged,
    output: Listing,
    checking: Checking,
    pictures: Images,
    read: "Prepared",
    about: Mapping[str, Any],
) -> Answer:
    """Records are judged, each with its cells and its image."""
    import numpy as np

    from jgram.cli.images import draw_images
    from jgram.cli.read import kernel_of, kinds_of, listed, merge_of
    from jgram.data import read_cells
    from jgram.data.files import FIRST_ROW
    from jgram.issues import label_issues

    labels, rows, to_check = read.columns[asked.report], read.rows, checking.to_check
    classes = listed(asked.classes, labels)
    found = label_issues(
        labels,
        {name: read.columns[name] for name in asked.columns},
        kernel_of(asked.kernel, asked.bandwidth),
        name=asked.report,
        classes=classes,
        missing="raise" if asked.missing == "raise" else "keep",
        kinds=kinds_of(asked.kind),
        scale=asked.scale,
        merge=merge_of(asked.merge),
        report_kind=asked.report_kind,
        checked=_read_checks(checking.checked, labels, classes, rows + FIRST_ROW),
    )
    chosen = found.issues if to_check is None else found.to_check(to_check)
    if str(asked.file) == "-":  # can be read once
        cells = {name: np.asarray(one)[chosen].tolist() for name, one in read.columns.items()}
    else:
        cells = read_cells(asked.file, rows[chosen].tolist(), **asked.how)
    ids = [checking.id] if checking.id else []
    own, count = beside(cells, [*ids, *asked.columns], asked.report), len(ids)
    listing = found.listing(chosen, rows[chosen] + FIRST_ROW)
    first, *others = listing.fields
    named = listing._replace(fields=[first, *own[:count], *others])
    right = [] if to_check is None else [Field("", lambda _: "", keys=("right",))]
    table = named._replace(fields=[*named.fields, *right, *own[count:]])
    if to_check is not None:
        table = table._replace(caption="Records to check by hand")
    drawing = None
    if pictures.images is not None:
        if not len(chosen):
            raise ValueError(f"--plot: there is nothing to draw: {found.conclusion}")
        shown = table._replace(rows=table.rows[: max(1, min(output.limit, 100))])
        place, column = pictures.images, pictures.image_column
        drawing = draw_images(place, column, records(shown), read.size, cells)
    issues = rows[found.issues] + FIRST_ROW
    more = {"issues": issues, "by_class": found.by_class(), "records": records(named)}
    told, view = found.informative or found.interval is not None, found.view(about, table)
    view = [*view, *_next(found, to_check, output.out)]
    return Answer(found, about, told, view, drawing, records(table), more)


def _judge_counted(
    asked: Judged, output: Listing, read: "Prepared", about: Mapping[str, Any]
) -> Answer:
    """Large files of categories: distinct records are judged, a second pass finds the issues."""
    import numpy as np

    from jgram.cli.read import listed
    from jgram.data.counting import locate
    from jgram.data.files import FIRST_ROW
    from jgram.issues import label_issues

    assert read.counted is not None
    assert read.reading is not None
    counts, labels = read.counted.counts, read.columns[asked.report]
    judged = np.flatnonzero([x is not None for x in labels])
    if asked.missing == "raise" and len(judged) < len(labels):
        lacking = int(counts.sum() - counts[judged].sum())
        raise ValueError(
            f"{asked.report}: {lacking} labels missing: leave them out with --missing keep"
        )
    given = {name: read.columns[name][judged] for name in about["observations"]}
    classes = listed(asked.classes, labels[judged])
    found = label_issues(
        labels[judged], given, "delta", name=asked.report, classes=classes, weights=counts[judged]
    )
    suspects = found.issues
    beside = [
        Field(name, values[suspects].__getitem__, _cut, (name,), name=True)
        for name, values in given.items()
    ]
    caption = "Suspicious distinct records, the worst first"
    table = found.listing(suspects, beside=beside, caption=caption)
    rows: Iterable[Mapping[str, Any]] = ()
    if output.out is not None:
        wanted, place = np.zeros((2, len(counts)), int)
        wanted[judged], place[judged[suspects]] = found.suspicious(), np.arange(len(suspects))
        located = locate(asked.file, read.reading, read.counted, wanted)

        def record(i: int) -> dict[str, Any]:
            return {field.keys[0]: field.value(i) for field in table.fields[1:]}

        rows = (
            {"file": str(f), "row": row + FIRST_ROW, **record(int(place[i]))}
            for f, row, i in located
        )
    table = table._replace(rows=table.rows[: output.limit])
    view, more = found.view(about, table), {"cells": records(table)}
    return Answer(found, about, found.informative, view, rows=rows, more=more)


def _answered(labels: Any, abstain: str | None) -> Any:
    """The labels, missing where the answer is that there is none."""
    if abstain is None:
        return labels
    import numpy as np

    from jgram.data.columns import read

    values = np.array(labels, object)
    values[[str(value) == abstain for value in values]] = None
    return replace(read(values, labels.name), rows=labels.rows)


def _read_checks(
    path: Path | None, labels: Any, classes: Sequence[Any] | None, rows: "np.ndarray"
) -> dict[int, Any]:
    """What was found, by record: the right label, or whether the label given is right. Answers that
    are labels of the report, all of them, are right labels; otherwise yes and no are verdicts."""
    if path is None:
        return {}
    import numpy as np

    from jgram.data.columns import column

    given, numbers, answers = filled_in(path)
    cells = np.array(labels, object)
    place = {int(row): i for i, row in enumerate(rows) if cells[i] is not None}
    names = classes if classes is not None else np.unique(column(labels, "labels").values).tolist()
    by_text = {str(name): name for name in names}
    said = np.array(given["label"], object) if "label" in given else ()
    listed = dict(zip(numbers, map(str, said), strict=False))
    others = set(listed.values()) - set(by_text)
    answers = {row: text if text in by_text else unspelled(text) for row, text in answers.items()}
    if names and isinstance(names[0], float):
        by_text |= {x: float(x) for x in answers.values() if x and _is_number(x)}
    verdicts = {} if all(text in by_text for text in answers.values()) else _VERDICTS
    found = {}
    for row, text in answers.items():
        if row not in place:
            raise ValueError(
                f"{path}: expected rows that are judged, {int(rows[0])} to {int(rows[-1])}, got "
                f"{row}"
            )
        if text not in by_text and text.casefold() not in verdicts:
            raise ValueError(
                f"{path}: expected the right label ({', '.join(list(by_text)[:8])}), or yes or no, "
                f"got {text!r} for row {row}"
            )
        if listed.get(row, shown := str(cells[place[row]])) not in {shown, *others}:
            raise ValueError(
                f"{path}: expected row {row} to have the label {shown!r} as in the table, got "
                f"{listed[row]!r}: was it made of this table? (the header is row 1)"
            )
        verdict = verdicts.get(text.casefold())
        found[place[row]] = by_text[text] if verdict is None else verdict
    return found


def filled_in(path: Path) -> tuple[Mapping[str, Any], list[int], dict[int, str]]:
    """The columns of a sheet, the number of each of its rows, and the answers that are there."""
    import numpy as np

    from jgram.data import read_columns
    from jgram.data.columns import column
    from jgram.data.files import select

    given = {name: column(cells, name) for name, cells in read_columns(path).items()}
    select(list(given), ["row", "right"], path)
    rows, answers = (np.array(given[name], object).tolist() for name in ("row", "right"))
    for row in rows:
        if not isinstance(row, int | float) or row % 1:
            raise ValueError(f"{path}: expected numbers of rows in the column row, got {row!r}")
    numbers = [*map(int, rows)]
    if twice := [row for row, times in Counter(numbers).items() if times > 1]:
        raise ValueError(f"{path}: expected every row once, got row {twice[0]} twice")
    said = zip(numbers, answers, strict=True)
    found = {row: str(right).strip() for row, right in said if right is not None}
    if not found:
        raise ValueError(f"{path}: expected answers in the column right, got none")
    return given, numbers, found


def beside(cells: Mapping[str, Any], first: Sequence[str], report: str) -> list[Field]:
    """The file's own columns, some of them first; of the others only a page shows some."""
    taken = {"row", "label", "suggested", "wrong", "margin", "right"}
    names = [*(name for name in first if name in cells),
             *(name for name in cells if name not in first and name != report)]  # fmt: skip
    return [
        Field(
            head=name if place < _PAGE_COLUMNS else "",
            value=cells[name].__getitem__,
            text=_cut,
            keys=(f"{name} (file)" if name in taken else name,),
            name=not all(map(_is_number, cells[name])),
            detail=place >= _SHOWN_COLUMNS or name not in first,
        )
        for place, name in enumerate(names)
    ]


def _is_number(value: Any) -> bool:
    """Whether a cell is a number or empty, be it as text."""
    try:
        return value is None or value == "" or abs(float(value)) < float("inf")
    except (TypeError, ValueError, OverflowError):
        return False


def _cut(value: Any) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _next(found: "LabelIssues", to_check: int | None, out: Path | None) -> list[Line]:
    """How to get a number that can be trusted."""
    if found.interval is not None:
        return []
    lines = ["fill in the column right (yes, no, or the right label): --checked check.csv"]
    if to_check is None:
        lines.insert(0, "for a number with an interval: --to-check 50 --out check.csv, then")
    elif out is None:
        lines.insert(0, "--out check.csv writes these rows with an empty column right, then")
    return [Line(text, "aside") for text in lines]
