"""Pages of ``--html`` to look at: from data with hostile names, beside what ``--json`` printed."""

import contextlib
import io
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from jgram.cli import main
from tests.conftest import write_table

HOSTILE = "</script><script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
COMMANDS = ("rank", "score", "annotators", "issues")


class Page(NamedTuple):
    path: Path
    printed: str  # by --json


def run(*arguments: str) -> tuple[str, int]:
    """What the command prints, and its exit code."""
    out, command = io.StringIO(), mock.patch("sys.argv", ["jgram", *arguments])
    with command, contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(list(arguments))
        except SystemExit as ended:
            return out.getvalue(), ended.code
    raise AssertionError("main always exits")


def make(folder: Path, command: str) -> Page:
    """The page of a command, beside what it was made of."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 240)
    labels = np.array(["cold", HOSTILE, IMAGE])

    def noisy(share):
        return np.where(rng.random(240) < share, rng.integers(0, 3, 240), truth)

    if command == "annotators":
        columns = _answers(rng, truth)
        line = []
    else:
        columns = {
            "good": labels[noisy(0.05)],
            IMAGE: labels[noisy(0.5)],
            HOSTILE: labels[noisy(1.0)],
            "symptom": np.array(["ache", "cough", "well"])[noisy(0.2)],
            "level": np.round(truth + rng.normal(0, 0.3, 240), 3),
        }
        line = ["--report", IMAGE, "--observation"]
        line += ["level"] if command == "issues" else ["symptom"]
        line += ["--report=good", "--report", HOSTILE] if command == "rank" else []
    table, path = folder / f"{command}.csv", folder / f"{command}.html"
    write_table(table, columns)
    printed, code = run(command, str(table), *line, "--json", "--html", str(path))
    assert code == 0, printed
    return Page(path, printed)


def _answers(rng: np.random.Generator, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Eight annotators of 240 items; gus copies most of eve's."""
    names = np.array(["ann", IMAGE, HOSTILE, "dan", "eve", "fay", "gus", "hal"])
    wrong = rng.random((240, 8)) < np.array([0.05, 0.1, 0.2, 0.1, 0.3, 0.15, 0.15, 0.1])
    answers = (truth[:, None] + wrong * rng.integers(1, 3, wrong.shape)) % 3
    answers[:, 6] = np.where(rng.random(240) < 0.98, answers[:, 4], answers[:, 6])
    item, who = (place.ravel() for place in np.indices(answers.shape))
    return {
        "item": item,
        "annotator": names[who],
        "label": np.array([HOSTILE, "fine", IMAGE])[answers.ravel()],
    }
