"""``jgram rank``: reports of the same records by reliability."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from jgram.cli.options import (
    CountsScale,
    Engine,
    FilledIn,
    Gold,
    Inference,
    Input,
    Observed,
    Output,
    SomeReports,
    Weigh,
    Weighing,
)
from jgram.cli.outputs import TABLES, unspelled
from jgram.cli.show import check_output, emit, progress, say_error, say_json, say_view
from jgram.display import Field, Line, Table, records

if TYPE_CHECKING:
    from jgram.cli.read import Given
    from jgram.data.roles import Role
    from jgram.report import Ranking

__all__ = ["run"]


@dataclass(frozen=True, kw_only=True)
class Checking:
    """Checking by hand"""

    to_check: Annotated[
        int | None,
        Option(
            help="Write so many rows into --out, at random of those where the reports in question "
            "differ: who is right there settles their order.",
            min=1,
        ),
    ] = None
    checked: FilledIn = None
    out: Annotated[Path | None, Option(help="The .csv or .json file of --to-check.")] = None


def run(
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    output: Output,
    checking: Checking,
    report: SomeReports = None,
    gold: Gold = None,
    weigh: Weighing = Weigh.CLASSES,
    by: Annotated[
        list[str] | None,
        Option(
            help="Column whose values cut the records into slices (numbers: quarters), for what is "
            "kept in each; repeatable.",
            rich_help_panel="Output",
        ),
    ] = None,
    counts_scale: CountsScale = False,
    watch: Annotated[
        bool,
        Option(
            "--watch",
            help="Read records as they come, into the file or folder, or from standard input (-), "
            "and stop once every order is told. --checkpoint keeps what was read.",
            rich_help_panel="Streams",
        ),
    ] = False,
    patience: Annotated[
        float | None,
        Option(
            help="Seconds without new records after which --watch stops.",
            min=0,
            rich_help_panel="Streams",
            show_default="never",
        ),
    ] = None,
) -> int:
    """Rank reports of the same records by reliability, and say which can be told apart.

    Evidence is what is observed, the other reports, and right labels of some records. Without
    --report the columns of the file are listed, with a command to start with; two reports without
    --observation are observed through all other columns that say something.

    Examples:

        jgram rank visits.csv

        jgram rank visits.csv --report doctor --report coder --observation crp

        jgram rank sheet.csv --report ann --report bob --report model --gold checked

        jgram rank visits.csv --report doctor --report coder --observation crp \\
          --to-check 40 --out check.csv

        jgram rank visits.csv --report doctor --report coder --observation crp --checked check.csv

        jgram rank visits.csv --report doctor --report coder --observation crp --by clinic

        jgram rank employment.csv --report first --report final --observation taxes \\
          --difference --bins 4 --order month --block-length 12 --html ranking.html

        jgram rank incoming/ --report ann --report bob --observation crp --watch --checkpoint kept/
    """
    if not report:
        return _list_columns(source, output)
    if len(report) < 2:
        raise ValueError("expected two or more --report to rank; score takes one")
    to_check, checked, out = checking.to_check, checking.checked, checking.out
    outputs = {"--checkpoint": (engine.checkpoint, ()), "--out": (out, TABLES)}
    check_output(output, [source.file, checked], outputs)
    if (to_check is None) != (out is None):
        raise ValueError("expected --to-check, how many rows, with --out, the file for them")
    if gold and checked:
        raise ValueError("expected --gold, rows at random, or --checked, rows where reports differ")
    if watch:
        from jgram.cli.watch import watch_reports

        if checked or to_check:
            raise ValueError("--watch: expected neither --to-check nor --checked: rank the records")
        return watch_reports(report, source, observed, inference, engine, output, gold, patience)
    with progress(f"ranking {len(report)} reports", quiet=output.quiet) as bar:
        from jgram.cli.read import Beside, ranked, read_for_judging
        from jgram.evidence import FEWEST_REPORTS

        notes: list[str] = []
        alone = len(report) < FEWEST_REPORTS and gold is None and str(source.file) != "-"
        if alone and not observed.columns:
            others = [inference.weight, inference.group, inference.order, *(by or ())]
            observed, notes = _through_all(source, observed, report, others)
        whole = "--to-check" if to_check else "--checked" if checked else None
        beside = Beside(gold, by or (), whole)
        given = read_for_judging(source, observed, report, inference, engine, bar, beside)
        given.source["notes"][:0] = notes
        if checked is not None:
            given.options.update(_checked(checked, given))
        found = ranked(given, inference.seed, weigh.value)
        sheet = None if out is None else (out, _sheet(source, given, found, to_check or 1))
    view = found.view(given.source, counts_scale=counts_scale)
    return emit(found, given.source, output, told=found.told, view=view, out=sheet)


def _through_all(
    source: Input, observed: Observed, reports: Sequence[str], others: Sequence[str | None]
) -> tuple[Observed, list[str]]:
    """All columns that say something as observations, but for reports and what serves otherwise."""
    from jgram.cli.read import first_columns
    from jgram.data.columns import listing
    from jgram.data.roles import LEFT_OUT, OBSERVATION, column_roles

    found = column_roles(first_columns(source), reports)
    roles = [one for one in found if one.name not in (*others, *reports)]
    names = [one.name for one in roles if one.role == OBSERVATION]
    if not names:
        return observed, []
    rest = [
        f"{one.name} ({one.holds if one.role == LEFT_OUT else one.role})"
        for one in roles
        if one.role != OBSERVATION
    ]
    passed = f", without {listing(rest, quote=False)}" if rest else ""
    said = f"observed through all other columns{passed}: --observation says which"
    return replace(observed, observation=names), [said]


def _list_columns(source: Input, output: Output) -> int:
    """What the columns of a file may be, and a command to start with."""
    from jgram.cli.read import first_columns
    from jgram.data.json import to_json
    from jgram.data.roles import column_roles

    roles = column_roles(first_columns(source))
    fields = [
        Field("column", lambda one: one.name, keys=("name",), name=True),
        Field("may be", lambda one: one.role, keys=("role",), name=True),
        Field("holds", lambda one: one.holds, keys=("holds",), name=True),
        Field("missing", lambda one: one.missing, "{:.0%}".format, ("missing",)),
    ]
    table, line = Table("Columns", roles, fields), _first_command(source, roles)
    if output.as_json:
        say_json(to_json({"columns": records(table), "command": line}))
    elif not output.quiet:
        start = f"start with: {line}" if line else "no two columns have class names in common"
        say_view([table, Line(start, "conclusion")])
    say_error("--report: expected two columns or more of reported labels, got none")
    return 2


def _first_command(source: Input, roles: "Sequence[Role]") -> str | None:
    """A command that ranks what may be reports; ``None`` where nothing may be."""
    from jgram.data.roles import GOLD, OBSERVATION, REPORT

    reports, gold, rest = (
        [one.name for one in roles if one.role == role] for role in (REPORT, GOLD, OBSERVATION)
    )
    if not reports:
        return None
    options = {"--report": reports, "--gold": gold[:1], "--observation": rest}
    words = [word for option, names in options.items() for name in names for word in (option, name)]
    return shlex.join(["jgram", "rank", str(source.file), *words, "--html", "page.html"])


def _sheet(source: Input, given: "Given", found: "Ranking", count: int) -> Table:
    """Rows where the reports in question differ, with room for what is right."""
    import numpy as np

    from jgram.cli.issues import beside
    from jgram.data import read_cells
    from jgram.data.files import FIRST_ROW
    from jgram.evidence import rows_to_check

    names = found.in_question
    labels = [given.columns[name] for name in names]
    kept = np.unique(np.concatenate([one.values for one in labels]), return_inverse=True)[1]
    codes, start = np.full((len(names), len(given.rows)), -1), 0
    for own, one in zip(codes, labels, strict=True):
        own[one.present] = kept[start : (start := start + len(one.values))]
    rows = given.rows[rows_to_check(codes, count)]
    cells = read_cells(source.file, rows.tolist(), **source.how)
    cells = {
        name: part for name, part in cells.items() if name in names or name not in given.reports
    }
    first = [*names, *given.source["observations"]]
    fields = [
        Field("row", lambda i: int(rows[i]) + FIRST_ROW, str, ("row",)),
        Field("right", lambda _: "", str, ("right",)),
        *beside(cells, first, ""),
    ]
    return Table("Rows to check", range(len(rows)), fields)


def _checked(path: Path, given: "Given") -> dict[str, Any]:
    """Right labels of the rows of a sheet, and the reports that it asks about."""
    from jgram.cli.issues import filled_in
    from jgram.data.files import FIRST_ROW

    sheet, _, answers = filled_in(path)
    between: Sequence[str] = [name for name in sheet if name in given.reports]
    if len(between) < 2:
        raise ValueError(f"{path}: expected columns of two reports that differ, got {between}")
    place = {int(row) + FIRST_ROW: i for i, row in enumerate(given.rows)}
    right: list[Any] = [None] * len(given.rows)
    names = {str(x): x for name in between for x in given.columns[name].values.tolist()}
    for row, text in answers.items():
        label = text if text in names else unspelled(text)
        if row not in place or label not in names:
            raise ValueError(
                f"{path}: expected rows that are judged and labels that these reports use, got "
                f"{text!r} for row {row}"
            )
        right[place[row]] = names[label]
    return {"gold": right, "differing": between}
