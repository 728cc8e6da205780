"""What to pay for each label, out of a budget: the truth pays most where the others tell it.

A label ``z`` of record ``n`` by report ``l`` earns what the other records say of it through a
scorer ``h`` that the *other* reports make (jgram/contrasts.py), less what such labels earn on all
the records that ``l`` labels, over what the others' labels ``v`` earn there on average, ``w``; and
less what those of this record earn beyond that:

    earned[l, n]   =  ((h_n - mean_m h_m) . z - r (h_n . v_n - mean_m h_m . v_m)) / w_l
    payment[l, n]  =  rate (earned[l, n] - least_l) / (1 - least_l)

so that 1 is what the others earn and 0 what labels earn that know nothing, or always say the same;
``r`` is the slope of the one on the other, over all reports: records that pay everybody much count
no more. ``least_l`` is the least that a label could earn there, ``rate`` what spends the budget.

What a label earns depends on no other label of its report, but for ``r``. Where the others confuse
the classes by ``Q``, and share with the observations nothing but the truth, naming ``c`` where
``x`` is true earns ``Q^-1[c, x] / share(x)`` in large samples, but for what does not depend on
``c``: the truth earns most where each class is named rightly in more than half of its records (the
diagonal then dominates ``Q``, and its inverse). Others who merge two classes pay for merging them.

Without observations, ``y`` is what the other reports say of the record, on average.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from operator import attrgetter
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

import jgram.display as display
from jgram.arrays import Float, float64
from jgram.binding import AS_GIVEN, Bound, Intake, bind
from jgram.comparisons import ESTIMABLE, mean_covariance, normal_quantile
from jgram.contrasts import products, scores
from jgram.data.columns import named_columns
from jgram.display import Field, Line, Shown, Table, View
from jgram.evidence import FEWEST_REPORTS
from jgram.kernels import Kernel, Linear
from jgram.observed import Features, Observed
from jgram.plots import Figure, intervals_figure

__all__ = ["PaidReport", "Payments", "pay", "rewards"]


@dataclass(frozen=True)
class PaidReport:
    """What one report is paid.

    Attributes:
        name: The report.
        payment: In all.
        interval: Where the payment of as many labels like these lies, the rate held.
        num_records: Labels that it has.
        a_label: Mean payment of a label.
        noise: What labels that know nothing would be paid, each, on average.
    """

    name: str
    payment: float
    interval: tuple[float, float]
    num_records: int
    a_label: float
    noise: float


@dataclass(frozen=True, eq=False)
class Payments(Shown):
    """What every label is paid.

    Attributes:
        reports: :class:`PaidReport`, in the order given.
        payments: ``[k, n]``, of every label; 0 where there is none.
        rows: Of the input, ``[n]``.
        budget: What the payments add up to.
        most: What no label of these records could have been paid more than.
        num_classes: ``d``; 0 where the reports are numbers.
        confidence: Level of each interval.
        observations: What the labels were paid by, in one line.
    """

    SCHEMA: ClassVar[str] = "jgram/payments/1"
    reports: tuple[PaidReport, ...]
    payments: np.ndarray = field(repr=False, metadata={"dtype": "float64", "ndim": 2})
    rows: np.ndarray = field(repr=False, metadata={"dtype": "int64"})
    budget: float
    most: float
    num_classes: int
    confidence: float
    observations: str

    @property
    def conclusion(self) -> str:
        """Who is paid most a label, and who no more than noise."""
        best = max(self.reports, key=attrgetter("a_label"))
        idle = [one.name for one in self.reports
                if one.interval[0] <= one.noise * one.num_records]  # fmt: skip
        verb = "is" if len(idle) == 1 else "are"
        said = f"; {', '.join(idle)} {verb} not told from labels that know nothing" if idle else ""
        return f"{best.name} is paid most a label{said}."

    def view(self, source: Mapping[str, Any] | None = None) -> View:
        """Every report, the bounds of a payment, the conclusion."""
        fields = [
            Field("report", attrgetter("name"), keys=("report",), name=True),
            Field("paid\n" + f"{self.confidence:.0%} interval",
                  lambda one: (one.payment, *one.interval), display.in_brackets(",.2f"),
                  ("payment", "payment_low", "payment_high")),
            Field("labels", attrgetter("num_records"), keys=("num_records",)),
            Field("paid a label", attrgetter("a_label"), "{:,.4g}".format, ("a_label",)),
            Field("one that\nknows nothing", attrgetter("noise"), "{:,.4g}".format, ("noise",)),
        ]  # fmt: skip
        return [
            *display.judged(len(self.rows), self.num_classes, self.observations, source),
            Table("Every report", self.reports, fields),
            Line(f"a label is paid from 0 to {self.most:,.4g}; {self.budget:,.2f} in all", "aside"),
            Line(self.conclusion, "conclusion"),
        ]  # fmt: skip

    def listing(self, numbers: Any = None) -> Table:
        """One row a record: what each report is paid for it.

        Args:
            numbers: What the records are called, by default their rows.
        """
        numbers = self.rows if numbers is None else numbers
        fields = [Field("row", lambda i: int(numbers[i]), keys=("row",))]
        for one, paid in zip(self.reports, self.payments.tolist(), strict=True):
            fields.append(Field(one.name, paid.__getitem__, "{:,.4g}".format, (one.name,)))
        return Table("What every label is paid", range(len(self.rows)), fields, long=True)

    def plot(self) -> Figure:
        """What every report is paid: a matplotlib figure."""
        title = f"Paid, of {self.budget:,.2f} in all, {self.confidence:.0%} intervals"
        names, paid, intervals = zip(
            *((one.name, one.payment, one.interval) for one in self.reports), strict=True
        )
        return intervals_figure(names, paid, intervals, title=title, absent="nothing", ends=(0.0,))


def pay(
    reports: Any,
    y: Any = None,
    kernel: Kernel | str | None = None,
    intake: Intake = AS_GIVEN,
    *,
    budget: float | int,
    confidence: float = 0.95,
    **options: Any,
) -> Payments:
    """Pay every label of reports of the same records, so that the truth pays.

    Args:
        reports: Name to labels or numbers ``[n]``, some of which may be missing; two or more.
        y: Observations of these records, as in :func:`jgram.score`, which nobody has seen who
            reports; without them three or more reports are paid by one another.
        kernel: ``None`` takes what fits the observations.
        intake: How both are read (:class:`jgram.Intake`); weights and blocks of time are refused:
            a payment is for one label.
        budget: What all payments add up to, in any currency, above 0.
        confidence: Of each interval.
        **options: Fields of ``intake`` by name.

    Raises:
        ValueError: Soft or too few reports, nothing that tells one label from another, or what
            :func:`jgram.rank_reports` refuses.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.integers(0, 2, 400)
        >>> said = {e: np.where(rng.random(400) < e, 1 - x, x) for e in (0.1, 0.2)}
        >>> paid = pay({f"r{e}": labels for e, labels in said.items()}, x + 0.0, budget=100)
        >>> paid.reports[0].payment > paid.reports[1].payment, round(float(paid.payments.sum()))
        (True, 100)
    """
    intake = replace(intake, **options)
    given = named_columns(reports, "reports")
    if not (isinstance(budget, int | float) and isfinite(budget) and budget > 0):
        raise ValueError(f"budget: expected an amount above 0, got {budget}")
    if intake.weights is not None or intake.block_length != 1:
        raise ValueError("expected no weights= and no block_length=: a payment is for one label")
    if len(given) < 2:
        raise ValueError(f"expected two reports or more to pay by one another, got {len(given)}")
    bound = bind(given, y, kernel, replace(intake, block_length=None))  # which folds no records
    labels = np.stack([*bound.reports.values()])
    if labels.ndim > 2 and not bound.numbers:
        raise ValueError("expected labels or numbers to pay for, got soft reports")
    z = labels if bound.numbers else np.eye(len(bound.classes) + 1)[labels][..., :-1]
    earned = rewards(z, None if y is None else bound.observed, bound.groups)
    return _scaled(bound, z, earned, float(budget), confidence)


def _scaled(
    bound: Bound, z: np.ndarray, each: np.ndarray, budget: float, confidence: float
) -> Payments:
    """What labels ``z`` are paid, by what labels of each class would earn ``[k, n, d]``."""
    quantile, there = normal_quantile(confidence), np.asarray(z.any(axis=2))
    high = z[there][:, -1]
    ends = np.array([[1 - x, x] for x in (high.min(), high.max())])  # of numbers
    could = each @ (ends if bound.numbers else np.eye(z.shape[2])).T
    least = np.min(could, axis=(1, 2), where=there[..., None], initial=np.inf)
    best = np.max(could, axis=(1, 2), where=there[..., None], initial=-np.inf)
    scale = 1 - least
    beyond = (np.sum(each * z, axis=2) - least[:, None]) / scale[:, None] * there
    rate = budget / float(beyond.sum())
    paid = []
    for name, own, rows, noise in zip(bound.reports, beyond, there, -least / scale, strict=True):
        payments = rate * own[rows]
        n, mean = len(payments), float(payments.mean())
        groups = None if bound.groups is None else bound.groups[rows]
        variance = mean_covariance((payments - mean)[None], np.ones(n), groups)[0, 0]
        low, high = (n * (mean + sign * quantile * float(variance) ** 0.5) for sign in (-1, 1))
        paid.append(PaidReport(name, n * mean, (low, high), n, mean, rate * float(noise)))
    most = rate * float(np.max((best - least) / scale))
    return Payments(
        tuple(paid), rate * beyond, bound.rows, budget, most,
        0 if bound.numbers else len(bound.classes), confidence, bound.description,
    )  # fmt: skip


def rewards(
    z: Float[np.ndarray, "k n d"], observed: Observed | None = None, groups: Any = None
) -> Float[np.ndarray, "k n d"]:
    """What a label of each class would earn; formulas at the top of this module.

    Args:
        z: Reports as matrices, rows of zeros where labels are missing.
        observed: Observations; without them each report is paid by the others.
        groups: Group of each record, left out as a whole.

    Raises:
        ValueError: Fewer than two classes; fewer than three reports without observations; others
            that are not told from noise.
    """
    k, _, d = z.shape
    if d < 2:
        raise ValueError("expected two classes or more, got one: list all in classes=")

    def mean(values: np.ndarray, where: np.ndarray) -> np.ndarray:
        where = where.reshape(where.shape + (1,) * (values.ndim - 2))
        return np.sum(where * values, axis=1, keepdims=True) / np.maximum(
            where.sum(axis=1, keepdims=True), 1
        )

    there = np.asarray(z.any(axis=2))
    rest = z.sum(axis=0) - z
    rest /= np.maximum(there.sum(axis=0) - there, 1)[..., None]
    with float64():
        if observed is not None:
            found = [products(observed, rest, groups=groups)]
        elif k < FEWEST_REPORTS:
            raise ValueError(
                f"expected {FEWEST_REPORTS} reports or more to pay by one another, got {k}: "
                "observe something that depends on the truth, y="
            )
        else:  # what the others say, observed through what they say
            found = [
                products(Features(jnp.asarray(part), Linear()), part[None], groups=groups)
                for part in rest
            ]
        h = np.concatenate([scores(one, np.arange(len(one.counts))) for one in found])
    h = h - mean(h, there)
    known = rest.any(axis=2)
    usual = np.sum(h * rest, axis=2)
    level = mean(usual, known)
    usual = np.where(known, usual - level, 0.0)
    spread = np.sqrt(mean(usual**2, known) / np.maximum(known.sum(axis=1, keepdims=True), 1))
    if np.any(level <= np.maximum(ESTIMABLE * spread, 1e-9)):
        raise ValueError(
            "expected other reports to pay each report by that are told from noise, by "
            f"{ESTIMABLE:g} standard errors or more: collect more records or reports"
        )
    own = np.where(there, np.sum(h * z, axis=2), 0.0)
    slope = np.sum(own * usual) / max(float(np.sum(there * usual**2)), 1e-300)
    return (h - slope * usual[..., None]) / level[..., None]
