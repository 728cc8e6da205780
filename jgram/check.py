"""Rules that reports have to pass, night after night: what a pipeline stops at.

A rule is a sentence about a ranking (:func:`jgram.rank_reports`), the drift since a baseline
(:func:`jgram.drift.measure_drift`), or records whose truth is known:

    ann keeps >= 80%            bob separated from ann       every report not noise
    ann earns >= 90%            ann accuracy >= .9           observations unchanged

A bound fails where the whole interval is beyond it, and is *open* where the interval holds it;
``strict`` fails what is open as well.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar
from xml.etree import ElementTree

from scipy.special import betaincinv

import jgram.display as display
from jgram.data.columns import did_you_mean
from jgram.display import Field, Line, Shown, Table, View
from jgram.drift import Drift
from jgram.plots import MARK, SOFT, WORSE, Figure, series_figure, shares_figure
from jgram.ranking import Ranking

__all__ = ["Check", "RuleResult", "check", "history"]

EVERY = "every report"
_RULE = re.compile(
    r"(?:(.+) )?(keeps|earns|accuracy|separated from|better than|not noise|no worse|unchanged)"
    r"(?: (>=|<=) (\d*\.?\d+)\s?(%)?)?(?: (.+))?"
)
_KNOWN = "'ann keeps >= 80%', 'ann separated from bob', 'ann not noise', 'ann accuracy >= .9'"
_PAIRED = ("separated from", "better than")
_NONE = (None, None)
_SHARES = display.in_brackets(".0%")
_OUTCOMES = {"passed": MARK, "open": SOFT, "failed": WORSE}


@dataclass(frozen=True)
class RuleResult:
    """What became of a rule.

    Attributes:
        rule: The rule, of one report.
        outcome: ``"passed"``, ``"failed"`` or ``"open"``.
        value: What it bounds, if it is a number.
        interval: Of the value.
        reason: What was found, in words.
    """

    rule: str
    outcome: str
    value: float | None
    interval: tuple[float, float] | None
    reason: str


@dataclass(frozen=True)
class Check(Shown):
    """Rules and what became of them, with all that they were judged by.

    Attributes:
        when: When it was judged.
        rules: Every rule, those for every report one by one.
        strict: Whether what is open fails.
        ranking: The ranking of this night.
        drift: What changed since the baseline, if there is one.
    """

    SCHEMA: ClassVar[str] = "jgram/check/1"
    when: str
    rules: tuple[RuleResult, ...]
    strict: bool
    ranking: Ranking
    drift: Drift | None

    @property
    def failures(self) -> tuple[RuleResult, ...]:
        """The rules that fail."""
        failing = ("failed", "open") if self.strict else ("failed",)
        return tuple(one for one in self.rules if one.outcome in failing)

    @property
    def passed(self) -> bool:
        """Whether no rule fails."""
        return not self.failures

    @property
    def conclusion(self) -> str:
        """Whether the night passes, and what fails."""
        failed = "; ".join(f"{one.rule} ({one.reason})" for one in self.failures)
        if failed:
            return f"Failed: {failed}."
        still = sum(one.outcome == "open" for one in self.rules)
        return f"Passed: {len(self.rules)} rules hold{f', {still} of them open' * bool(still)}."

    def table(self) -> Table:
        """One row a rule."""
        fields = [
            Field("rule", attrgetter("rule"), keys=("rule",), name=True),
            Field("outcome", attrgetter("outcome"), keys=("outcome",), name=True),
            Field("found", attrgetter("reason"), keys=("reason",), name=True),
            Field("", lambda one: (one.value, *(one.interval or _NONE)),
                  keys=("value", "low", "high")),
        ]  # fmt: skip
        return Table("Every rule", self.rules, fields)

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """The rules, then the ranking and the drift they were judged by, the conclusion."""
        ranking, drift = self.ranking, self.drift.view() if self.drift else ()
        how = f"checked {self.when}"
        return [
            *display.judged(ranking.num_records, ranking.num_classes, how, source),
            self.table(),
            ranking.table(),
            *(part for part in drift if isinstance(part, Table)),
            Line(self.conclusion, "conclusion"),
        ]

    def plot(self) -> Figure:
        """What the rules bound: a matplotlib figure."""
        shown = [one for one in self.rules if one.value is not None]
        colours = [_OUTCOMES[one.outcome] for one in shown]
        if not shown:
            return self.ranking.plot()
        return shares_figure(
            *zip(*((one.rule, one.value, one.interval) for one in shown), strict=True),
            title="What the rules bound, with intervals",
            marks=[(colour, colour) for colour in colours],
        )

    def to_junit(self) -> str:
        """The rules as JUnit's XML, which build servers show."""
        failing = self.failures
        about = {"name": "jgram check", "timestamp": self.when}
        numbers = {"tests": str(len(self.rules)), "failures": str(len(failing))}
        suite = ElementTree.Element("testsuite", about | numbers)
        for one in self.rules:
            name = display.visible(one.rule)
            case = ElementTree.SubElement(suite, "testcase", classname="jgram.check", name=name)
            text = display.visible(one.reason)
            if one in failing:
                ElementTree.SubElement(case, "failure", message=text).text = f"{name}: {text}"
            else:
                ElementTree.SubElement(case, "system-out").text = text
        ElementTree.indent(suite)
        return ElementTree.tostring(suite, encoding="unicode")


