"""The encoder, its training, and its checkpoints, on a tiny network and 64 images."""

import dataclasses
import re
import shutil
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from jgram.simclr import augment as augmentation
from jgram.simclr import train as training
from jgram.simclr.encoder import Architecture, Encoder, convolve, max_pool

pytestmark = pytest.mark.thorough

TINY = Architecture(widths=(4, 8), depth=1, projection=3)
SETTINGS = {"architecture": TINY, "batch_size": 32}


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (64, 32, 32, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def run(images, tmp_path_factory):
    """Two epochs of two steps, uninterrupted: the states seen, the directory."""
    directory = tmp_path_factory.mktemp("run")
    seen = []
    training.train(
        jax.random.key(0), images, directory, epochs=2, after_epoch=seen.append, **SETTINGS
    )
    return seen, directory


def _oracle_convolution(images, kernel, stride):
    """The definition, in float64."""
    images, kernel = np.asarray(images, float), np.asarray(kernel, float)
    n, height = images.shape[:2]
    size, out = len(kernel), -(-height // stride)
    found = np.zeros((n, out, out, kernel.shape[-1]))
    for y, x, i, j in np.ndindex(out, out, size, size):
        row, column = y * stride + i - size // 2, x * stride + j - size // 2
        if 0 <= row < height and 0 <= column < height:
            found[:, y, x] += images[:, row, column] @ kernel[i, j]
    return found


@pytest.mark.parametrize(("height", "size", "stride"), [(6, 7, 2), (8, 3, 1), (4, 1, 2), (1, 3, 1)])
def test_routes_agree(height, size, stride):
    images = jax.random.normal(jax.random.key(1), (3, height, height, 2))
    kernel = jax.random.normal(jax.random.key(2), (size, size, 2, 4)) / size
    expected = _oracle_convolution(images, kernel, stride)
    weight = jax.random.normal(jax.random.key(3), expected.shape)
    routes = ["xla", "patches", "dense", None]
    routes += ["winograd"] * (size == 3 and stride == 1 and height % 4 == 0)

    def total(images, kernel, route):
        out = convolve(images, kernel, stride, route=route)
        return jnp.sum(weight * out), out

    gradients = []
    for route in routes:
        run = jax.jit(jax.grad(total, argnums=(0, 1), has_aux=True), static_argnums=2)
        slopes, out = run(images, kernel, route)
        gradients.append(slopes)
        np.testing.assert_allclose(out, expected, atol=3e-5)
    for slopes in gradients:
        for found, wanted in zip(slopes, gradients[0], strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("image", "kernel", "options", "message"),
    [
        ((8, 6, 4), (3, 3, 4, 5), {}, "expected square images"),
        ((8, 8, 4), (2, 2, 4, 5), {}, "expected square images"),
        ((6, 6, 2), (3, 3, 2, 2), {"route": "winograd"}, "a 3x3 kernel, stride 1 and a size div"),
        ((8, 8, 2), (3, 3, 2, 2), {"route": "winograd", "stride": 2}, "a 3x3 kernel, stride 1"),
        ((8, 8, 2), (5, 5, 2, 2), {"route": "winograd"}, "a 3x3 kernel, stride 1"),
    ],
)
def test_convolution_refuses(image, kernel, options, message):
    with pytest.raises(ValueError, match=message):
        convolve(jnp.zeros((1, *image)), jnp.zeros(kernel), **options)


@pytest.mark.parametrize("height", [16, 8, 5])
def test_max_pool_is_the_window_maximum(height):
    images = jax.random.normal(jax.random.key(0), (2, height, height, 3))
    expected = nnx.max_pool(images, (3, 3), (2, 2), [(1, 1), (1, 1)])
    np.testing.assert_array_equal(max_pool(images), expected)


def test_encoder_shapes_and_dtypes():
    pixels = jax.random.normal(jax.random.key(0), (16, 32, 32, 3))

    @nnx.jit
    def apply(pixels):
        encoder = Encoder(TINY, rngs=nnx.Rngs(0))
        return encoder(pixels), nnx.state(encoder)

    (projections, features), state = apply(pixels)
    assert projections.shape == (16, 3)
    assert features.shape == (16, 8)
    assert projections.dtype == features.dtype == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves(state)} == {jnp.dtype("float32")}


def test_resnet18_is_torchvisions():
    encoder = nnx.eval_shape(lambda: Encoder(Architecture(), rngs=nnx.Rngs(0)))
    count = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(encoder, nnx.Param)))
    assert count == 11_176_512 + (512 * 512 + 512) + (512 * 8 + 8)  # torchvision's less fc; head


