"""What is known beside the answers: observations, gold, and what to check next."""

import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from scipy.special import softmax

from jgram.annotators import Answers, Gold, infer_labels, rank_annotators
from jgram.annotators.beside import _recalibrated, gold_accuracies, judge
from jgram.annotators.posterior import Model, posteriors
from jgram.annotators.readings import accuracies
from jgram.cli import main
from tests.refusals import refused

Z = 1.959964


def run(capsys, *arguments):
    """What ``jgram annotators`` returns, prints and says on stderr."""
    with pytest.raises(SystemExit) as caught:
        main(["annotators", *map(str, arguments)])
    return caught.value.code, *capsys.readouterr()


def panel(seed, items=600, signal=2.0, fooled=0.2):
    """Three judges fooled alike on some items, three people who see half; points that tell."""
    rng = np.random.default_rng(seed)
    truth, misled = rng.integers(0, 3, (2, items))
    own = np.array([0.05, 0.1, 0.15, 0.15, 0.25, 0.4])
    guess = rng.integers(0, 3, (items, 6))
    said = np.where(rng.random((items, 6)) < 1.5 * own, guess, truth[:, None])
    hard = (rng.random(items) < fooled)[:, None] & (rng.random((items, 3)) < 0.8)
    said[:, :3] = np.where(hard, misled[:, None], said[:, :3])
    said[:, 3:] = np.where(rng.random((items, 3)) < 0.5, said[:, 3:], -1)
    y = rng.normal(0, 1, (items, 3)) + signal * np.eye(3)[truth]
    item, annotator = np.nonzero(said >= 0)
    names = tuple(f"i{i}" for i in range(items)), tuple("abcdef"), (0, 1, 2)
    codes = (item, annotator, said[item, annotator])
    return Answers(*(part.astype(np.int32) for part in codes), *names), truth, y


def wrong(found, truth):
    best = found.probabilities.max(axis=1)
    return (found.probabilities.argmax(axis=1) != truth).mean(), 1 - best.mean()


def true_accuracies(answers, truth):
    right = truth[answers.item] == answers.label
    return {n: right[answers.annotator == a].mean() for a, n in enumerate(answers.annotators)}


def test_evidence_multiplies_the_answers_likelihood():
    channels = np.log(np.array([[[0.8, 0.3], [0.2, 0.7], [1e-9, 1e-9]]]))
    model = Model(jnp.log(jnp.array([0.6, 0.4])), jnp.asarray(channels), jnp.ones(()))
    rows = tuple(map(jnp.array, ([0, 1], [0, 0], [0, 1])))
    found = posteriors(model, rows, 2, jnp.log(jnp.array([[1, 2], [3, 1.0]])))
    first = np.array([0.6 * 0.8, 0.4 * 0.3 * 2])
    second = np.array([0.6 * 0.2 * 3, 0.4 * 0.7])
    expected = [first / first.sum(), second / second.sum()]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.thorough
def test_observations_put_shared_errors_right_and_say_how_many_are_left():
    for seed in range(2):
        answers, truth, y = panel(seed, 1500)
        before, after = infer_labels(answers), infer_labels(answers, y)
        was, believed = wrong(before, truth)
        now, expected = wrong(after, truth)
        assert abs(was - believed) < 0.05  # answers that share errors count as two at most
        assert now < was / 1.5
        assert 0.66 < expected / now < 1.5


@pytest.mark.thorough
def test_observations_that_err_as_the_crowd_does_make_nobody_surer():
    answers, truth, _ = panel(3, 900, fooled=0.3)
    rng = np.random.default_rng(0)
    shown = infer_labels(answers).probabilities.argmax(axis=1)  # right or wrong, all they show
    found = infer_labels(answers, rng.normal(0, 1, (900, 3)) + 2.0 * np.eye(3)[shown])
    now, expected = wrong(found, truth)
    assert 0.5 < expected / now < 1.5


