"""Every example of the README runs, on files made here, and warns of nothing."""

import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import jgram
from jgram.cli import main
from jgram.drift import fit_baseline

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)
LINES = [
    line.removeprefix("$ jgram ")
    for block in re.findall(r"```console\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.startswith("$ jgram ")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the examples name, 150 rows each."""
    folder, rng = tmp_path_factory.mktemp("readme"), np.random.default_rng(0)
    truth = rng.integers(0, 2, 150)

    def said(error):
        return np.where(rng.random(150) < error, 1 - truth, truth)

    def write(name, **columns):
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        (folder / name).write_text("\n".join(lines) + "\n")

    write(
        "labels.csv", diagnosis=np.array(["ill", "well"])[said(0.05)], ann=said(0.1), bob=said(0.3),
        test_result=said(0.1), blood_sugar=truth + rng.normal(0, 0.3, 150).round(3),
        age=rng.integers(20, 80, 150),
    )  # fmt: skip
    (folder / "years").mkdir()
    columns = {"ann": said(0.1), "bob": said(0.3), "test_result": said(0.1).astype(str)}
    for year in ("2024", "2025"):
        pq.write_table(pa.table(columns), folder / "years" / f"{year}.parquet")
    walk = rng.normal(size=150).cumsum()
    months = [f"{2000 + month // 12}-{month % 12 + 1:02}" for month in range(150)]
    write("figures.csv", month=months, first=walk + rng.normal(size=150), final=walk,
          tax=walk + rng.normal(0, 0.3, 150))  # fmt: skip
    item, who = np.divmod(np.arange(450), 3)
    right = rng.random(450) < np.array([0.95, 0.9, 0.8])[who]
    answers = np.where(right, truth[item], 1 - truth[item])
    write("answers.csv", image=item, worker=who, label=answers)
    votes = np.where(rng.random(450) < 0.2, "none", np.array(["ham", "spam"])[answers])
    heard = {"ann": said(0.1), "bob": said(0.3)}
    write("pilot.csv", **heard, crp=truth + rng.normal(0, 0.5, 150))
    write("tonight.csv", **heard, crp=truth + rng.normal(0, 0.5, 150))
    (folder / "rules.toml").write_text(
        'file = "pilot.csv"\nreports = ["ann", "bob"]\nobservations = ["crp"]\n'
        'rules = ["ann not noise"]\n'
    )
    baseline = fit_baseline(heard, {"crp": truth + rng.normal(0, 0.5, 150)})
    (folder / "baseline.json").write_text(baseline.to_json())
    words = np.array(["fine day", "rain all day"])[truth]
    write("sheet.csv", model_a=said(0.1), model_b=said(0.2), model_c=said(0.3),
          text=[f"a {word} {i}" for i, word in enumerate(words)])  # fmt: skip
    write("votes.csv", item=item, annotator=who, label=votes)
    return folder


def run(line, capsys):
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    return ended.value.code, capsys.readouterr()


@pytest.mark.thorough
@pytest.mark.parametrize("block", PYTHON, ids=range(len(PYTHON)))
def test_python_examples_run_without_a_warning(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(block, "README.md", "exec"), {})


@pytest.mark.thorough
def test_console_examples_run_without_a_warning(folder, monkeypatch, capsys):
    """In their order: one reads what an earlier one wrote."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("jgram.cli.process.prepare_process", lambda: None)
    assert {line.split()[0] for line in LINES} == {
        "check",
        "plan",
        "score",
        "rank",
        "issues",
        "annotators",
        "encode",
    }
    for line in LINES:
        if line.startswith("encode"):  # training takes long: its options are there
            _, shown = run("encode --help", capsys)
            options = re.findall(r"--[\w-]+", line)
            assert options
            assert all(option in shown.out for option in options), line
            continue
        if "--checked" in line:  # what a person would fill in, after the example before
            check = folder / "check.csv"
            head, *rows = check.read_text().splitlines()
            place = head.split(",").index("right")
            filled = [row.split(",") for row in rows]
            for k, row in enumerate(filled):
                row[place] = "no" if k % 4 == 0 else "yes"
            check.write_text("\n".join([head, *map(",".join, filled)]) + "\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code, shown = run(line, capsys)
        assert code in (0, 3), f"{line}: {shown.err}"
        assert shown.out, line


@pytest.mark.thorough
def test_importing_warns_of_nothing():
    code = "import jgram, jgram.cli.app; jgram.score(['a', 'b'] * 20, [0.0, 1.0] * 20)"
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:jgram", "-c", code],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_pictures_and_pages_that_are_linked_are_there():
    for page in ("README.md", "experiments/README.md", "bench/README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            if "://" not in target:
                assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_one_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", jgram.__version__)
    assert f"version: {jgram.__version__}" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert newest[1] == jgram.__version__
    assert 'path = "jgram/__init__.py"' in (ROOT / "pyproject.toml").read_text()
