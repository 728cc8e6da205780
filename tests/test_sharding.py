"""Uneven shards over two devices give the state of the whole."""

import subprocess
import sys

PROGRAM = """
import jax
jax.config.update("jax_num_cpu_devices", 2)
import jax.numpy as jnp
import numpy as np
from jgram.gram import gram_state
from jgram.kernels import Delta, Linear
from jgram.sharding import sharded_gram_state

assert len(jax.devices()) == 2
rng = np.random.default_rng(0)
for n in (7, 8, 1):
    x_hat, y = jnp.array(rng.integers(3, size=n)), jnp.array(rng.integers(4, size=n))
    points, weights = jnp.array(rng.normal(size=(n, 2))), jnp.array(rng.uniform(1, 2, size=n))
    for mesh in (jax.make_mesh((2,), ("records",)), jax.make_mesh((2, 1), ("a", "b"))):
        for kernel, data, w in (
            (Delta(4), y, None), (Delta(4), y, weights), (Linear(), points, None),
            (Linear(), points, weights),
        ):
            whole = gram_state(x_hat, data, kernel, num_classes=3, weights=w)
            parts = sharded_gram_state(mesh, x_hat, data, kernel, num_classes=3, weights=w)
            np.testing.assert_allclose(parts.sums, whole.sums, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(parts.counts, whole.counts, rtol=1e-5)
            assert parts.sums.sharding.is_fully_replicated
    exact = sharded_gram_state(mesh, x_hat, y, Delta(4), num_classes=3)
    assert exact.sums.dtype == exact.counts.dtype == jnp.int32
try:
    sharded_gram_state(mesh, x_hat, points, lambda a, b: a @ b, num_classes=3)
except ValueError as error:
    print(error)
print("equal")
"""


def test_uneven_shards_on_two_devices():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    refusal, last = run.stdout.splitlines()
    assert "kernel with features" in refusal
    assert last == "equal"
