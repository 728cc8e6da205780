"""Results that show themselves: what is shown is said once, as lines and tables.

``print`` takes it as plain text, a notebook as HTML, the command line in colours. Beside that,
results become data frames and JSON. Nothing is computed here.
"""

import dataclasses
import re
import shutil
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jgram.annotators import AnnotatorRanking, Reading
    from jgram.findings import Finding
    from jgram.issues import CellIssues, LabelIssues
    from jgram.report import RankedReport, Ranking, ScoreReport

__all__ = [
    "OBEYED",
    "Column",
    "Line",
    "View",
    "annotators_view",
    "columns",
    "finding_line",
    "grouped_findings",
    "issues_head",
    "issues_view",
    "ranking_rows",
    "ranking_view",
    "room",
    "score_row",
    "score_view",
    "suspects",
    "table",
    "to_frame",
    "to_html",
    "to_json",
    "to_record",
    "to_text",
    "visible",
]

_LEAST = 8  # characters that a shortened name keeps
_LIBRARIES = ("pandas", "polars", "pyarrow")
_SHOWN = 20  # rows of a long table
_LONGEST = 32  # characters of an observation
OBEYED = "[\x7f-\x9f\u2028-\u202e\u2066-\u2069]"  # by a terminal, beside those before the space


class Line(NamedTuple):
    """A line of text, and how a terminal shows it (a style of rich)."""

    text: str = ""
    style: str = ""


class Column(NamedTuple):
    """A column of a table: names may be shortened and stand left, numbers neither."""

    head: str
    cells: Sequence[str]
    name: bool = False


View = Sequence[Line | list[Column]]


# What is shown ------------------------------------------------------------------------------


def score_view(
    found: "ScoreReport",
    *,
    through: Sequence[str] = (),
    notes: Sequence[str] = (),
    counts_scale: bool = False,
) -> View:
    """A published score: what was judged, the number, how far it may be trusted.

    Args:
        found: What :func:`jgram.score` gave.
        through: Names of the observations.
        notes: What was done to the columns before.
        counts_scale: Whether to show the score of counts too.
    """
    amounts = ", ".join(f"{name} {count:g}" for name, count in found.class_counts.items())
    lines = [Line(f"records of each class: {amounts}")]
    if found.reason is None:
        directions = found.num_classes - 1
        lines += [
            Line(
                f"normalised score {found.normalised_score:.3f}, Hadamard ratio "
                f"{found.hadamard_ratio:.3g} (both from 0 to 1)"
            ),
            Line(
                f"the observations show {min(max(found.seen, 0), directions):.1f} of the "
                f"{directions} directions between classes; p of noise {found.noise_p_value:.2g}"
            ),
        ]
    return [
        *_judged(found.num_records, found.num_classes, f"kernel {found.kernel}", through, notes),
        [Column("report", [found.name], name=True), *_published([found], counts_scale)],
        *lines,
        *_findings_of([found]),
        *([] if found.reason is None else [Line(f"No score: {found.reason}.", "bold")]),
    ]


def ranking_view(
    found: "Ranking",
    *,
    through: Sequence[str] = (),
    notes: Sequence[str] = (),
    counts_scale: bool = False,
) -> View:
    """A ranking: what was judged, the reports, best first, what stands against it, the conclusion.

    Args:
        found: What :func:`jgram.rank_reports` gave.
        through: Names of the observations.
        notes: What was done to the columns before.
        counts_scale: Whether to show the published score of counts too.
    """
    reports = found.reports
    ranks = [
        f"{x.first_rank}" if x.first_rank == x.last_rank else f"{x.first_rank}-{x.last_rank}"
        for x in reports
    ]
    columns = [
        Column("report", [x.name for x in reports], name=True),
        Column(f"keeps of the best\n{found.confidence:.0%} interval", [_keeps(x) for x in reports]),
        Column("rank", ranks),
        Column("p of\nnoise", [_p_value(x.noise_p_value) for x in reports]),
        *_published([x.published for x in reports], counts_scale),
    ]
    time = f"records in order of time, judged in blocks of {found.block_length}"
    return [
        *_judged(found.num_records, found.num_classes, found.observations, through, notes),
        *([Line(time, "dim")] if found.block_length > 1 else []),
        columns,
        Line(
            "'keeps': the share of the best report's information about the truth that a report "
            "keeps",
            "dim",
        ),
        *_findings_of([x.published for x in reports], found),
        *(Line(line, "dim") for line in found.undecided),
        Line(found.conclusion, "bold"),
    ]


