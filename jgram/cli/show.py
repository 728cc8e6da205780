"""What the terminal shows: views in colours, progress, errors."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from jgram.display import OBEYED, Column, Line, View, room, table, visible

__all__ = ["progress", "say", "say_error", "say_json", "say_note", "say_view"]

_PLAIN = str.maketrans({"±": "+-", "−": "-", "²": "2", "∞": "inf", "…": "~", "─": "-"})


def say(text: str = "", style: str = "") -> None:
    """Print a line as long as it is: terminals wrap them, pipes should not."""
    _print(visible(text), style)


def _print(text: str, style: str = "") -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_printable(text), style=style, soft_wrap=True)


def say_error(text: str) -> None:
    """Print one line on stderr, where the answer is for a program to read."""
    sys.stderr.write(f"jgram: {visible(text)}\n")


def say_note(text: str) -> None:
    """Print one line on stderr about what goes on, while the answer is not there yet."""
    sys.stderr.write(f"{visible(text)}\n")
    sys.stderr.flush()


def say_json(text: str) -> None:
    """Print JSON, in escapes where the terminal cannot show its characters."""
    if _printable(text) != text:
        text = json.dumps(json.loads(text), indent=2)
    print(re.sub(OBEYED, lambda match: json.dumps(match[0])[1:-1], text))


def say_view(view: View) -> None:
    """Print lines in their styles, and tables that fit the output."""
    for part in view:
        if isinstance(part, Line):
            say(part.text, part.style)
            continue
        columns = [
            Column(_printable(head), [_printable(cell) for cell in cells], name)
            for head, cells, name in part
        ]
        _print(table(columns, room()) + "\n")


@contextmanager
def progress(task: str) -> Iterator[Callable[[int, int], None]]:
    """On a terminal, what is being done and for how long; gone when it is done.

    Yields:
        A function of how many files are read and how many there are, which shows a bar.
    """
    console = Console(stderr=True)
    parts = (
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    shown = console.is_terminal and not console.is_dumb_terminal
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
