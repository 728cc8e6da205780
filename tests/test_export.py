"""What jgram compiles, lowered for CUDA and TPU without one: nothing in it needs a CPU.

The public functions that users compile are listed in ``PUBLIC``. What the eager front doors
compile is caught where they call it, with the arguments that they give it. Both are checked against
the package: a public function without a line fails, and so does a compiled one that no front door
calls. Lowered for the CPU, none of it holds a LAPACK call that may hang (:mod:`jgram.determinant`).
"""

import importlib
import inspect
import pkgutil
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jgram
from jgram import (
    annotators,
    approximation,
    attack,
    contrasts,
    dependence,
    determinant,
    evidence,
    gram_matrix,
    influences,
    kernels,
    scores,
    sequential,
    simulate,
    streams,
)
from jgram.annotators import posterior
from jgram.arrays import float64
from jgram.observed import block, observe
from jgram.ring import CUDA_TILE, TILE
from jgram.simclr import augment, encoder, train
from jgram.simulate import policies, sampling
from jgram.table_kernel import TableKernel
from tests.components import KERNELS, NUMBERS, OUTCOMES, X_HAT, D, squared_features

PLATFORMS = ("cpu", "cuda", "tpu")
HANGING = r"lapack_.(potrf|trsm|getrf)"
KEY = jax.random.key(0)
REPORTS = np.stack([X_HAT, np.roll(X_HAT, 1), OUTCOMES % D])
TABLE = jnp.asarray(np.random.default_rng(0).integers(1, 9, (4, 3)), jnp.float32)
SQUARE = jnp.eye(D) + 0.1
IMAGES = jnp.ones((2, 32, 32, 3))
TINY = encoder.Architecture(widths=(4, 8), depth=1, projection=3)
BOUND = {
    "delta": observe(kernels.Delta(5), OUTCOMES),
    "linear": observe(kernels.Linear(squared_features), NUMBERS),
    "random features": observe(KERNELS["random_features"][0], NUMBERS),
    "rbf": observe(kernels.RBF(3.0), NUMBERS),
    "four bandwidths": observe(kernels.MultiscaleRBF(3.0), NUMBERS),
    "table": observe(TableKernel.of(NUMBERS.astype(float)), NUMBERS),
    "function": observe(KERNELS["function"][0], NUMBERS),
}
RBF = BOUND["rbf"]


CLASSES = {"num_classes": D}
STATE = gram_matrix.gram_state(X_HAT, NUMBERS, kernels.linear, **CLASSES)
LINES = influences.linearise(X_HAT, RBF, **CLASSES)


def case(function, *arguments, first=(), call=None, **static):
    """The name of a function that users compile, a call of it, and the arrays that it is given."""
    inner = inspect.unwrap(function)
    name = f"{inner.__module__.removeprefix('jgram.')}.{inner.__name__}"
    return name, (call or partial(function, *first, **static), *arguments)


