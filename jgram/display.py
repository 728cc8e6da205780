"""Results that show themselves: a result declares its lines and tables once, all else follows.

``print`` takes them as plain text, a notebook as HTML, the command line in colours, ``--html`` as a
page; the first table is the data frame and the CSV file. Nothing is computed here.
"""

import dataclasses
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import import_module
from math import isfinite
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from jgram.findings import Finding

__all__ = [
    "OBEYED", "SHOWN", "Field", "Line", "Shown", "Table", "View", "attributes_of", "between",
    "cell_width", "columns", "conclusion_of", "finding_line", "in_brackets", "judged", "laid_out",
    "p_value", "records", "room", "share", "shortened", "table_html", "texts", "to_frame",
    "to_html", "to_record", "to_text", "visible", "wrapped",
]  # fmt: skip

SHOWN = 20  # rows of a long table
NUMBERS = "reports of numbers, by their ranks: units and strictness do not matter, order does"
OBEYED = "[\x7f-\x9f\u2028-\u202e\u2066-\u2069]"  # by a terminal, beside those before the space
_LEAST = 8  # characters that a shortened name keeps
_LEFT = ' style="text-align:left"'
_LIBRARIES = ("pandas", "polars", "pyarrow")


class Line(NamedTuple):
    """A line of text: plain, the conclusion, an aside, or a finding of some level."""

    text: str = ""
    style: str = ""  # "conclusion", "aside", "note", "warning" or "fatal"


class Field(NamedTuple):
    """A column of a table, said once.

    Attributes:
        head: Above it; one without is in frames and files only.
        value: Of a row; several values where it has several keys.
        text: Of the value.
        keys: Names of its columns in frames and files; none where it is not in them.
        name: Whether it holds names, which may be shortened and stand left; numbers neither.
        detail: Whether only a page has room for it.
    """

    head: str
    value: Callable[[Any], Any]
    text: Callable[[Any], str] = str
    keys: tuple[str, ...] = ()
    name: bool = False
    detail: bool = False


class Table(NamedTuple):
    """Rows, and what is said of each; the first field names them.

    Attributes:
        caption: What the rows are.
        rows: Anything that the fields' ``value`` takes.
        fields: The columns.
        long: Whether a terminal shows the first rows only.
        detail: Whether only a page has room for it.
        most: Rows of a long table that a terminal shows at most.
        picture: What draws it, for a page; the first table of a page has the result's.
    """

    caption: str
    rows: Sequence[Any]
    fields: Sequence[Field]
    long: bool = False
    detail: bool = False
    most: int = sys.maxsize
    picture: Callable[[], Any] | None = None


View = Sequence[Line | Table]


class Shown:
    """A result that shows itself: ``view`` gives its lines and tables.

    Attributes:
        SCHEMA: The name of its JSON.
        view: A method, of where the records came from: ``observations`` by name, and ``notes``.
    """

    SCHEMA: ClassVar[str]
    view: Callable[..., View]
    plot: Callable[[], Any]

    def table(self) -> Table:
        """What :meth:`to_frame` and a CSV file hold."""
        return next(part for part in self.view() if isinstance(part, Table))

    def __str__(self) -> str:
        """What the command shows."""
        return to_text(self.view())

    def _repr_html_(self) -> str:
        return to_html(self.view())

    def records(self) -> list[dict[str, Any]]:
        """The rows of :meth:`to_frame`, each by name."""
        return records(self.table())

    def to_frame(self, library: str | None = None) -> Any:
        """A row each, as a frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"``."""
        return to_frame(columns(self.table()), library)

    def to_json(self) -> str:
        """All of it as JSON, which :func:`jgram.load` reads."""
        from jgram.data.json import to_json

        return to_json(to_record(self))


# Values in words ----------------------------------------------------------------------------


def share(value: float | None) -> str:
    """A share in percent."""
    return "not estimable" if value is None else f"{value:.0%}"


def p_value(value: float) -> str:
    """A p-value."""
    return "<.001" if value < 0.001 else f"{value:.3f}"


def between(ranks: tuple[int, int]) -> str:
    """Two ranks, or one where they are the same."""
    first, last = ranks
    return f"{first}" if first == last else f"{first}-{last}"


def in_brackets(form: str, absent: str = "none") -> Callable[[Sequence[Any]], str]:
    """A value, and its interval in brackets where it has one; what stands where there is none.

    Example:
        >>> in_brackets(".0%")((0.5, 0.4, 0.6)), in_brackets(".2f")((None, None, None))
        ('50% [40%, 60%]', 'none')
    """

    def text(values: Sequence[Any]) -> str:
        value, low, high = values
        if value is None:
            return absent
        return f"{value:{form}}" + ("" if low is None else f" [{low:{form}}, {high:{form}}]")

    return text


