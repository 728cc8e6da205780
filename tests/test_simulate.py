"""Sweeps: published numbers, one cell alone, records against tables."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from experiments import policies as experiment_1
from experiments.kernels import FourierRBF, quantile_buckets
from experiments.rank_deficient import low_rank_experiment
from jgram import simulate
from jgram.kernels import RBF
from jgram.simulate import policies
from tests import oracles

pytestmark = pytest.mark.thorough

PUBLISHED = json.loads((Path(experiment_1.__file__).with_name("published.json")).read_text())
SCORES = {"score": simulate.table_log_score}


def transitions(d, levels=(0.0, 0.2, 0.5)):
    every = (policies.uniform(d), policies.merge_classes(d))
    return jnp.stack([jnp.stack([policies.mix(pi, p) for p in levels]) for pi in every])


def test_means_of_the_published_code():
    np.testing.assert_allclose(PUBLISHED["levels"][::-1], experiment_1.LEVELS, atol=1e-12)
    experiment, counts, mixed = experiment_1.published_data_set()
    found = simulate.sweep(
        jax.random.key(0), counts, experiment_1.transitions(experiment, mixed), SCORES, trials=60
    )
    values = {"score": np.exp(found.scores["score"]), "hamming": found.hamming, "l2": found.l2}
    for name, value in values.items():
        mean, error = value.mean(axis=-1), value.std(axis=-1, ddof=1) / np.sqrt(60)
        theirs = np.array(PUBLISHED[name]["mean"])[:, ::-1]
        their_error = np.array(PUBLISHED[name]["half"])[:, ::-1] / 1.96
        np.testing.assert_allclose(mean[:, 0], theirs[:, 0], rtol=1e-6)
        gap = np.abs(mean - theirs)[:, 1:] / np.hypot(error, their_error)[:, 1:]
        assert gap.max() < 4, name
        assert gap.mean() > 0.3, name  # two samples that differ


@pytest.mark.parametrize("memory", [1e9, 2.2e4])  # one chunk, or three of two
def test_every_trial_of_every_cell_alone(memory):
    counts, matrices = jnp.array([[30, 5, 5], [4, 40, 6], [7, 3, 25]]), transitions(3)
    key = jax.random.key(5)
    found = simulate.sweep(key, counts, matrices, SCORES, trials=5, memory=memory)
    assert found.l2.shape == found.hamming.shape == found.scores["score"].shape == (2, 3, 5)
    with jax.enable_x64(True):
        alone = jax.device_get(
            simulate.trial(simulate.trial_key(key, 4, 3), counts, matrices[1, 1], SCORES)
        )
    assert alone.hamming == found.hamming[1, 1, 3]
    np.testing.assert_allclose(alone.l2, found.l2[1, 1, 3], rtol=1e-12)
    np.testing.assert_allclose(alone.scores["score"], found.scores["score"][1, 1, 3], rtol=1e-12)
    # Nothing is corrupted at p = 0.
    assert (found.hamming[:, 0] == 0).all()
    assert (found.l2[:, 0] == 0).all()
    truth = counts / counts.sum()
    np.testing.assert_allclose(
        found.scores["score"][:, 0], 2 * np.log(abs(np.linalg.det(np.asarray(truth)))), rtol=1e-5
    )


def test_one_data_set_a_trial():
    counts = jnp.array([[[9, 1], [2, 8]], [[900, 100], [200, 800]]])
    found = simulate.sweep(jax.random.key(0), counts, transitions(2), SCORES, trials=2)
    alone = simulate.sweep(jax.random.key(0), counts[1], transitions(2), SCORES, trials=2)
    np.testing.assert_array_equal(found.hamming[..., 1], alone.hamming[..., 1])
    assert (found.hamming[..., 0] <= 20).all()


def test_errors_of_a_trial_are_those_of_its_records():
    x = np.repeat(np.arange(3), [40, 50, 60])
    matrices = transitions(3)
    found = simulate.sweep_records(
        jax.random.key(1), jnp.array(x), jnp.array(1.0 * x), matrices, RBF(0.5), trials=2
    )
    for cell in range(6):
        i, j = divmod(cell, 3)
        key = simulate.trial_key(jax.random.key(1), cell, 1)
        x_hat = np.asarray(policies.corrupt(key, jnp.array(x), matrices[i, j]))
        assert found.hamming[i, j, 1] == np.sum(x_hat != x)
        np.testing.assert_allclose(found.l2[i, j, 1], np.linalg.norm(x_hat - x), rtol=1e-12)
        expected = oracles.log_score(x_hat, 1.0 * x, oracles.gaussian(0.5), 3)
        np.testing.assert_allclose(found.scores["log_score"][i, j, 1], expected, rtol=1e-9)


def test_explicit_and_implicit_kernel_give_one_score():
    rng = np.random.default_rng(0)
    x = jnp.array(rng.integers(4, size=300))
    y = x + jnp.array(0.1 * rng.normal(size=300))
    matrices = jnp.stack([policies.normal(4, s) for s in (0.3, 1.0)])
    key = jax.random.key(2)
    implicit, explicit = (
        simulate.sweep_records(key, x, y, matrices, kernel, trials=3)
        for kernel in (RBF(0.1), FourierRBF(0.1, 5.0))
    )
    np.testing.assert_allclose(
        implicit.scores["log_score"], explicit.scores["log_score"], rtol=1e-9
    )


def test_records_and_tables_agree_in_the_mean():
    counts = np.array([[60, 20], [15, 85]])
    x, y = (np.repeat(axis.ravel(), counts.ravel()) for axis in np.indices(counts.shape))
    matrices = policies.mix(policies.uniform(2), 0.4)[None]
    settings = {"trials": 2000}
    records = simulate.sweep_records(
        jax.random.key(0), jnp.array(x), jnp.array(y), matrices, RBF(0.05), **settings
    )
    tables = simulate.sweep(jax.random.key(1), jnp.array(counts), matrices, SCORES, **settings)
    for a, b in (
        (records.scores["log_score"], tables.scores["score"]),
        (records.hamming, tables.hamming),
        (records.l2, tables.l2),
    ):
        error = np.hypot(a.std(), b.std()) / np.sqrt(2000)
        assert abs(a.mean() - b.mean()) < 4 * error
        assert 0.9 < a.std() / b.std() < 1.1


def test_truth_is_drawn_from_its_distribution():
    experiment = simulate.random_experiment(jax.random.key(0), 3, 4)
    prior = jnp.array([0.5, 0.25, 0.25])
    n = 200_000
    joint = np.asarray(prior[:, None] * experiment.T, float)
    counts = np.asarray(simulate.truth_counts(jax.random.key(1), n, experiment, prior))
    x, y = simulate.truth(jax.random.key(2), n, experiment, prior)
    records = np.zeros((3, 4), int)
    np.add.at(records, (np.asarray(x), np.asarray(y)), 1)
    for found in (counts, records):
        assert found.sum() == n
        assert np.abs((found - n * joint) / np.sqrt(n * joint * (1 - joint))).max() < 4


def test_rank_of_an_experiment_and_quantile_buckets():
    with jax.enable_x64(True):
        for rank in (1, 2, 4):
            experiment = np.asarray(low_rank_experiment(jax.random.key(rank), 4, rank))
            np.testing.assert_allclose(experiment.sum(axis=0), 1.0)
            values = np.linalg.svd(experiment, compute_uv=False)
            assert np.sum(values > 1e-6 * values[0]) == rank
    y = np.random.default_rng(0).normal(size=1001).astype(np.float32)
    ours = np.asarray(quantile_buckets(jnp.array(y), 4))
    np.testing.assert_array_equal(ours, pd.qcut(y, 4, labels=False))


def test_a_second_sweep_compiles_nothing():
    counts = jnp.array([[8, 1], [2, 9]])
    simulate.sweep(jax.random.key(0), counts, transitions(2), SCORES, trials=3)
    size = simulate.sweeps._chunk._cache_size()
    simulate.sweep(jax.random.key(1), counts + 1, transitions(2), dict(SCORES), trials=3)
    assert simulate.sweeps._chunk._cache_size() == size


def test_shapes_that_do_not_fit_are_refused(unchecked):
    key, counts = jax.random.key(0), jnp.ones((3, 4), int)
    with pytest.raises(ValueError, match="expected counts"):
        simulate.sweep(key, counts, transitions(2), {}, trials=1)
    with pytest.raises(ValueError, match="counts of 5 trials, got 2"):
        simulate.sweep(key, jnp.ones((2, 3, 4), int), transitions(3), {}, trials=5)
    with pytest.raises(ValueError, match=r"rank in 1\.\.4"):
        low_rank_experiment(key, 4, 5)
