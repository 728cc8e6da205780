"""Columns as numbers: what each becomes is found from some records, and holds for any others.

Each class here is one column that was looked at (``of``); called with a column of the same meaning
it gives that column's numbers ``[n, k]``. Nothing is kept of the records but what that takes.
"""

from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from jgram.data.columns import Column, first_of, seconds, show
from jgram.data.observations import numeric
from jgram.data.written import is_number

__all__ = ["LONGEST", "Block", "Category", "Number", "Text"]

LONGEST = 10_000  # characters of a text that are read

_MOST_LEVELS = 256  # categories of more are coded by random directions
_TEXT_NUMBERS = 64
_KEPT_CHARACTERS = 3_000_000  # of texts whose pieces are kept by name
_FITTED_CHARACTERS = 10_000_000  # of texts that singular vectors are taken of
_HASHED_PIECES = 1 << 18


_Scaling = tuple[float, float, float]
"""Mean, largest distance from it, deviation in units of that: tiny numbers keep their digits."""

_AS_IT_IS = 0.0, 1.0, 1.0
_ROW, _ROWS = ({"dtype": "float64", "ndim": ndim} for ndim in (1, 2))  # as JSON has them


def _scaling(points: np.ndarray) -> _Scaling:
    mean = float(points.mean())
    largest = float(np.abs(points - mean).max())
    if largest == 0:
        return mean, 1.0, 1.0
    return mean, largest, float(((points - mean) / largest).std())


def _scaled(points: np.ndarray, scaling: _Scaling) -> np.ndarray:
    mean, largest, deviation = scaling
    return (points - mean) / largest / deviation


