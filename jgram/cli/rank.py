"""``jgram rank``: reports of the same records by reliability."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from jgram.cli.options import Asked, Output, Scores
from jgram.cli.outputs import TABLES, unspelled
from jgram.cli.show import Answer, emit, progress, say_error, say_json, say_view
from jgram.display import Field, Line, Table, records

if TYPE_CHECKING:
    from jgram.cli.read import Given
    from jgram.data.table import Role
    from jgram.ranking import Ranking

__all__ = ["run"]


@dataclass(frozen=True, kw_only=True)
class Ranked(Asked):
    """Input

    Attributes:
        report: Column of reported labels; repeatable. Without, the columns of the file are listed.
        gold: Column of right labels, empty but for some records at random that somebody checked.
        weigh: What weighs alike: classes, however rare, or records, for the order of the shares of
            right labels.
    """

    report: list[str] | None = None
    gold: str | None = None
    weigh: Literal["classes", "records"] = "classes"


@dataclass(frozen=True, kw_only=True)
class Sliced(Scores):
    """Output

    Attributes:
        by: Column whose values cut the records into slices (numbers: quarters), for what is kept in
            each; repeatable.
        out: The .csv or .json file of --to-check.
    """

    by: list[str] | None = None
    out: Annotated[Path | None, TABLES] = None


@dataclass(frozen=True, kw_only=True)
class Checking:
    """Checking by hand

    Attributes:
        to_check: Write so many rows into --out, at random of those where the reports in question
            differ: who is right there settles their order.
        checked: The sheet of --to-check with its column 'right' filled in.
    """

    to_check: Annotated[int | None, Option(min=1)] = None
    checked: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Streams

    Attributes:
        watch: Read records as they come, into the file or folder, or from standard input (-), and
            stop once every order is told. --checkpoint keeps what was read.
        patience: Seconds without new records after which --watch stops.
    """

    watch: bool = False
    patience: Annotated[float | None, Option(min=0, show_default="never")] = None


def run(asked: Ranked, output: Sliced, checking: Checking, streams: Streams) -> int:
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
    if not asked.report:
        return _list_columns(asked, output)
    _refuse(asked, output, checking, streams)
    if streams.watch:
        from jgram.cli.watch import watch_reports

        return watch_reports(asked, asked.report, output, asked.gold, streams.patience)
    with progress(f"ranking {len(asked.report)} reports", quiet=output.quiet) as bar:
        from jgram.cli.read import ranked, read_for_judging

        by = output.by or ()
        asked, notes = _observed(asked, by)
        whole = "--to-check" if checking.to_check else "--checked" if checking.checked else None
        beside: Any = {"gold": asked.gold, "by": by, "whole": whole}
        given = read_for_judging(asked, asked.report or (), bar, **beside)
        given.source["notes"][:0] = notes
        if checking.checked is not None:
            given.options.update(_checked(checking.checked, given))
        found, count = ranked(given, asked.weigh), checking.to_check
        rows = () if count is None else records(_sheet(asked, given, found, count))
    view = found.view(given.source, counts_scale=output.counts_scale)
    return emit(Answer(found, given.source, found.told, view, rows=rows), output)


def _refuse(asked: Ranked, output: Sliced, checking: Checking, streams: Streams) -> None:
    """Options that do not go together."""
    if len(asked.report or ()) < 2:
        raise ValueError("expected two or more --report to rank; score takes one")
    if (checking.to_check is None) != (output.out is None):
        raise ValueError("expected --to-check, how many rows, with --out, the file for them")
    if asked.gold and checking.checked:
        raise ValueError("expected --gold, rows at random, or --checked, rows where reports differ")
    if streams.watch and (checking.checked or checking.to_check):
        raise ValueError("--watch: expected neither --to-check nor --checked: rank the records")