def issues_view(found: "LabelIssues", *, notes: Sequence[str] = (), limit: int = _SHOWN) -> View:
    """Label issues: what was judged, how many labels are wrong, and each class.

    Args:
        found: What :func:`jgram.label_issues` gave.
        notes: What was done to the columns before.
        limit: Classes to show.
    """
    classes = found.by_class()[:limit]
    return [
        *issues_head(found, found.num_records, notes),
        [
            Column("class", [str(one.name) for one in classes], name=True),
            Column("records", [str(one.count) for one in classes]),
            Column("issues", [str(one.issues) for one in classes]),
            Column("mean\nwrong", [f"{one.mean_wrong:.0%}" for one in classes]),
            Column(
                "mostly suggested",
                ["" if one.issues == 0 else str(one.confused_with) for one in classes],
                name=True,
            ),
        ],
    ]


def issues_head(
    found: "LabelIssues | CellIssues", num_records: int, notes: Sequence[str]
) -> list[Line]:
    """What was judged, what to know of it, and how many labels are wrong.

    Args:
        found: What was found, of records or of distinct ones.
        num_records: How many records were judged.
        notes: What was done to the columns before.
    """
    return [
        Line(f"{num_records} records, {len(found.classes)} classes"),
        Line(found.observations),
        *(Line(note, "dim") for note in notes),
        *map(finding_line, found.findings),
        Line(found.conclusion, "bold"),
        Line(),
    ]


def suspects(
    records: Sequence[Mapping[str, Any]], beside: Mapping[str, Sequence[Any]] | None = None
) -> View:
    """Records to look at, each with its label, the other one, and what was observed of it.

    Args:
        records: As :meth:`jgram.issues.LabelIssues.records` gives them.
        beside: Name to values of further columns.
    """
    if not records:
        return []
    return [
        [
            Column("row", [str(one["row"]) for one in records]),
            Column("label", [str(one["label"]) for one in records], name=True),
            Column("suggested", [str(one["suggested"]) for one in records], name=True),
            Column("wrong", [f"{one['wrong']:.0%}" for one in records]),
            *(
                Column(name, [_cut(value) for value in values], name=True)
                for name, values in (beside or {}).items()
            ),
        ]
    ]


def annotators_view(found: "AnnotatorRanking", *, limit: int = _SHOWN) -> View:
    """Annotators, best first, what to know before acting, the conclusion.

    Args:
        found: What :func:`jgram.rank_annotators` gave.
        limit: Annotators to show.
    """
    listed = found.annotators[:limit]
    partly = any(one.coverage < 1.0 for one in found.annotators)
    columns = [
        Column("annotator", [str(one.name) for one in listed], name=True),
        Column("rank", [f"{one.rank} [{one.first_rank}, {one.last_rank}]" for one in listed]),
        Column("answers", [str(one.answers) for one in listed]),
        *([Column("coverage", [f"{one.coverage:.0%}" for one in listed])] if partly else []),
        *(
            Column(
                name.replace("_", " "),
                [_reading(getattr(one, name), bounds) for one in listed],
            )
            for name, bounds in (
                ("log_score", found.by == "log_score"),
                ("determinant", found.by == "determinant"),
                ("accuracy", True),
            )
        ),
        Column("remarks", [", ".join(one.remarks) for one in listed], name=True),
    ]
    return [
        Line(f"{len(found.annotators)} annotators, {len(found.classes)} classes"),
        Line(f"ranked by {found.by.replace('_', ' ')}: {found.question}"),
        Line(),
        *([columns] if listed else []),
        *map(finding_line, found.findings),
        Line(found.conclusion, "bold"),
    ]


