"""The `jgram` command: files in, rankings out. All judgement is in the library; this is its face.

Exit codes: 0 with an answer, 2 for input that does not fit (one line on stderr), 3 where the data
cannot tell.
"""

import csv
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import numpy as np

try:
    import typer
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from typer.core import TyperGroup
except ImportError as error:
    sys.stderr.write(f"jgram: the command needs {error.name}: pip install 'jgram[cli]'\n")
    sys.exit(2)

if TYPE_CHECKING:
    from jgram.report import Ranking, ScoreReport

__all__ = ["app", "main"]

CANNOT_TELL = 3


class _OneLineErrors(TyperGroup):
    """Input that does not fit ends in one line on stderr and exit code 2."""

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> NoReturn:
        try:
            code = super().main(*args, standalone_mode=False, **kwargs)
        except Exception as error:
            if isinstance(error, OSError) and error.filename is not None:
                message = f"{error.filename}: {error.strerror}"
            elif isinstance(error, ValueError | OSError):
                message = str(error)
            elif hasattr(error, "format_message"):  # of the command line itself
                message = error.format_message()  # type: ignore[attr-defined]
            else:
                raise
            if message:  # none where help was shown instead
                sys.stderr.write(f"jgram: {' '.join(message.split())}\n")
            sys.exit(2)
        sys.exit(code or 0)


