"""Plots of the page as Vega-Lite specifications, written with Altair: values in, nothing computed.

Names stand above their marks where all of the width is for the numbers, on a telephone too. Colours
are variables of the page's style sheet, which has them for light, dark and paper.
"""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import altair as alt

    from jgram.annotators import AnnotatorRanking
    from jgram.issues import LabelIssues
    from jgram.report import RankedReport, Ranking

__all__ = [
    "Plot",
    "annotators_plot",
    "between",
    "interval_words",
    "issues_plot",
    "ranking_plot",
    "reading_words",
    "words",
]

MOST_MARKS = 40
INK, SOFT, LINE, PAPER, GOOD, BAD = (
    f"var(--{name})" for name in ("ink", "soft", "line", "paper", "good", "bad")
)


class Plot(NamedTuple):
    """A plot of the page: its specification, its title and key, and what it shows in words."""

    name: str
    title: str
    key: str
    spec: dict[str, Any]
    words: str


def between(first: int, last: int) -> str:
    """Two ranks, or one where they are the same."""
    return f"{first}" if first == last else f"{first} to {last}"


def words(name: str) -> str:
    """The name of a reading as one says it."""
    return name.replace("_", " ")


def interval_words(bounds: tuple[float, float] | None) -> str:
    """An interval of shares; the best report is what the others are measured by, and has none."""
    if bounds is None:
        return "none"
    low, high = bounds
    if not isfinite(low) or not isfinite(high):
        return "unbounded"
    return "the measure" if low == high == 1.0 else f"{low:.0%} to {high:.0%}"


def reading_words(reading: Any) -> str:
    """A reading with its interval."""
    if reading is None:
        return "none"
    return f"{reading.value:.2f} [{reading.low:.2f}, {reading.high:.2f}]"


def ranking_plot(found: "Ranking") -> Plot | None:
    """What each report keeps, its name above its interval: all of the width is for the numbers."""
    import altair as alt

    known = [one.keeps for one in found.reports if one.keeps is not None]
    if not known:
        return None
    shown = _ends(found.reports)
    rows = [
        {
            "place": place,
            "report": one.name,
            "keeps": one.keeps,
            **_bounds(one.keeps_interval),
            "rank": between(one.first_rank, one.last_rank),
            "kind": "not told from noise" if one.inside_noise else "report",
            **_names(f"{_dashed(one.first_rank, one.last_rank)} · ", one.name),
            "said": _kept(one),
        }
        for place, one in enumerate(shown)
    ]
    lows = [row["low"] for row in rows if row["low"] is not None]
    highs = [row["high"] for row in rows if row["high"] is not None]
    domain = [
        min(0.0, *known, max(min(lows, default=0.0), -0.5)),
        max(1.0, *known, min(max(highs, default=1.0), 1.5)),
    ]
    base = alt.Chart(alt.InlineData(rows)).encode(
        y=alt.Y("place:O", axis=None, scale=alt.Scale(paddingInner=0, paddingOuter=0)),
        tooltip=[alt.Tooltip("report:N"), alt.Tooltip("said:N", title="keeps"),
                 alt.Tooltip("rank:N")],
    )  # fmt: skip
    x = alt.X(
        "keeps:Q",
        axis=alt.Axis(format="%", tickCount=5, title=None, domain=False, ticks=False),
        scale=alt.Scale(domain=domain, nice=False, clamp=True),
    )
    low, high = x.copy(), alt.X2("high:Q")
    low["shorthand"] = "low:Q"
    at_ends = alt.Chart(alt.InlineData([{"x": 0}, {"x": 1}])).mark_rule(color=LINE, strokeWidth=1.5)
    interval = base.mark_rule(color=GOOD, strokeWidth=4, strokeCap="round", yOffset=9, opacity=0.4)
    point = base.mark_point(size=110, filled=False, strokeWidth=2.5, yOffset=9, opacity=1)
    fill = alt.condition("datum.kind == 'report'", alt.value(GOOD), alt.value(PAPER))
    chart = alt.layer(
        at_ends.encode(x=alt.X("x:Q", scale=alt.Scale(domain=domain))),
        interval.encode(x=low, x2=high),
        point.encode(x=x, stroke=alt.value(GOOD), fill=fill),
        *_labels(base),
    )
    return Plot(
        "keeps",
        "Share of the best report’s information that each report keeps",
        _omitted(len(rows), len(found.reports), "reports")
        + f"Each with its {found.confidence:.0%} interval, and before its name the ranks that the "
        "data leave it." + (" Hollow: cannot be told from noise." if found.inside_noise else ""),
        _finished(chart, 50 * len(rows)),
        f"Dots with {found.confidence:.0%} intervals, the best report on top. "
        + "; ".join(f"{one.name}: {_kept(one)}" for one in shown[:12])
        + ".",
    )


