import itertools

import numpy as np
import pytest
from scipy import stats

from jgram.annotators import Answers, prepare, rank_annotators
from jgram.influences import influence
from jgram.kernels import RBF, linear


def crowd(seed, channels, items=300, low=None, prior=None):
    """Answers of annotators with the given row-stochastic channels ``[m, d, d]``, and the truth."""
    rng = np.random.default_rng(seed)
    channels = np.asarray(channels, float)
    m, d, _ = channels.shape
    truth = rng.choice(d, items, p=prior)
    drawn = rng.random((items, m))[:, :, None] > np.cumsum(channels[:, truth].swapaxes(0, 1), -1)
    answers = drawn.sum(axis=-1)
    if low is not None:
        for a in range(m):
            idle = rng.permutation(items)[rng.integers(low, items + 1) :]
            answers[idle, a] = -1
    return answers, truth


def symmetric(accuracy, d):
    accuracy = np.asarray(accuracy, float)[:, None, None]
    return np.where(np.eye(d, dtype=bool), accuracy, (1 - accuracy) / (d - 1))


def varied(seed, m, d, low=0.5, high=0.95):
    rng = np.random.default_rng(seed)
    accuracy = rng.uniform(low, high, m)[:, None, None]
    return accuracy * np.eye(d) + (1 - accuracy) * rng.dirichlet(np.ones(d), (m, d))


def by_name(ranking):
    return {a.name: a for a in ranking.annotators}


def records_by_hand(answers, d):
    """(annotator, label, mean label of the item's others) for every answer, in plain loops."""
    rows = []
    for i, j in itertools.product(*map(range, answers.shape)):
        others = [answers[i, k] for k in range(answers.shape[1]) if k != j and answers[i, k] >= 0]
        if answers[i, j] >= 0 and others:
            rows.append((j, answers[i, j], np.bincount(others, minlength=d) / len(others)))
    return rows


def scores_by_hand(answers, d):
    """``log |det|`` of the shrunk own table against the pooled one, and plain agreement."""
    rows = records_by_hand(answers, d)
    pool = sum(np.outer(y, np.eye(d)[x]) for _, x, y in rows) / len(rows)
    inverse = np.linalg.inv(pool)
    people = sorted({a for a, _, _ in rows})
    own = {a: [(x, y) for b, x, y in rows if b == a] for a in people}
    trace = {a: np.array([(inverse @ y)[x] for x, y in own[a]]) for a in people}
    total, m = len(rows), len(people)
    within = sum(((t - t.mean()) ** 2).sum() for t in trace.values()) / (total - m)
    among = sum(len(t) * (t.mean() - d) ** 2 for t in trace.values()) / (m - 1)
    size = (total - sum(len(t) ** 2 for t in trace.values()) / total) / (m - 1)
    between = max(among - within, np.sqrt(2 / (m - 1)) * within) / size
    pseudo = within / between
    scores, agreement = {}, {}
    for a in people:
        table = sum(np.outer(y, np.eye(d)[x]) for x, y in own[a]) + pseudo * pool
        table = table / (len(own[a]) + pseudo)
        share = len(own[a]) / total
        scores[a] = np.log(abs(np.linalg.det(table) / np.linalg.det(pool)))
        scores[a] /= (1 - 2 * share) / (1 - share)
        agreement[a] = np.mean([y[x] for x, y in own[a]])
    return scores, agreement, pseudo


def test_scores_equal_the_definition_in_plain_loops():
    answers, _ = crowd(0, varied(0, 8, 3), items=60, low=20)
    found = rank_annotators(answers)
    scores, agreement, pseudo = scores_by_hand(answers, 3)
    assert found.pseudo_answers == pytest.approx(pseudo, rel=1e-9)
    for a in found.annotators:
        assert a.score == pytest.approx(scores[a.name], abs=1e-9)
        assert a.agreement == pytest.approx(agreement[a.name], abs=1e-12)
        assert a.floor == pytest.approx(2 * np.log(pseudo / (a.answers + pseudo)))