def _observed(asked: Ranked, by: Sequence[str]) -> tuple[Ranked, list[str]]:
    """Where two reports have nothing else, all columns that say something are observations."""
    from jgram.cli.read import first_columns
    from jgram.data.columns import listing
    from jgram.data.table import LEFT_OUT, OBSERVATION, column_roles
    from jgram.evidence import FEWEST_REPORTS

    reports = asked.report or ()
    alone = len(reports) < FEWEST_REPORTS and asked.gold is None and str(asked.file) != "-"
    if not alone or asked.columns:
        return asked, []
    others = (asked.weight, asked.group, asked.order, *by, *reports)
    roles = [one for one in column_roles(first_columns(asked), reports) if one.name not in others]
    names = [one.name for one in roles if one.role == OBSERVATION]
    if not names:
        return asked, []
    rest = [
        f"{one.name} ({one.holds if one.role == LEFT_OUT else one.role})"
        for one in roles
        if one.role != OBSERVATION
    ]
    passed = f", without {listing(rest, quote=False)}" if rest else ""
    said = f"observed through all other columns{passed}: --observation says which"
    return replace(asked, observation=names), [said]


def _list_columns(asked: Ranked, output: Output) -> int:
    """What the columns of a file may be, and a command to start with."""
    from jgram.cli.read import first_columns
    from jgram.data.json import to_json
    from jgram.data.table import column_roles

    roles = column_roles(first_columns(asked))
    fields = [
        Field("column", lambda one: one.name, keys=("name",), name=True),
        Field("may be", lambda one: one.role, keys=("role",), name=True),
        Field("holds", lambda one: one.holds, keys=("holds",), name=True),
        Field("missing", lambda one: one.missing, "{:.0%}".format, ("missing",)),
    ]
    table, line = Table("Columns", roles, fields), _first_command(asked, roles)
    if output.json:
        say_json(to_json({"columns": records(table), "command": line}))
    elif not output.quiet:
        start = f"start with: {line}" if line else "no two columns have class names in common"
        say_view([table, Line(start, "conclusion")])
    say_error("--report: expected two columns or more of reported labels, got none")
    return 2


def _first_command(asked: Ranked, roles: "Sequence[Role]") -> str | None:
    """A command that ranks what may be reports; ``None`` where nothing may be."""
    from jgram.data.table import GOLD, OBSERVATION, REPORT

    reports, gold, rest = (
        [one.name for one in roles if one.role == role] for role in (REPORT, GOLD, OBSERVATION)
    )
    if not reports:
        return None
    options = {"--report": reports, "--gold": gold[:1], "--observation": rest}
    words = [word for option, names in options.items() for name in names for word in (option, name)]
    return shlex.join(["jgram", "rank", str(asked.file), *words, "--html", "page.html"])


def _sheet(asked: Ranked, given: "Given", found: "Ranking", count: int) -> Table:
    """Rows where the reports in question differ, with room for what is right."""
    import numpy as np

    from jgram.binding import AS_GIVEN, Intake, encode
    from jgram.cli.issues import beside
    from jgram.data import read_cells
    from jgram.data.files import FIRST_ROW
    from jgram.evidence import rows_to_check

    names, options = found.in_question, given.options
    said = {name: options[name] for name in vars(AS_GIVEN) if name in options}
    encoded, kept = encode(given.reports, given.observations, Intake(**said), options.get("gold"))
    codes = np.stack([encoded.codes[name] for name in names])
    if codes.ndim > 2:
        raise ValueError("--to-check: expected labels, got numbers, which all differ")
    rows = given.rows[kept[rows_to_check(codes, count)]]
    cells = read_cells(asked.file, rows.tolist(), **asked.how)
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
    names = {str(x): x for name in between for x in given.reports[name].values.tolist()}
    for row, text in answers.items():
        label = text if text in names else unspelled(text)
        if row not in place or label not in names:
            raise ValueError(
                f"{path}: expected rows that are judged and labels that these reports use, got "
                f"{text!r} for row {row}"
            )
        right[place[row]] = names[label]
    return {"gold": right, "differing": between}
