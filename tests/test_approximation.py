"""Random features: what they stand for, how far they are off, when the front door takes them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jgram
import jgram.approximation as approximation
import jgram.binding as binding
from jgram.approximation import approximate, half_width, jackknife, leave_blocks_out, shortfall
from jgram.contrasts import pair_payoffs
from jgram.kernels import RandomFeatures, mixture_features
from jgram.observed import Features, Mapped, Pairs, observe
from jgram.table_kernel import TableKernel

CLASSES = 3


def records(n, seed=0, shares=(1 / 3, 1 / 3, 1 / 3)):
    """Three reports, and a table of two numbers and a category."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(CLASSES, n, p=shares)
    reports = np.stack(
        [np.where(rng.random(n) < e, rng.integers(0, CLASSES, n), truth) for e in (0.1, 0.3, 0.5)]
    )
    numbers = rng.normal(size=(CLASSES, 2))[truth] * 1.5 + rng.normal(size=(n, 2))
    category = np.where(rng.random(n) < 0.5, truth, rng.integers(0, 4, n))
    table = {"a": numbers[:, 0], "b": numbers[:, 1], "c": np.array(list("wxyz"))[category]}
    return reports.astype(np.int32), table


def test_features_of_a_mixture_have_its_kernel_as_their_mean():
    points = np.random.default_rng(0).normal(size=(12, 3))
    kernel = TableKernel.of(np.random.default_rng(1).normal(size=(80, 3)))
    with jax.enable_x64(True):
        exact = observe(kernel, points).product(jnp.eye(12))
        errors = []
        for size in (1024, 65_536):
            drawn = kernel.random_features(jax.random.key(0), size)
            rows = drawn.features(points)
            np.testing.assert_allclose(np.sum(rows**2, axis=1), 1.0)
            errors.append(float(jnp.sqrt(jnp.mean((rows @ rows.T - exact) ** 2))))
    assert errors[1] < 0.005
    assert errors[1] < errors[0] / 4  # 1/8, up to luck


def test_blocks_are_alike():
    drawn = mixture_features(jax.random.key(0), 1024, [np.eye(2), 3 * np.eye(2)], [0.2, 0.8])
    blocks = drawn.blocks()
    weights = np.tile(drawn.weights, 2)
    np.testing.assert_allclose(np.bincount(blocks, weights), np.full(16, 2 / 16))
    lengths = np.linalg.norm(drawn.frequencies, axis=1)
    wide = weights[:512] > np.median(weights)
    assert wide.sum() == 256
    assert lengths[wide].mean() > 2 * lengths[~wide].mean()
    assert RandomFeatures.draw(jax.random.key(0), 34, dimension=2, bandwidth=1.0).blocks() is None
    for size in (1000, 32):
        with pytest.raises(ValueError, match="multiples of 32"):
            mixture_features(jax.random.key(0), size, [np.eye(1), np.eye(1)], [0.5, 0.5])


@pytest.mark.thorough
@pytest.mark.parametrize(("kept", "gaps"), [(True, True), (False, False)])
def test_leaving_out_a_block_is_the_kernel_of_the_others(kept, gaps):
    reports, table = records(60)
    reports = reports[:2].copy()
    if gaps:
        reports[0, :7] = -1
        reports[1, 5:9] = -1
    points = np.stack([table["a"], table["b"]], axis=1)
    weights = np.arange(60) % 3 + 1.0
    drawn = RandomFeatures.draw(jax.random.key(0), 64, dimension=2, bandwidth=2.0)
    with jax.enable_x64(True):
        observed = observe(drawn, points) if kept else Mapped(jnp.asarray(points), drawn, 64)
        left = leave_blocks_out(observed, reports, num_classes=CLASSES, weights=weights)
        for block in (0, 11):
            rows = np.asarray(drawn.features(points))[:, drawn.blocks() != block] * np.sqrt(16 / 15)
            others = Features(jnp.asarray(rows), None)
            paid = pair_payoffs(others, reports, num_classes=CLASSES, weights=weights)
            np.testing.assert_allclose(left.means[block], paid.means, rtol=1e-6)
            for i, labels in enumerate(reports):
                z = np.eye(CLASSES)[labels] * (weights * (labels >= 0))[:, None]
                gram = z.T @ rows @ rows.T @ z / z.sum() ** 2
                assert left.log_scores[block, i] == pytest.approx(np.linalg.slogdet(gram)[1])


def test_the_jackknife_of_a_mean_is_its_variance():
    values = np.random.default_rng(0).normal(size=(16, 3))
    without = (values.sum(axis=0) - values) / 15
    np.testing.assert_allclose(jackknife(without), values.var(axis=0, ddof=1) / 16)
    # 2.447 standard errors: Student's law of 6 degrees.
    assert half_width(without[:, 0], 0.95) == pytest.approx(
        2.447 * values[:, 0].std(ddof=1) / 4, rel=0.01
    )
    assert half_width(None, 0.95) is None
    assert half_width(np.full(16, -np.inf), 0.95) is None


