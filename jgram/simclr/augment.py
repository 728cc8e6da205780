"""The paper's image augmentations, vectorised over a batch on the device.

Random resized crop, horizontal flip, colour jitter, greyscale and a 3x3 Gaussian blur, with
the parameters of torchvision's transforms of the same names. Every image draws its own
parameters. A crop with its flip and bilinear resize is linear and separable: two small matrix
products an image.
"""

import dm_pix as pix
import jax
import jax.numpy as jnp

from jgram.arrays import Array, Float, Key
from jgram.simclr.encoder import three_taps

__all__ = ["augment", "normalize"]

MEAN = (0.4914, 0.4822, 0.4465)
STANDARD_DEVIATION = (0.2470, 0.2435, 0.2616)
LUMA = (0.299, 0.587, 0.114)


def normalize(images: Float[Array, "n h h 3"]) -> Float[Array, "n h h 3"]:
    """Images in [0, 1] less CIFAR-10's channel means, over its channel deviations."""
    return (images - jnp.array(MEAN)) / jnp.array(STANDARD_DEVIATION)


def augment(key: Key[Array, ""], images: Float[Array, "n h h 3"]) -> Float[Array, "n h h 3"]:
    """One random view ``[n, h, h, 3]`` in [0, 1] of each image, before :func:`normalize`.

    Section 5.2 trains with these five; colour jitter has strengths .4, .4, .4, .1. Where
    torchvision rounds to 8 bits between operations, this does not.

    Example:
        >>> images = jax.random.uniform(jax.random.key(0), (2, 32, 32, 3))
        >>> augment(jax.random.key(1), images).shape
        (2, 32, 32, 3)
    """
    crop, jitter, grey, blur = jax.random.split(key, 4)
    images = _crop(crop, images)
    images = _jitter(jitter, images)
    chosen = jax.random.bernoulli(grey, 0.2, (len(images), 1, 1, 1))
    images = jnp.where(chosen, _luma(images), images)
    return _blur(blur, images)


def _crop(key: Array, images: Array) -> Array:
    """Random resized crop (area .08 to 1, aspect 3/4 to 4/3; of ten draws the first that fits, else
    the whole image) and a flip half of the time."""
    n, size = images.shape[:2]
    area_key, aspect_key, corner_key, flip_key = jax.random.split(key, 4)
    area = size**2 * jax.random.uniform(area_key, (n, 10), minval=0.08)
    log_aspect = jnp.log(4 / 3) * jax.random.uniform(aspect_key, (n, 10), minval=-1.0)
    sides = jnp.stack([jnp.sqrt(area * jnp.exp(s * log_aspect)) for s in (-1, 1)], -1)
    sides = jnp.round(sides)  # [n, 10, 2]: height, width
    fits = jnp.all((sides >= 1) & (sides <= size), -1)
    first = jnp.take_along_axis(sides, jnp.argmax(fits, 1)[:, None, None], 1)[:, 0]
    sides = jnp.where(jnp.any(fits, 1)[:, None], first, size)
    corners = jnp.floor(jax.random.uniform(corner_key, (n, 2)) * (size - sides + 1))
    flip = jax.random.bernoulli(flip_key, 0.5, (n,))
    rows = _resize_matrix(corners[:, 0], sides[:, 0], size)
    columns = _resize_matrix(corners[:, 1], sides[:, 1], size)
    columns = jnp.where(flip[:, None, None], columns[:, ::-1], columns)
    images = jnp.einsum("nij,njkc->nikc", rows, images)
    return jnp.einsum("nlk,nikc->nilc", columns, images)


def _resize_matrix(start: Array, length: Array, size: int) -> Array:
    """``[n, size, size]`` bilinear weights that stretch ``length`` pixels to ``size``."""
    centre = (jnp.arange(size) + 0.5) * length[:, None] / size - 0.5
    position = start[:, None] + jnp.clip(centre, 0, length[:, None] - 1)
    return jnp.maximum(0, 1 - jnp.abs(position[:, :, None] - jnp.arange(size)))


def _luma(images: Array) -> Array:
    return (images @ jnp.array(LUMA, images.dtype))[..., None]


def _jitter(key: Array, images: Array) -> Array:
    """Brightness, contrast, saturation (.6 to 1.4: blends with black, mean grey and grey) and hue
    (+-.1 turn) in random order, at .8."""
    n = len(images)
    apply_key, order_key, factor_key, hue_key = jax.random.split(key, 4)
    order = jax.vmap(lambda k: jax.random.permutation(k, 4))(jax.random.split(order_key, n))
    factors = jax.random.uniform(factor_key, (n, 4), minval=0.6, maxval=1.4)
    turn = jax.random.uniform(hue_key, (n, 1, 1), minval=-0.1, maxval=0.1)
    jittered = images
    for step in range(4):
        operation = order[:, step, None, None, None]
        factor = factors[:, step, None, None, None]
        grey = _luma(jittered)
        target = jnp.select(
            [operation == 0, operation == 1], [0.0, jnp.mean(grey, (1, 2, 3), keepdims=True)], grey
        )
        blended = jnp.clip(factor * jittered + (1 - factor) * target, 0, 1)
        jittered = jnp.where(operation == 3, pix.adjust_hue(jittered, turn), blended)
    chosen = jax.random.bernoulli(apply_key, 0.8, (n, 1, 1, 1))
    return jnp.where(chosen, jittered, images)


def _blur(key: Array, images: Array) -> Array:
    """Three-tap Gaussian along each axis, deviation .1 to 2 pixels, edges reflected."""
    sigma = jax.random.uniform(key, (len(images), 1, 1, 1), minval=0.1, maxval=2.0)
    side = jnp.exp(-0.5 / sigma**2)
    side = side / (1 + 2 * side)
    for axis in (1, 2):
        before, _, after = three_taps(images, axis, mode="reflect")
        images = (1 - 2 * side) * images + side * (before + after)
    return images
