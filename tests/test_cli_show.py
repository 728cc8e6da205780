"""What a terminal shows: tables that fit, characters that it has, files that are whole."""

import csv
import io
import json
import os
import sys

import pytest
from rich.cells import cell_len

from jgram import ranking
from jgram.cli import main, outputs
from jgram.cli.process import end
from jgram.cli.show import say, say_error, say_json, say_note, say_view
from jgram.display import Field, Line, Table, laid_out


def made(*columns):
    """A table of columns: head, cells, and whether they are names."""
    fields = [Field(head, cells.__getitem__, name=bool(name)) for head, cells, *name in columns]
    return Table("", range(len(columns[0][1])), fields)


COLUMNS = [
    ("report", ["the_first_hospital_2019", "the_first_hospital_2020", "三つの病院の報告書"], True),
    ("log score\n± 95%", ["-11.10 ± 0.22", "-11.97 ± 0.30", "no score"]),
    ("noise floor\n± sd", ["-20.5 ± 0.8", "-20.5 ± 0.8", ""]),
    ("p of\nnoise", ["0.001", "0.001", ""]),
    ("det\nratio", ["1", "0.649", ""]),
    ("remarks", ["", "close to the best of them", "constant"], True),
    ("counts\nscale", ["24,920,064", "33,918,976", "0"]),
]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_tables_fit_and_cut_names_only(width):
    shown = laid_out(made(*COLUMNS), width)
    cells = [cell for _, cells, *name in COLUMNS if not name for cell in cells if cell]
    assert max(map(cell_len, shown.split("\n"))) <= width
    assert all(cell in shown for cell in cells)
    assert shown.count("019 ") == shown.count("report")  # the names lead every part, ends kept
    if width == 200:
        assert shown.count("report") == 1
        assert all(cell in shown for _, cells, *_ in COLUMNS for cell in cells)
        assert "…" not in shown
    if width == 80:  # numbers stand in line
        lines = laid_out(made(*COLUMNS[:3]), width).split("\n")
        assert len({cell_len(line) for line in lines[2:5]}) == 1
        assert lines[3].endswith("-20.5 ± 0.8")
    names = ["hospital_north_2019", "hospital_south_2019", "hospital_north_2018"]
    shown = laid_out(made(("report", names, True), ("score", ["1.00", "2.00", "3.00"])), 15)
    assert len({line.split()[0] for line in shown.split("\n")[2:]}) == 3  # stay apart


def ascii_output(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)

    def shown():
        stream.flush()
        return stream.buffer.getvalue().decode("ascii")

    return shown


def test_characters_that_the_terminal_lacks_are_replaced(monkeypatch):
    shown = ascii_output(monkeypatch)
    say_view([made(("naïve", ["Jürgen"], True), ("score ± 95%", ["-3.10 ± 0.20"]))])
    say("distance² − ∞")
    say_json('{"Jürgen": "± 1"}')
    head, rule, row, _, line, *record = shown().split("\n")
    assert head.split() == ["na\\xefve", "score", "+-", "95%"]
    assert set(rule) == {"-"}
    assert row.split() == ["J\\xfcrgen", "-3.10", "+-", "0.20"]
    assert len(head) == len(rule) == len(row)
    assert line == "distance2 - inf"
    assert json.loads("".join(record)) == {"Jürgen": "± 1"}


def test_names_json_and_notes_cannot_steer_the_terminal(capsys):
    say_view([made(("re\x9bport", ["a\x1b[2Jb\nc"], True), ("score", ["1"]))])
    shown = capsys.readouterr().out
    assert "a\\x1b[2Jb\\nc" in shown
    assert "re\\x9bport" in shown
    say_view([Line("a\x1b[2Jb is the most reliable")])
    say_json('{"a\x9b2J": "\u202ex\x7f", "é": 1}')
    say("written: a\x1b[2J\nb.html")
    say_error("a\x1b[2Jb cannot be told from noise")
    say_note("a\x1b[2Jb")
    end(ValueError("a\x1b[2Jb: no such column"))
    shown = capsys.readouterr()
    line, record, written, _ = shown.out.split("\n")
    assert line == "a\\x1b[2Jb is the most reliable"
    assert json.loads(record) == {"a\x9b2J": "\u202ex\x7f", "é": 1}
    assert record.isprintable()
    assert written == "written: a\\x1b[2J\\nb.html"
    assert shown.err.count("a\\x1b[2Jb") == 3


# Files --------------------------------------------------------------------------------------


def test_a_file_is_there_whole_or_as_it_was(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    path.chmod(0o640)

    def fail():
        with outputs.whole_file(path) as beside:
            beside.write_text("half of")
            assert outputs.unfinished == {beside}
            assert beside.suffix == ".csv"
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        fail()
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    before = path.stat().st_ino
    outputs.write_records(path, "", [{"row": 3, "label": "é"}])
    assert path.stat().st_ino != before  # renamed over, not written into
    assert path.read_text(encoding="utf-8") == "row,label\n3,é\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]
    assert not outputs.unfinished


def test_a_folder_that_cannot_be_written_to_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError):
        outputs.check_outputs({"--out": (tmp_path / "out.csv", (".csv",))}, [])