app = typer.Typer(
    cls=_OneLineErrors,
    help="How reliable is reported data when nobody can check it?",
    epilog="Exit codes: 0 an answer, 2 wrong input, 3 the data cannot tell.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command line."""
    app(prog_name="jgram")


class KernelName(StrEnum):
    """Kernels by the name they have on the command line."""

    DELTA = "delta"
    LINEAR = "linear"
    RBF = "rbf"
    PSEUDO_POSTERIOR = "pseudo-posterior"


class Reading(StrEnum):
    """What annotators are ranked by."""

    SCORE = "score"
    ACCURACY = "accuracy"


class MissingPolicy(StrEnum):
    """What to do with records that lack a value."""

    RAISE = "raise"
    DROP = "drop"


# Options that commands share.
File = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or npz file.")]
Report = Annotated[list[str], typer.Option(help="Column of reported labels; rank takes several.")]
Observation = Annotated[
    list[str],
    typer.Option(help="Column, or block of columns, that depends on the truth; repeatable."),
]
Kernel = Annotated[
    KernelName | None,
    typer.Option(
        help="Likeness of two observations: delta for categories, rbf or linear for numbers, "
        "pseudo-posterior for class probabilities.",
        show_default="delta for categories, rbf for numbers",
    ),
]
Bandwidth = Annotated[
    float | None,
    typer.Option(help="Of exp(-distance² / bandwidth²).", show_default="median distance"),
]
Bins = Annotated[int | None, typer.Option(help="Quantile buckets for every numeric column.")]
ObservationBins = Annotated[
    int | None, typer.Option(help="Quantile buckets for numeric observations only.")
]
Difference = Annotated[
    bool,
    typer.Option("--difference", help="Take changes from record to record of numeric columns."),
]
Classes = Annotated[
    str | None,
    typer.Option(help="All labels in order, comma-separated.", show_default="those reported"),
]
MissingOption = Annotated[
    MissingPolicy, typer.Option("--missing", help="Refuse or drop records that lack a value.")
]
Separator = Annotated[
    str | None, typer.Option(help="Between fields ('tab' for tabs).", show_default="found")
]
Thousands = Annotated[str | None, typer.Option(help="Mark that groups digits, as in 1,234.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark.", show_default=".")]
MissingValue = Annotated[
    list[str] | None, typer.Option(help="Cell that means a missing value, such as NA; repeatable.")
]
Confidence = Annotated[float, typer.Option(help="Of intervals and of telling apart.")]
Draws = Annotated[int, typer.Option(help="Permutations for the noise floor; 0 for none.")]
BlockLength = Annotated[
    int,
    typer.Option(help="Records in time order are permuted in runs of this length.", min=1),
]
Order = Annotated[
    str | None,
    typer.Option(help="Column that puts the records in order of time.", show_default="the file's"),
]
Seed = Annotated[int, typer.Option(help="Of the permutations.")]
CountsScale = Annotated[
    bool,
    typer.Option(
        "--counts-scale",
        help="Also show the score of counts instead of shares, as some papers do (grows with n).",
    ),
]
Out = Annotated[Path | None, typer.Option(help="Write all of them to this .csv or .json file.")]
Limit = Annotated[int, typer.Option(help="Rows to show.", min=0)]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Plot = Annotated[
    Path | None, typer.Option(help="Draw scores, intervals and noise floor into this file.")
]


_SCORE_HELP = """Score one report, and say how far the number may be trusted.

A score means something beside another report of the same records: see rank.

[bold]Examples[/bold]

    jgram score visits.csv --report diagnosis --observation crp --observation temperature

    jgram score labels.npz --report answers --observation features --kernel rbf --json
"""
_RANK_HELP = """Rank reports of the same records by reliability, and say which can be told apart.

[bold]Examples[/bold]

    jgram rank visits.csv --report doctor --report coder --observation crp

    jgram rank employment.csv --report first --report final --observation taxes \\
      --difference --bins 4 --order month --block-length 12 --plot ranking.png
"""


def _judging(*, several: bool) -> Callable[..., None]:
    """The command that scores one report, or ranks several."""

    def judge(
        file: File,
        report: Report,
        observation: Observation,
        kernel: Kernel = None,
        bandwidth: Bandwidth = None,
        bins: Bins = None,
        observation_bins: ObservationBins = None,
        difference: Difference = False,
        classes: Classes = None,
        missing: MissingOption = MissingPolicy.RAISE,
        separator: Separator = None,
        thousands: Thousands = None,
        decimal: Decimal = None,
        missing_value: MissingValue = None,
        confidence: Confidence = 0.95,
        draws: Draws = 1000,
        block_length: BlockLength = 1,
        order: Order = None,
        seed: Seed = 0,
        counts_scale: CountsScale = False,
        as_json: AsJson = False,
        plot: Plot = None,
    ) -> None:
        """Read columns, then score the one report or rank the several."""
        from jgram.data import read_columns

        if several != (len(report) > 1):
            raise ValueError("expected one --report to score, two or more to rank")
        if block_length > 1 and order is None:
            raise ValueError(
                "--block-length: expected --order, the column that puts the records in order of "
                "time, got none"
            )
        columns = read_columns(
            file,
            [*report, *observation, *([order] if order else [])],
            separator=separator,
            thousands=thousands,
            decimal=decimal,
            missing_values=missing_value or (),
        )
        if order is not None:
            columns = _ordered(columns, order, keep=order in (*report, *observation))
        columns, _, notes = _prepare(
            columns,
            observation,
            drop=missing is MissingPolicy.DROP,
            changes=difference,
            bins=bins,
            observation_bins=observation_bins or (None if _takes_numbers(kernel) else bins),
        )
        labels = {name: columns[name] for name in report}
        found = _judge(
            labels,
            {name: columns[name] for name in observation},
            _kernel(kernel, bandwidth),
            classes=_listed(classes, labels[report[0]]),
            confidence=confidence,
            draws=draws,
            block_length=block_length,
            seed=seed,
        )
        source = {"file": str(file), "observations": observation, "seed": seed, "notes": notes}
        code = _present(found, source, counts_scale=counts_scale, as_json=as_json, plot=plot)
        raise typer.Exit(code)

    return judge


app.command("score", help=_SCORE_HELP)(_judging(several=False))
app.command("rank", help=_RANK_HELP)(_judging(several=True))


@app.command()
def issues(
    file: File,
    report: Annotated[str, typer.Option(help="Column of reported labels.")],
    observation: Observation,
    kernel: Kernel = None,
    bandwidth: Bandwidth = None,
    bins: Bins = None,
    observation_bins: ObservationBins = None,
    difference: Difference = False,
    classes: Classes = None,
    missing: MissingOption = MissingPolicy.RAISE,
    separator: Separator = None,
    thousands: Thousands = None,
    decimal: Decimal = None,
    missing_value: MissingValue = None,
    out: Out = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List the records whose label fits its observation badly: look at these first.

    Nothing is trained. Rows count from 0 after the header. The order is more trustworthy than the
    number of records listed.

    [bold]Examples[/bold]

        jgram issues visits.csv --report diagnosis --observation crp --observation temperature

        jgram issues labels.npz --report answers --observation features --out suspects.csv
    """
    from jgram.data import read_columns, to_json
    from jgram.issues import label_issues

    _check_out(out)
    columns = read_columns(
        file,
        [report, *observation],
        separator=separator,
        thousands=thousands,
        decimal=decimal,
        missing_values=missing_value or (),
    )
    columns, rows, notes = _prepare(
        columns,
        observation,
        drop=missing is MissingPolicy.DROP,
        changes=difference,
        bins=bins,
        observation_bins=observation_bins or (None if _takes_numbers(kernel) else bins),
    )
    labels = columns.pop(report)
    found = label_issues(
        labels, columns, _kernel(kernel, bandwidth), classes=_listed(classes, labels)
    )
    record = found.to_dict()
    for issue in record["records"]:
        issue["row"] = int(rows[issue["row"]])
    source = {"file": str(file), "observations": observation, "notes": notes}
    text = to_json({"source": source, "report": report, **record})
    _write(out, text, record["records"])
    if as_json:
        print(text)
        return
    _say(f"{record['num_issues']} of {record['num_records']} records fit another class better")
    for note in notes:
        _say(note, "dim")
    _say("")
    _say(_rows(record["classes"], ["name", "count", "issues", "mean_quality", "confused_with"]))
    _say("")
    _say(_rows(record["records"][:limit], ["row", "label", "suggested", "quality", "gain"]))
    if out is not None:
        _say(f"all of them in {out}", "dim")


@app.command()
def annotators(
    file: File,
    item: Annotated[str, typer.Option(help="Column that names the item.")] = "item",
    annotator: Annotated[str, typer.Option(help="Column that names the annotator.")] = "annotator",
    label: Annotated[str, typer.Option(help="Column of the labels.")] = "label",
    answers: Annotated[
        str | None,
        typer.Option(help="Instead: array [items, annotators] of an npz, -1 for no answer."),
    ] = None,
    by: Annotated[
        Reading, typer.Option(help="Weigh every class alike, or classes as they occur.")
    ] = Reading.SCORE,
    classes: Classes = None,
    missing: MissingOption = MissingPolicy.RAISE,
    separator: Separator = None,
    missing_value: MissingValue = None,
    confidence: Confidence = 0.95,
    out: Out = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """Rank annotators by their peers' answers: no truth needed, one row for each answer.

    [bold]Examples[/bold]

        jgram annotators answers.csv --item image --annotator worker --label answer

        jgram annotators answers.npz --answers answers --by accuracy --out annotators.csv
    """
    from jgram.annotators import prepare, rank_annotators
    from jgram.data import read_columns, to_json

    _check_out(out)
    if answers is not None and classes is not None:
        raise ValueError("--classes: expected columns of a long table, got --answers with codes")
    names = [item, annotator, label] if answers is None else [answers]
    columns = read_columns(file, names, separator=separator, missing_values=missing_value or ())
    given = columns[names[-1]]
    if answers is None:
        given = prepare(*columns.values(), classes=_listed(classes, given), missing=missing.value)
    found = rank_annotators(given, by=by.value, confidence=confidence)
    record = found.to_dict()
    text = to_json({"source": {"file": str(file)}, **record})
    _write(out, text, record["annotators"])
    if as_json:
        print(text)
        sys.stderr.write("" if found.separated else f"jgram: {found.conclusion}\n")
    else:
        shown = [
            {
                "rank": one.rank,
                "annotator": one.name,
                "answers": one.answers,
                f"score ± {confidence:.0%}": _plus_minus(one.score, one.score_interval),
                "accuracy": one.accuracy,
                "agreement": one.agreement,
                "p": f"{one.p_value:.3f}",
                "remarks": ", ".join(one.remarks),
            }
            for one in found.annotators[:limit]
        ]
        _say(f"{len(found.annotators)} annotators, {len(found.classes)} classes, by {by}\n")
        _say(_rows(shown, list(shown[0]) if shown else []))
        _say("")
        for finding in found.findings:
            _say_finding(finding.level, f"{finding.name}: {finding.message}; {finding.advice}")
        _say(found.conclusion, "bold")
        if out is not None:
            _say(f"all of them in {out}", "dim")
    raise typer.Exit(0 if found.separated else CANNOT_TELL)


@app.command()
def encode(
    images: Annotated[
        Path, typer.Argument(help="Folder of images, or npz with one array of them.")
    ],
    checkpoint: Annotated[Path, typer.Option(help="Directory that training wrote.")],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    features: Annotated[
        bool, typer.Option("--features", help="The backbone's features, not the projections.")
    ] = False,
    resize: Annotated[
        bool, typer.Option("--resize", help="Bring images to the size trained on.")
    ] = False,
) -> None:
    """Embed images with a trained encoder, to observe labels through.

    [bold]Example[/bold]

        jgram encode photos/ --checkpoint simclr/ --out photos.npz --resize
    """
    try:
        from jgram.simclr.train import encode_path
    except ImportError as error:
        raise ValueError(f"encode needs {error.name}: pip install 'jgram[encoder]'") from None
    if out.suffix != ".npz":
        raise ValueError(f"{out}: expected an .npz file")
    n, k = encode_path(images, checkpoint, out, features=features, resize=resize)
    _say(f"{n} embeddings of {k} numbers in {out}: arrays 'embeddings' and 'names'")


@app.command()
def demo(
    seed: Seed = 0,
    draws: Draws = 1000,
    as_json: AsJson = False,
    plot: Annotated[Path, typer.Option(help="Draw the ranking into this file.")] = Path(
        "jgram-demo.png"
    ),
) -> None:
    """Two rankings: one that the data cannot decide, and one that they can.

    Three vintages of U.S. employment against tax deposits, which is Table 1 of the paper; then
    labels of 10,000 images with known errors, against image embeddings.

    [bold]Example[/bold]

        jgram demo --plot employment.png
    """
    from jgram.data import to_json

    parts = {
        "employment": (_employment(seed, draws), plot),
        "images": (_images(seed, min(draws, 50)), plot.with_stem(f"{plot.stem}-images")),
    }
    if as_json:
        for (found, _), file in parts.values():
            _draw(file, found.reports, found)
        records = {
            name: {"source": source, **found.to_dict()}
            for name, ((found, source), _) in parts.items()
        }
        print(to_json(records))
        return
    for name, ((found, source), file) in parts.items():
        _say(_DEMO[name][0], "bold")
        _say(f"{_DEMO[name][1]}\n")
        counts_scale = name == "employment"
        _present(found, source, counts_scale=counts_scale, as_json=False, plot=file)
        _say("")


_DEMO = {
    "employment": (
        "Which employment figures are the most reliable?",
        "U.S. employment is published, then revised twice. Nobody knows the truth; taxes "
        "deposited on wages depend on it. The column 'counts scale' is Table 1 of the paper.",
    ),
    "images": (
        "Which labels of these images are the most reliable?",
        "10,000 photographs of 10 kinds of things, seen through an encoder that never saw a label. "
        "A share of the labels was drawn anew at random, one tenth of these hitting the truth.",
    ),
}


def _employment(seed: int, draws: int) -> tuple[Any, dict[str, Any]]:
    from jgram.data import employment

    table = employment()
    observation = ["tax_deposits"]
    months = len(table.pop("month"))
    columns, _, notes = _prepare(table, observation, changes=True, bins=4, observation_bins=4)
    taxes = {name: columns.pop(name) for name in observation}
    found = _judge(columns, taxes, _kernel(KernelName.DELTA, None), draws=draws, seed=seed)
    source = {
        "file": "employment (in the package)",
        "observations": observation,
        "seed": seed,
        "notes": [f"{months} months, changes from month to month, in quartiles", *notes],
    }
    return found, source


def _images(seed: int, draws: int) -> tuple[Any, dict[str, Any]]:
    import jax
    import jax.numpy as jnp

    from jgram.data import cifar10_embeddings
    from jgram.simulate.policies import corrupt, mix, uniform

    embeddings, labels, provenance = cifar10_embeddings()
    shares, keys = (0.0, 0.15, 0.3, 0.5), jax.random.split(jax.random.key(seed), 4)
    reports = {
        f"{share:.0%} redrawn": np.asarray(
            corrupt(key, jnp.asarray(labels), mix(uniform(10), share))
        )
        for share, key in zip(shares, keys, strict=True)
    }
    found = _judge(reports, embeddings, None, draws=draws, seed=seed)
    source = {
        "file": "embeddings of the CIFAR-10 test images (in the package)",
        "observations": ["embedding"],
        "seed": seed,
        "notes": [f"SimCLR encoder after {provenance['epochs']} epochs without labels"],
    }
    return found, source


# Input --------------------------------------------------------------------------------------


def _ordered(columns: Mapping[str, Any], by: str, *, keep: bool) -> dict[str, Any]:
    """All columns in the order of one of them, which goes unless it is used otherwise."""
    from jgram.data import check_observations, encode_labels

    times = columns[by]
    numeric = np.asarray(times).dtype.kind in "iuf"
    keys = (
        check_observations(times, name=by).values
        if numeric
        else encode_labels(times, name=by).codes
    )
    order = np.argsort(keys, kind="stable")
    return {name: np.asarray(data)[order] for name, data in columns.items() if keep or name != by}


class _Prepared(NamedTuple):
    """Columns ready to be judged, the rows of the file they come from, what was done to them."""

    columns: dict[str, Any]
    rows: np.ndarray
    notes: list[str]


def _prepare(
    columns: Mapping[str, Any],
    observations: Sequence[str],
    *,
    drop: bool = False,
    changes: bool = False,
    bins: int | None = None,
    observation_bins: int | None = None,
) -> _Prepared:
    """Columns after dropping, changes and buckets, in this order."""
    from jgram.data import check_aligned, difference, drop_missing, quantile_bins

    size, notes, prepared = check_aligned(columns), [], dict(columns)
    rows = np.arange(size)
    if drop:
        prepared, rows = drop_missing(columns)
        if len(rows) < size:
            notes.append(f"dropped {size - len(rows)} of {size} records that lack a value")
            if changes:
                raise ValueError(
                    f"{size - len(rows)} records lack a value, and changes cannot be taken across "
                    "them: fill them in, or leave out --difference"
                )
    for name, column in prepared.items():
        numeric = np.asarray(column).dtype.kind in "iuf"
        wanted = observation_bins if name in observations else bins
        if changes:
            column = difference(column, name=name) if numeric else column[1:]
        if wanted and numeric:
            binned = quantile_bins(column, wanted, name=name)
            edges = ", ".join(f"{edge:g}" for edge in binned.edges)
            notes.append(f"{name}: {wanted} buckets, cut at {edges}")
            column = binned.codes.astype(str) if name in observations else binned.codes
        prepared[name] = column
    if (bins or observation_bins) and not any("buckets" in note for note in notes):
        raise ValueError("--bins: expected a numeric column to put into buckets, got none")
    return _Prepared(prepared, rows[1:] if changes else rows, notes)


def _kernel(name: KernelName | None, bandwidth: float | None) -> Any:
    """The library's kernel, or None for the one that fits the observations."""
    from jgram import RBF, Linear, PseudoPosterior, delta

    if bandwidth is not None and name not in (None, KernelName.RBF):
        raise ValueError(f"--bandwidth: expected the rbf kernel, got {name}")
    if bandwidth is not None and not bandwidth > 0:
        raise ValueError(f"--bandwidth: expected a positive number, got {bandwidth:g}")
    match name:
        case KernelName.DELTA:
            return delta
        case KernelName.LINEAR:
            return Linear()
        case KernelName.PSEUDO_POSTERIOR:
            return PseudoPosterior()
        case None if bandwidth is None:
            return None
    return RBF(bandwidth)


def _takes_numbers(name: KernelName | None) -> bool:
    return name not in (None, KernelName.DELTA)


def _listed(classes: str | None, labels: Any) -> list[Any] | None:
    """Labels listed on the command line, as numbers where the column holds numbers."""
    if classes is None:
        return None
    listed = [label.strip() for label in classes.split(",")]
    if np.asarray(labels).dtype.kind not in "iuf":
        return listed
    try:
        return [int(label) for label in listed]
    except ValueError:
        raise ValueError(
            f"--classes: expected whole numbers as in the file, got {classes}"
        ) from None


def _judge(
    labels: Mapping[str, Any],
    y: Any,
    kernel: Any,
    *,
    draws: int,
    seed: int,
    classes: Sequence[Any] | None = None,
    **options: Any,
) -> "Ranking | ScoreReport":
    import jax

    from jgram import rank_reports, score

    key = jax.random.key(seed) if draws else None
    options |= {"classes": classes, "key": key, "draws": max(draws, 1)}
    if len(labels) > 1:
        return rank_reports(labels, y, kernel, **options)
    ((name, x_hat),) = labels.items()
    return score(x_hat, y, kernel, name=name, **options)


# Output -------------------------------------------------------------------------------------


def _present(
    found: "Ranking | ScoreReport",
    source: Mapping[str, Any],
    *,
    counts_scale: bool,
    as_json: bool,
    plot: Path | None,
) -> int:
    """Print and draw a result; the exit code that goes with it."""
    from jgram.data import to_json
    from jgram.report import Ranking

    if isinstance(found, Ranking):
        ranking, reports = found, found.reports
        answered, conclusion = found.separated, found.conclusion
    else:
        ranking, reports = None, (found,)
        answered, conclusion = found.reason is None, f"No score: {found.reason}."
    if plot:
        _draw(plot, reports, ranking)
    if as_json:
        print(to_json({"source": source, **found.to_dict()}))
        if not answered:
            sys.stderr.write(f"jgram: {conclusion}\n")
        return 0 if answered else CANNOT_TELL

    first = reports[0]
    _say(
        f"{first.num_records} records, {first.num_classes} classes, observed through "
        f"{', '.join(source['observations'])}; kernel {first.kernel}"
    )
    for note in source["notes"]:
        _say(note, "dim")
    _say("")
    _say(_table(reports, ranking, counts_scale))
    _say("")
    if ranking is None:
        counts = ", ".join(f"{name} {count:g}" for name, count in first.class_counts.items())
        _say(f"records of each class: {counts}")
        if answered:
            _say(
                f"normalised score {first.normalised_score:.3f}, Hadamard ratio "
                f"{first.hadamard_ratio:.3g} (both from 0 to 1)"
            )
    for level, line in _findings(reports, ranking):
        _say_finding(level, line)
    for group in ranking.tie_groups if ranking else ():
        if len(group) > 1:
            _say(f"cannot be told apart: {', '.join(group)}")
    if ranking or not answered:
        _say(conclusion, "bold")
    if plot:
        _say(f"plot in {plot}", "dim")
    return 0 if answered else CANNOT_TELL


def _say(content: Any, style: str = "") -> None:
    """Print text as it is, lines as long as they are: terminals wrap them, pipes should not."""
    console = Console(highlight=False, markup=False)
    console.print(content, style=style, soft_wrap=isinstance(content, str))


def _say_finding(level: str, text: str) -> None:
    _say(f"{level} {text}", {"fatal": "red", "warning": "yellow"}.get(level, ""))


def _check_out(path: Path | None) -> None:
    if path is not None and path.suffix not in (".csv", ".json"):
        raise ValueError(f"{path}: expected a .csv or .json file")


def _write(path: Path | None, text: str, records: Sequence[Mapping[str, Any]]) -> None:
    """The JSON text, or its records as CSV, into a file if there is one."""
    if path is None:
        return
    if path.suffix == ".json":
        path.write_text(text + "\n", encoding="utf-8")
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]) if records else [])
        writer.writeheader()
        writer.writerows(records)


