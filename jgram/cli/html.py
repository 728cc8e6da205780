"""Results as one page that opens anywhere: nothing computed here, nothing fetched when it is read.

Jinja2 fills ``templates/``, every value escaped. The plots are Vega-Lite, written with Altair; the
page carries their library (0.9 MB; Plotly's has 4.8) and draws them as SVG: text stays text, on
paper too. A policy in the page lets the browser run its own script only, and load nothing.
"""

import hashlib
import shlex
import sys
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jgram.cli.charts import (
    annotators_plot,
    between,
    interval_words,
    issues_plot,
    ranking_plot,
    reading_words,
    words,
)
from jgram.cli.outputs import whole_file
from jgram.display import grouped_findings

if TYPE_CHECKING:
    from jinja2 import Environment

    from jgram.annotators import AnnotatorRanking
    from jgram.issues import LabelIssues
    from jgram.report import Ranking

__all__ = ["check_page", "write_annotators", "write_issues", "write_ranking"]

MOST_ROWS = 1000  # of a table in the page
MOST_COLUMNS = 24  # of the file's own
LONGEST = 200  # characters of a cell
NEEDED = ("jinja2", "altair", "vl_convert")


class Cell(NamedTuple):
    """What a cell shows, and what it is sorted by where that is something else."""

    text: str
    value: float | None = None
    share: float | None = None  # drawn as a bar in the cell


class Head(NamedTuple):
    """The head of a column: numbers stand right, and are sorted as numbers."""

    text: str
    number: bool = False


class Table(NamedTuple):
    """A table of the page; its first column names the rows."""

    name: str
    caption: str
    heads: list[Head]
    rows: list[list[Cell]]
    total: int  # rows there are, of which the page may show fewer
    filtered: bool = False  # whether a search field stands above it


def check_page(path: Path | None) -> None:
    """Refuse, before any work, a page, if there is one, for which a library is missing."""
    if path is not None and any(find_spec(name) is None for name in NEEDED):
        raise ValueError(
            "--html takes jinja2, altair and vl-convert-python: pip install 'jgram[cli]'"
        )


def write_ranking(path: Path, found: "Ranking", source: Mapping[str, Any], text: str) -> None:
    """The page of a ranking.

    Args:
        path: The file to write.
        found: What :func:`jgram.rank_reports` gave.
        source: Where the records came from: ``file``, ``observations``, ``seed``, ``notes``.
        text: The result as JSON, to download from the page.
    """
    errors = [x.keeps_features_error for x in found.reports if x.keeps_features_error is not None]
    facts = {
        "Records": f"{found.num_records:,}",
        "Classes": f"{found.num_classes}",
        "Reports": f"{len(found.reports)}",
        "Observations": _observed(source, found.observations),
        "Kernel of the published score": found.reports[0].published.kernel,
        "Records judged together": f"blocks of {found.block_length} in order of time"
        if found.block_length > 1
        else None,
        "Error of the random features": f"at most ± {100 * max(errors):.1f}%, in the intervals"
        if errors
        else None,
        "Confidence": f"{found.confidence:.0%}, of all intervals and ranks together",
        "Seed": f"{source['seed']}",
    }
    _write(
        path,
        "ranking.html",
        found=found,
        plot=ranking_plot(found),
        table=_reports_table(found),
        pairs=_pairs_table(found) if len(found.reports) > 2 else None,
        undecided=found.undecided,
        findings=grouped_findings([report.published for report in found.reports], found),
        **_frame("rank", found.conclusion, source, facts, text),
    )


def write_annotators(
    path: Path, found: "AnnotatorRanking", source: Mapping[str, Any], confidence: float, text: str
) -> None:
    """The page of a ranking of annotators.

    Args:
        path: The file to write.
        found: What :func:`jgram.rank_annotators` gave.
        source: Where the answers came from: ``file``.
        confidence: Confidence level of the intervals.
        text: The result as JSON, to download from the page.
    """
    facts = {
        "Annotators": f"{len(found.annotators):,}",
        "Answers that could be judged": f"{sum(one.answers for one in found.annotators):,}",
        "Classes": f"{len(found.classes)}",
        "Ranked by": f"{words(found.by)}: {found.question}",
        "All alike?": f"p = {found.p_value:.2g}",
        "Confidence": f"{confidence:.0%} of each interval",
    }
    _write(
        path,
        "annotators.html",
        found=found,
        plot=annotators_plot(found),
        table=_annotators_table(found),
        groups=_groups([(pair.first, pair.second) for pair in found.collusion.flagged]),
        pairs=_collusion_table(found),
        findings=[(finding, finding.message) for finding in found.findings],
        **_frame("annotators", found.conclusion, source, facts, text),
    )


