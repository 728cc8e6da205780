"""Attacks: right gradients, exact flips, budgets kept, and what the theory says of policies."""

import re
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jgram
from jgram.attack import ascend_policy, ascend_reports, flip_greedily, perturb_observations
from tests.components import KERNELS, NUMBERS, OUTCOMES, X_HAT, D, N, double
from tests.refusals import refused

pytestmark = pytest.mark.thorough

KEY = jax.random.key(0)


def kernel_matrix(name):
    _, y, pair = KERNELS[name]
    y = y.astype(float) if y.dtype == np.float32 else y
    return np.array([[pair(a, b) for b in y] for a in y])


def score_of(matrix, labels, num_classes=D):
    """The definition, from the whole kernel matrix in float64."""
    z = np.eye(num_classes)[labels] / len(labels)
    sign, value = np.linalg.slogdet(z.T @ matrix @ z)
    return value if sign > 0 else -np.inf


def all_flips(matrix, labels):
    """The score after each single relabelling, ``[n, d]``, one evaluation each."""
    table = np.empty((len(labels), D))
    for record, target in np.ndindex(table.shape):
        flipped = labels.copy()
        flipped[record] = target
        table[record, target] = score_of(matrix, flipped)
    return table


# Gradients of soft reports ------------------------------------------------------------------

SOFT = {
    "inside": lambda rng: rng.dirichlet(np.ones(D), N),
    "border": lambda rng: np.eye(D)[X_HAT],
    "nearly merged": lambda rng: 0.99 / D + 0.01 * np.eye(D)[X_HAT],
}


@pytest.mark.parametrize("name", ["rbf", "function"])
def test_gradient_is_the_slope_along_feasible_directions(name):
    rng = np.random.default_rng(1)
    soft = np.stack([where(rng) for where in SOFT.values()])
    way = rng.dirichlet(np.ones(D), (len(SOFT), N)) - soft  # feasible from the border too
    with jax.enable_x64(True):
        kernel, y = double(name)
        score = jax.vmap(lambda soft: jgram.plugin_log_score(soft, y, kernel))
        far = 1e-5
        near, middle, end = (np.asarray(score(soft + s * way)) for s in (0.0, far, 2 * far))
        slope = (4 * middle - 3 * near - end) / (2 * far)  # of second order, from one side
        exact = np.asarray(jax.grad(lambda soft: score(soft).sum())(jnp.asarray(soft)))

    np.testing.assert_allclose(np.sum(exact * way, axis=(1, 2)), slope, rtol=1e-5)
    scale = np.abs(exact).max(axis=(1, 2))
    kernel, y, _ = KERNELS[name]
    single = jax.vmap(jax.grad(lambda soft: jgram.plugin_log_score(soft, y, kernel)))
    found = single(jnp.asarray(soft, jnp.float32))
    assert found.dtype == jnp.float32
    error = np.abs(found - exact).max(axis=(1, 2)) / scale
    assert (error < [1e-4, 1e-4, 2e-2]).all()  # inside, border, nearly merged


# Greedy flips -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["delta", "linear", "rbf"])
def test_greedy_flips_are_those_of_brute_force(name):
    matrix, labels, path = kernel_matrix(name), X_HAT.copy(), []
    while (table := all_flips(matrix, labels)).max() > score_of(matrix, labels) + 1e-12:
        record, target = np.unravel_index(table.argmax(), table.shape)
        labels[record] = target
        path.append(table.max())
    with jax.enable_x64(True):
        kernel, y = double(name)
        found = flip_greedily(X_HAT, y, kernel)
        if name == "rbf":
            few = flip_greedily(X_HAT, y, kernel, flips=3)
            np.testing.assert_array_equal(few.path, found.path[:3])
            assert np.sum(np.asarray(few.reports) != X_HAT) == 3
    np.testing.assert_allclose(found.path, path, atol=1e-9)
    assert 5 < len(path) < N
    assert found.reports.tolist() == labels.tolist()
    assert found.gain == pytest.approx(path[-1] - score_of(matrix, X_HAT), abs=1e-9)
    assert found.changed == pytest.approx(np.mean(labels != X_HAT))


# Gradient ascent on reports -----------------------------------------------------------------