MESH = jax.make_mesh((1,), ("records",))
SCORED = {"log": simulate.table_log_score}
PUBLIC = dict([
    case(contrasts.products, RBF, REPORTS, **CLASSES),
    case(contrasts.payoffs, RBF, REPORTS, **CLASSES),
    case(contrasts.pair_payoffs, RBF, REPORTS, complete=True, **CLASSES),
    case(contrasts.noise_tests, RBF, REPORTS, **CLASSES),
    case(block, RBF, jnp.arange(3), jnp.arange(2)),
    case(dependence.ky_fan_sum, TABLE, k=2),
    case(dependence.maximal_correlation, TABLE),
    case(dependence.mutual_information, TABLE),
    case(dependence.top_k_volume, TABLE, k=2),
    case(determinant.determinant, SQUARE[None], call=jax.vmap(determinant.determinant)),
    case(determinant.eliminate_gram, SQUARE),
    case(determinant.eliminate_sums, TABLE.T),
    case(determinant.inverse_cholesky, SQUARE[None], call=jax.vmap(determinant.inverse_cholesky)),
    case(determinant.solve, SQUARE[None], SQUARE[None], call=jax.vmap(determinant.solve)),
    case(determinant.log_determinant_of_sums, TABLE.T),
    case(determinant.log_top_determinant, SQUARE, rank=2),
    case(determinant.log_top_determinant_of_sums, TABLE.T, rank=2),
    case(gram_matrix.gram, X_HAT, RBF, **CLASSES),
    case(gram_matrix.gram_state, X_HAT, NUMBERS, kernel=kernels.linear, **CLASSES),
    case(gram_matrix.joint_table, X_HAT, OUTCOMES, num_outcomes=5, **CLASSES),
    case(gram_matrix.merge, STATE, STATE),
    case(gram_matrix.sharded_gram_state, X_HAT, NUMBERS, first=[MESH], kernel=kernels.linear,
         **CLASSES),
    case(gram_matrix.update, STATE, X_HAT, NUMBERS, kernel=kernels.linear),
    case(influences.contributions, LINES, X_HAT),
    case(influences.influence, X_HAT, RBF, **CLASSES),
    case(influences.leave_one_out, LINES, X_HAT),
    case(influences.linearise, X_HAT, RBF, **CLASSES),
    case(influences.relabelling_gains, LINES, X_HAT),
    case(kernels.median_bandwidth, NUMBERS),
    case(scores.plugin_log_score, X_HAT, RBF, **CLASSES),
    case(scores.plugin_score, X_HAT, RBF, **CLASSES),
    case(augment.augment, KEY, IMAGES),
    case(augment.normalize, IMAGES),
    case(encoder.convolve, IMAGES, jnp.ones((3, 3, 3, 4))),
    case(encoder.max_pool, IMAGES),
    case(train.nt_xent, NUMBERS, NUMBERS),
    case(simulate.random_experiment, KEY, call=lambda key: simulate.random_experiment(key, D)),
    case(simulate.truth, KEY, SQUARE, call=lambda key, p: simulate.truth(key, 9, p)),
    case(simulate.truth_counts, KEY, SQUARE, call=lambda key, p: simulate.truth_counts(key, 9, p)),
    case(policies.corrupt, KEY, X_HAT, SQUARE),
    case(policies.corrupt_counts, KEY, TABLE[:D].astype(int), SQUARE),
    case(policies.mix, SQUARE, 0.5),
    case(policies.normal, 0.5, first=[D]),
    case(policies.row_similar, SQUARE),
    case(sampling.multinomial, KEY, jnp.arange(4), SQUARE[0]),
    case(simulate.table_log_score, TABLE),
    case(simulate.trial_key, KEY, 1, 2),
    case(simulate.trial, KEY, TABLE[:3].astype(int), SQUARE,
         call=lambda key, counts, t: simulate.trial(key, counts, t, SCORED)),
])  # fmt: skip
for name, bound in BOUND.items():
    PUBLIC[f"{name}: pass"] = (lambda bound, z: bound.kernel_pass(z), bound, NUMBERS)
    if name != "delta":
        slope = jax.grad(lambda y, kernel: scores.plugin_log_score(X_HAT, y, kernel, **CLASSES))
        PUBLIC[f"{name}: gradient"] = (slope, NUMBERS, bound.kernel)

# Modules and functions that run eagerly, or compile nothing but the above.
EAGER = {
    "annotators", "arrays", "assumptions", "binding", "check", "comparisons", "drift",
    "evidence", "findings", "gold", "noise", "payments", "plan", "ranks", "report",
    "sequential", "stratified",
    "table_kernel", "uncertainty",
    "attack.ascend_policy", "attack.ascend_reports", "attack.flip_greedily",
    "attack.perturb_observations", "contrasts.by_records",
    "contrasts.payoffs_of_pairs",  # a front door
    "determinant.default_tolerance", "gram_matrix.init", "kernels.describe", "kernels.resolve",
    "kernels.takes", "observed.observe", "simclr.train.embed", "simclr.train.encode",
    "simclr.train.encode_path", "simclr.train.initialize", "simclr.train.restore",
    "simclr.train.train",
    "simulate.policies.asymmetric_neighbour", "simulate.policies.group_up_down",
    "simulate.policies.merge_classes", "simulate.policies.mixed", "simulate.policies.uniform",
    "simulate.sweeps.sweep", "simulate.sweeps.sweep_records",
    "hosts", "ring",  # tests/test_ring.py exports the ring for eight devices
    "contrasts.payoffs_alone", "contrasts.scores", "simclr.train.embed_path",
    "simclr.train.train_path", "approximation", "streams", "kernels.mixture_features",
}  # fmt: skip


