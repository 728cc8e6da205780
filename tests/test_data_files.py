"""Files read right, or refused with the option that decides."""

import gzip
import io
import math
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from jgram.data import (
    Reading,
    check_observations,
    count_files,
    delimited,
    encode_labels,
    read_cells,
    read_columns,
)
from jgram.data.columns import read
from jgram.data.files import read_files, told
from tests.refusals import refused


@pytest.fixture
def write(tmp_path):
    """Write text (or bytes) to a file and give its path."""

    def write(content: str | bytes, name: str = "data.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


HEALTH = "diagnosis,age,age\nflu,3,4\n"


# Cells as they stand in the file ------------------------------------------------------------


def test_cells_are_what_the_file_says(write, tmp_path):
    path = write('id,pay, note\n007,"1,234",\n\n1.50,NA,"a, b"\n')
    expected = {"id": ["007", "1.50"], "pay": ["1,234", "NA"], "note": ["", "a, b"]}
    assert read_cells(path) == expected
    table = pa.table({"id": ["007", None], "x": [1.5, 2.0], "block": [[1, 2], [3, 4]]})
    parquet.write_table(table, tmp_path / "data.parquet")
    assert read_cells(tmp_path / "data.parquet") == {"id": ["007", None], "x": [1.5, 2.0]}
    np.savez(tmp_path / "data.npz", id=[7, 8], y=[0.5, 1.0], block=np.ones((2, 3)), n=3, z=[1])
    assert read_cells(tmp_path / "data.npz") == {"id": [7, 8], "y": [0.5, 1.0]}
    assert "fields" in refused(read_cells, write("a,b\n1,2\n3\n", "ragged.csv"))
    assert read_cells(write("a;b\n1,5;2", "semi.csv"), separator=";") == {"a": ["1,5"], "b": ["2"]}


# Text files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("a,b\n1,x\n2,y\n", "data.csv"),
        ("a;b\n1;x\n2;y\n", "data.csv"),
        ("a\tb\n1\tx\n2\ty\n", "data.tsv"),
        ("a|b\n1|x\n2|y\n", "data.txt"),
        ("\ufeffa,b\r\n1,x\r\n2,y\r\n", "data.csv"),
        ("a;b\n1;x\n2;y\n".encode("utf-16"), "data.csv"),
        ('"a", "b"\n"1", "x"\n"2", "y"\n', "data.csv"),
        ("a , b\n\n1,x\n\n2,y", "data.csv"),
    ],
)
def test_the_same_table_however_it_is_written(write, content, name):
    columns = read_columns(write(content, name))
    assert columns["a"].dtype == np.int64
    assert columns["a"].tolist() == [1, 2]
    assert columns["b"].tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({30: '"stray', 90: '"stray'}, ["row 32 (line 32)", "does not enclose it"]),
        ({30: '"stray'}, ["row 32 (line 32)", "does not enclose it"]),
        ({30: '"stray', 32: 'stray"'}, ["row 32 (line 32)", "join lines", "Parquet"]),
        ({30: '5"'}, None),
        ({30: '"two\nlines"'}, None),
        ({30: '"Dear Sir, I\nam well"'}, None),  # else `I` were among the numbers
        ({30: '"' + "long " * 40_000 + '"'}, None),
    ],
)
@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "many/0.csv"])
def test_no_record_is_lost_to_a_stray_quote(tmp_path, cells, words, name):
    text = "note,level\n" + "".join(f"{cells.get(i, 'word')},{i % 7}\n" for i in range(120))
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    many = path.parent != tmp_path
    path = path.parent if many else path

    def read():
        if many:
            return count_files(path, Reading(("note", "level"))).num_records
        return len(read_columns(path)["level"])

    if words is None:
        assert read() == 120
    else:
        message = refused(read)
        assert [word for word in [str(path), *words] if word not in message] == [], message


def test_blank_rows_are_no_records_but_count_as_rows(write, monkeypatch):
    monkeypatch.setattr(delimited, "_ROWS", 2)
    content = "\na,b\nx,1\n\ny,2\nz,3\n\n\nu,4\n"
    found = read_files(write(content), Reading())
    assert (found["a"].tolist(), found.rows.tolist()) == (["x", "y", "z", "u"], [1, 3, 4, 7])
    assert read_cells(write(content), [7, 3]) == {"a": ["u", "y"], "b": ["4", "2"]}
    assert "row 10 (line 10)" in refused(read_columns, write(content + 'v,"w" 5\n'))


