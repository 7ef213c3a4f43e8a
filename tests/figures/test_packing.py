"""Numbers reach the page, and what is no share is refused."""

import numpy
import pytest
import torch

from d2lmini.figures.base import built
from d2lmini.figures.packing import pack, unpack


def test_shares_arrive_right_to_half_a_step_and_integers_exactly():
    shares = torch.rand(3, 5, 2, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(unpack(pack(shares), 3, 5, 2) / 255, shares, atol=1 / 510 + 1e-6, rtol=0)
    assert unpack(pack(torch.tensor([-1e-4, 0, 1, 1 + 1e-4]))).tolist() == [0, 0, 255, 255]
    places = numpy.array([[0, 255], [256, 65535]], "<u2")
    assert unpack(pack(places), 2, 2, kind="<u2").tolist() == places.tolist()


@pytest.mark.parametrize("bad", [torch.tensor([0.5, -3]), torch.tensor([200.0]), torch.tensor([torch.nan, 0.5])])
def test_what_is_no_share_is_refused(bad):
    with pytest.raises(
        ValueError, match=r"the weights are outside of 0 to 1, they go from .* scores before the softmax"
    ):
        pack(bad, "the weights")


def test_the_page_unpacks_what_was_packed(open_page, tmp_path):
    shares, places = torch.tensor([0.0, 0.25, 1.0]), numpy.array([7, 300], "<u2")
    page = tmp_path / "page.html"
    page.write_text(f"<script>{built('base.js')}</script>")
    look = "([shares, places]) => [[...d2lminiBase.unpack(shares)], [...d2lminiBase.unpack(places, Uint16Array)]]"
    found = open_page(page.as_uri()).evaluate(look, [pack(shares), pack(places)])
    assert found == [[0, 64, 255], [7, 300]]
