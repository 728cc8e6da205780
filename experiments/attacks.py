"""When cheating pays: what a strategic source gains, by what it knows, and which defences hold.

Four classes. A source holds the true labels and reports what it expects to score best; its gain is
the log score of its report over that of the truth, on the real observations.

- *nothing*: it has not even looked; balanced random labels.
- *labels*: the best misreport policy found from 32 random ones.
- *kernel*: labels, kernel and the experiment ``P(y | x)``, from which it draws observations.
- *copy c*: also a copy of each observation, which is right with probability ``c`` and a fresh draw
  from ``P(y | x)`` otherwise; the source knows ``c`` but not which.
- *y*: the observations themselves.

The last three ascend the mean score over draws of what they do not know (16 of them; 4 above 2,000
records, where they therefore give up sooner), with all or 5% of the records to change, and lie only
where the lie also scores better on fresh draws. Kernels: ``delta`` on eight outcomes; the Gaussian
kernel, by 64 random features, on Gaussian classes in the plane, two standard deviations apart; the
inner product on embeddings in eight dimensions.

Two further sources need no observations or no reports: balanced noise where the truth is skewed and
the records few, which the plug-in score prefers to the truth because noise has volume, and a sensor
that moves the observations.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import track

from experiments.statistics import mean_interval, proportion
from experiments.verdicts import verdict
from jgram import RBF, RandomFeatures, linear, plugin_log_score
from jgram.attack import ascend_policy, ascend_reports, flip_greedily, perturb_observations
from jgram.kernels import Delta
from jgram.stratified import unbiased_score

CLASSES = 4
OUTCOMES = 8
BANDWIDTH = 2.0
BUDGETS = {"5%": 0.05, "all": 1.0}
COPIES = {
    "kernel": 0.0,
    "copy .25": 0.25,
    "copy .5": 0.5,
    "copy .75": 0.75,
    "copy .9": 0.9,
    "y": 1.0,
}
LEVELS = ("nothing", "labels", *COPIES)
SHARES = (0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
FIRST = (0.25, 0.7, 0.85)  # probability of the first class
RADII = (0.02, 0.05, 0.1, 0.2, 0.5)


class World(NamedTuple):
    """Observations of true labels, and the features of the kernel that scores them."""

    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    features: Callable[[np.ndarray], Any]


Worlds = dict[str, World]


def worlds() -> Worlds:
    """One for each kernel; the same in every run."""
    rng = np.random.default_rng(0)
    experiment = rng.dirichlet(np.full(OUTCOMES, 0.5), CLASSES).T
    angles = 2 * np.pi * np.arange(CLASSES) / CLASSES
    centres = np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.sin(np.pi / CLASSES)
    random_features = RandomFeatures.draw(
        jax.random.key(0), 64, dimension=2, bandwidth=BANDWIDTH
    ).features

    def outcomes(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
        thresholds = np.cumsum(experiment.T, axis=1)[x, :-1]
        return (rng.random(len(x))[:, None] > thresholds).sum(axis=1)

    def gaussian(means: np.ndarray) -> Callable[..., np.ndarray]:
        return lambda rng, x: (means[x] + rng.normal(size=(len(x), means.shape[1]))).astype(
            np.float32
        )

    return {
        "delta": World(outcomes, Delta(OUTCOMES).features),
        "rbf": World(gaussian(centres), lambda y: random_features(jnp.asarray(y))),
        "linear": World(gaussian(2.0 * np.eye(CLASSES, OUTCOMES)), jnp.asarray),
    }


def partly_redrawn(
    rng: np.random.Generator, world: World, x: np.ndarray, y: np.ndarray, copy: float
) -> np.ndarray:
    """Each observation kept with probability ``copy`` and else drawn again."""
    keep = (rng.random(len(y)) < copy).reshape(-1, *[1] * (y.ndim - 1))
    return np.where(keep, y, world.draw(rng, x))


def believed(
    rng: np.random.Generator, world: World, x: Any, seen: Any, copy: float, draws: int
) -> Any:
    """Features ``[n, draws, m]`` of observations as they may be, given the copy that was seen."""
    several = [
        world.features(partly_redrawn(rng, world, x, seen, copy))
        for _ in range(draws if copy < 1.0 else 1)
    ]
    return jnp.stack(several, axis=1)


def mean_score(x_hat: Any, y: Any, kernel: Any, *, num_classes: int) -> Any:
    """The mean log score over the draws ``y[n, draws, m]``."""
    draws = jnp.moveaxis(y, 1, 0)
    score = jax.vmap(lambda y: plugin_log_score(x_hat, y, kernel, num_classes=num_classes))
    return jnp.mean(score(draws))


def log_score(reports: Any, features: Any) -> float:
    """Plug-in log score of labels."""
    return float(plugin_log_score(jnp.asarray(reports), features, linear, num_classes=CLASSES))


def cheat(
    rng: np.random.Generator, world: World, x: Any, y: Any, copy: float, draws: int, budget: float
) -> np.ndarray:
    """The best reports by the source's belief; the truth where fresh draws do not bear them out."""
    seen = partly_redrawn(rng, world, x, y, copy)
    attacked, fresh = (believed(rng, world, x, seen, copy, draws) for _ in range(2))
    found = ascend_reports(
        jax.random.key(rng.integers(2**31))[None], x, attacked, linear, score=mean_score,
        budget=budget, steps=40,
    )  # fmt: skip
    lie, honest = (
        float(mean_score(jnp.asarray(told), fresh, linear, num_classes=CLASSES))
        for told in (found.reports, x)
    )
    return np.asarray(found.reports) if lie > honest else x


