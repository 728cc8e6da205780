"""Kinds of evidence: each by another route, joined where they agree, said where they do not."""

import numpy as np
import pytest

import jgram
from experiments.evidence import around, flipped
from jgram import rank_reports
from jgram.arrays import float64
from jgram.assumptions import disagreement_test, instruments
from jgram.binding import bind_observations
from jgram.evidence import BETWEEN, by_gold, by_others, contrast, join, rows_to_check
from jgram.gold import accuracies
from jgram.kernels import Linear
from jgram.observed import observe
from tests.refusals import refused
from tests.test_assumptions import leak


def panel(seed, n=600, shares=(0.1, 0.2, 0.3, 0.4)):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, n)
    return x, {f"r{i}": flipped(rng, x, share) for i, share in enumerate(shares)}


def with_gold(x, rows):
    return [int(label) if i in set(rows) else None for i, label in enumerate(x)]


@pytest.mark.thorough
def test_a_pair_through_the_only_other_report_is_a_pair_through_its_labels(monkeypatch):
    """One report is left of three: any one-to-one function of its labels gives the same, but for
    the ridge of the scorer; records that are labelled alike count as one, or each."""
    _, reports = panel(0, shares=(0.1, 0.2, 0.3))
    labels = np.stack([*reports.values()])
    found, posteriors = by_others(labels, 3)
    with float64():
        third = observe(Linear(), np.eye(3)[labels[2]])
        expected = jgram.contrasts.payoffs(third, labels[:2], num_classes=3)
    np.testing.assert_allclose(found.values[0], expected.values, rtol=2e-3)
    np.testing.assert_allclose(found.covariance[0], expected.covariance, rtol=5e-3)
    np.testing.assert_allclose(posteriors.sum(axis=2), 1.0)
    monkeypatch.setattr(jgram.evidence, "FOLDED", 0)
    folded, said = by_others(labels, 3)
    np.testing.assert_allclose(folded.values, found.values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(said, posteriors, rtol=1e-6)


@pytest.mark.thorough
def test_swapping_two_reports_turns_the_sign_of_their_differences():
    _, reports = panel(1)
    labels = np.stack([*reports.values()])
    one, two = by_others(labels, 3)[0], by_others(labels[[1, 0, 2, 3]], 3)[0]
    np.testing.assert_allclose(one.differences[0], -two.differences[0], atol=1e-9)


def test_a_join_is_the_mean_by_precision_and_contradictions_are_named():
    x, reports = panel(2)
    labels, gold = np.stack([*reports.values()]), np.where(np.arange(600) < 90, x, -1)
    kinds = {"other reports": by_others(labels, 3)[0], "gold": by_gold(labels, gold, 3)}
    found = join(kinds, 1.96)
    parts = [contrast(paid) for paid in kinds.values()]
    (a, b), (u, v) = ([part[i] for part in parts] for i in (0, 1))
    u = np.hypot(u, BETWEEN)  # reports share errors
    expected = (a / u**2 + b / v**2) / (1 / u**2 + 1 / v**2)
    with np.errstate(invalid="ignore"):
        both = np.isfinite(expected)
    assert both.any()
    np.testing.assert_allclose(contrast(found.pairs)[0][both], expected[both], rtol=1e-9)
    assert found.against == (None,) * 6
    shifted = kinds["gold"]._replace(means=kinds["gold"].means[:, ::-1])
    turned = join({**kinds, "gold": shifted}, 1.96)
    assert ("other reports", "gold") in turned.against


@pytest.mark.thorough
def test_reports_without_observations_are_ranked_by_one_another():
    x, reports = panel(3)
    found = rank_reports(reports)
    assert [one.name for one in found.reports] == ["r0", "r1", "r2", "r3"]
    assert found.most_reliable == ("r0",)
    assert found.observations == "evidence: every report is judged by the other reports"
    keeps = [one.keeps for one in found.reports]
    np.testing.assert_allclose(keeps, np.array([0.9, 0.8, 0.7, 0.6]) / 0.9, atol=0.08)
    folded = rank_reports({name: np.tile(part, 2) for name, part in reports.items()},
                          weights=np.repeat([1, 0], 600))  # fmt: skip
    assert folded.conclusion == found.conclusion
    assert "expected 3 reports" in refused(rank_reports, {"a": x, "b": reports["r0"]})
    assert "expected y=" in refused(rank_reports, reports, None, "rbf")


@pytest.mark.thorough
def test_copies_do_not_speak_for_each_other():
    reports = panel(4)[1]
    poor = reports["r3"]
    found = rank_reports({"good": reports["r0"], "poor": poor, "copy": poor, "other": poor.copy()})
    assert found.most_reliable != ("poor",)
    assert {one.name for one in found.reports[:1]} == {"good"} or not found.separated


@pytest.mark.thorough
def test_a_garbled_copy_of_one_report_does_not_decide_between_two_equal_ones():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 600)
    y = 2.0 * np.eye(3)[x] + rng.normal(size=(600, 3))
    reports = {name: flipped(rng, x, 0.2, 3) for name in "ab"}
    found = rank_reports({**reports, "c": flipped(rng, reports["b"], 0.25, 3)}, y)
    (pair,) = (pair for pair in found.pairs if {pair.better, pair.worse} == {"a", "b"})
    assert not pair.separated


