"""``jgram plan``: how many records a study takes, by a pilot."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jgram.cli.options import Output, Reports
from jgram.cli.show import Answer, emit, progress

if TYPE_CHECKING:
    from jgram.cli.read import Given

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
        worth: Also say what each observation and report is worth: rank the pilot without it.
    """

    power: float = 0.8
    width: float | None = None
    worth: bool = False


def run(asked: Pilot, output: Output, study: Study) -> int:
    """Say how many records it takes to tell reports apart, from a pilot.

    Examples:

        jgram plan pilot.csv --report ann --report bob --observation crp --power .9 --width .1
    """
    with progress("planning", quiet=output.quiet) as bar:
        from jgram.cli.read import ranked, read_for_judging
        from jgram.plan import plan

        whole = "--worth" if study.worth else None
        given = read_for_judging(asked, asked.report, bar, gold=asked.gold, whole=whole)
        parts = _without(given) if study.worth else ()
        without = {name: ranked(part) for name, part in parts}
        found = plan(ranked(given), power=study.power, width=study.width, without=without)
    return emit(Answer(found, given.source, told=found.total is not None), output)


def _without(given: "Given") -> "Iterator[tuple[str, Given]]":
    """What was read without each observation and each report, as long as pairs can be judged."""
    seen = given.observations or {}
    for name in seen if len(seen) > 1 else ():
        left = {key: column for key, column in seen.items() if key != name}
        yield name, given._replace(observations=left)
    for name in given.reports if len(given.reports) > (2 if seen else 3) else ():
        left = {key: column for key, column in given.reports.items() if key != name}
        yield name, given._replace(reports=left)
