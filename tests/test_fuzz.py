"""A small run of the fuzz: right answers, or one clear line. More: ``python -m tests.fuzz``."""

import pytest

from tests.fuzz import KINDS, run

pytestmark = pytest.mark.thorough


@pytest.mark.usefixtures("unchecked")
def test_a_right_answer_or_one_clear_line():
    counts, wrong = run(40)
    assert wrong == {}
    right = sum(count for kind, count in counts.items() if kind.startswith("right"))
    assert right >= 12


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_once_lost_or_wrong_in_silence(kind):
    files = kind in ("quotes", "damaged", "export")
    counts, wrong = run(200 if files else 12, kind=kind)
    assert wrong == {}
    wanted = "refused" if kind == "outputs" else "right"
    assert any(outcome.startswith(wanted) for outcome in counts)
