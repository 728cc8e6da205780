"""How reliable is reported data when nobody can check it? The Gram determinant score on JAX.

>>> import jgram
>>> report = jgram.score(["yes", "no", "no", "yes"] * 25, [1.2, 0.1, 0.3, 0.9] * 25)
>>> report.rank
2
"""

from jgram import dependence, guarantees, orderings, policies, simulate
from jgram.annotators import rank_annotators
from jgram.dependence import ky_fan_sum, maximal_correlation, mutual_information, top_k_volume
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
from jgram.label_issues import label_issues
from jgram.report import Ranking, ScoreReport, rank_reports, score
from jgram.scores import plugin_log_score, plugin_score
from jgram.stratified import stratified_matching_score, unbiased_score

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
    "dependence",
    "gram",
    "gram_of_state",
    "guarantees",
    "influence",
    "init",
    "joint_table",
    "ky_fan_sum",
    "label_issues",
    "leave_one_out",
    "linear",
    "linearise",
    "log_determinant",
    "log_determinant_of_sums",
    "maximal_correlation",
    "median_bandwidth",
    "merge",
    "mutual_information",
    "noise_floor",
    "orderings",
    "plugin_log_score",
    "plugin_score",
    "policies",
    "rank_annotators",
    "rank_reports",
    "rbf",
    "relabelling_gains",
    "resolve",
    "score",
    "simulate",
    "standard_error",
    "stratified_matching_score",
    "top_k_volume",
    "unbiased_score",
    "update",
]
