"""Masked words: against a loop with the same random numbers, in their statistics, beside those of transformers."""

import pytest
import torch
import torch.nn.functional as F
from chance import fits
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.objectives import IGNORE_INDEX, mask_tokens

PAD, CLS, SEP, MASK, V = 0, 1, 2, 3, 40
SPECIAL = (PAD, CLS, SEP)
few = settings(max_examples=60, deadline=None, derandomize=True)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def text(B, T, seed=0):
    """Rows of ordinary ids between <cls> and <sep>."""
    tokens = torch.randint(4, V, (B, T), generator=seeded(seed))
    tokens[:, 0], tokens[:, -1] = CLS, SEP
    return tokens


def mask(tokens, seed=0, **options):
    options = {"vocab_size": V, "mask_id": MASK, "special_ids": SPECIAL} | options
    return mask_tokens(tokens, generator=seeded(seed), **options)


def by_loop(tokens, seed, rate, mask_share, random_share, word_starts):
    """The same from the same random numbers, a token at a time."""
    generator, shape = seeded(seed), tokens.shape
    keys = torch.rand(shape, generator=generator).tolist()
    fate = torch.rand(shape, generator=generator).tolist()
    ordinary = [index for index in range(V) if index not in (*SPECIAL, MASK)]
    drawn = torch.randint(len(ordinary), shape, generator=generator).tolist()
    inputs, labels = tokens.tolist(), [[IGNORE_INDEX] * shape[1] for _ in tokens]
    for b, row in enumerate(tokens.tolist()):
        words, inside = [], False
        for t, token in enumerate(row):
            if token in (*SPECIAL, MASK):
                inside = False
            elif inside and word_starts is not None and not word_starts[b][t]:
                words[-1].append(t)
            else:
                words.append([t])
                inside = True
        wanted, chosen = max(1, round(rate * sum(map(len, words)))), []
        for _, word in sorted(zip(keys[b], words, strict=False)):
            if len(chosen) < wanted:
                chosen += word
        for t in chosen:
            labels[b][t] = row[t]
            if fate[b][t] < mask_share:
                inputs[b][t] = MASK
            elif fate[b][t] < mask_share + random_share:
                inputs[b][t] = ordinary[drawn[b][t]]
    return inputs, labels


@few
@given(st.data(), st.integers(1, 4), st.integers(1, 12), st.integers(0, 1000), st.booleans())
def test_equal_to_a_loop(data, B, T, seed, whole_words):
    tokens = data.draw(st.lists(st.lists(st.integers(0, V - 1), min_size=T, max_size=T), min_size=B, max_size=B))
    tokens[0][0] = V - 1  # one token that may be masked
    starts = torch.rand(B, T, generator=seeded(seed + 1)) < 0.5 if whole_words else None
    rate, mask_share = data.draw(st.sampled_from([0.01, 0.15, 0.5, 1])), data.draw(st.sampled_from([0, 0.6, 0.8]))
    tokens = torch.tensor(tokens)
    before = tokens.clone()
    got = mask(tokens, seed, rate=rate, mask_share=mask_share, random_share=0.2, word_starts=starts)
    want = by_loop(tokens, seed, rate, mask_share, 0.2, None if starts is None else starts.tolist())
    assert (got.inputs.tolist(), got.labels.tolist()) == want
    assert torch.equal(tokens, before)


def test_the_number_is_exact_and_never_none():
    valid_lens = torch.arange(3, 60)
    tokens = text(len(valid_lens), 60)
    tokens[torch.arange(60) >= valid_lens[:, None]] = PAD
    tokens[torch.arange(len(valid_lens)), valid_lens - 1] = SEP
    _, labels = mask(tokens)
    assert (labels != IGNORE_INDEX).sum(1).tolist() == [max(1, round(0.15 * (n - 2))) for n in valid_lens.tolist()]
    assert not torch.isin(labels, torch.tensor([*SPECIAL, MASK])).any()


