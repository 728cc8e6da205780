"""The command line: what it prints, the one line it refuses with, and its exit codes."""

import json
import re
from collections import Counter
from datetime import date, timedelta
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet as pq

from jgram import kernels, load
from jgram.data import read_columns
from tests.components import Cosine
from tests.conftest import fill_in, rows_of, write_table
from tests.test_cli_process import MAIN, run_python

ROOT = Path(__file__).parents[1]
FLIPPED = [5, 77, 201]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of files: 240 visits, a good and a bad report of them, two observations."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 3, 240)
    words = np.array(["cold", "flu", "[well]"])

    def noisy(share):
        return np.where(rng.random(240) < share, rng.integers(0, 3, 240), truth)

    columns = {
        "good": words[truth],
        "bad": words[noisy(0.6)],
        "coin": words[rng.integers(0, 3, 240)],
        "dice": words[rng.integers(0, 3, 240)],
        "same": np.full(240, "flu"),
        "symptom": np.array(["ache", "cough", "well"])[noisy(0.2)],
        "level": np.round(truth + rng.normal(0, 0.3, 240), 4),
        "flat": np.full(240, 5),
        "gaps": np.where(np.arange(240) % 4 == 0, "", "1"),
        "rain": np.where(truth == 2, 0.0, rng.random(240)).round(3),
        "pay": [f"{x:,}" for x in rng.integers(1000, 9999, 240)],
        "flipped": words[np.where(np.isin(np.arange(240), FLIPPED), (truth + 1) % 3, truth)],
        "holes": np.where(np.arange(240) % 10 == 3, "", words[truth]),
    }
    write_table(folder / "visits.csv", columns)
    (folder / "few.csv").write_text("good,symptom\na,x\nb,y\nc,z\n")
    rows = ["x;x;1,5", "y;y;3,5", "x;y;1,5", "y;y;3,5"]
    (folder / "comma.csv").write_text("\n".join(["a;b;c", *rows]))
    nested = {"label": ["a", "b"] * 5, "struct": [{"x": 1}] * 10}
    nested["map"] = pa.array([[("x", 1)]] * 10, pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table(nested), folder / "nested.parquet")
    labels = np.arange(300) % 10
    np.savez(folder / "images.npz", labels=labels, flipped=np.roll(labels, 150),
             embedding=rng.normal(size=(300, 8)) + labels[:, None])  # fmt: skip
    wrong = rng.random((300, 5)) < np.array([0.02, 0.1, 0.2, 0.3, 0.4])
    alike = rng.random((300, 5)) < 0.2
    truth = rng.integers(0, 2, (300, 1))
    answers = np.where(wrong, 1 - truth, truth)
    np.savez(folder / "matrix.npz", answers=answers, alike=np.where(alike, 1 - truth, truth))
    names = ["ann", "bob", "cyd", "dan", "eve"]
    lines = [f"{i},{names[a]},{'yes' if x else 'no'}" for (i, a), x in np.ndenumerate(answers)]
    (folder / "answers.csv").write_text("\n".join(["item,who,label", *lines]))
    lines = ["item,annotator,label"]
    for i in range(60):
        lines += [f"{i},{who},{'yes' if i % 2 else 'no'}" for who in ("ann", "bob")]
        lines += [f"{i},cyd,{'yes' if i % 2 else 'skip'}", f"{i},dan,{'no' if i % 3 else 'yes'}"]
    (folder / "votes.csv").write_text("\n".join(lines))
    (folder / "twofold.csv").write_text("\n".join([*lines, "0,dan,no"]))
    return folder


@pytest.mark.thorough
def test_quiet_says_nothing_but_why_there_is_no_answer(jgram, folder):
    line = "rank visits.csv --report good --report bad --observation symptom --quiet"
    result = jgram(f"{line} --html quiet.html")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (folder / "quiet.html").read_text().startswith("<!doctype html>")
    line = "rank visits.csv --report coin --report dice --observation symptom"
    said = "The data cannot tell any of these reports from noise."
    assert jgram(f"{line} --quiet") == (3, "", f"jgram: {said}\n")
    result = jgram(line)
    assert result.exit_code == 3
    assert said in result.stdout
    assert row_of(result, "coin").split()[1:3] == ["not", "estimable"]
    result = jgram(f"{line} --json")
    assert (result.exit_code, result.stderr) == (3, f"jgram: {said}\n")
    assert strict(result.stdout)["separated"] is False
    result = jgram("rank visits.csv --report same --report good --observation symptom")
    assert result.exit_code == 0
    assert "no score" in result.stdout
    assert "good is the most reliable; same cannot be told from noise." in result.stdout


