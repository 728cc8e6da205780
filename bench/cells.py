"""Rankings of categories of any size, beside bare scans and databases: ``python -m bench.cells``.

Writes ``--rows`` records (1e8 by default) of three reports and one observation, texts of four
labels, into 20 Parquet files of a temporary folder. Then, each in a process of its own that first
imports what it needs: a bare scan of the dictionary columns, the counting alone, the whole ranking,
DuckDB's ``GROUP BY`` and Polars' ``group_by`` of the same columns; and a ranking of 1e7 integer
codes in memory beside three ``bincount``. What is given is processor time of all threads, wall time
and the peak of resident memory. One run each: the work is long.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.environment import environment

RESULTS = Path(__file__).parent / "results"
NAMES, FILES, IN_MEMORY = ("ann", "bob", "eve", "crp"), 20, 10_000_000
LABELS = ("cold", "flu", "well", "other")


def write_files(folder: Path, rows: int) -> None:
    """Records of four classes; 10, 20 and 30% of the reports are redrawn, 30% of what is seen."""
    import pyarrow as pa
    from pyarrow import parquet

    for number in range(FILES):
        rng = np.random.default_rng(number)
        columns = {
            name: pa.DictionaryArray.from_arrays(codes, list(LABELS)).cast(pa.string())
            for name, codes in _codes(rng, rows // FILES).items()
        }
        parquet.write_table(pa.table(columns), folder / f"{number:02}.parquet")


def _codes(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    truth = rng.integers(0, len(LABELS), n, dtype=np.int32)
    redrawn = dict(zip(NAMES, (0.1, 0.2, 0.3, 0.3), strict=True))
    return {
        name: np.where(
            rng.random(n, np.float32) < share, rng.integers(0, len(LABELS), n, np.int32), truth
        )
        for name, share in redrawn.items()
    }


def bare_scan(folder: Path) -> Callable[[], int]:
    """Every batch of the dictionary columns, looked at by nobody."""
    from pyarrow import parquet

    def run() -> int:
        rows = 0
        for path in sorted(folder.iterdir()):
            with parquet.ParquetFile(path, read_dictionary=list(NAMES)) as file:
                for batch in file.iter_batches(batch_size=1 << 18, columns=list(NAMES)):
                    rows += batch.num_rows
        return rows

    return run


def counting(folder: Path) -> Callable[[], int]:
    """jgram's distinct records with counts."""
    import narwhals  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from jgram.data import Reading, count_files

    return lambda: count_files(folder, Reading(NAMES)).num_records


def ranking(folder: Path) -> Callable[[], int]:
    """jgram's whole ranking, from the files to its sentence; compilation included."""
    import jgram
    from jgram.data import Reading, count_files

    def run() -> int:
        counted = count_files(folder, Reading(NAMES))
        table = counted.table()
        reports = {name: table[name] for name in NAMES[:3]}
        found = jgram.rank_reports(reports, table["crp"], weights=counted.counts)
        if found.most_reliable != ("ann",):
            raise ValueError(f"expected ann to be the most reliable, got {found.conclusion}")
        return int(found.num_records)

    return run


def duckdb_group_by(folder: Path) -> Callable[[], int]:
    """The same counts by DuckDB."""
    import duckdb

    query = f"select {', '.join(NAMES)}, count(*) n from '{folder}/*.parquet' group by all"
    return lambda: sum(row[-1] for row in duckdb.sql(query).fetchall())


def polars_group_by(folder: Path) -> Callable[[], int]:
    """The same counts by Polars."""
    import polars

    def run() -> int:
        table = polars.scan_parquet(folder / "*.parquet").group_by(NAMES).len()
        return int(table.collect(engine="streaming")["len"].sum())

    return run


def bincounts(_: Path) -> Callable[[], int]:
    """Three ``bincount`` of integer codes in memory."""
    codes = _codes(np.random.default_rng(0), IN_MEMORY)
    columns = [codes[name].astype(np.int64) for name in NAMES[:3]]
    return lambda: sum(int(np.bincount(column).sum()) for column in columns) // 3


def ranking_in_memory(_: Path) -> Callable[[], int]:
    """jgram's ranking of integer codes in memory, the delta kernel; compilation included."""
    import jgram

    codes = _codes(np.random.default_rng(0), IN_MEMORY)
    reports = {name: codes[name].astype(np.int64) for name in NAMES[:3]}
    y = codes["crp"].astype(np.int64)
    return lambda: int(jgram.rank_reports(reports, y, "delta").num_records)


MEASURED = (
    bare_scan,
    counting,
    ranking,
    duckdb_group_by,
    polars_group_by,
    bincounts,
    ranking_in_memory,
)


def measure(name: str, folder: Path) -> dict[str, Any]:
    """One of them in this process: processor and wall seconds of the work, gigabytes at most."""
    run = {function.__name__: function for function in MEASURED}[name](folder)
    before, start, used = _peak(), time.perf_counter(), _processor()
    rows = run()
    return {
        "name": name,
        "rows": rows,
        "processor seconds": round(_processor() - used, 3),
        "wall seconds": round(time.perf_counter() - start, 3),
        "peak GB": round(_peak(), 3),
        "GB more than before": round(_peak() - before, 3),
    }


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak() -> float:
    """Of this program alone: ``getrusage`` also counts what started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e9


def main() -> None:
    """Generate, measure, print and write ``results/cells.json``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=100_000_000)
    parser.add_argument("--measure", choices=[function.__name__ for function in MEASURED])
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.folder)))
        return
    measured = []
    with tempfile.TemporaryDirectory(prefix="jgram-cells-") as folder:
        write_files(Path(folder), given.rows)
        for function in MEASURED:
            command = [sys.executable, "-m", "bench.cells", "--measure", function.__name__]
            done = subprocess.run(
                [*command, "--folder", folder], capture_output=True, text=True, check=True
            )
            measured.append(json.loads(done.stdout))
            print(measured[-1])
    seconds = {one["name"]: one["processor seconds"] for one in measured}
    ratios = {
        "counting / bare scan": seconds["counting"] / seconds["bare_scan"],
        "counting / DuckDB": seconds["counting"] / seconds["duckdb_group_by"],
        "counting / Polars": seconds["counting"] / seconds["polars_group_by"],
    }
    print({name: round(ratio, 2) for name, ratio in ratios.items()})
    RESULTS.mkdir(exist_ok=True)
    figures = {
        f"{one['name'].replace('_', ' ')}, {one['rows']:,} records: {figure}": one[figure]
        for one in measured
        for figure in ("processor seconds", "wall seconds", "peak GB", "GB more than before")
    }
    record = {**environment(), "rows": [], **figures, **ratios}
    (RESULTS / "cells.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
