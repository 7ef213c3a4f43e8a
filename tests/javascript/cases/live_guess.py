"""Sentences with hidden and changed pieces, as the package's encoder of text has them, and what is said of beliefs."""

import torch

from d2lmini.data.text_encoder import TextEncoder
from d2lmini.models.weights.trained import trained

TEXT = "The storm moved to the north and reached the coast."
CHANGED = "The storm moved to the old harbour and reached the coast."  # "north", piece 6, is now two
NORTH, COAST = 5, 9


def cases():
    encoder = TextEncoder(trained("bert_wikitext").tokenizer)

    def read(text):
        ids = encoder.join(encoder.encode([text])[0][0])[0]
        return {"ids": ids, "pieces": encoder.pieces(ids), "mask": encoder.mask_id, "unknown": False}

    was, new = read(TEXT), read(CHANGED)
    slots = [{"ids": [i], "piece": piece} for i, piece in zip(was["ids"], was["pieces"], strict=True)][1:-1]
    assert (slots[NORTH]["piece"], slots[COAST]["piece"], len(new["ids"])) == ("north", "coast", len(was["ids"]) + 1)
    put = {"ids": new["ids"][NORTH + 1 : NORTH + 3], "piece": " ".join(new["pieces"][NORTH + 1 : NORTH + 3])}
    now = [*slots[:NORTH], put, *slots[NORTH + 1 :]]
    at = {**was, "now": now, "hidden": COAST, "changed": NORTH, "mode": "change"}

    yield "slotsOf", [was], slots
    middle = len(slots) // 2
    yield "opened", [was], {**was, "now": slots, "hidden": middle, "changed": middle - 1, "mode": "hide"}
    yield "opened", [was, 0], {**was, "now": slots, "hidden": 0, "changed": 1, "mode": "hide"}
    for place, count, beside in ((3, 5, 2), (0, 5, 1), (0, 1, 0)):
        yield "placeBeside", [place, count], beside
    for i in (NORTH, COAST):
        yield "isChanged", [at, i], i == NORTH
    yield "anyChanged", [at], True
    yield "anyChanged", [{**at, "hidden": NORTH}], False

    def hidden(read, *places):  # as `belief` of the package hides them
        ids = [encoder.mask_id if i - 1 in places else index for i, index in enumerate(read["ids"])]
        return {"ids": ids, "place": 1 + places[0]}

    yield "masked", [was, slots, [COAST]], hidden(was, COAST)
    yield "masked", [was, slots, [NORTH, COAST]], hidden(was, NORTH, COAST)
    yield "masked", [was, now, [COAST]], hidden(new, COAST + 1)
    view = {"title": "Left side", "causal": True}
    both = [{"view": view, "slots": slots, "after": False}, {"view": view, "slots": now, "after": True}]
    yield "wantedOf", [at, view], both
    yield "wantedOf", [{**at, "now": slots}, view], both[:1]

    row = torch.randn(len(new["ids"]), generator=torch.Generator().manual_seed(0)).softmax(0)
    sizes = [1] * (NORTH + 1) + [2] + [1] * (len(slots) - NORTH)
    for until in (len(row), COAST + 2):  # a model that sees only the left side reads so many
        read_of = torch.where(torch.arange(len(row)) < until, row, 0)
        shares = [part.sum().item() for part in read_of.split(sizes)]
        yield "sharesOf", [row[:until].tolist(), now, COAST], shares

    yield (
        "slotLook",
        [at, NORTH],
        {
            "text": put["piece"],
            "label": f"{put['piece']}, piece 6, to be changed",
            "hidden": False,
            "style": "text-decoration: underline; border: 2px dashed",
        },
    )
    yield (
        "slotLook",
        [at, COAST],
        {
            "text": "[MASK]",
            "label": "[MASK], hidden: coast, piece 10",
            "hidden": True,
            "style": "",
        },
    )
    yield "probability", [0.00049], "< 0.001"
    yield "probability", [0.0005], "0.001"
    yield "headName", [7, 4], "block 2, head 4"
    yield "rankOf", [{"truth": {"rank": 1234}, "vocabulary": 8000}], "rank 1,234 of 8,000"
    yield "shortened", ["a" * 44], "a" * 44
    yield "shortened", ["a" * 45], "a" * 43 + "…"
    found = {"best": {"pieces": ["city", "sea"], "p": [0.5, 0.2]}, "truth": {"piece": "coast", "p": 0.0001}}
    said = "“coast” is hidden. Left side: first guess “city”, 0.500; “coast” < 0.001."
    yield "saidOf", [at, [{**both[0], **found}]], said
    unknown = f"{said} [UNK] is what the model does not know."
    yield "saidOf", [{**at, "unknown": True}, [{**both[0], **found}]], unknown
    masks = [*slots[:NORTH], {"ids": [encoder.mask_id], "piece": "[MASK]"}, *slots[NORTH + 1 :]]
    after = "After the change: first guess “city”, 0.500; “coast” < 0.001."
    left = "The model that sees only the left side met no [MASK] in training."
    yield "saidOf", [{**at, "now": masks}, [{**one, **found} for one in both]], f"{said} {after} {left}"
