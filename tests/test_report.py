"""The front door: reports of any kind in, an explained score or ranking out."""

import json
import re
import sys
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from types import MappingProxyType

import jax
import numpy as np
import pandas as pd
import pytest

import jgram
from jgram import arrays, contrasts, kernels, scores, uncertainty
from jgram.data import prepare_table, to_data, to_json
from jgram.display import Table, texts
from jgram.observed import observe
from jgram.report import compare, rank_reports, score
from jgram.table_kernel import TableKernel
from tests.components import Cosine, Laplacian

N, D = 120, 3
NAMES = np.array(["cat", "dog", "fox"])
ROWS = np.arange(N)
TRUTH = np.random.default_rng(0).integers(0, D, N)
LEVEL = TRUTH + np.random.default_rng(1).normal(0, 0.4, N)
COLOUR = np.array(["red", "green", "blue"])[TRUTH]


def wrong(share, seed=0):
    """The truth with a share of the labels replaced at random."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(N) < share, rng.integers(0, D, N), TRUTH)


TABLE = prepare_table(LEVEL).points
KERNEL = TableKernel.of(TABLE)
GOOD, FAIR, BAD = wrong(0.05, 1), wrong(0.3, 2), wrong(0.6, 3)
NOISE, DICE = (np.random.default_rng(seed).permutation(TRUTH) for seed in (3, 7))


def numbers_in(record):
    """Every number in a record, those of its parts included."""
    if is_dataclass(record):
        record = {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(record, dict):
        record = list(record.values())
    if isinstance(record, list | tuple):
        return [number for part in record for number in numbers_in(part)]
    return [record] if isinstance(record, float) else []


def sound(ranking):
    """A ranking without NaN or infinity, whose statements do not contradict each other."""
    assert all(isfinite(number) for number in numbers_in(ranking))

    def refuse(constant):
        raise AssertionError(constant)

    assert json.loads(to_json(ranking), parse_constant=refuse) == to_data(ranking)
    place = {report.name: at for at, report in enumerate(ranking.reports)}
    for pair in ranking.pairs:
        if pair.separated:
            assert place[pair.better] < place[pair.worse]
            assert pair.better not in ranking.inside_noise
        assert pair.conclusion in str(pair)
        assert 0 <= pair.p_value <= pair.adjusted_p_value + 0.02 <= 1.02
    assert not set(ranking.most_reliable) & set(ranking.inside_noise)
    for report in ranking.reports:
        assert 1 <= report.first_rank <= report.last_rank <= len(ranking.reports)
    for part in ranking.view():  # with all that a page has room for
        assert not isinstance(part, Table) or texts(part, detail=True)
    return ranking


def in_order(ranking):
    return [report.name for report in ranking.reports]


def named(findings):
    return [finding.name for finding in findings]


@pytest.fixture(scope="module")
def two():
    """The ranking that many tests read."""
    return sound(rank_reports({"bad": BAD, "good": GOOD}, LEVEL))


# One report ---------------------------------------------------------------------------------


def test_a_report_says_what_the_definition_says():
    report = score(NAMES[GOOD], COLOUR)
    table = np.zeros((D, D))
    np.add.at(table, (np.unique(COLOUR, return_inverse=True)[1], GOOD), 1 / N)
    gram = table.T @ table
    assert report.log_score == pytest.approx(np.linalg.slogdet(gram)[1])
    assert report.score == pytest.approx(np.linalg.det(gram))
    assert report.counts_log_score == pytest.approx(np.linalg.slogdet(N**2 * gram)[1])
    assert report.normalised_score == pytest.approx(3 * np.linalg.det(gram) ** (1 / 6))
    assert report.hadamard_ratio == pytest.approx(np.linalg.det(gram) / np.prod(np.diag(gram)))
    assert report.class_counts == dict(zip(NAMES, np.bincount(GOOD), strict=True))
    assert (report.gram_rank, report.num_classes, report.num_records) == (D, D, N)
    assert report.interval[0] < report.log_score < report.interval[1]
    assert report.kernel == "delta(num_outcomes=3)"
    assert report.seen == pytest.approx(D - 1, abs=0.2)
    assert report.noise_p_value < 1e-6
    assert report.reason is None
    assert report.findings == ()


def test_names_codes_and_containers_score_the_same():
    expected = score(GOOD, COLOUR).log_score
    for labels in (
        NAMES[GOOD].tolist(),
        pd.Series(NAMES[GOOD], dtype="string"),
        pd.Series(pd.Categorical(NAMES[GOOD])),
        pd.Series(GOOD, dtype="Int64"),
        jax.numpy.asarray(GOOD),
        np.eye(D)[GOOD],
    ):
        assert score(labels, COLOUR).log_score == pytest.approx(expected)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("x_hat", "y", "options", "name", "words"),
    [
        (ROWS % 2, ROWS % 3, {"classes": [0, 1, 2]}, "never reported", "class 2"),
        (ROWS % 10, np.zeros((N, 8)) + ROWS[:, None], {"kernel": jgram.linear},
         "too few features", "8 features cannot span 10 classes"),
        (ROWS % 3, ROWS % 2, {"kernel": jgram.delta}, "too few outcomes", "2 distinct"),
        (ROWS % 4, ROWS % 4 + 1.0 * (ROWS > 60), {"kernel": lambda a, b: a * b},
         "merged classes", "rank 1 of 4"),
        (ROWS % 2, ROWS * 1.0, {"kernel": lambda a, b: -((a - b) ** 2)},
         "not positive", "not positive semi-definite"),
        (["yes"] * N, ROWS % 2, {"kernel": jgram.delta}, "one class",
         "every record is reported as 'yes'"),
    ],
)  # fmt: skip
def test_where_there_is_no_score_the_reason_is_named(x_hat, y, options, name, words):
    report = score(x_hat, y, **options)
    assert report.log_score is None
    assert report.score == 0.0
    assert report.standard_error is None
    assert report.findings[0].name == name
    assert words in report.reason
    assert report.findings[0].advice
    assert all(isfinite(number) for number in numbers_in(report))


def test_doubts_are_said_beforehand():
    rare = np.where(ROWS < 5, 2, ROWS % 2)
    found = {f.name: f for f in score(rare, NOISE.astype(str)).findings}
    assert {"rare class", "near singular", "inside the noise", "volume of noise"} <= set(found)
    assert found["rare class"].value == 5
    alone = score(np.where(ROWS < 1, 2, ROWS % 2), NOISE.astype(str))
    assert "no unbiased score" in alone.findings[0].message
    assert alone.bias is None


@pytest.mark.thorough
def test_a_missing_label_leaves_its_record_out():
    gaps = [None if row % 4 == 0 else NAMES[label] for row, label in enumerate(GOOD)]
    found = score(gaps, COLOUR)
    kept = ROWS % 4 != 0
    assert found.log_score == pytest.approx(score(GOOD[kept], COLOUR[kept]).log_score)
    assert found.num_records == 90
    assert named(found.findings) == ["rare class", "missing labels"]


# Several reports ----------------------------------------------------------------------------


def agrees(ranking):
    """No sentence and no finding against an interval or a p-value of the table beside it."""
    alpha, shown = 1 - ranking.confidence, str(ranking)
    by_name = {one.name: one for one in ranking.reports}
    for one in ranking.reports:
        assert one.inside_noise == (one.noise_p_value > alpha)
        doubts = [f.name for f in one.published.findings if f.level != "fatal"]
        if one.published.reason is None:
            assert ("inside the noise" in doubts) == one.inside_noise
        if one.keeps is not None:
            low, high = one.keeps_interval
            assert low <= one.keeps <= high
            assert not one.inside_noise or low <= 0 <= high
    for finding in (f for one in ranking.reports for f in one.published.findings):
        assert finding.concerns != "score" or finding.advice not in shown
    for pair in ranking.pairs:
        assert pair.separated <= (pair.adjusted_p_value <= alpha)
        if pair.retention is not None:
            low, high = pair.retention_interval
            assert low <= pair.retention <= high
            assert pair.retention <= 1
            assert high <= 1 if pair.p_value <= alpha else high >= 1
        best, worse = by_name[pair.better], by_name[pair.worse]
        if None not in (best.keeps, worse.keeps) and best.keeps_interval == (1, 1):
            assert worse.keeps_interval[1] <= 1 or not pair.separated
            assert worse.keeps_interval[1] >= 1 or pair.separated
        if pair.separated:
            assert best.first_rank < worse.last_rank
    for line in ranking.undecided:
        p = re.findall(r"p = ([0-9.e-]+)", line)
        assert not p or (float(p[0]) <= alpha) == ("not estimable" in line)
    if len(ranking.most_reliable) == 1 and "is the most reliable" in ranking.conclusion:
        (first,) = ranking.most_reliable
        assert all(
            pair.separated or first not in (pair.better, pair.worse) or
            {pair.better, pair.worse} & set(ranking.inside_noise)
            for pair in ranking.pairs
        )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_no_sentence_contradicts_its_own_table(confidence):
    for seed in range(33, 45):
        rng = np.random.default_rng(seed)
        truth = rng.choice(D, N, p=rng.dirichlet(np.full(D, 3.0)))
        y = truth + rng.exponential(1.0) * rng.normal(size=N)
        reports = {name: np.where(rng.random(N) < rng.random(), rng.choice(D, N), truth)
                   for name in "abc"}  # fmt: skip
        agrees(sound(rank_reports(reports, y, num_classes=D, confidence=confidence)))


@pytest.mark.thorough
def test_what_would_decide_a_pair_is_said():
    ranking = sound(rank_reports({"one": wrong(0.3, 8), "two": wrong(0.4, 9)}, LEVEL))
    (pair,) = ranking.pairs
    assert not ranking.separated
    assert pair.records_needed > N
    assert ranking.conclusion == "The data cannot tell these reports apart."
    assert "cannot be told apart; about" in ranking.undecided[0]
    # A pair that differs beyond doubt, and of which the better one is paid next to nothing.
    refused = replace(ranking, pairs=(replace(pair, adjusted_p_value=1e-9),))
    (line,) = refused.undecided
    assert line.startswith(f"the order of {pair.better} and {pair.worse} is not estimable: ")
    assert "p = 1e-09" in line
    assert "3 standard errors" in line


def test_a_ranking_orders_separates_and_says_what_is_kept():
    reports = {"noise": NOISE, "bad": BAD, "good": GOOD}
    ranking = sound(rank_reports(reports, LEVEL))
    assert in_order(ranking) == ["good", "bad", "noise"]
    assert ranking.conclusion == "good is the most reliable; noise cannot be told from noise."
    assert ranking.most_reliable == ("good",)
    assert ranking.inside_noise == ("noise",)
    good, bad, noise = ranking.reports
    assert (good.keeps, good.keeps_interval, good.first_rank, good.last_rank) == (1, (1, 1), 1, 1)
    assert bad.keeps_interval[0] < 0.4 / 0.95 < bad.keeps_interval[1]
    assert noise.keeps_interval[0] < 0 < noise.keeps_interval[1]
    assert (bad.first_rank, noise.last_rank) == (2, 3)
    assert [(p.better, p.worse) for p in ranking.pairs[:2]] == [("good", "bad"), ("good", "noise")]
    assert ranking.seen == good.published.seen
    assert (ranking.num_classes, ranking.num_records, ranking.block_length) == (D, N, 1)
    # The published score is beside it, of the same binding.
    with jax.enable_x64(True):
        expected = uncertainty.uncertainties(reports, observe(KERNEL, TABLE))
    for report in ranking.reports:
        assert report.published.log_score == pytest.approx(expected[report.name].log_score)


def test_pairs_say_what_their_payoffs_say(two):
    with jax.enable_x64(True):
        observed = observe(KERNEL, TABLE)
        found = contrasts.payoffs(observed, np.stack([GOOD, BAD]), num_classes=D)
        first, second = np.asarray(found.means)
        z = float(found.differences.sum() / np.sqrt((found.differences**2).sum()))
    (pair,) = two.pairs
    assert (pair.better, pair.worse, pair.num_records) == ("good", "bad", N)
    assert pair.retention == pytest.approx(second / first)
    assert pair.log_ratio == pytest.approx(4 * (D - 1) * (first - second) / (first + second))
    assert pair.p_value == pytest.approx(2 * jax.scipy.stats.norm.sf(abs(z)))
    assert pair.retention_interval[0] < pair.retention < pair.retention_interval[1]
    assert pair.separated
    assert pair.records_needed is None
    assert two.reports[1].keeps == pytest.approx(second / first)
    assert compare(BAD, GOOD, LEVEL, names=("bad", "good")) == pair


def test_a_third_report_never_turns_a_separated_pair(two):
    for third in (NOISE, 0 * TRUTH, BAD, (BAD + 1) % D):
        more = sound(rank_reports({"bad": BAD, "good": GOOD, "third": third}, LEVEL))
        (pair,) = [p for p in more.pairs if {p.better, p.worse} == {"bad", "good"}]
        assert (pair.better, pair.separated) == ("good", True)
        assert pair.retention == pytest.approx(two.pairs[0].retention)
        assert pair.p_value == pytest.approx(two.pairs[0].p_value)


def test_the_key_moves_only_the_simultaneous_intervals(two):
    one = rank_reports({"bad": BAD, "good": GOOD}, LEVEL, key=jax.random.key(1))
    assert one.pairs[0].retention_interval == two.pairs[0].retention_interval
    low, other = (ranking.reports[1].keeps_interval[0] for ranking in (one, two))
    assert low != other
    assert low == pytest.approx(other, abs=0.02)


@pytest.mark.thorough
def test_blocks_of_time_are_judged_as_groups():
    reports = {"bad": BAD, "good": GOOD}
    blocks = sound(rank_reports(reports, LEVEL, block_length=5))
    assert blocks.block_length == 5
    assert blocks.pairs == rank_reports(reports, LEVEL, groups=ROWS // 5).pairs
    found = rank_reports(reports, LEVEL, block_length=None)  # nothing lasts: the least there is
    assert found.block_length == min(np.ceil(2 * np.cbrt(N)), N // 10)


# One pass -----------------------------------------------------------------------------------


def test_one_ranking_resolves_the_kernel_once_and_the_classes_once(monkeypatch):
    resolved, inferred, made = [], [], []
    resolve, infer, of = kernels.RBF.resolve, arrays.infer_num_classes, TableKernel.of

    def inferring(x_hat, num_classes):
        inferred.extend([] if num_classes is not None else [x_hat])
        return infer(x_hat, num_classes)

    for name, module in list(sys.modules.items()):
        if name.startswith("jgram.") and hasattr(module, "infer_num_classes"):
            monkeypatch.setattr(module, "infer_num_classes", inferring)
    monkeypatch.setattr(kernels.RBF, "resolve", lambda *args: resolved.append(1) or resolve(*args))
    monkeypatch.setattr(TableKernel, "of", lambda *args: made.append(1) or of(*args))
    for kernel in (jgram.rbf, None):
        rank_reports({"noise": NOISE, "bad": BAD, "good": GOOD}, LEVEL, kernel)
    assert (len(resolved), len(made)) == (1, 1)
    assert len(inferred) <= 2


# Kernels of one's own -----------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(("kernel", "words"), [(Cosine(), "Cosine"), (Laplacian(), "laplacian(s")])
def test_a_new_kernel_is_a_class_and_a_row(kernel, words, monkeypatch):
    y = np.stack([np.cos(LEVEL), np.sin(LEVEL), np.ones(N)], axis=1)
    found = score(GOOD, y, kernel)
    assert found.kernel.startswith(words)
    with jax.enable_x64(True):
        expected = float(scores.plugin_log_score(GOOD, y, kernel))
    assert found.log_score == pytest.approx(expected)
    monkeypatch.setattr(kernels, "KERNELS", MappingProxyType({**kernels.KERNELS, "mine": kernel}))
    assert score(GOOD, y, "mine") == found
    ranking = sound(rank_reports({"bad": BAD, "good": GOOD}, y, "mine"))
    assert ranking.conclusion == "good is the most reliable."


@pytest.mark.thorough
def test_options_are_one_value_or_its_fields():
    reports, weights = {"bad": BAD, "good": GOOD}, 1 + ROWS % 3
    intake = jgram.Intake(weights=weights, groups=ROWS // 2)
    by_name = rank_reports(reports, LEVEL, weights=weights, groups=ROWS // 2)
    assert rank_reports(reports, LEVEL, None, intake) == by_name
    assert rank_reports(reports, LEVEL, intake=jgram.Intake(groups=ROWS // 2), weights=weights) == (
        by_name
    )
    assert compare(BAD, GOOD, LEVEL, names=("bad", "good"), intake=intake) == by_name.pairs[0]
    assert score(GOOD, LEVEL, None, intake) == score(GOOD, LEVEL, **vars(intake))
    with pytest.raises(TypeError, match="'weight'"):
        rank_reports(reports, LEVEL, weight=weights)


# What is no ordinary input ------------------------------------------------------------------

HALF = [label if row < N // 2 else None for row, label in enumerate(GOOD.tolist())]
REST = [label if row >= N // 2 else None for row, label in enumerate(BAD.tolist())]
NONE = [None] * N
SWAP = np.array([1, 2, 0])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("reports", "options", "order", "conclusion", "finding"),
    [
        ((GOOD, GOOD), {}, None, "cannot tell these reports apart.", None),
        ((0 * GOOD, GOOD), {}, "ba", "b is the most reliable; a cannot be told from noise", None),
        ((0 * GOOD, 0 * GOOD + 1), {"num_classes": D}, None, "reports from noise", "not estimable"),
        ((SWAP[GOOD], GOOD), {}, None, "cannot tell these reports apart.", "relabelling"),
        ((SWAP[BAD], GOOD), {}, "ba", "b is the most reliable", None),
        ((NOISE, DICE), {}, None, "any of these reports from noise", "not estimable"),
        ((BAD, np.where(ROWS < 6, 3, GOOD)), {}, "ba", "b is the most reliable", None),
        ((np.where(ROWS < 1, 3, BAD), GOOD), {}, "ba", "b is the most reliable", None),
        ((GOOD, NONE), {}, "ab", "b cannot be told from noise", "nothing in common"),
        ((HALF, REST), {}, None, "cannot tell these reports apart", "nothing in common"),
        ((BAD, GOOD), {"groups": ROWS % 2}, None, "any of these", "not estimable"),
        ((BAD, GOOD), {"groups": ROWS > 0}, None, "any of these", "not estimable"),
        ((BAD, GOOD), {"block_length": N // 2}, None, "any of these", "not estimable"),
        ((BAD, GOOD), {"weights": (ROWS < 2) * 1}, None, "any of these", "not estimable"),
    ],
)
def test_bad_reports_have_a_value_or_a_finding(reports, options, order, conclusion, finding):
    ranking = sound(rank_reports(dict(zip("ab", reports, strict=True)), LEVEL, **options))
    assert conclusion in ranking.conclusion
    assert order is None or in_order(ranking) == list(order)
    assert finding is None or finding in named(ranking.findings)
    assert not ranking.separated or order


def test_a_report_without_labels_does_not_disturb_the_others(two):
    ranking = sound(rank_reports({"none": NONE, "bad": BAD, "good": GOOD}, LEVEL))
    assert in_order(ranking) == ["good", "bad", "none"]
    assert ranking.reports[1].keeps == pytest.approx(two.reports[1].keeps)
    assert ranking.pairs[0] == two.pairs[0] or ranking.pairs[0].separated
    assert {"missing labels", "nothing in common"} <= set(named(ranking.findings))
    assert ranking.reports[2].published.log_score is None
    assert ranking.reports[2].keeps is None


def test_relabelled_reports_are_read_alike_and_noticed(two):
    swapped = sound(rank_reports({"good": NAMES[GOOD], "bad": NAMES[SWAP[BAD]]}, LEVEL))
    renamed = sound(rank_reports({"good": NAMES[SWAP[GOOD]], "bad": NAMES[SWAP[BAD]]}, LEVEL))
    assert in_order(two) == in_order(swapped) == in_order(renamed)
    assert renamed.pairs[0].retention == pytest.approx(two.pairs[0].retention)
    fair = sound(rank_reports({"good": NAMES[GOOD], "fair": NAMES[SWAP[FAIR]]}, LEVEL))
    assert named(fair.findings) == ["relabelling"]
    assert "'dog' as 'cat'" in fair.findings[0].message


@pytest.mark.parametrize("weights", [None, 1 + ROWS % 3])
def test_a_renamed_report_keeps_its_published_score(weights):
    """The kernel product of renamed labels, with labels as they were, gave "merged classes"."""
    for labels in (SWAP[FAIR], np.where(ROWS % 7 == 0, -1, SWAP[FAIR])):
        gaps = [None if label < 0 else NAMES[label] for label in labels]
        ranking = sound(rank_reports({"a": NAMES[GOOD], "b": gaps}, LEVEL, weights=weights))
        (found,) = [one.published for one in ranking.reports if one.name == "b"]
        alone = score(gaps, LEVEL, weights=weights)
        assert found.log_score == pytest.approx(alone.log_score, abs=1e-9)
        assert found.standard_error == pytest.approx(alone.standard_error, rel=1e-6)
        assert found.reason is None
        assert "relabelling" in named(ranking.findings)


def posterior(rng, truth, shares, distance):
    """What a reader knows who sees the truth through unit noise: calibrated."""
    seen = distance * np.eye(len(shares))[truth] + rng.normal(size=(len(truth), len(shares)))
    odds = shares * np.exp(distance * (seen - seen.max(axis=1, keepdims=True)))
    return odds / odds.sum(axis=1, keepdims=True)


@pytest.mark.thorough
@pytest.mark.parametrize("groups", [None, ROWS // 5])
def test_soft_reports_are_the_same_however_boldly_they_are_written(groups):
    hard = {"a": np.eye(D)[GOOD], "b": np.eye(D)[BAD]}
    labels = rank_reports({"a": GOOD, "b": BAD}, LEVEL, groups=groups)
    assert rank_reports(hard, LEVEL, groups=groups).pairs == labels.pairs
    rest = np.array([0.2, 0.3, 0.5])
    soft = hard | {"softened": 0.4 * hard["a"] + 0.6 * rest}
    ranking = sound(rank_reports(soft, LEVEL, groups=groups))
    both = {p.better: p for p in ranking.pairs if {p.better, p.worse} == {"a", "softened"}}
    (pair,) = both.values()
    assert (pair.separated, pair.p_value) == (False, 1.0)
    assert pair.retention == pytest.approx(1)
    keeps = {one.name: one.keeps for one in ranking.reports}
    assert keeps["softened"] == pytest.approx(keeps["a"])
    # Neither the published score nor the classes' names are lost on the way.
    soft["softened"] = soft["softened"][:, SWAP]
    turned = sound(rank_reports(soft, LEVEL, groups=groups))
    assert {one.name: one.keeps for one in turned.reports} == pytest.approx(keeps)
    assert "relabelling" in named(turned.findings)
    for one in turned.reports:
        alone = score(soft[one.name], LEVEL, groups=groups)
        assert one.published.log_score == pytest.approx(alone.log_score, abs=1e-8)


@pytest.mark.thorough
def test_posteriors_are_not_behind_their_class_and_separated_as_often_as_the_level_says():
    """The spread of each is estimated too: 0 of 150 were separated where that was left out."""
    ahead = behind = separated = 0
    for seed in range(112):
        rng = np.random.default_rng(seed)
        shares = ([0.4, 0.3, 0.3], [0.7, 0.2, 0.1])[seed % 2] if seed < 12 else [0.8, 0.1, 0.1]
        truth = rng.choice(D, N, p=shares)
        y = 2 * np.eye(D)[truth] + rng.normal(size=(N, D))
        soft = posterior(rng, truth, shares, 1.5)
        other = np.eye(D)[soft.argmax(1)] if seed < 12 else posterior(rng, truth, shares, 1.5)
        ranking = rank_reports({"soft": soft, "other": other}, y)
        if seed < 12:
            ahead += ranking.pairs[0].better == "soft"
            behind += ranking.separated and ranking.pairs[0].better == "other"
        else:
            separated += ranking.separated
    assert ahead >= 9
    assert behind == 0
    assert 1 <= separated <= 12  # .997 of 100 tests at 5%


@pytest.mark.thorough
def test_equal_reports_of_which_one_is_renamed_are_equal_behind_a_report_of_noise():
    separated = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        one, other = (np.where(rng.random(N) < 0.3, rng.integers(0, D, N), TRUTH) for _ in "ab")
        reports = {"noise": rng.integers(0, D, N), "one": one, "two": SWAP[other]}
        ranking = rank_reports(reports, TRUTH + rng.normal(0, 0.4, N))
        separated += ("one", "two") in {tuple(sorted((p.better, p.worse)))
                                        for p in ranking.pairs if p.separated}  # fmt: skip
        # 5% of tests reject
        assert set(named(ranking.findings)) - {"shared errors"} == {"relabelling"}
    assert separated <= 3  # 2% of such dozens hold more at a level of 5%; 8 of 12 were separated


@pytest.mark.thorough
def test_two_records_say_nothing():
    for labels, y in (([0, 1], [0.0, 1.0]), ([1, 0], ["u", "v"])):
        ranking = sound(rank_reports({"a": labels, "b": labels[::-1]}, y))
        assert not ranking.separated
        assert "cannot tell any of these reports from noise" in ranking.conclusion


@pytest.mark.parametrize(
    ("reports", "y", "options", "message"),
    [
        ({"a": [0, 1]}, [0, 1], {}, "two reports or more"),
        ({}, [0, 1], {}, "two reports or more"),
        ([[0, 1], [0, 1]], [0, 1], {}, "reports by name"),
        ({"a": [0, 1], "b": [0, 1, 1]}, [0, 1], {}, "b: expected 2 records"),
        ({"a": [0, 1], "b": [0, None]}, [0, 1], {"missing": "raise"}, "1 of 2 labels missing"),
        ({"a": [0, 1], "b": [None] * 2}, [0, 1], {"missing": "drop"}, "every one of the 2 records"),
        ({"a": [None] * 2, "b": [None] * 2}, [0, 1], {}, "every one of the 2 records"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"missing": "Drop"}, "'raise', 'drop' or 'keep'"),
        ({"a": [0, 1], "b": ["x", "y"]}, [0, 1], {}, "type"),
        ({"a": [0, 1], "b": np.eye(2)}, [0, 1], {}, "all reports soft"),
        ({"a": [0, 1], "y": [0, 1]}, [0, 1], {}, "another name"),
        ({"a": [0, 0], "b": [0, 0]}, [0, 1], {}, "two classes or more"),
        ({"a": [0, 1], "b": [0, 1]}, [1.0, 1.0], {}, "nothing but 1"),
        ({"a": [0, 1], "b": [0, 1]}, [np.nan, 1.0], {"kernel": jgram.rbf}, "missing"),
        ({"a": [0, 1], "b": [0, 1]}, ["u", "v"], {"kernel": jgram.rbf}, "expected numbers"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"kernel": "gauss"}, "kernel among"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"groups": [7, 7]}, "two groups or more"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"block_length": 2}, r"block_length in 1..1"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"block_length": 0}, r"block_length in 1..1"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"weights": [1, -1]}, "at least 0"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"weights": [0.5, 0.5]}, "are not shares"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"confidence": 1.0}, r"confidence in \(0, 1\)"),
        ({"a": [0, 1], "b": [0, 1]}, [0, 1], {"scale": "log"}, "'rank', 'standard' or 'none'"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(reports, y, options, message, unchecked):
    with pytest.raises(ValueError, match=message) as error:
        rank_reports(reports, y, **options)
    assert "\n" not in str(error.value)


def test_a_ranking_tells_what_its_conclusion_tells(two):
    (pair,) = two.pairs
    doubted = replace(pair, doubts=("shared errors",))
    doubtful = replace(two, pairs=(doubted,), most_reliable=("bad", "good"))
    neither = replace(two, pairs=(replace(pair, separated=False),))
    assert [one.told for one in (two, doubtful, neither)] == [True, False, False]
    assert "in doubt" in doubtful.conclusion
    assert "cannot tell" in neither.conclusion
    assert (pair.told, doubted.told, doubted.separated) == (True, False, True)
    assert re.search("Label [0-9]+ .*differ", doubted.conclusion)
