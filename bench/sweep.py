"""Sweeps of corrupted reports: contingency tables on one device against NumPy and against records.

``python -m bench.sweep``: Experiment 1's sweep (6 policies, 11 levels, 100 trials, N = 4000,
d = 5), the agnostic study (1000 trials of 1e8 records) and the sample-size study (6 levels, 1000
data sets of each size), then how the cost grows with records, classes and trials. All that is
compared does the same work: score, Hamming and l2 error of every report.

Routes tried for Experiment 1's draws, slowest first: the categorical distribution record by record
(d Gumbel numbers each), JAX's own multinomial (one rejection loop a binomial, in 32 bits), one
uniform a record and a scatter, and the library's (one binomial a category by sequential inversion,
most probable category last).
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.timing import RESULTS, Row, report, time_in_turns
from experiments import agnostic, policies, sample_size
from jgram import simulate
from jgram.simulate.policies import mix, uniform

KEY = jax.random.key(0)
EXPERIMENT, COUNTS, MIXED = policies.published_data_set()
TRANSITIONS = policies.transitions(EXPERIMENT, MIXED)
SCORES = {"score": simulate.table_log_score}
TRIALS = 100
GROWTH = {
    "records": [250, 1000, 4000, 16_000, 64_000, 10**6, 10**8],
    "classes": [3, 5, 10, 20],
    "trials": [10, 30, 100, 300, 1000],
}
DISTANCES = (np.arange(5)[:, None] - np.arange(5)) ** 2


def sweep(trials: int = TRIALS) -> Any:
    """The library: tables, count by count."""
    return simulate.sweep(KEY, COUNTS, TRANSITIONS, SCORES, trials=trials)


def numpy_records() -> Any:
    """One report at a time, record by record, as the published notebooks do."""
    rng, counts = np.random.default_rng(0), np.asarray(COUNTS)
    x, y = (np.repeat(axis.ravel(), counts.ravel()) for axis in np.indices(counts.shape))
    cumulative = np.cumsum(np.asarray(TRANSITIONS, float), axis=-1)[..., :-1]
    found = np.empty((3, *TRANSITIONS.shape[:2], TRIALS))
    for i, j in np.ndindex(*TRANSITIONS.shape[:2]):
        for trial in range(TRIALS):
            x_hat = np.sum(rng.random(len(x))[:, None] > cumulative[i, j][x], axis=1)
            table = np.zeros((5, 5))
            np.add.at(table, (x_hat, y), 1)
            determinant = np.linalg.det(table / len(x)) ** 2
            found[:, i, j, trial] = determinant, np.sum(x_hat != x), np.linalg.norm(x_hat - x)
    return found


def numpy_tables() -> Any:
    """All multinomials in one NumPy call, the honest rival."""
    rng, counts = np.random.default_rng(0), np.asarray(COUNTS)
    transitions = np.asarray(TRANSITIONS, float)
    transitions /= transitions.sum(axis=-1, keepdims=True)
    shape = (TRIALS, *TRANSITIONS.shape[:2], *counts.shape)
    sample = rng.multinomial(counts, transitions[..., :, None, :], size=shape)
    score = 2.0 * np.linalg.slogdet(sample.sum(axis=-3) / counts.sum())[1]
    misreports = sample.sum(axis=-2)
    hamming = np.sum(misreports * (DISTANCES > 0), axis=(-1, -2))
    return score, hamming, np.sqrt(np.sum(misreports * DISTANCES, axis=(-1, -2)))


@partial(jax.jit, static_argnames="draw")
def _scored(key: Any, counts: Any, transitions: Any, draw: Any) -> Any:
    """Scores of tables ``[trials, policies, levels, x, y, x_hat]`` that ``draw`` makes."""
    sample = draw(key, counts, transitions)
    table, misreports = jnp.sum(sample, axis=-3), jnp.sum(sample, axis=-2)
    flat = table.reshape(-1, *table.shape[-2:])
    return (
        jax.vmap(simulate.table_log_score)(flat),
        jnp.sum(misreports * (DISTANCES > 0), axis=(-1, -2)),
        jnp.sqrt(jnp.sum(misreports * DISTANCES, axis=(-1, -2))),
    )


def jax_multinomials(key: Any, counts: Any, transitions: Any) -> Any:
    """JAX's own multinomial sampler."""
    shape = (TRIALS, *transitions.shape[:2], *counts.shape, counts.shape[0])
    return jax.random.multinomial(
        key, counts[..., None].astype(float)[..., 0], transitions[..., :, None, :], shape=shape
    ).astype(jnp.int32)


