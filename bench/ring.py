"""All pairs of records round a ring of simulated devices: ``python -m bench.ring``.

What one device has to do and to hold, read from the compiled program: floating-point operations
(those of a tile times the tiles: ``cost_analysis`` counts the body of a loop once) and bytes. The
simulated devices share this machine's cores, so that seconds say what the ring costs in all, and
nothing of its speed on real devices.
"""

import time
from typing import Any

import jax
import numpy as np

import jgram
from bench.timing import report
from jgram.observed import _pairs_pass, observe
from jgram.ring import place

RECORDS, COORDINATES, COLUMNS, BLOCK = 16_384, 8, 10, 512
COUNTS = (1, 2, 4, 8)


def compiled(count: int, records: int = RECORDS) -> tuple[Any, Any]:
    """The ring of ``count`` devices, compiled, and its arguments."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(records, COORDINATES)).astype(np.float32)
    z = np.eye(COLUMNS, dtype=np.float32)[rng.integers(COLUMNS, size=records)]
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:count]), ("records",))
    found = observe(jgram.RBF(2.0), y, block_size=BLOCK, mesh=mesh)
    columns = place(found.mesh, z)
    weights = place(found.mesh, np.ones(records, np.float32))
    arguments = found, columns, weights
    return _pairs_pass.lower(*arguments).compile(), arguments


def tiles(count: int) -> int:
    """How many tiles one device evaluates; ``tests/test_ring.py`` finds them in the program."""
    blocks = RECORDS // count // BLOCK
    own, half = blocks * (blocks + 1) // 2, blocks * (blocks - 1) // 2 + -(-blocks // 2)
    return own + (count - 1) // 2 * blocks**2 + (0 if count % 2 else half)


def main() -> None:
    """Measure, check, print and write ``results/ring.json``."""
    jax.config.update("jax_num_cpu_devices", max(COUNTS))
    one_tile = compiled(1, BLOCK)[0].cost_analysis()["flops"]
    extra: dict[str, float] = {}
    expected = None
    for count in COUNTS:
        program, arguments = compiled(count)
        memory = program.memory_analysis()
        product = jax.block_until_ready(program(*arguments).product)
        start = time.process_time()
        jax.block_until_ready(program(*arguments))
        used = time.process_time() - start
        expected = np.asarray(product) if expected is None else expected
        np.testing.assert_allclose(product, expected, rtol=2e-6)
        held = memory.argument_size_in_bytes + memory.output_size_in_bytes
        sent = 4 * (count // 2) * (COORDINATES + 2 * COLUMNS + 1) * (RECORDS // count)
        each = {
            "gigaflops of each": tiles(count) * one_tile / 1e9,
            "megabytes each holds of records, columns, products": held / 1e6,
            "megabytes of temporaries of each": memory.temp_size_in_bytes / 1e6,
            "megabytes each sends": sent / 1e6,
            "processor seconds of all": used,
        }
        extra |= {f"n={RECORDS:,}, {count} devices: {what}": each[what] for what in each}
    report("ring", [], extra)


if __name__ == "__main__":
    main()