def _judged(
    records: Any, classes: int, how: str, through: Sequence[str], notes: Sequence[str]
) -> Iterator[Line]:
    seen = f", observed through {', '.join(through)}" if through else ""
    yield Line(f"{records} records, {classes} classes{seen}")
    yield Line(how)
    for note in notes:
        yield Line(note, "dim")
    yield Line()


def _published(reports: "Sequence[ScoreReport]", counts_scale: bool) -> list[Column]:
    scores = [
        "no score" if x.log_score is None else _plus_minus(x.log_score, x.interval) for x in reports
    ]
    columns = [Column(f"published log\nscore ± {reports[0].confidence:.0%}", scores)]
    if counts_scale:
        columns.append(Column("counts\nscale", [_counts(x.counts_log_score) for x in reports]))
    return columns


def grouped_findings(
    reports: "Sequence[ScoreReport]", ranking: "Ranking | None" = None
) -> "list[tuple[Finding, str]]":
    """The findings of reports, those that reports share as one, then the ranking's.

    Args:
        reports: Whose findings.
        ranking: The ranking they are of, if any: then messages name the report, and what only
            concerns the published score is left out.

    Returns:
        Each finding and what it says.
    """
    found = []
    shared: dict[tuple[str, str, int], list[tuple[str, Any]]] = {}
    for report in reports:
        alike = Counter()
        for finding in report.findings:
            if ranking and finding.concerns == "score":
                continue
            key = (finding.name, finding.advice, alike[finding.name])
            alike[finding.name] += 1
            shared.setdefault(key, []).append((report.name, finding))
    for group in shared.values():
        (first, finding), others = group[0], [report for report, _ in group[1:]]
        where = f"{first}: " if ranking else ""
        also = f" (also {', '.join(others)})" if others else ""
        found.append((finding, f"{where}{finding.message}{also}"))
    return found + [(finding, finding.message) for finding in (ranking.findings if ranking else ())]


def _findings_of(
    reports: "Sequence[ScoreReport]", ranking: "Ranking | None" = None
) -> Iterator[Line]:
    for finding, message in grouped_findings(reports, ranking):
        yield finding_line(finding, message)


def finding_line(finding: "Finding", message: str | None = None) -> Line:
    """A finding in the colour of its level."""
    style = {"fatal": "red", "warning": "yellow"}.get(finding.level, "")
    text = f"{finding.name}: {message or finding.message}; {finding.advice}"
    return Line(f"{finding.level} {text}", style)


def _keeps(report: "RankedReport") -> str:
    if report.keeps is None:
        return "not estimable"
    if report.keeps_interval is None or report.keeps_interval == (1.0, 1.0):
        return f"{report.keeps:.0%}"
    low, high = report.keeps_interval
    features = report.keeps_features_error
    also = "" if features is None else f", features ± {100 * features:.1f}%"
    return f"{report.keeps:.0%} [{low:.0%}, {high:.0%}]{also}"


def _p_value(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}"


def _plus_minus(value: float, interval: tuple[float, float] | None) -> str:
    """A number with half the width of its interval."""
    half = f" ± {(interval[1] - interval[0]) / 2:.2f}" if interval else ""
    return f"{value:.2f}{half}"


def _counts(log_value: float | None) -> str:
    """A number by its logarithm, in full where that can be read."""
    if log_value is None:
        return "0"
    return f"{exp(log_value):,.0f}" if log_value < 34 else f"e^{log_value:.2f}"


def _reading(reading: "Reading | None", with_interval: bool) -> str:
    if reading is None:
        return "none"
    bounds = f" [{reading.low:.2f}, {reading.high:.2f}]" if with_interval else ""
    return f"{reading.value:.2f}{bounds}"


def _cut(value: Any) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


# As text ------------------------------------------------------------------------------------


def to_text(view: View, width: int | None = None) -> str:
    """A view as plain text.

    Args:
        view: Lines and tables.
        width: Characters a line of a table; by default what the terminal holds, if it is one.

    Example:
        >>> print(to_text([[Column("report", ["ann"], name=True), Column("rank", ["1"])]]))
        report  rank
        ────────────
        ann        1
    """
    parts = [
        visible(part.text) if isinstance(part, Line) else f"{table(part, width or room())}\n"
        for part in view
    ]
    return "\n".join(parts).rstrip("\n")