def strict(text: str):
    """Parsed JSON that holds neither NaN nor Infinity, and is what its schema says."""

    def refuse(constant):
        raise AssertionError(constant)

    record = json.loads(text, parse_constant=refuse)
    jsonschema.validate(record, load_schema(record["schema"].split("/")[1]))
    assert load(record)
    return record


@lru_cache
def load_schema(name):
    """As a program without jgram reads it."""
    return json.loads((ROOT / "jgram" / "schemas" / f"{name}.json").read_text())


# Answers ------------------------------------------------------------------------------------


def test_rank_puts_the_better_report_first(jgram):
    result = jgram("rank visits.csv --report bad --report good --observation symptom")
    assert result.exit_code == 0, result.stderr
    assert "240 records, 3 classes, observed through symptom\n" in result.stdout
    assert "observations: 3 outcomes; kernel delta(num_outcomes=3)" in result.stdout
    for head in ("keeps of the best", "95% interval", "rank", "p of", "published log"):
        assert head in result.stdout
    good, bad = (row_of(result, name) for name in ("good", "bad"))
    assert result.stdout.index(good) < result.stdout.index(bad)
    assert re.fullmatch(r"good +100% +1 +<.001 +-\d+\.\d\d ± \d\.\d\d", good)
    assert re.fullmatch(r"bad +\d+% \[\d+%, \d+%\] +2 +<.001 +-\d+\.\d\d ± \d\.\d\d", bad)
    assert "good is the most reliable." in result.stdout
    assert "'keeps': how far a report's labels go with what was observed" in result.stdout
    assert "counts" not in result.stdout


def row_of(result, name):
    """The row of a report in the table."""
    return next(line for line in result.stdout.splitlines() if line.startswith(f"{name} "))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [("rbf", "rbf(bandwidth="), ("linear", "linear"), ("", "rbf of 2 views of the table")],
)
def test_rank_by_numbers(jgram, kernel, expected):
    line = "rank visits.csv --report bad --report good --observation level --json"
    line += " --observation rain --observation flat" * (kernel == "linear")
    result = jgram(line + f" --kernel {kernel}" * bool(kernel))
    record = strict(result.stdout)
    assert result.exit_code == (0 if record["told"] else 3), result.stderr
    good, bad = record["reports"]
    assert (good["name"], bad["name"]) == ("good", "bad")
    assert good["published"]["kernel"].startswith(expected)
    assert bad["keeps_interval"][0] < 0.4 < bad["keeps_interval"][1]


def test_bandwidth_and_seed_are_used(jgram):
    line = "rank visits.csv --report bad --report good --observation level --json --bandwidth 2"
    one, other = (strict(jgram(f"{line} --seed {seed}").stdout) for seed in (0, 1))
    assert one["reports"][0]["published"]["kernel"] == "rbf(bandwidth=2)"
    assert one["pairs"][0]["retention_interval"] == other["pairs"][0]["retention_interval"]
    assert one["reports"][1]["keeps_interval"] != other["reports"][1]["keeps_interval"]


@pytest.mark.thorough
def test_a_new_kernel_is_one_row_of_the_library(jgram, monkeypatch):
    monkeypatch.setattr(kernels, "KERNELS", MappingProxyType({**kernels.KERNELS, "Cos": Cosine()}))
    line = "score visits.csv --report good --observation level --observation rain --kernel "
    assert "kernel Cosine" in jgram(line + "Cos").stdout
    assert "rbf, Cos, got 'gauss'" in jgram(line + "gauss").stderr


