"""Contrastive training of the encoder, its checkpoints, and embeddings from them.

All images lie on the device as uint8, the state is one pytree, steps run inside ``lax.scan``, and
epoch ``e`` draws everything from ``fold_in(key, e)``: a run resumed after a kill repeats the
uninterrupted one.
"""

import dataclasses
import hashlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from rich.console import Console
from rich.progress import BarColumn, Progress, TimeRemainingColumn

from jgram.arrays import Array, Float, Int, Key
from jgram.datasets import read_images
from jgram.simclr.augment import augment, normalize
from jgram.simclr.encoder import RESNET18, Architecture, Encoder

__all__ = [
    "Training", "embed", "embed_path", "encode", "initialize", "nt_xent", "restore", "train",
    "train_path",
]  # fmt: skip

LEARNING_RATE = 5e-3  # of Adam
TEMPERATURE = 0.5


def nt_xent(
    first: Float[Array, "n k"],
    second: Float[Array, "n k"],
    temperature: float | Float[Array, ""] = TEMPERATURE,
) -> Float[Array, ""]:
    """Normalised temperature-scaled cross entropy of paired views (Chen et al. 2020, equation 1).

    With ``z`` the ``2n`` normalised views, one and the other of each image, and
    ``s = z z^T / temperature``, the mean over views of
    ``log(sum over j != i of exp s[i, j]) - s[i, pair(i)]``. A view is masked from its own sum, not
    subtracted from it, and a zero view has a finite gradient.

    Example:
        >>> print(f"{nt_xent(jnp.eye(2), jnp.eye(2)):.4f}")  # log(1 + 2 exp(-2))
        0.2395
    """
    views = _unit(jnp.concatenate([first, second]))
    similarities = jnp.matmul(views, views.T) / temperature
    others = ~jnp.eye(len(views), dtype=bool)
    normalizers = jax.nn.logsumexp(similarities, axis=-1, where=others)
    left, right = jnp.split(views, 2)
    return jnp.mean(normalizers) - jnp.mean(jnp.sum(left * right, axis=-1)) / temperature


def _unit(vectors: Array) -> Array:
    squares = jnp.sum(vectors**2, axis=-1, keepdims=True)
    return vectors * jax.lax.rsqrt(jnp.maximum(squares, 1e-12))


class Training(NamedTuple):
    """All that changes in training, as one pytree.

    Attributes:
        parameters: Weights of the encoder.
        statistics: Running means and variances of its batch normalisations.
        moments: The optimiser's state.
        epoch: Epochs done.
        losses: The loss of every step so far.
        key: Data of the run's key.
    """

    parameters: Any
    statistics: Any
    moments: Any
    epoch: Int[Array, ""]
    losses: Float[Array, " steps"]
    key: Int[Array, "..."]


def initialize(key: Key[Array, ""], architecture: Architecture = RESNET18) -> Training:
    """The state before the first step, its encoder drawn with ``key``."""
    rngs = nnx.Rngs(params=jax.random.fold_in(key, 2**32 - 1))
    _, parameters, statistics = nnx.split(Encoder(architecture, rngs=rngs), nnx.Param, ...)
    moments, data = optax.adam(LEARNING_RATE).init(parameters), jax.random.key_data(key)
    epoch, losses = jnp.zeros((), jnp.int32), jnp.zeros(0, jnp.float32)
    return Training(parameters, statistics, moments, epoch, losses, data)


def _encoder(architecture: Architecture, parameters: Any, statistics: Any) -> Encoder:
    empty = nnx.eval_shape(lambda: Encoder(architecture, rngs=nnx.Rngs(0)))
    definition, *_ = nnx.split(empty, nnx.Param, ...)
    return nnx.merge(definition, parameters, statistics, copy=True)


def _update(carry, views, *, architecture):
    """One step on normalised views ``[2n, h, h, 3]``, the first of each image before the second."""
    parameters, statistics, moments = carry

    def loss_and_statistics(parameters):
        encoder = _encoder(architecture, parameters, statistics)
        projections, _ = encoder(views)
        first, second = jnp.split(projections, 2)
        return nt_xent(first, second), nnx.state(encoder, nnx.BatchStat)

    gradient_of = jax.value_and_grad(loss_and_statistics, has_aux=True)
    (loss, statistics), gradient = gradient_of(parameters)
    updates, moments = optax.adam(LEARNING_RATE).update(gradient, moments, parameters)
    return (optax.apply_updates(parameters, updates), statistics, moments), loss


