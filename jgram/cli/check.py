"""``jgram check``: rules that a night's data have to pass."""

import tomllib
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer import Argument

from jgram.cli.options import Engine, Inference, Input, Observed, Output
from jgram.cli.outputs import whole_file
from jgram.cli.show import Answer, check_output, emit, progress

if TYPE_CHECKING:
    from jgram.drift import Drift

__all__ = ["run"]

FAILED = 4
_GROUPS = {"source": Input, "observed": Observed, "inference": Inference, "engine": Engine}
_OWN = {"reports": list[str], "rules": list[str], "gold": str, "strict": bool}
_SAME = {"observations": "observation"}


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

    save_baseline: Path | None = None
    against: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Told(Output):
    """Output

    Attributes:
        junit: Write the rules as JUnit's XML.
        history: Nights before: a .jsonl file, to which this one is added, or '*.json' of --json.
    """

    junit: Path | None = None
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
    outputs = {"--save-baseline": (kept.save_baseline, (".json",)), "--junit": (junit, (".xml",))}
    check_output(output, [source.rules, given["source"].file, kept.against], outputs)
    with progress("checking", quiet=output.quiet) as bar:
        from jgram.check import check

        ranking, drift, gold, about = _judge(given, kept, bar)
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        said, strict = given["rules"], given["strict"]
        found = check(said, ranking, drift=drift, gold=gold, strict=strict, when=when)
    view, drawing = [*found.view(about)], None
    if junit is not None:
        with whole_file(junit) as beside:
            beside.write_text(found.to_junit() + "\n", encoding="utf-8")
    if output.history is not None:
        nights = _nights(output.history, found)
        if len(nights) > 1:
            from jgram.check import history as past

            table, drawing = past(nights)
            view.insert(-1, table)
    written = [junit, kept.save_baseline]
    emit(Answer(found, about, view=view, drawing=drawing, written=written), output)
    return 0 if found.passed else FAILED


def _read_rules(path: Path, file: Path | None) -> dict[str, Any]:
    """What the file says: groups of options, and what only this command knows."""
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
    hints = {
        name: {one.name: get_type_hints(group)[one.name] for one in fields(group)}
        for name, group in _GROUPS.items()
    }
    known = {**_OWN, **{key: hint for group in hints.values() for key, hint in group.items()}}
    for key in said:
        if key not in known:
            from jgram.data.columns import did_you_mean

            hint = did_you_mean(key, known, f"there are {', '.join(sorted(known))}")
            raise ValueError(f"{path}: expected an option, got {key!r}: {hint}")
    for key, what in {"file": "a file", "reports": "columns", "observation": "columns"}.items():
        if key not in said:
            raise ValueError(f"{path}: expected {what}: {key}{'s' * (key == 'observation')} = ...")
    said = {key: _typed(known[key], value, f"{path}: {key}") for key, value in said.items()}
    found: dict[str, Any] = {
        name: group(**{key: said[key] for key in hints[name] if key in said})
        for name, group in _GROUPS.items()
    }
    return {**found, "rules": [], "gold": None, "strict": False, "reports": said["reports"]} | {
        key: said[key] for key in _OWN if key in said
    }


def _typed(hint: Any, value: Any, where: str) -> Any:
    """A value of the file as its option has it."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    kind = kinds[0] if kinds and get_origin(hint) not in (list, Literal) else hint
    if get_origin(kind) is list:
        if not isinstance(value, list):
            raise ValueError(f"{where}: expected a list, got {value!r}")
        return [_typed(get_args(kind)[0], each, where) for each in value]
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ValueError(f"{where}: expected {', '.join(get_args(kind))}, got {value!r}")
        return value
    if kind is Path:
        kind = str
    allowed = (int, float) if kind is float else kind
    if not isinstance(value, allowed) or (kind in (int, float) and isinstance(value, bool)):
        words = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
        raise ValueError(f"{where}: expected {words[kind]}, got {value!r}")
    return Path(value) if hint is Path or Path in kinds else value


def _judge(given: dict[str, Any], kept: Kept, bar: Any) -> Any:
    """The ranking, the drift, gold by report, and where the records came from."""
    from jgram.cli.read import ranked, read_for_judging, read_raw, read_records

    source, observed, inference = (given[name] for name in ("source", "observed", "inference"))
    names, engine = given["reports"], given["engine"]
    read = read_for_judging(source, observed, names, inference, engine, bar)
    ranking = ranked(read, inference.seed)
    drift = None
    if kept.against or kept.save_baseline:
        plain = replace(observed, bins=None, observation_bins=None)
        others = [name for name in (inference.weight, inference.group) if name]
        night = read_records(source, plain, names, engine, bar, others=others)
        drift = _drift(given, night, kept.against, kept.save_baseline)
    gold = None
    if given["gold"] is not None:
        columns = read_raw(source, [*names, given["gold"]])
        truth = columns[given["gold"]]
        gold = {name: _right(columns[name], truth) for name in names}
    return ranking, drift, gold, read.source


def _drift(
    given: dict[str, Any], night: Any, against: Path | None, keep: Path | None
) -> "Drift | None":
    """What changed since the baseline; and this night kept as one."""
    from jgram.cli.read import kinds_of
    from jgram.drift import Baseline, fit_baseline, measure_drift
    from jgram.results import load

    observed, inference = given["observed"], given["inference"]
    reports = {name: night.columns[name] for name in given["reports"]}
    y = {name: night.columns[name] for name in observed.needed}
    weights = None if night.counted is None else night.counted.counts
    if inference.weight:
        own = night.columns[inference.weight].numbers
        weights = own if weights is None else own * weights
    options: dict[str, Any] = {"weights": weights, "groups": None}
    if inference.group:
        options["groups"] = night.columns[inference.group].codes
    drift = None
    if against is not None:
        before: Baseline = load(against)
        if not isinstance(before, Baseline):
            raise ValueError(f"{against}: expected a baseline of --save-baseline, got a result")
        drift = measure_drift(before, reports, y, confidence=inference.confidence, **options)
    if keep is not None:
        kept = fit_baseline(
            reports, y, bins=observed.bins, kinds=kinds_of(observed.kind), **options
        )
        with whole_file(keep) as beside:
            beside.write_text(kept.to_json() + "\n", encoding="utf-8")
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