def test_score_says_what_the_number_is_worth(jgram):
    line = "score visits.csv --report good --observation symptom"
    result = jgram(line)
    assert result.exit_code == 0
    for words in (
        "published log", "normalised score 0.", "records of each class: [well] ",
        "the observations show 2.0 ", "of the 2 ways in which the classes differ; p of noise ",
    ):  # fmt: skip
        assert words in result.stdout
    record = strict(jgram(f"{line} --json").stdout)
    assert record["gram_rank"] == record["num_classes"] == 3
    assert set(record["class_counts"]) == {"cold", "flu", "[well]"}
    assert "counts" in jgram(f"{line} --counts-scale").stdout
    assert "rare class" in jgram("score few.csv --report good --observation symptom").stdout


# Options ------------------------------------------------------------------------------------

HOLES = "rank visits.csv --report holes --report bad --observation symptom --missing"


@pytest.mark.thorough
def test_missing_labels_are_kept_dropped_or_refused(jgram):
    kept, dropped = (strict(jgram(f"{HOLES} {how} --json").stdout) for how in ("keep", "drop"))
    assert kept["source"]["notes"] == []
    assert dropped["source"]["notes"] == ["dropped 24 of 240 records that lack a value"]
    for found, sizes in ((kept, {"holes": 216, "bad": 240}), (dropped, {"holes": 216, "bad": 216})):
        labelled = {one["name"]: one["published"]["num_records"] for one in found["reports"]}
        assert labelled == sizes
    assert kept["pairs"][0]["num_records"] == 216
    assert kept["pairs"][0]["retention"] == pytest.approx(dropped["pairs"][0]["retention"])
    refused = jgram(f"{HOLES} raise")
    assert refused.exit_code == 2
    assert "24 of 240 labels missing" in refused.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("width", [40, 60, 80])
def test_narrow_terminals_show_all_numbers(jgram, monkeypatch, width):
    line = "rank visits.csv --report flipped --report bad --report good --observation symptom"
    whole = jgram(line).stdout
    monkeypatch.setattr("jgram.display.room", lambda: width)
    narrow = jgram(line).stdout
    table = [row for row in whole.splitlines() if row.startswith(("flipped ", "bad ", "good "))]
    numbers = re.findall(r"-?[\d.]+", " ".join(table))
    assert len(numbers) > 15
    assert Counter(numbers) <= Counter(re.findall(r"-?[\d.]+", narrow))
    rules = [row for row in narrow.splitlines() if row.startswith("─")]
    assert max(map(len, rules)) <= width
    assert len(rules) == {40: 4, 60: 2, 80: 2}[width]  # reports, and every kind of evidence


def test_an_abstention_is_a_class(jgram):
    line = "score visits.csv --report good --observation symptom --abstain [well] --json"
    record = strict(jgram(line).stdout)
    assert list(record["class_counts"]) == ["cold", "flu", "[well]"]
    assert jgram(line.replace("[well]", "pox")).exit_code == 3  # never reported


@pytest.mark.thorough
def test_weights_and_groups_are_columns(jgram):
    line = "rank visits.csv --report bad --report good --observation symptom --json"
    plain, weighted, grouped = (
        strict(jgram(line + more).stdout) for more in ("", " --weight flat", " --group rain")
    )
    assert weighted["num_records"] == 5 * plain["num_records"]
    assert weighted["pairs"][0]["p_value"] < plain["pairs"][0]["p_value"]
    assert grouped["pairs"][0]["p_value"] != plain["pairs"][0]["p_value"]
    assert "frequencies" not in jgram(line).stdout
    assert "expected numbers" in jgram(f"{line} --weight bad").stderr


@pytest.mark.thorough
def test_order_finds_a_block_length_of_its_own(jgram, folder):
    rng = np.random.default_rng(0)
    slow = np.repeat(rng.integers(0, 3, 12), 20)  # twelve spells of one state
    wrong = np.repeat(rng.random(24) < 0.4, 10)  # errors come in spells too
    reports = {"good": slow, "bad": np.where(wrong, (slow + 1) % 3, slow)}
    write_table(folder / "slow.csv", {"when": np.arange(240), **reports, "seen": slow})
    line = "rank slow.csv --report bad --report good --observation seen --kernel delta --json"
    plain, timed, ten = (
        strict(jgram(line + more).stdout)
        for more in ("", " --order when", " --order when --block-length 10")
    )
    assert plain["block_length"] == 1
    assert timed["block_length"] > 3
    assert ten["block_length"] == 10
    assert ten["pairs"][0]["p_value"] > plain["pairs"][0]["p_value"]
    shown = jgram(line.replace(" --json", " --order when --block-length 10")).stdout
    assert "records in order of time, judged in blocks of 10" in shown