def _tables_of_records(key: Any, counts: Any, transitions: Any, corrupt: Any) -> Any:
    x, y = (
        jnp.repeat(axis.ravel(), counts.ravel(), total_repeat_length=policies.RECORDS)
        for axis in jnp.indices(counts.shape)
    )

    def one(key: Any, transition: Any) -> Any:
        return jnp.zeros((5, 5, 5), jnp.int32).at[x, y, corrupt(key, x, transition)].add(1)

    keys = jax.random.split(key, (TRIALS, *transitions.shape[:2]))
    return jax.vmap(jax.vmap(jax.vmap(one)), (0, None))(keys, transitions)


def jax_uniform_records(key: Any, counts: Any, transitions: Any) -> Any:
    """One uniform a record, scattered into tables."""
    from jgram.simulate.policies import corrupt

    return _tables_of_records(key, counts, transitions, corrupt)


def jax_categorical_records(key: Any, counts: Any, transitions: Any) -> Any:
    """``jax.random.categorical`` a record, scattered into tables."""
    return _tables_of_records(
        key, counts, transitions, lambda k, x, t: jax.random.categorical(k, jnp.log(t)[x])
    )


def numpy_agnostic() -> Any:
    """The agnostic study as a loop over trials of NumPy's count-level multinomials."""
    rng, kept = np.random.default_rng(0), []
    for _ in range(agnostic.TRIALS):
        prior, d = rng.dirichlet(np.ones(agnostic.CLASSES)), agnostic.CLASSES
        experiment, *channels = (m / m.sum(axis=1, keepdims=True) for m in rng.random((3, d, d)))
        joint = (prior[:, None] * experiment).ravel()
        counts = rng.multinomial(agnostic.RECORDS, joint).reshape(d, d)
        gaps = []
        samples = [rng.multinomial(counts, channel[:, None]) for channel in channels]
        for axis in (0, 1):
            first, second = (
                np.linalg.slogdet(s.sum(axis=axis) / agnostic.RECORDS)[1] for s in samples
            )
            gaps.append(first - second)
        kept.append(gaps[0] * gaps[1] > 0)
    return np.mean(kept)


@jax.jit
def _gram_agnostic(keys: Any, n: Any) -> Any:
    def kept(key: Any) -> Any:
        (against_y, against_x), _ = agnostic.tables(key, n)
        gaps = [jax.vmap(simulate.table_log_score)(pair) for pair in (against_y, against_x)]
        return (gaps[0][0] - gaps[0][1]) * (gaps[1][0] - gaps[1][1]) > 0

    return jnp.mean(jax.vmap(kept)(keys))


def jgram_agnostic() -> Any:
    """The agnostic study's Gram score, all trials at once."""
    with jax.enable_x64(True):
        keys = jax.random.split(KEY, agnostic.TRIALS)
        return _gram_agnostic(keys, agnostic.RECORDS)


PUBLISHED_SIZES = tuple(n for n in sample_size.SIZES if n <= 4000)
SHARE = 100  # of the data sets go through the record loop; its time is scaled up


def jgram_sample_size() -> Any:
    """Five sizes, 1000 data sets, six levels."""
    found = []
    for n in PUBLISHED_SIZES:
        keys = jax.random.split(jax.random.fold_in(KEY, n), sample_size.DATA_SETS)
        counts = sample_size.truths(keys, n, sample_size.random_experiments(keys))
        found.append(
            simulate.sweep(KEY, counts, LEVELS, SCORES, trials=sample_size.DATA_SETS).scores
        )
    return found


LEVELS = jax.vmap(mix, (None, 0))(uniform(5), jnp.asarray(sample_size.LEVELS))


