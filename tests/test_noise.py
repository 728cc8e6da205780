"""Uncertainty: against bootstrap, simulation and brute-force permutation."""

import itertools
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import jgram
from experiments.human_labels import compare_plugin
from jgram import noise, uncertainty
from jgram.contrasts import products
from jgram.noise import grouped_noise_tests
from jgram.observed import Mapped, observe
from jgram.table_kernel import TableKernel
from jgram.uncertainty import uncertainties

DELTA, KEY = jgram.delta, jax.random.key(0)


def categorical(n=1500, d=3, wrong=0.2, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, d, n)
    y = np.where(rng.random(n) < 0.3, rng.integers(0, d, n), truth)
    x_hat = np.where(rng.random(n) < wrong, rng.integers(0, d, n), truth)
    return truth, x_hat, y


def numeric(n=600, d=3, wrong=0.2, seed=0):
    truth, x_hat, _ = categorical(n, d, wrong, seed)
    rng = np.random.default_rng(seed + 1)
    return truth, x_hat, (rng.normal(size=(n, 2)) + 2.0 * np.eye(d, 2)[truth])


@pytest.mark.thorough
def test_standard_error_is_that_of_fresh_samples_and_of_the_bootstrap():
    scores, errors = [], []
    for seed in range(100):
        _, x_hat, y = categorical(n=800, seed=seed)
        found = uncertainties({"noisy": x_hat}, y, jgram.Delta(3))
        scores.append(found["noisy"].log_score)
        errors.append(found["noisy"].standard_error)
    assert np.mean(errors) == pytest.approx(np.std(scores, ddof=1), rel=0.2)
    resampled = jgram.bootstrap(jax.random.key(0), x_hat, y, jgram.Delta(3), draws=500)
    assert resampled.standard_error == pytest.approx(errors[-1], rel=0.2)
    low, high = resampled.interval
    assert low < scores[-1] < high


def test_bootstrap_interval_reflects_the_draws_at_the_score():
    _, x_hat, y = categorical(60)
    own = uncertainties({"": x_hat}, y, jgram.Delta(3))[""].log_score
    found = jgram.bootstrap(KEY, x_hat, y, jgram.Delta(3), draws=200, confidence=0.8)
    drawn = np.sort(found.draws[np.isfinite(found.draws)])
    assert found.bias == pytest.approx(drawn.mean() - own)
    below, above = (own - np.array(found.interval)[::-1]) + own
    assert np.mean(drawn < below) == pytest.approx(0.1, abs=0.01)
    assert np.mean(drawn > above) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("kernel", [jgram.RBF(2.0), jgram.linear])
def test_bootstrap_of_records_is_the_weights_of_the_score(kernel):
    _, x_hat, y = numeric(n=200, d=2)
    found = jgram.bootstrap(jax.random.key(1), x_hat, y, kernel, draws=20)
    rng = noise._host_generator(jax.random.key(1))
    weights = rng.multinomial(200, np.full(200, 1 / 200), size=20)[3]
    rows = np.repeat(np.arange(200), weights)
    expected = jgram.plugin_log_score(x_hat[rows], y[rows].astype(np.float32), kernel)
    assert found.draws[3] == pytest.approx(float(expected), abs=1e-3)


def test_jackknife_bias_is_the_bias():
    n, scores, biases = 150, [], []
    for seed in range(300):
        _, x_hat, y = categorical(n, wrong=0.1, seed=seed)
        found = uncertainties({"": x_hat}, y, jgram.Delta(3))[""]
        scores.append(found.log_score)
        biases.append(found.bias)
    population = 2 * np.log(
        np.linalg.det((0.7 * np.eye(3) + 0.1) @ (0.9 * np.eye(3) + 0.1 / 3) / 3)
    )
    true_bias, error = np.mean(scores) - population, np.std(scores) / np.sqrt(300)
    assert np.mean(biases) == pytest.approx(true_bias, abs=3 * error)
    assert abs(np.mean(biases)) > 3 * error  # there is a bias to be seen


def test_p_value_is_that_of_the_jackknifed_normalised_scores():
    n, d = 300, 3
    rng = np.random.default_rng(5)
    truth = np.arange(n) % d
    first, second, y = (
        np.where(rng.random(n) < share, rng.integers(0, d, n), truth) for share in (0.2, 0.4, 0.2)
    )

    def difference(kept):
        tables = [np.histogram2d(y[kept], x[kept], bins=d)[0] for x in (first, second)]
        values = [d * abs(np.linalg.det(table / kept.sum())) ** (1 / d) for table in tables]
        return values[0] - values[1]

    left = np.array([difference(np.arange(n) != i) for i in range(n)])
    z = difference(np.ones(n, bool)) / ((n - 1) / np.sqrt(n) * left.std(ddof=1))
    assert 1 < abs(z) < 3  # where the p-value says something
    found = uncertainties({"a": first, "b": second, "c": 0 * first}, y, jgram.Delta(d))
    compared = compare_plugin(found["a"], found["b"])
    assert compared.p_value == pytest.approx(2 * NormalDist().cdf(-abs(z)), rel=0.1)
    assert np.mean(compared.interval) == pytest.approx(compared.log_ratio)
    assert compare_plugin(found["a"], found["c"])[::2] == (np.inf, pytest.approx(0, abs=1e-6))
    assert compare_plugin(found["c"], found["c"])[::2] == (0.0, 1.0)


