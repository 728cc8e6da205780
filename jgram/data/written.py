"""Texts that are numbers: currency, percent, thousands and decimals, one way a column, no guess."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jgram.data.dates import WORDS_FOR_MISSING

__all__ = ["Written", "find_written", "in_words", "is_plain", "numbers_of"]

_MONEY = (
    r"(?:[A-Z]{1,3})?[$¢£¤¥\u20a0-\u20cf]|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|RON|TRY|"
    r"INR|AUD|CAD|NZD|BRL|MXN|ZAR|SGD|HKD|KRW|Fr\.|kr\.?|zł|Kč|Ft"
)
_CELL = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+])?\s*(?P<before>{_MONEY})?\s*(?P<sign2>[-+])?\s*"
    r"(?P<body>[.,]?\d(?:[\d.,' ]*\d)?[.,]?(?:[eE][-+]?\d+)?)\s*"
    rf"(?P<after>{_MONEY}|%|‰)?(?P<minus>-)?(?(open)\))"
)
_PLAIN = str.maketrans(
    {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'", "−": "-", "–": "-"}
)  # fmt: skip
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


class Written(NamedTuple):
    """How a column writes its numbers.

    Attributes:
        point: The decimal mark.
        group: The mark between thousands.
        unit: What stands beside a number: a currency, ``%``, or nothing.
        example: A text of the column.
    """

    point: str
    group: str
    unit: str
    example: str


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
    said = [text for text in texts if text.strip().casefold() not in WORDS_FOR_MISSING]
    if not said or not any(map(_parts, said[:10])):
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
        if not unit and odd not in parts and all(map(is_plain, fitting[best[0]])):
            return None, None, ""  # codes, such as 250.1 and V57
        return None, odd, f"it is not written as the others are, {example!r}{_ODD}"
    bodies = [one.body for one in alike.values()]
    if len({way[0] for way in best}) > 1 and any(re.search("[.,]", body) for body in bodies):
        way = _settled(bodies, money)
        if way is None:
            odd = next(text for text in said if re.search(r"\d[.,]\d{3}$", alike[text].body))
            return None, odd, _EITHER
        best = [way]
    used = [way for way in best if any(way[1] in body for body in bodies)] or best
    return Written(*used[0], unit, example), None, ""


def in_words(ways: Mapping[str, Written | None]) -> str:
    """How columns were read as numbers, for the line about the observations.

    Example:
        >>> in_words({"pay": Written(",", ".", "€", "1.234,50 €"), "age": None})
        "; read pay '1.234,50 €' as 1234.5"
    """
    shown = [
        f"{name} {way.example!r} as {numbers_of([way.example], way)[0][0]:.15g}"
        for name, way in ways.items()
        if way is not None
    ]
    return f"; read {', '.join(shown)}" if shown else ""


def is_plain(text: str) -> bool:
    """Whether a text is a number as Python writes it."""
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)", text.strip()) is not None


def numbers_of(texts: Sequence[str], way: Written) -> tuple[np.ndarray, str | None]:
    """The numbers of distinct texts, NaN where they are missing, and a text that is none.

    Percent are left as they stand: ``12,5 %`` is 12.5.

    Example:
        >>> numbers_of(["(1.200)", "-"], Written(",", ".", "", ""))
        (array([-1200.,    nan]), None)
    """
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if text.strip().casefold() in WORDS_FOR_MISSING:
            continue
        one = _parts(text)
        if one is None or one.unit not in ("", way.unit) or not _fits(one.body, *way[:2]):
            return values, text
        number = float(one.body.replace(way.group, "").replace(way.point, "."))
        values[i] = -number if one.negative else number
    return values, None


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
