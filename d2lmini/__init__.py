"""d2lmini: attention and transformers, one idea a file.

Shapes are written with one legend everywhere:

    B  batch                    D  features of queries and keys
    T  queries (targets)        E  features of values
    S  keys = values (sources)  H  heads
    N  stored examples          C  classes
    V  vocabulary               h  hidden units (``num_hiddens``)

Masks are boolean and ``True`` means *may attend*; they broadcast to (B, H, T, S), or to (B, T, S) where there are no
heads. Attention takes ``valid_lens`` of shape (B,) or (B, T) wherever a mask. A query that may attend to nothing gets
zero weights and a zero output (before W_o).

Importing this package loads nothing heavy: each public name is fetched from its module on first use.
"""

import os
from importlib import import_module

from . import renamed

# Threads that wait must not spin: where another process uses a core, a chapter would stall. It is read when torch is
# loaded, so nothing changes where torch is there already, or where the reader has chosen.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"

_MODULES = {
    "exercises": ["check", "hint", "progress", "reset", "review"],
    "run_times": ["run_time"],
    "masks": [
        "as_mask",
        "causal_mask",
        "key_mask",
        "padding_mask",
        "prefix_mask",
        "token_mask",
        "sliding_window_mask",
    ],
    "pooling": [
        "GaussianKernel",
        "boxcar",
        "constant",
        "epanechikov",
        "epanechnikov",
        "gaussian",
        "gaussian_with_width",
        "nadaraya_watson",
        "triangular",
    ],
    "scoring": ["masked_softmax"],
    "attention": [
        "AdditiveAttention",
        "BilinearAttention",
        "DotProductAttention",
        "scaled_dot_product_attention",
    ],
    "cache": ["KeyValueCache", "cache_bytes"],
    "multi_head": ["MultiHeadAttention"],
    "experts": ["SwitchFFN"],
    "quantized": [
        "Quantized",
        "QuantizedEmbedding",
        "QuantizedLinear",
        "quantize",
        "quantize_model",
        "weight_bytes",
    ],
    "adapters": [
        "LowRankAdapter",
        "adapt",
        "adapter_state",
        "adapters_of",
        "load_adapters",
        "merge_adapters",
        "unmerge_adapters",
    ],
    "hooks": ["attention_patterns", "attention_rollout", "capture_attention", "head_masks"],
    "position": [
        "LearnedPositionalEncoding",
        "PositionalEncoding",
        "RelativePositionBias",
        "RelativePositionEmbedding",
        "sinusoidal",
    ],
    "rotation": ["RotaryEmbedding", "rotary"],
    "transformer": [
        "AddNorm",
        "DecoderState",
        "PositionWiseFFN",
        "GatedFFN",
        "SquaredReLU",
        "TransformerDecoderBlock",
        "TransformerEncoderBlock",
    ],
    "vision.patches": ["PatchEmbedding", "patchify", "unpatchify"],
    "vision.stochastic_depth": ["DropPath"],
    "vision.grid_position": ["GridRotary", "resize_positions", "sinusoidal_2d"],
    "models.seq2seq": ["AttentionDecoder", "Decoder", "Encoder", "EncoderDecoder", "Seq2Seq", "init_seq2seq"],
    "models.bahdanau": ["Seq2SeqAttentionDecoder", "Seq2SeqDecoder", "Seq2SeqEncoder"],
    "models.transformer_seq2seq": ["Transformer", "TransformerConfig", "TransformerDecoder", "TransformerEncoder"],
    "models.vit": ["ViT", "ViTBlock", "ViTMLP"],
    "models.gpt": ["GPT", "GPTState"],
    "models.gpt_config": ["GPT_CONFIGS", "GPTConfig"],
    "models.bert": ["BERT", "BERTForPretraining", "MaskLM"],
    "models.bert_config": ["BERT_CONFIGS", "BERTConfig"],
    "models.heads": ["PairHead", "TaggingHead", "TextHead", "class_token", "mean_pooling"],
    "models.span_head": ["SpanHead", "best_spans"],
    "models.pretrained": [
        "from_transformers",
        "load_transformers_bert",
        "load_transformers_gpt2",
        "load_transformers_llama",
        "load_transformers_swin",
        "load_transformers_t5",
        "load_transformers_vit",
    ],
    "models.t5": ["T5", "T5Decoder", "T5Encoder"],
    "models.t5_config": ["T5_CONFIGS", "T5Config"],
    "vision.windows": ["WindowAttention", "shifted_window_mask", "window_partition", "window_reverse"],
    "models.stages": ["PatchMerging"],
    "models.swin": ["Swin", "SwinBlock", "SwinConfig"],
    "models.davit": ["ChannelAttention", "DaViT", "DaViTBlock", "DaViTConfig"],
    "models.image_gpt": ["GreyQuantizer", "ImageGPT", "ImageGPTConfig"],
    "models.tiny": ["TinyConfig", "TinyTransformer"],
    "models.resnet": ["Residual", "ResNet"],
    "models.clip": ["CLIP", "CLIPConfig"],
    "decoding": [
        "Decoded",
        "Drafted",
        "Filters",
        "PromptLookup",
        "Sampled",
        "Vote",
        "accept_or_replace",
        "beam_search",
        "block_repeated_ngrams",
        "contrastive_search",
        "diverse_beam_search",
        "greedy_search",
        "keep_min_p",
        "keep_top_k",
        "keep_top_p",
        "majority_vote",
        "penalize_repetition",
        "reorder",
        "sample",
        "speculative_sample",
        "stream",
        "vote_accuracy",
        "with_temperature",
    ],
    "decoding.fast": ["PackedAttention", "PackedBlock", "for_decoding"],
    "efficient": [
        "LinearState",
        "LinformerAttention",
        "MemoryCompressedAttention",
        "OnlineSoftmax",
        "PositiveRandomFeatures",
        "bigbird_mask",
        "block_local_mask",
        "count_pairs",
        "elu_feature_map",
        "full_mask",
        "global_mask",
        "interaction_matrices",
        "kernel_weights",
        "layers_per_pair",
        "layers_to_reach",
        "linear_attention",
        "linear_attention_step",
        "random_mask",
        "strided_mask",
        "tiled_attention",
    ],
    "objectives": [
        "CorruptedSpans",
        "MaskedTokens",
        "PackedPairs",
        "Preference",
        "PrefixBatch",
        "ReplacedTokens",
        "SentencePairs",
        "answer_batch",
        "best_of_n",
        "best_of_n_kl",
        "check_preferences",
        "corrupt_spans",
        "corrupted_lengths",
        "dpo_loss",
        "expected_best_of",
        "get_tokens_and_segments",
        "group_advantages",
        "implied_rewards",
        "info_nce",
        "mask_tokens",
        "next_sentence_pairs",
        "pack_pairs",
        "policy_gradient_loss",
        "preference_pairs",
        "prefix_lm",
        "random_spans",
        "replace_tokens",
        "restore_spans",
        "sequence_log_probs",
        "span_counts",
        "text_length",
        "token_log_probs",
    ],
    "objectives.masking": ["IGNORE_INDEX"],
    "diversity": ["distinct_n", "repetition_rate", "self_bleu"],
    "metrics": ["bleu", "corpus_bleu", "corpus_chrf", "span_f1", "squad_scores", "tokenized_bleu"],
    "scaling": [
        "Optimum",
        "PowerLaw",
        "PublishedLaw",
        "PublishedModel",
        "interpolate_log",
        "bootstrap_laws",
        "compute_frontier",
        "compute_optimal",
        "fit_power_law",
        "gpt_training_flops",
        "percentile_interval",
        "isoflop_optimum",
        "isoflop_profile",
        "matrix_parameters",
        "predict_loss",
        "training_flops",
    ],
    "scaling.literature": ["PUBLISHED_LAWS", "PUBLISHED_MODELS"],
    "training": [
        "CheckpointError",
        "Classifier",
        "DataModule",
        "Module",
        "ProgressBoard",
        "Trainer",
        "MuonWithAdamW",
        "WarmupCosine",
        "WarmupInverseSqrt",
        "WarmupLinear",
        "batch_gradients",
        "by_depth",
        "gradient_sizes",
        "highest_loss_scale",
        "lost_updates",
        "residual_sizes",
        "second_moments",
        "underflow",
        "update_sizes",
    ],
    "tokenization.bpe": ["BytePairEncoding"],
    "tokenization.chat": ["ChatTokenizer"],
    "tokenization.characters": ["CharacterTokenizer"],
    "tokenization.subwords": ["SubwordTokenizer"],
    "tokenization.fast_bpe": ["BPETokenizer"],
    "tokenization.vocabulary": ["Vocab"],
    "data.fra_eng": ["MTFraEng"],
    "models.weights.smollm2": ["load_smollm2"],
    "models.weights.minilm": ["load_minilm", "sentence_embeddings"],
    "models.weights.trained": ["trained"],
    "data.translation": ["GrammarCorpus", "Multi30k", "Tatoeba"],
    "data.text_encoder": ["TextEncoder"],
    "data.sentiment": ["SentencePolarity"],
    "data.paraphrases": ["Paraphrases"],
    "data.tagging": ["EmergingEntities"],
    "data.question_answering": ["SQuAD"],
    "data.pretraining": ["TextWindows"],
    "data.playground": ["PlaygroundData"],
    "data.fashion_mnist": ["FashionMNIST"],
    "data.augmentation": ["Augmentation"],
    "data.captions": ["FashionCaptions"],
    "plot_style": ["label_curves"],
    "plotting": ["plot", "plt", "set_axes", "set_figsize", "show_heatmaps", "use_svg_display"],
    "show": ["show_table", "show_text"],
    "utils": [
        "HyperParameters",
        "add_to_class",
        "check_shape",
        "cpu",
        "gpu",
        "num_gpus",
        "show_source",
        "try_all_gpus",
        "try_gpu",
    ],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

_PACKAGES = {
    "data",
    "decoding",
    "efficient",
    "exercises",
    "experiments",
    "figures",
    "lab",
    "models",
    "objectives",
    "results",
    "scaling",
    "tokenization",
    "training",
    "vision",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # the next look-up is a plain one
        return value
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    return _of_before(name)


_of_before = renamed.names_of(__name__, 1)


def __dir__():
    return sorted({*globals(), *_HOME, *_PACKAGES})
