"""Files that are there whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

__all__ = ["unfinished", "whole_file"]

unfinished: set[Path] = set()  # what a signal has to remove


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside the file to write to, which takes the file's name once all went well.

    It has a name that nobody can foresee, and is made here: no link that lies there is followed.

    Args:
        path: The file; what it held stays until then.

    Yields:
        The path to write to, of the same suffix.

    Raises:
        OSError: Of the file by its own name, a full disk for example.
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
