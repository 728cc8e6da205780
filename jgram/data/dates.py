"""Texts that are dates: year first, day first or month first, one kind a column, never a guess."""

import datetime
import re
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["moments", "seconds"]

WORDS_FOR_MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", ".", "-"])
_DATE = re.compile(
    r"(?P<first>\d{1,4})(?P<mark>[-./])(?P<second>\d\d?)(?:(?P=mark)(?P<third>\d{1,4}))?"
    r"(?:[T ]\s*(?P<hour>\d\d?):(?P<minute>\d\d)(?P<rest>:\d\d(?:\.\d+)?)?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?\s*(?P<zone>Z|[-+]\d\d:?\d\d)?)?"
)
_ORDERS = ("Ymd", "dmY", "mdY")


def moments(texts: Sequence[str], name: str, row: Callable[[int], int] = int) -> np.ndarray | None:
    """Texts that are dates as ``datetime64[us]``; ``None`` where they are no dates.

    ``2009-05-01`` (``/`` too, without a day too), ``1.5.2009``, and ``5/1/2009`` where some text
    says which is the month; each with a time of day or none, in UTC where it names a zone. Words
    for a missing value become ``NaT``.

    Args:
        texts: Distinct texts.
        name: What error messages call their column.
        row: The row of the input that a text stands in, by its position.

    Returns:
        As many dates, or ``None``.

    Raises:
        ValueError: Dates that can be read in two ways, or of several kinds; a few texts that are
            none among many that are.

    Example:
        >>> moments(["1.5.2009", "12.4.2009"], "day").astype("datetime64[D]")
        array(['2009-05-01', '2009-04-12'], dtype='datetime64[D]')
    """
    cells = [text for text in texts if text.strip().casefold() not in WORDS_FOR_MISSING]
    if not cells or not any(map(_DATE.fullmatch, map(str.strip, cells[:10]))):
        return None
    read = {order: {x: date for x in cells if (date := _read(x, order))} for order in _ORDERS}
    if 10 * len({text for dates in read.values() for text in dates}) < 9 * len(cells):
        return None
    dates = max(read.values(), key=len)
    if other := next((text for text in cells if text not in dates), None):
        raise ValueError(
            f"{name}: expected dates of one kind such as {next(iter(dates))!r}, got {other!r} in "
            f"row {row(list(texts).index(other))}: write all as 2009-05-31, or make it missing"
        )
    if len(read["dmY"]) == len(read["mdY"]) and read["dmY"] != read["mdY"]:
        differ = [text for text in cells if read["dmY"][text] != read["mdY"][text]]
        raise ValueError(
            f"{name}: expected dates that can be read in one way, got {differ[0]!r} and "
            f"{differ[-1]!r}, with the day or the month first: write them as 2009-05-31"
        )
    if len({date.tzinfo is None for date in dates.values()}) > 1:
        raise ValueError(f"{name}: expected all dates or none with a time zone, got both")
    return np.array([_moment(dates.get(text)) for text in texts], "datetime64[us]")


def seconds(values: np.ndarray, name: str) -> np.ndarray:
    """Dates or durations of any type in seconds since the first of them."""
    if values.dtype.kind in "mM":
        return (values - values.min()) / np.timedelta64(1, "s") if values.size else values
    starts = [getattr(value, "start_time", value) for value in values]  # of pandas periods
    try:
        return np.array([(start - starts[0]).total_seconds() for start in starts])
    except TypeError:
        raise ValueError(f"{name}: expected dates of one kind, got several") from None


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
