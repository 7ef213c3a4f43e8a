"""What `test_audits_of_d2l` and `test_audits_of_udl` share: two files, because one worker takes a whole file."""

import pytest

from d2lmini.exercises.audit import audit
from d2lmini.exercises.engine import registry


def promises(*origins):
    """A test of every exercise whose key starts with one of these words: it keeps all that exercises promise."""

    @pytest.mark.parametrize("key", [key for key in registry.keys() if key.split("-")[0] in origins])  # noqa: SIM118
    def test_exercise_keeps_its_promises(key):
        problems = audit(registry.load(key))
        assert not problems, "\n".join(map(str, problems))

    return test_exercise_keeps_its_promises
