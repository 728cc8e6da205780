"""The names that stand at the root: ``jgram.score`` is what ``jgram.public.score`` is."""

from jgram import (  # fmt: skip
    dependence,
    determinant,
    findings,
    gram_matrix,
    influences,
    kernels,
    noise,
    observed,
    scores,
    simulate,
    stratified,
    uncertainty,
)
from jgram.annotators import rank_annotators
from jgram.binding import Intake, bind_files
from jgram.findings import Finding
from jgram.gram_matrix import gram
from jgram.influences import influence
from jgram.issues import label_issues
from jgram.kernels import (
    RBF,
    Delta,
    Linear,
    PseudoPosterior,
    RandomFeatures,
    delta,
    linear,
    rbf,
)
from jgram.noise import bootstrap, noise_floor
from jgram.observed import observe
from jgram.paper import guarantees, orderings
from jgram.ranking import Ranking, ScoreReport
from jgram.report import compare, rank_reports, score
from jgram.results import load, schema
from jgram.scores import plugin_log_score, plugin_score
from jgram.stratified import stratified_matching_score

__all__ = [
    "RBF", "Delta", "Finding", "Intake", "Linear", "PseudoPosterior", "RandomFeatures",
    "Ranking", "ScoreReport", "bind_files", "bootstrap", "compare", "delta", "dependence",
    "determinant", "findings", "gram", "gram_matrix", "guarantees", "influence", "influences",
    "kernels", "label_issues", "linear", "load", "noise", "noise_floor", "observe", "observed",
    "orderings", "plugin_log_score", "plugin_score", "rank_annotators", "rank_reports", "rbf",
    "schema", "score", "scores", "simulate", "stratified", "stratified_matching_score",
    "uncertainty",
]  # fmt: skip
