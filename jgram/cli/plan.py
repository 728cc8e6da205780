"""``jgram plan``: how many records a study takes, by a pilot."""

from dataclasses import dataclass

from jgram.cli.options import Engine, Inference, Observed, Output, Reports
from jgram.cli.show import Answer, check_output, emit, progress

__all__ = ["run"]


@dataclass(frozen=True, kw_only=True)
class Pilot(Reports):
    """Input

    Attributes:
        gold: Column of right labels, empty but for some records at random that somebody checked.
    """

    gold: str | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """Study

    Attributes:
        power: Wanted probability of telling an order.
        width: Wanted width of the intervals of keeps, .1 for 10 points.
    """

    power: float = 0.8
    width: float | None = None


def run(
    source: Pilot,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    output: Output,
    study: Study,
) -> int:
    """Say how many records it takes to tell reports apart, from a pilot.

    Examples:

        jgram plan pilot.csv --report ann --report bob --observation crp --power .9 --width .1
    """
    check_output(output, [source.file], {"--checkpoint": (engine.checkpoint, ())})
    with progress("planning", quiet=output.quiet) as bar:
        from jgram.cli.read import Beside, ranked, read_for_judging
        from jgram.plan import plan

        given = read_for_judging(
            source, observed, source.report, inference, engine, bar, Beside(source.gold)
        )
        found = plan(ranked(given, inference.seed), power=study.power, width=study.width)
    return emit(Answer(found, given.source, told=found.total is not None), output)
