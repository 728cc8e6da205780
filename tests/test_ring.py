"""All pairs round a ring of eight simulated devices, in a process of their own."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import jgram
from jgram.observed import observe

START = """
import re
import jax
jax.config.update("jax_num_cpu_devices", 8)
import jax.numpy as jnp
import numpy as np
import jgram
from jgram.observed import observe, _pairs_pass
from jgram.ring import flat_mesh, place

COLLECTIVES = ("all-gather", "all-to-all", "reduce-scatter", "all-reduce", "collective-permute")
rng = np.random.default_rng(0)


def devices(count):
    return jax.sharding.Mesh(np.array(jax.devices()[:count]), ("records",))


def collectives(compiled):
    text = compiled.as_text()
    counts = {name: len(re.findall(rf" {name}(?:-start)?[(]", text)) for name in COLLECTIVES}
    return {name: count for name, count in counts.items() if count}


def close(found, expected, tolerance):
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    worst = np.abs(found - expected).max() / np.abs(expected).max()
    assert worst <= tolerance, worst
"""

PASSES = """
def gauss(first, second):
    return jnp.exp(-jnp.sum((first - second) ** 2) / 4)


def check(kernel, count, n, block_size, gram=True):
    y, z, w = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.integers(0, 4, n)
    dense = np.exp(-np.square(y[:, None] - y).sum(axis=2) / 4)
    found = observe(kernel, y, block_size=block_size, mesh=devices(count))
    product, norm = _pairs_pass(found, place(found.mesh, z), place(found.mesh, 1.0 * w))
    close(product, dense @ z, 1e-6)
    close(norm, w @ dense**2 @ w, 1e-6)
    if gram:
        close(found.gram(z), z.T @ dense @ z, 1e-6)


check(jgram.RBF(2.0), 8, 61, 3)  # blocks of unlike size, a last shard that is filled up
check(gauss, 3, 20, 4)  # an odd ring
check(jgram.RBF(2.0), 2, 10, 2, gram=False)  # an odd number of blocks, halved between the two
check(jgram.RBF(2.0), 8, 5, 4, gram=False)  # devices without records

n, used = 131_072, {}
y, z = rng.normal(size=(n, 3)).astype("f"), rng.normal(size=(n, 10)).astype("f")
for count in (2, 8):
    found = observe(jgram.RBF(2.0), y, block_size=256, mesh=devices(count))
    assert len(found.points.addressable_shards[0].data) == n // count
    columns = place(found.mesh, z)
    compiled = _pairs_pass.lower(found, columns, columns[:, 0]).compile()
    memory = compiled.memory_analysis()
    used[count] = sum(
        getattr(memory, f"{part}_size_in_bytes") for part in ("argument", "output", "temp")
    )
assert 3 < used[2] / used[8] <= 4, used  # a quarter of the records, and the tiles
assert collectives(compiled) == {"all-reduce": 1, "collective-permute": 6}
# Tiles: the shard itself; three times a whole guest; half of the last guest, and of its diagonal.
loops = [int(n) for n in re.findall(r'known_trip_count":{"n":"([0-9]+)"', compiled.as_text())]
assert sorted(loops) == [3, 32, 2016, 2080, 4096], loops
assert 8 * (2080 + 3 * 4096 + 2016 + 32) == 512 * 513 // 2
print("equal")
"""

STATISTICS = """
from jgram import contrasts, influences
from jgram.scores import plugin_log_score
from jgram.table_kernel import TableKernel


def frequent(first, second):
    return jnp.exp(-jnp.sum((first - second) ** 2) / 4)


n = 61
truth = rng.integers(3, size=n)
y = rng.normal(size=(n, 3)) + truth[:, None]
w = rng.integers(0, 4, n)
drawn = rng.integers(3, size=(2, n))
reports = np.where(rng.random((2, n)) < np.array([[0.1], [0.4]]), drawn, truth)
again = np.repeat(np.arange(n), w)  # the records themselves, as often as their weights say


@jax.jit
def statistics(observed, reports, weights):
    paid = contrasts.payoffs(observed, reports, num_classes=3, weights=weights)
    errors = jnp.sqrt(jnp.diagonal(paid.covariance))
    return *score(observed, reports, weights), paid.means, errors, paid.seen


@jax.jit
def score(observed, reports, weights):
    how = dict(num_classes=3, weights=weights)
    log_score = plugin_log_score(reports[0], observed, **how)
    return influences.influence(reports[0], observed, **how), log_score


with jax.enable_x64(True):
    for kernel, of in ((TableKernel.of(y), statistics), (frequent, score)):
        many = observe(kernel, y, block_size=4, mesh=jax.make_mesh((2, 4), ("a", "b")))
        influence, *found = of(many, reports, w)
        by_record, *expected = of(observe(kernel, y[again]), reports[:, again], None)
        close(influence[again], by_record, 1e-10)
        for number, right in zip(found, expected, strict=True):
            close(number, right, 1e-11)

    def total(y, mesh):
        bound = observe(frequent, y, block_size=4, mesh=mesh)
        one = lambda report: plugin_log_score(report, bound, num_classes=3)
        return jnp.sum(jax.vmap(one)(reports))

    slope = jax.jit(jax.value_and_grad(total), static_argnums=1)
    for number, right in zip(slope(y, devices(8)), slope(y, None), strict=True):
        close(number, right, 1e-10)

