"""Ground truth, manipulation policies (row-stochastic matrices), and the samplers that apply them.

A policy is ``policy[x, z] = Pr[Z = z | x]``. Reports keep the truth with probability ``1 - p`` and
follow the policy otherwise: ``mix(policy, p)``. The normal manipulation is of that form too,
through the normal distribution function. ``corrupt`` draws reports record by record,
``corrupt_counts`` draws the contingency tables that millions of records would give, at a cost that
does not depend on their number.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, Float, Int, Key, is_concrete
from jgram.simulate.sampling import multinomial

__all__ = [
    "asymmetric_neighbour", "corrupt", "corrupt_counts", "group_up_down", "merge_classes", "mix",
    "mixed", "normal", "random_experiment", "row_similar", "truth", "truth_counts", "uniform",
]  # fmt: skip


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

    ``n`` may be traced, up to ``2^31``; the prior is uniform unless given.

    Example:
        >>> int(truth_counts(jax.random.key(0), 10**9, jnp.eye(3)).sum())
        1000000000
    """
    m, d = experiment.shape
    prior = jnp.full(d, 1.0 / d) if prior is None else jnp.asarray(prior)
    joint = (prior[:, None] * experiment.T).ravel()
    return multinomial(key, jnp.asarray(n), joint).reshape(d, m)


def mix(policy: Float[Array, "d d"], p: Float[Array, ""] | float) -> Float[Array, "d d"]:
    """Reports that follow a policy with probability ``p``: ``(1 - p) I + p policy`` (section 5.1).

    Example:
        >>> mix(uniform(2), 0.5)[0]
        Array([0.75, 0.25], dtype=float32)
    """
    policy = jnp.asarray(policy)
    return (1.0 - p) * jnp.eye(len(policy), dtype=policy.dtype) + p * policy


def uniform(num_classes: int) -> Float[Array, "d d"]:
    """Any label, the true one included, with equal probability ("Random").

    Example:
        >>> uniform(2)[0]
        Array([0.5, 0.5], dtype=float32)
    """
    return jnp.ones((num_classes, num_classes)) / num_classes


def asymmetric_neighbour(num_classes: int, probability: float = 0.85) -> Float[Array, "d d"]:
    """The next label (the last stays) with the probability, else any other label alike.

    Example:
        >>> asymmetric_neighbour(3)[0]
        Array([0.   , 0.925, 0.075], dtype=float32)
    """
    others = (1.0 - jnp.eye(num_classes)) * (1.0 - probability) / max(num_classes - 1, 1)
    return others + probability * _to(jnp.minimum(jnp.arange(num_classes) + 1, num_classes - 1))


def row_similar(experiment: Float[Array, "m d"]) -> Float[Array, "d d"]:
    """The other label whose observation distribution has the largest cosine with one's own.

    The columns of the experiment ``P[y, x]`` are those distributions (in the published code, which
    names this policy, the rows).

    Example:
        >>> row_similar(jnp.array([[0.9, 0.8, 0.0], [0.1, 0.2, 1.0]])).argmax(axis=1).tolist()
        [1, 0, 1]
    """
    unit = experiment / jnp.linalg.norm(experiment, axis=0)
    cosine = jnp.matmul(unit.T, unit, precision=jax.lax.Precision.HIGHEST)
    d = len(cosine)
    return _to(jnp.argmax(jnp.where(jnp.eye(d, dtype=bool), -jnp.inf, cosine), axis=1))


def merge_classes(num_classes: int, first: int = 0, second: int = 1) -> Float[Array, "d d"]:
    """Two labels become the first of them, the others stay ("Merge 0/1 to 0").

    Example:
        >>> merge_classes(3).argmax(axis=1).tolist()
        [0, 0, 2]
    """
    labels = jnp.arange(num_classes)
    return _to(jnp.where(labels == second, first, labels))


def group_up_down(num_classes: int) -> Float[Array, "d d"]:
    """One label up or one down, each with probability 1/2; the ends stay instead of leaving.

    Example:
        >>> group_up_down(3)[0]
        Array([0.5, 0.5, 0. ], dtype=float32)
    """
    labels = jnp.arange(num_classes)
    up, down = jnp.minimum(labels + 1, num_classes - 1), jnp.maximum(labels - 1, 0)
    return 0.5 * (_to(up) + _to(down))


