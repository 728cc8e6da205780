"""Options that commands share, in groups: an option is declared once, as one field.

A command takes whole groups as parameters, or classes of several; :func:`merged` puts their fields
in place of them. The docstring of the class that declares an option has the title above it in
``--help``, and what it says there.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from typer import Argument, Option
from typer.models import OptionInfo, ParameterInfo

from jgram.cli.outputs import FIGURES, PAGES, TABLES, check_outputs
from jgram.display import attributes_of

__all__ = [
    "Asked", "Confidence", "Engine", "Inference", "Input", "Listing", "Observed", "Output",
    "Reports", "Scores", "Seed", "merged",
]  # fmt: skip


Seed = Annotated[int, Option(min=0, max=2**63 - 1)]


@dataclass(frozen=True, kw_only=True)
class Input:
    """Input

    Attributes:
        file: CSV, TSV, Excel, Parquet, Arrow or npz file; a folder or '*.parquet' of any size.
        classes: All labels in order, comma-separated.
        missing: Of records that lack a label: keep them for the reports that have one, drop them
            for all, or raise an error.
        abstain: Label that says 'no answer': a class of its own.
        merge: Class names to merge: 'auto', those surely meant to be one, or a CSV or JSON file of
            from and to.
        missing_value: Cell that means a missing value, such as NA; repeatable.
        separator: Between fields ('tab' for tabs).
        encoding: Of a text file, cp1252 for example.
        sheet: Of a workbook.
    """

    file: Annotated[Path, Argument()]
    classes: Annotated[str | None, Option(show_default="those reported")] = None
    missing: Literal["keep", "drop", "raise"] = "keep"
    abstain: str | None = None
    merge: str | None = None
    missing_value: list[str] | None = None
    separator: Annotated[str | None, Option(show_default="found")] = None
    encoding: Annotated[str | None, Option(show_default="found")] = None
    sheet: Annotated[str | None, Option(show_default="the first with records")] = None

    def of(self, file: Path) -> "Input":
        """Another file, of which no encoding and no sheet is said."""
        return replace(self, file=file, encoding=None, sheet=None)

    @property
    def how(self) -> dict[str, Any]:
        """How its files are opened."""
        return {"separator": self.separator, "encoding": self.encoding, "sheet": self.sheet}


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Observations

    Attributes:
        observation: Column, or block of columns, that depends on the truth; repeatable. rank does
            without, by the other reports, where there are three or more.
        kernel: Likeness of two observations: delta for categories, rbf, multiscale-rbf (four
            bandwidths) or linear for numbers, pseudo-posterior for class probabilities.
        bandwidth: One bandwidth of rbf, exp(-distance² / bandwidth²).
        report_kind: Reports as categories, or as numbers (amounts, grades, scores) by their ranks;
            auto takes fractions, negative and widely spread numbers for numbers.
        kind: COLUMN=number, =category, =text or =ignore, where a column is not what it seems.
        scale: Numbers of a table by their ranks, standardised, or as they are.
        bins: Quantile bins for every numeric column.
        observation_bins: Quantile bins for numeric observations only.
        difference: Take changes from record to record of numeric columns.
        thousands: Mark that groups digits, as in 1,234.
        decimal: Decimal mark.
    """

    observation: list[str] | None = None
    kernel: Annotated[str | None, Option(show_default="what fits the table")] = None
    bandwidth: Annotated[
        float | None, Option(show_default="four: the median distance over 1, 2, 4 and 8")
    ] = None
    report_kind: Literal["auto", "categories", "numbers"] = "auto"
    kind: list[str] | None = None
    scale: Literal["rank", "standard", "none"] = "rank"
    bins: int | None = None
    observation_bins: int | None = None
    difference: bool = False
    thousands: str | None = None
    decimal: Annotated[str | None, Option(show_default=".")] = None

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
class Confidence:
    """Uncertainty

    Attributes:
        confidence: Confidence level of intervals and of telling apart.
    """

    confidence: float = 0.95


