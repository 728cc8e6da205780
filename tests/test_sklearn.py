"""The estimator in the manner of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import jgram
from jgram.sklearn import ReliabilityRanker
from tests.refusals import refused

# Checks of scikit-learn's that do not hold, and why. Those of the array API are skipped by
# scikit-learn itself unless SCIPY_ARRAY_API is set.
EXPECTED_TO_FAIL = {
    "check_fit_score_takes_y": "the second argument is named reports: they are no target",
}


@pytest.mark.thorough
@parametrize_with_checks(
    [ReliabilityRanker()], expected_failed_checks=lambda _: EXPECTED_TO_FAIL, xfail_strict=True
)
def test_it_keeps_the_conventions_of_scikit_learn(estimator, check, unchecked):
    check(estimator)


@pytest.mark.thorough
def test_it_is_the_ranking():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 240)
    bad = np.where(rng.random(240) < 0.5, rng.integers(0, 3, 240), truth)
    words = np.array(["a", "b", "c"])
    reports = pd.DataFrame({"bad": words[bad], "good": words[truth]})
    observations = pd.DataFrame({"seen": words[np.roll(truth, 0)]})
    ranker = ReliabilityRanker(confidence=0.9)
    fitted = clone(ranker).fit(observations, reports)
    expected = jgram.rank_reports(reports.to_dict("series"), observations, confidence=0.9)
    assert fitted.ranking_ == expected
    assert fitted.report_names_.tolist() == ["bad", "good"]
    assert fitted.order_.tolist() == [1, 0]
    assert fitted.keeps_.tolist() == [expected.reports[1].keeps, 1.0]
    assert fitted.feature_names_in_.tolist() == ["seen"]
    alone = ranker.fit(observations, reports["good"].to_numpy())
    assert alone.ranking_ == jgram.score(
        reports["good"], observations, name="report0", confidence=0.9
    )
    assert alone.report_names_.tolist() == ["report0"]
    assert "y is None: pass the reports" in refused(ranker.fit, observations, None)
