"""The front door: any labels in, an explained record out."""

import json

import jax
import numpy as np
import pandas as pd
import pytest

import jgram
from jgram.uncertainty import uncertainties
from tests.test_noise import categorical, numeric

KEY = jax.random.key(0)
NAMES = np.array(["cat", "dog", "fox"])


def test_a_report_says_what_the_definition_says():
    _, x_hat, y = categorical(300)
    report = jgram.score(NAMES[x_hat], y, jgram.delta, key=KEY, draws=99)
    table = np.asarray(jgram.gram_matrix.joint_table(x_hat, y), float) / 300
    gram = table.T @ table
    assert report.log_score == pytest.approx(np.linalg.slogdet(gram)[1])
    assert report.score == pytest.approx(np.linalg.det(gram))
    assert report.counts_log_score == pytest.approx(np.linalg.slogdet(300**2 * gram)[1])
    assert report.normalised_score == pytest.approx(3 * np.linalg.det(gram) ** (1 / 6))
    assert report.hadamard_ratio == pytest.approx(np.linalg.det(gram) / np.prod(np.diag(gram)))
    assert report.class_counts == dict(zip(NAMES, np.bincount(x_hat), strict=True))
    assert (report.rank, report.num_classes, report.num_records) == (3, 3, 300)
    assert report.interval[0] < report.log_score < report.interval[1]
    assert report.kernel == "delta(num_outcomes=3)"
    assert report.floor.p_value == 0.01
    assert report.reason is None
    assert report.findings == ()


def test_names_codes_and_containers_score_the_same():
    _, x_hat, y = categorical(200)
    expected = jgram.score(x_hat, y, jgram.delta).log_score
    for labels in (
        NAMES[x_hat].tolist(),
        pd.Series(NAMES[x_hat], dtype="string"),
        pd.Series(pd.Categorical(NAMES[x_hat])),
        pd.Series(x_hat, dtype="Int64"),
        jax.numpy.asarray(x_hat),
        np.eye(3)[x_hat],
    ):
        assert jgram.score(labels, y, jgram.delta).log_score == pytest.approx(expected)


def test_the_kernel_follows_the_observations():
    _, x_hat, y = numeric(150)
    assert jgram.score(x_hat, y).kernel.startswith("rbf(bandwidth=")
    assert jgram.score(x_hat, NAMES[x_hat]).kernel == "delta(num_outcomes=3)"


@pytest.mark.parametrize(
    ("x_hat", "y", "options", "name", "words"),
    [
        (np.arange(40) % 2, np.arange(40) % 3, {"classes": [0, 1, 2]}, "never reported", "class 2"),
        (np.arange(40) % 10, np.zeros((40, 8)) + np.arange(40)[:, None], {"kernel": jgram.linear},
         "too few features", "8 features cannot span 10 classes"),
        (np.arange(40) % 3, np.arange(40) % 2, {"kernel": jgram.delta}, "too few outcomes",
         "2 distinct"),
        (np.arange(40) % 3, (np.arange(40) % 2) * 1.0, {}, "too few outcomes", "2 distinct"),
        (np.arange(40) % 4, np.arange(40) % 4 + 1.0 * (np.arange(40) > 20),
         {"kernel": lambda a, b: a * b}, "merged classes", "rank 1 of 4"),
        (np.arange(40) % 2, np.arange(40.0), {"kernel": lambda a, b: -((a - b) ** 2)},
         "not positive",
         "not positive semi-definite"),
        (np.zeros(40, int), np.arange(40.0), {"num_classes": 2}, "never reported", "class 1"),
        (["yes"] * 40, np.arange(40.0), {}, "one class", "every record is reported as 'yes'"),
    ],
)  # fmt: skip
def test_where_there_is_no_score_the_reason_is_named(x_hat, y, options, name, words):
    report = jgram.score(x_hat, y, **options)
    assert report.log_score is None
    assert report.score == 0.0
    assert report.standard_error is None
    assert report.findings[0].name == name
    assert words in report.reason
    assert report.findings[0].advice
    json.dumps(report.to_dict(), allow_nan=False)


def test_doubts_are_said_beforehand():
    rng = np.random.default_rng(0)
    x_hat = np.r_[np.zeros(60, int), np.ones(60, int), np.full(5, 2)]
    noise = rng.integers(0, 3, 125)
    found = {f.name: f for f in jgram.score(x_hat, noise, jgram.delta, key=KEY, draws=99).findings}
    assert {"rare class", "near singular", "inside the noise"} <= set(found)
    assert found["rare class"].value == 5
    single = np.r_[x_hat[:120], 2]
    alone = jgram.score(single, rng.integers(0, 3, 121), jgram.delta)
    assert "no unbiased score" in alone.findings[0].message
    assert alone.bias is None


