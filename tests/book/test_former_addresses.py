"""Links to what was called otherwise still arrive."""

import pytest
from conftest import sphinx_extension
from docutils import nodes
from docutils.utils import new_document

former_addresses = sphinx_extension("former_addresses")
ADDRESSES = {
    "d2lmini.quantized.QuantizedLinear.from_linear": "d2lmini.quantised.QuantisedLinear.from_linear",
    "module-d2lmini.models.named_parts": "module-d2lmini.models.choices",
    "d2lmini.decoding.penalize_repetition": "d2lmini.decoding.penalise_repetition",
    "fig-quantized-row": "fig-quantised-row",
    "fig-compare-normalize-mix": "fig-compare-normalise-mix",
}


@pytest.mark.parametrize("now", ADDRESSES)
def test_what_was_renamed_has_both_addresses(now):
    document = new_document("page")
    document += nodes.figure("", ids=[now])
    document.ids[now] = document[0]
    former_addresses.FormerAddresses(document).apply()
    assert document[0]["ids"] == [now, ADDRESSES[now]]


@pytest.mark.parametrize("same", ["fig-layer-walk", "d2lmini.tokenization.bpe", "weights-in-8-and-4-bits", "quantized"])
def test_what_was_not_has_one(same):
    assert former_addresses.former(same) == same