def test_what_random_features_add_stands_beside_the_interval():
    assert ranking._kept((0.75, 0.71, 0.8, None)) == "75% [71%, 80%]"
    assert ranking._kept((0.75, 0.71, 0.8, 0.0042)) == "75% [71%, 80%], features ± 0.4%"
    assert ranking._kept((1.0, 1.0, 1.0, 0.0042)) == "100%"


# Outputs and inputs -------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A table, a sheet half filled in, two folders, and links to the table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "sheet.csv").write_text("row;right\n3;\n4;yes\n")
    (tmp_path / "many" / "deep").mkdir(parents=True)
    (tmp_path / "many" / "deep" / "0.csv").write_text("a,b\n1,2\n")
    (tmp_path / "soft.csv").symlink_to("data.csv")
    (tmp_path / "hard.csv").hardlink_to("data.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("issues data.csv --out data.csv", "--out: expected a place that is not read"),
        ("issues data.csv --out many/../soft.csv", "--out: expected a place that is not read"),
        ("issues data.csv --out hard.csv", "of the input data.csv: name another"),
        ("issues many --out many/deep/0.csv", "of the input many: name another"),
        ("issues many --out many/new.csv", "of the input many: name another"),
        ("issues many/*/*.csv --out many/deep/1.csv", "of the input many/*/*.csv"),
        ("issues data.csv --checked sheet.csv --out sheet.csv", "of the input sheet.csv"),
        ("issues data.csv --to-check 5 --out sheet.csv", "got one with answers in the column"),
        ("issues data.csv --out sheet.csv", "got one with answers in the column"),
        ("issues data.csv --out new.csv --html new.csv", "new.csv: expected a .html or .htm"),
        ("rank many --report a --report c --checkpoint many/kept", "--checkpoint: expected a"),
        ("rank data.csv --report a --report c --plot data.csv", "data.csv: expected a .png"),
        ("annotators data.csv --out a.csv --labels-out A.csv", "another file than --out"),
        (f"issues data.csv --out {'x' * 300}.csv", "File name too long"),
        (f"issues data.csv --html {'é' * 130}.html", "File name too long"),
        ("issues data.csv --out pipe.csv", "pipe.csv: expected a file, got a device"),
        ("issues data.csv --out many/deep.csv", "deep.csv: expected a file, got a folder"),
        ("issues data.csv --out sheet.csv/out.csv", "there is no folder sheet.csv"),
        ("issues data.csv --out out.xls", "out.xls: expected a .csv or .json file"),
        ("encode many --epochs 1 --out many/out.parquet", "of the input many"),
    ],
)
def test_an_output_loses_no_other_file(place, capsys, arguments, words):
    os.mkfifo(place / "pipe.csv")
    (place / "many" / "deep.csv").mkdir()
    files = [path for path in place.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    options = [] if arguments.startswith(("annotators", "encode")) else ["--observation", "b"]
    options += ["--report", "a"] if arguments.startswith("issues") else []
    with pytest.raises(SystemExit) as caught:
        main([*arguments.split(), *options])
    shown = capsys.readouterr()
    assert caught.value.code == 2
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_a_new_table_and_an_empty_sheet_are_written(place):
    (place / "empty.csv").write_text("row,right\n3,\n4,\n")
    data, many = place / "data.csv", place / "many"
    for name in ("empty.csv", "new.csv", "more.json"):
        outputs.check_outputs({"--out": (place / name, outputs.TABLES)}, [data, None, many])
    outputs.check_outputs({"--html": (many / "page.html", outputs.PAGES)}, [many])


def test_a_link_stays_a_link_and_a_planted_one_is_not_followed(place, monkeypatch):
    link = place / "link.json"
    link.symlink_to(place / "many" / "file.json")
    outputs.write_records(link, "{}", [])
    assert link.is_symlink()
    assert (place / "many" / "file.json").read_text() == "{}\n"
    victim = place / "victim.txt"
    victim.write_text("mine")
    monkeypatch.setattr("jgram.cli.outputs.token_hex", lambda _: "known")
    (place / ".out-known.csv").symlink_to(victim)
    with pytest.raises(FileExistsError), outputs.whole_file(place / "out.csv") as beside:
        beside.write_text("theirs")
    assert victim.read_text() == "mine"


def test_a_spreadsheet_runs_no_cell_and_reads_numbers(tmp_path):
    cells = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "-1", "+1.5e-3", -2.5, "a=b"]
    outputs.write_records(tmp_path / "out.csv", "", [{"=head": cell, "row": 1} for cell in cells])
    with (tmp_path / "out.csv").open(newline="") as file:
        (head, _), *rows = csv.reader(file)
    assert head == "'=head"
    assert [cell[:1] == "'" for cell, _ in rows] == [True] * 5 + [False] * 4
    assert [outputs.unspelled(cell) for cell, _ in rows] == list(map(str, cells))
    assert outputs.unspelled("'=1") == "=1"
    assert outputs.unspelled("'tis") == "'tis"