def write_issues(
    path: Path,
    found: "LabelIssues",
    source: Mapping[str, Any],
    rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    to_check: bool,
    text: str,
) -> None:
    """The page of suspicious records.

    Args:
        path: The file to write.
        found: What :func:`jgram.label_issues` gave.
        source: Where the records came from: ``file``, ``observations``, ``notes``.
        rows: What is found of each record that is listed, and the cells of its row in the file.
        to_check: Whether the rows are a sample to check, not the most suspicious.
        text: The result as JSON, to download from the page.
    """
    facts = {
        "Records": f"{found.num_records:,}",
        "Checked by hand": f"{found.num_checked:,}",
        "Classes": f"{len(found.classes)}",
        "Report": found.name,
        "Observations": _observed(source, found.observations),
    }
    first, *_ = found.conclusion.split(". ")
    _write(
        path,
        "issues.html",
        found=found,
        to_check=to_check,
        plot=issues_plot(found),
        classes=_classes_table(found),
        records=_records_table(found, source["observations"], rows, to_check),
        findings=[(finding, finding.message) for finding in found.findings],
        **_frame("issues", first[0].upper() + first[1:] + ".", source, facts, text),
    )


def _frame(
    command: str, conclusion: str, source: Mapping[str, Any], facts: Mapping[str, Any], text: str
) -> dict[str, Any]:
    """What every page has."""
    from jgram import __version__

    file = source["file"]
    named = {"File": "standard input" if file == "-" else file} | {
        name: fact for name, fact in facts.items() if fact
    }
    return {
        "command": command,
        "file": Path(named["File"]).name,
        "conclusion": conclusion,
        "facts": named | {"jgram": __version__},
        "notes": source.get("notes", ()),
        "line": shlex.join(["jgram", *sys.argv[1:]]),
        "json": text + "\n",
    }


def _observed(source: Mapping[str, Any], how: str) -> str:
    return f"{', '.join(source['observations'])}: {how.removeprefix('observations: ')}"


