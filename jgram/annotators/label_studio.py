"""Answers from Label Studio: the JSON export of a project, its choices.

The format is that of Label Studio 1.x (*Label Studio JSON format of annotated tasks*): a list of
tasks, each with ``id``, ``data`` and ``annotations``; an annotation has ``completed_by`` and a list
``result``, in which the answer to a ``<Choices>`` tag is ``{"from_name": ..., "value": {"choices":
[...]}}``. Skipped tasks (``was_cancelled``), drafts and predictions are no answers.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from jgram.annotators.answers import Answers, Repeats, answers_from_columns
from jgram.data.files import readable

__all__ = ["answers_from_label_studio"]


def answers_from_label_studio(
    export: str | Path | Sequence[Any],
    *,
    item: str | None = None,
    label: str | None = None,
    classes: Sequence[Any] | None = None,
    repeats: Repeats = "refuse",
    abstain: Iterable[Any] = (),
    missing: Literal["raise", "drop"] = "drop",
) -> Answers:
    """Who chose what, of a JSON export of Label Studio (not JSON-MIN).

    Args:
        export: The ``.json`` file, or its tasks.
        item: Field of ``data`` that names the items; the ``id`` of the task by default.
        label: ``from_name`` of the choices, where tasks have several.
        classes: All possible labels, in order.
        repeats: As in :func:`jgram.annotators.answers_from_columns`.
        abstain: Choices that mean "saw it and did not label it".
        missing: ``"raise"`` refuses annotations without a choice, ``"drop"`` leaves them out.

    Returns:
        :class:`jgram.annotators.Answers`; annotators by email where the export has it, else by id.

    Raises:
        ValueError: Another format, several choices in one answer, several sets of choices.

    Example:
        >>> def said(who, choice):
        ...     value = {"choices": [choice]}
        ...     result = [{"from_name": "kind", "type": "choices", "value": value}]
        ...     return {"completed_by": who, "result": result}
        >>> task = {"id": 7, "data": {}, "annotations": [said(1, "cat"), said(2, "dog")]}
        >>> answers = answers_from_label_studio([task])
        >>> answers.items, answers.annotators, answers.classes
        ((7,), (1, 2), ('cat', 'dog'))
    """
    tasks = _read(export) if isinstance(export, str | Path) else export
    rows = [row for task in tasks for row in _answered(task, item, label)]
    controls = {name for *_, chosen in rows for name in chosen}
    if len(controls) > 1:
        raise ValueError(
            f"expected one set of choices, got {', '.join(sorted(controls))}: say which (label=, "
            "--label)"
        )
    if not controls:
        wanted = "choices" if label is None else f"choices named {label!r}"
        raise ValueError(f"expected annotations with {wanted}, got none in {len(tasks)} tasks")
    items, people, chosen = map(list, zip(*rows, strict=True))
    said = [next(iter(choices.values()), None) for choices in chosen]
    options: Any = {"repeats": repeats, "abstain": abstain, "missing": missing}
    return answers_from_columns(items, people, said, classes=classes, **options)


def _answered(
    task: Any, item: str | None, label: str | None
) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Item, annotator and choices of each annotation of a task."""
    if not isinstance(task, Mapping) or not isinstance(task.get("annotations"), list):
        raise ValueError(
            "expected tasks with annotations as in the JSON export of Label Studio, got "
            f"{_keys(task)}: choose JSON, not JSON-MIN or CSV"
        )
    where = task.get("id")
    data = _part(task.get("data"), Mapping, "data", where)
    name = where if item is None else data.get(item)
    if name is None:
        kind = "an id" if item is None else f"{item!r} in its data"
        raise ValueError(f"task {where}: expected {kind}, got {_keys(data)}")
    name = _name(name, item or "id", where)
    for annotation in task["annotations"]:
        annotation = _part(annotation, Mapping, "annotations", where)
        if not annotation.get("was_cancelled"):
            who = annotation.get("completed_by")
            if isinstance(who, Mapping):  # some exports have the number alone
                who = who.get("email") or who.get("id")
            if who is None:
                raise ValueError(
                    f"task {where}: expected completed_by in each annotation, got none"
                )
            yield name, _name(who, "completed_by", where), _choices(annotation, label, where)


def _read(path: str | Path) -> list[Any]:
    with readable(path, "the JSON export of Label Studio"):
        tasks = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    if not isinstance(tasks, list):
        raise ValueError(f"{path}: expected a list of tasks, got {_keys(tasks)}")
    return tasks


def _part(found: Any, kind: type, what: str, task: Any) -> Any:
    """A part of a task, empty where it is null; refused where it is of another type."""
    if found is None:
        return kind() if kind is list else {}
    if not isinstance(found, kind):
        wanted = "a list" if kind is list else "an object"
        raise ValueError(f"task {task}: expected {wanted} as {what}, got {_keys(found)}")
    return found


def _name(found: Any, what: str, task: Any) -> Any:
    """A text or a whole number, by which things are told apart."""
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise ValueError(f"task {task}: expected a text or a number as {what}, got {_keys(found)}")
    return found


def _choices(annotation: Mapping[str, Any], label: str | None, task: Any) -> dict[str, Any]:
    """The choice by ``from_name``."""
    found = {}
    for part in _part(annotation.get("result"), list, "result", task):
        part = _part(part, Mapping, "parts of a result", task)
        value = _part(part.get("value"), Mapping, "value", task)
        name = str(part.get("from_name"))
        if value.get("choices") is None or label not in (None, name):
            continue
        given = _part(value["choices"], list, "choices", task)
        if len(given) != 1 or name in found:
            several = len(given) if len(given) != 1 else "another"
            raise ValueError(
                f"task {task}: expected one choice of {name} an annotation, got {several}: labels "
                "that hold together are not judged"
            )
        found[name] = _name(given[0], "choice", task)
    return found


def _keys(found: Any) -> str:
    """What was got, in a few words."""
    if isinstance(found, Mapping):
        return f"an object of {', '.join(map(str, list(found)[:6])) or 'nothing'}"
    return type(found).__name__
