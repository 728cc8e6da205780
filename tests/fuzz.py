"""Tables, arrays, files and options, well and ill formed: a right answer, or one clear line.

Each case starts from clean arrays, from which an oracle in plain NumPy knows the answer. They are
then written some other way (container, type of labels, unit, offset, order of columns, file format)
that must not matter, or with a fault that must be refused. Every case has its own seed.

    python -m tests.fuzz --cases 10000
    python -m tests.fuzz --only 1234          the one case, with its traceback
"""

import argparse
import collections
import contextlib
import csv
import datetime
import gzip
import io
import json
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image
from pyarrow import feather, parquet
from scipy.special import ndtri
from sklearn.covariance import ledoit_wolf

import jgram
from jgram.annotators import answers_from_label_studio
from jgram.cli import main as main_of_jgram
from jgram.cli.images import read_images
from jgram.data import (
    Reading,
    count_files,
    difference,
    encode_reports,
    prepare_table,
    quantile_bins,
    read_columns,
)
from jgram.data.columns import column, time_keys
from jgram.data.table import PreparedTable
from jgram.datasets import read_images as image_files
from jgram.table_kernel import TableKernel

SIZES = (24, 60)  # few, so that compiled code is met again
UNITS = (1.0, 1e-20, 1e-6, 1e6)
OFFSETS = (0.0, 1e7, 1.7e9)
LONGEST = 600  # characters of a message


class Wrong(AssertionError):
    """An answer that is not the oracle's, or a fault that was let through."""


class Case(NamedTuple):
    """What happened: how it was checked and what was said."""

    kind: str
    outcome: str  # "right" or "refused"
    message: str = ""


# Clean cases and their answers ---------------------------------------------------------------


class Clean(NamedTuple):
    """Reports and observations as plain arrays; NaN and None are missing."""

    labels: np.ndarray  # [n] of d classes
    numbers: dict[str, np.ndarray]
    categories: dict[str, np.ndarray]

    @property
    def table(self) -> dict[str, np.ndarray]:
        return {**self.numbers, **self.categories}


def clean(rng: np.random.Generator, *, missing: bool = False) -> Clean:
    n, d = int(rng.choice(SIZES)), int(rng.integers(2, 4))
    truth = rng.permutation(np.arange(n) % d)
    labels = np.where(rng.random(n) < 0.2, rng.permutation(truth), truth)
    numbers = {
        f"v{j}": np.round(4096 * (truth * (j == 0) + rng.normal(size=n))) / 4096
        for j in range(rng.integers(1, 3))
    }
    categories = {
        f"c{j}": np.array(list("abcd"))[(truth + (rng.random(n) < 0.4)) % int(rng.integers(2, 5))]
        for j in range(rng.integers(0, 2))
    }
    categories = {name: c.astype(object) for name, c in categories.items() if len(set(c)) > 1}
    if missing:
        numbers["v0"][rng.random(n) < 0.15] = np.nan
        for c in categories.values():
            c[rng.random(n) < 0.15] = None
    return Clean(labels, numbers, categories)


def plugin_oracle(labels: np.ndarray, kernel: np.ndarray) -> tuple[float, float]:
    """``log det`` of the plug-in Gram matrix, and its condition number."""
    z = (labels[:, None] == np.unique(labels)).astype(float)
    gram = z.T @ kernel @ z / len(labels) ** 2
    sign, value = np.linalg.slogdet(gram)
    condition = np.linalg.cond(gram)
    return (value if sign > 0 and condition < 1e12 else -np.inf), condition


def four_gaussians(points: np.ndarray) -> np.ndarray:
    squares = np.sum((points[:, None] - points[None]) ** 2, axis=-1)
    distances = np.sqrt(squares[np.triu_indices(len(points), 1)])
    median = np.median(distances)
    median = median if median > 1e-12 else np.median(distances[distances > 1e-12])
    return np.mean([np.exp(-squares * 4.0**j / median**2) for j in range(4)], axis=0)


def table_oracle(case: Clean, scale: str) -> np.ndarray:
    """The kernel matrix of a table, side by side and whitened."""
    parts = []
    for values in case.numbers.values():
        absent = np.isnan(values)
        seen = values[~absent]
        if scale == "rank":
            ranks = np.array([(seen < v).sum() + ((seen == v).sum() + 1) / 2 for v in seen])
            seen = ndtri((ranks - 0.5) / len(seen))
        filled = np.full(len(values), np.median(seen))
        filled[~absent] = seen
        if scale == "rank":
            filled[absent] = 0.0
        parts.append(((filled - filled.mean()) / filled.std())[:, None])
        if absent.any():
            parts.append(((absent - absent.mean()) / absent.std())[:, None])
    for values in case.categories.values():
        codes = np.array(["missing" if v is None else v for v in values])
        hot = (codes[:, None] == np.unique(codes)).astype(float)
        parts.append(hot / np.sqrt(1 - np.sum(hot.mean(axis=0) ** 2)))
    points = np.concatenate(parts, axis=1)
    covariance = np.atleast_2d(ledoit_wolf(points)[0])
    values, vectors = np.linalg.eigh(covariance)
    white = points @ vectors @ np.diag(values**-0.5) @ vectors.T
    total, weights = 0.0, 0.0
    for kernel in (four_gaussians(points), four_gaussians(white)):
        centring = np.eye(len(kernel)) - 1 / len(kernel)
        spread = (centring @ kernel @ centring)[~np.eye(len(kernel), dtype=bool)].std()
        total, weights = total + kernel / spread, weights + 1 / spread
    return total / weights