@dataclass(frozen=True)
class Number:
    """A column of numbers, dates or durations, and an indicator of where it is missing.

    Attributes:
        label: The column.
        names: What the numbers are called.
        start: The moment that dates are counted from.
        levels: Distinct values ``[m]`` in order; the one in the middle where scores are linear.
        scores: The score of each of them, or ``None`` for the value less the one in the middle.
        missing: The score of a missing value.
        scaling: Of the scores.
        absent: Scaling of the indicator; ``None`` where no value was missing.
        written: Of texts that are dates or numbers, how they are written.
    """

    label: str
    names: tuple[str, ...]
    start: Any
    levels: np.ndarray = field(metadata=_ROW)
    scores: np.ndarray | None = field(metadata=_ROW)
    missing: float = 0.0
    scaling: _Scaling = _AS_IT_IS
    absent: _Scaling | None = None
    written: Any = None
    kind: Literal["number"] = "number"

    @classmethod
    def of(cls, given: Column, scale: str) -> "Number":
        """By rank ``Phi^-1((rank - 1/2) / n)``, ties at their mean rank; or linear."""
        dated, label = given.plain, given.name
        start = first_of(dated.values) if dated.kind in ("date", "duration") else None
        found = cls(label, (label,), start, np.zeros(0), None, written=given.writing[0])
        values, present = found._values(given)
        if scale == "rank":
            levels, counts = np.unique(values, return_counts=True)
            ranks = (np.cumsum(counts) - counts / 2) / counts.sum()
            found = replace(found, levels=levels, scores=np.array(list(map(_QUANTILE, ranks))))
        else:
            middle = np.sort(values)[len(values) // 2]
            found = replace(found, levels=np.array([middle], values.dtype))
            found = replace(found, missing=float(np.median(found._scored(values))))
        raw = np.full(len(present), found.missing)
        raw[present] = found._scored(values)
        found = replace(found, scaling=_scaling(raw) if scale != "none" else _AS_IT_IS)
        if present.all():
            return found
        # of one value, or none, all that it says is where it is missing
        value = (label,) if _scaled(raw, found.scaling).any() else ()
        absent = _scaling((~present).astype(float))
        return replace(found, names=(*value, f"{label} missing"), absent=absent)

    def __call__(self, given: Column) -> np.ndarray:
        values, present = self._values(given)
        points = np.full(len(present), self.missing)
        points[present] = self._scored(values)
        points = _scaled(points, self.scaling)
        if self.absent is None:
            return points[:, None]
        absent = _scaled((~present).astype(float), self.absent)
        return np.column_stack([points, absent])[:, -len(self.names) :]

    def _values(self, given: Column) -> tuple[np.ndarray, np.ndarray]:
        """Finite numbers, and where they are."""
        if given.kind == "text" and self.written is not None:
            given = given.told(self.written)
        values = given.values
        if not values.size:
            return np.zeros(0), given.present
        if given.kind in ("date", "duration") and self.start is not None:
            values = seconds(values, self.label, self.start)
        elif given.kind not in ("number", "bool") or self.start is not None:
            expected, bad = "dates", 0
            if self.start is None:
                plain = (isinstance(value, str) and is_number(value) for value in values)
                expected, bad = "numbers", next((i for i, fits in enumerate(plain) if not fits), 0)
            got = f"{show(values[bad])} in row {given.row(bad)}"
            raise ValueError(f"{self.label}: expected {expected}, got {got}")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = int(np.argmin(np.isfinite(values)))
            raise ValueError(
                f"{self.label}: expected finite numbers, got {values[bad]:g} in row "
                f"{given.row(bad)}: correct it, or make it missing"
            )
        return values, given.present

    def _scored(self, values: np.ndarray) -> np.ndarray:
        kinds = {values.dtype.kind, self.levels.dtype.kind}
        if self.scores is None:  # taken off in their own type: no digits are lost far from 0
            middle = self.levels[0]
            if kinds <= {"i", "u"}:
                return np.array([int(value) - int(middle) for value in values], float)
            return np.asarray(values - middle, float)
        if kinds == {"f"}:
            return np.interp(values, self.levels, self.scores)
        place = np.minimum(np.searchsorted(self.levels, values), len(self.levels) - 1)
        known = self.levels[place] == values
        if known.all():
            return self.scores[place]
        between = np.interp(values.astype(float), self.levels.astype(float), self.scores)
        return np.where(known, self.scores[place], between)


_QUANTILE = NormalDist().inv_cdf


@dataclass(frozen=True)
class Category:
    """A column of categories as one-hot codes of mean squared distance 2.

    Missing cells are a category of their own where there were any; a category that was not there is
    equally far from all.

    Attributes:
        label: The column.
        names: What the numbers are called.
        place: Of each category, which of the rows of ``points`` it is.
        points: Numbers ``[m + 2, k]`` of the categories, of a missing cell and of any other.
    """

    label: str
    names: tuple[str, ...]
    place: dict[Any, int]
    points: np.ndarray = field(metadata=_ROWS)
    kind: Literal["category"] = "category"

    @classmethod
    def of(cls, given: Column) -> "Category":
        label, levels = given.name, given.factors[0]
        names = [f"{label} = {level}" for level in levels]
        codes = np.where(given.present, given.codes, len(levels))
        if not given.present.all():
            names.append(f"{label} missing")
        shares = np.bincount(codes, minlength=len(names)) / len(codes)
        points = np.eye(len(names))
        if len(names) > _MOST_LEVELS:
            # nearly orthogonal directions: all distances between levels are equal to about 10%
            shape = len(names), _MOST_LEVELS
            points = np.random.default_rng(0).choice([-1.0, 1.0], shape) / np.sqrt(_MOST_LEVELS)
            names = [f"{label} [{j}]" for j in range(_MOST_LEVELS)]
        points /= np.sqrt(1 - np.sum(shares**2))
        nowhere = np.zeros((len(levels) + 2 - len(points), points.shape[1]))
        place = {level: code for code, level in enumerate(levels)}
        return cls(label, tuple(names), place, np.concatenate([points, nowhere]))

    def __call__(self, given: Column) -> np.ndarray:
        return self.points[self.rows(given)]

    def rows(self, given: Column) -> np.ndarray:
        """Which row of ``points`` is that of each cell ``[n]``."""
        levels, missing = given.factors[0], len(self.place)
        if levels and given.kind != "text" and isinstance(next(iter(self.place), None), str):
            levels = list(map(str, levels))  # codes that are all digits among these records
        places = [*(self.place.get(level, missing + 1) for level in levels), missing]
        return np.array(places)[given.codes]


@dataclass(frozen=True)
class Block:
    """A block of numbers as it is."""

    label: str
    names: tuple[str, ...]
    kind: Literal["block"] = "block"

    @classmethod
    def of(cls, given: Column) -> "Block":
        return cls(given.name, tuple(given.part_names))

    def __call__(self, given: Column) -> np.ndarray:
        values = numeric(given).reshape(len(given), -1).astype(float)
        if values.shape[1] != len(self.names):
            raise ValueError(
                f"{self.label}: expected {len(self.names)} numbers a record, got {values.shape[1]}"
            )
        return values


@dataclass(frozen=True)
class Text:
    """A column of texts as a block of numbers, by the pieces of words that they share.

    Pieces of 3 to 5 characters, counted on a logarithmic scale and weighted by how few texts hold
    them, reduced to at most 64 singular vectors. A text of which nothing is left, a missing one
    included, is 0. Of more than 3 million characters the pieces are hashed, and the singular
    vectors are those of a sample of the texts: memory is bounded, whatever the texts.

    Attributes:
        label: The column.
        names: What the numbers are called.
        pieces: scikit-learn's counts of pieces.
        weights: Its weights of them.
        vectors: Singular vectors ``[k, pieces]``.
    """

    label: str
    names: tuple[str, ...]
    pieces: Any
    weights: Any
    vectors: np.ndarray

    @classmethod
    def of(cls, given: Column) -> "Text":
        """Raises: ValueError: Texts of which none says what another says, no scikit-learn."""
        label = given.name
        try:
            import sklearn.feature_extraction.text as words
            from sklearn.decomposition import TruncatedSVD
        except ImportError:
            raise ValueError(
                f"{label}: texts are read with scikit-learn: pip install 'jgram[cli]', or embed "
                "them and pass the embedding, or ignore them (kinds={...: 'ignore'})"
            ) from None
        texts, place = _texts(given)
        lengths = np.array(list(map(len, texts)))
        asked: Any = {"analyzer": "char_wb", "ngram_range": (3, 5)}
        pieces: Any = words.CountVectorizer(**asked)
        if lengths.sum() > _KEPT_CHARACTERS:
            hashing: Any = {"n_features": _HASHED_PIECES, "alternate_sign": False, "norm": None}
            pieces = words.HashingVectorizer(**asked, **hashing)
        order = np.random.default_rng(0).permutation(len(place))
        fits = np.cumsum(lengths[place[order]]) <= max(_FITTED_CHARACTERS, lengths.max())
        fitted = place if fits.all() else place[np.sort(order[fits])]
        used, back = np.unique(fitted, return_inverse=True)
        try:
            counts = pieces.fit_transform(texts[used])[back]
        except ValueError:  # scikit-learn found no piece
            raise ValueError(f"{label}: expected texts that hold words, got none") from None
        weights = words.TfidfTransformer(sublinear_tf=True)
        shares = weights.fit_transform(counts)
        held = int(np.sum(shares.getnnz(axis=0) > 0))
        size = min(_TEXT_NUMBERS, shares.shape[0] - 1, held - 1)
        if size < 1:
            raise ValueError(f"{label}: expected several texts of several words, got too few")
        vectors: Any = TruncatedSVD(size, random_state=0).fit(shares).components_
        return cls(label, tuple(f"{label}[{j}]" for j in range(size)), pieces, weights, vectors)

    def __call__(self, given: Column) -> np.ndarray:
        texts, place = _texts(given)
        stretch = np.cumsum(list(map(len, texts))) // _KEPT_CHARACTERS  # of texts read at once
        parts = np.split(texts, np.flatnonzero(np.diff(stretch)) + 1)
        points = [self.weights.transform(self.pieces.transform(part)) for part in parts]
        return np.concatenate([part @ self.vectors.T for part in points])[place]


def _texts(given: Column) -> tuple[np.ndarray, np.ndarray]:
    """Distinct texts, the empty one first, and which each record has."""
    if given.values.size and given.kind != "text":
        raise ValueError(f"{given.name}: expected texts, got {given.kind} values")
    texts = np.array(["", *(text[:LONGEST] for text in given.factors[0])], object)
    return texts, given.codes + 1
