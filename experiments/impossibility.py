"""Proposition 3.1: what no score can do, executed.

A score sees the joint table of observations and reports, and nothing else. Four constructions give
it equal tables where the orderings demand different scores.
"""

from typing import Any

import numpy as np

from experiments.verdicts import verdict
from jgram.paper.guarantees import (
    Setting,
    dependence_impossibility,
    distance_impossibility,
    log_population_score,
    relabelling_impossibility,
    uninformative_impossibility,
)
from jgram.paper.orderings import (
    blackwell_ordering,
    dist_ordering,
    exact_match_ordering,
    hamming_ordering,
)

EXPERIMENT = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.3], [0.1, 0.2, 0.6]])
DEPENDENT = np.array([[0.8, 0.2, 0.5], [0.2, 0.8, 0.5]])
SEMIMETRICS = 10_000


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
        "hamming": described((one, two), hamming_ordering),
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