QUOTED = 'text,value\n"comma, ""quote""",1.5\nsemi;colon,\n"two\nlines",-2e-9\nümlaut,3\n'
ODD = "a,b\none\u2028two,1\nthree\x0bfour,2\n"


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("label\ncat\ndog\n", {}, {"label": ["cat", "dog"]}),
        ("a;b\n1.5;2\n0.125;3\n", {}, {"a": [1.5, 0.125], "b": [2, 3]}),
        (",b,\n1,2,3\n", {}, {"column 1": [1], "b": [2], "column 3": [3]}),
        ("a,b;c\n1,x;3\n", {"separator": ";"}, {"a,b": ["1,x"], "c": [3]}),
        ("a,b;c\n1,x;3\n", {"separator": ","}, {"a": [1], "b;c": ["x;3"]}),
        ("a\tb;c\n1\t2;3\n", {"separator": "tab"}, {"a": [1], "b;c": ["2;3"]}),
        (QUOTED, {}, {"text": ['comma, "quote"', "semi;colon", "two\nlines", "ümlaut"],
                      "value": [1.5, None, -2e-9, 3]}),
        (ODD, {}, {"a": ["one\u2028two", "three\x0bfour"], "b": [1, 2]}),
    ],
)  # fmt: skip
def test_what_a_file_holds(write, content, options, expected):
    columns = read_columns(write(content), **options)
    found = {name: [None if x != x else x for x in c.tolist()] for name, c in columns.items()}
    assert found == expected


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ("1 2 3", [1, 2, 3]),
        ("1.5 2 -3e2 .5 inf", [1.5, 2, -300, 0.5, math.inf]),
        ("1 NA 3", [1, None, 3]),
        ("1.5 nan 3", [1.5, None, 3]),
        ("NA FR DE", ["NA", "FR", "DE"]),
        ("007 010", ["007", "010"]),
        ("1_000 2", ["1_000", "2"]),
        ("123456789012345678901 5", [123456789012345678901, 5]),
        ("true false", ["true", "false"]),
    ],
)
def test_types_of_columns(write, cells, values):
    column = read_columns(write("a,b\n" + "".join(f"{cell},0\n" for cell in cells.split())))["a"]
    read = [None if x is None or x != x else x for x in column.tolist()]
    assert read == values
    assert list(map(type, read)) == list(map(type, values)) or column.dtype == float


def test_na_is_a_class_of_text_and_missing_among_numbers(write):
    path = write("country,code,pay\nNA,1,2.5\nFR,NA,NA\n,2,1.5\n")
    columns = read_columns(path)
    assert columns["country"].tolist() == ["NA", "FR", None]
    assert columns["code"].tolist() == [1, None, 2]
    assert np.isnan(columns["pay"]).tolist() == [False, True, False]
    assert read_columns(path, missing_values=["NA"])["country"].tolist() == [None, "FR", None]
    (warning,) = encode_labels(columns["country"][:2]).warnings
    assert "'NA'" in warning


@pytest.mark.parametrize(
    ("cells", "separator", "options", "values"),
    [
        ('"1,234" 987 "-12,345.5"', ",", {"thousands": ","}, [1234, 987, -12345.5]),
        ("1.234 987", ";", {"thousands": "."}, [1234, 987]),
        ("1.234 987", ";", {"decimal": "."}, [1.234, 987]),
        ("1.234,5 987", ";", {"thousands": ".", "decimal": ","}, [1234.5, 987]),
        ("1,5 987", ";", {"decimal": ","}, [1.5, 987]),
        ("1’234 987", ";", {"thousands": "’"}, [1234, 987]),
    ],
)
def test_separated_numbers_are_read_with_the_option(write, cells, separator, options, values):
    rows = "".join(f"{cell}{separator}x\n" for cell in cells.split())
    path = write(f"pay{separator}b\n{rows}")
    assert read_columns(path, ["pay"])["pay"].dtype == object  # text, until it is observed
    found = read_columns(path, **options)  # other columns are not looked at
    assert (found["pay"].tolist(), found["b"][0]) == (values, "x")


@pytest.mark.parametrize(
    ("content", "given", "parts"),
    [
        ("", {}, ["a header and at least one record"]),
        ("a,b\n", {}, ["a header and at least one record"]),
        ("a,b\n1,2\n3\n", {}, ["expected 2 fields", "got 1 in line 3"]),
        ("a,b\n1,2\n3,4,5\n", {}, ["got 3 in line 3"]),
        ("a,b;c\n1,2;3\n", {}, ["both ',' and ';'", "--separator"]),
        ("a,b\nMüller,1\nö,2\n".encode() + b"\xfc,3\n", {}, ["byte 0xfc in row 4", "--encoding"]),
        ("a,a\n1,2\n", {}, ["'a' names columns 1 and 2"]),
        ('a,b\n"1,23",0\n"4",0\n', {"names": ["a"], "thousands": ","}, ["got '1,23'"]),
        ("a,b;c\n1,x;3\n", {"separator": "ab"}, ["separator"]),
        *((HEALTH, {"names": names}, [part]) for names, part in (
            (["diagnosys"], "did you mean 'diagnosis'?"),
            (["zzz"], "it has diagnosis, age"),
            (["diagnosis", "diagnosis"], "distinct columns"),
            (["age"], "names columns 2 and 3"),
        )),
        *(("a,b\n1,2\n", {option: ""}, [f"{option}: expected a character"])
          for option in ("separator", "thousands", "decimal")),
    ],
)  # fmt: skip
def test_unreadable_text_is_refused(write, content, given, parts):
    message = refused(read_columns, write(content), **given)
    assert [part for part in parts if part not in message] == [], message
    assert ".parquet or .npz" in refused(read_columns, write(content, "data.ods"))
    assert list(read_columns(write(HEALTH), ["diagnosis"])) == ["diagnosis"]


