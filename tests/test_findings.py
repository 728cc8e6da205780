"""Findings: each at its threshold."""

import jax.numpy as jnp
import numpy as np
import pytest

import jgram
from jgram.findings import Evidence, diagnose, relabelling
from jgram.observed import observe
from jgram.uncertainty import uncertainties

CLASSES = ["low", "mid", "high"]


def evidence(x_hat, y, kernel="delta", seen=2.0, noise_p_value=0.01, confidence=0.95):
    found = uncertainties({"": x_hat}, y, kernel, num_classes=len(CLASSES))[""]
    return Evidence(x_hat, observe(kernel, y), CLASSES, found, seen, noise_p_value, confidence)


def names(found):
    return {finding.name: finding for finding in diagnose(found)}


SURE = np.repeat([0, 1, 2], 30)


def test_a_clear_report_has_no_findings():
    assert diagnose(evidence(SURE, SURE)) == []


@pytest.mark.parametrize(
    ("n", "options", "name", "value", "words"),
    [
        (89, {}, "rare class", 29, "'high' is reported 29 times"),
        (61, {}, "rare class", 1, "no unbiased score"),
        (90, {"noise_p_value": 0.051}, "inside the noise", 0.051, "0.051"),
        (90, {"noise_p_value": 0.002, "confidence": 0.999}, "inside the noise", 0.002, "0.002"),
        (90, {"seen": 0.9}, "volume of noise", 0.9, "3 classes differ in 2 independent ways"),
    ],
)
def test_each_doubt_has_its_threshold(n, options, name, value, words):
    finding = names(evidence(SURE[:n], SURE[:n], **options))[name]
    assert (finding.level, finding.value) == ("warning", value)
    assert words in finding.message
    assert ("no unbiased" in finding.message) == (words == "no unbiased score")


def test_a_doubt_just_short_of_its_threshold_is_not_said():
    assert diagnose(evidence(SURE, SURE, seen=1.0, noise_p_value=0.05)) == []
    assert diagnose(evidence(SURE, SURE, noise_p_value=0.083, confidence=0.8)) == []
    assert "no unbiased" not in names(evidence(SURE[:62], SURE[:62]))["rare class"].message


def test_the_class_that_is_nearly_a_mixture_is_named():
    """Class 1 is seen as itself in 5 of its 100 records, else as 0 or as 2."""
    x_hat, rest = np.repeat([0, 1, 2], 100), np.repeat([0, 1, 2], [48, 5, 47])
    y = np.where(x_hat == 1, np.pad(rest, 100), x_hat)
    finding = names(evidence(x_hat, y))["near mixture"]
    assert finding.level == "note"
    assert "'mid'" in finding.message
    assert finding.value == pytest.approx(5 / np.linalg.norm([48, 5, 47]))
    assert "0.074" in finding.message


def test_a_score_of_noise_is_near_singular():
    rng = np.random.default_rng(0)
    found = evidence(SURE, rng.integers(0, 3, 90))
    error = found.uncertainty.standard_error
    assert names(found)["near singular"].value == error >= 0.6


def test_the_merged_pair_is_named():
    y = np.where(SURE == 2, np.arange(90) % 2 + 1, np.where(SURE == 1, np.arange(90) % 2 + 1, 0))
    y[0] = 3
    (finding,) = diagnose(evidence(SURE, y))
    assert (finding.name, finding.level, finding.value) == ("merged classes", "fatal", 2)
    assert "rank 2 of 3" in finding.message
    assert "'mid' and 'high'" in finding.message or "'high' and 'mid'" in finding.message


@pytest.mark.thorough
def test_centred_features_are_cured_by_the_constant():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(90, 3)) + 3 * np.eye(3)[SURE]
    y -= y.mean(axis=0)
    report = jgram.score(SURE, y, jgram.linear)
    assert report.findings[0].name == "centred features"
    assert report.log_score is None
    cured = jgram.score(SURE, y, jgram.Linear(lambda point: jnp.append(point, 1.0)))
    assert cured.log_score is not None


def test_a_relabelled_report_is_described():
    truth = np.repeat([0, 1, 2], 40)
    turned, names = (truth + 2) % 3, np.array([1, 2, 0])
    turned[:4] = truth[:4]
    finding = relabelling(("a", truth), ("b", turned, names), CLASSES)
    assert finding.value == pytest.approx(4 / 120)
    assert finding.level == "warning"
    assert "3% of the records, and on 97%" in finding.message
    assert "'low' as 'mid', 'mid' as 'high', 'high' as 'low'" in finding.message
    weighted = relabelling(("a", truth), ("b", turned, names), CLASSES, 1.0 * (np.arange(120) < 8))
    assert "50% of the records, and on 50%" in weighted.message