def modules():
    """Those of the package that use JAX themselves; the command line does not."""
    found = pkgutil.walk_packages(jgram.__path__, "jgram.")
    names = [m.name for m in found if not m.name.startswith(("jgram.cli", "jgram.__main__"))]
    return [m for m in map(importlib.import_module, names) if {"jax", "jnp"} & vars(m).keys()]


def lower(platform, function, *arguments, **static):
    """The program that a platform would get, as text; JAX refuses what it cannot promise there."""
    text = jax.export.export(function, platforms=[platform])(*arguments, **static).mlir_module()
    for line in text.splitlines():
        if found := re.search(r"custom_call @(\w+)", line):
            wrong = HANGING if platform == "cpu" else "callback|^lapack|^cpu|^ducc"
            assert not re.search(wrong, found.group(1)), line
            assert platform != "tpu" or "f64" not in line, line
    return text


@pytest.mark.thorough
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", PUBLIC)
def test_public_functions(name, platform):
    function, *arguments = PUBLIC[name]
    lower(platform, jax.jit(function), *arguments)


def test_lapack_calls_that_may_hang_are_seen():
    systems = jnp.broadcast_to(SQUARE, (4, D, D))
    for function in (jnp.linalg.cholesky, jnp.linalg.inv):
        with pytest.raises(AssertionError, match="lapack"):
            lower("cpu", jax.jit(function), systems)


COMPILED = type(jax.jit(jnp.sin))


