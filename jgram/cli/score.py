"""``jgram score``: one report, and how far the number may be trusted."""

from jgram.cli.options import Engine, Inference, Input, Observed, Presentation, Reports
from jgram.cli.outputs import FIGURES, check_outputs
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import progress, say, say_error, say_json, say_view
from jgram.display import score_view, to_json

__all__ = ["run"]


def run(
    report: Reports,
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    presentation: Presentation,
) -> int:
    """Score one report, and say how far the number may be trusted.

    A score means something beside another report of the same records: see rank.

    Examples:

        jgram score visits.csv --report diagnosis --observation crp --observation temperature

        jgram score labels.npz --report answers --observation features --kernel rbf --json
    """
    from jgram.cli.plots import check_figure, draw_scores

    if len(report) != 1:
        raise ValueError("expected one --report to score; rank takes several")
    outputs = {
        "--plot": (presentation.plot, FIGURES), "--checkpoint": (engine.checkpoint, ()),
    }  # fmt: skip
    check_outputs(outputs, [source.file])
    check_figure(presentation.plot)
    with progress("scoring") as bar:
        from jgram import score
        from jgram.cli.read import read_for_judging

        given = read_for_judging(source, observed, report, inference, engine, bar)
        (labels,) = given.reports.values()
        found = score(labels, given.observations, given.kernel, name=report[0], **given.options)
        if presentation.plot:
            draw_scores(presentation.plot, [found])
    code = CANNOT_TELL if found.reason else 0
    if presentation.as_json:
        say_json(to_json(found, source=given.source))
        if code:
            say_error(f"No score: {found.reason}.")
        return code
    say_view(
        score_view(
            found,
            through=given.source["observations"],
            notes=given.source["notes"],
            counts_scale=presentation.counts_scale,
        )
    )
    if presentation.plot:
        say(f"written: {presentation.plot}", "dim")
    return code