# The same thing written otherwise ------------------------------------------------------------


def as_labels(rng: np.random.Generator, labels: np.ndarray) -> Any:
    """Labels of some type in some container."""
    codes = labels.tolist()
    written: list[Any] = [
        codes,
        [f"class {x}" for x in codes],
        [Decimal(x) for x in codes],
        [float(x) for x in codes],
        [datetime.date(2020, 1, 1 + x) for x in codes],
        [x + 2**40 for x in codes],
        [x + 2**60 for x in codes],
    ][rng.integers(7)]
    return contained(rng, written)


def contained(rng: np.random.Generator, values: list[Any]) -> Any:
    """A column in some container."""
    text = isinstance(values[0], str)
    objects = np.empty(len(values), object)
    objects[:] = values
    choices: list[Callable[[], Any]] = [
        lambda: values,
        lambda: tuple(values),
        lambda: objects,
        lambda: np.ma.array(objects, mask=[v is None for v in values]),
        lambda: pd.Series(values),
        lambda: pd.Series(values, index=rng.permutation(len(values))),
        lambda: pl.Series(values, strict=False),
        lambda: pa.array(values),
        lambda: pa.chunked_array([values[:7], values[7:]]),
        lambda: pa.array(values).dictionary_encode() if text else pa.array(values),
        lambda: pa.array(values, pa.string_view()) if text else pa.array(values),
        lambda: pc.run_end_encode(pa.array(values)),
        lambda: pd.Series(values, dtype="category") if text else pd.Series(values).convert_dtypes(),
        lambda: (
            pl.Series(values, dtype=pl.Categorical) if text else pl.Series(values, strict=False)
        ),
        lambda: dict(enumerate(values)).values(),
    ]
    return choices[rng.integers(len(choices))]()


def moved(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Numbers in another unit, or far from 0; exact where the oracle's numbers are."""
    if rng.random() < 0.5:
        return values * rng.choice(UNITS)
    return values + rng.choice(OFFSETS)


def as_table(rng: np.random.Generator, case: Clean) -> Any:
    """The observations as a mapping of containers, or as a frame."""
    numbers = {
        name: [None if np.isnan(v) else v for v in moved(rng, values).tolist()]
        for name, values in case.numbers.items()
    }
    columns = {**numbers, **{name: c.tolist() for name, c in case.categories.items()}}
    match rng.integers(6):
        case 0:
            return pd.DataFrame(columns)
        case 1:
            return pl.DataFrame(columns)
        case 2:
            return pa.table(columns)
        case 3:
            return pl.LazyFrame(columns)
        case 4:
            return pa.record_batch(columns)
    found = {}
    for name, values in columns.items():
        column = contained(rng, values)
        found[name] = column.reset_index(drop=True) if isinstance(column, pd.Series) else column
    return found


def as_file(rng: np.random.Generator, columns: dict[str, list[Any]], folder: Path) -> Path:
    """The columns as a file of some format."""
    suffix = str(rng.choice([".csv", ".tsv", ".txt", ".parquet", ".feather"]))
    sink = io.BytesIO()
    if suffix in (".parquet", ".feather"):
        table = pa.table(columns)
        if rng.random() < 0.5:
            texts = [n for n, c in columns.items() if any(isinstance(v, str) for v in c)]
            for name in texts:
                encoded = table[name].dictionary_encode()
                table = table.set_column(table.column_names.index(name), name, encoded)
        (parquet.write_table if suffix == ".parquet" else feather.write_feather)(table, sink)
        content = sink.getvalue()
    else:
        separator = "\t" if suffix == ".tsv" else str(rng.choice([",", ";", "|", "\t"]))
        quoting = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator, quoting=quoting)
        if rng.random() < 0.2:
            writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
        content = text.getvalue().encode(encoding)
    if rng.random() < 0.3:
        content, suffix = gzip.compress(content), f"{suffix}.gz"
    path = folder / f"case{suffix}"
    path.write_bytes(content)
    return path


# Right answers -------------------------------------------------------------------------------