@pytest.mark.thorough
def test_numbers_are_read_binned_and_differenced_as_is_told(jgram, folder):
    line = "score visits.csv --report good --observation"
    table = pd.read_csv(folder / "visits.csv")
    edges = ", ".join(f"{edge:g}" for edge in np.quantile(table["level"], [0.25, 0.5, 0.75]))
    comma = "rank comma.csv --report a --report b --observation c --observation-bins 2"
    for asked, words in (
        (f"{line} level --observation-bins 4", f"level: 4 bins, cut at {edges}\n"),
        (f"{line} level --observation-bins 4", "kernel delta(num_outcomes=4)"),
        ("score visits.csv --report level --observation rain --bins 3 --kernel rbf", "l: 3 bins"),
        (f"{line} level --observation flat --difference", "239 records"),
        (f"{line} level --observation flat", "flat is left out: it holds nothing but 5"),
        (f"{line} pay", "; read pay '"),
        (f"{line} pay --kernel rbf --thousands ,", "240 records"),
        (comma, "c: 2 bins, cut at 2.5\n"),
        (f"{comma} --decimal ,", "c: 2 bins, cut at 2.5\n"),
    ):
        assert words in jgram(asked).stdout, asked


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_plots_are_written(jgram, folder, suffix, start):
    line = "score visits.csv --report good --observation symptom"
    if suffix != "pdf":
        line = f"rank {line[6:]} --report bad --report same"
    result = jgram(f"{line} --plot it.{suffix}")
    assert f"written: it.{suffix}" in result.stdout
    assert (folder / f"it.{suffix}").read_bytes().startswith(start)


def test_annotators_are_ranked_by_their_peers(jgram, folder):
    line = "annotators answers.csv --annotator who --out annotators.csv --labels-out labels.csv"
    result = jgram(f"{line} --plot them.png")
    assert result.exit_code == 0, result.stderr
    assert "5 annotators, 2 classes" in result.stdout
    assert "ranked by log score: how well" in result.stdout
    assert "Of 5 annotators" in result.stdout
    rows, labels = (rows_of(folder / name) for name in ("annotators.csv", "labels.csv"))
    assert [row["annotator"] for row in rows] == ["ann", "bob", "cyd", "dan", "eve"]
    assert len(labels) == 300
    assert float(labels[0]["p(no)"]) + float(labels[0]["p(yes)"]) == pytest.approx(1.0)
    assert (folder / "them.png").stat().st_size > 1000
    record = strict(jgram("annotators matrix.npz --answers answers --json").stdout)
    assert [row["name"] for row in record["annotators"]] == [0, 1, 2, 3, 4]
    assert [row["log_score"]["value"] for row in record["annotators"]] == [
        pytest.approx(float(row["log_score"]), abs=1e-3) for row in rows
    ]
    assert record["separated"] is True
    by = strict(jgram("annotators answers.csv --annotator who --by accuracy --json").stdout)
    assert by["by"] == "accuracy"


def test_abstentions_and_repeats_of_annotators(jgram):
    shown = jgram("annotators votes.csv --abstain skip").stdout
    assert "only says 'yes'" in shown
    assert "coverage" in shown
    assert jgram("annotators twofold.csv --abstain skip").exit_code == 2
    assert jgram("annotators twofold.csv --abstain skip --repeats last").exit_code in (0, 3)


def test_answers_that_lack_a_value_are_counted(jgram, folder):
    rows = rows_of(folder / "answers.csv")
    rows[3]["label"] = rows[7]["who"] = ""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    write_table(folder / "lacking.csv", columns)
    found = jgram("annotators lacking.csv --annotator who")
    assert f"left out: 2 of {len(rows)} rows, which lack a value" in found.stderr
    refused = jgram("annotators lacking.csv --annotator who --missing raise")
    assert "1 of" in refused.stderr
    assert "missing" in refused.stderr