# Parquet and npz ----------------------------------------------------------------------------


def test_parquet_columns_and_lists(tmp_path):
    label = pd.Categorical(["a", "b", "a"], categories=["a", "b", "c"])
    count, block = pd.array([1, None, 3], dtype="Int64"), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    frame = pd.DataFrame({"label": label, "count": count, "embedding": block})
    frame.to_parquet(tmp_path / "data.parquet")
    columns = read_columns(tmp_path / "data.parquet")
    assert encode_labels(columns["label"]).codes.tolist() == [0, 1, 0]
    assert encode_labels(columns["count"], missing="drop").classes == (1, 3)
    assert columns["embedding"].shape == (3, 2)
    assert "did you mean 'label'" in refused(read_columns, tmp_path / "data.parquet", ["labels"])


def test_npz_arrays_and_blocks(tmp_path):
    np.savez(tmp_path / "data.npz", labels=[0, 1], features=np.eye(2), objects=np.array([{}]))
    columns = read_columns(tmp_path / "data.npz", ["labels", "features"])
    assert columns["features"].shape == (2, 2)
    np.savez(tmp_path / "more.npz", labels=[1], features=np.zeros((1, 2)))
    both = read_columns(tmp_path, ["labels", "features"])
    assert (both["labels"].tolist(), both["features"].shape) == ([0, 1, 1], (3, 2))
    assert "did you mean 'features'" in refused(read_columns, tmp_path / "data.npz", ["feature"])
    assert "allow_pickle" in refused(read_columns, tmp_path / "data.npz", ["objects"])


# Other sources ------------------------------------------------------------------------------


def arrow_table():
    labels = pa.array(["a", None, "b"]).dictionary_encode()
    block = pa.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    return pa.table({"label": labels, "block": block, "count": [1, 2, 3]})


def written(format):
    sink, separator = io.BytesIO(), "\t" if format == "tsv" else ","
    if format in ("csv", "tsv", "txt"):
        sink.write("label,count\na,1\n,2\nb,3\n".replace(",", separator).encode())
    elif format == "npz":
        np.savez(sink, label=np.array(["a", "", "b"]), count=[1, 2, 3])
    else:
        write = parquet.write_table if format == "parquet" else feather.write_feather
        write(arrow_table(), sink)
    return sink.getvalue()


@pytest.mark.parametrize("format", ["csv", "tsv", "txt", "parquet", "npz", "feather", "arrow"])
@pytest.mark.parametrize("source", ["plain", "gz", "stdin", "gz stdin"])
def test_every_format_also_gzipped_and_from_standard_input(write, monkeypatch, format, source):
    content = written(format)
    packed = gzip.compress(content) if "gz" in source else content
    if "stdin" in source:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed)))
        path = "-"
    else:
        path = write(packed, f"data.{format}" + (".gz" if source == "gz" else ""))
    columns = read_columns(path)
    assert encode_labels(columns["count"]).classes == (1, 2, 3)
    if format != "npz":
        assert encode_labels(columns["label"], missing="keep").codes.tolist() == [0, -1, 1]
    if format in ("parquet", "feather", "arrow"):
        assert columns["block"].shape == (3, 2)


@pytest.mark.parametrize(
    "suffix", ["parquet", "npz", "feather", "arrow", "csv.gz", "npz.gz", "parquet.gz"]
)
@pytest.mark.parametrize("content", [b"", b"not such a file", gzip.compress(b"x", mtime=0)[:-9]])
def test_other_bytes_are_refused(write, suffix, content):
    path = write(content, f"data.{suffix}")
    assert str(path) in refused(read_columns, path)


