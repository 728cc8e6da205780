"""Uneven shards over two devices give the state of the whole."""

import subprocess
import sys

import pytest

PROGRAM = """
import jax
jax.config.update("jax_num_cpu_devices", 2)
import jax.numpy as jnp
import numpy as np
from jgram.gram_matrix import gram_state
from jgram.kernels import Delta, Linear
from jgram.gram_matrix import sharded_gram_state

assert len(jax.devices()) == 2
rng = np.random.default_rng(0)
flat, square = jax.make_mesh((2,), ("records",)), jax.make_mesh((2, 1), ("a", "b"))


def check(mesh, n, kernel, y, weighted):
    x_hat, weights = jnp.array(rng.integers(3, size=n)), jnp.array(rng.uniform(1, 2, size=n))
    weights = weights if weighted else None
    whole = gram_state(x_hat, y, kernel, num_classes=3, weights=weights)
    parts = sharded_gram_state(mesh, x_hat, y, kernel, num_classes=3, weights=weights)
    np.testing.assert_allclose(parts.sums, whole.sums, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(parts.counts, whole.counts, rtol=1e-5)
    assert parts.sums.sharding.is_fully_replicated
    return parts


y, points = jnp.array(rng.integers(4, size=7)), jnp.array(rng.normal(size=(7, 2)))
exact = check(flat, 7, Delta(4), y, False)
assert exact.sums.dtype == exact.counts.dtype == jnp.int32
check(square, 7, Delta(4), y, True)
check(flat, 7, Linear(), points, False)
check(flat, 1, Delta(4), y[:1], False)
x_hat, mesh = jnp.zeros(7, int), flat
try:
    sharded_gram_state(mesh, x_hat, points, lambda a, b: a @ b, num_classes=3)
except ValueError as error:
    print(error)
print("equal")
"""


@pytest.mark.thorough
def test_uneven_shards_on_two_devices():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    refusal, last = run.stdout.splitlines()
    assert "kernel with features" in refusal
    assert last == "equal"
