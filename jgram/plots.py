"""Pictures of results: matplotlib Axes drawn on, nothing computed.

matplotlib comes with ``pip install 'jgram[cli]'`` and is imported only when a figure is made.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from jgram.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jgram.annotators import AnnotatorRanking
    from jgram.issues import LabelIssues
    from jgram.report import Ranking, ScoreReport

__all__ = [
    "annotators_figure",
    "figure",
    "issues_figure",
    "plot_annotators",
    "plot_images",
    "plot_scores",
    "plot_shares",
    "ranking_figure",
    "scores_figure",
]

_SCORE, _FLOOR, _TEXT = "#1f4e79", "#b9bec5", "#333333"


def figure(
    width: float = 7.0, height: float = 4.0, columns: int = 1, rows: int = 1
) -> "tuple[Figure, list[Axes]]":
    """A figure with rows of Axes, without any global plotting state.

    Args:
        width: Inches.
        height: Inches.
        columns: The number of Axes in a row.
        rows: The number of rows.

    Returns:
        The figure and its Axes.

    Raises:
        ValueError: matplotlib is not installed.

    Example:
        >>> drawing, (axes,) = figure()
        >>> plot_scores(axes, ["a", "b"], [-3.0, -2.0], [(-3.5, -2.5), (-2.4, -1.6)])
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['a', 'b']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("plots take matplotlib: pip install 'jgram[cli]'") from None
    drawing = Figure(figsize=(width, height), layout="constrained")
    vars(drawing)["_repr_png_"] = partial(_png, drawing)  # so notebooks show it without pyplot
    return drawing, list(np.ravel(drawing.subplots(rows, columns)))


def _png(drawing: "Figure") -> bytes:
    image = BytesIO()
    drawing.savefig(image, format="png")
    return image.getvalue()


def scores_figure(reports: "Sequence[ScoreReport]") -> "Figure":
    """Published scores with their intervals.

    Args:
        reports: What :func:`jgram.score` gave.
    """
    drawing, (axes,) = figure(7.0, 1.6 + 0.5 * max(3, len(reports)))
    plot_scores(
        axes,
        [report.name for report in reports],
        [-np.inf if report.log_score is None else report.log_score for report in reports],
        [report.interval or (-np.inf, np.inf) for report in reports],
        confidence=reports[0].confidence,
    )
    return drawing


def ranking_figure(ranking: "Ranking") -> "Figure":
    """What each report keeps of the best, with its interval and ranks.

    Args:
        ranking: What :func:`jgram.rank_reports` gave.
    """
    drawing, (axes,) = figure(7.5, 1.8 + 0.5 * max(3, len(ranking.reports)))
    plot_shares(
        axes,
        [report.name for report in ranking.reports],
        [report.keeps for report in ranking.reports],
        [report.keeps_interval for report in ranking.reports],
        ranks=[(report.first_rank, report.last_rank) for report in ranking.reports],
        noise=[report.inside_noise for report in ranking.reports],
        confidence=ranking.confidence,
    )
    axes.set_title(_literal([ranking.conclusion])[0], fontsize="medium", loc="left", wrap=True)
    return drawing


def annotators_figure(ranking: "AnnotatorRanking", shown: int = 50) -> "Figure":
    """The best annotators by the reading that they are ranked by, and how much they answered.

    Args:
        ranking: What :func:`jgram.rank_annotators` gave.
        shown: How many at most.
    """
    listed = ranking.annotators[:shown]
    readings = [getattr(one, ranking.by) for one in listed]
    nothing = float("nan")
    values = [nothing if one is None else one.value for one in readings]
    bounds = [(nothing, nothing) if one is None else (one.low, one.high) for one in readings]
    drawing, (axes,) = figure(height=1.6 + 0.24 * len(listed))
    plot_annotators(
        axes,
        [str(one.name) for one in listed],
        values,
        bounds,
        [one.answers for one in listed],
        reading=ranking.by.replace("_", " "),
    )
    return drawing


