"""Inside of a training: sizes of gradients, of updates and of the residual stream, and what low precision loses.

Most functions take a model with a ``loss``, as a `Module` has, and a batch as it takes one: the inputs, then the
labels. They leave the parameters, their gradients, the optimizer and the random numbers as they were, so that one may
look in the midst of a training. A size is a root mean square (RMS), which can be compared between tensors of different
shapes.
"""

import copy
import math
import re
from contextlib import contextmanager

import torch

from ..utils import in_float64


def batch_gradients(model, batch, blocks=None):
    """The gradients of the loss of a batch.

    Args:
        model: a module with ``loss(Y_hat, Y)``; it stays in its mode, so that dropout is at work in training mode.
        batch: tuple of the inputs and, last, the labels.
        blocks: None, or the blocks of the model in their order, whose inputs and outputs are the residual stream.

    Returns:
        dict from the names of parameters to gradients of their shapes; with ``blocks`` also "stream.0", the gradient in
        what goes into the first block, to "stream.L", that in what comes out of the last: (B, T, h). What the loss does
        not depend on has none.

    Raises:
        ValueError: no parameter is trained, or the blocks were not called.
    """
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise ValueError(f"{type(model).__name__} has no parameters that are trained, so there are no gradients")
    with _same_random_numbers(model), torch.enable_grad(), _recorded_stream(blocks or ()) as stream:
        loss = model.loss(model(*batch[:-1]), batch[-1])
    if blocks is not None:
        _check_called(stream, blocks)
        named |= {f"stream.{i}": X for i, X in enumerate(stream) if X.requires_grad}
    gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {name: gradient for name, gradient in zip(named, gradients, strict=True) if gradient is not None}


def gradient_sizes(model, batch, blocks=None):
    """The RMS of the gradient in every parameter, and in the residual stream; arguments and names as `batch_gradients`.

    Returns:
        dict from names to float.

    Source: Xiong et al. 2020 and Liu et al. 2020, who look at such sizes.
    """
    return {name: _rms(gradient) for name, gradient in batch_gradients(model, batch, blocks).items()}


def update_sizes(model, optimizer, batch, gradient_clip_val=0):
    """How much the next step would change every parameter, relative to its size: RMS of the step / RMS of the weights.

    Args:
        model, batch: as `batch_gradients`.
        optimizer: of the model's parameters, with the state that it has by now.
        gradient_clip_val: largest norm of the gradient, as the `Trainer` takes it; 0: any.

    Returns:
        dict from names to float; None where all weights of a parameter are 0, as biases begin.
    """
    return {
        name: _rms(after - before) / size if (size := _rms(before)) else None
        for name, (before, after) in _trial_step(model, optimizer, batch, gradient_clip_val).items()
    }


def lost_updates(model, optimizer, batch, dtype=torch.bfloat16, gradient_clip_val=0):
    """Which share of the weights would stay as they are if they were kept in a coarse type, though the step moves them.

    Args:
        model, optimizer, batch, gradient_clip_val: as `update_sizes`.
        dtype: of the kept weights.

    Returns:
        dict from names to shares, 0 to 1, of the weights that the step moves.

    Source: Micikevicius et al. 2018, section 3.1, who therefore keep a copy of the weights in float32.
    """
    shares = {}
    for name, (before, after) in _trial_step(model, optimizer, batch, gradient_clip_val).items():
        moved, coarse = after != before, before.to(dtype)
        same = (coarse.to(before) + (after - before)).to(dtype) == coarse
        shares[name] = _share(same, moved)
    return shares


def second_moments(model, optimizer):
    """What Adam divides the step of each parameter by: the root of the mean of its second moments, bias corrected.

    Args:
        model: any module.
        optimizer: of its parameters, after a step at least.

    Returns:
        dict from names to float; what has no second moments (SGD, the matrices of Muon) is left out.

    Source: Kingma and Ba 2015, algorithm 1; D2L section 12.10.
    """
    beta2 = {id(p): group["betas"][1] for group in optimizer.param_groups if "betas" in group for p in group["params"]}
    moments = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter, {})
        if "exp_avg_sq" in state:
            mean = in_float64(state["exp_avg_sq"]).mean().item()
            moments[name] = math.sqrt(mean / (1 - beta2[id(parameter)] ** float(state["step"])))
    return moments


@torch.no_grad()
def residual_sizes(model, blocks, *inputs):
    """How the residual stream grows with depth.

    Args:
        model: any module.
        blocks: those of it that the stream runs through, in their order; each takes it as its first argument.
        inputs: what the model is called with.

    Returns:
        dict of ``size``, the RMS of the stream before the first block and after each, L + 1 numbers; and of ``change``,
        the RMS of what each block adds to it over that of its input, L numbers.

    Raises:
        ValueError: the blocks were not called.
    """
    with _same_random_numbers(model), _recorded_stream(blocks) as stream:
        model(*inputs)
    _check_called(stream, blocks)
    size = [_rms(X) for X in stream]
    change = [_rms(b - a) / s if s else None for a, b, s in zip(stream, stream[1:], size, strict=False)]
    return {"size": size, "change": change}