def test_nt_xent_equals_optax_and_is_finite_at_zero_embeddings():
    first, second = jax.random.normal(jax.random.key(0), (2, 6, 4))
    gradient_of = jax.jit(jax.value_and_grad(training.nt_xent, argnums=(0, 1)))
    nothing = first.at[0].set(0)
    for temperature in (0.5, 0.01):
        found, _ = gradient_of(first, second, temperature)
        both = jnp.concatenate([first, second])
        expected = optax.losses.ntxent(both, jnp.tile(jnp.arange(6), 2), temperature)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        for other in (nothing, -nothing, jnp.zeros_like(first)):
            loss, gradients = gradient_of(nothing, other, temperature)
            assert np.isfinite(loss)
            assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_views_differ_between_images_and_keys_and_stay_in_range(images):
    pixels = jnp.asarray(np.repeat(images[:1], 64, axis=0)) / 255
    augment = jax.jit(augmentation.augment)
    views = augment(jax.random.key(0), pixels)
    assert views.shape == pixels.shape
    assert views.min() >= 0
    assert views.max() <= 1
    assert len(np.unique(np.asarray(views).reshape(64, -1), axis=0)) == 64
    np.testing.assert_array_equal(views, augment(jax.random.key(0), pixels))
    assert np.abs(views - augment(jax.random.key(1), pixels)).max() > 0.1
    grey = np.ptp(np.asarray(views), axis=-1).max(axis=(1, 2)) < 1e-3
    assert 3 <= grey.sum() <= 25  # of 64 at .2


def test_crop_is_bilinear_as_pillows():
    from PIL import Image

    # a smooth picture: Pillow rounds its weights to 8 bits
    grid = np.linspace(0, np.pi, 32)
    pixels = np.stack([np.sin(grid)[:, None] * np.cos(k * grid) ** 2 for k in (1, 2, 3)], -1)
    pixels = np.round(255 * pixels).astype(np.uint8)
    top, left, height, width = 3, 7, 20, 13
    box = Image.fromarray(pixels).crop((left, top, left + width, top + height))
    expected = np.asarray(box.resize((32, 32), Image.Resampling.BILINEAR), float)
    rows = augmentation._resize_matrix(jnp.array([3.0]), jnp.array([20.0]), 32)[0]
    columns = augmentation._resize_matrix(jnp.array([7.0]), jnp.array([13.0]), 32)[0]
    found = np.einsum("ij,jkc,lk->ilc", rows, pixels.astype(float), columns)
    assert np.abs(found - expected).max() <= 1.5


def test_crops_follow_torchvisions_law():
    """Mean share of the area kept and the share of mirrored images, by linear images."""
    ramp = jnp.broadcast_to(jnp.arange(32.0), (4000, 32, 32))
    views = jax.jit(augmentation._crop)(jax.random.key(0), jnp.stack([ramp, ramp.mT, ramp], -1))
    across = np.asarray(views[:, 16, 31, 0] - views[:, 16, 0, 0])
    down = np.asarray(views[:, 31, 16, 1] - views[:, 0, 16, 1])
    rng = np.random.default_rng(0)
    areas = []
    while len(areas) < 4000:  # accepted draws, pixel sides rounded
        area, aspect = 1024 * rng.uniform(0.08, 1), np.exp(rng.uniform(*np.log([3 / 4, 4 / 3])))
        sides = np.round([np.sqrt(area * aspect), np.sqrt(area / aspect)])
        if sides.max() <= 32:
            areas.append(np.prod(sides - 1))  # a ramp clamped to its crop spans side - 1
    assert abs((np.abs(across) * down).mean() / np.mean(areas) - 1) < 0.03
    assert abs((across < 0).mean() - 0.5) < 0.03


def test_blur_keeps_the_mean_and_smooths(images):
    pixels = jnp.asarray(images) / 255
    blur = jax.jit(augmentation._blur)
    blurred = blur(jax.random.key(0), pixels)
    constant = jnp.full_like(pixels, 0.25)
    np.testing.assert_allclose(blur(jax.random.key(0), constant), 0.25, rtol=1e-6)
    assert jnp.var(blurred) < 0.6 * jnp.var(pixels)


