"""Verdicts at any time: looking often costs nothing, and a stream is its sums."""

import io
import re
import signal
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy.stats import norm

from jgram import rank_reports, sequential
from jgram.cli import main
from jgram.kernels import RandomFeatures
from jgram.plan import plan
from tests.refusals import refused

KERNEL = RandomFeatures.draw(jax.random.key(0), 32, dimension=2, bandwidth=2.0)


def stream(seed, shares, n=640, d=3):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, d, n)
    y = 2 * np.stack([np.cos(2 * np.pi * x / d), np.sin(2 * np.pi * x / d)], axis=1)
    labels = [np.where(rng.random(n) < e, rng.integers(0, d, n), x) for e in shares]
    return np.stack(labels), np.asarray(KERNEL.features(y + rng.normal(size=y.shape)))


def watched(labels, seen, step=64):
    state = sequential.start(seen[:50], num_reports=len(labels), num_classes=3)
    names = [f"r{i}" for i in range(len(labels))]
    for low in range(0, labels.shape[1], step):
        state = sequential.update(state, labels[:, low : low + step], seen[low : low + step])
        yield sequential.verdict(state, names), state


def test_batches_do_not_matter_and_a_state_is_a_pytree():
    labels, seen = stream(0, (0.1, 0.3, 0.4))
    *_, (one, state) = watched(labels, seen, 64)
    *_, (two, other) = watched(labels, seen, 320)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-8), state, other)
    assert one == two
    again = jax.tree.unflatten(
        jax.tree.structure(state), [*map(np.asarray, jax.tree.leaves(state))]
    )
    assert sequential.verdict(again, ["r0", "r1", "r2"]) == one
    assert one.most_reliable[0] == "r0"


@pytest.mark.thorough
def test_false_alarms_and_confidence_sequences_at_the_worst_time():
    wrong = misses = told = 0
    for seed in range(200):
        last = None
        for found, _ in watched(*stream(seed, (0.3, 0.3))):
            wrong += last is not True and found.decided
            last = last or found.decided
        labels, seen = stream([1, seed], (0.1, 0.4))
        missed = False
        for found, _ in watched(labels, seen):
            (pair,) = found.pairs
            if pair.keeps_interval is not None and pair.better == "r0":
                low, high = pair.keeps_interval
                missed |= not low <= 0.6 / 0.9 <= high
            assert not (pair.decided and pair.better == "r1")
        misses += missed
        told += found.decided
    assert wrong <= 12  # 5% of 200 is 10
    assert misses <= 12
    assert told > 180


def test_what_does_not_fit_is_said(unchecked):
    labels, seen = stream(1, (0.1, 0.3), 40)
    state = sequential.start(seen, num_classes=3)
    for call, said in (
        (lambda: sequential.update(state, labels + 1, seen), "begin again with all possible"),
        (lambda: sequential.update(state, labels, seen[:3]), "features"),
        (lambda: sequential.start(seen, num_classes=1), "two classes"),
        (lambda: sequential.verdict(state, ["a"]), "2 names"),
    ):
        assert said in refused(call)
    assert "go on" in sequential.verdict(state, ["a", "b"]).conclusion


@pytest.mark.slow
def test_the_number_of_records_is_what_subsampling_takes():
    """Power at the planned number, measured on fresh data, is the power that was asked for."""

    def data(seed, n):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 3, n)
        said = {f"r{e}": np.where(rng.random(n) < e, rng.integers(0, 3, n), x) for e in (0.2, 0.3)}
        return said, np.eye(3)[x] * 2 + rng.normal(size=(n, 3))

    sizes = [plan(rank_reports(*data(seed, 1000)), width=0.1).pairs[0] for seed in range(12)]
    planned = int(np.median([pair.records for pair in sizes]))
    told = np.mean([rank_reports(*data([1, s], planned)).pairs[0].separated for s in range(40)])
    assert 0.6 < told < 0.95
    assert np.mean([pair.records_low <= planned for pair in sizes]) > 0.9
    wide = int(np.median([pair.records_for_width for pair in sizes]))
    low, high = rank_reports(*data(7, wide)).pairs[0].retention_interval
    assert high - low == pytest.approx(0.1, rel=0.15)


@pytest.mark.thorough
def test_plans_that_cannot_be():
    labels, seen = stream(3, (0.1, 0.5), 60)
    pilot = rank_reports({"a": labels[0], "b": labels[1]}, seen)
    for options, said in (({"power": 1.0}, "power"), ({"width": 0.0}, "width")):
        assert said in refused(plan, pilot, **options)
    few = rank_reports({"a": labels[0, :20], "b": labels[1, :20]}, seen[:20])
    assert "30 records" in refused(plan, few)
    found = plan(pilot)
    assert f"{found.total:,} records in all" in str(found)


