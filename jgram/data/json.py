"""Results as plain data and strict JSON, and back: one way for every record of the library."""

import dataclasses
import datetime
import json
import math
import numbers
import types
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

__all__ = ["NOT_FINITE", "bounds", "from_data", "getters", "to_data", "to_json"]

NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_PLAIN = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: (int | float, "a number"),
    str: (str, "a text"),
}


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
    return {name: getattr(record, name) for name in dict.fromkeys([*names, *getters(type(record))])}


def getters(kind: type) -> dict[str, Any]:
    """The public properties of a class by name, as functions."""
    return {
        name: member.fget if isinstance(member, property) else member.func
        for base in reversed(kind.__mro__)
        for name, member in vars(base).items()
        if isinstance(member, property | cached_property) and not name.startswith("_")
    }


# Back ---------------------------------------------------------------------------------------


def from_data(hint: Any, value: Any, path: str, names: Mapping[str, Any] | None = None) -> Any:
    """Plain data as a type has it.

    Args:
        hint: A dataclass, a tuple, list or mapping, a union, a choice of texts, a plain type.
        value: What :func:`to_data` made of it.
        path: What messages call it.
        names: The keys of mappings by their text.

    Raises:
        ValueError: A value of another type, a number out of its bounds, a field without a value.

    Example:
        >>> from_data(tuple[float, ...] | None, [1, 2], "pays")
        (1.0, 2.0)
    """
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        chosen = [part for part in parts if part is not types.NoneType]
        if value is None and len(chosen) < len(parts):
            return None
        one: Any = chosen[0]
        if len(chosen) > 1 and isinstance(value, Mapping):  # a class that says its kind
            one = next((each for each in chosen if each.kind == value.get("kind")), one)
        elif len(chosen) > 1:
            one = int if isinstance(value, int) else float
        return from_data(one, value, path, names)
    if dataclasses.is_dataclass(hint):
        return _built(hint, value, path, names)
    if kind is Literal:
        if value not in parts:
            raise ValueError(f"{path}: expected {', '.join(parts)}, got {value!r}"[:200])
        return value
    if kind in (tuple, list):
        if not isinstance(value, list):
            raise ValueError(f"{path}: expected a list, got {value!r}"[:200])
        each = parts[:1] * len(value) if kind is list or parts[-1] is ... else parts
        if len(each) != len(value):
            raise ValueError(f"{path}: expected {len(each)} values, got {len(value)}")
        return kind(from_data(part, x, path, names) for part, x in zip(each, value, strict=True))
    if kind in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{path}: expected an object, got {value!r}"[:200])
        own = names or {}
        return {own.get(key, key): from_data(parts[1], x, path, own) for key, x in value.items()}
    if hint is Path:
        return Path(from_data(str, value, path))
    if hint is float and value is None:
        return math.nan
    allowed, words = _PLAIN.get(hint, (object, ""))
    if not isinstance(value, allowed) or (hint in (int, float) and isinstance(value, bool)):
        raise ValueError(f"{path}: expected {words}, got {value!r}"[:200])
    return float(value) if hint is float else value


def _built(kind: Any, record: Any, path: str, names: Mapping[str, Any] | None) -> Any:
    """An object of a dataclass; of its ``classes`` mappings have their keys."""
    if not isinstance(record, Mapping):
        raise ValueError(f"{path}: expected an object, got {record!r}"[:200])
    if isinstance(record.get("classes"), Sequence):
        names = {str(name): name for name in record["classes"]}
    hints, values = get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        name, hint, where = field.name, hints[field.name], f"{path}: {field.name}"
        if name not in record:
            raise ValueError(f"{where}: expected a value, got none")
        value, reason = record[name], record.get(f"{name}_reason")
        if value is None and f"{name}_reason" in record:
            if reason not in NOT_FINITE:
                expected = " or ".join(NOT_FINITE)
                raise ValueError(f"{where}_reason: expected {expected}, got {reason!r}")
            value = float(reason)
        elif value is None and hint is float:
            raise ValueError(f"{where}: expected a number, got null without {name}_reason")
        low, high = bounds(name, hint)
        outside = not low <= value <= high if isinstance(value, int | float) else False
        if outside and (low, high) != (-math.inf, math.inf):
            raise ValueError(f"{where}: expected a number from {low:g} to {high:g}, got {value}")
        dtype = field.metadata.get("dtype")
        if dtype is not None:
            hint = int if dtype.startswith("int") else float
            for _ in range(field.metadata.get("ndim", 1)):
                hint = tuple[hint, ...]
        found = from_data(hint, value, where, names)
        values[name] = found if dtype is None else np.array(found, dtype)
    return kind(**values)


def bounds(name: str, hint: Any) -> tuple[float, float]:
    """What a number of a result can be, by its name and type."""
    if name == "confidence" or name.endswith("p_value"):
        return 0.0, 1.0
    return (0.0 if hint is int or name == "num_records" else -math.inf), math.inf