def _write(path: Path, template: str, **values: Any) -> None:
    script = _script()
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _templates().get_template(template).render(**values, script=script, digest=digest)
    with whole_file(path) as beside:
        beside.write_text(page, encoding="utf-8", newline="\n")


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("jgram.cli"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _script() -> Any:
    """The page's own script, with the library of the plots, as one."""
    from altair import SCHEMA_VERSION
    from markupsafe import Markup
    from vl_convert import javascript_bundle

    own = (Path(__file__).parent / "templates" / "page.js").read_text(encoding="utf-8")
    version = ".".join(SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return Markup(javascript_bundle(own, vl_version=version).replace("</script", "<\\/script"))


# Tables ---------------------------------------------------------------------------------------


def _reports_table(found: "Ranking") -> Table:
    heads = [
        Head("report"),
        Head("keeps of the best", True),
        Head(f"{found.confidence:.0%} interval", True),
        Head("rank", True),
        Head("p of noise", True),
        Head("published log score", True),
    ]
    rows = [
        [
            Cell(one.name),
            Cell("not estimable") if one.keeps is None else _share(one.keeps),
            _interval(one.keeps_interval),
            Cell(between(one.first_rank, one.last_rank), one.first_rank),
            _p_value(one.noise_p_value),
            Cell("none")
            if one.published.log_score is None
            else _number(one.published.log_score, one.published.interval),
        ]
        for one in found.reports
    ]
    return Table("reports", "Every report, the best first", heads, rows, len(rows), len(rows) > 12)


def _pairs_table(found: "Ranking") -> Table:
    heads = [
        Head("better"),
        Head("worse"),
        Head("told apart"),
        Head("worse keeps of better", True),
        Head("interval of this pair", True),
        Head("p, all pairs together", True),
    ]
    rows = [
        [
            Cell(pair.better),
            Cell(pair.worse),
            Cell("yes" if pair.separated else "no"),
            Cell("not estimable") if pair.retention is None else _share(pair.retention),
            _interval(pair.retention_interval),
            _p_value(pair.adjusted_p_value),
        ]
        for pair in found.pairs[:MOST_ROWS]
    ]
    return Table("pairs", "Every pair of reports", heads, rows, len(found.pairs), len(rows) > 12)


def _annotators_table(found: "AnnotatorRanking") -> Table:
    heads = [
        Head("annotator"),
        Head("rank", True),
        Head("rank interval", True),
        Head("answers", True),
        Head("coverage", True),
        Head("log score", True),
        Head("determinant", True),
        Head("accuracy", True),
        Head("remarks"),
    ]
    rows = [
        [
            Cell(str(one.name)),
            Cell(f"{one.rank}", one.rank),
            Cell(between(one.first_rank, one.last_rank), one.first_rank),
            Cell(f"{one.answers:,}", one.answers),
            _share(one.coverage, digits=0 if one.coverage >= 0.1 else 1),
            _reading(one.log_score, found.by == "log_score"),
            _reading(one.determinant, found.by == "determinant"),
            _reading(one.accuracy, True),
            Cell(", ".join(one.remarks)),
        ]
        for one in found.annotators[:MOST_ROWS]
    ]
    total = len(found.annotators)
    return Table("annotators", "Every annotator, the best first", heads, rows, total, True)


def _collusion_table(found: "AnnotatorRanking") -> Table:
    heads = [
        Head("annotator"),
        Head("and"),
        Head("common items", True),
        Head("agree on", True),
        Head("expected", True),
    ]
    flagged = found.collusion.flagged
    rows = [
        [
            Cell(str(pair.first)),
            Cell(str(pair.second)),
            Cell(f"{pair.items:,}", pair.items),
            _share(pair.agreement),
            _share(pair.expected),
        ]
        for pair in flagged[:MOST_ROWS]
    ]
    caption = "Pairs who agree too much, the strongest evidence first"
    return Table("collusion", caption, heads, rows, len(flagged), len(rows) > 12)


def _classes_table(found: "LabelIssues") -> Table:
    heads = [
        Head("class"),
        Head("records", True),
        Head("suspicious", True),
        Head("share", True),
        Head("mostly looks like"),
    ]
    rows = [
        [
            Cell(str(one.name)),
            Cell(f"{one.count:,}", one.count),
            Cell(f"{one.issues:,}", one.issues),
            _share(one.issues / one.count, digits=1),
            Cell("" if one.confused_with is None else str(one.confused_with)),
        ]
        for one in found.by_class()
    ]
    caption = "Every class, the largest share of suspicious records first"
    return Table("classes", caption, heads, rows[:MOST_ROWS], len(rows), len(rows) > 12)


def _records_table(
    found: "LabelIssues",
    observations: Sequence[str],
    rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    to_check: bool,
) -> Table:
    own = list(rows[0][1]) if rows else []
    own = [*(name for name in observations if name in own),
           *(name for name in own if name not in observations and name != found.name)]  # fmt: skip
    numeric = {name: all(_is_number(cells[name]) for _, cells in rows) for name in own}
    heads = [
        Head("row", True),
        Head("label"),
        Head("looks like"),
        Head("wrong", True),
        *(Head(name, numeric[name]) for name in own[:MOST_COLUMNS]),
    ]
    lines = [
        [
            Cell(f"{record['row']}", record["row"]),
            Cell(str(record["label"])),
            Cell(str(record["suggested"])),
            _share(record["wrong"])._replace(share=record["wrong"]),
            *(_own(cells[name]) for name in own[:MOST_COLUMNS]),
        ]
        for record, cells in rows[:MOST_ROWS]
    ]
    caption = "Rows to check by hand" if to_check else "Suspicious records, the worst first"
    if len(own) > MOST_COLUMNS:
        caption += f"; {len(own) - MOST_COLUMNS} more columns of the file are in --out"
    return Table("records", caption, heads, lines, len(rows), True)


def _share(value: float, digits: int = 0) -> Cell:
    return Cell(f"{value:.{digits}%}", value)


def _number(value: float, interval: tuple[float, float] | None) -> Cell:
    half = f" ± {(interval[1] - interval[0]) / 2:.2f}" if interval else ""
    return Cell(f"{value:.2f}{half}", value)


def _p_value(value: float) -> Cell:
    return Cell("<.001" if value < 0.001 else f"{value:.3f}", value)


def _interval(bounds: tuple[float, float] | None) -> Cell:
    if bounds is None:
        return Cell("none")
    return Cell(interval_words(bounds), bounds[0] if isfinite(bounds[0]) else None)


def _reading(reading: Any, with_interval: bool) -> Cell:
    if reading is None:
        return Cell("none")
    text = reading_words(reading) if with_interval else f"{reading.value:.2f}"
    return Cell(text, reading.value)


def _own(value: Any) -> Cell:
    """A cell of the user's file: as it is there, but for digits nobody reads."""
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    shown = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return Cell(shown, float(text) if text and _is_number(value) else None)


def _is_number(value: Any) -> bool:
    """Whether a cell is a number or empty, be it as text."""
    try:
        return value is None or value == "" or abs(float(value)) < float("inf")
    except (TypeError, ValueError, OverflowError):
        return False


def _groups(pairs: Iterable[tuple[Any, Any]]) -> list[list[str]]:
    """Annotators linked by flagged pairs, the largest group first."""
    groups: list[set[Any]] = []
    for pair in pairs:
        linked = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in linked]
        groups.append(set(pair).union(*linked))
    return [sorted(map(str, group)) for group in sorted(groups, key=len, reverse=True)]