@pytest.mark.thorough
def test_observations_that_say_nothing_change_nothing_and_are_said_to():
    answers, _, y = panel(4, signal=0.0)
    alone, beside = infer_labels(answers), infer_labels(answers, y)
    np.testing.assert_array_equal(alone.probabilities, beside.probabilities)
    finding = rank_annotators(answers, y).findings[0]
    assert (finding.name, finding.level) == ("observations", "warning")
    assert "say nothing" in finding.message


@pytest.mark.thorough
def test_items_without_an_observation_stand_on_their_answers():
    answers, truth, y = panel(5, 1200)
    half = np.where((np.arange(1200) % 2 == 0)[:, None], y, np.nan)
    found, alone = infer_labels(answers, half), infer_labels(answers)
    errors = found.probabilities.argmax(axis=1) != truth
    before = alone.probabilities.argmax(axis=1) != truth
    assert errors[::2].mean() < before[::2].mean() / 1.5
    assert abs(errors[1::2].mean() - before[1::2].mean()) < 0.03
    assert "600 of 1200 items have none" in rank_annotators(answers, half).findings[0].message


@pytest.mark.thorough
def test_gold_is_believed_and_narrows_accuracies_that_hold():
    inside, widths = [], []
    for seed in range(12):
        answers, truth, _ = panel(seed, 1500)
        rng = np.random.default_rng(seed)
        gold = {f"i{i}": int(truth[i]) for i in rng.permutation(1500)[:200]}
        ranking, true = rank_annotators(answers, gold=gold), true_accuracies(answers, truth)
        for one in ranking.annotators:
            inside.append(one.accuracy.low <= true[one.name] <= one.accuracy.high)
            widths.append((one.accuracy.high - one.accuracy.low) / 2)
        if seed == 0:
            known = infer_labels(answers, gold=gold).probabilities
            assert all(known[int(i[1:]), label] > 0.999 for i, label in gold.items())
    assert np.mean(inside) >= 0.9
    assert np.mean(widths) < 0.05


@pytest.mark.thorough
def test_accuracies_of_items_all_picked_are_exact_and_few_gold_rows_leave_the_model():
    answers, truth, _ = panel(6, 60)
    names = {f"i{i}": int(truth[i]) for i in range(60)}
    one = judge(answers, gold={"i0": int(truth[0])})
    model = accuracies(one, Z)
    np.testing.assert_array_equal(gold_accuracies(one, model, Z), model)
    for gold in (names, Gold(names, frozenset(names))):
        found = gold_accuracies(judge(answers, gold=gold), model, Z)
        np.testing.assert_allclose(found.value, list(true_accuracies(answers, truth).values()))
        np.testing.assert_allclose(found.high - found.low, 0.0, atol=1e-9)


def test_gold_undoes_a_power_and_a_factor_a_class():
    rng = np.random.default_rng(0)
    said = rng.dirichlet([1, 1, 1], 3000)
    heard = rng.normal(0, 1, said.shape)  # what observations said, three times too loud
    honest = said * np.exp(heard)
    honest /= honest.sum(axis=1, keepdims=True)
    known = (rng.random((3000, 1)) > honest.cumsum(axis=1)).sum(axis=1)
    logs = 2.0 * np.log(said) + np.log([1.0, 2.0, 0.5])
    powers, factor = _recalibrated(np.stack([logs, 3.0 * heard]), known)
    found = softmax(powers[0] * logs + powers[1] * 3.0 * heard + factor, axis=1)
    np.testing.assert_allclose(powers, [1 / 2, 1 / 3], rtol=0.1)
    assert np.abs(softmax(logs + 3.0 * heard, axis=1) - honest).mean() > 0.1
    assert np.abs(found - honest).mean() < 0.02
    assert _recalibrated(np.zeros((2, 19, 3)), known[:19])[0].tolist() == [1.0, 1.0]


