"""The Gram state of records that are spread over devices."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jgram.gram import GramState, gram_state
from jgram.kernels import Kernel
from jgram.types import Array, Num

__all__ = ["sharded_gram_state"]


def sharded_gram_state(
    mesh: Mesh,
    x_hat: Num[Array, "n ..."],
    y: Num[Array, "n ..."],
    kernel: Kernel,
    *,
    num_classes: int,
    weights: Num[Array, " n"] | None = None,
) -> GramState:
    """:class:`jgram.gram.GramState` by one sum over devices, each with its share of the records.

    Records are split over all axes of the mesh; where they do not divide evenly, the last shard is
    filled up with records of weight 0. Nothing but the ``[d, m]`` sums travels.

    Args:
        mesh: Devices, as from ``jax.make_mesh``.
        x_hat: Labels ``[n]`` or soft reports ``[n, d]``.
        y: Observations ``[n, ...]``.
        kernel: An explicit kernel, complete (``Delta(num_outcomes)``).
        num_classes: ``d``.
        weights: ``[n]``, at least 0.

    Returns:
        The state of all records, on every device. Counts are integers for the delta kernel without
        weights.

    Raises:
        ValueError: The kernel has no features, or shapes do not fit.

    Example:
        >>> from jgram.kernels import Delta
        >>> mesh = jax.make_mesh((1,), ("records",))
        >>> x_hat, y = jnp.array([0, 1, 1]), jnp.array([0, 0, 1])
        >>> sharded_gram_state(mesh, x_hat, y, Delta(2), num_classes=2).counts
        Array([1, 2], dtype=int32)
    """
    records = (x_hat, y, jnp.ones(len(x_hat), jnp.int32) if weights is None else weights)
    missing = -len(x_hat) % mesh.size
    split = PartitionSpec(mesh.axis_names)
    shards = jax.device_put(
        [_fill(jnp.asarray(part), missing) for part in records], NamedSharding(mesh, split)
    )

    def local(x_hat: Any, y: Any, weights: Any) -> GramState:
        state = gram_state(x_hat, y, kernel, num_classes=num_classes, weights=weights)
        return jax.lax.psum(state, mesh.axis_names)

    return jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=PartitionSpec())(*shards)


def _fill(values: Array, missing: int) -> Array:
    return jnp.pad(values, [(0, missing)] + [(0, 0)] * (values.ndim - 1))
