"""``jgram check``: rules that a night's data have to pass."""

import tomllib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument

from jgram.cli.options import Asked, Output
from jgram.cli.outputs import check_outputs, write_text
from jgram.cli.show import Answer, emit, progress

if TYPE_CHECKING:
    from jgram.drift import Drift

__all__ = ["run"]

FAILED = 4
_SAME = {"observations": "observation"}


@dataclass(frozen=True, kw_only=True)
class _Given(Asked):
    """What a file of rules says."""

    reports: list[str]
    rules: list[str] = field(default_factory=list)
    gold: str | None = None
    strict: bool = False


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Input

    Attributes:
        rules: TOML file, or pyproject.toml with a table tool.jgram.
        file: Tonight's data, if not the rules' file.
    """

    rules: Annotated[Path, Argument()] = Path("pyproject.toml")
    file: Annotated[Path | None, Argument()] = None


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Drift

    Attributes:
        save_baseline: Keep bins, bandwidths, scorer, what reports earn.
        against: A baseline that was kept: no report may be worse.
    """

    save_baseline: Annotated[Path | None, (".json",)] = None
    against: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Told(Output):
    """Output

    Attributes:
        junit: Write the rules as JUnit's XML.
        history: Nights before: a .jsonl file, to which this one is added, or '*.json' of --json.
    """

    junit: Annotated[Path | None, (".xml",)] = None
    history: str | None = None


def run(source: Rules, kept: Kept, output: Told) -> int:
    """Judge tonight's data by the rules of a file; exit code 4 where one fails.

    The file names data, reports, observations and rules, and any option of rank by its name:

        file = "tonight.csv"
        reports = ["ann", "bob"]
        observations = ["crp", "age"]
        rules = ["ann keeps >= 80%", "every report not noise", "ann separated from bob"]

    Examples:

        jgram check rules.toml --save-baseline baseline.json

        jgram check rules.toml tonight.csv --against baseline.json --junit check.xml \\
          --history nights.jsonl --html nights.html
    """
    given, junit = _read_rules(source.rules, source.file), output.junit
    written = {"--save-baseline": kept.save_baseline, "--junit": junit, "--plot": output.plot}
    written |= {"--html": output.html}
    check_outputs({option: (path, ()) for option, path in written.items()}, [given.file])
    with progress("checking", quiet=output.quiet) as bar:
        from jgram.check import check

        ranking, drift, gold, about = _judge(given, kept, bar)
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        found = check(given.rules, ranking, drift=drift, gold=gold, strict=given.strict, when=when)
    view, drawing = [*found.view(about)], None
    if junit is not None:
        write_text(junit, found.to_junit())
    if output.history is not None:
        nights = _nights(output.history, found)
        if len(nights) > 1:
            from jgram.check import history as past

            table, drawing = past(nights)
            view.insert(-1, table)
    answer = Answer(found, about, view=view, drawing=drawing)
    emit(answer._replace(written=[junit, kept.save_baseline]), output)
    return 0 if found.passed else FAILED


def _read_rules(path: Path, file: Path | None) -> _Given:
    """What the file says, as options."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected TOML, got {error}") from None
    if path.name == "pyproject.toml":
        said = said.get("tool", {}).get("jgram")
        if said is None:
            raise ValueError(f"{path}: expected a table [tool.jgram], got none")
    said = {_SAME.get(key, key.replace("-", "_")): value for key, value in said.items()}
    if file is not None:
        said["file"] = str(file)
    elif isinstance(said.get("file"), str):
        said["file"] = str(path.parent / said["file"])
    hints = get_type_hints(_Given)
    for key in said:
        if key not in hints:
            from jgram.data.columns import did_you_mean

            hint = did_you_mean(key, hints, f"there are {', '.join(sorted(hints))}")
            raise ValueError(f"{path}: expected an option, got {key!r}: {hint}")
    for key, what in {"file": "a file", "reports": "columns", "observation": "columns"}.items():
        if key not in said:
            raise ValueError(f"{path}: expected {what}: {key}{'s' * (key == 'observation')} = ...")
    from jgram.data.json import from_data

    return _Given(
        **{key: from_data(hints[key], value, f"{path}: {key}") for key, value in said.items()}
    )


def _judge(given: _Given, kept: Kept, bar: Any) -> Any:
    """The ranking, the drift, gold by report, and where the records came from."""
    from jgram.cli.read import ranked, read_for_judging, read_raw, read_records

    read = read_for_judging(given, given.reports, bar)
    drift = gold = None
    if kept.against or kept.save_baseline:
        plain = replace(given, bins=None, observation_bins=None)
        others = [name for name in (given.weight, given.group) if name]
        drift = _drift(given, read_records(plain, given.reports, bar, others=others), kept)
    if given.gold is not None:
        columns = read_raw(given, [*given.reports, given.gold])
        gold = {name: _right(columns[name], columns[given.gold]) for name in given.reports}
    return ranked(read), drift, gold, read.source


def _drift(given: _Given, night: Any, kept: Kept) -> "Drift | None":
    """What changed since the baseline; and this night kept as one."""
    from jgram.cli.read import kinds_of
    from jgram.drift import Baseline, fit_baseline, measure_drift
    from jgram.results import load

    columns = night.columns
    judged = (
        {name: columns[name] for name in given.reports},
        {name: columns[name] for name in given.needed},
    )
    weights = None if night.counted is None else night.counted.counts
    if given.weight:
        own = columns[given.weight].numbers
        weights = own if weights is None else own * weights
    groups = columns[given.group].codes if given.group else None
    options: dict[str, Any] = {"weights": weights, "groups": groups}
    drift = None
    if kept.against is not None:
        before: Baseline = load(kept.against)
        if not isinstance(before, Baseline):
            raise ValueError(
                f"{kept.against}: expected a baseline of --save-baseline, got a result"
            )
        drift = measure_drift(before, *judged, confidence=given.confidence, **options)
    if kept.save_baseline is not None:
        options |= {"bins": given.bins, "kinds": kinds_of(given.kind)}
        write_text(kept.save_baseline, fit_baseline(*judged, **options).to_json())
    return drift


def _right(labels: Any, truth: Any) -> tuple[int, int]:
    """How many labels are right, of how many whose truth is known."""
    both = labels.present & truth.present
    one, other = ([str(value) for value in column.factors[0]] for column in (labels, truth))
    pairs = zip(labels.codes[both], truth.codes[both], strict=True)
    return sum(one[i] == other[j] for i, j in pairs), int(both.sum())


def _nights(place: str, found: Any) -> list[Any]:
    """The nights before and this one, in order of time; a log gets this one as a line."""
    import json

    from jgram.check import Check
    from jgram.results import load

    path, text = Path(place), json.dumps(json.loads(found.to_json()), ensure_ascii=False)
    if path.suffix.lower() == ".jsonl":
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        before = [load(json.loads(line)) for line in lines if line.strip()]
        with path.open("a", encoding="utf-8") as log:
            log.write(text + "\n")
    else:
        paths = sorted(glob(place))
        if not paths:
            raise ValueError(f"--history: expected a .jsonl file or results by --json, got {place}")
        before = [load(Path(path)) for path in paths]
    if other := next((one for one in before if not isinstance(one, Check)), None):
        raise ValueError(f"--history: expected results of check, got {type(other).__name__}")
    return sorted([*before, found], key=lambda one: one.when)
