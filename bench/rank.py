"""Rankings in units of one Gram pass of the same data, and noise tests: ``python -m bench.rank``.

``rank_reports`` of three reports on 8 numeric columns, end to end and warm, with an explicit RBF
and with the default kernel of tables, beside one float64 pass of :func:`jgram.gram` over the same
columns with the same RBF; wall time in turns, and the processor time of one more call. Then the
noise tests alone at n=100,000.
"""

from typing import Any

import jax
import numpy as np

import jgram
from bench.timing import Row, processor_seconds, redrawn, report, time_call, time_in_turns
from jgram.contrasts import noise_tests
from jgram.kernels import Delta, RandomFeatures

CLASSES, COLUMNS = 4, 8
KERNEL = jgram.RBF(3.0)


def data(n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Three reports with 10, 20 and 30% redrawn, and columns around class centres."""
    rng = np.random.default_rng(n)
    truth = rng.integers(0, CLASSES, n)
    y = rng.normal(size=(CLASSES, COLUMNS))[truth] + rng.normal(size=(n, COLUMNS))
    reports = redrawn(rng, truth, CLASSES, (0.1, 0.2, 0.3))
    return reports, y


def main() -> None:
    """Measure, print and write ``results/rank.json``."""
    rows: list[Row] = []
    extra: dict[str, float] = {}
    for n, repeats in ((5_000, 5), (20_000, 3)):
        reports, y = data(n)
        table = {f"column {j}": column for j, column in enumerate(y.T)}
        first = next(iter(reports.values()))

        def one_pass(first=first, y=y) -> Any:
            with jax.enable_x64(True):
                return jgram.gram(first, y, KERNEL, num_classes=CLASSES)

        runs = {
            f"one Gram pass, float64, RBF, n={n:,}, {COLUMNS} columns": one_pass,
            f"rank 3 reports, explicit RBF, n={n:,}": (
                lambda r=reports, y=y: jgram.rank_reports(r, y, KERNEL)
            ),
            f"rank 3 reports, default kernel of tables, n={n:,}": (
                lambda r=reports, t=table: jgram.rank_reports(r, t)
            ),
        }
        rows += time_in_turns(runs, repeats=repeats)
        spent = {name: processor_seconds(run) for name, run in runs.items()}
        unit = next(iter(spent.values()))
        extra |= {f"processor seconds: {name}": seconds for name, seconds in spent.items()}
        extra |= {
            f"Gram passes by processor time: {name}": seconds / unit
            for name, seconds in list(spent.items())[1:]
        }

    n = 100_000
    reports, y = data(n)
    stacked = np.stack(list(reports.values()))
    cells = np.digitize(y[:, 0], [-1.0, 0.0, 1.0]).astype(np.int32)
    features = RandomFeatures.draw(jax.random.key(0), 1024, dimension=COLUMNS, bandwidth=3.0)
    for words, kernel, observations in (
        ("delta kernel", Delta(4), cells),
        ("1,024 random features", features, y.astype(np.float32)),
    ):
        observed = jgram.observe(kernel, observations)
        rows.append(
            time_call(
                f"noise tests of 3 reports, {words}, n={n:,}",
                lambda o=observed: noise_tests(o, stacked, num_classes=CLASSES),
                repeats=3,
            )
        )
    report("rank", rows, extra)


if __name__ == "__main__":
    main()