def test_annotators_alike_exit_3(jgram):
    result = jgram("annotators matrix.npz --answers alike --json")
    assert result.exit_code == 3
    assert result.stderr == f"jgram: {strict(result.stdout)['conclusion']}\n"
    assert "cannot tell" in jgram("annotators matrix.npz --answers alike").stdout


@pytest.fixture
def embedded(jgram, monkeypatch):
    """``jgram`` whose encoder finds the images a.png and b.png."""
    calls = []

    def embed_path(*args, **kwargs):
        calls.append((*args, kwargs))
        return np.array([[1, 2], [3, 4]], np.float32), ["a.png", "b.png"]

    def train_path(*args, tell, **kwargs):
        calls.append((*args, kwargs))

    monkeypatch.setattr("jgram.simclr.train.embed_path", embed_path)
    monkeypatch.setattr("jgram.simclr.train.train_path", train_path)
    return jgram, calls


def test_encode_with_a_trained_encoder(embedded):
    jgram, calls = embedded
    result = jgram("encode photos --checkpoint run --out photos.npz --resize")
    assert "2 embeddings of 2 numbers in photos.npz" in result.stdout
    assert calls == [(Path("photos"), Path("run"), {"features": False, "resize": True})]
    with np.load("photos.npz") as file:
        assert file["name"].tolist() == ["a.png", "b.png"]
        assert file["embedding"].tolist() == [[1, 2], [3, 4]]


def test_encode_trains_beside_what_it_writes_and_joins_labels(embedded):
    jgram, calls = embedded
    Path("labels.csv").write_text("file,ann,age\nb.png,fox,1\na.png,,2\nb.png,cat,\n")
    line = "encode photos --epochs 3 --out x.parquet --labels labels.csv --image-column file"
    result = jgram(line)
    assert result.exit_code == 0, result
    settings = {"epochs": 3, "size": 32, "seed": 0, "progress": True}
    assert calls[0] == (Path("photos"), Path("x.checkpoint"), settings)
    assert calls[1] == (Path("photos"), Path("x.checkpoint"), {"features": False, "resize": True})
    found = read_columns("x.parquet")
    assert np.asarray(found["embedding"]).tolist() == [[3, 4], [1, 2], [3, 4]]
    assert found["ann"].to_pylist() == ["fox", None, "cat"]
    assert found["age"].to_pylist() == [1, 2, None]


@pytest.mark.parametrize(
    ("options", "message"),
    {
        "--out a.npz": "expected --epochs 20 to train",
        "--epochs 2 --out a.csv": "an .npz or .parquet file",
        "--epochs 2 --out a.parquet --labels labels.csv": "--labels and --image-column together",
        "--epochs 2 --out a.npz --labels labels.csv --image-column file": "a .parquet file",
        "--epochs 2 --out a.parquet --labels labels.csv --image-column no": "'no': file, ann",
        "--epochs 2 --out a.parquet --labels labels.csv --image-column ann": "image 'fox' of row 2",
        "--epochs 2 --out a.parquet --labels x.csv --image-column file": "no column embedding",
    }.items(),
)
def test_encode_refuses(embedded, options, message):
    jgram, _ = embedded
    Path("labels.csv").write_text("file,ann\nb.png,fox\n")
    Path("x.csv").write_text("file,embedding\nb.png,1\n")
    result = jgram(f"encode photos {options}")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(Path().glob("a.*"))


# The data cannot tell -----------------------------------------------------------------------


def test_no_score_has_a_reason_and_exits_3(jgram):
    line = "score visits.csv --report good --observation flat --kernel delta"
    result = jgram(line)
    assert result.exit_code == 3
    assert "No score: 1 distinct outcome" in result.stdout
    assert "1 distinct outcome" in strict(jgram(f"{line} --json").stdout)["reason"]


# Refusals -----------------------------------------------------------------------------------

