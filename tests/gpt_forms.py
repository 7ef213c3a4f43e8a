"""The forms of a GPT, in one list that all tests share: each field of `GPTConfig` has a value of its own in some."""

from dataclasses import replace

from d2lmini.models.gpt_config import GPT_CONFIGS

TOY, MODERN = GPT_CONFIGS["toy"], GPT_CONFIGS["modern-toy"]
FORMS = {
    "GPT-2": TOY,
    "GPT-1": replace(TOY, norm_first=False, init="gpt1", ffn="gelu", dropout=0.2),
    "modern": MODERN,
    "gated, no positions": replace(MODERN, ffn="swiglu", positions=None, qk_norm=False, tie_weights=True),
    "grouped queries": replace(MODERN, num_kv_heads=2, ffn="geglu", qk_norm=False, rotary_base=500.0, norm_eps=1e-4),
    "no biases, layer norm": replace(TOY, use_bias=False, ffn="relu", ffn_num_hiddens=40),
    "wide heads": replace(TOY, positions="rotary", limit_context=True, head_size=10, norm_eps=1e-3),
}