def underflow(model, batch, dtype=torch.float16, scale=1.0, blocks=None):
    """Which share of the gradients becomes 0 in a coarse type.

    They are computed in the type of the model and then rounded once. A backward pass that is itself in the coarse type
    rounds in each of its steps.

    Args:
        model, batch, blocks: as `batch_gradients`.
        dtype: the coarse type: float16, whose smallest number is 2^-24, or bfloat16, which reaches as far as float32.
        scale: what the gradients are multiplied by before they are rounded.

    Returns:
        dict from names to shares, 0 to 1, of the numbers that are not 0 before.

    Source: Micikevicius et al. 2018, section 3.2.
    """
    gradients = batch_gradients(model, batch, blocks)
    return {name: _share((scale * g).to(dtype) == 0, g != 0) for name, g in gradients.items()}


def highest_loss_scale(model, batch, dtype=torch.float16, blocks=None):
    """The largest power of two by which the loss may be multiplied before a gradient of the batch overflows.

    Args:
        model, batch, blocks: as `batch_gradients`; dtype: that of the gradients.

    Returns:
        float.

    Raises:
        ValueError: all gradients are 0, or one is not finite, so that there is no such scale.
    """
    gradients = batch_gradients(model, batch, blocks).values()
    largest = torch.stack([g.abs().max() for g in gradients]).max().item()  # a NaN anywhere stays one
    if not 0 < largest < math.inf:
        raise ValueError(f"the largest gradient is {largest}, expected one that is finite and not 0")
    return 2.0 ** math.floor(math.log2(torch.finfo(dtype).max / largest))


def by_depth(values, blocks="blks"):
    """What is told of each parameter, as lists over the blocks of a model.

    For example ``by_depth(gradient_sizes(model, batch))["attention.W_q.weight"]`` has a number for each block.

    Args:
        values: dict from names of parameters to anything.
        blocks: name of the list of blocks, as the model calls it.

    Returns:
        dict from names inside of a block to lists, the first block's value first. Other parameters are left out.

    Raises:
        ValueError: no name is that of a parameter in such a block.
    """
    places = re.compile(rf"{re.escape(blocks)}\.(\d+)\.(.+)")
    inside = sorted((int(m[1]), m[2], value) for name, value in values.items() if (m := places.fullmatch(name)))
    if not inside:
        raise ValueError(
            f"no name begins with {blocks + '.0.'!r}, as a parameter of the first block would: {[*values]}"
        )
    by_name = {}
    for _, name, value in inside:
        by_name.setdefault(name, []).append(value)
    return by_name


def _rms(X):
    return (torch.linalg.vector_norm(in_float64(X.detach())) / math.sqrt(X.numel())).item()


def _share(which, among):
    """The share of ``among`` that is in ``which``; of none it is 0."""
    return ((which & among).sum() / among.sum().clamp(min=1)).item()


@contextmanager
def _same_random_numbers(model):
    """What is drawn inside, as dropout draws, is drawn again by what comes after."""
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)):
        yield


@contextmanager
def _recorded_stream(blocks):
    """A list of what goes into the first of the blocks and what comes out of each, call by call."""
    stream = []

    def enter(module, args):
        if not stream:
            stream.append(args[0])

    def leave(module, args, output):
        stream.append(output[0] if isinstance(output, tuple) else output)

    hooks = [block.register_forward_hook(leave) for block in dict.fromkeys(blocks)]
    hooks += [block.register_forward_pre_hook(enter) for block in dict.fromkeys(blocks)]
    try:
        yield stream
    finally:
        for hook in hooks:
            hook.remove()


def _check_called(stream, blocks):
    if len(stream) < 2:
        raise ValueError(f"none of the {len(blocks)} blocks was called: are they those of this model?")


def _trial_step(model, optimizer, batch, gradient_clip_val):
    """Dict from names to the weights before and after the step that the optimizer would make now, which is undone."""
    gradients = batch_gradients(model, batch)
    parameters = {name: p for name, p in model.named_parameters() if name in gradients}
    before = {name: p.detach().clone() for name, p in parameters.items()}
    every = [p for group in optimizer.param_groups for p in group["params"]]
    kept, state = [(p, p.grad) for p in (*every, *parameters.values())], copy.deepcopy(optimizer.state_dict())
    try:
        for p in every:
            p.grad = None  # one of before would move what this loss does not use
        for name, p in parameters.items():
            p.grad = gradients[name]
        if gradient_clip_val:
            torch.nn.utils.clip_grad_norm_(parameters.values(), gradient_clip_val)
        optimizer.step()
        return {name: (before[name], p.detach().clone()) for name, p in parameters.items()}
    finally:
        with torch.no_grad():
            for name, p in parameters.items():
                p.copy_(before[name])
        for p, gradient in kept:
            p.grad = gradient
        optimizer.load_state_dict(state)
