r"""Which heads can go?

A trained layer with H heads is to become smaller: some heads shall go, and those that matter least go first. So we need
an experiment that measures how much a head matters. Here are two.

The layer is a `d2l.MultiHeadAttention`, and `layer(X, X, X, head_mask=m)` multiplies the output of each head by a
factor from m, of shape (H,) or (B, H): one leaves a head as it is, zero switches it off.
"""

import copy

import torch
from torch.nn import functional as F

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Experiment, Mutant


def gradient_importance(layer, X, target):
    """Measure all heads with one backward pass.

    Args:
        layer: a `d2l.MultiHeadAttention` with h features and H heads.
        X: (B, T, h), queries, keys and values at once.
        target: (B, T, h), what the layer should give.

    Returns:
        (H,).
    """
    ### BEGIN SOLUTION
    masks = torch.ones(len(X), layer.num_heads, device=X.device, requires_grad=True)  # (B, H)
    losses = (layer(X, X, X, head_mask=masks) - target).square().sum(dim=(1, 2))  # (B,)
    (gradients,) = torch.autograd.grad(losses.sum(), masks)  # (B, H): a row of masks acts on its own loss
    return gradients.abs().mean(dim=0)
    ### END SOLUTION


def example_by_example(layer, X, target):
    total = torch.zeros(layer.num_heads, device=X.device)
    for x, y in zip(X, target, strict=True):
        mask = torch.ones(layer.num_heads, device=X.device, requires_grad=True)
        with d2l.head_masks(layer, {"": mask}):
            ((layer(x[None], x[None], x[None])[0] - y) ** 2).sum().backward()
        total += mask.grad.abs()
    return total / len(X)


def by_contributions(layer, X, target):
    """The output is linear in the factors: the derivative is 2 (output - target) . contribution."""
    error, eye, zero = layer(X, X, X) - target, torch.eye(layer.num_heads, device=X.device), X.new_zeros(1)
    without_any = layer(X, X, X, head_mask=zero.expand(layer.num_heads))  # the bias of W_o
    alone = torch.stack([layer(X, X, X, head_mask=mask) - without_any for mask in eye])  # (H, B, T, h)
    return (2 * error * alone).sum((2, 3)).abs().mean(1).detach()


def contributions(layer, X):
    """What each head adds to the output, (H, B, T, h), and the rest of it, (h,): in float64, a head at a time."""
    x, H = X.detach().cpu().double(), layer.num_heads
    q, k, v = (x @ w.weight.detach().cpu().double().T for w in (layer.W_q, layer.W_k, layer.W_v))
    W_o, d = layer.W_o.weight.detach().cpu().double(), x.shape[-1] // H
    q, k, v = (
        y + w.bias.detach().cpu().double() for y, w in zip((q, k, v), (layer.W_q, layer.W_k, layer.W_v), strict=True)
    )
    parts = []
    for rows in torch.arange(x.shape[-1]).split(d):
        scores = q[..., rows] @ k[..., rows].mT / d**0.5
        parts.append(torch.softmax(scores, -1) @ v[..., rows] @ W_o[:, rows].T)
    return torch.stack(parts), layer.W_o.bias.detach().cpu().double()


def draw_layer(t, H, d):
    """A layer whose heads differ in what they add."""
    layer = d2l.MultiHeadAttention(H * d, H, bias=True)
    for parameter in layer.parameters():
        parameter.data = t.randn(*parameter.shape, scale=(H * d) ** -0.5).cpu()
    return layer.to(t.device)


def by_switching_off(layer, X, target):
    """A wrong answer: differences for derivatives."""

    def losses(mask):
        return (layer(X, X, X, head_mask=mask) - target).square().sum((1, 2)).detach()

    eye = torch.eye(layer.num_heads, device=X.device)
    return torch.stack([(losses(1 - off) - losses(0 * off + 1)).abs().mean() for off in eye])


