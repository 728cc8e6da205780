"""What to pay for each label, out of a budget: the truth pays most where the others tell it.

A label ``z`` of record ``n`` by report ``l`` earns what the other records say of it through a
scorer ``h`` that the *other* reports make (jgram/contrasts.py), less what such labels earn on all
the records that ``l`` labels, and less what the others' labels ``v`` of this record would earn:

    earned[l, n]   =  (h_n - mean_m h_m) . z - r (h_n - mean h) . v_n          (about its mean)
    payment[l, n]  =  rate (earned[l, n] - least)       rate = budget / sum(earned - least)

``r`` is the slope of the first term on the second: records on which everybody is paid much count
no more. No report has a part in its own ``h`` and ``v``: what a label earns depends on no other
label of its report, but for ``r`` and the rate. Labels that know nothing earn 0 on average, and so
does any constant. Where the others confuse the classes by ``Q``, and share with the observations
nothing but the truth, naming ``c`` where ``x`` is true earns ``Q^-1[c, x] / share(x)`` in large
samples, but for what does not depend on ``c``: the truth earns most where each class is named
rightly in more than half of its records (``Q`` is then dominated by its diagonal, and so is every
column of its inverse). Others who merge two classes pay for merging them.

Without observations, ``y`` is what the other reports say of the record, on average.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

import jgram.display as display
from jgram.arrays import Float, float64
from jgram.binding import AS_GIVEN, Intake, bind
from jgram.comparisons import mean_covariance, normal_quantile
from jgram.contrasts import Products, products, scores
from jgram.data.columns import named_columns
from jgram.display import Field, Line, Shown, Table, View
from jgram.evidence import FEWEST_REPORTS
from jgram.kernels import Kernel, Linear
from jgram.observed import Features, Observed
from jgram.plots import intervals_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PaidReport", "Payments", "pay", "rewards"]


@dataclass(frozen=True)
class PaidReport:
    """What one report is paid.

    Attributes:
        name: The report.
        payment: In all.
        interval: Where the payment of as many labels like these lies, the rate held.
        num_records: Labels that it has.
        a_label: Mean payment of a label; labels that know nothing are paid :attr:`Payments.noise`.
    """

    name: str
    payment: float
    interval: tuple[float, float]
    num_records: int
    a_label: float


@dataclass(frozen=True, eq=False)
class Payments(Shown):
    """What every label is paid.

    Attributes:
        reports: :class:`PaidReport`, in the order given.
        payments: ``[k, n]``, of every label; 0 where there is none.
        rows: Of the input, ``[n]``.
        budget: What the payments add up to.
        noise: What labels that know nothing are paid on average, each.
        most: What no label of these records could have been paid more than.
        num_classes: ``d``.
        confidence: Level of each interval.
        observations: What the labels were paid by, in one line.
    """

    SCHEMA: ClassVar[str] = "jgram/payments/1"
    reports: tuple[PaidReport, ...]
    payments: np.ndarray = field(repr=False, metadata={"dtype": "float64", "ndim": 2})
    rows: np.ndarray = field(repr=False, metadata={"dtype": "int64"})
    budget: float
    noise: float
    most: float
    num_classes: int
    confidence: float
    observations: str

    @property
    def conclusion(self) -> str:
        """Who is paid most a label, and who no more than noise."""
        best = max(self.reports, key=attrgetter("a_label"))
        idle = [one.name for one in self.reports
                if one.interval[0] <= self.noise * one.num_records]  # fmt: skip
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
        ]  # fmt: skip
        return [
            *display.judged(len(self.rows), self.num_classes, self.observations, source),
            Table("Every report", self.reports, fields),
            Line(f"a label is paid from 0 to {self.most:,.4g}, one that knows nothing "
                 f"{self.noise:,.4g} on average; {self.budget:,.2f} in all", "aside"),
            Line(self.conclusion, "conclusion"),
        ]  # fmt: skip

    def plot(self) -> "Figure":
        """What every report is paid: a matplotlib figure."""
        return intervals_figure(
            [one.name for one in self.reports],
            [one.payment for one in self.reports],
            [one.interval for one in self.reports],
            title=f"Paid, of {self.budget:,.2f} in all, {self.confidence:.0%} intervals",
            absent="nothing",
            ends=(0.0,),
        )


def pay(
    reports: Any,
    y: Any = None,
    kernel: Kernel | str | None = None,
    intake: Intake = AS_GIVEN,
    *,
    budget: float,
    confidence: float = 0.95,
    **options: Any,
) -> Payments:
    """Pay every label of reports of the same records, so that the truth pays.

    Args:
        reports: Name to labels ``[n]``, some of which may be missing; two or more.
        y: Observations of these records, as in :func:`jgram.score`, which nobody has seen who
            reports; without them three or more reports are paid by one another.
        kernel: ``None`` takes what fits the observations.
        intake: How both are read (:class:`jgram.Intake`); weights and blocks of time are refused:
            a payment is for one label.
        budget: What all payments add up to, in any currency, above 0.
        confidence: Of each interval.
        **options: Fields of ``intake`` by name.

    Returns:
        :class:`Payments`.

    Raises:
        ValueError: A budget that is no positive number, soft reports, too few reports, nothing
            that tells one label from another, or what :func:`jgram.rank_reports` refuses.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.integers(0, 2, 400)
        >>> said = {e: np.where(rng.random(400) < e, 1 - x, x) for e in (0.1, 0.2)}
        >>> paid = pay({f"r{e}": labels for e, labels in said.items()}, x + 0.0, budget=100)
        >>> paid.reports[0].payment > paid.reports[1].payment, round(float(paid.payments.sum()))
        (True, 100)
    """
    if not (isinstance(budget, int | float) and isfinite(budget) and budget > 0):
        raise ValueError(f"budget: expected an amount above 0, got {budget}")
    quantile = normal_quantile(confidence)
    intake = replace(intake, **options)
    if intake.weights is not None or intake.block_length != 1:
        raise ValueError("expected no weights= and no block_length=: a payment is for one label")
    given = named_columns(reports, "reports")
    if len(given) < 2:
        raise ValueError(f"expected two reports or more to pay by one another, got {len(given)}")
    bound = bind(given, y, kernel, replace(intake, block_length=None))  # which folds no records
    labels = np.stack([*bound.reports.values()])
    if labels.ndim > 2:
        raise ValueError("expected labels to pay for, got soft reports")
    z = np.eye(len(bound.classes) + 1)[labels][..., :-1]
    there = labels >= 0
    each = rewards(z, None if y is None else bound.observed, bound.groups)
    least, best = float(each[there].min()), float(each[there].max())
    if not best - least > 1e-9:
        raise ValueError(
            "expected labels that the other reports and the observations tell apart, got none: "
            "there is nothing to pay by"
        )
    beyond = np.where(there, np.sum(each * z, axis=2) - least, 0.0)
    rate = float(budget) / float(beyond.sum())
    paid = [
        _paid(
            name, rate * row[rows], quantile, None if bound.groups is None else bound.groups[rows]
        )
        for name, row, rows in zip(bound.reports, beyond, there, strict=True)
    ]
    return Payments(
        tuple(paid), rate * beyond, bound.rows, float(budget), -rate * least, rate * (best - least),
        len(bound.classes), confidence, bound.description,
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
        ValueError: Fewer than two classes; fewer than three reports without observations.
    """
    k, _, d = z.shape
    if d < 2:
        raise ValueError("expected two classes or more, got one: list all in classes=")
    there = z.any(axis=2)
    rest = z.sum(axis=0) - z
    rest /= np.maximum(there.sum(axis=0) - there, 1)[..., None]
    with float64():
        if observed is not None:
            found = products(observed, rest, groups=groups)
            h = np.asarray(scores(found, np.arange(k)))
        elif k < FEWEST_REPORTS:
            raise ValueError(
                f"expected {FEWEST_REPORTS} reports or more to pay by one another, got {k}: "
                "observe something that depends on the truth, y="
            )
        else:
            h = np.concatenate([np.asarray(scores(_seen(part, groups), [0])) for part in rest])
    about = there[..., None] / np.maximum(there.sum(axis=1), 1)[:, None, None]
    h = h - np.sum(about * h, axis=1, keepdims=True)
    known = rest.any(axis=2)
    usual = np.sum(h * rest, axis=2)
    mean = np.sum(known * usual, axis=1) / np.maximum(known.sum(axis=1), 1)
    usual = np.where(known, usual - mean[:, None], 0.0)
    own = np.where(there, np.sum(h * z, axis=2), 0.0)
    slope = np.sum(own * usual) / max(float(np.sum(there * usual**2)), 1e-300)
    return h - slope * usual[..., None]


def _seen(rest: np.ndarray, groups: Any) -> Products:
    """The kernel pass of what the other reports say, observed through what they say."""
    return products(Features(jnp.asarray(rest), Linear()), rest[None], groups=groups)


def _paid(name: str, payments: np.ndarray, quantile: float, groups: Any) -> PaidReport:
    n, mean = len(payments), float(payments.mean())
    variance = mean_covariance((payments - mean)[None], np.ones(n), groups)[0, 0]
    half = quantile * n * float(variance) ** 0.5
    return PaidReport(name, n * mean, (n * mean - half, n * mean + half), n, mean)
