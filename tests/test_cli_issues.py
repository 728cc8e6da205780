"""``jgram issues``: what it shows, writes and draws, and the one line it refuses with."""

import json

import jsonschema
import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet as pq
from pyarrow import table as arrow_table

from jgram import load, schema
from jgram.plots import figure
from tests.conftest import fill_in, rows_of, write_table

ROWS, UNLABELLED, FLIPPED = 120, [7, 50], [5, 33, 77, 101]
NAMES = np.array(["cold", "flu", "[well]"])
TRUTH = np.random.default_rng(7).permutation(np.arange(ROWS) % 3)
LINE = "issues visits.csv --report diagnosis --observation level --observation temp"


def bands(row: int) -> np.ndarray:
    """An image of its record: the band of the class, and a pixel of the row."""
    image = np.zeros((8, 8), np.uint8)
    image[2 * TRUTH[row] : 2 * TRUTH[row] + 2] = 200
    image[7, 7] = row
    return image


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 120 visits, 4 of wrong labels and 2 of none, with images in all forms."""
    folder = tmp_path_factory.mktemp("issues")
    rng = np.random.default_rng(3)
    labels = NAMES[np.where(np.isin(np.arange(ROWS), FLIPPED), (TRUTH + 1) % 3, TRUTH)]
    labels[UNLABELLED] = ""
    columns = {
        "diagnosis": labels,
        "level": np.round(TRUTH + rng.normal(0, 0.12, ROWS), 3),
        "temp": np.round(36 + TRUTH + rng.normal(0, 0.2, ROWS), 2),
        "gaps": np.where(np.arange(ROWS) % 4 == 0, "", "1"),
        "noise": rng.normal(size=ROWS).round(3),
        "same": np.full(ROWS, "flu"),
        "once": np.where(np.arange(ROWS) == 3, "rare", "flu"),
        "id": [f"p{i}" for i in range(ROWS)],
        "note": [f"visit {i}, of a patient who has come from far away" for i in range(ROWS)],
        "pay": [f"{1000 + i:,}" for i in range(ROWS)],
        "label": np.arange(ROWS),
        "photo": [f"img{i}.png" for i in range(ROWS)],
        "up": [f"../bomb/img{i}.png" for i in range(ROWS)],
        "whole": [folder / "bomb" / f"img{i}.png" for i in range(ROWS)],
        "link": [f"out{i}.png" for i in range(ROWS)],
        "nul": [f"{i}\0.png" for i in range(ROWS)],
    }
    write_table(folder / "visits.csv", columns)
    numeric = {name: columns[name] for name in ("level", "temp", "noise")}
    said = {"diagnosis": [label or None for label in labels.tolist()]}
    whole = arrow_table({**said, **numeric, "block": list(np.ones((ROWS, 2)))})
    pq.write_table(whole, folder / "visits.parquet")
    pictures = np.stack([bands(row) for row in range(ROWS)])
    colours = np.stack([pictures] * 3, axis=1) / 255.0
    np.savez(folder / "visits.npz", diagnosis=TRUTH, level=columns["level"], pictures=pictures)
    np.savez(folder / "few.npz", pictures=pictures[1:])
    np.savez(folder / "two.npz", a=pictures, b=colours)
    np.savez(folder / "flat.npz", a=pictures.reshape(ROWS, -1))
    (folder / "cut.npz").write_bytes((folder / "few.npz").read_bytes()[:-40])
    for name in ("photos", "fewer", "broken", "bomb", "links"):
        (folder / name).mkdir()
    for row, picture in enumerate(pictures):
        Image.fromarray(picture).save(folder / "photos" / f"img{row}.png")
    Image.fromarray(pictures[0]).save(folder / "fewer" / "img0.png")
    for row in range(ROWS):
        (folder / "broken" / f"img{row}.png").write_text("no image")
        (folder / "bomb" / f"img{row}.png").write_bytes(b"P6 60000 60000 255\n")
        (folder / "links" / f"out{row}.png").symlink_to(folder / "bomb" / f"img{row}.png")
    return folder


def place(row):
    """Of a record of the files, by the row that the spreadsheet gives it."""
    return int(row["row"] if isinstance(row, dict) else row) - 2


def test_the_records_that_were_flipped_are_shown_with_their_own_columns(jgram, folder):
    result = jgram(f"{LINE} --limit 6 --out found.csv")
    assert result.exit_code == 0, result.stderr
    assert "118 of 120 records are judged" in result.stdout
    assert "labels are wrong" in result.stdout
    assert "--to-check 50" in result.stdout
    visits, found = rows_of(folder / "visits.csv"), rows_of(folder / "found.csv")
    assert {place(row) for row in found[:4]} == set(FLIPPED)
    for row in found:
        original = visits[place(row)]
        assert row["label"] == original["diagnosis"]
        assert row["label (file)"] == original["label"]
        for name in original.keys() - {"label", "diagnosis"}:
            assert row[name] == original[name], name
    for row in found[:4]:
        assert row["suggested"] == NAMES[TRUTH[place(row)]]
        assert 0.5 < float(row["wrong"]) <= 1
        assert float(row["margin"]) < 0
        shown = next(x for x in result.stdout.splitlines() if x.split()[:1] == [row["row"]])
        assert row["level"] in shown.split()
        assert row["temp"] in shown.split()


def test_json_has_the_record_the_classes_and_the_rows_of_the_file(jgram, folder):
    result = jgram(f"{LINE} --json --out found.json")
    record = json.loads(result.stdout, parse_constant=pytest.fail)
    jsonschema.validate(record, schema("issues"))
    assert record == json.loads((folder / "found.json").read_text())
    assert record["name"] == "diagnosis"
    assert record["num_records"] == 118
    assert record["interval"] is None
    assert record["number"] == len(record["records"]) == len(record["issues"])
    assert [x["row"] for x in record["records"]] == record["issues"]
    assert sum(x["count"] for x in record["by_class"]) == 118
    assert record["findings"][0]["value"] == 118
    found = load(folder / "found.json")
    assert found.to_json() == load(result.stdout).to_json()
    assert found.order[: found.number].tolist() == found.issues.tolist()
    assert len(found.wrong) == ROWS


@pytest.mark.thorough
def test_files_of_other_formats_and_what_else_is_asked(jgram, folder):
    result = jgram(f"{LINE.replace('csv', 'parquet')} --out found.csv")
    assert "118 of 120 records are judged" in result.stdout
    assert {place(row) for row in rows_of(folder / "found.csv")[:4]} == set(FLIPPED)
    assert list(rows_of(folder / "found.csv")[0])[5:] == ["level", "temp", "noise"]
    line = "issues visits.npz --report diagnosis --observation level --to-check 5 --out found.csv"
    assert jgram(line).exit_code == 0
    assert list(rows_of(folder / "found.csv")[0]) == [
        "row", "label", "suggested", "wrong", "margin", "right", "level",
    ]  # fmt: skip
    dropped = jgram(f"{LINE} --observation gaps --kind gaps=category --missing drop --json")
    record = json.loads(dropped.stdout)
    assert record["num_records"] == sum(i % 4 > 0 and i not in UNLABELLED for i in range(ROWS))
    assert {place(x) for x in record["records"][:4]} == set(FLIPPED)
    record = json.loads(jgram(f"{LINE} --abstain [well] --json").stdout)
    assert record["classes"] == ["cold", "flu"]
    assert record["num_records"] < 118
    result = jgram("issues visits.csv --report diagnosis --observation noise")
    assert result.exit_code == 3
    assert "do not predict the labels" in result.stdout
    assert jgram(f"{LINE} --images photos --plot them.png --limit 6").exit_code == 0
    with Image.open(folder / "them.png") as picture:
        assert picture.width > 1000


def test_rows_to_check_are_filled_in_and_come_back(jgram, folder):
    result = jgram(f"{LINE} --to-check 40 --out check.csv")
    assert result.exit_code == 0, result.stderr
    rows = rows_of(folder / "check.csv")
    assert len(rows) == 40
    assert {row["right"] for row in rows} == {""}

    def right(row):
        return NAMES[TRUTH[place(row)]]

    def verdict(row):
        return "Yes" if row["label"] == right(row) else "No"

    def number(row):
        return int(row["label"] == right(row))

    def either(row):
        return verdict(row) if int(row["row"]) % 2 else right(row)

    intervals = []
    for answer in (right, verdict, number, either):
        said = [*map(answer, rows[:-2]), "", ""]
        fill_in(folder / "done.csv", rows, said)
        record = json.loads(jgram(f"{LINE} --checked done.csv --json").stdout)
        assert record["num_checked"] == 38
        low, high = record["interval"]
        assert low <= len(FLIPPED) <= high
        intervals.append((low, high, record["number"]))
    assert len(set(intervals)) == 1
    shown = jgram(f"{LINE} --checked done.csv").stdout
    assert f"95% interval {low} to {high}" in shown
    assert "--to-check" not in shown


@pytest.mark.parametrize(
    "images", ["visits.npz", "two.npz --image-column b", "photos", "photos --image-column photo"]
)
def test_images_of_the_rows_listed_are_drawn(jgram, folder, monkeypatch, images):
    drawn = {}

    def draw(pictures, titles):
        drawn.update(pictures=pictures, titles=titles)
        return figure()[0]

    monkeypatch.setattr("jgram.plots.images_figure", draw)
    result = jgram(f"{LINE} --limit 4 --images {images} --plot them.png")
    assert result.exit_code == 0, result.stderr
    assert len(drawn["titles"]) == 4
    for picture, title in zip(drawn["pictures"], drawn["titles"], strict=True):
        row = place(title.split("row ")[1].split(",")[0])
        assert row in FLIPPED
        assert f"→ {NAMES[TRUTH[row]]}\n" in title
        grey = picture if picture.ndim == 2 else picture[..., 0]
        grey = grey if grey.dtype == np.uint8 else np.round(grey * 255)
        np.testing.assert_array_equal(grey, bands(row))


def test_rows_have_the_names_of_a_column(jgram, folder):
    ids = [row["id"] for row in rows_of(folder / "visits.csv")]
    result = jgram(f"{LINE} --id id --limit 4 --out found.csv --html found.html")
    assert "rows are numbered as a spreadsheet does" in result.stdout
    found, page = rows_of(folder / "found.csv"), (folder / "found.html").read_text()
    assert list(found[0])[:3] == ["row", "id", "label"]
    for row in found[:4]:
        assert row["id"] == ids[place(row)]
        assert any(x.split()[:2] == [row["row"], row["id"]] for x in result.stdout.splitlines())
        assert f">{row['id']}</td>" in page
    records = json.loads(jgram(f"{LINE} --id id --json").stdout)["records"]
    assert [x["id"] for x in records[:4]] == [row["id"] for row in found[:4]]
    assert "did you mean 'id'?" in jgram(f"{LINE} --id idd").stderr


CHECKS = {
    "row,right\n122,yes\n": "expected rows that are judged, 2 to 121, got 122",
    "row,right\n-1,yes\n": "got -1",
    "row,right\n9,yes\n": "expected rows that are judged, 2 to 121, got 9",
    "row,right\n3,maybe\n": "or yes or no, got 'maybe' for row 3",
    "row,label,right\n2,cold,yes\n3,cold,no\n4,cold,no\n": "as in the table, got 'cold'",
    "row,right\n1,yes\n1,no\n": "got row 1 twice",
    "row,right\nx,yes\n": "expected numbers of rows in the column row, got 'x'",
    "row,right\n1.5,yes\n": "expected numbers of rows in the column row, got 1.5",
    "row,right\n1,\n2,\n": "expected answers in the column right, got none",
    "row,answer\n1,yes\n": "expected a column 'right'",
}


SIMPLE = "issues visits.csv --observation level --report"
REFUSED = {
    f"{SIMPLE} same": "same: expected labels of two classes or more, got 'flu' for every record",
    f"{SIMPLE} once": "once: expected two records or more of every class, got one of 'rare' (row 5",
    f"{SIMPLE} id": "id: expected class labels, got 120 different ones",
    f"{SIMPLE} diagnosis --missing raise": "diagnosis: 2 of 120 labels missing",
    f"{SIMPLE} diagnosis --images photos": "--images: expected --plot",
    f"{SIMPLE} diagnosis --checked nowhere.csv": "nowhere.csv: No such file",
    f"{LINE} --images nowhere --plot a.png": "expected a folder of images or an .npz file",
    f"{LINE} --images few.npz --plot a.png": "one image for each of 120 rows, got 119",
    f"{LINE} --images fewer --plot a.png": "one image for each of 120 rows, got 1:",
    f"{LINE} --images fewer --image-column photo --plot a.png": "expected the image of row",
    f"{LINE} --images photos --image-column x --plot a.png": "expected a column, got 'x'",
    f"{LINE} --images broken --plot a.png": "cannot be read as an image",
    f"{LINE} --images cut.npz --plot a.png": "cut.npz: cannot be read as an npz file",
    f"{LINE} --images bomb --image-column photo --plot a.png": "decompression bomb",
    f"{LINE} --images photos --image-column up --plot a.png": "'../bomb/img5.png' in row 7 (up)",
    f"{LINE} --images photos --image-column whole --plot a.png": "which leaves it",
    f"{LINE} --images links --image-column link --plot a.png": "'out5.png' in row 7",
    f"{LINE} --images photos --image-column nul --plot a.png": "cannot be read as the name of",
    f"{LINE} --images two.npz --plot a.png": "name it with --image-column",
    f"{LINE} --images two.npz --image-column c --plot a.png": "expected a column 'c'",
    f"{LINE} --images flat.npz --plot a.png": "expected one array [rows, height, width]",
}


@pytest.mark.parametrize("line", [*REFUSED, *CHECKS])
def test_refusals(jgram, folder, line):
    if line in CHECKS:
        (folder / "bad.csv").write_text(line)
    result = jgram(f"{LINE} --checked bad.csv" if line in CHECKS else line)
    assert result.exit_code == 2, result.stdout
    assert (REFUSED | CHECKS)[line] in result.stderr
    assert result.stderr.count("\n") == 1
