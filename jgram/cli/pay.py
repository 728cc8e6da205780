"""``jgram pay``: what each label is paid, out of a budget."""

from pathlib import Path
from typing import Annotated

from typer import Option

from jgram.cli.options import Engine, Inference, Input, Observed, Output, Reports
from jgram.cli.outputs import TABLES
from jgram.cli.show import check_output, emit, progress

__all__ = ["run"]


def run(
    report: Reports,
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    output: Output,
    budget: Annotated[
        float, Option(help="What all payments add up to.", rich_help_panel="Payments")
    ],
    out: Annotated[
        Path | None,
        Option(
            help="Write what every label is paid to this .csv or .json file.",
            rich_help_panel="Output",
        ),
    ] = None,
) -> int:
    """Pay every label out of a budget, so that the truth pays.

    By what nobody sees who reports (--observation), or three reports or more by one another.

    Examples:

        jgram pay visits.csv --report ann --report bob --observation crp --budget 900 --out paid.csv
    """
    outputs = {"--out": (out, TABLES), "--checkpoint": (engine.checkpoint, ())}
    check_output(output, [source.file], outputs)
    with progress("paying", quiet=output.quiet) as bar:
        from jgram.cli.read import Beside, read_for_judging
        from jgram.data.files import FIRST_ROW
        from jgram.payments import pay

        asked = (source, observed, report, inference, engine, bar, Beside(whole="pay"))
        given = read_for_judging(*asked)
        found = pay(given.reports, given.observations, given.kernel, budget=budget, **given.options)
        table = found.listing(given.rows[found.rows] + FIRST_ROW)
    return emit(found, given.source, output, told=True, out=out and (out, table))