def annotators_plot(found: "AnnotatorRanking") -> Plot:
    """The reading ranked by, with intervals, beside the mean annotator."""
    import altair as alt

    shown = _ends(found.annotators)
    readings = [getattr(one, found.by) for one in found.annotators]
    values = [reading.value for reading in readings if reading]
    left_out = len(found.annotators) - len(shown)
    rows: list[dict[str, Any]] = [
        {
            "annotator": str(one.name),
            "answers": one.answers,
            "standing": {"unclear": "not clear"}.get(one.standing, one.standing),
            "said": reading_words(getattr(one, found.by)),
            **_parts(getattr(one, found.by)),
        }
        for one in shown
    ]
    if left_out:
        rows.insert(MOST_MARKS // 2, {"annotator": f"… {left_out:,} more"})
    standings = ["better", "not clear", "worse"]
    axis = alt.Axis(title=None, domain=False, ticks=False, grid=False, labelLimit=120,
                    labelColor=INK, labelFontSize=13, labelPadding=8)  # fmt: skip
    base = alt.Chart(alt.InlineData(rows)).encode(
        y=alt.Y("annotator:N", axis=axis, scale=alt.Scale(domain=[r["annotator"] for r in rows])),
        color=alt.Color(
            "standing:N",
            scale=alt.Scale(domain=standings, range=[GOOD, SOFT, BAD]),
            legend=alt.Legend(orient="top", title=None, symbolSize=90, offset=24),
        ),
        tooltip=[
            alt.Tooltip("annotator:N"),
            alt.Tooltip("said:N", title=words(found.by)),
            alt.Tooltip("answers:Q", format=","),
            alt.Tooltip("standing:N"),
        ],
    )
    shape = alt.Shape(
        "standing:N",
        scale=alt.Scale(domain=standings, range=["triangle-up", "circle", "triangle-down"]),
    )
    scale = alt.Scale(zero=False, nice=True)
    axis = alt.Axis(title=None, domain=False, ticks=False, tickCount=5)
    mean = alt.Chart(alt.InlineData([{"value": sum(values) / len(values)}])).encode(x="value:Q")
    chart = alt.layer(
        mean.mark_rule(color=SOFT, strokeDash=[2, 3]),
        mean.mark_text(text="mean annotator", color=SOFT, fontSize=13, y=-9),
        base.mark_rule(strokeWidth=3, opacity=0.45, strokeCap="round").encode(
            x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"
        ),
        base.mark_point(size=70, filled=True, opacity=1).encode(x="value:Q", shape=shape),
    )
    named = [row for row in rows if "said" in row]
    return Plot(
        "readings",
        f"{words(found.by).capitalize()}: {found.question}",
        _omitted(len(shown), len(found.annotators), "annotators")
        + "Each with its interval; better and worse: all of it on one side of the mean annotator.",
        _finished(chart, 24 * len(rows)),
        "Marks with intervals, the best annotator on top. "
        + "; ".join(f"{row['annotator']}: {row['said']}, {row['standing']}" for row in named[:12])
        + ".",
    )


def issues_plot(found: "LabelIssues") -> Plot | None:
    """The share of every class that looks wrong."""
    import altair as alt

    classes = [one for one in found.by_class() if one.issues][:MOST_MARKS]
    if not classes:
        return None
    rows = [
        {
            "place": place,
            "class": str(one.name),
            "share": one.issues / one.count,
            "said": f"{one.issues:,} of {one.count:,} · {one.issues / one.count:.1%}",
            "like": str(one.confused_with),
            **_names("", f"{one.name} → {one.confused_with}"),
        }
        for place, one in enumerate(classes)
    ]
    base = alt.Chart(alt.InlineData(rows)).encode(
        y=alt.Y("place:O", axis=None, scale=alt.Scale(paddingInner=0, paddingOuter=0)),
        tooltip=[alt.Tooltip("class:N"), alt.Tooltip("said:N", title="suspicious"),
                 alt.Tooltip("like:N", title="mostly looks like")],
    )  # fmt: skip
    axis = alt.Axis(format="%", tickCount=5, title=None, domain=False, ticks=False)
    bar = base.mark_bar(color=GOOD, height=8, yOffset=9, cornerRadius=2)
    chart = alt.layer(
        bar.encode(x=alt.X("share:Q", axis=axis, scale=alt.Scale(zero=True))),
        *_labels(base),
    )
    total = sum(one.issues > 0 for one in found.by_class())
    return Plot(
        "by-class",
        "Share of the records of each class that look wrong → what they mostly look like",
        f"The first {len(rows)} of {total:,} classes." if total > len(rows) else "",
        _finished(chart, 44 * len(rows)),
        "Bars, the largest share on top. "
        + "; ".join(f"{row['name']}: {row['said']}" for row in rows[:12])
        + ".",
    )


def _finished(chart: Any, height: int) -> dict[str, Any]:
    """The specification, as wide as the page, in its letters and colours."""
    font = "system-ui, sans-serif"
    sized = {"labelFontSize": 13, "labelFont": font}
    return (
        chart.properties(
            width="container", height=height, background="transparent", autosize="fit-x"
        )
        .configure(font=font, padding={"left": 2, "right": 2, "top": 4, "bottom": 4})
        .configure_view(stroke=None)
        .configure_axis(gridColor=LINE, labelColor=SOFT, labelPadding=6, **sized)
        .configure_legend(labelColor=INK, **sized)
        .to_dict()
    )


def _labels(base: "alt.Chart") -> "tuple[alt.Chart, alt.Chart]":
    """Above the mark of each row its name, shorter on a telephone, and what is said of it."""
    import altair as alt

    name = base.mark_text(align="left", dy=-9, fontSize=14, fontWeight="bold", color=INK,
                          limit=alt.expr("width - 165"))  # fmt: skip
    said = base.mark_text(align="right", dy=-9, fontSize=14, color=SOFT)
    narrow = alt.value(alt.expr("width < 500 ? datum.short : datum.name"))
    return name.encode(x=alt.value(0), text=narrow), said.encode(
        x=alt.value("width"), text="said:N"
    )


def _names(place: str, name: str) -> dict[str, str]:
    """A name whole and short: of a long one both ends, since names often differ at the end."""
    room = 20 - len(place)
    short = name if len(name) <= room else f"{name[: room // 2 - 1]}…{name[-room // 2 :]}"
    return {"name": place + name, "short": place + short}


def _ends(items: Sequence[Any]) -> list[Any]:
    """The first and the last of a list that is too long for a plot."""
    half = MOST_MARKS // 2
    return list(items) if len(items) <= MOST_MARKS else [*items[:half], *items[-half:]]


def _omitted(shown: int, total: int, what: str) -> str:
    half = MOST_MARKS // 2
    return "" if shown == total else f"The {half} best and the {half} worst of {total:,} {what}. "


def _dashed(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}–{last}"


def _kept(report: "RankedReport") -> str:
    if report.keeps is None:
        return "not estimable"
    if report.keeps_interval in (None, (1.0, 1.0)):
        return f"{report.keeps:.0%}"
    return f"{report.keeps:.0%} [{interval_words(report.keeps_interval)}]"


def _bounds(interval: tuple[float, float] | None) -> dict[str, float | None]:
    """The ends of an interval, near enough for a plot where they are far away."""
    low, high = interval or (None, None)
    return {"low": low and max(low, -9.0), "high": high and min(high, 9.0)}


def _parts(reading: Any) -> dict[str, float | None]:
    names = ("value", "low", "high")
    return {name: getattr(reading, name, None) for name in names}
