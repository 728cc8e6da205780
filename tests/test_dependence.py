"""Dependence measures against SciPy, scikit-learn and direct loops; at zeros; under transforms."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.cross_decomposition import CCA
from sklearn.metrics import mutual_info_score

from jgram.dependence import ky_fan_sum, maximal_correlation, mutual_information, top_k_volume
from jgram.gram_matrix import joint_table
from tests.refusals import refused

KINDS = ("kl", "chi2", "total_variation", "squared_hellinger")
SCORES = {
    **{kind: lambda table, kind=kind: mutual_information(table, kind) for kind in KINDS},
    "maximal_correlation": maximal_correlation,
    "top_k_volume": lambda table: top_k_volume(table, 2),
    "ky_fan_sum": lambda table: ky_fan_sum(table, 2),
}
GRADIENTS = {name: jax.jit(jax.grad(score)) for name, score in SCORES.items()}


def random_records(seed, n=300, m=4, d=3):
    rng = np.random.default_rng(seed)
    x_hat = rng.integers(0, d, n)
    y = np.where(rng.random(n) < 0.5, x_hat + 1, rng.integers(0, m, n))
    return x_hat, y


def random_table(seed, **sizes):
    return joint_table(*random_records(seed, **sizes))


def loop(table, phi):
    """Definition G.1, one cell at a time."""
    p = np.asarray(table, float)
    p = p / p.sum()
    total = 0.0
    for y in range(p.shape[0]):
        for x in range(p.shape[1]):
            product = p[y].sum() * p[:, x].sum()
            if product > 0:
                total += product * phi(p[y, x] / product)
    return total


PHI = {
    "kl": lambda a: a * np.log(a) if a > 0 else 0.0,
    "chi2": lambda a: a**2 - 1,
    "total_variation": lambda a: abs(a - 1) / 2,
    "squared_hellinger": lambda a: (1 - np.sqrt(a)) ** 2,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_mutual_information_is_its_definition(kind, seed):
    table = np.array(random_table(seed))
    table[0, 1] = 0  # an empty cell
    for scaled in (table, table / table.sum()):
        assert float(mutual_information(scaled, kind)) == pytest.approx(
            loop(table, PHI[kind]), rel=1e-5
        )


def test_measures_by_other_routes():
    x_hat, y = random_records(1)
    table = np.asarray(joint_table(x_hat, y))
    p = table / table.sum()
    q = np.outer(p.sum(axis=1), p.sum(axis=0))
    cramer = stats.contingency.association(table, method="cramer")
    for kind, expected in (
        ("kl", mutual_info_score(x_hat, y)),
        ("chi2", stats.chi2_contingency(table).statistic / table.sum()),
        ("chi2", ((p - q) ** 2 / q).sum()),
        ("chi2", cramer**2 * (min(table.shape) - 1)),
        ("total_variation", max((p - q)[p > q].sum(), (q - p)[q > p].sum())),
        ("squared_hellinger", 2 - 2 * np.sqrt(p * q).sum()),
    ):
        assert float(mutual_information(table, kind)) == pytest.approx(expected, rel=1e-4)
    # 2^24 + 1 is no float32: probabilities, not counts, are what is rounded.
    table = jnp.array([[2**27 + 1, 2**24], [2**24 + 1, 2**27]], jnp.int32)
    assert float(mutual_information(table)) == pytest.approx(loop(table, PHI["kl"]), rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_maximal_correlation_is_the_best_correlation_of_functions(seed):
    """By canonical correlation of indicators, and by direct optimisation over functions."""
    x_hat, y = random_records(seed)
    found = float(maximal_correlation(joint_table(x_hat, y)))
    indicators = np.eye(3)[x_hat][:, 1:], np.eye(4)[y][:, 1:]
    f, g = CCA(n_components=1, max_iter=5000, tol=1e-12).fit_transform(*indicators)
    assert found == pytest.approx(abs(np.corrcoef(f[:, 0], g[:, 0])[0, 1]), rel=1e-4)

    def negative(parameters):
        return -np.corrcoef(parameters[:3][x_hat], parameters[3:][y])[0, 1]

    best = min(
        optimize.minimize(negative, np.random.default_rng(i).normal(size=7)).fun for i in range(5)
    )
    assert found == pytest.approx(-best, rel=1e-4)


def test_singular_values_are_canonical_correlations():
    """Of all of them: by the eigenvalues of a product of conditional distributions."""
    table = np.asarray(random_table(3, m=5, d=4, n=1000), float)
    forth, back = table / table.sum(axis=0), (table / table.sum(axis=1, keepdims=True)).T
    squares = np.sort(np.linalg.eigvals(back @ forth).real)[::-1][1:]  # the first is 1: constants
    values = np.sqrt(squares)
    assert float(maximal_correlation(table)) == pytest.approx(values[0], rel=1e-4)
    for k in (1, 2, 3):
        assert float(top_k_volume(table, k)) == pytest.approx(np.prod(values[:k]), rel=1e-4)
        assert float(ky_fan_sum(table, k)) == pytest.approx(np.sum(values[:k]), rel=1e-4)
    assert float(ky_fan_sum(table, 4)) == pytest.approx(np.sum(values), rel=1e-4)


def test_perfect_dependence_and_independence():
    perfect, independent = jnp.eye(3) / 3, jnp.outer(jnp.array([1, 2, 3]), jnp.array([1, 1, 4]))
    expected = {"kl": np.log(3), "chi2": 2.0, "total_variation": 2 / 3}
    expected |= {"squared_hellinger": 2 - 2 / np.sqrt(3), "ky_fan_sum": 2.0}
    for name, score in SCORES.items():
        assert float(score(perfect)) == pytest.approx(expected.get(name, 1.0), abs=1e-5), name
        assert float(score(independent)) == pytest.approx(0.0, abs=1e-6), name


@pytest.mark.parametrize("name", SCORES)
def test_empty_rows_and_columns_change_nothing(name):
    table = np.asarray(random_table(5), float)
    padded = np.insert(np.insert(table, 1, 0.0, axis=0), 3, 0.0, axis=1)
    assert float(SCORES[name](padded)) == pytest.approx(float(SCORES[name](table)), rel=1e-5)
    for singular in (
        padded,
        np.eye(3),  # equal singular values, empty cells
        np.ones((3, 3)),  # all singular values zero
        np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 3.0]]),  # one zero, one not
    ):
        assert bool(jnp.isfinite(GRADIENTS[name](jnp.asarray(singular))).all())


@pytest.mark.parametrize("name", SCORES)
def test_jit_vmap_and_gradient(name):
    score = SCORES[name]
    tables = jnp.stack([random_table(seed, m=4) for seed in range(3)]).astype(jnp.float32)
    one_by_one = jnp.stack([score(table) for table in tables])
    np.testing.assert_allclose(jax.jit(jax.vmap(score))(tables), one_by_one, rtol=1e-5)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        table = jnp.asarray(np.asarray(tables[0], float) / 300)
        direction = jnp.asarray(rng.normal(size=table.shape)) / 300
        numeric = (score(table + 1e-5 * direction) - score(table - 1e-5 * direction)) / 2e-5
        assert float(jnp.vdot(GRADIENTS[name](table), direction)) == pytest.approx(
            float(numeric), rel=1e-5
        )


def test_volume_of_a_rank_deficient_table_is_exactly_zero():
    """Rounding noise would be about 1e-8 in float32 and pass for a volume."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(6), 2).T @ rng.dirichlet(np.ones(2), 4).T  # [6, 4], rank 2
    table = p * rng.dirichlet(np.ones(4))
    assert float(top_k_volume(table, 1)) > 0.01
    assert float(top_k_volume(table, 2)) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_k_volume(np.ones((3, 3)), 3), r"k in 1..2, got 3: the whitened table is cen"),
        (lambda: top_k_volume(np.ones((2, 3)), 2), r"k in 1..1, got 2"),
        (lambda: top_k_volume(np.ones((3, 3)), 0), r"k in 1..2, got 0"),
        (lambda: ky_fan_sum(np.ones((3, 3)), 4), r"k in 1..3, got 4"),
        (lambda: mutual_information(np.ones((3, 3)), "gini"), "kind in kl, chi2, .* got 'gini'"),
        (lambda: mutual_information(np.ones(3)), r"joint table \[m, d\], got shape \[3\]"),
        (lambda: mutual_information(np.zeros((3, 3))), "not all 0"),
        (lambda: maximal_correlation([[1.0, -1.0], [0.0, 1.0]]), "entries >= 0"),
        (lambda: maximal_correlation([[1.0, np.nan], [0.0, 1.0]]), "finite"),
    ],
)
def test_bad_input_is_one_clear_error(call, message, unchecked):
    assert re.search(message, refused(call))
