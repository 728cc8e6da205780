"""The one door for outputs: all paths of a command are looked at before the work, then written."""

import csv
import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from glob import iglob
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from secrets import token_hex
from stat import S_ISDIR, S_ISREG
from typing import Any

__all__ = [
    "FIGURES", "PAGES", "TABLES", "check_outputs", "in_shell", "save", "spelled", "unfinished",
    "unspelled", "whole_file", "write_records", "write_text",
]  # fmt: skip

unfinished: set[Path] = set()  # what a signal has to remove
TABLES = (".csv", ".json")
PAGES = (".html", ".htm")
FIGURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".eps")
_READ = (".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".npz", *FIGURES)
_IN_PYTHON = {
    r"\b\w+=('?)\w*\1 \((--[^)]*)\)": r"\2",  # missing='drop' (--missing drop)
    r"\([\w.]+=?, (--[^)]*)\)": r"(\1)",  # (y=, --observation)
    r"\b(classes|abstain)=(?!\w|')": r"--\1",
}
_RUN = tuple("=+-@\t\r\n")  # what a spreadsheet takes for a formula, at the start of a cell


def check_outputs(
    outputs: Mapping[str, tuple[Path | None, Sequence[str]]], inputs: Iterable[Path | None]
) -> None:
    """Refuse, before any work, files that could not be written after it, or would lose others:
    inputs, what will be read with them, other outputs, tables in which somebody wrote answers.

    ``outputs`` has by option the file, and the suffixes that it may have; none for a folder.

    Example:
        >>> check_outputs({"--out": (Path("a.xls"), (".csv", ".json"))}, [])
        Traceback (most recent call last):
        ValueError: a.xls: expected a .csv or .json file
    """
    given = {option: path for option, (path, _) in outputs.items() if path is not None}
    for option, path in given.items():
        if suffixes := outputs[option][1]:
            _check_file(path, suffixes)
        if suffixes in (FIGURES, PAGES) and find_spec("matplotlib") is None:
            raise ValueError(f"{option} takes matplotlib: pip install 'jgram[cli]'")
    for (one, path), (other, second) in combinations(given.items(), 2):
        if _same(path, second):
            raise ValueError(f"{other}: expected another file than {one}, got {second} for both")
    for source in inputs:
        if source is not None and str(source) != "-":
            for option, path in given.items():
                _check_apart(option, path, source)
    for path in given.values():
        if path.suffix.lower() == ".csv" and path.is_file() and _has_answers(path):
            raise ValueError(
                f"{path}: expected a new file, got one with answers in the column right: give it "
                "with --checked, or write another"
            )


def _check_file(path: Path, suffixes: Sequence[str]) -> None:
    if path.suffix.lower() not in suffixes:
        *others, last = suffixes
        shown = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(f"{path}: expected {'an' if shown[1] in 'n' else 'a'} {shown} file")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}: make it first")
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not S_ISREG(mode):
            got = "folder" if S_ISDIR(mode) else "device"
            raise ValueError(f"{path}: expected a file, got a {got}")
    folder = Path(os.path.realpath(path)).parent
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, or would be where large and small letters are alike."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return os.path.realpath(one).casefold() == os.path.realpath(other).casefold()


def _check_apart(option: str, path: Path, source: Path) -> None:
    """Refuse an output that is an input, or would be one the next time."""
    if source.is_dir():
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(source))
        among = inside and (path.suffix.lower() in _READ or not path.suffix)
        files: Iterable[Any] = source.rglob("*") if path.exists() else ()
    else:
        among = fnmatch(os.path.abspath(path), os.path.abspath(source))
        files = [source] if source.exists() else iglob(str(source), recursive=True)
    if among or any(_same(path, Path(file)) for file in files):
        raise ValueError(
            f"{option}: expected a place that is not read, got {path} of the input {source}: "
            "name another"
        )


def _has_answers(path: Path) -> bool:
    """Whether somebody filled in the column ``right`` of a table, in a spreadsheet perhaps."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        head = file.readline()
        delimiter = max(",;\t", key=head.count)
        names = [name.strip(' "\r\n') for name in head.split(delimiter)]
        if "right" not in names:
            return False
        place = names.index("right")
        try:
            rows = csv.reader(file, delimiter=delimiter)
            return any(row[place].strip() for row in rows if len(row) > place)
        except csv.Error:  # nobody knows what is in it
            return True


def in_shell(text: str) -> str:
    """Advice for who types commands: options in the place of what one writes in Python.

    Example:
        >>> in_shell("list them in classes=, or drop records with missing='drop' (--missing drop)")
        'list them in --classes, or drop records with --missing drop'
    """
    for pattern, option in _IN_PYTHON.items():
        text = re.sub(pattern, option, text)
    return text


def spelled(value: Any) -> Any:
    """A cell that no spreadsheet runs: a text that begins like a formula gets an apostrophe.

    Example:
        >>> spelled("=1+1"), spelled("-1"), spelled(-1)
        ("'=1+1", '-1', -1)
    """
    if not isinstance(value, str) or not value.startswith(_RUN):
        return value
    return value if re.fullmatch(r"[+-]?[\d.]+([eE][+-]?\d+)?", value) else f"'{value}"


def unspelled(text: str) -> str:
    """What :func:`spelled` made a cell of."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(_RUN) else text


def write_records(path: Path, text: str, records: Iterable[Mapping[str, Any]]) -> None:
    """A result into a ``.json`` or ``.csv`` file: the JSON text, or its records, named alike."""
    if path.suffix.lower() == ".json":
        write_text(path, text)
        return
    with whole_file(path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
        writer, names = csv.writer(file), None
        for record in records:
            if names is None:
                writer.writerow(map(spelled, names := record))
            writer.writerow(map(spelled, record.values()))


def write_text(path: Path, text: str) -> None:
    """A text into a file, which ends with the end of a line."""
    with whole_file(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8", newline="\n")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside the file to write to, which takes the file's name once all went well.

    It has a name that nobody can foresee, and is made here: no link that lies there is followed.
    An ``OSError``, of a full disk for example, is of the file by its own name.
    """
    target = Path(os.path.realpath(path))  # a link stays one
    beside = target.with_name(f".{target.stem[:32]}-{token_hex(8)}{target.suffix}")
    unfinished.add(beside)
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(beside, flags, 0o666))
        yield beside
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        beside.unlink(missing_ok=True)
        unfinished.discard(beside)


def save(drawing: Any, path: Path) -> None:
    """Write a figure to a file, whose suffix names the format."""
    with whole_file(path) as beside:
        drawing.savefig(beside, dpi=200)
