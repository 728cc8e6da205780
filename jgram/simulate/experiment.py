"""Ground truth to simulate: random experiments, and the records they give."""

import jax
import jax.numpy as jnp

from jgram.arrays import Array, Float, Int, Key
from jgram.simulate.sampling import multinomial

__all__ = ["random_experiment", "truth", "truth_counts"]


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
