"""Options that commands share, in groups: an option is declared once, as one field.

A command takes whole groups as parameters; :func:`merged` puts their fields in place of them. The
docstring of a group is its title in ``--help``.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option
from typer.models import OptionInfo

__all__ = [
    "Confidence",
    "CountsScale",
    "Engine",
    "FilledIn",
    "Gold",
    "Inference",
    "Input",
    "Listing",
    "Missing",
    "Observed",
    "Output",
    "ReportKindName",
    "Reports",
    "ScaleName",
    "Seed",
    "SomeReports",
    "merged",
]


class Missing(StrEnum):
    """What to do with records that lack a value."""

    KEEP = "keep"
    DROP = "drop"
    RAISE = "raise"


class Weigh(StrEnum):
    """What weighs alike in a ranking."""

    CLASSES = "classes"
    RECORDS = "records"


class ReportKindName(StrEnum):
    """What reports are."""

    AUTO = "auto"
    CATEGORIES = "categories"
    NUMBERS = "numbers"


class ScaleName(StrEnum):
    """How numbers of a table are made comparable."""

    RANK = "rank"
    STANDARD = "standard"
    NONE = "none"


# Options that stand in several groups, or alone.
CountsScale = Annotated[
    bool,
    Option(
        "--counts-scale",
        help="Also show the score of counts instead of shares, as some papers do (grows with n).",
        rich_help_panel="Output",
    ),
]
Reports = Annotated[
    list[str],
    Option("--report", help="Column of reported labels; repeatable.", rich_help_panel="Input"),
]
SomeReports = Annotated[
    list[str] | None,
    Option(
        "--report",
        help="Column of reported labels; repeatable. Without, the columns of the file are listed.",
        rich_help_panel="Input",
    ),
]
FilledIn = Annotated[
    Path | None, Option(help="The sheet of --to-check with its column 'right' filled in.")
]
Gold = Annotated[
    str | None,
    Option(
        help="Column of right labels, empty but for some records at random that somebody checked.",
        rich_help_panel="Input",
    ),
]
Weighing = Annotated[
    Weigh,
    Option(
        "--weigh",
        help="What weighs alike: classes, however rare, or records, for the order of the shares of "
        "right labels.",
        rich_help_panel="Input",
    ),
]
Confidence = Annotated[
    float,
    Option(
        help="Confidence level of intervals and of telling apart.", rich_help_panel="Uncertainty"
    ),
]
Seed = Annotated[
    int,
    Option(
        help="Seed of the simultaneous intervals.",
        min=0,
        max=2**63 - 1,
        rich_help_panel="Uncertainty",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Input:
    """Input"""

    file: Annotated[
        Path,
        Argument(
            help="CSV, TSV, Excel, Parquet, Arrow or npz file; a folder or '*.parquet' of any size."
        ),
    ]
    classes: Annotated[
        str | None,
        Option(help="All labels in order, comma-separated.", show_default="those reported"),
    ] = None
    missing: Annotated[
        Missing,
        Option(
            help="Of records that lack a label: keep them for the reports that have one, drop them "
            "for all, or raise an error."
        ),
    ] = Missing.KEEP
    abstain: Annotated[
        str | None, Option(help="Label that says 'no answer': a class of its own.")
    ] = None
    merge: Annotated[
        str | None,
        Option(
            help="Class names to merge: 'auto', those surely meant to be one, or a CSV or JSON "
            "file of from and to."
        ),
    ] = None
    missing_value: Annotated[
        list[str] | None, Option(help="Cell that means a missing value, such as NA; repeatable.")
    ] = None
    separator: Annotated[
        str | None, Option(help="Between fields ('tab' for tabs).", show_default="found")
    ] = None
    encoding: Annotated[
        str | None, Option(help="Of a text file, cp1252 for example.", show_default="found")
    ] = None
    sheet: Annotated[
        str | None, Option(help="Of a workbook.", show_default="the first with records")
    ] = None

    def of(self, file: Path) -> "Input":
        """Another file, of which no encoding and no sheet is said."""
        return replace(self, file=file, encoding=None, sheet=None)

    @property
    def how(self) -> dict[str, str | None]:
        """How its files are opened."""
        return {"separator": self.separator, "encoding": self.encoding, "sheet": self.sheet}


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Observations"""

    observation: Annotated[
        list[str] | None,
        Option(
            help="Column, or block of columns, that depends on the truth; repeatable. rank does "
            "without, by the other reports, where there are three or more.",
        ),
    ] = None
    kernel: Annotated[
        str | None,
        Option(
            help="Likeness of two observations: delta for categories, rbf, multiscale-rbf (four "
            "bandwidths) or linear for numbers, pseudo-posterior for class probabilities.",
            show_default="what fits the table",
        ),
    ] = None
    bandwidth: Annotated[
        float | None,
        Option(
            help="One bandwidth of rbf, exp(-distance² / bandwidth²).",
            show_default="four: the median distance over 1, 2, 4 and 8",
        ),
    ] = None
    report_kind: Annotated[
        ReportKindName,
        Option(
            help="Reports as categories, or as numbers (amounts, grades, scores) by their ranks; "
            "auto takes fractions, negative and widely spread numbers for numbers."
        ),
    ] = ReportKindName.AUTO
    kind: Annotated[
        list[str] | None,
        Option(
            help="COLUMN=number, =category, =text or =ignore, where a column is not what it seems."
        ),
    ] = None
    scale: Annotated[
        ScaleName, Option(help="Numbers of a table by their ranks, standardised, or as they are.")
    ] = ScaleName.RANK
    bins: Annotated[int | None, Option(help="Quantile bins for every numeric column.")] = None
    observation_bins: Annotated[
        int | None, Option(help="Quantile bins for numeric observations only.")
    ] = None
    difference: Annotated[
        bool, Option("--difference", help="Take changes from record to record of numeric columns.")
    ] = False
    thousands: Annotated[str | None, Option(help="Mark that groups digits, as in 1,234.")] = None
    decimal: Annotated[str | None, Option(help="Decimal mark.", show_default=".")] = None

    @property
    def columns(self) -> list[str]:
        """The names of the observations."""
        return self.observation or []

    @property
    def binned(self) -> bool:
        """Whether numbers are put into bins."""
        return bool(self.bins or self.observation_bins)

    @property
    def needed(self) -> list[str]:
        """The names of the observations, one or more."""
        if not self.observation:
            raise ValueError(
                "--observation: expected a column or more that depends on the truth, got none"
            )
        return self.observation