def test_every_place_is_as_likely():
    tokens = text(4000, 22)
    chosen = (mask(tokens).labels != IGNORE_INDEX).sum(0)
    assert chosen[[0, -1]].tolist() == [0, 0]
    assert all(fits(count, 4000, 3 / 20) for count in chosen[1:-1].tolist())  # round(0.15 * 20) of 20


def test_eighty_ten_ten():
    tokens = text(3000, 42)
    inputs, labels = mask(tokens)
    chosen = labels != IGNORE_INDEX
    n = int(chosen.sum())
    assert n == 3000 * 6
    assert torch.equal(labels[chosen], tokens[chosen]) and torch.equal(inputs[~chosen], tokens[~chosen])
    hidden, kept = (inputs == MASK) & chosen, (inputs == tokens) & chosen
    assert torch.equal(hidden, inputs == MASK)
    assert fits(hidden.sum().item(), n, 0.8)
    assert fits(kept.sum().item(), n, 0.1 + 0.1 / (V - 4))  # a random token may be that which stood there
    put_in = inputs[chosen & ~hidden & ~kept]
    assert sorted(put_in.unique().tolist()) == list(range(4, V))  # no special one
    assert all(fits(count, len(put_in), 1 / (V - 4)) for count in put_in.bincount()[4:].tolist())


@pytest.mark.parametrize(
    ("mask_share", "random_share", "expected"), [(1, 0, "all masked"), (0, 1, "none masked"), (0, 0, "as it was")]
)
def test_shares_of_all_and_of_none(mask_share, random_share, expected):
    tokens = text(20, 42)
    inputs, labels = mask(tokens, mask_share=mask_share, random_share=random_share)
    chosen = labels != IGNORE_INDEX
    assert chosen.sum() == 20 * 6
    if expected == "all masked":
        assert (inputs[chosen] == MASK).all()
    elif expected == "none masked":
        assert not (inputs == MASK).any() and (inputs != tokens)[chosen].float().mean() > 0.9
    else:
        assert torch.equal(inputs, tokens)


def test_whole_words_are_whole_and_as_many_as_needed():
    tokens = text(300, 62)
    starts = torch.rand(tokens.shape, generator=seeded(5)) < 0.6
    labels = mask(tokens, word_starts=starts).labels
    chosen = labels != IGNORE_INDEX
    starts[:, 1] = True  # after <cls>
    word = starts.cumsum(1)
    for row, words in zip(chosen[:, 1:-1], word[:, 1:-1], strict=True):
        taken = set(words[row].tolist())
        sizes = [int((words == number).sum()) for number in taken]
        assert sum(sizes) == row.sum()  # no word in part
        assert sum(sizes) >= 9 and sum(sizes) - max(sizes) < 9  # round(0.15 * 60); one word fewer would not do
    # tokens are chosen one by one elsewhere: neighbours in a word then part company
    alone = mask(tokens).labels != IGNORE_INDEX
    same_word = (word[:, 1:] == word[:, :-1])[:, 1:-1]
    assert not (chosen[:, 1:-2] != chosen[:, 2:-1])[same_word].any()
    assert (alone[:, 1:-2] != alone[:, 2:-1])[same_word].any()


def test_a_row_without_a_token_that_may_be_masked_stays():
    tokens = torch.cat([text(2, 10), torch.full((1, 10), PAD), torch.tensor([[CLS, MASK, SEP] + [PAD] * 7])])
    inputs, labels = mask(tokens)
    assert torch.equal(inputs[2:], tokens[2:]) and (labels[2:] == IGNORE_INDEX).all()
    assert (labels[:2] != IGNORE_INDEX).any(1).all()
    with pytest.raises(ValueError, match="no token may be masked: all are special"):
        mask(tokens[2:])


def test_the_seed_decides():
    tokens = text(8, 30)
    assert torch.equal(mask(tokens, 1).inputs, mask(tokens, 1).inputs)
    assert not torch.equal(mask(tokens, 1).labels, mask(tokens, 2).labels)