def test_training_updates_parameters_statistics_and_losses(run, images):
    seen, _ = run
    assert [int(state.epoch) for state in seen] == [0, 1, 2]
    assert seen[-1].losses.shape == (4,)
    assert np.isfinite(seen[-1].losses).all()
    for field in ("parameters", "statistics"):
        before, after = (jax.tree.leaves(getattr(seen[e], field)) for e in (0, 2))
        changed = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
        assert all(changed)


def test_statistics_are_running_averages(images):
    encoder = Encoder(TINY, rngs=nnx.Rngs(0))
    pixels = augmentation.normalize(jnp.asarray(images, jnp.float32) / 255)
    hidden = np.asarray(encoder.stem(pixels), float)
    encoder(pixels)
    np.testing.assert_allclose(
        encoder.stem_norm.mean[...], 0.1 * hidden.mean((0, 1, 2)), rtol=1e-3, atol=1e-5
    )


def test_resumed_after_a_kill_equals_uninterrupted(run, images, tmp_path):
    seen, _ = run
    key = jax.random.key(0)

    def kill(state):
        if state.epoch == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(key, images, tmp_path, epochs=2, after_epoch=kill, **SETTINGS)
    resumed = training.train(key, images, tmp_path, epochs=2, **SETTINGS)
    for found, expected in zip(jax.tree.leaves(resumed), jax.tree.leaves(seen[-1]), strict=True):
        np.testing.assert_array_equal(found, expected)
    # one more call has nothing left to do
    again = training.train(key, images, tmp_path, epochs=2, **SETTINGS)
    np.testing.assert_array_equal(again.losses, seen[-1].losses)


def test_half_written_checkpoint_is_passed_over(run, images, tmp_path):
    seen, directory = run
    copied = tmp_path / "run"
    shutil.copytree(directory, copied)
    (copied / "3.orbax-checkpoint-tmp").mkdir()
    state, _ = training.restore(copied)
    np.testing.assert_array_equal(state.losses, seen[-1].losses)


def test_damaged_checkpoint_is_refused(run, tmp_path):
    """A bit turned in any of its files."""
    _, directory = run
    rng = np.random.default_rng(0)
    for number in range(24):
        copied = tmp_path / str(number)
        shutil.copytree(directory, copied)
        files = sorted(path for path in (copied / "2").rglob("*") if path.is_file())
        file = [path for path in files if path.stat().st_size][number % 13]
        data = bytearray(file.read_bytes())
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        file.write_bytes(data)
        with pytest.raises(ValueError, match=r"2: expected a checkpoint as it was written"):
            training.restore(copied)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"architecture": dataclasses.replace(TINY, widths=(4, 6))}, "architecture"),
        ({"batch_size": 16}, "batch_size=16"),
        ({"images": slice(None, None, -1)}, "expected the images that the run"),
        ({"key": jax.random.key(7)}, "expected the key"),
    ],
)
def test_checkpoint_of_another_run_is_refused(run, images, change, named):
    change = {**SETTINGS, **change}
    key, rows = change.pop("key", jax.random.key(0)), change.pop("images", slice(None))
    with pytest.raises(ValueError, match=named):
        training.train(key, images[rows], run[1], epochs=3, **change)


def test_nan_loss_stops_and_names_the_last_checkpoint(run, images, tmp_path, monkeypatch):
    steps, key = training._run, jax.random.key(0)

    def poison(*arguments, **settings):
        carry, losses = steps(*arguments, **settings)
        return carry, losses * jnp.nan

    monkeypatch.setattr(training, "_run", poison)
    with pytest.raises(FloatingPointError, match="epoch 1; last good checkpoint: none yet"):
        training.train(key, images, tmp_path / "new", epochs=2, **SETTINGS)
    copied = tmp_path / "run"
    shutil.copytree(run[1], copied)
    with pytest.raises(FloatingPointError, match=f"epoch 3; last good checkpoint: {copied}/2"):
        training.train(key, images, copied, epochs=3, **SETTINGS)
    state, _ = training.restore(copied)
    assert int(state.epoch) == 2


@pytest.mark.parametrize("features", [False, True])
def test_embeddings_do_not_depend_on_the_batch(run, images, features):
    seen, directory = run
    whole = training.encode(directory, images, features=features)
    assert whole.shape == (64, 8 if features else 3)
    if not features:
        np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-5)
    for size in (63, 65):
        part = training.embed(
            seen[-1], images, architecture=TINY, features=features, batch_size=size
        )
        np.testing.assert_allclose(part, whole, atol=2e-6)
    alone = training.embed(seen[-1], images[5:6], architecture=TINY, features=features)
    np.testing.assert_allclose(alone, whole[5:6], atol=2e-6)


