"""``jgram pay``: what each label is paid, out of a budget."""

from dataclasses import dataclass

from jgram.cli.options import Listing, Reports
from jgram.cli.show import Answer, emit, progress

__all__ = ["run"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Payments

    Attributes:
        budget: What all payments add up to, in any currency.
    """

    budget: float


def run(asked: Reports, output: Listing, payments: Budget) -> int:
    """Pay every label out of a budget, so that the truth pays.

    By what nobody sees who reports (--observation), or three reports or more by one another.

    Examples:

        jgram pay visits.csv --report ann --report bob --observation crp --budget 900 \\
          --out paid.csv
    """
    with progress("paying", quiet=output.quiet) as bar:
        from jgram.cli.read import read_for_judging
        from jgram.data.files import FIRST_ROW
        from jgram.display import records
        from jgram.payments import pay

        given = read_for_judging(asked, asked.report, bar, whole="pay")
        judged = (given.reports, given.observations, given.kernel)
        found = pay(*judged, budget=payments.budget, **given.options)
        rows = records(found.listing(given.rows[found.rows] + FIRST_ROW))
    return emit(Answer(found, given.source, rows=rows), output)
