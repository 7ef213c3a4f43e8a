"""An answer against a reference: the comparison that most checks consist of."""

import torch

SLOPES = (1e-3, 1e-4)  # the tolerance of gradients: sums of many products in float32
CANCELS = 3e-5  # a part of the largest gradient: where such numbers cancel, no more is left of their digits


def against(t, reference, answer, args, results, gradients, case, order, options):
    """`Trial.against`, which says what the arguments are."""
    places = {name: next(i for i, x in enumerate(args) if x is given) for name, given in gradients.items()}
    for given in gradients.values():
        given.requires_grad_()
    exact = [_exact(x) for x in args]
    leaves = [exact[place].requires_grad_() for place in places.values()]
    wanted = reference(*exact)
    got = t.call(answer, *args)
    called = "the {}"
    if isinstance(wanted, dict):
        results, called = tuple(wanted), '"{}"'
        got, wanted = t.fields(got, *results), wanted.values()
    elif results:
        got = t.unpack(got, *results)
    else:
        results, got, wanted = ("result",), (got,), (wanted,)
    pairs = dict(zip(results, zip(got, wanted, strict=True), strict=True))
    for name in order or pairs:
        value, want = pairs[name]
        said = f"{called.format(name)} {case}".rstrip()
        if isinstance(want, torch.Tensor):
            t.same(value, want.detach(), said, **options)
        else:
            t.number(value, want, said, **options)
    for name, (value, want) in pairs.items() if gradients else ():
        _compare_slopes(t, leaves, places, called.format(name), case, value, want)


def _compare_slopes(t, leaves, places, name, case, value, want):
    """The gradients of one result, weighted by chance, in each argument that has one."""
    weights = t.randn(*want.shape)
    slopes = torch.autograd.grad(want, leaves, weights.cpu().double(), retain_graph=True, allow_unused=True)
    for (argument, place), slope in zip(places.items(), slopes, strict=True):
        if slope is None:  # this result does not depend on it
            continue
        called = f"the gradient of {name} in {argument}{case and f' {case}'}"
        largest = slope.abs().max().item() if slope.numel() else 0.0
        tolerance = SLOPES[0], max(SLOPES[1], CANCELS * largest)
        t.same(t.gradient(value, place, name, weights), slope, called, tolerance=tolerance)


def _exact(x):
    """An argument as a reference takes it: floats in float64, on the CPU."""
    if not isinstance(x, torch.Tensor):
        return x
    return x.detach().cpu().double() if x.is_floating_point() else x.cpu()
