"""``jgram rank``: reports of the same records by reliability."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jgram.cli.options import (
    CountsScale,
    Engine,
    Gold,
    Inference,
    Input,
    Observed,
    Output,
    SomeReports,
    Weigh,
    Weighing,
)
from jgram.cli.show import check_output, emit, progress, say_error, say_json, say_view
from jgram.display import Field, Line, Table, records

if TYPE_CHECKING:
    from jgram.data.roles import Role

__all__ = ["run"]


def run(
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    output: Output,
    report: SomeReports = None,
    gold: Gold = None,
    weigh: Weighing = Weigh.CLASSES,
    counts_scale: CountsScale = False,
) -> int:
    """Rank reports of the same records by reliability, and say which can be told apart.

    Evidence is what is observed, the other reports, and right labels of some records. Without
    --report the columns of the file are listed, with a command to start with; two reports without
    --observation are observed through all other columns that say something.

    Examples:

        jgram rank visits.csv

        jgram rank visits.csv --report doctor --report coder --observation crp

        jgram rank sheet.csv --report ann --report bob --report model --gold checked

        jgram rank employment.csv --report first --report final --observation taxes \\
          --difference --bins 4 --order month --block-length 12 --html ranking.html
    """
    if not report:
        return _list_columns(source, output)
    if len(report) < 2:
        raise ValueError("expected two or more --report to rank; score takes one")
    check_output(output, [source.file], {"--checkpoint": (engine.checkpoint, ())})
    with progress(f"ranking {len(report)} reports", quiet=output.quiet) as bar:
        from jgram.cli.read import ranked, read_for_judging
        from jgram.evidence import FEWEST_REPORTS

        notes: list[str] = []
        alone = len(report) < FEWEST_REPORTS and gold is None and str(source.file) != "-"
        if alone and not observed.columns:
            others = [inference.weight, inference.group, inference.order]
            observed, notes = _through_all(source, observed, report, others)
        given = read_for_judging(source, observed, report, inference, engine, bar, gold)
        given.source["notes"][:0] = notes
        found = ranked(given, inference.seed, weigh.value)
    view = found.view(given.source, counts_scale=counts_scale)
    return emit(found, given.source, output, told=found.separated, view=view)


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
