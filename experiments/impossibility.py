"""Proposition 3.1: what no score can do, executed.

A score sees the joint table of observations and reports, and nothing else. Four constructions give
it equal tables where the orderings demand different scores.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from experiments.verdicts import verdict
from jgram.paper.guarantees import log_population_score
from jgram.paper.orderings import (
    blackwell_ordering,
    check_experiment,
    dist_ordering,
    exact_match_ordering,
)

EXPERIMENT = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.3], [0.1, 0.2, 0.6]])
DEPENDENT = np.array([[0.8, 0.2, 0.5], [0.2, 0.8, 0.5]])
SEMIMETRICS = 10_000


class Setting(NamedTuple):
    """An experiment and two reports, the first better than the second by the ordering at hand.

    Attributes:
        experiment: ``P[m, d]``.
        better: Misreport matrix ``[d, d]`` of the better report.
        worse: That of the worse one.
    """

    experiment: np.ndarray
    better: np.ndarray
    worse: np.ndarray

    @property
    def joints(self) -> tuple[np.ndarray, np.ndarray]:
        """All that a score gets to see of the better and the worse report: ``P Q`` and ``P Q'``."""
        return self.experiment @ self.better, self.experiment @ self.worse


def uninformative_impossibility(
    distribution: ArrayLike, num_classes: int, *, mixing: float = 0.5
) -> Setting:
    """No score orders exact matches where labels cannot be told apart by their observations.

    Every column of the experiment is ``distribution``; the worse report replaces a share
    ``mixing`` of a balanced truth by uniform noise. Both joint tables are the same.

    Args:
        distribution: ``[m]``, sums to one.
        num_classes: ``d``, at least 2.
        mixing: In (0, 1].

    Returns:
        One :class:`Setting` whose two joint tables are equal.

    Raises:
        ValueError: No distribution, ``mixing`` out of range.

    Reference: Proposition 3.1(1), first part, of *Data Reliability Scoring*.
    """
    if num_classes < 2:
        raise ValueError(f"expected at least 2 classes, got {num_classes}")
    if not 0.0 < mixing <= 1.0:
        raise ValueError(f"expected mixing in (0, 1], got {mixing}")
    column = np.asarray(distribution, np.float64)[:, None]
    experiment = check_experiment(np.repeat(column, num_classes, axis=1))
    truth = np.eye(num_classes) / num_classes
    return Setting(experiment, truth, (1.0 - mixing) * truth + mixing / num_classes**2)


def relabelling_impossibility(
    experiment: ArrayLike, permutation: Sequence[int]
) -> tuple[Setting, Setting]:
    """No score tells the truth from a relabelling of it: two settings, each the other's mirror.

    In the first the truth is reported and its relabelling is worse; in the second, with the
    experiment's columns permuted, it is the other way round. The joint tables are the same two.

    Args:
        experiment: ``P[m, d]`` with independent columns.
        permutation: ``[d]``: what label ``i`` is relabelled to; not the identity.

    Returns:
        Two settings with ``first.joints == second.joints[::-1]``.

    Raises:
        ValueError: No experiment, no permutation of its labels, or the identity.

    Reference: Proposition 3.1(1), second part, of *Data Reliability Scoring*.
    """
    p = check_experiment(experiment)
    d = p.shape[1]
    if sorted(permutation) != list(range(d)) or list(permutation) == list(range(d)):
        raise ValueError(f"expected a permutation of 0..{d - 1} other than the identity")
    relabel, truth = np.eye(d)[list(permutation)], np.eye(d) / d
    return Setting(p, truth, relabel / d), Setting(p @ relabel, truth, relabel.T / d)


