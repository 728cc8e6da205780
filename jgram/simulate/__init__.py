"""Simulated reports: ground truth, manipulation policies, exact samplers, sweeps on one device."""

from jgram.simulate import policies, sampling
from jgram.simulate.policies import random_experiment, truth, truth_counts
from jgram.simulate.sweeps import Trial, sweep, sweep_records, table_log_score, trial, trial_key

__all__ = [
    "Trial", "policies", "random_experiment", "sampling", "sweep", "sweep_records",
    "table_log_score", "trial", "trial_key", "truth", "truth_counts",
]  # fmt: skip