@dataclass(frozen=True, kw_only=True)
class Inference:
    """Uncertainty"""

    confidence: Confidence = 0.95
    seed: Seed = 0
    weight: Annotated[
        str | None, Option(help="Column of frequencies: 3 counts as three such records.")
    ] = None
    group: Annotated[
        str | None, Option(help="Column that names groups (patients, days) judged as a whole.")
    ] = None
    order: Annotated[
        str | None,
        Option(help="Column that puts the records in order of time.", show_default="the file's"),
    ] = None
    block_length: Annotated[
        int | None,
        Option(
            help="Records in order of time that are judged together.",
            min=1,
            show_default="found from the data with --order, else 1",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Files of any size"""

    checkpoint: Annotated[
        Path | None,
        Option(help="Folder that keeps what was found of each file: a killed run goes on."),
    ] = None
    scheduler: Annotated[
        str | None, Option(help="Address of a Dask cluster whose workers read the files.")
    ] = None

    @property
    def told(self) -> bool:
        """Whether files are to be read as those of any size are, small ones too."""
        return self.checkpoint is not None or self.scheduler is not None


@dataclass(frozen=True, kw_only=True)
class Output:
    """Output"""

    as_json: Annotated[bool, Option("--json", help="Write JSON.")] = False
    plot: Annotated[Path | None, Option(help="Draw it into this .png, .pdf or .svg file.")] = None
    page: Annotated[
        Path | None, Option("--html", help="Write all of it as one page for a browser.")
    ] = None
    quiet: Annotated[bool, Option("--quiet", help="Say nothing but why there is no answer.")] = (
        False
    )


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Output"""

    out: Annotated[Path | None, Option(help="Write all of them to this .csv or .json file.")] = None
    limit: Annotated[int, Option(help="Rows to show.", min=0)] = 20


def merged(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """The command with the options of each group in place of the group.

    Args:
        command: A function; the parameters whose type is a dataclass are groups.

    Returns:
        A function of all options by name, with the signature and annotations of that.

    Example:
        >>> def command(name: str, listing: Listing): ...
        >>> list(signature(merged(command)).parameters)
        ['name', 'out', 'limit']
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
