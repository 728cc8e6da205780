"""The command line on folders, globs and large files: the answers of one file."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as pc
from pyarrow import parquet as pq

from jgram import load, schema
from jgram.cli import counted, main
from tests.test_cells import assert_equal

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """2,400 visits as one file and as many: two reports, one with gaps, three observations."""
    folder = tmp_path_factory.mktemp("visits")
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 2400)
    words = np.array(["cold", "flu", "well"], object)

    def noisy(share):
        return np.where(rng.random(2400) < share, rng.integers(0, 3, 2400), truth)

    gaps = words[noisy(0.4)]
    gaps[rng.random(2400) < 0.1] = None
    table = pa.table(
        {
            "ann": words[noisy(0.1)],
            "gaps": gaps,
            "crp": np.array([*"abc"], object)[noisy(0.3)],
            "level": truth + rng.normal(size=2400),
            "number": truth,
            "holes": np.where(truth == 1, None, "x"),
            "copies": rng.integers(1, 4, 2400),
        }
    )
    (folder / "many").mkdir()
    (folder / "texts").mkdir()
    for i in range(3):
        part = table.slice(800 * i, 800)
        pq.write_table(part, folder / "many" / f"{i}.parquet")
        pc.write_csv(part, folder / "texts" / f"{i}.csv")
    pq.write_table(table, folder / "one.parquet")
    pc.write_csv(table, folder / "one.csv")
    return folder


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return caught.value.code, printed.out, printed.err


def judged(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["schema"] == type(load(out)).SCHEMA
    jsonschema.validate(found, schema(found["schema"].split("/")[1]))
    return found.pop("source"), found


RANK = ("--report", "ann", "--report", "gaps")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        ("--observation", "crp", "--weight", "copies"),
        ("--observation", "level", "--bins", "4", "--missing", "drop"),
    ],
)
def test_a_folder_is_ranked_as_the_file_is(folder, capsys, monkeypatch, options):
    _, expected = judged(capsys, "rank", folder / "one.parquet", *RANK, *options)
    for source in (folder / "many", folder / "texts" / "*.csv"):
        about, found = judged(capsys, "rank", source, *RANK, *options)
        assert_equal(found, expected)
        assert "distinct records counted in 3 files" in about["notes"][-1]
        if "--bins" in options:
            assert any("quantiles of" in note for note in about["notes"])
    monkeypatch.setattr(counted, "LARGE_PARQUET", 1000)
    about, found = judged(capsys, "rank", folder / "one.parquet", *RANK, *options)
    assert_equal(found, expected)
    assert "counted in the file" in about["notes"][-1]


@pytest.mark.parametrize("name", ["one.csv", "one.parquet"])
def test_one_large_file_of_numbers_is_read_as_a_whole(folder, capsys, monkeypatch, name):
    _, expected = judged(capsys, "rank", folder / name, *RANK, "--observation", "level")
    monkeypatch.setattr(counted, "LARGE_PARQUET", 1000)
    monkeypatch.setattr(counted, "LARGE_TEXT", 1000)
    about, found = judged(capsys, "rank", folder / name, *RANK, "--observation", "level")
    assert found == expected
    assert not any("distinct records" in note for note in about["notes"])
    about, _ = judged(capsys, "rank", folder / name, *RANK, "--observation", "crp")
    assert any("distinct records" in note for note in about["notes"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--observation", "crp", "--order", "level"), ("--order", "one file")),
        (("--observation", "level", "--difference"), ("--difference", "one file")),
        (("--observation", "level", "--kernel", "rbf"), ("--kernel rbf", "one file")),
        (("--observation", "crp", "--kind", "crp=number"), ("--kind", "one file")),
        (("--observation", "level"), ("level", "--bins 8")),
        (("--observation", "number"), ("number", "--kernel delta")),
        (("--observation", "holes"), ("holes", "of 2400 values missing", "--missing drop")),
        (("--observation", "ann"), ("distinct columns", "ann twice")),
        (("--observation", "nothing"), ("0.parquet", "nothing")),
        (("--observation", "crp", "--bins", "4"), ("--bins", "numeric column")),
        (("--observation", "level", "--bins", "4"), ()),
    ],
)
def test_what_needs_the_records_is_refused_in_one_line(folder, capsys, options, words):
    code, out, err = run(capsys, "score", folder / "many", "--report", "ann", *options)
    if not words:
        assert (code, err) == (0, "")
        return
    assert (code, out, err.count("\n")) == (2, "", 1)
    for word in words:
        assert word in err


def test_dask_is_named_where_it_is_missing(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    options = ("--observation", "crp", "--scheduler", "localhost:1")
    code, _, err = run(capsys, "rank", folder / "many", *RANK, *options)
    assert (code, err) == (2, "jgram: --scheduler takes Dask: pip install 'jgram[cluster]'\n")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("source", ["many", pytest.param("texts", marks=pytest.mark.thorough)])
def test_issues_of_a_folder_are_those_of_the_file(folder, capsys, tmp_path, source):
    options = ("--report", "gaps", "--observation", "crp")
    one = run(capsys, "issues", folder / "one.parquet", *options, "--out", tmp_path / "one.csv")
    out = tmp_path / "many.csv"
    many = run(capsys, "issues", folder / source, *options, "--out", out)
    assert one[0] == many[0] == 0
    expected = {int(row["row"]): row for row in rows_of(tmp_path / "one.csv")}
    found = rows_of(out)
    assert len(found) == len(expected) > 100
    for row in found:
        place = 800 * int(Path(row["file"]).stem) + int(row["row"])
        same = expected[place]
        for name in ("label", "suggested", "crp"):
            assert row[name] == same[name]
        assert float(row["wrong"]) == pytest.approx(float(same["wrong"]), rel=1e-9)
    assert f"about {len(found)} of" in many[1]
    _, listing = judged(capsys, "issues", folder / source, *options)
    assert listing["number"] == len(found)
    for option in (("--to-check", "5"), ("--out", tmp_path / "out.json")):
        code, _, err = run(capsys, "issues", folder / source, *options, *option)
        assert (code, err.count("\n")) == (2, 1)


@pytest.mark.thorough
def test_annotators_of_a_folder_are_those_of_the_file(tmp_path, capsys):
    rng = np.random.default_rng(0)
    item, who = (part.ravel() for part in np.indices((150, 5)))
    label = np.where(rng.random(750) < 0.15 * who, rng.integers(0, 3, 750), item % 3)
    table = pa.table({"item": item, "annotator": [f"a{w}" for w in who], "label": label})
    (tmp_path / "many").mkdir()
    pc.write_csv(table, tmp_path / "one.csv")
    for i in range(3):
        pc.write_csv(table.slice(250 * i, 250), tmp_path / "many" / f"{i}.csv")
    _, expected = judged(capsys, "annotators", tmp_path / "one.csv")
    _, found = judged(capsys, "annotators", tmp_path / "many")
    assert_equal(found, expected)


SLOW = """
import sys, time
from jgram.data import counting
plain = counting._count_file
def slow(path, reading):
    time.sleep(0.0 if path.stem == "0" else {})
    return plain(path, reading)
