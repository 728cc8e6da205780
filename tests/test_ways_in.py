"""One answer whatever the way in: arrays, frames, meshes, files, folders, counts, streams."""

import csv
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv as pc
from pyarrow import parquet as pq

import jgram
from jgram import binding, load, schema
from jgram.cli import main, read
from jgram.cli.options import Asked
from jgram.data import Reading, count_files, to_data

ROOT, N = Path(__file__).parents[1], 900
pytestmark = pytest.mark.thorough


def visits() -> pa.Table:
    """Three reports, one with gaps and one renamed; numbers and categories, some with gaps."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, N)
    words = np.array(["cold", "flu", "well"], object)

    def noisy(share):
        return np.where(rng.random(N) < share, rng.integers(0, 3, N), truth)

    gaps = words[noisy(0.4)]
    gaps[rng.random(N) < 0.1] = None
    u, v = (rng.normal(size=(3, 2))[truth] * 2 + rng.normal(size=(N, 2))).T.round(3)
    return pa.table({
        "ann": words[noisy(0.1)], "gaps": gaps, "bob": words[(noisy(0.6) + 1) % 3],
        "crp": np.array([*"abc"], object)[noisy(0.3)],
        "level": truth + rng.normal(size=N), "u": u, "v": v,
        "ward": np.array(["p", "q", None], object)[np.arange(N) % 3],
        "holes": np.where(truth == 1, None, "x"),
        "copies": rng.integers(1, 4, N),
        "gold": np.where(np.arange(N) % 9 == 0, words[truth], None),
    })  # fmt: skip


TABLE = visits()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The table as one file and as many."""
    folder = tmp_path_factory.mktemp("visits")
    for name in ("many", "texts"):
        (folder / name).mkdir()
    for i in range(3):
        part = TABLE.slice(300 * i, 300)
        pq.write_table(part, folder / "many" / f"{i}.parquet")
        pc.write_csv(part, folder / "texts" / f"{i}.csv")
    pq.write_table(TABLE, folder / "one.parquet")
    pc.write_csv(TABLE, folder / "one.csv")
    return folder


WAYS = {"file": "one.parquet", "folder": "many", "glob": "texts/*.csv", "counted": "many"}


@pytest.fixture(params=WAYS)
def way(request, folder, monkeypatch):
    """A way in, and whether distinct records are counted there."""
    counted = request.param == "counted"
    if counted:
        monkeypatch.setattr(read, "LARGE_RECORDS", 500)
    return folder / WAYS[request.param], counted


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return caught.value.code, printed.out, printed.err


