"""A result as one page that opens anywhere: nothing is computed here, or fetched when it is read.

What the result shows is filled into ``templates/page.html``, all of it escaped; a policy in the
page lets the browser run its own script only, and load nothing.
"""

import hashlib
import json
import shlex
import sys
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from jgram.cli.outputs import write_text
from jgram.display import Table, View, conclusion_of, table_html, visible
from jgram.plots import MARK, PAPER, SOFT, TEXT, WORSE, Figure, to_svg

__all__ = ["write_page"]

MOST_ROWS = 1000  # of a table in the page
_TEMPLATES = Path(__file__).parent / "templates"
_COLOURS = {MARK: "good", SOFT: "soft", TEXT: "ink", WORSE: "bad", PAPER: "paper"}


def write_page(
    path: Path, view: View, drawing: Figure | None, source: Mapping[str, Any], text: str
) -> None:
    """The page of a result: its view, its picture, and its JSON to download."""
    from jgram import __version__

    script, style = (_read(name) for name in ("page.js", "page.css"))
    told = conclusion_of(view)
    (conclusion, *more), command = told.split(". ", 1), sys.argv[1:2]
    file = "standard input" if source["file"] == "-" else source["file"]
    facts = {"File": file, "Seed": source.get("seed"), "jgram": __version__}
    page = Template(_read("page.html")).substitute(
        digest=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=style,
        script=script,
        version=__version__,
        conclusion=_text(conclusion.removesuffix(".") + "."),
        command=_text(" ".join(command)),
        file=_text(Path(file).name),
        main=_main(view, more, drawing),
        line=_text(shlex.join(["jgram", *sys.argv[1:]])),
        facts="".join(
            f"<div><dt>{name}</dt><dd>{_text(str(fact))}</dd></div>"
            for name, fact in facts.items()
            if fact is not None
        ),
        json=json.dumps(text + "\n").replace("<", "\\u003c"),
    )
    write_text(path, page.removesuffix("\n"))


def _main(view: View, more: list[str], drawing: Figure | None) -> str:
    """Lines as paragraphs, tables as sections with their pictures."""
    parts, tables = [f"<p>{_text(line)}</p>" for line in more], 0
    for part in view:
        if isinstance(part, Table):
            if len(part.rows):
                shown = part.picture and part.picture() if tables else drawing
                parts.append(_section(part, f"t{tables}", shown))
                tables += 1
        elif part.text and part.style != "conclusion":
            parts.append(f'<p class="{part.style}">{_text(part.text)}</p>')
    return "\n".join(parts)


def _section(table: Table, name: str, drawing: Figure | None) -> str:
    caption, rows, total = table.caption, min(len(table.rows), MOST_ROWS), len(table.rows)
    if rows < total:
        caption += f" (the first {rows:,} of {total:,}; all are in the JSON below)"
    tools = (
        f'<p class="tools" hidden><label for="{name}-f">Filter</label> <input id="{name}-f" '
        f'type="search" autocomplete="off"> <output>{rows:,} rows</output></p>'
    )
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{_text(caption)}</h2>'
        f"{'' if drawing is None else _picture(drawing, caption)}"
        f"{tools if rows > 12 else ''}"
        f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">'
        f"{table_html(table, MOST_ROWS, name)}</div></section>"
    )


def _picture(drawing: Figure, caption: str) -> str:
    """The drawing in the colours of the page, light, dark or on paper."""
    svg = to_svg(drawing)
    for colour, name in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    words = _text(f"Plot: {caption}; its numbers are in the table below")
    return f'<div class="plot" role="img" aria-label="{words}">{svg}</div>'


def _text(text: str) -> str:
    return escape(visible(text))


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")
