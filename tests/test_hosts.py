"""Two processes over gloo: what they compute together, and how the end of one ends the other."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.thorough

START = """
import sys
import jax
from jgram.hosts import joined
port, process, heartbeat = sys.argv[1:]
with joined(f"localhost:{port}", 2, int(process), heartbeat=int(heartbeat)):
"""

EXACT = """
    import numpy as np
    from jgram import simulate
    from jgram.kernels import RBF
    from jgram.observed import observe
    from jgram.scores import plugin_log_score

    assert jax.process_count() == 2 and jax.local_device_count() == 2
    mesh = jax.make_mesh((jax.device_count(),), ("records",))
    score = jax.jit(lambda bound, labels: plugin_log_score(labels, bound, num_classes=3))
    rng = np.random.default_rng(0)
    for n in (64, 61):  # records that divide evenly lie split, others on every process
        reports = rng.integers(3, size=n)
        y = rng.normal(size=(n, 3)) + reports[:, None]
        many, one = observe(RBF(2.0), y, block_size=5, mesh=mesh), observe(RBF(2.0), y)
        assert many.points.is_fully_addressable == (n == 61)
        np.testing.assert_allclose(score(many, reports), score(one, reports), rtol=1e-6)
        if n == 64:  # every process may hold its own records alone
            mine = y[: n // 2] if process == "0" else y[n // 2 :]
            y = jax.make_array_from_process_local_data(many.points.sharding, mine)
            many = observe(RBF(2.0), y, block_size=5, mesh=mesh)
            np.testing.assert_allclose(score(many, reports), score(one, reports), rtol=1e-6)
    transitions = np.full((2, 2), 0.5)
    found = [
        simulate.sweep(jax.random.key(0), np.full((2, 2), 9), transitions, {}, trials=7, mesh=mesh)
        for mesh in (None, mesh)
    ]
    np.testing.assert_array_equal(found[0].hamming, found[1].hamming)
print("equal")
"""

TOGETHER = """
    from functools import partial
    import time
    from jax.sharding import PartitionSpec as P
    mesh = jax.make_mesh((2,), ("records",))
    add = partial(jax.lax.psum, axis_name="records")
    add = jax.jit(jax.shard_map(add, mesh=mesh, in_specs=P(), out_specs=P()))
    while True:
        add(1.0).block_until_ready()
        print("together", flush=True)
        time.sleep(0.05)
"""

ALONE = """
    import time
    print("together", flush=True)
    time.sleep(100)
"""

WRONG = """
    print("together", flush=True)
    if process == "1":
        raise ValueError("expected something else")
    sys.stdin.read()
"""


def start(program, *, devices=1, heartbeat=30):
    """Two processes that run the program together."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    flags = f"--xla_force_host_platform_device_count={devices}"
    return [
        subprocess.Popen(
            [sys.executable, "-c", START + program, port, process, str(heartbeat)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"XLA_FLAGS": flags},
        )
        for process in ("0", "1")
    ]


@pytest.fixture
def pair(request):
    """Two processes that have met."""
    both = start(**request.param)
    for each in both:
        assert any("together" in line for line in each.stdout)
    yield both
    for each in both:
        each.kill()
        each.communicate()


def test_two_processes_give_what_one_gives():
    for each in start(EXACT, devices=2):
        out, err = each.communicate(timeout=120)
        assert each.returncode == 0, err
        assert out.splitlines()[-1] == "equal"


@pytest.mark.parametrize(
    ("pair", "victim", "ending"),
    [
        ({"program": TOGETHER}, 1, signal.SIGKILL),
        ({"program": TOGETHER}, 0, signal.SIGKILL),
        ({"program": TOGETHER}, 1, signal.SIGTERM),
        ({"program": TOGETHER, "heartbeat": 3}, 1, signal.SIGSTOP),
        ({"program": TOGETHER, "heartbeat": 3}, 0, signal.SIGSTOP),
        ({"program": ALONE, "heartbeat": 3}, 1, signal.SIGKILL),
    ],
    indirect=["pair"],
    ids=["killed", "coordinator", "terminated", "frozen", "frozen-coordinator", "apart"],
)
def test_the_end_of_one_ends_the_other(pair, victim, ending):
    pair[victim].send_signal(ending)
    _, words = pair[1 - victim].communicate(timeout=60)
    assert pair[1 - victim].returncode not in (0, None)
    assert re.search("ends here, and the others|another task died", words)  # ours, or JAX's own
    if ending != signal.SIGSTOP:
        assert pair[victim].wait(60) == -ending


@pytest.mark.parametrize("pair", [{"program": WRONG, "heartbeat": 3}], indirect=True)
def test_an_error_in_one_ends_both(pair):
    _, words = pair[1].communicate(timeout=60)
    assert pair[1].returncode == 1
    assert "expected something else" in words
    assert "process 1 of 2 ends here" in words
    assert pair[0].wait(60) != 0


def test_importing_changes_no_setting():
    program = "import jax, jgram.hosts; print(jax.config.jax_enable_preemption_service)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "True"
