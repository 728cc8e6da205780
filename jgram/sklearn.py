"""The ranking as an estimator in the manner of scikit-learn, which only this module needs."""

from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from jgram.data.columns import named_columns
from jgram.report import rank_reports, score

__all__ = ["ReliabilityRanker"]


class ReliabilityRanker(BaseEstimator):
    """Rank reports ``[n, k]`` of the same records by what can be observed of them ``[n, m]``.

    Both are arrays or data frames. A single report is scored: nothing to rank it against.

    Attributes:
        ranking_: The :class:`jgram.Ranking`; of a single report its :class:`jgram.ScoreReport`.
        report_names_: Names ``[k]``, the columns' or ``report0``, ``report1``, ...
        keeps_: What each keeps of the best one's information ``[k]``, NaN where that is unknown.
        order_: Columns ``[k]``, the most reliable first.

    Example:
        >>> truth = np.arange(200) % 2
        >>> noisy = np.where(np.arange(200) % 7 == 0, 1 - truth, truth)
        >>> found = ReliabilityRanker().fit(truth[:, None], np.column_stack([noisy, truth]))
        >>> found.order_.tolist(), found.keeps_.round(2).tolist()
        ([1, 0], [0.71, 1.0])
    """

    def __init__(
        self, kernel=None, *, missing="keep", block_length=1, confidence=0.95, random_state=0
    ):
        self.kernel = kernel
        self.missing = missing
        self.block_length = block_length
        self.confidence = confidence
        self.random_state = random_state

    def fit(self, observations: Any, reports: Any) -> "ReliabilityRanker":
        """Rank; arguments as in :func:`jgram.rank_reports`, ``random_state`` seeds its ``key``."""
        if hasattr(observations, "columns"):
            validate_data(self, observations, skip_check_array=True)
            y = named_columns(observations, "observations")
        else:
            y = validate_data(self, observations, ensure_min_samples=2)
        if reports is None:
            raise ValueError("requires y to be passed, but the target y is None: pass the reports")
        if hasattr(reports, "columns"):
            labels = named_columns(reports, "reports")
        else:
            checks: Any = {"dtype": None, "ensure_2d": False, "ensure_all_finite": False}
            block = check_array(reports, **checks)
            labels = {f"report{j}": x for j, x in enumerate(block.reshape(len(block), -1).T)}
        options = {name: getattr(self, name) for name in ("kernel", "missing", "confidence")}
        names = list(labels)
        self.report_names_ = np.array(names, object)
        if len(names) == 1:
            self.ranking_ = score(labels[names[0]], y, name=names[0], **options)
            self.keeps_, self.order_ = np.ones(1), np.zeros(1, int)
            return self
        key = jax.random.key(self.random_state)
        self.ranking_ = rank_reports(labels, y, key=key, block_length=self.block_length, **options)
        keeps = {one.name: one.keeps for one in self.ranking_.reports}
        self.keeps_ = np.array([keeps[name] for name in names], float)
        self.order_ = np.array([names.index(name) for name in keeps])
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        return tags
