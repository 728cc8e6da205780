"""The paper's figures: lines with 1.96 SE error bars, one a policy."""

import string
from collections.abc import Iterable
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

MARKERS = "osD^vPX*"
plt.rcParams["axes.formatter.limits"] = (-3, 4)


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


def finish(axis: Axes, x: str, y: str, title: str = "", *, legend: bool = False) -> None:
    """Labels, grid, and a legend where asked for."""
    axis.set(xlabel=x, ylabel=y, title=title)
    axis.grid(True, linestyle="--", linewidth=0.5, alpha=0.6)
    if legend:
        axis.legend(fontsize=7)


def save(figure: Any, axes: Iterable[Axes], path: Any) -> None:
    """Letter the panels and write the PNG."""
    axes = list(axes)
    letters = [*string.ascii_lowercase, *(f"a{letter}" for letter in string.ascii_lowercase)]
    for letter, axis in zip(letters, axes, strict=False):
        if len(axes) > 1:
            axis.set_title(f"({letter}) {axis.get_title()}".strip(), fontsize=9, loc="left")
            axis.set_title("")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _parts(values: Any) -> tuple[np.ndarray, np.ndarray | None]:
    if isinstance(values, dict):
        return np.asarray(values["mean"], float), np.asarray(values["half"], float)
    return np.asarray(values, float), None
