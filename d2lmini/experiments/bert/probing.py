"""What pretrained encoders are asked: what a frozen one knows of sentences, and what is guessed word by word."""

import random
from contextlib import ExitStack
from statistics import mean

import torch

from d2lmini.data.batching import pad
from d2lmini.data.pretraining import split_sentences
from d2lmini.data.text_encoder import TextEncoder
from d2lmini.models.heads import mean_pooling

_STRENGTHS = 0.001, 0.01, 0.1, 1.0  # of logistic regression, C, 1 / the penalty; validation chooses
_AT_ONCE = 64  # sentences


def exchanged(documents, most, seed=0):
    """Sentences of 6 to 40 words, in every second of which two neighbouring words are exchanged.

    Args:
        documents: lists of paragraphs.
        most: sentences to take, spread over the documents.
        seed: of the places.

    Returns:
        list of (text, label), the label 1 where words are exchanged.

    Source: Conneau et al. 2018, section 2, the task "bigram shift".
    """
    sentences = [s.split() for document in documents for paragraph in document for s in split_sentences(paragraph)]
    sentences = [words for words in sentences if 6 <= len(words) <= 40]
    draw, made = random.Random(seed), []
    for number, words in enumerate(sentences[:: max(1, len(sentences) // most)][:most]):
        places = [i for i in range(len(words) - 2) if words[i].lower() != words[i + 1].lower()]  # not the last mark
        label = number % 2 if places else 0
        if label:
            i = draw.choice(places)
            words = [*words[:i], words[i + 1], words[i], *words[i + 2 :]]
        made.append((" ".join(words), label))
    return made


@torch.no_grad()
def features(encoder, sequences, pad_id, causal=False):
    """Sentences as a frozen encoder sees them, in float32.

    Args:
        encoder: a `BERT`.
        sequences: N lists of ids.
        pad_id: id that fills up.
        causal: whether it was trained to look to the left alone, and does here.

    Returns:
        after each block the mean over a sentence's tokens, (L, N, h); the last block's last token, (N, h); on the CPU.
    """
    device = encoder.embedding.weight.device
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    means, lasts, kept = [], [], []
    with ExitStack() as stack:
        for block in encoder.blks:
            handle = block.register_forward_hook(lambda module, inputs, output: kept.append(output))
            stack.callback(handle.remove)
        for start in range(0, len(order), _AT_ONCE):
            rows = [sequences[i] for i in order[start : start + _AT_ONCE]]
            valid_lens = torch.tensor([len(row) for row in rows], device=device)
            kept.clear()
            X = encoder(pad(rows, pad_id).to(device), valid_lens=valid_lens, causal=causal)
            means.append(torch.stack([mean_pooling(Y, valid_lens) for Y in kept]).cpu())
            lasts.append(X[torch.arange(len(rows)), valid_lens - 2].cpu())  # before the separator
    places = torch.tensor(order).argsort()
    return torch.cat(means, 1)[:, places], torch.cat(lasts)[places]


def regression(train, val, test):
    """Accuracy on the test set of a logistic regression; its penalty is the one that does best on the validation set.

    Args:
        train, val, test: pairs of features (N, h) and labels, N integers.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def fitted(C):
        return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=500)).fit(train[0].numpy(), train[1])

    models = [fitted(C) for C in _STRENGTHS]
    best = max(models, key=lambda model: model.score(val[0].numpy(), val[1]))  # of equals, the strongest penalty
    return float(best.score(test[0].numpy(), test[1]))


def probe(encoder, tokenizer, splits, shares, draws, causal=False):
    """What a logistic regression makes of an encoder that does not change.

    Args:
        encoder: a `BERT`.
        tokenizer: its tokenizer.
        splits: three lists of (text, label), to train on, to validate with and to test with.
        shares: of the training examples; of a small share ``draws`` disjoint ones are taken, as many as there are.
        draws: see there.
        causal: as in `features`.

    Returns:
        dict: ``mean`` and ``last``, accuracies for each share of the mean over tokens and of the last token, means over
        the draws; ``by_block``, of the mean over tokens after each block, with all examples.
    """
    pieces, T = TextEncoder(tokenizer), encoder.config.max_len
    seen = []
    for split in splits:
        encoded = pieces.encode([text for text, _ in split])
        sequences = [pieces.join(ids[: T - 2])[0] for ids, _ in encoded]
        seen.append((*features(encoder, sequences, pieces.pad_id, causal), [label for _, label in split]))
    accuracies = {"mean": [], "last": []}
    for name, column in (("mean", lambda part: part[0][-1]), ("last", lambda part: part[1])):
        (X, y), val, test = ((column(part), part[2]) for part in seen)
        for share in shares:
            n = round(share * len(y))
            starts = range(0, n * min(draws, len(y) // n), n)
            accuracies[name].append(mean(regression((X[s : s + n], y[s : s + n]), val, test) for s in starts))
    blocks = range(len(seen[0][0]))
    return accuracies | {"by_block": [regression(*((part[0][block], part[2]) for part in seen)) for block in blocks]}


def plain_sentences(tokenizer, documents, number):
    """The first sentence of each document that has 8 to 14 tokens, each a whole word, and ends with a full stop.

    Words with digits, unknown ones and marks but a comma or a full stop are none; the last one has three letters or
    more, so that it is no "No.". At most ``number`` of them.

    Raises:
        ValueError: there is none.
    """
    encoder, sentences = TextEncoder(tokenizer), []
    for document in documents:
        for sentence in (s for paragraph in document for s in split_sentences(paragraph)):
            tokens = [tokenizer.id_to_token(index) for index in encoder.encode([sentence])[0][0]]
            ends = tokens[-1:] == ["."] and len(tokens[-2:][0]) > 2
            if 8 <= len(tokens) <= 14 and ends and all(t.isalpha() or t in ",." for t in tokens):
                sentences.append(sentence)
                break
        if len(sentences) == number:
            return sentences
    if not sentences:
        raise ValueError("no sentence has 8 to 14 whole words: is the vocabulary too small, or the text?")
    return sentences


@torch.no_grad()
def guesses(model, tokenizer, texts, top=6):
    """What a model thinks of each place of texts: both sides with that token masked, or what is on its left.

    Args:
        model: a `Guesser`.
        tokenizer: its tokenizer.
        texts: list of str.
        top: how many guesses are kept.

    Returns:
        list of dicts, one of each text: ``tokens``, T str; ``guesses``, of each the likeliest [token, probability];
        ``truth_probability``, T numbers. `MaskGuess` shows them.
    """
    encoder, guesses_by_text, device = TextEncoder(tokenizer), [], model.bert.embedding.weight.device
    for ids, _ in encoder.encode(texts):
        tokens = torch.tensor(encoder.join(ids)[0], device=device)  # (T + 2,)
        if model.causal:
            logits = model(tokens[None])[0, :-2]  # (T, V): what stands before says of each
        else:
            alone = torch.eye(len(tokens), dtype=torch.bool, device=device)[1:-1]  # (T, T + 2)
            logits = model(tokens.masked_fill(alone, encoder.mask_id), alone)
        probabilities = logits.float().softmax(-1).cpu()
        best = probabilities.topk(top)
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        truth = probabilities.gather(1, torch.tensor(ids)[:, None])[:, 0]
        guesses_by_text.append(
            {
                "tokens": [tokenizer.id_to_token(index) for index in ids],
                "guesses": [[[tokenizer.id_to_token(i), p] for i, p in zip(*row, strict=True)] for row in rows],
                "truth_probability": truth.tolist(),
            }
        )
    return guesses_by_text