def test_peers_as_given_observations_score_the_same():
    # Two routes to h: the d x d solve of peers, and jgram.influence on features of the items.
    answers, truth = crowd(1, varied(1, 6, 3), items=120)
    y = np.eye(3)[truth] + 0.1 * np.random.default_rng(0).normal(size=(120, 3))
    found = by_name(rank_annotators(answers, y, linear))
    item, annotator = np.nonzero(answers >= 0)
    label = answers[item, annotator].astype(np.int32)
    h = np.asarray(influence(label, y[item].astype(np.float32), linear), float)
    pseudo = rank_annotators(answers, y, linear).pseudo_answers
    for a, record in found.items():
        table = h[annotator == a].T @ np.eye(3)[label[annotator == a]]
        table = (table + pseudo * np.eye(3)) / (record.answers + pseudo)
        assert record.score == pytest.approx(np.linalg.slogdet(table)[1], abs=1e-3)
        assert record.accuracy is record.agreement is None


def test_score_estimates_the_ratio_of_determinants_and_accuracy_the_accuracy():
    channels = symmetric([0.95, 0.9, 0.8, 0.7, 0.6], 3)
    answers, _ = crowd(2, channels, items=4000)
    found = by_name(rank_annotators(answers))
    pool = channels.mean(axis=0)
    for a, channel in enumerate(channels):
        truth = np.linalg.slogdet(channel)[1] - np.linalg.slogdet(pool)[1]
        assert found[a].score == pytest.approx(truth, abs=0.12)
        assert found[a].accuracy == pytest.approx(channel[0, 0], abs=0.03)
        assert found[a].rank == a + 1


def test_intervals_cover_and_reliability_is_the_squared_correlation():
    covered, ranks_covered, accuracy_covered, correlation, reliability = [], [], [], [], []
    for seed in range(12):
        channels = varied(seed, 40, 3)
        answers, _ = crowd(seed, channels, low=15)
        n = (answers >= 0).sum(axis=0)
        pool = np.einsum("a,ajk->jk", n / n.sum(), channels)
        truth = np.linalg.slogdet(channels)[1] - np.linalg.slogdet(pool)[1]
        rank = np.argsort(np.argsort(-truth)) + 1
        found = rank_annotators(answers)
        true = np.array([truth[a.name] for a in found.annotators])
        low, high = np.array([a.score_interval for a in found.annotators]).T
        covered.append(((low <= true) & (true <= high)).mean())
        accuracy = np.einsum("akk->a", channels)[[a.name for a in found.annotators]] / 3
        low, high = np.array([a.accuracy_interval for a in found.annotators]).T
        accuracy_covered.append(((low <= accuracy) & (accuracy <= high)).mean())
        first, last = np.array([a.rank_interval for a in found.annotators]).T
        true_rank = rank[[a.name for a in found.annotators]]
        ranks_covered.append(((first <= true_rank) & (true_rank <= last)).mean())
        correlation.append(np.corrcoef([a.score for a in found.annotators], true)[0, 1] ** 2)
        reliability.append(found.reliability)
    assert 0.9 < np.mean(covered) < 0.98
    assert 0.9 < np.mean(accuracy_covered) < 0.98
    assert np.mean(ranks_covered) > 0.93
    assert np.mean(reliability) == pytest.approx(np.mean(correlation), abs=0.12)


def test_alike_annotators_are_not_told_apart():
    p_values = []
    for seed in range(40):
        answers, _ = crowd(seed, symmetric(np.full(15, 0.75), 3), items=150, low=10)
        found = rank_annotators(answers)
        p_values.append(found.p_value)
        # Even where no difference shows, one is possible: no interval is a point.
        assert min(np.ptp(a.score_interval) for a in found.annotators) > 0.05
        if not found.separated:
            assert "cannot tell" in found.conclusion
            assert found.findings[0].name == "cannot tell"
    assert np.mean(np.array(p_values) < 0.05) <= 0.125
    assert np.mean(np.array(p_values) < 0.5) == pytest.approx(0.5, abs=0.25)