def test_types_and_the_loss():
    tokens = text(4, 30).int()
    inputs, labels = mask(tokens)
    assert inputs.dtype == torch.int32 and labels.dtype == torch.int64
    chosen = labels != IGNORE_INDEX
    logits = torch.randn(4, 30, V, generator=seeded(3))
    by_hand = -logits.log_softmax(-1).gather(2, tokens.long()[..., None])[..., 0][chosen].mean()
    torch.testing.assert_close(F.cross_entropy(logits.flatten(0, 1), labels.flatten()), by_hand)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rate": 0}, ValueError, "rate is 0, expected a number above 0"),
        ({"rate": 1.5}, ValueError, "rate is 1.5"),
        ({"mask_share": -0.1}, ValueError, "mask_share is -0.1"),
        ({"random_share": 2}, ValueError, "random_share is 2"),
        ({"mask_share": 0.95}, ValueError, "are more than 1 together"),
        ({"mask_id": V}, ValueError, "a special id is 40, expected an integer from 0 to 39"),
        ({"mask_id": 1.0}, ValueError, "a special id is 1.0, expected an integer"),
        ({"special_ids": (0, True)}, ValueError, "a special id is True, expected an integer"),
        ({"special_ids": (0, -1)}, ValueError, "a special id is -1"),
        ({"vocab_size": 20}, ValueError, "tokens holds the id 39, expected 0 to 19"),
        ({"word_starts": torch.ones(2, 10)}, TypeError, "word_starts is of torch.float32, expected a boolean tensor"),
        ({"word_starts": [[True] * 10] * 2}, TypeError, "word_starts is of list"),
        ({"word_starts": torch.ones(2, 9).bool()}, ValueError, r"shape \(2, 9\) but tokens \(2, 10\)"),
    ],
)
def test_bad_arguments(options, error, message):
    tokens = text(2, 10)
    tokens[0, 1] = V - 1
    with pytest.raises(error, match=message):
        mask(tokens, **options)


def test_bad_tokens_and_generators():
    with pytest.raises(TypeError, match="expected integers"):
        mask(text(2, 10).float())
    with pytest.raises(TypeError, match=r"expected torch\.Generator"):
        mask_tokens(text(2, 10), vocab_size=V, mask_id=MASK, special_ids=SPECIAL, generator=None)


@pytest.mark.slow
def test_beside_that_of_transformers():
    """The same shares; their number of chosen tokens varies, ours does not."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    names = ["<pad>", "<cls>", "<sep>", "<mask>", *map(str, range(4, V))]
    model = tokenizers.models.WordLevel({name: index for index, name in enumerate(names)}, "<pad>")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(model),
        pad_token="<pad>",
        cls_token="<cls>",
        sep_token="<sep>",
        mask_token="<mask>",
    )
    collate = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=0)
    tokens = text(3000, 22)
    batch = collate([{"input_ids": row} for row in tokens.tolist()])
    numbers = {}
    for name, (inputs, labels) in {"ours": mask(tokens), "theirs": (batch["input_ids"], batch["labels"])}.items():
        chosen = labels != IGNORE_INDEX
        assert torch.equal(labels[chosen], tokens[chosen]) and not chosen[:, [0, -1]].any()
        n = int(chosen.sum())
        assert fits(n, 3000 * 20, 0.15)
        assert fits(((inputs == MASK) & chosen).sum().item(), n, 0.8, 6)  # theirs may put a <mask> in as the random one
        assert fits(((inputs != MASK) & (inputs != tokens)).sum().item(), n, 0.1 * (1 - 2 / V))
        numbers[name] = chosen.sum(1)
    assert numbers["ours"].unique().tolist() == [3]
    assert numbers["theirs"].min() == 0 and numbers["theirs"].max() > 6
    assert fits((numbers["theirs"] == 0).sum().item(), 3000, 0.85**20)  # texts without any guess
