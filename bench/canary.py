"""Whether a jaxlib hangs on small systems in LAPACK: ``python -m bench.canary``.

Two batched calls of jaxlib 0.10's ``potrf`` or ``trsm`` in one program wait, on a CPU of two cores,
for the thread pool that they run in. jgram solves small systems by plain operations therefore
(:mod:`jgram.determinant`); a jaxlib on which nothing hangs here does not need that.
"""

import subprocess
import sys
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np

CALLS, RUNS, SECONDS = 400, 3, 30


def hang() -> None:
    """Four batched Cholesky factors in one program, many times."""
    roots = np.random.default_rng(0).normal(size=(4, 256, 16, 16))
    matrices = roots @ roots.swapaxes(2, 3) + np.eye(16)
    factors = jax.jit(lambda each: sum(jnp.linalg.cholesky(one) for one in each))
    for _ in range(CALLS):
        factors(tuple(matrices)).block_until_ready()


def main() -> None:
    """Say in how many runs of :data:`RUNS` the program did not end in :data:`SECONDS`."""
    hung = 0
    for _ in range(RUNS):
        try:
            subprocess.run(
                [sys.executable, "-m", "bench.canary", "hang"], check=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            hung += 1
    print(f"jaxlib {version('jaxlib')}: {hung} of {RUNS} runs hung")


if __name__ == "__main__":
    hang() if sys.argv[1:] else main()