SCORE = "score visits.csv --report good --observation symptom"
REFUSALS = {
    "score visits.csv --report good --observation good": "distinct columns",
    "rank visits.csv --report good --report good --observation symptom": "distinct columns",
    "rank visits.csv --report good --observation symptom": "two or more",
    "score visits.csv --report good --report bad --observation symptom": "one --report",
    "score visits.csv --report good": "--observation",
    "score nothing.csv --report good --observation symptom": "nothing.csv: No such file",
    f"{SCORE} --kernel gauss": "pseudo-posterior",
    f"{SCORE} --kernel rbf": "symptom: expected numbers",
    f"{SCORE} --kind symptom=words": "=category",
    f"{SCORE} --kind symptm=ignore": "did you mean 'symptom'?",
    f"{SCORE} --weight nothing": "expected a column 'nothing'",
    f"{SCORE} --order level --block-length 200": "half of the records",
    "score visits.csv --report level --observation symptom --report-kind categories": "--bins 4",
    f"{SCORE} --bins 4": "--bins: expected a numeric column",
    f"{SCORE} --bins x": "--bins",
    "score visits.csv --report holes --observation level --missing drop --difference": "24 records",
    f"{SCORE} --kernel delta --bandwidth 2": "--bandwidth: expected the rbf kernel",
    f"{SCORE} --classes cold,flue,[well]": "did you mean 'flue'?",
    f"{SCORE} --block-length 0": "block-length",
    f"{SCORE} --block-length 12": "--order",
    f"{SCORE} --order when": "expected a column 'when'",
    f"{SCORE} --order holes": "values missing",
    f"{SCORE} --plot nowhere/picture.png": "there is no folder nowhere",
    f"{SCORE} --seed {10**30}": "--seed",
    f"{SCORE} --seed -1": "--seed",
    "score nested.parquet --report label --observation struct": "struct: expected one value",
    f"{SCORE} --separator ab": "separator",
    f"{SCORE} --colour": "--colour",
    "annotators answers.csv": "expected a column 'annotator'",
    "annotators answers.csv --annotator who --classes no": "'yes' in row",
    "annotators matrix.npz --answers answers --classes no,yes": "--classes",
    "annotators visits.csv --item good --annotator bad --label coin": "one answer an annotator",
    "annotators few.csv --item good --annotator symptom --label good": "distinct columns",
    "encode photos --checkpoint run --out photos.csv": "an .npz or .parquet file",
    "encode photos --checkpoint run --out photos.npz": "no such",
    "guess": "guess",
}


@pytest.mark.parametrize("line", REFUSALS)
def test_refusals_are_one_line_with_exit_code_2(jgram, line):
    result = jgram(line)
    assert result.exit_code == 2, result
    assert result.stdout == ""
    assert result.stderr.startswith("jgram: ")
    assert result.stderr.count("\n") == 1
    assert REFUSALS[line] in result.stderr


@pytest.mark.parametrize("form", ["", "%d.%m.%Y"])
def test_records_are_put_in_the_order_of_a_column(jgram, folder, form):
    lines = (folder / "visits.csv").read_text().splitlines()
    days = (date(2008, 1, 1) + timedelta(31 * i) for i in range(len(lines)))
    times = [f"{day:{form}}" if form else str(i) for i, day in enumerate(days)]
    numbered = [f"time,{lines[0]}", *map(",".join, zip(times, lines[1:], strict=False))]
    shuffled = [numbered[0], *np.random.default_rng(0).permutation(numbered[1:])]
    (folder / "ordered.csv").write_text("\n".join(numbered))
    (folder / "shuffled.csv").write_text("\n".join(shuffled))
    command = "score {}.csv --report good --observation level --order time --block-length 12 --json"
    command += " --bins 3 --kernel delta"
    records = [strict(jgram(command.format(name)).stdout) for name in ("ordered", "shuffled")]
    for record in records:
        record.pop("source")
    assert records[0] == records[1]
    found = strict(jgram(command.format("ordered").replace("--block-length 12", "")).stdout)
    assert found["score"] == records[0]["score"]


# Help, demo, processes ----------------------------------------------------------------------


