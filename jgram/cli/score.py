"""``jgram score``: one report, and how far the number may be trusted."""

from jgram.cli.options import Reports, Scores
from jgram.cli.show import Answer, emit, progress

__all__ = ["run"]


def run(asked: Reports, output: Scores) -> int:
    """Score one report, and say how far the number may be trusted.

    A score means something beside another report of the same records: see rank.

    Examples:

        jgram score visits.csv --report diagnosis --observation crp --observation temperature

        jgram score labels.npz --report answers --observation features --kernel rbf --json
    """
    if len(asked.report) != 1:
        raise ValueError("expected one --report to score; rank takes several")
    _ = asked.needed
    with progress("scoring", quiet=output.quiet) as bar:
        from jgram import score
        from jgram.cli.read import read_for_judging

        (name,) = asked.report
        given = read_for_judging(asked, [name], bar)
        labels = given.reports if given.observations is None else given.reports[name]
        found = score(labels, given.observations, given.kernel, name=name, **given.options)
    view = found.view(given.source, counts_scale=output.counts_scale)
    return emit(Answer(found, given.source, told=found.reason is None, view=view), output)