def test_random_answers_cannot_be_told_from_chance_and_others_can():
    p_values = []
    for seed in range(60):
        channels = symmetric([0.8] * 6, 3)
        channels[0] = [0.5, 0.3, 0.2]
        found = by_name(rank_annotators(crowd(seed, channels, items=80)[0]))
        p_values.append(found[0].p_value)
        assert found[3].p_value < 1e-3
        assert "cannot be told from chance" not in found[3].remarks
    p_values = np.sort(p_values)
    uniform = (np.arange(60) + 0.5) / 60
    assert np.abs(p_values - uniform).max() < 0.21  # Kolmogorov-Smirnov at 1%


def test_two_classes_have_the_p_value_of_a_correlation():
    answers, _ = crowd(3, varied(3, 5, 2), items=40, low=8)
    found = by_name(rank_annotators(answers))
    rows = records_by_hand(answers, 2)
    for a in range(5):
        label, share = np.array([(x, y[1]) for b, x, y in rows if b == a]).T
        assert found[a].p_value == pytest.approx(stats.pearsonr(label, share).pvalue, rel=1e-6)


def test_always_the_commonest_class_is_worthless_to_the_score_only():
    channels = symmetric([0.8] * 8, 2)
    channels[0] = [1.0, 0.0]
    answers, _ = crowd(4, channels, items=400, prior=[0.85, 0.15])
    found = by_name(rank_annotators(answers))
    assert found[0].p_value == 1.0
    assert found[0].rank == 8
    assert found[0].standing == "worse"
    assert found[0].agreement > max(found[a].agreement for a in range(1, 8))


def test_relabeller_is_named_and_keeps_its_score():
    channels = symmetric([0.85] * 7, 3)
    channels[2] = channels[2][:, [1, 2, 0]]
    answers, _ = crowd(5, channels, low=100)
    answers = Answers(answers, tuple(range(300)), tuple("abcdefg"), ("x", "y", "z"))
    found = by_name(rank_annotators(answers))
    # Where the truth is class 0 the annotator says column 2 of the permuted channel.
    assert found["c"].relabelling == {"x": "y", "y": "z", "z": "x"}
    assert "'x' for 'y'" in found["c"].remarks[0]
    assert abs(found["c"].score) < 0.5
    assert all(found[name].relabelling is None for name in "abdefg")


def test_a_copy_is_reported_and_nobody_else():
    channels = varied(6, 20, 3, 0.6, 0.9)
    channels[4] = symmetric([0.6], 3)
    answers, _ = crowd(6, channels, low=150)
    assert rank_annotators(answers).collusions == ()
    both = (answers[:, 4] >= 0) & (np.random.default_rng(0).random(300) < 0.7)
    answers[both, 9] = answers[both, 4]
    found = rank_annotators(answers)
    assert {(pair.first, pair.second) for pair in found.collusions} == {(4, 9)}
    common = (answers[:, 4] >= 0) & (answers[:, 9] >= 0)
    assert found.collusions[0].items == common.sum()
    agreement = (answers[common, 4] == answers[common, 9]).mean()
    assert found.collusions[0].agreement == pytest.approx(agreement)
    assert found.collusions[0].expected < agreement - 0.1


def test_few_answers_stay_near_the_pool():
    channels = symmetric(np.linspace(0.5, 0.95, 12), 2)
    answers, _ = crowd(7, channels, items=200)
    answers[2:, 11] = -1  # the best annotator, with two answers
    found = by_name(rank_annotators(answers))
    assert abs(found[11].score) < 0.2
    assert found[11].rank_interval[1] - found[11].rank_interval[0] > 5
    assert np.ptp(found[11].score_interval) > 2 * np.ptp(found[10].score_interval)
    assert np.ptp(found[11].accuracy_interval) > 2 * np.ptp(found[10].accuracy_interval)


def test_by_accuracy_and_findings_on_a_rare_class():
    # 0 is exact on the common classes and blind to the rare one; 1 is fair on all.
    channels = symmetric([0.75] * 10, 3)
    channels[0] = [[0.97, 0.03, 0], [0.03, 0.97, 0], [0.5, 0.5, 0]]
    answers, _ = crowd(8, channels, items=1500, prior=[0.48, 0.48, 0.04])
    by_score = rank_annotators(answers)
    by_accuracy = rank_annotators(answers, by="accuracy")
    assert by_score.annotators[-1].name == 0
    assert by_accuracy.annotators[0].name == 0
    assert by_accuracy.annotators[0].standing == "better"
    assert "rare class" in {finding.name for finding in by_score.findings}
    assert "rare class" not in {finding.name for finding in by_accuracy.findings}


