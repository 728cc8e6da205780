"""Ground truth to simulate: random experiments, priors, and the records they give."""

import jax
import jax.numpy as jnp

from jgram.arrays import HIGHEST, Array, Float, Int, Key
from jgram.simulate.sampling import multinomial

__all__ = [
    "imbalanced_prior",
    "low_rank_experiment",
    "quantile_buckets",
    "random_experiment",
    "truth",
    "truth_counts",
]


def random_experiment(
    key: Key[Array, ""], num_classes: int, num_outcomes: int | None = None
) -> Float[Array, "m d"]:
    """A random experiment ``P[y, x]``: uniform entries, columns normalised (section 5.1).

    Example:
        >>> random_experiment(jax.random.key(0), 5).shape
        (5, 5)
    """
    weights = jax.random.uniform(key, (num_outcomes or num_classes, num_classes))
    return weights / jnp.sum(weights, axis=0)


def low_rank_experiment(key: Key[Array, ""], num_classes: int, rank: int) -> Float[Array, "d d"]:
    """A random experiment of prescribed rank: the last columns are mixtures of the first ``rank``.

    Both the first columns and the mixing weights are uniform on the simplex.

    Raises:
        ValueError: ``rank`` is not in 1..d.

    Example:
        >>> P = low_rank_experiment(jax.random.key(0), 4, rank=2)
        >>> int(jnp.linalg.matrix_rank(P, rtol=1e-5))
        2

    Reference: "Robustness under conditional linear dependence", appendix.
    """
    if not 1 <= rank <= num_classes:
        raise ValueError(f"expected rank in 1..{num_classes}, got {rank}")
    key_basis, key_mixture = jax.random.split(key)
    basis = jax.random.dirichlet(key_basis, jnp.ones(num_classes), (rank,))
    mixture = jax.random.dirichlet(key_mixture, jnp.ones(rank), (num_classes - rank,))
    mixed = jnp.matmul(mixture, basis, precision=HIGHEST)
    return jnp.concatenate([basis, mixed]).T


def imbalanced_prior(num_classes: int, first: float = 0.7) -> Float[Array, " d"]:
    """The first label with probability ``first``, the others alike.

    Example:
        >>> print(imbalanced_prior(4))
        [0.7 0.1 0.1 0.1]
    """
    rest = jnp.full(num_classes - 1, (1.0 - first) / max(num_classes - 1, 1))
    return jnp.concatenate([jnp.array([first], rest.dtype), rest])


def truth(
    key: Key[Array, ""],
    n: int,
    experiment: Float[Array, "m d"],
    prior: Float[Array, " d"] | None = None,
) -> tuple[Int[Array, " n"], Int[Array, " n"]]:
    """True labels ``x`` and outcomes ``y`` of ``n`` records; the prior is uniform unless given.

    Example:
        >>> x, y = truth(jax.random.key(0), 100, jnp.eye(3))
        >>> bool((x == y).all())
        True
    """
    key_x, key_y = jax.random.split(key)
    prior = jnp.ones(experiment.shape[1]) if prior is None else prior
    x = jax.random.categorical(key_x, jnp.log(prior), shape=(n,))
    return x, jax.random.categorical(key_y, jnp.log(experiment.T)[x], axis=1)


def truth_counts(
    key: Key[Array, ""],
    n: Int[Array, ""] | int,
    experiment: Float[Array, "m d"],
    prior: Float[Array, " d"] | None = None,
) -> Int[Array, "d m"]:
    """Contingency table ``counts[x, y]`` of ``n`` records, drawn without the records.

    Args:
        key: A typed ``jax.random.key``.
        n: Number of records, up to ``2^31``; may be traced.
        experiment: ``P[y, x]``, columns sum to one.
        prior: Probabilities of the true labels; uniform unless given.

    Example:
        >>> int(truth_counts(jax.random.key(0), 10**9, jnp.eye(3)).sum())
        1000000000
    """
    m, d = experiment.shape
    prior = jnp.full(d, 1.0 / d) if prior is None else jnp.asarray(prior)
    joint = (prior[:, None] * experiment.T).ravel()
    return multinomial(key, jnp.asarray(n), joint).reshape(d, m)


def quantile_buckets(y: Float[Array, " n"], num_buckets: int) -> Int[Array, " n"]:
    """Observations as the number of the empirical quantile bucket they fall in.

    Example:
        >>> quantile_buckets(jnp.array([3.0, 1.0, 2.0, 4.0]), 2)
        Array([1, 0, 0, 1], dtype=int32)
    """
    edges = jnp.quantile(y, jnp.arange(1, num_buckets) / num_buckets)
    return jnp.searchsorted(edges, y).astype(jnp.int32)