def agree(found: float | None, expected: float, condition: float, what: str) -> None:
    found = -np.inf if found is None else float(found)
    if np.isinf(expected) or np.isinf(found):
        if condition < 1e4 and found != expected:
            raise Wrong(
                f"{what}: {found} where the oracle has {expected} (condition {condition:g})"
            )
        return
    if not abs(found - expected) <= 1e-3 + 1e-5 * condition:
        raise Wrong(f"{what}: {found} where the oracle has {expected} (condition {condition:g})")


def gram_log_score(labels: np.ndarray, prepared: PreparedTable) -> float:
    kernel = TableKernel.of(prepared.points, prepared.table_width)
    points = kernel.prepare(prepared.points)
    return plugin_oracle(labels, np.asarray(kernel.block(points, points), float))[0]


def right_categories(rng: np.random.Generator) -> Case:
    case = clean(rng)
    y = np.array([f"outcome {v}" for v in (case.labels + (rng.random(len(case.labels)) < 0.3)) % 4])
    given = as_labels(rng, case.labels)
    observed = contained(rng, y.tolist())
    if isinstance(given, pd.Series):
        given = given.reset_index(drop=True)
    if isinstance(observed, pd.Series):
        observed = observed.reset_index(drop=True)
    found = jgram.score(given, observed, jgram.delta)
    expected, condition = plugin_oracle(case.labels, (y[:, None] == y).astype(float))
    agree(found.log_score, expected, condition, "delta")
    return Case("categories", "right")


def right_numbers(rng: np.random.Generator) -> Case:
    case = clean(rng)
    y = np.column_stack(list(case.numbers.values()))
    squares = np.sum((y[:, None] - y[None]) ** 2, axis=-1)
    median = np.median(np.sqrt(squares[np.triu_indices(len(y), 1)]))
    expected, condition = plugin_oracle(case.labels, np.exp(-squares / median**2))
    given = as_labels(rng, case.labels)
    given = given.reset_index(drop=True) if isinstance(given, pd.Series) else given
    observed = y * rng.choice([1e-6, 1.0, 1e6])
    match rng.integers(4):
        case 0:
            observed = pd.DataFrame(observed)
        case 1:
            observed = observed.tolist()
        case 2:
            observed = pl.DataFrame(observed)
    found = jgram.score(given, observed, jgram.RBF())
    agree(found.log_score, expected, condition, "rbf")
    return Case("numbers", "right")


def right_table(rng: np.random.Generator) -> Case:
    case = clean(rng, missing=rng.random() < 0.5)
    scale = "rank" if rng.random() < 0.7 else "standard"
    prepared = prepare_table(as_table(rng, case), scale=scale)
    expected, condition = plugin_oracle(case.labels, table_oracle(case, scale))
    agree(gram_log_score(case.labels, prepared), expected, condition, f"table by {scale}")
    return Case("table", "right")


def right_file(rng: np.random.Generator) -> Case:
    case = clean(rng, missing=rng.random() < 0.5)
    columns = {
        "label": [f"class {x}" for x in case.labels],
        **{n: [None if np.isnan(v) else v for v in c.tolist()] for n, c in case.numbers.items()},
        **{n: c.tolist() for n, c in case.categories.items()},
    }
    order = rng.permutation(list(columns))
    with tempfile.TemporaryDirectory() as folder:
        path = as_file(rng, {name: columns[name] for name in order}, Path(folder))
        read = read_columns(path, ["label", *case.table])
    codes = encode_reports({"label": read.pop("label")}).codes["label"]
    expected, condition = plugin_oracle(case.labels, table_oracle(case, "rank"))
    agree(gram_log_score(codes, prepare_table(read)), expected, condition, path.name)
    return Case("file", "right")


def right_codes(rng: np.random.Generator) -> Case:
    """Missing labels kept, dropped, or an abstention: codes against plain loops."""
    case = clean(rng)
    absent = rng.random((2, len(case.labels))) < 0.2
    texts = [
        [None if a else f"k{x}" for x, a in zip(case.labels, row, strict=True)] for row in absent
    ]
    given = {"ann": contained(rng, texts[0]), "bob": contained(rng, texts[1])}
    given = {k: v.reset_index(drop=True) if hasattr(v, "iloc") else v for k, v in given.items()}
    missing = str(rng.choice(["keep", "drop"]))
    encoded = encode_reports(given, missing=missing)
    keep = [j for j in range(len(case.labels)) if missing == "keep" or not absent[:, j].any()]
    for name, row in zip(given, texts, strict=True):
        found = [encoded.classes[c] if c >= 0 else None for c in encoded.codes[name]]
        if found != [row[j] for j in keep] or encoded.rows.tolist() != keep:
            raise Wrong(f"codes of {name} with missing={missing}")
    return Case("codes", "right")