def test_a_ranking_orders_separates_and_ties():
    truth, noisy, y = categorical(3000, wrong=0.3)
    rng = np.random.default_rng(5)
    twin = np.where(rng.random(3000) < 0.3, rng.integers(0, 3, 3000), truth)
    random = rng.integers(0, 3, 3000)
    reports = {"random": random, "noisy": noisy, "truth": truth, "twin": twin}
    ranking = jgram.rank_reports(reports, y, jgram.delta, key=KEY, draws=199)
    names = [report.name for report in ranking.reports]
    assert names[0] == "truth"
    assert names[3] == "random"
    assert sorted(ranking.tie_groups[1]) == ["noisy", "twin"]
    assert ranking.separated
    assert ranking.inside_noise == ("random",)
    assert ranking.conclusion == ("truth is the most reliable; random cannot be told from noise.")
    assert len(ranking.pairs) == 6
    found = uncertainties(reports, y, jgram.delta)
    for report in ranking.reports:
        assert report.log_score == found[report.name].log_score
    for pair in ranking.pairs:
        assert pair.adjusted_p_value >= pair.comparison.p_value
    json.dumps(ranking.to_dict(), allow_nan=False)


def test_the_data_cannot_tell_is_an_answer():
    truth, x_hat, y = categorical(60, wrong=0.2)
    same = jgram.rank_reports({"a": x_hat, "b": x_hat.copy()}, y, jgram.delta)
    assert not same.separated
    assert same.conclusion == "The data cannot tell these reports apart."
    assert same.tie_groups == (("a", "b"),)
    rng = np.random.default_rng(0)
    noise = {name: rng.permutation(truth) for name in "ab"}
    pure = jgram.rank_reports(noise, y, jgram.delta, key=KEY, draws=99)
    assert pure.conclusion == "The data cannot tell any of these reports from noise."


def test_swapped_class_names_are_noticed():
    truth, _, y = categorical(400)
    swapped = np.array([1, 0, 2])[truth]
    ranking = jgram.rank_reports({"a": NAMES[truth], "b": NAMES[swapped]}, y, jgram.delta)
    assert [finding.name for finding in ranking.findings] == ["relabelling"]
    assert "'cat' as 'dog'" in ranking.findings[0].message
    assert ranking.reports[0].log_score == pytest.approx(ranking.reports[1].log_score)


def test_conditional_independence_holds_where_it_should_and_fails_where_it_should():
    rng = np.random.default_rng(0)
    n, d, hits = 3000, 3, 0
    kernel = jgram.Delta(d)
    for trial in range(40):
        rng = np.random.default_rng(trial)
        truth = rng.integers(0, d, n)
        noise = lambda share: np.where(rng.random(n) < share, rng.integers(0, d, n), truth)  # noqa: B023, E731
        sources = {"left": (noise(0.2), kernel), "right": (noise(0.4), kernel)}
        hits += (
            jgram.findings.conditional_independence(noise(0.1), noise(0.3), sources).p_value < 0.05
        )
    assert hits <= 6  # 2 expected of 40
    # A reporter who copies one of the observations shares its errors.
    copied = np.where(rng.random(n) < 0.5, sources["right"][0], noise(0.3))
    check = jgram.findings.conditional_independence(copied, noise(0.3), sources)
    assert check.p_value < 1e-6
    assert check.finding().level == "warning"
    with pytest.raises(ValueError, match="two observations"):
        jgram.findings.conditional_independence(copied, truth, {"left": sources["left"]})


@pytest.mark.parametrize(
    ("reports", "y", "options", "message"),
    [
        ({"a": [0, 1]}, [0, 1], {}, "two reports or more"),
        ({"a": [0, 1], "b": [0, 1, 1]}, [0, 1], {}, "b: expected 2 records"),
        ({"a": [0, 1], "b": [0, None]}, [0, 1], {}, "1 of 2 labels missing"),
        ({"a": [0, 1], "b": ["x", "y"]}, [0, 1], {}, "type"),
        ({"a": [0, 1], "b": np.eye(2)}, [0, 1], {}, "all reports soft"),
        ({"a": [0, 1], "y": [0, 1]}, [0, 1], {}, "another name"),
        ({"a": [0, 1], "b": [0, 1]}, [np.nan, 1.0], {}, "missing"),
        ({"a": [0, 1], "b": [0, 1]}, ["u", "v"], {"kernel": jgram.rbf}, "expected numbers"),
    ],
)
def test_bad_input_is_refused_in_one_line(reports, y, options, message):
    with pytest.raises(ValueError, match=message) as error:
        jgram.rank_reports(reports, y, **options)
    assert "\n" not in str(error.value)


def test_records_with_missing_values_are_dropped_for_all_on_request():
    labels = ["a", None, "b", "a", "b", "a"] * 10
    y = [0.0, 1.0, 2.0, np.nan, 2.2, 0.1] * 10
    ranking = jgram.rank_reports({"p": labels, "q": labels}, y, missing="drop")
    assert ranking.reports[0].num_records == 40
    assert labels[1] is None
