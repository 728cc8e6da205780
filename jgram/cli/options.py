"""Options that commands share, in groups: an option is declared once, as one field.

A command takes whole groups as parameters; :func:`merged` puts their fields in place of them. The
docstring of a group is its title in ``--help``.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option
from typer.models import OptionInfo

__all__ = [
    "AsJson",
    "Confidence",
    "Draws",
    "Inference",
    "Input",
    "KernelName",
    "Listing",
    "Missing",
    "Observed",
    "Presentation",
    "Reports",
    "Seed",
    "merged",
]


class KernelName(StrEnum):
    """Kernels by the name they have on the command line."""

    DELTA = "delta"
    LINEAR = "linear"
    RBF = "rbf"
    PSEUDO_POSTERIOR = "pseudo-posterior"


class Missing(StrEnum):
    """What to do with records that lack a value."""

    RAISE = "raise"
    DROP = "drop"


# Options that stand in several groups, or alone.
Reports = Annotated[list[str], Option("--report", help="Column of reported labels; repeatable.")]
Confidence = Annotated[float, Option(help="Of intervals and of telling apart.")]
Draws = Annotated[int, Option(help="Permutations for the noise floor; 0 for none.", min=0)]
Seed = Annotated[int, Option(help="Of the permutations.", min=0, max=2**63 - 1)]
AsJson = Annotated[bool, Option("--json", help="Write JSON.")]


@dataclass(frozen=True, kw_only=True)
class Input:
    """Input"""

    file: Annotated[Path, Argument(help="CSV, TSV, Parquet or npz file.")]
    classes: Annotated[
        str | None,
        Option(help="All labels in order, comma-separated.", show_default="those reported"),
    ] = None
    missing: Annotated[Missing, Option(help="Refuse or drop records that lack a value.")] = (
        Missing.RAISE
    )
    missing_value: Annotated[
        list[str] | None, Option(help="Cell that means a missing value, such as NA; repeatable.")
    ] = None
    separator: Annotated[
        str | None, Option(help="Between fields ('tab' for tabs).", show_default="found")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Observations"""

    observation: Annotated[
        list[str],
        Option(help="Column, or block of columns, that depends on the truth; repeatable."),
    ]
    kernel: Annotated[
        KernelName | None,
        Option(
            help="Likeness of two observations: delta for categories, rbf or linear for numbers, "
            "pseudo-posterior for class probabilities.",
            show_default="delta for categories, rbf for numbers",
        ),
    ] = None
    bandwidth: Annotated[
        float | None,
        Option(help="Of exp(-distance² / bandwidth²).", show_default="median distance"),
    ] = None
    bins: Annotated[int | None, Option(help="Quantile buckets for every numeric column.")] = None
    observation_bins: Annotated[
        int | None, Option(help="Quantile buckets for numeric observations only.")
    ] = None
    difference: Annotated[
        bool, Option("--difference", help="Take changes from record to record of numeric columns.")
    ] = False
    thousands: Annotated[str | None, Option(help="Mark that groups digits, as in 1,234.")] = None
    decimal: Annotated[str | None, Option(help="Decimal mark.", show_default=".")] = None


@dataclass(frozen=True, kw_only=True)
class Inference:
    """Uncertainty"""

    confidence: Confidence = 0.95
    draws: Draws = 1000
    seed: Seed = 0
    order: Annotated[
        str | None,
        Option(help="Column that puts the records in order of time.", show_default="the file's"),
    ] = None
    block_length: Annotated[
        int, Option(help="Records in time order are permuted in runs of this length.", min=1)
    ] = 1


@dataclass(frozen=True, kw_only=True)
class Presentation:
    """Output"""

    as_json: AsJson = False
    plot: Annotated[
        Path | None, Option(help="Draw scores, intervals and noise floor into this file.")
    ] = None
    counts_scale: Annotated[
        bool,
        Option(
            "--counts-scale",
            help="Also show the score of counts instead of shares, as some papers do (grows with "
            "n).",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Output"""

    out: Annotated[Path | None, Option(help="Write all of them to this .csv or .json file.")] = None
    limit: Annotated[int, Option(help="Rows to show.", min=0)] = 20
    as_json: AsJson = False


def merged(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """The command with the options of each group in place of the group.

    Args:
        command: A function; the parameters whose type is a dataclass are groups.

    Returns:
        A function of all options by name, with the signature and annotations of that.

    Example:
        >>> def command(name: str, listing: Listing): ...
        >>> list(signature(merged(command)).parameters)
        ['name', 'out', 'limit', 'as_json']
    """
    groups, parameters = {}, []
    for parameter in signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if is_dataclass(group) and isinstance(group, type):
            groups[parameter.name] = group
            parameters += _parameters(group)
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> int | None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return command(**given)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(group: type) -> list[Parameter]:
    """The fields of a group as parameters, under its title in the help."""
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=_titled(hints[field.name], group.__doc__),
        )
        for field in fields(group)
    ]


def _titled(annotation: Any, title: str | None) -> Any:
    (info,) = annotation.__metadata__
    if not isinstance(info, OptionInfo):
        return annotation
    info = copy(info)
    info.rich_help_panel = title
    return Annotated[annotation.__origin__, info]
