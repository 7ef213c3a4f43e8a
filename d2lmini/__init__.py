"""d2lmini: attention and transformers, small enough to read.

Shapes are written with one legend everywhere:

    B  batch                    D  features of queries and keys
    T  queries (targets)        E  features of values
    S  keys = values (sources)  H  heads
    N  stored examples          C  classes
    V  vocabulary               h  hidden units (``num_hiddens``)

Masks are boolean and ``True`` means *may attend*; they broadcast to (B, H, T, S), or to (B, T, S) where there are no
heads. ``valid_lens`` of shape (B,) or (B, T) is accepted wherever a mask is. A query that may attend to nothing gets
zero weights and a zero output.

Importing this package loads nothing heavy: each public name is fetched from its module on first use.
"""

from importlib import import_module

__version__ = "0.1.0"

_MODULES = {
    "exercises": ["check", "hint", "review"],
    "run_times": ["run_time"],
    "masks": ["as_mask", "causal_mask", "padding_mask", "prefix_mask", "real_tokens", "sliding_window_mask"],
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
    "cache": ["KeyValueCache"],
    "multi_head": ["MultiHeadAttention"],
    "experts": ["SwitchFFN"],
    "hooks": ["attention_patterns", "attention_rollout", "capture_attention", "head_masks"],
    "position": [
        "LearnedPositionalEncoding",
        "PositionalEncoding",
        "RelativePositionBias",
        "RelativePositionEmbedding",
        "RotaryEmbedding",
        "rotary",
        "sinusoidal",
    ],
    "transformer": [
        "AddNorm",
        "DecoderState",
        "PositionWiseFFN",
        "GatedFFN",
        "SquaredReLU",
        "TransformerDecoderBlock",
        "TransformerEncoderBlock",
    ],
    "layout": ["PackedAttention", "PackedBlock", "for_decoding"],
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
    "models.resnet": ["Residual", "ResNet"],
    "models.clip": ["CLIP", "CLIPConfig"],
    "decoding": [
        "Decoded",
        "Filters",
        "Sampled",
        "Vote",
        "beam_search",
        "block_repeated_ngrams",
        "diverse_beam_search",
        "greedy_search",
        "keep_min_p",
        "keep_top_k",
        "keep_top_p",
        "majority_vote",
        "penalise_repetition",
        "reorder",
        "sample",
        "stream",
        "vote_accuracy",
        "with_temperature",
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
        "implied_rewards",
        "info_nce",
        "mask_tokens",
        "next_sentence_pairs",
        "pack_pairs",
        "preference_pairs",
        "prefix_lm",
        "random_spans",
        "replace_tokens",
        "restore_spans",
        "sequence_log_probs",
        "span_counts",
        "text_length",
    ],
    "objectives.masking": ["IGNORE_INDEX"],
    "diversity": ["distinct_n", "repetition_rate", "self_bleu"],
    "metrics": ["bleu", "corpus_bleu", "corpus_chrf", "span_f1", "squad_scores", "tokenised_bleu"],
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
    "scaling.published": ["PUBLISHED_LAWS", "PUBLISHED_MODELS"],
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
    "tokenization.characters": ["CharacterTokenizer"],
    "tokenization.subwords": ["SubwordTokenizer"],
    "tokenization.trained": ["BPETokenizer"],
    "tokenization.vocabulary": ["Vocab"],
    "data.fra_eng": ["MTFraEng"],
    "data.minilm": ["load_minilm", "sentence_embeddings"],
    "data.translation": ["GrammarCorpus", "Multi30k", "Tatoeba"],
    "data.text_encoder": ["TextEncoder"],
    "data.sentiment": ["SentencePolarity"],
    "data.paraphrases": ["Paraphrases"],
    "data.tagging": ["EmergingEntities"],
    "data.question_answering": ["SQuAD"],
    "data.pretraining": ["TextWindows"],
    "data.fashion_mnist": ["FashionMNIST"],
    "data.augmentation": ["Augmentation"],
    "data.captions": ["FashionCaptions"],
    "plotting": ["plot", "plt", "set_axes", "set_figsize", "show_heatmaps", "use_svg_display"],
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
    "exercises",
    "experiments",
    "figures",
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
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_HOME, *_PACKAGES})
