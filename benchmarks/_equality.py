"""Whether what learns in the page is what torch learns: cases in float64, and the page that computes them again."""

import base64
import copy
import itertools

import numpy as np
import torch

from d2lmini.models.tiny import TinyConfig, TinyTransformer
from tools.bundles import bundled, host, runtime

POSITIONS = [None, "learned", "sines", "rotary", "alibi"]
NORMS = [("layer", "before"), ("layer", "after"), ("rms", "before"), ("rms", "after"), ("layer", None)]
NETWORKS = ["relu", "gelu", "gelu_tanh", "squared_relu", None]
SETTINGS = list(itertools.product(NORMS, [True, False], NETWORKS, [True, False]))
MODULES = "".join(
    f'export * from "./live/{name}.js";\n' for name in ("tensor", "filters", "learner", "playground_tasks")
)
# worst of all weights, by case: how far each gradient is off, and the loss
COMPARE = """async ({ cases, simd }) => {
  const numbers = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  await live.prepare({ simd });
  const found = [];
  for (const { model, names, weights, gradients, loss, batch } of cases) {
    const learner = new live.Learner({ model });
    if (names.join() !== [...learner.weights.keys()].join()) throw new Error(`other weights: ${names}`);
    const [w, g] = [numbers(weights), numbers(gradients)];
    const cut = (all) => {
      let at = 0;
      return names.map((name) => [name, all.slice(at, (at += learner.weights.get(name).length))]);
    };
    learner.write(Object.fromEntries(cut(w)));
    const norm = (a) => Math.sqrt(a.reduce((sum, x) => sum + x * x, 0));
    const got = learner.gradients(batch);
    let off = Math.abs(got.loss - loss) / loss;
    for (const [name, want] of cut(g)) {
      const mine = learner.weights.get(name).gradient.data;
      const far = norm(mine.map((x, i) => x - want[i])) / (norm(want) + 1e-6 * norm(g));
      if (!(far <= off)) off = far;
    }
    found.push(off);
    learner.free();
  }
  return found;
}"""
RUN = """async ({ model, optimizer, weights, batches }) => {
  await live.prepare();
  const learner = new live.Learner({ model, optimizer });
  learner.write(weights);
  const losses = [], memory = [];
  for (const batch of batches) {
    losses.push(learner.step(batch).loss);
    memory.push(live.memoryUsed());
  }
  return { losses, memory };
}"""
FIFTY = [
    ({}, {"name": "adamw", "rate": 3e-3, "warmup": 10, "clip": 1.0, "weight_decay": 0.1}),
    (
        {"positions": "rotary", "norm": "rms", "ffn": "gelu", "causal": False},
        {"name": "adam", "rate": 1e-2, "betas": [0.8, 0.95]},
    ),
    (
        {"positions": "alibi", "norm_place": "after", "num_blks": 3},
        {"name": "sgd", "rate": 0.05, "momentum": 0.9, "warmup": 5},
    ),
    ({"positions": "sines", "norm_place": None, "ffn": None}, {"name": "adamw", "rate": 3e-3, "clip": 0.5}),
]


def page_of_learning():
    """A page with the runtime's learning as `live`, and `LIVE`, which has it in a worker. Returns: str, HTML."""
    scripts = bundled(MODULES, "live"), host(), runtime()
    return f'<!doctype html><meta charset="utf-8">{"".join(f"<script>{text}</script>" for text in scripts)}'


def made(generator, noise=0.15, **changes):
    """A model in float64, whose weights are off from where they begin: norms too."""
    sizes = {"vocab_size": 7, "max_len": 6, "num_hiddens": 8, "num_heads": 2, "num_blks": 2, "ffn_num_hiddens": 12}
    model = TinyTransformer(TinyConfig(**{**sizes, **changes}))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator) if weight.dim() > 1 else weight)
            weight.add_(noise * torch.randn(weight.shape, generator=generator))
    return model.double()


def case(generator, **changes):
    model = made(generator, **changes)
    tokens, targets = torch.randint(model.config.vocab_size, (2, 2, 5), generator=generator)  # (B, T)
    targets[torch.rand(targets.shape, generator=generator) < 0.3] = -100
    single = copy.deepcopy(model).float()
    for one in (single, model):
        loss = one.loss(one(tokens), targets)
        loss.backward()
    return {
        "model": vars(model.config),
        "names": [name for name, _ in model.named_parameters()],
        "weights": packed(model.parameters()),
        "gradients": packed(weight.grad for weight in model.parameters()),
        "loss": loss.item(),
        "off": worst(single, model),
        "batch": batch_of(tokens, targets),
    }


def worst(single, model):
    """How far torch's own gradients in float32 are off: without norms or residual connections some nearly cancel."""
    want = [weight.grad for weight in model.parameters()]
    total = torch.cat([gradient.flatten() for gradient in want]).norm()
    got = (weight.grad.double() for weight in single.parameters())
    return max(((a - b).norm() / (b.norm() + 1e-6 * total)).item() for a, b in zip(got, want, strict=True))


def packed(tensors):
    flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
    return base64.b64encode(flat.numpy().astype(np.float32).tobytes()).decode()


def batch_of(tokens, targets):
    return {"tokens": tokens.flatten().tolist(), "targets": targets.flatten().tolist(), "batch": len(tokens)}


def cases_of(positions):
    """A case for every other setting. Returns: list of what `COMPARE` takes."""
    generator = torch.Generator().manual_seed(0)
    heads = itertools.cycle([1, 2, 4])
    return [
        case(
            generator,
            positions=positions,
            norm=norm,
            norm_place=norm_place,
            residual=residual,
            ffn=ffn,
            causal=causal,
            num_heads=next(heads),
        )
        for (norm, norm_place), residual, ffn, causal in SETTINGS
    ]


def fifty_steps(changes, optimizer):
    """What `RUN` takes, and the losses that torch has of it: dict, list."""
    torch.manual_seed(1)
    model = TinyTransformer(TinyConfig(11, 12, num_hiddens=16, **changes))
    begin = {name: weight.detach().flatten().tolist() for name, weight in model.named_parameters()}
    tokens = torch.randint(11, (50, 8, 12))
    targets = (tokens + 1) % 11
    targets[:, :, 3::4] = tokens[:, :, 2::4]  # of one place in four the token before it
    targets[:, :, 0] = -100
    options = {
        "model": vars(model.config),
        "optimizer": optimizer,
        "weights": begin,
        "batches": list(map(batch_of, tokens, targets)),
    }
    return options, losses_of(model, optimizer, tokens, targets)


def optimizer_of(options, weights):
    """torch's optimiser of weights, by which matrices alone decay."""
    name, rate, decay = options["name"], options["rate"], options.get("weight_decay", 0.01)
    if name == "sgd":
        return torch.optim.SGD(weights, rate, momentum=options["momentum"])
    if name == "adam":
        return torch.optim.Adam(weights, rate, betas=options["betas"])
    matrices, others = ([weight for weight in weights if (weight.dim() > 1) == wanted] for wanted in (True, False))
    groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0}]
    return torch.optim.AdamW(groups, rate)


def losses_of(model, options, tokens, targets):
    """What torch's own optimiser makes of a model, batch by batch: list of losses."""
    optimizer, rate = optimizer_of(options, list(model.parameters())), options["rate"]
    losses = []
    for step, (X, Y) in enumerate(zip(tokens, targets, strict=True)):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / max(1, options.get("warmup", 0)))
        optimizer.zero_grad()
        loss = model.loss(model(X), Y)
        loss.backward()
        if "clip" in options:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options["clip"])
        optimizer.step()
        losses.append(loss.item())
    return losses
