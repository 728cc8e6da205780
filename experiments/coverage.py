"""Coverage of the 95% intervals: of one log score and of the comparison of two reports.

Records are drawn from a known experiment and known policies, so that the true log scores are known.
Delta kernel: a random experiment with half its weight on the diagonal. RBF kernel: unit-variance
Gaussians around class centres in the plane, for which the population Gram matrix has a closed
form. A setting "too near the floor" is run as well, to see that it is said beforehand: there the
reports are near singular, which is what jgram's findings warn of.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import track

from experiments.verdicts import verdict
from jgram.comparisons import normal_quantile
from jgram.influences import contributions, leave_one_out, linearise
from jgram.kernels import RBF, Delta
from jgram.simulate import policies
from jgram.uncertainty import NEAR_SINGULAR

PAIRS = {
    "truth, uniform .3": lambda d, experiment: (jnp.eye(d), policies.mix(policies.uniform(d), 0.3)),
    "uniform .2, neighbour .3": lambda d, experiment: (
        policies.mix(policies.uniform(d), 0.2),
        policies.mix(policies.asymmetric_neighbour(d), 0.3),
    ),
    "group .3, row-similar .3": lambda d, experiment: (
        policies.mix(policies.group_up_down(d), 0.3),
        policies.mix(policies.row_similar(experiment), 0.3),
    ),
}
BANDWIDTH = 2.0


def centres(d: int) -> np.ndarray:
    """Class centres on a circle, neighbours two standard deviations apart."""
    angles = 2 * np.pi * np.arange(d) / d
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.sin(np.pi / d)


def population_gram(d: int, kernel: str, experiment: np.ndarray) -> np.ndarray:
    """``E K(y, y')`` for every pair of true classes."""
    if kernel == "delta":
        return experiment.T @ experiment
    points = centres(d)
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    wide = BANDWIDTH**2 + 4.0  # the difference of two unit normals has variance 2 a coordinate
    return BANDWIDTH**2 / wide * np.exp(-squares / wide)


@partial(jax.jit, static_argnames=("n", "d", "kernel"))
def repetition(key, transitions, experiment, n: int, d: int, kernel: str):
    """Log scores, standard errors, biases of two reports, and the paired standard error."""
    x_key, y_key, *report_keys = jax.random.split(key, 4)
    x = jax.random.randint(x_key, (n,), 0, d)
    if kernel == "delta":
        y = jax.random.categorical(y_key, jnp.log(experiment.T)[x])
        chosen = Delta(d)
    else:
        y = jnp.asarray(centres(d))[x] + jax.random.normal(y_key, (n, 2))
        chosen = RBF(BANDWIDTH)
    reports = jnp.stack(
        [policies.corrupt(k, x, t) for k, t in zip(report_keys, transitions, strict=True)]
    )

    def one(x_hat):
        found = linearise(x_hat, y, chosen, num_classes=d)
        bias = (n - 1) * jnp.mean(leave_one_out(found, x_hat))
        return found.log_score, contributions(found, x_hat), bias

    scores, parts, biases = jax.vmap(one)(reports)
    errors = jnp.std(parts, axis=1, ddof=1) / jnp.sqrt(n)
    paired = jnp.std(parts[0] - parts[1], ddof=1) / jnp.sqrt(n)
    return scores, errors, biases, paired


def cell(key, d: int, n: int, kernel: str, pair: str, diagonal: float, repetitions: int) -> dict:
    """One row of the table."""
    rng = np.random.default_rng(d)  # one experiment for every n and pair
    experiment = diagonal * np.eye(d) + (1 - diagonal) * rng.dirichlet(np.ones(d), size=d).T
    gram = population_gram(d, kernel, experiment)
    transitions = PAIRS[pair](d, jnp.asarray(experiment))
    truths = [
        np.linalg.slogdet(q.T @ gram @ q)[1] for q in (np.asarray(t) / d for t in transitions)
    ]
    run_one = partial(
        repetition,
        transitions=jnp.stack(transitions),
        experiment=jnp.asarray(experiment),
        n=n,
        d=d,
        kernel=kernel,
    )
    found = [jax.device_get(run_one(k)) for k in jax.random.split(key, repetitions)]
    scores, errors, biases, paired = (np.array(part) for part in zip(*found, strict=True))
    z = normal_quantile(0.95)
    ratios, truth = scores[:, 0] - scores[:, 1], truths[0] - truths[1]
    return {
        "d": d,
        "n": n,
        "kernel": kernel,
        "pair": pair,
        "diagonal": diagonal,
        "repetitions": repetitions,
        "coverage_score": float(np.mean(np.abs(scores - truths) <= z * errors)),
        "coverage_ratio": float(np.mean(np.abs(ratios - truth) <= z * paired)),
        "standard_error": float(errors.mean()),
        "true_spread": float(np.sqrt((scores.var(axis=0, ddof=1)).mean())),
        "paired_standard_error": float(paired.mean()),
        "true_paired_spread": float(ratios.std(ddof=1)),
        "bias": float((scores - truths).mean()),
        "estimated_bias": float(np.median(biases)),
        "warned": float(np.mean(errors >= NEAR_SINGULAR * 2 * d)),
    }


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Coverage by kernel, number of classes, records and pair of policies."""
    sizes = (500,) if smoke else (500, 1000, 2000, 4000)
    classes = (4,) if smoke else (4, 5)
    settings = [
        (d, n, kernel, pair, 0.5)
        for kernel in ("delta", "rbf")
        for d in classes
        for n in sizes
        for pair in (list(PAIRS)[:1] if smoke else PAIRS)
    ]
    settings += [(classes[-1], sizes[0], "delta", "truth, uniform .3", 0.1)]
    rows = []
    with jax.enable_x64(True):
        for number, setting in enumerate(track(settings, "coverage")):
            d, n, kernel, pair, diagonal = setting
            repetitions = 20 if smoke else (2000 if kernel == "delta" else 400)
            if n > 1000 and kernel == "rbf":
                repetitions //= 2
            key = jax.random.fold_in(jax.random.key(seed), number)
            rows.append(cell(key, d, n, kernel, pair, diagonal, repetitions))
    return {"rows": rows}


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The range of coverage, and what happens too near the floor."""
    table = []
    for kernel in ("delta", "rbf"):
        rows = [r for r in results["rows"] if r["kernel"] == kernel and r["diagonal"] == 0.5]
        for what, name in (("coverage_score", "log score"), ("coverage_ratio", "log ratio")):
            values = [row[what] for row in rows]
            least = min(row["repetitions"] for row in rows)
            table.append(
                {
                    "quantity": f"coverage of 95% intervals, {name}, {kernel}",
                    "paper": "none given",
                    "ours": f"mean {np.mean(values):.3f}",
                    "interval": f"{min(values):.3f} to {max(values):.3f} in {len(rows)} settings, "
                    f"{least}+ repetitions each",
                }
            )
    near = [row for row in results["rows"] if row["diagonal"] != 0.5]
    table += [
        {
            "quantity": f"the same too near the floor (n={row['n']}, d={row['d']}), log ratio",
            "paper": "none given",
            "ours": f"{row['coverage_ratio']:.3f}",
            "interval": f"warned of beforehand in {row['warned']:.0%} of the data sets",
        }
        for row in near
    ]
    return table


BESIDE = "wanted"


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, what is wanted and ours, and a verdict."""
    usual = [row for row in results["rows"] if row["diagonal"] == 0.5]
    near = [row for row in results["rows"] if row["diagonal"] != 0.5]
    covered = {
        kernel: [
            row[what]
            for row in usual
            if row["kernel"] == kernel
            for what in ("coverage_score", "coverage_ratio")
        ]
        for kernel in ("delta", "rbf")
    }
    numbers = [
        (
            f"intervals that hold, {kernel} kernel: mean (range)",
            "0.95",
            f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})",
        )
        for kernel, values in covered.items()
    ]
    warned = ", ".join(f"{row['warned']:.0%}" for row in near)
    numbers.append(("settings too near the noise: warned of beforehand", "", f"{warned} of data"))
    words = "**Holds**: the published score's intervals hold as often as they say."
    means = [abs(np.mean(values) - 0.95) < 0.01 for values in covered.values()]
    return numbers, verdict(words, *map(bool, means))


def plot(results: dict[str, Any], path) -> None:
    """Coverage against n, one panel for scores and one for comparisons."""
    from experiments import figures

    figure, axes = figures.panels(1, 2, width=4.6, height=3.2)
    rows = [row for row in results["rows"] if row["diagonal"] == 0.5]
    titles = {"coverage_score": "one log score", "coverage_ratio": "log ratio of two reports"}
    for axis, (what, title) in zip(axes.flat, titles.items(), strict=True):
        axis.axhline(0.95, color="0.6", linewidth=1, zorder=1)
        for kernel, marker, shift in (("delta", "o", 0.97), ("rbf", "s", 1.03)):
            for index, d in enumerate((4, 5)):
                chosen = [row for row in rows if (row["kernel"], row["d"]) == (kernel, d)]
                if chosen:
                    axis.plot(
                        [row["n"] * shift for row in chosen], [row[what] for row in chosen], marker,
                        color=f"C{index}", fillstyle="full" if kernel == "delta" else "none",
                        label=f"{kernel}, {d} classes",
                    )  # fmt: skip
        axis.set(xscale="log", ylim=(0.88, 1.0))
        axis.set_xticks([500, 1000, 2000, 4000], ["500", "1000", "2000", "4000"])
        axis.minorticks_off()
        figures.finish(axis, "records n", "95% intervals that hold", title, legend=True)
    figures.save(figure, axes.flat, path)
