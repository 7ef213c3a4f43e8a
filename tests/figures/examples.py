"""One figure of each kind, as large as the chapters have them: for what all figures are asked."""

import tempfile
import types
from functools import cache
from pathlib import Path

import torch
from live_weights import encoders

from d2lmini import figures
from d2lmini.figures.pixel_completion import completion_walk
from d2lmini.models.image_gpt import ImageGPT, ImageGPTConfig
from d2lmini.models.weights import files

ENGLISH = ["the", "black", "cat", "does", "not", "sleep", "in", "the", "kitchen", "."]
FRENCH = ["le", "chat", "noir", "ne", "dort", "pas", "dans", "la", "cuisine", "extraordinaire", "."]


def _maps(*shape, seed=0):
    return torch.softmax(3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), -1)


def _query_plane():
    keys = [[1.5, 0.2], [0.3, 1.4], [-1.2, 0.7], [-0.9, -1.1], [0.8, -1.3]]
    values = [[1.0, 1.5], [-1.5, 1.0], [-1.0, -1.2], [0.5, -1.7], [1.7, -0.3]]
    return figures.QueryPlane([0.9, 0.6], keys, values, temperature=0.5)


def _kernel_pooling():
    x = torch.linspace(0, 5, 20)
    return figures.KernelPooling(x, 2 * x.sin() + x**0.8, query=2.2, width=0.5)


def _score_matrix():
    queries, keys = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(0))
    return figures.ScoreMatrix(["the", "cat", "saw", "that", "it", "rained"], queries, keys)


def _alignment_explorer():
    source, target = ENGLISH, FRENCH
    truth = {(i, i) for i in range(9)}
    cards = {" ".join(source): (source, target, _maps(len(target), len(source)), truth)}
    return figures.AlignmentExplorer(
        {**cards, "it rains .": (["it", "rains", "."], ["il", "pleut"], _maps(2, 3), None)}
    )


def _head_explorer():
    def attentions(source, target):
        S, T = len(source), len(target)
        return {
            "encoder": (source, source, _maps(2, 4, S, S)),
            "cross": (target, source, _maps(2, 4, T, S, seed=1)),
        }

    return figures.HeadExplorer(
        {
            " ".join(ENGLISH): attentions(ENGLISH, FRENCH),
            "it rains .": attentions(["it", "rains", "."], ["il", "pleut"]),
        }
    )


