"""Tables, labels and files written any way, well and ill formed: a right answer, or one clear line.

Each case starts from clean arrays, of which plain NumPy knows the answer, and is written in some
container or file that must not matter, or damaged. More: ``--hypothesis-profile=long``.
"""

import csv
import datetime
import gzip
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pyarrow import feather, parquet
from scipy.special import ndtri
from sklearn.covariance import ledoit_wolf

from jgram.annotators import answers_from_label_studio
from jgram.cli.images import draw_images
from jgram.data import Reading, count_files, encode_reports, prepare_table, read_columns
from jgram.data.columns import column, time_keys
from jgram.datasets import read_images
from jgram.table_kernel import TableKernel

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("unchecked")]
many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # of one folder
more = settings(many, max_examples=3 * many.max_examples)

N = 24  # one, so that compiled code is met again
random = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def objects(values):
    made = np.empty(len(values), object)
    made[:] = values
    return made


ANY = (
    list, tuple, objects, pd.Series, pa.array,
    lambda values: np.ma.array(objects(values), mask=[v is None for v in values]),
    lambda values: pl.Series(values, strict=False),
    lambda values: pa.chunked_array([values[:7], values[7:]]),
    lambda values: pc.run_end_encode(pa.array(values)),
    lambda values: pd.Series(values).convert_dtypes(),
    lambda values: dict(enumerate(values)).values(),
)  # fmt: skip
OF_TEXTS = (
    lambda values: pd.Series(values, dtype="category"),
    lambda values: pl.Series(values, dtype=pl.Categorical),
    lambda values: pa.array(values).dictionary_encode(),
    lambda values: pa.array(values, pa.string_view()),
)


def ways(values: list[Any]) -> np.ndarray:
    """The containers that such values can be in."""
    texts = any(isinstance(value, str) for value in values)
    return np.array(ANY + OF_TEXTS * texts, object)


WRITTEN = (
    int, float, "class {}".format, Decimal, lambda x: datetime.date(2020, 1, 1 + x),
    lambda x: x + 2**40, lambda x: x + 2**53, lambda x: x + 2**60, lambda x: x + 2**63 - 9,
)  # fmt: skip


@given(random, st.sampled_from(WRITTEN), st.sampled_from(["keep", "drop"]))
def test_labels_of_any_type_in_any_container_are_told_apart(rng, written, missing):
    codes = rng.integers(0, 3, (2, N))
    absent = rng.random((2, N)) < 0.2 * isinstance(written(0), str)
    reports = {
        name: [None if a else written(x) for x, a in zip(row.tolist(), gaps, strict=True)]
        for name, row, gaps in zip("ab", codes, absent, strict=True)
    }
    container = rng.choice(ways(reports["a"]))
    given = {name: container(values) for name, values in reports.items()}
    encoded = encode_reports(given, missing=missing)
    kept = [j for j in range(N) if missing == "keep" or not absent[:, j].any()]
    assert encoded.rows.tolist() == kept
    pairs = {
        (encoded.codes[name][i], reports[name][j]) for name in "ab" for i, j in enumerate(kept)
    }
    assert len(pairs) == len({code for code, _ in pairs}) == len({value for _, value in pairs})
    assert all((code < 0) == (value is None) for code, value in pairs)


# Tables -------------------------------------------------------------------------------------


