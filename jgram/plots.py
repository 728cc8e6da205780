"""Pictures of results: matplotlib figures, nothing computed.

One drawing serves a file, a notebook and a page; its marks are of a size that a telephone shows.
matplotlib comes with ``pip install 'jgram[cli]'`` and is imported only when a figure is made.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO, StringIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from jgram.display import cell_width, shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Figure = Any

__all__ = [
    "Figure", "curve_figure", "figure", "images_figure", "intervals_figure", "series_figure",
    "shares_figure", "to_svg",
]  # fmt: skip

MOST_MARKS = 40
MARK, SOFT, TEXT, WORSE, PAPER = "#0b62a4", "#8d969f", "#17202a", "#c4510b", "#ffffff"
_SIZE = 12  # of letters
_MOST_POINTS = 500  # of a curve
_LINE, _MOST_LINES = 48, 4  # characters of a title's line, and lines
_ROOM = 335.0  # points that a text of an ordinary figure may take


def _percent(value: float, _: Any) -> str:
    return f"{value:.0%}"


def figure(
    width: float = 5.0, height: float = 4.0, columns: int = 1, rows: int = 1
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
        >>> [float(side) for side in drawing.get_size_inches()]
        [5.0, 4.0]
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


def to_svg(drawing: "Figure") -> str:
    """A figure as an SVG element: its text is text, in the letters of what it stands in.

    Args:
        drawing: The figure; drawn twice it is the same, to the byte.
    """
    from matplotlib import rc_context

    text = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "jgram"}):
        drawing.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def intervals_figure(
    names: Sequence[str],
    values: Sequence[float | None],
    intervals: Sequence[tuple[float, float] | None],
    *,
    title: str,
    absent: str,
    percent: bool = False,
    marks: Sequence[tuple[str, str]] | None = None,
    ends: Sequence[float] = (),
) -> "Figure":
    """Values with their intervals, a row each, its name above it: all of the width is for numbers.

    Args:
        names: ``[t]``, the first on top; of many, both ends are drawn.
        values: ``[t]``; ``None`` where there is none.
        intervals: ``[t]``, lowest and highest value.
        title: What the values are.
        absent: What stands in place of a value that is not there.
        percent: Whether they are shares.
        marks: ``[t]``, the colour of each, and what it is filled with.
        ends: Where lines stand across all rows, 0 and 1 of shares for example.
    """
    half, places = MOST_MARKS // 2, range(len(names))
    shown = [*places] if len(names) <= MOST_MARKS else [*places[:half], *places[-half:]]
    if len(shown) < len(names):
        title += f"; the {half} best and the {half} worst of {len(names):,}"
    drawing, (axes,) = figure(height=0.75 + 0.46 * len(shown) + 0.2 * len(_lines(title)))
    for line in ends:
        axes.axvline(line, color=SOFT, lw=1.2, zorder=0)
    for row, i in enumerate(reversed(shown)):
        colour, fill = (MARK, MARK) if marks is None else marks[i]
        value, interval = values[i], intervals[i]
        axes.annotate(
            _shortened(names[i]), (0, row + 0.22), xycoords=("axes fraction", "data"),
            fontsize=_SIZE, color=TEXT, parse_math=False, zorder=1,
            bbox={"facecolor": PAPER, "linewidth": 0, "pad": 1.5},
        )  # fmt: skip
        if value is None or not np.isfinite(value):
            axes.annotate(absent, (0.98, row - 0.12), xycoords=("axes fraction", "data"),
                          fontsize=_SIZE, color=TEXT, ha="right")  # fmt: skip
            continue
        if interval is not None:
            axes.hlines(row, *interval, color=colour, lw=3, alpha=0.5)
        axes.plot(value, row, "o", color=colour, ms=7.5, mfc=fill, mew=2)
    _limit(axes, [x for x in values if x is not None and np.isfinite(x)], intervals, ends)
    axes.set_ylim(-0.4, len(shown) - 0.3)
    axes.set_yticks([])
    axes.grid(axis="x", color=SOFT, alpha=0.35, lw=0.8)
    if percent:
        axes.xaxis.set_major_formatter(_percent)
    _finish(axes, title, empty=not shown)
    return drawing


shares_figure: "Callable[..., Figure]" = partial(
    intervals_figure, percent=True, ends=(0.0, 1.0), absent="not estimable"
)
""":func:`intervals_figure` of shares, in percent, with 0 and 1 in it."""


def curve_figure(
    values: np.ndarray,
    number: int,
    interval: tuple[int, int] | None,
    *,
    title: str,
    places: np.ndarray | None = None,
) -> "Figure":
    """Probabilities in falling order, and how many of them count.

    Args:
        values: ``[n]``, the largest first.
        number: How many.
        interval: Of the number, if there is one.
        title: What the values are.
        places: ``[n]``, the last place that each value stands for; by default one place each.
    """
    drawing, (axes,) = figure(height=3.2)
    places = np.arange(1, len(values) + 1) if places is None else places
    total = int(places[-1]) if len(places) else 1
    kept = np.unique(np.linspace(0, len(values) - 1, _MOST_POINTS, dtype=int))[: len(values)]
    values, places = values[kept], places[kept]
    axes.fill_between(places, values, color=MARK, alpha=0.25, lw=0)
    axes.plot(places, values, color=MARK, lw=1.8)
    axes.axvline(number, color=TEXT, lw=1.2)
    if interval is not None:
        axes.axvspan(*interval, color=SOFT, alpha=0.4, lw=0)
    right = number > total / 2
    axes.annotate(
        f" {number:,} ", (number, 0.97), xycoords=("data", "axes fraction"),
        fontsize=_SIZE, color=TEXT, va="top", ha="right" if right else "left",
    )  # fmt: skip
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, total)
    axes.yaxis.set_major_formatter(_percent)
    _finish(axes, title, _ROOM - 60, empty=not len(values))
    return drawing


def series_figure(
    places: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    crossed: Sequence[bool],
    *,
    title: str,
) -> "Figure":
    """Shares over time, a line each, named at its end.

    Args:
        places: ``[t]``, names along the axis; the first and the last are drawn.
        series: Name to values ``[t]``, ``None`` where there is none.
        crossed: ``[t]``, where a cross stands at the foot.
        title: What the values are.
    """
    drawing, (axes,) = figure(height=3.4)
    ticks = sorted({0, len(places) - 1})
    for line, (name, values) in enumerate(series.items()):
        shown = np.array([np.nan if value is None else value for value in values])
        style = ("-", "--", ":", "-.")[line % 4]
        axes.plot(shown, style, marker="o", ms=4, color=(MARK, TEXT, SOFT)[line % 3],
                  label=_shortened(name, 0.7 * _ROOM, 9))  # fmt: skip
    failed = np.flatnonzero(crossed)
    axes.plot(failed, np.zeros(len(failed)), "x", color=WORSE, ms=8, mew=2)
    axes.set_xticks(ticks, [visible(places[i])[:10] for i in ticks])
    there = [value for values in series.values() for value in values if value is not None]
    axes.set_ylim(-0.04, max([1.04, *there]))
    axes.yaxis.set_major_formatter(_percent)
    legend = axes.legend(loc="lower left", fontsize=9, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    _finish(axes, title, _ROOM - 60, empty=not there)
    return drawing


def images_figure(images: Sequence[np.ndarray], titles: Sequence[str]) -> "Figure":
    """Images in a grid, five a row, each with what is said of it above.

    Args:
        images: Each ``[h, w]`` from black to white, or ``[h, w, 3]`` or ``[h, w, 4]`` in colours:
            bytes, or numbers in [0, 1]; one or more.
        titles: One for each.
    """
    columns = min(5, len(images))
    rows = -(-len(images) // columns)
    drawing, grid = figure(1.9 * columns, 2.4 * rows, columns, rows)
    for axes in grid:
        axes.set_axis_off()
    for axes, image, title in zip(grid, images, titles, strict=False):
        white = 255 if image.dtype == np.uint8 else 1
        axes.imshow(image, cmap="gray", vmin=0, vmax=white, interpolation="nearest")
        shown = "\n".join(_shortened(line, 128.0, 8) for line in title.split("\n"))
        axes.set_title(shown, fontsize=8, parse_math=False)
    return drawing


def _limit(
    axes: "Axes", values: Sequence[float], intervals: Sequence[Any], ends: Sequence[float]
) -> None:
    """Intervals far wider than all else run out of the picture."""
    marks = [*values, *ends]
    if not marks:
        return
    low, high = min(marks), max(marks)
    reached = [x for bounds in intervals if bounds is not None for x in bounds if np.isfinite(x)]
    reach = 1.5 * max(high - low, 1e-9) if len(values) > 1 else np.inf
    least = max(low - reach, min([low, *reached]))
    most = min(high + reach, max([high, *reached]))
    edge = max(0.04 * (most - least), 1e-6 * abs(most), 1e-10)
    axes.set_xlim(least - edge, most + edge)


def _finish(axes: "Axes", title: str, room: float = _ROOM, *, empty: bool) -> None:
    axes.set_title(
        "\n".join(_lines(title, room)), fontsize=_SIZE, loc="left", color=TEXT, parse_math=False
    )
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(length=0, labelsize=_SIZE, labelcolor=TEXT)
    if empty:
        axes.annotate("nothing to show", (0.5, 0.5), xycoords="axes fraction", fontsize=_SIZE,
                      color=TEXT, ha="center")  # fmt: skip


def _lines(title: str, room: float = _ROOM) -> list[str]:
    """A title in lines that fit the figure."""
    each = (wrap(visible(title), width) for width in range(_LINE, 3, -1))
    lines = next(lines for lines in each if all(_points(line) <= room for line in lines))
    return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "…"]


def _shortened(name: str, room: float = _ROOM, size: int = _SIZE) -> str:
    """A name in so many points, at most 80 letters."""
    ends = name if len(name) <= 160 else name[:80] + name[-80:]
    return shortened(visible(ends), lambda x: len(x) <= 80 and _points(x, size) <= room)


def _points(text: str, size: int = _SIZE) -> float:
    """How wide a text is; the letters of a page may have those that matplotlib's have not."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that are not there
        width = TextToPath().get_text_width_height_descent(text, FontProperties(size=size), False)
    return max(width[0], 0.5 * size * cell_width(text))
