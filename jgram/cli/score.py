"""``jgram score``: one report, and how far the number may be trusted."""

from jgram.cli.options import Engine, Inference, Input, Observed, Presentation, Reports
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import progress, say, say_error, say_findings, say_json, say_reports
from jgram.cli.write import to_text

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
    check_figure(presentation.plot)
    with progress("scoring") as bar:
        from jgram import score
        from jgram.cli.read import read_for_judging
        from jgram.data import to_data

        given = read_for_judging(source, observed, report, inference, engine, bar)
        (labels,) = given.reports.values()
        found = score(labels, given.observations, given.kernel, name=report[0], **given.options)
        if presentation.plot:
            draw_scores(presentation.plot, [found])
    code = CANNOT_TELL if found.reason else 0
    conclusion = f"No score: {found.reason}."
    if presentation.as_json:
        say_json(to_text({"source": given.source, **to_data(found)}))
        if code:
            say_error(conclusion)
        return code
    say_reports([found], given.source, counts_scale=presentation.counts_scale)
    amounts = ", ".join(f"{name} {count:g}" for name, count in found.class_counts.items())
    say(f"records of each class: {amounts}")
    if not code:
        say(
            f"normalised score {found.normalised_score:.3f}, Hadamard ratio "
            f"{found.hadamard_ratio:.3g} (both from 0 to 1)"
        )
        directions = found.num_classes - 1
        say(
            f"the observations show {min(max(found.seen, 0), directions):.1f} of the {directions} "
            f"directions between classes; p of noise {found.noise_p_value:.2g}"
        )
    say_findings([found])
    if code:
        say(conclusion, "bold")
    if presentation.plot:
        say(f"plot in {presentation.plot}", "dim")
    return code