def truth(rng: np.random.Generator, n: int, prior: Any = None) -> np.ndarray:
    """True labels, each class at least twice."""
    least = np.repeat(np.arange(CLASSES), 2)
    return np.concatenate([least, rng.choice(CLASSES, n - len(least), p=prior)])


def ladder(
    rng: np.random.Generator, world: World, n: int, levels: Any, draws: int, permutation: Any
) -> dict[str, dict[str, tuple[float, float]]]:
    """Gain and changed share on one data set, by level and budget."""
    x = truth(rng, n)
    y = world.draw(rng, x)
    features = world.features(y)
    honest = log_score(x, features)
    found: dict[str, dict[str, Any]] = {}
    for level in levels:
        if level == "nothing":
            found[level] = {"all": rng.permutation(np.arange(n) % CLASSES)}
        elif level == "labels":
            found[level] = {"all": permutation[x]}
        else:
            found[level] = {
                name: cheat(rng, world, x, y, COPIES[level], draws, size)
                for name, size in BUDGETS.items()
            }
    return {
        level: {
            name: (log_score(told, features) - honest, float(np.mean(told != x)))
            for name, told in reports.items()
        }
        for level, reports in found.items()
    }


def by_knowledge(
    chosen: Worlds, seed: int, sizes: dict[int, int], permutation: Any
) -> dict[str, Any]:
    """The ladder for every kernel and number of records, means and intervals over data sets."""
    table: dict[str, Any] = {}
    for kernel, world in chosen.items():
        for n, repeats in track(sizes.items(), description=f"ladder, {kernel}"):
            draws = 16 if n <= 2000 else 4
            levels = LEVELS if n <= 2000 else ("nothing", "labels", "kernel", "copy .5", "y")
            runs = [
                ladder(np.random.default_rng([seed, n, i]), world, n, levels, draws, permutation)
                for i in range(repeats)
            ]
            for level in levels:
                for budget in runs[0][level]:
                    gain, changed = np.transpose([run[level][budget] for run in runs])
                    cell = {"gain": mean_interval(gain), "changed": float(np.mean(changed))}
                    table.setdefault(kernel, {}).setdefault(level, {}).setdefault(budget, {})[
                        str(n)
                    ] = cell
    return table


