"""Reports that are amounts, grades or scores: judged as labels are, by their ranks."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm, rankdata

import jgram
from jgram.arrays import float64, number_matrix
from jgram.cli import main
from jgram.contrasts import payoffs
from jgram.data import difference, employment
from jgram.data.columns import read
from jgram.data.numbers import normal_scores
from jgram.dependence import maximal_correlation
from jgram.issues import label_issues
from jgram.left_out import predict_numbers_left_out
from jgram.observed import observe
from jgram.report import rank_reports, score
from tests.refusals import refused

pytestmark = pytest.mark.thorough

N = 300
RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=N)
Y = TRUTH[:, None] * [1.0, -0.5] + RNG.normal(size=(N, 2)) / 2
GOOD, FAIR, NOISE = TRUTH + RNG.normal(size=(3, N)) * [[0.3], [1.0], [99.0]]


def scores(x):
    u = norm.ppf((rankdata(x) - 0.5) / len(x))
    return (u - u.mean()) / u.std()


def in_order(ranking):
    return [(report.name, report.keeps) for report in ranking.reports]


def test_payoffs_are_those_of_one_standardised_column():
    bandwidth = 1.5
    y, (a, b) = Y[:80], (scores(GOOD[:80]), scores(FAIR[:80]))
    n = len(y)
    kernel = np.exp(-((y[:, None] - y) ** 2).sum(axis=2) / bandwidth**2)
    centre = np.eye(n) - 1 / n
    kernel = centre @ kernel @ centre
    own, mean = np.diag(kernel), (a + b) / 2
    off = np.sqrt((kernel**2).sum() - (own**2).sum()) / np.sqrt(n * (n - 1))
    volume, tau = own.sum() / (n * (n - 1)), 2 * off / (own.sum() / (n - 1))
    expected = np.zeros((2, n))
    for i in range(n):  # the record itself leaves both sums
        left = kernel.copy()
        left[i, i] = 0.0
        gram = mean @ (kernel - np.diag(own)) @ mean / n**2
        seen = (left[i] @ mean / n + own[i] * mean[i] / n) - own[i] * mean[i] / (n - 1)
        rest = gram - 2 * seen * mean[i] / (n - 1)
        expected[:, i] = (seen / (rest + 1j * tau * volume)).real * np.array([a[i], b[i]])
    with float64():
        z = np.stack([number_matrix(a), number_matrix(b)])
        found = payoffs(observe(jgram.RBF(bandwidth), y), z)
    np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-12)


def test_scale_and_strictness_do_not_matter_and_a_sign_is_said():
    plain = rank_reports({"good": GOOD, "fair": FAIR}, Y)
    strict = rank_reports({"good": 7 - 3 * GOOD, "fair": np.exp(FAIR)}, Y)
    assert in_order(plain)[0] == in_order(strict)[0]
    assert plain.reports[1].keeps == pytest.approx(strict.reports[1].keeps)
    assert plain.conclusion == "good is the most reliable."
    assert [finding.name for finding in strict.findings] == ["relabelling"]
    assert "other way round" in strict.findings[0].message
    true = [np.corrcoef(scores(x), scores(TRUTH))[0, 1] for x in (FAIR, GOOD)]
    low, high = plain.reports[1].keeps_interval
    assert low < true[0] / true[1] < high
    assert plain.reports[1].keeps == pytest.approx(true[0] / true[1], abs=0.1)


def test_two_values_as_often_are_two_classes():
    truth = np.arange(N) % 2
    reports = {"a": truth, "b": np.where(np.arange(N) % 6 < 2, 1 - truth, truth)}
    numbers = rank_reports(reports, Y, report_kind="numbers")
    classes = rank_reports({name: x.astype(str) for name, x in reports.items()}, Y)
    assert [r.published.log_score for r in numbers.reports] == pytest.approx(
        [r.published.log_score for r in classes.reports]
    )
    assert [r.noise_p_value for r in numbers.reports] == pytest.approx(
        [r.noise_p_value for r in classes.reports]
    )


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_under_the_delta_kernel_the_score_is_the_correlation(share):
    y = np.arange(N) % 2
    x = np.where(np.arange(N) < share * N, 0, np.where(np.arange(N) % 3 == 0, 1 - y, y))
    table = jnp.array([[np.sum((x == i) & (y == j)) for i in (0, 1)] for j in (0, 1)])
    found = score(x, y.astype(str), report_kind="numbers")
    assert found.normalised_score**2 == pytest.approx(float(maximal_correlation(table)), rel=1e-5)


def test_frequencies_are_repeated_records_and_gaps_are_left_out():
    copies = np.arange(N) % 3
    reports = {"good": GOOD, "fair": np.round(FAIR)}
    kernel = jgram.RBF(1.0)
    weighted = rank_reports(reports, Y, kernel, weights=copies, report_kind="numbers")
    groups = np.repeat(np.arange(N), copies)
    again = {name: np.repeat(x, copies) for name, x in reports.items()}
    repeated = rank_reports(again, np.repeat(Y, copies, axis=0), kernel, groups=groups)
    for one, two in zip(weighted.reports, repeated.reports, strict=True):
        assert one.published.log_score == pytest.approx(two.published.log_score)
    np.testing.assert_allclose(
        np.repeat(normal_scores(read(reports["fair"], "x"), copies), copies),
        norm.ppf((rankdata(again["fair"]) - 0.5) / copies.sum()),
    )
    gap = np.arange(N) % 10 == 0
    gaps = rank_reports({"good": np.where(gap, np.nan, GOOD), "fair": FAIR}, Y)
    assert gaps.pairs[0].num_records == N - gap.sum()
    assert in_order(gaps)[1][1] == pytest.approx(in_order(rank_reports(
        {"good": GOOD[~gap], "fair": FAIR[~gap]}, Y[~gap]))[1][1], abs=0.05)  # fmt: skip


def test_the_other_reports_and_gold_read_the_same_pairs():
    third = TRUTH + 0.6 * RNG.normal(size=N)
    reports = {"fair": FAIR, "third": np.exp(third), "good": GOOD, "noise": NOISE}
    gold = np.where(np.arange(N) % 5 == 0, TRUTH, np.nan)
    found = rank_reports(reports, Y, gold=gold)
    assert [name for name, _ in in_order(found)] == ["good", "third", "fair", "noise"]
    kinds = {pair.worse: pair.readings for pair in found.pairs if pair.better == "good"}
    true = {x: np.corrcoef(scores(reports[x]), scores(TRUTH))[0, 1] for x in reports}
    for worse in ("third", "fair"):
        assert [one.kind for one in kinds[worse]] == ["observations", "other reports", "gold"]
        for one in kinds[worse]:
            low, high = one.keeps_interval
            assert low - 0.05 < true[worse] / true["good"] < high + 0.05
    peers = rank_reports(reports)
    assert [name for name, _ in in_order(peers)] == ["good", "third", "fair", "noise"]
    assert peers.inside_noise == ("noise",)
    checked = rank_reports({"fair": FAIR, "good": GOOD}, gold=gold)
    assert checked.conclusion == "good is the most reliable."
    assert checked.observations == "evidence: 60 right numbers"


def test_employment_vintages_as_numbers_are_inside_the_noise():
    data = {name: np.asarray(column) for name, column in employment().items() if name != "month"}
    changes = {name: difference(column.astype(float)) for name, column in data.items()}
    taxes = changes.pop("tax_deposits")
    two = {name: changes[name] for name in ("first", "final")}
    found = rank_reports(two, taxes, block_length=12)
    assert found.conclusion == "The data cannot tell any of these reports from noise."
    assert not rank_reports(changes, taxes, block_length=12).told
    peers = rank_reports(changes, block_length=12)
    assert peers.reports[-1].name == "first"
    assert all(one.published.log_score is not None for one in peers.reports)


def test_a_copy_among_the_observations_is_a_leak():
    found = rank_reports({"good": GOOD, "fair": FAIR}, {"y": Y[:, 0], "log": np.exp(-GOOD)})
    assert [f.message for f in found.findings if f.name == "leak"] == [
        "the observation 'log' is the report 'good' under another name"
    ]
    noise = rank_reports({"same": np.full(N, 2.5), "noise": NOISE}, Y)
    assert {*noise.inside_noise} == {"noise", "same"}
    assert noise.conclusion == "The data cannot tell any of these reports from noise."


def test_payoffs_of_numbers_transform():
    y = jnp.asarray(Y[:40])
    with float64():
        observed = observe(jgram.RBF(1.0), np.asarray(y, float))
        x = jnp.asarray(np.stack([GOOD[:40], FAIR[:40]]))

        def paid(x):
            return payoffs(observed, jax.vmap(number_matrix)(x)).means[1]

        slope = jax.jit(jax.grad(paid))(x)
        step = np.zeros(x.shape)
        step[1, 3] = 1e-5
        expected = (paid(x + step) - paid(x - step)) / 2e-5
        assert float(slope[1, 3]) == pytest.approx(float(expected), rel=1e-5)
        assert np.abs(slope @ np.ones(40)).max() < 1e-12  # nor does a shift matter
        several = jax.vmap(paid)(jnp.stack([x, x[:, ::-1]]))
        assert float(several[0]) == pytest.approx(float(paid(x)))


@pytest.mark.parametrize(
    ("reports", "options", "message"),
    [
        ({"a": GOOD, "b": ["low"] * N}, {}, "b: .* as in 'a', got 'low' in row 0"),
        ({"a": GOOD, "b": ["1.5"] * (N - 1) + ["n"]}, {}, f"b: .*got 'n' in row {N - 1}"),
        ({"a": [1.5, "x"] * (N // 2), "b": GOOD}, {}, "a: expected values of one type"),
        ({"a": np.where(np.arange(N) == 5, np.inf, GOOD), "b": GOOD}, {}, "a: .*got inf in row 5"),
        ({"a": np.full(N, np.nan), "b": GOOD}, {}, "a: expected numbers, got none"),
        ({"a": GOOD, "b": np.eye(2)[np.arange(N) % 2]}, {}, "all reports soft"),
        ({"a": GOOD, "b": FAIR}, {"report_kind": "amounts"}, "auto, categories or numbers"),
        ({"a": ["u", "v"] * (N // 2), "b": FAIR}, {"report_kind": "numbers"}, "got 'u' in row 0"),
        ({"a": GOOD, "b": FAIR}, {"report_kind": "categories"}, "into bins"),
        ({"a": GOOD, "b": FAIR}, {"gold": FAIR}, "right numbers of some records, got 300 of 300"),
        ({"a": GOOD, "b": FAIR}, {"gold": [7.0, 7.0] + [None] * (N - 2)}, "got 7 alone"),
        ({"a": GOOD, "b": FAIR}, {"missing": "raise"}, None),
    ],
)  # fmt: skip
def test_bad_numbers_are_refused_in_one_line(reports, options, message, unchecked):
    if message is None:
        assert rank_reports(reports, Y, **options).separated
        return
    assert re.match(f".*{message}", refused(rank_reports, reports, Y, **options))


def test_what_is_chosen_is_said():
    stars = np.clip(np.round(3 + TRUTH), 1, 5).astype(int)
    found = rank_reports({"a": stars, "b": np.roll(stars, 1)}, Y)
    assert found.num_classes == 5
    assert "whole numbers from 1 to 5 are read as categories" in found.findings[0].message
    assert "reports of numbers" in str(rank_reports({"a": stars - 3, "b": stars}, Y))
    assert score(np.round(1e4 * GOOD).astype(int), Y).num_classes == 0


def test_two_records_of_numbers_say_nothing():
    assert not rank_reports({"a": [1.5, 2.5], "b": [1.0, 2.0]}, [0.1, 0.3]).separated


def test_a_number_is_predicted_as_if_its_record_were_not_there():
    y, u = Y[:60], GOOD[:60] - GOOD[:60].mean()
    found, informative = predict_numbers_left_out(observe("linear", y), None, u)
    assert informative
    centred = y - y.mean(axis=0)
    best = []
    for penalty in np.logspace(-6, 1, 22) * np.linalg.eigvalsh(centred.T @ centred)[-1]:
        left = []
        for i in range(60):
            kept = np.arange(60) != i
            rest, mean = y[kept], y[kept].mean(axis=0)
            gram = (rest - mean).T @ (rest - mean)
            slope = np.linalg.solve(gram + penalty * np.eye(2), (rest - mean).T @ u[kept])
            left.append(u[kept].mean() + (y[i] - mean) @ slope)
        best.append((np.sum((u - left) ** 2), left))
    left = np.array(min(best, key=lambda one: one[0])[1]) + u / 59  # less the others' mean
    expected = left * (left @ u / (left @ left))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_wrong_numbers_are_found_and_checked():
    report, bad = 100 + 10 * GOOD, np.arange(N) % 20 == 0
    report[bad] += 40 * np.sign(np.arange(bad.sum()) % 2 - 0.5)
    report[7] = np.nan
    found = label_issues(report, Y)
    assert found.informative
    assert bad[found.order[:15]].mean() > 0.7
    assert 5 <= found.number <= 30
    assert np.isnan(found.wrong[7])
    first = found.order[0]
    assert abs(found.classes[found.suggested[first]] - (100 + 10 * GOOD[first])) < 15
    assert "numbers, by their ranks" in str(found)
    assert found.by_class() == []
    rows = found.to_check(20).tolist()
    checked = {row: 101.25 if bad[row] else True for row in rows}
    again = label_issues(report, Y, checked=checked)
    assert again.interval[0] <= again.number <= again.interval[1]
    strict = label_issues(np.exp(report / 50), Y)
    np.testing.assert_allclose(strict.wrong, found.wrong, atol=1e-9)
    noise = label_issues(NOISE, Y)
    assert (noise.informative, noise.number) == (False, 0)
    message = refused(label_issues, np.full(N, 2.5), Y)
    assert "x_hat: expected numbers that differ, got 2.5 alone" in message


def code(arguments):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


def test_the_command_line_takes_numbers(tmp_path, capsys):
    rows = [f"{a},{b},{y[0]},{y[1]}" for a, b, y in zip(GOOD, FAIR, Y, strict=True)]
    file = tmp_path / "amounts.csv"
    file.write_text("good,fair,u,v\n" + "\n".join(rows))
    observed = [str(file), "--observation", "u", "--observation", "v"]
    both = ["--report", "good", "--report", "fair"]
    assert code(["rank", *observed, *both, "--json"]) == 0
    assert '"num_classes": 0' in capsys.readouterr().out
    assert code(["issues", *observed, "--report", "good", "--html", str(tmp_path / "a.html")]) == 0
    assert "reports of numbers" in capsys.readouterr().out
    assert code(["score", *observed, "--report", "fair"]) == 0
    assert "reports of numbers" in capsys.readouterr().out
    assert code(["rank", *observed, *both, "--report-kind", "categories"]) == 2
