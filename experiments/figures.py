"""The figures of the studies: lines with 1.96 SE error bars, titled panels, few colours."""

import io
from collections.abc import Iterable
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from PIL import Image

MARKERS = "osD^vPX*"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Colours that the colour-blind tell apart (Okabe and Ito); every line has a marker as well."""
plt.rcParams["axes.formatter.limits"] = (-3, 4)
plt.rcParams["axes.prop_cycle"] = plt.cycler(color=COLOURS)


def panels(rows: int, columns: int, *, width: float = 4.2, height: float = 3.3) -> Any:
    """A figure and its axes ``[rows, columns]``."""
    return plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained"
    )


def curve(axis: Axes, x: Any, y: Any, *, index: int = 0, label: str | None = None) -> None:
    """One line; ``x`` and ``y`` are values or dictionaries of ``mean`` and ``half``."""
    (x, x_half), (y, y_half) = _parts(x), _parts(y)
    axis.errorbar(
        x, y, xerr=x_half, yerr=y_half, label=label, marker=MARKERS[index % len(MARKERS)],
        markersize=4, linewidth=1.2, capsize=2, elinewidth=0.8, color=f"C{index}",
    )  # fmt: skip


def over(values: Any, best: float) -> dict[str, np.ndarray]:
    """Scores as shares of that of the best report: 1 for it, whatever the unit."""
    mean, half = _parts(values)
    return {"mean": mean / best, "half": np.zeros_like(mean) if half is None else half / best}


def over_log(values: Any, best: float) -> dict[str, np.ndarray]:
    """The same of log scores; the error bars to first order."""
    mean, half = _parts(values)
    share = np.exp(mean - best)
    return {"mean": share, "half": share * (0.0 if half is None else half)}


def one_in(axis: Any) -> None:
    """Make a matplotlib axis (``axes.xaxis``) of shares logarithmic, read as 1, 1/10, 1/100 ..."""
    axis._set_axes_scale("log")
    axis.set_major_formatter(lambda x, _: f"{x:g}" if x >= 1 else f"1/{round(1 / x):,}")
    axis.set_minor_locator(plt.NullLocator())
    if axis.axis_name == "x":
        axis.set_tick_params(rotation=40)


def finish(axis: Axes, x: str, y: str, title: str, *, legend: bool = False) -> None:
    """Labels, grid, a title that says what is seen, and a legend where asked for."""
    axis.set(xlabel=x, ylabel=y)
    axis.set_title(title, fontsize=9, loc="left")
    axis.grid(True, linestyle="--", linewidth=0.5, alpha=0.6)
    if legend:
        axis.legend(fontsize=7)


def shares(axis: Axes, reports: list[dict[str, Any]], title: str) -> None:
    """What each report ``keeps``, its ``interval`` and the ``true`` value, the first on top."""
    rows = np.arange(len(reports))[::-1]
    for row, one in zip(rows, reports, strict=True):
        axis.hlines(row, *one["interval"], color="C0", linewidth=3)
        axis.plot(one["keeps"], row, "o", color="C0", markersize=8)
        axis.vlines(one["true"], row - 0.3, row + 0.3, color="C1", linewidth=2)
        right = max(one["interval"][1], one["true"])
        axis.text(right + 0.008, row, f"{one['keeps']:.0%}", va="center", color="C0")
    axis.text(reports[-1]["true"], rows[-1] - 0.62, "truth", ha="center", color="C1")
    axis.set_yticks(rows, [one["name"] for one in reports])
    axis.set_ylim(-0.8, len(reports) - 0.4)
    axis.set_xlim(right=1.06)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.spines[["top", "right", "left"]].set_visible(False)
    finish(axis, "keeps of the best report's information, with 95% intervals", "", title)
    axis.grid(axis="y", visible=False)


def save(figure: Any, axes: Iterable[Axes], path: Any) -> None:
    """Write the PNG, in 128 colours; every panel has to have a title."""
    if not all(axis.get_title(loc="left") or axis.get_title() for axis in axes):
        raise ValueError("expected a title on every panel, got one without")
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110, facecolor="white")
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(128).save(path, optimize=True)


def _parts(values: Any) -> tuple[np.ndarray, np.ndarray | None]:
    if isinstance(values, dict):
        return np.asarray(values["mean"], float), np.asarray(values["half"], float)
    return np.asarray(values, float), None
