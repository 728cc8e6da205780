"""What the items are, given the answers: hierarchical Dawid-Skene, and its cavity.

In words. Every item has a hidden state ``s`` with prior shares ``pi``; annotator ``a`` labels an
item of state ``s`` as ``l`` with probability ``C_a[s, l]``, independently given ``s``. Few answers
say little about a whole matrix, so each row of ``C_a`` has a Dirichlet prior centred on the row of
the pooled matrix, worth ``strength`` answers. Expectation and maximisation take turns:

    log q_i[s]   =  log pi[s] + sum over the item's answers r of log C_a(r)[s, l_r] + e_i[s]
                    + constant
    N_a[s, l]    =  sum over own answers of q_item[s] where the label is l
    pool         =  sum of N over annotators, rows brought to sum 1
    C_a[s, l]    =  (N_a[s, l] + strength pool[s, l]) / (N_a[s, .] + strength)

An abstention is one more outcome, of one probability in all states whose label the annotator
names (a tenth as often as others do, or more) and of another in all others: silence tells who only
ever says "spam" from whoever may say anything, and no more. A probability for each state takes what
items have in common beside their class, such as being short, for classes.

The ``strength`` moves, an iteration, to the best of a few places near it in a fixed grid by the
marginal likelihood of the soft counts (a Dirichlet and multinomial for each annotator and state).
It is Dawid and Skene's model but for the priors. Six iterations from vote shares: on public crowds
more of them moved away from the truth (experiments/annotators.py).

**Shared errors.** ``n`` answers whose errors correlate by ``rho`` are worth as many as
``n / (1 + rho (n - 1))`` independent ones, never more than ``1/rho``. So what they say is taken to
the power ``1 / (1 + rho (n - 1))``. The answers alone cannot tell ``rho``: what everybody gets
wrong alike looks like the truth. At ``rho = .5`` (two people at most) probabilities were right on
average, on public crowds as on panels of language models.

**The cavity.** What the *others* say of an item is the posterior with one's own factor taken out
again, one subtraction and no second fit:

    log cavity_r[s] = log q_item[s] - log C_a(r)[s, o_r]  + constant

and it has the power of ``n - 1`` answers.

Own answers still had a part in the fit of the others' matrices. Cross-fitting takes that away as
far as the item itself goes: items are dealt into folds, and each fold's posteriors come from
matrices that were fitted without its answers.

Everything is a gather and a segment sum over the list of answers: time and memory are linear in the
answers, and nothing has the size of items times annotators.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from jgram.arrays import Array, ArrayLike, Float, Int

__all__ = [
    "Model",
    "cavities",
    "cross_fit",
    "fit",
    "majority",
    "posteriors",
    "power",
    "tempered",
]

ITERATIONS = 6

STRENGTHS = tuple(0.5 * 2.0 ** (k / 2) for k in range(28))  # 0.5 to 5793 answers
MOVES = (0, -1, 1, -3, 3)  # the first of equals: stay
FIRST_STRENGTH = 9  # the place of 11.3
RARE = 0.1  # of how often others give a label: less names no class


Rows = tuple[Int[ArrayLike, " n"], Int[ArrayLike, " n"], Int[ArrayLike, " n"]]
"""Of each answer its item, its annotator and its outcome: the label, or after all an abstention."""


class Model(NamedTuple):
    """What was fitted.

    Attributes:
        log_prior: ``[s]``, ``log pi``.
        log_channels: ``[m, d + 1, s]``, log probability of the labels, last of an abstention.
        strength: Strength of the labels' prior, in answers.
    """

    log_prior: Array
    log_channels: Array
    strength: Array


@partial(jax.jit, static_argnames=("items", "states"))
def majority(
    item: Int[ArrayLike, " n"], outcome: Int[ArrayLike, " n"], items: int, states: int
) -> Float[Array, "i s"]:
    """Shares of the item's labels, one answer spread over all states added: the start.

    Outcomes beyond the last state (abstentions) have no vote.
    """
    flat = jnp.where(outcome < states, item * states + outcome, items * states)
    votes = jax.ops.segment_sum(jnp.ones_like(flat, float), flat, items * states)
    votes = votes.reshape(items, states)
    return (votes + 1.0 / states) / (votes.sum(axis=1, keepdims=True) + 1.0)


def power(count: Any, correlation: float) -> Any:
    """What each of ``count`` answers is worth: ``1 / (1 + correlation (count - 1))``."""
    return 1.0 / (1.0 + correlation * np.maximum(count - 1.0, 0.0))


@jax.jit
def tempered(q: ArrayLike, powers: ArrayLike, evidence: Any = 0.0) -> Array:
    """Probabilities to a power each, and what else is known, brought to sum 1."""
    q, powers = jnp.asarray(q), jnp.asarray(powers)
    log_q = jnp.log(jnp.maximum(q, jnp.finfo(q.dtype).tiny))
    return jax.nn.softmax(powers[:, None].astype(q.dtype) * log_q + evidence, axis=1)


def posteriors(model: Model, rows: Rows, items: int, evidence: Any = 0.0) -> Float[Array, "i s"]:
    """The expectation step: ``q``."""
    item, annotator, outcome = rows
    table = model.log_channels.reshape(-1, model.log_prior.shape[0])
    own = table[annotator * model.log_channels.shape[1] + outcome]
    total = jax.ops.segment_sum(own, item, items)
    return jax.nn.softmax(model.log_prior + total + evidence, axis=1)


@jax.jit
def cavities(model: Model, q: Array, rows: Rows) -> Float[Array, "n s"]:
    """For each answer the posterior of its item without it."""
    item, annotator, outcome = rows
    own = model.log_channels[annotator, outcome]
    log_q = jnp.log(jnp.maximum(q, jnp.finfo(q.dtype).tiny))
    return jax.nn.softmax(log_q[item] - own, axis=1)


def _log_marginal(counts: Array, centre: Array, strength: Array) -> Array:
    """Dirichlet and multinomial of soft counts ``[m, o, s]``; outcomes of centre 0 do not occur."""
    prior = jnp.maximum(strength * centre, 1e-6)
    inner = (gammaln(counts + prior) - gammaln(prior)).sum()
    return inner - (gammaln(counts.sum(axis=1) + strength) - gammaln(strength)).sum()


def _shrink(counts: Array, centre: Array, place: Array) -> tuple[Array, Array, Array]:
    """Posterior mean channels of counts ``[m, o, s]``; the strength, nearby places compared."""
    grid = jnp.asarray(STRENGTHS, counts.dtype)
    near = jnp.clip(place + jnp.array(MOVES), 0, len(STRENGTHS) - 1)
    place = near[jnp.argmax(jax.lax.map(lambda k: _log_marginal(counts, centre, grid[k]), near))]
    strength = grid[place]
    total = counts.sum(axis=1, keepdims=True)
    return (counts + strength * centre) / (total + strength), strength, place


def _maximise(
    q: Array, place: Array, named: Array, classes: int, item: Array, cell: Array, counted: Array
) -> tuple[Model, Array]:
    """The maximisation step, and the next place in the grid of strengths."""
    m = len(named)
    seen = q * counted[:, None]
    counts = jax.ops.segment_sum(seen[item], cell, m * (classes + 1)).reshape(m, classes + 1, -1)
    pool = counts[:, :classes].sum(axis=0) + 1e-3
    pool = pool / pool.sum(axis=0)
    labels, strength, place = _shrink(counts[:, :classes], pool, place)
    given, silent = counts[:, :classes].sum(axis=1), counts[:, classes]

    def share(states: Array) -> Array:
        often = (states * given).sum(axis=1, keepdims=True)
        return often / jnp.maximum(often + (states * silent).sum(axis=1, keepdims=True), 1e-6)

    speaks = jnp.where(named, share(named), share(1.0 - named))[:, None]
    channels = jnp.concatenate([labels * speaks, 1.0 - speaks], axis=1)
    prior = (seen.sum(axis=0) + 1.0) / (seen.sum() + q.shape[1])
    return Model(jnp.log(prior), jnp.log(jnp.maximum(channels, 1e-10)), strength), place


def _named(cell: Array, m: int, classes: int) -> Array:
    """``[m, d]``: 1 where an annotator gives a label a tenth as often as all do, or more."""
    often = jnp.bincount(cell, length=m * (classes + 1)).reshape(m, classes + 1)[:, :classes]
    share = often.sum(axis=0) / jnp.maximum(often.sum(), 1)
    return 1.0 * (often > RARE * share * often.sum(axis=1, keepdims=True))


@partial(jax.jit, static_argnames=("m", "classes", "iterations"))
def fit(
    start: Float[ArrayLike, "i s"],
    rows: Rows,
    counted: Float[ArrayLike, " i"],
    *,
    m: int,
    classes: int,
    evidence: Any = 0.0,
    iterations: int = ITERATIONS,
) -> tuple[Model, Float[Array, "i s"]]:
    """The model and the posteriors of all items; formulas at the top.

    Args:
        start: First guess of the posteriors, such as :func:`majority`.
        rows: Item, annotator and outcome of each answer: the label, ``classes`` for an abstention.
        counted: 1 where an item has a part in fitting the model, 0 where not.
        m: Number of annotators.
        classes: Number of labels; of several states for each, state ``s`` is of class ``s % d``.
        evidence: Log likelihood of each item's states by what is not an answer.
        iterations: Rounds of expectation and maximisation.

    Returns:
        A :class:`Model` and ``q``.

    Example:
        >>> item, annotator, label = jnp.array([[0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0, 0, 1, 1, 1]])
        >>> start, ones = majority(item, label, 2, 2), jnp.ones(2)
        >>> model, q = fit(start, (item, annotator, label), ones, m=3, classes=2)
        >>> q.argmax(axis=1).tolist()
        [0, 1]

    Reference: Dawid and Skene, *Maximum likelihood estimation of observer error-rates using the EM
    algorithm*, 1979; the hierarchy follows Paun et al., *Comparing Bayesian models of annotation*,
    2018.
    """
    item, annotator, outcome, counted, start = map(jnp.asarray, (*rows, counted, start))
    cell = annotator * (classes + 1) + outcome
    items, states = start.shape
    named = jnp.tile(_named(cell, m, classes), states // classes)

    def step(_: Any, state: tuple[Array, Array, Model]) -> tuple[Array, Array, Model]:
        q, place, _ = state
        model, place = _maximise(q, place, named, classes, item, cell, counted)
        return posteriors(model, (item, annotator, outcome), items, evidence), place, model

    blank = Model(jnp.zeros(states), jnp.zeros((m, classes + 1, states)), jnp.zeros(()))
    first = (start, jnp.asarray(FIRST_STRENGTH), blank)
    q, _, model = jax.lax.fori_loop(0, iterations, step, first)
    return model, q


def cross_fit(
    start: Float[ArrayLike, "i s"],
    rows: Rows,
    evidence: Any = None,
    *,
    m: int,
    classes: int,
    folds: int = 1,
) -> tuple[Model, Float[Array, "i s"], Float[Array, "n s"]]:
    """Posteriors and cavities, each item's from a model that was fitted without its fold.

    Args are those of :func:`fit`, and ``folds``: 1 fits once, with all items. Evidence has a part
    in the fit alone.

    Returns:
        The last fold's :class:`Model`, ``q`` by the answers and the cavity of each answer.
    """
    held: Any = tuple(map(jnp.asarray, rows))
    model: Any = None
    q: Any = None
    cavity: Any = None
    items, known = len(start), 0.0 if evidence is None else evidence
    fold = jnp.arange(items) % folds
    for number in range(folds):
        counted = jnp.where((fold != number) | (folds == 1), 1.0, 0.0)
        model, found = fit(start, held, counted, m=m, classes=classes, evidence=known)
        if evidence is not None:
            found = posteriors(model, held, items)
        without = cavities(model, found, held)
        if number:
            here = (fold == number)[:, None]
            found, without = jnp.where(here, found, q), jnp.where(here[held[0]], without, cavity)
        q, cavity = found, without
    return model, q, cavity