@partial(jax.jit, static_argnames=("architecture", "sharding"))
def _run(carry, images, batches, keys, *, architecture, sharding):
    """Steps through ``batches`` (``[steps, n]`` rows of images): the new carry, the losses."""

    def step(carry, inputs):
        batch, key = inputs
        pixels = images[jnp.tile(batch, 2)].astype(jnp.float32) / 255
        # The compiler divides all that follows among the devices, exactly.
        pixels = jax.lax.with_sharding_constraint(pixels, sharding)
        return _update(carry, normalize(augment(key, pixels)), architecture=architecture)

    return jax.lax.scan(step, carry, (batches, keys))


def train(
    key: Key[Array, ""],
    images: np.ndarray,
    directory: str | Path,
    *,
    architecture: Architecture = RESNET18,
    epochs: int = 60,
    batch_size: int = 256,
    after_epoch: Callable[[Training], None] = lambda training: None,
    progress: bool = False,
) -> Training:
    """Trains an encoder, or goes on from the last checkpoint in ``directory``.

    An epoch is a fresh order of the images in full batches; what is left over sits it out. The
    two views of a batch pass the network together, so its batch statistics are of both. The paper
    (section 5.2) has the same settings, passes the views separately and works in float16.

    Args:
        key: A typed key, the same when resuming.
        images: uint8 ``[n, h, h, 3]``.
        directory: Where checkpoints go: one after every epoch, the last two kept.
        epochs: Number of epochs in all, those before a resume included.
        batch_size: Images a step, each seen twice; all devices share them evenly.
        after_epoch: Called with the state at the start and after every epoch, once it is saved.
        progress: Show loss, images a second and the time left.

    Raises:
        FloatingPointError: The loss became infinite or NaN; names the last good checkpoint.
    """
    steps = _check_training(images, batch_size, len(jax.devices()))
    settings = _settings(architecture, batch_size, images)
    with _manager(directory) as manager, _bar(progress) as bar:
        if manager.latest_step() is None:
            after_epoch(training := initialize(key, architecture))
        else:
            training = _resume(manager, key, settings)
        task = bar.add_task("", total=epochs * steps, epoch=0, loss=float("nan"), rate=0.0)
        run = _steps(images, architecture, batch_size, steps, partial(bar.update, task))
        for epoch in range(int(training.epoch), epochs):
            training = run(training, jax.random.fold_in(key, epoch))
            if not (finite := np.isfinite(training.losses)).all():
                last = Path(directory, str(epoch)) if epoch else "none yet"
                raise FloatingPointError(
                    f"the loss became {training.losses[~finite][0]} in epoch {epoch + 1}; last "
                    f"good checkpoint: {last}. Train with more images a step"
                )
            _save(manager, training, settings)
            after_epoch(training)
    return training


def _settings(architecture: Architecture, batch_size: int, images: np.ndarray) -> dict[str, Any]:
    """What a run that goes on has to have in common with the one that began."""
    return {
        "architecture": dataclasses.asdict(architecture),
        "batch_size": batch_size,
        "learning_rate": LEARNING_RATE,
        "temperature": TEMPERATURE,
        "images": list(images.shape),
        "pixels": hashlib.sha256(np.ascontiguousarray(images).data).hexdigest(),
    }


