"""Results as strict JSON."""

import enum
import json
import math
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jgram.data import to_json


class Pair(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Record:
    name: str
    interval: Pair
    counts: np.ndarray


class Level(enum.Enum):
    LOW = 1


def test_json_is_strict_and_gives_a_reason_for_null():
    record = {
        "log_score": jnp.float32(-jnp.inf),
        "floor": np.nan,
        "rows": [1.5, math.inf],
        "record": Record("a", Pair(-1.0, math.inf), np.array([1, 2], np.int32)),
        3: (True, None, "ü", Level.LOW),
    }
    text = to_json(record)
    assert "ü" in text

    def refuse(constant):
        raise AssertionError(constant)

    assert json.loads(text, parse_constant=refuse) == {
        "log_score": None,
        "log_score_reason": "-Infinity",
        "floor": None,
        "floor_reason": "NaN",
        "rows": [1.5, None],
        "record": {
            "name": "a",
            "interval": {"low": -1.0, "high": None, "high_reason": "Infinity"},
            "counts": [1, 2],
        },
        "3": [True, None, "ü", "Level.LOW"],
    }


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_json_keeps_every_finite_number(number):
    assert json.loads(to_json({"x": np.float64(number)}))["x"] == number
