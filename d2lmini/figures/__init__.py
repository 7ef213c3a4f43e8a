"""Interactive figures: computed by the package, moved in the browser, with no kernel behind them.

Each figure is one Python file (what it shows, as data) and one JavaScript file of the same name (how it moves), with
the numbers that it shows in `numbers/`.

Attention, positions and blocks:

    query_plane.py         a query moved among keys in the plane
    kernel_pooling.py      kernel regression over points that can be moved
    score_matrix.py        what scale, mask and temperature do to scores
    alignment_explorer.py  which source words a decoder looks at
    head_explorer.py       where every head of a model looks
    position_explorer.py   position encodings, and the scores that they make
    layer_walk.py          a walk through an encoder block
    depth_rate_map.py      at which depths and learning rates a recipe trains
    pattern_designer.py    a sparse pattern put together from its parts
    tiling_stepper.py      exact attention tile by tile

Images:

    patch_size.py          an image cut into patches of several sizes
    patch_attention.py     where every patch looks
    swin_explorer.py       who may attend to whom in windows
    pixel_completion.py    an image finished pixel by pixel
    similarity_matrix.py   a batch of images and texts, and what each chooses
    live_classifier.py     a vision Transformer in the page: its classes, patches and positions
    live_completion.py     an ImageGPT in the page: it finishes what is painted

Language models:

    bpe_stepper.py         byte-pair encoding merge by merge
    mask_guess.py          a masked word guessed
    live_guess.py          a hidden word, and what a model in the page believes
    pattern_explorer.py    who may attend to whom in the three families
    span_stepper.py        span corruption step by step
    induction_head.py      the head that looks up what came next
    next_token.py          from scores of the next token to a draw
    beam_tree.py           a beam search that grows
    cache_walk.py          which scores are computed with a cache and without
    scaling_calculator.py  parameters, tokens, FLOPs and loss by a law
    vote_explorer.py       chains of thought that vote
    quantized_row.py       a row of weights in few bits
    draft_verify.py        what a draft proposes and a model accepts
    live_writer.py         a GPT that writes in the page

Models of this book at work in the page, by the runtime in live/:

    translator/            a sentence becomes French, and what changes that
    playground/            a small Transformer that learns in the page, and challenges
    real_model/            SmolLM2, which a reader loads, asks and looks into

For all of them:

    base/                  one front-end module, shown as a custom element or a widget; what their scripts share
    live/                  the runtime of the models that live in the page: their modules, as a worker has them
    packing.py             numbers on their way into a page
    painting.py            a picture that a reader paints
    diagrams/              how things are put together, each a function

`page/*.js` is the page's side of live models, `guess/*.js` parts of live_guess.js. What a page loads is in `built/`,
which `tools/bundle.mjs` makes of all modules: `make sync`.
"""

from ..renamed import names_of
from .alignment_explorer import AlignmentExplorer
from .beam_tree import BeamTree
from .bpe_stepper import BPEStepper
from .cache_walk import CacheWalk
from .depth_rate_map import DepthRateMap
from .draft_verify import DraftVerify
from .head_explorer import HeadExplorer
from .induction_head import InductionHead
from .kernel_pooling import KernelPooling
from .layer_walk import LayerWalk
from .live_classifier import LiveClassifier
from .live_completion import LiveCompletion
from .live_guess import LiveGuess
from .live_writer import LiveWriter
from .mask_guess import MaskGuess
from .next_token import NextToken
from .patch_attention import PatchAttention
from .patch_size import PatchSize
from .pattern_designer import PatternDesigner
from .pattern_explorer import PatternExplorer
from .pixel_completion import PixelCompletion
from .playground import Playground
from .position_explorer import PositionExplorer
from .quantized_row import QuantizedRow
from .query_plane import QueryPlane
from .real_model import RealModel
from .scaling_calculator import ScalingCalculator
from .score_matrix import ScoreMatrix
from .similarity_matrix import SimilarityMatrix
from .span_stepper import SpanStepper
from .swin_explorer import SwinExplorer
from .tiling_stepper import TilingStepper
from .translator import LiveTranslator
from .vote_explorer import VoteExplorer

__getattr__ = names_of(__name__)

__all__ = [
    "AlignmentExplorer",
    "BPEStepper",
    "BeamTree",
    "CacheWalk",
    "DepthRateMap",
    "DraftVerify",
    "HeadExplorer",
    "InductionHead",
    "KernelPooling",
    "LayerWalk",
    "LiveClassifier",
    "LiveCompletion",
    "LiveGuess",
    "LiveTranslator",
    "LiveWriter",
    "MaskGuess",
    "NextToken",
    "PatchAttention",
    "PatchSize",
    "PatternDesigner",
    "PatternExplorer",
    "PixelCompletion",
    "Playground",
    "PositionExplorer",
    "QuantizedRow",
    "QueryPlane",
    "RealModel",
    "ScalingCalculator",
    "ScoreMatrix",
    "SimilarityMatrix",
    "SpanStepper",
    "SwinExplorer",
    "TilingStepper",
    "VoteExplorer",
]
