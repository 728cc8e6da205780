"""Array annotations of the public signatures: ``Float[Array, "n d"]``.

They are jaxtyping's. jaxtyping is a development dependency (the tests check every public
signature with it and beartype); where it is missing the annotations read as plain arrays.

Dimension names, the same everywhere: ``n`` records, ``d`` classes, ``m`` features or outcomes,
``k`` coordinates of an observation, ``t`` trials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

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

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int", "Key", "Num", "Shaped"]
