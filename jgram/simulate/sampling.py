"""Exact multinomial counts, at a cost that does not depend on how many records.

JAX's own sampler works in the default precision, where a count above ``2^24`` is no integer, with
one rejection loop a binomial. Here every category is one exact binomial in 64-bit arithmetic,
whatever ``jax_enable_x64`` says, by one of two methods that share a batch:

- sequential inversion from zero for means up to 400: one uniform a count, sixteen steps a pass;
- Hörmann's transformed rejection (BTRS, "The generation of binomial random variates", 1993) above.

A TPU emulates float64 by pairs of float32, whose least number is 1e-38: there inversion ends at
means of 30, above which no probability that is needed is less than 1e-18.

Categories are drawn from the least to the most probable one, so that no conditional probability
exceeds one half and the usual big category, records left as they are, costs nothing.
"""

import math

import jax
import jax.numpy as jnp

from jgram.arrays import Array, Float, Int, Key

__all__ = ["multinomial"]

# (1 - p)^n >= 4^-mean must not underflow: the least float64 is exp(-745).
_INVERSION_MEAN, _TPU_INVERSION_MEAN = 400.0, 30.0
_STEPS = 16


def multinomial(
    key: Key[Array, ""], n: Int[Array, "..."], probabilities: Float[Array, "... k"]
) -> Int[Array, "... k"]:
    """Counts of ``n`` records over ``k`` categories, exact integers up to ``2^31``.

    Probabilities are rows over the last axis, normalised here, leading axes broadcast against
    ``n``; int32 counts, which add up to ``n``.

    Example:
        >>> int(multinomial(jax.random.key(0), jnp.array(2**31 - 1), jnp.ones(4) / 4).sum())
        2147483647
    """
    n, probabilities = jnp.asarray(n), jnp.asarray(probabilities)
    *shape, categories = jnp.broadcast_shapes((*n.shape, 1), probabilities.shape)
    # The most probable category changes places with the last one, which gets what is left.
    # (Transposing and arg-maximising after the broadcast costs XLA minutes at some shapes.)
    largest = jnp.broadcast_to(jnp.argmax(probabilities, axis=-1), shape).ravel()
    aligned = probabilities.reshape(
        (1,) * (len(shape) + 1 - probabilities.ndim) + probabilities.shape
    )
    p = jnp.broadcast_to(jnp.moveaxis(aligned, -1, 0), (categories, *shape))
    n, p = jnp.broadcast_to(n, shape).ravel(), p.reshape(categories, -1)
    moved = jnp.arange(categories - 1)[:, None] == largest
    with jax.enable_x64(True):
        counts, left = _draw_all_but_last(key, n, p, moved)
    home = jnp.where(moved, left, counts)
    last = left + jnp.sum(counts - home, axis=0)
    return jnp.concatenate([home, last[None]]).T.reshape(*shape, categories)


@jax.jit
def _draw_all_but_last(key, n, p, moved):
    p = p.astype(jnp.float64)

    def draw(state, step):
        left, mass = state
        key, uniform, p = step
        share = jnp.minimum(p / mass, 0.5)  # for which the draws below are made
        large = left * share > jax.lax.platform_dependent(
            tpu=lambda: jnp.float64(_TPU_INVERSION_MEAN),
            default=lambda: jnp.float64(_INVERSION_MEAN),
        )
        inverted = _invert(uniform, jnp.where(large, 0.0, left), share)
        count = _reject_if_any(key, inverted, left, share, large)
        return (left - count, mass - p), count.astype(jnp.int32)

    keys = jax.random.split(key, len(p))
    steps = (keys[1:], _uniform(keys[0], moved.shape), jnp.where(moved, p[-1], p[:-1]))
    state = (n.astype(jnp.float64), jnp.sum(p, axis=0))
    (left, _), counts = jax.lax.scan(draw, state, steps)
    return counts, left.astype(jnp.int32)


@jax.custom_batching.custom_vmap
def _reject_if_any(key, counts, n, p, wanted):
    """``counts``, drawn anew by rejection where wanted; costs nothing where nothing is."""
    return jax.lax.cond(jnp.any(wanted), _reject, _keep, key, counts, n, p, wanted)