def verify_gradient(t, answer):
    for H, d in ((2, 5), (4, 3), (3, 2)):
        B, T = t.sizes(2, 3, 8)
        B = 1 if H == 3 else B
        layer, X = draw_layer(t, H, d), t.randn(B, T, H * d)
        parts, rest = contributions(layer, X)
        # every example wants more of the first head; of the second the first example wants less, the others more
        wish = t.rand(2, B, low=1, high=2).cpu().double()
        wish[1, 0] *= -2
        target = parts.sum(0) + rest + (wish[:, :, None, None] * parts[:2]).sum(0)
        target = (target + t.randn(B, T, H * d, scale=0.05).cpu()).float().to(t.device)
        error = parts.sum(0) + rest - target.cpu().double()  # (B, T, h)
        want = (2 * error * parts).sum((2, 3)).abs().mean(1)
        t.same(t.call(answer, layer, X, target), want, f"the importance of {H} heads")


def rank_heads(layer, X, target):
    """Switch off one head after another.

    Args:
        layer: a `d2l.MultiHeadAttention` with h features and H heads.
        X: (B, T, h), queries, keys and values at once.
        target: (B, T, h), what the layer should give.

    Returns:
        dict with ``whole`` (the loss with all heads, a number), ``without`` (a list of H numbers: the loss with that
        head off and all others on) and ``order`` (a list of heads, counted from 0, in the order in which they should
        go). The loss is the mean squared error.
    """

    ### BEGIN SOLUTION
    def loss(mask):
        with torch.no_grad():
            return F.mse_loss(layer(X, X, X, head_mask=mask), target).item()

    on = torch.ones(layer.num_heads, device=X.device)
    without = [loss(on.index_fill(0, torch.tensor([head], device=X.device), 0)) for head in range(layer.num_heads)]
    order = sorted(range(layer.num_heads), key=lambda head: without[head])
    return {"whole": loss(on), "without": without, "order": order}
    ### END SOLUTION


def all_at_once(layer, X, target):
    H = layer.num_heads
    masks = torch.cat([torch.ones(1, H), 1 - torch.eye(H)]).to(X.device)  # a row a run
    with torch.no_grad():
        losses = torch.stack([(layer(X, X, X, head_mask=m) - target).square().mean() for m in masks])
    return {"whole": losses[0].item(), "without": losses[1:].tolist(), "order": losses[1:].argsort().tolist()}


def by_zeroing_a_copy(layer, X, target):
    def loss(module):
        return (module(X, X, X) - target).square().mean()  # a tensor without axes is a number, too

    without, d = [], X.shape[-1] // layer.num_heads
    for head in range(layer.num_heads):
        pruned = copy.deepcopy(layer)
        pruned.W_o.weight.data[:, head * d : (head + 1) * d] = 0
        without.append(loss(pruned))
    order = [head for _, head in sorted((value, head) for head, value in enumerate(without))]
    return {"whole": loss(layer), "without": without, "order": order}


def growing_list(layer, X, target):
    mask, without = torch.ones(layer.num_heads, device=X.device), []
    whole = ((layer(X, X, X) - target) ** 2).mean().item()
    for head in range(layer.num_heads):
        mask[head] = 0
        without.append(((layer(X, X, X, head_mask=mask) - target) ** 2).mean().item())
    return {"whole": whole, "without": without, "order": sorted(range(len(without)), key=without.__getitem__)}


def by_weights(layer, X, target):
    got = all_at_once(layer, X, target)
    size = layer.W_v.weight.detach().unflatten(0, (layer.num_heads, -1)).flatten(1).norm(dim=1)
    return {**got, "order": size.argsort().tolist()}


def by_change(layer, X, target):
    got = all_at_once(layer, X, target)
    order = sorted(range(layer.num_heads), key=lambda head: abs(got["without"][head] - got["whole"]))
    return {**got, "order": order}


def rows_of_the_output(layer, X, target):
    without, d = [], X.shape[-1] // layer.num_heads
    for head in range(layer.num_heads):
        pruned = copy.deepcopy(layer)
        pruned.W_o.weight.data[head * d : (head + 1) * d] = 0
        without.append((pruned(X, X, X) - target).square().mean().item())
    return {**all_at_once(layer, X, target), "without": without}


