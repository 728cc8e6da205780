"""Every public signature is checked while the tests run; x64 is off unless a test turns it on."""

import csv
import gc
import os
import shlex
from pathlib import Path
from typing import NamedTuple

# Most of a run is compilation. What one worker, subprocess or earlier run has compiled the others
# load: JAX finds it by the program itself, so that it cannot be out of date.
os.environ |= {
    "JAX_COMPILATION_CACHE_DIR": os.environ.get("JAX_COMPILATION_CACHE_DIR")
    or str(Path(__file__).parents[1] / ".pytest_cache" / "compiled"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

import hypothesis
import jax
import pytest
from jaxtyping import config, install_import_hook

install_import_hook("jgram", "beartype.beartype")
hypothesis.settings.register_profile("steady", max_examples=50, deadline=None, derandomize=True)
hypothesis.settings.register_profile("long", max_examples=2000, deadline=None)
hypothesis.settings.load_profile("steady")

SLOW_EXAMPLES = ("jgram.simclr", "jgram.attack", "jgram.streams", "jgram.drift")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Examples that compile a network or an attack, for many seconds each, are thorough."""
    for item in items:
        if item.name.startswith(SLOW_EXAMPLES):
            item.add_marker("thorough")


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    """Compiled programs are forgotten before they use up the maps a process may have (65,530)."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 30_000:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Data that is handed over beside the checkout and may not be copied into it."""
    path = Path(__file__).parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"needs the data sets that are not redistributed, looked for in {path}")
    return path


@pytest.fixture
def unchecked():
    """Without the annotation checks, as users run it: our own messages must come first."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


class Result(NamedTuple):
    """How a command ended, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def jgram(folder, monkeypatch, capsys, unchecked):
    """Run the command in the folder of the test's module."""
    from jgram.cli import main  # once the hook above checks what it imports

    monkeypatch.chdir(folder)
    monkeypatch.setattr("jgram.cli.process.prepare_process", lambda: None)

    def run(line: str, *more: str) -> Result:
        with pytest.raises(SystemExit) as ended:
            main([*shlex.split(line), *more])
        shown = capsys.readouterr()
        return Result(ended.value.code, shown.out, shown.err)

    return run


def write_table(path: Path, columns) -> None:
    """Columns by name as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, each by name."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill_in(path: Path, rows, answers) -> None:
    """The rows of a sheet with an answer each in the column ``right``."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    write_table(path, columns | {"right": answers})
