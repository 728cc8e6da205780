"""JSON schemas of results, made of the result classes themselves: they cannot say anything else."""

import dataclasses
import math
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from jgram.data.json import NOT_FINITE, bounds, getters
from jgram.display import attributes_of
from jgram.issues import ClassSummary, LabelIssues
from jgram.ranking import Ranking
from jgram.results import CLASSES, DEMO


def made_schema(name):
    """The schema of an output, which :func:`jgram.schema` reads from the package."""
    title = next(x for x in (*CLASSES, DEMO) if x.split("/")[1] == name)
    definitions = {}
    if title == DEMO:
        definitions["Ranking"] = _result(Ranking, definitions)
        ranking = {"$ref": "#/$defs/Ranking"}
        found = _object({"schema": {"const": DEMO}, "employment": ranking, "images": ranking})
    else:
        found = _result(CLASSES[title], definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **found,
        "$defs": dict(sorted(definitions.items())),
    }


def _result(kind, definitions):
    """The schema of a result: its class's, its own name, and where it came from."""
    texts = _of_type(tuple[str, ...], definitions)
    source = {"file": {"type": "string"}, "observations": texts, "seed": {"type": "integer"}}
    first = {"schema": {"const": kind.SCHEMA},
             "source": _object({**source, "notes": texts}, ["file"])}  # fmt: skip
    found = _of_class(kind, definitions)
    row = {"label": {}, "suggested": {}, "wrong": {"type": "number"}}
    if kind is LabelIssues:
        cell = _object({"records": {"type": "integer"}, **row})
        cell["additionalProperties"] = True  # the observations
        row = {"row": {"type": "integer"}, **row, "margin": {"type": "number"}}
        found["properties"] |= {
            "by_class": _of_type(tuple[ClassSummary, ...], definitions),
            "records": {"type": "array", "items": _object(row)},
            "cells": {"type": "array", "items": cell},
        }
    required = ["schema", *found["required"]]
    return found | {"properties": first | found["properties"], "required": required}


def _of_class(kind, definitions):
    """The schema of a dataclass: its fields, then its public properties."""
    hints, said, parts = get_type_hints(kind), attributes_of(kind), {}
    for field in dataclasses.fields(kind):
        name, how = field.name, field.metadata
        found = _array(how) if "dtype" in how else _of_type(hints[name], definitions)
        limits = zip(("minimum", "maximum"), bounds(name, hints[name]), strict=True)
        found |= {key: limit for key, limit in limits if math.isfinite(limit)}
        parts[name] = found | ({"description": said[name]} if name in said else {})
    for name, getter in getters(kind).items():
        found = _of_type(get_type_hints(getter)["return"], definitions)
        parts[name] = found | {"description": (getter.__doc__ or "").strip().splitlines()[0]}
    return _object(parts)


def _of_type(hint, definitions):
    origin, parts = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # one that holds itself finds its name
            definitions[hint.__name__] = _of_class(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin in (Union, types.UnionType):
        found = [_of_type(part, definitions) for part in parts]
        if all(set(part) == {"type"} for part in found):
            kinds = (kind for part in found for kind in np.atleast_1d(part["type"]).tolist())
            return {"type": list(dict.fromkeys(kinds))}
        return {"anyOf": found}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple and parts[-1] is ...:
        return {"type": "array", "items": _of_type(parts[0], definitions)}
    if origin is tuple:
        items = [_of_type(part, definitions) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of_type(parts[1], definitions)}
    if hint in (Any, np.ndarray):
        return {} if hint is Any else _array({"dtype": "int64"})
    names = {bool: "boolean", int: "integer", float: ["number", "null"], str: "string"}
    return {"type": names.get(hint, "null")}


def _array(how):
    whole = how["dtype"].startswith("int")
    found = {"type": "integer" if whole else ["number", "null"]}
    for _ in range(how.get("ndim", 1)):
        found = {"type": "array", "items": found}
    return found


def _object(properties, required=None):
    """An object of properties, all of them required if not otherwise said."""
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {"_reason$": {"enum": [*NOT_FINITE]}},
        "additionalProperties": False,
        "required": list(properties if required is None else required),
    }
