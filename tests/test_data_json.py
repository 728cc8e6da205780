"""Results as strict JSON."""

import datetime
import enum
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jgram.data import to_data, to_json


class Pair(NamedTuple):
    low: float
    high: float


class Level(enum.Enum):
    LOW = 1


def test_json_is_strict_and_gives_a_reason_for_null():
    record = {
        "log_score": jnp.float32(-jnp.inf),
        "floor": np.nan,
        "rows": [1.5, math.inf],
        "interval": Pair(-1.0, math.inf),
        "counts": np.array([1, 2], np.int32),
        3: (True, None, "ü", Level.LOW),
        "day": datetime.date(2020, 1, 2),
        "when": np.datetime64("2020-01-02T03:04"),
        "price": Decimal("1.5"),
        "masked": np.ma.array([1, 2], mask=[0, 1]),
        "names": np.array(["a", None], object),
        "text": np.str_("a"),
        "flag": np.bool_(True),
        "path": Path("a") / "b",
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
        "interval": {"low": -1.0, "high": None, "high_reason": "Infinity"},
        "counts": [1, 2],
        "3": [True, None, "ü", "Level.LOW"],
        "day": "2020-01-02",
        "when": "2020-01-02T03:04:00",
        "price": 1.5,
        "masked": [1, None],
        "names": ["a", None],
        "text": "a",
        "flag": True,
        "path": "a/b",
    }


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_json_keeps_every_finite_number(number):
    assert json.loads(to_json({"x": np.float64(number)}))["x"] == number


@dataclass(frozen=True)
class Result:
    log_score: float
    pairs: dict[tuple[str, str], float]
    draws: np.ndarray = field(repr=False)
    kernel: Callable[[float, float], float] = max

    @property
    def score(self) -> float:
        """A property that belongs to the result."""
        return math.exp(self.log_score)

    @cached_property
    def worst(self) -> Pair:
        return Pair(-math.inf, 0.0)

    @property
    def _hidden(self) -> float:
        raise AssertionError

    def records(self) -> None:
        raise AssertionError


def test_properties_belong_to_a_result_and_what_repr_hides_does_not():
    result = Result(0.0, {("ann", "bob"): np.float32(0.5)}, np.zeros(1000))
    assert to_data(result) == {
        "log_score": 0.0,
        "pairs": {"ann, bob": 0.5},
        "kernel": "max",
        "score": 1.0,
        "worst": {"low": None, "low_reason": "-Infinity", "high": 0.0},
    }