@pytest.mark.thorough
def test_a_report_predicted_from_the_observations_is_contradicted():
    for seed in range(3):
        reports, y = leak(seed)
        rng = np.random.default_rng([seed, 1])
        x = np.random.default_rng(seed).integers(0, 3, 1000)
        reports = {**reports, "c": flipped(rng, x, 0.3), "d": flipped(rng, x, 0.4)}
        found = rank_reports(reports, y)
        (pair,) = [one for one in found.pairs if {one.better, one.worse} == {"a", "b"}]
        assert "observations against other reports" in pair.doubts
        assert found.most_reliable != ("b",)
        assert "contradict each other" in found.conclusion
        assert {one.kind for one in pair.readings} == {"observations", "other reports"}


@pytest.mark.thorough
def test_gold_gives_accuracies_and_is_refused_where_it_is_none():
    x, reports = panel(5)
    rows = np.random.default_rng(0).permutation(600)[:60]
    found = rank_reports(reports, gold=with_gold(x, rows))
    for one in found.reports:
        true = (reports[one.name] == x).mean()
        assert abs(one.accuracy - true) < 0.12
        assert one.accuracy_interval[0] < one.accuracy < one.accuracy_interval[1]
    assert "accuracy" in str(found)
    two = {name: reports[name] for name in ("r0", "r3")}
    assert rank_reports(two, gold=with_gold(x, rows)).observations == "evidence: 60 right labels"
    for gold, said in (
        (x, "a full column is another report"),
        ([None] * 600, "every one of the 600 records lacks a label"),
        ([1] + [None] * 599, "two classes or more, got 1 alone"),
        ([7, 0, 1] + [None] * 597, "got 7"),
        (x[:5], "600"),
    ):
        assert said in refused(lambda gold=gold: rank_reports(reports, gold=gold))