def test_embed_path_takes_a_folder_in_the_order_of_its_names(run, images, tmp_path):
    from PIL import Image

    for name, image in zip("ba", images, strict=False):
        Image.fromarray(image).save(tmp_path / f"{name}.png")
    found, names = training.embed_path(tmp_path, run[1])
    assert names == ["a.png", "b.png"]
    np.testing.assert_allclose(found, training.encode(run[1], images[[1, 0]]), atol=2e-6)
    Image.fromarray(images[0]).resize((48, 64)).save(tmp_path / "c.png")
    with pytest.raises(ValueError, match="one size"):
        training.embed_path(tmp_path, run[1])
    assert training.embed_path(tmp_path, run[1], resize=True)[0].shape == (3, 3)


def test_training_on_a_folder_says_what_it_costs_and_goes_on(images, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "RESNET18", TINY)
    monkeypatch.setattr(training, "train", partial(training.train, architecture=TINY))
    np.savez(tmp_path / "images.npz", images[:9])
    said = []
    settings = {"size": 32, "tell": said.append}
    for epochs in (2, 3):
        training.train_path(tmp_path / "images.npz", tmp_path / "run", epochs=epochs, **settings)
        state, found = training.restore(tmp_path / "run")
        assert (int(state.epoch), found["batch_size"], len(state.losses)) == (epochs, 2, 4 * epochs)
    assert "9 images of 32 x 32 pixels: 2 times through them, 4 batches of 2" in said[0]
    assert re.search(r"at most \d+ min more", said[1])
    assert len(said) == 3  # the last epoch leaves nothing to say
    with pytest.raises(ValueError, match="at least one epoch and pixel, got 0 and 32"):
        training.train_path(tmp_path / "images.npz", tmp_path / "run", epochs=0)
    np.savez(tmp_path / "one.npz", images[:1])
    with pytest.raises(ValueError, match="batch of 2"):
        training.train_path(tmp_path / "one.npz", tmp_path / "other", epochs=1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((4, 16, 16, 3), np.uint8), r"\[n, 32, 32, 3\]"),
        (np.zeros((4, 32, 32), np.uint8), r"\[n, 32, 32, 3\]"),
        (np.zeros((4, 3, 32, 32), np.uint8), r"\[n, 32, 32, 3\]"),
        (np.zeros((4, 32, 32, 3), np.float32), "expected uint8.*float32"),
        (np.full((4, 32, 32, 3), 300), "values 300 to 300"),
        (np.zeros((0, 32, 32, 3), np.uint8), "at least one image"),
    ],
)
def test_wrong_images_are_refused(run, wrong, message):
    with pytest.raises(ValueError, match=message):
        training.encode(run[1], wrong)


def test_wrong_batches_and_checkpoints_are_refused(images, tmp_path):
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="all 64 images, got batch_size=65"):
        training.train(key, images, tmp_path, architecture=TINY, batch_size=65)
    with pytest.raises(ValueError, match="devices can share"):
        training._check_training(images, 32, 3)
    with pytest.raises(FileNotFoundError, match="train one first"):
        training.restore(tmp_path)
    (tmp_path / "5").mkdir()
    with pytest.raises(ValueError, match="5: expected a checkpoint of an encoder, got another"):
        training.restore(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        training.encode(tmp_path / "nowhere", images)


SHARED = """
import jax, numpy as np
jax.config.update("jax_num_cpu_devices", 4)
from jgram.simclr.encoder import Architecture
from jgram.simclr.train import train
tiny = Architecture(widths=(4, 8), depth=1, projection=3)
images = np.random.default_rng(0).integers(0, 256, (64, 32, 32, 3), dtype=np.uint8)
state = train(jax.random.key(0), images, {directory!r}, architecture=tiny, batch_size=32, epochs=1)
print(len(jax.devices()), *(float(loss) for loss in state.losses))
"""


def test_devices_share_a_batch_exactly(run, tmp_path):
    seen, _ = run
    code = SHARED.format(directory=str(tmp_path))
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert printed[0] == "4"
    np.testing.assert_allclose([float(loss) for loss in printed[1:]], seen[1].losses, rtol=1e-4)
