"""Texts that are dates: year first, day first or month first, one kind a column, never a guess."""

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["date_order", "first_of", "moments", "seconds"]

WORDS_FOR_MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", ".", "-"])
_DATE = re.compile(
    r"(?P<first>\d{1,4})(?P<mark>[-./])(?P<second>\d\d?)(?:(?P=mark)(?P<third>\d{1,4}))?"
    r"(?:[T ]\s*(?P<hour>\d\d?):(?P<minute>\d\d)(?P<rest>:\d\d(?:\.\d+)?)?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?\s*(?P<zone>Z|[-+]\d\d:?\d\d)?)?"
)
_ORDERS = {"Ymd": "2009-05-31", "dmY": "31.5.2009", "mdY": "5/31/2009"}


def date_order(texts: Sequence[str], name: str) -> str | None:
    """Where texts that are dates have their year, month and day; ``None`` where they are no dates.

    ``2009-05-01`` (``/`` too, without a day too), ``1.5.2009``, and ``5/1/2009`` where some text
    says which is the month; each with a time of day or none.

    Args:
        texts: Distinct texts.
        name: What error messages call their column.

    Raises:
        ValueError: Dates that can be read in two ways.

    Example:
        >>> date_order(["1.5.2009", "12.4.2009"], "day")
        'dmY'
    """
    cells = _said(texts)
    if not cells or not any(map(_DATE.fullmatch, map(str.strip, cells[:10]))):
        return None
    read = {order: {x: date for x in cells if (date := _read(x, order))} for order in _ORDERS}
    if 10 * len({text for dates in read.values() for text in dates}) < 9 * len(cells):
        return None
    days, months = read["dmY"], read["mdY"]
    if len(days) == len(months) == len(cells) and days != months:
        differ = [text for text in cells if days[text] != months[text]]
        raise ValueError(
            f"{name}: expected dates that can be read in one way, got {differ[0]!r} and "
            f"{differ[-1]!r}, with the day or the month first: write them as 2009-05-31"
        )
    return max(_ORDERS, key=lambda order: len(read[order]))


def moments(
    texts: Sequence[str], order: str, name: str, row: Callable[[int], int] = int
) -> np.ndarray:
    """Texts that are dates as ``datetime64[us]``, in UTC where they name a time zone.

    Args:
        texts: Distinct texts; words for a missing value become ``NaT``.
        order: As :func:`date_order` finds it.
        name: What error messages call their column.
        row: The row of the input that a text stands in, by its position.

    Raises:
        ValueError: Dates of several kinds; texts that are none.

    Example:
        >>> moments(["1.5.2009", "12.4.2009"], "dmY", "day").astype("datetime64[D]")
        array(['2009-05-01', '2009-04-12'], dtype='datetime64[D]')
    """
    dates = {text: _read(text, order) for text in _said(texts)}
    if other := next((text for text, date in dates.items() if date is None), None):
        example = next((text for text, date in dates.items() if date), _ORDERS[order])
        raise ValueError(
            f"{name}: expected dates of one kind such as {example!r}, got {other!r} in "
            f"row {row(list(texts).index(other))}: write all as 2009-05-31, or make it missing"
        )
    if len({date.tzinfo is None for date in dates.values() if date}) > 1:
        raise ValueError(f"{name}: expected all dates or none with a time zone, got both")
    return np.array([_moment(dates.get(text)) for text in texts], "datetime64[us]")


def _said(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if text.strip().casefold() not in WORDS_FOR_MISSING]


def seconds(values: np.ndarray, name: str, start: Any = None) -> np.ndarray:
    """Dates or durations of any type in seconds since ``start``, the first of them by default."""
    start = first_of(values) if start is None and values.size else start
    try:
        if values.dtype.kind in "mM":
            return (values - start) / np.timedelta64(1, "s") if values.size else values
        return np.array([(_begun(value) - start).total_seconds() for value in values])
    except TypeError:
        raise ValueError(f"{name}: expected dates of one kind, got several") from None


def first_of(values: np.ndarray) -> Any:
    """What :func:`seconds` counts from."""
    return values.min() if values.dtype.kind in "mM" else _begun(values[0])


def _begun(value: Any) -> Any:
    return getattr(value, "start_time", value)  # of pandas periods


def _read(text: str, order: str) -> datetime.datetime | None:
    """The date of a text whose year, month and day stand in this order, if it is one."""
    if (found := _DATE.fullmatch(text.strip())) is None:
        return None
    first, second, third = found["first"], found["second"], found["third"]
    if order == "Ymd":
        year, month, day = first, second, third or "1"
        fits = third is not None or found["mark"] != "."
    else:
        day, month = (first, second) if order == "dmY" else (second, first)
        year, fits = third or "", order == "dmY" or found["mark"] != "."
    if not fits or len(year) != 4 or max(len(month), len(day)) > 2:
        return None
    hour = int(found["hour"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (found["half"] in "Pp")
    clock = f"{hour:02}:{found['minute'] or '00'}{found['rest'] or ''}{found['zone'] or ''}"
    try:
        return datetime.datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{clock}")
    except ValueError:
        return None


def _moment(date: datetime.datetime | None) -> datetime.datetime | None:
    """The moment in UTC, without the zone that NumPy does not know."""
    return date.astimezone(datetime.UTC).replace(tzinfo=None) if date and date.tzinfo else date