def dependence_impossibility(
    experiment: ArrayLike, null_vector: ArrayLike, *, mixing: float = 0.25
) -> Setting:
    """No score keeps the Blackwell ordering under an experiment with dependent columns.

    From ``P v = 0`` a report in ``Q_reg`` is built two of whose reported labels have one and the
    same distribution of observations; mixing the two is a garbling that nobody can see.

    Args:
        experiment: ``P[m, d]`` with dependent columns.
        null_vector: ``v[d]``, not zero, with ``P v = 0``.
        mixing: Share of the two labels that is swapped, in (0, 1/2).

    Returns:
        One :class:`Setting` whose two joint tables are equal.

    Raises:
        ValueError: No experiment, no null vector of it, ``mixing`` out of range.

    Reference: Proposition 3.1(2) and appendix C of *Data Reliability Scoring*.
    """
    p, v = check_experiment(experiment), np.asarray(null_vector, np.float64)
    if not 0.0 < mixing < 0.5:
        raise ValueError(f"expected mixing in (0, 1/2), got {mixing}")
    if v.shape != (p.shape[1],) or not v.any():
        raise ValueError(f"expected a null vector [{p.shape[1]}] other than 0, got {v}")
    v = v / (2.0 * np.abs(v).max())  # below 1, so that the other labels' diagonal stays maximal
    if not np.abs(p @ v).max() <= 1e-9:
        raise ValueError(f"expected P v = 0, got entries up to {np.abs(p @ v).max():.3g}")
    plus, minus = int(np.argmax(v)), int(np.argmin(v))
    better = np.eye(len(v))
    better[:, plus], better[:, minus] = np.maximum(v, 0.0), np.maximum(-v, 0.0)
    better /= better.sum()
    garbling = np.eye(len(v))
    garbling[np.ix_([plus, minus], [plus, minus])] = [[1 - mixing, mixing], [mixing, 1 - mixing]]
    return Setting(p, better, better @ garbling.T)


def distance_impossibility(num_classes: int = 3) -> tuple[Setting, Setting]:
    """No score keeps the Hamming ordering, or any dist ordering, on all of ``Q_dom``.

    Two settings with the same two joint tables in opposite order. The errors are cyclic on three
    labels, so that every semimetric agrees with the Hamming distance; further labels are reported
    and observed without error.

    Args:
        num_classes: ``d``, at least 3.

    Returns:
        Two settings with ``first.joints == second.joints[::-1]``.

    Raises:
        ValueError: Fewer than three classes.

    Reference: Proposition 3.1(3) and appendix C of *Data Reliability Scoring*.
    """
    if num_classes < 3:
        raise ValueError(f"expected at least 3 classes, got {num_classes}")
    ahead = np.roll(np.eye(3), 1, axis=1)

    def padded(diagonal: float, off_diagonal: np.ndarray) -> np.ndarray:
        matrix = np.eye(num_classes)
        matrix[:3, :3] = diagonal * np.eye(3) + (1.0 - diagonal) * off_diagonal
        return matrix

    experiment = padded(0.74, ahead.T)
    better, worse = padded(0.8, ahead.T) / num_classes, padded(0.7, ahead) / num_classes
    return (
        Setting(experiment, better, worse),
        Setting(np.eye(num_classes), experiment @ worse, experiment @ better),
    )


def run(*, smoke: bool, as_published: bool, seed: int) -> dict[str, Any]:
    """The constructions, each checked, and printed as a contradiction."""
    one, two = distance_impossibility()
    mirrored = relabelling_impossibility(EXPERIMENT, [1, 2, 0])
    uninformative = uninformative_impossibility([0.5, 0.3, 0.2], 3)
    dependent = dependence_impossibility(DEPENDENT, [1, 1, -2])
    draws = SEMIMETRICS // (100 if smoke else 1)
    results = {
        "exact_match_uninformative": described((uninformative,), exact_match_ordering),
        "exact_match_relabelling": described(mirrored, exact_match_ordering),
        "blackwell": described((dependent,), blackwell_ordering),
        "hamming": described((one, two), dist_ordering),
        "semimetrics": draws,
        "semimetrics_contradicted": contradicted(one, two, draws, seed),
    }
    print("\n\n".join(contradiction(name, results[name]) for name in CLAIMS))
    return results


