"""Interactive figures: computed by the package, moved in the browser, with no kernel behind them.

Each figure is one Python file (what it shows, as data) and one JavaScript file of the same name (how it moves).
"""

from d2lmini.figures.alignment_explorer import AlignmentExplorer
from d2lmini.figures.beam_tree import BeamTree
from d2lmini.figures.bpe_stepper import BPEStepper
from d2lmini.figures.cache_walk import CacheWalk
from d2lmini.figures.depth_rate_map import DepthRateMap
from d2lmini.figures.head_explorer import HeadExplorer
from d2lmini.figures.induction_head import InductionHead
from d2lmini.figures.kernel_pooling import KernelPooling
from d2lmini.figures.layer_walk import LayerWalk
from d2lmini.figures.mask_guess import MaskGuess
from d2lmini.figures.next_token import NextToken
from d2lmini.figures.patch_attention import PatchAttention
from d2lmini.figures.patch_size import PatchSize
from d2lmini.figures.pattern_designer import PatternDesigner
from d2lmini.figures.pattern_explorer import PatternExplorer
from d2lmini.figures.pixel_completion import PixelCompletion
from d2lmini.figures.position_explorer import PositionExplorer
from d2lmini.figures.query_plane import QueryPlane
from d2lmini.figures.scaling_calculator import ScalingCalculator
from d2lmini.figures.score_matrix import ScoreMatrix
from d2lmini.figures.similarity_matrix import SimilarityMatrix
from d2lmini.figures.span_stepper import SpanStepper
from d2lmini.figures.swin_explorer import SwinExplorer
from d2lmini.figures.tiling_stepper import TilingStepper
from d2lmini.figures.vote_explorer import VoteExplorer

__all__ = [
    "AlignmentExplorer",
    "BPEStepper",
    "BeamTree",
    "CacheWalk",
    "DepthRateMap",
    "HeadExplorer",
    "InductionHead",
    "KernelPooling",
    "LayerWalk",
    "MaskGuess",
    "NextToken",
    "PatchAttention",
    "PatchSize",
    "PatternDesigner",
    "PatternExplorer",
    "PixelCompletion",
    "PositionExplorer",
    "QueryPlane",
    "ScalingCalculator",
    "ScoreMatrix",
    "SimilarityMatrix",
    "SpanStepper",
    "SwinExplorer",
    "TilingStepper",
    "VoteExplorer",
]
