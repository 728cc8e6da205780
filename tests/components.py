"""The component table: a kernel that is one row here inherits every transformation test."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jgram
from jgram.arrays import pytree
from tests import oracles

N, D = 40, 3


def _records(seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(N) % D
    x_hat = np.where(rng.random(N) < 0.2, rng.integers(0, D, N), truth)
    outcomes = np.where(rng.random(N) < 0.3, rng.integers(0, 5, N), truth)
    numbers = (rng.normal(size=(N, 4)) + 2.0 * np.eye(D, 4)[truth]).astype(np.float32)
    probabilities = np.exp(numbers[:, :D])
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return x_hat.astype(np.int32), outcomes.astype(np.int32), numbers, probabilities


X_HAT, OUTCOMES, NUMBERS, PROBABILITIES = _records()


def laplacian(a, b):
    """A function of a pair whose gradient at coincident points needs care."""
    square = jnp.sum((a - b) ** 2)
    distance = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    return jnp.exp(-distance)


@pytree
@dataclass(frozen=True)
class Cosine:
    """A kernel without a bandwidth: the cosine of the angle between two vectors."""

    def __call__(self, y1, y2):
        return jnp.vdot(*self.features(jnp.stack([y1, y2])))

    def features(self, y):
        rows = jnp.reshape(jnp.asarray(y), (len(y), -1))
        return rows / jnp.linalg.norm(rows, axis=1, keepdims=True)


@jax.tree_util.register_dataclass  # as somebody else's kernel may be
@dataclass(frozen=True)
class Laplacian:
    """A kernel that is not smooth, ``exp(-|y - y'|_1 / scale)``; the scale is read from ``y``."""

    scale: Any = None

    def __call__(self, y1, y2):
        return jnp.exp(-jnp.sum(jnp.abs(jnp.asarray(y1) - jnp.asarray(y2))) / self.scale)

    def resolve(self, y):
        return self if self.scale is not None else Laplacian(float(np.mean(np.std(y, axis=0))))

    def describe(self):
        return f"laplacian(scale={float(self.scale):.3g})"


def squared_features(y):
    return jnp.concatenate([y, y**2])


_random = jgram.RandomFeatures.draw(jax.random.key(7), 64, dimension=4, bandwidth=3.0)


def _random_oracle(a, b):
    frequencies = np.asarray(_random.frequencies, float)
    return float(np.mean(np.cos(frequencies @ (np.asarray(a, float) - np.asarray(b, float)))))


# name: kernel, observations, the same kernel in plain NumPy
KERNELS = {
    "delta": (jgram.Delta(5), OUTCOMES, oracles.delta),
    "linear": (jgram.linear, NUMBERS, oracles.inner),
    "feature_map": (
        jgram.Linear(squared_features),
        NUMBERS,
        lambda a, b: oracles.inner(np.r_[a, a**2], np.r_[b, b**2]),
    ),
    "pseudo_posterior": (jgram.PseudoPosterior(), PROBABILITIES, oracles.inner),
    "rbf": (jgram.RBF(3.0), NUMBERS, oracles.gaussian(3.0)),
    "cosine": (
        Cosine(),
        NUMBERS,
        lambda a, b: oracles.inner(a, b) / np.sqrt(oracles.inner(a, a) * oracles.inner(b, b)),
    ),
    "laplacian": (
        Laplacian(2.0),
        NUMBERS,
        lambda a, b: float(np.exp(-np.sum(np.abs(np.asarray(a, float) - b)) / 2.0)),
    ),
    "random_features": (_random, NUMBERS, _random_oracle),
    "function": (
        laplacian,
        NUMBERS,
        lambda a, b: float(np.exp(-np.linalg.norm(np.asarray(a, float) - b))),
    ),
}


def double(name):
    """A kernel and its observations in float64."""
    kernel, y, _ = KERNELS[name]
    if name == "random_features":
        kernel = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), kernel)
    return kernel, y.astype(float) if y.dtype == np.float32 else y