def _steps(
    images: np.ndarray, architecture: Architecture, batch_size: int, steps: int, tell: Any
) -> Callable[[Training, Array], Training]:
    """An epoch: a fresh order of the images, in scans of 20 steps or so, until a loss is NaN."""
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    sharding = NamedSharding(mesh, PartitionSpec("batch"))
    chunk = next(k for k in range(min(steps, 20), 0, -1) if steps % k == 0)
    pixels = jax.device_put(images, everywhere)
    how = {"architecture": architecture, "sharding": sharding}

    def run(training: Training, key: Array) -> Training:
        order_key, steps_key = jax.random.split(key)
        order = jax.random.permutation(order_key, len(pixels))[: steps * batch_size]
        keys = jax.random.split(steps_key, (steps // chunk, chunk))
        carry, epoch = jax.device_put(training[:3], everywhere), training.epoch + 1
        losses = [np.asarray(training.losses)]
        for batches, step_keys in zip(order.reshape(-1, chunk, batch_size), keys, strict=True):
            start = time.perf_counter()
            carry, found = _run(carry, pixels, batches, step_keys, **how)
            losses.append(np.asarray(found))
            rate = chunk * batch_size / (time.perf_counter() - start)
            done = sum(map(len, losses))
            tell(completed=done, epoch=int(epoch), loss=losses[-1][-1], rate=rate)
            if not np.isfinite(losses[-1]).all():
                break
        every: Any = *carry, epoch, jnp.asarray(np.concatenate(losses)), training.key
        return Training(*every)

    return run


def _bar(shown: bool) -> Progress:
    console = Console(stderr=True)
    return Progress(
        "epoch {task.fields[epoch]}",
        BarColumn(),
        "loss {task.fields[loss]:.4f}, {task.fields[rate]:.0f} images/s, left",
        TimeRemainingColumn(),
        console=console,
        disable=not (shown and console.is_terminal),
    )


def _check_images(images: Any, side: int | None = None) -> None:
    """Refuses what is not uint8 ``[n, h, h, 3]``, naming the conversion where there is one."""
    shape = np.shape(images)
    if len(shape) != 4 or shape[1] != shape[2] or shape[3] != 3 or side not in (None, shape[1]):
        size = side or "h"
        raise ValueError(f"expected images [n, {size}, {size}, 3], got {list(shape)}: resize them")
    if not len(images):
        raise ValueError("expected at least one image, got none")
    dtype = np.asarray(images[:1]).dtype
    if dtype != np.uint8:
        fix = "np.round(255 * images)" if dtype.kind == "f" else "images"
        raise ValueError(
            f"expected uint8 images, 0 to 255, got {dtype} with values {np.min(images):.4g} to "
            f"{np.max(images):.4g}: give {fix}.astype(np.uint8) once it lies in 0 to 255"
        )


def _check_training(images: np.ndarray, batch_size: int, devices: int) -> int:
    _check_images(images)
    if len(images) < batch_size or batch_size < 2:
        raise ValueError(
            f"expected a batch of 2 to all {len(images)} images, got batch_size={batch_size}"
        )
    if batch_size % devices:
        raise ValueError(f"expected a batch that {devices} devices can share, got {batch_size}")
    return len(images) // batch_size


def _manager(directory: str | Path) -> ocp.CheckpointManager:
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
    return ocp.CheckpointManager(Path(directory).absolute(), options=options)


def _sealed(folder: Path) -> str:
    """A digest of all files of a checkpoint but the seal itself."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != "seal")
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _save(manager: ocp.CheckpointManager, training: Training, settings: dict[str, Any]) -> None:
    arguments = ocp.args.Composite(
        training=ocp.args.PyTreeSave(training), settings=ocp.args.JsonSave(settings)
    )
    manager.save(epoch := int(training.epoch), args=arguments)
    folder = Path(manager.directory, str(epoch))
    (folder / "seal").write_text(_sealed(folder))


def _load(manager: ocp.CheckpointManager) -> tuple[Training, dict[str, Any]]:
    """The last checkpoint as it was written; one that changed since is not believed."""
    epoch = manager.latest_step() or 0
    folder = Path(manager.directory, str(epoch))
    seal = folder / "seal"  # those of 0.1 have none
    if not (folder / "settings").is_dir():
        raise ValueError(f"{folder}: expected a checkpoint of an encoder, got another folder")
    try:
        if seal.exists() and seal.read_text() != _sealed(folder):
            raise ValueError("its files changed")
        part = ocp.args.Composite(settings=ocp.args.JsonRestore())
        settings = dict(manager.restore(epoch, args=part)["settings"])
        start = partial(initialize, architecture=_architecture(settings))
        shapes = jax.eval_shape(start, jax.random.key(0))
        steps = epoch * (settings["images"][0] // settings["batch_size"])
        empty = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
        empty = empty._replace(losses=np.zeros(steps, np.float32))
        options = ocp.checkpoint_utils.construct_restore_args(empty)
        part = ocp.args.Composite(training=ocp.args.PyTreeRestore(empty, restore_args=options))
        return jax.tree.map(jnp.asarray, manager.restore(epoch, args=part)["training"]), settings
    except MemoryError:
        raise
    except Exception as error:  # orbax, tensorstore and json have many for a damaged file
        raise ValueError(
            f"{folder}: expected a checkpoint as it was written, got one that was damaged since: "
            "move this folder away to go on from the epoch before it"
        ) from error


def _architecture(settings: dict[str, Any]) -> Architecture:
    fields = dict(settings["architecture"])
    if fields.pop("stem", 7) != 7 or fields.pop("dtype", "float32") != "float32":
        raise ValueError("an architecture of an earlier version that is gone")
    return Architecture(**{**fields, "widths": tuple(fields["widths"])})


def _resume(
    manager: ocp.CheckpointManager, key: Key[Array, ""], settings: dict[str, Any]
) -> Training:
    training, found = _load(manager)
    found = {**found, "architecture": dataclasses.asdict(_architecture(found))}
    different = [name for name in settings if settings[name] != found.get(name)]
    if shown := [name for name in different if name != "pixels"]:
        expected, got = (
            ", ".join(f"{name}={given.get(name)}" for name in shown) for given in (settings, found)
        )
        raise ValueError(
            f"expected the checkpoint in {manager.directory} to have {expected}, got {got}: resume "
            "with its settings, or train in another directory"
        )
    same_key = np.array_equal(training.key, jax.random.key_data(key))
    for what, same in (("images", not different), ("key", same_key)):
        if not same:
            raise ValueError(
                f"expected the {what} that the run in {manager.directory} started with, got other "
                f"{what} or none on record: resume with them, or train in another directory "
                "(--checkpoint)"
            )
    return training


def restore(directory: str | Path) -> tuple[Training, dict[str, Any]]:
    """The last checkpoint in a directory, and the settings of its run.

    Raises:
        FileNotFoundError: No checkpoint there.
    """
    if not Path(directory).is_dir():
        raise FileNotFoundError(f"no such folder of checkpoints: {directory}")
    with _manager(directory) as manager:
        if manager.latest_step() is None:
            raise FileNotFoundError(f"no checkpoint in {directory}: train one first")
        return _load(manager)


@partial(jax.jit, static_argnames="architecture")
def _forward(parameters, statistics, images, architecture):
    encoder = _encoder(architecture, parameters, statistics)
    encoder.eval()
    projections, features = encoder(normalize(images.astype(jnp.float32) / 255))
    return _unit(projections), features


def embed(
    training: Training,
    images: np.ndarray,
    *,
    architecture: Architecture = RESNET18,
    features: bool = False,
    batch_size: int = 500,
) -> np.ndarray:
    """Embeddings of images, each independent of the others, ``batch_size`` at once.

    Args:
        training: A state of :func:`train`.
        images: uint8 ``[n, h, h, 3]``.
        features: The backbone's features ``[n, m]``, not projections ``[n, k]`` of unit length.
    """
    _check_images(images)
    batch_size = min(batch_size, len(images))
    parts = []
    for start in range(0, len(images), batch_size):
        rows = np.minimum(np.arange(start, start + batch_size), len(images) - 1)
        both = _forward(training.parameters, training.statistics, images[rows], architecture)
        parts.append(np.asarray(both[int(features)]))
    return np.concatenate(parts)[: len(images)]


def encode(checkpoint: str | Path, images: np.ndarray, *, features: bool = False) -> np.ndarray:
    """:func:`embed` with the last checkpoint of :func:`train`, of images of the size trained on.

    Raises:
        FileNotFoundError: No checkpoint there.
        ValueError: Images of another dtype, or of another size than trained on.
    """
    return _encode(restore(checkpoint), images, features)


def _encode(restored: tuple[Training, dict[str, Any]], images: Any, features: bool) -> np.ndarray:
    training, settings = restored
    _check_images(images, side=settings["images"][1])
    return embed(training, images, architecture=_architecture(settings), features=features)


def embed_path(
    images: str | Path, checkpoint: str | Path, *, features: bool = False, resize: bool = False
) -> tuple[np.ndarray, list[str]]:
    """:func:`encode` of a folder of images, or an npz (:func:`jgram.datasets.read_images`).

    Embeddings ``float32 [n, k]``, and the images' names: paths within the folder, or rows.
    ``resize`` brings image files to the size trained on.
    """
    restored = restore(checkpoint)
    side = restored[1]["images"][1] if resize else None
    pixels, names = read_images(images, resize=side)
    return _encode(restored, pixels, features), names


def train_path(
    images: str | Path,
    directory: str | Path,
    *,
    epochs: int,
    size: int = 32,
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
    progress: bool = False,
) -> None:
    """Trains an encoder on a folder of images, or an npz, or goes on where it stopped.

    Args:
        images: See :func:`jgram.datasets.read_images`; files are scaled and centre-cropped.
        directory: Where checkpoints go, for :func:`embed_path`.
        epochs: Passes over the images in all, those before a resume included.
        size: Side of the images trained on, in pixels; the cost grows with its square.
        tell: Called with one line on what is trained, and one on how long it will take.
    """
    if epochs < 1 or size < 1:
        raise ValueError(f"expected at least one epoch and pixel, got {epochs} and {size}")
    pixels, _ = read_images(images, resize=size)
    devices = len(jax.devices())
    batch_size = min(256, max(len(pixels) // 4, 2)) // devices * devices
    steps = _check_training(pixels, batch_size, devices)
    tell(
        f"training on {len(pixels)} images of {size} x {size} pixels: {epochs} times through them, "
        f"{steps} batches of {batch_size} each time; kept in {directory}, where the same command "
        "goes on if it is interrupted"
    )
    began, told = time.perf_counter(), False

    def cost(training: Training) -> None:
        """After the first epoch of this run: how long the others will take."""
        nonlocal told
        left = epochs - int(training.epoch)
        if training.epoch and left and not told:
            told, seconds = True, time.perf_counter() - began
            tell(
                f"the first epoch took {seconds:.0f} s: at most {seconds * left / 60:.0f} min more"
            )

    train(jax.random.key(seed), pixels, directory, epochs=epochs, batch_size=batch_size,
          after_epoch=cost, progress=progress)  # fmt: skip
