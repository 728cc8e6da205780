"""What the terminal shows: lines, tables that fit it, findings, progress."""

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from jgram.report import RankedReport, Ranking, ScoreReport

__all__ = [
    "Column",
    "columns_of",
    "counts",
    "plus_minus",
    "progress",
    "room",
    "say",
    "say_error",
    "say_finding",
    "say_findings",
    "say_json",
    "say_ranked",
    "say_reports",
    "say_table",
    "table",
]

_PLAIN = str.maketrans({"±": "+-", "−": "-", "²": "2", "∞": "inf", "…": "~", "─": "-"})
_LEAST = 8  # characters that a shortened name keeps


class Column(NamedTuple):
    """A column of a table: names may be shortened and stand left, numbers neither."""

    head: str
    cells: Sequence[str]
    name: bool = False


def say(text: str = "", style: str = "") -> None:
    """Print text as it is, lines as long as they are: terminals wrap them, pipes should not."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_printable(text), style=style, soft_wrap=True)


def say_error(text: str) -> None:
    """Print one line on stderr, where the answer is for a program to read."""
    sys.stderr.write(f"jgram: {text}\n")


def say_json(text: str) -> None:
    """Print JSON, in escapes where the terminal cannot show its characters."""
    if _printable(text) != text:
        text = json.dumps(json.loads(text), indent=2)
    print(text)


def say_finding(finding: Any, message: str | None = None) -> None:
    """Print a finding in the colour of its level."""
    style = {"fatal": "red", "warning": "yellow"}.get(finding.level, "")
    text = f"{finding.name}: {message or finding.message}; {finding.advice}"
    say(f"{finding.level} {text}", style)


def say_findings(reports: "Sequence[ScoreReport]", ranking: "Ranking | None" = None) -> None:
    """Print the findings of reports, those that reports share in one line, then the ranking's."""
    shared: dict[tuple[str, str, int], list[tuple[str, Any]]] = {}
    for report in reports:
        alike = Counter()
        for finding in report.findings:
            key = (finding.name, finding.advice, alike[finding.name])
            alike[finding.name] += 1
            shared.setdefault(key, []).append((report.name, finding))
    for group in shared.values():
        (first, finding), others = group[0], [report for report, _ in group[1:]]
        where = f"{first}: " if ranking else ""
        also = f" (also {', '.join(others)})" if others else ""
        say_finding(finding, f"{where}{finding.message}{also}")
    for finding in ranking.findings if ranking else ():
        say_finding(finding)


def say_reports(
    reports: "Sequence[ScoreReport]", source: Mapping[str, Any], *, counts_scale: bool
) -> None:
    """Print what was judged, and a table of the published scores."""
    first = reports[0]
    _say_source(first.num_records, first.num_classes, source, f"kernel {first.kernel}")
    say_table([Column("report", [report.name for report in reports], name=True),
               *_published(reports, counts_scale)])  # fmt: skip


def say_ranked(found: "Ranking", source: Mapping[str, Any], *, counts_scale: bool) -> None:
    """Print what was judged, and a table of the reports, best first."""
    _say_source(found.num_records, found.num_classes, source, found.observations)
    if found.block_length > 1:
        say(f"records in order of time, judged in blocks of {found.block_length}", "dim")
    ranks = [f"{x.first_rank}" if x.first_rank == x.last_rank else f"{x.first_rank}-{x.last_rank}"
             for x in found.reports]  # fmt: skip
    columns = [
        Column("report", [report.name for report in found.reports], name=True),
        Column(
            f"keeps of the best\n{found.confidence:.0%} interval",
            [_keeps(x) for x in found.reports],
        ),
        Column("rank", ranks),
        Column("p of\nnoise", [_p_value(x.noise_p_value) for x in found.reports]),
    ]
    published = [report.published for report in found.reports]
    say_table([*columns, *_published(published, counts_scale)])
    say(
        "'keeps': the share of the best report's information about the truth that a report keeps",
        "dim",
    )


def _say_source(records: Any, classes: int, source: Mapping[str, Any], how: str) -> None:
    through = ", ".join(source["observations"])
    say(f"{records} records, {classes} classes, observed through {through}")
    say(how)
    for note in source["notes"]:
        say(note, "dim")
    say()