def clean(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
    """Labels of ``N`` records, and columns of numbers and categories, some with gaps."""
    labels = rng.permutation(np.arange(N) % 3)
    columns: dict[str, Any] = {"v": np.round(4096 * (labels + rng.normal(size=N))) / 4096}
    if rng.random() < 0.5:
        columns["w"] = np.round(4096 * rng.normal(size=N)) / 4096
    if rng.random() < 0.5:
        columns["c"] = np.array(list("abcd"))[labels + (rng.random(N) < 0.4)].astype(object)
    if rng.random() < 0.5:
        columns["v"][rng.random(N) < 0.15] = np.nan
        if "c" in columns:
            columns["c"][rng.random(N) < 0.15] = None
    return labels, columns


def log_score(labels: np.ndarray, kernel: np.ndarray) -> tuple[float, float]:
    """``log det`` of the plug-in Gram matrix, and its condition number."""
    z = np.eye(3)[labels] / N
    gram = z.T @ kernel @ z
    return np.linalg.slogdet(gram)[1], np.linalg.cond(gram)


def four_gaussians(points: np.ndarray) -> np.ndarray:
    squares = np.sum((points[:, None] - points[None]) ** 2, axis=-1)
    distances = np.sqrt(squares[np.triu_indices(N, 1)])
    median = np.median(distances)
    median = median if median > 1e-12 else np.median(distances[distances > 1e-12])
    return np.mean([np.exp(-squares * 4.0**j / median**2) for j in range(4)], axis=0)


def table_oracle(columns: dict[str, Any], scale: str) -> np.ndarray:
    """The kernel matrix of a table, side by side and whitened."""
    parts = []
    for values in columns.values():
        if values.dtype == object:
            codes = np.array(["missing" if v is None else v for v in values])
            hot = (codes[:, None] == np.unique(codes)).astype(float)
            parts.append(hot / np.sqrt(1 - np.sum(hot.mean(axis=0) ** 2)))
            continue
        absent = np.isnan(values)
        seen = values[~absent]
        if scale == "rank":
            ranks = np.array([(seen < v).sum() + ((seen == v).sum() + 1) / 2 for v in seen])
            seen = ndtri((ranks - 0.5) / len(seen))
        filled = np.full(N, 0.0 if scale == "rank" else np.median(seen))
        filled[~absent] = seen
        parts.append(((filled - filled.mean()) / filled.std())[:, None])
        if absent.any():
            parts.append(((absent - absent.mean()) / absent.std())[:, None])
    points = np.concatenate(parts, axis=1)
    values, vectors = np.linalg.eigh(np.atleast_2d(ledoit_wolf(points)[0]))
    white = points @ vectors @ np.diag(values**-0.5) @ vectors.T
    total, weights = 0.0, 0.0
    for kernel in (four_gaussians(points), four_gaussians(white)):
        centring = np.eye(N) - 1 / N
        spread = (centring @ kernel @ centring)[~np.eye(N, dtype=bool)].std()
        total, weights = total + kernel / spread, weights + 1 / spread
    return total / weights


def as_file(rng: np.random.Generator, columns: dict[str, list[Any]], folder: Path) -> Path:
    """The columns as a file of some format."""
    suffix = str(rng.choice([".csv", ".tsv", ".txt", ".parquet", ".feather"]))
    sink = io.BytesIO()
    if suffix in (".parquet", ".feather"):
        write = parquet.write_table if suffix == ".parquet" else feather.write_feather
        encode = lambda made: made.dictionary_encode() if made.type == pa.string() else made  # noqa: E731
        write(pa.table({name: encode(pa.array(cells)) for name, cells in columns.items()}), sink)
        content = sink.getvalue()
    else:
        separator = "\t" if suffix == ".tsv" else str(rng.choice([",", ";", "|", "\t"]))
        quoting = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
        end = str(rng.choice(["\n", "\r\n"]))
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        content = text.getvalue().encode(str(rng.choice(["utf-8", "utf-8-sig", "utf-16"])))
    if rng.random() < 0.3:
        content, suffix = gzip.compress(content), f"{suffix}.gz"
    path = folder / f"case{suffix}"
    path.write_bytes(content)
    return path


FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M")
FRAMES = (pd.DataFrame, pl.DataFrame, pa.table, pl.LazyFrame, pa.record_batch)


@many
@given(
    random, st.sampled_from(["rank", "rank", "standard"]), st.sampled_from([*FRAMES, dict, None])
)
def test_a_table_in_any_container_or_file_is_the_same_table(tmp_path, rng, scale, container):
    """Whatever the unit and offset of its numbers, and the form of its dates."""
    labels, columns = clean(rng)
    moved = {
        name: values if values.dtype == object else values * unit + offset
        for name, values in columns.items()
        for unit, offset in [[(1e-20, 0), (1e6, 0), (1, 1e7), (1, 1.7e9)][rng.integers(4)]]
    }
    written = {
        name: [None if v is None or v != v else v for v in values.tolist()]
        for name, values in moved.items()
    }
    if rng.random() < 0.5:
        days = 900 * labels + rng.integers(0, 2500, N)
        columns["day"], form = days.astype(float), FORMS[rng.integers(len(FORMS))]
        start = datetime.datetime(2001, 3, 1)
        written["day"] = [f"{start + datetime.timedelta(int(day)):{form}}" for day in days]
        keys = time_keys(column(rng.choice(ways(written["day"]))(written["day"]), "day"))
        assert np.array_equal(np.argsort(keys, kind="stable"), np.argsort(days, kind="stable"))
    if container is None:
        table = read_columns(as_file(rng, written, tmp_path), list(written))
    elif container is dict:
        table = {name: rng.choice(ways(x))(x) for name, x in written.items()}
    else:
        table = container(written)
    prepared = prepare_table(table, scale=scale)
    kernel = TableKernel.of(prepared.points, prepared.table_width)
    points = kernel.prepare(prepared.points)
    found, _ = log_score(labels, np.asarray(kernel.block(points, points), float))
    expected, condition = log_score(labels, table_oracle(columns, scale))
    assert condition > 1e9 or found == pytest.approx(expected, abs=1e-3 + 1e-5 * condition)


NAMES = ((1, "1"), ("a", "a "), ("a", "A"), ("\u00e9", "e\u0301"), ("a", "a\x1b[0m"), (1, True))


@many
@given(random, st.sampled_from(NAMES), st.sampled_from(["frame", "file", "mapping"]))
def test_columns_of_nearly_one_name_are_both_used_or_both_refused(tmp_path, rng, names, way):
    values = rng.normal(size=(2, N)).round(6)
    if way == "file":
        with (tmp_path / "case.csv").open("w", newline="") as file:
            csv.writer(file).writerows([names, *values.T.tolist()])
        given = lambda: read_columns(tmp_path / "case.csv")  # noqa: E731
    elif way == "frame" or len(set(names)) == 1:
        given = lambda: pd.DataFrame(values.T, columns=pd.Index(names, dtype=object))  # noqa: E731
    else:
        given = lambda: dict(zip(names, values, strict=True))  # noqa: E731
    found = read_or_refused(None, lambda: prepare_table(given()))
    expected = prepare_table({"one": values[0], "other": values[1]})
    assert found is None or np.array_equal(found.points, expected.points)


# Files --------------------------------------------------------------------------------------


def read_or_refused(path: Path | None, way: Any) -> Any:
    """What was read, or None; any error but one line that names the file is wrong."""
    try:
        return way()
    except ValueError as error:
        line, named = str(error), path is None or str(path) in str(error)
        named = named or line.startswith(("x: ", "label: "))
        if type(error) is not ValueError or "\n" in line or len(line) >= 600 or not named:
            raise AssertionError(f"not one line that names the file: {error!r}") from error
    except MemoryError:  # a size that flipped
        pass


WORDS = ("a", "b c", "", "NA", '5" pipe', "one\ntwo", "p{0} q", '{0}x "y"')


@more
@given(random, st.sampled_from(",;|"), st.sampled_from(["\n", "\r\n"]), st.integers(0, 4))
def test_no_record_is_lost_to_stray_quotes(tmp_path, rng, separator, end, strays):
    """A text file, or a folder of two, into which quotes were put at random places."""
    n, cut = int(rng.integers(3, 90)), 0
    words = [word.format(separator) for word in WORDS[: int(rng.integers(2, 9))]]
    columns = {f"c{j}": rng.choice(words, n).tolist() for j in range(rng.integers(2, 5))}
    columns["id"] = list(map(str, range(n)))  # no row is blank
    quoting, cut = (csv.QUOTE_ALL if rng.random() < 0.2 else csv.QUOTE_MINIMAL), rng.integers(1, n)
    parts = []
    for rows in (slice(cut), slice(cut, n)):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end)
        writer.writerows(zip(*(cells[rows] for cells in columns.values()), strict=True))
        parts.append(text.getvalue())
    for _ in range(strays):
        which = int(rng.integers(2))
        body = parts[which]
        edges = [m.end() for m in re.finditer(rf"[{re.escape(separator)}\n]", body)]
        edges += [m.start() for m in re.finditer(rf"[{re.escape(separator)}\r\n]", body)]
        place = int(rng.choice(edges)) if rng.random() < 0.9 else int(rng.integers(len(body)))
        parts[which] = body[:place] + '"' + body[place:]
    header = separator.join(columns) + end
    whole, many = tmp_path / "case.csv", tmp_path / "many"
    many.mkdir(exist_ok=True)
    whole.write_bytes((header + "".join(parts)).encode())
    for i, part in enumerate(parts):
        (many / f"{i}.csv").write_bytes((header + part).encode())
    reading = Reading(tuple(columns), separator=separator)
    for path, way in (
        (whole, lambda: len(read_columns(whole, separator=separator)["id"])),
        (many, lambda: count_files(many, reading).num_records),
    ):
        try:
            assert way() == n, path
        except ValueError as error:
            line, named = str(error), rf"{re.escape(str(path))}.*(\(line \d+\)|in line \d+): "
            if not re.match(named, line) or not (strays or "quotes join" in line):
                raise AssertionError(f"not one line that names file and row: {line}") from error