def _table(
    reports: "Sequence[ScoreReport]", ranking: "Ranking | None", counts_scale: bool
) -> Table:
    """Reports as rows, best first."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0, 0, 1))
    with_floor = reports[0].floor is not None
    table.add_column("report", no_wrap=True)
    for head, shown in {
        f"log score\n± {reports[0].confidence:.0%}": True,
        "noise floor\n± sd": with_floor,
        "p of\nnoise": with_floor,
        "det\nratio": ranking is not None,
        "P best\nbetter": ranking is not None,
        "counts\nscale": counts_scale,
    }.items():
        if shown:
            table.add_column(head, justify="right", no_wrap=True)
    to_best = {pair.worse: pair.comparison for pair in (ranking.pairs if ranking else ())
               if pair.better == reports[0].name}  # fmt: skip
    for report in reports:
        cells = ["no score"]
        if report.log_score is not None:
            cells = [_plus_minus(report.log_score, report.interval)]
        if report.floor:
            floor = report.floor if report.log_score is not None else None
            cells.append(f"{floor.mean:.1f} ± {floor.standard_deviation:.1f}" if floor else "")
            cells.append(f"{floor.p_value:.3f}" if floor else "")
        if ranking:
            against = to_best.get(report.name)
            cells.append(f"{1 / against.determinant_ratio:.3g}" if against else "1")
            cells.append(_probability(against.probability) if against else "")
        if counts_scale:
            cells.append(_counts(report.counts_log_score))
        table.add_row(report.name, *cells)
    return table


def _rows(records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    """Records as a table."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0, 0, 1))
    for name in names:
        table.add_column(name.replace("_", " "))
    for record in records:
        values = [record[name] for name in names]
        table.add_row(*("" if x is None else f"{x:.3g}" if isinstance(x, float) else str(x)
                        for x in values))  # fmt: skip
    return table


