"""Texts that are dates or numbers: each column in one way, which it shows itself, never a guess."""

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "WORDS_FOR_MISSING", "Dates", "Written", "find_dates", "find_written", "in_words", "is_number",
    "is_plain",
]  # fmt: skip

WORDS_FOR_MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", ".", "-"])
_DATE = re.compile(
    r"(?P<first>\d{1,4})(?P<mark>[-./])(?P<second>\d\d?)(?:(?P=mark)(?P<third>\d{1,4}))?"
    r"(?:[T ]\s*(?P<hour>\d\d?):(?P<minute>\d\d)(?P<rest>:\d\d(?:\.\d+)?)?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?\s*(?P<zone>Z|[-+]\d\d:?\d\d)?)?"
)
_ORDERS = {"Ymd": "2009-05-31", "dmY": "31.5.2009", "mdY": "5/31/2009"}

_MONEY = (
    r"(?:[A-Z]{1,3})?[$¢£¤¥\u20a0-\u20cf]|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|RON|TRY|"
    r"INR|AUD|CAD|NZD|BRL|MXN|ZAR|SGD|HKD|KRW|Fr\.|kr\.?|zł|Kč|Ft"
)
_CELL = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+])?\s*(?P<before>{_MONEY})?\s*(?P<sign2>[-+])?\s*"
    r"(?P<body>[.,]?\d(?:[\d.,' ]*\d)?[.,]?(?:[eE][-+]?\d+)?)\s*"
    rf"(?P<after>{_MONEY}|%|‰)?(?P<minus>-)?(?(open)\))"
)
_PLAIN = str.maketrans("\u00a0\u202f\u2009’−–", "   '--")
_WAYS = [(point, group) for point in ".," for group in ",.' " if group != point]
_ODD = (
    ": write all alike, make it missing (--missing-value), or read the column as categories "
    "(--kind COLUMN=category)"
)
_EITHER = (
    "its mark may be that of decimals or that of thousands: say which (--decimal or --thousands), "
    "or convert the column"
)
_FEW, _FAULTS = 2, 0.1  # of more than so many texts one may be a fault, or so large a share
_SURE = 44  # three digits after each of so many marks: trimmed decimals would be so once in 100


def _said(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if text.strip().casefold() not in WORDS_FOR_MISSING]


class Dates(NamedTuple):
    """How a column writes its dates: year, month and day as ``Ymd``, ``dmY`` or ``mdY``."""

    order: str

    def read(self, texts: Sequence[str], name: str, row: Callable[[int], int] = int) -> np.ndarray:
        """Distinct texts of a column as ``datetime64[us]``, in UTC where they name a time zone.

        ``row`` gives the row of the input that a text stands in, by its position.
        """
        dates = {text: _date(text, self.order) for text in _said(texts)}
        if other := next((text for text, date in dates.items() if date is None), None):
            example = next((text for text, date in dates.items() if date), _ORDERS[self.order])
            raise ValueError(
                f"{name}: expected dates of one kind such as {example!r}, got {other!r} in "
                f"row {row(list(texts).index(other))}: write all as 2009-05-31, or make it missing"
            )
        if len({date.tzinfo is None for date in dates.values() if date}) > 1:
            raise ValueError(f"{name}: expected all dates or none with a time zone, got both")
        for text, date in dates.items():
            if date and date.tzinfo:  # which NumPy does not know
                dates[text] = date.astimezone(datetime.UTC).replace(tzinfo=None)
        return np.array([dates.get(text) for text in texts], "datetime64[us]")


def find_dates(texts: Sequence[str], name: str) -> Dates | None:
    """How texts that are dates are written; ``None`` where they are no dates.

    ``2009-05-01`` (``/`` too, without a day too), ``1.5.2009``, and ``5/1/2009`` where some text
    says which is the month, else they are refused; each with a time of day or none.
    """
    cells = _said(texts)
    if not any(map(_DATE.fullmatch, map(str.strip, cells[:10]))):
        return None
    read = {order: {x: date for x in cells if (date := _date(x, order))} for order in _ORDERS}
    if 10 * len({text for dates in read.values() for text in dates}) < 9 * len(cells):
        return None
    days, months = read["dmY"], read["mdY"]
    if len(days) == len(months) == len(cells) and days != months:
        differ = [text for text in cells if days[text] != months[text]]
        raise ValueError(
            f"{name}: expected dates that can be read in one way, got {differ[0]!r} and "
            f"{differ[-1]!r}, with the day or the month first: write them as 2009-05-31"
        )
    return Dates(max(_ORDERS, key=lambda order: len(read[order])))


def _date(text: str, order: str) -> datetime.datetime | None:
    """The date of a text whose year, month and day stand in this order, if it is one."""
    if (found := _DATE.fullmatch(text.strip())) is None:
        return None
    parts = dict(zip(order, (found["first"], found["second"], found["third"]), strict=True))
    year, month, day = parts["Y"] or "", parts["m"], parts["d"] or "1"
    dotted = found["mark"] == "." and (order == "mdY" or found["third"] is None)
    if dotted or len(year) != 4 or max(len(month), len(day)) > 2:
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