def bias_left(layer, X, target):
    without, d = [], X.shape[-1] // layer.num_heads
    for head in range(layer.num_heads):
        pruned = copy.deepcopy(layer)
        pruned.W_v.weight.data[head * d : (head + 1) * d] = 0
        without.append((pruned(X, X, X) - target).square().mean().item())
    return {**all_at_once(layer, X, target), "without": without}


def zeroed_in_place(layer, X, target):
    got, d = all_at_once(layer, X, target), X.shape[-1] // layer.num_heads
    for head in range(layer.num_heads):
        layer.W_o.weight.data[:, head * d : (head + 1) * d] = 0
    return got


def plant(t, harmful):
    """A layer with a head that adds nothing, another that may do harm, and the rest, each of which is missed.

    Returns:
        layer, X, target; the contributions of the heads (H, B, T, h) and the error (B, T, h) in double; the loss
        without each head (H,); and which heads are planted.
    """
    B, T = t.sizes(2, 6, 12)
    H, d = t.random.choice([(4, 4), (5, 3), (6, 2)])
    layer, X = draw_layer(t, H, d), t.randn(B, T, H * d)
    heads = t.random.sample(range(H), H)
    idle, spoiler = heads[:2]
    bands = layer.W_o.weight.data.unflatten(1, (H, d))  # (h, H, d), a view
    bands *= torch.linspace(1, 2, H, device=t.device)[torch.tensor(heads).argsort()][:, None]  # heads that differ
    bands[:, idle] = 0  # adds nothing, however large its values are
    layer.W_v.weight.data.unflatten(0, (H, d))[idle] *= 10
    bands[:, spoiler] *= 3 if harmful else 1
    parts, rest = contributions(layer, X)
    ideal = parts.sum(0) + rest - (parts[spoiler] if harmful else 0)
    target = (ideal + t.randn(B, T, H * d, scale=0.1).cpu()).float().to(t.device)
    error = parts.sum(0) + rest - target.cpu().double()
    without = (error - parts).square().mean((1, 2, 3))
    planted = [spoiler, idle] if harmful else [idle]
    # now and then one of the rest happens to be like the one that does harm, or two are missed alike: draw again
    gaps = without.sort().values.diff()
    if without.argsort()[: len(planted)].tolist() != planted or (gaps < 1e-3 * without.max()).any():
        return plant(t, harmful)
    return layer, X, target, parts, error, without, planted


def _numbers(t, value, name, count):
    """Return a list of numbers, 0-d tensors or not, as plain numbers; or reject it."""
    value = list(value) if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1 else None
    t.that(value is not None, "type", f"`{name}` should be a list of numbers")
    t.that(len(value) == count, "shape", f"`{name}` has {len(value)} entries for {count} heads")
    value = [x.item() if isinstance(x, torch.Tensor) and x.dim() == 0 else x for x in value]
    t.that(all(isinstance(x, (int, float)) for x in value), "type", f"`{name}` should hold plain numbers: `.tolist()`?")
    return value


def verify_ranking(t, answer):
    least, most = [], []
    for harmful in (False, True, False, True):
        layer, X, target, parts, error, want, planted = plant(t, harmful)
        H, whole = len(parts), error.square().mean().item()
        got = t.call(answer, layer, X, target)
        got_whole, without, order = t.fields(got, "whole", "without", "order")
        t.number(got_whole, whole, "the loss with all heads", rtol=1e-3)
        without = torch.tensor(_numbers(t, without, "without", H), dtype=torch.float64, device=t.device)
        t.same(without, want, "`without`", dtype=torch.float64, tolerance=(1e-3, 1e-5))
        right = want.argsort().tolist()
        order = _numbers(t, order, "order", H)
        t.that(
            sorted(order) == list(range(H)) and all(type(head) is int for head in order),
            "heads",
            f"`order` should have each of the {H} heads once, integers from 0 on: it is {order}",
        )
        t.that(order != right[::-1], "reversed", "`order` begins with the head that matters most: it should go last")
        ranks = [right.index(head) for head in range(H)]
        t.that(
            order == right or order != ranks,
            "ranks",
            "`order` holds the place of each head in the order; it should hold the heads, the first to go first",
        )
        by_size = (want - whole).abs().argsort().tolist()
        t.that(
            order == right or order != by_size,
            "absolute",
            "a head without which the loss gets *smaller* does harm and should go first: sort the losses as they are",
        )
        t.that(
            not harmful or order[:2] == planted,
            "planted",
            "one head adds errors and one adds nothing, however large its weights are: these two should go first",
        )
        t.that(harmful or order[:1] == planted, "planted", "one head adds nothing to the output: it should go first")
        t.that(order == right, "order", "`order` is not the order of the losses in `without`")
        least.append(want[order[0]].item())
        most.append(want[order[-1]].item())
    t.below(least, most, 0.05, "direction", "losing the last head of your order should hurt more than losing the first")


