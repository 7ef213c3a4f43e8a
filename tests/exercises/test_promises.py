"""Every exercise keeps every promise that exercises make."""

import pytest

from d2lmini.exercises.audit import SEEDS, audit
from d2lmini.exercises.engine import registry


@pytest.mark.audit
@pytest.mark.parametrize("key", registry.keys())
def test_exercise_keeps_its_promises(key):
    problems = audit(registry.load(key), seconds=0.5, seeds=SEEDS[:1])  # python -m d2lmini.exercises.audit has all
    assert not problems, "\n".join(map(str, problems))