@pytest.mark.thorough
def test_others_that_merge_classes_do_not_contradict_what_observations_see():
    """The only other report has two names for five classes, both rightly used."""
    rng = np.random.default_rng(8)
    x = rng.integers(0, 5, 400)
    reports = {"fine": flipped(rng, x, 0.1, 5), "rough": flipped(rng, x, 0.3, 5), "two": x // 3 * 3}
    y = np.eye(5)[x] * 3 + rng.normal(size=(400, 5))
    pairs = {(one.better, one.worse): one for one in rank_reports(reports, y).pairs}
    pair = pairs["fine", "rough"]
    assert pair.told
    assert [one.keeps is None for one in pair.readings] == [False, True]


@pytest.mark.thorough
def test_gold_judges_soft_reports_alone_and_beside_observations():
    x, reports = panel(6, 300)
    soft = {name: 0.7 * np.eye(3)[reports[name]] + 0.1 for name in ("r0", "r3")}
    y, gold = around(np.random.default_rng(7), x, 2.5), with_gold(x, range(60))
    alone, beside = rank_reports(soft, gold=gold), rank_reports(soft, y, gold=gold)
    assert alone.most_reliable == beside.most_reliable == ("r0",)
    assert [one.kind for one in beside.pairs[0].readings] == ["observations", "gold"]
    soft |= {"r1": soft["r0"]}
    assert "expected y= or gold= to rank soft reports" in refused(lambda: rank_reports(soft))


@pytest.mark.thorough
def test_the_numbers_say_the_order_that_the_words_say():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, reports = panel(seed, shares=rng.uniform(0.1, 0.7, 4))
        y = around(rng, x, rng.uniform(0.5, 2.5))
        gold = with_gold(x, rng.permutation(600)[:20])
        for evidence in ({"y": y}, {}, {"gold": gold}, {"y": y, "gold": gold}):
            found = rank_reports(reports, classes=[0, 1, 2], **evidence)
            best = found.most_reliable
            for pair in found.pairs:
                if pair.told:
                    assert pair.worse not in best
                    assert pair.retention is None or pair.retention < 1
            if len(best) == 1:
                assert f"{best[0]} is the most reliable" in found.conclusion
                assert found.reports[0].name == best[0]


@pytest.mark.thorough
def test_accuracies_of_few_gold_rows():
    """Nearer than gold alone with a reading that is right, no further with one upside down."""
    errors, held = {"alone": [], "right": [], "upside down": []}, []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        true, hard = rng.uniform(0.4, 0.9, 10), rng.normal(size=20)
        limit = np.quantile(rng.normal(size=(10, 4000)) + rng.normal(size=4000), true, axis=1)
        right = (rng.normal(size=(10, 20)) + hard < np.diag(limit)[:, None]).astype(float)
        reading = true + rng.normal(0, 0.05, 10)
        found = accuracies(right, [reading])
        errors["alone"].append(found.alone - true)
        errors["right"].append(found.mean - true)
        errors["upside down"].append(accuracies(right, [-reading]).mean - true)
        held.append((found.low <= true) & (true <= found.high))
    rmse = {}
    for name, part in errors.items():  # what the rows have in common no reading can tell
        away = np.array(part) - np.mean(part, axis=1, keepdims=True)
        rmse[name] = np.sqrt(np.mean(np.square(away)))
    assert rmse["right"] < 0.85 * rmse["alone"]
    assert rmse["upside down"] < 1.05 * rmse["alone"]
    assert 0.88 < np.mean(held) < 0.99


@pytest.mark.thorough
def test_where_records_weigh_alike_the_order_is_that_of_the_shares_of_right_labels():
    """One errs on the common class (91% right), the other on the rare one (94%)."""
    rng = np.random.default_rng(3)
    x = rng.choice(3, 3000, p=[0.6, 0.3, 0.1])
    y = around(rng, x, 3.0)
    reports = {
        "common": np.where((x == 0) & (rng.random(3000) < 0.15), 1, x),
        "rare": np.where((x == 2) & (rng.random(3000) < 0.6), 0, x),
    }
    one, other = rank_reports(reports, y), rank_reports(reports, y, weigh="records")
    assert [part.most_reliable for part in (one, other)] == [("common",), ("rare",)]
    for part, order in ((one, "rare, common"), (other, "common, rare")):
        (finding,) = (found for found in part.findings if found.name == "weights")
        assert f"then the order is {order}" in finding.message
    with float64():
        observed = bind_observations(y)[0]
        paid = jgram.contrasts.pair_payoffs(observed, np.stack([*reports.values()]), num_classes=3)
    paid = jgram.contrasts.by_records(type(paid)(*(np.asarray(leaf) for leaf in paid)))
    right = [(labels == x).mean() for labels in reports.values()]
    assert paid.means[0, 1] - paid.means[0, 0] == pytest.approx(right[1] - right[0], abs=0.02)
    balanced = rank_reports({name: panel(0)[1][name] for name in ("r0", "r2")}, panel(0)[0] + 0.5)
    assert not any(found.name == "weights" for found in balanced.findings)
    assert "expected 'classes' or 'records'" in refused(
        lambda: rank_reports(reports, y, weigh="items")
    )


def test_records_to_check_are_at_random_where_reports_differ():
    labels = np.stack([*panel(6)[1].values()])[:3]
    labels[0, :50] = -1
    taken, counts = np.zeros(600), rows_to_check(labels, 60).size
    for seed in range(300):
        taken[rows_to_check(labels, 60, seed)] += 1
    said = [set(column[column >= 0]) for column in labels.T]
    differ = np.array([len(part) > 1 for part in said])
    assert counts == 60
    assert (taken[~differ] == 0).all()
    assert np.ptp(taken[differ]) < 60  # binomial: 300 draws of about one in six
    assert "expected 1 to" in refused(rows_to_check, labels, int(differ.sum()) + 1)


@pytest.mark.thorough
def test_checked_records_settle_what_another_kind_contradicts():
    x = np.random.default_rng(2).integers(0, 3, 1000)
    reports, y = leak(2)
    labels = np.stack([*reports.values()])
    rows = rows_to_check(labels, 120)
    gold = with_gold(x, rows)
    assert rank_reports(reports, y).most_reliable != ("a",)
    found = rank_reports(reports, y, gold=gold, differing=("a", "b"))
    assert found.most_reliable == ("a",)
    assert found.reports[0].accuracy is None  # of records that are not at random
    right = [np.mean([labels[i, row] == x[row] for row in rows]) for i in (0, 1)]
    share, (pair,) = (labels[0] != labels[1]).mean(), found.pairs
    level = share * np.array(right) + 1 - share - 1 / 3
    reading = next(one for one in pair.readings if one.kind == "checked records")
    contrast = (level[0] - level[1]) / level.mean()
    assert reading.keeps == pytest.approx((1 - contrast / 2) / (1 + contrast / 2))
    few = rank_reports(reports, y, gold=with_gold(x, rows[:8]), differing=("a", "b"))
    needed = few.pairs[0].readings[1].rows_needed
    assert needed is None or needed > 8
    assert "expected two of a, b" in refused(
        lambda: rank_reports(reports, y, gold=gold, differing=("a", "c"))
    )
    assert "expected gold=" in refused(lambda: rank_reports(reports, y, differing=("a", "b")))


@pytest.mark.thorough
def test_reports_that_others_tell_from_noise_are_not_noise():
    reports = panel(7, shares=(0.1, 0.2, 0.3, 1.0))[1]
    y = np.random.default_rng(0).normal(size=(600, 2))  # says nothing
    found = rank_reports(reports, y)
    assert found.inside_noise == ("r3",)
    assert max(one.published.noise_p_value for one in found.reports) > 0.05
    assert "cannot tell any of these" not in found.conclusion


def test_what_reports_share_stays_in_the_error_however_many_records_there_are():
    reports = panel(8, 3000, (0.1, 0.14, 0.2))[1]
    labels = np.stack([*reports.values()])
    others = by_others(labels, 3)[0]
    weak = others._replace(covariance=4 * others.covariance)
    found = join({"observations": weak, "other reports": others}, 1.96)
    alone = join({"other reports": others}, 1.96)
    assert (alone.beyond == 0).all()
    precision = [1 / (contrast(weak)[1] ** 2), 1 / (contrast(others)[1] ** 2 + BETWEEN**2)]
    share = precision[1] / sum(precision)
    np.testing.assert_allclose(found.beyond, BETWEEN * share)
    gap = np.array([1, -1])
    more = np.einsum("i,pij,j->p", gap, found.pairs.covariance, gap)
    assert (more > found.beyond**2).all()


def test_a_weight_of_two_is_the_record_twice():
    reports, y = leak(0, 200)
    twice = np.repeat(np.arange(200), 2)
    with float64():
        one, two = bind_observations(y)[0], bind_observations(y[twice])[0]
        rows, often, tools = instruments(one, np.full(200, 2.0), 4)
        _, _, again = instruments(two, np.ones(400), 4)
    a, b = reports["a"], reports["b"]
    found = disagreement_test(a[rows], b[rows], tools, often).p_value
    copies = disagreement_test(a[twice], b[twice], again, np.ones(400)).p_value
    assert found == pytest.approx(copies, rel=1e-2)
    assert found < disagreement_test(a, b, tools, np.ones(200)).p_value
