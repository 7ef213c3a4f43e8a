"""Figure of chapter 01: it computes attention, and bad input is refused."""

import itertools

import pytest
import torch

import d2lmini.figures as figures


def query_plane(**changes):
    settings = dict(query=[0.9, 0.6], keys=[[1.5, 0.2], [0.3, 1.4]], values=[[1.0, 0.0], [0.0, 1.0]], temperature=0.5)
    return figures.QueryPlane(**{**settings, **changes})


def test_query_plane_computes_attention():
    figure = query_plane()
    keys, query = torch.tensor(figure.state["key_points"]), torch.tensor(figure.state["query"])
    expected = torch.nn.functional.scaled_dot_product_attention(
        query[None, None], keys[None], torch.tensor(figure.state["values"])[None], scale=1 / 0.5
    )
    torch.testing.assert_close(figure.output.float(), expected[0, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": [1.0, 2.0, 3.0]}, "expected query"),
        ({"values": [[1.0, 2.0]]}, "expected query"),
        ({"score": "cosine"}, "score is"),
        ({"temperature": 0.0}, "positive"),
        ({"keys": [[float("nan"), 0.0], [0.0, 0.0]]}, "finite"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        query_plane(**changes)


@pytest.mark.parametrize("width", [390, 1280])
def test_names_stay_apart_where_keys_meet(open_figure, width):
    keys = [[0.5, 0.5], [0.55, 0.5], [2.15, 2.15], [-2.15, -2.15]]
    page = open_figure(figures.QueryPlane([0.5, 0.45], keys, keys, 1.0), width=width)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    for plane in page.locator("figure svg").all():
        frame = plane.bounding_box()
        boxes = [text.bounding_box() for text in plane.locator("text").all()]
        assert len(boxes) >= 4
        for box in boxes:
            assert frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"]
            assert frame["y"] <= box["y"] and box["y"] + box["height"] <= frame["y"] + frame["height"]
        for a, b in itertools.combinations(boxes, 2):
            sides = (("x", "width"), ("y", "height"))
            apart = [abs(a[k] + a[s] / 2 - b[k] - b[s] / 2) - 0.4 * (a[s] + b[s]) for k, s in sides]
            assert max(apart) > 0


def test_a_dot_product_joins_the_points_to_the_origin_and_a_distance_joins_them_to_the_query(open_figure):
    shown = query_plane()
    page = open_figure(shown)
    plane = page.locator("figure svg").first

    def starts():
        lines = plane.locator("line[stroke='var(--blue)']").evaluate_all(
            "all => all.map(line => [line.x1.baseVal.value, line.y1.baseVal.value])"
        )
        assert len(lines) == 2 and lines[0] == lines[1]
        return [value / 340 * 4.4 - 2.2 for value in lines[0]]  # a plane of 340 units shows -2.2 to 2.2, y downwards

    assert starts() == pytest.approx([0, 0], abs=1e-6)
    page.get_by_role("combobox", name="score").select_option("distance")
    assert starts() == pytest.approx([0.9, -0.6], abs=1e-6)
