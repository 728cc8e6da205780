"""The command line: one answer whatever the way in, a file, a folder, a glob or counts."""

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
from jgram.cli import main, read
from tests.test_counted import assert_equal

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


WAYS = {"file": "one.parquet", "folder": "many", "glob": "texts/*.csv", "counted": "many"}


@pytest.fixture(params=WAYS)
def way(request, folder, monkeypatch):
    """A way in, and whether distinct records are counted there."""
    counted = request.param == "counted"
    if counted:
        monkeypatch.setattr(read, "LARGE_RECORDS", 1000)
    return folder / WAYS[request.param], counted


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "categories"),
    [
        (("--observation", "crp", "--weight", "copies"), True),
        (("--observation", "level", "--bins", "4", "--missing", "drop"), True),
        pytest.param(("--observation", "level"), False, marks=pytest.mark.thorough),
        pytest.param(
            ("--observation", "crp", "--order", "level", "--block-length", "4"), False,
            marks=pytest.mark.thorough,
        ),
        pytest.param(("--observation", "holes", "--observation", "crp"), False,
                     marks=pytest.mark.thorough),
    ],
)  # fmt: skip
def test_a_ranking_is_the_same_whatever_the_way_in(folder, capsys, way, options, categories):
    _, expected = judged(capsys, "rank", folder / "one.csv", *RANK, *options)
    source, counted = way
    about, found = judged(capsys, "rank", source, *RANK, *options)
    if counted and options == ("--observation", "level"):  # by random features, pass by pass
        assert "records stay in the files" in about["notes"][0]
        for one, same in zip(found["reports"], expected["reports"], strict=True):
            assert one["name"] == same["name"]
            assert one["keeps"] == pytest.approx(same["keeps"], abs=0.03)
        return
    assert_equal(found, expected)
    assert counted_note(about) == (counted and categories)
    if counted and "--bins" in options:
        assert any("quantiles of" in note for note in about["notes"])


def counted_note(about):
    return any("distinct records counted in" in note for note in about["notes"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("crp", "--order", "level", "--checkpoint", "kept"), ("--order", "no --checkpoint")),
        (("level", "--difference", "--checkpoint", "kept"), ("--difference", "the records")),
        (("crp", "--kind", "crp=number", "--scheduler", "x:1"), ("--kind", "no --scheduler")),
        (("ann",), ("distinct columns", "ann twice")),
        (("nothing",), ("0.parquet", "nothing")),
        (("crp", "--bins", "4"), ("--bins", "numeric column")),
        (("crp", "--bins", "4", "--checkpoint", "kept"), ("--bins", "numeric column")),
    ],
)
def test_what_is_refused_is_refused_in_one_line(
    folder, capsys, tmp_path, monkeypatch, options, words
):
    monkeypatch.chdir(tmp_path)
    given = ("score", folder / "many", "--report", "ann", "--observation", *options)
    code, out, err = run(capsys, *given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert [word for word in words if word not in err] == []


def test_dask_is_named_where_it_is_missing(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    options = ("--observation", "crp", "--scheduler", "localhost:1")
    code, _, err = run(capsys, "rank", folder / "many", *RANK, *options)
    assert (code, err) == (2, "jgram: --scheduler takes Dask: pip install 'jgram[cluster]'\n")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.thorough
def test_issues_are_the_same_whatever_the_way_in(folder, capsys, tmp_path, way):
    options = ("--report", "gaps", "--observation", "crp")
    one = run(capsys, "issues", folder / "one.csv", *options, "--out", tmp_path / "one.csv")
    source, counted = way
    out = tmp_path / "many.csv"
    many = run(capsys, "issues", source, *options, "--out", out)
    assert one[0] == many[0] == 0, many[2]
    expected = {int(row["row"]): row for row in rows_of(tmp_path / "one.csv")}
    found = rows_of(out)
    assert len(found) == len(expected) > 100
    for row in found:
        same = expected[int(row["row"])]
        assert [row[name] for name in ("label", "suggested", "crp")] == [
            same[name] for name in ("label", "suggested", "crp")
        ]
        assert float(row["wrong"]) == pytest.approx(float(same["wrong"]), rel=1e-9)
        assert not counted or Path(row["file"]).stem == str((int(row["row"]) - 2) // 800)
    assert f"about {len(found)} of" in many[1]
    _, listing = judged(capsys, "issues", source, *options)
    assert listing["number"] == len(found)
    page, sheet = tmp_path / "page.html", tmp_path / "sheet.csv"
    given = ("issues", source, *options)
    assert run(capsys, *given, "--html", page, "--out", tmp_path / "all.json")[0] == 0
    assert run(capsys, *given, "--to-check", "5", "--out", sheet)[0] == 0
    rows = rows_of(sheet)
    assert [row["crp"] for row in rows] == [expected_crp(folder, row["row"]) for row in rows]
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([{**row, "right": "yes"} for row in rows])
    _, checked = judged(capsys, *given, "--checked", sheet)
    assert checked["num_checked"] == 5
    assert checked["schema"] == "jgram/issues/1"


def expected_crp(folder, row):  # rows as a spreadsheet numbers them
    return pq.read_table(folder / "one.parquet")["crp"][int(row) - 2].as_py()


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
    expected = count_files(files, reading)
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

        found = count_files(files, reading, map=killing)
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