def issues_figure(found: "LabelIssues") -> "Figure":
    """How sure it is that labels are wrong: all records in the order of suspicion.

    Args:
        found: What :func:`jgram.label_issues` gave.
    """
    drawing, (axes,) = figure()
    wrong = found.wrong[found.order]
    axes.fill_between(np.arange(1, len(wrong) + 1), wrong, color=_SCORE, alpha=0.25, lw=0)
    axes.plot(np.arange(1, len(wrong) + 1), wrong, color=_SCORE, lw=1.6)
    axes.axvline(found.number, color=_TEXT, lw=1.2)
    if found.interval is not None:
        axes.axvspan(*found.interval, color=_FLOOR, alpha=0.4, lw=0)
    axes.annotate(f" {found.number} wrong labels", (found.number, 1.0), color=_TEXT, va="top",
                  xycoords=("data", "axes fraction"))  # fmt: skip
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, len(wrong))
    axes.set_xlabel("records, the most suspicious first")
    axes.set_ylabel("probability that the label is wrong")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title(_literal([found.conclusion])[0], fontsize="medium", loc="left", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    return drawing


def plot_images(
    grid: "Sequence[Axes]", images: Sequence[np.ndarray], titles: Sequence[str]
) -> None:
    """Images, each with what is said of it above.

    Args:
        grid: Where to draw; Axes without an image stay empty.
        images: Each ``[h, w]`` from black to white, or ``[h, w, 3]`` or ``[h, w, 4]`` in colours:
            bytes, or numbers in [0, 1].
        titles: One for each.
    """
    for axes in grid:
        axes.set_axis_off()
    for axes, image, title in zip(grid, images, titles, strict=False):
        white = 255 if image.dtype == np.uint8 else 1
        axes.imshow(image, cmap="gray", vmin=0, vmax=white, interpolation="nearest")
        axes.set_title(_literal([title])[0], fontsize=8)


def plot_shares(
    axes: "Axes",
    names: Sequence[str],
    shares: Sequence[float | None],
    intervals: Sequence[tuple[float, float] | None],
    *,
    ranks: Sequence[tuple[int, int]],
    noise: Sequence[bool],
    confidence: float = 0.95,
) -> None:
    """What reports keep of the best one's information, the best on top.

    Args:
        axes: Where to draw.
        names: Names of the reports, best first.
        shares: ``[t]``; ``None`` where a share cannot be estimated.
        intervals: ``[t]``, simultaneous.
        ranks: ``[t]``, first and last rank that the data leave each.
        noise: ``[t]``, reports inside the noise, drawn hollow.
        confidence: Confidence level of the intervals, for the legend.
    """
    rows = np.arange(len(names))[::-1]
    for row, share, interval, hollow in zip(rows, shares, intervals, noise, strict=True):
        if share is None:
            axes.annotate("not estimable", (0.02, row), color=_TEXT, va="center",
                          xycoords=("axes fraction", "data"))  # fmt: skip
            continue
        if interval is not None:
            axes.hlines(row, *interval, color=_SCORE, lw=2.2)
        axes.plot(share, row, "o", color=_SCORE, ms=7, mfc="white" if hollow else _SCORE)
    axes.axvline(0, color=_FLOOR, lw=1.2)
    axes.axvline(1, color=_FLOOR, lw=1.2, ls=":")
    labels = [
        f"{name}\nrank {low}" if low == high else f"{name}\nrank {low} to {high}"
        for name, (low, high) in zip(_literal(names), ranks, strict=True)
    ]
    axes.set_yticks(rows, labels)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel(
        f"keeps of the best report's information, {confidence:.0%} intervals that hold together"
        + ("; hollow: not told from noise" if any(noise) else "")
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(axis="x", color="#e3e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def plot_scores(
    axes: "Axes",
    names: Sequence[str],
    log_scores: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    *,
    floors: Sequence[tuple[float, float]] | None = None,
    confidence: float = 0.95,
) -> None:
    """Log scores with intervals, best on top, beside the noise that each must stand out of.

    Args:
        axes: Where to draw.
        names: Of the reports.
        log_scores: ``[t]``; a report whose score is ``-inf`` is listed without a point.
        intervals: ``[t]`` lowest and highest log score.
        floors: ``[t]`` mean and standard deviation of each report's noise floor, drawn as a band
            of two standard deviations.
        confidence: Of the intervals, for the legend.
    """
    values = np.asarray(log_scores, float)
    order = np.argsort(values, kind="stable")
    rows = np.flatnonzero(np.isfinite(values[order]))
    scored = order[rows]
    low, high = np.asarray(intervals, float)[scored].reshape(-1, 2).T
    marks = [values[scored]]
    if floors is not None:
        mean, deviation = np.asarray(floors, float)[scored].reshape(-1, 2).T
        marks += [mean - 2 * deviation, mean + 2 * deviation]
        axes.barh(rows, marks[2] - marks[1], 0.62, left=marks[1], color=_FLOOR, alpha=0.6,
                  label="noise floor (labels permuted), ± 2 sd")  # fmt: skip
        axes.vlines(mean, rows - 0.31, rows + 0.31, color="white", lw=1.5)
    axes.hlines(rows, low, high, color=_SCORE, lw=2.2)
    axes.plot(
        values[scored],
        rows,
        "o",
        color=_SCORE,
        ms=7,
        label=f"published log score, {confidence:.0%} interval",
    )
    if len(scored):  # intervals far wider than all else run out of the picture
        least, most = np.min(marks), np.max(marks)
        reach = 1.5 * max(most - least, 1.0)
        axes.set_xlim(max(least - reach, min(low.min(), least)) - 0.1 * reach,
                      min(most + reach, max(high.max(), most)) + 0.1 * reach)  # fmt: skip
    for row in sorted(set(range(len(order))) - set(rows)):
        axes.annotate("no score: log score is −∞", (0.02, row), color=_TEXT, va="center",
                      xycoords=("axes fraction", "data"))  # fmt: skip
    axes.set_yticks(range(len(order)), _literal(names[int(i)] for i in order))
    axes.set_ylim(-0.6, len(order) - 0.4)
    axes.set_xlabel("published log score")
    _finish_rows(axes)


def plot_annotators(
    axes: "Axes",
    names: Sequence[str],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    answers: Sequence[int],
    *,
    reading: str = "log score",
    average: float | None = None,
) -> None:
    """A reading of every annotator, the first on top, with its interval and number of answers.

    Args:
        axes: Where to draw.
        names: Of the annotators, in the order to show.
        values: ``[m]`` of the reading; an annotator whose value is NaN is listed without a point.
        intervals: ``[m]`` lowest and highest value.
        answers: ``[m]``, shown as the area of the point and beside the name.
        reading: What the values are, for the axis.
        average: Of the annotators, drawn as a line.
    """
    centre, count = np.asarray(values, float), np.asarray(answers, float)
    low, high = np.asarray(intervals, float).reshape(-1, 2).T
    rows = np.arange(len(centre))[::-1]
    if average is not None:
        axes.axvline(average, color=_FLOOR, lw=1.5, zorder=0, label="mean annotator")
    axes.hlines(rows, low, high, color=_SCORE, lw=1.6)
    area = 12.0 + 60.0 * np.sqrt(count / max(count.max(initial=1.0), 1.0))
    axes.scatter(centre, rows, s=area, color=_SCORE, zorder=3, label="area: answers")
    for row in rows[np.isnan(centre)]:
        axes.annotate("only ever gives one label", (0.02, row), color=_TEXT, va="center",
                      xycoords=("axes fraction", "data"))  # fmt: skip
    shown = (f"{name}  ({n:,.0f})" for name, n in zip(names, count, strict=True))
    axes.set_yticks(rows, _literal(shown), fontsize="small")
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel(reading)
    _finish_rows(axes)


def _finish_rows(axes: "Axes") -> None:
    """A light grid, names without ticks, and what the marks mean below."""
    axes.grid(axis="x", color="#e3e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.get_figure().legend(  # pyright: ignore[reportOptionalMemberAccess]
        loc="outside lower center", ncols=2, frameon=False, fontsize="small"
    )


def _literal(names: Iterable[str]) -> list[str]:
    """Names in which a dollar sign does not start mathematics, control characters as escapes."""
    return [visible(name).replace("$", r"\$") for name in names]
