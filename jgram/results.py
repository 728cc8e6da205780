"""Results as JSON, and back: every output names its schema and version, ``jgram/NAME/VERSION``.

The schemas in ``jgram/schemas`` are made of the result classes by the tests, which keep them equal.
The version rises with any change to what is written; :func:`load` refuses another one.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jgram.annotators import AnnotatorRanking, InferredLabels
from jgram.check import Check
from jgram.data.json import from_data
from jgram.drift import Baseline, Drift
from jgram.issues import LabelIssues
from jgram.payments import Payments
from jgram.plan import Plan
from jgram.ranking import PairComparison, Ranking, ScoreReport
from jgram.sequential import SequentialRanking
from jgram.slices import Slices

__all__ = ["CLASSES", "DEMO", "SCHEMAS", "load", "schema"]

CLASSES: dict[str, Any] = {
    kind.SCHEMA: kind
    for kind in (
        ScoreReport, Ranking, PairComparison, LabelIssues, AnnotatorRanking,
        InferredLabels, Baseline, Drift, Check, Payments, Plan, SequentialRanking, Slices,
    )
}  # fmt: skip
DEMO = "jgram/demo/1"
SCHEMAS = tuple(name.split("/")[1] for name in (*CLASSES, DEMO))


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
    if name == DEMO:
        return {key: load(record[key]) for key in ("employment", "images") if key in record}
    if not isinstance(name, str) or name not in CLASSES:
        raise ValueError(_refusal(name))
    return from_data(CLASSES[name], record, name)


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


def _refusal(name: Any) -> str:
    """Why there is no result of this name: another version, or none of jgram's."""
    known = {schema.rpartition("/")[0]: schema for schema in (*CLASSES, DEMO)}
    topic, _, version = str(name).rpartition("/")
    if topic not in known:
        return f"schema: expected one of {', '.join(CLASSES)}, got {name!r}"
    mine = known[topic]
    newer = version.isdecimal() and int(version) > int(mine.rpartition("/")[2])
    fix = "update jgram" if newer else "make it again with this version of jgram"
    return f"schema: expected {mine}, got {name}: {fix}"


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
    path = Path(__file__).parent / "schemas" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))
