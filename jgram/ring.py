"""All pairs of records on many devices: shards of records travel round a ring.

Device ``i`` of ``p`` keeps shard ``i`` of the records. A copy of every shard travels from device to
device, and with it the sums for its records. After ``s`` steps device ``i`` meets shard ``i - s``
and evaluates the kernel between the two, once, for both: the tiles serve the rows of its own
shard and, transposed, those of the guest. ``floor(p/2)`` steps are enough. On the last step of
an even ring both devices of a pair meet each other's shard, and each takes half of the tiles. Then
the sums go home, in one step.

Every device holds ``O(n/p)`` records and evaluates ``1/p`` of the pairs; what travels is
``O(n/p (k + c))`` numbers a step, from neighbour to neighbour, for observations of ``k``
coordinates and ``c`` columns. Nothing is ever gathered. Where ``p`` does not divide ``n``, the last
shard is filled up with records of weight 0.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jgram.arrays import HIGHEST, Array, ArrayLike, Float, Shaped, is_concrete

__all__ = ["flat_mesh", "place", "ring_gram", "ring_pass"]

AXIS = "records"

PairsOf = Callable[[Array, Array], Array]
"""From two blocks of points to the block ``[n1, n2]`` of the kernel between them; a pytree."""


def flat_mesh(mesh: Mesh) -> Mesh:
    """The devices of a mesh of any shape, one after the other.

    Example:
        >>> flat_mesh(jax.make_mesh((1, 1), ("a", "b"))).axis_names
        ('records',)
    """
    return Mesh(mesh.devices.ravel(), (AXIS,))


def place(mesh: Mesh, values: Any) -> Any:
    """Values ``[n, ...]`` split over the ring.

    Left as they are where the devices do not divide ``n``, and inside ``jit``, ``vmap`` and
    ``grad``, where the ring itself splits them.

    Raises:
        ValueError: The values lie on a mesh of explicit axes, where every operation would have to
            say how its result is split.

    Example:
        >>> place(flat_mesh(jax.make_mesh((1,), ("a",))), jnp.ones((4, 2))).sharding.spec[0]
        'records'
    """
    if AxisType.Explicit in jax.typeof(values).sharding.mesh.axis_types:
        raise ValueError(
            "expected records on a mesh of automatic axes, got explicit ones: place them on "
            "jax.make_mesh(..., axis_types=(jax.sharding.AxisType.Auto,))"
        )
    if len(values) % mesh.size or not is_concrete(values):
        return values
    return jax.device_put(values, NamedSharding(mesh, PartitionSpec(AXIS)))


def ring_pass(
    mesh: Mesh,
    pairs: PairsOf,
    points: Shaped[ArrayLike, "n ..."],
    z: Float[ArrayLike, "n c"],
    weights: Float[ArrayLike, " n"],
    block_size: int | None = None,
) -> tuple[Float[Array, "n c"], Float[Array, ""]]:
    """``K z`` and ``sum w_i w_j K_ij^2`` over all pairs of records; inside ``jit``.

    Args:
        mesh: From :func:`flat_mesh`.
        pairs: From two blocks of points to a block of the kernel.
        points: ``[n, ...]``.
        z: ``[n, c]``.
        weights: ``[n]``, of the squared norm alone.
        block_size: Largest number of rows of a tile, static; 4,096 on GPUs and 1,024 elsewhere
            unless given.

    Returns:
        ``K z``, split over the devices like the records where they divide ``n``, and the norm, on
        every device.

    Example:
        >>> mesh = flat_mesh(jax.make_mesh((1,), ("devices",)))
        >>> outer = jax.tree_util.Partial(jnp.outer)
        >>> product, norm = ring_pass(mesh, outer, jnp.arange(3.0), jnp.eye(3), jnp.ones(3))
        >>> product[2], float(norm)
        (Array([0., 2., 4.], dtype=float32), 25.0)
    """
    size = block_size or _tile(mesh)
    columns = jnp.concatenate([jnp.asarray(z), jnp.asarray(weights)[:, None]], axis=1)

    def local(points: Array, columns: Array) -> tuple[Array, Array]:
        product, norm = _meet_all(mesh.size, pairs, points, columns, size)
        return product, jax.lax.psum(norm, AXIS)

    split = PartitionSpec(AXIS)
    product, norm = jax.shard_map(
        local, mesh=mesh, in_specs=split, out_specs=(split, PartitionSpec())
    )(*_filled(mesh.size, points, columns))
    return product[: len(z)], norm


def ring_gram(
    mesh: Mesh,
    pairs: PairsOf,
    points: Shaped[ArrayLike, "n ..."],
    z: Float[ArrayLike, "n c"],
    block_size: int | None = None,
) -> Float[Array, "c c"]:
    """``z^T K z`` over all pairs of records, on every device; inside ``jit``.

    Takes the arguments of :func:`ring_pass`.

    Example:
        >>> mesh = flat_mesh(jax.make_mesh((1,), ("devices",)))
        >>> outer = jax.tree_util.Partial(jnp.outer)
        >>> ring_gram(mesh, outer, jnp.arange(3.0), jnp.ones((3, 1)))
        Array([[9.]], dtype=float32)
    """
    size = block_size or _tile(mesh)

    def local(points: Array, columns: Array) -> Array:
        product, _ = _meet_all(mesh.size, pairs, points, columns, size)
        # In blocks, then their sum: a long sum in single precision loses digits.
        blocks = [_in_blocks(part, size, "constant") for part in (columns[:, :-1], product)]
        part = jnp.sum(jnp.einsum("bsk,bsl->bkl", *blocks, precision=HIGHEST), axis=0)
        return jax.lax.psum(0.5 * (part + part.T), AXIS)

    z = jnp.asarray(z)
    columns = jnp.pad(z, [(0, 0), (0, 1)])
    return jax.shard_map(local, mesh=mesh, in_specs=PartitionSpec(AXIS), out_specs=PartitionSpec())(
        *_filled(mesh.size, points, columns)
    )


def _tile(mesh: Mesh) -> int:
    """A CPU's caches hold the small tile; a GPU waits for the launches of many."""
    return 4096 if mesh.devices.flat[0].platform == "gpu" else 1024


