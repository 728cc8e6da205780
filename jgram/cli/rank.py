"""``jgram rank``: reports of the same records by reliability."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jgram.cli.options import Engine, Inference, Input, Observed, Presentation, Reports
from jgram.cli.process import CANNOT_TELL
from jgram.cli.show import progress, say, say_error, say_findings, say_json, say_ranked
from jgram.cli.write import to_text

if TYPE_CHECKING:
    from jgram.report import PairComparison, Ranking

__all__ = ["run", "say_ranking"]


def run(
    report: Reports,
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    presentation: Presentation,
) -> int:
    """Rank reports of the same records by reliability, and say which can be told apart.

    Examples:

        jgram rank visits.csv --report doctor --report coder --observation crp

        jgram rank employment.csv --report first --report final --observation taxes \\
          --difference --bins 4 --order month --block-length 12 --plot ranking.png
    """
    from jgram.cli.plots import check_figure, draw_ranking

    if len(report) < 2:
        raise ValueError("expected two or more --report to rank; score takes one")
    check_figure(presentation.plot)
    with progress(f"ranking {len(report)} reports") as bar:
        import jax

        from jgram import rank_reports
        from jgram.cli.read import read_for_judging
        from jgram.data import to_data

        given = read_for_judging(source, observed, report, inference, engine, bar)
        key = jax.random.key(inference.seed)
        found = rank_reports(
            given.reports, given.observations, given.kernel, key=key, **given.options
        )
        if presentation.plot:
            draw_ranking(presentation.plot, found)
    if presentation.as_json:
        say_json(to_text({"source": given.source, **to_data(found)}))
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
    say_ranked(found, source, counts_scale=counts_scale)
    published = [report.published for report in found.reports]
    say_findings(published, found)
    for pair in found.pairs:
        if not pair.separated and pair.better not in found.inside_noise:
            say(_undecided(pair), "dim")
    say(found.conclusion, "bold")
    if plot:
        say(f"plot in {plot}", "dim")


def _undecided(pair: "PairComparison") -> str:
    """What would decide a pair that is not separated."""
    names = f"{pair.better} and {pair.worse} cannot be told apart"
    if pair.records_needed is None:
        return f"{names}: no number of records like these would separate them"
    more = pair.records_needed - pair.num_records
    if more <= 0:
        return f"{names} once all pairs are looked at together (p = {pair.adjusted_p_value:.3f})"
    return f"{names}; about {float(f'{more:.2g}'):,.0f} more records like these would"
