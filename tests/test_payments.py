"""Payments: a budget is spent, and nobody earns more by a lie while the others tell the truth."""

import json
from itertools import product

import jsonschema
import numpy as np
import pytest

import jgram
from jgram.cli import main
from jgram.payments import pay, rewards
from tests.refusals import refused

X = np.random.default_rng(0).choice(3, 600, p=(0.5, 0.3, 0.2))


def noisy(seed, share):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(600) < share, rng.integers(0, 3, 600), X)


Y = 2 * np.eye(3)[X] + np.random.default_rng(1).normal(size=(600, 3))
OTHERS = {"bob": noisy(3, 0.3), "cid": noisy(4, 0.2)}


def paid(own, y=Y, **more):
    return pay({"ann": own, **OTHERS}, y, budget=90.0, **more)


@pytest.mark.parametrize("y", [Y, None], ids=["observations", "other reports"])
def test_the_budget_is_spent_and_no_renaming_or_merging_pays(y):
    honest = noisy(2, 0.1)
    found = paid(honest, y)
    assert found.payments.sum() == pytest.approx(90.0)
    assert found.payments.min() >= 0
    assert found.payments.max() <= found.most * (1 + 1e-12)
    names = {one.name: one.payment for one in found.reports}
    assert names["ann"] > names["cid"] > names["bob"]
    lies = [paid(np.array(names)[honest], y).reports[0].payment
            for names in product(range(3), repeat=3) if names != (0, 1, 2)]  # fmt: skip
    assert max(lies) < names["ann"]
    guess = paid(np.random.default_rng(9).permutation(honest), y)
    assert (
        guess.reports[0].interval[0] < guess.reports[0].noise * 600 < guess.reports[0].interval[1]
    )
    assert "ann is not told from labels that know nothing" in guess.conclusion
    constant = paid(np.full(600, 1), y)
    assert constant.reports[0].a_label == pytest.approx(constant.reports[0].noise, rel=1e-6)


def test_what_a_label_earns_depends_on_the_others_alone():
    z = np.eye(3)[np.stack([noisy(2, 0.1), *OTHERS.values()])]
    lie = z.copy()
    lie[0] = np.eye(3)[noisy(5, 0.9)]
    one, other = rewards(z)[0], rewards(lie)[0]
    # But for the slope on what the record pays everybody, which does not depend on the class.
    centred = [part - part.mean(axis=1, keepdims=True) for part in (one, other)]
    np.testing.assert_allclose(*centred, atol=1e-9)
    assert not np.allclose(rewards(z)[1], rewards(lie)[1])


def test_a_missing_label_is_paid_nothing_and_json_comes_back():
    own = [None, *noisy(2, 0.1)[1:].tolist()]
    found = paid(own)
    assert found.payments[0, 0] == 0
    assert found.reports[0].num_records == 599
    text = found.to_json()
    jsonschema.validate(json.loads(text), jgram.schema("payments"))
    np.testing.assert_array_equal(jgram.load(text).payments, found.payments)
    assert found.to_frame("pandas")["payment"].tolist() == [one.payment for one in found.reports]
    assert found.plot().axes[0].has_data()


def test_the_command_writes_what_every_label_is_paid(tmp_path, capsys):
    path, out = tmp_path / "labels.csv", tmp_path / "paid.csv"
    own = ["", *noisy(2, 0.1)[1:].astype(str)]
    rows = zip(own, *OTHERS.values(), *Y.T.tolist(), strict=True)
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(["ann,bob,cid,u,v,w", *lines]) + "\n")
    asked = ["pay", str(path), "--report", "ann", "--report", "bob", "--report", "cid"]

    def run(*more):
        with pytest.raises(SystemExit) as ended:
            main([*asked, *more])
        return ended.value.code or 0, capsys.readouterr()

    code, shown = run("--observation", "u", "--budget", "90", "--out", str(out))
    assert (code, "ann is paid most a label." in shown.out) == (0, True)
    header, first, *_ = table = [line.split(",") for line in out.read_text().splitlines()]
    assert (header, first[:2]) == (["row", "ann", "bob", "cid"], ["2", "0.0"])
    assert len(table) == 601
    paid = np.array(table[1:], float)[:, 1:]
    assert paid.sum() == pytest.approx(90.0)
    expected = pay({"ann": [None, *map(int, own[1:])], **OTHERS}, {"u": Y[:, 0]}, budget=90)
    np.testing.assert_allclose(paid.T, expected.payments, rtol=1e-6)
    code, shown = run("--observation", "u", "--budget=-1")
    assert (code, shown.err) == (2, "jgram: budget: expected an amount above 0, got -1.0\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": -5.0}, "budget: expected an amount above 0, got -5.0"),
        ({"budget": float("nan")}, "budget: expected an amount above 0, got nan"),
        ({"weights": np.ones(600)}, "no weights="),
        ({"block_length": 12}, "no block_length="),
        ({"reports": {"ann": X}}, "two reports or more"),
        ({"y": None, "reports": {"ann": X, "bob": X}}, "expected 3 reports or more"),
        ({"reports": {"ann": np.eye(3)[X], "bob": np.eye(3)[X]}}, "got soft reports"),
        ({"reports": {"ann": X * 0, "bob": X * 0}}, "two classes or more"),
        (
            {"reports": {"ann": X * 0, "bob": X * 0}, "num_classes": 3},
            "expected other reports to pay each report by",
        ),
    ],
)
def test_what_cannot_be_paid_is_said(change, words):
    asked = {"reports": OTHERS, "y": Y, "budget": 1.0} | change
    assert words in refused(lambda: pay(asked.pop("reports"), asked.pop("y"), **asked))


def test_numbers_are_paid_for_what_they_say():
    rng = np.random.default_rng(7)
    truth = rng.normal(size=500)
    said = {e: truth + e * rng.normal(size=500) for e in (0.3, 0.6, 1.5)}
    reports = {f"r{e}": np.round(10 * values, 1) for e, values in said.items()}
    found = pay(reports, truth + rng.normal(size=500), budget=10.0)
    assert found.payments.sum() == pytest.approx(10.0)
    assert found.payments.min() >= -1e-12
    first, second, third = (one.payment for one in found.reports)
    assert first > second > third
    merged = pay(reports | {"r0.3": np.round(said[0.3])}, None, budget=10.0).reports[0]
    assert merged.payment < pay(reports, None, budget=10.0).reports[0].payment