def numpy_positional_sample_size() -> Any:
    """A share of the published study's work: pairs of classes in a Python loop, by position."""
    rng, scores = np.random.default_rng(0), []
    for n in PUBLISHED_SIZES:
        for _ in range(sample_size.DATA_SETS // SHARE):
            experiment = rng.random((5, 5))
            experiment /= experiment.sum(axis=1, keepdims=True)
            x = rng.integers(5, size=n)
            y = np.array([rng.choice(5, p=experiment[label]) for label in x])
            for p in sample_size.LEVELS:
                x_hat = np.where(rng.random(n) < p, rng.integers(5, size=n), x)
                matrix = np.zeros((5, 5))
                for a in range(5):
                    for b in range(5):
                        first, second = y[x_hat == a], y[x_hat == b]
                        m = min(len(first), len(second))
                        matrix[a, b] = np.exp(-(((first[:m] - second[:m]) / 0.1) ** 2)).mean()
                scores.append((np.linalg.det(matrix), np.sum(x_hat != x)))
    return scores


def growth() -> list[Row]:
    """Sweeps of 11 levels as records, classes or trials grow from N = 4000, d = 5, 100 trials."""
    rows = []
    for axis, values in GROWTH.items():
        for value in values:
            n, d, trials = ({"records": 4000, "classes": 5, "trials": 100} | {axis: value}).values()
            experiment = simulate.random_experiment(KEY, d)
            counts = simulate.truth_counts(KEY, n, experiment)
            cells = jax.vmap(mix, (None, 0))(uniform(d), jnp.linspace(0, 0.5, 11))

            def run(counts: Any = counts, cells: Any = cells, trials: int = trials) -> Any:
                return simulate.sweep(KEY, counts, cells, SCORES, trials=trials)

            rows += time_in_turns({f"11 levels, {axis} = {value:,}": run}, repeats=5)
            print(f"{rows[-1]['name']:<34} {rows[-1]['seconds'] * 1e3:9.1f} ms", flush=True)
    return rows


def plot(rows: list[Row]) -> None:
    """How the cost grows, log-log."""
    from experiments.figures import curve, finish, panels, save

    figure, axes = panels(1, len(GROWTH), height=3.0)
    seconds = iter([row["seconds"] for row in rows])
    for axis, (name, values) in zip(axes.flat, GROWTH.items(), strict=True):
        curve(axis, values, [next(seconds) for _ in values])
        axis.set(xscale="log", yscale="log")
        axis.set_xticks(
            values, [f"{value:g}" if i % 2 == 0 else "" for i, value in enumerate(values)]
        )
        axis.xaxis.minorticks_off()
        finish(axis, name, "seconds (11 levels)")
    save(figure, axes.flat, RESULTS / "sweep.png")


def check() -> None:
    """The rivals do the same work: means of all cells agree within sampling error."""
    ours, (score, hamming, l2) = sweep(), numpy_tables()
    for a, b in ((ours.scores["score"], score), (ours.hamming, hamming), (ours.l2, l2)):
        a, b = a.reshape(66, -1), np.moveaxis(b, 0, -1).reshape(66, -1)
        error = np.hypot(a.std(axis=1), b.std(axis=1)) / math.sqrt(TRIALS)
        if not (np.abs(a.mean(axis=1) - b.mean(axis=1)) <= 4.5 * error + 1e-9).all():
            raise ValueError("the rival's means differ by more than sampling error")


def main() -> None:
    """All comparisons, then the growth curves."""
    check()
    rows: list[Row] = []

    def on(draw: Any) -> Any:
        return lambda: _scored(KEY, COUNTS, TRANSITIONS, draw)

    rows += time_in_turns(
        {
            "Experiment 1: NumPy, all multinomials at once": numpy_tables,
            "Experiment 1: jgram.simulate.sweep": sweep,
            "Experiment 1: JAX, one uniform a record": on(jax_uniform_records),
            "Experiment 1: JAX's multinomial": on(jax_multinomials),
            "Experiment 1: JAX, categorical records": on(jax_categorical_records),
            "Experiment 1: NumPy, report by report": numpy_records,
        },
        repeats=5,
    )
    rows += time_in_turns(
        {
            "Agnostic, 1e11 records: NumPy loop over count-level multinomials": numpy_agnostic,
            "Agnostic, 1e11 records: jgram": jgram_agnostic,
        },
        repeats=5,
    )
    share = f"Sample size to 4000: NumPy, positional pairs, 1/{SHARE} of the work"
    rows += time_in_turns(
        {share: numpy_positional_sample_size, "Sample size to 4000: jgram": jgram_sample_size},
        repeats=3,
    )
    ratio = rows[-1]["ratio"]
    grown = growth()
    plot(grown)
    faster = {"sample size, record loop / jgram": round(SHARE / ratio) if ratio else None}
    report("sweep", rows + grown, faster)


if __name__ == "__main__":
    main()
