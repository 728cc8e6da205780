"""Whether committed results are what the code gives."""

import math
from collections.abc import Iterator
from typing import Any

TOLERANCE = 1e-3
"""Relative, of a number, with a thousandth of it absolute: float32 sums depend on the machine."""

_OF_THE_MACHINE = ("seconds", "device", "versions")


def differences(found: Any, expected: Any, place: str = "results") -> Iterator[str]:
    """Where two records differ, in words; wall times and the environment are left out.

    Example:
        >>> list(differences({"a": [1.0, 2.0], "seconds": 3.0}, {"a": [1.0, 2.5], "seconds": 9.0}))
        ['results.a[1] is 2.0, was 2.5']
    """
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in dict.fromkeys([*expected, *found]):
            if any(word in str(key) for word in _OF_THE_MACHINE):
                continue
            if key not in found or key not in expected:
                yield f"{place}.{key} is {'gone' if key in expected else 'new'}"
            else:
                yield from differences(found[key], expected[key], f"{place}.{key}")
    elif isinstance(found, list) and isinstance(expected, list):
        if len(found) != len(expected):
            yield f"{place} has {len(found)} entries, had {len(expected)}"
        else:
            for index, pair in enumerate(zip(found, expected, strict=True)):
                yield from differences(*pair, f"{place}[{index}]")
    elif not _alike(found, expected):
        yield f"{place} is {found!r}, was {expected!r}"


def _alike(found: Any, expected: Any) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (found, expected))
    if not numbers:
        return found == expected
    return math.isclose(found, expected, rel_tol=TOLERANCE, abs_tol=1e-3 * TOLERANCE)
