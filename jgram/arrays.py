"""What every file shares of arrays: annotations, precision, and reports as matrices.

The annotations of public signatures, ``Float[Array, "n d"]``, are jaxtyping's, by which the tests
check them; where it is missing they read as plain arrays. Dimensions: ``n`` records, ``d`` classes,
``m`` features or outcomes, ``k`` coordinates of an observation, ``t`` trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

ArrayLike = jax.Array | np.ndarray
"""What public functions take."""

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import Bool, Float, Int, Key, Num, Shaped
else:
    Array = ArrayLike  # host functions hold NumPy arrays in the records that JAX code makes
    try:
        from jaxtyping import Bool, Float, Int, Key, Num, Shaped
    except ImportError:

        class _Annotation:
            def __class_getitem__(cls, item: Any) -> Any:
                return item[0]

        Bool = Float = Int = Key = Num = Shaped = _Annotation

__all__ = [
    "HIGHEST", "Array", "ArrayLike", "Bool", "Float", "Int", "Key", "Num", "Shaped",
    "check_lengths", "extended", "float64", "infer_num_classes", "is_concrete", "labelled",
    "number_matrix", "pytree", "refuse_unbounded", "report_matrix", "rows",
]  # fmt: skip

HIGHEST = jax.lax.Precision.HIGHEST
"""Precision of matrix products that feed a determinant: GPUs default to TF32, about 3e-4 wrong."""

MOST_CLASSES = 4096
"""Classes beyond which a Gram matrix takes gigabytes: labels that are no numbers of classes."""


def is_concrete(*arrays: Any) -> bool:
    """Whether the values can be looked at now: not inside ``jit``, ``vmap`` or ``grad``, and not
    where some are another process's."""
    return not any(
        isinstance(leaf, Tracer) or not getattr(leaf, "is_fully_addressable", True)
        for leaf in jax.tree.leaves(arrays)
    )


@contextmanager
def float64() -> Iterator[None]:
    """float64 whatever ``jax_enable_x64`` says, on the host where the device is a TPU.

    A TPU emulates float64 by pairs of float32: without its range, and without factorisations.

    Example:
        >>> with float64():
        ...     jnp.ones(2).dtype
        dtype('float64')
    """
    host = jax.default_device(jax.devices("cpu")[0]) if jax.default_backend() == "tpu" else None
    with jax.enable_x64(True), host or nullcontext():
        yield


def rows(y: Shaped[ArrayLike, "n ..."]) -> Float[Array, "n k"]:
    """Observations as floating-point rows ``[n, k]``, trailing axes flattened."""
    y = jnp.asarray(y)
    if y.ndim == 0:
        raise ValueError("expected observations of shape [n] or [n, k], got a scalar")
    if not jnp.issubdtype(y.dtype, jnp.floating):
        y = y.astype(jnp.result_type(float))
    return y.reshape(y.shape[0], -1)


def extended(values: Array, missing: int, mode: str = "constant") -> Array:
    """With so many more records: zeros, or by ``"edge"`` the last one again."""
    return jnp.pad(values, [(0, missing)] + [(0, 0)] * (values.ndim - 1), mode=mode)


_Class = TypeVar("_Class")


def pytree(cls: type[_Class]) -> type[_Class]:
    """Register a dataclass as a pytree; fields with the metadata ``static`` are its structure.

    ``jax.tree_util.register_dataclass`` does so too, but to JAX 0.10 two such classes of as many
    fields are the same structure: ``jit`` then takes what it compiled for one kernel for another's,
    whenever their hashes fall together. Here the class is part of the structure, and so are the
    classes of the dataclasses in its fields, however those were registered.

    Example:
        >>> from dataclasses import make_dataclass
        >>> metres, feet = (pytree(make_dataclass(name, ["length"])) for name in ("Metres", "Feet"))
        >>> jax.tree.structure(metres(1.0)) == jax.tree.structure(feet(1.0))
        False
    """
    every: Any = fields(cls)  # type: ignore[arg-type]
    static = [field.name for field in every if field.metadata.get("static")]
    data = [field.name for field in every if not field.metadata.get("static")]

    def flatten(node: Any) -> tuple[list[Any], Any]:
        inside = [getattr(node, name) for name in data]
        kinds = tuple(type(part) if is_dataclass(part) else None for part in inside)
        return inside, (kinds, *(getattr(node, name) for name in static))

    def flatten_with_keys(node: Any) -> tuple[list[Any], Any]:
        inside, structure = flatten(node)
        return list(zip(map(jax.tree_util.GetAttrKey, data), inside, strict=True)), structure

    def unflatten(structure: Any, parts: Any) -> Any:
        node = object.__new__(cls)  # parts may be anything: no checks
        for name, part in zip((*data, *static), (*parts, *structure[1:]), strict=True):
            object.__setattr__(node, name, part)
        return node

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


def refuse_unbounded(values: Any, what: str) -> None:
    """Refuse concrete numbers among which some are NaN or infinite."""
    if not is_concrete(values) or not jnp.issubdtype(jnp.result_type(values), jnp.inexact):
        return
    wrong = ~np.isfinite(np.asarray(values))
    if wrong.any():
        place = tuple(int(i[0]) for i in np.nonzero(wrong))
        raise ValueError(
            f"expected finite {what}, got {np.asarray(values)[place]} at {list(place)}: leave out "
            "records with gaps, or have jgram.score read them"
        )


