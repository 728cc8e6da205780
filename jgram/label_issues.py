"""Which records to look at first: likely mislabels, without training a model.

The influence ``h[n, :]`` of a record (jgram/influences.py) is its kernel similarity to the classes,
with what the classes share taken out. Per unit of its similarity ``s[n]`` to all records, which
makes dense and sparse regions comparable, ``f[n, :] = h[n, :] / s[n]``, it predicts the label, and
the best linear prediction needs one ``d x d`` solve:

    p[n, :] = f'[n, :] (F^T F)^-1 F^T Z

with ``f'[n, :]`` as it would be without record ``n``, which is exact by a rank-one update: no
record vouches for itself. The quality of a label is ``p`` at the label. Where a kernel takes
negative values (linear), ``s = 1``.

For perfect reports and perfectly separating observations ``p`` is the membership itself. Ranking
by ``h`` alone, own less best other, fails where classes are unequal (AUROC 0.76 against 0.998 on
planted errors, experiments/human_labels.py): ``h`` is in units of one over the class share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jgram.data import check_aligned, check_observations, encode_labels
from jgram.findings import structural_zero
from jgram.influences import Linearisation, linearise, relabelling_gains
from jgram.kernels import Kernel, delta, rbf, takes
from jgram.observed import observe

__all__ = ["ClassSummary", "LabelIssues", "label_issues"]


@dataclass(frozen=True)
class ClassSummary:
    """What the records reported in one class look like.

    Attributes:
        name: Of the class.
        count: Records reported so.
        issues: How many of them fit another class better.
        mean_quality: Of these records.
        confused_with: The class suggested most often for its issues; ``None`` without issues.
    """

    name: Any
    count: int
    issues: int
    mean_quality: float
    confused_with: Any | None


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """Every record's label judged by the observations; arrays ``[n]`` in the order given.

    Attributes:
        quality: Predicted membership in the own class, cut to [0, 1].
        margin: The same, uncut, less the largest in another class: below 0 that one fits better.
        suggested: Code of that other class: the best alternative, for an issue or not.
        gain: Exact change of the log score if this record alone were relabelled as suggested.
        order: Row numbers, the most suspicious first.
        labels: Codes of the given labels.
        classes: Names of the codes.
    """

    quality: np.ndarray
    margin: np.ndarray
    suggested: np.ndarray
    gain: np.ndarray
    order: np.ndarray
    labels: np.ndarray
    classes: tuple[Any, ...]

    @property
    def issues(self) -> np.ndarray:
        """Rows of the records that another class fits better, the most suspicious first."""
        return self.order[self.margin[self.order] < 0]

    def by_class(self) -> list[ClassSummary]:
        """One summary a class, the class with the largest share of issues first."""
        d = len(self.classes)
        wrong = self.margin < 0
        confusion = np.zeros((d, d), int)
        np.add.at(confusion, (self.labels[wrong], self.suggested[wrong]), 1)
        counts, issues = np.bincount(self.labels, minlength=d), confusion.sum(axis=1)
        quality = np.bincount(self.labels, self.quality, minlength=d) / counts
        return [
            ClassSummary(
                name=self.classes[k],
                count=int(counts[k]),
                issues=int(issues[k]),
                mean_quality=float(quality[k]),
                confused_with=self.classes[confusion[k].argmax()] if issues[k] else None,
            )
            for k in np.argsort(-issues / counts, kind="stable")
        ]

    def records(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The issues as rows for CSV or JSON, the most suspicious first, ``limit`` at most."""
        return [
            {
                "row": int(row),
                "label": self.classes[self.labels[row]],
                "suggested": self.classes[self.suggested[row]],
                "quality": float(self.quality[row]),
                "gain": float(self.gain[row]) if np.isfinite(self.gain[row]) else None,
            }
            for row in self.issues[:limit]
        ]

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Summary and issues as JSON-able data."""
        return {
            "num_records": len(self.labels),
            "num_issues": len(self.issues),
            "classes": [vars(summary) for summary in self.by_class()],
            "records": self.records(limit),
        }


def label_issues(
    x_hat: Any,
    y: Any,
    kernel: Kernel | None = None,
    *,
    classes: Sequence[Any] | None = None,
    num_classes: int | None = None,
) -> LabelIssues:
    """Rank records by how badly their label fits what was observed of them.

    One pass over the kernel and one ``d x d`` solve; formula at the top of this module. Narrow
    kernels do better than the median bandwidth where classes overlap finely.

    Args:
        x_hat: Labels ``[n]`` of any type.
        y: Observations ``[n, ...]``.
        kernel: A kernel, or any function of two observations; ``None`` takes ``delta`` for
            categories and ``rbf`` for numbers.
        classes: All possible labels, in order.
        num_classes: Number of classes of labels that are 0-based ints already.

    Returns:
        :class:`LabelIssues`. The order is more trustworthy than the number of issues: a margin
        below 0 says that another class fits better, under this kernel, and no more.

    Raises:
        ValueError: A class with fewer than two records, a Gram matrix without full rank, or
            labels and observations that do not fit.

    Example:
        >>> from jgram.kernels import rbf
        >>> y = np.array([0.0, 0.1, 0.2, 0.3, 5.0, 5.1, 5.2, 5.3])
        >>> found = label_issues(["a", "a", "a", "b", "b", "b", "b", "b"], y, rbf)
        >>> found.records()[0]["row"], found.records()[0]["suggested"]
        (3, 'a')

    Reference: section 4.3 of *Data Reliability Scoring* for the score; the blame of single records
    is not in the paper.
    """
    check_aligned({"x_hat": x_hat, "y": y})
    encoded = encode_labels(x_hat, classes=classes, num_classes=num_classes)
    labels, names = encoded.codes, encoded.classes
    checked = check_observations(y, kind="auto" if kernel is None else takes(kernel))
    observed = checked.values
    if kernel is None:
        kernel = delta if checked.kind == "categorical" else rbf
    counts = np.bincount(labels, minlength=len(names))
    if (counts == 1).any():
        alone = int(np.argmax(counts == 1))
        raise ValueError(
            f"expected two records or more of every class, got one of {names[alone]!r} (row "
            f"{int(np.argmax(labels == alone))}), which nothing can be compared with: leave it "
            "out, or merge the class with another"
        )
    with jax.enable_x64(True):
        x, points = jnp.asarray(labels), jnp.asarray(observed)
        bound = observe(kernel, points)
        found = linearise(x, bound, num_classes=len(names))
        gains = np.asarray(relabelling_gains(found, x), np.float64)
    if not np.isfinite(found.log_score):
        zero = structural_zero(labels, bound, names)
        reason = (
            f"{zero.message}: {zero.advice}"
            if zero
            else f"its rank is {int(found.elimination.rank)} of {len(names)}, so that some class "
            "looks like a mixture of others: merge it with one of them, or observe more"
        )
        raise ValueError(f"expected a Gram matrix of full rank; {reason}")
    predicted, unknown = _predict(found, labels)
    rows = np.arange(len(labels))
    own = predicted[rows, labels]
    predicted[rows, labels] = -np.inf
    suggested = predicted.argmax(axis=1).astype(np.int32)
    return LabelIssues(
        quality=np.clip(own, 0.0, 1.0),
        margin=np.where(unknown, 0.0, own - predicted[rows, suggested]),
        suggested=suggested,
        gain=gains[rows, suggested],
        order=np.argsort(own, kind="stable"),
        labels=labels,
        classes=names,
    )


def _predict(found: Linearisation, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``p`` ``[n, d]``, and the records of which nothing is known, ``[n]``; theirs are the shares.

    With ``phi_n = M h + rho``, removing record ``n`` turns ``M`` into ``M - phi_n e_k^T / N``,
    and the coordinates of ``phi_n`` in it follow from the least squares of a rank-one update.
    """
    h, inverse = np.asarray(found.influence, np.float64), np.asarray(found.inverse, np.float64)
    residual, n = np.asarray(found.residual, np.float64), len(labels)
    rows, z = np.arange(n), np.eye(h.shape[1])[labels]
    left = 1.0 - h[rows, labels] / n
    spread = np.diagonal(inverse)[labels] / n**2
    ratio = left**2 + residual * spread  # of the determinants after and before
    unknown = ratio < 1e-12  # a class stands on this record alone
    ratio[unknown] = 1.0
    without = h * (left / ratio)[:, None] - inverse[labels] * (residual / ratio / n)[:, None]

    similar = h @ np.linalg.inv(inverse)  # K Z / N
    itself = np.einsum("nk,nk->n", similar, h) + residual
    if (similar > -1e-4 * itself[:, None] / n).all():
        total = similar.sum(axis=1)
        others = total - itself / n
        alone = others < 1e-4 * itself / n  # unlike any other record
        unknown |= alone
        h, without = h / total[:, None], without / np.where(alone, 1.0, others)[:, None]
    predicted = without @ np.linalg.solve(h.T @ h, h.T @ z)
    predicted[unknown] = z.mean(axis=0)
    return predicted, unknown
