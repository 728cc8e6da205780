"""How a strategic source would cheat, and what it would gain.

Four attacks, ordered by what the source controls and how large the data are:

- :func:`ascend_reports`: gradient ascent on soft reports, for any differentiable score and any
  number of records;
- :func:`flip_greedily`: the best single relabelling, again and again, every one of the ``n d``
  valued exactly;
- :func:`perturb_observations`: observations moved within a ball (sensors, encoders);
- :func:`ascend_policy`: the misreport policy of a source that knows its labels alone.

Labels alone buy nothing: a policy multiplies the volume by ``|det T| <= 1``, with equality at the
permutations. Whoever sees the observations before reporting is outside the theory, because reports
then depend on them given the truth, and gains at every sample size. All four return what is known
to be allowed and at least as good as honesty. The observations a source believes in need not be the
real ones: attack with its guess, then score the reports it found on the real observations. The
number of classes is that of the honest reports.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jgram.arrays import Array, Float, Int, Key, Shaped, infer_num_classes, report_matrix
from jgram.determinant import log_determinant_of_sums
from jgram.findings import structural_zero
from jgram.gram_matrix import gram
from jgram.influences import linearise_frame, relabelling_gains
from jgram.kernels import Kernel, rbf, resolve
from jgram.observed import frame_of_product, observe
from jgram.scores import plugin_log_score

__all__ = [
    "ObservationAttack", "PolicyAttack", "ReportAttack", "ascend_policy", "ascend_reports",
    "flip_greedily", "perturb_observations",
]  # fmt: skip

Score = Callable[..., Any]
DOUBT = 0.1  # share of uniform reports in a start
TEMPERATURES = (1.0, 0.1)  # first and last, on a geometric scale
STARTS = 4  # of an ascent, unless there is a key for each


class ReportAttack(NamedTuple):
    """False reports and what they gain.

    Attributes:
        reports: Labels ``[n]`` within the budget; the honest ones where nothing better was found.
        log_score: Their log score.
        gain: Log score over that of the honest reports, at least 0.
        changed: Share of records that are not reported honestly.
        path: Log scores on the way: ``[starts, steps]`` of the soft reports in
            :func:`ascend_reports`, ``[flips]`` of the labels in :func:`flip_greedily`.
    """

    reports: Int[Array, " n"]
    log_score: Float[Array, ""]
    gain: Float[Array, ""]
    changed: Float[Array, ""]
    path: Float[Array, "..."]


class ObservationAttack(NamedTuple):
    """Shifted observations and what they gain.

    Attributes:
        observations: ``[n, ...]``, the best found within the ball.
        log_score: Their log score.
        gain: Log score over that of the given observations, at least 0.
        path: Log scores on the way, ``[steps]``.
    """

    observations: Float[Array, "n ..."]
    log_score: Float[Array, ""]
    gain: Float[Array, ""]
    path: Float[Array, " steps"]


class PolicyAttack(NamedTuple):
    """The best misreport policies found, one for each of ``r`` starts.

    Attributes:
        policies: Row-stochastic ``[r, d, d]``, the probability of each report by true label.
        gains: ``[r]``, log score over that of the truth.
        permutations: ``[r, d]``, the most probable report of each true label.
        distances: ``[r]``, the largest distance of an entry of the policy to that permutation's.
    """

    policies: Float[Array, "r d d"]
    gains: Float[Array, " r"]
    permutations: Int[Array, "r d"]
    distances: Float[Array, " r"]


def ascend_reports(
    key: Key[Array, "..."],
    x: Shaped[Array, " n"],
    y: Shaped[Array, "n ..."],
    kernel: Kernel | str = rbf,
    *,
    score: Score = plugin_log_score,
    budget: float = 1.0,
    optimizer: Any = None,
    steps: int = 100,
) -> ReportAttack:
    """Gradient ascent on soft reports, annealed and rounded: the best of its starts and of honesty.

    Reports are ``softmax(logits / temperature)``, drawn back to the honest ones as far as the
    budget asks: every point on the way is allowed. The temperature falls from 1 to .1: soft reports
    become labels. The gradient *in the reports*, times ``n / 2`` (``h - d`` for the plug-in score,
    :mod:`jgram.influences`), goes to the optimiser of the logits: that in the logits vanishes at
    the honest reports, the vertices of the simplex. Finally the lies with the largest logits are
    told, as many as the budget allows. Where the score of honest reports, or its gradient, is not
    finite, the class that is never reported or the two that no observation tells apart are named.

    Args:
        key: A typed ``jax.random.key``, or one for every start, in one batch: the first starts at
            the honest reports, the others around them.
        y: Observations, as the source knows or guesses them.
        score: Any ``score(x_hat, y, kernel, num_classes=d) -> log score`` that is differentiable in
            soft reports ``[n, d]``.
        budget: Largest share of changed records, in [0, 1].
        optimizer: Any optax optimiser of the logits; ``optax.sgd(0.3)`` by default.
        steps: Gradient steps, static.

    Example:
        >>> x, y = jnp.array([0, 0, 0, 1, 1, 1]), jnp.array([0, 0, 1, 1, 1, 0])
        >>> attack = ascend_reports(jax.random.key(0), x, y, "delta", budget=0.34)
        >>> attack.reports.tolist(), round(float(attack.changed), 2)
        ([0, 0, 1, 1, 1, 0], 0.33)
    """
    x, home = _honest(x, budget)
    kernel, y = resolve(kernel, y), jnp.asarray(y)
    base = _start(score, home, y, kernel, home.shape[1])
    _check_gradient(score, home, y, kernel, 0)
    keys = jax.random.split(key, STARTS) if key.ndim == 0 else key
    optimizer = optimizer or _default_optimizer()
    labels, values, path = _ascend(
        keys, y, kernel, home, budget, score=score, optimizer=optimizer, steps=steps
    )
    labels = jnp.concatenate([x[None], labels])
    values = jnp.concatenate([base[None], jnp.where(jnp.isnan(values), -jnp.inf, values)])
    best = jnp.argmax(values)
    changed = jnp.mean(labels[best] != x)
    return ReportAttack(labels[best], values[best], values[best] - base, changed, path)


def flip_greedily(
    x: Shaped[Array, " n"],
    y: Shaped[Array, "n ..."],
    kernel: Kernel | str = rbf,
    *,
    budget: float = 1.0,
    flips: int | None = None,
) -> ReportAttack:
    """The best single relabelling, again and again, until none pays or none is allowed.

    Every step values all ``n d`` relabellings exactly (:func:`jgram.influences.relabelling_gains`)
    and applies the best. One column of the kernel matrix updates ``K Z``: a step takes
    ``O(n (d^2 + m))``, and ``n`` kernel evaluations where the kernel has no features.

    Args:
        flips: Largest number of steps; ``n`` by default. Others as in :func:`ascend_reports`.

    Example:
        >>> x, y = jnp.array([0, 0, 0, 1, 1, 1]), jnp.array([0, 0, 1, 1, 1, 0])
        >>> flip_greedily(x, y, "delta").reports.tolist()
        [0, 0, 1, 1, 1, 0]
    """
    x, home = _honest(x, budget)
    kernel, y, d = resolve(kernel, y), jnp.asarray(y), home.shape[1]
    base = _start(plugin_log_score, x, y, kernel, d)
    limit = len(x) if flips is None else flips
    labels, path, count = _flip(observe(kernel, y), home, budget, limit=limit)
    value = plugin_log_score(labels, y, kernel, num_classes=d) if count else base
    return ReportAttack(labels, value, value - base, jnp.mean(labels != x), path[:count])


def perturb_observations(
    x_hat: Shaped[Array, "n ..."],
    y: Float[Array, "n ..."],
    kernel: Kernel | str = rbf,
    *,
    radius: float,
    norm: Literal["l2", "linf"] = "linf",
    score: Score = plugin_log_score,
    steps: int = 50,
) -> ObservationAttack:
    """Projected gradient ascent on the observations, each within a ball around its own.

    A step moves every record by ``2.5 radius / steps`` along its normalised gradient (``l2``) or
    the signs of it (``linf``); the best point on the way is returned. The bandwidth stays that of
    the given observations, floating-point ones. To lower a score, attack its negative.

    Args:
        kernel, score: As in :func:`ascend_reports`, differentiable in ``y``.
        radius: How far one record may be shifted, in the units of ``y``; at least 0.
        norm: ``"l2"``, the Euclidean length of one record's shift, or ``"linf"``, its largest
            coordinate.

    Example:
        >>> y = jnp.array([[1.0, 0.0], [0.0, 1.0]])
        >>> attack = perturb_observations(jnp.array([0, 1]), y, "linear", radius=0.1)
        >>> np.asarray(attack.observations, float).round(2).tolist(), round(float(attack.gain), 2)
        ([[1.1, 0.0], [0.0, 1.1]], 0.38)
    """
    if norm not in ("l2", "linf"):
        raise ValueError(f"expected norm 'l2' or 'linf', got {norm!r}")
    if not radius >= 0:
        raise ValueError(f"expected a radius of at least 0, got {radius}")
    if not jnp.issubdtype(jnp.result_type(y), jnp.floating):
        raise ValueError(
            f"expected floating-point observations to perturb, got {jnp.result_type(y)}: "
            "categories have no gradient"
        )
    d = infer_num_classes(x_hat, None)
    kernel, y = resolve(kernel, y), jnp.asarray(y)
    z = report_matrix(x_hat, d, dtype=y.dtype)
    base = _start(score, z, y, kernel, d)
    _check_gradient(score, z, y, kernel, 1)
    point, value, path = _perturb(kernel, z, y, radius, score=score, norm=norm, steps=steps)
    return ObservationAttack(point, value, value - base, path)


def ascend_policy(
    key: Key[Array, ""], prior: Float[Array, " d"], *, steps: int = 300, restarts: int = 16
) -> PolicyAttack:
    """The best misreport policy of a source that knows its labels and nothing of the observations.

    Records labelled ``i`` are reported ``j`` with probability ``T[i, j]``: the misreport matrix is
    ``Q = diag(prior) T``. The Gram determinant score gains ``2 log|det T| <= 0`` over the truth
    whatever the independent experiment (Theorem 4.2(1), Lemma D.1), so ``Q`` itself is scored.
    Gradients are shortened to norm 1: they are unbounded where two rows are alike.

    Args:
        key: A typed ``jax.random.key``: ``restarts`` policies start at uniformly random rows.
        prior: Frequencies of the true labels ``[d]``, above 0 and summing to 1.

    Example:
        >>> attack = ascend_policy(jax.random.key(0), jnp.array([0.2, 0.3, 0.5]))
        >>> bool(attack.gains.max() < 1e-5), sorted(attack.permutations[0].tolist())
        (True, [0, 1, 2])
    """
    prior = jnp.asarray(prior)
    if prior.ndim != 1 or not (prior > 0).all() or abs(float(prior.sum()) - 1) > 1e-3:
        raise ValueError(
            "expected the frequencies of the true labels [d], above 0 and summing to 1, got "
            f"{np.asarray(prior)}"
        )
    d = len(prior)
    starts = jax.random.dirichlet(key, jnp.ones(d, prior.dtype), (restarts, d))
    optimizer = _default_optimizer(longest=1.0)
    policies, values = _ascend_policies(prior, starts, optimizer=optimizer, steps=steps)
    permutations = jnp.argmax(policies, axis=2)
    nearest = jax.nn.one_hot(permutations, d, dtype=policies.dtype)
    distances = jnp.max(jnp.abs(policies - nearest), axis=(1, 2))
    gains = values - log_determinant_of_sums(jnp.diag(prior))
    return PolicyAttack(policies, gains, permutations, distances)


@cache
def _default_optimizer(longest: float | None = None) -> Any:
    """Gradient steps, from gradients shortened to norm ``longest``."""
    import optax  # the only place: any other optimiser is the caller's

    steps = optax.sgd(0.3)
    return steps if longest is None else optax.chain(optax.clip_by_global_norm(longest), steps)


def _honest(x: Any, budget: float) -> tuple[Array, Array]:
    """Honest labels, and as a matrix ``[n, d]``: what is 0 in it is a lie."""
    if not 0 <= budget <= 1:
        raise ValueError(f"expected a budget in [0, 1], a share, got {budget}")
    if jnp.ndim(x) != 1:
        raise ValueError(f"expected honest labels of shape [n], got {list(jnp.shape(x))}")
    d, x = infer_num_classes(x, None), jnp.asarray(x, jnp.int32)
    return x, report_matrix(x, d)


def _start(score: Score, x_hat: Array, y: Array, kernel: Any, d: int) -> Array:
    """The score where an attack starts; refused where there is none."""
    value = score(x_hat, y, kernel, num_classes=d)
    if not jnp.isfinite(value):
        reason = _explain(x_hat, y, kernel, d)
        raise ValueError(f"expected a finite log score to start from, got {value}: {reason}")
    return value


def _explain(x_hat: Array, y: Array, kernel: Any, d: int) -> str:
    """Which class vanished, or which two are hardest to tell apart."""
    found = structural_zero(x_hat, observe(kernel, y), range(d))
    if found is not None:
        return f"{found.message}; {found.advice}"
    matrix = np.asarray(gram(x_hat, y, kernel, num_classes=d), float)
    scale = np.sqrt(np.diagonal(matrix))
    values, vectors = np.linalg.eigh(matrix / scale[:, None] / scale)
    if values[0] > 1e-4:
        return "the Gram matrix of these reports has full rank, it is the score that has none"
    first, second = np.sort(np.argsort(-np.abs(vectors[:, 0]))[:2])
    return f"no observation tells classes {first} and {second} apart; merge them"


@partial(jax.jit, static_argnames=("score", "argument"))
def _slope(z, y, kernel, *, score, argument):
    d = z.shape[1]
    return jax.grad(lambda *inputs: score(*inputs, kernel, num_classes=d), argument)(z, y)


def _check_gradient(score: Score, z: Array, y: Array, kernel: Any, argument: int) -> None:
    slope = np.asarray(_slope(z, y, kernel, score=score, argument=argument))
    finite = np.isfinite(slope).reshape(len(slope), -1).all(axis=1)
    if not finite.all():
        n = int(np.argmin(finite))
        raise ValueError(
            f"expected a score with a finite gradient, got {slope[n]} at record {n}, of class "
            f"{int(z[n].argmax())}"
        )


def _climb(
    value: Any, logits: Array, home: Array, budget: Any, optimizer: Any, temperatures: Array
) -> tuple[Array, Array]:
    """Logits after the ascent of ``value``, and the values on the way."""
    scale = 0.5 * len(logits)

    def step(state: tuple[Array, Any], temperature: Array) -> tuple[Any, Array]:
        logits, memory = state
        z = jax.nn.softmax(logits / temperature)
        spent = jnp.mean(jnp.sum(z * (1.0 - home), axis=1))
        z = home + jnp.where(spent > budget, budget / spent, 1.0) * (z - home)
        reached, slope = jax.value_and_grad(value)(z)
        update, memory = optimizer.update(-scale * slope, memory, logits)
        return (logits + update, memory), reached

    (logits, _), path = jax.lax.scan(step, (logits, optimizer.init(logits)), temperatures)
    return logits, path


def _doubtful(z: Array) -> Array:
    """Logits of soft reports, a little off the vertices, where softmax is flat."""
    return jnp.log((1.0 - DOUBT) * z + DOUBT / z.shape[-1])


@partial(jax.jit, static_argnames=("score", "optimizer", "steps"))
def _ascend(keys, y, kernel, home, budget, *, score, optimizer, steps):
    temperatures = jnp.geomspace(*TEMPERATURES, steps, dtype=home.dtype)

    def value(z: Array) -> Array:
        return score(z, y, kernel, num_classes=home.shape[1])

    def one(key: Array, spread: Array) -> tuple[Array, Array, Array]:
        logits = _doubtful(home) + spread * jax.random.normal(key, home.shape, home.dtype)
        logits, path = _climb(value, logits, home, budget, optimizer, temperatures)
        labels = _round(logits, home, budget)
        return labels, value(report_matrix(labels, home.shape[1], None, home.dtype)), path

    return jax.vmap(one)(keys, jnp.minimum(jnp.arange(len(keys)), 1))


def _round(logits: Array, home: Array, budget: Any) -> Array:
    """The lies worth most, as many as the budget allows."""
    n, x = len(home), _labels(home)
    worth = logits - jnp.take_along_axis(logits, x[:, None], axis=1)
    worth = jnp.where(home > 0, -jnp.inf, worth)
    lie, worth = jnp.argmax(worth, axis=1), jnp.max(worth, axis=1)
    place = jnp.zeros(n, int).at[jnp.argsort(-worth)].set(jnp.arange(n))
    return jnp.where((worth > 0) & (place + 1 <= _allowance(budget, n)), lie, x)


def _labels(home: Array) -> Array:
    return jnp.argmax(home, axis=1).astype(jnp.int32)


def _allowance(budget: Any, n: int) -> Any:
    return budget * n * (1.0 + 1e-6) + 1e-6  # one third of three records is one record


@partial(jax.jit, static_argnames="limit")
def _flip(observed, home, budget, *, limit):
    """The best flip until none pays: labels, the scores on the way, and how many flips."""
    n, d = home.shape
    cost, squares = 1.0 - home, observed.squares

    def offer(labels: Array, product: Array) -> tuple[Array, ...]:
        """The score now; the record, the target and the gain of the best flip."""
        mean = product / n
        gram = jax.ops.segment_sum(mean, labels, num_segments=d) / n
        frame = frame_of_product(0.5 * (gram + gram.T), mean)
        found = linearise_frame(frame, squares, jnp.asarray(n, mean.dtype))
        gains = relabelling_gains(found, labels)
        spent = jnp.take_along_axis(cost, labels[:, None], axis=1)
        allowed = cost <= _allowance(budget, n) - jnp.sum(spent) + spent
        gains = jnp.where(allowed & ~jnp.isnan(gains), gains, -jnp.inf).ravel()
        best = jnp.argmax(gains)
        score = found.elimination.log_determinant
        return score, best // d, (best % d).astype(labels.dtype), gains[best]

    def pays(carry: Any) -> Array:
        _, _, (_, _, _, gain), _, count = carry
        return (gain > 16 * jnp.finfo(gain.dtype).eps) & (count < limit)

    def flip(carry: Any) -> Any:
        labels, product, (_, record, target, _), path, count = carry
        column = observed.block(slice(None), record[None])
        change = jax.nn.one_hot(target, d) - jax.nn.one_hot(labels[record], d)
        product = product + column * change.astype(product.dtype)
        labels = labels.at[record].set(target)
        new = offer(labels, product)
        return labels, product, new, path.at[count].set(new[0]), count + 1

    x, product = _labels(home), observed.product(home.astype(observed.dtype))
    first = offer(x, product)
    path = jnp.zeros(max(limit, 1), first[0].dtype)
    labels, _, _, path, count = jax.lax.while_loop(pays, flip, (x, product, first, path, 0))
    return labels, path, count


@partial(jax.jit, static_argnames=("score", "norm", "steps"))
def _perturb(kernel, z, y, radius, *, score, norm, steps):
    n, d = z.shape

    def lengths(shift: Array) -> Array:
        squares = jnp.sum(shift.reshape(n, -1) ** 2, axis=1)
        lengths = jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
        return lengths.reshape((n,) + (1,) * (y.ndim - 1))

    def step(state: tuple[Array, Array, Array], _: None) -> tuple[Any, Array]:
        shift, best, most = state
        value, slope = jax.value_and_grad(lambda s: score(z, y + s, kernel, num_classes=d))(shift)
        better = value > most
        best, most = jnp.where(better, shift, best), jnp.where(better, value, most)
        direction = jnp.sign(slope) if norm == "linf" else slope / lengths(slope)
        shift = shift + (2.5 * radius / steps) * direction
        if norm == "linf":
            return (jnp.clip(shift, -radius, radius), best, most), value
        return (shift * jnp.minimum(1.0, radius / lengths(shift)), best, most), value

    none = jnp.zeros_like(y)
    state = (none, none, jnp.array(-jnp.inf, y.dtype))
    (_, best, value), path = jax.lax.scan(step, state, length=steps + 1)
    return y + best, value, path


@partial(jax.jit, static_argnames=("optimizer", "steps"))
def _ascend_policies(prior, starts, *, optimizer, steps):
    def value(policy: Array) -> Array:
        return log_determinant_of_sums(prior[:, None] * policy)

    def one(start: Array) -> tuple[Array, Array]:
        hot = jnp.ones(steps, start.dtype)
        policy = jax.nn.softmax(_climb(value, _doubtful(start), start, 1.0, optimizer, hot)[0])
        return policy, value(policy)

    return jax.vmap(one)(starts)
