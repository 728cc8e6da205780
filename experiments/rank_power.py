"""Paired payoffs beside the published score: order, size, power, and what is said to be retained.

Reports are the truth with a share replaced at random. Five settings are those on which the
published score was seen to rank reports backwards or not (skewed classes, narrow kernels, many
dimensions, a weak signal), with a balanced one; three are tables whose outcomes repeat often,
seldom, or hardly. For each: Kendall's tau of four reports (0, 10, 20, 40% replaced) with the true
order; how often two equal reports (30% replaced) are told apart by the 5% test, and 0% from 20%;
how often the interval for what 50% replaced retains of the truth holds .5. Then more records; many
equal reports; a rare class merged into another; records in time order; the number of records that a
pilot asks for; and CIFAR-10N's labels, where the files are, from embeddings.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import track
from scipy.stats import kendalltau, norm

from experiments.annotators import DATA
from experiments.figures import finish, panels, save
from experiments.verdicts import verdict
from jgram.comparisons import (
    blocks,
    records_needed,
    retention,
    sign_test,
    suggested_block_length,
)
from jgram.contrasts import noise_tests, pair_payoffs, payoffs
from jgram.influences import contributions, linearise_frame
from jgram.kernels import RBF, Delta
from jgram.observed import frame_of_product, observe
from jgram.ranks import rank_pairs
from jgram.scores import plugin_log_score

REDRAWN = (0.0, 0.1, 0.2, 0.4, 0.3, 0.3, 0.5)
ORDERED, EQUAL, APART, HALF = (0, 1, 2, 3), (4, 5), (0, 2), (0, 6)
FIRST, SECOND = np.triu_indices(len(REDRAWN), 1)
PAIR = {(int(i), int(j)): number for number, (i, j) in enumerate(zip(FIRST, SECOND, strict=True))}
Z = 1.96


class Gaussians(NamedTuple):
    """Unit-variance Gaussians around random class centres, and RBF at part of the median."""

    n: int
    dimension: int
    shares: tuple[float, ...]
    distance: float
    narrower: float = 1.0

    @property
    def classes(self) -> int:
        return len(self.shares)

    def draw(self, key: Any) -> tuple[Any, Any]:
        centre_key, x_key, y_key = jax.random.split(key, 3)
        centres = jax.random.normal(centre_key, (self.classes, self.dimension))
        centres *= self.distance / jnp.linalg.norm(centres, axis=1, keepdims=True)
        x = jax.random.choice(x_key, self.classes, (self.n,), p=jnp.array(self.shares))
        return x, centres[x] + jax.random.normal(y_key, (self.n, self.dimension))

    def observe(self, y: Any) -> Any:
        median = np.sqrt(2 * self.dimension + 0.5 * self.distance**2)  # about that of the data
        return observe(RBF(median / self.narrower), y)


class Table(NamedTuple):
    """Outcomes of a random experiment under the delta kernel, with balanced classes."""

    n: int
    classes: int
    outcomes: int

    def draw(self, key: Any) -> tuple[Any, Any]:
        experiment_key, x_key, y_key = jax.random.split(key, 3)
        experiment = jax.random.dirichlet(
            experiment_key, jnp.full(self.outcomes, 0.3), (self.classes,)
        )
        x = jax.random.randint(x_key, (self.n,), 0, self.classes)
        return x, jax.random.categorical(y_key, jnp.log(experiment)[x])

    def observe(self, y: Any) -> Any:
        return observe(Delta(self.outcomes), y)


SEVEN = (0.4, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02)
SETTINGS: dict[str, Any] = {
    "4-dim, 3 balanced classes": Gaussians(400, 4, (1 / 3, 1 / 3, 1 / 3), 2.0),
    "54-dim, 7 balanced classes": Gaussians(700, 54, (1 / 7,) * 7, 4.0),
    "10-dim, classes .8/.15/.05, narrow": Gaussians(600, 10, (0.8, 0.15, 0.05), 2.5, 3.0),
    "10-dim, classes .8/.15/.05, weak": Gaussians(600, 10, (0.8, 0.15, 0.05), 1.5, 2.0),
    "512-dim, classes .7/.15/.1/.05": Gaussians(600, 512, (0.7, 0.15, 0.1, 0.05), 2.5),
    "54-dim, classes .4 to .02, narrow": Gaussians(800, 54, SEVEN, 4.0, 2.0),
    "5 outcomes, 3 classes": Table(300, 3, 5),
    "200 outcomes, 2 classes": Table(300, 2, 200),
    "200 outcomes, 10 classes": Table(1000, 10, 200),
}
GROWING = Gaussians(100, 10, (0.8, 0.15, 0.05), 2.5, 3.0)
PEOPLE = {"aggregate": "aggre_label", "random 1": "random_label1", "worst": "worse_label"}
EMBEDDINGS = Path(__file__).with_name("data") / "cifar10_train.npz"
SIZES = (100, 300, 1000, 3000, 5000)


def redraw(key: Any, x: Any, shares: Any, classes: int) -> Any:
    """Reports ``[k, n]``: the truth, a share of it drawn anew."""
    which, new = jax.random.split(key)
    size = (len(shares), len(x))
    wrong = jax.random.uniform(which, size) < jnp.asarray(shares)[:, None]
    return jnp.where(wrong, jax.random.randint(new, size, 0, classes), x)


def repetition(key: Any, setting: Any) -> dict[str, Any]:
    """Both readings of one data set."""
    data_key, report_key = jax.random.split(key)
    x, y = setting.draw(data_key)
    observed, d = setting.observe(y), setting.classes
    reports = redraw(report_key, x, REDRAWN, d)
    pairs = pair_payoffs(observed, reports, num_classes=d, complete=True)
    z = jax.vmap(sign_test)(pairs.differences)[0]
    signed = jnp.zeros((len(REDRAWN),) * 2)
    gaps = pairs.means[:, 0] - pairs.means[:, 1]
    signed = signed.at[FIRST, SECOND].set(gaps).at[SECOND, FIRST].set(-gaps)
    half = PAIR[HALF]
    kept = retention(pairs.means[half], pairs.covariance[half], Z)

    z_all = jax.nn.one_hot(reports, d, dtype=pairs.values.dtype)
    columns = jnp.moveaxis(z_all, 0, 1).reshape(len(x), -1)
    products = jnp.moveaxis(observed.product(columns).reshape(len(x), -1, d), 1, 0) / len(x)

    def published(report, memberships, mean):
        frame = frame_of_product(memberships.T @ mean / len(x), mean)
        found = linearise_frame(frame, observed.squares, jnp.asarray(len(x), float))
        return found.log_score, contributions(found, report)

    scores, parts = jax.vmap(published)(reports, z_all, products)

    def plugin_z(i, j):
        error = jnp.std(parts[i] - parts[j], ddof=1) / jnp.sqrt(len(x))
        return (scores[i] - scores[j]) / error, error

    log_kept, error = scores[HALF[1]] - scores[HALF[0]], plugin_z(*HALF)[1]
    truth = 2 * (d - 1) * np.log(0.5)
    return {
        "values": jnp.sum(signed[jnp.array(ORDERED)][:, jnp.array(ORDERED)], axis=1),
        "plugin_values": scores[jnp.array(ORDERED)],
        "equal": jnp.abs(z[PAIR[EQUAL]]) > Z,
        "plugin_equal": jnp.abs(plugin_z(*EQUAL)[0]) > Z,
        "power": z[PAIR[APART]] > Z,
        "plugin_power": plugin_z(*APART)[0] > Z,
        "reversed": z[PAIR[APART]] < -Z,
        "plugin_reversed": plugin_z(*APART)[0] < -Z,
        "kept": kept.ratio,
        "plugin_kept": jnp.exp(log_kept / (2 * (d - 1))),
        "estimable": kept.estimable,
        "covered": (kept.lower <= 0.5) & (kept.upper >= 0.5) & kept.estimable,
        "plugin_covered": jnp.abs(log_kept - truth) < Z * error,
        "seen": pairs.seen[half],
    }


def many(function: Any, key: Any, repetitions: int) -> Any:
    """One compiled loop over the keys."""
    keys = jax.random.split(key, repetitions)
    return jax.device_get(jax.jit(partial(jax.lax.map, function))(keys))


def cell(key: Any, setting: Any, repetitions: int) -> dict[str, Any]:
    """One row: means over the repetitions."""
    found = many(partial(repetition, setting=setting), key, repetitions)
    truth = [-REDRAWN[i] for i in ORDERED]

    def order(values):
        return float(np.mean(np.array([tuple(kendalltau(truth, v)) for v in values])[:, 0]))

    row: dict[str, Any] = {"n": setting.n, "d": setting.classes, "repetitions": repetitions}
    for prefix in ("", "plugin_"):
        row[f"{prefix}order"] = order(found[f"{prefix}values"])
        row[f"{prefix}size"] = float(np.mean(found[f"{prefix}equal"]))
        row[f"{prefix}power"] = float(np.mean(found[f"{prefix}power"]))
        row[f"{prefix}reversed"] = float(np.mean(found[f"{prefix}reversed"]))
    finite = np.isfinite(found["plugin_kept"])
    row["plugin_kept"] = float(np.median(np.where(finite, found["plugin_kept"], 0)))
    row["plugin_coverage"] = float(np.mean(found["plugin_covered"]))
    told = found["estimable"]
    row["estimable"] = float(np.mean(told))
    row["kept"] = float(np.median(found["kept"][told])) if told.any() else None
    row["coverage"] = float(np.mean(found["covered"][told])) if told.any() else None
    row["seen"] = float(np.mean(found["seen"]))
    return row


def equal_reports(key: Any, count: int, repetitions: int) -> dict[str, Any]:
    """``count`` equal reports: intervals hold together, and none is left out of the best."""
    setting = Gaussians(300, 4, (0.5, 0.3, 0.2), 2.5)

    def one(key):
        data_key, report_key, rank_key = jax.random.split(key, 3)
        x, y = setting.draw(data_key)
        observed = setting.observe(y)
        reports = redraw(report_key, x, (0.3,) * count, 3)
        pairs = pair_payoffs(observed, reports, num_classes=3, complete=True)
        noise = noise_tests(observed, reports, num_classes=3)
        found = rank_pairs(rank_key, pairs, noise, draws=2000)
        held = jnp.all((found.keeps.lower <= 1) & (found.keeps.upper >= 1))
        apart = jnp.any(found.better)
        alone = jnp.sum(found.most_reliable) == 1
        return held, apart, alone, found.keeps.ratio.max()

    held, apart, alone, ratio = many(one, key, repetitions)
    return {
        "reports": count,
        "repetitions": repetitions,
        "coverage": float(np.mean(held)),
        "any_separated": float(np.mean(apart)),
        "sole_winner": float(np.mean(alone)),
        "largest_share": float(np.median(ratio)),
    }


def merged(key: Any, repetitions: int) -> dict[str, Any]:
    """The rarest class of three reported as the commonest: half of the directions are gone."""
    setting = Gaussians(800, 10, (0.6, 0.25, 0.15), 4.0)

    def one(key):
        x, y = setting.draw(key)
        reports = jnp.stack([x, jnp.where(x == 2, 0, x)])
        pairs = pair_payoffs(setting.observe(y), reports, num_classes=3, complete=True)
        found = retention(pairs.means[0], pairs.covariance[0], Z)
        return sign_test(pairs.differences[0])[0] > Z, found.ratio, pairs.seen[0]

    power, ratio, seen = many(one, key, repetitions)
    return {
        "repetitions": repetitions,
        "power": float(np.mean(power)),
        "kept": float(np.median(ratio)),
        "seen": float(np.mean(seen)),
    }


def slow(key: Any, persistence: float, n: int, columns: int) -> Any:
    """Unit-variance autoregressions ``[n, columns]``."""
    steps = jax.random.normal(key, (n, columns))
    steps = steps.at[1:].multiply(np.sqrt(1 - persistence**2))

    def add(state, step):
        state = persistence * state + step
        return state, state

    return jax.lax.scan(add, jnp.zeros(columns), steps)[1]


def in_time(key: Any, persistence: float, repetitions: int) -> dict[str, Any]:
    """Equal reports whose errors persist, as truth and observations do, and one of noise; n = 300.

    Blocks of the suggested length for the test of the pair; for the noise, whose payoffs are of
    its own making, blocks of 25 left out as a whole.
    """
    edges, groups = jnp.array([-0.5, 0.6]), blocks(300, 25)

    def one(key):
        series, noise = jax.random.split(key)
        states = slow(series, persistence, 300, 6)
        x, others = jnp.digitize(states[:, 0], edges), jnp.digitize(states[:, 1:3], edges)
        wrong = states[:, 3:5] < norm.ppf(0.3)
        y = states[:, [0, 5]] + 0.5 * jax.random.normal(noise, (300, 2))
        reports = jnp.where(wrong, others, x[:, None]).T
        observed = observe(RBF(1.5), y)
        pairs = pair_payoffs(observed, reports, num_classes=3, complete=True)
        unrelated = partial(payoffs, observed, others[:, :1].T, num_classes=3)
        ratios = [
            each.means[0] / jnp.sqrt(each.covariance[0, 0])
            for each in (unrelated(), unrelated(groups=groups))
        ]
        return pairs.differences[0], pairs.values[0], jnp.stack(ratios)

    differences, values, noise = many(one, key, repetitions)
    series = np.concatenate([differences[:, None], values], axis=1)
    lengths = [suggested_block_length(each) for each in series]
    chosen = np.stack([blocks(300, length) for length in lengths])
    plain = jax.vmap(sign_test)(differences)[0]
    blocked = jax.vmap(sign_test, in_axes=(0, None, 0))(differences, None, chosen)[0]
    return {
        "persistence": persistence,
        "repetitions": repetitions,
        "plain_size": float(np.mean(np.abs(plain) > Z)),
        "block_size": float(np.mean(np.abs(blocked) > Z)),
        "block_length": float(np.median(lengths)),
        "plain_noise": float(np.mean(noise[:, 0] > 1.645)),
        "block_noise": float(np.mean(noise[:, 1] > 1.645)),
    }


def pilot(key: Any, name: str, repetitions: int) -> dict[str, Any]:
    """Records for 80% power as a pilot predicts, and the power at that number."""
    setting = SETTINGS[name]

    def differences(key, setting):
        data_key, report_key = jax.random.split(key)
        x, y = setting.draw(data_key)
        reports = redraw(report_key, x, (0.1, 0.25), setting.classes)
        found = pair_payoffs(
            setting.observe(y), reports, num_classes=setting.classes, complete=True
        )
        return found.differences[0]

    def needed(key):
        return records_needed(differences(key, setting))

    first, second = jax.random.split(key)
    predicted = int(np.median(many(needed, first, repetitions)))
    grown = setting._replace(n=predicted)
    z = many(lambda key: sign_test(differences(key, grown))[0], second, repetitions)
    # The number that 80% power takes, from the power found and the normal law.
    effect = np.mean(z)
    return {
        "setting": name,
        "pilot": setting.n,
        "predicted": predicted,
        "power": float(np.mean(z > Z)),
        "implied": float(predicted * ((Z + 0.8416) / effect) ** 2),
    }


def people(key: Any, better: str, worse: str, sizes: Any, repetitions: int) -> dict[str, Any]:
    """CIFAR-10N: how often the better of two label sets is first, by number of records.

    Payoffs under the mean of four bandwidths, the published score under the median one.
    """
    path = DATA / "cifar10n" / "cifar10n_labels.npz"
    if not path.exists():
        raise FileNotFoundError(f"no {path}: set JGRAM_DATA to the folder of the data sets")
    with np.load(path) as labels, np.load(EMBEDDINGS) as embeddings:
        reports = jnp.stack([labels[PEOPLE[better]], labels[PEOPLE[worse]]]).astype(int)
        points = jnp.asarray(embeddings["embeddings"], jnp.float32)
    sample = points[:1000]
    squares = jnp.sum((sample[:, None] - sample) ** 2, axis=2)
    median = float(jnp.sqrt(jnp.median(squares)))

    def four_bandwidths(first, second):
        near = jnp.exp(-jnp.sum((first - second) ** 2) / median**2)
        return (near + near**4 + near**16 + near**64) / 4

    rows = []
    for number, n in enumerate(sizes):

        def one(key, n=n):
            chosen = jax.random.choice(key, len(points), (n,), replace=False)
            two, y = reports[:, chosen], points[chosen]
            found = pair_payoffs(observe(four_bandwidths, y), two, num_classes=10, complete=True)
            wide = observe(RBF(median), y)
            scores = [plugin_log_score(each, wide, num_classes=10) for each in two]
            z = sign_test(found.differences[0])[0]
            return z > 0, z > Z, scores[0] > scores[1], records_needed(found.differences[0])

        right, told, plugin, needed = many(one, jax.random.fold_in(key, number), repetitions)
        rows.append(
            {
                "n": n,
                "right": float(np.mean(right)),
                "power": float(np.mean(told)),
                "plugin_right": float(np.mean(plugin)),
                "predicted": float(np.median(needed)),
            }
        )
    return {"better": better, "worse": worse, "repetitions": repetitions, "rows": rows}


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Every part of the study."""
    base = jax.random.key(seed)
    keys = iter(jax.random.split(base, 64))
    repetitions = 10 if smoke else 2000
    names = list(SETTINGS)[-3:-1] if smoke else list(SETTINGS)
    with jax.enable_x64(True):
        found: dict[str, Any] = {
            "settings": [
                {"setting": name, **cell(next(keys), SETTINGS[name], repetitions)}
                for name in track(names, "settings")
            ],
            "sizes": [
                cell(next(keys), GROWING._replace(n=n), 10 if smoke else max(100, 60_000 // n))
                for n in track(SIZES[:1] if smoke else SIZES, "records")
            ],
            "equal": [
                equal_reports(next(keys), count, 5 if smoke else 300)
                for count in track((2,) if smoke else (2, 5, 20), "equal reports")
            ],
            "merged": merged(next(keys), 5 if smoke else 200),
            "time": [
                in_time(next(keys), persistence, repetitions)
                for persistence in track((0.0, 0.7, 0.9), "time")
            ],
            "pilots": [
                pilot(next(keys), name, 10 if smoke else 300)
                for name in track(names[:: 1 if smoke else 3], "pilots")
            ],
        }
    found["people"] = []
    if not smoke:
        try:
            for better, worse in (("aggregate", "random 1"), ("random 1", "worst")):
                sizes = (50, 100, 150, 175, 200, 300)
                found["people"].append(people(next(keys), better, worse, sizes, 400))
        except FileNotFoundError:
            pass
    return found


def enough_records(rows: list[dict[str, Any]], name: str) -> float:
    """Records for 95%, where ``Phi^-1(share right)`` grows with the root of their number."""
    roots = np.sqrt([row["n"] for row in rows])
    scores = norm.ppf(np.minimum([row[name] for row in rows], 0.9975))
    usable = np.array([row[name] < 0.99 for row in rows])
    slope = (roots[usable] @ scores[usable]) / (roots[usable] @ roots[usable])
    return float((norm.ppf(0.95) / slope) ** 2)


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Order, size, power and coverage over the settings, ours beside the published score's."""
    rows = results["settings"]

    def spread(name: str) -> str:
        values = [row[name] for row in rows if row[name] is not None]
        return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    note = f"{len(rows)} settings, {rows[0]['repetitions']} repetitions each"
    words = {
        "order": "Kendall's tau of four reports with the true order",
        "size": "two equal reports told apart at 5%",
        "power": "0% told from 20% replaced",
        "reversed": "0% told from 20% replaced, the wrong way round",
        "kept": "median share retained, true .5",
        "coverage": "coverage of the 95% interval for the share retained",
    }
    table = [
        {
            "quantity": text,
            "paper": f"published score: {spread(f'plugin_{name}')}",
            "ours": spread(name),
            "interval": note,
        }
        for name, text in words.items()
    ]
    table += [
        {
            "quantity": f"{row['reports']} equal reports: all intervals hold together",
            "paper": "none given",
            "ours": row["coverage"],
            "interval": f"any two separated {row['any_separated']:.3f}, "
            f"a sole most reliable {row['sole_winner']:.3f}",
        }
        for row in results["equal"]
    ]
    table += [
        {
            "quantity": f"equal reports in time order told apart, AR({row['persistence']:.1f})",
            "paper": "none given",
            "ours": row["block_size"],
            "interval": f"{row['plain_size']:.3f} without blocks; "
            f"median block {row['block_length']:.0f}",
        }
        for row in results["time"]
    ]
    table += [
        {
            "quantity": f"noise in time order told from noise, AR({row['persistence']:.1f})",
            "paper": "none given",
            "ours": row["block_noise"],
            "interval": f"{row['plain_noise']:.3f} where blocks are not left out",
        }
        for row in results["time"]
    ]
    table += [
        {
            "quantity": f"records for 80% power, predicted from {row['pilot']}: {row['setting']}",
            "paper": "none given",
            "ours": row["predicted"],
            "interval": f"power there {row['power']:.2f}; 80% takes {row['implied']:.0f}",
        }
        for row in results["pilots"]
    ]
    for pair in results["people"]:
        enough = [enough_records(pair["rows"], name) for name in ("plugin_right", "right")]
        table.append(
            {
                "quantity": f"CIFAR-10N, {pair['better']} above {pair['worse']}: "
                "records that put it first in 95%",
                "paper": f"published score: {enough[0]:.0f}",
                "ours": f"{enough[1]:.0f}",
                "interval": f"{pair['repetitions']} samples each of "
                f"{[row['n'] for row in pair['rows']]} records",
            }
        )
    return table


BESIDE = "published score"


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, the published score's and ours, and a verdict."""
    rows = results["settings"]

    def spread(name: str) -> str:
        values = [row[name] for row in rows if row[name] is not None]
        return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    numbers = [
        (f"{words}: mean (range)", spread(f"plugin_{name}"), spread(name))
        for name, words in {
            "order": "four reports in their true order (Kendall's tau)",
            "power": "0% wrong told from 20% wrong, share of data sets",
            "coverage": "95% intervals of what is kept that hold",
        }.items()
    ]
    last = results["time"][-1]
    words = (
        "**Holds in every setting**, also where classes are skewed and observations rarely repeat, "
        "where the published score puts the worse report first. The 5% test tells equal reports "
        f"apart in at most {max(row['size'] for row in rows):.0%}; where records follow in time "
        f"and lean on each other strongly, in {last['block_size']:.0%} by blocks and in "
        f"{last['plain_size']:.0%} without."
    )
    return numbers, verdict(
        words,
        min(row["order"] for row in rows) > 0.8,
        max(row["size"] for row in rows) < 0.065,
        last["block_size"] < last["plain_size"],
        min(row["plugin_order"] for row in rows) < 0,
    )


def plot(results: dict[str, Any], path: Any) -> None:
    """One panel a quantity, one line a setting, ours beside the published score."""
    names = [row["setting"] for row in results["settings"]]
    heights = np.arange(len(names))[::-1]
    figure, axes = panels(2, 2, width=5.2, height=3.6)
    quantities = {
        "order": ("four reports in their true order", "Kendall's tau", 1.0),
        "size": ("equal reports told apart by the 5% test", "share", 0.05),
        "power": ("0% told from 20% replaced by the 5% test", "share", None),
        "kept": ("what a report with 50% replaced keeps", "median; the truth is .5", 0.5),
    }
    for axis, (name, (title, label, wanted)) in zip(axes.flat, quantities.items(), strict=True):
        for prefix, marker, words in (("", "o", "payoffs"), ("plugin_", "x", "published score")):
            values = [row[prefix + name] for row in results["settings"]]
            axis.plot([np.nan if v is None else v for v in values], heights, marker, label=words)
        if wanted is not None:
            axis.axvline(wanted, color="0.6", linewidth=1, zorder=0)
        axis.set_yticks(heights, names, fontsize=7)
        finish(axis, label, "", title, legend=name == "order")
    save(figure, axes.flat, path)
