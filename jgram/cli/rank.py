"""``jgram rank``: reports of the same records by reliability."""

from jgram.cli.options import CountsScale, Engine, Gold, Inference, Input, Observed, Output, Reports
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
    counts_scale: CountsScale = False,
) -> int:
    """Rank reports of the same records by reliability, and say which can be told apart.

    Evidence is what is observed, the other reports, and right labels of some records.

    Examples:

        jgram rank visits.csv --report doctor --report coder --observation crp

        jgram rank sheet.csv --report ann --report bob --report model --gold checked

        jgram rank employment.csv --report first --report final --observation taxes \\
          --difference --bins 4 --order month --block-length 12 --html ranking.html
    """
    if len(report) < 2:
        raise ValueError("expected two or more --report to rank; score takes one")
    check_output(output, [source.file], {"--checkpoint": (engine.checkpoint, ())})
    with progress(f"ranking {len(report)} reports", quiet=output.quiet) as bar:
        from jgram.cli.read import ranked, read_for_judging

        given = read_for_judging(source, observed, report, inference, engine, bar, gold)
        found = ranked(given, inference.seed)
    view = found.view(given.source, counts_scale=counts_scale)
    return emit(found, given.source, output, told=found.separated, view=view)
