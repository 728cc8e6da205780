"""``jgram rank``: reports of the same records by reliability."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jgram.cli.options import Inference, Input, Observed, Presentation, Reports
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import progress, say, say_error, say_findings, say_json, say_reports
from jgram.cli.write import to_text

if TYPE_CHECKING:
    from jgram.report import Ranking

__all__ = ["run", "say_ranking"]


def run(
    report: Reports,
    source: Input,
    observed: Observed,
    inference: Inference,
    presentation: Presentation,
) -> int:
    """Rank reports of the same records by reliability, and say which can be told apart.

    Examples:

        jgram rank visits.csv --report doctor --report coder --observation crp

        jgram rank employment.csv --report first --report final --observation taxes \\
          --difference --bins 4 --order month --block-length 12 --plot ranking.png
    """
    from jgram.cli.plots import check_figure, draw_scores

    if len(report) < 2:
        raise ValueError("expected two or more --report to rank; score takes one")
    check_figure(presentation.plot)
    with progress(f"ranking {len(report)} reports"):
        from jgram import rank_reports
        from jgram.cli.read import read_for_judging

        given = read_for_judging(source, observed, report, inference)
        found = rank_reports(given.reports, given.observations, given.kernel, **given.options)
        if presentation.plot:
            draw_scores(presentation.plot, found.reports, found)
    if presentation.as_json:
        say_json(to_text({"source": given.source, **found.to_dict()}))
        if not found.separated:
            say_error(found.conclusion)
    else:
        say_ranking(
            found, given.source, counts_scale=presentation.counts_scale, plot=presentation.plot
        )
    return 0 if found.separated else CANNOT_TELL


def say_ranking(
    found: "Ranking", source: Mapping[str, Any], *, counts_scale: bool, plot: Path | None
) -> None:
    """Print a ranking: its table, what stands against it, and the conclusion."""
    say_reports(found.reports, source, found, counts_scale=counts_scale)
    say_findings(found.reports, found)
    for group in found.tie_groups:
        if len(group) > 1:
            say(f"cannot be told apart: {', '.join(group)}")
    say(found.conclusion, "bold")
    if plot:
        say(f"plot in {plot}", "dim")
