"""Results as JSON, and back: every output names its schema and version, ``jgram/NAME/VERSION``.

The schemas are made of the result classes themselves, so that they cannot say anything else; the
copies in ``jgram/schemas`` are for those who read JSON without jgram, and a test keeps them equal.
The version rises with any change to what is written; :func:`load` refuses another one.
"""

import dataclasses
import json
import math
import types
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from jgram.annotators import AnnotatorRanking, InferredLabels
from jgram.check import Check
from jgram.display import attributes_of
from jgram.drift import Baseline, Drift
from jgram.issues import ClassSummary, LabelIssues
from jgram.payments import Payments
from jgram.plan import Plan
from jgram.ranking import PairComparison, Ranking, ScoreReport
from jgram.sequential import SequentialRanking
from jgram.slices import Slices

__all__ = ["SCHEMAS", "load", "schema"]

_CLASSES: dict[str, Any] = {
    kind.SCHEMA: kind
    for kind in (
        ScoreReport,
        Ranking,
        PairComparison,
        LabelIssues,
        AnnotatorRanking,
        InferredLabels,
        Baseline,
        Drift,
        Check,
        Payments,
        Plan,
        SequentialRanking,
        Slices,
    )
}
_DEMO = "jgram/demo/1"
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_ANY = (-math.inf, math.inf)
SCHEMAS = tuple(name.split("/")[1] for name in (*_CLASSES, _DEMO))


# Back from JSON -----------------------------------------------------------------------------


def load(source: str | Path | Mapping[str, Any]) -> Any:
    """The result that JSON holds, as ``to_json`` and ``--json`` of the command line write it.

    Names of classes, reports and annotators come back as texts, numbers or truth values; dates as
    texts.

    Args:
        source: A file, the text itself, or parsed JSON.

    Returns:
        A :class:`jgram.ScoreReport`, :class:`jgram.Ranking`, :class:`jgram.issues.LabelIssues` or
        :class:`jgram.annotators.AnnotatorRanking` with the same fields; of ``jgram demo`` both
        rankings by name.

    Raises:
        ValueError: No JSON, not a result of jgram's, one of another version, or an incomplete one.
        OSError: A file that cannot be read.

    Example:
        >>> from jgram import score
        >>> report = score(["yes", "yes", "no", "no"] * 10, ["+", "+", "-", "-"] * 10)
        >>> load(report.to_json()) == report
        True
    """
    record = source if isinstance(source, Mapping) else _parsed(source)
    name = record.get("schema") if isinstance(record, Mapping) else None
    if name == _DEMO:
        return {key: load(record[key]) for key in ("employment", "images") if key in record}
    if not isinstance(name, str) or name not in _CLASSES:
        raise ValueError(_refusal(name))
    return _built(_CLASSES[name], record, {}, name)


def _parsed(source: str | Path) -> Any:
    text = str(source)
    try:
        if isinstance(source, Path) or not text.lstrip().startswith("{"):
            text = Path(source).read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON of a result, got {error}") from None


def _refused(name: str) -> None:
    raise ValueError(f"{name}, which JSON has not: a number that is not finite is null")


def _not_finite(reason: Any, path: str) -> float:
    if reason not in _NOT_FINITE:
        raise ValueError(f"{path}_reason: expected {' or '.join(_NOT_FINITE)}, got {reason!r}")
    return float(reason)


def _bounds(name: str, hint: Any) -> tuple[float, float]:
    """What a number of a result can be, by its name and type."""
    if name == "confidence" or name.endswith("p_value"):
        return 0.0, 1.0
    return (0.0, math.inf) if hint is int or name == "num_records" else _ANY


def _refusal(name: Any) -> str:
    """Why there is no result of this name: another version, or none of jgram's."""
    known = {schema.rpartition("/")[0]: schema for schema in (*_CLASSES, _DEMO)}
    topic, _, version = str(name).rpartition("/")
    if topic not in known:
        return f"schema: expected one of {', '.join(_CLASSES)}, got {name!r}"
    mine = known[topic]
    newer = version.isdecimal() and int(version) > int(mine.rpartition("/")[2])
    fix = "update jgram" if newer else "make it again with this version of jgram"
    return f"schema: expected {mine}, got {name}: {fix}"


