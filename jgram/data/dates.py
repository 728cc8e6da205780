"""Texts that are dates: year first, day first or month first, one kind a column, never a guess."""

import datetime
import re
from typing import Any

import numpy as np

from jgram.data.columns import Column, column, factorise, kind_of, refuse_missing, show

__all__ = ["as_dates", "as_seconds", "is_measured", "moments"]

WORDS_FOR_MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", ".", "-"])
_DATE = re.compile(
    r"(?P<first>\d{1,4})(?P<mark>[-./])(?P<second>\d\d?)(?:(?P=mark)(?P<third>\d{1,4}))?"
    r"(?:[T ]\s*(?P<hour>\d\d?):(?P<minute>\d\d)(?P<rest>:\d\d(?:\.\d+)?)?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?\s*(?P<zone>Z|[-+]\d\d:?\d\d)?)?"
)
_ORDERS = ("Ymd", "dmY", "mdY")


def as_dates(given: Column, name: str) -> Column:
    """A column of texts that are dates as dates; any other column as it is.

    ``2009-05-01`` (``/`` too, without a day too), ``1.5.2009``, and ``5/1/2009`` where some cell
    says which is the month; each with a time of day or none, in UTC where it names a zone. Words
    for a missing value are missing.

    Args:
        given: The column.
        name: What error messages call it.

    Returns:
        A column of ``datetime64[us]``, or the one given.

    Raises:
        ValueError: Dates that can be read in two ways, or of several kinds; a few cells that are
            none among many that are.

    Example:
        >>> from jgram.data.columns import column
        >>> as_dates(column(["1.5.2009", "12.4.2009"], "day"), "day").values
        array(['2009-05-01T00:00:00.000000', '2009-04-12T00:00:00.000000'],
              dtype='datetime64[us]')
    """
    if kind_of(given.values) != "text" or not given.values.size:
        return given
    texts, codes = factorise(given.values)
    cells = [text for text in texts if text.strip().casefold() not in WORDS_FOR_MISSING]
    if not cells or not any(map(_DATE.fullmatch, map(str.strip, cells[:10]))):
        return given
    read = {order: {x: date for x in cells if (date := _read(x, order))} for order in _ORDERS}
    if 10 * len({text for dates in read.values() for text in dates}) < 9 * len(cells):
        return given
    dates = max(read.values(), key=len)
    if other := next((text for text in cells if text not in dates), None):
        row = given.row(np.argmax(codes == texts.index(other)))
        raise ValueError(
            f"{name}: expected dates of one kind such as {show(next(iter(dates)))}, got "
            f"{show(other)} in row {row}: write all as 2009-05-31, or make it missing"
        )
    if len(read["dmY"]) == len(read["mdY"]) and read["dmY"] != read["mdY"]:
        differ = [text for text in cells if read["dmY"][text] != read["mdY"][text]]
        raise ValueError(
            f"{name}: expected dates that can be read in one way, got {show(differ[0])} and "
            f"{show(differ[-1])}, with the day or the month first: write them as 2009-05-31"
        )
    if len({date.tzinfo is None for date in dates.values()}) > 1:
        raise ValueError(f"{name}: expected all dates or none with a time zone, got both")
    moments = np.array([_moment(dates.get(text)) for text in texts], "datetime64[us]")[codes]
    present = given.present.copy()
    present[present] = ~np.isnat(moments)
    return Column(moments[~np.isnat(moments)], present)


def is_measured(given: Column, name: str) -> bool:
    """Whether a column holds numbers, dates or times rather than categories."""
    measured = ("number", "date", "duration")
    return kind_of(as_dates(given, name).values) in measured and not given.declared


def as_seconds(values: np.ndarray, name: str) -> np.ndarray:
    """Dates and durations of any kind in seconds since the first of them; numbers as they are."""
    if values.dtype.kind in "mM":
        return (values - values.min()) / np.timedelta64(1, "s") if values.size else values
    if kind_of(values) not in ("date", "duration"):
        return values
    starts = [getattr(value, "start_time", value) for value in values]  # of pandas periods
    try:
        return np.array([(start - starts[0]).total_seconds() for start in starts])
    except TypeError:
        raise ValueError(f"{name}: expected dates of one kind, got several") from None


def moments(data: Any, name: str) -> np.ndarray:
    """What records are put in order of time by: numbers, dates, or texts of one form.

    Texts such as ``2009Q1`` or ``t007``, all of one length and with the same letters, are in the
    order of time as they stand; any others are not.

    Raises:
        ValueError: Missing values, dates that can be read in two ways, other texts.

    Example:
        >>> moments(["1.5.2009", "12.4.2009"], "day").argsort()
        array([1, 0])
    """
    given = as_dates(column(data, name), name)
    refuse_missing(given, name, "values")
    if is_measured(given, name):
        return as_seconds(given.values, name)
    labels, codes = factorise(given.values)
    forms = {re.sub(r"\d", "0", str(label)) for label in labels}
    if len(forms) > 1 or re.fullmatch(r"0?0\D0?0\D00.*", forms.pop()):
        raise ValueError(
            f"{name}: expected numbers or dates to put records in order of time, got "
            f"{show(labels[0])}: write dates as 2009-05-31"
        )
    return codes


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
