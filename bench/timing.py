"""Timings that can be compared: the same work, in turns, after a warm-up, until it is ready.

The first call of each implementation is kept apart: it compiles. Then all implementations run once
a round, so that whatever else the machine does hits all alike, and ratios are taken round by round.
"""

import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from experiments.environment import environment

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """Seconds: ``first`` call (compilation and run), then one number a round."""

    first: float
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.rounds)

    def record(self) -> dict[str, float]:
        """What goes into the JSON."""
        return {"first": self.first, "median": self.median, "fastest": min(self.rounds)}


def seconds(run: Callable[[], Any]) -> float:
    """Wall time of one call, results ready."""
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


def compare(runs: dict[str, Callable[[], Any]], *, repeats: int = 7) -> dict[str, Timing]:
    """Time several implementations of the same work, round by round."""
    first = {name: seconds(run) for name, run in runs.items()}
    rounds = [{name: seconds(run) for name, run in runs.items()} for _ in range(repeats)]
    return {name: Timing(first[name], tuple(turn[name] for turn in rounds)) for name in runs}


def ratio(slow: Timing, fast: Timing) -> float:
    """How many times as long ``slow`` takes: the median over rounds of the ratio in one round."""
    return statistics.median(a / b for a, b in zip(slow.rounds, fast.rounds, strict=True))


def save(name: str, results: dict[str, Any], *, out: Path = RESULTS) -> Path:
    """Write ``NAME.json`` with the device, the versions and the load of the machine."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.json"
    record = environment() | {"load_average": os.getloadavg()[0], "results": results}
    path.write_text(json.dumps(record, allow_nan=False, indent=1) + "\n")
    return path