@pytest.mark.parametrize("attack", [ascend_reports, flip_greedily])
@pytest.mark.parametrize("budget", [0.0, 0.05, 0.3, 1.0])
def test_budget_bounds_the_share_of_changed_records(attack, budget):
    kernel, y, _ = KERNELS["rbf"]
    first = (KEY,) if attack is ascend_reports else ()
    found = attack(*first, X_HAT, y, kernel, budget=budget)
    assert np.sum(np.asarray(found.reports) != X_HAT) <= budget * N + 1e-6
    assert found.changed == pytest.approx(np.mean(np.asarray(found.reports) != X_HAT))
    direct = jgram.plugin_log_score(found.reports, y, kernel, num_classes=D)
    assert found.log_score == pytest.approx(float(direct), abs=1e-4)
    honest = jgram.plugin_log_score(X_HAT, y, kernel)
    assert found.gain == pytest.approx(float(direct - honest), abs=1e-4)
    assert (found.gain > 0.1) == (budget > 0)
    if attack is ascend_reports:  # soft reports keep to the budget too
        assert found.path.max() < found.log_score + 0.05


def test_ascent_takes_any_optimiser_and_starts_near_the_honest_reports():
    kernel, y, _ = KERNELS["rbf"]
    found = ascend_reports(jax.random.split(KEY, 2), X_HAT, y, kernel, optimizer=optax.adam(0.3))
    assert found.path.shape == (2, 100)
    assert bool(jnp.isfinite(found.path).all())
    assert found.gain > 0.1
    first = 0.9 * np.eye(D, dtype=np.float32)[X_HAT] + np.float32(0.1 / D)
    assert found.path[0, 0] == pytest.approx(float(jgram.plugin_log_score(first, y, kernel)))
    assert abs(found.path[1, 0] - found.path[0, 0]) > 1e-3  # the other restart starts elsewhere


def test_ascent_is_reproducible_and_compiles_once():
    traces = []

    def score(x_hat, y, kernel, *, num_classes):
        traces.append(None)
        return jgram.plugin_log_score(x_hat, y, kernel, num_classes=num_classes)

    kernel, y, _ = KERNELS["rbf"]
    one = ascend_reports(KEY, X_HAT, y, kernel, score=score, steps=5)
    compiled = len(traces)
    two = ascend_reports(KEY, X_HAT, y, kernel, score=score, steps=5)
    assert len(traces) - compiled == 1  # the eager check of the start; nothing is compiled again
    assert all(bool((a == b).all()) for a, b in zip(one, two, strict=True))


def test_a_guess_of_the_observations_can_be_attacked():
    """Several guesses of every observation, and the mean of their scores as the target."""

    def mean_score(x_hat, y, kernel, *, num_classes):
        return jnp.mean(
            jax.vmap(
                lambda guess: jgram.plugin_log_score(x_hat, guess, kernel, num_classes=num_classes),
                in_axes=1,
            )(y)
        )

    guesses = NUMBERS[:, None] + 0.1 * np.random.default_rng(0).normal(size=(N, 3, 4))
    found = ascend_reports(KEY, X_HAT, guesses, jgram.RBF(3.0), score=mean_score, budget=0.1)
    real = [jgram.plugin_log_score(x, NUMBERS, jgram.RBF(3.0)) for x in (X_HAT, found.reports)]
    assert float(real[1] - real[0]) == pytest.approx(float(found.gain), rel=0.2)


# Moved observations -------------------------------------------------------------------------


def test_perturbed_observations_reach_the_known_optimum():
    """One class, linear kernel: log |mean y|^2 is largest with every record moved the same way."""
    y = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32) + 1.0
    mean = y.mean(axis=0)
    one = np.zeros(30, int)
    round_ball = perturb_observations(one, y, jgram.linear, radius=0.2, norm="l2")
    length = np.linalg.norm(mean)
    assert round_ball.gain == pytest.approx(2 * np.log((length + 0.2) / length), rel=1e-4)
    cube = perturb_observations(one, y, jgram.linear, radius=0.2, norm="linf")
    moved = np.linalg.norm(np.abs(mean) + 0.2)
    assert cube.gain == pytest.approx(2 * np.log(moved / length), rel=1e-4)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_perturbations_stay_in_the_ball_and_raise_or_lower_the_score(norm, sign):
    kernel, y, _ = KERNELS["rbf"]

    def score(x_hat, y, kernel, *, num_classes):
        return sign * jgram.plugin_log_score(x_hat, y, kernel, num_classes=num_classes)

    found = perturb_observations(X_HAT, y, kernel, radius=0.3, norm=norm, score=score)
    shift = np.asarray(found.observations) - y
    size = np.abs(shift).max() if norm == "linf" else np.linalg.norm(shift, axis=1).max()
    assert 0.29 < size < 0.3 + 1e-5
    assert found.gain == found.path.max() - found.path[0] > 0.3
    again = jgram.plugin_log_score(X_HAT, found.observations, kernel)
    assert sign * found.log_score == pytest.approx(float(again), abs=1e-4)


