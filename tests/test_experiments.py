"""Every experiment runs small, and writes strict JSON, table rows and a figure."""

import json
import re

import numpy as np
import pytest

from experiments import __main__ as runner
from experiments import figures, kernels, pictures, sample_size, stale, statistics
from jgram.contrasts import pair_payoffs
from jgram.kernels import Delta
from jgram.observed import observe

pytestmark = pytest.mark.thorough


@pytest.mark.slow  # CI runs them all at --smoke as a step of its own
@pytest.mark.parametrize("name", runner.available())
def test_smoke(name, tmp_path, capsys):
    if runner.main([name, "--smoke", "--out", str(tmp_path)]):
        pytest.skip(f"{name} cannot run here: {capsys.readouterr().err.strip()}")
    record = json.loads(
        (tmp_path / f"{name}.json").read_text(), parse_constant=lambda text: pytest.fail(text)
    )
    assert record["config"] == {"smoke": True, "as_published": False, "seed": 0}
    assert record["rows"]
    assert all({"quantity", "paper", "ours", "interval"} <= set(row) for row in record["rows"])
    assert {"title", "wall_seconds", "device", "versions", "results"} <= set(record)
    assert name in runner.table(tmp_path)
    if (tmp_path / f"{name}.png").exists():
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["policies", "sample_size"])
def test_as_published_is_written_beside_the_default(name, tmp_path):
    assert runner.main([name, "--smoke", "--as-published", "--out", str(tmp_path)]) == 0
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        f"{name}-as-published.json",
        f"{name}-as-published.png",
    ]


def test_same_seed_same_numbers(tmp_path):
    found = []
    for seed in ("1", "1", "2"):
        assert runner.main(["agnostic", "--smoke", "--seed", seed, "--out", str(tmp_path)]) == 0
        found.append(json.loads((tmp_path / "agnostic.json").read_text())["results"])
    assert found[0] == found[1] != found[2]