@pytest.mark.thorough
def test_gold_against_everybody_is_said_and_gold_of_nothing_is_refused():
    answers, truth, y = panel(7, 60)
    against = {f"i{i}": int(truth[i] + 1) % 3 for i in range(30)}
    first = rank_annotators(answers, gold=against).findings[0]
    assert (first.name, first.level) == ("gold", "warning")
    assert "contradicts the annotators" in first.message
    for y_given, gold, said in (
        (None, {"i0": 7}, "one of the labels 0, 1, 2, got 7"),
        (None, {"j": 1}, "items that have answers"),
        (None, [1, None], "each of the 60 items"),
        (y[:7], None, "observation for each of the 60 items"),
        (np.full((60, 2), np.nan), None, "with observations, got 0"),
    ):
        assert said in refused(rank_annotators, answers, y_given, gold)


@pytest.mark.thorough
def test_what_is_known_of_half_of_the_items_and_of_rows_that_differ(tmp_path, capsys):
    answers, _, y = panel(8, 60)
    rows = {"item": answers.item, "annotator": answers.annotator, "label": answers.label}
    frame = pandas.DataFrame(rows)
    frame["grade"] = np.where(frame.item < 20, None, frame.item % 5)
    frame.to_csv(tmp_path / "answers.csv", index=False)
    half = {"item": np.arange(0, 60, 2), "point": list(y[::2])}
    pandas.DataFrame(half).to_parquet(tmp_path / "half.parquet")
    np.savez(tmp_path / "half.npz", item=half["item"], point=y[::2])
    for name in ("half.parquet", "half.npz"):
        more = ["--items", tmp_path / name, "--observation", "point"]
        assert "30 of 60 items have none" in run(capsys, tmp_path / "answers.csv", *more)[1]
    more = [tmp_path / "answers.csv", "--observation", "grade"]
    assert "20 of 60 items have none" in run(capsys, *more)[1]
    frame.loc[frame.item == 33, "grade"] = np.arange((frame.item == 33).sum())
    frame.to_csv(tmp_path / "answers.csv", index=False)
    said = run(capsys, *more)[2]
    assert said.startswith("jgram: grade: expected one value an item, got 0 (row")
    assert "for item 33" in said


@pytest.mark.thorough
def test_from_files_and_back(tmp_path, capsys):
    """Wide answers with texts; items to check, a sheet filled in, labels for training."""
    rng = np.random.default_rng(0)
    words = [["charge", "refund", "invoice"], ["crash", "login", "update"]]
    truth = rng.integers(0, 2, 300)
    texts = [" ".join(rng.choice(words[t], 4)) + f" {i}" for i, t in enumerate(truth)]
    rows = [
        [f"t{i}", texts[i], *(int(t if rng.random() > e else 1 - t) for e in (0.1, 0.2, 0.3))]
        for i, t in enumerate(truth)
    ]
    sheet = tmp_path / "sheet.csv"
    head = ["item", "text", "model_a", "model_b", "model_c"]
    sheet.write_text("\n".join(",".join(map(str, row)) for row in [head, *rows]))
    base = [str(sheet), "--answers", "model_*", "--observation", "text"]
    check, labels = tmp_path / "check.csv", tmp_path / "labels.parquet"
    code, out, _ = run(capsys, *base, "--to-check", 40, "--out", check, "--labels-out", labels)
    assert code in (0, 3)
    assert "one more voter" in out
    found = pandas.read_parquet(labels)
    assert (found.label == [truth[int(item[1:])] for item in found.item]).mean() > 0.97
    soft = found.filter(like="p(").to_numpy()
    np.testing.assert_allclose(soft.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(soft.max(axis=1), found.probability)
    asked = pandas.read_csv(check)
    assert (len(asked), (asked.why == "in doubt").sum()) == (40, 20)
    asked["right"] = [truth[int(item[1:])] for item in asked.item]
    asked.to_csv(check, index=False)
    out = run(capsys, *base, "--checked", check)[1]
    assert "40 of 300 items have gold; 20 were picked for their doubt" in out
    for more, said in (
        (["--answers", "model_a"], "two columns or more"),
        (["--answers", "model_a,model_z"], "model_z"),
        (["--to-check", "3"], "--out"),
    ):
        assert said in run(capsys, *base, *more)[2]
