"""Simulated reports: ground truth, manipulation policies, exact samplers, sweeps on one device."""

from jgram.simulate import policies, sampling
from jgram.simulate.experiment import (
    imbalanced_prior,
    low_rank_experiment,
    quantile_buckets,
    random_experiment,
    truth,
    truth_counts,
)
from jgram.simulate.sweeps import (
    Trial,
    sweep,
    sweep_records,
    table_log_score,
    trial,
    trial_key,
)

__all__ = [
    "Trial",
    "imbalanced_prior",
    "low_rank_experiment",
    "policies",
    "quantile_buckets",
    "random_experiment",
    "sampling",
    "sweep",
    "sweep_records",
    "table_log_score",
    "trial",
    "trial_key",
    "truth",
    "truth_counts",
]
