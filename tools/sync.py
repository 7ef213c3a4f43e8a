"""Bring every generated file in step: `make sync`; `make check` only tells."""

from tests.javascript import values
from tools import (
    bundles,
    chapters,
    citations,
    core,
    course,
    coverage,
    exercise_notebooks,
    glossary,
    live_kernels,
    measured,
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
        measured.sync,
        citations.sync,
        coverage.sync,
        course.sync,
        glossary.sync,
        notices.sync,
        command="make sync",
    )