def mixed(
    key: Key[Array, ""],
    num_classes: int,
    *,
    off: float = 0.2,
    diagonal: float = 6.0,
    local: float = 1.0,
    up: float = 0.4,
    growth: float = 0.5,
    default: float = 0.6,
) -> Float[Array, "d d"]:
    """A policy like a human labeller's: rows drawn from Dirichlet distributions.

    Row ``i`` is Dirichlet with weights ``off + diagonal 1[j=i] + local exp(-ring(i,j)) + up
    exp(growth (j-i)) + default 1[j=0]``, alpha_off, alpha_diag, lambda_loc, lambda_up, gamma and
    lambda_def of the text: mostly right, confused with neighbours on the ring, mildly upcoded,
    biased to a default label. The published code has 1.2, 25, 5, 1, .5 and .2.

    Example:
        >>> bool(jnp.allclose(mixed(jax.random.key(0), 5).sum(axis=1), 1.0))
        True
    """
    i, j = jnp.mgrid[:num_classes, :num_classes]
    ring = jnp.minimum(abs(i - j), num_classes - abs(i - j))
    weights = off + diagonal * (i == j) + local * jnp.exp(-1.0 * ring)
    weights = weights + up * jnp.exp(growth * (j - i)) + default * (j == 0)
    return jax.random.dirichlet(key, weights)


def normal(num_classes: int, sigma: Float[Array, ""] | float) -> Float[Array, "d d"]:
    """Labels blurred by a normal error, ``clip(round(N(x, sigma)))``, as a transition matrix.

    ``Pr[z | x] = F((z - x + 1/2) / sigma) - F((z - x - 1/2) / sigma)``, ``F`` normal, the tails
    added to the end labels (the appendix). It is a transition, not a policy to mix.

    Example:
        >>> [f"{probability:.4f}" for probability in normal(3, 0.5)[0]]
        ['0.8413', '0.1573', '0.0013']
    """
    labels = jnp.arange(num_classes)[:, None]
    edges = (jnp.arange(1, num_classes) - 0.5 - labels) / sigma
    return jnp.diff(jax.scipy.special.ndtr(edges), axis=1, prepend=0.0, append=1.0)


def corrupt(
    key: Key[Array, ""], x: Int[Array, " n"], transition: Float[Array, "d d"]
) -> Int[Array, " n"]:
    """Reports ``[n]`` drawn record by record: ``x_hat ~ transition[x]``, one uniform a record.

    Example:
        >>> corrupt(jax.random.key(0), jnp.array([0, 1, 2]), merge_classes(3))
        Array([0, 0, 2], dtype=int32)
    """
    transition = _checked(transition)
    reached = jnp.cumsum(transition, axis=1)
    thresholds = (reached / reached[:, -1:])[:, :-1]
    draw = jax.random.uniform(key, jnp.shape(x), transition.dtype)
    return jnp.sum(draw[:, None] >= thresholds[jnp.asarray(x)], axis=1, dtype=jnp.int32)


def corrupt_counts(
    key: Key[Array, ""], counts: Int[Array, "d ..."], transition: Float[Array, "d d"]
) -> Int[Array, "d ... d"]:
    """The contingency table of the reports that :func:`corrupt` would draw, without the records.

    Counts of records by true label and anything else, ``[d, ...]``, exact up to ``2^31``, become
    those by report as well, ``[d, ..., d]``, which add up to ``counts``.

    Example:
        >>> corrupt_counts(jax.random.key(0), jnp.array([10, 20]), merge_classes(2)).tolist()
        [[10, 0], [20, 0]]
    """
    transition, counts = _checked(transition), jnp.asarray(counts)
    if counts.ndim == 0 or len(counts) != len(transition):
        raise ValueError(
            f"expected counts [{len(transition)}, ...] for a transition of {len(transition)} "
            f"classes, got shape {list(counts.shape)}"
        )
    if not jnp.issubdtype(counts.dtype, jnp.integer):
        raise ValueError(f"expected integer counts, got {counts.dtype}: round them first")
    if is_concrete(counts) and np.asarray(counts).min(initial=0) < 0:
        raise ValueError(f"expected counts >= 0, got {np.asarray(counts).min()}")
    return multinomial(key, counts, jnp.expand_dims(transition, range(1, counts.ndim)))


def _to(target: Int[Array, " d"]) -> Float[Array, "d d"]:
    """The policy that always reports ``target[x]``."""
    return jax.nn.one_hot(target, len(target))


def _checked(transition: Float[Array, "d d"]) -> Float[Array, "d d"]:
    transition = jnp.asarray(transition)
    if transition.ndim != 2 or transition.shape[0] != transition.shape[1]:
        raise ValueError(f"expected a transition [d, d], got shape {list(transition.shape)}")
    if is_concrete(transition):
        values = np.asarray(transition)
        off = np.abs(values.sum(axis=1) - 1.0).max(initial=0.0)
        if not (values >= 0).all() or not off <= 1e-4:
            raise ValueError(
                "expected a row-stochastic transition (entries >= 0, rows summing to 1), got a "
                f"smallest entry {values.min():.3g} and a row sum off by {off:.3g}"
            )
    return transition