def described(settings: tuple[Setting, ...], ordering: Any) -> dict[str, Any]:
    """The settings with all that is claimed of them, computed.

    ``gap`` is the largest difference between joint tables that the argument needs to be equal: of
    better and worse in one setting, or of the better in one and the worse in the other setting.
    """
    first, last = settings[0].joints, settings[-1].joints
    return {
        "settings": [
            {
                **setting._asdict(),
                "better_dominates": ordering(setting.better, setting.worse).dominates,
                "errors": [float(1 - np.trace(q)) for q in (setting.better, setting.worse)],
                "log_scores": [
                    log_population_score(setting.experiment, q)
                    for q in (setting.better, setting.worse)
                ],
            }
            for setting in settings
        ],
        "gap": float(max(np.abs(first[0] - last[1]).max(), np.abs(first[1] - last[0]).max())),
    }


def contradicted(one: Setting, two: Setting, draws: int, seed: int) -> int:
    """For how many random semimetrics the pair for the Hamming ordering works as well."""
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(draws):
        upper = np.triu(rng.exponential(size=(3, 3)) + 1e-3, 1)
        found += all(
            dist_ordering(setting.better, setting.worse, upper + upper.T).dominates
            for setting in (one, two)
        )
    return found


CLAIMS = {
    "exact_match_uninformative": "Exact match, labels with one and the same distribution",
    "exact_match_relabelling": "Exact match, a relabelling allowed",
    "blackwell": "Blackwell, an experiment with dependent columns",
    "hamming": "Hamming, all of Q_dom",
}


def contradiction(name: str, result: dict[str, Any]) -> str:
    """One construction in words and numbers."""
    lines = [f"{CLAIMS[name]} (Proposition 3.1)"]
    for number, setting in enumerate(result["settings"], 1):
        shares = " against ".join(f"{error:.3f}" for error in setting["errors"])
        lines.append(f"  setting {number}: better than worse, share misreported {shares}")
        for label in ("experiment", "better", "worse"):
            rows = np.array2string(np.asarray(setting[label]), precision=4, suppress_small=True)
            lines.append(f"    {label:<10} = " + rows.replace("\n", "\n" + 17 * " "))
    one = len(result["settings"]) == 1
    which = "better and worse" if one else "better in 1 = worse in 2, worse in 1 = better in 2"
    lines.append(f"  joint tables equal up to {result['gap']:.1e}: {which}")
    wanted = "S > S" if one else "S(A) > S(B) and S(B) > S(A)"
    lines.append(f"  a score that keeps the ordering would have {wanted}: there is none")
    return "\n".join(lines)


def table_rows(results: dict[str, Any]) -> list[dict[str, Any]]:
    """What each construction shows."""
    rows = [
        {
            "quantity": f"Proposition 3.1, {claim}: orderings demanded / joint tables differ by",
            "paper": "all / 0",
            "ours": f"{sum(s['better_dominates'] for s in results[name]['settings'])} of "
            f"{len(results[name]['settings'])} / {results[name]['gap']:.0e}",
            "interval": "exact",
        }
        for name, claim in CLAIMS.items()
    ]
    total, found = results["semimetrics"], results["semimetrics_contradicted"]
    rows.append(
        {
            "quantity": "Proposition 3.1, the Hamming pair under random semimetrics: contradicted",
            "paper": "every one",
            "ours": f"{found} of {total}",
            "interval": "proof: only the sum of the three distances matters",
        }
    )
    return rows


def summary(results: dict[str, Any]) -> tuple[list[tuple[str, str, str]], str]:
    """Three numbers, the paper's and ours, and a verdict."""
    pairs = [pair for name in CLAIMS for pair in results[name]["settings"]]
    demanded = sum(pair["better_dominates"] for pair in pairs)
    gap = max(results[name]["gap"] for name in CLAIMS)
    total, found = results["semimetrics"], results["semimetrics_contradicted"]
    numbers = [
        ("orderings demanded by the constructions", "all", f"{demanded} of {len(pairs)}"),
        ("what a score sees differs by", "0", "0, but for rounding"),
        ("random semimetrics that the Hamming pair contradicts", "all", f"{found:,} of {total:,}"),
    ]
    words = (
        "**Reproduced**: each construction gives every score the same joint table where the "
        "orderings demand different scores. Slips of the printed proofs: [PAPER.md](PAPER.md)."
    )
    return numbers, verdict(words, demanded == len(pairs), gap < 1e-15, found == total)