MUTANTS_A = [
    Mutant("late-abs", ("gradients.abs().mean(dim=0)", "gradients.mean(dim=0).abs()"), "derivatives of different "
        "examples cancel: take the absolute value of each example's, then the mean"),
    Mutant("one-factor", ("return gradients.abs().mean(dim=0)", "return gradients.sum(dim=0).abs()"),
        "with one factor for all examples their derivatives are added and cancel: take a factor for each example, (B, "
        "H)"),
    Mutant("one-factor-mean", ("return gradients.abs().mean(dim=0)",
        "return gradients.sum(dim=0).abs() / target.numel()"), "this is the derivative of the mean error of all "
        "examples: take a factor for each example, (B, H), and for its loss the *sum* of its squared errors"),
    Mutant("at-zero", ("torch.ones(len(X)", "torch.zeros(len(X)"), "these are derivatives with all heads off: m = 1 "
        "has them all on"),
    Mutant("signed", ("gradients.abs()", "gradients"), "importance has no sign here: take absolute values, for each "
        "example"),
    Mutant("squared", ("gradients.abs()", "gradients.square()"), "these are mean squares of the derivatives, not mean "
        "absolute values"),
    Mutant("total", (".mean(dim=0)", ".sum(dim=0)"), "this is the sum over the examples; it should be their mean"),
    Mutant("mean-twice", ("losses.sum()", "losses.mean()"), "it is divided by the number of examples twice"),
    Mutant("mean-of-all", ("losses.sum()", "losses.mean() / X[0].numel()"), "the loss here is the mean over all "
        "examples, tokens and features: each example has a loss of its own, the sum of its squared errors"),
    Mutant("mean-error", (".sum(dim=(1, 2))", ".mean(dim=(1, 2))"), "the loss of an example is the sum of its squared "
        "errors, not the mean"),
    Mutant("normalised", ("return gradients.abs().mean(dim=0)",
        "return F.normalize(gradients.abs().mean(dim=0), p=1, dim=0)"), "the importances are divided by their sum"),
    Mutant("shape", (".mean(dim=0)", "")),  # a row an example
    Mutant("raised", (", requires_grad=True", "")),  # factors without gradient
    Mutant("half", (".square().sum(dim=(1, 2))", ".square().sum(dim=(1, 2)) / 2"), "the loss is the sum of the squared "
        "errors, without a factor 1/2"),
    Mutant("absolute-errors", ("- target).square()", "- target).abs()"), "the loss is made of absolute errors; it is "
        "the sum of the squared ones"),
    Mutant("no-target", (" - target", ""), "the target plays no part: the loss is made of outputs less target"),
    Mutant("mean-tokens", (".sum(dim=(1, 2))", ".sum(dim=2).mean(dim=1)"), "the loss of an example is a sum over its "
        "tokens, too, not a mean"),
    Mutant("by-H", (".mean(dim=0)", ".sum(dim=0) / layer.num_heads"), "the sum over the examples is divided by H, the "
        "number of heads; it should be their mean"),
    Mutant("root-mean-square", ("gradients.abs().mean(dim=0)", "gradients.square().mean(dim=0).sqrt()"),
        "this is the root of the mean square of the derivatives, not their mean absolute value"),
    Mutant("switched-off", by_switching_off, "this is by how much the loss changes without the head (part b); here its "
        "derivative at m = 1 is asked for"),
    Mutant("shape", ("gradients.abs()", "gradients.squeeze().abs()")),
    Mutant("maximum", ("gradients.abs().mean(dim=0)", "gradients.abs().amax(dim=0)"), "this is the largest of the "
        "examples' derivatives, not their mean"),
    Mutant("one-sided", ("gradients.abs()", "gradients.clamp(min=0)"), "negative derivatives are set to zero: "
        "importance counts them by their size"),
    Mutant("one-sided", ("gradients.abs()", "gradients.neg().clamp(min=0)"), "positive derivatives are set to "
        "zero: importance counts them by their size"),
    Mutant("root-error", ("losses.sum()", "losses.sqrt().sum()"), "the loss of an example is the root of the sum "
        "of its squared errors here: take the sum itself"),
    Mutant("softmax", ("return gradients.abs().mean(dim=0)", "return gradients.abs().mean(dim=0).softmax(0)"),
        "a softmax is taken at the end: the importance is the mean itself"),
    Mutant("half-on", ("torch.ones(len(X), layer.num_heads, device=X.device, requires_grad=True)",
        "torch.full((len(X), layer.num_heads), 0.5, requires_grad=True)"), "these are derivatives at m = 1/2: at "
        "full strength all factors are one"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("reversed", ("lambda head: without[head])", "lambda head: -without[head])")),
    Mutant("stay-off", growing_list, "heads that were switched off stay off: start from all heads for each"),
    Mutant("alone", ("loss(on.index_fill(0, torch.tensor([head], device=X.device), 0))",
        "loss((on - on).index_fill(0, torch.tensor([head], device=X.device), 1))"), "this is the loss with that head "
        "alone, and all others off"),
    Mutant("growth", ('"without": without', '"without": [x - loss(on) for x in without]'), "this is how much the loss "
        "grows; `without` is the loss itself"),
    Mutant("summed", ("layer(X, X, X, head_mask=mask), target)",
        'layer(X, X, X, head_mask=mask), target, reduction="sum")'), "this is the sum of the squared errors; the loss "
        "is their mean"),
    Mutant("heads", ('"order": order', '"order": [head + 1 for head in order]')),  # counted from one
    Mutant("unchanged", ("device=X.device), 0))", "device=X.device), 1))"), "no head is really switched off"),
    Mutant("ranks", ('"order": order', '"order": [order.index(head) for head in range(len(order))]')),
    Mutant("planted", by_weights),
    Mutant("absolute", by_change),
    Mutant("mutates", zeroed_in_place),
    Mutant("root", ("mask), target).item()", "mask), target).item() ** 0.5"), "this is the root of the mean squared "
        "error"),
    Mutant("summed-example", ("mask), target).item()", "mask), target).item() * X[0].numel()"),
        "the squared errors are summed over tokens and features; the loss is their mean"),
    Mutant("absolute-errors", ("F.mse_loss", "F.l1_loss"), "this is the mean absolute error; the loss is the mean "
        "squared one"),
    Mutant("half-off", ("device=X.device), 0))", "device=X.device), 0.5))"), "the head is only turned down to one "
        "half: its factor should be zero"),
    Mutant("rows-of-output", rows_of_the_output, "rows of W_o are zero here, which are features of the output; what a "
        "head brings goes through h / H of its columns: or use head_mask"),
    Mutant("bias-left", bias_left, "the rows of W_v are zero here, but the bias of the values is left: use head_mask"),
    Mutant("heads", ('"order": order', '"order": [float(head) for head in order]')),
    Mutant("none-on", ('"whole": loss(on)', '"whole": loss(0 * on)'), "this is the loss with all heads *off*"),
    Mutant("best", ('"whole": loss(on)', '"whole": min(without)'), "this is the smallest of the losses without a "
        "head: `whole` has all heads on"),
    Mutant("no-target", ("mask), target)", "mask), layer(X, X, X))"), "this is the distance from the layer's own "
        "output: the loss compares with `target`"),
    Mutant("summed-features", ("F.mse_loss(layer(X, X, X, head_mask=mask), target).item()", "(layer(X, X, X, "
        "head_mask=mask) - target).square().sum(-1).mean().item()"), "the squared errors are summed over the "
        "features; the loss is their mean over all entries"),
    Mutant("first-example", ("layer(X, X, X, head_mask=mask), target)", "layer(X, X, X, head_mask=mask)[:1], "
        "target[:1])"), "this is the loss of the first example alone"),
    Mutant("sorted", ('"without": without', '"without": sorted(without)'), "these losses are sorted: number i "
        "should be the loss without head i; `order` is what sorts"),
    Mutant("ratio", ('"without": without', '"without": [x / loss(on) for x in without]'), "this is divided by the "
        "loss with all heads; `without` is the loss itself"),
    Mutant("neighbour", ("torch.tensor([head], device", "torch.tensor([head - 1], device"), "another head is off "
        "than the entry says: number i should be the loss without head i, counted from 0"),
    Mutant("turned-round", ("device=X.device), 0))", "device=X.device), -1))"), "the head's output is turned "
        "round, not switched off: its factor should be zero"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.5.2",
    doc=__doc__,
    source="D2L 11.5, exercise 2",
    parts=[
        Code(
            key="d2l-11.5.2a",
            prompt=r"""
**By the gradient.** Let $L_b$ be the sum of the squared errors of example b, over its tokens and features, and
$m_{bi}$ the factor on head i for that example. The importance of head i is

$$
I_i = \frac1B \sum_{b=1}^{B} \left| \frac{\partial L_b}{\partial m_{bi}} \right| \quad\text{at}\quad m = 1
$$

(Michel, Levy and Neubig, 2019). Write `gradient_importance(layer, X, target)` that returns it for all heads, (H,).
""",
            hints=[
                "The factors are a tensor of ones that requires a gradient.",
                "One factor for each example *and* head, (B, H), gives each example's own derivative at once.",
                "`torch.autograd.grad(losses.sum(), masks)`, absolute values, then the mean over the examples.",
            ],
            answer=gradient_importance,
            verify=verify_gradient,
            alternatives=[example_by_example, by_contributions],
            min_checks=6,
            advice={"values": "Sum the squared errors of an example, and take its derivative's size; then the mean"},
            mutants=MUTANTS_A,
            explanation=r"""
The gradient is the slope of the loss at full strength, and the question is what happens at strength zero. For a small
contribution the two agree; for a large one the loss bends in between.

Why absolute values, and for each example? A head that helps one half of the sentences and harms the other by as much
has a mean derivative of zero and is certainly in use.
""",
        ),
        Experiment(
            key="d2l-11.5.2b",
            prompt=r"""
**By switching off.** Write `rank_heads(layer, X, target)` that measures the loss without each head in turn and returns
a dict: `whole`, `without` and `order`, as its docstring says. The check plants a head that adds nothing, though its
weights are large, and in some layers one that does harm.
""",
            hints=[
                "A head is off where its factor is zero; begin from all ones for every head.",
                "Sort the heads by the loss without them: where it stays smallest, the head is missed least.",
                "`sorted(range(H), key=lambda head: without[head])`; a head that does harm comes first by itself.",
            ],
            answer=rank_heads,
            verify=verify_ranking,
            alternatives=[all_at_once, by_zeroing_a_copy],
            min_checks=20,
            advice={"values": "A loss is the mean of all squared errors, not rounded; entry i has head i off alone"},
            mutants=MUTANTS_B,
            explanation=r"""
Ablation asks the question itself, and needs a pass over the data for each head. It has limits of its own. Heads that
stand in for each other look idle one by one, and are sorely missed as a pair; so after each head that goes, measure
again. And choose the heads on other data than those on which you report the result.

To be *faster*, a head must really go: cut its h / H rows out of `W_q`, `W_k` and `W_v` and its columns out of `W_o`. A
factor of zero saves nothing.
""",
        ),
    ],
)