def test_order_of_items_and_annotators_does_not_matter():
    answers, _ = crowd(9, varied(9, 9, 3), items=80, low=30)
    rng = np.random.default_rng(0)
    items, people = rng.permutation(80), rng.permutation(9)
    first = by_name(rank_annotators(answers))
    second = by_name(rank_annotators(answers[items][:, people]))
    for position, a in enumerate(people):
        assert second[position].score == pytest.approx(first[a].score, abs=1e-10)
        assert second[position].rank == first[a].rank
        assert second[position].p_value == pytest.approx(first[a].p_value, abs=1e-10)


def test_prepare_keeps_names_and_repeats():
    answers = prepare(
        ["q2", "q1", "q1", "q1"], [7, 7, 3, 7], ["no", "yes", "no", "yes"], classes=["yes", "no"]
    )
    np.testing.assert_array_equal(answers.matrix, [[1, 0], [-1, 1]])
    assert (answers.items, answers.annotators) == (("q1", "q2"), (3, 7))
    assert answers.classes == ("yes", "no")


def test_unjudged_items_and_annotators_are_reported():
    answers, _ = crowd(10, varied(10, 5, 2), items=50)
    lonely = np.full((1, 6), -1)
    lonely[0, 5] = 1
    answers = np.vstack([np.column_stack([answers, np.full(50, -1)]), lonely])
    before = answers.copy()
    found = rank_annotators(answers)
    np.testing.assert_array_equal(answers, before)
    assert found.unjudged == (5,)
    assert {f.name: f.value for f in found.findings}["no peers"] == 1
    row = found.to_dict()["annotators"][0]
    assert (row["rank"], row["annotator"]) == (1, found.annotators[0].name)


def test_observations_that_say_nothing_cannot_tell():
    answers, _ = crowd(11, varied(11, 12, 3), items=90, low=30)
    noise = np.random.default_rng(0).normal(size=(90, 4))
    found = rank_annotators(answers, noise, RBF(2.0))
    assert not found.separated


@pytest.mark.parametrize(
    ("answers", "options", "message"),
    [
        (np.zeros((3, 3)), {}, "as ints with -1"),
        (np.array([[0, -2, 1]]), {}, "got -2"),
        (np.array([[0, 3, 1]]), {"num_classes": 3}, r"0\.\.2, got 3"),
        (np.zeros((4, 3), int), {}, "two classes or more, got 1"),
        (np.array([[0, 1], [1, 0], [1, 1]]), {}, "two peers only judge each other"),
        (np.array([[0, -1, -1], [-1, 1, -1]]), {}, "expected items with answers of two"),
        (np.array([[0, 1, 1], [1, 0, 1]]), {"num_classes": 3}, "class 2 is never reported"),
        (np.array([[0, 1, 1], [1, 0, 1]]), {"by": "skill"}, "by='score' or by='accuracy'"),
        (np.array([[0, 1, -1], [1, -1, 0], [-1, 0, 1]]), {"by": "accuracy"}, "contradict"),
    ],
)
def test_refusals(answers, options, message, unchecked):
    with pytest.raises(ValueError, match=message):
        rank_annotators(answers, **options)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ((["i", "i"], ["a", "a"], ["x", "y"]), {}, "one answer an annotator and item, got 'x'"),
        ((["i", None], ["a", "b"], ["x", "y"]), {}, "item: 1 of 2 labels missing"),
        ((["i"], ["a", "b"], ["x", "y"]), {}, "expected 1 records"),
        ((["i", "k"], ["a", 1], ["x", "y"]), {}, "annotator: expected values of one type"),
    ],
)
def test_prepare_refuses(columns, options, message):
    with pytest.raises(ValueError, match=message):
        prepare(*columns, **options)


def test_prepare_drops_missing_rows():
    answers = prepare(["i", "k"], ["a", "b"], ["x", None], missing="drop")
    assert answers.items == ("i",)
