"""Every exercise from D2L keeps every promise."""

from audited import promises

test_exercise_keeps_its_promises = promises("d2l")
