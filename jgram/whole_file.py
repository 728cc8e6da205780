"""Files that are there whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["unfinished", "whole_file"]

unfinished: set[Path] = set()  # what Ctrl-C has to remove


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name beside the file to write to, which takes the file's name once all went well.

    Args:
        path: The file; what it held stays until then.

    Yields:
        The path to write to, of the same suffix.

    Raises:
        OSError: Of the file by its own name, a full disk for example.
    """
    target = Path(os.path.realpath(path))  # a link stays one
    beside = target.with_name(f".{target.stem}-{os.getpid()}{target.suffix}")
    unfinished.add(beside)
    try:
        yield beside
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        beside.unlink(missing_ok=True)
        unfinished.discard(beside)
