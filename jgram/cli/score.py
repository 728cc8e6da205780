"""``jgram score``: one report, and how far the number may be trusted."""

from jgram.cli.options import CountsScale, Engine, Inference, Input, Observed, Output, Reports
from jgram.cli.show import check_output, emit, progress

__all__ = ["run"]


def run(
    report: Reports,
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    output: Output,
    counts_scale: CountsScale = False,
) -> int:
    """Score one report, and say how far the number may be trusted.

    A score means something beside another report of the same records: see rank.

    Examples:

        jgram score visits.csv --report diagnosis --observation crp --observation temperature

        jgram score labels.npz --report answers --observation features --kernel rbf --json
    """
    if len(report) != 1:
        raise ValueError("expected one --report to score; rank takes several")
    _ = observed.needed
    check_output(output, [source.file], {"--checkpoint": (engine.checkpoint, ())})
    with progress("scoring", quiet=output.quiet) as bar:
        from jgram import score
        from jgram.cli.read import read_for_judging

        given = read_for_judging(source, observed, report, inference, engine, bar)
        labels = given.reports if given.observations is None else given.reports[report[0]]
        found = score(labels, given.observations, given.kernel, name=report[0], **given.options)
    view = found.view(given.source, counts_scale=counts_scale)
    return emit(found, given.source, output, told=found.reason is None, view=view)
