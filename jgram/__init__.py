"""How reliable is reported data when nobody can check it? The Gram determinant score on JAX.

>>> import jgram
>>> report = jgram.score(["yes", "no", "no", "yes"] * 25, [1.2, 0.1, 0.3, 0.9] * 25)
>>> report.rank
2
"""

from jgram.determinant import log_determinant, log_determinant_of_sums
from jgram.diagnostics import Finding, conditional_independence
from jgram.gram import GramState, gram, gram_of_state, init, joint_table, merge, update
from jgram.inference import bootstrap, compare, noise_floor, standard_error
from jgram.influence import influence, leave_one_out, linearise, relabelling_gains
from jgram.kernels import (
    RBF,
    Delta,
    Linear,
    PseudoPosterior,
    RandomFeatures,
    delta,
    linear,
    median_bandwidth,
    rbf,
    resolve,
)
from jgram.report import Ranking, ScoreReport, rank_reports, score
from jgram.scores import plugin_log_score, plugin_score

__version__ = "0.1.0"

__all__ = [
    "RBF",
    "Delta",
    "Finding",
    "GramState",
    "Linear",
    "PseudoPosterior",
    "RandomFeatures",
    "Ranking",
    "ScoreReport",
    "bootstrap",
    "compare",
    "conditional_independence",
    "delta",
    "gram",
    "gram_of_state",
    "influence",
    "init",
    "joint_table",
    "leave_one_out",
    "linear",
    "linearise",
    "log_determinant",
    "log_determinant_of_sums",
    "median_bandwidth",
    "merge",
    "noise_floor",
    "plugin_log_score",
    "plugin_score",
    "rank_reports",
    "rbf",
    "relabelling_gains",
    "resolve",
    "score",
    "standard_error",
    "update",
]
