"""Annotators: plain loops and refits against the sparse code, levels, bad input, memory."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from scipy import special, stats

from jgram.annotators import (
    Answers,
    answers_from_columns,
    answers_from_files,
    answers_from_matrix,
    find_collusion,
    infer_labels,
    rank_annotators,
)
from jgram.annotators import readings as reading
from jgram.annotators.answers import consistencies
from jgram.annotators.collusion import COUPLINGS, _easy_or_hard, _log_evidence, pair_evidence
from jgram.annotators.posterior import (
    STRENGTHS,
    cavities,
    cross_fit,
    fit,
    majority,
    power,
    tempered,
)
from jgram.annotators.ranking import _reliability
from tests.refusals import refused

pytestmark = pytest.mark.thorough

Z = 1.959964


def crowd(seed, channels, items=300, each=None, prior=None):
    """Answers of annotators with the channels ``[m, d, d]``, ``each`` of them to so many items."""
    rng = np.random.default_rng(seed)
    channels = np.asarray(channels, float)
    m, d, _ = channels.shape
    truth = rng.choice(d, items, p=prior)
    drawn = rng.random((items, m))[:, :, None] > np.cumsum(channels[:, truth].swapaxes(0, 1), -1)
    matrix = drawn.sum(axis=-1)
    for a in range(m if each else 0):
        matrix[rng.permutation(items)[each:], a] = -1
    return matrix, truth


def asked(matrix, d):
    """A matrix whose -1 mean that nobody asked."""
    item, annotator = np.nonzero(matrix >= 0)
    codes = (item, annotator, matrix[item, annotator])
    names = tuple(tuple(range(size)) for size in (*matrix.shape, d))
    return Answers(*(part.astype(np.int32) for part in codes), *names)


def symmetric(accuracy, d):
    accuracy = np.asarray(accuracy, float)[:, None, None]
    return np.where(np.eye(d, dtype=bool), accuracy, (1 - accuracy) / (d - 1))


def by_name(ranking):
    return {a.name: a for a in ranking.annotators}


def fitted(answers, **options):
    m, d, items = len(answers.annotators), len(answers.classes), len(answers.items)
    rows = (answers.item, answers.annotator, answers.label)
    start = majority(answers.item, answers.label, items, d)
    return *fit(start, rows, jnp.ones(items), m=m, classes=d, **options), rows


# The posterior ------------------------------------------------------------------------------


def test_posterior_and_cavity_equal_bayes_rule_in_plain_loops():
    matrix, _ = crowd(0, symmetric([0.9, 0.7, 0.6, 0.8], 3), items=12, each=8)
    answers = answers_from_matrix(matrix, num_classes=3)
    model, q, rows = fitted(answers)
    cavity = np.asarray(cavities(model, q, rows))
    prior, channel = np.exp(model.log_prior), np.exp(model.log_channels)
    for i in range(12):
        for left_out in [None, *np.flatnonzero(answers.item == i)]:
            expected = prior.astype(float)
            for r in np.flatnonzero(answers.item == i):
                if r != left_out:
                    own = channel[answers.annotator[r], answers.label[r]]
                    expected = expected * own.astype(float)
            found = q[i] if left_out is None else cavity[left_out]
            np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-5)


def test_one_iteration_equals_counts_shrunk_toward_the_pool_in_plain_loops():
    matrix, _ = crowd(2, symmetric([0.9, 0.7, 0.6, 0.8], 3), items=12, each=8)
    answers = answers_from_matrix(matrix, num_classes=3)
    start = np.asarray(majority(answers.item, answers.label, 12, 3), float)
    model, _, _ = fitted(answers, iterations=1)
    counts = np.zeros((4, 4, 3))
    for i, a, o in zip(answers.item, answers.annotator, answers.label, strict=True):
        counts[a, o] += start[i]
    strength = float(model.strength)
    for a, s in itertools.product(range(4), range(3)):
        pool = (counts[:, :3, s].sum(axis=0) + 1e-3) / (counts[:, :3, s].sum() + 3e-3)
        labels = (counts[a, :3, s] + strength * pool) / (counts[a, :3, s].sum() + strength)
        found = np.exp(np.asarray(model.log_channels[a, :, s], float))
        np.testing.assert_allclose(found[:3] / found[:3].sum(), labels, rtol=1e-4)
        assert found.sum() == pytest.approx(1.0, abs=1e-5)


def test_strength_is_the_best_of_the_grid_by_the_marginal_likelihood():
    answers = asked(crowd(3, symmetric(np.linspace(0.5, 0.95, 12), 2), items=200)[0], 2)
    model, q, _ = fitted(answers, iterations=12)
    counts = np.zeros((12, 2, 2))
    np.add.at(counts, (answers.annotator, answers.label), np.asarray(q, float)[answers.item])
    pool = counts.sum(axis=0) / counts.sum(axis=(0, 1))

    def likelihood(k):
        inner = special.gammaln(counts + k * pool) - special.gammaln(k * pool)
        total = special.gammaln(counts.sum(axis=1) + k) - special.gammaln(k)
        return inner.sum() - total.sum()

    best = STRENGTHS[int(np.argmax([likelihood(k) for k in STRENGTHS]))]
    assert float(model.strength) == pytest.approx(best, rel=0.5)


def test_no_answer_moves_its_own_fold_or_its_own_observation_under_incentive():
    matrix, _ = crowd(4, symmetric([0.9, 0.7, 0.6, 0.8, 0.7], 2), items=40)
    changed, one_changed = matrix.copy(), matrix.copy()
    changed[0] = 1 - changed[0]  # item 0 is in fold 0: other items of fold 0 must not notice
    one_changed[0, 2] = 1 - one_changed[0, 2]
    found = []
    for one in (matrix, changed):
        answers = asked(one, 2)
        start = majority(answers.item, answers.label, 40, 2)
        start = jnp.asarray(start).at[0].set(0.5)
        rows = (answers.item, answers.annotator, answers.label)
        _, q, _ = cross_fit(start, rows, m=5, classes=2, folds=5)
        found.append(np.asarray(q))
    np.testing.assert_allclose(found[0][5::5], found[1][5::5], atol=1e-6)
    assert np.abs(found[0][1] - found[1][1]).max() > 1e-5
    crowds = [reading.fit_crowd(asked(x, 2), incentive=True) for x in (matrix, one_changed)]
    np.testing.assert_allclose(crowds[0].cavity[2], crowds[1].cavity[2], atol=2e-3)


def test_silence_tells_one_sided_voters_apart():
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 2, 600)
    matrix = np.full((600, 6), -1)
    for a in range(6):  # three of each class; precise, precise, useless
        aimed = rng.random(600) < np.where(truth == a % 2, 0.5, [0.02, 0.05, 0.5][a // 2])
        matrix[aimed, a] = a % 2
    silent = infer_labels(answers_from_matrix(matrix))
    deaf = infer_labels(asked(matrix, 2))
    right = [(f.probabilities.argmax(axis=1) == truth).mean() for f in (silent, deaf)]
    assert right[0] > 0.7
    assert right[0] > right[1] + 0.05
    found = by_name(rank_annotators(answers_from_matrix(matrix), by="accuracy"))
    assert all(found[a].only_label == a % 2 and found[a].determinant is None for a in range(6))
    assert min(found[a].accuracy.value for a in range(4)) > max(
        found[a].accuracy.value for a in (4, 5)
    )
    assert found[0].coverage == pytest.approx((matrix[:, 0] >= 0).mean())


# Readings -----------------------------------------------------------------------------------


def test_readings_equal_their_definitions():
    answers = asked(crowd(7, symmetric([0.9, 0.8, 0.7, 0.6], 3), items=80, each=50)[0], 3)
    found = reading.fit_crowd(answers)
    scores, votes = reading.log_scores(found, Z), np.zeros((80, 3))
    np.add.at(votes, (answers.item, answers.label), 1)
    judged = votes.sum(axis=1)[answers.item] > 1
    ratio = found.cavity / ((found.cavity[judged].sum(axis=0) + 1) / (judged.sum() + 3))
    means, values, weights, agreement = [], [], [], []
    for a in range(4):
        own = np.flatnonzero((answers.annotator == a) & judged)
        p = ratio[own, answers.label[own]] / ratio[own].sum(axis=1)
        values.append(np.log(np.maximum(p, 0.05)))
        weights.append(ratio[own].mean(axis=1))
        means.append(np.average(values[-1], weights=weights[-1]))
        others = votes[answers.item[own], answers.label[own]] - 1
        agreement.append((others / (votes.sum(axis=1)[answers.item[own]] - 1)).mean())
    for a in range(4):
        n = weights[a].sum() ** 2 / (weights[a] ** 2).sum()
        expected = (n * means[a] + 2 * np.mean(means)) / (n + 2)
        assert scores.value[a] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(reading.agreements(found), agreement, atol=1e-6)
    channel = reading.confusions(found)[0][0]
    det = np.abs(np.linalg.det(channel)) ** 0.5
    np.testing.assert_allclose(reading.determinants(found, Z).value, det, rtol=1e-9)


def test_intervals_hold_the_allowance_for_shared_errors():
    answers = asked(crowd(8, symmetric([0.9, 0.8, 0.7, 0.6], 2), items=80)[0], 2)
    found = reading.fit_crowd(answers)
    half = 0.5 / found.answers
    for read in (reading.accuracies, reading.balanced_accuracies):
        held, wider = read(found, Z, unseen=0.0), read(found, Z)
        np.testing.assert_allclose(wider.value, held.value)
        for part in (held.low, held.value, held.high):
            assert ((part > 0) & (part < 1)).all()
        far, own = (special.logit(part.low + half) for part in (wider, held))
        middle = special.logit(held.value)
        np.testing.assert_allclose((middle - far) ** 2 - (middle - own) ** 2, (0.3 * Z) ** 2)
        # what the readings at less and at more shared errors leave between them
        ends = [
            special.logit(read(reading.fit_crowd(answers, correlation=rho), Z).value)
            for rho in (0.2, 1.25)
        ]
        alone = read(found._replace(counts=found.counts[[0, 0, 0]]), Z, unseen=0.0)
        shared = (middle - own) ** 2 - (middle - special.logit(alone.low + half)) ** 2
        np.testing.assert_allclose(np.sqrt(shared), Z * (ends[0] - ends[1]) / 2, rtol=0.15)


def test_a_perfect_record_is_inside_and_an_unused_label_may_tell_nothing():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    wrong = rng.random((60, 6)) < [0, 0, 0.03, 0.03, 0.03, 0.03]
    matrix = np.where(wrong, 1 - truth[:, None], truth[:, None])
    matrix[15:, 0] = -1
    matrix[(truth == 1).nonzero()[0], 1] = -1
    found = reading.fit_crowd(asked(matrix, 2))
    assert reading.accuracies(found, Z).high[0] == 1.0
    assert reading.determinants(found, Z).low[1] == 0.0 < reading.determinants(found, Z).low[2]


def test_accuracy_and_determinant_find_what_was_planted():
    accuracy = np.array([0.95, 0.9, 0.8, 0.7, 0.6])
    answers = asked(crowd(9, symmetric(accuracy, 3), items=3000)[0], 3)
    for correlation, within in ((0.0, 0.05), (reading.CORRELATION, 0.35)):
        found = reading.fit_crowd(answers, correlation=correlation)
        held, kept = reading.accuracies(found, Z), reading.determinants(found, Z)
        planted = (3 * accuracy - 1) / 2
        assert ((held.low < accuracy) & (accuracy < held.high)).all()
        np.testing.assert_allclose(kept.value, planted, atol=within)
        assert (np.diff(reading.log_scores(found, Z).value) < 0).all()
    assert ((kept.low < planted) & (planted < kept.high)).all()


def test_determinant_error_is_the_spread_over_crowds():
    channels, values, errors = symmetric([0.9, 0.8, 0.75, 0.7, 0.65, 0.6], 2), [], []
    for seed in range(25):
        found = reading.fit_crowd(asked(crowd(seed, channels, items=200)[0], 2))
        one = reading.determinants(found, Z)
        values.append(one.value[3])
        errors.append(one.error[3])
    assert np.std(values) == pytest.approx(np.mean(errors), rel=0.4)


def test_answers_of_an_item_are_worth_two_people_at_most():
    worth = power(np.array([0, 1, 2, 9]), 0.5) * [0, 1, 2, 9]
    np.testing.assert_allclose(worth, [0, 1, 4 / 3, 1.8])
    q, prior = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0.5, 0.5])
    expected = [[0.3, 0.1], [1.0, 2.0]] / np.array([[0.4], [3.0]])
    evidence = np.log([[1.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(tempered(q, prior, evidence), expected, rtol=1e-5)


def test_noise_p_values_have_the_permutation_moments_of_plain_loops():
    found = reading.fit_crowd(asked(crowd(10, symmetric([0.9, 0.8, 0.4], 3), items=30)[0], 3))
    p = reading.noise_p_values(found)
    rng = np.random.default_rng(0)
    for a in range(3):
        own = found.annotator == a
        table, label = found.cavity[own].astype(float), found.label[own]
        rows = np.arange(len(label))
        drawn = [table[rows, rng.permutation(label)].sum() for _ in range(4000)]
        z = (table[rows, label].sum() - np.mean(drawn)) / np.std(drawn)
        assert stats.norm.isf(p[a] / 2) == pytest.approx(abs(z), rel=0.1, abs=0.1)


@pytest.mark.parametrize("hard", [False, True])
def test_alike_annotators_are_told_apart_at_the_stated_level(hard):
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        matrix, truth = crowd(seed, symmetric(np.full(15, 0.75), 3), items=150, each=60)
        fooled = (rng.random((150, 15)) < 0.7) & (rng.random(150) < 0.3)[:, None] & (matrix >= 0)
        matrix = np.where(fooled & hard, ((truth + 1) % 3)[:, None], matrix)
        found.append(reading.alike(reading.fit_crowd(asked(matrix, 3))))
    assert np.mean(np.array(found) < 0.05) <= 0.12
    honest, _ = crowd(0, symmetric(np.linspace(0.5, 0.9, 15), 3), 150, 60)
    assert reading.alike(reading.fit_crowd(asked(honest, 3))) < 0.01


def test_random_answers_cannot_be_told_from_noise_and_others_can():
    p_values = []
    for seed in range(60):
        channels = symmetric([0.8] * 6, 3)
        channels[0] = [0.5, 0.3, 0.2]
        p = reading.noise_p_values(reading.fit_crowd(asked(crowd(seed, channels, items=80)[0], 3)))
        p_values.append(p[0])
        assert p[3] < 1e-3
    uniform = (np.arange(60) + 0.5) / 60
    assert np.abs(np.sort(p_values) - uniform).max() < 0.21  # Kolmogorov-Smirnov at 1%


def test_better_and_noise_exclude_each_other():
    matrix, _ = crowd(12, symmetric(np.linspace(0.35, 0.95, 20), 3), items=100, each=12)
    ranking = rank_annotators(asked(matrix, 3))
    assert all(a.p_value < 0.05 for a in ranking.annotators if a.standing == "better")
    for a in ranking.annotators:
        assert not {"better", "cannot be told from noise"} <= set(a.remarks)
        assert a.first_rank <= a.rank <= a.last_rank


def test_renaming_needs_evidence():
    channels = symmetric([0.85] * 8, 3)
    channels[2] = channels[2][:, [1, 2, 0]]
    matrix, _ = crowd(13, channels, items=150)
    found = by_name(rank_annotators(matrix))
    # Where the truth is class 0 the annotator says column 2 of the permuted channel.
    assert found[2].renaming == {0: 1, 1: 2, 2: 0}
    assert "0 for 1" in found[2].remarks[0]
    assert all(found[a].renaming is None for a in range(8) if a != 2)
    few = matrix.copy()
    few[6:, 2] = -1
    meaning = reading.renamings(reading.fit_crowd(asked(few, 3)), 0.05)
    np.testing.assert_array_equal(meaning, np.tile(np.arange(3), (8, 1)))
    determinants = [found[a].determinant.value for a in range(8)]
    assert found[2].determinant.value > np.median(determinants) - 0.15
    wins, count = np.array([9.0, 14.0, 3.0]), np.array([12.0, 14.0, 9.0])
    exact = stats.binom.sf(wins - 1, count, 0.5)
    bound = np.exp(reading._log_sign_test(wins, count))
    assert (bound >= exact).all()
    assert bound[1] == pytest.approx(exact[1])


def test_reliability_survives_a_singular_annotator():
    channels = symmetric(np.linspace(0.6, 0.95, 12), 2)
    channels[0] = [[0.5, 0.5], [0.5, 0.5]]
    found = reading.fit_crowd(asked(crowd(14, channels, items=400)[0], 2))
    assert _reliability(reading.determinants(found, Z), np.arange(12)) > 0.8


# Copies -------------------------------------------------------------------------------------


def test_e_value_equals_the_definition_in_plain_loops():
    answers = asked(crowd(15, symmetric([0.9, 0.7, 0.6, 0.8], 2), items=25)[0], 2)
    pairs = pair_evidence(answers)
    model, q = _easy_or_hard(answers.item, answers.annotator, answers.label, 25, 4, 2)
    channel, q = np.exp(np.asarray(model.log_channels, float)), np.asarray(q, float)
    table = {
        (i, a): label
        for i, a, label in zip(answers.item, answers.annotator, answers.label, strict=True)
    }
    for k, (a, b) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        logs, expected = np.zeros(len(COUPLINGS)), 0.0
        for i in range(25):
            la, lb = table[i, a], table[i, b]
            without = q[i] / channel[a, la] / channel[b, lb]
            without /= without.sum()
            d = [sum(without * channel[a, j] * channel[b, j]) for j in range(2)]
            n = [sum(without * np.minimum(channel[a, j], channel[b, j])) for j in range(2)]
            ratio = n[la] / d[la] if la == lb else (1 - sum(n)) / (1 - sum(d))
            expected += sum(d) / 25
            logs += np.log(1 + COUPLINGS * (ratio - 1))
        np.testing.assert_allclose(pairs.likelihood[k], logs, atol=2e-3)
        mean = np.mean(np.exp(logs[3:] - logs[2]))
        assert _log_evidence(pairs.likelihood[k], 2) == pytest.approx(np.log(mean), abs=2e-3)
        assert pairs.expected[k] == pytest.approx(expected, abs=1e-4)
        assert pairs.items[k] == 25
    assert len(pairs.first) == 6


def test_a_copy_is_found_and_nobody_else():
    matrix, _ = crowd(16, symmetric(np.linspace(0.6, 0.9, 20), 3), items=300, each=150)
    both = np.flatnonzero(matrix[:, 4] >= 0)[:60]
    matrix[:, 9] = -1
    matrix[both, 9] = matrix[both, 4]
    ranking = rank_annotators(asked(matrix, 3))
    (pair,) = ranking.collusion.flagged
    assert {pair.first, pair.second} == {4, 9}
    assert pair.items == 60
    assert pair.agreement == 1.0
    assert "nor who copied" in pair.message
    assert {f.name: f.level for f in ranking.findings}["collusion"] == "warning"


def test_a_shared_favourite_is_not_copying():
    found = 0
    for seed in range(10):
        channels = symmetric([0.75] * 12, 3)
        channels[:2] = [[0.95, 0.03, 0.02], [0.85, 0.1, 0.05], [0.85, 0.05, 0.1]]
        found += len(find_collusion(asked(crowd(seed, channels, 200, 120)[0], 3)).flagged)
    assert found <= 1


def test_the_honest_few_are_not_flagged_where_most_share_errors():
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 3, 800)
        lure = (truth + 1) % 3
        wrong = rng.random((800, 10)) < 1.5 * rng.uniform(0.1, 0.4, 10)
        matrix = np.where(wrong, rng.integers(0, 3, (800, 10)), truth[:, None])
        fooled = (rng.random(800) < 0.25)[:, None] & (rng.random((800, 6)) < 0.7)
        matrix[:, :6] = np.where(fooled, lure[:, None], matrix[:, :6])
        matrix[rng.random(matrix.shape) < 0.4] = -1
        found.append(len(find_collusion(asked(matrix, 3)).flagged))
        both = matrix[:, 8] >= 0
        matrix[:, 9] = np.where(rng.random(800) < 0.9, matrix[:, 8], matrix[:, 9])
        pairs = find_collusion(asked(matrix, 3)).flagged
        assert both.sum() > 400
        assert (pairs[0].first, pairs[0].second) == (8, 9)
    assert sum(found) <= 1


# The door -----------------------------------------------------------------------------------


def test_columns_keep_names_and_repeats():
    columns = (["q2", "q1", "q1", "q1"], [7, 7, 3, 7], ["no", "yes", "no", "yes"])
    answers = answers_from_columns(*columns, classes=["yes", "no"])
    assert (answers.items, answers.annotators) == (("q1", "q2"), (3, 7))
    assert answers.classes == ("yes", "no")
    np.testing.assert_array_equal(answers.item, [0, 0, 1])
    np.testing.assert_array_equal(answers.label, [1, 0, 1])
    for repeats, label in (("first", "x"), ("last", "z"), ("majority", "y")):
        answers = answers_from_columns([*"iiiiik"], [*"aaaaab"], [*"xyyzzx"], repeats=repeats)
        assert answers.classes[answers.label[0]] == label
        assert len(answers.item) == 2


def test_repeats_are_one_vote_and_a_consistency_that_holds():
    rng, inside = np.random.default_rng(0), []
    for asked in (2, 4):
        rows = [(i, a, k) for i in range(80) for a in range(4) for k in range(asked)]
        item, who, _ = np.array(rows).T
        said = np.where(rng.random(len(rows)) < np.array([0.0, 0.1, 0.3, 0.6])[who], 1, 0)
        said[who == 3] = np.where(item[who == 3] < 5, said[who == 3], 0)
        last = (who != 3) | (item < 5) | (np.arange(len(rows)) % asked == 0)  # the last asked less
        answers = answers_from_columns(item[last], who[last], said[last], repeats="majority")
        assert len(answers.item) == 320
        value, low, high = consistencies(answers, Z)
        for a, more in enumerate((0, 0.1, 0.3)):
            pairs = [
                np.mean([one == other for one, other in itertools.combinations(said[here], 2)])
                for i in range(80)
                for here in [(item == i) & (who == a)]
            ]
            assert value[a] == pytest.approx(np.mean(pairs))
            inside.append(low[a] <= more**2 + (1 - more) ** 2 <= high[a] + 1e-9)
        assert np.isnan(answers.agreed[answers.annotator == 3]).sum() == 75
        assert high[3] - low[3] > 2 * (high[2] - low[2])
    assert np.mean(inside) == 1.0
    found = by_name(rank_annotators(answers))
    assert found[0].consistency.value == 1.0
    assert "consistency_low" in rank_annotators(answers).to_frame()
    once = answers_from_columns(item[:9], np.arange(9), said[:9])
    assert np.isnan(consistencies(once, Z)).all()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_of_more_answers_than_memory_holds_whole_items_are_drawn(tmp_path, suffix):
    matrix, _ = crowd(3, symmetric(np.linspace(0.6, 0.95, 6), 2), 4000)
    item, who = np.nonzero(matrix >= 0)
    order = np.random.default_rng(0).permutation(len(item))
    table = pandas.DataFrame({"i": item, "w": who, "l": matrix[item, who]}).iloc[order]
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(3):
        part, path = table.iloc[k::3], parts / f"{k}.{suffix}"
        part.to_csv(path, index=False) if suffix == "csv" else part.to_parquet(path, index=False)
    whole = answers_from_files(parts, "i", "w", "l")
    some = answers_from_files(parts, "i", "w", "l", most=6000)
    assert whole.answered is None
    assert len(whole.item) == len(item)
    assert some.answered == len(item)
    assert 3000 < len(some.item) <= 6000
    assert (np.bincount(some.item) == 6).all()
    assert set(some.items) < set(whole.items)
    assert np.array_equal(some.label.reshape(-1, 6), matrix[list(some.items)])
    found, of_all = rank_annotators(some), rank_annotators(whole)
    assert "drawn" in {one.name for one in found.findings}
    assert "drawn" not in {one.name for one in of_all.findings}
    right = {one.name: one.balanced.value for one in of_all.annotators}
    assert all(one.balanced.low < right[one.name] < one.balanced.high for one in found.annotators)


def test_abstentions_are_an_outcome_of_their_own():
    columns = [1, 1, 2, 2], ["a", "b", "a", "b"], [-1, 0, 1, 0]
    for abstain in ([-1], ["skip", -1]):
        answers = answers_from_columns(*columns, abstain=abstain)
        assert answers.classes == (0, 1)
        np.testing.assert_array_equal(answers.label, [2, 0, 1, 0])
    with pytest.raises(ValueError, match="no label is one"):
        answers_from_columns([1, 1], ["a", "b"], [0, 1], abstain=["skip"])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ((["i", "i"], ["a", "a"], ["x", "y"]), {}, "one answer an annotator and item, got 'y'"),
        ((["i", None], ["a", "b"], ["x", "y"]), {}, "item: 1 of 2 labels missing"),
        ((["i"], ["a", "b"], ["x", "y"]), {}, "expected 1 records"),
        ((["i", "k"], ["a", 1], ["x", "y"]), {}, "annotator: expected values of one type"),
        ((["i", "k"], ["a", "b"], ["x", "y"]), {"classes": ["x"]}, "'y'"),
        ((["i", "k"], ["a", "b"], ["x", "y"]), {"repeats": "best"}, "repeats: expected"),
        ((["i"], ["a"], ["x"]), {"missing": "keep"}, "missing: expected 'raise' or 'drop'"),
        ((["i"], ["a"], [1]), {"abstain": 1}, r"abstain: expected a list of labels, got 1"),
        ((["i"], ["a"], ["x"]), {"abstain": "x"}, r"give \['x'\]"),
    ],
)
def test_columns_refused(columns, options, message, unchecked):
    with pytest.raises(ValueError, match=message):
        answers_from_columns(*columns, **options)


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (np.zeros((3, 3)), {}, "as ints with -1"),
        (np.array([[0, -2, 1]]), {}, "got -2"),
        (np.array([[0, 3, 1]]), {"num_classes": 3}, r"0\.\.2, got 3"),
        (np.zeros((4, 3), int), {}, "two classes or more, got 1"),
        (np.full((4, 3), -1), {}, "two classes or more, got 0"),
        (np.array([[0, 2**31, 1]]), {}, "fewer classes, got 2147483649"),
        (np.array([[0, 2**64 - 1]], np.uint64), {}, "fewer classes"),
        ([[0, 1], [1]], {}, "rows of different lengths"),
        (np.array([[0, 1], [1, 0]], np.uint8), {}, "got 2 of 2: two only judge each other"),
        (np.array([[0, 1, 1]]), {"num_classes": "2"}, "num_classes: expected a count, got '2'"),
        (np.array([[0, 1, 1]]), {"by": ["accuracy"]}, "by: expected one of"),
        (np.array([[0, 1], [1, 0], [1, 1]]), {}, "got 2 of 2: two only judge each other"),
        (np.array([[0], [1]]), {}, "items that two annotators or more labelled"),
        (np.array([[0, 1, 1], [-1, 1, -1]]), {}, "two items or more .* got 1"),
        (np.array([[0, -1, -1], [-1, 1, -1]]), {}, "items that two annotators or more labelled"),
        (np.array([[0, 1, 1], [1, 0, 1]]), {"by": "skill"}, "by: expected one of"),
        (np.array([[0, 1, 1]] * 9), {"by": "determinant"}, "only ever gives one label"),
    ],
)
def test_refusals(matrix, options, message, unchecked):
    with pytest.raises(ValueError, match=message):
        rank_annotators(matrix, **options)
    for names in (["a", "a", "b"], ["a", "b"], 3):
        said = refused(answers_from_matrix, np.zeros((2, 3), int), annotators=names)
        assert said.startswith("annotators: expected 3")


def test_a_label_that_may_mean_no_answer_is_asked_about_once():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    said = np.where(rng.random((300, 6)) < 0.8, truth[:, None], 1 - truth[:, None])
    said[rng.random((300, 6)) < 0.7] = 2
    said[:, :3] = np.where(said[:, :3] == 1, 2, said[:, :3])  # three who only ever vote 0
    people, item = np.tile(np.arange(6), 300), np.repeat(np.arange(300), 6)
    names = np.array(["no", "yes", "skip"])[said.ravel()]

    def asked_about(names, **options):
        found = rank_annotators(answers_from_columns(item, people, names, **options)).findings
        return [one.advice for one in found if one.name == "no answer"]

    (advice,) = asked_about(names)
    assert "--abstain skip" in advice
    assert asked_about(names, abstain=["skip"]) == []
    rows = item, people, names
    assert rank_annotators(answers_from_columns(*rows, abstain=["skip"])).by == "accuracy"
    assert rank_annotators(answers_from_columns(*rows)).by == "log_score"
    assert asked_about(np.where(people == 0, "skip", names)) == []  # somebody gives it alone
    assert asked_about(np.where(names == "yes", "no", names)) == []  # one class would be left
    skewed = np.where(rng.random(1800) < 0.3, names, "skip")
    assert asked_about(np.where(people < 3, np.roll(skewed, 3), skewed)) == []  # all have both


def test_a_hundred_classes_are_ranked():
    """The search for collusion holds a few pairs of answers at once, not all of them."""
    items = np.arange(120)
    matrix = np.stack([items, items, np.roll(items, 1)], axis=1)
    assert [a.answers for a in rank_annotators(matrix).annotators] == [120] * 3


def test_constant_annotators_lone_items_and_rare_classes_are_findings_not_crashes():
    matrix, _ = crowd(17, symmetric([0.9, 0.8, 0.7, 0.6, 0.9], 2), items=60)
    matrix = np.column_stack([matrix, np.ones(60, int), np.full(60, -1)])
    matrix = np.vstack([matrix, [-1, -1, -1, 0, -1, -1, -1]])
    matrix[0, 0] = 2  # a class that occurs once
    before = matrix.copy()
    ranking = rank_annotators(asked(matrix, 3), by="determinant")
    np.testing.assert_array_equal(matrix, before)
    assert ranking.unjudged == (6,)
    found = {f.name: f for f in ranking.findings}
    assert found["no peers"].value == 1
    assert found["one label"].level == "warning"
    assert "rare class" in found
    constant = ranking.annotators[-1]
    assert (constant.name, constant.only_label, constant.determinant) == (5, 1, None)
    assert constant.remarks[0] == "only says 1: see its accuracy"
    rows = ranking.records()
    assert [row["rank"] for row in rows] == list(range(1, 7))
    assert rows[-1]["determinant"] is None
    assert all(np.isfinite([a.log_score.value, a.accuracy.low]).all() for a in ranking.annotators)
    constants = np.array([[0, 1, 1]] * 9)
    assert len(rank_annotators(constants).annotators) == 3


def test_order_of_items_and_annotators_does_not_matter():
    matrix, _ = crowd(18, symmetric(np.linspace(0.5, 0.9, 9), 3), items=80, each=50)
    rng = np.random.default_rng(0)
    items, people = rng.permutation(80), rng.permutation(9)
    first = by_name(rank_annotators(matrix, num_classes=3))
    second = by_name(rank_annotators(matrix[items][:, people], num_classes=3))
    for position, a in enumerate(people):
        assert second[position].log_score.value == pytest.approx(first[a].log_score.value, abs=2e-3)
        assert second[position].p_value == pytest.approx(first[a].p_value, abs=2e-3)


def test_x64_gives_the_same():
    answers = asked(crowd(19, symmetric(np.linspace(0.5, 0.9, 6), 2), items=50)[0], 2)
    first = reading.log_scores(reading.fit_crowd(answers), Z).value
    with jax.enable_x64(True):
        second = reading.log_scores(reading.fit_crowd(answers), Z).value
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_nothing_has_the_size_of_items_times_annotators():
    rng = np.random.default_rng(21)
    items, m, n = 200_000, 5_000, 400_000
    item = np.sort(rng.integers(0, items, n)).astype(np.int32)
    annotator = rng.integers(0, m, n).astype(np.int32)
    label = rng.integers(0, 2, n).astype(np.int32)
    shapes = dict(m=m, classes=2)
    start, ones = jnp.ones((items, 2)) / 2, jnp.ones(items)
    lowered = fit.lower(start, (item, annotator, label), ones, **shapes)
    analysis = lowered.compile().memory_analysis()
    assert analysis.temp_size_in_bytes < 50e6  # items times annotators is 1e9
    found = reading.fit_crowd(
        Answers(item, annotator, label, tuple(range(items)), tuple(range(m)), (0, 1))
    )
    assert found.cavity.shape == (n, 2)


# Crowds that others made --------------------------------------------------------------------


def test_a_public_crowd_is_ranked_better_than_by_agreement(shared_data):
    with np.load(shared_data / "crowd_more" / "bluebird.npz") as arrays:
        columns = [arrays[key] for key in ("item", "annotator", "label")]
        truth = arrays["truth"]
    answers = answers_from_columns(*columns)
    ranking = rank_annotators(answers)
    right = columns[2] == truth[columns[0]]
    accuracy = np.bincount(columns[1], right) / np.bincount(columns[1])
    true = [accuracy[a.name] for a in ranking.annotators]
    score = stats.spearmanr([a.log_score.value for a in ranking.annotators], true).statistic
    agreement = stats.spearmanr([a.agreement for a in ranking.annotators], true).statistic
    assert score > 0.93 > agreement + 0.1
    inside = [
        a.accuracy.low <= t <= a.accuracy.high
        for a, t in zip(ranking.annotators, true, strict=True)
    ]
    assert np.mean(inside) > 0.85
    labels = infer_labels(answers)
    inferred, row = labels.probabilities.argmax(axis=1), labels.records()[0]
    assert list(row) == ["item", "label", "probability", "answers", "p(0)", "p(1)"]
    assert row["p(0)"] + row["p(1)"] == pytest.approx(1.0, abs=1e-5)
    ones = np.bincount(columns[0], columns[2] == 1)
    majority_vote = 2 * ones > np.bincount(columns[0])
    assert (inferred == truth).mean() > (majority_vote == truth).mean()


def test_readings_are_drawn_with_intervals_and_names_as_they_are():
    pytest.importorskip("matplotlib")
    from jgram.plots import intervals_figure

    bounds = [(-0.5, -0.1), None]
    figure = intervals_figure(
        ["ann", "b$b"], [-0.3, None], bounds, title="log score", absent="none"
    )
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["b$b", "none", "ann"]
    assert axes.collections[0].get_segments()[0][:, 0].tolist() == [-0.5, -0.1]


def test_no_constant_annotator_stands_above_an_informative_one():
    """Models that answer one word: accuracy flatters them, readings of every class alike do not."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(600) < 0.8, 0, rng.integers(1, 3, 600))
    said = [np.where(rng.random(600) < e, rng.integers(0, 3, 600), truth) for e in (0.2, 0.3, 0.4)]
    answers = np.stack([*said, np.zeros(600, int), np.ones(600, int)], axis=1)
    found = rank_annotators(answers)
    assert found.by == "log_score"
    assert [one.name for one in found.annotators][:3] == [0, 1, 2]
    assert rank_annotators(answers, by="accuracy").annotators[-1].name in (3, 4)
