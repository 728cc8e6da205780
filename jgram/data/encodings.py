"""The encoding of a text file: UTF-8 where it is, else what its mark or its characters say."""

import codecs
import functools
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["find_encoding", "open_bytes"]

_UTF_8 = "utf-8-sig"
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16",
          b"\xfe\xff": "utf-16"}  # fmt: skip
_POSSIBLE = [  # of spreadsheets, the most usual first
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
    "cp932", "gb18030", "big5", "cp949", "koi8_r", "mac_roman", "utf_16_le", "utf_16_be",
]  # fmt: skip
_BLOCK, _SAMPLE = 1 << 20, 1 << 16


def find_encoding(source: Path | bytes, encoding: str | None = None) -> str:
    """The encoding that reads all of a text file, which is read through for it once.

    A mark at its beginning tells it, UTF-8 needs none; any other is found from the lines that are
    not ASCII, by charset-normalizer.

    Raises:
        ValueError: Bytes that the encoding does not know, named by their row; an encoding that is
            not found, or not there.

    Example:
        >>> [find_encoding("größe;preis".encode(name)) for name in ("utf-8", "cp1252")]
        ['utf-8-sig', 'cp1252']
    """
    state = source.stat() if isinstance(source, Path) else None
    return _found(source, encoding, state and (state.st_size, state.st_mtime_ns, state.st_ino))


@functools.lru_cache(maxsize=1 << 14)
def _found(source: Path | bytes, encoding: str | None, _: Any) -> str:
    told = encoding
    if encoding is None:
        with open_bytes(source) as file:
            head = file.read(4)
        told = next((name for mark, name in _MARKS.items() if head.startswith(mark)), _UTF_8)
    fault = _fault(source, told or _UTF_8)
    if fault is None:
        return told or _UTF_8
    found = None if encoding else _guessed(source)
    if found is None or _fault(source, found) is not None:
        fix = "say which it is (--encoding cp1252)" if encoding is None else "it is another"
        raise ValueError(f"{source}: expected text in {told}, got {fault}: {fix}")
    return found


@contextmanager
def open_bytes(source: Path | bytes) -> Iterator[Any]:
    """The bytes of a file, of a path (also gzipped), or themselves."""
    if not isinstance(source, Path):
        yield io.BytesIO(source)
        return
    with gzip.open(source) if source.suffix.lower() == ".gz" else source.open("rb") as file:
        yield file


def _fault(source: Path | bytes, encoding: str) -> str | None:
    """The first byte that an encoding does not know, and its row."""
    try:
        decoder, row = codecs.getincrementaldecoder(encoding)(), 1
    except LookupError:
        raise ValueError(f"encoding: expected one such as cp1252, got {encoding!r}") from None
    with open_bytes(source) as file:
        block = b"-"
        while block:
            block = file.read(_BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                wrong, before = error.object[error.start], error.object[: error.start]
                return f"byte {wrong:#04x} in row {row + before.count(10)}"
            except UnicodeError:
                return "no mark at its beginning"
            row += text.count("\n")
            if encoding == _UTF_8 and "\0" in text:
                return f"byte 0x00 before row {row + 1}"
    return None


def _guessed(source: Path | bytes) -> str | None:
    """What charset-normalizer takes a file for; ``None`` for UTF-8 with a fault in it."""
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    sample, size, whole = [], 0, 0
    with open_bytes(source) as file:
        for line in file:
            if size < _SAMPLE and (not line.isascii() or b"\0" in line):
                sample.append(line)
                size += len(line)
                whole += b"\0" not in line and line.decode(errors="ignore").encode() == line
    found = list(from_bytes(b"".join(sample), cp_isolation=_POSSIBLE))
    if 2 * whole > len(sample) or not found:
        return None
    first = found[0].chaos, found[0].coherence
    best = min(_unlikely(one) for one in found if (one.chaos, one.coherence) == first)
    return codecs.lookup(_POSSIBLE[best[1]]).name


def _unlikely(found: Any) -> tuple[int, int]:
    """By what encodings differ that are alike to charset-normalizer: signs at letters, usage."""
    text = str(found)
    beside = zip(f" {text}", text, f"{text[1:]} ", strict=False)
    signs = sum(
        not (x.isascii() or x.isalpha()) and (a.isalpha() or b.isalpha()) for a, x, b in beside
    )
    return signs, min(
        map(_POSSIBLE.index, {found.encoding, *found.could_be_from_charset} & {*_POSSIBLE})
    )