def _plus_minus(value: float, interval: tuple[float, float] | None) -> str:
    half = f" ± {(interval[1] - interval[0]) / 2:.2f}" if interval else ""
    return f"{value:.2f}{half}"


def _probability(value: float) -> str:
    return ">0.99" if value > 0.99 else f"{value:.2f}"


def _counts(log_value: float | None) -> str:
    if log_value is None:
        return "0"
    return f"{exp(log_value):,.0f}" if log_value < 34 else f"e^{log_value:.2f}"


def _findings(reports: "Sequence[ScoreReport]", ranking: "Ranking | None") -> list[tuple[str, str]]:
    """Findings as level and line, those that reports share in one line."""
    shared: dict[tuple[str, str, int], list[tuple[str, Any]]] = {}
    for report in reports:
        alike = Counter()
        for finding in report.findings:
            key = (finding.name, finding.advice, alike[finding.name])
            alike[finding.name] += 1
            shared.setdefault(key, []).append((report.name, finding))
    lines = []
    for (name, advice, _), group in shared.items():
        (first, finding), others = group[0], [report for report, _ in group[1:]]
        where = f"{first}: " if ranking else ""
        also = f" (also {', '.join(others)})" if others else ""
        line = f"{name}: {where}{finding.message}{also}; {advice}"
        lines.append((finding.level, line))
    for finding in ranking.findings if ranking else ():
        line = f"{finding.name}: {finding.message}; {finding.advice}"
        lines.append((finding.level, line))
    return lines


def _draw(path: Path, reports: "Sequence[ScoreReport]", ranking: "Ranking | None") -> None:
    """The picture of a result: scores, and probabilities of pairs where there are several."""
    from jgram.plots import figure, plot_pairwise, plot_scores, save

    names = [report.name for report in reports]
    pairwise = ranking is not None and len(names) > 2
    drawing, axes = figure(10 if pairwise else 7, 1.6 + 0.5 * max(3, len(names)), 1 + pairwise)
    plot_scores(
        axes[0],
        names,
        [-np.inf if report.log_score is None else report.log_score for report in reports],
        [report.interval or (-np.inf, np.inf) for report in reports],
        confidence=reports[0].confidence,
        floors=[(report.floor.mean, report.floor.standard_deviation) for report in reports
                if report.floor] or None,
    )  # fmt: skip
    if ranking is not None and pairwise:
        probabilities = np.full((len(names), len(names)), 0.5)
        for pair in ranking.pairs:
            better, worse = names.index(pair.better), names.index(pair.worse)
            probabilities[better, worse] = pair.comparison.probability
            probabilities[worse, better] = 1 - pair.comparison.probability
        plot_pairwise(axes[1], names, probabilities)
    save(drawing, path)


if __name__ == "__main__":
    main()
