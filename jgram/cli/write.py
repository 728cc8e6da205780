"""Files that are there whole or not at all."""

import csv
import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jgram.whole_file import unfinished, whole_file

__all__ = ["check_target", "to_text", "unfinished", "whole_file", "write_records"]


def check_target(path: Path | None, suffixes: Sequence[str]) -> None:
    """Refuse, before any work, a file that could not be written after it.

    Args:
        path: The file, if there is one.
        suffixes: Those that it may have, such as ``.csv``.

    Raises:
        ValueError: Another suffix, no such folder, a folder instead of a file.
        PermissionError: A folder that cannot be written to.
    """
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        *others, last = suffixes
        shown = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(f"{path}: expected {'an' if shown[1] in 'n' else 'a'} {shown} file")
    if path.is_dir():
        raise ValueError(f"{path}: expected a file, got a folder")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}: make it first")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))


def to_text(record: Mapping[str, Any]) -> str:
    """A result as JSON."""
    from jgram.data import to_json

    return to_json(record)


def write_records(path: Path | None, text: str, records: Sequence[Mapping[str, Any]]) -> None:
    """The JSON text, or its records as CSV, into a file if there is one.

    Args:
        path: A ``.json`` or ``.csv`` file.
        text: The JSON.
        records: The rows of the CSV file, named alike.
    """
    if path is None:
        return
    with whole_file(path) as beside:
        if path.suffix.lower() == ".json":
            beside.write_text(text + "\n", encoding="utf-8")
            return
        with beside.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(records[0]) if records else [])
            writer.writeheader()
            writer.writerows(records)