@pytest.mark.parametrize("block_length", [1, 4])
def test_noise_floor_is_that_of_permuted_records(block_length):
    _, x_hat, y = categorical(120)
    found = jgram.noise_floor(
        jax.random.key(0), x_hat, y, jgram.Delta(3), draws=1000, block_length=block_length
    )
    rng = np.random.default_rng(0)
    blocks = np.arange(120).reshape(-1, block_length)
    brute = np.array(
        [
            np.linalg.slogdet(table.T @ table)[1]
            for order in (rng.permutation(len(blocks)) for _ in range(1000))
            for table in [np.histogram2d(y, x_hat[blocks[order].ravel()], bins=3)[0] / 120]
        ]
    )
    assert found.mean == pytest.approx(brute.mean(), abs=5 * brute.std() / np.sqrt(500))
    assert found.standard_deviation == pytest.approx(brute.std(), rel=0.15)
    assert found.p_value < 0.01
    assert found.margin == pytest.approx(
        (uncertainties({"": x_hat}, y, jgram.Delta(3))[""].log_score - found.mean)
        / found.standard_deviation
    )


def test_noise_floor_of_numbers_shares_one_scale_with_the_score():
    _, x_hat, y = numeric(n=150)
    for kernel in (jgram.RBF(2.0), jgram.linear):
        d = 3 if kernel is not jgram.linear else 2
        labels = np.minimum(x_hat, d - 1)
        found = jgram.noise_floor(jax.random.key(0), labels, y, kernel, draws=99)
        assert found.p_value == 0.01
        assert found.margin > 2
        shuffled = np.random.default_rng(1).permutation(labels)
        assert jgram.noise_floor(jax.random.key(0), shuffled, y, kernel, draws=99).p_value > 0.02


def test_the_floor_moves_with_the_number_of_records():
    means = []
    for n in (500, 4000):
        rng = np.random.default_rng(n)
        x_hat, y = rng.integers(0, 5, n), rng.integers(0, 5, n)
        means.append(jgram.noise_floor(jax.random.key(0), x_hat, y, jgram.Delta(5)).mean)
    assert means[0] == pytest.approx(-40.5, abs=1.0)
    assert means[1] == pytest.approx(-48.5, abs=1.5)


def test_a_key_fixes_the_draws():
    _, x_hat, y = categorical(100)
    floors = [
        jgram.noise_floor(jax.random.key(seed), x_hat, y, jgram.Delta(3), draws=9).draws
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(floors[0], floors[1])
    assert (floors[0] != floors[2]).any()


@pytest.mark.thorough
def test_many_sizes_compile_a_few_times():
    _, x_hat, y = categorical(1200)
    before = uncertainty._linearise_all._cache_size()
    for n in range(1000, 1050, 2):
        uncertainties({"": x_hat[:n]}, y[:n], jgram.Delta(3), num_classes=3)
    assert uncertainty._linearise_all._cache_size() - before <= 6


@pytest.mark.thorough
def test_padding_changes_nothing():
    for kernel, records in ((jgram.Delta(3), categorical(77)), (jgram.RBF(1.0), numeric(77))):
        _, x_hat, y = records
        found = uncertainties({"": x_hat}, y, kernel)[""]
        with jax.enable_x64(True):
            alone = jgram.influences.linearise(x_hat, y, kernel)
        assert found.log_score == pytest.approx(float(alone.log_score), abs=1e-9)
        own = np.asarray(alone.influence)[np.arange(77), x_hat]
        np.testing.assert_allclose(found.contributions, 2 * (own - 3), atol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: uncertainties({}, y, DELTA), "at least one report"),
        (lambda x, y: uncertainties({"a": x, "b": x[1:]}, y, DELTA), "same records"),
        (lambda x, y: jgram.bootstrap(KEY, x, y, DELTA, confidence=1.0), r"confidence in \(0, 1\)"),
        (lambda x, y: jgram.noise_floor(KEY, x, y, DELTA, draws=0), "draws >= 1"),
        (lambda x, y: jgram.noise_floor(KEY, x, y, DELTA, block_length=999), "block_length"),
        (lambda x, y: jgram.bootstrap(KEY, 0 * x, y, DELTA, num_classes=2), "finite log score"),
    ],
)
def test_bad_input_is_refused(call, message, unchecked):
    _, x_hat, y = categorical(50)
    with pytest.raises(ValueError, match=message):
        call(x_hat, y)


