"""Mixed tables: comparable columns, what is left out and why, and nothing chosen by reports."""

import datetime
import pickle
import sys
from decimal import Decimal

import numpy as np
import pytest

from jgram.data import prepare_table
from tests.refusals import refused

AGE = [30, 41, 35, 52, 28, 61]
SEX = ["f", "m", "f", "f", "m", "f"]


def mean_square(points):
    return np.mean(
        [np.sum((a - b) ** 2) for i, a in enumerate(points) for j, b in enumerate(points) if i != j]
    ) * (1 - 1 / len(points))  # over all pairs, self-pairs too


def test_every_column_has_a_mean_squared_distance_of_two():
    table = prepare_table({"age": AGE, "sex": SEX})
    assert table.names == ("age", "sex = f", "sex = m")
    assert table.table_width == 3
    assert mean_square(table.points[:, :1]) == pytest.approx(2)
    assert mean_square(table.points[:, 1:]) == pytest.approx(2)
    share = np.array([4 / 6, 2 / 6])
    assert table.points[0, 1] == pytest.approx(1 / np.sqrt(1 - np.sum(share**2)))


def test_numbers_are_normal_scores_of_mean_ranks():
    from scipy import stats

    values = [3.0, 1, 1, 7, 2, 7, 7]
    scores = stats.norm.ppf((stats.rankdata(values) - 0.5) / 7)
    expected = (scores - scores.mean()) / scores.std()
    np.testing.assert_allclose(prepare_table({"v": values}).points[:, 0], expected)


@pytest.mark.parametrize(
    "move",
    [
        lambda v: v * 1e-20,
        lambda v: v + 1e7,
        lambda v: v + 1_700_000_000,
        np.exp,
        lambda v: (v * 1000).astype(np.int64),
        lambda v: np.array([Decimal(float(x)) for x in v], object),
        lambda v: v.astype(object),
        lambda v: np.datetime64("2020-01-01") + (v * 1000).astype("timedelta64[h]"),
        lambda v: [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=float(x)) for x in v],
    ],
)
def test_ranks_are_blind_to_units_offsets_types_and_monotone_maps(move):
    values = np.random.default_rng(0).permutation(30) / 8.0
    expected = prepare_table({"v": values}).points
    np.testing.assert_array_equal(prepare_table({"v": move(values)}).points, expected)


@pytest.mark.parametrize(("offset", "unit"), [(0, 1e-20), (0, 1e-200), (2**33, 1), (0, 1e200)])
def test_standardising_keeps_digits_far_from_zero_and_in_tiny_units(offset, unit):
    values = np.random.default_rng(0).permutation(30) / 8.0
    expected = (values - values.mean()) / values.std()
    found = prepare_table({"v": values * unit + offset}, scale="standard")
    np.testing.assert_allclose(found.points[:, 0], expected, rtol=1e-9)
    assert "standardised" in found.description
    none = prepare_table({"v": values}, scale="none").points
    np.testing.assert_allclose(np.ptp(none), np.ptp(values))


def test_records_of_mixed_cells_are_one_table():
    mixed = [[30, "f"], [41, "m"], [35, "f"]]
    nested = prepare_table(np.array(mixed, object))
    assert nested.names == ("y[0]", "y[1] = f", "y[1] = m")
    np.testing.assert_array_equal(nested.points, prepare_table(mixed).points)


def test_missing_numbers_are_the_median_with_an_indicator_and_categories_a_level():
    table = prepare_table({"age": [1.0, np.nan, 3, 2], "sex": ["f", None, "m", "f"]})
    assert table.names == ("age", "age missing", "sex = f", "sex = m", "sex missing")
    assert table.points[1, 0] == pytest.approx(table.points[3, 0])  # 2 is the median
    assert len(set(table.points[[0, 2, 3], 1])) == 1
    assert table.points[1, 1] > 1
    assert (table.points[1, 2:] > 0).tolist() == [False, False, True]


