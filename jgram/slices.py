"""Slices: what each report keeps of the best one in every city, of every sex, at every age.

A slice is a sum over some of the payoffs that ranked the reports: nothing is fitted again. With
``a_s`` and ``b_s`` the mean payoffs of the best report and another in slice ``s``, ``R`` the ratio
``b/a`` in the rest,

    differs:   (b_s - R a_s) / error,   the error the larger one of this slice's own and of all
               slices', since few records where two reports differ do not show their spread; Holm
    keeps:     r_s = b_s / a_s  ~  N(mu, tau^2) with its own error: drawn towards what all slices
               say, the further the less it says itself, ``tau`` by restricted likelihood

A slice in which the best report is not paid clearly more than noise has no number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import stdtr

from jgram.arrays import Float, Int
from jgram.comparisons import ESTIMABLE, normal_quantile, student_quantile
from jgram.display import Field, Line, Shown, Table, View, in_brackets, p_value, share
from jgram.gold import drawn_together
from jgram.plots import MARK, PAPER, SOFT, WORSE, Figure, shares_figure

__all__ = ["SliceKeeps", "Slices", "slices"]

FEWEST = 20  # records, or groups of them, of a slice that is judged


@dataclass(frozen=True)
class SliceKeeps:
    """What a report keeps of the best one in a slice.

    Attributes:
        by: The column.
        value: Its value, or the range of its values, in words.
        report: The report.
        num_records: Records of the slice that both label, or their total frequency.
        keeps: What it keeps, drawn towards what all slices say; ``None`` where the slice is too
            small to say.
        keeps_interval: Interval of it, for this slice alone.
        alone: What it keeps by this slice alone.
        p_value: Of "it keeps as much as in the rest", all slices and reports together.
        differs: Whether that is refused.
    """

    by: str
    value: str
    report: str
    num_records: float
    keeps: float | None = None
    keeps_interval: tuple[float, float] | None = None
    alone: float | None = None
    p_value: float | None = None
    differs: bool = False


@dataclass(frozen=True)
class Slices(Shown):
    """What each report keeps in every slice of some columns.

    Attributes:
        best: The report that is ranked first, which keeps all of itself everywhere.
        confidence: Of each interval, and of all that is said to differ together.
        each: :class:`SliceKeeps`, by column and report.
    """

    SCHEMA: ClassVar[str] = "jgram/slices/1"
    best: str
    confidence: float
    each: tuple[SliceKeeps, ...]

    @property
    def conclusion(self) -> str:
        """Which slices differ from the rest."""
        columns = " and ".join(dict.fromkeys(one.by for one in self.each))
        found = sorted((one for one in self.each if one.differs), key=attrgetter("p_value"))
        if not any(one.p_value is not None for one in self.each):
            return f"Every slice of {columns} is too small to say."
        if not found:
            return f"No slice of {columns} differs from the rest."
        first, *others = found
        also = f" (and {len(others)} more slice{'s' * (len(others) != 1)})" if others else ""
        return (
            f"{first.report} keeps {share(first.keeps)} of {self.best} where {first.by} is "
            f"{first.value}, unlike in the rest{also}."
        )

    def table(self) -> Table:
        """One row a slice and report."""
        kept = f"keeps of {self.best}\n{self.confidence:.0%} interval"
        fields = [
            Field("slice of", attrgetter("by"), keys=("by",), name=True),
            Field("where it is", attrgetter("value"), keys=("value",), name=True),
            Field("report", attrgetter("report"), keys=("report",), name=True),
            Field("records", attrgetter("num_records"), "{:,.0f}".format, ("num_records",)),
            Field(kept, lambda one: (one.keeps, *(one.keeps_interval or (None, None))),
                  in_brackets(".0%", "too few records"), ("keeps", "keeps_low", "keeps_high")),
            Field("", attrgetter("alone"), keys=("alone",)),
            Field("p of as in\nthe rest", attrgetter("p_value"),
                  lambda p: "" if p is None else p_value(p), ("p_value",)),
            Field("differs", attrgetter("differs"), lambda told: "yes" if told else "",
                  ("differs",)),
        ]  # fmt: skip
        return Table("Slices of the records", self.each, fields, long=True, picture=self.plot)

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """Every slice, and which of them differ."""
        return [self.table(), Line(self.conclusion, "conclusion")]

    def plot(self) -> Figure:
        """What each report keeps in every slice: a matplotlib figure."""
        colours = [WORSE if one.differs else MARK for one in self.each]
        told = "; orange: unlike the rest" if WORSE in colours else ""
        return shares_figure(
            [f"{one.report} · {one.by} {one.value}" for one in self.each],
            [one.keeps for one in self.each],
            [one.keeps_interval for one in self.each],
            title=f"Keeps, beside {self.best}, {self.confidence:.0%} interval of each slice{told}",
            absent="too few records",
            marks=[(SOFT, PAPER) if one.keeps is None else (colour, colour)
                   for one, colour in zip(self.each, colours, strict=True)],
        )  # fmt: skip


class _Read(NamedTuple):
    """Mean payoffs of two reports in slices."""

    means: Any  # [s, 2], of the best report first
    covariance: Any  # of them [s, 2, 2], by each slice itself
    size: Any  # records of each slice
    count: Any  # those, or groups of them, that are independent

    @property
    def known(self) -> np.ndarray:
        """Where the best report is paid clearly more than noise."""
        error = np.sqrt(self.variance(np.array([1.0, 0.0])))
        return (self.count >= FEWEST) & (self.means[:, 0] > ESTIMABLE * error)

    def variance(self, line: np.ndarray) -> np.ndarray:
        """Variances of ``line . means``: the larger one of a slice's own and of all slices'."""
        usual = np.einsum("s,sij->ij", self.size**2, self.covariance) / max(self.size.sum(), 1e-300)
        pooled = usual / np.maximum(self.size, 1e-300)[:, None, None]
        return np.maximum(_along(self.covariance, line), _along(pooled, line))


def slices(
    by: Mapping[str, tuple[Sequence[str], Int[np.ndarray, " n"]]],
    best: str,
    paid: Mapping[str, tuple[Float[np.ndarray, "2 n"], Float[np.ndarray, " n"]]],
    groups: Int[np.ndarray, " n"] | None = None,
    *,
    confidence: float = 0.95,
) -> Slices:
    """What reports keep of the best one in slices; formulas at the top of this module.

    Args:
        by: By column the slices in words, and which of them each record is in
            (:func:`jgram.data.numbers.cut`).
        best: The report that the others are measured by.
        paid: By report the payoffs of the best one and of its own, and frequencies.
        groups: Group of each record.
        confidence: Of each interval, and of all that is said to differ together.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> where, a = rng.integers(0, 2, 900), rng.normal(1, 1, 900)
        >>> b = np.where(rng.random(900) < np.where(where, 0.9, 0.3), a, 0)
        >>> by, paid = {"sex": (["f", "m"], where)}, {"b": (np.stack([a, b]), np.ones(900))}
        >>> found = slices(by, "a", paid)
        >>> [(one.value, round(one.keeps, 1), one.differs) for one in found.each]
        [('f', 0.3, True), ('m', 0.9, True)]
    """
    each: list[SliceKeeps] = []
    parts: list[tuple[int, _Read]] = []
    for name, (names, codes) in by.items():
        for report, (values, w) in paid.items():
            read = _read(values, w, codes, len(names), groups)
            parts.append((len(each), read))
            said = zip(names, read.size.tolist(), _keeps(read, confidence), strict=True)
            each += [SliceKeeps(name, value, report, size, *keeps) for value, size, keeps in said]
    for place, p in _stepped(parts, 1 - confidence).items():
        each[place] = replace(each[place], p_value=p, differs=p <= 1 - confidence)
    return Slices(best, confidence, tuple(each))


def _stepped(parts: Sequence[tuple[int, _Read]], level: float) -> dict[int, float]:
    """P-values by place, all together (Holm); what differs is no part of the rest of the others."""
    apart = [np.zeros(len(read.size), bool) for _, read in parts]
    left = {
        (i, s): p for i, (_, read) in enumerate(parts) for s, p in _tests(read, apart[i]).items()
    }
    found, last = {}, 0.0
    while left:
        i, s = min(left, key=lambda one: left[one])
        last = min(max(last, len(left) * left.pop((i, s))), 1.0)
        found[parts[i][0] + s] = last
        if last <= level:
            apart[i][s] = True
            again = _tests(parts[i][1], apart[i])
            left |= {(i, s): p for s, p in again.items() if (i, s) in left}
    return found


def _tests(read: _Read, apart: np.ndarray) -> dict[int, float]:
    """P-values of "as in the rest" of slices that are neither apart nor too small."""
    p_values = {}
    for s in np.flatnonzero(read.known & ~apart).tolist():
        share = read.size * ~apart
        share[s] = 0.0
        share /= max(share.sum(), 1e-300)
        (a, b), cov = share @ read.means, np.einsum("s,sij->ij", share**2, read.covariance)
        if a <= ESTIMABLE * np.sqrt(cov[0, 0]):
            continue
        line = np.array([-b / a, 1.0])
        square = read.variance(line)[s] + (read.means[s, 0] / a) ** 2 * _along(cov, line)
        z = abs(float(read.means[s] @ line)) / max(float(np.sqrt(square)), 1e-300)
        p_values[s] = float(2 * stdtr(read.count[s] - 1, -z))
    return p_values


def _keeps(read: _Read, confidence: float) -> list[tuple[Any, ...]]:
    """Keeps, its interval and keeps alone of every slice; nothing where it is too small."""
    known = read.known
    found: list[tuple[Any, ...]] = [()] * len(known)
    if known.any():
        a, b = np.where(known, read.means.T, 1.0)
        variances = read.variance(np.stack([-b / a, np.ones_like(a)], axis=1)) / a**2
        ratio, cov = (b / a)[known], np.diag(variances[known])
        means, errors = drawn_together(ratio, cov, [np.ones((len(ratio), 1))])
        ends = errors * student_quantile(normal_quantile(confidence), read.count[known] - 1)
        rows = np.stack([means, ends, ratio], axis=1).tolist()
        for s, (mean, end, alone) in zip(np.flatnonzero(known), rows, strict=True):
            found[s] = (mean, (mean - end, mean + end), alone)
    return found


def _read(values: np.ndarray, w: np.ndarray, codes: np.ndarray, count: int, groups: Any) -> _Read:
    """Mean payoffs in slices; copies of a record are records, the part of a group in one is one."""
    used = w > 0
    values, w, codes = values[:, used], w[used], codes[used]
    copies, amount = w, np.ones(len(w))
    if groups is not None:
        cells, place = np.unique(groups[used] * count + codes, return_inverse=True)
        values = np.stack([np.bincount(place, w * one) for one in values])
        copies, amount, codes = np.ones(len(cells)), np.bincount(place, w), cells % count

    def total(each: Any) -> np.ndarray:
        return np.bincount(codes, copies * each, count)

    size, number = total(amount), total(np.ones(len(codes)))
    means = np.stack([total(one) for one in values], axis=1) / np.maximum(size, 1e-300)[:, None]
    away = values - amount * means[codes].T
    square = np.stack([total(one * other) for one in away for other in away], axis=1)
    square *= (number / np.maximum(number - 1, 1) / np.maximum(size, 1e-300) ** 2)[:, None]
    return _Read(means, square.reshape(count, 2, 2), size, number)


def _along(covariance: Any, line: Any) -> Any:
    """Variances of ``line . means``."""
    return np.maximum(np.einsum("...i,...ij,...j", line, covariance, line), 0.0)