@pytest.fixture
def examples(jgram, folder, tmp_path, monkeypatch):
    """The files that the examples in the help speak of."""
    visits = read_columns(folder / "visits.csv")
    column = {name: np.asarray(given).tolist() for name, given in visits.items()}.__getitem__
    tables = {
        "visits": {"diagnosis": column("good"), "doctor": column("good"), "coder": column("bad"),
                   "crp": column("level"), "temperature": column("rain"),
                   "clinic": ["north", "south"] * 120},
        "sheet": {"ann": column("good"), "bob": column("bad"), "model": column("flipped"),
                  "checked": [x if i % 6 == 0 else "" for i, x in enumerate(column("good"))],
                  **{name: column(part) for name, part in zip(
                      ("gpt", "claude", "mistral", "model_a", "model_b", "model_c"),
                      2 * ("good", "bad", "flipped"), strict=True)},
                  "text": [f"a note of {x} {i}" for i, x in enumerate(column("good"))]},
        "pilot": {"ann": column("good"), "bob": column("bad"), "crp": column("level")},
        "employment": {"month": range(240), "first": column("rain"), "final": column("level"),
                       "taxes": column("level")},
    }  # fmt: skip
    for name, columns in tables.items():
        write_table(tmp_path / f"{name}.csv", columns)
    text = (folder / "answers.csv").read_text().replace("item,who,label", "image,worker,answer")
    (tmp_path / "answers.csv").write_text(text)
    (tmp_path / "votes.csv").write_text((folder / "votes.csv").read_text())
    tasks = [{"id": i, "data": {}, "annotations": [
        {"completed_by": 3 + j, "result": [{"from_name": "kind", "value": {"choices": [choice]}}]}
        for j, choice in enumerate(("cat", "dog", "cat") if i % 2 else ("dog", "dog", "cat"))]}
        for i in range(20)]  # fmt: skip
    (tmp_path / "label-studio.json").write_text(json.dumps(tasks))
    (tmp_path / "answers.npz").write_bytes((folder / "matrix.npz").read_bytes())
    with np.load(folder / "images.npz") as images:
        np.savez(tmp_path / "labels.npz", answers=images["labels"], features=images["embedding"])
        count = len(images["labels"])
    (tmp_path / "photos").mkdir()
    for k in range(count):
        Image.new("L", (2, 2), k % 256).save(tmp_path / "photos" / f"{k:05}.png")
    place = [f"{k:05}.png" for k in range(count)]
    ann, bob = np.random.default_rng(0).integers(0, 2, (2, count))
    (tmp_path / "more").mkdir()
    write_table(tmp_path / "images.csv", {"file": place, "ann": ann, "bob": bob})
    points = np.random.default_rng(1).normal(size=(count, 3))
    monkeypatch.setattr("jgram.simclr.train.train_path", lambda *args, **_: None)
    monkeypatch.setattr("jgram.simclr.train.embed_path", lambda *args, **_: (points, place))
    monkeypatch.chdir(tmp_path)
    return jgram


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["score", "rank", "issues", "annotators", "plan", "encode"])
def test_the_examples_in_the_help_run(examples, command):
    text = import_module(f"jgram.cli.{command}").run.__doc__.replace("\\\n", " ")
    lines = re.findall(r"^ +jgram (.*)$", text, re.MULTILINE)
    assert lines
    for line in (line for line in lines if "--watch" not in line):  # which waits
        result = examples(line.replace("'", ""))
        lists = command == "rank" and "--report" not in line  # what columns there are
        assert result.exit_code in ((2,) if lists else (0, 3)), result
        if "--to-check" in line:  # somebody looks, and finds all of them right
            found = Path(line.split("--out ")[1])
            right = {"annotators": "label", "rank": "doctor"}.get(command)
            rows = rows_of(found)
            fill_in(found, rows, [row.get(right, "yes") for row in rows])


def test_rows_where_reports_differ_are_filled_in_and_settle_their_order(jgram, folder):
    line = "rank visits.csv --report good --report bad --observation symptom"
    assert jgram(f"{line} --to-check 30").exit_code == 2  # no file for them
    assert jgram(f"{line} --to-check 30 --out differ.csv").exit_code in (0, 3)
    rows, visits = (rows_of(folder / name) for name in ("differ.csv", "visits.csv"))
    assert list(rows[0])[:5] == ["row", "right", "good", "bad", "symptom"]
    assert len({row["row"] for row in rows}) == 30
    for row in rows:  # the header is row 1
        assert row["good"] == visits[int(row["row"]) - 2]["good"] != row["bad"]
    fill_in(folder / "said.csv", rows, [row["bad"] for row in rows])
    found = json.loads(jgram(f"{line} --checked said.csv --json").stdout)
    assert found["most_reliable"] == ["bad"]
    assert found["pairs"][0]["readings"][1]["kind"] == "checked records"
    refused = jgram(f"{line} --checked said.csv --gold same")
    assert "rows where reports differ" in refused.stderr


