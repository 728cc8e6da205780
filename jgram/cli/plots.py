"""Pictures into files, whole or not at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jgram.cli.outputs import FIGURES, check_outputs, whole_file
from jgram.plots import annotators_figure, figure, plot_images, ranking_figure, scores_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jgram.annotators import AnnotatorRanking
    from jgram.report import Ranking, ScoreReport

__all__ = [
    "check_figure",
    "draw_annotators",
    "draw_images",
    "draw_ranking",
    "draw_scores",
    "save",
]


def check_figure(path: Path | None) -> None:
    """Refuse, before any work, a picture, if there is one, where matplotlib is missing."""
    if path is not None:
        figure()


def save(drawing: "Figure", path: str | Path) -> None:
    """Write a figure to a file, whole or not at all, whose suffix names the format.

    Args:
        drawing: The figure.
        path: For example ``ranking.png``, ``.pdf`` or ``.svg``.

    Raises:
        ValueError: A suffix that is no format of matplotlib's, no such folder.
    """
    check_outputs({"": (Path(path), FIGURES)}, [])
    with whole_file(Path(path)) as beside:
        drawing.savefig(beside, dpi=200)


def draw_scores(path: Path, reports: "Sequence[ScoreReport]") -> None:
    """Write :func:`jgram.plots.scores_figure` to a file."""
    save(scores_figure(reports), path)


def draw_ranking(path: Path, ranking: "Ranking") -> None:
    """Write :func:`jgram.plots.ranking_figure` to a file."""
    save(ranking_figure(ranking), path)


def draw_annotators(path: Path, ranking: "AnnotatorRanking", shown: int) -> None:
    """Write :func:`jgram.plots.annotators_figure` to a file."""
    save(annotators_figure(ranking, shown), path)


def draw_images(path: Path, images: Sequence[np.ndarray], titles: Sequence[str]) -> None:
    """The picture of images in a grid, five a row.

    Args:
        path: The file to write.
        images: As in :func:`plot_images`; one or more.
        titles: One a picture.
    """
    columns = min(5, len(images))
    rows = -(-len(images) // columns)
    drawing, grid = figure(1.9 * columns, 2.3 * rows, columns, rows)
    plot_images(grid, images, titles)
    save(drawing, path)