def _built(kind: Any, record: Any, names: Mapping[str, Any], path: str) -> Any:
    """An object of a dataclass; ``names`` are the class names by their text."""
    if not isinstance(record, Mapping):
        raise ValueError(f"{path}: expected an object, got {type(record).__name__}")
    if isinstance(record.get("classes"), Sequence):
        names = {str(name): name for name in record["classes"]}
    hints, values = get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        where = f"{path}: {field.name}"
        if field.name not in record:
            raise ValueError(f"{where}: expected a value, got none")
        value = record[field.name]
        if value is None and f"{field.name}_reason" in record:
            value = _not_finite(record[f"{field.name}_reason"], where)
        elif value is None and hints[field.name] is float:
            raise ValueError(f"{where}: expected a number, got null without {field.name}_reason")
        low, high = bounds = _bounds(field.name, hints[field.name])
        if isinstance(value, int | float) and bounds != _ANY and not low <= value <= high:
            raise ValueError(f"{where}: expected a number from {low:g} to {high:g}, got {value}")
        dtype = field.metadata.get("dtype")
        if dtype is None:
            values[field.name] = _restored(hints[field.name], value, names, where)
        else:
            each: Any = int if dtype.startswith("int") else float
            for _ in range(field.metadata.get("ndim", 1)):
                each = tuple[each, ...]
            values[field.name] = np.array(_restored(each, value, names, where), dtype)
    return kind(**values)


def _restored(hint: Any, value: Any, names: Mapping[str, Any], path: str) -> Any:
    """A value of JSON as its type hint has it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in parts:
            return None
        kinds = [part for part in parts if part is not type(None)]
        kind: Any = kinds[0]
        if len(kinds) > 1 and isinstance(value, Mapping):  # a class that says its kind
            kind = next((one for one in kinds if one.kind == value.get("kind")), kind)
        elif len(kinds) > 1:
            kind = int if isinstance(value, int) else float
        return _restored(kind, value, names, path)
    if dataclasses.is_dataclass(hint):
        return _built(hint, value, names, path)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{path}: expected a list, got {type(value).__name__}")
        each = parts[:1] * len(value) if parts[-1] is Ellipsis else parts
        if len(each) != len(value):
            raise ValueError(f"{path}: expected {len(each)} values, got {len(value)}")
        return tuple(_restored(part, x, names, path) for part, x in zip(each, value, strict=True))
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{path}: expected an object, got {type(value).__name__}")
        return {
            names.get(key, key): _restored(parts[1], x, names, path) for key, x in value.items()
        }
    if hint is float and value is None:
        return float("nan")
    allowed = {bool: bool, int: int, float: int | float, str: str}.get(hint, object)
    if not isinstance(value, allowed) or (hint in (int, float) and isinstance(value, bool)):
        raise ValueError(f"{path}: expected {hint.__name__}, got {value!r}"[:200])
    return float(value) if hint is float else value


# Schemas ------------------------------------------------------------------------------------


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of an output.

    A number that is not finite is null, with the reason beside it under ``<name>_reason``.

    Args:
        name: ``"score"``, ``"ranking"``, ``"issues"``, ``"cells"``, ``"annotators"``, ``"drift"``,
            ``"check"`` or ``"demo"``.

    Returns:
        The schema as plain data.

    Raises:
        ValueError: No such output.

    Example:
        >>> schema("ranking")["properties"]["schema"]
        {'const': 'jgram/ranking/1'}
    """
    if name not in SCHEMAS:
        raise ValueError(f"name: expected one of {', '.join(SCHEMAS)}, got {name!r}")
    title = next(x for x in (*_CLASSES, _DEMO) if x.split("/")[1] == name)
    definitions: dict[str, Any] = {}
    if title == _DEMO:
        ranking = {"$ref": "#/$defs/Ranking"}
        definitions["Ranking"] = _result(Ranking, definitions)
        parts = {"schema": {"const": _DEMO}, "employment": ranking, "images": ranking}
        found = _object(parts, list(parts))
    else:
        found = _result(_CLASSES[title], definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **found,
        "$defs": dict(sorted(definitions.items())),
    }


