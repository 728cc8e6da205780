"""Many hosts: one program started on each, that ends on all when it ends on one.

:func:`joined` joins this process to the others of a run (``jax.distributed``); inside it
``jax.devices()`` are those of all processes, and a mesh of them serves as one of one host does.
Every process runs the same program on the same arguments.

A process whose peer was killed gets an error at their next exchange, and would then wait for the
dead one in JAX's shutdown; here it says what happened and leaves at once, so that the others see
the same. A frozen process is given up after ``heartbeat`` seconds. SIGTERM, which JAX takes as a
notice of preemption and then ignores, ends the process.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import jax

__all__ = ["joined"]


@contextmanager
def joined(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    *,
    heartbeat: int = 30,
) -> Iterator[None]:
    """Run the block as one process of several, before any other use of JAX.

    On Cloud TPU, under Slurm and under Open MPI ``jax.distributed`` finds the arguments itself.

    Args:
        coordinator: ``"host:port"`` of process 0, the same for all.
        processes: How many processes there are.
        process: The number of this one, from 0.
        heartbeat: Seconds without a sign of life after which a process counts as dead.

    Raises:
        RuntimeError: JAX was used before. What the block raises is not passed on: the process
            prints it and leaves with status 1, which ends the others. Where the others do not come
            within five minutes, JAX ends the process.

    Example:
        >>> with joined("localhost:1234", processes=2, process=0):  # doctest: +SKIP
        ...     mesh = jax.make_mesh((jax.device_count(),), ("records",))
    """
    notice = jax.config.values["jax_enable_preemption_service"]
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator, processes, process, heartbeat_timeout_seconds=heartbeat
        )
    finally:
        jax.config.update("jax_enable_preemption_service", notice)
    here = f"process {jax.process_index()} of {jax.process_count()}"  # all meet here
    try:
        yield
        jax.effects_barrier()
    except BaseException:
        traceback.print_exc()
        said = f"jgram: {here} ends here, and the others with it: start all of them again"
        print(said, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # a regular exit would wait for the dead
    jax.distributed.shutdown()