# At the front door.
named = dict(zip("ab", reports))
one, many = (jgram.rank_reports(named, y, mesh=mesh) for mesh in (None, devices(8)))
assert one.observations == many.observations
for first, second in zip(one.pairs, many.pairs, strict=True):
    assert (first.better, first.separated) == (second.better, second.separated)
    close(second.retention_interval, first.retention_interval, 1e-10)
    close(second.p_value, first.p_value, 1e-8)

# Records that lie on their devices stay there.
def means(y, reports):
    observed = observe(jgram.RBF(2.0), y, block_size=4, mesh=devices(8))
    return contrasts.payoffs(observed, reports, num_classes=3).means

n = 64
split, across = (
    jax.sharding.NamedSharding(devices(8), jax.sharding.PartitionSpec(*axes))
    for axes in (("records",), (None, "records"))
)
placed = jax.device_put(np.ones((n, 3), "f"), split), jax.device_put(np.ones((2, n), int), across)
compiled = jax.jit(means).lower(*placed).compile()
assert set(collectives(compiled)) == {"all-reduce", "collective-permute"}

# Other platforms: the same six exchanges, nothing that only a CPU has, no double precision.
for platform in ("cuda", "tpu"):
    exported = jax.export.export(jax.jit(means), platforms=[platform])(*placed)
    program = exported.mlir_module()
    assert exported.nr_devices == 8
    assert program.count("stablehlo.collective_permute") == 6
    calls = set(re.findall(r"custom_call @([\\w$]+)", program))
    assert "f64" not in program
    assert not any("callback" in call or "cpu" in call or "lapack" in call for call in calls), calls
print("equal")
"""

SWEEPS = """
from jgram.simulate import sweep, sweep_records, sweeps
from jgram.simulate.policies import mix, uniform

mesh, key = devices(8), jax.random.key(0)
transitions = jnp.stack([mix(uniform(2), p) for p in (0.0, 0.5, 0.9)])
truth, named = jnp.array([[600, 20], [10, 2000]]), {"log": sweeps.table_log_score}
one = sweep(key, truth, transitions, named, trials=13)
many = sweep(key, truth, transitions, named, trials=13, memory=2.0**10, mesh=mesh)  # 3 calls
assert one.hamming.dtype == many.hamming.dtype
np.testing.assert_array_equal(one.hamming, many.hamming)
close(many.scores["log"], one.scores["log"], 1e-12)
close(many.l2, one.l2, 1e-12)
x = rng.integers(2, size=40)
both = [
    sweep_records(key, x, 1.0 * x, transitions, jgram.RBF(1.0), trials=5, mesh=mesh)
    for mesh in (None, mesh)
]
np.testing.assert_array_equal(both[0].hamming, both[1].hamming)
close(both[1].scores["log_score"], both[0].scores["log_score"], 1e-12)
with jax.enable_x64(True):
    compiled = sweeps._chunk.lower(
        (key, truth, transitions),
        np.zeros(16, int),
        np.arange(16),
        scores=tuple(named.items()),
        mesh=flat_mesh(mesh),
    ).compile()
assert "num_partitions=8" in compiled.as_text()
assert not collectives(compiled)
print("equal")
"""

SHARDS = """
from jgram.gram_matrix import gram_state, sharded_gram_state

flat, square = devices(2), jax.make_mesh((2, 4), ("a", "b"))


def check(mesh, n, kernel, y, weighted):
    x_hat, weights = jnp.array(rng.integers(3, size=n)), jnp.array(rng.uniform(1, 2, size=n))
    weights = weights if weighted else None
    whole = gram_state(x_hat, y, kernel, num_classes=3, weights=weights)
    parts = sharded_gram_state(mesh, x_hat, y, kernel, num_classes=3, weights=weights)
    close(parts.sums, whole.sums, 1e-5)
    close(parts.counts, whole.counts, 1e-5)
    assert parts.sums.sharding.is_fully_replicated
    return parts


y, points = jnp.array(rng.integers(4, size=7)), jnp.array(rng.normal(size=(7, 2)))
exact = check(flat, 7, jgram.Delta(4), y, False)  # shards of unlike size
assert exact.sums.dtype == exact.counts.dtype == jnp.int32
check(square, 7, jgram.Delta(4), y, True)
check(flat, 7, jgram.linear, points, False)
check(flat, 1, jgram.Delta(4), y[:1], False)
try:
    sharded_gram_state(flat, jnp.zeros(7, int), points, lambda a, b: a @ b, num_classes=3)
except ValueError as error:
    assert "kernel with features" in str(error)
    print("equal")
"""


PROGRAMS = {"passes": PASSES, "statistics": STATISTICS, "sweeps": SWEEPS, "shards": SHARDS}


@pytest.mark.thorough
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_eight_devices_give_what_one_gives(program):
    run = subprocess.run(
        [sys.executable, "-c", START + program], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "equal"


def test_explicit_axes_are_refused():
    mesh = jax.make_mesh((1,), ("records",))
    rows = jax.NamedSharding(mesh, jax.P("records"))
    with pytest.raises(ValueError, match="mesh of automatic axes, got explicit ones: place"):
        observe(jgram.RBF(1.0), jax.device_put(np.ones((4, 2)), rows), mesh=mesh)