# Faults that must be refused -----------------------------------------------------------------


def broken_labels(rng: np.random.Generator) -> Iterator[tuple[str, Callable[[], Any]]]:
    x = clean(rng).labels
    n, row = len(x), int(rng.integers(len(x)))
    words = [f"k{v}" for v in x]

    def put(values: Any, value: Any) -> list[Any]:
        values = list(values)
        values[row] = value
        return values

    def encode(labels: Any, **options: Any) -> Callable[[], Any]:
        return lambda: encode_reports({"x": labels}, **options)

    yield "missing", encode(contained(rng, put(words, None)))
    yield "NaN", encode(put(x.astype(float).tolist(), float("nan")))
    yield "masked", encode(np.ma.array(x, mask=np.arange(n) == row))
    yield "dictionary null", encode(pa.array(put(words, None)).dictionary_encode())
    yield "mixed", encode(put(words, 3))
    yield "bool and int", encode(put(x.tolist(), True))
    yield "fraction", encode(contained(rng, put(x.astype(float).tolist(), 1.25)))
    yield "Decimal fraction", encode(put([Decimal(int(v)) for v in x], Decimal("0.5")))
    yield "negative", encode(contained(rng, put(x.tolist(), -1)))
    yield "infinite", encode(put(x.astype(float).tolist(), float("inf")))
    yield "complex", encode(x * 1j)
    yield "two columns", encode(np.column_stack([x, x]))
    yield "one column", encode(x[:, None])
    yield "ragged", encode(put([[int(v)] for v in x], [1, 2]))
    yield "struct", encode(pl.Series([{"a": int(v)} for v in x]))
    yield "record", encode([{"a": int(v)} for v in x])
    yield "set", encode(set(words))
    yield "text", encode("abc")
    yield "generator", encode(v for v in words)
    yield "nothing", encode([])
    yield "identifier", encode(contained(rng, [f"id{j}" for j in range(n)]))
    yield "row numbers", encode(rng.permutation(n))
    yield "percentages", encode([f"{v:.3f}%" for v in rng.normal(size=n)])
    yield "all missing", encode([None] * n, missing="drop")
    yield "option", encode(words, missing="Drop")
    yield "classes with None", encode(words, classes=["k0", "k1", "k2", None])
    yield "class not listed", encode(words, classes=["k0"])
    yield "twice listed", encode(words, classes=["k0", "k1", "k2", "k0"])
    yield "too few classes", encode(x, num_classes=1)
    yield "no classes", encode(x, num_classes=0)
    yield "classes in part", encode(x, num_classes=2.5)
    yield "list of reports", lambda: encode_reports([words, words])
    yield "no reports", lambda: encode_reports({})
    yield "lengths", lambda: encode_reports({"a": words, "b": words[1:]})
    yield "types", lambda: encode_reports({"a": words, "b": x})
    shuffled = pd.Series(words, index=np.roll(np.arange(n), 1))
    yield "index", lambda: encode_reports({"a": pd.Series(words), "b": shuffled})
    yield "score of other lengths", lambda: jgram.score(words, x[1:].astype(float))
    yield "one report to rank", lambda: jgram.rank_reports({"a": words}, x)