def room() -> int:
    """Characters a line of the output holds: as many as it needs in a file or pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def table(columns: Sequence[Column], width: int) -> str:
    """A table in a width: names are shortened, then columns go below, numbers are never cut.

    Args:
        columns: The first one names the rows; it leads every part.
        width: Characters a line.

    Returns:
        Lines of text, parts separated by an empty line.

    Example:
        >>> names = Column("report", ["a long name", "b"], name=True)
        >>> print(table([names, Column("score", ["1.25", "7"])], 15))
        report    score
        ───────────────
        a lo…ame   1.25
        b             7
    """
    columns = [
        Column("\n".join(map(visible, head.split("\n"))), [visible(cell) for cell in cells], name)
        for head, cells, name in columns
    ]
    parts, (first, *others) = [], columns
    for column in others:
        if parts and sum(2 + _least(x) for x in (*parts[-1], column)) - 2 <= width:
            parts[-1].append(column)
        else:
            parts.append([first, column])
    return "\n\n".join(_part(part, width) for part in parts or [[first]])


def visible(text: str) -> str:
    """Characters that move the cursor or turn the direction of writing, as escapes."""
    return re.sub(f"[\x00-\x1f]|{OBEYED}", lambda match: repr(match[0])[1:-1], text)


def _cell_width(text: str) -> int:
    """Characters that a text takes on a line: East Asian ones take two, marks on others none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(x) else 2 if unicodedata.east_asian_width(x) in "WF" else 1
        for x in text
    )


def _width(column: Column) -> int:
    return max(map(_cell_width, (*column.head.split("\n"), *column.cells)))


def _least(column: Column) -> int:
    """The width that a column must have: all of numbers, so much of names that they differ."""
    if not column.name:
        return _width(column)
    least = max(_LEAST, *(_cell_width(line) for line in column.head.split("\n")))
    names = set(column.cells)
    enough = (
        width
        for width in range(least, _width(column))
        if len({_shortened(name, width) for name in names}) == len(names)
    )
    return next(enough, _width(column))


def _part(columns: Sequence[Column], width: int) -> str:
    widths = [_least(column) for column in columns]
    for j, column in enumerate(columns):  # room that is left goes to the names, from the left
        left = width - sum(widths) - 2 * (len(widths) - 1)
        widths[j] += max(0, min(left, _width(column) - widths[j]))
    height = max(column.head.count("\n") + 1 for column in columns)
    rows = [
        *zip(*([*[""] * (height - len(lines)), *lines]
               for lines in (column.head.split("\n") for column in columns)), strict=True),
        *zip(*(column.cells for column in columns), strict=True),
    ]  # fmt: skip
    lines = [
        "  ".join(
            _padded(_shortened(cell, size) if column.name else cell, size, left=column.name)
            for cell, size, column in zip(row, widths, columns, strict=True)
        ).rstrip()
        for row in rows
    ]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([*lines[:height], rule, *lines[height:]])


