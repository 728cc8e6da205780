"""``jgram rank``: reports of the same records by reliability."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jgram.cli.options import Engine, Inference, Input, Observed, Page, Presentation, Reports
from jgram.cli.outputs import FIGURES, PAGES, check_outputs
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import progress, say, say_error, say_json, say_view
from jgram.display import ranking_view, to_json

if TYPE_CHECKING:
    from jgram.report import Ranking

__all__ = ["run", "say_ranking"]


def run(
    report: Reports,
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    presentation: Presentation,
    page: Page = None,
) -> int:
    """Rank reports of the same records by reliability, and say which can be told apart.

    Examples:

        jgram rank visits.csv --report doctor --report coder --observation crp

        jgram rank employment.csv --report first --report final --observation taxes \\
          --difference --bins 4 --order month --block-length 12 --html ranking.html
    """
    from jgram.cli.html import check_page, write_ranking
    from jgram.cli.plots import check_figure, draw_ranking

    if len(report) < 2:
        raise ValueError("expected two or more --report to rank; score takes one")
    check_outputs(
        {
            "--plot": (presentation.plot, FIGURES),
            "--html": (page, PAGES),
            "--checkpoint": (engine.checkpoint, ()),
        },
        [source.file],
    )
    check_figure(presentation.plot)
    check_page(page)
    with progress(f"ranking {len(report)} reports") as bar:
        import jax

        from jgram import rank_reports
        from jgram.cli.read import read_for_judging

        given = read_for_judging(source, observed, report, inference, engine, bar)
        key = jax.random.key(inference.seed)
        found = rank_reports(
            given.reports, given.observations, given.kernel, key=key, **given.options
        )
        if presentation.plot:
            draw_ranking(presentation.plot, found)
        text = to_json(found, source=given.source)
        if page:
            write_ranking(page, found, given.source, text)
    if presentation.as_json:
        say_json(text)
        if not found.separated:
            say_error(found.conclusion)
    else:
        say_ranking(
            found, given.source, counts_scale=presentation.counts_scale, plot=presentation.plot
        )
        if page:
            say(f"written: {page}", "dim")
    return 0 if found.separated else CANNOT_TELL


def say_ranking(
    found: "Ranking", source: Mapping[str, Any], *, counts_scale: bool, plot: Path | None
) -> None:
    """Print a ranking: its table, what stands against it, and the conclusion."""
    say_view(
        ranking_view(
            found,
            through=source["observations"],
            notes=source["notes"],
            counts_scale=counts_scale,
        )
    )
    if plot:
        say(f"written: {plot}", "dim")
