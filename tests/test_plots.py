"""Figures of whatever names and values: every text inside, none empty."""

import warnings

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jgram import plots

NAMES = ["W" * 60, "漢字" * 30, "who wrote this in a hurry, or $not$ at all " * 5, "x"]
TITLE = " ".join(NAMES)
NONE = [None] * 4
FIGURES = {
    "intervals": lambda: plots.intervals_figure(
        NAMES, [1e9, -1e-9, None, np.inf], [(1e9 - 1, 1e12), *NONE[1:]], title=TITLE,
        absent="not estimable",
    ),
    "many": lambda: plots.intervals_figure(
        NAMES * 30, [1e300] * 120, [(-1e300, 1e300)] * 120, title=TITLE, absent="none"
    ),
    "near one another": lambda: plots.intervals_figure(
        NAMES, [-123456.123] * 4, [(-123456.2, -123455.0)] * 4, title=TITLE, absent="none"
    ),
    "shares": lambda: plots.shares_figure(
        NAMES, [0.0, 1.0, 12345.0, None], [(0.0, 1.0), (0.9, 1.1), (1.0, 1e6), None], title=TITLE
    ),
    "no shares": lambda: plots.shares_figure(NAMES, NONE, NONE, title=TITLE),
    "no rows": lambda: plots.shares_figure([], [], [], title=TITLE),
    "curve": lambda: plots.curve_figure(
        np.linspace(1, 0, 5), 10**12, (3, 10**12), title=TITLE,
        places=np.array([1, 2, 3, 4, 10**12]),
    ),
    "no curve": lambda: plots.curve_figure(np.zeros(0), 0, None, title=TITLE),
    "series": lambda: plots.series_figure(
        NAMES[:3], {NAMES[0]: [0.1, None, 3.0], NAMES[1]: [0.2, 0.3, 1000.0], NAMES[2]: [1.0] * 3},
        [True, False, True], title=TITLE,
    ),
    "no series": lambda: plots.series_figure(["a"], {"b": [None]}, [False], title=TITLE),
    "images": lambda: plots.images_figure([np.zeros((4, 4))] * 7, ["\n".join(NAMES[:3])] * 7),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_every_text_is_inside_the_figure_and_none_is_empty(name):
    drawing = FIGURES[name]()
    canvas = FigureCanvasAgg(drawing)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="constrained_layout not applied|.*identical low")
        warnings.filterwarnings("ignore", message="Glyph")
        canvas.draw()
    for axes in drawing.axes:
        box = axes.get_tightbbox(canvas.get_renderer())
        if box is not None:
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= drawing.bbox.width + 1, name
            assert box.y1 <= drawing.bbox.height + 1
    said = "".join(text.get_text() for axes in drawing.axes for text in axes.texts)
    assert said or name in ("series", "images")