def judged(
    records: Any, classes: int, how: str, source: Mapping[str, Any] | None, *more: str
) -> list[Line]:
    """What was judged, and what was done to it before; no classes where reports are numbers."""
    source = source or {}
    through = ", ".join(source.get("observations", ()))
    seen = f", observed through {through}" if through else ""
    asides = [*source.get("notes", ()), *more]
    return [
        Line(f"{records} records, {f'{classes} classes' if classes else NUMBERS}{seen}"),
        Line(how),
        *(Line(text, "aside") for text in asides),
        Line(),
    ]


def finding_line(finding: "Finding", message: str | None = None) -> Line:
    """A finding, and what to do about it."""
    text = f"{finding.level} {finding.name}: {message or finding.message}; {finding.advice}"
    return Line(text, finding.level)


def conclusion_of(view: View) -> str:
    """The line that concludes."""
    lines = [part for part in view if isinstance(part, Line)]
    return next(line.text for line in lines if line.style == "conclusion")


def attributes_of(kind: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of each attribute.

    Example:
        >>> attributes_of(Field)["head"]
        'Above it; one without is in frames and files only.'
    """
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = (base.__doc__ or "").partition("Attributes:")[2]
        entries = re.findall(r"^ +(\w+): (.*(?:\n {12,}.*)*)", text, re.M)
        found |= {name: " ".join(said.split()) for name, said in entries}
    return found


# As text ------------------------------------------------------------------------------------


def to_text(view: View, width: int | None = None, limit: int = SHOWN) -> str:
    """A view as plain text.

    Args:
        view: Lines and tables.
        width: Characters a line; by default what the terminal holds, if it is one.
        limit: Rows of a long table.

    Example:
        >>> names = Field("report", lambda row: row[0], name=True)
        >>> print(to_text([Table("", [("ann", 1)], [names, Field("rank", lambda row: row[1])])]))
        report  rank
        ────────────
        ann        1
    """
    parts = [
        wrapped(part.text, width) if isinstance(part, Line) else f"{laid_out(part, width, limit)}\n"
        for part in view
        if isinstance(part, Line) or (len(part.rows) and not part.detail)
    ]
    return "\n".join(parts).rstrip("\n")


def room() -> int:
    """Characters a line of the output holds: as many as it needs in a file or pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def wrapped(text: str, width: int | None = None) -> str:
    """A line that moves no cursor, cut at words where a terminal ends.

    Example:
        >>> print(wrapped("the data cannot tell", 12))
        the data
        cannot tell
    """
    width = min(width or room(), 1 << 30)
    return fill(visible(text), width, break_long_words=False, break_on_hyphens=False)


def visible(text: str) -> str:
    """Characters that move the cursor or turn the direction of writing, as escapes."""
    return re.sub(f"[\x00-\x1f]|{OBEYED}", lambda match: repr(match[0])[1:-1], text)


def texts(table: Table, limit: int | None = None, *, detail: bool = False) -> "list[_Column]":
    """The columns of a table that are shown, in words that no terminal obeys.

    Args:
        table: What to show.
        limit: Rows at most.
        detail: Whether there is room for details.
    """
    return [
        _Column(
            [visible(line) for line in field.head.split("\n")],
            [visible(field.text(field.value(row))) for row in table.rows[:limit]],
            field.name,
        )
        for field in table.fields
        if field.head and (detail or not field.detail)
    ]


def laid_out(
    table: Table, width: int | None = None, limit: int = SHOWN, spell: Callable[[str], str] = str
) -> str:
    """A table in a width: names are shortened, then columns go below, numbers are never cut.

    Args:
        table: Its first field leads every part.
        width: Characters a line; by default what the terminal holds, if it is one.
        limit: Rows of a long table.
        spell: What the output makes of a text.

    Returns:
        Lines of text, parts separated by an empty line.

    Example:
        >>> names = Field("report", lambda row: row[0], name=True)
        >>> score = Field("score", lambda row: row[1])
        >>> print(laid_out(Table("", [("a long name", 1.25), ("b", 7)], [names, score]), 15))
        report    score
        ───────────────
        a lo…ame   1.25
        b             7
    """
    width = width or room()
    limit = min(limit, table.most) if table.long else len(table.rows)
    first, *others = [
        _Column([*map(spell, head)], [*map(spell, cells)], name)
        for head, cells, name in texts(table, limit)
    ]
    parts = []
    for column in others:
        if parts and sum(2 + _least(x) for x in (*parts[-1], column)) - 2 <= width:
            parts[-1].append(column)
        else:
            parts.append([first, column])
    more = [f"{len(table.rows) - limit:,} more"] if len(table.rows) > limit else []
    return "\n\n".join(_part(part, width) for part in parts or [[first]]) + "\n".join(["", *more])


class _Column(NamedTuple):
    """Texts of a column: lines of its head, and cells."""

    head: list[str]
    cells: list[str]
    name: bool


def cell_width(text: str) -> int:
    """Characters that a text takes on a line: East Asian ones take two, marks on others none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(x) else 2 if unicodedata.east_asian_width(x) in "WF" else 1
        for x in text
    )


def _width(column: _Column) -> int:
    return max(map(cell_width, (*column.head, *column.cells)))


def _least(column: _Column) -> int:
    """The width that a column must have: all of numbers, so much of names that they differ."""
    if not column.name:
        return _width(column)
    names, most = set(column.cells), _width(column)
    widths = range(max(_LEAST, *map(cell_width, column.head)), most)
    apart = (width for width in widths if len({_cut(x, width) for x in names}) == len(names))
    return next(apart, most)


def _part(columns: Sequence[_Column], width: int) -> str:
    widths = [_least(column) for column in columns]
    for j, column in enumerate(columns):  # room that is left goes to the names, from the left
        left = width - sum(widths) - 2 * (len(widths) - 1)
        widths[j] += max(0, min(left, _width(column) - widths[j]))
    height = max(len(column.head) for column in columns)
    stacked = ([""] * (height - len(one.head)) + one.head + one.cells for one in columns)
    lines = [
        "  ".join(map(_fitted, row, widths, (one.name for one in columns))).rstrip()
        for row in zip(*stacked, strict=True)
    ]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([*lines[:height], rule, *lines[height:]])


def shortened(text: str, fits: Callable[[str], bool]) -> str:
    """Both ends of a text that is too long: names often differ at the end."""
    shown = text
    for kept in range(len(text) - 1, 1, -1):
        if fits(shown):
            break
        shown = text[: (kept + 1) // 2] + "…" + text[-(kept // 2) :]
    return shown


def _cut(text: str, width: int) -> str:
    return shortened(text, lambda shown: cell_width(shown) <= width)


def _fitted(cell: str, width: int, name: bool) -> str:
    """Names are cut and stand left, numbers right."""
    shown = _cut(cell, width) if name else cell
    spaces = " " * (width - cell_width(shown))
    return shown + spaces if name else spaces + shown


# As HTML, as a frame, as JSON ---------------------------------------------------------------


def to_html(view: View) -> str:
    """A view as a piece of HTML for a notebook: all text escaped, no script, no style sheet.

    Example:
        >>> to_html([Line("a < b", "conclusion")])
        '<div><p><b>a &lt; b</b></p></div>'
    """
    parts = []
    for part in view:
        if isinstance(part, Table):
            parts.append("" if part.detail or not len(part.rows) else table_html(part))
            continue
        text = escape(visible(part.text))
        text = f"<b>{text}</b>" if part.style == "conclusion" else text
        parts.append(f"<p>{text}</p>" if text else "")
    return f"<div>{''.join(parts)}</div>"


def table_html(table: Table, limit: int = SHOWN, heading: str | None = None) -> str:
    """A table as HTML.

    Args:
        table: What to show.
        limit: Rows of a long table.
        heading: The heading of its page, by ``id``; a page has a style sheet, room for details, and
            sorts: its cells say by what number.
    """
    page = heading is not None
    shown = [field for field in table.fields if field.head and (page or not field.detail)]
    columns = texts(table, limit if table.long or page else None, detail=page)
    number, name = (' class="n"', "") if page else (' style="text-align:right"', _LEFT)
    sides = [name if column.name else number for column in columns]
    heads = "".join(
        f'<th scope="col"{side}>{"<br>".join(map(escape, column.head))}</th>'
        for column, side in zip(columns, sides, strict=True)
    )
    rows = []
    for row, *cells in zip(table.rows, *(column.cells for column in columns), strict=False):
        tags = ['th scope="row"', *["td"] * (len(cells) - 1)]
        made = [
            f"<{tag}{side}{_sorted_by(field, row) if page else ''}>{escape(cell)}</{tag[:2]}>"
            for tag, side, field, cell in zip(tags, sides, shown, cells, strict=True)
        ]
        rows.append(f"<tr>{''.join(made)}</tr>")
    named = f' aria-labelledby="{heading}"' if page else ""
    caption = "" if page or not table.caption else f"<caption>{escape(table.caption)}</caption>"
    head = f"<thead><tr>{heads}</tr></thead>"
    return f"<table{named}>{caption}{head}<tbody>{''.join(rows)}</tbody></table>"


def _sorted_by(field: Field, row: Any) -> str:
    value = field.value(row)
    value = value[0] if isinstance(value, tuple) else value
    number = isinstance(value, int | float) and not field.name and isfinite(value)
    return f' data-value="{float(value):.9g}"' if number else ""


def columns(table: Table) -> dict[str, list[Any]]:
    """The columns of a frame or file by name."""
    found: dict[str, list[Any]] = {}
    for field in table.fields:
        values = [field.value(row) for row in table.rows]
        if len(field.keys) == 1:
            found[field.keys[0]] = values
        else:
            found |= {key: [value[i] for value in values] for i, key in enumerate(field.keys)}
    return found


def records(table: Table) -> list[dict[str, Any]]:
    """The rows of a frame or file, each by name."""
    named = columns(table)
    return [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]


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