def infer_num_classes(x_hat: Any, num_classes: int | None) -> int:
    """The number of classes, read from soft reports' shape or, outside ``jit``, from the labels."""
    shape = jnp.shape(x_hat)
    if len(shape) == 2:
        if num_classes not in (None, shape[1]):
            raise ValueError(f"expected soft reports [n, {num_classes}], got {list(shape)}")
        refuse_unbounded(x_hat, "soft reports")
        return shape[1]
    if len(shape) != 1:
        raise ValueError(f"expected labels [n] or soft reports [n, d], got shape {list(shape)}")
    dtype = jnp.result_type(x_hat)
    if not (jnp.issubdtype(dtype, jnp.integer) or jnp.issubdtype(dtype, jnp.bool_)):
        raise ValueError(
            f"expected integer labels [n], got {dtype}: encode them (jgram.data.encode_labels), or "
            "give soft reports [n, d]"
        )
    if not is_concrete(x_hat):
        if num_classes is None:
            raise ValueError("expected num_classes=... inside jit, vmap and grad, got None")
        return num_classes
    labels = np.asarray(x_hat)
    if not labels.size:
        raise ValueError("expected at least one record, got none")
    smallest, largest = int(labels.min()), int(labels.max())
    if smallest < 0 or (num_classes is not None and largest >= num_classes):
        limit = ", 1, ..." if num_classes is None else f"..{num_classes - 1}"
        fix = ": drop records without a label, or give them weight 0" if smallest < 0 else ""
        wrong = smallest if smallest < 0 else largest
        raise ValueError(f"expected labels 0{limit}, got {wrong}{fix}")
    classes = largest + 1 if num_classes is None else num_classes
    if classes > MOST_CLASSES:
        raise ValueError(
            f"expected at most {MOST_CLASSES:,} classes, got {classes:,}: number the labels from 0 "
            "without gaps (jgram.data.encode_labels)"
        )
    return classes


def report_matrix(
    x_hat: Shaped[ArrayLike, "n ..."],
    num_classes: int,
    weights: Shaped[ArrayLike, " n"] | None = None,
    dtype: Any = None,
) -> Float[Array, "n d"]:
    """Reports as a matrix ``[n, d]``: one-hot for labels, themselves when soft, times the weights.

    Example:
        >>> report_matrix(jnp.array([1, 0]), 2, weights=jnp.array([1.0, 0.5]))
        Array([[0. , 1. ],
               [0.5, 0. ]], dtype=float32)
    """
    dtype = jnp.result_type(float) if dtype is None else dtype
    x_hat = jnp.asarray(x_hat)
    z = x_hat.astype(dtype) if x_hat.ndim == 2 else jax.nn.one_hot(x_hat, num_classes, dtype=dtype)
    return z if weights is None else z * jnp.asarray(weights, dtype)[:, None]


def labelled(report: Any) -> Bool[np.ndarray, " n"]:
    """Which records a report labels: codes from 0 on, rows of a matrix that are not all zeros.

    Example:
        >>> labelled(np.array([0, -1])), labelled(np.array([[0.0, 0.0], [0.3, 0.7]]))
        (array([ True, False]), array([False,  True]))
    """
    values = np.asarray(report)
    return np.asarray(values >= 0 if values.ndim == 1 else values.any(axis=1))


def number_matrix(
    x_hat: Float[ArrayLike, " n"], weights: Shaped[ArrayLike, " n"] | None = None
) -> Float[Array, "n 2"]:
    """A report of numbers as a matrix ``[n, 2]``: ``(1 - u) / 2`` and ``(1 + u) / 2``.

    ``u`` is the report less its mean, over its standard deviation. Rows add up to 1, as those of
    labels do, so that whatever takes matrices takes numbers; a row of zeros where one is missing,
    NaN. Two values that are equally frequent give the matrix of two classes, low and high.

    Example:
        >>> number_matrix(jnp.array([3.0, 7.0, jnp.nan]))
        Array([[1., 0.],
               [0., 1.],
               [0., 0.]], dtype=float32)
    """
    x_hat = jnp.asarray(x_hat, jnp.result_type(float))
    present = ~jnp.isnan(x_hat)
    w = present * (1.0 if weights is None else jnp.asarray(weights, x_hat.dtype))
    total = jnp.maximum(jnp.sum(w), 1.0)
    x_hat = jnp.where(present, x_hat, 0.0)
    away = x_hat - w @ x_hat / total
    square = w @ away**2 / total
    varies = square > 1e-24 * jnp.max(jnp.abs(x_hat), initial=0.0) ** 2
    u = jnp.where(varies, away / jnp.sqrt(jnp.where(varies, square, 1.0)), 0.0)
    return jnp.where(present[:, None], (1 + jnp.stack([-u, u], axis=1)) / 2, 0.0)


def check_lengths(x_hat: Any, size: int, weights: Any) -> None:
    """Refuse observations or weights that do not line up with the reports."""
    n = jnp.shape(x_hat)[0]
    if size != n:
        raise ValueError(f"expected as many observations as reports, got {size} for {n} reports")
    if weights is None:
        return
    if jnp.shape(weights) != (n,):
        raise ValueError(f"expected weights of shape [{n}], got {list(jnp.shape(weights))}")
    if is_concrete(weights):
        values = np.asarray(weights)
        if not np.isfinite(values).all() or (values < 0).any() or not (values > 0).any():
            raise ValueError("expected weights >= 0, finite and not all 0")
