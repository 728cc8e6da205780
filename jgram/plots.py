"""Pictures of results: arrays in, matplotlib Axes drawn on, nothing computed.

matplotlib comes with `pip install 'jgram[cli]'` and is imported only when a figure is made.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure", "plot_annotators", "plot_pairwise", "plot_scores", "save"]

_SCORE, _FLOOR, _TEXT = "#1f4e79", "#b9bec5", "#333333"


def figure(
    width: float = 7.0, height: float = 4.0, columns: int = 1
) -> "tuple[Figure, list[Axes]]":
    """A figure with a row of Axes, without any global plotting state.

    Args:
        width: Inches.
        height: Inches.
        columns: The number of Axes.

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
    return drawing, list(np.ravel(drawing.subplots(1, columns)))


def save(drawing: "Figure", path: str | Path) -> None:
    """Write a figure to a file whose suffix names the format.

    Args:
        drawing: The figure.
        path: For example `ranking.png`, `.pdf` or `.svg`.

    Raises:
        ValueError: A suffix that is no format of matplotlib's.
    """
    formats = drawing.canvas.get_supported_filetypes()
    if Path(path).suffix.removeprefix(".").lower() not in formats:
        raise ValueError(f"{path}: expected a figure file such as .png, .pdf or .svg")
    drawing.savefig(path, dpi=200)


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
        log_scores: `[t]`; a report whose score is `-inf` is listed without a point.
        intervals: `[t]` lowest and highest log score.
        floors: `[t]` mean and standard deviation of each report's noise floor, drawn as a band
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
        values[scored], rows, "o", color=_SCORE, ms=7, label=f"log score, {confidence:.0%} interval"
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
    axes.set_xlabel("log score")
    axes.grid(axis="x", color="#e3e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.get_figure().legend(  # pyright: ignore[reportOptionalMemberAccess]
        loc="outside lower center", ncols=2, frameon=False, fontsize="small"
    )


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
    """A reading of every annotator with its interval, the first on top, and how many answers it had.

    Args:
        axes: Where to draw.
        names: Of the annotators, in the order to show.
        values: `[m]` of the reading; an annotator whose value is NaN is listed without a point.
        intervals: `[m]` lowest and highest value.
        answers: `[m]`, shown as the area of the point and beside the name.
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
    axes.grid(axis="x", color="#e3e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.get_figure().legend(  # pyright: ignore[reportOptionalMemberAccess]
        loc="outside lower center", ncols=2, frameon=False, fontsize="small"
    )


def plot_pairwise(axes: "Axes", names: Sequence[str], probabilities: np.ndarray) -> None:
    """How probable it is that the row's report is better than the column's.

    Args:
        axes: Where to draw.
        names: Of the reports, best first.
        probabilities: `[t, t]`; the diagonal is not shown.
    """
    shown = np.array(probabilities, float)
    np.fill_diagonal(shown, np.nan)
    axes.imshow(shown, vmin=0, vmax=1, cmap="RdBu")
    for (i, j), value in np.ndenumerate(shown):
        if i != j:
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize="small",
                      color="white" if abs(value - 0.5) > 0.35 else _TEXT)  # fmt: skip
    axes.set_xticks(range(len(names)), _literal(names), rotation=30, ha="right")
    axes.set_yticks(range(len(names)), _literal(names))
    axes.set_title("P(row is better than column)", fontsize="medium")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def _literal(names: Iterable[str]) -> list[str]:
    """Names in which a dollar sign does not start mathematics."""
    return [name.replace("$", r"\$") for name in names]