def test_what_says_nothing_is_left_out_and_named():
    n = 24_000
    table = prepare_table(
        {
            "age": np.random.default_rng(0).normal(size=n),
            "site": ["a"] * n,
            "id": [f"p{j}" for j in range(n)],
            "twice": np.arange(n // 2).astype(str)[np.arange(n) // 2],
            "row": np.arange(n),
            "empty": [None] * n,
        }
    )
    assert table.names == ("age",)
    warnings = "\n".join(table.warnings)
    for part in (
        "site is left out: it holds nothing but 'a'",
        "id is left out: it never repeats a value: an identifier",
        "twice is left out: it has 12000 categories: an identifier",
        "row is left out: it numbers the rows",
        "empty is left out: it holds no value",
    ):
        assert part in warnings
    message = refused(prepare_table, {"id": [f"p{j}" for j in range(9)], "one": [1] * 9})
    assert "id never repeats" in message
    assert "one holds nothing but 1" in message


@pytest.mark.parametrize("repeats", [1, 0.6])
def test_texts_that_hardly_repeat_are_numbers_by_the_pieces_they_share(repeats):
    pieces = [["red", "car", "engine"], ["blue", "sea", "water"]]
    rng = np.random.default_rng(0)
    topic = np.arange(80) % 2
    texts = [" ".join(["it", "was", "a", *rng.permutation(pieces[t])[:2], str(j)]) for j, t in
             enumerate(topic)]  # fmt: skip
    texts = [texts[int(j * repeats)] for j in range(80)]
    table = prepare_table({"note": texts, "age": rng.normal(size=80)})
    assert table.table_width == 1
    assert "the texts of note as 64 numbers" in table.description
    points = table.points[:, 1:]
    np.testing.assert_array_equal(points, prepare_table(texts).points)
    topic = np.array([" car " in text or " red " in text or "engine" in text for text in texts])
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    same = topic[:, None] == topic
    assert distances[same & ~np.eye(80, dtype=bool)].mean() < 0.9 * distances[~same].mean()


def test_texts_are_read_where_asked_and_left_out_beside_an_embedding(monkeypatch):
    texts = [f"the patient felt quite well on day {j}" for j in range(60)]
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "sklearn.decomposition", None)
        assert "pip install 'jgram[cli]'" in refused(prepare_table, texts)
    block = np.random.default_rng(0).normal(size=(60, 3))
    (warning,) = prepare_table({"note": texts, "image": block}).warnings
    assert "note is left out: it is text, beside an embedding" in warning
    asked = prepare_table({"note": texts, "image": block}, kinds={"note": "text"})
    assert "the texts of note as 59 numbers and a block of 3 numbers" in asked.description
    words = prepare_table({"word": ["yes", "no", "yes", None]}, kinds={"word": "text"})
    assert (words.points[3] == 0).all()
    np.testing.assert_array_equal(words.points[0], words.points[2])
    long = ["x y z " * 200_000 + str(j) for j in range(3)] + texts
    np.testing.assert_array_equal(*prepare_table({"note": long}).points[:2])
    for given, part in (
        ([""] * 3, "holds nothing but ''"),
        (["", None], "texts that hold words"),
        ([1, 2, 3], "expected texts, got number values"),
    ):
        assert part in refused(prepare_table, {"note": given}, kinds={"note": "text"})


@pytest.mark.usefixtures("unchecked")
def test_kinds_override_and_are_checked():
    columns = {"zip": [10, 20, 10, 20], "age": [1.5, 2, 3, 4], "id": [4, 2, 9, 1]}
    table = prepare_table(columns, kinds={"zip": "category", "id": "ignore"})
    assert table.names == ("zip = 10", "zip = 20", "age")
    for options, part in (
        ({"kinds": {"zi": "category"}}, "did you mean 'zip'"),
        ({"kinds": {"id": "x"}}, "'number', 'category', 'text' or 'ignore'"),
        ({"scale": "ranks"}, "'rank', 'standard' or 'none'"),
    ):
        assert part in refused(prepare_table, columns, **options)
    message = refused(prepare_table, {"s": ["f", "m"]}, kinds={"s": "number"})
    assert "expected numbers, got 'f'" in message
    n = 40
    rows = {"row": np.arange(n), "x": np.random.default_rng(0).normal(size=n)}
    assert "row" in prepare_table(rows, kinds={"row": "number"}).names
    assert prepare_table({"row": np.arange(n)}).names == ("row",)


@pytest.mark.parametrize(
    ("columns", "warning"),
    [
        ({"grade": [1, 2, 3, 1, 2, 3]}, "grade holds 3 whole numbers and is read as a number"),
        ({"city": ["a", "b", "c", "d", "d"]}, "4 categories in 5 records hardly repeat"),
        ({"v": [1.5, None, None, 2, 3]}, "v: 40% of its values are missing"),
        ({"a": [1.5, 2], "a ": [2.5, 3]}, "columns 'a' and 'a ' differ only in case or spaces"),
    ],
)
def test_what_may_be_meant_otherwise_is_warned_of(columns, warning):
    assert any(warning in w for w in prepare_table(columns).warnings)


def test_an_embedding_stays_a_block_and_beside_columns_a_block_of_its_own():
    block = np.random.default_rng(0).normal(size=(6, 4))
    alone = prepare_table(block)
    np.testing.assert_array_equal(alone.points, block)
    assert alone.table_width == 0
    assert alone.description == (
        "observations: a block of 4 numbers, as it is; chosen without the reports"
    )
    beside = prepare_table({"age": AGE, "image": block})
    assert beside.table_width == 1
    np.testing.assert_array_equal(beside.points[:, 1:], block)
    assert "columns, block and everything in equal parts" in beside.description
    uneven = prepare_table(block * [1, 1, 1, 50])
    assert "y[3] varies far more" in uneven.warnings[0]
    assert "missing" in refused(prepare_table, np.where(block > 2, np.nan, block) * np.nan)