def _result(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a result: its class's, its own name, and where it came from."""
    text = {"type": "string"}
    source = {
        "file": text,
        "observations": {"type": "array", "items": text},
        "seed": {"type": "integer"},
        "notes": {"type": "array", "items": text},
    }
    first = {"schema": {"const": kind.SCHEMA}, "source": _object(source, ["file"])}
    found = _of_class(kind, definitions)
    required = found["required"]
    if kind is LabelIssues:
        row = {"label": {}, "suggested": {}, "wrong": {"type": "number"}}
        cell = _object({"records": {"type": "integer"}, **row}, ["records", *row])
        row = {"row": {"type": "integer"}, **row, "margin": {"type": "number"}}
        summary = _of_type(ClassSummary, definitions)
        found["properties"] |= {
            "by_class": {"type": "array", "items": summary},
            "records": {"type": "array", "items": _object(row, list(row))},
            "cells": {"type": "array", "items": cell | {"additionalProperties": True}},
        }
    return found | {
        "properties": first | found["properties"],
        "required": ["schema", *required],
    }


def _of_class(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a dataclass: its fields, then its public properties."""
    hints, said = get_type_hints(kind), attributes_of(kind)
    parts, required = {}, []
    for field in dataclasses.fields(kind):
        dtype = field.metadata.get("dtype")
        found = (
            _of_type(hints[field.name], definitions) if dtype is None else _array(field.metadata)
        )
        low, high = _bounds(field.name, hints[field.name])
        found |= {"minimum": low} if math.isfinite(low) else {}
        found |= {"maximum": high} if math.isfinite(high) else {}
        text = said.get(field.name)
        parts[field.name] = found | ({"description": text} if text else {})
        required.append(field.name)
    for base in reversed(kind.__mro__):
        for key, member in vars(base).items():
            getter = getattr(member, "fget", None) or getattr(member, "func", None)
            if isinstance(member, property | cached_property) and not key.startswith("_"):
                lines = (getter.__doc__ or "").strip().splitlines()
                hint = get_type_hints(getter)["return"]
                text = {"description": lines[0]} if lines else {}
                parts[key] = _of_type(hint, definitions) | text
                required.append(key)
    return _object(parts, required)


def _of_type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # one that holds itself finds its name
            definitions[hint.__name__] = _of_class(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin in (Union, types.UnionType):
        found = [_of_type(part, definitions) for part in parts]
        if all(set(part) == {"type"} for part in found):
            kinds = [[part["type"]] if isinstance(part["type"], str) else part["type"]
                     for part in found]  # fmt: skip
            return {"type": list(dict.fromkeys(kind for each in kinds for kind in each))}
        return {"anyOf": found}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple and parts[-1] is Ellipsis:
        return {"type": "array", "items": _of_type(parts[0], definitions)}
    if origin is tuple:
        items = [_of_type(part, definitions) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of_type(parts[1], definitions)}
    return {
        bool: {"type": "boolean"},
        int: {"type": "integer"},
        float: {"type": ["number", "null"]},
        str: {"type": "string"},
        type(None): {"type": "null"},
        np.ndarray: _array({"dtype": "int64"}),
        Any: {},
    }[hint]


def _array(metadata: Mapping[str, Any]) -> dict[str, Any]:
    whole = metadata["dtype"].startswith("int")
    found: dict[str, Any] = {"type": "integer" if whole else ["number", "null"]}
    for _ in range(metadata.get("ndim", 1)):
        found = {"type": "array", "items": found}
    return found


def _object(properties: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {"_reason$": {"enum": [*_NOT_FINITE]}},
        "additionalProperties": False,
        "required": list(required),
    }
