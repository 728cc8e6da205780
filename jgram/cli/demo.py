"""``jgram demo``: the command on data that come with the package."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jgram.cli.options import Observed, Output, Seed
from jgram.cli.outputs import FIGURES, PAGES, check_outputs
from jgram.cli.show import Answer, emit, progress, say, say_json
from jgram.display import Line, Table, to_record

if TYPE_CHECKING:
    from jgram.cli.read import Given

__all__ = ["run"]

_TEXTS = {
    "images": (
        "Which labels of these images are the most reliable?",
        "10,000 photographs of 10 kinds of things, seen through an encoder that never saw a label. "
        "A share of the labels was replaced at random: 'keeps' should say 100, 85, 70 and 50%.",
    ),
    "employment": (
        "Which employment figures are the most reliable?",
        "U.S. employment is published, then revised twice. Nobody knows the truth; taxes "
        "deposited on wages depend on it. The column 'counts scale' is Table 1 of the paper, where "
        "months in random order score 33.7 million on average, as much as the best figures: jgram "
        "tells no order. That is an answer too, with exit code 3 of rank.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Uncertainty

    Attributes:
        seed: Seed of the simultaneous intervals.
    """

    seed: Seed = 0


def run(output: Output, uncertainty: Uncertainty) -> None:
    """Two rankings: one that the data decide, and one that they cannot.

    Labels of 10,000 images with known errors, against image embeddings; then three vintages of
    U.S. employment against tax deposits, which is Table 1 of the paper. Without --plot the pictures
    are jgram-demo.png and jgram-demo-employment.png.

    Example:

        jgram demo --plot images.png --html demo.html
    """
    from jgram.cli.page import write_page
    from jgram.cli.read import ranked
    from jgram.data.json import to_json

    plot, silent = output.plot or Path("jgram-demo.png"), output.json or output.quiet
    plots = {"images": plot, "employment": plot.with_stem(f"{plot.stem}-employment")}
    outputs: Any = {f"--plot of {name}": (file, FIGURES) for name, file in plots.items()}
    check_outputs({**outputs, "--html": (output.html, PAGES)}, [])
    records, shown, drawing, about = {}, [], None, {}
    for name, judge in {"images": _images, "employment": _employment}.items():
        with progress(f"ranking {name}", quiet=silent):
            given = judge(uncertainty.seed)
            found, source = ranked(given), given.source
        view = found.view(source, counts_scale=name == "employment")
        records[name] = to_record(found, source=source)
        title, text = _TEXTS[name]
        if not silent:
            say(title, "bold")
            say(text)
            say()
        emit(Answer(found, source, view=view), Output(plot=plots[name], quiet=silent))
        if not silent:
            say()
        if output.html is not None:
            drawing, about = drawing or found.plot(), about or source
            shown += [Line(title), Line(text), *_titled(view, title, found.plot, first=not shown)]
    text = to_json({"schema": "jgram/demo/1", **records})
    if output.html is not None:
        write_page(output.html, shown, drawing, about, text)
        if not silent:
            say(f"written: {output.html}", "dim")
    if output.json:
        say_json(text)


def _titled(view: Any, title: str, picture: Any, *, first: bool) -> list[Line | Table]:
    """A view as a part of a page: its first table drawn, and one conclusion a page."""
    table = next(part for part in view if isinstance(part, Table))
    own = table._replace(caption=title, picture=picture)
    parts = [own if part is table else part for part in view]
    if first:
        return parts
    return [Line(one.text) if isinstance(one, Line) and one.style == "conclusion" else one
            for one in parts]  # fmt: skip


def _employment(seed: int) -> "Given":
    from jgram.cli.read import Given, prepare
    from jgram.data import employment

    table = employment()
    months, observation = len(table.pop("month")), ["tax_deposits"]
    asked = Observed(observation=observation, difference=True, bins=4)
    columns, rows, notes, *_ = prepare(table, asked)
    source = {
        "file": "employment (in the package)",
        "observations": observation,
        "seed": seed,
        "notes": [f"{months} months, changes from month to month, in quartiles", *notes],
    }
    taxes = {name: columns.pop(name) for name in observation}
    # Months follow each other: a year is judged as one block.
    return Given(columns, taxes, "delta", {"block_length": 12}, source, rows)


def _images(seed: int) -> "Given":
    import jax
    import jax.numpy as jnp
    import numpy as np

    from jgram.cli.read import Given
    from jgram.data import cifar10_embeddings
    from jgram.simulate.policies import corrupt, mix, uniform

    embeddings, labels, provenance = cifar10_embeddings()
    shares, keys = (0.0, 0.15, 0.3, 0.5), jax.random.split(jax.random.key(seed), 4)
    truth = jnp.asarray(labels)
    reports = {
        f"{share:.0%} replaced": np.asarray(corrupt(key, truth, mix(uniform(10), share)))
        for share, key in zip(shares, keys, strict=True)
    }
    source = {
        "file": "embeddings of the CIFAR-10 test images (in the package)",
        "observations": ["embedding"],
        "seed": seed,
        "notes": [f"SimCLR encoder after {provenance['epochs']} epochs without labels"],
    }
    return Given(reports, embeddings, None, {}, source, np.arange(len(labels)))
