"""What the terminal shows: results in colours, progress, errors; and where else a result goes."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import jgram.display as display
from jgram.cli.options import Output
from jgram.cli.outputs import in_shell, save, write_records
from jgram.display import OBEYED, SHOWN, Line, Shown, View, visible, wrapped

__all__ = [
    "CANNOT_TELL", "Answer", "emit", "progress", "say", "say_error", "say_json", "say_note",
    "say_view",
]  # fmt: skip

CANNOT_TELL = 3
_PLAIN = str.maketrans({"±": "+-", "−": "-", "²": "2", "∞": "inf", "…": "~", "─": "-", "·": "-"})
_STYLES = {"conclusion": "bold", "aside": "dim", "warning": "yellow", "fatal": "red"}


class Answer(NamedTuple):
    """What a command found, and all that goes out of it, where it is not what the result says."""

    found: Shown
    source: Mapping[str, Any]  # where the records came from: file, and perhaps more
    told: bool = True  # whether the data could tell
    view: View | None = None
    drawing: Any = None  # what --plot writes
    rows: Iterable[Mapping[str, Any]] | None = None  # what --out holds as CSV
    more: Mapping[str, Any] = {}  # what the JSON has beside the result
    written: Sequence[Path | None] = ()  # files that are there already


def emit(answer: Answer, output: Output) -> int:
    """An answer as words, JSON, files, page and plot: what the options say; gives the exit code."""
    from jgram.cli.page import write_page
    from jgram.data.json import to_json

    found, source, told, view, drawing, *_ = answer
    view = [
        part._replace(text=in_shell(part.text)) if isinstance(part, Line) else part
        for part in (found.view(source) if view is None else view)
    ]
    out, limit = getattr(output, "out", None), getattr(output, "limit", SHOWN)
    text = ""
    if out is not None or output.html is not None or output.json:
        text = to_json({**display.to_record(found, source=source), **answer.more})
    if out is not None:
        write_records(out, text, found.records() if answer.rows is None else answer.rows)
    if output.plot is not None:
        save(drawing or found.plot(), output.plot)
    if output.html is not None:
        write_page(output.html, view, found.plot(), source, text)
    if output.json:
        say_json(text)
    elif not output.quiet:
        say_view(view, limit)
        for path in (out, *answer.written, output.plot, output.html):
            if path is not None:
                say(f"written: {path}", "dim")
    if not told and (output.json or output.quiet):
        say_error(display.conclusion_of(view))
    return 0 if told else CANNOT_TELL


def say(text: str = "", style: str = "") -> None:
    """Print a line, cut at words where a terminal ends; pipes have it as long as it is."""
    _print(wrapped(text), style)


def _print(text: str, style: str = "") -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_printable(text), style=style, soft_wrap=True)


def say_error(text: str) -> None:
    """Print one line on stderr, where the answer is for a program to read."""
    sys.stderr.write(f"jgram: {visible(in_shell(text))}\n")


def say_note(text: str) -> None:
    """Print one line on stderr about what goes on, while the answer is not there yet."""
    sys.stderr.write(f"{visible(text)}\n")
    sys.stderr.flush()


def say_json(text: str) -> None:
    """Print JSON, in escapes where the terminal cannot show its characters."""
    if _printable(text) != text:
        text = json.dumps(json.loads(text), indent=2)
    print(re.sub(OBEYED, lambda match: json.dumps(match[0])[1:-1], text))


def say_view(view: View, limit: int = SHOWN) -> None:
    """Print lines in their styles, and tables that fit the output."""
    for part in view:
        if isinstance(part, Line):
            say(part.text, _STYLES.get(part.style, ""))
        elif len(part.rows) and not part.detail:
            _print(display.laid_out(part, limit=limit, spell=_printable) + "\n")


@contextmanager
def progress(task: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """On a terminal, what is being done and for how long; gone when it is done. Yields a function
    of how many files are read and how many there are, which shows a bar."""
    console = Console(stderr=True)
    said = TextColumn("{task.description}", markup=False)
    parts = SpinnerColumn("line"), said, TimeElapsedColumn()
    shown = console.is_terminal and not console.is_dumb_terminal and not quiet
    with Progress(*parts, console=console, transient=True, disable=not shown) as bar:
        number = bar.add_task(visible(task), total=None)

        def update(done: int, total: int) -> None:
            spinner, words, elapsed = parts
            count = TextColumn("{task.completed:.0f} of {task.total:.0f} files")
            bar.columns = (spinner, words, BarColumn(), count, elapsed)
            bar.update(number, completed=done, total=total)

        yield update


def _printable(text: str) -> str:
    """Text in characters that the output can encode."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text