def _position_explorer():
    query, key = torch.randn(2, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    slope = torch.linspace(0, -2, 8, dtype=torch.float64)
    return figures.PositionExplorer(query, key, torch.cat([slope, slope - 0.5]), num_hiddens=16)


def _picture(size=28, seed=0):
    return torch.rand(size, size, generator=torch.Generator().manual_seed(seed))


def _patch_attention():
    pictures = {
        title: (_picture(seed=i), {"block 1": _maps(4, 50, 50, seed=i), "rollout": _maps(50, 50, seed=i + 9)})
        for i, title in enumerate(("a boot", "a bag"))
    }
    return figures.PatchAttention(pictures, (7, 7))


def _pixel_completion():
    torch.manual_seed(0)
    model = ImageGPT(ImageGPTConfig((14, 14), 8, 12, 20, 2, 2)).eval()
    top = torch.randint(8, (1, 7, 14)).repeat(2, 1, 1)
    images, probabilities = model.complete(top, return_probabilities=True)
    walks = [completion_walk(model, image, 7, p) for image, p in zip(images, probabilities, strict=True)]
    true = torch.randint(8, (14, 14)).tolist()
    return figures.PixelCompletion([i / 7 for i in range(8)], {"a boot": walks, "a bag": walks[:1]},
                                   {"a boot": true, "a bag": true}, step=20)  # fmt: skip


def _next_token():
    words = [
        " the",
        " cat",
        " dog",
        " house",
        "\n",
        " of",
        " extraordinarily",
        ".",
        ",",
        " and",
        " sea",
        " king",
        " he",
    ]
    tokens = words + [f" w{i}" for i in range(len(words), 400)]
    logits = -0.4 * torch.arange(400).sqrt()[torch.stack([_order(400, seed) for seed in range(3)])]
    texts = ["The captain looked at", "To be, or not to be, that is the", "Once upon a time there was a king who had a"]
    return figures.NextToken(texts, tokens, 3 * logits, temperature=0.8, top_k=40, top_p=0.9)


def _order(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return (torch.arange(n) * (0.2 + torch.rand(n, generator=generator))).argsort().argsort()


def _beam_tree():
    words = ["<bos>", "<eos>", "the", "a", "black", "cat", "dog", "sleeps", "eats", "extraordinarily", "now", "here"]
    logits = 1.5 * torch.randn(12, 12, generator=torch.Generator().manual_seed(1))
    logits[:, 0] = logits[0, 1] = -9
    return figures.BeamTree.of(lambda tokens, state: (logits[tokens], state), (), 0, 1, 6, words, beam_size=3, shown=4)


def _cache_walk():
    tokens = ["once", "upon", "a", "time", "there", "was", "an", "extraordinary", "king", "."]
    sizes = types.SimpleNamespace(num_blks=12, num_heads=12, num_hiddens=768)
    return figures.CacheWalk(tokens, 4, sizes, step=3)


def _induction_head():
    P, T = 12, 30
    places, tokens = torch.arange(T), ["qxbmdzkfrcwj"[t % P] for t in range(T)]
    scores = torch.randn(2, 4, T, T, generator=torch.Generator().manual_seed(0))
    scores[1, 2] += 5.0 * (places[:, None] - places == P - 1)
    weights = torch.softmax(scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf), -1)
    noise = torch.rand(2, T, generator=torch.Generator().manual_seed(1))
    losses = torch.where(places < P, 3.9 + noise[0], 0.3 + noise[1])
    return figures.InductionHead(tokens, weights, losses, P, {(2, 3): losses.clamp(min=3.2) + 0.3 * noise[0]})


def _mask_guess():
    words, others = (
        [*ENGLISH[:9], "near", "an", "extraordinarily", "old", "fire", "."],
        ["a", "dog", "runs", "##ing", ","],
    )

    def view(words, shares):  # the last word is never among the guesses
        guesses = [
            list(zip([*others, word if word != words[-1] else "!"], row.tolist(), strict=False))
            for word, row in zip(words, shares, strict=True)
        ]
        return {"guesses": guesses, "truth_probability": [*shares[:-1, 5].tolist(), 0.0001]}

    passages = [
        {"tokens": given, **view(given, _maps(len(given), 7)), "from_left": view(given, _maps(len(given), 7, seed=1))}
        for given in (words, words[:5])
    ]
    return figures.MaskGuess(passages)


@cache
def live_weights():
    """A folder of exported weights of small random encoders."""
    folder = Path(tempfile.mkdtemp())
    encoders(folder)
    return folder


def _live_guess():
    before, files.FOLDER = files.FOLDER, live_weights()
    try:
        figure = figures.LiveGuess(sentences={"The old ship sails at dawn.": "ship", "the king lost.": "king"})
        shown = figure._repr_html_()  # now: the weights are in it
        figure._repr_html_ = lambda: shown
        return figure
    finally:
        files.FOLDER = before


def _similarity_matrix():
    images, vectors = _maps(8, 1, 28, 28), torch.randn(2, 8, 32, generator=torch.Generator().manual_seed(0))
    pictures, texts = torch.nn.functional.normalize(vectors[0], dim=1), vectors.sum(0)
    words = [f"a dark and patterned piece, number {n}" for n in range(8)]
    cosines = pictures @ torch.nn.functional.normalize(texts, dim=1).T
    return figures.SimilarityMatrix(images / images.max(), words, cosines, 0.07)


def _vote_explorer():
    summands = [77, 58, 88, 57, 61, 40]
    right, wrong = [135, 223, 280, 341, 381], [135, 213, 270, 331, 371]
    samples = [right, wrong, None, right, [135, 223, 280, 342, 382]] * 4
    return figures.VoteExplorer([{"summands": summands, "right": 381, "samples": samples}] * 6)


def _tiling_stepper():
    generator = torch.Generator().manual_seed(2)
    queries, keys, values = (2 * torch.randn(8, n, generator=generator) for n in (4, 4, 2))
    return figures.TilingStepper(queries, keys, values, step=3)


def depth_record(recipes=7, depths=(2, 4, 8, 16, 32), rates=(3e-4, 1e-3, 3e-3, 1e-2, 3e-2), seeds=1):
    """As `depth_by_rate` makes them: the product of depth and rate decides, and each recipe stands a little more."""
    names = ["post-norm", "post-norm, warm-up", "pre-norm", "pre-norm, QK norm", "no norm", "no norm, small start",
             "no norm, residual weight"][:recipes]  # fmt: skip
    config = {"depths": list(depths), "rates": list(rates), "steps": 250, "points": 20}
    metrics, curves = {"unigram": 3.31, "uniform": 4.17, "loss": {}, "verdict": {}, "steps": {}}, {}
    for i, name in enumerate(names):
        cells = [[_depth_cell(depth * rate / (0.03 * (1 + i)), curves, f"{name}, {depth}, {rate:g}") for rate in rates]
                 for depth in depths]  # fmt: skip
        for n, key in enumerate(("loss", "verdict", "steps")):
            metrics[key][name] = [[[cell[n] for cell in row] for row in cells]] * seeds
    return {"config": config, "metrics": metrics, "curves": curves}


def _depth_cell(strain, curves, name):
    loss, steps = 3.5 - strain**0.5 if strain < 1.5 else 3.32 if strain < 6 else 6.2 if strain < 20 else None, 250
    if loss is None:
        steps = 30
    curves[name] = [round((loss or 90) + (4.5 - (loss or 4)) * 0.8**i, 6) for i in range(-(-steps // 12))]
    return loss, "trains" if strain < 1.5 and loss < 3.26 else "stuck" if strain < 6 else "diverged", steps


EXAMPLES = {
    "QueryPlane": _query_plane,
    "KernelPooling": _kernel_pooling,
    "ScoreMatrix": _score_matrix,
    "AlignmentExplorer": _alignment_explorer,
    "HeadExplorer": _head_explorer,
    "PositionExplorer": _position_explorer,
    "LayerWalk": lambda: figures.LayerWalk.of_translator("the black cat sleeps .", stage=7),
    "PatchSize": lambda: figures.PatchSize(_picture(), patch_size=7, num_hiddens=64, mlp_num_hiddens=128, num_blks=3),
    "PatchAttention": _patch_attention,
    "SwinExplorer": lambda: figures.SwinExplorer({"a boot": _picture(), "a bag": _picture(seed=1)}),
    "PixelCompletion": _pixel_completion,
    "LiveClassifier": figures.LiveClassifier,
    "LiveCompletion": figures.LiveCompletion,
    "NextToken": _next_token,
    "BeamTree": _beam_tree,
    "CacheWalk": _cache_walk,
    "InductionHead": _induction_head,
    "MaskGuess": _mask_guess,
    "LiveGuess": _live_guess,
    "SpanStepper": lambda: figures.SpanStepper.of(others=[figures.span_stepper.MORE_WORDS]),
    "PatternExplorer": lambda: figures.PatternExplorer.of_families("I love this red car yes ich liebe es", 6),
    "ScalingCalculator": figures.ScalingCalculator.published,
    "SimilarityMatrix": _similarity_matrix,
    "VoteExplorer": _vote_explorer,
    "QuantizedRow": figures.QuantizedRow.of,
    "DraftVerify": figures.DraftVerify.of,
    "PatternDesigner": lambda: figures.PatternDesigner(preset="BigBird, encoder", layers=2),
    "TilingStepper": _tiling_stepper,
    "BPEStepper": lambda: figures.BPEStepper(step=5),
    "LiveTranslator": lambda: figures.LiveTranslator(parts=("heads", "beam", "later", "positions")),
    "DepthRateMap": lambda: figures.DepthRateMap(depth_record(), recipe="pre-norm", other="no norm"),
    "LiveWriter": figures.LiveWriter,
    "Playground": figures.Playground,
    "RealModel": figures.RealModel,
}
