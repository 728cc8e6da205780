"""The pictures of the README at the root, from committed results alone."""

import json
from pathlib import Path

from experiments.figures import finish, panels, save, shares

SAME_WORK = (  # file, jgram's row, the rival's row, what is done
    ("inference", 0, 1, "1,000 permutations, 10,000 records\nNumPy"),
    ("gram", 0, 1, "Gram matrix of 10,000 records\nscikit-learn"),
    ("gram", 0, 3, "Gram matrix of 10,000 records\nNumPy in blocks, float32"),
    ("annotators", 0, 1, "200 annotators, 100,000 answers\ncrowd-kit (another method)"),
    ("cifar10_sweep", 8, 9, "6,600 reports of 10,000 records\nNumPy"),
    ("encoder", 1, 2, "a training step of the encoder\nPyTorch"),
    ("sweep", 1, 0, "Experiment 1, 66 reports, 100 trials\nNumPy, all draws at once"),
    ("gram", 8, 9, "one score of 10,000 categories\nNumPy, bincount"),
)


def draw(results: Path, bench: Path, out: Path) -> None:
    """Draw ``people.png`` and ``benchmark.png``.

    Args:
        results: The folder of the experiments' results.
        bench: That of the benchmarks'.
        out: Where to draw.
    """
    out.mkdir(parents=True, exist_ok=True)
    people(results, out / "people.png")
    benchmark(bench, out / "benchmark.png")


def people(results: Path, path: Path) -> None:
    """CIFAR-10N's sets of human labels by their true error, and what they were found to keep."""
    found = json.loads((results / "human_labels.json").read_text())["results"]
    reports = found["paid"]["embeddings after 60 epochs"]["default kernel"]["reports"]
    named = [
        {**one, "name": f"{name}, {found['wrong'][name]:.1%} wrong"}
        for name, one in sorted(reports.items(), key=lambda item: found["wrong"][item[0]])
    ]
    figure, axes = panels(1, 1, width=7.5, height=3.4)
    title = "50,000 images labelled by people (CIFAR-10N), ranked without the truth"
    shares(axes[0, 0], named, title)
    save(figure, axes.flat, path)


def benchmark(bench: Path, path: Path) -> None:
    """How many times longer others take for the same work to the same answer."""
    figure, axes = panels(1, 1, width=7.5, height=3.8)
    axis = axes[0, 0]
    names, ratios = [], []
    for file, ours, theirs, words in SAME_WORK:
        rows = json.loads((bench / f"{file}.json").read_text())["rows"]
        names.append(words)
        ratios.append(rows[theirs]["seconds"] / rows[ours]["seconds"])
    places = [-place for place in range(len(names))]
    for place, ratio in zip(places, ratios, strict=True):
        colour = "C0" if ratio >= 1 else "C1"
        axis.barh(place, ratio - 1, left=1, color=colour, height=0.55)
        words = f"{ratio:.0f} times jgram's time" if ratio >= 10 else f"{ratio:.2g} times"
        axis.annotate(
            words, (ratio, place), xytext=(4 if ratio >= 1 else -4, 0), va="center",
            textcoords="offset points", ha="left" if ratio >= 1 else "right", fontsize=8,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_xticks(ticks := [0.1, 1, 10, 100], [f"{tick:g}" for tick in ticks])
    axis.set_xlim(0.1, 200)
    axis.minorticks_off()
    axis.axvline(1, color="0.3", linewidth=1)
    axis.set_yticks(places, names, fontsize=7)
    axis.spines[["top", "right", "left"]].set_visible(False)
    title = "the same work on two cores: right of 1 the other takes longer, left of 1 jgram does"
    finish(axis, "time of the other over time of jgram, warm", "", title)
    axis.grid(axis="y", visible=False)
    save(figure, axes.flat, path)
