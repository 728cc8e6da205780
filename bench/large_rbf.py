"""Rank by a kernel of continuous observations at 1e4 to 1e5 records: ``python -m bench.large_rbf``.

Three reports of a table of six columns under the default kernel of tables, all pairs against 1,024
random features, end to end, in seconds of the processor; beside them one bare product of the
Gaussian kernel of as many columns with the reports in NumPy, tile by tile, of which a ranking by
all pairs takes eight (two views of four bandwidths). At 100,000 records, and with ``--largest`` at
1,000,000, random features alone.
"""

import resource
import sys
from typing import Any

import numpy as np

import jgram
from bench.timing import processor_seconds, redrawn, report
from jgram import binding

CLASSES, NUMBERS, TILE = 4, 4, 1024
EXACT, LARGE, LARGEST = (10_000, 20_000), 100_000, 1_000_000


def data(n: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Three reports with 10, 20 and 40% redrawn; four numbers and two categories."""
    rng = np.random.default_rng(n)
    truth = rng.integers(0, CLASSES, n)
    numbers = 0.8 * rng.normal(size=(CLASSES, NUMBERS))[truth] + rng.normal(size=(n, NUMBERS))
    related = np.where(rng.random(n) < 0.5, truth, rng.integers(0, 5, n))
    table = {f"number {j}": column for j, column in enumerate(numbers.T)}
    table |= {"related": np.array(list("abcde"))[related]}
    table |= {"unrelated": np.array(list("abcdefghijkl"))[rng.integers(0, 12, n)]}
    reports = redrawn(rng, truth, CLASSES, (0.1, 0.2, 0.4))
    return reports, table


def bare_product(points: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The Gaussian kernel of points times columns, a row of tiles at a time."""
    lengths = np.sum(points**2, axis=1)
    parts = []
    for start in range(0, len(points), TILE):
        some = slice(start, start + TILE)
        squares = lengths[some, None] + lengths - 2 * points[some] @ points.T
        parts.append(np.exp(-squares) @ columns)
    return np.concatenate(parts)


def main() -> None:
    """Measure, print and write ``results/large_rbf.json``."""
    spent: dict[str, Any] = {}

    def measure(name: str, n: int, exact: bool, *, warm: bool = True) -> None:
        reports, table = data(n)
        binding.EXACT_RECORDS = n if exact else 0
        run = lambda: jgram.rank_reports(reports, table)  # noqa: E731
        if warm:
            run()
        spent[f"processor seconds: {name}, n={n:,}"] = processor_seconds(run)

    for n in EXACT:
        measure("rank 3 reports by all pairs", n, exact=True)
        measure("rank 3 reports by random features", n, exact=False)
        reports, table = data(n)
        points = np.stack([table[f"number {j}"] for j in range(NUMBERS)], axis=1)
        columns = np.concatenate([np.eye(CLASSES)[labels] for labels in reports.values()], axis=1)
        spent[f"processor seconds: one bare Gaussian product in NumPy, n={n:,}"] = (
            processor_seconds(lambda p=points, c=columns: bare_product(p, c))
        )
    measure("rank 3 reports by random features", LARGE, exact=False)
    if "--largest" in sys.argv:
        measure("rank 3 reports by random features, compilation included", LARGEST, exact=False,
                warm=False)  # fmt: skip
    spent["most memory, gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    report("large_rbf", [], spent)


if __name__ == "__main__":
    main()