def by_share(chosen: Worlds, seed: int, n: int, repeats: int) -> dict[str, Any]:
    """Gain of a source that knows y, by share of records changed, one best flip after another."""
    curves: dict[str, Any] = {}
    for kernel, world in track(chosen.items(), description="share changed"):
        gains = []
        for i in range(repeats):
            rng = np.random.default_rng([seed, n, i, 1])
            x = truth(rng, n)
            features = world.features(world.draw(rng, x))
            path = np.asarray(flip_greedily(x, features, linear, flips=int(SHARES[-1] * n)).path)
            steps = [min(round(share * n), len(path)) - 1 for share in SHARES]
            gains.append(path[steps] - log_score(x, features))
        curves[kernel] = mean_interval(np.transpose(gains))
    return curves


def blind(seed: int, sizes: tuple[int, ...], repeats: int) -> list[dict[str, Any]]:
    """Balanced noise against the truth of a weak experiment, by the plug-in score and unbiased."""
    experiment = 0.2 * np.eye(CLASSES) + 0.8 / CLASSES
    rows = []
    for first in track(FIRST, description="noise against the truth"):
        for n in sizes:
            rng = np.random.default_rng([seed, n, round(100 * first)])
            rare = round((1 - first) / (CLASSES - 1) * n)
            x = np.repeat(np.arange(CLASSES), [n - (CLASSES - 1) * rare] + [rare] * (CLASSES - 1))
            thresholds = np.cumsum(experiment.T, axis=1)[x, :-1]
            plugin, unbiased = np.empty((2, 2, repeats))
            for i in range(repeats):
                y = (rng.random(n)[:, None] > thresholds).sum(axis=1)
                for which, told in enumerate((x, rng.permutation(np.arange(n) % CLASSES))):
                    plugin[which, i] = log_score(told, np.eye(CLASSES, dtype=np.float32)[y])
                    unbiased[which, i] = unbiased_score(told, y, Delta(CLASSES))
            true = np.exp(2 * np.linalg.slogdet(experiment * np.bincount(x) / n)[1])
            rows.append(
                {
                    "first": first,
                    "n": n,
                    "noise_wins": proportion(plugin[1] > plugin[0], repeats),
                    "noise_wins_unbiased": proportion(unbiased[1] > unbiased[0], repeats),
                    "unbiased_gain": mean_interval((unbiased[1] - unbiased[0]) / true),
                }
            )
    return rows


def defended(rng: np.random.Generator, kernel: str, world: World, n: int) -> dict[str, Any]:
    """Gains on one data set by budget, when the defender scores otherwise than was attacked."""
    x = truth(rng, n)
    y, held_out = world.draw(rng, x), world.draw(rng, x)
    seen, width = world.features(y), BANDWIDTH * 2.0 ** rng.uniform(-1, 1)
    scores: dict[str, Callable[[Any], float]] = {
        "none": lambda z: log_score(z, seen),
        "stratified": lambda z: log_unbiased(z, seen),
        "other y held out": lambda z: log_score(z, world.features(held_out)),
    }
    if kernel == "rbf":
        scores["bandwidth drawn later"] = lambda z: float(
            plugin_log_score(z, y, RBF(width), num_classes=CLASSES)
        )
    found = {}
    for budget, size in BUDGETS.items():
        told = cheat(rng, world, x, y, 1.0, 1, size)
        blindly = cheat(rng, world, x, y, 0.0, 16, size)
        found[budget] = {name: score(told) - score(x) for name, score in scores.items()}
        found[budget]["y revealed later"] = log_score(blindly, seen) - log_score(x, seen)
    return found


def defences(chosen: Worlds, seed: int, n: int, repeats: int) -> dict[str, Any]:
    """What each defence leaves of the gain, and how often the cheat still outranks the truth."""
    table: dict[str, Any] = {}
    for kernel, world in track(chosen.items(), description="defences"):
        runs = [
            defended(np.random.default_rng([seed, n, i, 2]), kernel, world, n)
            for i in range(repeats)
        ]
        for budget in BUDGETS:
            for name in runs[0][budget]:
                gains = np.array([run[budget][name] for run in runs])
                table.setdefault(kernel, {}).setdefault(budget, {})[name] = {
                    "gain": mean_interval(gains),
                    "cheat_wins": proportion(gains > 1e-6, repeats),
                }
    return table