def _shortened(text: str, width: int) -> str:
    """Both ends of a text that is too long: names often differ at the end."""
    shown = text
    for kept in range(len(text) - 1, 1, -1):
        if _cell_width(shown) <= width:
            break
        shown = text[: (kept + 1) // 2] + "…" + text[-(kept // 2) :]
    return shown


def _padded(text: str, width: int, *, left: bool) -> str:
    spaces = " " * (width - _cell_width(text))
    return text + spaces if left else spaces + text


# As HTML, as a frame, as JSON ---------------------------------------------------------------


def to_html(view: View) -> str:
    """A view as a piece of HTML: all text escaped, no script, no style sheet.

    Args:
        view: Lines and tables.

    Example:
        >>> to_html([Line("a < b", "bold")])
        '<div><p><b>a &lt; b</b></p></div>'
    """
    parts = []
    for part in view:
        if isinstance(part, Line):
            text = escape(visible(part.text))
            text = f"<b>{text}</b>" if part.style == "bold" else text
            parts.append(f"<p>{text}</p>" if text else "")
            continue
        aligned = ["left" if column.name else "right" for column in part]
        heads = [
            "<br>".join(escape(visible(line)) for line in column.head.split("\n"))
            for column in part
        ]
        rows = zip(
            *([escape(visible(cell)) for cell in column.cells] for column in part), strict=True
        )
        parts.append(
            f"<table><thead>{_row('th', heads, aligned)}</thead><tbody>"
            f"{''.join(_row('td', row, aligned) for row in rows)}</tbody></table>"
        )
    return f"<div>{''.join(parts)}</div>"


def _row(tag: str, cells: Sequence[str], aligned: Sequence[str]) -> str:
    inner = "".join(
        f'<{tag} style="text-align:{side}">{cell}</{tag}>'
        for cell, side in zip(cells, aligned, strict=True)
    )
    return f"<tr>{inner}</tr>"


def to_frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """Columns as a data frame, through narwhals.

    Args:
        columns: Name to values ``[n]``.
        library: ``"pandas"``, ``"polars"`` or ``"pyarrow"``; by default the first that is there.

    Returns:
        A data frame of that library.

    Raises:
        ValueError: No such library, or none installed.

    Example:
        >>> to_frame({"report": ["ann"], "keeps": [1.0]}, "polars").shape
        (1, 2)
    """
    if library not in (None, *_LIBRARIES):
        raise ValueError(f"library: expected one of {', '.join(_LIBRARIES)}, got {library!r}")
    for name in _LIBRARIES if library is None else (library,):
        try:
            import_module(name)
            import narwhals as nw
        except ImportError:
            continue
        return nw.from_dict(dict(columns), backend=name).to_native()  # type: ignore[arg-type]
    raise ValueError(
        f"to_frame takes narwhals and {library or 'pandas, polars or pyarrow'}: pip install "
        "'jgram[cli]'" + (" polars" if library == "polars" else "")
    )


def score_row(found: "ScoreReport") -> dict[str, Any]:
    """A score as one flat row, its interval as two columns."""
    low, high = found.interval or (None, None)
    return {
        "report": found.name,
        "log_score": found.log_score,
        "log_score_low": low,
        "log_score_high": high,
        "standard_error": found.standard_error,
        "normalised_score": found.normalised_score,
        "hadamard_ratio": found.hadamard_ratio,
        "seen": found.seen,
        "noise_p_value": found.noise_p_value,
        "num_records": found.num_records,
        "num_classes": found.num_classes,
        "reason": found.reason,
    }


def ranking_rows(found: "Ranking") -> dict[str, list[Any]]:
    """A ranking as columns, one row a report, best first."""
    rows = []
    for report in found.reports:
        low, high = report.keeps_interval or (None, None)
        published = score_row(report.published)
        rows.append(
            {
                "report": report.name,
                "keeps": report.keeps,
                "keeps_low": low,
                "keeps_high": high,
                "first_rank": report.first_rank,
                "last_rank": report.last_rank,
                "noise_p_value": report.noise_p_value,
                "inside_noise": report.inside_noise,
                **{name: published[name] for name in ("log_score", "log_score_low",
                                                      "log_score_high", "num_records")},
            }
        )  # fmt: skip
    return columns(rows)


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows that are named alike as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def to_record(result: Any, **more: Any) -> dict[str, Any]:
    """A result as plain data: its schema, all its fields, its properties.

    Args:
        result: A result whose class names its ``SCHEMA``.
        more: What stands beside it, in front.
    """
    from jgram.data.json import to_data

    hidden = {
        field.name: to_data(getattr(result, field.name))
        for field in dataclasses.fields(result)
        if not field.repr
    }
    return {"schema": result.SCHEMA, **to_data(more), **to_data(result), **hidden}


def to_json(result: Any, **more: Any) -> str:
    """A result as strict JSON that :func:`jgram.load` reads; arguments as in :func:`to_record`."""
    from jgram.data.json import to_json

    return to_json(to_record(result, **more))