def check(
    rules: Sequence[str],
    ranking: Ranking,
    *,
    drift: Drift | None = None,
    gold: Mapping[str, tuple[int, int]] | None = None,
    strict: bool = False,
    when: str = "",
) -> Check:
    """Judge rules.

    Args:
        rules: Sentences, as at the top of this module. Beside a ``drift`` every report also has to
            be no worse than in the baseline.
        ranking: Of the reports.
        drift: Since a baseline.
        gold: Report to how many of its labels are right, of how many whose truth is known.
        strict: Whether a rule fails that is neither shown to hold nor to fail.
        when: When this was, for the history.

    Raises:
        ValueError: A sentence that is no rule, a report that is not there, a rule that takes a
            baseline or gold where there is none.

    Example:
        >>> import numpy as np
        >>> from jgram import rank_reports
        >>> truth = np.arange(200) % 2
        >>> noisy = np.where(np.arange(200) % 7 == 0, 1 - truth, truth)
        >>> ranking = rank_reports({"noisy": noisy, "truth": truth}, truth.astype(str))
        >>> check(["noisy keeps >= 90%", "truth better than noisy"], ranking).conclusion
        'Failed: noisy keeps >= 90% (71% [61%, 81%]).'
    """
    reports = {one.name: one for one in ranking.reports}
    wanted = [
        rule.replace(EVERY, name, 1)
        for rule in rules
        for name in (reports if rule.startswith(EVERY) else [""])
    ]
    wanted += [] if drift is None else [f"{one.name} no worse" for one in drift.reports]
    found = tuple(_judged(rule, ranking, drift, gold or {}) for rule in dict.fromkeys(wanted))
    return Check(when, found, strict, ranking, drift)


def history(checks: Sequence[Check]) -> tuple[Table, Figure]:
    """Nights in order of time, the latest first: a table, and a picture of what reports keep."""
    names = [*dict.fromkeys(one.name for each in checks for one in each.ranking.reports)]
    kept = [{one.name: one.keeps for one in each.ranking.reports} for each in checks]
    series = {name: [each.get(name) for each in kept] for name in names}
    fields = [
        Field("when", lambda i: checks[i].when, keys=("when",), name=True),
        Field("", lambda i: checks[i].passed, keys=("passed",)),
        *(
            Field(f"{name}\nkeeps", each.__getitem__, display.share, (name,))
            for name, each in series.items()
        ),
        Field("", lambda i: checks[i].conclusion, keys=("conclusion",)),
        Field("outcome", lambda i: checks[i].conclusion, name=True),
    ]
    rows = range(len(checks) - 1, -1, -1)
    title = "What every report keeps, night by night; crosses: a rule failed"
    failed = [not each.passed for each in checks]
    drawing = series_figure([each.when for each in checks], series, failed, title=title)
    return Table("Nights, the latest first", rows, fields, long=True), drawing