def _filled(devices: int, points: Any, columns: Array) -> tuple[Array, Array]:
    """With records that repeat the last one, of columns 0, up to a multiple of the devices."""
    points, missing = jnp.asarray(points), -len(columns) % devices
    if not missing:
        return points, columns
    return _extended(points, missing, "edge"), _extended(columns, missing, "constant")


def _extended(values: Array, missing: int, mode: str) -> Array:
    return jnp.pad(values, [(0, missing)] + [(0, 0)] * (values.ndim - 1), mode=mode)


def _in_blocks(values: Array, block_size: int, mode: str) -> Array:
    """``[n, ...]`` in blocks of one size of at most ``block_size``: ``[blocks, size, ...]``."""
    blocks = -(-len(values) // block_size)
    size = -(-len(values) // blocks)
    whole = _extended(values, blocks * size - len(values), mode)
    return whole.reshape(blocks, size, *values.shape[1:])


def _meet_all(
    devices: int, pairs: PairsOf, points: Array, columns: Array, block_size: int
) -> tuple[Array, Array]:
    """On one device: its rows of ``K z``, and its part of the norm; ``columns`` are ``[z, w]``."""
    own = (_in_blocks(points, block_size, "edge"), _in_blocks(columns, block_size, "constant"))
    blocks = len(own[0])
    zeros, nothing = jnp.zeros_like(own[1][..., :-1]), jnp.zeros_like(columns[0, 0])
    meet = partial(_meet, pairs, own)

    # The shard with itself: each tile off the diagonal serves its transpose too.
    upper = np.triu_indices(blocks)
    mine, theirs, norm = meet(own, (zeros, zeros, nothing), upper, 1.0, upper[0] != upper[1])
    mine = mine + theirs
    if devices == 1:
        return _rows(mine, len(points)), norm

    def step(state: Any, _: None) -> tuple[Any, None]:
        guest, sums = state
        following = _send(guest, devices)  # on its way while this guest is served
        mine, theirs, norm = meet(guest, sums, every, 1.0, 1.0)
        return (following, (mine, _send(theirs, devices), norm)), None

    every = np.indices((blocks, blocks)).reshape(2, -1)
    whole_steps = (devices - 1) // 2
    state = (_send(own, devices), (mine, zeros, norm))
    (guest, sums), _ = jax.lax.scan(step, state, length=whole_steps)
    if devices % 2 == 0:
        # Both meet each other: the tiles below the diagonal are this device's, those above it the
        # other's, where they are below; even tiles of the diagonal belong to the first of the two.
        below = np.tril_indices(blocks, -1)
        sums = meet(guest, sums, below, 1.0, 1.0)
        second = jax.lax.axis_index(AXIS) >= devices // 2
        diagonal = 2 * jnp.arange(-(-blocks // 2)) + second
        exists = diagonal < blocks
        sums = meet(guest, sums, (diagonal, diagonal), exists, exists)
    mine, theirs, norm = sums
    mine = mine + _send(theirs, devices, -(whole_steps + 1))
    return _rows(mine, len(points)), norm


def _send(values: Any, devices: int, steps: int = 1) -> Any:
    """To the neighbour, or ``steps`` devices on."""
    route = [(i, (i + steps) % devices) for i in range(devices)]
    return jax.tree.map(lambda part: jax.lax.ppermute(part, AXIS, route), values)


def _rows(blocks: Array, n: int) -> Array:
    return blocks.reshape(-1, blocks.shape[-1])[:n]


@partial(jax.checkpoint, prevent_cse=False)
def _tile_of(
    pairs: PairsOf, own: Any, guest: Any, i: Array, j: Array
) -> tuple[Array, Array, Array]:
    """What a tile gives the own rows, the guest's and the norm."""
    (points, columns), (there, others) = (own[0][i], own[1][i]), (guest[0][j], guest[1][j])
    values = pairs(points, there).astype(columns.dtype)
    right = jnp.matmul(values, others[:, :-1], precision=HIGHEST)
    left = jnp.matmul(values.T, columns[:, :-1], precision=HIGHEST)
    squares = jnp.matmul(values**2, others[:, -1], precision=HIGHEST)
    return right, left, jnp.dot(columns[:, -1], squares, precision=HIGHEST)


def _meet(
    pairs: PairsOf,
    own: tuple[Array, Array],
    guest: tuple[Array, Array],
    sums: tuple[Array, Array, Array],
    tiles: Any,
    forth: Any,
    back: Any,
) -> tuple[Array, Array, Array]:
    """The sums of own and guest's records, and the norm, with tiles added.

    ``tiles`` are numbers of own and guest's blocks; ``forth`` and ``back`` say (0 or 1) whether a
    tile serves the own rows and, transposed, the guest's.
    """
    dtype = own[1].dtype

    def add(sums: Any, each: Any) -> tuple[Any, None]:
        (mine, theirs, norm), (i, j, forth, back) = sums, each
        right, left, square = _tile_of(pairs, own, guest, i, j)
        mine, theirs = mine.at[i].add(forth * right), theirs.at[j].add(back * left)
        return (mine, theirs, norm + (forth + back) * square), None

    rows, guests = map(jnp.asarray, tiles)
    factors = (jnp.broadcast_to(jnp.asarray(f, dtype), rows.shape) for f in (forth, back))
    return jax.lax.scan(add, sums, (rows, guests, *factors))[0]