def public_functions(module):
    """Those that a module defines, by their names."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if (inspect.isfunction(value) or isinstance(value, COMPILED)) and (
            value.__module__ == module.__name__
        ):
            yield f"{module.__name__.removeprefix('jgram.')}.{name}"


def test_every_public_function_is_listed():
    listed = EAGER | set(PUBLIC)
    names = [name for module in modules() for name in public_functions(module)]
    assert not [n for n in names if not {n, n.partition(".")[0]} & listed]  # in PUBLIC or EAGER


def front_doors(directory):
    """Calls that compile, between them, every compiled function of the package."""
    rng = np.random.default_rng(0)
    reports = {"ann": X_HAT, "bob": REPORTS[1], "cat": [None, *X_HAT[1:]]}
    jgram.rank_reports(reports, NUMBERS, kernels.RBF(3.0), missing="keep")
    jgram.rank_reports(reports, NUMBERS, kernels.RBF(3.0), groups=np.arange(len(X_HAT)) // 4)
    jgram.label_issues(X_HAT, NUMBERS)
    evidence.by_others(REPORTS, D)
    start = sequential.start(NUMBERS, num_classes=D)
    sequential.update(start, REPORTS[:2], NUMBERS)
    ring = observe(kernels.RBF(3.0), NUMBERS, mesh=jax.make_mesh((1,), ("records",)))
    ring.gram(NUMBERS), ring.product(NUMBERS)
    jgram.observed.block(ring, np.arange(3), np.arange(2))
    drawn = approximation.approximate(TableKernel.of(NUMBERS.astype(float)), NUMBERS)
    approximation.leave_blocks_out(drawn, REPORTS, **CLASSES)
    drawn.product(NUMBERS), drawn.gram(NUMBERS), drawn.squares
    used = streams.Records(np.arange(len(X_HAT)), np.asarray(NUMBERS), np.ones(len(X_HAT)))
    drawn = kernels.RandomFeatures.draw(KEY, 64, dimension=NUMBERS.shape[1], bandwidth=1.0)
    streams.Stream.of(drawn, REPORTS, D, used, lambda work: [work([used])]).judge()
    jgram.noise_floor(KEY, X_HAT, NUMBERS, kernels.RBF(3.0), draws=2)
    jgram.noise_floor(KEY, X_HAT, OUTCOMES, "delta", draws=2)
    jgram.bootstrap(KEY, X_HAT, NUMBERS, kernels.RBF(3.0), draws=2)
    answers = annotators.answers_from_matrix(rng.integers(0, 3, (30, 4)))
    annotators.rank_annotators(answers)
    posterior.tempered(np.ones((2, 3)) / 3, np.ones(2))
    found = contrasts.products(RBF, REPORTS, **CLASSES)
    contrasts.payoffs_of_pairs(found, jnp.array([[0, 1]]))
    contrasts.scores(found, jnp.array([0]))
    transitions = jnp.stack([policies.mix(policies.uniform(D), p) for p in (0.0, 0.5)])
    counts = jnp.full((D, 4), 900)
    simulate.sweep(KEY, counts, transitions, {"log": simulate.table_log_score}, trials=2)
    simulate.sweep_records(KEY, X_HAT, NUMBERS, transitions, kernels.RBF(3.0), trials=2)
    attack.ascend_reports(KEY[None], X_HAT, NUMBERS, kernels.RBF(3.0), steps=2)
    attack.flip_greedily(X_HAT, NUMBERS, kernels.RBF(3.0), flips=1)
    attack.perturb_observations(X_HAT, NUMBERS, kernels.RBF(3.0), radius=0.1, steps=2)
    attack.ascend_policy(KEY, jnp.ones(D) / D, steps=2, restarts=2)
    images = rng.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    jax.make_jaxpr(lambda y: kernels.median_bandwidth(y))(NUMBERS)
    state = train.train(KEY, images, directory, architecture=TINY, epochs=1, batch_size=2)
    train.embed(state, images, architecture=TINY)


# On a TPU the front doors compute in float64 on the host, but for what draws counts.
DOUBLE_ON_TPU = ("_chunk", "_draw_all_but_last")


@pytest.mark.thorough
def test_what_the_front_doors_compile(monkeypatch, tmp_path):
    called, caught = set(), set()

    def catching(name, function):
        def call(*arguments, **settings):
            called.add(name)
            if not kernels.is_concrete(arguments, settings):
                return function(*arguments, **settings)
            if name not in caught:
                caught.add(name)
                on_host = jax.config.jax_enable_x64 and not name.endswith(DOUBLE_ON_TPU)
                for platform in PLATFORMS[: 2 if on_host else 3]:
                    lower(platform, function, *arguments, **settings)
            shapes = function.eval_shape(*arguments, **settings)  # instead of compiling it here
            return jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), shapes)

        return call

    compiled = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, COMPILED):
                path = f"{module.__name__}.{name}"
                compiled.setdefault(id(value), (path, catching(path, value)))
                monkeypatch.setattr(module, name, compiled[id(value)][1])
    means = tuple(compiled[id(one)][1] for one in contrasts.OF_MEANS)
    named = {name: compiled[id(one)][1] for name, one in streams._FUNCTIONS.items()}
    monkeypatch.setattr(contrasts, "OF_MEANS", means)
    monkeypatch.setattr(streams, "_FUNCTIONS", named)
    with np.errstate(all="ignore"):
        front_doors(tmp_path)
    assert called == {path for path, _ in compiled.values()}


def test_a_tpu_has_float64_on_the_host(monkeypatch):
    with float64():
        assert jax.config.jax_default_device is None
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with float64():
        assert jax.config.jax_default_device == jax.devices("cpu")[0]


def test_tiles_by_platform():
    n = 2 * CUDA_TILE
    bound = observe(kernels.RBF(1.0), jnp.zeros((n, 2)))
    for function in (lambda b, z: b.gram(z), lambda b, z: b.product(z)):
        run = jax.jit(function)
        for platform, size in (("cuda", CUDA_TILE), ("tpu", TILE), ("cpu", TILE)):
            tiles = set(
                re.findall(r"tensor<(\d+)x\1xf32>", lower(platform, run, bound, jnp.ones((n, 3))))
            )
            assert tiles - {"3"} == {str(size)}


def test_convolutions_are_native_off_the_cpu():
    images, kernel = jnp.ones((2, 8, 8, 3)), jnp.ones((3, 3, 3, 4))
    for platform in ("cuda", "tpu", "cpu"):
        text = lower(platform, jax.jit(encoder.convolve), images, kernel)
        assert ("stablehlo.convolution" in text) == (platform != "cpu")


def test_a_sampler_that_needs_no_more_range_than_float32_has():
    for platform, limit in (("tpu", "3.000000e+01"), ("cuda", "4.000000e+02")):
        text = lower(platform, jax.jit(sampling.multinomial), KEY, jnp.arange(3), jnp.ones(2) / 2)
        limits = set(re.findall(r"dense<([34]\.0+e\+0[12])> : tensor<f64>", text))
        assert limits == {limit}