@pytest.mark.thorough
def test_rows_to_check_are_those_where_reports_differ_as_they_were_ranked(jgram, folder):
    """Names that are rare by rows are frequent by weight: they are not merged."""
    truth, row = np.array(["fever", "cold"] * 40), np.arange(80)
    other = np.where(row < 10, np.where(truth == "fever", "fevar", truth), truth)
    columns = {"a": truth, "b": other, "y": truth, "w": np.where(row < 10, 20, 1)}
    write_table(folder / "weighted.csv", columns)
    line = "rank weighted.csv --report a --report b --observation y --merge auto --weight w"
    assert jgram(f"{line} --to-check 5 --out weights.csv").exit_code in (0, 3)
    assert {one["b"] for one in rows_of(folder / "weights.csv")} == {"fevar"}
    line = "rank visits.csv --report level --report rain --observation symptom --to-check 5"
    assert "which all differ" in jgram(f"{line} --out numbers.csv").stderr


def test_the_bare_command_shows_help(jgram):
    result = jgram("")
    assert "rank" in result.stdout
    assert "jgram: " not in result.stderr


TABLE_1 = {"final": "33,918,976", "one_month_later": "24,920,064", "first": "3,504,384"}


@pytest.mark.thorough
def test_demo_cannot_tell_table_1_and_can_tell_labels_of_images(jgram, folder):
    example = re.search(r"jgram (demo.*)", import_module("jgram.cli.demo").run.__doc__)
    result = jgram(example[1])
    assert result.exit_code == 0
    for name, counts in TABLE_1.items():
        assert row_of(result, name).endswith(counts)
    assert "The data cannot tell" in result.stdout
    assert "0% replaced is the most reliable." in result.stdout
    for name in ("images.png", "images-employment.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert result.stdout.index("0% replaced") < result.stdout.index("Table 1")
    page = (folder / "demo.html").read_text(encoding="utf-8")
    assert "<h1>0% replaced is the most reliable.</h1>" in page
    assert page.count("<svg") == 2
    assert page.index("0% replaced") < page.index("employment figures") < page.index("cannot tell")
    record = strict(jgram("demo --json").stdout)
    assert record.pop("schema") == "jgram/demo/1"
    names = {part: [r["name"] for r in record[part]["reports"]] for part in record}
    assert sorted(names["employment"]) == sorted(TABLE_1)
    assert names["images"] == [f"{share}% replaced" for share in (0, 15, 30, 50)]


def test_a_missing_extra_is_one_line(folder):
    done = run_python(f"import sys; sys.modules['typer'] = None; {MAIN}", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == "jgram: the command needs typer: pip install 'jgram[cli]'\n"


@pytest.mark.thorough
def test_the_shell_alone_ranks_a_csv_file(folder):
    """What jgram[shell] has: neither frames, nor Arrow, nor pictures."""
    absent = ("pandas", "pyarrow", "narwhals", "matplotlib", "sklearn", "openpyxl")
    code = f"import sys; sys.modules |= dict.fromkeys({absent!r}); {MAIN}"
    line = "rank visits.csv --report good --report bad --observation symptom --by symptom"
    done = run_python(code, *line.split(), cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "good is the most reliable" in done.stdout
    done = run_python(code, *line.split(), "--html", "page.html", cwd=folder)
    assert done.stderr == "jgram: --html takes matplotlib: pip install 'jgram[cli]'\n"


def test_advice_is_the_shells(jgram, folder):
    (folder / "same.csv").write_text("a,b,y\n" + "x,x,1\n" * 9)
    result = jgram("rank same.csv --report a --report b --observation y --kernel delta")
    assert result.exit_code == 2
    assert result.stderr.endswith("list all possible labels in --classes\n")
