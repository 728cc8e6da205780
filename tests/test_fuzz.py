"""A small run of the fuzz: right answers, or one clear line. More: ``python -m tests.fuzz``."""

import pytest

from tests.fuzz import run

pytestmark = pytest.mark.thorough


@pytest.mark.usefixtures("unchecked")
def test_a_right_answer_or_one_clear_line():
    counts, wrong = run(40)
    assert wrong == {}
    right = sum(count for kind, count in counts.items() if kind.startswith("right"))
    assert right >= 12


def test_no_record_is_lost_to_quotes_put_anywhere():
    counts, wrong = run(300, kind="quotes")
    assert wrong == {}
    assert counts["right: stray quotes"] > 50
