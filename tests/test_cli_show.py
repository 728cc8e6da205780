"""What a terminal shows: tables that fit, characters that it has, files that are whole."""

import io
import json
import re
import sys
from types import SimpleNamespace

import pytest
from rich.cells import cell_len

from jgram import display
from jgram.cli.process import end
from jgram.cli.show import say, say_error, say_json, say_view
from jgram.cli.write import check_target, unfinished, whole_file, write_records
from jgram.display import Column, Line, table

ROWS = [
    Column(
        "report", ["the_first_hospital_2019", "the_first_hospital_2020", "三つの病院の報告書"], True
    ),
    Column("log score\n± 95%", ["-11.10 ± 0.22", "-11.97 ± 0.30", "no score"]),
    Column("noise floor\n± sd", ["-20.5 ± 0.8", "-20.5 ± 0.8", ""]),
    Column("p of\nnoise", ["0.001", "0.001", ""]),
    Column("det\nratio", ["1", "0.649", ""]),
    Column("remarks", ["", "close to the best of them", "constant"], True),
    Column("counts\nscale", ["24,920,064", "33,918,976", "0"]),
]


def numbers(text):
    return sorted(re.findall(r"[-\d.,]*\d", text))


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_tables_fit_and_cut_names_only(width):
    shown = table(ROWS, width)
    cells = [cell for column in ROWS if not column.name for cell in column.cells if cell]
    assert max(map(cell_len, shown.split("\n"))) <= width
    assert all(cell in shown for cell in cells)
    assert shown.count("019 ") == shown.count("report")  # the names lead every part, ends kept
    if width == 200:
        assert shown.count("report") == 1
        assert all(cell in shown for column in ROWS for cell in column.cells)
        assert "…" not in shown


def test_shortened_names_stay_apart():
    names = ["hospital_north_2019", "hospital_south_2019", "hospital_north_2018"]
    shown = table([Column("report", names, True), Column("score", ["1.00", "2.00", "3.00"])], 15)
    first, second, third = shown.split("\n")[2:]
    assert len({line.split()[0] for line in (first, second, third)}) == 3


def test_numbers_stand_in_line():
    lines = table(ROWS[:3], 80).split("\n")
    assert len({cell_len(line) for line in lines[2:5]}) == 1
    assert lines[3].endswith("-20.5 ± 0.8")


def ascii_output(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)

    def shown():
        stream.flush()
        return stream.buffer.getvalue().decode("ascii")

    return shown


def test_characters_that_the_terminal_lacks_are_replaced(monkeypatch):
    shown = ascii_output(monkeypatch)
    say_view([[Column("naïve", ["Jürgen"], True), Column("score ± 95%", ["-3.10 ± 0.20"])]])
    say("distance² − ∞")
    head, rule, row, _, line, _ = shown().split("\n")
    assert head.split() == ["na\\xefve", "score", "+-", "95%"]
    assert set(rule) == {"-"}
    assert row.split() == ["J\\xfcrgen", "-3.10", "+-", "0.20"]
    assert len(head) == len(rule) == len(row)
    assert line == "distance2 - inf"


def test_json_stays_json_where_the_terminal_lacks_characters(monkeypatch):
    shown = ascii_output(monkeypatch)
    say_json('{"Jürgen": "± 1"}')
    assert json.loads(shown()) == {"Jürgen": "± 1"}


def test_names_cannot_steer_the_terminal(capsys):
    say_view([[Column("report", ["a\x1b[2Jb\nc"], True), Column("score", ["1"])]])
    assert "a\\x1b[2Jb\\nc" in capsys.readouterr().out
    say_view([Line("a\x1b[2Jb is the most reliable")])
    say_error("a\x1b[2Jb cannot be told from noise")
    end(ValueError("a\x1b[2Jb: no such column"))
    shown = capsys.readouterr()
    assert shown.out == "a\\x1b[2Jb is the most reliable\n"
    assert shown.err.count("jgram: a\\x1b[2Jb") == 2


# Files --------------------------------------------------------------------------------------


def test_a_file_is_there_whole_or_as_it_was(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    path.chmod(0o640)

    def fail():
        with whole_file(path) as beside:
            beside.write_text("half of")
            assert unfinished == {beside}
            assert beside.suffix == ".csv"
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        fail()
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    before = path.stat().st_ino
    write_records(path, "", [{"row": 3, "label": "é"}])
    assert path.stat().st_ino != before  # renamed over, not written into
    assert path.read_text(encoding="utf-8") == "row,label\n3,é\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]
    assert not unfinished


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "there" / "file.json")
    write_records(link, "{}", [])
    assert link.is_symlink()
    assert (tmp_path / "there" / "file.json").read_text() == "{}\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("out.xls", "expected a .csv or .json file"),
        ("nowhere/out.csv", "there is no folder"),
        ("folder.csv", "got a folder"),
        ("file.csv/out.csv", "there is no folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(tmp_path, name, words):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file.csv").touch()
    with pytest.raises(ValueError, match=words):
        check_target(tmp_path / name, (".csv", ".json"))


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError):
        check_target(tmp_path / "out.csv", (".csv",))


def test_a_file_written_anew_is_another_file_and_links_stay_links(tmp_path):
    path, link = tmp_path / "out.csv", tmp_path / "link.csv"
    path.write_text("old ü")
    path.chmod(0o640)
    link.symlink_to(path)
    first = path.stat().st_ino
    with whole_file(link) as beside:
        assert beside.suffix == ".csv"
        beside.write_bytes(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino != first  # another file, renamed over it
    assert path.stat().st_mode & 0o777 == 0o640

    def fill():
        with whole_file(path) as beside:
            beside.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fill()
    assert path.read_bytes() == b"new"
    assert sorted(tmp_path.iterdir()) == [link, path]


def test_what_random_features_add_stands_beside_the_interval():
    report = SimpleNamespace(keeps=0.75, keeps_interval=(0.71, 0.8), keeps_features_error=None)
    assert display._keeps(report) == "75% [71%, 80%]"
    report.keeps_features_error = 0.0042
    assert display._keeps(report) == "75% [71%, 80%], features ± 0.4%"
