"""All pairs of records, in square tiles of the kernel; on many devices round a ring.

Only tiles on and above the diagonal are evaluated, each for both of its sides.

Device ``i`` of ``p`` keeps shard ``i`` of the records. A copy of every shard travels from device to
device, and with it the sums for its records. After ``s`` steps device ``i`` meets shard ``i - s``
and evaluates the kernel between the two once, for both, up to ``s = floor(p/2)``; on the last step
of an even ring both devices of a pair meet each other's shard, and each takes half of the tiles.
Then the sums go home. Of ``k`` coordinates and ``c`` columns ``O(n/p (k + c))`` numbers travel a
step, nothing is ever gathered, and the last shard is filled up with records of weight 0.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jgram.arrays import HIGHEST, Array, ArrayLike, Float, Shaped, extended, is_concrete

__all__ = ["flat_mesh", "place", "ring_gram", "ring_pass"]

AXIS = "records"

TILE, CUDA_TILE = 1024, 4096

PairsOf = Callable[[Array, Array], Array]
"""From two blocks of points to the block ``[n1, n2]`` of the kernel between them; a pytree."""


def flat_mesh(mesh: Mesh) -> Mesh:
    """The devices of a mesh of any shape, one after the other.

    Example:
        >>> flat_mesh(jax.make_mesh((1, 1), ("a", "b"))).axis_names
        ('records',)
    """
    return Mesh(mesh.devices.ravel(), (AXIS,))


def place(mesh: Mesh | None, values: Any) -> Any:
    """Values ``[n, ...]`` split over the ring, which itself splits others where it meets them.

    Others are those inside ``jit``, ``vmap`` and ``grad``, and those that devices do not divide.

    Raises:
        ValueError: The values lie on a mesh of explicit axes.

    Example:
        >>> place(flat_mesh(jax.make_mesh((1,), ("a",))), jnp.ones((4, 2))).sharding.spec[0]
        'records'
    """
    if mesh is None:
        return values
    if AxisType.Explicit in jax.typeof(values).sharding.mesh.axis_types:
        raise ValueError(
            "expected records on a mesh of automatic axes, got explicit ones: place them on "
            "jax.make_mesh(..., axis_types=(jax.sharding.AxisType.Auto,))"
        )
    if len(values) % mesh.size or not is_concrete(values):
        return values
    return jax.device_put(values, NamedSharding(mesh, PartitionSpec(AXIS)))


def ring_pass(
    mesh: Mesh | None,
    pairs: PairsOf,
    points: Shaped[ArrayLike, "n ..."],
    z: Float[ArrayLike, "n c"],
    weights: Float[ArrayLike, " n"],
    block_size: int | None = None,
) -> tuple[Float[Array, "n c"], Float[Array, ""]]:
    """``K z`` and ``sum w_i w_j K_ij^2`` over all pairs of records; inside ``jit``.

    The product is split like the records where the devices divide ``n``, the norm is on all.

    Args:
        mesh: From :func:`flat_mesh`; ``None`` for one device.
        pairs: From two blocks of points to a block of the kernel.
        weights: ``[n]``, of the squared norm alone.
        block_size: Most rows of a tile, static; 4,096 on CUDA and 1,024 elsewhere unless given.

    Example:
        >>> mesh = flat_mesh(jax.make_mesh((1,), ("devices",)))
        >>> outer = jax.tree_util.Partial(jnp.outer)
        >>> product, norm = ring_pass(mesh, outer, jnp.arange(3.0), jnp.eye(3), jnp.ones(3))
        >>> product[2], float(norm)
        (Array([0., 2., 4.], dtype=float32), 25.0)
    """
    columns = jnp.concatenate([jnp.asarray(z), jnp.asarray(weights)[:, None]], axis=1)

    def local(devices: int | None, size: int, points: Array, columns: Array) -> tuple[Array, Array]:
        own = _blocks(points, columns, size)
        zeros, nothing = jnp.zeros_like(own[1][..., :-1]), jnp.zeros_like(columns[0, 0])
        sums = _meet_all(devices or 1, partial(_add_pass, pairs, own), own, (zeros, zeros, nothing))
        mine, theirs, norm = sums
        product = (mine + theirs).reshape(-1, mine.shape[-1])[: len(points)]
        return product, norm if devices is None else jax.lax.psum(norm, AXIS)

    split = PartitionSpec(AXIS)
    product, norm = _on(mesh, block_size, local, (split, PartitionSpec()), points, columns)
    return product[: len(z)], norm


def ring_gram(
    mesh: Mesh | None,
    pairs: PairsOf,
    points: Shaped[ArrayLike, "n ..."],
    z: Float[ArrayLike, "n c"],
    block_size: int | None = None,
) -> Float[Array, "c c"]:
    """``z^T K z`` on every device, of the arguments of :func:`ring_pass`; inside ``jit``.

    Example:
        >>> outer = jax.tree_util.Partial(jnp.outer)
        >>> ring_gram(None, outer, jnp.arange(3.0), jnp.ones((3, 1)))
        Array([[9.]], dtype=float32)
    """

    def local(devices: int | None, size: int, points: Array, z: Array) -> Array:
        own, zero = _blocks(points, z, size), jnp.zeros_like(z.T @ z)
        half, _ = _meet_all(devices or 1, partial(_add_gram, pairs, own), own, (zero, zero))
        return half + half.T if devices is None else jax.lax.psum(half + half.T, AXIS)

    return _on(mesh, block_size, local, PartitionSpec(), points, jnp.asarray(z))


def _on(
    mesh: Mesh | None, block_size: int | None, local: Any, out: Any, points: Any, columns: Array
) -> Any:
    """``local(devices, tile, points, columns)`` on each of the devices, or on one without a mesh:
    a CPU's caches hold the small tile, a GPU waits for the launches of many."""
    points = jnp.asarray(points)
    if mesh is None and (block_size or len(points) <= TILE):
        return local(None, block_size or TILE, points, columns)
    if mesh is None:
        cuda, others = (partial(local, None, size) for size in (CUDA_TILE, TILE))
        return jax.lax.platform_dependent(points, columns, cuda=cuda, default=others)
    size = block_size or (CUDA_TILE if mesh.devices.flat[0].platform == "gpu" else TILE)
    if missing := -len(columns) % mesh.size:  # records that repeat the last one, of columns 0
        points, columns = extended(points, missing, "edge"), extended(columns, missing)
    local, split = partial(local, mesh.size, size), PartitionSpec(AXIS)
    return jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=out)(points, columns)


