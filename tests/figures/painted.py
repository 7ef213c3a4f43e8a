"""Figures with a picture to paint, opened and loaded; what the painting grid and the page show."""

import re

from book_page import shown_in_book

from d2lmini.figures.live.page import runtime_script

SETTLED = "document.querySelector('.d2lmini-live')?.getAttribute('aria-busy') === 'false'"


def loaded(open_figure, figure, **options):
    """The page of a figure whose model was loaded and has answered."""
    page = open_figure(figure, **options)
    page.get_by_role("button", name="Load the model").click()
    settled(page)
    return page


def settled(page):
    page.wait_for_function(SETTLED)


def said(page):
    return page.locator(".d2lmini-said").inner_text()


def easel(page):
    return page.get_by_role("application")


def middle(page, size, index):
    """Where on the page a pixel of the painting grid has its middle."""
    height, width = size
    box = easel(page).bounding_box()
    return (
        box["x"] + (index % width + 0.5) * box["width"] / width,
        box["y"] + (index // width + 0.5) * box["height"] / height,
    )


def greys(page):
    """The bytes that the painting grid shows, None where nothing is."""
    fills = easel(page).locator("> rect[shape-rendering]").evaluate_all("all => all.map((r) => r.getAttribute('fill'))")
    return [int(re.match(r"rgb\((\d+),", fill)[1]) if fill.startswith("rgb") else None for fill in fills]


def stroke_of_a_finger(page, points):
    """Touches the first of points, moves over the others, and lets go."""
    session = page.context.new_cdp_session(page)
    for kind, point in [("touchStart", points[0]), *(("touchMove", point) for point in points[1:]), ("touchEnd", None)]:
        touched = [] if point is None else [{"x": point[0], "y": point[1]}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})


def where_weights_are_missing(figure, open_page, folder):
    """The page of a figure in a book that lacks its weights; the button was pressed."""
    (folder / "_static/live").mkdir(parents=True)
    (folder / "_static/live/runtime.js").write_text(runtime_script(), encoding="utf-8")
    page = folder / "chapter.html"
    page.write_text(
        f'<!doctype html><html data-content_root="./"><meta charset="utf-8">{shown_in_book(folder, figure)}'
    )
    page = open_page(page.as_uri())
    page.get_by_role("button", name="Load the model").click()
    page.wait_for_function("document.querySelector('.d2lmini-said').textContent.includes('cannot run')")
    return page