def log_unbiased(reports: Any, features: Any) -> float:
    """Log of what stratified matching estimates: the mean over all its draws, exactly."""
    return float(np.log(unbiased_score(reports, features, linear, num_classes=CLASSES)))


def sensor(seed: int, n: int, repeats: int) -> dict[str, Any]:
    """Gain, and loss, of moving each observation by up to a radius in standard deviations."""
    world, curves = worlds()["rbf"], {}

    def lowered(x_hat: Any, y: Any, kernel: Any, *, num_classes: int) -> Any:
        return -plugin_log_score(x_hat, y, kernel, num_classes=num_classes)

    goals = {"raise": (plugin_log_score, 1.0), "lower": (lowered, -1.0)}
    for goal, (score, sign) in track(goals.items(), description="moved observations"):
        gains = np.empty((len(RADII), repeats))
        for i in range(repeats):
            rng = np.random.default_rng([seed, n, i, 3])
            x = truth(rng, n)
            y = world.draw(rng, x)
            for row, radius in enumerate(RADII):
                found = perturb_observations(
                    x, y, RBF(BANDWIDTH), radius=radius, norm="l2", score=score, steps=20
                )
                gains[row, i] = sign * float(found.gain)
        curves[goal] = mean_interval(gains)
    return curves


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """All parts; the paper has no such study, so ``as_published`` changes nothing."""
    sizes = {500: 2} if smoke else {200: 40, 2000: 20, 20_000: 8, 100_000: 4}
    policy = ascend_policy(jax.random.key(seed), jnp.full(CLASSES, 1 / CLASSES), restarts=32)
    permutations = np.asarray(policy.permutations)
    moved = permutations[(permutations != np.arange(CLASSES)).any(axis=1)][0]
    small = 500 if smoke else 1000
    every = worlds()
    chosen = {"rbf": every["rbf"]} if smoke else every
    return {
        "sizes": list(sizes),
        "ladder": by_knowledge(chosen, seed, sizes, moved),
        "policy": {
            "best_gain": float(policy.gains.max()),
            "worst_gain": float(policy.gains.min()),
            "permutations": len({tuple(row) for row in permutations.tolist()}),
            "restarts": len(permutations),
            "largest_distance": float(policy.distances.max()),
        },
        "records": small,
        "shares": list(SHARES),
        "by_share": by_share(chosen, seed, small, 2 if smoke else 20),
        "blind": blind(
            seed,
            (100, 1000) if smoke else (100, 200, 500, 1000, 5000, 20_000),
            10 if smoke else 400,
        ),
        "defences": defences(chosen, seed, small, 2 if smoke else 40),
        "radii": list(RADII),
        "sensor": sensor(seed, small, 2 if smoke else 10),
    }