def _judged(
    rule: str, ranking: Ranking, drift: Drift | None, gold: Mapping[str, tuple[int, int]]
) -> RuleResult:
    """What becomes of a rule of one report."""
    match = _RULE.fullmatch(rule.strip())
    parts: Any = match.groups() if match else [None] * 6
    name, what, sign, bound, percent, other = parts
    bounded, paired = what in ("keeps", "earns", "accuracy"), what in _PAIRED
    if name is None or bounded != (sign is not None) or paired != (other is not None):
        raise ValueError(f"rules: expected a sentence such as {_KNOWN}, got {rule!r}")
    reports = {one.name: one for one in ranking.reports}
    if what in ("earns", "no worse", "unchanged"):
        if drift is None:
            raise ValueError(f"{rule!r}: expected a baseline (--against), got none")
        if what == "unchanged":
            names = ", ".join(one.name for one in drift.columns if one.changed)
            text = f"p {display.p_value(drift.observations_p_value)}{names and ', '}{names}"
            return _said(rule, not drift.observations_changed, text)
        reports = {one.name: one for one in drift.reports}
    for wanted in filter(None, (name, other)):
        if wanted not in reports:
            hint = did_you_mean(wanted, reports, f"there are {', '.join(reports)}")
            raise ValueError(f"{rule!r}: expected a report, got {wanted!r}: {hint}")
    one: Any = reports[name]
    if what == "not noise":
        return _said(rule, not one.inside_noise, f"p of noise {display.p_value(one.noise_p_value)}")
    if what == "no worse":
        earns = _SHARES((one.earns, *(one.interval or _NONE)))
        said = f"earns {earns} of before, p {display.p_value(one.p_value)}"
        return _said(rule, not one.worse, said)
    if other:
        if name == other:
            raise ValueError(f"{rule!r}: expected two reports, got one twice")
        pair = next(one for one in ranking.pairs if {one.better, one.worse} == {name, other})
        told = pair.told and (what == "separated from" or pair.better == name)
        return _said(rule, told, f"{pair.conclusion} p {display.p_value(pair.adjusted_p_value)}")
    if what == "accuracy" and name not in gold:
        raise ValueError(f"{rule!r}: expected gold, a column with the truth of some records")
    if what == "accuracy":
        value, interval = _accuracy(*gold[name], ranking.confidence)
    else:
        keeps = what == "keeps"
        value, interval = (one.keeps, one.keeps_interval) if keeps else (one.earns, one.interval)
    return _bounded(rule, value, interval, sign, float(bound) / (100 if percent else 1))


def _bounded(rule: str, value: float | None, interval: Any, sign: str, bound: float) -> RuleResult:
    if value is None:
        return RuleResult(rule, "failed", None, None, "not estimable")
    low, high = interval or (value, value)
    held, broken = low >= bound, high < bound
    if sign == "<=":
        held, broken = high <= bound, low > bound
    outcome = "failed" if broken else "passed" if held else "open"
    return RuleResult(rule, outcome, value, (low, high), _SHARES((value, low, high)))


def _said(rule: str, held: bool, reason: str) -> RuleResult:
    return RuleResult(rule, "passed" if held else "failed", None, None, reason)


def _accuracy(right: int, total: int, confidence: float) -> Any:
    """The share of right labels with Clopper and Pearson's exact interval."""
    if not total:
        return None, None
    tail = (1 - confidence) / 2
    low = betaincinv(right, total - right + 1, tail) if right else 0.0
    high = betaincinv(right + 1, total - right, 1 - tail) if right < total else 1.0
    return right / total, (float(low), float(high))
