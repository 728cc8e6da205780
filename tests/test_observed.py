"""Bindings of observations: what each answers, against the dense kernel matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jgram
import jgram.observed
from jgram.observed import Mapped, observe

N, D = 11, 3
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 4, N)
POINTS = RNG.normal(size=(N, 5))
Z = RNG.normal(size=(N, 2))
X_HAT = np.arange(N) % D
WEIGHTS = RNG.uniform(0.5, 2.0, N)
SOFT = RNG.dirichlet(np.ones(D), N)

BINDINGS = {
    "codes": (jgram.Delta(6), CODES, np.equal.outer(CODES, CODES).astype(float)),
    "features": (jgram.linear, POINTS, POINTS @ POINTS.T),
    "mapped": (jgram.linear, Mapped(POINTS, jgram.linear, 5), POINTS @ POINTS.T),
    "pairs": (jgram.RBF(2.0), POINTS, np.exp(-np.square(POINTS[:, None] - POINTS).sum(axis=2) / 4)),
    "function": (
        lambda a, b: jnp.exp(-jnp.sum((a - b) ** 2) / 4),
        POINTS,
        np.exp(-np.square(POINTS[:, None] - POINTS).sum(axis=2) / 4),
    ),
}


@pytest.fixture(params=BINDINGS)
def bound(request, monkeypatch):
    monkeypatch.setattr(jgram.observed, "BATCH", 20)  # four records of five features at a time
    kernel, y, dense = BINDINGS[request.param]
    with jax.enable_x64(True):
        yield observe(kernel, y, block_size=4), dense


def test_products_and_squares(bound):
    found, dense = bound
    assert found.size == N
    np.testing.assert_allclose(found.squares, np.diagonal(dense))
    np.testing.assert_allclose(found.product(Z), dense @ Z, atol=1e-12)
    np.testing.assert_allclose(found.gram(Z), Z.T @ dense @ Z, atol=1e-12)
    some = np.array([7, 0, 2])
    np.testing.assert_allclose(
        found.block(some, slice(0, 5)), dense[some, :5], rtol=1e-12, atol=1e-14
    )
    root = found.coordinates()
    np.testing.assert_allclose(root @ root.T, dense, atol=1e-9)
    for weights in (None, WEIGHTS):
        w = np.ones(N) if weights is None else weights
        product, spread = found.kernel_pass(Z, weights)
        np.testing.assert_allclose(product, dense @ Z, atol=1e-12)
        centring = np.eye(N) - w / w.sum()
        squares = (centring @ dense @ centring.T) ** 2
        expected = (w @ squares @ w - w @ np.diagonal(squares)) / (w.sum() * (w.sum() - 1))
        np.testing.assert_allclose(spread, expected)


@pytest.mark.parametrize("report", ["labels", "weighted", "soft"])
def test_class_means(bound, report):
    found, dense = bound
    x_hat, weights = (SOFT if report == "soft" else X_HAT), None
    if report != "labels":
        weights = WEIGHTS
    z = (np.eye(D)[X_HAT] if report != "soft" else SOFT) * (
        1.0 if weights is None else WEIGHTS[:, None]
    )
    gram = z.T @ dense @ z / z.sum() ** 2
    np.testing.assert_allclose(found.class_gram(x_hat, D, weights), gram, atol=1e-12)
    frame = found.frame(x_hat, D, weights)
    values = np.linalg.eigvalsh(gram)
    for elimination in (frame.elimination, found.eliminate(x_hat, D, weights)):
        assert float(elimination.log_determinant) == pytest.approx(np.log(values).sum())
        assert int(elimination.rank) == D
    top = found.log_top_determinant(x_hat, D, weights, 2)
    assert float(top) == pytest.approx(np.log(values[1:]).sum())
    np.testing.assert_allclose(frame.lengths, np.sqrt(np.diagonal(gram)))
    np.testing.assert_allclose(
        frame.inverse_factor @ frame.inverse_factor.T, np.linalg.inv(gram), rtol=1e-7
    )
    with_means = dense @ z / z.sum()
    np.testing.assert_allclose(
        frame.inside @ frame.inside.T, with_means @ np.linalg.solve(gram, with_means.T), atol=1e-9
    )


def test_records_of_no_weight_change_nothing(bound):
    found, _ = bound
    padded = found.padded(3)
    assert padded.size == N + 3
    gram = padded.class_gram(np.pad(X_HAT, (0, 3)), D, np.pad(np.ones(N), (0, 3)))
    np.testing.assert_allclose(gram, found.class_gram(X_HAT, D), atol=1e-12)


def test_a_class_without_records_has_no_frame(bound):
    found, _ = bound
    frame = found.frame(np.minimum(X_HAT, 1), D)
    assert float(frame.elimination.log_determinant) == -np.inf
    assert not np.any(frame.inverse_factor)
    assert not np.any(frame.inside)
    assert frame.lengths[2] == 0


def test_how_many_classes_can_be_told_apart():
    repeated = np.repeat(POINTS[:4], 3, axis=0)
    assert observe(jgram.Delta(9), np.array([0, 2, 2, 8])).rank_bound == 3
    assert observe(jgram.linear, POINTS).rank_bound == 5
    assert observe(jgram.RBF(1.0), repeated).rank_bound == 4
    few = observe(jgram.linear, POINTS[:, :2])
    frame = few.frame(X_HAT, D)
    assert int(frame.elimination.rank) == 2
    assert not np.any(frame.inverse_factor)


def test_a_kernel_that_is_not_positive_has_no_coordinates():
    with pytest.raises(ValueError, match="positive semi-definite"):
        observe(lambda a, b: -jnp.sum((a - b) ** 2), POINTS).coordinates()


def test_coordinates_have_the_numerical_rank():
    """Whatever the scale of the kernel: three distinct points, three columns."""
    with jax.enable_x64(True):
        for scale in (1e-6, 1e6):
            found = observe(lambda a, b: scale * jnp.exp(-jnp.sum((a - b) ** 2)), POINTS[X_HAT])  # noqa: B023
            assert found.coordinates().shape == (N, D)


def test_single_precision_stays_single_where_doubles_are_on():
    with jax.enable_x64(True):
        frame = observe(jgram.linear, POINTS.astype(np.float32)).frame(X_HAT, D)
        dtypes = {str(leaf.dtype) for leaf in (frame.inside, frame.inverse_factor)}
    assert dtypes == {"float32"}


def test_features_are_kept_while_there_is_room(monkeypatch):
    monkeypatch.setattr(jgram.observed, "KEPT", 5 * N - 1)
    assert isinstance(observe(jgram.linear, POINTS), Mapped)
    monkeypatch.setattr(jgram.observed, "KEPT", 5 * N)
    assert isinstance(observe(jgram.linear, POINTS), jgram.observed.Features)


def test_the_spread_of_mapped_features_is_read_from_some_records(monkeypatch):
    """About its centre: uncentred, the mean of the kernel would drown it."""
    points = RNG.normal(size=(4000, 5)) + 3
    weights = np.repeat([2.0, 0.0], 2000)  # those that count are among the first half
    with jax.enable_x64(True):
        none = np.zeros((4000, 0))
        exact = observe(jgram.linear, points).kernel_pass(none, weights).spread
        monkeypatch.setattr(jgram.observed, "SPREAD_RECORDS", 1000)
        found = Mapped(points, jgram.linear, 5).kernel_pass(none, weights).spread
    assert 0 < abs(float(found / exact) - 1) < 0.1


def test_a_binding_is_bound_once():
    found = observe(jgram.linear, POINTS)
    assert observe(jgram.rbf, found) is found