@dataclass(frozen=True, kw_only=True)
class Inference(Confidence):
    """Uncertainty

    Attributes:
        seed: Seed of the simultaneous intervals.
        weight: Column of frequencies: 3 counts as three such records.
        group: Column that names groups (patients, days) judged as a whole.
        order: Column that puts the records in order of time.
        block_length: Records in order of time that are judged together.
    """

    seed: Seed = 0
    weight: str | None = None
    group: str | None = None
    order: Annotated[str | None, Option(show_default="the file's")] = None
    block_length: Annotated[
        int | None, Option(min=1, show_default="found from the data with --order, else 1")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Files of any size

    Attributes:
        checkpoint: Folder that keeps what was found of each file: a killed run goes on.
        scheduler: Address of a Dask cluster whose workers read the files.
    """

    checkpoint: Annotated[Path | None, ()] = None
    scheduler: str | None = None

    @property
    def told(self) -> bool:
        """Whether files are to be read as those of any size are, small ones too."""
        return self.checkpoint is not None or self.scheduler is not None


@dataclass(frozen=True, kw_only=True)
class Asked(Engine, Inference, Observed, Input):
    """Input"""


@dataclass(frozen=True, kw_only=True)
class Reports(Asked):
    """Input

    Attributes:
        report: Column of reported labels; repeatable.
    """

    report: list[str]


@dataclass(frozen=True, kw_only=True)
class Output:
    """Output

    Attributes:
        json: Write JSON.
        plot: Draw it into this .png, .pdf or .svg file.
        html: Write all of it as one page for a browser.
        quiet: Say nothing but why there is no answer.
    """

    json: bool = False
    plot: Annotated[Path | None, FIGURES] = None
    html: Annotated[Path | None, PAGES] = None
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class Scores(Output):
    """Output

    Attributes:
        counts_scale: Also show the score of counts instead of shares, as some papers do (grows
            with n).
    """

    counts_scale: bool = False


@dataclass(frozen=True, kw_only=True)
class Listing(Output):
    """Output

    Attributes:
        out: Write all of them to this .csv or .json file.
        limit: Rows to show.
    """

    out: Annotated[Path | None, TABLES] = None
    limit: Annotated[int, Option(min=0)] = 20


def merged(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """The command with the options of each group in place of the group.

    Before it runs, the files that it would write are looked at: fields that name, beside their
    type, the suffixes of a file (none: a folder). Other paths are read.

    Example:
        >>> def command(listing: Listing): ...
        >>> list(signature(merged(command)).parameters)
        ['json', 'plot', 'html', 'quiet', 'out', 'limit']
    """
    given_as = signature(command, eval_str=True).parameters.items()
    groups = {name: parameter.annotation for name, parameter in given_as}
    parameters = [each for group in groups.values() for each in _parameters(group)]
    parameters.sort(key=lambda each: each.default is not Parameter.empty)  # needed ones lead

    @wraps(command)
    def run(**given: Any) -> int | None:
        outputs, inputs = {}, []
        for parameter in parameters:
            path, (_, *suffixes) = given[parameter.name], parameter.annotation.__metadata__
            if suffixes:
                outputs[f"--{parameter.name.replace('_', '-')}"] = path, suffixes[0]
            elif isinstance(path, Path):
                inputs.append(path)
        check_outputs(outputs, inputs)
        return command(**{
            name: group(**{field.name: given[field.name] for field in fields(group)})
            for name, group in groups.items()
        })  # fmt: skip

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(group: type) -> list[Parameter]:
    """The fields of a group as parameters, under the title of their class in the help."""
    hints, said, found = get_type_hints(group, include_extras=True), attributes_of(group), []
    titles = {
        name: (base.__doc__ or "").partition("\n")[0]
        for base in reversed(group.__mro__)
        for name in vars(base).get("__annotations__", ())
    }
    for field in fields(group):
        hint: Any = hints[field.name]
        kind, *beside = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
        if not (beside and isinstance(beside[0], ParameterInfo)):
            beside.insert(0, Option())
        info = copy(beside[0])
        info.help = said.get(field.name)
        if isinstance(info, OptionInfo):
            info.rich_help_panel = titles[field.name]
            info.param_decls = info.param_decls or (f"--{field.name.replace('_', '-')}",)
        default = Parameter.empty if field.default is MISSING else field.default
        hint = Annotated[(kind, info, *beside[1:])]
        found.append(
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        )
    return found
