"""A ResNet-18 with a projection head, and convolutions that are fast on small CPU images.

The encoder is torchvision's ResNet-18 (a 7x7 stride-2 stem and a max-pool) with the paper's
projection head: two dense layers of which the last has eight units. On 32x32 images that
layout leaves 4x4, 2x2 and 1x1 feature maps to the later stages, where XLA's CPU convolution
spends most of its time on padding. On a CPU :func:`convolve` therefore picks its route by shape;
a GPU or TPU gets its native convolution.
"""

import dataclasses
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jgram.arrays import Array, Float

__all__ = ["RESNET18", "Architecture", "Encoder", "convolve", "max_pool"]

Route = Literal["xla", "patches", "winograd", "dense"]


def _route(size: int, kernel: Array, stride: int) -> Route:
    """The fastest on a CPU. Seconds of a training step on one: .86; without Winograd 1.30, without
    dense 1.03, with XLA in place of patches 1.13, with XLA alone 7.8.
    """
    if size <= 2 and len(kernel) > 1:
        return "dense"
    if len(kernel) == 3 and stride == 1 and size in (4, 8):
        return "winograd"
    return "patches"


def convolve(
    images: Float[Array, "n h w c"],
    kernel: Float[Array, "k l c o"],
    stride: int = 1,
    *,
    route: Route | None = None,
) -> Float[Array, "n g g o"]:
    r"""Cross-correlates square images with a kernel, padded by ``k // 2`` as torch does.

    ``out[n,y,x] = sum_{i,j} images[n, y*stride + i - k//2, x*stride + j - k//2] @ kernel[i,j]``

    All routes agree to rounding. ``"dense"`` is one product of whole images with the matrix of the
    linear map: at 2x2 and 1x1 it visits no tap that only sees padding. ``"winograd"`` (``k = 3``,
    stride 1, ``h`` a multiple of 4; Lavin and Gray, 2016) takes a quarter of the multiplications
    and is right to one part in 1e5; products of whole images surround it, which pays up to 8x8.
    ``"patches"`` gathers the taps and multiplies once, which beats XLA's strided convolution.

    Args:
        images, kernel: ``[n, h, h, c]`` and ``[k, k, c, o]`` with ``k`` odd.
        stride: Step between outputs: ``g = ceil(h / stride)``.
        route: ``None`` chooses by shape on a CPU and takes ``"xla"`` elsewhere.

    Example:
        >>> image = jnp.arange(4.0).reshape(1, 2, 2, 1)
        >>> convolve(image, jnp.ones((3, 3, 1, 1)))[0, :, :, 0].tolist()
        [[6.0, 6.0], [6.0, 6.0]]
    """
    _, height, width, channels = images.shape
    size = kernel.shape[0]
    if height != width or size % 2 == 0 or kernel.shape[:3] != (size, size, channels):
        raise ValueError(
            f"expected square images [n, h, h, c] and an odd kernel [k, k, c, o], got "
            f"{images.shape} and {kernel.shape}"
        )
    if route == "winograd" and (size != 3 or stride != 1 or height % 4):
        raise ValueError(
            f"expected a 3x3 kernel, stride 1 and a size divisible by 4 for route 'winograd', "
            f"got {size}x{size}, stride {stride} and {height}x{height}"
        )
    routes = {"xla": _native, "patches": _patches, "winograd": _winograd, "dense": _dense}
    if route is not None:
        return routes[route](images, kernel, stride=stride)
    both = routes[_route(height, kernel, stride)], _native
    ours, native = (partial(found, stride=stride) for found in both)
    return jax.lax.platform_dependent(images, kernel, cpu=ours, default=native)


def _native(images: Array, kernel: Array, *, stride: int) -> Array:
    """XLA's convolution."""
    pad = len(kernel) // 2
    how = (stride, stride), [(pad, pad)] * 2
    dimensions = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, kernel, *how, dimension_numbers=dimensions)


