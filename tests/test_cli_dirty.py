"""A table as somebody's spreadsheet has it: one command, one page."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.thorough

NAMES = np.array(["Building", "Road", "Water"])


def euros(amount):
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,")) + " €"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng, n = tmp_path_factory.mktemp("dirty"), np.random.default_rng(3), 240
    truth = rng.integers(0, 3, n)

    def reported(share):
        return NAMES[np.where(rng.random(n) < share, rng.integers(0, 3, n), truth)].astype(object)

    ann, bob = reported(0.1), reported(0.4)
    spelled = np.flatnonzero(ann == "Building")[:14]
    ann[spelled[:4]], ann[spelled[4:]] = "Bulding", "building "
    bob[:9] = None
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(90 * truth + rng.integers(0, 120, n), "D")
    table = pd.DataFrame(
        {
            "Nr": [f"INV-{i}" for i in range(n)],
            "Prüfer": ann,
            "Bob": bob,
            "Betrag": [None if i % 50 == 7 else euros(x) for i, x in
                       enumerate(np.exp(rng.normal(0, 0.5, n) + 5 + truth))],
            "Datum": days.strftime("%d.%m.%Y"),
            "geprüft": [NAMES[t] if i % 8 == 0 else None for i, t in enumerate(truth)],
        }
    )  # fmt: skip
    table.to_csv(folder / "audit.csv", sep=";", index=False, encoding="cp1252")
    table.to_excel(folder / "audit.xlsx", index=False)
    table["Bob"].to_csv(folder / "alone.csv", index=False)
    votes = table.melt("Nr", ["Prüfer", "Bob", "geprüft"], "wer", "label").dropna()
    votes.to_csv(folder / "votes.csv", index=False)
    (folder / "names.csv").write_text('from,to\nBulding,Building\n"building ",Building\n')
    (folder / "names.json").write_text('{"Bulding": "Building", "building ": "Building"}')
    (folder / "other.json").write_text('{"Bilding": "Building"}')
    (folder / "list.json").write_text("[1]")
    (folder / "half.csv").write_text("from,to\nBulding,\n")
    return folder


@pytest.mark.parametrize("file", ["audit.csv", "audit.xlsx"])
def test_the_first_command_gives_a_page(jgram, folder, file):
    result = jgram(f"rank {file} --report Prüfer --report Bob --html page.html")
    assert result.exit_code == 0, result.stderr
    assert (folder / "page.html").stat().st_size > 10_000
    lines = result.stdout.splitlines()
    assert sum(line.startswith(("note ", "warning ")) for line in lines) <= 3
    assert "Prüfer is the most reliable." in lines[-2]
    said = [line for line in lines if "observed through" in line]
    assert said[0].endswith("observed through Betrag, Datum")
    assert "without Nr (never repeats a value: an identifier), geprüft (right labels" in said[1]
    assert "2 columns (2 numbers), by rank; read Betrag '" in lines[1]
    assert ("text in cp1252" in result.stdout) == (file == "audit.csv")
    beside = "'building ' (10), 'Bulding' (4) beside 'Building'"
    assert sum(beside in line for line in lines) == 1


@pytest.mark.parametrize(
    "line",
    ["rank audit.csv --report Bob --merge auto", "score audit.csv --merge auto",
     *(f"issues audit.csv --merge {names}" for names in ("auto", "names.csv", "names.json"))],
)  # fmt: skip
def test_class_names_are_merged_and_it_is_said(jgram, line):
    result = jgram(f"{line} --report Prüfer --observation Datum")
    assert result.exit_code == 0, result.stderr
    assert " records, 3 classes" in result.stdout
    assert "(4)" in result.stdout.split("merged: ")[1].split(" into 'Building'")[0]


def test_answers_are_merged(jgram):
    line = "annotators votes.csv --item Nr --annotator wer --label label --json"
    assert len(json.loads(jgram(line).stdout)["classes"]) == 5
    result = jgram(f"{line} --merge auto")
    assert len(json.loads(result.stdout)["classes"]) == 3
    assert "'Bulding' (4) into 'Building'" in result.stderr


def test_columns_are_listed_and_the_command_to_start_with_runs(jgram):
    result = jgram("rank audit.csv")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    for words in ("Nr left out identifier", "Prüfer report 'Building'", "Bob report", "Datum dates",
                  "Betrag observation numbers", "geprüft right labels (gold) 88%"):  # fmt: skip
        name, *rest = words.split()
        line = next(x for x in result.stdout.splitlines() if x.startswith(f"{name} "))
        assert [word for word in rest if word not in line] == [], line
    record = json.loads(jgram("rank audit.csv --json").stdout)
    assert record["command"] in result.stdout
    assert [one["role"] for one in record["columns"]][1:4] == ["report", "report", "observation"]
    words = shlex.split(record["command"])
    assert words[3:9] == ["--report", "Prüfer", "--report", "Bob", "--gold", "geprüft"]
    assert jgram(record["command"].removeprefix("jgram ")).exit_code == 0
    result = jgram("rank audit.csv --report Prüfer --report Bob --missing-value '' --decimal .")
    assert "Betrag: expected numbers as --thousands and --decimal say" in result.stderr
    alone = jgram("rank alone.csv")
    assert alone.exit_code == 2
    assert "no two columns have class names in common" in alone.stdout


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("--merge all", "all: No such file"),
        ("--merge other.json", "got 'Bilding': did you mean 'Building'?"),
        ("--merge list.json", "list.json: expected an object of names by name, got list"),
        ("--merge half.csv", "to: 1 of 1 names missing (first in row 2)"),
        ("--encoding utf-8", "audit.csv: expected text in utf-8, got byte 0xfc in row 1"),
        ("--encoding klingon", "expected one such as cp1252"),
        ("--sheet A", "expected no --sheet for text in columns"),
        ("--decimal .", "Betrag: expected numbers as --thousands and --decimal say, got '"),
        ("--id Name", "expected a column 'Name'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line(jgram, option, part):
    result = jgram(f"issues audit.csv --report Prüfer --observation Betrag {option}")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
    assert part in result.stderr
