"""What was done in either of two entries of a part: a page of the book joins them as the package does."""

from itertools import product

from d2lmini.exercises.reader.progress import merged

MODULE = "tools/sphinx_ext/scripts/parts/progress.js"
NEW = {"tries": 0, "passed": False, "last": "", "review": "", "ticked": False, "chosen": ""}
ENTRIES = (
    {},
    {"tries": 2, "passed": True, "last": "passed", "chosen": "ba"},
    {"tries": 2, "last": "wrong", "review": "partly"},
    {"tries": 5, "last": "failed", "review": "agrees", "ticked": True, "chosen": "c"},
)


def cases():
    for mine, other in product(ENTRIES, ENTRIES):
        yield "merged", [mine, other], NEW | merged(mine, other)  # which leaves out what is new
