"""Rules and drift: nights that are worse are caught, equal ones pass, what cannot be is said."""

from xml.etree import ElementTree

import numpy as np
import pytest

from jgram import load, rank_reports
from jgram.check import check, history
from jgram.cli import main
from jgram.drift import fit_baseline, measure_drift
from tests.refusals import refused


def night(seed, errors, n=2000, away=0.0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, n)
    reports = {
        name: np.where(rng.random(n) < share, rng.integers(0, 3, n), x)
        for name, share in zip(("ann", "bob"), errors, strict=True)
    }
    level = np.eye(3)[x] * 2 + rng.normal(size=(n, 3)) + away
    y = {"u": level[:, 0], "v": level[:, 1], "city": np.array(["p", "q"])[(level[:, 2] > 1) * 1]}
    return reports, y, x


RANKING = rank_reports(*night(0, (0.05, 0.2))[:2])


@pytest.mark.thorough
def test_what_a_report_earns_is_what_is_left_of_it():
    """Labels replaced at random by a share take that share of what the report earned."""
    reports, y, _ = night(0, (0.05, 0.2), 4000)
    baseline = fit_baseline(reports, y)
    assert load(baseline.to_json()).earned == baseline.earned
    for share in (0.1, 0.3):
        later = night(1, (0.05 + share * 0.95, 0.2), 4000)
        found = measure_drift(baseline, *later[:2])
        ann, bob = found.reports
        assert ann.earns == pytest.approx(1 - share, abs=0.05)
        assert ann.interval[0] < 1 - share < ann.interval[1]
        assert (ann.worse, bob.worse, found.observations_changed) == (True, False, False)
    moved = measure_drift(baseline, *night(2, (0.05, 0.2), 4000, away=0.5)[:2])
    assert moved.observations_changed
    assert {one.name for one in moved.columns if one.changed} >= {"u", "v"}


@pytest.mark.thorough
def test_nights():
    baseline = fit_baseline(*night(0, (0.05, 0.2))[:2])
    nights = {"equal": (0.05, 0.2), "both worse": (0.2, 0.35), "the best worse": (0.2, 0.2)}
    alarms = {
        name: np.mean(
            [
                any(one.worse for one in measure_drift(baseline, *night(s, errors)[:2]).reports)
                for s in range(100, 140)
            ]
        )
        for name, errors in nights.items()
    }
    assert alarms["equal"] <= 0.1
    assert min(alarms["both worse"], alarms["the best worse"]) >= 0.95


def test_rules():
    found = check(
        ["bob keeps >= 70%", "bob keeps >= .95", "every report not noise", "ann better than bob",
         "bob better than ann", "bob keeps >= 84%", "ann accuracy >= .9"],
        RANKING, gold={"ann": (96, 100)}, when="2026-01-01",
    )  # fmt: skip
    outcome = {one.rule: one.outcome for one in found.rules}
    assert outcome["bob keeps >= 70%"] == outcome["ann not noise"] == "passed"
    assert outcome["bob keeps >= .95"] == outcome["bob better than ann"] == "failed"
    assert outcome["bob keeps >= 84%"] == "open"
    assert not found.passed
    assert "bob keeps >= .95" in found.conclusion
    suite = ElementTree.fromstring(found.to_junit())
    assert (suite.get("tests"), suite.get("failures")) == ("8", "2")
    assert load(found.to_json()) == found
    assert len(history([found, found])[0].rows) == 2
    for rule, said in (
        ("bob is good", "expected a sentence"),
        ("cyd keeps >= .9", "cyd"),
        ("ann earns >= .9", "--against"),
        ("bob accuracy >= .9", "gold"),
    ):
        assert said in refused(check, [rule], RANKING)


@pytest.mark.thorough
def test_from_files(tmp_path, capsys):
    for name, errors in (("n0", (0.05, 0.2)), ("n1", (0.05, 0.2)), ("n2", (0.25, 0.4))):
        reports, y, _ = night(int(name[1]), errors)
        columns = {**reports, **y}
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    rules = tmp_path / "rules.toml"
    rules.write_text(
        'file = "n0.csv"\nreports = ["ann", "bob"]\nobservations = ["u", "v", "city"]\n'
        'rules = ["bob keeps >= 70%"]\n'
    )

    def run(*arguments):
        with pytest.raises(SystemExit) as caught:
            main(["check", *map(str, arguments)])
        return caught.value.code, *capsys.readouterr()

    kept, log = tmp_path / "b.json", tmp_path / "nights.jsonl"
    assert run(rules, "--save-baseline", kept)[0] == 0
    assert run(rules, tmp_path / "n1.csv", "--against", kept, "--history", log)[0] == 0
    page = tmp_path / "p.html"
    code, out, _ = run(rules, tmp_path / "n2.csv", "--against", kept, "--history", log,
                       "--html", page)  # fmt: skip
    assert (code, "ann no worse" in out, page.exists()) == (4, True, True)
    for text, said in (
        ("rules = 3", "expected a list"),
        ('colour = "red"', "colour"),
        ("rules = [", "expected TOML"),
    ):
        rules.write_text(f'file = "n0.csv"\nreports = ["ann"]\nobservations = ["u"]\n{text}\n')
        assert said in run(rules)[2]