# Policies -----------------------------------------------------------------------------------


def test_no_policy_beats_the_truth_but_permutations_tie():
    prior = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    found = ascend_policy(KEY, prior, restarts=24)
    np.testing.assert_allclose(found.policies.sum(axis=2), 1.0, atol=1e-5)
    assert np.abs(found.gains).max() < 1e-4
    assert found.distances.max() < 1e-3
    reached = {tuple(row) for row in np.asarray(found.permutations).tolist()}
    assert all(sorted(row) == [0, 1, 2, 3] for row in reached)
    assert len(reached) > 3  # the truth is one of many


def test_policies_gain_the_volume_of_the_policy_under_any_experiment():
    experiment = np.random.default_rng(0).dirichlet(np.ones(5), 3).T
    prior = np.array([0.2, 0.3, 0.5])
    found = ascend_policy(KEY, jnp.asarray(prior, jnp.float32), steps=5)
    policies = np.asarray(found.policies, float)
    tables = experiment @ np.concatenate([prior[:, None] * policies, np.diag(prior)[None]])
    scores = np.linalg.slogdet(tables.mT @ tables)[1]
    np.testing.assert_allclose(found.gains, scores[:-1] - scores[-1], atol=1e-3)
    assert found.gains.max() < -0.01  # five steps do not arrive


# Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        *(
            (lambda b=b, f=f: f(X_HAT, OUTCOMES, jgram.Delta(5), budget=b), r"budget in \[0, 1\]")
            for b in (-0.1, 1.5, float("nan"))
            for f in (partial(ascend_reports, KEY), flip_greedily)
        ),
        *(
            (partial(perturb_observations, X_HAT, NUMBERS, jgram.RBF(3.0), **ball), words)
            for ball, words in (
                ({"radius": -1.0}, "radius of at least 0"),
                ({"radius": float("nan")}, "radius of at least 0"),
                ({"radius": 0.1, "norm": "l1"}, "'l2' or 'linf'"),
            )
        ),
        (
            partial(perturb_observations, X_HAT, OUTCOMES, jgram.Delta(5), radius=0.1),
            "categories have no gradient",
        ),
        *(
            (partial(ascend_policy, KEY, np.array(prior, np.float32)), "of the true labels")
            for prior in ([0.5, 0.6], [1.0, 0.0], [[0.5, 0.5]])
        ),
    ],
)
def test_bad_input_is_one_clear_error(call, words, unchecked):
    assert re.search(words, refused(call))


def test_starts_without_a_score_or_a_slope_say_why():
    vanished, rbf = np.where(X_HAT == 1, 0, X_HAT), jgram.RBF(3.0)
    x = np.arange(N) % 4
    merged = np.where(x == 3, 1, x)  # 1 and 3 look alike
    merged[0] = 3  # as many outcomes as classes
    merged[4:8] = merged[0:4]

    def nothing(x_hat, y, kernel, *, num_classes):
        return jnp.log(0.0 * jnp.sum(x_hat))

    def edge(x_hat, y, kernel, *, num_classes):
        return jgram.plugin_log_score(x_hat, y, kernel) + jnp.sum(jnp.sqrt(x_hat[7, 0]))

    gone = r"got -inf: class 1 is never reported"
    alike = "tells classes 1 and 3 apart"
    slope = r"finite gradient, got .*inf.* at record 7, of class 1"
    for words, attack, *start in (
        (gone, partial(ascend_reports, KEY), vanished, NUMBERS, rbf),
        (gone, flip_greedily, vanished, NUMBERS, rbf),
        (gone, partial(perturb_observations, radius=0.1), vanished, NUMBERS, rbf),
        (alike, flip_greedily, x, merged, jgram.delta),
        (alike, partial(ascend_reports, KEY), x, merged, jgram.delta),
        ("it is the score that has none", partial(ascend_reports, KEY, score=nothing), X_HAT,
         NUMBERS, rbf),
        (slope, partial(ascend_reports, KEY, score=edge), X_HAT, NUMBERS, rbf),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            attack(*start)


def test_optax_is_loaded_by_the_first_ascent_only():
    code = "import sys, jgram.attack; sys.exit('optax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