@_reject_if_any.def_vmap
def _reject_if_any_in_batch(size, batched, *arguments):
    """One decision for the whole batch: ``vmap`` alone would turn it into computing both sides."""
    batch = [
        x if has_axis else jnp.broadcast_to(x, (size, *x.shape))
        for x, has_axis in zip(arguments, batched, strict=True)
    ]
    wanted = batch[-1]
    return jax.lax.cond(jnp.any(wanted), jax.vmap(_reject), jax.vmap(_keep), *batch), True


def _keep(key, counts, n, p, wanted):
    return counts


def _uniform(key, shape):
    """53 random bits in [0, 1), from 32-bit words: 64-bit ones do not trace without x64."""
    size = math.prod(shape)
    words = jax.random.bits(key, (2 * size,), jnp.uint32)  # flat: several times as fast
    high, low = (words[:size] >> 5).astype(jnp.float64), (words[size:] >> 6).astype(jnp.float64)
    return ((high * 2.0**26 + low) * 2.0**-53).reshape(shape)


def _invert(uniform, n, p):
    """The least k with P(X <= k) > uniform, by taking P(X = 0), P(X = 1), ... off the uniform.
    ``left`` is what remains and, once that would be negative, ``-1 - k``: XLA likes few arrays."""
    odds = p / (1.0 - p)
    slope = odds * (n + 1.0)

    def climb(state):
        start, left, probability = state
        for step in range(_STEPS):
            k = start + step
            found = jnp.where(left < probability, -1.0 - k, left - probability)
            left = jnp.where(left < 0.0, left, found)
            probability = probability * (slope * (1.0 / (k + 1.0)) - odds)
        return start + _STEPS, left, probability

    def unfinished(state):
        start, left, _ = state
        return jnp.any((left >= 0.0) & (start <= n))

    state = (jnp.zeros((), n.dtype), uniform, jnp.exp(n * jnp.log1p(-p)))
    _, left, _ = jax.lax.while_loop(unfinished, climb, state)
    return jnp.where(left < 0.0, -1.0 - left, n)


def _reject(key, counts, all_n, all_p, wanted):
    """Transformed rejection with squeeze, where wanted. For means of 30 and more."""

    def propose(state):
        attempt, count, open_ = state
        n, p = jnp.where(open_, all_n, 1e4), jnp.where(open_, all_p, 0.5)
        spread = jnp.sqrt(n * p * (1.0 - p))
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * p
        alpha = (2.83 + 5.1 / b) * spread
        odds = p / (1.0 - p)
        mode = jnp.floor((n + 1.0) * p)
        u, v = _uniform(jax.random.fold_in(key, attempt), (2, *n.shape))
        u = u - 0.5
        margin = 0.5 - jnp.abs(u)
        k = jnp.floor((2.0 * a / margin + b) * u + n * p + 0.5)
        squeezed = (margin >= 0.07) & (v <= 0.92 - 4.2 / b)
        inside = (k >= 0.0) & (k <= n)
        k = jnp.clip(k, 0.0, n)
        log_ratio = (
            (mode + 0.5) * jnp.log((mode + 1.0) / (odds * (n - mode + 1.0)))
            + (n + 1.0) * jnp.log((n - mode + 1.0) / (n - k + 1.0))
            + (k + 0.5) * jnp.log(odds * (n - k + 1.0) / (k + 1.0))
            + _stirling_tail(mode)
            + _stirling_tail(n - mode)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        below = jnp.log(v * alpha / (a / (margin * margin) + b)) <= log_ratio
        accepted = open_ & (squeezed | (inside & below))
        return attempt + 1, jnp.where(accepted, k, count), open_ & ~accepted

    state = (jnp.zeros((), jnp.uint32), counts, wanted)
    return jax.lax.while_loop(lambda state: jnp.any(state[2]), propose, state)[1]


def _stirling_tail(k):
    """``log k!`` minus Stirling's formula at ``k + 1``; 1e-9 from k = 10, where it is used."""
    inverse = 1.0 / (k + 1.0)
    square = inverse * inverse
    return (1.0 / 12.0 - (1.0 / 360.0 - square / 1260.0) * square) * inverse
