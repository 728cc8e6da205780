"""``jgram issues`` of files of any size: distinct records judged, suspicious ones written out."""

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jgram.cells import Cells, objects, row_keys
from jgram.cli.counted import read_cells_of
from jgram.cli.options import Engine, Input, Missing, Observed
from jgram.cli.outputs import spelled
from jgram.cli.read import listed
from jgram.data.counting import Counted
from jgram.data.streams import Reading, coded_batches, list_files
from jgram.issues import CellIssues, cell_issues
from jgram.whole_file import whole_file

__all__ = ["FoundInCells", "find_in_cells", "write_suspicious"]


class FoundInCells(NamedTuple):
    """What was found of distinct records.

    Attributes:
        found: Of the cells ``rows``.
        counted: All cells, and where labels of the files stand in them.
        rows: The cells that have a label.
        reading: How the files were read.
        notes: What was done to the records.
    """

    found: CellIssues
    counted: Counted
    rows: np.ndarray
    reading: Reading
    notes: list[str]

    def lines(self, limit: int) -> list[dict[str, Any]]:
        """The most suspicious distinct records, the most suspicious first."""
        found, cells = self.found, self.counted.cells
        names = list(cells.labels)[1:]
        order = np.lexsort((found.margin, -found.wrong))
        order = order[found.suspicious[order] > 0][:limit]
        return [
            {
                "records": int(found.suspicious[i]),
                "label": found.classes[found.labels[i]],
                "suggested": found.classes[found.suggested[i]],
                "wrong": float(found.wrong[i]),
                **{name: _label(cells, self.rows[i], name) for name in names},
            }
            for i in order
        ]


def find_in_cells(
    source: Input,
    observed: Observed,
    report: str,
    engine: Engine,
    progress: Callable[[int, int], None],
) -> FoundInCells:
    """Distinct records of the files, and what is found of them.

    Raises:
        ValueError: As :func:`jgram.cli.counted.read_cells_of` and :func:`jgram.issues.cell_issues`.
    """
    counted, columns, reading, notes = read_cells_of(
        source, observed, [report], [], engine, progress
    )
    labels = columns[report]
    answered = np.array([x is not None and str(x) != source.abstain for x in labels], bool)
    if source.missing is Missing.RAISE and not answered.all():
        lacking = int(counted.cells.counts[~answered].sum())
        raise ValueError(f"{report}: {lacking} labels missing: leave them out with --missing keep")
    rows = np.flatnonzero(answered)
    found = cell_issues(
        labels[rows],
        {name: columns[name][rows] for name in observed.observation},
        counted.cells.counts[rows],
        name=report,
        classes=listed(source.classes, labels[rows]),
    )
    return FoundInCells(found, counted, rows, reading, notes)


def write_suspicious(path: Path, source: Input, judged: FoundInCells) -> None:
    """A second pass over the files: the issues as rows of a CSV file, in the order of the files.

    Args:
        path: The file, there whole or not at all.
        source: The files.
        judged: What was found of their distinct records.
    """
    found, cells = judged.found, judged.counted.cells
    left = np.zeros(len(cells.counts), np.int64)
    left[judged.rows] = found.suspicious
    place = np.full(len(cells.counts), -1)
    place[judged.rows] = np.arange(len(judged.rows))
    names = list(cells.labels)
    with whole_file(path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        heads = ["file", "row", "label", "suggested", "wrong", "margin", *names[1:]]
        writer.writerow(map(spelled, heads))
        tails: dict[int, list[Any]] = {}
        for name, row, cell in _suspicious(list_files(source.file), judged, left):
            if cell not in tails:
                i = place[cell]
                tails[cell] = [
                    found.classes[found.labels[i]],
                    found.classes[found.suggested[i]],
                    float(found.wrong[i]),
                    float(found.margin[i]),
                    *(_label(cells, cell, column) for column in names[1:]),
                ]
            writer.writerow(map(spelled, [name, row, *tails[cell]]))


def _suspicious(
    files: Sequence[Path], judged: FoundInCells, left: np.ndarray
) -> Iterator[tuple[str, int, int]]:
    """File, row and cell of every issue; ``left`` is how many of each cell are still wanted."""
    cells, reading = judged.counted.cells, judged.reading
    sizes = [len(labels) for labels in cells.labels.values()]
    keys = row_keys(list(cells.codes.T), sizes)
    for path in files:
        start = 0
        for batch in coded_batches(path, reading):
            codes = []
            for name, (labels, given) in batch.items():
                known = judged.counted.places[name]
                codes.append(np.array([*(known[label] for label in labels), -1])[given])
            found = row_keys(codes, sizes)
            cell = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
            wanted = np.flatnonzero((keys[cell] == found) & (left[cell] > 0))
            for row in wanted.tolist():
                if left[cell[row]] > 0:
                    left[cell[row]] -= 1
                    yield str(path), start + row, int(cell[row])
            start += len(found)


def _label(cells: Cells, cell: Any, name: str) -> Any:
    column = list(cells.labels).index(name)
    return objects(cells.labels[name])[cells.codes[cell, column]]
