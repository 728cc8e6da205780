"""The demo: 10,000 images whose labels were replaced at random in known shares, ranked.

What ``jgram demo`` shows: CIFAR-10 test images through an encoder that never saw a label, and four
reports of their classes. A replaced label is drawn from all ten classes, so that a share ``e``
replaced should keep ``1 - e`` of the information.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.figures import panels, save, shares
from experiments.verdicts import verdict
from jgram import rank_reports
from jgram.data import cifar10_embeddings
from jgram.simulate.policies import corrupt, mix, uniform

SHARES = (0.0, 0.15, 0.3, 0.5)
BESIDE = "truth"


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """The ranking of the command's second half, on a tenth of the images where ``smoke``."""
    embeddings, labels, provenance = cifar10_embeddings()
    records = slice(None, None, 10 if smoke else 1)
    reports = {
        f"{share:.0%} replaced": np.asarray(
            corrupt(key, jnp.asarray(labels), mix(uniform(10), share))
        )[records]
        for share, key in zip(SHARES, jax.random.split(jax.random.key(seed), 4), strict=True)
    }
    found = rank_reports(reports, embeddings[records], key=jax.random.key(seed))
    truth = dict(zip(reports, SHARES, strict=True))
    return {
        "epochs": provenance["epochs"],
        "conclusion": found.conclusion,
        "reports": [
            {
                "name": report.name,
                "keeps": report.keeps,
                "interval": report.keeps_interval,
                "ranks": [report.first_rank, report.last_rank],
                "true": 1 - truth[report.name],
            }
            for report in found.reports
        ],
    }


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a report."""
    return [
        {
            "quantity": f"{one['name']} keeps (truth: {one['true']:.2f})",
            "paper": "",
            "ours": one["keeps"],
            "interval": "{:.3f} to {:.3f}; ranks {} to {}".format(*one["interval"], *one["ranks"]),
        }
        for one in results["reports"]
    ]


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, the truth and ours, and a verdict."""
    others = results["reports"][1:]
    numbers = [
        (
            f"{one['name']} keeps",
            f"{one['true']:.2f}",
            "{:.2f} [{:.2f}, {:.2f}]".format(one["keeps"], *one["interval"]),
        )
        for one in others
    ]
    holds = [one["interval"][0] <= one["true"] <= one["interval"][1] for one in others]
    words = "**Holds**: the order is right, all ranks are certain, every interval has the truth."
    return numbers, verdict(
        words, *holds, *(one["ranks"][0] == one["ranks"][1] for one in results["reports"])
    )


def plot(results: dict[str, Any], path: Any) -> None:
    """What each report keeps, with its interval, beside the truth."""
    figure, axes = panels(1, 1, width=7.5, height=2.6)
    title = "10,000 images, a share of the labels replaced at random, ranked without the truth"
    shares(axes[0, 0], results["reports"], title)
    save(figure, axes.flat, path)
