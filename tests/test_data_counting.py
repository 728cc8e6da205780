"""Files of any size: the same records as by the reader of one file, whatever their edges."""

import dataclasses
import datetime
import gzip
import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc
from pyarrow import parquet as pq

from jgram.counted import count, merge, representatives
from jgram.data import count_batches, count_files, counting, delimited, list_files, read_columns
from jgram.data.columns import column
from jgram.data.counting import quantile_edges
from jgram.data.files import Reading
from tests.refusals import refused

ROOT = Path(__file__).parents[1]
THOROUGH = pytest.mark.thorough


def rows_of(columns):
    """Records of columns of any container, ``None`` where missing, as classes are named."""
    given = (column(data, name) for name, data in columns.items())
    parts = [np.array([*one.factors[0], None], object)[one.codes] for one in given]
    return list(zip(*parts, strict=True))


def counted(found):
    rows = rows_of(found.table())
    return dict(zip(rows, found.counts.tolist(), strict=True))


def typed_table(n=90):
    rng = np.random.default_rng(0)

    def gaps(values):
        return [None if rng.random() < 0.1 else x for x in values]

    days = [datetime.date(2024, 1, int(k)) for k in rng.integers(1, 4, n)]
    return pa.table(
        {
            "text": gaps(rng.choice(["a", "b", "é"], n)),
            "whole": gaps(rng.integers(-2, 3, n).tolist()),
            "large": pa.array(rng.integers(2**40, 2**40 + 3, n)),
            "float": gaps((rng.integers(0, 3, n) * 1.0).tolist()),
            "bool": gaps((rng.random(n) < 0.5).tolist()),
            "day": days,
            "category": pa.array(gaps(rng.choice(["x", "y"], n))).dictionary_encode(),
        }
    )


def write_parts(table, folder, cuts, suffix=".parquet", group=7):
    folder.mkdir(exist_ok=True)
    for i, (start, stop) in enumerate(itertools.pairwise([0, *cuts, len(table)])):
        part, path = table.slice(start, stop - start), folder / f"part-{i}{suffix}"
        if suffix == ".parquet":
            pq.write_table(part, path, row_group_size=group)
        else:
            with ipc.new_file(path, part.schema) as writer:
                writer.write_table(part.combine_chunks(), max_chunksize=11)
    return folder


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_folder_holds_the_records_of_the_file(tmp_path, suffix):
    table = typed_table()
    path = tmp_path / f"whole{suffix}"
    write_parts(table, tmp_path / "one", [], suffix)
    (tmp_path / "one" / f"part-0{suffix}").rename(path)
    expected = Counter(rows_of(read_columns(path)))
    folder = write_parts(table, tmp_path / "many", [10, 10, 70], suffix)  # an empty file too
    names = tuple(table.column_names)
    for source in (path, folder, f"{folder}/*{suffix}"):
        assert counted(count_files(source, Reading(names))) == expected
    if suffix == ".arrow":  # Parquet has none
        runs = pa.RunEndEncodedArray.from_arrays([40, 90], ["u", "v"])
        encoded = write_parts(pa.table({"run": runs}), tmp_path / "runs", [50], suffix)
        assert counted(count_files(encoded, Reading(("run",)))) == {("u",): 40, ("v",): 50}
    np.savez(tmp_path / "one.npz", run=np.array([1.0, np.nan, 1.0]))
    found = count_files(tmp_path / "one.npz", Reading(("run",)))
    assert counted(found) == {(1,): 2, (None,): 1}
    table = table.drop_columns(["text"]).set_column(1, "large", table["large"].cast(pa.uint64()))
    found = count_batches(table.to_batches(13), ["large", "whole"])
    assert sum(counted(found).values()) == 90


