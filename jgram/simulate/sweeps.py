"""Sweeps: thousands of corrupted reports at once.

Scores of categorical observations, Hamming and l2 errors are functions of the contingency table
alone, so a sweep draws tables, not records: truth ``counts[x, y]`` and a transition give
``counts[x, y, x_hat]`` exactly (:func:`jgram.simulate.policies.corrupt_counts`), at a cost
independent of the number of records (:func:`sweep`). Continuous observations need the records, with
the kernel evaluated once for all reports (:func:`sweep_records`). Sweeps run in 64-bit arithmetic,
whatever ``jax_enable_x64`` says.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import Mesh, PartitionSpec

from jgram.arrays import Array, Float, Int, Key, Num
from jgram.determinant import log_determinant_of_sums
from jgram.kernels import Kernel
from jgram.observed import observe
from jgram.ring import flat_mesh
from jgram.simulate.policies import corrupt, corrupt_counts

__all__ = ["Trial", "sweep", "sweep_records", "table_log_score", "trial", "trial_key"]

TableScore = Callable[[Array], Array]


class Trial(NamedTuple):
    """Corrupted reports against the truth: scalars, or arrays ``[..., trials]`` from a sweep.

    Attributes:
        scores: One number for each score asked for.
        hamming: Number of records whose report is not the truth.
        l2: Euclidean distance between the label vectors.
    """

    scores: dict[str, Any]
    hamming: Any
    l2: Any


def table_log_score(table: Num[Array, "m d"]) -> Float[Array, ""]:
    """Plug-in log score under the delta kernel, of a table of counts or masses (Definition 4.4).

    Example:
        >>> print(f"{table_log_score(jnp.array([[2, 0], [0, 2]])):.4f}")
        -2.7726
    """
    table = jnp.asarray(table)
    return log_determinant_of_sums(table.T / jnp.sum(table))


def trial_key(
    key: Key[Array, ""], cell: Int[Array, ""] | int, number: Int[Array, ""] | int
) -> Key[Array, ""]:
    """The key of trial ``number`` of one cell, counted over leading axes in row-major order."""
    return jax.random.fold_in(jax.random.fold_in(key, cell), number)


def trial(
    key: Key[Array, ""],
    counts: Int[Array, "d m"],
    transition: Float[Array, "d d"],
    scores: Mapping[str, TableScore],
) -> Trial:
    """One corrupted report: its scores and its errors.

    ``trial(trial_key(key, cell, number), counts, transitions[cell], scores)`` under
    ``jax.enable_x64(True)`` is the sweep's entry ``[cell, number]``, alone.

    Example:
        >>> counts = jnp.array([[50, 0], [0, 50]])
        >>> int(trial(jax.random.key(0), counts, jnp.eye(2), {}).hamming)
        0
    """
    sample = corrupt_counts(key, counts, transition)
    table = jnp.sum(sample, axis=0)
    misreports = jnp.sum(sample, axis=1)
    labels = jnp.arange(len(transition))
    distances = (labels[:, None] - labels) ** 2
    return Trial(
        {name: score(table) for name, score in scores.items()},
        jnp.sum(jnp.where(distances > 0, misreports, 0)),
        jnp.sqrt(jnp.sum(misreports * distances.astype(jnp.result_type(float)))),
    )


def sweep(
    key: Key[Array, ""],
    counts: Int[Array, "... d m"],
    transitions: Float[Array, "... d d"],
    scores: Mapping[str, TableScore],
    *,
    trials: int,
    memory: float | None = None,
    progress: str | None = None,
    mesh: Mesh | None = None,
) -> Trial:
    """Trials of every transition, policies and levels at once, in NumPy arrays ``[..., trials]``.

    One compiled call a chunk of reports. Each trial of each cell has its own key
    (:func:`trial_key`), so results depend neither on the chunks nor on what else is swept.

    Args:
        counts: Truth ``counts[x, y]`` of one data set, ``[d, m]``, or of one data set a trial,
            ``[trials, d, m]``.
        transitions: Row-stochastic ``[..., d, d]``, for instance ``[policies, levels, d, d]``.
        scores: Functions of a contingency table ``[m, d]``, by name. Pass the same function
            objects again and nothing is recompiled.
        memory: Bytes that a chunk's samples may take, on each device: 4 MiB on a CPU unless given,
            which stay in its cache and whose draws end with those of few cells; else 256 MiB.
        progress: What to call a progress bar (needs rich); none unless given.
        mesh: Devices, as from ``jax.make_mesh``, to split the trials over. They exchange nothing,
            and every trial is what it is on one device.

    Example:
        >>> transitions, truth = jnp.stack([jnp.eye(2)] * 3), jnp.array([[60, 20], [10, 70]])
        >>> found = sweep(jax.random.key(0), truth, transitions, {"log": table_log_score}, trials=9)
        >>> found.scores["log"].shape
        (3, 9)
    """
    counts, transitions = jnp.asarray(counts), jnp.asarray(transitions)
    d = transitions.shape[-2]
    if counts.ndim not in (2, 3) or counts.shape[-2] != d or transitions.shape[-1] != d:
        raise ValueError(
            f"expected counts [d, m] or [trials, d, m] and transitions [..., d, d], got "
            f"{list(counts.shape)} and {list(transitions.shape)}"
        )
    if counts.ndim == 3 and len(counts) != trials:
        raise ValueError(f"expected counts of {trials} trials, got {len(counts)}")
    if memory is None:
        memory = 2.0**22 if jax.default_backend() == "cpu" else 2.0**28
    at_once = memory / (64.0 * d * d * counts.shape[-1])  # by bytes of a report's samples
    with jax.enable_x64(True):
        shared = key, counts, transitions
        return _in_chunks(shared, tuple(scores.items()), trials, at_once, progress, mesh)


def sweep_records(
    key: Key[Array, ""],
    x: Int[Array, " n"],
    y: Num[Array, "n ..."],
    transitions: Float[Array, "... d d"],
    kernel: Kernel | str,
    *,
    trials: int,
    memory: float = 2.0**28,
    **how: Any,
) -> Trial:
    """The sweep for observations that no table holds: plug-in log scores under any kernel.

    Reports are drawn record by record with ``y`` shared by all of them: the kernel is evaluated
    once a chunk. ``**how`` are ``progress`` and ``mesh``; each device holds all observations.

    Example:
        >>> from jgram.simulate.policies import normal
        >>> x, moved = jnp.arange(40) % 2, normal(2, 0.5)
        >>> found = sweep_records(jax.random.key(0), x, 1.0 * x, moved, "rbf", trials=3)
        >>> found.scores["log_score"].shape
        (3,)
    """
    transitions = jnp.asarray(transitions)
    with jax.enable_x64(True):
        data = x, observe(kernel, jnp.asarray(y, float))
        at_once = memory / (16.0 * len(x) * transitions.shape[-1])
        return _in_chunks((key, data, transitions), None, trials, at_once, **how)


def _in_chunks(shared, scores, trials, at_once, progress=None, mesh=None):
    """All trials of all cells, ``at_once`` a device and call; NumPy arrays ``[*shape, trials]``.
    Cell by cell: the loops of a call end when the slowest of its cells does."""
    shape = shared[2].shape[:-2]
    mesh = None if mesh is None else flat_mesh(mesh)
    devices = 1 if mesh is None else mesh.size
    total = math.prod(shape) * trials
    chunks = math.ceil(total / (max(1, int(at_once)) * devices))
    size = math.ceil(total / (chunks * devices)) * devices
    starts = range(0, total, size)
    if progress is not None and chunks > 1:
        from rich.progress import track

        starts = track(starts, description=progress, transient=True)
    found = []
    for start in starts:
        rows = np.minimum(np.arange(start, start + size), total - 1)
        found.append(_chunk(shared, *divmod(rows, trials), scores=scores, mesh=mesh))
    if not all(part.is_fully_addressable for part in jax.tree.leaves(found)):
        found = process_allgather(found, tiled=True)  # the trials of all processes, to each
    return jax.tree.map(
        lambda *parts: np.concatenate(parts)[:total].reshape(*shape, trials), *found
    )


@partial(jax.jit, static_argnames=("scores", "mesh"))
def _chunk(shared, cells, numbers, *, scores, mesh):
    """Trials of the data of all, counts with the scores of tables or records, split by device."""

    def trials(shared, cells, numbers):
        key, data, transitions = shared
        transitions = transitions.reshape(-1, *transitions.shape[-2:])

        def one(cell, number):
            own = trial_key(key, cell, number)
            if scores is None:
                x, observed = data
                return _of_records(own, x, observed, transitions[cell])
            counts = data if data.ndim == 2 else data[number]
            return trial(own, counts, transitions[cell], dict(scores))

        return jax.vmap(one)(cells, numbers)

    if mesh is None:
        return trials(shared, cells, numbers)
    split = PartitionSpec(mesh.axis_names)
    specs = (PartitionSpec(), split, split)
    spread = jax.shard_map(trials, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False)
    return spread(shared, cells, numbers)


def _of_records(key, x, observed, transition):
    x_hat = corrupt(key, x, transition)
    score = observed.eliminate(x_hat, transition.shape[-1]).log_determinant
    squares = (x_hat - x) ** 2
    l2 = jnp.sqrt(jnp.sum(squares, dtype=observed.dtype))
    return Trial({"log_score": score}, jnp.sum(squares > 0), l2)