def written_file(rng: np.random.Generator, suffix: str) -> bytes:
    sink = io.BytesIO()
    columns = {"x": rng.normal(size=40), "label": rng.choice(["a", "b", "long name"], 40)}
    if suffix == ".npz":
        np.savez_compressed(sink, **columns)
    elif suffix == ".csv.gz":
        sink.write(gzip.compress(pd.DataFrame(columns).to_csv(index=False).encode(), mtime=0))
    elif suffix == ".png":
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8)).save(sink, "PNG")
    else:
        write = parquet.write_table if suffix == ".parquet" else feather.write_feather
        write(pa.table(columns), sink)
    return sink.getvalue()


@more
@given(random, st.sampled_from([".parquet", ".feather", ".npz", ".csv.gz", ".png"]), st.booleans())
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path, rng, suffix, cut):
    """Cut off, or with bytes that flipped."""
    data = bytearray(written_file(rng, suffix))
    if cut:
        del data[int(rng.integers(len(data))) :]
    else:
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            data[place] ^= 1 << int(rng.integers(8))
    path = tmp_path / f"case{suffix}"
    path.write_bytes(data)
    if suffix == ".png":
        listed = {"row": 2, "label": "a", "suggested": "b", "wrong": 0.5}
        read_or_refused(path, lambda: draw_images(tmp_path, None, [listed], 1, {}))
        read_or_refused(path, lambda: read_images(tmp_path))
    else:
        read_or_refused(path, lambda: read_columns(path))
        read_or_refused(path, lambda: count_files(path, Reading(("label",))))
    path.unlink()


OTHERS = (None, 3, -1.5, "text", True, [], {}, [None], [[1]], {"a": 1}, [{}], ["a", "b"])


@more
@given(random, st.sampled_from(OTHERS), st.sampled_from(["image", None]))
def test_an_export_of_another_shape_is_read_or_refused_in_one_line(tmp_path, rng, other, item):
    """An export of Label Studio of which one part is null, or of another type."""
    choice = {"from_name": "kind", "type": "choices", "value": {"choices": ["cat"]}}
    who = [{"completed_by": {"id": i, "email": f"{i}@x"}, "result": [choice]} for i in range(3)]
    tasks: Any = [{"id": i, "data": {"image": f"{i}.jpg"}, "annotations": who} for i in range(4)]
    tasks = json.loads(json.dumps(tasks))
    places, nodes = [], [tasks]
    while nodes:
        node = nodes.pop()
        for key in range(len(node)) if isinstance(node, list) else list(node):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                nodes.append(node[key])
    node, key = places[rng.integers(len(places))]
    node[key] = other
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    read_or_refused(None, lambda: answers_from_label_studio(tmp_path / "export.json", item=item))