def _blocks(points: Array, columns: Array, block_size: int) -> tuple[Array, ...]:
    """In blocks of one size of at most ``block_size``: ``[blocks, size, ...]``."""
    n = len(points)
    blocks = -(-n // block_size)
    size = -(-n // blocks)
    whole = extended(points, blocks * size - n, "edge"), extended(columns, blocks * size - n)
    return tuple(part.reshape(blocks, size, *part.shape[1:]) for part in whole)


def _meet_all(devices: int, add: Any, own: tuple[Array, ...], sums: tuple[Array, ...]) -> Any:
    """The sums of one device after its records met their part of all others: ``add(guest, sums, (i,
    j, forth, back))`` adds a tile between own block ``i`` and the guest's ``j``, so often for the
    own rows and, transposed, for the guest's. Of three sums the second is the guest's: it travels.
    """
    blocks = len(own[0])

    def meet(guest: Any, sums: Any, tiles: Any, forth: Any, back: Any) -> Any:
        rows, guests = map(jnp.asarray, tiles)
        factors = (jnp.full(rows.shape, factor, own[1].dtype) for factor in (forth, back))
        tiles = (rows, guests, *factors)
        return jax.lax.scan(lambda sums, tile: (add(guest, sums, tile), None), sums, tiles)[0]

    def send(sums: Any, steps: int) -> Any:
        return sums if len(sums) < 3 else (sums[0], _send(sums[1], devices, steps), sums[2])

    # The shard with itself: each tile off the diagonal serves its transpose too.
    upper = np.triu_indices(blocks)
    sums = meet(own, sums, upper, 1.0, upper[0] != upper[1])
    if devices == 1:
        return sums
    if len(sums) == 3:
        sums = (sums[0] + sums[1], jnp.zeros_like(sums[1]), sums[2])

    def step(state: Any, _: None) -> tuple[Any, None]:
        guest, sums = state
        following = _send(guest, devices)  # on its way while this guest is served
        return (following, send(meet(guest, sums, every, 1.0, 1.0), 1)), None

    every = np.indices((blocks, blocks)).reshape(2, -1)
    whole_steps = (devices - 1) // 2
    (guest, sums), _ = jax.lax.scan(step, (_send(own, devices), sums), length=whole_steps)
    if devices % 2 == 0:
        # Both meet each other: tiles below the diagonal are this device's, those above it, below
        # it there, the other's; even tiles of the diagonal belong to the first of the two.
        below = np.tril_indices(blocks, -1)
        sums = meet(guest, sums, below, 1.0, 1.0)
        second = jax.lax.axis_index(AXIS) >= devices // 2
        diagonal = 2 * jnp.arange(-(-blocks // 2)) + second
        exists = diagonal < blocks
        sums = meet(guest, sums, (diagonal, diagonal), exists, exists)
    return send(sums, -(whole_steps + 1))


def _send(values: Any, devices: int, steps: int = 1) -> Any:
    """To the neighbour, or ``steps`` devices on."""
    route = [(i, (i + steps) % devices) for i in range(devices)]
    return jax.tree.map(lambda part: jax.lax.ppermute(part, AXIS, route), values)


@partial(jax.checkpoint, prevent_cse=False)
def _pass_tile(pairs: PairsOf, own: Any, guest: Any, i: Array, j: Array) -> tuple[Array, ...]:
    """What a tile gives the own rows, the guest's and the norm."""
    (points, columns), (there, others) = (own[0][i], own[1][i]), (guest[0][j], guest[1][j])
    values = pairs(points, there).astype(columns.dtype)
    right = jnp.matmul(values, others[:, :-1], precision=HIGHEST)
    left = jnp.matmul(values.T, columns[:, :-1], precision=HIGHEST)
    squares = jnp.matmul(values**2, others[:, -1], precision=HIGHEST)
    return right, left, jnp.dot(columns[:, -1], squares, precision=HIGHEST)


def _add_pass(pairs: PairsOf, own: Any, guest: Any, sums: Any, tile: Any) -> Any:
    (mine, theirs, norm), (i, j, forth, back) = sums, tile
    right, left, square = _pass_tile(pairs, own, guest, i, j)
    mine, theirs = mine.at[i].add(forth * right), theirs.at[j].add(back * left)
    return mine, theirs, norm + (forth + back) * square


@partial(jax.checkpoint, prevent_cse=False)
def _gram_tile(pairs: PairsOf, own: Any, guest: Any, i: Array, j: Array) -> Array:
    columns = own[1][i]
    values = pairs(own[0][i], guest[0][j]).astype(columns.dtype)
    right = jnp.matmul(values, guest[1][j], precision=HIGHEST)
    return jnp.matmul(columns.T, right, precision=HIGHEST)


def _add_gram(pairs: PairsOf, own: Any, guest: Any, sums: Any, tile: Any) -> Any:
    """Half of the Gram matrix, which its transpose completes; compensated, for tiles are many."""
    (total, lost), (i, j, forth, back) = sums, tile
    part = (forth + back) / 2 * _gram_tile(pairs, own, guest, i, j) - lost
    new = total + part
    return new, (new - total) - part