def _dense(images: Array, kernel: Array, *, stride: int) -> Array:
    """One product of whole images with the matrix of the linear map."""
    n, height, _, channels = images.shape
    size, out = len(kernel), -(-height // stride)
    # tap[i, o] = index of the kernel tap that joins input row i to output row o
    tap = np.arange(height)[:, None] - stride * np.arange(out) + size // 2
    joins = (tap[..., None] == np.arange(size)).astype(kernel.dtype)  # [h, g, k]
    joins = np.einsum("ypi,xqj->yxpqij", joins, joins).reshape(height**2, out**2, size**2)
    taps = kernel.reshape(size**2, channels, -1)
    matrix = jnp.einsum("spt,tco->scpo", joins, taps).reshape(height**2 * channels, -1)
    return (images.reshape(n, -1) @ matrix).reshape(n, out, out, -1)


def _patches(images: Array, kernel: Array, *, stride: int) -> Array:
    """Gather the taps of each output side by side, and multiply once."""
    height, size = images.shape[1], len(kernel)
    out, pad = -(-height // stride), size // 2
    padded = jnp.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    rows = [slice(i, i + stride * (out - 1) + 1, stride) for i in range(size)]
    patches = jnp.concatenate([padded[:, y, x] for y in rows for x in rows], axis=-1)
    return patches @ kernel.reshape(size**2 * images.shape[-1], -1)


# Winograd's F(4x4, 3x3): four outputs of a 3-tap filter from six inputs by six multiplications, so
# that outputs = FROM_PRODUCTS @ ((OF_TAPS @ taps) * (OF_INPUTS @ inputs)). It evaluates the
# polynomials at 0, 1, -1, 2, -2 and infinity.
_OF_INPUTS = np.array([
    [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
])  # fmt: skip
_OF_TAPS = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24
_FROM_PRODUCTS = np.array(
    [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]
)


def _winograd(images: Array, kernel: Array, *, stride: int) -> Array:
    """3x3 at ``stride`` 1: all tiles in three matrix products, of pixels, channels and pixels."""
    n, size, _, channels = images.shape
    tiles, dtype = size // 4, images.dtype
    # [p, tile, y]: what input row y gives to multiplication p of a tile of rows; padded by 1.
    inward = np.zeros((6, tiles, size + 2))
    outward = np.zeros((size, 6, tiles))
    for tile in range(tiles):
        inward[:, tile, 4 * tile : 4 * tile + 6] = _OF_INPUTS
        outward[4 * tile : 4 * tile + 4, :, tile] = _FROM_PRODUCTS
    inward = inward[:, :, 1:-1]
    pixels = np.einsum("pay,qbx->pqabyx", inward, inward).reshape(-1, size**2)
    products = np.einsum("ypa,xqb->yxpqab", outward, outward).reshape(size**2, -1)
    taps = jnp.asarray(np.kron(_OF_TAPS, _OF_TAPS), dtype) @ kernel.reshape(9, -1)
    flat = images.reshape(n, size**2, channels).transpose(1, 0, 2).reshape(size**2, -1)
    inputs = jnp.asarray(pixels, dtype) @ flat
    found = inputs.reshape(36, -1, channels) @ taps.reshape(36, channels, -1)
    out = jnp.asarray(products, dtype) @ found.reshape(36 * tiles**2, -1)
    return out.reshape(size**2, n, -1).transpose(1, 0, 2).reshape(n, size, size, -1)


def max_pool(images: Float[Array, "n h h c"]) -> Float[Array, "n g g c"]:
    """Maximum over 3x3 windows at stride 2, padded by 1.

    One axis at a time, as maxima of shifted slices: the gradient of a window reduction scatters
    element by element on a CPU and takes three times as long.

    Example:
        >>> max_pool(jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0].tolist()
        [[5.0, 7.0], [13.0, 15.0]]
    """
    for axis in (1, 2):
        before, here, after = three_taps(images, axis, 2, constant_values=-jnp.inf)
        images = jnp.maximum(jnp.maximum(before, here), after)
    return images


def three_taps(images: Array, axis: int, stride: int = 1, **padding: Any) -> list[Array]:
    """Of every place along an axis the one before, itself and the one after, padded by 1."""
    widths = [(0, 0)] * images.ndim
    widths[axis] = (1, 1)
    padded = jnp.pad(images, widths, **padding)
    span = stride * ((images.shape[axis] - 1) // stride) + 1
    return [jax.lax.slice_in_dim(padded, i, i + span, stride, axis) for i in range(3)]


@dataclasses.dataclass(frozen=True)
class Architecture:
    """What an encoder is made of; a checkpoint carries it.

    Attributes:
        widths: channels of each stage; stages after the first halve the image.
        depth: residual blocks a stage. ResNet-18 has 2.
        projection: dimension of the embedding. The paper has 8.
    """

    widths: tuple[int, ...] = (64, 128, 256, 512)
    depth: int = 2
    projection: int = 8


RESNET18 = Architecture()
"""The paper's."""


class Convolution(nnx.Module):
    """:func:`convolve` with a kernel of its own, without bias."""

    def __init__(self, channels: int, out: int, size: int, stride: int, *, rngs: nnx.Rngs):
        drawn = nnx.initializers.variance_scaling(2.0, "fan_out", "normal")
        self.kernel: nnx.Param[Array] = nnx.Param(drawn(rngs.params(), (size, size, channels, out)))
        self.stride = stride

    def __call__(self, images: Array) -> Array:
        return convolve(images, self.kernel[...], self.stride)


class Block(nnx.Module):
    """Two 3x3 convolutions around an identity (or, where the shape changes, 1x1) shortcut."""

    def __init__(self, channels: int, out: int, stride: int, *, rngs: nnx.Rngs):
        self.first: Convolution = Convolution(channels, out, 3, stride, rngs=rngs)
        self.first_norm: nnx.BatchNorm = _norm(out, rngs)
        self.second: Convolution = Convolution(out, out, 3, 1, rngs=rngs)
        self.second_norm: nnx.BatchNorm = _norm(out, rngs)
        shortcut = []
        if stride != 1 or channels != out:
            shortcut = [Convolution(channels, out, 1, stride, rngs=rngs), _norm(out, rngs)]
        self.shortcut: nnx.Sequential = nnx.Sequential(*shortcut)

    def __call__(self, images: Array) -> Array:
        hidden = jax.nn.relu(self.first_norm(self.first(images)))
        hidden = self.second_norm(self.second(hidden))
        return jax.nn.relu(hidden + self.shortcut(images))


def _norm(channels: int, rngs: nnx.Rngs) -> nnx.BatchNorm:
    return nnx.BatchNorm(channels, momentum=0.9, rngs=rngs)


def _linear(channels: int, out: int, rngs: nnx.Rngs) -> nnx.Linear:
    # uniform in +-1/sqrt(channels), as torch's
    initial = nnx.initializers.variance_scaling(1 / 3, "fan_in", "uniform")
    return nnx.Linear(channels, out, kernel_init=initial, rngs=rngs)


class Encoder(nnx.Module):
    """Normalised images to backbone features and their projections (section 5.2).

    He et al. 2016 have the network, Chen et al. 2020 the head.

    Example:
        >>> encoder = Encoder(Architecture(widths=(4, 8), depth=1), rngs=nnx.Rngs(0))
        >>> projections, features = encoder(jnp.zeros((2, 32, 32, 3)))
        >>> projections.shape, features.shape
        ((2, 8), (2, 8))
    """

    def __init__(self, architecture: Architecture, *, rngs: nnx.Rngs):
        channels = architecture.widths[0]
        self.stem: Convolution = Convolution(3, channels, 7, 2, rngs=rngs)
        self.stem_norm: nnx.BatchNorm = _norm(channels, rngs)
        blocks = []
        for stage, width in enumerate(architecture.widths):
            for block in range(architecture.depth):
                stride = 2 if stage and not block else 1
                blocks.append(Block(channels, width, stride, rngs=rngs))
                channels = width
        self.blocks: nnx.List[Block] = nnx.List(blocks)
        self.hidden: nnx.Linear = _linear(channels, channels, rngs)
        self.projection: nnx.Linear = _linear(channels, architecture.projection, rngs)

    def __call__(
        self, images: Float[Array, "n h h 3"]
    ) -> tuple[Float[Array, "n k"], Float[Array, "n m"]]:
        hidden = max_pool(jax.nn.relu(self.stem_norm(self.stem(images))))
        for block in self.blocks:
            hidden = block(hidden)
        features = jnp.mean(hidden, axis=(1, 2))
        return self.projection(jax.nn.relu(self.hidden(features))), features