counting._count_file = slow
from jgram.cli import main
main(sys.argv[1:])
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupted_command_goes_on(folder, tmp_path, end, code):
    arguments = [
        "score", str(folder / "many"), "--report", "ann", "--observation", "crp", "--json",
        "--checkpoint", str(tmp_path / "kept"),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def start(seconds):
        return subprocess.Popen(
            [sys.executable, "-c", SLOW.format(seconds), *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    process = start(60)
    for _ in range(600):
        time.sleep(0.1)
        if list((tmp_path / "kept").glob("[!.]*.arrow")):
            break
    process.send_signal(end)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (code, "")
    assert err == ("jgram: interrupted\n" if end == signal.SIGINT else "")
    kept = list((tmp_path / "kept").iterdir())
    assert len(kept) == 1
    process = start(0)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["num_records"] == 2400
    assert len(list((tmp_path / "kept").iterdir())) == 3
    assert kept[0].exists()


@pytest.mark.thorough
def test_a_dask_worker_that_is_killed_changes_nothing(folder, capsys):
    distributed = pytest.importorskip("dask.distributed")
    from jgram.data import Reading, count_files

    reading = Reading(("ann", "gaps", "crp"))
    files = sorted((folder / "many").iterdir()) * 4
    expected = count_files(files, reading).cells
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        process = int(client.run(os.getpid).popitem()[1])

        def killing(function, items):
            threading.Timer(0.5, os.kill, (process, signal.SIGKILL)).start()
            return client.map(slowly, [function] * len(items), items, pure=False)

        found = count_files(files, reading, map=killing).cells
        assert dict(found.labels) == dict(expected.labels)
        assert np.array_equal(found.codes, expected.codes)
        assert np.array_equal(found.counts, expected.counts)
        _, ranked = judged(
            capsys, "rank", folder / "many", *RANK, "--observation", "crp", "--scheduler",
            cluster.scheduler_address,
        )  # fmt: skip
    assert ranked["num_records"] == 2400


def slowly(function, item):
    time.sleep(0.2)
    return function(item)
