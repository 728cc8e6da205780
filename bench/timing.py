"""Timing that can be trusted: warm, blocked until ready, checked, and beside a rival in one run."""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict

import jax
import numpy as np

from experiments.environment import environment

__all__ = ["Row", "processor_seconds", "redrawn", "report", "time_call", "time_in_turns"]

RESULTS = Path(__file__).parent / "results"


class Row(TypedDict):
    """One measurement.

    Attributes:
        name: What was measured.
        seconds: Median of the repeats, after one call that is not counted.
        fastest: Least of the repeats.
        first_seconds: That first call, compilation included.
        repeats: How many were counted.
        ratio: ``seconds`` divided by those of the row it stands against; ``None`` for that row.
    """

    name: str
    seconds: float
    fastest: float
    first_seconds: float
    repeats: int
    ratio: float | None


def redrawn(
    rng: np.random.Generator, truth: np.ndarray, classes: int, shares: Sequence[float]
) -> dict[str, np.ndarray]:
    """Reports of a truth ``[n]`` with shares of their labels redrawn, by name."""
    n = len(truth)
    return {
        f"{share:.0%} redrawn": np.where(
            rng.random(n) < share, rng.integers(0, classes, n), truth
        ).astype(np.int32)
        for share in shares
    }


def processor_seconds(run: Callable[[], Any]) -> float:
    """Processor time of one call, all threads together."""
    start = time.process_time()
    jax.block_until_ready(run())
    return time.process_time() - start


def time_call(
    name: str,
    function: Callable[..., Any],
    *arguments: Any,
    expected: Any = None,
    against: Row | None = None,
    repeats: int = 7,
) -> Row:
    """Time ``function(*arguments)`` in this process.

    Args:
        name: What is measured.
        function: Returns arrays; JAX's are waited for.
        *arguments: Of the function.
        expected: The right answer, to a relative error of 1e-5, where it is known.
        against: The row to give the ratio to.
        repeats: Calls counted.

    Raises:
        ValueError: The answer is another one.
    """
    start = time.perf_counter()
    answer = jax.block_until_ready(function(*arguments))
    first = time.perf_counter() - start
    if expected is not None and not np.allclose(answer, expected, rtol=1e-5):
        raise ValueError(f"{name}: expected {expected}, got {answer}")
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    ratio = None if against is None else median / against["seconds"]
    return Row(
        name=name,
        seconds=median,
        fastest=min(seconds),
        first_seconds=first,
        repeats=repeats,
        ratio=ratio,
    )


def time_in_turns(runs: dict[str, Callable[[], Any]], *, repeats: int = 7) -> list[Row]:
    """Time several implementations of the same work, one call of each a round.

    Whatever else the machine does then hits all alike. The first one is what the others stand
    against: ratios are taken in each round, and their median is given.
    """

    def seconds(run: Callable[[], Any]) -> float:
        start = time.perf_counter()
        jax.block_until_ready(run())
        return time.perf_counter() - start

    first = {name: seconds(run) for name, run in runs.items()}
    rounds = [{name: seconds(run) for name, run in runs.items()} for _ in range(repeats)]
    rival = next(iter(runs))
    return [
        Row(
            name=name,
            seconds=statistics.median(turn[name] for turn in rounds),
            fastest=min(turn[name] for turn in rounds),
            first_seconds=first[name],
            repeats=repeats,
            ratio=None
            if name == rival
            else statistics.median(turn[name] / turn[rival] for turn in rounds),
        )
        for name in runs
    ]


def report(name: str, rows: list[Row], extra: dict[str, Any] | None = None) -> None:
    """Print the rows and write ``results/NAME.json`` with device and versions."""
    for row in rows:
        ratio = "" if row["ratio"] is None else f"x {row['ratio']:.2f}"
        print(f"{row['name']:<78} {row['seconds'] * 1e3:10.2f} ms  {ratio}")
    for what, value in (extra or {}).items():
        print(f"{what}: {value}")
    RESULTS.mkdir(exist_ok=True)
    record = {**environment(), "rows": rows, **(extra or {})}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
