"""Make the moving picture of the README and the still for links: `python -m tools.readme_picture`, with Chromium.

The figure of the front page is opened, its query is dragged once around the keys, and each step is photographed.
"""

import argparse
import io
import math
import re
import tempfile
from pathlib import Path

from tools._generated import ROOT

STATIC = ROOT / "tools" / "sphinx_ext" / "static"
FRAMES, MILLISECONDS, COLOURS, RADIUS = 48, 90, 24, 1.3
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 8px; background: #fff; color: #222; font: 16px system-ui, sans-serif; width: 624px }}
.d2lmini-head, .d2lmini-hint, .d2lmini-controls {{ display: none !important }}
</style>{}"""


def code():
    """The lines of the first screen. Returns: str."""
    text = (ROOT / "intro.md").read_text(encoding="utf-8")
    return re.search(r"```\{front-page\} look\n(.*?)```", text, re.S)[1]


def figure():
    """What these lines compute. Returns: `QueryPlane`."""
    from d2lmini.figures import QueryPlane

    names = {}
    exec(code(), names)
    return QueryPlane(names["query"], names["keys"], names["values"])


def photographs(count=FRAMES):
    """Yields a PNG (bytes) for each step of the query on its way around."""
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder, "figure.html")
        path.write_text(PAGE.format(figure()._repr_html_()), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 640, "height": 480})
        page.goto(path.as_uri())
        shown = page.locator("d2lmini-query-plane[data-ready=yes]")
        box = shown.locator("svg").first.bounding_box()
        start = shown.get_by_role("button", name=re.compile("^query")).bounding_box()
        page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
        page.mouse.down()
        page.add_style_tag(content=":focus-visible { outline: none !important }")
        for step in range(count):
            angle = 2 * math.pi * step / count
            x, y = RADIUS * math.cos(angle), RADIUS * math.sin(angle)
            page.mouse.move(box["x"] + (x + 2.2) / 4.4 * box["width"], box["y"] + (2.2 - y) / 4.4 * box["height"])
            yield shown.screenshot()
        browser.close()


def main():
    from PIL import Image

    argparse.ArgumentParser(prog="python -m tools.readme_picture", description="draw it anew").parse_args()
    frames = [Image.open(io.BytesIO(png)).convert("RGB") for png in photographs()]
    frames[FRAMES // 12].save(STATIC / "first_look.png", optimize=True)
    palette = frames[0].quantize(COLOURS)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    path = STATIC / "first_look.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=MILLISECONDS, loop=0, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {len(frames)} steps")


if __name__ == "__main__":
    main()
