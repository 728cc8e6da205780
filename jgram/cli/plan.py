"""``jgram plan``: how many records a study takes, by a pilot."""

from typing import Annotated

from typer import Option

from jgram.cli.options import Engine, Gold, Inference, Input, Observed, Output, Reports
from jgram.cli.show import check_output, emit, progress

__all__ = ["run"]


def run(
    report: Reports,
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    output: Output,
    gold: Gold = None,
    power: Annotated[
        float, Option(help="Wanted probability of telling an order.", rich_help_panel="Study")
    ] = 0.8,
    width: Annotated[
        float | None,
        Option(
            help="Wanted width of the intervals of keeps, .1 for 10 points.",
            rich_help_panel="Study",
        ),
    ] = None,
) -> int:
    """Say how many records it takes to tell reports apart, from a pilot.

    Examples:

        jgram plan pilot.csv --report ann --report bob --observation crp --power .9 --width .1
    """
    check_output(output, [source.file], {"--checkpoint": (engine.checkpoint, ())})
    with progress("planning", quiet=output.quiet) as bar:
        from jgram.cli.read import Beside, ranked, read_for_judging
        from jgram.plan import plan

        given = read_for_judging(source, observed, report, inference, engine, bar, Beside(gold))
        found = plan(ranked(given, inference.seed), power=power, width=width)
    return emit(found, given.source, output, told=found.total is not None)