def test_shortfall_is_in_thirds_of_the_standard_error():
    means = np.zeros((16, 2, 2))
    means[:, 0, 0] = np.random.default_rng(0).normal(size=16)
    left = approximation.LeftOut(means, np.zeros((16, 1)))
    error = float(np.sqrt(jackknife(means[:, 0, 0])))
    assert shortfall(left, np.array([3 * error, 1.0])) == pytest.approx(1.0)
    assert shortfall(left, np.array([0.0, 1.0])) == 0.0


def test_large_tables_are_bound_by_features(monkeypatch):
    reports, table = records(60)
    exact = binding.bind_observations(table)[0]
    assert isinstance(exact, Pairs)
    assert leave_blocks_out(exact, reports) is None
    assert leave_blocks_out(observe(jgram.linear, table["a"]), reports) is None
    monkeypatch.setattr(binding, "EXACT_RECORDS", 59)
    observed, _, description, _ = binding.bind_observations(table)
    assert isinstance(observed, Mapped)
    assert observed.num_features == 1024
    assert description.endswith("; by 1,024 random features")
    numbers = np.stack([table["a"], table["b"]], axis=1)
    assert isinstance(binding.bind_observations(numbers)[0], Mapped)
    assert isinstance(binding.bind_observations(numbers, "rbf")[0], Pairs)


@pytest.mark.thorough
def test_the_front_door_takes_features_beyond_memory(monkeypatch):
    stacked, table = records(600)
    reports = dict(zip("abc", stacked, strict=True))
    exact = jgram.rank_reports(reports, table)
    assert all(report.keeps_features_error is None for report in exact.reports)
    monkeypatch.setattr(binding, "EXACT_RECORDS", 599)
    found = jgram.rank_reports(reports, table)
    assert found.observations.endswith("by 1,024 random features")
    assert found.reports[0].published.kernel.endswith("by 1,024 random features")
    assert [x.name for x in found.reports] == [x.name for x in exact.reports]
    for report, same in zip(found.reports, exact.reports, strict=True):
        assert abs(report.keeps - same.keeps) <= 2 * report.keeps_features_error
        error = report.published.log_score_features_error
        assert abs(report.published.log_score - same.published.log_score) < 2 * error
        low, high = report.keeps_interval
        assert high - low >= 2 * report.keeps_features_error
    for pair in found.pairs:
        assert pair.retention_features_error > 0
        assert pair.log_ratio_features_error > 0
    one, same = jgram.score(reports["a"], table), found.reports[0].published
    assert one.log_score_features_error == pytest.approx(same.log_score_features_error, rel=1e-6)
    given = jgram.rank_reports(reports, np.stack([table["a"], table["b"]], axis=1), "rbf")
    assert given.reports[1].keeps_features_error is None


@pytest.mark.thorough
def test_features_double_until_their_error_hardly_shows(monkeypatch):
    stacked, table = records(600)
    reports = dict(zip("abc", stacked, strict=True))
    monkeypatch.setattr(binding, "EXACT_RECORDS", 0)
    monkeypatch.setattr(approximation, "TOLERATED", 1 / 1000)
    found = jgram.rank_reports(reports, table)
    assert found.observations.endswith("by 4,096 random features")
    assert found.reports[0].published.kernel.endswith("by 4,096 random features")
    assert "random features" in [finding.name for finding in found.findings]


@pytest.mark.thorough
@pytest.mark.parametrize("shares", [(1 / 3, 1 / 3, 1 / 3), (0.9, 0.08, 0.02)])
def test_intervals_cover_the_exact_answer(shares):
    """Six in seven of 40 draws, and not all, each pair's share and log ratio, and a log score."""
    reports, table = records(600, shares=shares)
    with jax.enable_x64(True):
        observed, points, _, _ = binding.bind_observations(table)
        kernel = observed.kernel

        def said(means):
            one, two = means[..., 0], means[..., 1]
            return np.concatenate([two / one, (one - two) / (one + two)], axis=-1)

        exact = said(np.asarray(pair_payoffs(observed, reports, num_classes=CLASSES).means))
        score = float(jgram.plugin_log_score(reports[0], observed, num_classes=CLASSES))
        held = []
        for seed in range(40):
            drawn = approximate(kernel, points, 1024, jax.random.key(seed))
            found = said(np.asarray(pair_payoffs(drawn, reports, num_classes=CLASSES).means))
            left = leave_blocks_out(drawn, reports, num_classes=CLASSES)
            widths = [half_width(column, 0.95) for column in said(left.means).T]
            own = float(jgram.plugin_log_score(reports[0], drawn, num_classes=CLASSES))
            hit = abs(own - score) <= half_width(left.log_scores[:, 0], 0.95)
            held.append([*(abs(found - exact) <= widths), hit])
    covered = np.mean(held, axis=0)
    assert (covered > 0.85).all(), covered
    assert covered.mean() < 1, covered
