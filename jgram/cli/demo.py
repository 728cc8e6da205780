"""``jgram demo``: the command on data that come with the package."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from jgram.cli.options import Output, Seed
from jgram.cli.outputs import FIGURES, check_outputs
from jgram.cli.show import emit, progress, say, say_json
from jgram.display import to_record

if TYPE_CHECKING:
    from jgram.report import Ranking

__all__ = ["run"]

_TEXTS = {
    "employment": (
        "Which employment figures are the most reliable?",
        "U.S. employment is published, then revised twice. Nobody knows the truth; taxes "
        "deposited on wages depend on it. The column 'counts scale' is Table 1 of the paper.",
    ),
    "images": (
        "Which labels of these images are the most reliable?",
        "10,000 photographs of 10 kinds of things, seen through an encoder that never saw a label. "
        "A share of the labels was replaced at random, one tenth of these hitting the truth.",
    ),
}


def run(
    seed: Seed = 0,
    as_json: Annotated[
        bool, Option("--json", help="Write JSON.", rich_help_panel="Output")
    ] = False,
    plot: Annotated[
        Path,
        Option(
            help="Draw the rankings into this file and one beside it.", rich_help_panel="Output"
        ),
    ] = Path("jgram-demo.png"),
) -> None:
    """Two rankings: one that the data cannot decide, and one that they can.

    Three vintages of U.S. employment against tax deposits, which is Table 1 of the paper; then
    labels of 10,000 images with known errors, against image embeddings.

    Example:

        jgram demo --plot employment.png
    """
    from jgram.data.json import to_json

    plots = {"employment": plot, "images": plot.with_stem(f"{plot.stem}-images")}
    check_outputs({f"--plot of {name}": (file, FIGURES) for name, file in plots.items()}, [])
    records = {}
    for name, judge in {"employment": _employment, "images": _images}.items():
        with progress(f"ranking {name}"):
            found, source = judge(seed)
        view = found.view(source, counts_scale=name == "employment")
        records[name] = to_record(found, source=source)
        title, text = _TEXTS[name]
        if not as_json:
            say(title, "bold")
            say(text)
            say()
        output = Output(plot=plots[name], quiet=as_json)
        emit(found, source, output, told=True, view=view)
        say() if not as_json else None
    if as_json:
        say_json(to_json({"schema": "jgram/demo/1", **records}))


def _employment(seed: int) -> tuple["Ranking", dict[str, Any]]:
    from jgram.cli.read import prepare
    from jgram.data import employment

    table = employment()
    observation = ["tax_deposits"]
    months = len(table.pop("month"))
    columns, _, notes, *_ = prepare(table, observation, changes=True, bins=4, observation_bins=4)
    taxes = {name: columns.pop(name) for name in observation}
    # Months follow each other: a year is judged as one block.
    found = _rank(columns, taxes, "delta", seed, block_length=12)
    source = {
        "file": "employment (in the package)",
        "observations": observation,
        "seed": seed,
        "notes": [f"{months} months, changes from month to month, in quartiles", *notes],
    }
    return found, source


def _images(seed: int) -> tuple["Ranking", dict[str, Any]]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from jgram.data import cifar10_embeddings
    from jgram.simulate.policies import corrupt, mix, uniform

    embeddings, labels, provenance = cifar10_embeddings()
    shares, keys = (0.0, 0.15, 0.3, 0.5), jax.random.split(jax.random.key(seed), 4)
    reports = {
        f"{share:.0%} replaced": np.asarray(
            corrupt(key, jnp.asarray(labels), mix(uniform(10), share))
        )
        for share, key in zip(shares, keys, strict=True)
    }
    found = _rank(reports, embeddings, None, seed)
    source = {
        "file": "embeddings of the CIFAR-10 test images (in the package)",
        "observations": ["embedding"],
        "seed": seed,
        "notes": [f"SimCLR encoder after {provenance['epochs']} epochs without labels"],
    }
    return found, source


def _rank(reports: dict[str, Any], y: Any, kernel: Any, seed: int, **options: Any) -> "Ranking":
    import jax

    from jgram import rank_reports

    return rank_reports(reports, y, kernel, key=jax.random.key(seed), **options)