class Written(NamedTuple):
    """How a column writes its numbers, and a text of it as an example."""

    point: str  # the decimal mark
    group: str  # the mark between thousands
    unit: str  # beside a number: a currency, %, or nothing
    example: str

    def read(self, texts: Sequence[str], name: str, row: Callable[[int], int] = int) -> np.ndarray:
        """Distinct texts of a column as numbers, NaN where they are missing.

        Percent are left as they stand: ``12,5 %`` is 12.5. Otherwise as :meth:`Dates.read`.
        """
        values = np.full(len(texts), np.nan)
        for i, text in enumerate(texts):
            if text.strip().casefold() in WORDS_FOR_MISSING:
                continue
            one = _parts(text)
            if one is None or one.unit not in ("", self.unit) or not _fits(one.body, *self[:2]):
                raise ValueError(
                    f"{name}: expected numbers such as {self.example!r}, got {text!r} in row "
                    f"{row(i)}"
                )
            number = float(one.body.replace(self.group, "").replace(self.point, "."))
            values[i] = -number if one.negative else number
        return values


class _Parts(NamedTuple):
    body: str
    unit: str
    negative: bool
    marked: bool  # no whole number as Python writes it


def find_written(texts: Sequence[str]) -> tuple[Written | None, str | None, str]:
    """How texts write numbers, if they do: all by one decimal mark, one of thousands, one unit.

    Whole numbers alone are codes, not measurements. Where ``1,234`` can be read in two ways, the
    rest of the texts settles it, or nothing does.

    Args:
        texts: Distinct texts; words for a missing value are passed over.

    Returns:
        The way, or ``None``; and of texts that are nearly such numbers the one that does not fit,
        and why.

    Example:
        >>> find_written(["1.234,50 €", "99,00 €"])[0]
        Written(point=',', group='.', unit='€', example='1.234,50 €')
        >>> find_written(["1,234", "5"])[1]
        '1,234'
    """
    said = _said(texts)
    if not any(map(_parts, said[:10])):
        return None, None, ""
    parts = {text: found for text in said if (found := _parts(text))}
    units = Counter(one.unit for one in parts.values() if one.unit)
    unit = max(units, key=units.__getitem__, default="")
    money = unit not in ("", "%", "‰")  # 5 beside 12 € is money; 0.3 beside 12 % is who knows what
    alike = {x: one for x, one in parts.items() if one.unit == unit or (money and not one.unit)}
    fitting = {way: [x for x, one in alike.items() if _fits(one.body, *way)] for way in _WAYS}
    most = max(map(len, fitting.values()))
    if not any(one.marked for one in alike.values()) or len(said) - most > max(
        len(said) > _FEW, _FAULTS * len(said)
    ):
        return None, None, ""
    best = [way for way in _WAYS if len(fitting[way]) == most]
    example = max(fitting[best[0]], key=lambda text: (parts[text].marked, len(text)))
    fits = set(fitting[best[0]])
    if odd := next((text for text in said if text not in fits), None):
        if not unit and odd not in parts and all(map(is_plain, fits)):
            return None, None, ""  # codes, such as 250.1 and V57
        return None, odd, f"it is not written as the others are, {example!r}{_ODD}"
    bodies = [one.body for one in alike.values()]
    if len({point for point, _ in best}) > 1 and any(re.search("[.,]", body) for body in bodies):
        way = _settled(bodies, money)
        if way is None:
            odd = next(text for text in said if re.search(r"\d[.,]\d{3}$", alike[text].body))
            return None, odd, _EITHER
        best = [way]
    used = [way for way in best if any(way[1] in body for body in bodies)] or best
    return Written(*used[0], unit, example), None, ""


def in_words(ways: Mapping[str, Dates | Written | None]) -> str:
    """How columns were read as numbers, for the line about the observations."""
    shown = [
        f"{name} {way.example!r} as {way.read([way.example], name)[0]:.15g}"
        for name, way in ways.items()
        if isinstance(way, Written)
    ]
    return f"; read {', '.join(shown)}" if shown else ""


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, or the text of one."""
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def is_plain(text: str) -> bool:
    """Whether a text is a number as Python writes it."""
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)", text.strip()) is not None


def _parts(text: str) -> _Parts | None:
    text = text.translate(_PLAIN).strip()
    if (found := _CELL.fullmatch(text)) is None:
        return None
    minus = found["body"][-1].isdigit() and found["minus"]  # 1'200.- are francs without centimes
    signs = [found["sign"], found["sign2"], minus, found["open"]]
    if sum(map(bool, signs)) > 1 or (found["before"] and found["after"]):
        return None
    body, unit = found["body"], found["before"] or found["after"] or ""
    marked = bool(unit or minus or not body.isdigit())
    return _Parts(body, unit, any(sign in ("-", "(") for sign in signs), marked)


def _fits(body: str, point: str, group: str) -> bool:
    """Whether digits are written with this decimal mark and this mark of thousands, or none."""
    p, g = re.escape(point), re.escape(group)
    lakh = rf"|[1-9]\d?(?:{g}\d\d)+{g}\d{{3}}" if group == "," else ""  # 12,34,567 in India
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{g}\d{{3}})+{lakh})"
    return re.fullmatch(rf"({whole}(?:{p}\d*)?|{p}\d+)([eE][-+]?\d+)?", body) is not None


def _settled(bodies: Sequence[str], money: bool) -> tuple[str, str] | None:
    """The way of bodies of which a mark may be either, if it must stand between thousands."""
    marks = [found[0] for body in bodies if (found := re.search("[.,]", body))]
    same = len(marks) == len(bodies)  # both ways differ by a factor of 1,000, which says nothing
    large = any(body.isdigit() and len(body) > 3 for body in bodies)
    if same or money or (len(marks) >= _SURE and not large):
        return (".", ",") if marks[0] == "," else (",", ".")
    return None
