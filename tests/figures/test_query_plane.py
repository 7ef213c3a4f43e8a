"""Figure of chapter 01: it computes attention, and bad input is refused."""

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