TEXTS = {
    "plain": "x,y\na,1\nb,2\na,1\n,2\nNA,NA\n",
    "codes": "x,y\n007,1\n012,2\n007,1.5\n",
    "late": "x,y\n" + "1,a\n" * 9 + "2,b\n" + "1,a\n" * 9 + "late,c\n",
    "quoted": 'x,y\n"a, b", 1\n a,"1"\n\n"c\nd",2\n',
    "decimals": "x;y\n1,5;a\n2,5;b\n1,5;a\n",
    "marks": "x,y\nskip,1\na,-\nb,2\n",
    "unicode": "x,y\né,1\ne\u2028f,2\n",
}
OPTIONS = {"decimals": {"decimal": ","}, "marks": {"missing_values": ("skip",)}}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("how", ["plain", "gzip", "utf-16"])
def test_text_means_what_it_means_in_one_file(tmp_path, monkeypatch, name, how):
    monkeypatch.setattr(delimited, "_ROWS", 3)
    header, *lines = TEXTS[name].splitlines(keepends=True)
    cut = len(lines) // 2 if name != "quoted" else 2
    parts = [lines[:cut], lines[cut:]]
    (tmp_path / "many").mkdir()

    def write(path, text):
        data = text.encode("utf-16" if how == "utf-16" else "utf-8")
        if how == "gzip":
            path, data = path.with_name(path.name + ".gz"), gzip.compress(data)
        path.write_bytes(data)
        return path

    whole = write(tmp_path / "whole.csv", TEXTS[name])
    for i, part in enumerate(parts):
        write(tmp_path / "many" / f"{i}.csv", header + "".join(part))
    options = OPTIONS.get(name, {})
    expected = Counter(rows_of(read_columns(whole, ["y", "x"], **options)))
    for source in (whole, tmp_path / "many"):
        found = count_files(source, Reading(("y", "x"), **options))
        assert counted(found) == expected
        long = read_columns(source, ["y", "x"], **options)
        assert rows_of(long) == rows_of(read_columns(whole, ["y", "x"], **options))


def test_records_that_lack_a_value_go_if_they_are_to(tmp_path):
    folder = write_parts(typed_table(), tmp_path / "many", [40])
    found = count_files(folder, Reading(("text", "whole"), drop=True))
    every = count_files(folder, Reading(("text", "whole")))
    expected = {row: n for row, n in counted(every).items() if None not in row}
    assert counted(found) == expected
    assert found.dropped == 90 - sum(expected.values())


def one_column(folder, name, values, column_name="x"):
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({column_name: values}), folder / name)


def test_what_cannot_be_counted_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "MOST_DISTINCT", 50)
    one_column(tmp_path / "mixed", "a.parquet", [1])
    (tmp_path / "mixed" / "b.csv").write_text("x\n1\n")
    one_column(tmp_path / "lacking", "a.parquet", ["u"])
    one_column(tmp_path / "lacking", "b.parquet", ["u"], "z")
    one_column(tmp_path / "types", "a.parquet", [1])
    one_column(tmp_path / "types", "b.parquet", ["1"])
    one_column(tmp_path / "lists", "a.parquet", [[1, 2]])
    one_column(tmp_path / "ids", "a.parquet", list(range(100)))
    (tmp_path / "void.csv").write_text("x,y\n")
    (tmp_path / "empty").mkdir()
    for name, *words in (
        ("empty", "empty", "got none"),
        ("*.parquet", "files that match, got none"),
        ("mixed", "a.parquet and b.csv", "one format"),
        ("lacking", "b.parquet", "column 'x'"),
        ("types", "x: expected values of one type", "1 and '1'"),
        ("void.csv", "at least one record"),
        ("lists", "a.parquet: x: expected one value a record, got list"),
        ("ids", "x: expected categories that repeat", "--bins"),
    ):
        message = refused(count_files, str(tmp_path / name), Reading(("x",)))
        assert [word for word in words if word not in message] == [], message
    with pytest.raises(FileNotFoundError):
        count_files(tmp_path / "nowhere.csv", Reading(("x",)))


def test_folders_are_read_in_depth_without_hidden_files(tmp_path):
    for name in ("b/2.parquet", "a/1.parquet", "_SUCCESS", ".hidden/3.parquet", "a/note.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [path.name for path in list_files(tmp_path)] == ["1.parquet", "2.parquet"]


@pytest.mark.parametrize("way", ["threads", "futures", pytest.param("processes", marks=THOROUGH)])
def test_any_map_counts_alike(tmp_path, way):
    folder = write_parts(typed_table(), tmp_path / "many", [20, 50])
    reading, done = Reading(("text", "bool")), []
    expected = counted(count_files(folder, reading))
    with (ProcessPoolExecutor if way == "processes" else ThreadPoolExecutor)(2) as pool:
        futures = lambda f, items: [pool.submit(f, item) for item in items]  # noqa: E731
        mapped = futures if way == "futures" else pool.map
        found = count_files(folder, reading, map=mapped, progress=lambda *both: done.append(both))
    assert counted(found) == expected
    assert done == [(1, 3), (2, 3), (3, 3)]


def test_buckets_are_cut_at_quantiles_of_a_uniform_sample(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=3000), "word": ["a"] * 3000})
    folder = write_parts(table, tmp_path / "many", [100, 2000], group=800)
    (tmp_path / "text.csv").write_text("x,word\n" + "".join(f"{x},a\n" for x in table["x"]))
    reading, bins = Reading(("x", "word")), {"x": 4, "word": 4}
    expected = np.quantile(table["x"], [0.25, 0.5, 0.75])
    for source in (folder, tmp_path / "text.csv"):
        edges, size = quantile_edges(source, bins, reading)
        assert (list(edges), size) == (["x"], 3000)
        np.testing.assert_allclose(edges["x"], expected, rtol=1e-12)
        found = count_files(source, Reading(("x", "word"), edges=edges))
        assert counted(found) == {(k, "a"): 750 for k in range(4)}
    monkeypatch.setattr(counting, "SAMPLED", 200)
    once, size = quantile_edges(folder, bins, reading)
    assert size == 200
    assert once == quantile_edges(folder, bins, reading)[0]
    assert once != quantile_edges(folder, bins, reading, seed=1)[0]
    medians = [quantile_edges(folder, {"x": 2}, reading, seed=s)[0]["x"][0] for s in range(40)]
    # Of a uniform sample of 200 the median errs by 1.25 / sqrt(200) = .09.
    assert abs(np.mean(medians) - expected[1]) < 0.05
    assert 0.05 < np.std(medians) < 0.13