def judged(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert code in (0, 3), err
    found = json.loads(out)
    assert found["schema"] == type(load(out)).SCHEMA
    jsonschema.validate(found, schema(found["schema"].split("/")[1]))
    return found.pop("source"), found


def numbers(found, path=""):
    """Every number and text of a result, by where it stands."""
    if dataclasses.is_dataclass(found):
        found = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    if not isinstance(found, dict | tuple | list):
        return {path: found}
    parts = found.items() if isinstance(found, dict) else enumerate(found)
    return {key: x for name, part in parts for key, x in numbers(part, f"{path}.{name}").items()}


def assert_equal(one, two, rel=1e-12):
    one, two = numbers(one), numbers(two)
    assert list(one) == list(two)
    for path, value in one.items():
        if isinstance(value, float):
            tolerance = max(rel, 1e-9 * path.endswith(".bias"))
            assert value == pytest.approx(two[path], rel=tolerance, abs=max(rel / 20, 1e-13)), path
        else:
            assert value == two[path], path


# In memory ----------------------------------------------------------------------------------

ASKED = {"ann": TABLE["ann"].to_pylist(), "gaps": TABLE["gaps"].to_pylist()}


@pytest.fixture(scope="module")
def ranking():
    return jgram.rank_reports(ASKED, TABLE["crp"].to_pylist())


@pytest.mark.parametrize(
    "frame", [pa.table, pd.DataFrame, pl.DataFrame, pl.LazyFrame, "mesh", "folded", "bound", "file"]
)
def test_a_ranking_is_the_same_from_any_container(ranking, folder, monkeypatch, capsys, frame):
    reports, y = ASKED, {"crp": TABLE["crp"].to_pylist()}
    if frame == "file":
        line = ["--report", "ann", "--report", "gaps", "--observation", "crp"]
        assert_equal(judged(capsys, "rank", folder / "one.csv", *line)[1],
                     {"schema": "jgram/ranking/1", **to_data(ranking)})  # fmt: skip
        return
    if frame == "folded":
        monkeypatch.setattr(binding, "FOLDED", 0)
        bound = binding.bind(reports, y)
        assert bound.observed.size <= 3**2 * 4
        assert bound.weights.sum() == N
        found = jgram.rank_reports(reports, y)
    elif frame == "mesh":
        found = jgram.rank_reports(reports, y, mesh=jax.make_mesh((1,), ("records",)))
    elif frame == "bound":
        found = jgram.rank_reports(binding.bind(reports, y))
    else:
        found = jgram.rank_reports(frame(reports), frame(y))
    assert_equal(found, ranking)


def test_totals_beyond_32_bits(ranking, monkeypatch):
    monkeypatch.setattr(binding, "FOLDED", 0)
    y = TABLE["crp"].to_pylist()
    found = jgram.rank_reports(ASKED, y, weights=np.full(N, 10**8))
    assert found.num_records == N * 10**8
    for few, many in zip(ranking.reports, found.reports, strict=True):
        few, many = few.published, many.published
        assert many.log_score == pytest.approx(few.log_score, abs=1e-6)
        assert many.standard_error == pytest.approx(few.standard_error / 1e4, rel=1e-3)
    with pytest.raises(ValueError, match="got 'well' in row"):
        jgram.score(ASKED["ann"], y, classes=["cold", "flu"])
    x_hat, total = np.array([0, 0, 1, 1]), np.full(4, 2**31)
    for weights in (total, total.astype(float)):
        found = jgram.plugin_score(x_hat, x_hat, "delta", num_classes=2, weights=weights)
        assert float(found) == pytest.approx(1 / 16)


def test_counts_of_as_many_classes_as_rows_are_no_identifiers():
    labels = [f"class {k}" for k in range(25)]
    assert jgram.score(labels, labels, weights=[1000] * 25).num_records == 25_000
    with pytest.raises(ValueError, match="every record is its own class"):
        jgram.score(labels, labels)


# By the command -----------------------------------------------------------------------------

RANK = ("--report", "ann", "--report", "gaps")


@pytest.mark.parametrize(
    ("options", "categories"),
    [
        ("crp --weight copies", True),
        ("level --bins 4 --missing drop", True),
        ("level", False),
        ("crp --order level --block-length 4", False),
        ("holes --observation crp", False),
    ],
)
def test_a_ranking_is_the_same_whatever_the_way_in(folder, capsys, way, options, categories):
    options = ("--observation", *options.split())
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
    notes = "\n".join(about["notes"])
    assert ("distinct records counted in" in notes) == (counted and categories)
    assert "quantiles of" in notes or not (counted and "--bins" in options)


@pytest.mark.parametrize(
    "options", ["", "--gold gold --weight copies", "--missing drop", "--scale standard"]
)
def test_a_stream_is_ranked_as_in_memory(folder, tmp_path, options, monkeypatch, capsys):
    monkeypatch.setattr(binding, "EXACT_RECORDS", 100)  # random features in memory, too
    monkeypatch.setattr(jgram.approximation, "MOST_FEATURES", 1024)
    asked = [*RANK, "--report", "bob", *["--observation", "u", "--observation", "v"],
             "--observation", "ward", *options.split()]  # fmt: skip
    _, known = judged(capsys, "rank", folder / "one.csv", *asked)
    for _ in range(2):  # the second time from what was kept
        kept = ("--checkpoint", tmp_path / "kept")
        _, found = judged(capsys, "rank", folder / "texts", *asked, *kept)
        assert len(list((tmp_path / "kept").iterdir())) == 9
        for part in ("pairs", "reports", "num_records", "observations"):
            assert_equal(found[part], known[part], rel=2e-3)


REFUSED = {
    "score many crp --order level --checkpoint kept": ("--order", "no --checkpoint"),
    "score many level --difference --checkpoint kept": ("--difference", "the records"),
    "score many crp --kind crp=number --scheduler x:1": ("--kind", "no --scheduler"),
    "score many ann": ("distinct columns", "ann twice"),
    "score many nothing": ("0.parquet", "nothing"),
    "score many crp --bins 4": ("--bins", "numeric column"),
    "score many crp --bins 4 --checkpoint kept": ("--bins", "numeric column"),
    "rank many crp --report gaps --scheduler localhost:1": (
        "jgram: --scheduler takes Dask: pip install 'jgram[cluster]'",
    ),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused_is_refused_in_one_line(folder, capsys, monkeypatch, line):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    command, source, *options = line.split()
    given = (command, source, "--report", "ann", "--observation", *options)
    code, out, err = run(capsys, *given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert [word for word in REFUSED[line] if word not in err] == []
    assert not (folder / "kept").exists()


def test_what_cannot_be_streamed_is_refused(tmp_path, monkeypatch):
    texts = tmp_path / "texts"
    texts.mkdir()
    u = [*map(str, TABLE["u"].to_pylist()[:890]), "high"]
    pc.write_csv(TABLE.slice(0, 600), texts / "0.csv")
    part = TABLE.slice(600, 291)
    pc.write_csv(part.set_column(5, "u", pa.array(u[600:])), texts / "1.csv")
    for reports, y, intake, words in (
        (["ann", "gaps"], ["v"], jgram.Intake(block_length=3), "no groups="),
        (["ann", "gaps"], ["u"], jgram.Intake(), "1.csv: u: expected numbers, got 'high' in row 2"),
    ):
        monkeypatch.setattr(binding, "DRAWN", 90)
        with pytest.raises(ValueError, match=re.escape(words)):
            jgram.bind_files(texts, reports, y, intake)
    with pytest.raises(ValueError, match="no y="):
        jgram.score(jgram.bind_files(texts, ["ann"], ["v"]), TABLE["v"])


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_issues_are_the_same_whatever_the_way_in(folder, capsys, tmp_path, way):
    options = ("--report", "gaps", "--observation", "crp")
    one = run(capsys, "issues", folder / "one.csv", *options, "--out", tmp_path / "one.csv")
    source, counted = way
    given, out = ("issues", source, *options), tmp_path / "many.csv"
    many = run(capsys, *given, "--out", out)
    assert one[0] == many[0] == 0, many[2]
    expected = {int(row["row"]): row for row in rows_of(tmp_path / "one.csv")}
    found = rows_of(out)
    assert len(found) == len(expected) > 40
    for row in found:
        same = expected[int(row["row"])]
        for name in ("label", "suggested", "crp"):
            assert row[name] == same[name]
        assert float(row["wrong"]) == pytest.approx(float(same["wrong"]), rel=1e-7)
        assert not counted or Path(row["file"]).stem == str((int(row["row"]) - 2) // 300)
    assert f"about {len(found)} of" in many[1]
    assert judged(capsys, *given)[1]["number"] == len(found)
    page, sheet = tmp_path / "page.html", tmp_path / "sheet.csv"
    assert run(capsys, *given, "--html", page, "--out", tmp_path / "all.json")[0] == 0
    assert run(capsys, *given, "--to-check", "5", "--out", sheet)[0] == 0
    rows = rows_of(sheet)
    for row in rows:  # as a spreadsheet numbers them
        assert row["crp"] == TABLE["crp"][int(row["row"]) - 2].as_py()
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([{**row, "right": "yes"} for row in rows])
    assert judged(capsys, *given, "--checked", sheet)[1]["num_checked"] == 5


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
    assert_equal(judged(capsys, "annotators", tmp_path / "many")[1], expected)


# Interrupted --------------------------------------------------------------------------------

SLOW = """
import sys, time
from jgram.data import counting
plain = counting._count
def slow(path, reading):
    time.sleep(0.0 if path.stem == "0" else {})
    return plain(path, reading)
counting._count = slow
from jgram.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupted_command_goes_on(folder, tmp_path, end, code):
    arguments = [
        "score", str(folder / "many"), "--report", "ann", "--observation", "crp", "--json",
        "--checkpoint", str(tmp_path / "kept"),
    ]  # fmt: skip

    def start(seconds):
        return subprocess.Popen(
            [sys.executable, "-c", SLOW.format(seconds), *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
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
    (kept,) = (tmp_path / "kept").iterdir()
    process = start(0)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["num_records"] == N
    assert len(list((tmp_path / "kept").iterdir())) == 3
    assert kept.exists()


def test_a_dask_worker_that_is_killed_changes_nothing(folder, capsys):
    distributed = pytest.importorskip("dask.distributed")
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
        line = (*RANK, "--observation", "crp", "--scheduler", cluster.scheduler_address)
        assert judged(capsys, "rank", folder / "many", *line)[1]["num_records"] == N


def slowly(function, item):
    time.sleep(0.2)
    return function(item)


def test_records_put_in_order_of_time_keep_their_rows_blank_ones_counted(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("ann,x,day\na,1.5,3\n\nb,2.5,2\na,3.5,1\n")
    asked = Asked(file=path, observation=["x"])
    found = read.read_records(asked, ["ann"], print, order="day")
    assert found.rows.tolist() == [3, 2, 0]
    assert found.columns["ann"].values.tolist() == ["a", "b", "a"]
    assert found.columns["x"].rows.tolist() == [5, 4, 2]
