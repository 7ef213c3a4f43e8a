"""Bring every generated file in step: `make sync`; `make check` only tells."""

from tests.javascript import values
from tools import (
    bundles,
    chapters,
    citations,
    core,
    course,
    exercise_notebooks,
    live_kernels,
    notices,
    pages,
)
from tools._generated import main

if __name__ == "__main__":
    main(
        live_kernels.sync,
        values.sync,
        bundles.sync,  # kernels are in a bundle
        chapters.sync,
        core.sync,
        exercise_notebooks.sync,
        pages.sync,
        citations.sync,
        course.sync,
        notices.sync,
        command="make sync",
    )