def broken_table(rng: np.random.Generator) -> Iterator[tuple[str, Callable[[], Any]]]:
    case = clean(rng)
    v = case.numbers["v0"]
    n, row = len(v), int(rng.integers(len(v)))

    def put(value: Any) -> list[Any]:
        values: list[Any] = v.tolist()
        values[row] = value
        return values

    def prepare(y: Any, **options: Any) -> Callable[[], Any]:
        return lambda: prepare_table(y, **options)

    yield "infinite", prepare({"v": contained(rng, put(float("inf")))})
    yield "mixed", prepare({"v": put("a")})
    yield "complex", prepare({"v": v * 1j})
    yield "percentages", prepare({"v": contained(rng, [f"{x:.2f}%" for x in v])})
    yield "currency", prepare({"v": [f"€ {abs(x):.2f}".replace(".", ",") for x in v]})
    yield "decimal texts", prepare({"v": [f"{x:.4f}" for x in v]})
    yield "ragged", prepare({"v": [[1.0, 2.0]] * (n - 1) + [[1.0]]})
    yield "struct", prepare({"v": pl.Series([{"a": x} for x in v])})
    yield "lists of lists", prepare({"v": pl.Series([[{"a": x}] for x in v])})
    yield "constant", prepare({"v": contained(rng, [1.5] * n)})
    yield "identifiers", prepare({"v": contained(rng, [f"id{j}" for j in range(n)])})
    yield "nothing there", prepare({"v": contained(rng, [None] * n)})
    yield "no records", prepare({"v": []})
    yield "no columns", prepare({})
    yield "empty block", prepare(np.zeros((n, 0)))
    yield "lengths", prepare({"v": v, "w": v[1:]})
    yield "missing in a block", prepare(np.column_stack([put(np.nan), v]))
    yield "masked block", prepare(np.ma.array(np.column_stack([v, v]), mask=np.eye(n)[:, :2]))
    yield "other column", prepare(case.table, kinds={"vv": "number"})
    yield "other kind", prepare(case.table, kinds={"v0": "text"})
    yield "all ignored", prepare({"v": v}, kinds={"v": "ignore"})
    yield "text as number", prepare({"c": ["a", "b"] * (n // 2)}, kinds={"c": "number"})
    yield "other scale", prepare(case.table, scale="ranks")
    yield "same names", prepare(pd.DataFrame(np.column_stack([v, v]), columns=["a", "a"]))
    yield "text", prepare("abc")
    yield "a number", prepare(3.5)
    shuffled = pd.Series(v, index=np.roll(np.arange(n), 1))
    yield "index", prepare({"a": pd.Series(v), "b": shuffled})
    yield "many bins", lambda: quantile_bins(v, 100_000)
    yield "no bins", lambda: quantile_bins(v, int(rng.integers(-2, 2)))
    yield "bins in part", lambda: quantile_bins(v, 2.5)
    yield "bins of ties", lambda: quantile_bins([1.0] * n, 3)
    yield "changes of one", lambda: difference(v[:1])


def broken_file(rng: np.random.Generator, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    def read(content: bytes | str, name: str = "case.csv", *args: Any, **options: Any) -> Any:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return lambda: read_columns(path, *args, **options)

    lines = "".join(f"{j},{x:.3f}\n" for j, x in enumerate(rng.normal(size=8)))
    table = f"a,b\n{lines}"
    yield "cut gzip", read(gzip.compress(table.encode())[:-9], "case.csv.gz")
    yield "no gzip", read(table, "case.csv.gz")
    yield "other format", read(table, f"case.{rng.choice(['xlsx', 'json', 'gz', 'sas7bdat'])}")
    yield (
        "text as binary",
        read(table, f"case.{rng.choice(['parquet', 'npz', 'feather', 'arrow', 'pq'])}"),
    )
    yield "short line", read(table + "1\n")
    yield "long line", read(table + "1,2,3\n")
    yield "two separators", read("a,b;c\n1,2;3\n1,2;3\n")
    yield "latin-1", read("a,b\n1,\u00e9\n".encode("latin-1"))
    yield "same names", read("a,a\n1,2\n")
    yield "empty", read("")
    yield "header only", read("a,b\n")
    yield "grouped", read('a,b\n"1,234",1\n"5,678",2\n')
    yield "comma decimals", read("a;b\n1,5;x\n2,5;y\n")
    yield "no separator", read(table, "case.csv", separator="")
    yield "long separator", read(table, "case.csv", separator="ab")
    yield "other column", read(table, "case.csv", ["c"])
    yield "column twice", read(table, "case.csv", ["a", "a"])
    sink = io.BytesIO()
    parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), sink)
    yield "no rows", read(sink.getvalue(), "case.parquet")
    yield "cut parquet", read(sink.getvalue()[:-5], "case.parquet")


def refusal(kind: str, call: Callable[[], Any]) -> Case:
    """The one line with which a fault is refused."""
    try:
        found = call()
    except ValueError as error:
        message = str(error)
        if type(error) is not ValueError:
            raise Wrong(f"{kind}: {type(error).__name__} reached the user: {message}") from error
        if not message or "\n" in message or len(message) > LONGEST:
            raise Wrong(f"{kind}: not one clear line: {message!r}") from error
        return Case(kind, "refused", message)
    raise Wrong(f"{kind}: let through, giving {str(found)[:200]}")


def broken(rng: np.random.Generator) -> Case:
    with tempfile.TemporaryDirectory() as folder:
        family = int(rng.integers(3))
        if family == 0:
            kind, faults = "labels", list(broken_labels(rng))
        elif family == 1:
            kind, faults = "table", list(broken_table(rng))
        else:
            faults = broken_file(rng, Path(folder))
            kind, faults = "file", [next(faults) for _ in range(rng.integers(1, 20))][-1:]
        name, call = faults[rng.integers(len(faults))]
        return refusal(f"{kind}: {name}", call)


# Stray quotes: every record, or a refusal ---------------------------------------------------


def stray_quotes(rng: np.random.Generator, strays: int | None = None) -> Case:
    """A text file, or a folder of two, into which quotes were put at random places."""
    n, k = int(rng.integers(3, 90)), int(rng.integers(2, 5))
    separator = str(rng.choice([",", ";", "|"]))
    words = ["a", "b c", "", "NA", '5" pipe', f"p{separator} q", "one\ntwo", f'{separator}x "y"']
    words = words[: int(rng.integers(2, len(words) + 1))]
    columns = {}
    for j in range(k):
        if rng.random() < 0.4:
            columns[f"c{j}"] = [str(x) for x in rng.integers(0, 30, n)]
        else:
            columns[f"c{j}"] = [str(x) for x in rng.choice(words, n)]
    columns["id"] = [str(i) for i in range(n)]  # no row is blank
    columns = {name: columns[name] for name in rng.permutation(list(columns))}
    quoting = csv.QUOTE_ALL if rng.random() < 0.2 else csv.QUOTE_MINIMAL
    end = str(rng.choice(["\n", "\r\n"]))
    parts, cut = [], int(rng.integers(1, n))
    for rows in (slice(cut), slice(cut, n)):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end)
        writer.writerows(zip(*(column[rows] for column in columns.values()), strict=True))
        parts.append(text.getvalue())
    strays = int(rng.integers(5)) if strays is None else strays
    for _ in range(strays):
        which = int(rng.integers(2))
        body = parts[which]
        edges = [m.end() for m in re.finditer(rf"[{re.escape(separator)}\n]", body)]
        edges += [m.start() for m in re.finditer(rf"[{re.escape(separator)}\r\n]", body)]
        place = int(rng.choice(edges)) if rng.random() < 0.9 else int(rng.integers(len(body)))
        parts[which] = body[:place] + '"' + body[place:]
    header = separator.join(columns) + end
    with tempfile.TemporaryDirectory() as folder:
        suffix = ".csv.gz" if rng.random() < 0.2 else ".csv"
        zipped = gzip.compress if suffix == ".csv.gz" else bytes
        whole, many = Path(folder) / f"case{suffix}", Path(folder) / "many"
        many.mkdir()
        whole.write_bytes(zipped((header + "".join(parts)).encode()))
        for i, part in enumerate(parts):
            (many / f"{i}{suffix}").write_bytes(zipped((header + part).encode()))
        reading = Reading(tuple(columns), separator=separator)
        ways = {
            whole: lambda: len(read_columns(whole, separator=separator)["id"]),
            many: lambda: count_files(many, reading).num_records,
        }
        for path, way in ways.items():
            try:
                found = way()
            except ValueError as error:
                line = str(error)
                if strays == 0 and "quotes join" not in line:
                    raise Wrong(f"no stray quotes, and refused: {line}") from error
                if type(error) is not ValueError or not re.match(
                    rf"{re.escape(str(path))}.*(\(line \d+\)|in line \d+): ", line
                ):
                    raise Wrong(f"not one line that names file and row: {line!r}") from error
                return Case("stray quotes", "refused", line)
            if found != n:
                raise Wrong(f"{found} of {n} records read: {path.name}")
    return Case("stray quotes", "right")


# Files that were damaged, exports of another shape: no raw error ----------------------------


def damaged_file(rng: np.random.Generator) -> Case:
    """A file cut off or with bytes that flipped: read somehow, or refused in one line."""
    n = 40
    columns = {"x": rng.normal(size=n), "label": rng.choice(["a", "b", "long name"], n)}
    suffix = str(rng.choice([".parquet", ".feather", ".npz", ".csv.gz", ".png"]))
    sink = io.BytesIO()
    if suffix == ".npz":
        np.savez_compressed(sink, x=columns["x"], label=columns["label"])
    elif suffix == ".csv.gz":
        sink.write(gzip.compress(pd.DataFrame(columns).to_csv(index=False).encode(), mtime=0))
    elif suffix == ".png":
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(sink, "PNG")
    else:
        write = parquet.write_table if suffix == ".parquet" else feather.write_feather
        write(pa.table(columns), sink)
    data = bytearray(sink.getvalue())
    if rng.random() < 0.4:
        del data[int(rng.integers(len(data))) :]
    else:
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            data[place] ^= 1 << int(rng.integers(8))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"case{suffix}"
        path.write_bytes(data)
        ways: list[Callable[[], Any]] = [lambda: read_columns(path)]
        if suffix == ".png":
            ways = [
                lambda: read_images(Path(folder), [0], 1, None, {}),
                lambda: image_files(folder),
            ]
        elif suffix != ".npz":
            ways.append(lambda: count_files(path, Reading(("label",))))
        outcomes = [_read_or_refused(path, way) for way in ways]
    return Case(f"damaged {suffix}", "refused" if "refused" in outcomes else "right")


def hostile_export(rng: np.random.Generator) -> Case:
    """An export of Label Studio of which one part is null, or of another type."""
    choice = {"from_name": "kind", "type": "choices", "value": {"choices": ["cat"]}}
    tasks: Any = [
        {"id": i, "data": {"image": f"{i}.jpg"}, "annotations": [
            {"completed_by": {"id": who, "email": f"{who}@x"}, "result": [choice]}
            for who in range(3)
        ]}
        for i in range(4)
    ]  # fmt: skip
    tasks = json.loads(json.dumps(tasks))
    places, nodes = [], [tasks]
    while nodes:
        node = nodes.pop()
        for key in range(len(node)) if isinstance(node, list) else list(node):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                nodes.append(node[key])
    node, key = places[rng.integers(len(places))]
    others = [None, 3, -1.5, "text", True, [], {}, [None], [[1]], {"a": 1}, [{}], ["a", "b"]]
    node[key] = others[rng.integers(len(others))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.json"
        path.write_text(json.dumps(tasks))
        item = str(rng.choice(["image", ""])) or None
        way = lambda: answers_from_label_studio(path, item=item)  # noqa: E731
        return Case("export", _read_or_refused(None, way))


def _read_or_refused(path: Path | None, way: Callable[[], Any]) -> str:
    """What came of it; any error but one line that names the file is wrong."""
    try:
        way()
    except ValueError as error:
        line = str(error)
        named = path is None or str(path) in line or line.startswith(("x: ", "label: "))
        if type(error) is not ValueError or "\n" in line or len(line) > LONGEST or not named:
            raise Wrong(f"not one line that names the file: {error!r}") from error
        return "refused"
    except MemoryError:  # a size that flipped
        return "refused"
    return "right"


# Dates, names that collide, integers that no float tells apart, outputs that are inputs -----

FORMS = (
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%d.%m.%Y %H:%M",
)


def dates(rng: np.random.Generator) -> Case:
    """A date column alone, or beside another, is the number of its days; so it is in order."""
    labels = clean(rng).labels
    days = 900 * labels + rng.integers(0, 2500, len(labels))
    form = str(rng.choice(FORMS))
    start, numbers = datetime.datetime(2001, 3, 1), {"day": days.astype(float)}
    written = [(start + datetime.timedelta(int(day))).strftime(form) for day in days]
    columns: dict[str, Any] = {"day": written}
    if rng.random() < 0.5:
        numbers["v"] = rng.normal(size=len(days))
        columns["v"] = numbers["v"].tolist()
    with tempfile.TemporaryDirectory() as folder:
        if rng.random() < 0.5:
            columns = read_columns(as_file(rng, columns, Path(folder)))
    expected, condition = plugin_oracle(labels, table_oracle(Clean(labels, numbers, {}), "rank"))
    alone = columns["day"] if len(columns) == 1 else columns
    agree(jgram.score(labels, alone).log_score, expected, condition, form)
    keys = time_keys(column(columns["day"], "day"))
    if not np.array_equal(np.argsort(keys, kind="stable"), np.argsort(days, kind="stable")):
        raise Wrong(f"dates of the form {form} are not in the order of time")
    return Case("dates", "right")


def collisions(rng: np.random.Generator) -> Case:
    """Two columns whose names are nearly one: both are used, or both refused."""
    case = clean(rng)
    pairs = ((1, "1"), ("a", "a "), ("a", "A"), ("\u00e9", "e\u0301"), ("a", "a\x1b[0m"), (1, True))
    one, other = pairs[rng.integers(len(pairs))]
    values = rng.normal(size=(2, len(case.labels))).round(6)
    given: Any = {one: values[0], other: values[1]}
    oracle = Clean(case.labels, {"one": values[0], "other": values[1]}, {})
    expected, condition = plugin_oracle(case.labels, table_oracle(oracle, "rank"))
    with tempfile.TemporaryDirectory() as folder:
        match rng.integers(3) if len(given) == 2 else 1:
            case 0:
                way = lambda: prepare_table(given)  # noqa: E731
            case 1:
                frame = pd.DataFrame(values.T, columns=pd.Index([one, other], dtype=object))
                way = lambda: prepare_table(frame)  # noqa: E731
            case _:
                path = Path(folder) / "case.csv"
                rows = zip(*values.tolist(), strict=True)
                with path.open("w", newline="") as file:
                    csv.writer(file).writerows([(one, other), *rows])
                way = lambda: prepare_table(read_columns(path))  # noqa: E731
        try:
            found = way()
        except ValueError:
            return refusal("collisions", way)
    agree(gram_log_score(case.labels, found), expected, condition, f"columns {one!r}, {other!r}")
    return Case("collisions", "right")


def large_integers(rng: np.random.Generator) -> Case:
    """Labels that differ by 1 beyond 2^53, one of them perhaps as 1e5: as many classes, or none."""
    values: list[Any] = [int(rng.choice([2**53, 2**60, 2**63 - 9])) + x for x in clean(rng).labels]
    if rng.random() < 0.5:
        values[int(rng.integers(len(values)))] = float(rng.choice([1e5, 1e20]))
        containers = [list, tuple, lambda v: np.array(v, object)]
        given = containers[rng.integers(3)](values)
    else:
        given = contained(rng, values)
    with tempfile.TemporaryDirectory() as folder:
        if rng.random() < 0.5:
            path = Path(folder) / "case.csv"
            path.write_text("x,i\n" + "".join(f"{v},{i}\n" for i, v in enumerate(values)))
            given = read_columns(path)["x"]
    encode = lambda: encode_reports({"x": given}).codes["x"].tolist()  # noqa: E731
    try:
        codes = encode()
    except ValueError:
        return refusal("large integers", encode)
    if not len(set(codes)) == len(set(values)) == len(set(zip(codes, values, strict=True))):
        raise Wrong(f"{len(set(values))} integers became {len(set(codes))} classes")
    return Case("large integers", "right")


def outputs(rng: np.random.Generator) -> Case:
    """An output that is an input, spelled in any way: refused, and the input as it was."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs, other = folder / "in", folder / "other"
        inputs.mkdir(), other.mkdir()
        data = inputs / "data.csv"
        data.write_text("a,b,y\n" + "".join(f"{i % 2},{i % 3 % 2},{i % 2}\n" for i in range(24)))
        (folder / "link").symlink_to(inputs), (other / "soft.csv").symlink_to(data)
        (other / "hard.csv").hardlink_to(data)
        spellings = (
            data, inputs / ".." / "in" / "data.csv", folder / "link" / "data.csv",
            other / "soft.csv", other / "hard.csv", Path(os.path.relpath(data)),
        )  # fmt: skip
        out = str(spellings[rng.integers(len(spellings))])
        source = str([data, inputs, inputs / "*.csv", spellings[2]][rng.integers(4)])
        commands = (
            ["issues", source, "--report", "a", "--observation", "y", "--out", out],
            [
                "issues",
                source,
                "--report",
                "a",
                "--observation",
                "y",
                "--to-check",
                "5",
                "--out",
                out,
            ],
            ["annotators", source, "--labels-out", out],
            ["annotators", source, "--out", out],
        )
        before, said = data.read_bytes(), io.StringIO()
        with (
            mock.patch("jgram.cli.process.prepare_process"),
            contextlib.redirect_stderr(said),
            contextlib.redirect_stdout(said),
        ):
            try:
                main_of_jgram(commands[rng.integers(len(commands))])
            except SystemExit as ended:
                code = ended.code
        if data.read_bytes() != before or code != 2 or "Traceback" in said.getvalue():
            raise Wrong(f"{source} read and {out} written: {code}, {said.getvalue()[:200]}")
    return Case("outputs", "refused")


# Running ------------------------------------------------------------------------------------

KINDS = {
    "quotes": stray_quotes,
    "damaged": damaged_file,
    "export": hostile_export,
    "dates": dates,
    "collisions": collisions,
    "integers": large_integers,
    "outputs": outputs,
}
RIGHT = (right_categories, right_numbers, right_table, right_table, right_file, right_codes)


def run_case(seed: int, kind: str | None = None) -> Case:
    """One case: half of them have an answer that the oracle knows, half a fault."""
    rng = np.random.default_rng(seed)
    if kind is not None:
        return KINDS[kind](rng)
    if rng.random() < 0.5:
        right = [*RIGHT, *KINDS.values()]
        return right[rng.integers(len(right))](rng)
    return broken(rng)


def run(
    cases: int, first: int = 0, kind: str | None = None
) -> tuple[collections.Counter[str], dict[int, str]]:
    """Counts by kind of all cases, and what went wrong by seed."""
    counts: collections.Counter[str] = collections.Counter()
    wrong: dict[int, str] = {}
    for seed in range(first, first + cases):
        try:
            case = run_case(seed, kind)
            counts[f"{case.outcome}: {case.kind}"] += 1
        except Exception as error:
            wrong[seed] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="Seed of the first case.")
    parser.add_argument("--only", type=int, help="Run this one case and show what it says.")
    parser.add_argument("--kind", choices=KINDS, help="Cases of this kind alone.")
    arguments = parser.parse_args()
    if arguments.only is not None:
        try:
            print(run_case(arguments.only, arguments.kind))
        except Exception:
            traceback.print_exc()
            return 1
        return 0
    start = time.perf_counter()
    counts, wrong = run(arguments.cases, arguments.first, arguments.kind)
    for kind, count in sorted(counts.items()):
        print(f"{count:6} {kind}")
    right = sum(count for kind, count in counts.items() if kind.startswith("right"))
    seconds = time.perf_counter() - start
    print(f"{arguments.cases} cases in {seconds:.0f} s: {right} equal to the oracle, "
          f"{sum(counts.values()) - right} refused in one line, {len(wrong)} wrong")  # fmt: skip
    for seed, message in list(wrong.items())[:20]:
        print(f"  seed {seed}: {message}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