def test_buckets_hold_no_gaps(tmp_path):
    one_column(tmp_path / "gaps", "a.parquet", [1.0, None, 2.0, 3.0])
    how = {"names": ("x",), "edges": {"x": (1.5,)}}
    message = refused(count_files, tmp_path / "gaps", Reading(**how))
    assert "a.parquet: x: 1 values missing" in message
    assert counted(count_files(tmp_path / "gaps", Reading(**how, drop=True))) == {(0,): 1, (1,): 2}


# Killed runs ------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from jgram.data import Reading, count_files
def dying(function, items):
    for i, item in enumerate(items):
        if i == 2:
            {}
        yield function(item)
count_files(sys.argv[1], Reading(("text", "whole", "day")), map=dying, checkpoint=sys.argv[2])
"""


def run_killed(end, *arguments):
    return subprocess.run(
        [sys.executable, "-c", KILLED.format(end), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_killed_run_goes_on(tmp_path):
    folder, kept = write_parts(typed_table(), tmp_path / "many", [20, 50, 60]), tmp_path / "kept"
    reading = Reading(("text", "whole", "day"))
    expected = counted(count_files(folder, reading))
    died = run_killed("os.kill(os.getpid(), signal.SIGKILL)", folder, kept)
    assert died.returncode == -signal.SIGKILL
    (kept / ".mine.arrow").write_bytes(b"not jgram's")
    assert len(list(kept.glob("[!.]*.arrow"))) == 2
    counted_now = []

    def noting(function, items):
        for item in items:
            counted_now.append(item.name)
            yield function(item)

    found = count_files(folder, reading, map=noting, checkpoint=kept)
    assert counted(found) == expected
    assert counted_now == ["part-2.parquet", "part-3.parquet"]
    assert (kept / ".mine.arrow").exists()
    # What is corrupt, foreign, or of a file that changed, is counted anew.
    files = [folder / f"part-{i}.parquet" for i in range(4)]
    places = [counting._place(kept, counting._identity(path, reading)) for path in files]
    places[0].write_bytes(places[0].read_bytes()[:-30])
    places[1].write_bytes(places[3].read_bytes())
    os.utime(folder / "part-2.parquet", (1, 1))
    counted_now.clear()
    found = count_files(folder, reading, map=noting, checkpoint=kept)
    assert counted(found) == expected
    assert counted_now == [f"part-{i}.parquet" for i in range(3)]
    counted_now.clear()
    count_files(folder, Reading(("text", "whole")), map=noting, checkpoint=kept)
    assert len(counted_now) == 4
    (tmp_path / "file").write_text("")
    message = refused(count_files, folder, reading, checkpoint=tmp_path / "file")
    assert "expected a folder for checkpoints" in message


@pytest.mark.parametrize("flips", [300, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_no_checkpoint_with_a_flipped_bit_is_believed(tmp_path, flips):
    folder, kept = write_parts(typed_table(), tmp_path / "many", []), tmp_path / "kept"
    reading, rng = Reading(("text", "whole", "day")), np.random.default_rng(0)
    count_files(folder, reading, checkpoint=kept)
    (path,), (place,) = folder.iterdir(), kept.iterdir()
    data = place.read_bytes()
    identity = counting._identity(path, reading)
    assert counting._kept(kept, identity) is not None
    for _ in range(flips):
        flipped = bytearray(data)
        flipped[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        place.write_bytes(flipped)
        assert counting._kept(kept, identity) is None


def test_a_file_that_grows_while_it_is_counted_is_refused_and_not_kept(tmp_path, monkeypatch):
    path, kept = tmp_path / "log.csv", tmp_path / "kept"
    path.write_text("x\n" + "a\n" * 9)
    plain = counting.batches

    def growing(path, reading, **how):
        yield from plain(path, reading, **how)
        with path.open("a") as file:
            file.write("b\n")

    with monkeypatch.context() as patched:
        patched.setattr(counting, "batches", growing)
        with pytest.raises(ValueError, match=r"log\.csv: changed while it was read"):
            count_files(path, Reading(("x",)), checkpoint=kept)
    assert list(kept.iterdir()) == []
    found = count_files(path, Reading(("x",)), checkpoint=kept)
    assert counted(found) == {("a",): 9, ("b",): 1}


def test_a_cluster_without_workers_is_not_waited_for(tmp_path, monkeypatch):
    distributed = pytest.importorskip("dask.distributed")
    monkeypatch.setattr(counting, "PATIENCE", 0.6)
    folder = write_parts(typed_table(), tmp_path / "many", [20, 50])
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        reading = Reading(("text", "bool"))
        found = count_files(folder, reading, map=client.map)
        assert counted(found) == counted(count_files(folder, reading))
        cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.01)
        with pytest.raises(ValueError, match=r"expected workers to count files.*--checkpoint"):
            count_files(folder, Reading(("text",)), map=client.map)


def test_a_full_disk_leaves_no_half_checkpoint(tmp_path):
    folder, kept = write_parts(typed_table(), tmp_path / "many", [20, 50, 60]), tmp_path / "kept"
    full = (
        "import resource, signal as s; s.signal(s.SIGXFSZ, s.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    )
    died = run_killed(full, folder, kept)
    assert died.returncode == 1
    assert "OSError" in died.stderr.splitlines()[-1]
    assert len(list(kept.iterdir())) == 2


@pytest.mark.thorough
def test_the_page_shows_a_query_of_duckdb_that_runs(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    table = typed_table().select(["text", "bool", "category"])
    table = table.rename_columns(["doctor", "coder", "crp"])
    folder = write_parts(table, tmp_path / "visits", [20, 50])
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "bench" / "SCALE.md").read_text()
    (code,) = (part for part in page.split("```")[1::2] if "import duckdb" in part)
    found: dict = {}
    exec(code.removeprefix("python"), found)
    expected = count_files(folder, Reading(("doctor", "coder", "crp")))
    assert counted(found["counted"]) == counted(expected)


def test_what_was_kept_under_one_encoding_is_not_that_of_another(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a\nß\nü\n".encode("cp1252"))
    for encoding, names in (("cp1252", ("ß", "ü")), ("cp1251", ("Я", "ь"))):
        reading = Reading(("a",), encoding=encoding)
        assert count_files(path, reading, checkpoint=tmp_path / "kept").labels == {"a": names}


# Distinct records -------------------------------------------------------------------------------


def part(rows):
    """Distinct rows of labels, each part with a vocabulary of its own, in order of appearance."""
    columns = {}
    for j, cells in enumerate(zip(*rows, strict=True)):
        vocabulary = list(dict.fromkeys(x for x in cells if x is not None))
        columns[f"c{j}"] = vocabulary, [-1 if x is None else vocabulary.index(x) for x in cells]
    return count(columns)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    columns = [rng.choice([*"abcd", None], 300), rng.choice([*"xyz"], 300), rng.integers(0, 3, 300)]
    return [tuple(row) for row in np.stack(columns, axis=1).astype(object)]


def test_counted_are_the_distinct_rows(rows):
    found = part(rows)
    assert counted(found) == Counter(rows)
    assert found.codes.tolist() == sorted(found.codes.tolist())


def test_merging_is_by_label_associative_and_commutative(rows):
    parts = [part(rows[:50]), part(rows[50:90]), part(rows[90:])]
    whole = Counter(rows)
    for one, two, three in itertools.permutations(parts):
        assert counted(merge([merge([one, two]), three])) == whole
        assert counted(merge([one, merge([two, three])])) == whole
        assert counted(merge([one, two, three])) == whole


def test_counts_beyond_32_bits_are_exact():
    one = part([("a", 1)])
    large = dataclasses.replace(one, counts=np.array([2**53 - 1]))
    both = merge([large, one])
    assert both.num_records == 2**53
    assert both.counts.dtype == np.int64


@pytest.mark.parametrize("sizes", [(3, 4), (3000, 4000), (2**31, 2**31, 5)])
def test_all_ways_to_fold_agree(sizes):
    rng = np.random.default_rng(1)
    codes = [rng.choice(np.array([-1, 0, 2, size - 1]), 500) for size in sizes]
    expected = Counter(zip(*(column.tolist() for column in codes), strict=True))
    kept = representatives(codes, sizes)
    table = np.stack(codes, axis=1)
    assert np.array_equal(table[kept.first][kept.place], table)
    assert (np.diff(kept.first) > 0).all()
    assert len(kept.first) == len(expected)
