"""Every exercise from UDL, and every one of our own, keeps every promise."""

from audited import promises

test_exercise_keeps_its_promises = promises("udl", "own")