def test_categories_of_many_levels_stay_equally_far_apart():
    levels = np.repeat([f"c{j}" for j in range(400)], 2)
    points = prepare_table({"city": levels}).points
    assert points.shape == (800, 256)
    squares = np.sum((points[::2][:100, None] - points[::2][None, 100:200]) ** 2, axis=-1)
    assert squares.mean() == pytest.approx(2, rel=0.01)
    assert squares.std() < 0.2
    np.testing.assert_array_equal(points[::2], points[1::2])


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ({"pay": ["€ 1.299,99", "€ 3,50", "$ 4,10"]}, "pay: expected numbers, got '$ 4,10' in row"),
        ({"v": [1.0, np.inf, 2]}, "inf in row 1"),
        (np.zeros((3, 0)), "has no columns"),
        ({}, "at least one column"),
        ({"v": [1, "a", 2]}, "one type"),
    ],
)
def test_what_is_no_table_is_refused(columns, part):
    assert part in refused(prepare_table, columns)


def fitted_table():
    rng = np.random.default_rng(1)
    n = 60
    return {
        "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(20, 60, n) / 2),
        "large": 2**60 + rng.permutation(n),
        "day": [f"{d}.3.2009" for d in rng.integers(1, 28, n)],
        "moment": np.datetime64("2001-01-01") + rng.integers(0, 9, n).astype("timedelta64[h]"),
        "sex": [None if x == "x" else x for x in rng.choice(["f", "m", "x"], n)],
        "code": [str(x) for x in rng.choice(["1", "2", "A"], n)],
        "many": [f"level {j}" for j in rng.permutation(np.arange(n) % 20)],
        "note": [" ".join(rng.choice(["red", "car", "blue", "sea", "sky"], 4)) for _ in range(n)],
        "vector": rng.normal(size=(n, 3)),
    }


@pytest.mark.parametrize("scale", ["rank", "standard", "none"])
def test_what_was_found_of_some_records_prepares_any_others(scale):
    given, kinds = fitted_table(), {"note": "text"}
    table = pickle.loads(pickle.dumps(prepare_table(given, scale=scale, kinds=kinds)))
    np.testing.assert_array_equal(table.points_of(given), table.points)
    half = {name: values[:30] for name, values in given.items()}
    np.testing.assert_allclose(table.points_of(half), table.points[:30], rtol=1e-12, atol=1e-12)
    few = {name: values[2:4] for name, values in given.items()} | {"code": [1, 2]}
    few["day"] = ["1.3.2009", "2.3.2009"]  # of which nobody knows alone which is the month
    assert np.isfinite(table.points_of(few)).all()


def test_values_that_were_not_there_lie_between_their_neighbours_or_equally_far():
    table = prepare_table({"age": [10, 20, 40], "sex": ["f", "m", "f"]})
    seen = table.points_of({"age": [10, 20, 40, 30, 99, None], "sex": [*"fmf", "x", None, "f"]})
    assert seen[3, 0] == pytest.approx((seen[1, 0] + seen[2, 0]) / 2)
    assert seen[4, 0] == seen[2, 0]
    assert seen[5, 0] == table.points_of({"age": [20], "sex": ["f"]})[0, 0]
    assert not seen[3:5, 1:].any()
    linear = prepare_table({"age": [10, 20, 40]}, scale="standard").points_of({"age": [50, 30]})
    assert linear[0, 0] - linear[1, 0] == pytest.approx(20 / np.std([10, 20, 40]))


@pytest.mark.parametrize(
    ("other", "part"),
    [
        ({"age": [1]}, "y: expected columns 'sex', got 'age'"),
        ({"age": ["a"], "sex": ["f"]}, "age: expected numbers, got 'a' in row 0"),
        ({"age": ["2009-05-01"], "sex": ["f"]}, "age: expected numbers, got"),
        ({"age": [np.inf], "sex": ["f"]}, "age: expected finite numbers, got inf in row 0"),
    ],
)
def test_records_of_another_kind_are_refused(other, part):
    table = prepare_table({"age": [10, 20, 40], "sex": ["f", "m", "f"]})
    assert part in refused(table.points_of, other)


def test_the_order_of_records_changes_nothing():
    columns = {"age": [30, 41, None, 52, 28, 61], "sex": SEX}
    order = np.array([3, 1, 5, 0, 2, 4])
    moved = {name: [values[j] for j in order] for name, values in columns.items()}
    np.testing.assert_allclose(
        prepare_table(moved).points, prepare_table(columns).points[order], atol=1e-12
    )