def test_what_is_missing_in_parquet_stays_so_and_ragged_lists_and_structs_are_no_columns(tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(arrow_table(), path)
    column = read_columns(path, ["label"])["label"]
    assert "1 of 3 labels missing (first in row 1)" in refused(encode_labels, column)
    assert "1 of 3 values missing" in refused(check_observations, column)
    table = {"gaps": [[1.0, 2.0], None], "ragged": [[1.0], [1.0, 2.0]], "struct": [{"a": 1}] * 2}
    parquet.write_table(pa.table(table), path)
    assert "missing (first in row 1)" in refused(
        check_observations, read_columns(path, ["gaps"])["gaps"]
    )
    assert "1 values in row 0 and 2 in row 1" in refused(read_columns, path, ["ragged"])
    assert "struct" in refused(encode_labels, read_columns(path, ["struct"])["struct"])
    parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), path)
    assert "at least one record" in refused(read_columns, path)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Prüfer;Preis\nMüller;5 €\n"),
        ("cp1252", "Évaluateur;dépôt\nforêt;noël\n"),
        ("cp1250", "Żółć;łąka\nźródło;światło\n"),
        ("cp1250", "droga;łąka\nwoda;1\n"),
        ("gb18030", "建筑;道路\n水;评估者\n"),
        ("cp1251", "Оценка;класс\nдорога;здание\n"),
        ("utf-16", "größe;b\nä;1\n"),
        ("utf-16-le", "größe;b\nä;1\n"),
        ("utf-8-sig", "größe;b\nä;1\n"),
    ],
)
def test_the_encoding_is_found_and_said(tmp_path, monkeypatch, encoding, text):
    path, plain = tmp_path / "a.csv", Reading(separator=";")
    for size in (1 << 20, 7):  # of the blocks in which it is looked for
        monkeypatch.setattr(delimited, "_BLOCK", size)
        path.write_bytes(text.encode(encoding))
        (name, cells), _ = read_columns(path).items()
        assert [name, cells[0]] == [line.split(";")[0] for line in text.splitlines()]
        said = told([path], plain)
        assert said == [] if encoding == "utf-8-sig" else encoding[:6] in said[0]
    for name in (encoding, encoding.upper()):
        assert read_columns(path, encoding=name)[text.split(";")[0]][0] == cells[0]
    assert "expected one such as cp1252, got 'x'" in refused(read_columns, path, encoding="x")


def test_bytes_that_an_encoding_does_not_know_are_named_by_their_row(write, monkeypatch):
    path = write("a,b\n1,2\nü,3\n".encode("cp1252"))
    for size in (1 << 20, 3):
        monkeypatch.setattr(delimited, "_BLOCK", size)
        message = refused(read_columns, path, encoding="utf-8")
        assert "data.csv: expected text in utf-8, got byte 0xfc in row 3" in message
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    assert "(--encoding cp1252)" in refused(read_columns, path)


def test_workbooks_lines_of_json_and_excel_s_own_separator(tmp_path):
    frame = pd.DataFrame({"label": ["a", None, "7"], "level": [1.5, 2.0, np.nan], "n": [1, 2, 3]})
    frame.to_excel(tmp_path / "one.xlsx", index=False)
    frame.to_json(tmp_path / "one.jsonl", orient="records", lines=True)
    (tmp_path / "one.csv").write_text("sep=;\r\n" + frame.to_csv(sep=";", index=False))
    plain = {name: read(part, name) for name, part in frame.items()}
    for name in ("one.xlsx", "one.jsonl", "one.csv"):
        found = {n: read(part, n) for n, part in read_columns(tmp_path / name).items()}
        for column, expected in plain.items():
            assert found[column].present.tolist() == expected.present.tolist()
            assert found[column].values.tolist() == expected.values.tolist(), (name, column)
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        for sheet in ("A", "B"):
            frame.to_excel(book, sheet_name=sheet, index=False)
        pd.DataFrame({"label": ["z"], "level": [0]}).to_excel(book, sheet_name="Last", index=False)
        pd.DataFrame({"note": []}).to_excel(book, sheet_name="None", index=False)
    assert read_columns(tmp_path / "two.xlsx")["label"].to_pylist() == ["a", None, "7"]
    (said,) = told([tmp_path / "two.xlsx"], Reading())
    assert said.endswith("two.xlsx: sheet 'A' is read, of 'A', 'B', 'Last' (--sheet says another)")
    assert read_columns(tmp_path / "two.xlsx", sheet="Last")["label"].to_pylist() == ["z"]
    assert told([tmp_path / "two.xlsx"], Reading(sheet="Last")) == []
    assert "did you mean 'Last'?" in refused(read_columns, tmp_path / "two.xlsx", sheet="Lst")
    assert "expected no --sheet for text" in refused(read_columns, tmp_path / "one.csv", sheet="A")
    assert "expected no --encoding" in refused(read_columns, tmp_path / "two.xlsx", encoding="x")
    assert "expected a column 'lable'" in refused(read_columns, tmp_path / "one.xlsx", ["lable"])