def _published(reports: "Sequence[ScoreReport]", counts_scale: bool) -> list[Column]:
    scores = [
        "no score" if x.log_score is None else plus_minus(x.log_score, x.interval) for x in reports
    ]
    columns = [Column(f"published log\nscore ± {reports[0].confidence:.0%}", scores)]
    if counts_scale:
        columns.append(Column("counts\nscale", [counts(x.counts_log_score) for x in reports]))
    return columns


def _keeps(report: "RankedReport") -> str:
    if report.keeps is None:
        return "not estimable"
    if report.keeps_interval is None or report.keeps_interval == (1.0, 1.0):
        return f"{report.keeps:.0%}"
    low, high = report.keeps_interval
    return f"{report.keeps:.0%} [{low:.0%}, {high:.0%}]"


def _p_value(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}"


def say_table(columns: Sequence[Column]) -> None:
    """Print a table that fits the output."""
    columns = [
        Column(_printable(head), [_printable(_visible(cell)) for cell in cells], name)
        for head, cells, name in columns
    ]
    say(table(columns, room()) + "\n")


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
    parts, (first, *others) = [], columns
    for column in others:
        if parts and sum(2 + _least(x) for x in (*parts[-1], column)) - 2 <= width:
            parts[-1].append(column)
        else:
            parts.append([first, column])
    return "\n\n".join(_part(part, width) for part in parts or [[first]])


def columns_of(records: Sequence[Mapping[str, Any]], **names: bool) -> list[Column]:
    """Records as columns of a table.

    Args:
        records: Mappings of the same names.
        names: Those to show, and whether they hold names rather than numbers.
    """
    return [
        Column(name.replace("_", " "), [_shown(record[name]) for record in records], is_name)
        for name, is_name in names.items()
    ]


@contextmanager
def progress(task: str) -> Iterator[Callable[[int, int], None]]:
    """On a terminal, what is being done and for how long; gone when it is done.

    Yields:
        A function of how many files are read and how many there are, which shows a bar.
    """
    console = Console(stderr=True)
    parts = SpinnerColumn("line"), TextColumn("{task.description}"), TimeElapsedColumn()
    shown = console.is_terminal and not console.is_dumb_terminal
    with Progress(*parts, console=console, transient=True, disable=not shown) as bar:
        number = bar.add_task(task, total=None)

        def update(done: int, total: int) -> None:
            spinner, words, elapsed = parts
            count = TextColumn("{task.completed:.0f} of {task.total:.0f} files")
            bar.columns = (spinner, words, BarColumn(), count, elapsed)
            bar.update(number, completed=done, total=total)

        yield update


def plus_minus(value: float, interval: tuple[float, float] | None) -> str:
    """A number with half the width of its interval."""
    half = f" ± {(interval[1] - interval[0]) / 2:.2f}" if interval else ""
    return f"{value:.2f}{half}"


def counts(log_value: float | None) -> str:
    """A number by its logarithm, in full where that can be read."""
    if log_value is None:
        return "0"
    return f"{exp(log_value):,.0f}" if log_value < 34 else f"e^{log_value:.2f}"


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _visible(text: str) -> str:
    """Control characters as escapes, so that no name moves the cursor."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda match: repr(match[0])[1:-1], text)


def _printable(text: str) -> str:
    """Text in characters that the output can encode."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _width(column: Column) -> int:
    return max(map(cell_len, (*column.head.split("\n"), *column.cells)))


def _least(column: Column) -> int:
    """The width that a column must have: all of numbers, so much of names that they differ."""
    if not column.name:
        return _width(column)
    least = max(_LEAST, *(cell_len(line) for line in column.head.split("\n")))
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
        room = width - sum(widths) - 2 * (len(widths) - 1)
        widths[j] += max(0, min(room, _width(column) - widths[j]))
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
    rule = _printable("─") * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([*lines[:height], rule, *lines[height:]])


def _shortened(text: str, width: int) -> str:
    """Both ends of a text that is too long: names often differ at the end."""
    shown = text
    for kept in range(len(text) - 1, 1, -1):
        if cell_len(shown) <= width:
            break
        shown = text[: (kept + 1) // 2] + _printable("…") + text[-(kept // 2) :]
    return shown


def _padded(text: str, width: int, *, left: bool) -> str:
    spaces = " " * (width - cell_len(text))
    return text + spaces if left else spaces + text