def test_a_stale_result_is_named(tmp_path, capsys):
    assert runner.main(["volume", "--smoke", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    checking = ["volume", "--check", "--out", str(tmp_path)]
    assert runner.main(checking) == 0
    assert capsys.readouterr().out == ""
    path = tmp_path / "volume.json"
    record = json.loads(path.read_text())
    record["rows"][0]["quantity"] = "another"
    path.write_text(json.dumps(record | {"cpu_seconds": 1e4}))
    assert runner.main(checking) == 1
    assert "stale: volume: 1 differences, first rows[0].quantity is" in capsys.readouterr().out
    assert runner.check("volume", tmp_path, slow=False) == ([], ["volume (took 10000 s)"])
    missing, _ = runner.check("agnostic", tmp_path, slow=False)
    assert missing == [f"agnostic: no result in {tmp_path}"]


@pytest.mark.parametrize(
    ("found", "was", "words"),
    [
        ({"a": 1.0}, {"a": 1.0000001}, []),
        ({"wall_seconds": 1.0}, {"wall_seconds": 9.0}, []),
        ({"a": [1, 2]}, {"a": [1]}, ["results.a has 2 entries, had 1"]),
        ({"a": None}, {"a": 0.0}, ["results.a is None, was 0.0"]),
        ({"a": 1}, {"b": 1}, ["results.b is gone", "results.a is new"]),
        ({"a": 33.7}, {"a": 34.9}, ["results.a is 33.7, was 34.9"]),
    ],
)
def test_differences_of_results(found, was, words):
    assert list(stale.differences(found, was)) == words


def test_infinities_become_null_and_nan_is_refused():
    assert runner.to_json({"a": np.array([1.0, -np.inf]), 2: (np.int32(3), True, None)}) == {
        "a": [1.0, None],
        "2": [3, True, None],
    }
    with pytest.raises(ValueError, match="NaN"):
        runner.to_json([np.float32("nan")])


def test_table_has_a_row_a_quantity(tmp_path):
    row = {"quantity": "a|b", "paper": "", "ours": 0.123456, "interval": "± 1"}
    record = {"rows": [row, row], "wall_seconds": 2.0, "device": "cpu"}
    (tmp_path / "policies.json").write_text(json.dumps(record))
    lines = runner.table(tmp_path).splitlines()
    assert lines[2:] == [
        "| `policies` | a\\|b |  | 0.1235 | ± 1 | 2.0 s | cpu |",
        "| `policies` | a\\|b |  | 0.1235 | ± 1 |  |  |",
    ]


def test_the_pages_are_of_the_results():
    """Numbers and verdicts; a verdict that the results do not support raises."""
    assert runner.page(runner.README.read_text(), runner.RESULTS) == runner.README.read_text()
    assert runner.table(runner.RESULTS) in runner.TABLE.read_text()
    for name in runner.NAMES:
        lines = runner.section(name, runner.RESULTS).splitlines()
        assert lines[0].startswith("**"), name
        assert len([line for line in lines if line.startswith("|")]) == 2 + 3, name


def test_a_changed_result_changes_the_page_or_is_refused(tmp_path):
    path = tmp_path / "volume.json"
    record = json.loads((runner.RESULTS / "volume.json").read_text())
    record["results"]["volumes"]["report"] *= 0.5
    path.write_text(json.dumps(record))
    assert "0.24" in runner.section("volume", tmp_path)
    record["results"]["volumes"]["report"] = 1.0
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="claim 1 of this verdict does not hold"):
        runner.section("volume", tmp_path)


def test_pictures_are_small_and_every_panel_says_what_it_shows():
    pictures = [*runner.RESULTS.glob("*.png"), *(runner.HERE / "pictures").glob("*.png")]
    assert len(pictures) > 15
    for path in pictures:
        assert path.stat().st_size < 200_000, path
    figure, axes = figures.panels(1, 1)
    with pytest.raises(ValueError, match="a title on every panel"):
        figures.save(figure, axes.flat, None)


def test_the_readme_s_pictures_are_drawn_from_results(tmp_path):
    bench = runner.HERE.parent / "bench" / "results"
    pictures.draw(runner.RESULTS, bench, tmp_path)
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == sorted(path.name for path in (runner.HERE / "pictures").iterdir())
    for file, ours, theirs, _ in pictures.SAME_WORK:
        rows = json.loads((bench / f"{file}.json").read_text())["rows"]
        assert not rows[theirs]["name"].startswith("jgram,")
        assert "jgram" in rows[ours]["name"] or file == "encoder"


def test_a_missing_dependency_is_one_line(tmp_path, monkeypatch, capsys):
    def broken(name):
        raise ModuleNotFoundError("No module named 'flax'", name="flax")

    monkeypatch.setattr(runner.importlib, "import_module", broken)
    assert runner.main(["policies", "--smoke", "--out", str(tmp_path)]) == 1
    assert "policies: needs flax; pip install 'jgram[experiments]'" in capsys.readouterr().err


def test_rank_distance_is_kendalls():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, errors = rng.normal(size=(2, 6))
        tau = kendalltau(scores, -errors).statistic
        assert np.isclose(statistics.rank_distance(scores, errors), (1 - tau) / 2)


def test_ranks_with_ties_and_infinities():
    errors = [0, 1, 2]
    assert statistics.rank_distance([3, 2, 1], errors) == 0
    assert statistics.rank_distance([1, 2, 3], errors) == 1
    assert statistics.rank_distance([3, 2, 2], errors) == 0.5 / 3
    assert statistics.rank_distance([3, -np.inf, -np.inf], [0, 1, 1]) == 0
    assert statistics.same_ranking([3, -np.inf, -np.inf], [0, 1, 1])
    assert not statistics.same_ranking([3, 2, 2], errors)


def test_wilson_interval():
    found = statistics.proportion([True] * 8 + [False] * 2, 10)
    assert found["share"] == 0.8
    np.testing.assert_allclose([found["low"], found["high"]], [0.4902, 0.9433], atol=1e-4)
    assert statistics.proportion([True] * 5, 5)["high"] == 1.0


def test_gaussian_kernel_of_bandwidth_a_tenth_is_delta_on_integers():
    table = np.random.default_rng(0).integers(1, 50, (5, 5))
    exact = 2 * np.linalg.slogdet(table / table.sum())[1]
    np.testing.assert_allclose(kernels.gaussian_table_score(table), exact, rtol=1e-4)


def test_payoffs_of_counted_cells_are_those_of_the_records():
    rng = np.random.default_rng(0)
    y, reports = rng.integers(5, size=60), rng.integers(5, size=(6, 60))
    reports[:3, :40] = y[:40]
    found = pair_payoffs(observe(Delta(5), y), reports, num_classes=5, complete=True)
    np.testing.assert_allclose(sample_size.mean_payoffs(reports, y), found.means, atol=1e-4)


def test_positional_estimator_against_loops():
    rng = np.random.default_rng(0)
    x_hat, y = rng.integers(3, size=40), rng.normal(size=40)
    matrix = np.empty((3, 3))
    for a in range(3):
        for b in range(3):
            first, second = y[x_hat == a], y[x_hat == b]
            m = min(len(first), len(second))
            matrix[a, b] = np.mean(np.exp(-(((first[:m] - second[:m]) / 0.5) ** 2)))
    ours = sample_size.positional_determinant(x_hat, y, 3, 0.5)
    np.testing.assert_allclose(ours, np.linalg.det(matrix), rtol=1e-4)
    assert (np.diag(matrix) == 1).all()  # whatever the data


def test_adjustment_and_groups():
    assert statistics.holm({}) == {}
    assert statistics.holm({"a": 0.5, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    separate = {frozenset(pair): 0.0 for pair in ("ab", "ac", "bc")}
    assert statistics.tie_groups(list("abc"), separate) == [["a"], ["b"], ["c"]]
    assert statistics.tie_groups(list("abc"), dict.fromkeys(separate, 1.0)) == [["a", "b", "c"]]


def test_the_readme_says_what_the_results_say():
    """The numbers of its table and of its pictures' words, each from the committed results."""
    found = {
        name: json.loads((runner.RESULTS / f"{name}.json").read_text())["results"]
        for name in ("demo", "human_labels", "label_issues", "annotators", "rank_power")
    }
    usual, crowds = found["label_issues"]["usual"], found["annotators"]["comparison"]["accuracy"]
    covered, power = found["annotators"]["coverage"], found["rank_power"]["settings"]
    paid = found["human_labels"]["paid"]["embeddings after 60 epochs"]["default kernel"]["reports"]

    def auroc(name):
        return f"{usual[name]['auroc']['mean']:.3f}"

    def ratio(name):
        return "{median:.2f} ({low:.2f} to {high:.2f})".format(**usual[name]["ratio"])

    def tau(name):
        values = [row[name] for row in power]
        return f"{np.mean(values):.2f}", f"({min(values):.2f})"

    ours, logistic, neighbours = usual
    mean, worst = tau("order")
    words = [
        f"{auroc(logistic)} (logistic), {auroc(neighbours)} (neighbours) | **{auroc(ours)}**",
        ratio(logistic),
        re.sub(r"^([\d.]+)", r"**\1**", ratio(ours)),
        f"agreement {crowds['agreement']['value']:.3f}",
        f"Dawid-Skene {crowds['dawid_skene']['value']:.3f}",
        "**{value:.3f}** [{low:.3f}, {high:.3f}]".format(**crowds["log_score"]),
        f"{covered['left_out']:.0%} of all annotators",
        f"{min(one['left_out'] for one in covered['crowds'].values()):.0%} in the worst crowd",
        f"published score {' '.join(tau('plugin_order'))} | **{mean}** {worst}",
        ", ".join(f"{100 * one['keeps']:.0f}" for one in found["demo"]["reports"][:-1])
        + " and 50%",
        ", ".join(f"{100 * one['keeps']:.0f}" for one in list(paid.values())[:-1]) + " and 62%",
    ]
    readme = (runner.HERE.parent / "README.md").read_text()
    plain = readme.replace("\n", " ")
    for each in words:
        short = re.sub(r"\b0(?=\.\d)", "", each).replace("\n", " ")
        assert short in plain, short
