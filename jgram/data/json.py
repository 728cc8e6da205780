"""Results as plain data and strict JSON: one serialiser for every record of the library."""

import dataclasses
import datetime
import json
import math
import numbers
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["to_data", "to_json"]


def to_data(record: Any) -> Any:
    """A record as dictionaries, lists, numbers and texts: nothing else, and nothing non-finite.

    A dataclass or named tuple gives its fields and then its public properties, except fields with
    ``repr=False``: what a record does not print (draws, influences) is not part of its result. A
    number that is not finite becomes None, with the reason beside it under ``<name>_reason``.

    Args:
        record: Mappings, sequences, dataclasses, named tuples, arrays and scalars, nested.

    Returns:
        What :mod:`json` can write strictly.

    Example:
        >>> to_data({"log_score": float("-inf"), "counts": np.array([1, 2])})
        {'log_score': None, 'log_score_reason': '-Infinity', 'counts': [1, 2]}
    """
    if (named := _named_values(record)) is not None:
        plain = {}
        for key, value in named.items():
            key = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
            plain[key] = to_data(value)
            number = value.item() if getattr(value, "ndim", None) == 0 else value
            if isinstance(number, float) and not math.isfinite(number):
                plain[f"{key}_reason"] = json.dumps(float(number))
        return plain
    if isinstance(record, np.ma.MaskedArray):
        return record.tolist(None)
    if hasattr(record, "tolist"):
        return to_data(record.tolist())
    if isinstance(record, list | tuple | set | frozenset):
        return [to_data(item) for item in record]
    if record is None or isinstance(record, bool):
        return record
    if isinstance(record, numbers.Integral):
        return int(record)
    if isinstance(record, numbers.Real | Decimal):
        return float(record) if math.isfinite(record) else None
    if isinstance(record, datetime.date):
        return record.isoformat()
    return getattr(record, "__name__", str(record))


def to_json(record: Any) -> str:
    """A record as strict JSON: no NaN and no Infinity, but null and the reason beside it.

    Args:
        record: As in :func:`to_data`.

    Returns:
        Indented JSON text.

    Example:
        >>> print(to_json({"log_score": float("-inf"), "rank": np.int32(3)}))
        {
          "log_score": null,
          "log_score_reason": "-Infinity",
          "rank": 3
        }
    """
    return json.dumps(to_data(record), indent=2, allow_nan=False, ensure_ascii=False)


def _named_values(record: Any) -> dict[Any, Any] | None:
    """The named parts of a record, in order; None where it has none."""
    if isinstance(record, Mapping):
        return dict(record)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        names = [field.name for field in dataclasses.fields(record) if field.repr]
    elif hasattr(record, "_asdict") and not isinstance(record, type):
        names = list(record._fields)
    else:
        return None
    names += [
        name
        for kind in reversed(type(record).__mro__)
        for name, member in vars(kind).items()
        if isinstance(member, property | cached_property) and not name.startswith("_")
    ]
    return {name: getattr(record, name) for name in dict.fromkeys(names)}
