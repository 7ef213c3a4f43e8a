"""What holds wherever a model computes: nothing is made on the CPU by mistake, nothing waits, nothing is in float64.

torch's device "meta" stands for all of them, whose tensors have a shape, but no content: to read one, to choose by one,
to copy one or to mix devices is an error.
"""

import ast
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import d2lmini
from d2lmini import decoding, utils
from d2lmini.models.bert import BERTForPretraining
from d2lmini.models.bert_config import BERT_CONFIGS
from d2lmini.models.clip import repeats_floor
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.models.heads import TaggingHead, TextHead
from d2lmini.models.image_gpt import GreyQuantizer, ImageGPT, ImageGPTConfig
from d2lmini.models.t5 import T5
from d2lmini.models.t5_config import T5_CONFIGS
from d2lmini.models.tiny import TinyConfig, TinyTransformer
from d2lmini.models.transformer_seq2seq import Transformer, TransformerConfig
from d2lmini.objectives.preferences import expected_best_of
from d2lmini.training.curves import Means
from d2lmini.training.inspection import gradient_sizes, residual_sizes

V = 40


class Refusing(TorchDispatchMode):
    """On the device nothing is in float64."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor) and x.is_meta and x.dtype == torch.float64:
                raise TypeError(f"{func} made float64 on a device that has none")
        return result


def ids(*shape):
    return torch.randint(V, shape)


def lens(n):
    return torch.full((n,), 4)


MODELS = {
    "GPT": lambda: (GPT(GPT_CONFIGS["toy"]), (ids(3, 5), ids(3, 5))),
    "GPT of today": lambda: (GPT(GPT_CONFIGS["modern-toy"]), (ids(3, 5), lens(3), ids(3, 5))),
    "TinyTransformer": lambda: (TinyTransformer(TinyConfig(V)), (ids(3, 5), ids(3, 5))),
    "Transformer": lambda: (Transformer(TransformerConfig(V, 8, 12, 2, 2)), (ids(3, 5), ids(3, 5), lens(3), ids(3, 5))),
    "T5": lambda: (T5(T5_CONFIGS["toy"]), (ids(3, 5), ids(3, 5), lens(3), ids(3, 5))),
    "BERT": lambda: (BERTForPretraining(BERT_CONFIGS["toy"]), (ids(3, 5), ids(3, 5) % 2, lens(3), ids(3, 5))),
    "TextHead": lambda: (
        TextHead(BERTForPretraining(BERT_CONFIGS["toy"]).bert),
        (ids(3, 5), ids(3, 5) % 2, lens(3), ids(3) % 2),
    ),
    "TaggingHead": lambda: (
        TaggingHead(BERTForPretraining(BERT_CONFIGS["toy"]).bert, V),
        (ids(3, 5), ids(3, 5) % 2, lens(3), ids(3, 5)),
    ),
    "ImageGPT": lambda: (ImageGPT(ImageGPTConfig(6, V, 8, 12, 2, 2)), (ids(3, 6, 6), None)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_stays_on_its_device_and_waits_for_nothing(name):
    """BERT's pretraining alone waits, once: how many tokens there are to guess decides how many are scored."""
    with torch.device("meta"):
        model, batch = MODELS[name]()
    model.to("meta").plot = lambda *args, **options: None  # tables of positions are made on the CPU, and move along
    if name == "BERT":
        with pytest.raises(Exception, match="nonzero"):
            model.training_step(batch)
        loss = model.loss(model(*batch[:-1]), (batch[-1], batch[-1][:, 0] > 0))
    elif name == "ImageGPT":
        loss = model.loss(model(batch[0]), batch[0])
    else:
        loss = model.training_step(batch)
    loss.backward()
    assert all(x.is_meta for x in (loss, *model.parameters()))


CALLS = {
    "top_p": lambda x, model: decoding.keep_top_p(x, 0.9),
    "rms": lambda x, model: gradient_sizes(*linear(x)),
    "stream": lambda x, model: residual_sizes((net := torch.nn.Linear(6, 6, device="meta")), [net], x),
    "means": lambda x, model: means(x),
    "best of n": lambda x, model: expected_best_of(x, x, 2),
    "levels": lambda x, model: GreyQuantizer.fit(x, 3),
    "floor": lambda x, model: repeats_floor(x > 0),
    "rotary": lambda x, model: d2lmini.rotary(x),
    "speculative": lambda x, model: decoding.speculative_sample(model, model, [1, 2], 3),
    "contrastive": lambda x, model: decoding.contrastive_search(model, [1, 2], 2),
    "generate": lambda x, model: model.generate([[1, 2], [3]], 2, top_p=0.9, repetition_penalty=1.2),
}


def linear(x):
    model = torch.nn.Linear(6, 6, device="meta")
    model.loss = lambda Y_hat, Y: (Y_hat - Y).square().mean()
    return model, (x, x)


def means(x):
    found = Means()
    found.add("loss", x.mean(), 3)
    return found.take(x.device, lambda total: total)


@pytest.mark.parametrize("name", CALLS)
def test_no_float64_up_to_the_first_number_that_is_read(name, monkeypatch):
    monkeypatch.setattr(utils, "WITHOUT_FLOAT64", {"meta"})
    with torch.device("meta"):
        x, model = torch.randn(3, 6), GPT(GPT_CONFIGS["toy"])
    with Refusing():
        try:
            CALLS[name](x, model)
        except (NotImplementedError, RuntimeError) as error:
            if "meta tensor" not in str(error):
                raise


def test_nothing_asks_for_float64_where_a_device_may_have_none():
    """``.double()`` comes after ``.cpu()``, or of what was just made there, which is on the CPU."""
    found = []
    for path in sorted(Path(d2lmini.__file__).parent.rglob("*.py")):
        name = path.relative_to(Path(d2lmini.__file__).parent).as_posix()
        if name.split("/")[0] in ("exercises", "figures", "scaling") or name == "utils.py":
            continue  # on the CPU
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            doubled = text.endswith(".double()") and not text.endswith(".cpu().double()")
            doubled = doubled and not text.startswith("torch.")
            given = "device=" in text or text.startswith("torch.as_tensor")
            made = given and "float64" in text.rpartition("dtype=")[2]
            found += [f"{name}: {text}"] if doubled or made else []
    assert found == []