@pytest.mark.thorough
def test_what_right_labels_and_columns_are_worth(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 400)
    flips = rng.random((3, 400)) < [[0.1], [0.2], [0.25]]
    said = {f"r{i}": np.where(flip, 1 - x, x) for i, flip in enumerate(flips)}
    seen = {"clear": x + rng.normal(size=400) / 2, "dim": x + 2 * rng.normal(size=400)}
    pilot = rank_reports(said, seen)
    less = rank_reports(said, {"dim": seen["dim"]})
    found = plan(pilot, without={"clear": less})
    pair = next(one for one in found.pairs if (one.better, one.worse) == ("r0", "r1"))
    q = np.mean(said["r0"] != said["r1"])
    gap = (1 - pilot.pairs[found.pairs.index(pair)].retention) / 2  # the better one always right
    power = norm.ppf(1 - 0.05 / 6) + norm.ppf(0.8)
    assert pair.right_labels == np.ceil(q * (power / gap) ** 2)
    (clear,) = found.worth
    assert clear.times > 1
    assert clear.records is None or clear.records > max(one.records for one in found.pairs)
    gold = rank_reports(said, seen, gold=[*x[:100].tolist(), *[None] * 300])
    assert plan(gold).pairs[0].right_labels != found.pairs[0].right_labels
    rows = zip(*said.values(), *seen.values(), strict=True)
    (tmp_path / "pilot.csv").write_text(
        "\n".join([",".join([*said, *seen]), *(",".join(map(str, row)) for row in rows)]) + "\n"
    )
    with pytest.raises(SystemExit):
        main(["plan", str(tmp_path / "pilot.csv"), "--worth", *(f"--report=r{i}" for i in range(3)),
              "--observation=clear", "--observation=dim"])  # fmt: skip
    shown = capsys.readouterr().out
    names = re.findall(r"^(\w+) +[\d.]+ ", shown.partition("times the records")[2], re.M)
    assert names == ["clear", "dim", "r0", "r1", "r2"]


# As the command watches it --------------------------------------------------------------------


def lines(seed, shares, n):
    """The lines of a CSV file of two reports and an observation."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, n)
    said = [np.where(rng.random(n) < e, (x + 1) % 3, x) for e in shares]
    y = 2 * x + rng.normal(size=n)
    return [f"{a},{b},{c:.3f}\n" for a, b, c in zip(*said, y, strict=True)]


HEAD = "ann,bob,crp\n"
WATCHED = ["--report", "ann", "--report", "bob", "--observation", "crp", "--watch"]


def watch(capsys, source, *more):
    with pytest.raises(SystemExit) as ended:
        main(["rank", str(source), *WATCHED, *map(str, more)])
    return ended.value.code or 0, capsys.readouterr()


@pytest.mark.thorough
def test_a_file_that_grows_is_watched_and_resumed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("jgram.cli.process.prepare_process", lambda: None)
    rows, path, kept = lines(0, (0.1, 0.4), 900), tmp_path / "in.csv", tmp_path / "kept"
    path.write_text(HEAD + "".join(rows[:120]) + rows[120][:4])  # a line half written
    code, shown = watch(capsys, path, "--checkpoint", kept, "--patience", 0)
    assert code == 3
    assert shown.err.startswith("88 records, evidence")  # the first 32 pay the others
    with path.open("a") as file:
        file.write(rows[120][4:] + "".join(rows[121:]))
    code, shown = watch(capsys, path, "--checkpoint", kept, "--patience", 0)
    assert code == 0
    assert "ann is the most reliable." in shown.out
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    _, whole = watch(capsys, "-")
    for one in (whole, shown):  # in one piece or two
        assert one.out.splitlines()[0] == "868 records, 95% at all times together"
    code, shown = watch(capsys, path, "--checkpoint", kept, "--patience", 0)
    assert (code, shown.err) == (0, "")  # told already: nothing is read
    (tmp_path / "other.csv").write_text(HEAD)
    code, shown = watch(capsys, tmp_path / "other.csv", "--checkpoint", kept)
    assert "expected what was kept of this stream, got that of 'ann', 'bob', 'crp'" in shown.err


def test_ctrl_c_ends_standard_input_and_first_records_are_kept(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("jgram.cli.process.prepare_process", lambda: None)
    rows, kept = lines(0, (0.1, 0.4), 900), tmp_path / "kept"

    def typed(*parts):
        left = iter(parts)

        def read1(_):
            if (part := next(left, None)) is None:
                signal.raise_signal(signal.SIGINT)
            return part.encode()

        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=SimpleNamespace(read1=read1)))

    before = signal.getsignal(signal.SIGINT)
    typed(HEAD, "".join(rows[:40]))
    assert "begin with, got 40: --checkpoint FOLDER keeps" in watch(capsys, "-")[1].err
    typed(HEAD, "".join(rows[:40]))
    code, shown = watch(capsys, "-", "--checkpoint", kept)
    assert (code, shown.err[-4:]) == (2, " 40\n")
    typed("".join(rows[40:90]), "".join(rows[90:]))
    code, shown = watch(capsys, "-", "--checkpoint", kept)
    assert (code, shown.out.splitlines()[0][:11]) == (0, "868 records")
    assert "ann is the most reliable." in shown.out
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.thorough
def test_a_folder_is_watched_and_what_it_cannot_take_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("jgram.cli.process.prepare_process", lambda: None)
    rows, folder = lines(1, (0.3, 0.3), 200), tmp_path / "in"
    folder.mkdir()
    few = watch(capsys, folder, "--patience", 0)[1].err
    assert "expected 100 records or more to begin with, got 0" in few
    (folder / "a.csv").write_text(HEAD + "".join(rows[:60]))
    (folder / "b.csv").write_text(HEAD + "".join(rows[60:]))
    code, shown = watch(capsys, folder, "--patience", 0)
    assert code == 3
    assert "No order is told" in shown.out
    (folder / "c.csv").write_text(HEAD + "9,1,0.5\n")
    assert "got '9': begin again with all possible labels" in watch(capsys, folder)[1].err
    for option in (["--bins", 3], ["--order", "crp"], ["--missing", "drop"]):
        assert f"{option[0]}: expected none with --watch" in watch(capsys, folder, *option)[1].err
    assert "expected a folder, a .csv" in watch(capsys, tmp_path / "x.parquet")[1].err
