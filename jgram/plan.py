"""How many records it takes: from a pilot to the size of the study.

The statistic ``z`` of a pair (:func:`jgram.comparisons.sign_test`) grows with the root of the
number of records, means and spreads staying as they are. With ``n`` records in the pilot, a study
of ``N`` tells the order with a probability of ``power`` where

    N  =  n ((q_level + q_power) / z)^2,

``q_level`` for all pairs together, and an interval of keeps is as wide as wanted at
``N = n (width / wanted)^2``. Both are as uncertain as the pilot: the interval of ``N`` is that of
``z``, which is normal with deviation 1.

Right labels of ``m`` records at random tell the order alone where ``m = (q_level + q_power)^2 q /
gap^2``, with ``q`` the share of records on which the two differ and ``gap`` that of their shares of
right labels: each saves ``N / m`` records. What an observation or a report is worth is how many
times the records it takes without it; another one like it saves less.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf
from operator import attrgetter
from statistics import NormalDist, median
from typing import Any, ClassVar

from jgram.display import Field, Line, Shown, Table, View
from jgram.plots import Figure, intervals_figure
from jgram.ranking import Ranking

__all__ = ["PairPlan", "Plan", "Worth", "plan"]

FEWEST = 30  # records of a pilot
MOST = 1e9  # records beyond which nobody plans


@dataclass(frozen=True)
class PairPlan:
    """How many records one pair takes.

    Attributes:
        better: Name of the report that is paid more in the pilot.
        worse: Name of the other.
        records: Records in all that tell their order with the wanted probability; ``None`` where
            the pilot shows no difference to speak of.
        records_low: Lower end of its interval.
        records_high: Upper end; ``None`` where the pilot cannot bound it.
        records_for_width: Records in all at which the interval of keeps is as wide as wanted;
            ``None`` where no width is wanted, or keeps is not estimable.
        right_labels: Right labels of records at random that would tell the order alone: by the
            accuracies where the pilot has gold, else as few as that were if the better report were
            always right. ``None`` beside others than the best report, or where there is no order.
    """

    better: str
    worse: str
    records: int | None
    records_low: int | None
    records_high: int | None
    records_for_width: int | None
    right_labels: int | None


@dataclass(frozen=True)
class Worth:
    """What an observation or a report of the pilot is worth.

    Attributes:
        name: The column.
        times: Records that it takes without it over those with it, the median of the pairs that are
            left; ``None`` where there is no order without it.
        records: Records in all that tell every order without it; ``None`` where nothing does.
    """

    name: str
    times: float | None
    records: int | None


@dataclass(frozen=True)
class Plan(Shown):
    """What a study takes, by a pilot.

    Attributes:
        pairs: Every pair of reports.
        pilot_records: Records of the pilot.
        power: Wanted probability of telling an order.
        width: Wanted width of the intervals of keeps, or ``None``.
        confidence: One minus the size of the study's tests together, and level of the intervals.
        worth: What each observation and report that the pilot was ranked without is worth.
    """

    SCHEMA: ClassVar[str] = "jgram/plan/1"
    pairs: tuple[PairPlan, ...]
    pilot_records: int | float
    power: float
    width: float | None
    confidence: float
    worth: tuple[Worth, ...] = ()

    @property
    def total(self) -> int | None:
        """Records that tell every order, and make every interval as narrow as wanted."""
        found = [number for pair in self.pairs for number in (pair.records, pair.records_for_width)
                 if number is not None]  # fmt: skip
        return max(found, default=None)

    @property
    def conclusion(self) -> str:
        """How many records to collect."""
        unknown = [pair for pair in self.pairs if pair.records is None]
        also = f"; the pilot shows no order of {len(unknown)} pairs" if unknown else ""
        if self.total is None:
            return f"The pilot cannot say how many records it takes{also}."
        return f"Collect {self.total:,} records in all, {self.pilot_records:g} are there{also}."

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """Every pair and the conclusion."""
        fields = [
            Field("better", attrgetter("better"), keys=("better",), name=True),
            Field("worse", attrgetter("worse"), keys=("worse",), name=True),
            Field(f"records for the order\nwith {self.power:.0%}",
                  lambda pair: (pair.records, pair.records_low, pair.records_high), _between,
                  ("records", "records_low", "records_high")),
        ]  # fmt: skip
        if self.width is not None:
            head = f"records for keeps\n{self.width:.0%} wide"
            said = attrgetter("records_for_width")
            fields.append(Field(head, said, _number, ("records_for_width",)))
        fields.append(Field("or right labels\nof records", attrgetter("right_labels"), _number,
                            ("right_labels",)))  # fmt: skip
        without = [
            Field("without", attrgetter("name"), name=True),
            Field("times the records", attrgetter("times"),
                  lambda times: "no order" if times is None else f"{times:.1f}"),
            Field("records for every order", attrgetter("records"), _number),
        ]  # fmt: skip
        aside = "means and spreads are taken to stay as in the pilot"
        if any(pair.right_labels for pair in self.pairs):
            aside += "; each right label saves its share of the records"
        return [
            Line(f"a pilot of {self.pilot_records:g} records"),
            Line(),
            Table("Every pair of reports", self.pairs, fields),
            *([Table("What each column is worth", self.worth, without)] if self.worth else []),
            Line(aside, "aside"),
            Line(self.conclusion, "conclusion"),
        ]

    def plot(self) -> Figure:
        """Records for every pair: a matplotlib figure."""
        ends = [(pair.records_low, pair.records_high) for pair in self.pairs]
        return intervals_figure(
            [f"{pair.better} and {pair.worse}" for pair in self.pairs],
            [pair.records for pair in self.pairs],
            [None if high is None else (float(low or 0), float(high)) for low, high in ends],
            title=f"Records that tell the order with a probability of {self.power:.0%}",
            absent="no order in the pilot",
            ends=(float(self.pilot_records),),
        )


def plan(
    pilot: Ranking,
    *,
    power: float = 0.8,
    width: float | None = None,
    without: Mapping[str, Ranking] | None = None,
) -> Plan:
    """How many records like those of a pilot a study takes.

    Args:
        pilot: A ranking (:func:`jgram.rank_reports`) of 30 records or more.
        power: Wanted probability of telling the order of a pair, in (0, 1).
        width: Wanted width of the intervals of what the worse of a pair keeps, 0.1 for 10 points.
        without: By the name of an observation or a report, the ranking of the same records without
            it, for what it is worth.

    Raises:
        ValueError: A pilot of fewer than 30 records, a power or width that is none.

    Example:
        >>> import numpy as np
        >>> from jgram import rank_reports
        >>> rng = np.random.default_rng(0)
        >>> x = rng.integers(0, 2, 200)
        >>> said = {e: np.where(rng.random(200) < e, 1 - x, x) for e in (0.1, 0.2)}
        >>> pilot = rank_reports({f"r{e}": labels for e, labels in said.items()}, x + 0.0)
        >>> found = plan(pilot, width=0.1)
        >>> found.pairs[0].better, found.total > 200
        ('r0.1', True)
    """
    if pilot.num_records < FEWEST:
        raise ValueError(f"expected a pilot of {FEWEST} records or more, got {pilot.num_records}")
    if not 0 < power < 1:
        raise ValueError(f"expected power in (0, 1), a probability, got {power}")
    if width is not None and not width > 0:
        raise ValueError(f"expected a width above 0, got {width}")
    pairs = _planned(pilot, power, width)
    now = {frozenset((pair.better, pair.worse)): pair.records for pair in pairs}
    worth = []
    for name, other in (without or {}).items():
        left = _planned(other, power, width, len(pairs))
        both = [(pair.records, now[frozenset((pair.better, pair.worse))]) for pair in left]
        times = median([(one or inf) / two for one, two in both if two] or [inf])
        most = [one for one, _ in both if one is not None]
        every = max(most) if len(most) == len(both) else None
        worth.append(Worth(name, times if times < inf else None, every))
    return Plan(pairs, pilot.num_records, power, width, pilot.confidence, tuple(worth))


def _planned(
    pilot: Ranking, power: float, width: float | None, tests: int | None = None
) -> tuple[PairPlan, ...]:
    """Every pair of a pilot, told together with others by so many tests."""
    law, level = NormalDist(), pilot.confidence
    wanted = law.inv_cdf(1 - (1 - level) / 2 / (tests or len(pilot.pairs))) + law.inv_cdf(power)
    quantile, found = law.inv_cdf(0.5 + level / 2), []
    accuracy = {one.name: one.accuracy for one in pilot.reports}
    for pair in pilot.pairs:
        z = -law.inv_cdf(max(pair.p_value, 1e-300) / 2)
        at = [_size(pair.num_records, wanted, value) for value in (z, z + quantile, z - quantile)]
        narrow = None
        if width is not None and pair.retention_interval is not None:
            low, high = pair.retention_interval
            narrow = ceil(pair.num_records * ((high - low) / width) ** 2)
        known = at[0] is not None
        one, two = accuracy[pair.better], accuracy[pair.worse]
        gap = 0.0 if pair.retention is None else 1 - pair.retention
        gap *= 1 - 1 / max(pilot.reports[0].published.num_classes, 2)
        gap = one - two if one is not None and two is not None else gap
        total = sum(cell.count for cell in pair.taken)
        differ = sum(cell.count for cell in pair.taken if cell.better_class != cell.worse_class)
        rows = _size(differ / total, wanted, gap) if known and differ else None
        found.append(
            PairPlan(pair.better, pair.worse, at[0], at[1] if known else None, at[2], narrow, rows)
        )
    return tuple(found)


def _size(n: float | int, wanted: float, z: float) -> int | None:
    size = n * (wanted / z) ** 2 if z > 0 else inf
    return ceil(size) if size < MOST else None


def _number(value: int | None) -> str:
    return "not estimable" if value is None else f"{value:,}"


def _between(values: Any) -> str:
    records, low, high = values
    if records is None:
        return "no order in the pilot"
    return f"{records:,} [{low:,}, {'unbounded' if high is None else f'{high:,}'}]"