def by_all_signs(kernel, labels, groups, weights):
    """The p-value by loops over records, groups and signs, every copy a record."""
    labelled = (labels >= 0) & (weights > 0)
    copies = np.repeat(np.flatnonzero(labelled), weights[labelled])
    n, z = len(copies), np.eye(3)[labels[copies]]
    centring, shares = np.eye(n) - 1 / n, z.mean(axis=0)
    centred = (z - shares) / np.sqrt(shares)
    apart = groups[copies][:, None] != groups[copies]
    parts = centring @ kernel[np.ix_(copies, copies)] @ centring, centred @ centred.T
    entries = np.prod(parts, axis=0) - parts[0][apart].mean() * parts[1][apart].mean()
    members = [np.flatnonzero(groups[copies] == group) for group in np.unique(groups[copies])]
    sums = [[entries[np.ix_(a, b)].sum() * (a is not b) for b in members] for a in members]
    signs = np.array(list(itertools.product([1, -1], repeat=len(members))))
    drawn = np.sum(signs @ sums * signs, axis=1)
    return np.mean(drawn >= drawn[0] - 1e-9)


def grouped_data(rng, n, count, effect=0.3):
    truth, groups = rng.integers(0, 3, n), rng.permutation(np.arange(n) % count)
    return truth, rng.normal(size=(n, 3)) + effect * truth[:, None], groups


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pairs", "codes", "features", "mapped"])
def test_records_in_groups_are_tested_by_all_signs(kind, monkeypatch):
    rng = np.random.default_rng(0)
    truth, y, groups = grouped_data(rng, 60, 11)
    labels = np.where(rng.random(60) < 0.1, -1, rng.integers(0, 3, 60))
    weights = rng.integers(0, 3, 60)
    monkeypatch.setattr(noise, "BATCH", 200)  # several tiles, the last one not full
    with jax.enable_x64(True):
        observed = {
            "pairs": lambda: observe(TableKernel.of(y), y),
            "codes": lambda: observe("delta", (y[:, 0] > 0) + 2 * (y[:, 1] > 0.4)),
            "features": lambda: observe("linear", y),
            "mapped": lambda: Mapped(jnp.asarray(y), jgram.linear, 3),
        }[kind]()
        kernel = np.asarray(observed.product(np.eye(60)))
        found = products(
            observed, np.stack([labels, truth]), num_classes=3, weights=weights, groups=groups
        )
        p_values = grouped_noise_tests(observed, found)
        for report, p_value in zip((labels, truth), p_values, strict=True):
            assert p_value == pytest.approx(by_all_signs(kernel, report, groups, weights))
        monkeypatch.setattr(noise, "ALL_SIGNS", 5)
        np.testing.assert_allclose(grouped_noise_tests(observed, found), p_values, atol=0.02)


@pytest.mark.thorough
def test_fewer_than_ten_groups_are_not_judged():
    rng = np.random.default_rng(1)
    truth, y, groups = grouped_data(rng, 200, 9, effect=2.0)
    reports = {"a": truth, "b": np.where(rng.random(200) < 0.3, 0, truth)}
    few = jgram.rank_reports(reports, y, groups=groups)
    assert few.inside_noise == ("a", "b")
    assert "fewer than 10 groups of records (9)" in few.findings[0].message
    alone = [finding.name for finding in jgram.score(truth, y, groups=groups).findings]
    assert "few groups" in alone
    assert "inside the noise" not in alone
    more = jgram.rank_reports(reports, y, groups=np.arange(200) % 10)
    assert more.inside_noise == ()
    assert "few groups" not in [finding.name for finding in more.findings]


@pytest.mark.thorough
def test_joined_groups_are_groups(monkeypatch):
    truth, y, groups = grouped_data(np.random.default_rng(2), 400, 200, effect=0.2)
    with jax.enable_x64(True):
        observed = observe(TableKernel.of(y), y)
        found = products(observed, truth[None], num_classes=3, groups=groups)
        alone = grouped_noise_tests(observed, found)
        monkeypatch.setattr(noise, "MOST_GROUPS", 50)
        joined = grouped_noise_tests(observed, found)
    assert alone < 0.01
    assert joined < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("count", [12, 25, 50])
def test_noise_in_groups_is_found_as_often_as_the_level_says(count):
    """The z-test of mean payoffs over groups rejected 5% at the 1% level."""
    passed = jax.jit(lambda y, x: products(observe(jgram.RBF(3.0), y), x[None], num_classes=3))
    p_values = []
    with jax.enable_x64(True):
        for seed in range(300):
            rng = np.random.default_rng([13, seed])
            groups, favoured = rng.integers(0, count, 300), rng.integers(0, 3, count)
            labels = np.where(rng.random(300) < 0.5, favoured[groups], rng.integers(0, 3, 300))
            y = rng.normal(size=(count, 4))[groups] + rng.normal(size=(300, 4))
            groups = np.unique(groups, return_inverse=True)[1]
            found, kernel = passed(y, labels), np.exp(-cdist(y, y, "sqeuclidean") / 9)
            inside = (kernel * (groups[:, None] == groups)) @ found.z
            found = found._replace(groups=groups, group_product=inside)
            p_values.append(grouped_noise_tests(observe(jgram.RBF(3.0), y), found)[0])
    assert np.mean(np.array(p_values) <= 0.05) < 0.09
    assert np.mean(np.array(p_values) <= 0.01) < 0.03
