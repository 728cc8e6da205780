"""Figure 1: the parallelepipeds whose squared volumes are the scores of the truth and of a report.

The matrices are the paper's. Its caption draws the report as ``P Q_x Q_{reported|true}``, whose
columns are mixtures of those of the truth, ``P Q_x``; what is scored is
``P Q = P Q_x Q_{reported|true}^T``, which has the same determinant.
"""

from itertools import product
from typing import Any

import numpy as np

from experiments.verdicts import verdict
from jgram.paper.guarantees import log_population_score
from jgram.paper.orderings import hamming_distance, is_regular, reported_given_true

EXPERIMENT = np.array([[0.1, 0.1, 0.7], [0.9, 0.1, 0.2], [0.0, 0.8, 0.1]])
MISREPORT = np.array([[0.03, 0.27, 0.0], [0.03, 0.03, 0.24], [0.28, 0.08, 0.04]])


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """Edges and volumes of both parallelepipeds; nothing is random, and nothing takes long."""
    truth = np.diag(MISREPORT.sum(axis=1))
    edges = {
        "truth": EXPERIMENT @ truth,
        "report": EXPERIMENT @ truth @ reported_given_true(MISREPORT),
    }
    return {
        "edges": edges,
        "volumes": {name: abs(float(np.linalg.det(columns))) for name, columns in edges.items()},
        "log_scores": {
            "truth": log_population_score(EXPERIMENT, truth),
            "report": log_population_score(EXPERIMENT, MISREPORT),
        },
        "hamming_distance": hamming_distance(MISREPORT),
        "diagonally_maximal": is_regular(MISREPORT),
    }


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Both scores, and what their ratio is."""
    volumes, scores = results["volumes"], {k: np.exp(v) for k, v in results["log_scores"].items()}
    shares = f"{results['hamming_distance']:.0%} of the records misreported"
    return [
        {
            "quantity": f"Figure 1, score of the {name} = squared volume",
            "paper": "drawn",
            "ours": f"{scores[name]:.3e}",
            "interval": f"exact; volume {volumes[name]:.5f}",
        }
        for name in ("truth", "report")
    ] + [
        {
            "quantity": "Figure 1, volume of the report over the truth's = det Q_reported|true",
            "paper": "smaller",
            "ours": f"{volumes['report'] / volumes['truth']:.2f}",
            "interval": f"exact; {shares}, diagonally maximal: {results['diagonally_maximal']}",
        }
    ]


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, the paper's and ours, and a verdict."""
    truth, report = results["volumes"]["truth"], results["volumes"]["report"]
    numbers = [
        ("volume of the truth (its score is the square)", "drawn", f"{truth:.5f}"),
        ("volume of the report", "drawn smaller", f"{report:.5f}"),
        ("ratio, the determinant of the misreport matrix", "", f"{report / truth:.2f}"),
    ]
    words = (
        "**Reproduced**, exactly. The report drawn is far from the truth: "
        f"{results['hamming_distance']:.0%} of its records are wrong."
    )
    return numbers, verdict(words, report < truth, not results["diagonally_maximal"])


def plot(results: dict[str, Any], path: Any) -> None:
    """Both parallelepipeds, one edge a reported label."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    from experiments import figures

    figure = figures.plt.figure(figsize=(6.0, 4.8))
    axis: Any = figure.add_axes((0.0, 0.02, 0.95, 0.98), projection="3d")
    for name, colour in (("truth", "C0"), ("report", "C3")):
        edges = np.asarray(results["edges"][name]).T
        label = f"{name}: volume {results['volumes'][name]:.5f}"
        axis.add_collection3d(
            Poly3DCollection(faces(edges), facecolor=colour, edgecolor=colour, alpha=0.15, lw=0.8)
        )
        for number, edge in enumerate(edges, 1):
            axis.quiver(
                0, 0, 0, *edge, color=colour, lw=2, arrow_length_ratio=0.07,
                label=label if number == 1 else None,
            )  # fmt: skip
            x, y, z = 1.06 * edge
            axis.text(x, y, z, str(number), color=colour)
    farthest = np.sum(list(results["edges"].values()), axis=2).max(axis=0)
    axis.set(xlim=(0, farthest[0]), ylim=(0, farthest[1]), zlim=(0, farthest[2]))
    axis.set(xlabel="$y=1$", ylabel="$y=2$", zlabel="$y=3$")
    axis.locator_params(nbins=4)
    axis.view_init(elev=18, azim=-62)
    axis.legend(loc="upper right", fontsize=9)
    axis.set_title("a report spans less than the truth", fontsize=9, loc="left", y=0.95)
    figures.save(figure, [axis], path)


def faces(edges: np.ndarray) -> list[np.ndarray]:
    """The six faces ``[4, 3]`` of the parallelepiped with edges ``[3, 3]`` from the origin."""
    return [
        side * edges[k] + np.array([[0, 0], [0, 1], [1, 1], [1, 0]]) @ np.delete(edges, k, axis=0)
        for k, side in product(range(3), (0, 1))
    ]