def pays_from(levels: dict[str, Any], n: str) -> str:
    """The first copy of y that was tried whose gain is above zero, and the one before."""
    gains = {name: levels[name]["all"][n]["gain"] for name in COPIES}
    pays = [gain["mean"] > gain["half"] for gain in gains.values()]
    if not any(pays):
        return "none"
    worse, copy = ([0.0, *COPIES.values()][pays.index(True) + step] for step in (0, 1))
    return f"{worse:g} to {copy:g}"


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """When cheating pays and when it does not."""
    ladder_, few, many = results["ladder"], *map(str, (results["sizes"][0], results["sizes"][-1]))
    middle = _middle(results)

    def gains(level: str, budget: str, n: str) -> str:
        cells = {kernel: levels[level][budget][n]["gain"] for kernel, levels in ladder_.items()}
        return "; ".join(f"{k} {c['mean']:+.2f} ± {c['half']:.2f}" for k, c in cells.items())

    def row(quantity: str, ours: str, interval: str, paper: str = "—") -> dict[str, Any]:
        return {"quantity": quantity, "paper": paper, "ours": ours, "interval": interval}

    policy, against = results["policy"], results["defences"]
    rows = [
        row(
            "labels only: best gain of a misreport policy",
            f"{policy['best_gain']:.1g}",
            f"{policy['restarts']} ascents end in {policy['permutations']} permutations",
            "0, at permutations",
        )
    ]
    rows += [
        row(f"gain, {level}, {budget} of the records, n={int(n):,}", gains(level, budget, n), "95%")
        for level, budget in (("kernel", "all"), ("y", "5%"), ("y", "all"))
        for n in dict.fromkeys((few, many))
    ]
    rows.append(
        row(
            f"probability that the copy of y is right from which cheating pays, n={int(middle):,}",
            "; ".join(f"{k} {pays_from(levels, middle)}" for k, levels in ladder_.items()),
            "last without and first with a gain above 0",
        )
    )
    rows += [
        row(
            f"noise outranks the truth, weak experiment, {cell['first']:.0%} of it in one class, "
            f"n={cell['n']:,}",
            f"{cell['noise_wins']['share']:.0%} of data sets, by the unbiased score "
            f"{cell['noise_wins_unbiased']['share']:.0%}",
            f"[{cell['noise_wins']['low']:.0%}, {cell['noise_wins']['high']:.0%}]; unbiased mean "
            f"difference {cell['unbiased_gain']['mean']:+.1f} ± "
            f"{cell['unbiased_gain']['half']:.1f} times the truth's score",
            "never, asymptotically",
        )
        for cell in results["blind"]
        if cell["first"] == max(FIRST)
    ]
    for name in against["rbf"]["5%"]:
        cells = {k: found["5%"][name] for k, found in against.items() if name in found["5%"]}
        rows.append(
            row(
                f"gain, y known, 5% of the records, defence: {name}",
                "; ".join(
                    f"{k} {c['gain']['mean']:+.2f} ± {c['gain']['half']:.2f}"
                    for k, c in cells.items()
                ),
                "cheat outranks truth: "
                + ", ".join(f"{c['cheat_wins']['share']:.0%}" for c in cells.values()),
            )
        )
    return rows


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers and a verdict; the paper has no experiment of this."""
    most, kernels = str(results["sizes"][-1]), results["ladder"]

    def gains(level: str, budget: str, sign: str) -> str:
        values = (kernels[kernel][level][budget][most]["gain"]["mean"] for kernel in kernels)
        return ", ".join(f"{value:{sign}.1f}" for value in np.abs(list(values)))

    blind = kernels["rbf"]["kernel"]["all"][most]["gain"]["mean"]
    names = ", ".join(kernels)
    held = max(found["5%"]["other y held out"]["gain"]["mean"]
               for found in results["defences"].values())  # fmt: skip
    numbers = [
        (f"log score gained by who has not seen y ({names})", "0", gains("kernel", "all", "")),
        ("by who has, changing 5% of the records", "not given", gains("y", "5%", "+")),
        ("the same, judged on another observation held out", "", f"{held:+.1f} at most"),
    ]
    words = (
        "**As the paper advises**: show the observations only after the reports, or hold one "
        "back. Who has not seen them gains nothing. The stratified score and a bandwidth drawn "
        "later do not defend."
    )
    later = results["defences"]["rbf"]["5%"]
    useless = [later[name]["gain"]["mean"] for name in ("stratified", "bandwidth drawn later")]
    return numbers, verdict(words, abs(blind) < 0.01, held < 0, min(useless) > 0.5)


def plot(results: dict[str, Any], path: Any) -> None:
    """Six panels: by knowledge, by n, by share; noise, defences, moved observations."""
    from experiments import figures

    figure, axes = figures.panels(2, 3, width=4.6, height=3.7)
    (knowing, size, share), (noise, defence, moved) = axes
    middle = _middle(results)

    def parts(cells: Any) -> dict[str, list[float]]:
        cells = list(cells)
        return {key: [cell[key] for cell in cells] for key in ("mean", "half")}

    for index, (kernel, levels) in enumerate(results["ladder"].items()):
        gains = parts(levels[level]["all"][middle]["gain"] for level in LEVELS)
        figures.curve(knowing, range(len(LEVELS)), gains, index=index, label=kernel)
        gains = results["by_share"][kernel]
        figures.curve(share, results["shares"], gains, index=index, label=kernel)
    knowing.set_xticks(range(len(LEVELS)), LEVELS, rotation=40, ha="right")
    knowing.set_yscale("symlog", linthresh=1.0)
    share.set(xscale="log", yscale="log")
    share.set_xticks(ticks := [0.01, 0.05, 0.2, 0.5], [f"{tick:.0%}" for tick in ticks])
    factors(knowing.yaxis, "1/100,000", "1/100", "1/2", "1", "2", "10", "100")
    factors(share.yaxis, "1.1", "2", "10", "100")
    factors(size.yaxis, "1", "2", "5", "10")
    for index, level in enumerate(("kernel", "copy .5", "y")):
        for budget, style in (("all", "-"), ("5%", "--")):
            cells = results["ladder"]["rbf"][level][budget]
            gains = parts(cell["gain"] for cell in cells.values())
            size.errorbar(
                [int(n) for n in cells], gains["mean"], gains["half"], linestyle=style,
                marker=figures.MARKERS[index], markersize=4, capsize=2, color=f"C{index}",
                label=f"{level}, {budget}",
            )  # fmt: skip
    size.set(xscale="log", ylim=(-0.2, 2.6))

    for index, first in enumerate(FIRST):
        cells = [cell for cell in results["blind"] if cell["first"] == first]
        low, high = np.transpose(
            [[cell["noise_wins"][end] for end in ("low", "high")] for cell in cells]
        )
        wins = {"mean": (low + high) / 2, "half": (high - low) / 2}
        label = f"{first:.0%} of the truth in one class"
        figures.curve(noise, [cell["n"] for cell in cells], wins, index=index, label=label)
    noise.set_xscale("log")

    names = list(results["defences"]["rbf"]["5%"])
    for index, (kernel, budgets) in enumerate(results["defences"].items()):
        for budget, found in budgets.items():
            gains = parts(found[name]["gain"] for name in found)
            defence.errorbar(
                gains["mean"], [-names.index(name) + 0.15 * (1 - index) for name in found],
                xerr=gains["half"], linestyle="none", marker=figures.MARKERS[index],
                markersize=5, color=f"C{index}", label=f"{kernel}, {budget}",
                markerfacecolor=f"C{index}" if budget == "5%" else "white",
            )  # fmt: skip
    defence.set_yticks(-np.arange(len(names)), names)
    defence.axvline(0, color="black", linewidth=0.8)
    factors(defence.xaxis, "1/100", "1/10", "1", "10", "100")
    for index, (goal, values) in enumerate(results["sensor"].items()):
        figures.curve(moved, results["radii"], values, index=index, label=f"to {goal} the score")
    for axis in (knowing, size, moved):
        axis.axhline(0, color="black", linewidth=0.8)

    gain, n = "score, over that of the truth", f"n={results['records']:,}"
    finish = figures.finish
    finish(
        knowing,
        "what the source knows",
        gain,
        f"free to change all, n={int(middle):,}",
        legend=True,
    )
    finish(size, "number of records", gain, "rbf, all or 5% of the records")
    size.legend(fontsize=7, ncols=3, loc="upper center", handlelength=3.5)
    share.minorticks_off()
    finish(share, "records changed", gain, f"y known, one best flip after another, {n}")
    finish(
        noise, "number of records", "share of data sets", "noise outranks the truth", legend=True
    )
    finish(defence, gain, "", f"defences where y is known, 5% or all of the records, {n}")
    defence.legend(fontsize=7, loc="lower left")
    factors(moved.yaxis, "1/100", "1/10", "1", "10")
    finish(moved, "largest shift of an observation, standard deviations", "score, over the unmoved",
           f"moved observations, rbf, {n}", legend=True)  # fmt: skip
    figures.save(figure, axes.ravel(), path)


def factors(axis: Any, *words: str) -> None:
    """Label an axis of log scores by factors of the score, such as ``"1/100"`` and ``"10"``."""
    axis.set_ticks([np.log(float(Fraction(word.replace(",", "")))) for word in words], words)


def _middle(results: dict[str, Any]) -> str:
    """The number of records at which every level was run."""
    return str(max(n for n in results["sizes"] if n <= 2000))
